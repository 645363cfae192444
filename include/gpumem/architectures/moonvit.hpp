// Kimi-VL, Kimi K2.5 and Kimi K3: MoonViT, a tower for images of any size whose patches of a batch are one sequence,
// four patches side by side, two linear layers, and DeepSeek-V3 as the text model, or Kimi Linear. Source: the models'
// own code on HuggingFace, modeling_kimi_vl.py (MoonVitPretrainedModel, KimiVLMultiModalProjector),
// modeling_kimi_k25.py, modeling_kimi_k3.py (PatchMergerMLPV2); image_processing_kimi_vl.py: at most 4,096 patches an
// image of Kimi-VL, 16,384 of Kimi K2.5. A video's frames are pooled in fours in Kimi K2.5 and K3.
#pragma once

#include <array>
#include <cmath>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace moonvit {

inline constexpr std::int64_t kMerge = 2;
inline constexpr std::int64_t kPooledFrames = 4;

struct Model {
  bool large = false;            ///< Kimi K2.5 and K3
  bool rms_norms = false;        ///< K3: the projector's norm is behind it, and nothing has a bias
  DecoderSizes sizes;            ///< of the tower
  std::int64_t inner_heads = 1;  ///< the width of all heads
  std::int64_t patch = 14;
  std::int64_t rows = 64;  ///< of learned positions
  std::int64_t columns = 64;
  std::int64_t width = 1;  ///< of the text model
};

inline Model read(ConfigFields& config) {
  Model m;
  const std::string_view type = config.text({"model_type"}, "kimi_vl");
  m.large = type != "kimi_vl";
  m.rms_norms = type == "kimi_k3";
  ConfigFields* tower = vision_fields(config);
  if (tower == nullptr) return m;
  m.sizes.width = tower->size_or({"vt_hidden_size", "hidden_size"}, 1152);
  m.sizes.inner = tower->size_or({"vt_intermediate_size", "intermediate_size"}, 4304);
  m.sizes.layers = tower->has("vt_num_hidden_layers") ? tower->layers({"vt_num_hidden_layers"})
                   : tower->has("num_hidden_layers")  ? tower->layers({"num_hidden_layers"})
                                                      : 27;
  m.sizes.heads = tower->size_or({"vt_num_attention_heads", "num_attention_heads"}, 16);
  m.sizes.activation = "gelu_pytorch_tanh";
  m.inner_heads = tower->size_or({"qkv_hidden_size"}, m.sizes.width);
  m.patch = tower->size_or({"patch_size"}, 14);
  m.rows = tower->size_or({"init_pos_emb_height"}, 64);
  m.columns = tower->size_or({"init_pos_emb_width"}, 64);
  tower->ignore({"init_pos_emb_time", "merge_kernel_size", "merge_type", "mm_hidden_size", "mm_projector_type",
                 "pos_emb_type", "projector_hidden_act", "projector_ln_eps", "text_hidden_size", "video_attn_type",
                 "activation_func", "attn_bias", "linear_bias", "mlp_type", "norm_type", "patch_embed_proj_bias",
                 "pos_emb_interpolation_mode"});
  config.ignore({"use_unified_vision_chunk", "video_placeholder", "image_placeholder", "ignore_index",
                 "media_placeholder_token_id"});
  if (m.inner_heads % (2 * m.sizes.heads) != 0) tower->fail("does not divide the tower's width", "num_attention_heads");
  if (const core::JsonValue* merged = tower->find("merge_kernel_size"); merged != nullptr) {
    bool known = merged->is(core::JsonValue::Kind::list);
    if (known) {
      for (const core::JsonValue& side : merged->items()) known = known && side.is(2);
    }
    if (!known) tower->fail("must be [2, 2]", "merge_kernel_size");
  }
  if (m.patch > 64) tower->fail("is more than gpumem takes", "patch_size");
  return m;
}

/// Patches of one image: scaled down to the limit, then to a whole number of merged patches.
inline std::int64_t patches_of(const Model& m, const PictureSize& size) {
  const double limit = m.large ? 16384.0 : 4096.0;
  const auto step = static_cast<double>(m.patch);
  const double patches = static_cast<double>(size.width) / step * (static_cast<double>(size.height) / step);
  const double scale = patches > limit ? std::sqrt(limit / patches) : 1.0;
  const auto side = [&](std::int64_t length) {
    const double merged = std::ceil(std::floor(static_cast<double>(length) * scale) / (step * kMerge));
    return std::max<std::int64_t>(static_cast<std::int64_t>(merged), 1) * kMerge;
  };
  return side(size.width) * side(size.height);
}

inline Tensor norm(Forward& f, const Model& m, std::string_view name, Tensor input, std::int64_t width) {
  return m.rms_norms ? f.rms_norm(name, input, width, "RMSNorm") : f.layer_norm(name, input, width);
}

inline Tensor block(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const DecoderSizes& s = m.sizes;
  const std::int64_t all_heads = m.inner_heads;
  const std::int64_t each = all_heads / s.heads;
  const Linear linear = {.bias = !m.rms_norms};
  const Tensor all = f.linear("wqkv", norm(f, m, "norm0", input, s.width), s.width, 3 * all_heads, linear);
  const std::vector<Tensor> parts = f.split(all, 2, {all_heads, all_heads, all_heads});
  const auto turned = [&](Tensor part) {
    const Tensor heads = split_heads(f, part, each);
    return f.as_type_of(f.multiply(f.to(heads, "float32"), rotary.cosines), heads);  // a product of complex numbers
  };
  const Tensor query = turned(parts[0]);
  const Tensor key = turned(parts[1]);
  const Tensor mixed = attend(f, {query, key, split_heads(f, parts[2], each)}, {.copies = false, .causal = false});
  const Tensor attended = f.add(input, f.linear("wo", mixed, all_heads, s.width, linear));
  const Tensor again = norm(f, m, "norm1", attended, s.width);
  return f.add(
      attended,
      feed_forward(
          f, s, again,
          {.class_name = "MLP2", .widen = "fc0", .narrow = "fc1", .activation = "activation", .bias = !m.rms_norms}));
}

inline Tensor tower(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  const InModule inside(f, "vision_tower", "MoonVitPretrainedModel");
  const std::int64_t width = m.sizes.width;
  Tensor hidden = 0;
  {
    const InModule embeddings(f, "patch_embed", "MoonVisionPatchEmbed");
    constexpr std::int64_t kColours = 3;
    const Tensor rows = f.rows_input("pixel_values", images * patches, {kColours, m.patch, m.patch});
    const Tensor cut = f.layer("proj", "Conv2d", "conv2d", {rows},
                               {{"in_channels", kColours},
                                {"out_channels", width},
                                {"kernel_size", Sizes(2, m.patch)},
                                {"stride", Sizes(2, m.patch)},
                                {"bias", !m.rms_norms}});
    hidden = f.unflatten(f.flatten(cut, 1, 3), 0, {-1, patches});
    // Interpolated to each image's rows and columns.
    const Tensor places =
        f.unflatten(f.permute(f.parameter("pos_emb.weight", {m.rows, m.columns, width}), {2, 0, 1}), 0, {1, width});
    const Tensor resized = f.call("upsample", {places}, {{"size", Sizes{patches / kMerge, kMerge}}});
    hidden = f.add(hidden, f.permute(f.flatten(resized, 2, 3), {0, 2, 1}));
  }
  const std::int64_t each = m.inner_heads / m.sizes.heads;
  const Tensor table =
      f.call("rotary_table", {hidden}, {{"width", each}, {"padded", true}, {"dtype", std::string("float32")}});
  const Rotary rotary = {table, table, each, false};
  const InModule encoder(f, "encoder", "MoonVitEncoder");
  hidden = stack(f, "blocks", "MoonVitEncoderLayer", m.sizes.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, m, x, rotary); });
  return norm(f, m, "final_layernorm", hidden, width);
}

inline Tensor features_of(Forward& f, const Model& m, const Pictures& pictures, std::int64_t patches) {
  Tensor hidden = tower(f, m, pictures.seen(), patches);
  const std::int64_t width = m.sizes.width;
  const std::int64_t wide = width * kMerge * kMerge;
  if (m.large && pictures.frames >= kPooledFrames && pictures.frames % kPooledFrames == 0) {
    hidden = f.call("mean", {f.unflatten(hidden, 0, {-1, kPooledFrames})}, {{"dim", std::int64_t{1}}});
  }
  const InModule inside(f, m.large ? "mm_projector" : "multi_modal_projector", "PatchMergerMLP");
  const Tensor normed = m.rms_norms ? hidden : f.layer_norm("pre_norm", hidden, width);
  const Tensor merged = f.unflatten(f.flatten(f.call("clone", {normed}), 1, 2), 1, {-1, wide});
  const Linear linear = {.bias = !m.rms_norms};
  const Tensor open =
      f.activation("act", f.linear(m.large ? "proj.0" : "linear_1", merged, wide, wide, linear), "gelu");
  const Tensor made = f.linear(m.large ? "proj.2" : "linear_2", open, wide, m.width, linear);
  return f.call("clone", {m.rms_norms ? f.rms_norm("post_norm", made, m.width, "RMSNorm") : made});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, "deepseek_v3");
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  const std::int64_t patches = patches_of(model, pictures.size);
  const bool pools = model.large && pictures.frames >= kPooledFrames && pictures.frames % kPooledFrames == 0;
  const std::int64_t tokens = pictures.seen() * patches / (kMerge * kMerge);
  tell_pictures(f, pictures, pools ? tokens / kPooledFrames : tokens);
  TextPart part = whole_text(model.rms_norms ? "KimiLinearForCausalLM" : "DeepseekV3ForCausalLM");
  part.embed = [&](Tensor, Tensor embedded) {
    return with_features(f, pictures, embedded, [&](Forward& to) { return features_of(to, model, pictures, patches); });
  };
  write_text(f, *text, head, part);
}

inline constexpr Architecture kArchitecture = {.name = "moonvit",
                                               .model_types = names<"kimi_vl", "kimi_k25", "kimi_k3">,
                                               .write = write,
                                               .holds_text_model = true};

}  // namespace moonvit

}  // namespace gpumem::architectures
