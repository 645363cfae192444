// GPT-BigCode (SantaCoder, StarCoder): GPT-2's block with plain linear layers, and one head of keys and values for all.
// Source: transformers 4.48, models/gpt_bigcode/modeling_gpt_bigcode.py (GPTBigCodeSdpaAttention).
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace gpt_bigcode_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"gpt_bigcode"};

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 1;
  double embedding_dropout = 0.1;
  double dropout = 0.1;
  bool shared_keys = true;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_pytorch_tanh", .tied = true, .inner_factor = 4});
  model.sizes.attention_dropout = config.number({"attn_pdrop"}, 0.1);
  model.positions = config.size({"n_positions", "max_position_embeddings"});
  model.embedding_dropout = config.number({"embd_pdrop"}, 0.1);
  model.dropout = config.number({"resid_pdrop"}, 0.1);
  model.shared_keys = config.flag("multi_query", true);
  if (config.flag("add_cross_attention", false))
    config.fail("cross attention is not known here", "add_cross_attention");
  config.ignore({"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "scale_attn_weights", "summary_type",
                 "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
                 "inference_runner", "pre_allocate_kv_cache", "validate_runner_input", "num_key_value_heads",
                 "pad_key_length"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "attn", "GPTBigCodeSdpaAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t both = 2 * s.head_width;
  Heads heads;
  if (model.shared_keys) {
    const Tensor packed = f.linear("c_attn", input, s.width, s.width + both);
    const std::vector<Tensor> parts = f.split(packed, 2, {s.width, both});
    f.cache(parts[1], Caches::always);
    const std::vector<Tensor> pair = f.split(parts[1], 2, {s.head_width, s.head_width});
    // One head, seen as many: the kernel reads it through a stride of 0.
    const auto shared = [&](Tensor one) {
      const Tensor head = f.call("unsqueeze", {one}, {{"dim", std::int64_t{1}}});
      return f.call("expand", {head}, {{"shape", Sizes{-1, s.heads, -1, -1}}});
    };
    heads.query = split_heads(f, parts[0], s.head_width);
    heads.key = shared(pair[0]);
    heads.value = shared(pair[1]);
  } else {
    const Tensor packed = split_heads(f, f.linear("c_attn", input, s.width, 3 * s.width), 3 * s.head_width);
    const std::vector<Tensor> parts = f.split(packed, 3, {s.head_width, both});
    f.cache(parts[1], Caches::always);
    const std::vector<Tensor> pair = f.split(parts[1], 3, {s.head_width, s.head_width});
    heads = {parts[0], pair[0], pair[1]};
  }
  const Tensor attended = attend(f, heads, {.dropout = s.attention_dropout, .copies = false});
  return f.dropout("resid_dropout", f.linear("c_proj", attended, s.width, s.width), model.dropout);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "transformer", "GPTBigCodeModel");
    f.constant("bias", {model.positions, model.positions}, "bool");
    hidden = gpt2_body(f, s,
                       {.block_class = "GPTBigCodeBlock",
                        .feed_forward_class = "GPTBigCodeMLP",
                        .positions = model.positions,
                        .embedding_dropout = model.embedding_dropout,
                        .dropout = model.dropout},
                       [&](Tensor input) { return attention(f, model, input); });
  }
  // The logits are held while backward runs. What holds them is not found in the model's code; published runs of a
  // whole and of an adapted santacoder, with two forms of the loss, hold just these and, under autocast, their float32
  // copy.
  decoder_head(f, config, s, head, hidden, {.upcasts = false, .outlives_loss = true});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GPTBigCode", "gpt_bigcode", "transformer", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("wte", "h");
  t.size("n_positions", "wpe", "num_embeddings");
  t.size("n_inner", "h.0.mlp.c_fc", "out_features");
  t.dropout("attn_pdrop", "h.0.attn.attn_dropout");
  t.labels();
  const std::int64_t both = t.value("h.0.attn.c_attn", "out_features").value_or(0) - width;
  // All queries share a key and a value, which are a head wide each.
  const bool shared = both > 1 && both < 2 * width;
  t.set_flag("multi_query", shared);
  if (shared && width % (both / 2) == 0) t.set("num_attention_heads", width / (both / 2));
  if (!shared) t.heads_of_width({}, width);
}

}  // namespace gpt_bigcode_detail

[[nodiscard]] inline const Architecture& gpt_bigcode() {
  static constexpr Architecture kArchitecture = {.name = "gpt_bigcode",
                                                 .model_types = gpt_bigcode_detail::kModelTypes,
                                                 .write = gpt_bigcode_detail::write,
                                                 .classes = gpt_bigcode_detail::kClasses,
                                                 .read_tree = gpt_bigcode_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
