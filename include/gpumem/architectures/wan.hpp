// Wan 2.1 and 2.2, text to video and image to video: blocks of self-attention, attention to the prompt and a
// feed-forward layer. Norms, scales, shifts and gates are computed in float32.
// Source: diffusers 0.38, models/transformers/transformer_wan.py. A timestep a sample; where a trainer gives each token
// one (TI2V), scales and shifts are as long as the sequence.
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
  model.cross_norm = config.flag("cross_attn_norm", true);
  model.patch = dit_list(config, "patch_size", {1, 2, 2});
  const bool small = model.patch[0] <= 16 && model.patch[1] <= 16 && model.patch[2] == model.patch[1];
  if (!small) config.fail("must be no larger than 16, and alike in height and width", "patch_size");
  if (model.sizes.head_width % 2 != 0) config.fail("must be even", "attention_head_dim");
  config.ignore({"qk_norm", "rope_max_seq_len", "eps"});
  return model;
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
  Tensor query = as_heads(f, torch_rms_norm(f, "norm_q", query_flat, width), each);
  Tensor key = as_heads(f, torch_rms_norm(f, "norm_k", key_flat, width), each);
  if (tables != nullptr) {
    query = write_pairs(f, query, *tables, each);
    key = write_pairs(f, key, *tables, each);
  }
  Tensor mixed = 0;
  const bool adds = tables == nullptr && model.added_width > 0;
  if (adds) {
    const Tensor keys =
        torch_rms_norm(f, "norm_added_k", f.linear("add_k_proj", image, model.added_width, width), width);
    const Tensor values = as_heads(f, f.linear("add_v_proj", image, model.added_width, width), each);
    mixed = attend_heads(f, query, as_heads(f, keys, each), values);
  }
  const Tensor own = attend_heads(f, query, key, value);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", adds ? f.add(own, mixed) : own, width, width);
}

/// (norm(x.float()) (1 + scale) + shift), in the type of x.
inline Tensor scaled(Forward& f, std::string_view name, Tensor hidden, std::int64_t width, Tensor scale, Tensor shift) {
  const Tensor wide = f.to(hidden, "float32");
  return f.as_type_of(modulated(f, bare_norm(f, name, wide, width), scale, shift), hidden);
}

/// (x.float() + branch gate), in the type of x.
inline Tensor joined(Forward& f, Tensor hidden, Tensor branch, Tensor gate) {
  const Tensor wide = f.to(hidden, "float32");
  return f.as_type_of(f.add(wide, f.multiply(branch, gate)), hidden);
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor prompt, Tensor image, Tensor conditions,
                    const PairTables& tables) {
  const std::int64_t width = model.sizes.width;
  const Tensor table = f.parameter("scale_shift_table", {1, 6, width});
  const std::vector<Tensor> rows = chunks(f, f.add(table, f.to(conditions, "float32")), 1, 6, 1);
  const Tensor normed = scaled(f, "norm1", hidden, width, rows[1], rows[0]);
  const Tensor mixed = attention(f, model, "attn1", normed, normed, &tables, image);
  const Tensor attended = joined(f, hidden, mixed, rows[2]);
  const Tensor asking = model.cross_norm ? wide_norm(f, "norm2", attended, width, true) : attended;
  const Tensor told = f.add(attended, attention(f, model, "attn2", asking, prompt, nullptr, image));
  const Tensor again = scaled(f, "norm3", told, width, rows[4], rows[3]);
  const Tensor fed = dit_feed_forward(f, "ffn", again, width, model.inner, DitActivation::gelu_tanh);
  return joined(f, told, f.to(fed, "float32"), rows[5]);
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
  const PairTables tables = pair_tables(f, {hidden}, model.sizes.head_width);
  const Conditions conditions = conditions_of(f, model, sample);
  hidden = stack(f, "blocks", kBlocks[0], model.layers, hidden, [&](Tensor x, std::int64_t) {
    return block(f, model, x, conditions.prompt, conditions.image, conditions.rows, tables);
  });
  const Tensor table = f.parameter("scale_shift_table", {1, 2, width});
  const std::vector<Tensor> rows = chunks(f, f.add(table, unsqueezed(f, conditions.time, 1)), 1, 2, 1);
  const Tensor normed = scaled(f, "norm_out", hidden, width, rows[1], rows[0]);
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
