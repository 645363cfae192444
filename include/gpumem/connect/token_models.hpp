// Image transformers as a whole: patches become tokens, a learned token and positions join them, blocks, a norm, one
// token or the mean of all, the classifier. Tokens and positions are parameters of the model itself, which no line of a
// tree shows. Source: timm 1.0.9, timm.models.vision_transformer, deit, beit, eva, cait, xcit, mlp_mixer.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace token_models_detail {

/// What a class learns in addition to its layers.
struct Kind {
  bool token = true;
  bool positions = true;
};
inline constexpr Kind kBoth = {};
inline constexpr Kind kNeither = {.token = false, .positions = false};

inline bool is_head(std::string_view name) {
  constexpr std::array<std::string_view, 6> kHeads = {"fc_norm",   "head_drop",  "head",
                                                      "head_dist", "pre_logits", "attn_pool"};
  return std::find(kHeads.begin(), kHeads.end(), name) != kHeads.end();
}

inline Tensor wire_model(Wiring& wiring, const Container& model, const Kind& kind, Tensor input) {
  if (wiring.called()) return wiring.chain(model.parts, input);
  bool headed = false;
  bool begun = false;
  const bool pooled = wiring.child(model, "attn_pool").has_value();
  Tensor output = input;
  for (const Part& part : model.parts) {
    if (wiring.failed()) return input;
    const std::string_view name = wiring.name(part);
    if (is_head(name) && !headed && wiring.shape(output).rank() == 3) {
      headed = true;
      const bool mean = !kind.token || wiring.class_name(part) == "LayerNorm";  // fc_norm after the mean
      if (!pooled)
        output = mean ? tokens_detail::mean_token(wiring, output) : tokens_detail::first_token(wiring, output);
    }
    if (name == "head_dist") continue;  // a second classifier, of a second token
    output = wiring.call(part, output);
    const bool embeds = name == "patch_embed" || name == "stem";
    if (!embeds || begun || wiring.failed()) continue;
    begun = true;
    output = tokens_detail::tokens_of(wiring, output);
    if (wiring.shape(output).rank() != 3) continue;
    if (kind.token) output = tokens_detail::with_class_token(wiring, output);
    if (kind.positions) output = tokens_detail::with_positions(wiring, output);
  }
  return output;
}

template <const Kind& Of>
Tensor wire(Wiring& wiring, const Container& model, Tensor input) {
  return wire_model(wiring, model, Of, input);
}

/// A convolution over patches; what reads it wants tokens, except the models whose stages see images (where the tree
/// has no norm after the patches, their rule turns them).
inline Tensor wire_patches(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  const auto proj = wiring.child(block, "proj");
  if (wiring.called() || !proj || proj->container) return wiring.chain(block.parts, input);
  const Tensor images = calls("proj", calls("conv", calls("backbone", input)));
  return calls("norm", tokens_detail::tokens_of(wiring, images));
}

/// xcit.PositionalEncodingFourier: sines of the positions, made without the batch, through a convolution.
inline Tensor with_fourier_positions(Wiring& wiring, const Container& model, Tensor tokens) {
  const auto encoding = wiring.child(model, "pos_embed");
  const auto reads = encoding ? wiring.first_width(*encoding, "in_channels", "in_features") : std::nullopt;
  const std::int64_t side = tokens_detail::side_of(tokens_detail::fixed(wiring.shape(tokens), 1));
  if (!reads || side == 0) return tokens_detail::with_positions(wiring, tokens);
  const Tensor waves =
      wiring.operation(model::kConstantOp, {}, {{"shape", std::vector<std::int64_t>{1, *reads, side, side}}});
  const Tensor positions = tokens_detail::tokens_of(wiring, wiring.call(*encoding, waves));
  return wiring.failed() ? tokens : wiring.add(tokens, positions, false);
}

/// cait.Cait: a class token joins after the blocks, and two blocks read it with all others.
inline Tensor wire_cait(Wiring& wiring, const Container& model, Tensor input) {
  const Calls calls(wiring, model);
  if (wiring.called()) return wiring.chain(model.parts, input);
  Tensor output = tokens_detail::tokens_of(wiring, calls("patch_embed", input));
  if (wiring.failed() || wiring.shape(output).rank() != 3) return wiring.chain(model.parts, input);
  if (calls.has("pos_embed")) {  // xcit: a convolution over Fourier features
    output = with_fourier_positions(wiring, model, output);
  } else {
    output = tokens_detail::with_positions(wiring, output);
  }
  output = calls("blocks", calls("pos_drop", output));
  if (wiring.failed() || wiring.shape(output).rank() != 3) return output;
  output = tokens_detail::with_class_token(wiring, output);
  output = calls("cls_attn_blocks", calls("blocks_token_only", output));
  output = calls("norm", output);
  if (wiring.failed()) return output;
  return calls("head", calls("head_drop", tokens_detail::first_token(wiring, output)));
}

/// cait.LayerScaleBlockClassAttn, xcit.ClassAttentionBlock: what a class token learns of all tokens.
inline Tensor wire_class_block(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || wiring.shape(input).rank() != 3) return wiring.chain(block.parts, input);
  const Tensor token = wiring.operation(
      "slice", {&input, 1}, {{"dim", std::int64_t{1}}, {"start", std::int64_t{0}}, {"length", std::int64_t{1}}});
  const Tensor attended = calls("drop_path", calls("attn", calls("norm1", input)));
  if (wiring.failed()) return input;
  Tensor output = wiring.add(token, attended, false);
  output = wiring.add(output, calls("mlp", calls("norm2", output)), false);
  const std::int64_t tokens = tokens_detail::fixed(wiring.shape(input), 1);
  const Tensor others = wiring.operation(
      "slice", {&input, 1}, {{"dim", std::int64_t{1}}, {"start", std::int64_t{1}}, {"length", tokens - 1}});
  return wiring.concatenate(std::array<Tensor, 2>{output, others});
}

inline constexpr std::array<std::string_view, 6> kWithBoth = {
    "VisionTransformer", "VisionTransformerDistilled", "Eva", "Beit", "VisionTransformerHybrid", "ConVit"};
inline constexpr std::array<std::string_view, 1> kWithNeither = {"MlpMixer"};
inline constexpr std::array<std::string_view, 1> kRelative = {"VisionTransformerRelPos"};
inline constexpr std::array<std::string_view, 2> kPatches = {"PatchEmbed", "HybridEmbed"};
inline constexpr std::array<std::string_view, 2> kCait = {"Cait", "Xcit"};
inline constexpr std::array<std::string_view, 2> kClassBlocks = {"LayerScaleBlockClassAttn", "ClassAttentionBlock"};

}  // namespace token_models_detail

inline constexpr std::array<BlockRule, 6> kTokenModels = {
    {{token_models_detail::kWithBoth, token_models_detail::wire<token_models_detail::kBoth>, nullptr},
     {token_models_detail::kWithNeither, token_models_detail::wire<token_models_detail::kNeither>, nullptr},
     {token_models_detail::kRelative, token_models_detail::wire<token_models_detail::kNeither>, nullptr},
     {token_models_detail::kPatches, token_models_detail::wire_patches, nullptr},
     {token_models_detail::kCait, token_models_detail::wire_cait, nullptr},
     {token_models_detail::kClassBlocks, token_models_detail::wire_class_block, nullptr}}};

}  // namespace gpumem::connect
