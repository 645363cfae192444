// OPT: learned positions, biased projections, plain feed-forward layers; OPT-350M with norms after and narrower
// embeddings. Source: transformers 4.50, models/opt/modeling_opt.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace opt_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"opt"};

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 1;
  std::int64_t embedding_width = 1;
  double dropout = 0.1;
  bool norms_before = true;
  bool final_norm = true;
  bool bias = true;
  bool affine = true;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "relu", .tied = true});
  model.positions = config.size({"max_position_embeddings"});
  model.embedding_width = config.size_or({"word_embed_proj_dim"}, model.sizes.width);
  model.dropout = config.number({"dropout"}, 0.1);
  model.norms_before = config.flag("do_layer_norm_before", true);
  model.final_norm = model.norms_before && !config.flag("_remove_final_layer_norm", false);
  model.bias = config.flag("enable_bias", true);
  model.affine = config.flag("layer_norm_elementwise_affine", true);
  if (config.number({"layerdrop"}, 0.0) > 0.0)
    config.fail("layers that are left out at random are not known", "layerdrop");
  config.ignore({"prefix"});
  return model;
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return f.layer(name, "LayerNorm", "layer_norm", {input},
                 {{"normalized_shape", model.sizes.width}, {"elementwise_affine", model.affine}});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "self_attn", "OPTAttention");
  const DecoderSizes& s = model.sizes;
  const auto projected = [&](std::string_view name) {
    return f.linear(name, input, s.width, s.width, {.bias = model.bias});
  };
  const Tensor query = split_heads(f, f.scale(projected("q_proj")), s.head_width);
  const Tensor key = split_heads(f, projected("k_proj"), s.head_width);
  const Tensor value = split_heads(f, projected("v_proj"), s.head_width);
  f.cache(key);
  f.cache(value);
  const Tensor attended = attend(f, {query, key, value}, {.dropout = s.attention_dropout});
  return f.linear("out_proj", attended, s.width, s.width, {.bias = model.bias});
}

inline Tensor block(Forward& f, const Model& model, Tensor input) {
  const DecoderSizes& s = model.sizes;
  const auto before = [&](std::string_view name, Tensor x) { return model.norms_before ? norm(f, model, name, x) : x; };
  const auto behind = [&](std::string_view name, Tensor x) { return model.norms_before ? x : norm(f, model, name, x); };
  const Tensor mixed = attention(f, model, before("self_attn_layer_norm", input));
  const Tensor sum = f.add(input, f.dropout("dropout", mixed, model.dropout));
  const Tensor attended = behind("self_attn_layer_norm", sum);
  const Tensor normed = before("final_layer_norm", attended);
  const Tensor wide = f.linear("fc1", normed, s.width, s.inner, {.bias = model.bias});
  const Tensor active = f.activation("activation_fn", wide, s.activation);
  const Tensor narrow = f.linear("fc2", active, s.inner, s.width, {.bias = model.bias});
  return behind("final_layer_norm", f.add(attended, f.dropout("dropout", narrow, model.dropout)));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  const bool projects = model.embedding_width != s.width;
  Tensor hidden = 0;
  {
    const InModule outer(f, "model", "OPTModel");
    const InModule inside(f, "decoder", "OPTDecoder");
    const Tensor ids = f.token_input("input_ids");
    const Tensor mask = f.token_input("attention_mask");
    hidden = f.embedding("embed_tokens", ids, s.vocabulary, model.embedding_width);
    // Positions are counted from the mask, so each sample has its own; two rows come before the first.
    const Tensor places =
        f.embedding("embed_positions", mask, model.positions + 2, s.width, "OPTLearnedPositionalEmbedding");
    if (projects) hidden = f.linear("project_in", hidden, model.embedding_width, s.width, {.bias = false});
    hidden = f.add(hidden, places);
    hidden = stack(f, "layers", "OPTDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x); });
    if (model.final_norm) hidden = norm(f, model, "final_layer_norm", hidden);
    if (projects) hidden = f.linear("project_out", hidden, s.width, model.embedding_width, {.bias = false});
  }
  DecoderSizes of_head = s;
  of_head.width = model.embedding_width;
  decoder_head(f, config, of_head, head, hidden);
}

}  // namespace opt_detail

[[nodiscard]] inline const Architecture& opt() {
  static constexpr Architecture kArchitecture = {
      .name = "opt", .model_types = opt_detail::kModelTypes, .write = opt_detail::write};
  return kArchitecture;
}

}  // namespace gpumem::architectures
