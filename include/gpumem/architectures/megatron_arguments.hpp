// Input: the arguments of Megatron's launcher.
// Output: the arguments of the run, its layout and its kernels, which do not change the model, marked as read; and what
// the word embedding's layer says about the optimizer.
// Source: Megatron-LM core r0.12, megatron/training/arguments.py.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/model/model_graph.hpp"

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
                                     "make_vocab_size_divisible_by",
                                     "norm_epsilon",
                                     "rotary_base",
                                     "rotary_interleaved",
                                     "rotary_scaling_factor",
                                     "mscale",
                                     "mscale_all_dim",
                                     "tp_comm_overlap",
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

/// How many distributed optimizers there are.
inline model::RunSettings run_settings(ConfigFields& config) {
  return {.optimizer_instances = config.size_or({"num_distributed_optimizer_instances"}, 1)};
}

}  // namespace gpumem::architectures
