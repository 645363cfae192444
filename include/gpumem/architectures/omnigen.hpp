// OmniGen: a language model's decoder over the prompt's tokens, one of the timestep and the image's, with a mask that
// is as large as the square of the sequence. Source: diffusers 0.38, models/transformers/transformer_omnigen.py,
// without images as conditions.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace omnigen {

inline constexpr std::array<std::string_view, 1> kBlocks = {"OmniGenBlock"};

struct Model {
  std::int64_t width = 3072;
  std::int64_t heads = 32;
  std::int64_t key_heads = 32;
  std::int64_t layers = 32;
  std::int64_t inner = 8192;
  std::int64_t channels = 4;
  std::int64_t patch = 2;
  std::int64_t vocabulary = 32064;
  std::int64_t side = 192;
  std::int64_t sinusoids = 256;

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.width = dit_width(config, "hidden_size", 3072);
  model.heads = dit_width(config, "num_attention_heads", 32);
  model.key_heads = dit_width(config, "num_key_value_heads", 32);
  model.layers = config.layers_or("num_layers", 32);
  model.inner = dit_width(config, "intermediate_size", 8192);
  model.channels = dit_width(config, "in_channels", 4);
  model.patch = dit_patch(config);
  model.vocabulary = config.size_or({"vocab_size"}, 32064);
  model.side = config.size_or({"pos_embed_max_size"}, 192);
  model.sinusoids = dit_width(config, "time_step_dim", 256);
  if (model.width % (2 * model.heads) != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  if (model.key_heads != model.heads) config.fail("must be num_attention_heads", "num_key_value_heads");
  if (model.side > 4096) config.fail("is larger than gpumem takes", "pos_embed_max_size");
  config.ignore({"rms_norm_eps", "pad_token_id", "max_position_embeddings", "original_max_position_embeddings",
                 "rope_base", "rope_scaling", "flip_sin_to_cos", "downscale_freq_shift", "timestep_activation_fn"});
  return model;
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, const PairTables& tables, Tensor mask) {
  const std::int64_t each = model.head_width();
  const Tensor normed = own_rms_norm(f, "input_layernorm", hidden, model.width);
  Tensor mixed = 0;
  {
    const InModule inside(f, "self_attn", "Attention");
    const auto heads = [&](std::string_view name) {
      return as_heads(f, f.linear(name, normed, model.width, model.width, {.bias = false}), each);
    };
    Tensor query = heads("to_q");
    Tensor key = heads("to_k");
    const Tensor value = heads("to_v");
    query = turn_pairs(f, query, tables, true);
    key = turn_pairs(f, key, tables, true);
    mixed = attend_heads(f, query, key, value, mask);
    const InModule out(f, "to_out", "ModuleList");
    mixed = f.linear("0", mixed, model.width, model.width, {.bias = false});
  }
  const Tensor attended = f.add(hidden, mixed);
  const Tensor again = own_rms_norm(f, "post_attention_layernorm", attended, model.width);
  const InModule inside(f, "mlp", "OmniGenFeedForward");
  const Tensor wide = f.linear("gate_up_proj", again, model.width, 2 * model.inner, {.bias = false});
  const std::vector<Tensor> parts = chunks(f, wide, 2, 2, model.inner);
  const Tensor open = f.multiply(parts[1], f.activation("activation_fn", parts[0], "silu"));
  return f.add(attended, f.linear("down_proj", open, model.inner, model.width, {.bias = false}));
}

inline Tensor image_tokens(Forward& f, const Model& model, const DenoiserSample& sample, std::int64_t tokens) {
  const Tensor latents = latent_input(f, sample, model.channels);
  const InModule inside(f, "patch_embedding", "OmniGenPatchEmbed");
  const Tensor cut = f.layer("output_image_proj", "Conv2d", "conv2d", {latents},
                             {{"in_channels", model.channels},
                              {"out_channels", model.width},
                              {"kernel_size", Sizes(2, model.patch)},
                              {"stride", Sizes(2, model.patch)}});
  f.parameter("input_image_proj.weight", {model.width, model.channels, model.patch, model.patch});
  f.parameter("input_image_proj.bias", {model.width});
  const Tensor table = f.constant("pos_embed", {1, model.side * model.side, model.width}, "parameters");
  const Tensor places = f.call("clone", {f.slice(table, 1, 0, tokens)});
  return f.add(f.permute(f.flatten(cut, 2, 3), {0, 2, 1}), places);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_text = 256});
  const std::int64_t tokens = sample.height * sample.width / (model.patch * model.patch);
  if (tokens > model.side * model.side) f.fail("has positions for smaller images; give a smaller `image`");
  if (f.failed()) return;
  const Tensor image = image_tokens(f, model, sample, tokens);
  const Tensor sinusoids = timestep_input(f, "timestep", model.sinusoids);
  const Tensor token = timestep_embedding(f, "time_token", sinusoids, model.sinusoids, model.width);
  const Tensor time = timestep_embedding(f, "t_embedder", sinusoids, model.sinusoids, model.width);
  const Tensor ids = f.sample_input("input_ids", {sample.text});
  const Tensor text = f.embedding("embed_tokens", ids, model.vocabulary, model.width);
  Tensor hidden = f.concatenate({text, unsqueezed(f, token, 1), image}, 1);
  const Tensor mask = f.call("causal_mask", {hidden}, {{"padded", true}});
  const PairTables tables = pair_tables(f, {hidden}, model.head_width());
  hidden = stack(f, "layers", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, tables, mask); });
  hidden = own_rms_norm(f, "norm", hidden, model.width);
  hidden = f.slice(hidden, 1, sample.text + 1, Forward::kRest);
  Tensor normed = 0;
  {
    const InModule inside(f, "norm_out", "AdaLayerNorm");
    const std::vector<Tensor> rows = modulation(f, "linear", time, model.width, model.width, 2);
    normed = modulated(f, bare_norm(f, "norm", hidden, model.width), rows[1], rows[0]);
  }
  const std::int64_t out = model.patch * model.patch * model.channels;
  denoiser_loss(f, f.call("clone", {f.linear("proj_out", normed, model.width, out)}), {tokens, out});
}

inline constexpr Architecture kArchitecture = {.name = "omnigen",
                                               .model_types = names<"OmniGenTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace omnigen

}  // namespace gpumem::architectures
