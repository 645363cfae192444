// torchvision's vision transformer: x = input + attention(ln_1(input)), x + mlp(ln_2(x)). PyTorch's own encoder
// layer: x = norm1(input + attention(input)), norm2(x + linear2(relu(linear1(x)))), or with each norm first where the
// order of a table's rows says so; a tree does not tell, and PyTorch's default is last. Source:
// torchvision.models.vision_transformer.EncoderBlock, torch.nn.TransformerEncoderLayer.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/block_rules.hpp"
#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace transformer_detail {

inline Tensor wire_encoder_block(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::size_t kParts = 5;  // ln_1, self_attention, dropout, ln_2, mlp
  const std::span<const Part> parts = block.parts;
  if (parts.size() != kParts) return wiring.chain(parts, input);
  const core::Shape images = wiring.shape(input);  // a tree shows nothing between the projection and the first block
  if (images.rank() == 4) {
    const core::Checked tokens = core::Checked(images[2].size) * core::Checked(images[3].size) + 1;
    input = wiring.as_sequence(input, tokens.value().value_or(0), images[1].size);
  }
  const Tensor attended = wiring.chain(parts.first(3), input);
  const Tensor sum = wiring.add(attended, input, false);
  return wiring.add(sum, wiring.chain(parts.subspan(3), sum), false);
}

/// A tree shows the output projection before the attention whose output it reads.
inline Tensor wire_attention(Wiring& wiring, const Container& block, Tensor input) {
  for (const bool attention : {true, false}) {
    for (const Part& part : block.parts) {
      if ((wiring.op(part) == "multihead_attention") == attention) input = wiring.call(part, input);
    }
  }
  return input;
}

/// The parts of an encoder layer in the order of their calls, as its names or a table's rows tell.
inline std::vector<Part> encoder_calls(const Wiring& wiring, const Container& block) {
  constexpr std::array<std::string_view, 8> kOrder = {"self_attn", "dropout1", "norm1",    "linear1",
                                                      "dropout",   "linear2",  "dropout2", "norm2"};
  if (wiring.called()) return block.parts;
  std::vector<Part> parts;
  for (const std::string_view name : kOrder) {
    if (const auto part = wiring.child(block, name)) parts.push_back(*part);
  }
  return parts;
}

inline Tensor wire_encoder_layer(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::size_t kParts = 8;
  const std::vector<Part> parts = encoder_calls(wiring, block);
  if (parts.size() != kParts) return wiring.chain(block.parts, input);
  const std::span<const Part> all = parts;
  const bool norm_first = wiring.op(parts[0]) == "layer_norm";
  const auto feed_forward = [&](std::size_t from, Tensor tensor) {
    tensor = wiring.call(all[from], tensor);
    tensor = wiring.operation("relu", {&tensor, 1});
    return wiring.chain(all.subspan(from + 1, 3), tensor);
  };
  if (norm_first) {  // norm, attention, dropout, norm, linear, dropout, linear, dropout
    const Tensor sum = wiring.add(input, wiring.chain(all.first(3), input), false);
    return wiring.add(sum, feed_forward(4, wiring.call(all[3], sum)), false);
  }
  const Tensor sum = wiring.call(all[2], wiring.add(input, wiring.chain(all.first(2), input), false));
  return wiring.call(all[7], wiring.add(sum, feed_forward(3, sum), false));
}

inline constexpr std::array<std::string_view, 1> kAttention = {"MultiheadAttention"};
inline constexpr std::array<std::string_view, 1> kEncoderLayer = {"TransformerEncoderLayer"};
inline constexpr std::array<std::string_view, 1> kEncoderBlock = {"EncoderBlock"};

}  // namespace transformer_detail

inline constexpr std::array<BlockRule, 3> kTransformerBlocks = {
    {{transformer_detail::kAttention, transformer_detail::wire_attention, nullptr},
     {transformer_detail::kEncoderLayer, transformer_detail::wire_encoder_layer, nullptr},
     {transformer_detail::kEncoderBlock, transformer_detail::wire_encoder_block, nullptr}}};

// Attention as image models write it: queries, keys and values from one projection (qkv) or several (q, kv; q, k, v),
// norms of queries and keys, the fused kernel or scores written out, and a projection. A tree prints the layers, and
// neither the heads nor what is computed between them. Source: timm 1.0.9, timm.models.vision_transformer.Attention,
// swin_transformer.WindowAttention, swin_transformer_v2.WindowAttention, maxxvit.AttentionCl, Attention2d, beit, eva,
// cait, xcit, volo, twins, pvt_v2, crossvit.

namespace attention_block_detail {

using namespace attention_calls_detail;  // NOLINT: the rules' own words

/// A packed projection [N, T, W]: three parts of one size, or smaller queries and keys where what the projection after
/// it reads (the values) is not a third (levit, efficientformer: scores written out).
inline Tensor attend_packed(Wiring& wiring, const Container& block, const Kind& kind, Tensor packed) {
  const auto behind = wiring.child(block, "proj");
  const std::int64_t width = tokens_detail::fixed(wiring.shape(packed), 2);
  const auto linear = behind ? wiring.first_width(*behind, "in_features", "in_channels") : std::nullopt;
  const std::int64_t values = linear.value_or(width / 3);
  if (3 * values == width || values >= width || (width - values) % 2 != 0) {
    const std::vector<Tensor> qkv = tokens_detail::parts_of(wiring, packed, 3, 2);
    return attend(wiring, block, kind, qkv[0], qkv[1], qkv[2]);
  }
  constexpr Kind kSmall = {.fused = false, .head_width = 16};
  const std::int64_t keys = (width - values) / 2;
  const auto part = [&](std::int64_t start, std::int64_t length) {
    return wiring.operation("slice", {&packed, 1}, {{"dim", std::int64_t{2}}, {"start", start}, {"length", length}});
  };
  const Tensor query = part(0, keys);
  const Tensor key = part(keys, keys);
  return attend(wiring, block, kSmall, query, key, part(2 * keys, values));
}

/// Queries, keys and values of tokens [N, T, C].
inline Tensor attend_tokens(Wiring& wiring, const Container& block, const Kind& kind, Tensor input) {
  const Calls calls(wiring, block);
  if (calls.has("qkv")) {
    const Tensor packed = calls("qkv", input);
    return wiring.failed() ? input : attend_packed(wiring, block, kind, packed);
  }
  if (calls.has("kv") && calls.has("q")) {
    const Tensor query = calls("q", input);
    const Tensor packed = calls("kv", reduced(wiring, block, input));
    if (wiring.failed()) return input;
    const std::vector<Tensor> kv = tokens_detail::parts_of(wiring, packed, 2, 2);
    return attend(wiring, block, kind, query, kv[0], kv[1]);
  }
  constexpr std::array<std::array<std::string_view, 3>, 3> kNames = {
      {{"q_proj", "k_proj", "v_proj"}, {"q", "k", "v"}, {"wq", "wk", "wv"}}};
  for (const auto& names : kNames) {
    if (!calls.has_any(names)) continue;
    const Tensor query = calls(names[0], input);
    const Tensor key = calls(names[1], input);
    return attend(wiring, block, kind, query, key, calls(names[2], input));
  }
  return wiring.chain(block.parts, input);
}

/// Images whose projection is a convolution (maxxvit.Attention2d): their pixels are the tokens.
inline Tensor attend_images(Wiring& wiring, const Container& block, const Kind& kind, Tensor input) {
  const core::Shape shape = wiring.shape(input);
  const Calls calls(wiring, block);
  const Tensor packed = tokens_detail::tokens_of(wiring, calls("qkv", input));
  if (wiring.failed()) return input;
  const Tensor output = attend_packed(wiring, block, kind, packed);
  return calls("proj_drop", calls("proj", tokens_detail::images_of(wiring, output, tokens_detail::fixed(shape, 2),
                                                                   tokens_detail::fixed(shape, 3))));
}

inline Tensor wire_kind(Wiring& wiring, const Container& block, const Kind& kind, Tensor input) {
  if (wiring.called()) return wiring.chain(block.parts, input);
  const core::Shape shape = wiring.shape(input);
  const auto qkv = wiring.child(block, "qkv");
  const auto known = [&](std::string_view name) { return wiring.child(block, name).has_value(); };
  if (!qkv && !known("kv") && !known("q_proj") && !known("q") && !known("wq")) return wiring.chain(block.parts, input);
  if (qkv && wiring.first_op(*qkv) == "conv2d" && shape.rank() == 4) return attend_images(wiring, block, kind, input);
  if (shape.rank() != 3 && shape.rank() != 4) return wiring.chain(block.parts, input);
  const bool turn = shape.rank() == 4 && !wiring.channels_last(input);
  const core::Shape last = wiring.shape(turn ? tokens_detail::channels_behind(wiring, input) : input);
  const Tensor tokens = tokens_detail::tokens_of(wiring, input);
  Tensor output = projected(wiring, block, attend_tokens(wiring, block, kind, tokens));
  if (shape.rank() == 3 || wiring.failed()) return output;
  output = tokens_detail::reshaped(wiring, output, {tokens_detail::fixed(last, 1), tokens_detail::fixed(last, 2), -1});
  return turn ? tokens_detail::permuted(wiring, output, {0, 3, 1, 2}) : output;
}

template <const Kind& Of>
Tensor wire(Wiring& wiring, const Container& block, Tensor input) {
  return wire_kind(wiring, block, Of, input);
}

/// One query, of the class token, on all tokens (cait.ClassAttn, volo.ClassAttention).
inline Tensor wire_class(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || wiring.shape(input).rank() != 3) return wiring.chain(block.parts, input);
  const Tensor token = wiring.operation(
      "slice", {&input, 1}, {{"dim", std::int64_t{1}}, {"start", std::int64_t{0}}, {"length", std::int64_t{1}}});
  const Tensor query = calls("q", token);
  Tensor key = 0;
  Tensor value = 0;
  if (calls.has("kv")) {
    const Tensor packed = calls("kv", input);
    if (wiring.failed()) return input;
    const std::vector<Tensor> kv = tokens_detail::parts_of(wiring, packed, 2, 2);
    key = kv[0];
    value = kv[1];
  } else {
    key = calls("k", input);
    value = calls("v", input);
  }
  return projected(wiring, block, attend(wiring, block, kPlain, query, key, value));
}

/// xcit.XCA, davit.ChannelAttention: channels attend to each other, so that the scores are small; written out.
inline Tensor wire_channels(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("qkv") || wiring.shape(input).rank() != 3) return wiring.chain(block.parts, input);
  const Tensor packed = calls("qkv", input);
  if (wiring.failed()) return input;
  const std::vector<Tensor> qkv = tokens_detail::parts_of(wiring, packed, 3, 2);
  const std::int64_t heads = heads_in(tokens_detail::fixed(wiring.shape(input), 2), 32);
  std::array<Tensor, 3> turned{};
  for (std::size_t index = 0; index < turned.size(); ++index) {
    const Tensor parted = tokens_detail::heads_of(wiring, qkv[index], heads);
    turned[index] = tokens_detail::permuted(wiring, parted, {0, 1, 3, 2});
    if (index < 2) turned[index] = wiring.operation("lp_normalize", {&turned[index], 1}, {{"dim", std::int64_t{3}}});
  }
  const Tensor output = tokens_detail::attended(wiring, turned, false);
  const Tensor back = tokens_detail::permuted(wiring, output, {0, 1, 3, 2});
  return projected(wiring, block, tokens_detail::merged(wiring, back));
}

inline constexpr std::array<std::string_view, 8> kPlainClasses = {
    "Attention",      "EvaAttention",        "RelPosAttention",    "MaskUnitAttention",
    "CrossAttention", "GlobalSubSampleAttn", "LocallyGroupedAttn", "MultiScaleAttention"};
inline constexpr std::array<std::string_view, 2> kNarrowClasses = {"AttentionCl", "Attention2d"};
inline constexpr std::array<std::string_view, 1> kTalkingClasses = {"TalkingHeadAttn"};
inline constexpr std::array<std::string_view, 2> kClassClasses = {"ClassAttn", "ClassAttention"};
inline constexpr std::array<std::string_view, 2> kChannelClasses = {"XCA", "ChannelAttention"};

}  // namespace attention_block_detail

inline constexpr std::array<BlockRule, 5> kAttentionBlocks = {
    {{attention_block_detail::kPlainClasses, attention_block_detail::wire<attention_block_detail::kPlain>, nullptr},
     {attention_block_detail::kNarrowClasses, attention_block_detail::wire<attention_block_detail::kNarrow>, nullptr},
     {attention_block_detail::kTalkingClasses, attention_block_detail::wire<attention_block_detail::kTalking>, nullptr},
     {attention_block_detail::kClassClasses, attention_block_detail::wire_class, nullptr},
     {attention_block_detail::kChannelClasses, attention_block_detail::wire_channels, nullptr}}};

}  // namespace gpumem::connect
