// timm's image transformers that keep one size of tokens: ViT, DeiT, BEiT, EVA, ConViT, CaiT, XCiT, MLP-Mixer; and
// their modules, of which other models of timm are made: attention, blocks, gated MLPs. Learned tokens, positions and
// scales are parameters of a model itself, which no line of a tree shows. Source: timm 1.0.9,
// timm.models.vision_transformer, deit, beit, eva, convit, cait, xcit, mlp_mixer, pit, volo, twins, pvt_v2,
// levit, timm.layers.mlp. And torchvision's ViT and PyTorch's encoder layer.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

// Attention: queries, keys and values from one projection (qkv) or several (q, kv; q, k, v), norms of queries and keys,
// the fused kernel or scores written out, and a projection.

namespace timm_attention_detail {

inline constexpr ImageAttention kPlain = {};
inline constexpr ImageAttention kNarrow = {.head_width = 32};
inline constexpr ImageAttention kTalking = {.fused = false, .head_width = 48, .talks = true};
inline constexpr ImageAttention kSmall = {.fused = false, .head_width = 16};

/// A packed projection [N, T, W]: three parts of one size, or smaller queries and keys where what the projection after
/// it reads (the values) is not a third (levit, efficientformer: scores written out).
inline Tensor attend_packed(Forward& f, const Module& block, const ImageAttention& kind, Tensor packed) {
  const std::int64_t width = f.size(packed, 2);
  const auto behind = block.find("proj");
  const auto reads = behind ? behind->width("in_features", "in_channels") : std::nullopt;
  const std::int64_t values = reads.value_or(width / 3);
  if (3 * values == width || values >= width || (width - values) % 2 != 0) {
    const std::vector<Tensor> qkv = parts_of(f, packed, 3, 2);
    return attend_in_heads(f, block, kind, {qkv[0], qkv[1], qkv[2]});
  }
  const std::int64_t keys = (width - values) / 2;
  const Tensor query = f.slice(packed, 2, 0, keys);
  const Tensor key = f.slice(packed, 2, keys, keys);
  return attend_in_heads(f, block, kSmall, {query, key, f.slice(packed, 2, 2 * keys, values)});
}

/// What keys and values are made of: the tokens, or those of a smaller image (pvt_v2, twins).
inline Tensor reduced(Forward& f, const Module& block, Tensor tokens) {
  const std::int64_t side = side_of(f.size(tokens, 1));
  if (!block.has("sr") || side == 0) return tokens;
  const Tensor small = block({"pool", "sr"}, images_of(f, tokens, side, side));
  return block({"norm", "act"}, tokens_of(f, small));
}

/// Queries, keys and values of tokens [N, T, C].
inline Tensor attend_tokens(Forward& f, const Module& block, const ImageAttention& kind, Tensor tokens) {
  if (block.has("qkv")) return attend_packed(f, block, kind, block("qkv", tokens));
  if (block.has("kv") && block.has("q")) {
    const Tensor query = block("q", tokens);
    const std::vector<Tensor> kv = parts_of(f, block("kv", reduced(f, block, tokens)), 2, 2);
    return attend_in_heads(f, block, kind, {query, kv[0], kv[1]});
  }
  constexpr std::array<std::array<std::string_view, 3>, 3> kNames = {
      {{"q_proj", "k_proj", "v_proj"}, {"q", "k", "v"}, {"wq", "wk", "wv"}}};
  for (const auto& [q, k, v] : kNames) {
    if (!block.has(q) && !block.has(k) && !block.has(v)) continue;
    const Tensor query = block(q, tokens);
    const Tensor key = block(k, tokens);
    return attend_in_heads(f, block, kind, {query, key, block(v, tokens)});
  }
  return block.in_order(tokens);
}

/// Images whose projection is a convolution (maxxvit.Attention2d): their pixels are the tokens.
inline Tensor attend_images(Forward& f, const Module& block, const ImageAttention& kind, Tensor images) {
  const std::int64_t height = f.size(images, 2);
  const std::int64_t width = f.size(images, 3);
  const Tensor output = attend_packed(f, block, kind, tokens_of(f, block("qkv", images)));
  return block({"proj", "proj_drop"}, images_of(f, output, height, width));
}

inline Tensor attention(Forward& f, const Module& block, const ImageAttention& kind, Tensor input) {
  const auto qkv = block.find("qkv");
  const std::size_t rank = f.rank(input);
  const bool known = qkv || block.has("kv") || block.has("q_proj") || block.has("q") || block.has("wq");
  if (!known || (rank != 3 && rank != 4)) return block.in_order(input);
  if (qkv && qkv->first_op() == "conv2d" && rank == 4) return attend_images(f, block, kind, input);
  const bool turn = rank == 4 && !f.channels_last(input);
  const Tensor last = turn ? channels_behind(f, input) : input;
  const std::int64_t height = f.size(last, 1);
  const std::int64_t width = f.size(last, 2);
  const Tensor output = projected(block, attend_tokens(f, block, kind, tokens_of(f, input)));
  if (rank == 3) return output;
  const Tensor images = reshaped(f, output, {height, width, -1});
  return turn ? f.permute(images, {0, 3, 1, 2}) : images;
}

/// Of Visformer scores are written out (use_fused_attn(experimental=True) says no by default).
template <const ImageAttention& Of>
Tensor call(Forward& f, const Module& block, Tensor input) {
  ImageAttention kind = Of;
  kind.fused = kind.fused && !block.stands_in("Visformer");
  return attention(f, block, kind, input);
}

/// One query, of the class token, on all tokens (cait.ClassAttn, xcit.ClassAttention).
inline Tensor call_class(Forward& f, const Module& block, Tensor input) {
  if (f.rank(input) != 3) return block.in_order(input);
  const Tensor query = block("q", f.slice(input, 1, 0, 1));
  std::vector<Tensor> kv;
  if (block.has("kv")) {
    kv = parts_of(f, block("kv", input), 2, 2);
  } else {
    kv = {block("k", input)};
    kv.push_back(block("v", input));
  }
  return projected(block, attend_in_heads(f, block, kPlain, {query, kv[0], kv[1]}));
}

/// AttentionPoolLatent: a learned query on all tokens, and an MLP of what it found; one token is left.
inline Tensor call_latent(Forward& f, const Module& block, Tensor input) {
  if (!block.has("q") || !block.has("kv") || f.rank(input) != 3) return block.in_order(input);
  const std::vector<core::Dim> every = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor latent = f.call("expand", {f.parameter("latent", {1, 1, f.size(input, 2)})}, {{"shape", every}});
  const Tensor query = block("q", latent);
  const std::vector<Tensor> kv = parts_of(f, block("kv", input), 2, 2);
  const Tensor found = block({"proj", "proj_drop"}, attend_in_heads(f, block, kPlain, {query, kv[0], kv[1]}));
  return f.select(f.add(found, block({"norm", "mlp"}, found)), 1, 0);
}

/// xcit.XCA, davit.ChannelAttention: channels attend to each other, so that the scores are small; written out.
inline Tensor call_channels(Forward& f, const Module& block, Tensor input) {
  if (!block.has("qkv") || f.rank(input) != 3) return block.in_order(input);
  const std::vector<Tensor> qkv = parts_of(f, block("qkv", input), 3, 2);
  const std::int64_t heads = heads_in(f.size(input, 2), 32);
  const auto turned = [&](Tensor part) { return f.permute(heads_of(f, part, heads), {0, 1, 3, 2}); };
  const auto normed = [&](Tensor part) { return f.call("lp_normalize", {part}, {{"dim", std::int64_t{3}}}); };
  const Tensor query = normed(turned(qkv[0]));
  const Tensor key = normed(turned(qkv[1]));
  const Tensor output = attended(f, {query, key, turned(qkv[2])}, false);
  return projected(block, merged(f, f.permute(output, {0, 1, 3, 2})));
}

inline constexpr std::array<std::string_view, 8> kPlainClasses = {
    "Attention",      "EvaAttention",        "RelPosAttention",    "MaskUnitAttention",
    "CrossAttention", "GlobalSubSampleAttn", "LocallyGroupedAttn", "MultiScaleAttention"};

}  // namespace timm_attention_detail

inline constexpr std::array<ModuleForward, 6> kTimmAttention = {
    {{timm_attention_detail::kPlainClasses, timm_attention_detail::call<timm_attention_detail::kPlain>},
     {names<"AttentionCl", "Attention2d">, timm_attention_detail::call<timm_attention_detail::kNarrow>},
     {names<"TalkingHeadAttn">, timm_attention_detail::call<timm_attention_detail::kTalking>},
     {names<"ClassAttn", "ClassAttention">, timm_attention_detail::call_class},
     {names<"AttentionPoolLatent">, timm_attention_detail::call_latent},
     {names<"XCA", "ChannelAttention">, timm_attention_detail::call_channels}}};

// Blocks that are sums of branches: x += drop_path(scale(mixer(norm(x)))), once a mixer. The order in which a tree
// declares norms and mixers tells which comes first: norm1 before attn, or after it (Swin V2's res-post-norm).

namespace timm_block_detail {

/// Mixers of tokens see tokens in the place of channels, and xcit.LPI sees tokens as images.
inline Tensor call_part(Forward& f, const Module& part, Tensor input) {
  const std::string_view name = part.name();
  if (f.rank(input) == 3 && (name == "mlp_tokens" || name == "linear_tokens")) {
    return f.permute(part.call(f.permute(input, {0, 2, 1})), {0, 2, 1});
  }
  const std::int64_t side = name == "local_mp" && f.rank(input) == 3 ? side_of(f.size(input, 1)) : 0;
  return side == 0 ? part.call(input) : tokens_of(f, part.call(images_of(f, input, side, side)));
}

inline bool scales_input(const Module& part) { return part.name().starts_with("res_scale"); }

/// pit.Transformer: its pooling sees images, its blocks tokens with a class token in front.
inline Tensor pit_stage(Forward& f, const Module& stage, Tensor input) {
  if (f.rank(input) != 4) return stage.in_order(input);
  const Tensor images = stage("pool.conv", input);
  const std::int64_t height = f.size(images, 2);
  const std::int64_t width = f.size(images, 3);
  const Tensor tokens = stage({"norm", "blocks"}, with_class_token(f, tokens_of(f, images)));
  return images_of(f, f.slice(tokens, 1, 1, f.size(tokens, 1) - 1), height, width);
}

/// Classes that scale each branch by a parameter of their own, which no line shows: gamma_1 * attn(norm1(x)).
inline bool scales_branches(const Module& block) {
  constexpr std::array<std::string_view, 2> kScaling = {"XCABlock", "LayerScaleBlock"};
  const bool scaling = std::find(kScaling.begin(), kScaling.end(), block.class_name()) != kScaling.end();
  return scaling || (block.class_name() == "Block" && block.stands_in("Beit"));
}

inline Tensor call(Forward& f, const Module& block, Tensor input) {
  if (block.has("blocks")) return pit_stage(f, block, input);
  const Branches all = branches_of(block);
  input = call_all(all.first, input);
  const bool scales = scales_branches(block);
  for (const std::vector<Module>& branch : all.branches) {
    Tensor output = input;
    for (const Module& part : branch) {
      if (!scales_input(part)) output = call_part(f, part, output);
    }
    if (scales) output = f.multiply(output, f.parameter("gamma", {f.channels(output)}));
    if (f.failed()) return input;
    if (!(f.shape(output) == f.shape(input))) {
      input = output;
      continue;
    }
    for (const Module& part : branch) {
      if (scales_input(part)) input = part.call(input);
    }
    input = f.add(input, output);
  }
  return call_all(all.last, input);
}

inline constexpr std::array<std::string_view, 19> kClasses = {"Transformer",
                                                              "Block",
                                                              "ResPostBlock",
                                                              "EvaBlock",
                                                              "EvaBlockPostNorm",
                                                              "RelPosBlock",
                                                              "ResPostRelPosBlock",
                                                              "LayerScaleBlock",
                                                              "PartitionAttentionCl",
                                                              "XCABlock",
                                                              "Outlooker",
                                                              "MetaFormerBlock",
                                                              "FocalNetBlock",
                                                              "HieraBlock",
                                                              "TransformerLayer",
                                                              "MixerBlock",
                                                              "LevitBlock",
                                                              "SpatialGatingBlock",
                                                              "LinearTransformerBlock"};

}  // namespace timm_block_detail

inline constexpr std::array<ModuleForward, 1> kTimmBlocks = {{{timm_block_detail::kClasses, timm_block_detail::call}}};

// MLPs in which one half of what is computed scales the other: GLU, SwiGLU, GeGLU, gMLP.

namespace timm_mlp_detail {

/// GluMlp: fc1, its two halves, one through the activation times the other.
inline Tensor call_halves(Forward& f, const Module& block, Tensor input) {
  if (!block.has("fc1") || !block.has("fc2")) return block.in_order(input);
  const Tensor hidden = block("fc1", input);
  const bool images = f.rank(hidden) == 4 && !f.channels_last(hidden);
  const std::vector<Tensor> halves = parts_of(f, hidden, 2, images ? 1 : std::max<std::size_t>(f.rank(hidden), 1) - 1);
  const Tensor gate = block("act", halves[1]);
  return block({"drop1", "norm", "fc2", "drop2"}, f.multiply(halves[0], gate));
}

/// Two layers that read the input, the first through the activation, and a third after their product.
inline Tensor call_pair(Forward& f, const Module& block, Tensor input) {
  const bool named = block.has("fc1_g");
  if (!named && !block.has("w0")) return block.in_order(input);
  if (!named) input = block("norm", input);
  const Tensor gate = block({named ? "fc1_g" : "w0", "act"}, input);
  const Tensor scaled = block("drop1", f.multiply(gate, block(named ? "fc1_x" : "w1", input)));
  return named ? block({"norm", "fc2", "drop2"}, scaled) : block("w2", scaled);
}

/// SpatialGatingUnit: one half, its tokens mixed, times the other.
inline Tensor call_spatial(Forward& f, const Module& block, Tensor input) {
  if (!block.has("proj") || f.rank(input) != 3) return block.in_order(input);
  const std::vector<Tensor> halves = parts_of(f, input, 2, 2);
  const Tensor mixed = block("proj", f.permute(block("norm", halves[1]), {0, 2, 1}));
  return f.multiply(halves[0], f.permute(mixed, {0, 2, 1}));
}

/// GatedMlp: the gate halves what fc1 leaves.
inline Tensor call_gated(Forward& /*f*/, const Module& block, Tensor input) {
  return block({"fc1", "act", "drop1", "gate", "norm", "fc2", "drop2"}, input);
}

}  // namespace timm_mlp_detail

inline constexpr std::array<ModuleForward, 4> kTimmMlps = {
    {{names<"SpatialGatingUnit">, timm_mlp_detail::call_spatial},
     {names<"GatedMlp">, timm_mlp_detail::call_gated},
     {names<"GluMlp", "ConvGluMlp">, timm_mlp_detail::call_halves},
     {names<"SwiGLU", "GeGluMlp">, timm_mlp_detail::call_pair}}};

// The models: patches become tokens, a learned token and positions join them, blocks, a norm, one token or the mean of
// all, the classifier.

namespace timm_vit_detail {

inline bool is_head(std::string_view name) {
  constexpr std::array<std::string_view, 6> kHeads = {"fc_norm",   "head_drop",  "head",
                                                      "head_dist", "pre_logits", "attn_pool"};
  return std::find(kHeads.begin(), kHeads.end(), name) != kHeads.end();
}

/// `learns`: a class token, and positions.
inline Tensor model(Forward& f, const Module& model, bool learns, Tensor input) {
  const bool pooled = model.has("attn_pool");  // which makes one token of all, and needs none that is learned
  bool headed = pooled;
  f.turns(model.has("rope"));
  bool begun = false;
  Tensor output = input;
  for (const Module& part : model.parts()) {
    const std::string_view name = part.name();
    if (is_head(name) && !headed && f.rank(output) == 3) {
      headed = true;
      const bool mean = !learns || part.class_name() == "LayerNorm";  // fc_norm comes after the mean
      output = mean ? mean_token(f, output) : f.select(output, 1, 0);
    }
    if (name == "head_dist") continue;  // a second classifier, of a second token
    output = part.call(output);
    if (begun || (name != "patch_embed" && name != "stem")) continue;
    begun = true;
    output = tokens_of(f, output);
    if (!learns || f.rank(output) != 3) continue;
    output = with_positions(f, pooled ? output : with_class_token(f, output));
  }
  f.turns(false);
  return output;
}

/// torchvision.models.VisionTransformer, whose class has the same name; its blocks are EncoderBlock.
inline Tensor call_torchvision(Forward& f, const Module& model, Tensor input) {
  Tensor tokens = with_class_token(f, tokens_of(f, model("conv_proj", input)));
  tokens = model({"encoder.dropout", "encoder.layers", "encoder.ln"}, with_positions(f, tokens));
  return model("heads", f.select(tokens, 1, 0));
}

template <bool Learns>
Tensor call(Forward& f, const Module& whole, Tensor input) {
  const bool torchvision = whole.has("conv_proj") && whole.has("encoder.layers");
  return torchvision ? call_torchvision(f, whole, input) : model(f, whole, Learns, input);
}

/// PatchEmbed: a convolution over patches; what reads it wants tokens, except the models whose stages see images.
inline Tensor call_patches(Forward& f, const Module& block, Tensor input) {
  const auto proj = block.find("proj");
  if (!proj || proj->is_container()) return block.in_order(input);
  return block("norm", tokens_of(f, block({"backbone", "conv", "proj"}, input)));
}

/// xcit.PositionalEncodingFourier: sines of the positions, made without the batch, through a convolution.
inline Tensor with_fourier_positions(Forward& f, const Module& encoding, Tensor tokens) {
  const auto reads = encoding.width("in_channels", "in_features");
  const std::int64_t side = side_of(f.size(tokens, 1));
  if (!reads || side == 0) return with_positions(f, tokens);
  const Tensor waves = f.constant("waves", {1, *reads, side, side}, "float32");
  return f.add(tokens, tokens_of(f, encoding.call(waves)));
}

/// Cait, Xcit: a class token joins after the blocks, and two blocks read it with all others.
inline Tensor call_cait(Forward& f, const Module& model, Tensor input) {
  Tensor output = tokens_of(f, model("patch_embed", input));
  if (f.rank(output) != 3) return model.in_order(input);
  const auto encoding = model.find("pos_embed");
  output = encoding ? with_fourier_positions(f, *encoding, output) : with_positions(f, output);
  output = with_class_token(f, model({"pos_drop", "blocks"}, output));
  output = model({"blocks_token_only", "cls_attn_blocks", "norm"}, output);
  return model({"head_drop", "head"}, f.select(output, 1, 0));
}

/// cait.LayerScaleBlockClassAttn, xcit.ClassAttentionBlock: what a class token learns of all tokens.
inline Tensor call_class_block(Forward& f, const Module& block, Tensor input) {
  if (f.rank(input) != 3) return block.in_order(input);
  const Tensor token = f.slice(input, 1, 0, 1);
  Tensor output = f.add(token, block({"norm1", "attn", "drop_path"}, input));
  output = f.add(output, block({"norm2", "mlp"}, output));
  return f.concatenate({output, f.slice(input, 1, 1, f.size(input, 1) - 1)}, 1);
}

}  // namespace timm_vit_detail

inline constexpr std::array<ModuleForward, 5> kTimmVit = {
    {{names<"VisionTransformer", "VisionTransformerDistilled", "Eva", "Beit", "VisionTransformerHybrid", "ConVit">,
      timm_vit_detail::call<true>},
     {names<"MlpMixer", "VisionTransformerRelPos">, timm_vit_detail::call<false>},
     {names<"PatchEmbed", "HybridEmbed">, timm_vit_detail::call_patches},
     {names<"Cait", "Xcit">, timm_vit_detail::call_cait},
     {names<"LayerScaleBlockClassAttn", "ClassAttentionBlock">, timm_vit_detail::call_class_block}}};

// torchvision's block: x = input + attention(ln_1(input)), x + mlp(ln_2(x)). PyTorch's own encoder layer:
// x = norm1(input + attention(input)), norm2(x + linear2(relu(linear1(x)))), or with each norm first where the order of
// a table's rows says so; a tree does not tell, and PyTorch's default is last. Source:
// torchvision.models.vision_transformer.EncoderBlock, torch.nn.TransformerEncoderLayer.

namespace encoder_detail {

inline Tensor call_block(Forward& f, const Module& block, Tensor input) {
  const std::vector<Module> parts = block.parts();  // ln_1, self_attention, dropout, ln_2, mlp
  if (parts.size() != 5) return block.in_order(input);
  if (f.rank(input) == 4) input = with_class_token(f, tokens_of(f, input));  // outside of a known model
  const Tensor attended = parts[2].call(parts[1].call(parts[0].call(input)));
  const Tensor sum = f.add(attended, input);
  return f.add(sum, parts[4].call(parts[3].call(sum)));
}

/// A tree shows the output projection before the attention whose output it reads.
inline Tensor call_attention(Forward&, const Module& block, Tensor input) {
  for (const bool attention : {true, false}) {
    for (const Module& part : block.parts()) {
      if ((part.op() == "multihead_attention") == attention) input = part.call(input);
    }
  }
  return input;
}

/// The parts of an encoder layer in the order of their calls, as its names or a table's rows tell.
inline std::vector<Module> calls_of(const Module& block) {
  constexpr std::array<std::string_view, 8> kOrder = {"self_attn", "dropout1", "norm1",    "linear1",
                                                      "dropout",   "linear2",  "dropout2", "norm2"};
  if (block.rows_are_calls()) return block.parts();
  std::vector<Module> parts;
  for (const std::string_view name : kOrder) {
    if (const auto part = block.find(name)) parts.push_back(*part);
  }
  return parts;
}

inline Tensor call_layer(Forward& f, const Module& block, Tensor input) {
  const std::vector<Module> parts = calls_of(block);
  if (parts.size() != 8) return block.in_order(input);
  const auto row = [&](std::size_t first, std::size_t count, Tensor tensor) {
    for (std::size_t at = first; at < first + count; ++at) tensor = parts[at].call(tensor);
    return tensor;
  };
  const auto feed_forward = [&](std::size_t first, Tensor tensor) {
    return row(first + 1, 3, f.call("relu", {row(first, 1, tensor)}));
  };
  if (parts[0].op() == "layer_norm") {  // norm, attention, dropout, norm, linear, dropout, linear, dropout
    const Tensor sum = f.add(input, row(0, 3, input));
    return f.add(sum, feed_forward(4, row(3, 1, sum)));
  }
  const Tensor sum = row(2, 1, f.add(input, row(0, 2, input)));
  return row(7, 1, f.add(sum, feed_forward(3, sum)));
}

inline constexpr std::array<std::string_view, 1> kAttention = {"MultiheadAttention"};
inline constexpr std::array<std::string_view, 1> kLayer = {"TransformerEncoderLayer"};
inline constexpr std::array<std::string_view, 1> kBlock = {"EncoderBlock"};

}  // namespace encoder_detail

inline constexpr std::array<ModuleForward, 3> kEncoderBlocks = {
    {{encoder_detail::kAttention, encoder_detail::call_attention},
     {encoder_detail::kLayer, encoder_detail::call_layer},
     {encoder_detail::kBlock, encoder_detail::call_block}}};

}  // namespace gpumem::architectures
