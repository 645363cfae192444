// Input: a wired graph, the linear layers that get adapters, and a job with one of PEFT's methods other than LoRA's
// own. Output: PeftModel, which puts the method's layers into a copy of the graph: adapters of linear layers, norms
// that are trained, rows of the embedding, prompts in front of tokens, keys and values.
//
// Source: huggingface/peft 0.20.1.dev0 (5d602fd): peft_model.py (get_prompt, PeftModelForCausalLM.forward),
// tuners/prompt_tuning, p_tuning, prefix_tuning (model.py), tuners/ln_tuning and trainable_tokens (layer.py);
// transformers 4.56, cache_utils.py (DynamicLayer.update, which concatenates).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/adapt/adapters.hpp"
#include "gpumem/adapt/lora_targets.hpp"
#include "gpumem/adapt/peft_layer.hpp"
#include "gpumem/adapt/peft_methods.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::adapt {

/// What a method takes where the job names no layers: "k_proj+v_proj+down_proj"; empty: as LoRA. Source: PEFT,
/// utils/constants.py.
[[nodiscard]] std::string peft_targets(PeftTargets targets, const std::vector<BaseLinear>& linears);

class PeftModel {
 public:
  /// Notes what the method trains of the base in `storage`. All but `settings` must outlive it.
  PeftModel(const connect::WiredGraph& wired, const std::vector<BaseLinear>& linears, const std::vector<bool>& adapted,
            std::vector<model::WeightStorage>& storage, const model::TrainingJob& job, PeftSettings settings);

  /// Errors: missing_information where the model does not show what the method needs.
  [[nodiscard]] core::Status check() const;

  /// Puts what stands for this layer, the next one; false: it is copied as it is.
  [[nodiscard]] bool take(connect::GraphCopy& copy, std::uint32_t layer);
  /// Before the layer is copied: what others read in place of what it reads.
  void before(connect::GraphCopy& copy, std::uint32_t layer);
  /// After it has been copied.
  void behind(connect::GraphCopy& copy, std::uint32_t layer);

  /// Tokens that the method puts in front of each sample; shapes have to be inferred again.
  [[nodiscard]] std::int64_t more_tokens() const { return more_tokens_; }
  [[nodiscard]] bool changes_shapes() const { return settings_.row().targets == PeftTargets::prompts; }

 private:
  [[nodiscard]] const BaseLinear* adapted_at(std::uint32_t layer) const;
  [[nodiscard]] bool is_trained_norm(const model::Layer& layer) const;
  void find_embedding();
  void find_cache();
  void find_attention();
  [[nodiscard]] std::int64_t heads_behind(std::uint32_t layer, std::int64_t width) const;
  [[nodiscard]] core::Status check_attention() const;
  [[nodiscard]] core::Status check_widths() const;
  bool widen_mask(connect::GraphCopy& copy, std::uint32_t layer);
  bool replace_table(connect::GraphCopy& copy, std::uint32_t layer);
  void put_prompt(connect::GraphCopy& copy);
  void put_prefixes(connect::GraphCopy& copy);
  /// Of a prompt encoder; `looked_up`: rows a sample, 0: all.
  struct Table {
    std::string_view name;
    std::int64_t rows = 0;
    std::int64_t width = 0;
    std::int64_t looked_up = 0;
    bool frozen = false;
  };
  model::LayerIndex ids(connect::GraphCopy& copy, std::int64_t rows);
  model::LayerIndex lookup(connect::GraphCopy& copy, const Table& table);
  model::LayerIndex of_task(connect::GraphCopy& copy, model::LayerIndex prompts);
  model::LayerIndex with_delta(connect::GraphCopy& copy, model::LayerIndex prompts);
  model::LayerIndex cartridge(connect::GraphCopy& copy, std::int64_t rows, std::int64_t width);
  model::LayerIndex projected(connect::GraphCopy& copy, std::int64_t rows, std::int64_t width);
  model::LayerIndex encoder(connect::GraphCopy& copy, model::LayerIndex prompts, std::int64_t width);
  model::LayerIndex dense(connect::GraphCopy& copy, std::string name, model::LayerIndex input, std::int64_t in,
                          std::int64_t out);

  const connect::WiredGraph& wired_;
  const std::vector<BaseLinear>& linears_;
  std::vector<model::WeightStorage>& storage_;
  const model::TrainingJob& job_;
  PeftSettings settings_;
  PeftShared shared_;
  std::vector<int> adapted_at_;  ///< by layer: its place among the linear layers; -1: it gets no adapter
  BaseEmbedding embedding_;      ///< of the tokens; rows 0: the model shows none
  bool has_embedding_ = false;
  std::vector<std::uint32_t> cached_;        ///< layers that put keys or values into the cache
  std::vector<model::LayerIndex> prefixes_;  ///< of the copy: one each
  std::int64_t kept_width_ = 0;              ///< of the keys of one layer
  bool alike_ = true;                        ///< of all cached layers it is the same; blocks have the same layers
  std::int64_t blocks_ = 0;                  ///< whose attention has an adaption prompt
  std::int64_t more_tokens_ = 0;
  model::LayerIndex table_ = 0;
  model::LayerIndex rows_ = 0;
};

// What makes prompts and prefixes.

/// So many ids for each sample.
inline model::LayerIndex PeftModel::ids(connect::GraphCopy& copy, std::int64_t rows) {
  const model::LayerIndex read = copy.now(wired_.inputs(embedding_.layer)[0]);
  return copy.insert(
      {.name = "prompt_tokens", .op = "adapter_rows", .inputs = {read}, .output = {}, .attributes = {{"rows", rows}}});
}

/// prompt_encoder.embedding(prompt_tokens), one row a virtual token, for each sample.
inline model::LayerIndex PeftModel::lookup(connect::GraphCopy& copy, const Table& table) {
  return copy.insert({.name = "prompt_encoder." + std::string(table.name),
                      .op = "embedding",
                      .inputs = {ids(copy, table.looked_up == 0 ? table.rows : table.looked_up)},
                      .output = {},
                      .attributes = {{"num_embeddings", table.rows}, {"embedding_dim", table.width}},
                      .weights = {.dtype = model::dtype_of(job_.lora_dtype)},
                      .frozen = table.frozen});
}

/// MultitaskPromptEmbedding: each sample's prompts times a product of two matrices of its task.
inline model::LayerIndex PeftModel::of_task(connect::GraphCopy& copy, model::LayerIndex prompts) {
  const std::int64_t tasks = std::max<std::int64_t>(settings_.whole("num_tasks"), 1);
  const std::int64_t ranks = std::max<std::int64_t>(settings_.whole("num_ranks"), 1);
  const auto matrix = [&](std::string_view name, std::int64_t rows, std::int64_t columns) {
    const model::LayerIndex flat =
        lookup(copy, {.name = name, .rows = tasks, .width = core::bounded_product({rows, columns}), .looked_up = 1});
    const model::LayerIndex parted =
        copy.insert({.name = "task.view",
                     .op = "unflatten",
                     .inputs = {flat},
                     .output = {},
                     .attributes = {{"dim", std::int64_t{2}}, {"sizes", PeftLayer::Sizes{rows, columns}}}});
    return copy.insert({.name = "task.view",
                        .op = "flatten",
                        .inputs = {parted},
                        .output = {},
                        .attributes = {{"start_dim", std::int64_t{1}}, {"end_dim", std::int64_t{2}}}});
  };
  const model::LayerIndex columns = matrix("prefix_task_cols", more_tokens_, ranks);
  const model::LayerIndex rows = matrix("prefix_task_rows", ranks, embedding_.width);
  const model::LayerIndex product =
      copy.insert({.name = "task.prompts", .op = "matmul", .inputs = {columns, rows}, .output = {}});
  return copy.insert({.name = "prompt_encoder.mul", .op = "mul", .inputs = {prompts, product}, .output = {}});
}

/// CPTEmbedding: embeddings of the user's examples, which are frozen, and what is learned on top of them.
inline model::LayerIndex PeftModel::with_delta(connect::GraphCopy& copy, model::LayerIndex prompts) {
  copy.remark("the loss of CPT weighs each token by itself; it is taken as the model's usual one");
  const model::LayerIndex delta =
      lookup(copy, {.name = "delta_embedding", .rows = more_tokens_, .width = embedding_.width});
  return copy.insert({.name = "prompt_encoder.add", .op = "add", .inputs = {prompts, delta}, .output = {}});
}

inline model::LayerIndex PeftModel::dense(connect::GraphCopy& copy, std::string name, model::LayerIndex input,
                                          std::int64_t in, std::int64_t out) {
  return copy.insert({.name = std::move(name),
                      .op = "linear",
                      .inputs = {input},
                      .output = {},
                      .attributes = {{"in_features", in}, {"out_features", out}, {"bias", true}},
                      .weights = {.dtype = model::dtype_of(job_.lora_dtype)}});
}

/// PromptEncoder: what the prompts go through in p-tuning.
inline model::LayerIndex PeftModel::encoder(connect::GraphCopy& copy, model::LayerIndex prompts, std::int64_t width) {
  const std::int64_t asked = settings_.whole("encoder_hidden_size");
  const std::int64_t inner = asked > 0 ? asked : width;
  const auto relu = [&](model::LayerIndex input) {
    return copy.insert({.name = "prompt_encoder.relu", .op = "relu", .inputs = {input}, .output = {}});
  };
  if (settings_.text("encoder_reparameterization_type") == "LSTM") {
    const std::int64_t both = core::bounded_product({2, inner});
    const model::LayerIndex states = copy.insert(
        {.name = "prompt_encoder.lstm_head",
         .op = "lstm",
         .inputs = {prompts},
         .output = {},
         .attributes = {{"input_size", width},
                        {"hidden_size", inner},
                        {"num_layers", std::clamp<std::int64_t>(settings_.whole("encoder_num_layers"), 1, 64)},
                        {"bidirectional", true},
                        {"batch_first", true}},
         .weights = {.dtype = model::dtype_of(job_.lora_dtype)}});
    const model::LayerIndex mixed = relu(dense(copy, "prompt_encoder.mlp_head.0", states, both, both));
    return dense(copy, "prompt_encoder.mlp_head.2", mixed, both, width);
  }
  const model::LayerIndex first = relu(dense(copy, "prompt_encoder.mlp_head.0", prompts, width, inner));
  const model::LayerIndex second = relu(dense(copy, "prompt_encoder.mlp_head.2", first, inner, inner));
  return dense(copy, "prompt_encoder.mlp_head.4", second, inner, width);
}

/// A cartridge's rows, the first of which are frozen. PEFT expands them over the batch; here they are looked up.
inline model::LayerIndex PeftModel::cartridge(connect::GraphCopy& copy, std::int64_t rows, std::int64_t width) {
  const std::int64_t frozen = settings_.whole("num_frozen_tokens");
  const auto table = [&](std::string name, std::int64_t count, bool freezes) {
    return copy.insert({.name = std::move(name),
                        .op = model::kParameterOp,
                        .inputs = {},
                        .output = PeftLayer::fixed({count, width}),
                        .attributes = {{"shape", PeftLayer::Sizes{count, width}}},
                        .weights = {.dtype = model::dtype_of(job_.lora_dtype)},
                        .frozen = freezes});
  };
  model::LayerIndex all = table("prompt_encoder.trainable_embedding", rows - frozen, false);
  if (frozen > 0) {
    all = copy.insert({.name = "prompt_encoder.weight",
                       .op = "concat",
                       .inputs = {table("prompt_encoder.frozen_embedding", frozen, true), all},
                       .output = {},
                       .attributes = {{"dim", std::int64_t{0}}}});
  }
  return copy.insert(
      {.name = "prompt_encoder.expand", .op = "adapter_lookup", .inputs = {all, ids(copy, rows)}, .output = {}});
}

/// PrefixEncoder: rows as wide as one layer's keys go through two layers to those of all layers.
inline model::LayerIndex PeftModel::projected(connect::GraphCopy& copy, std::int64_t rows, std::int64_t width) {
  const std::int64_t asked = settings_.whole("encoder_hidden_size");
  const std::int64_t inner = asked > 0 ? asked : kept_width_;
  const model::LayerIndex narrow = lookup(copy, {.name = "embedding", .rows = rows, .width = kept_width_});
  const model::LayerIndex first = dense(copy, "prompt_encoder.transform.0", narrow, kept_width_, inner);
  const model::LayerIndex active =
      copy.insert({.name = "prompt_encoder.tanh", .op = "tanh", .inputs = {first}, .output = {}});
  return dense(copy, "prompt_encoder.transform.2", active, inner, width);
}

}  // namespace gpumem::adapt
