// Input: a wired graph, the linear layers that get adapters, and a job with one of PEFT's methods other than LoRA's
// own. Output: PeftModel, which puts the method's layers into a copy of the graph: adapters of linear layers, norms
// that are trained, rows of the embedding, prompts in front of tokens, keys and values.
//
// Source: huggingface/peft 0.20.1.dev0 (5d602fd): peft_model.py (get_prompt, PeftModelForCausalLM.forward),
// tuners/prompt_tuning, p_tuning, prefix_tuning (model.py), tuners/ln_tuning and trainable_tokens (layer.py);
// transformers 4.56, cache_utils.py (DynamicLayer.update, which concatenates).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpumem/adapt/adapters.hpp"
#include "gpumem/adapt/lora_targets.hpp"
#include "gpumem/adapt/peft_layer.hpp"
#include "gpumem/adapt/peft_methods.hpp"
#include "gpumem/connect/graph_copy.hpp"
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
  model::LayerIndex lookup(connect::GraphCopy& copy, std::int64_t rows, std::int64_t width);
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

}  // namespace gpumem::adapt
