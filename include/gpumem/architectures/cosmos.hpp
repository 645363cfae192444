// Cosmos (Predict 1 and 2): self-attention, attention to the prompt and a feed-forward layer; scales, shifts and gates
// come from low-rank layers in each block.
// Source: diffusers 0.38, models/transformers/transformer_cosmos.py, without images as conditions.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace cosmos_detail {

inline constexpr std::array<std::string_view, 1> kClasses = {"CosmosTransformer3DModel"};
inline constexpr std::array<std::string_view, 1> kBlocks = {"CosmosTransformerBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t layers = 28;
  std::int64_t inner = 16384;
  std::int64_t low = 256;  ///< rank of the layers of scales, shifts and gates
  Sizes most = {128, 240, 240};
  Sizes patch = {1, 2, 2};
  bool padding = true;              ///< one more channel says which pixels are padding
  bool places = true;               ///< learned positions
  std::int64_t projected_from = 0;  ///< the width of the prompt before a layer of its own; 0: there is none

  [[nodiscard]] std::int64_t patch_elements() const { return patch[0] * patch[1] * patch[2]; }
};

struct Grid {
  std::int64_t frames = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 32, .text_width = 1024, .text_field = "text_embed_dim"});
  model.layers = config.layers_or("num_layers", 28);
  model.inner = dit_inner(config, "mlp_ratio", model.sizes.width, 4.0);
  model.low = dit_width(config, "adaln_lora_dim", 256);
  model.most = dit_list(config, "max_size", {128, 240, 240});
  model.patch = dit_list(config, "patch_size", {1, 2, 2});
  model.padding = config.flag("concat_padding_mask", true);
  model.places = !config.is_null("extra_pos_embed_type");
  if (config.text({"extra_pos_embed_type"}, "learnable") != "learnable") {
    config.fail("is not known", "extra_pos_embed_type");
  }
  if (config.flag("use_crossattn_projection", false)) {
    model.projected_from = dit_width(config, "crossattn_proj_in_channels", 1024);
  }
  const bool small = model.patch[0] <= 16 && model.patch[1] <= 16 && model.patch[2] == model.patch[1];
  if (!small) config.fail("must be no larger than 16, and alike in height and width", "patch_size");
  if (model.sizes.head_width % 2 != 0) config.fail("must be even", "attention_head_dim");
  if (config.has("img_context_dim_in")) config.fail("is not known", "img_context_dim_in");
  config.ignore({"rope_scale", "crossattn_proj_in_channels", "encoder_hidden_states_channels", "img_context_dim_in",
                 "controlnet_block_every_n", "img_context_num_tokens", "img_context_dim_out"});
  return model;
}

/// CosmosAdaLayerNormZero: silu, two layers, and the timestep's own scales and shifts added.
inline std::vector<Tensor> rows_of(Forward& f, const Model& model, Tensor time, Tensor shared, std::int64_t count) {
  const std::int64_t width = model.sizes.width;
  const Tensor open = f.activation("activation", time, "silu");
  const Tensor low = f.linear("linear_1", open, width, model.low, {.bias = false});
  const Tensor made = f.linear("linear_2", low, model.low, count * width, {.bias = false});
  const Tensor more = count == 3 ? shared : f.slice(shared, 1, 0, count * width);
  return row_chunks(f, f.add(made, more), count, width);
}

inline Tensor attention(Forward& f, const Model& model, std::string_view name, Tensor input, Tensor source,
                        std::int64_t source_width, const PairTables* tables) {
  const InModule inside(f, name, "Attention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const auto heads = [&](std::string_view layer, Tensor from, std::int64_t in) {
    return as_heads(f, f.linear(layer, from, in, width, {.bias = false}), each);
  };
  const Tensor first = heads("to_q", input, width);
  const Tensor second = heads("to_k", source, source_width);
  const Tensor value = heads("to_v", source, source_width);
  Tensor query = own_rms_norm(f, "norm_q", first, each);
  Tensor key = own_rms_norm(f, "norm_k", second, each);
  if (tables != nullptr) {
    query = turn_pairs(f, query, *tables, true);
    key = turn_pairs(f, key, *tables, true);
  }
  // repeat_interleave copies, also where heads are repeated once.
  const Tensor keys = f.call("clone", {key});
  const Tensor mixed = attend_heads(f, query, keys, f.call("clone", {value}));
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, width, width, {.bias = false});
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor prompt, Tensor time, Tensor shared,
                    const PairTables& tables, std::optional<Tensor> places) {
  const std::int64_t width = model.sizes.width;
  if (places) hidden = f.add(hidden, *places);
  const auto branch = [&](std::string_view norm, const auto& compute) {
    std::vector<Tensor> rows;
    Tensor normed = 0;
    {
      const InModule inside(f, norm, "CosmosAdaLayerNormZero");
      rows = rows_of(f, model, time, shared, 3);
      normed = modulated(f, bare_norm(f, "norm", hidden, width), rows[1], rows[0]);
    }
    hidden = gated_sum(f, hidden, rows[2], compute(normed));
  };
  branch("norm1", [&](Tensor x) { return attention(f, model, "attn1", x, x, width, &tables); });
  branch("norm2", [&](Tensor x) { return attention(f, model, "attn2", x, prompt, model.sizes.text_width, nullptr); });
  branch("norm3",
         [&](Tensor x) { return dit_feed_forward(f, "ff", x, width, model.inner, DitActivation::gelu, false); });
  return hidden;
}

/// CosmosLearnablePositionalEmbed: the sum of three tables, of length one.
inline Tensor places_of(Forward& f, const Model& model, const Grid& grid) {
  const InModule inside(f, "learnable_pos_embed", "CosmosLearnablePositionalEmbed");
  const std::int64_t width = model.sizes.width;
  const Sizes lengths = {grid.frames, grid.height, grid.width};
  const std::array<std::string_view, 3> names = {"pos_emb_t", "pos_emb_h", "pos_emb_w"};
  std::array<Tensor, 3> spread{};
  for (std::size_t at = 0; at < spread.size(); ++at) {
    const std::int64_t held = std::max<std::int64_t>(model.most[at] / model.patch[at], 1);
    if (lengths[at] > held) f.fail("has positions for smaller videos; give a smaller `image` or fewer `frames`");
    if (f.failed()) return 0;
    Sizes shape = {1, 1, 1, 1, width};
    shape[at + 1] = lengths[at];
    const Tensor part = f.slice(f.parameter(names[at], {held, width}), 0, 0, lengths[at]);
    const std::vector<core::Dim> each = {core::Dim::batch(), core::Dim::fixed(lengths[0]), core::Dim::fixed(lengths[1]),
                                         core::Dim::fixed(lengths[2]), core::Dim::fixed(width)};
    spread[at] = f.call(
        "clone", {f.call("expand", {f.unflatten(part, 0, Sizes(shape.begin(), shape.end() - 1))}, {{"shape", each}})});
  }
  const Tensor sum = f.flatten(f.add(f.add(spread[0], spread[1]), spread[2]), 1, 3);
  const Tensor length = f.call("vector_norm", {sum}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  return f.as_type_of(f.call("div", {sum, f.call("add", {length})}), sum);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 8, .frame = 8, .patch = model.patch[1], .usual_side = 704, .usual_frames = 121, .usual_text = 512});
  const Grid grid = {std::max<std::int64_t>(sample.frames / model.patch[0], 1), sample.height / model.patch[1],
                     sample.width / model.patch[2]};
  const std::int64_t tokens = grid.frames * grid.height * grid.width;
  const std::int64_t area = model.patch_elements() * (model.sizes.channels + (model.padding ? 1 : 0));
  const Tensor latents = f.call("clone", {token_latents(f, tokens, area)});
  std::optional<Tensor> places;
  if (model.places) places = places_of(f, model, grid);
  if (f.failed()) return;
  Tensor hidden = f.linear("patch_embed.proj", latents, area, width, {.bias = false});
  const PairTables tables = pair_tables(f, {hidden}, model.sizes.head_width);
  const Tensor sinusoids = timestep_input(f, "timestep", width);
  Tensor time = 0;
  Tensor shared = 0;
  {
    const InModule inside(f, "time_embed", "CosmosEmbedding");
    const Tensor open = f.activation("t_embedder.activation",
                                     f.linear("t_embedder.linear_1", sinusoids, width, width, {.bias = false}), "silu");
    shared = f.linear("t_embedder.linear_2", open, width, 3 * width, {.bias = false});
    time = own_rms_norm(f, "norm", sinusoids, width);
  }
  Tensor prompt = text_input(f, sample, model.projected_from == 0 ? model.sizes.text_width : model.projected_from);
  if (model.projected_from > 0) {
    prompt = f.call("gelu", {f.linear("crossattn_proj.0", prompt, model.projected_from, model.sizes.text_width)});
  }
  hidden = stack(f, "transformer_blocks", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, prompt, time, shared, tables, places); });
  Tensor normed = 0;
  {
    const InModule inside(f, "norm_out", "CosmosAdaLayerNorm");
    const std::vector<Tensor> rows = rows_of(f, model, time, shared, 2);
    normed = modulated(f, bare_norm(f, "norm", hidden, width), rows[1], rows[0]);
  }
  const std::int64_t out = model.patch_elements() * model.sizes.out_channels;
  const Tensor output = f.linear("proj_out", normed, width, out, {.bias = false});
  denoiser_loss(f, f.call("clone", {output}), {tokens, out});
}

}  // namespace cosmos_detail

[[nodiscard]] inline const Architecture& cosmos() {
  static constexpr Architecture kArchitecture = {.name = "cosmos",
                                                 .model_types = cosmos_detail::kClasses,
                                                 .usual_head = Head::none,
                                                 .write = cosmos_detail::write,
                                                 .blocks = cosmos_detail::kBlocks};
  return kArchitecture;
}

}  // namespace gpumem::architectures
