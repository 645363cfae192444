// Input: the arguments of Megatron's launcher.
// Output: the arguments of the run, its layout and its kernels, which do not change the model, marked as read; and what
// the word embedding's layer says about the optimizer.
// Source: Megatron-LM core r0.12, megatron/training/arguments.py.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::architectures {

inline constexpr auto kMegatronRun =
    std::to_array<std::string_view>({"micro_batch_size",
                                     "global_batch_size",
                                     "seq_length",
                                     "encoder_seq_length",
                                     "decoder_seq_length",
                                     "max_position_embeddings",
                                     "transformer_impl",
                                     "use_mcore_models",
                                     "bf16",
                                     "fp16",
                                     "optimizer",
                                     "tensor_model_parallel_size",
                                     "pipeline_model_parallel_size",
                                     "context_parallel_size",
                                     "expert_model_parallel_size",
                                     "expert_tensor_parallel_size",
                                     "sequence_parallel",
                                     "num_layers_per_virtual_pipeline_stage",
                                     "num_virtual_stages_per_pipeline_rank",
                                     "use_distributed_optimizer",
                                     "overlap_grad_reduce",
                                     "overlap_param_gather",
                                     "overlap_param_gather_with_optimizer_step",
                                     "num_distributed_optimizer_instances",
                                     "accumulate_allreduce_grads_in_fp32",
                                     "grad_reduce_in_bf16",
                                     "ddp_average_in_collective",
                                     "gradient_accumulation_fusion",
                                     "deterministic_mode",
                                     "attention_softmax_in_fp32",
                                     "attention_backend",
                                     "use_flash_attn",
                                     "apply_query_key_layer_scaling",
                                     "apply_rope_fusion",
                                     "bias_gelu_fusion",
                                     "bias_dropout_fusion",
                                     "bias_swiglu_fusion",
                                     "masked_softmax_fusion",
                                     "cross_entropy_loss_fusion",
                                     "cross_entropy_fusion_impl",
                                     "calculate_per_token_loss",
                                     "recompute_granularity",
                                     "recompute_method",
                                     "recompute_num_layers",
                                     "recompute_modules",
                                     "fine_grained_activation_offloading",
                                     "make_vocab_size_divisible_by",
                                     "norm_epsilon",
                                     "rotary_base",
                                     "rotary_interleaved",
                                     "rotary_scaling_factor",
                                     "mscale",
                                     "mscale_all_dim",
                                     "te_rng_tracker",
                                     "mock_data",
                                     "cp_comm_type",
                                     "microbatch_group_size_per_virtual_pipeline_stage",
                                     "overlap_p2p_communication_warmup_flush",
                                     "pipeline_model_parallel_layout",
                                     "decoder_first_pipeline_num_layers",
                                     "decoder_last_pipeline_num_layers",
                                     "account_for_embedding_in_pipeline_split",
                                     "account_for_loss_in_pipeline_split",
                                     "defer_embedding_wgrad_compute",
                                     "wgrad_deferral_limit",
                                     "create_attention_mask_in_dataloader",
                                     "cuda_graph_impl",
                                     "enable_cuda_graph",
                                     "external_cuda_graph",
                                     "moe_grouped_gemm",
                                     "moe_permute_fusion",
                                     "moe_router_dtype",
                                     "moe_router_bias_update_rate",
                                     "moe_router_fusion",
                                     "moe_router_group_topk",
                                     "moe_router_num_groups",
                                     "moe_router_pre_softmax",
                                     "moe_router_topk_scaling_factor",
                                     "overlap_moe_expert_parallel_comm",
                                     "persist_layer_norm",
                                     "vocab_size",
                                     "position_embedding_type",
                                     "use_rotary_position_embeddings",
                                     "use_megatron_fsdp",
                                     "group_query_attention"});

inline void ignore_megatron_run(ConfigFields& config) {
  for (const std::string_view name : kMegatronRun) config.ignore({name});
}

/// What CUDA graphs leave open; older names of two kinds are enable_cuda_graph and external_cuda_graph. Source:
/// Megatron-LM of August 2026, core/transformer/transformer_config.py.
inline std::optional<model::Doubt> cuda_graphs(ConfigFields& config) {
  std::string kind(config.text({"cuda_graph_impl"}, "none"));
  if (config.flag("enable_cuda_graph", false)) kind = "local";
  if (config.flag("external_cuda_graph", false)) kind = "transformer_engine";
  return model::doubt_of_cuda_graphs(kind);
}

/// How many distributed optimizers there are.
inline model::RunSettings run_settings(ConfigFields& config) {
  return {.optimizer_instances = config.size_or({"num_distributed_optimizer_instances"}, 1)};
}

namespace megatron {

/// An expression of lists: "([0]*3+[1]*12)", "([1]+[0]*2)*4", one figure a layer. Megatron evaluates it as Python's.
class LayerPattern {
 public:
  LayerPattern(std::string_view text, std::int64_t layers) : text_(text), most_(static_cast<std::size_t>(layers) + 1) {}

  /// Nothing if it is written otherwise.
  [[nodiscard]] std::vector<bool> read() {
    std::vector<bool> pattern = sum(0);
    skip();
    return wrong_ || at_ < text_.size() ? std::vector<bool>() : pattern;
  }

 private:
  static constexpr int kDeepest = 16;

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool takes(char wanted) {
    skip();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  std::int64_t number() {
    skip();
    std::int64_t value = 0;
    const std::size_t first = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (value < ConfigFields::kMostLayers) value = value * 10 + (text_[at_] - '0');
    }
    wrong_ = wrong_ || at_ == first;
    return value;
  }
  /// More layers than there can be are not written out.
  void append(std::vector<bool>& pattern, const std::vector<bool>& part) const {
    if (pattern.size() < most_) pattern.insert(pattern.end(), part.begin(), part.end());
  }
  std::vector<bool> sum(int depth) {
    std::vector<bool> pattern = repeated(depth);
    while (!wrong_ && takes('+')) append(pattern, repeated(depth));
    return pattern;
  }
  std::vector<bool> repeated(int depth) {
    std::vector<bool> part = takes('(') ? grouped(depth) : list();
    if (!takes('*')) return part;
    std::vector<bool> pattern;
    const std::int64_t times = number();
    for (std::int64_t time = 0; time < times && pattern.size() < most_ && !part.empty(); ++time) append(pattern, part);
    return pattern;
  }
  std::vector<bool> grouped(int depth) {
    wrong_ = wrong_ || depth == kDeepest;
    std::vector<bool> part = wrong_ ? std::vector<bool>() : sum(depth + 1);
    wrong_ = wrong_ || !takes(')');
    return part;
  }
  std::vector<bool> list() {
    std::vector<bool> part;
    wrong_ = wrong_ || !takes('[');
    while (!wrong_ && !takes(']')) {
      const std::int64_t figure = number();
      wrong_ = wrong_ || figure > 1;
      part.push_back(figure == 1);
      if (takes(']')) break;
      wrong_ = wrong_ || !takes(',');
    }
    return part;
  }

  std::string_view text_;
  std::size_t most_;
  std::size_t at_ = 0;
  bool wrong_ = false;
};

/// Which layers have experts: moe_layer_freq is a pattern, or says that every N-th layer has them, from the first.
inline std::vector<bool> mixing_layers(ConfigFields& config, std::int64_t layers) {
  std::vector<bool> mixes(static_cast<std::size_t>(layers), true);
  const core::JsonValue* frequency = config.find("moe_layer_freq");
  if (frequency != nullptr && frequency->is(core::JsonValue::Kind::text)) {
    std::vector<bool> pattern = LayerPattern(frequency->text(), layers).read();
    if (static_cast<std::int64_t>(pattern.size()) == layers) return pattern;
    config.fail("must give 0 or 1 for each layer, as ([0]*3+[1]*12)", "moe_layer_freq");
    return mixes;
  }
  const std::int64_t every = config.size_or({"moe_layer_freq"}, 1);
  for (std::int64_t at = 0; at < layers; ++at) mixes[static_cast<std::size_t>(at)] = at % every == 0;
  return mixes;
}

inline constexpr double kMostCapacity = 1000.0;

/// Rows that an expert takes, in thousandths of its even share: all of its capacity where it is padded to that, and no
/// more than its capacity where tokens beyond are dropped. Source: core/transformer/moe/moe_utils.py (get_capacity).
inline std::int64_t rows_taken(const model::RunSettings& run) {
  constexpr double kThousand = 1000.0;
  if (run.expert_capacity <= 0.0) return 1000;
  const double times = run.pads_experts ? run.expert_capacity : std::min(run.expert_capacity, 1.0);
  return std::max<std::int64_t>(static_cast<std::int64_t>(times * kThousand), 1);
}

/// The names of --offload-modules, joined by '+': a list "[attn_norm core_attn]", or names with spaces or commas
/// between them. Source: Megatron-LM of August 2026, training/arguments.py; core/transformer/transformer_config.py
/// (allowed_modules).
inline std::string offloaded_modules(ConfigFields& config) {
  constexpr auto kAllowed = std::to_array<std::string_view>(
      {"attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm", "expert_fc1", "moe_act"});
  std::string names;
  std::string name;
  for (const char letter : std::string(config.text({"offload_modules"}, "")) + " ") {
    const bool named = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
    if (named) name += letter;
    if (named || name.empty()) continue;
    if (std::find(kAllowed.begin(), kAllowed.end(), name) == kAllowed.end()) {
      config.fail("names " + core::quoted(name) +
                      "; it takes attn_norm, qkv_linear, core_attn, attn_proj, mlp_norm, expert_fc1 and moe_act",
                  "offload_modules");
    }
    names += (names.empty() ? "" : "+") + name;
    name.clear();
  }
  return names;
}

/// Whether the softmax of attention that is written out is PyTorch's, in float32: of Megatron's own attention, where no
/// kernel fuses it. Source: Megatron-LM core 0.12, core/fusions/fused_softmax.py (forward_torch_softmax),
/// core/transformer/transformer_config.py: apply_query_key_layer_scaling sets attention_softmax_in_fp32.
inline bool softmax_in_float32(ConfigFields& config) {
  const bool own = config.text({"transformer_impl"}, "transformer_engine") == "local";
  const bool fuses = config.flag("masked_softmax_fusion", true);
  const bool float32 =
      config.flag("attention_softmax_in_fp32", false) || config.flag("apply_query_key_layer_scaling", false);
  return own && !fuses && float32;
}

/// The stages of a pipeline that differ from those between.
inline model::RunSettings stages_of(ConfigFields& config) {
  const auto given = [&](std::string_view name) {
    return config.has(name) ? std::optional(config.size({name})) : std::nullopt;
  };
  model::RunSettings run = run_settings(config);
  run.first_stage_blocks = given("decoder_first_pipeline_num_layers");
  run.last_stage_blocks = given("decoder_last_pipeline_num_layers");
  run.embedding_counts = config.flag("account_for_embedding_in_pipeline_split", false);
  run.head_counts = config.flag("account_for_loss_in_pipeline_split", false);
  run.pipeline_layers = std::string(config.text({"pipeline_model_parallel_layout"}, ""));
  run.ends_in_bf16 = config.flag("first_last_layers_bf16", false);
  run.overlaps_products = config.flag("tp_comm_overlap", false);
  run.weights_in_fp8 = config.flag("fp8_param_gather", false);
  run.micro_batch_group = config.size_or({"microbatch_group_size_per_virtual_pipeline_stage"}, 0);
  run.expert_capacity = config.number({"moe_expert_capacity_factor"}, 0.0);
  if (!(run.expert_capacity >= 0.0 && run.expert_capacity <= kMostCapacity)) {
    config.fail("must be from 0 to 1000", "moe_expert_capacity_factor");
    run.expert_capacity = 0.0;
  }
  const bool pads = config.flag("moe_pad_expert_input_to_capacity", false) && run.expert_capacity > 0.0;
  run.even_experts = config.flag("moe_router_force_load_balancing", false) || pads;
  run.pads_experts = pads;
  // In float16 the main gradients are float32 only where that is asked for (training/arguments.py: validate_args).
  const bool fp16 = config.flag("fp16", false) && !config.flag("accumulate_allreduce_grads_in_fp32", false);
  run.half_main_gradients = config.flag("grad_reduce_in_bf16", false) || fp16;
  // PyTorch's deterministic algorithms want CUBLAS_WORKSPACE_CONFIG=:4096:8 (or :16:8), which Megatron sets where
  // nobody did (Megatron-LM of August 2026, training/determinism.py: DETERMINISM_ENV_VAR_DEFAULTS): 8 buffers of 4,096
  // KiB, on every GPU (PyTorch 2.6, aten/src/ATen/cuda/CublasHandlePool.cpp: parseChosenWorkspaceSize).
  if (config.flag("deterministic_mode", false)) run.cublas_workspace = std::int64_t{8} * 4096 * 1024;
  run.offloaded_modules = offloaded_modules(config);
  run.least_offloaded = config.size_or({"min_offloaded_tensor_size"}, std::int64_t{1} << 20);
  if (config.flag("defer_embedding_wgrad_compute", false)) {
    constexpr std::int64_t kAll = std::int64_t{1} << 20;
    const std::int64_t limit = config.size_or({"wgrad_deferral_limit"}, 0);
    run.deferred_head_gradients = limit > 0 ? limit : kAll;
  }
  return run;
}

}  // namespace megatron

}  // namespace gpumem::architectures
