// Wan 2.1 and 2.2, text to video and image to video: blocks of self-attention, attention to the prompt and a
// feed-forward layer. Norms, scales, shifts and gates are computed in float32.
// Source: diffusers 0.38, models/transformers/transformer_wan.py. A timestep a sample; where a trainer gives each token
// one (TI2V), scales and shifts are as long as the sequence. With `_code` simpletuner: SimpleTuner 2026-08,
// helpers/models/wan/transformer.py, which keeps diffusers' Attention class of 0.34: norms written out, positions as
// complex numbers of two float64, and scales in the model's type.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace wan_detail {

inline constexpr std::array<std::string_view, 1> kClasses = {"WanTransformer3DModel"};
inline constexpr std::array<std::string_view, 1> kBlocks = {"WanTransformerBlock"};
/// Tokens of CLIP's image encoder.
inline constexpr std::int64_t kImageTokens = 257;

struct Model {
  DitSizes sizes;
  std::int64_t layers = 40;
  std::int64_t inner = 13824;
  std::int64_t sinusoids = 256;
  std::int64_t image_width = 0;  ///< of the image encoder's features; 0: the model reads none
  std::int64_t added_width = 0;  ///< of what further keys and values are made of
  bool cross_norm = true;
  bool copied = false;  ///< SimpleTuner's copy of the class
  Sizes patch = {1, 2, 2};

  [[nodiscard]] std::int64_t patch_elements() const { return patch[0] * patch[1] * patch[2]; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 40, .text_field = "text_dim"});
  model.layers = config.layers_or("num_layers", 40);
  model.inner = dit_width(config, "ffn_dim", 13824);
  model.sinusoids = dit_width(config, "freq_dim", 256);
  model.image_width = config.count_or("image_dim", 0);
  model.added_width = config.count_or("added_kv_proj_dim", 0);
  model.copied = dit_code(config) == DitCode::simpletuner;
  model.cross_norm = config.flag("cross_attn_norm", true);
  model.patch = dit_list(config, "patch_size", {1, 2, 2});
  const bool small = model.patch[0] <= 16 && model.patch[1] <= 16 && model.patch[2] == model.patch[1];
  if (!small) config.fail("must be no larger than 16, and alike in height and width", "patch_size");
  if (model.sizes.head_width % 2 != 0) config.fail("must be even", "attention_head_dim");
  config.ignore({"qk_norm", "rope_max_seq_len", "eps"});
  return model;
}

/// Of queries or keys of all heads.
inline Tensor flat_norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  const std::int64_t width = model.sizes.width;
  return model.copied ? own_rms_norm(f, name, input, width) : torch_rms_norm(f, name, input, width);
}

inline Tensor turned(Forward& f, const Model& model, Tensor heads, const PairTables& tables) {
  return model.copied ? turn_complex(f, heads, tables, "float64")
                      : write_pairs(f, heads, tables, model.sizes.head_width);
}

/// Of the sequence itself, or of the prompt (`source`), which has no positions.
inline Tensor attention(Forward& f, const Model& model, std::string_view name, Tensor input, Tensor source,
                        const PairTables* tables, Tensor image) {
  const InModule inside(f, name, "WanAttention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const Tensor query_flat = f.linear("to_q", input, width, width);
  const Tensor key_flat = f.linear("to_k", source, width, width);
  const Tensor value = as_heads(f, f.linear("to_v", source, width, width), each);
  Tensor query = as_heads(f, flat_norm(f, model, "norm_q", query_flat), each);
  Tensor key = as_heads(f, flat_norm(f, model, "norm_k", key_flat), each);
  if (tables != nullptr) {
    query = turned(f, model, query, *tables);
    key = turned(f, model, key, *tables);
  }
  Tensor mixed = 0;
  const bool adds = tables == nullptr && model.added_width > 0;
  if (adds) {
    const Tensor keys = flat_norm(f, model, "norm_added_k", f.linear("add_k_proj", image, model.added_width, width));
    const Tensor values = as_heads(f, f.linear("add_v_proj", image, model.added_width, width), each);
    mixed = attend_heads(f, query, as_heads(f, keys, each), values);
  }
  const Tensor own = attend_heads(f, query, key, value);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", adds ? f.add(own, mixed) : own, width, width);
}

/// (norm(x.float()) (1 + scale) + shift), in the type of x.
inline Tensor scaled(Forward& f, const Model& model, std::string_view name, Tensor hidden, Tensor scale, Tensor shift) {
  const std::int64_t width = model.sizes.width;
  if (model.copied) return modulated(f, wide_norm(f, name, hidden, width, false), scale, shift);
  const Tensor wide = f.to(hidden, "float32");
  return f.as_type_of(modulated(f, bare_norm(f, name, wide, width), scale, shift), hidden);
}

/// (x.float() + branch gate), in the type of x.
inline Tensor joined(Forward& f, const Model& model, Tensor hidden, Tensor branch, Tensor gate) {
  if (model.copied) return f.add(hidden, f.multiply(branch, gate));
  const Tensor wide = f.to(hidden, "float32");
  return f.as_type_of(f.add(wide, f.multiply(branch, gate)), hidden);
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor prompt, Tensor image, Tensor conditions,
                    const PairTables& tables) {
  const std::int64_t width = model.sizes.width;
  const Tensor table = f.parameter("scale_shift_table", {1, 6, width});
  const Tensor given = model.copied ? conditions : f.to(conditions, "float32");
  const std::vector<Tensor> rows = chunks(f, f.add(table, given), 1, 6, 1);
  const Tensor normed = scaled(f, model, "norm1", hidden, rows[1], rows[0]);
  const Tensor mixed = attention(f, model, "attn1", normed, normed, &tables, image);
  const Tensor attended = joined(f, model, hidden, mixed, rows[2]);
  const Tensor asking = model.cross_norm ? wide_norm(f, "norm2", attended, width, true) : attended;
  const Tensor told = f.add(attended, attention(f, model, "attn2", asking, prompt, nullptr, image));
  const Tensor again = scaled(f, model, "norm3", told, rows[4], rows[3]);
  const Tensor fed = dit_feed_forward(f, "ffn", again, width, model.inner, DitActivation::gelu_tanh);
  return joined(f, model, told, model.copied ? fed : f.to(fed, "float32"), rows[5]);
}

struct Conditions {
  Tensor time = 0;
  Tensor rows = 0;  ///< [N, 6, width]
  Tensor prompt = 0;
  Tensor image = 0;
};

/// WanImageEmbedding.
inline Tensor image_features(Forward& f, const Model& model) {
  const std::int64_t from = model.image_width;
  const Tensor features = f.sample_input("encoder_hidden_states_image", {kImageTokens, from});
  const InModule inside(f, "image_embedder", "WanImageEmbedding");
  const Tensor normed = wide_norm(f, "norm1", features, from, true);
  Tensor made = 0;
  {
    const InModule layers(f, "ff", "FeedForward");
    const InModule net(f, "net", "ModuleList");
    const Tensor wide = f.linear("0.proj", normed, from, from);
    made = f.linear("2", f.call("gelu", {wide}), from, model.sizes.width);
  }
  return wide_norm(f, "norm2", made, model.sizes.width, true);
}

inline Conditions conditions_of(Forward& f, const Model& model, const DenoiserSample& sample) {
  const std::int64_t width = model.sizes.width;
  const Tensor timestep = timestep_input(f, "timestep", model.sinusoids);
  const Tensor text = text_input(f, sample, model.sizes.text_width);
  const InModule inside(f, "condition_embedder", "WanTimeTextImageEmbedding");
  Conditions made;
  made.time = timestep_embedding(f, "time_embedder", timestep, model.sinusoids, width);
  const Tensor rows = f.linear("time_proj", f.activation("act_fn", made.time, "silu"), width, 6 * width);
  made.rows = f.unflatten(rows, 1, {6, width});
  made.prompt = text_projection(f, "text_embedder", text, model.sizes.text_width, width, "gelu_pytorch_tanh");
  if (model.image_width > 0) made.image = image_features(f, model);
  return made;
}

/// A complex number of two float64 a pair.
inline PairTables complex_table(Forward& f, const Model& model, Tensor tokens) {
  const Tensor table =
      f.call("rotary_table", {tokens}, {{"width", model.sizes.head_width}, {"dtype", std::string("float64")}});
  const Tensor spread = f.permute(table, {0, 2, 1, 3});
  return {spread, spread};
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const bool deep = model.sizes.channels > 36;  // Wan 2.2's own autoencoder cuts sides by 16
  const DenoiserSample sample = denoiser_sample(f, {.side = deep ? 16 : 8,
                                                    .frame = 4,
                                                    .patch = model.patch[1],
                                                    .usual_side = 480,
                                                    .usual_frames = 81,
                                                    .usual_text = 512});
  const Tensor latents = latent_input(f, sample, model.sizes.channels, true);
  const Tensor cut = f.layer("patch_embedding", "Conv3d", "conv3d", {latents},
                             {{"in_channels", model.sizes.channels},
                              {"out_channels", width},
                              {"kernel_size", model.patch},
                              {"stride", model.patch}});
  Tensor hidden = f.contiguous(f.permute(f.flatten(cut, 2, 4), {0, 2, 1}));
  const PairTables tables =
      model.copied ? complex_table(f, model, hidden) : pair_tables(f, {hidden}, model.sizes.head_width);
  const Conditions conditions = conditions_of(f, model, sample);
  hidden = stack(f, "blocks", kBlocks[0], model.layers, hidden, [&](Tensor x, std::int64_t) {
    return block(f, model, x, conditions.prompt, conditions.image, conditions.rows, tables);
  });
  const Tensor table = f.parameter("scale_shift_table", {1, 2, width});
  const std::vector<Tensor> rows = chunks(f, f.add(table, unsqueezed(f, conditions.time, 1)), 1, 2, 1);
  const Tensor normed = scaled(f, model, "norm_out", hidden, rows[1], rows[0]);
  const std::int64_t out = model.sizes.out_channels * model.patch_elements();
  const Tensor output = f.linear("proj_out", normed, width, out);
  const std::int64_t tokens =
      sample.frames / model.patch[0] * (sample.height / model.patch[1]) * (sample.width / model.patch[2]);
  denoiser_loss(f, f.call("clone", {output}), {tokens, out});
}

}  // namespace wan_detail

[[nodiscard]] inline const Architecture& wan() {
  static constexpr Architecture kArchitecture = {.name = "wan",
                                                 .model_types = wan_detail::kClasses,
                                                 .usual_head = Head::none,
                                                 .write = wan_detail::write,
                                                 .blocks = wan_detail::kBlocks};
  return kArchitecture;
}

}  // namespace gpumem::architectures
