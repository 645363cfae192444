#pragma once

#include "gpumem/posttrain/impl/launch_keys_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace gpumem::posttrain {

namespace launch_detail {

/// verl's, as hydra overrides.
inline constexpr LaunchKey kVerlKeys[] = {
    {"algorithm.adv_estimator", named},
    {"config_name", named},
    {"model_engine", named},
    {"config", not_modelled},  // a file
    {"rollout.nnodes", named},
    {"algorithm.use_kl_in_reward", named},
    {"data.max_prompt_length", post, "prompt_length"},
    {"data.max_response_length", post, "completion_length"},
    {"actor_rollout_ref.model.path", Means::model},
    {"actor_rollout_ref.model.lora_rank", named},
    {"actor_rollout_ref.model.lora.rank", named},
    {"actor_rollout_ref.model.lora.target_modules", named},
    {"actor_rollout_ref.model.torch_dtype", not_modelled, "bfloat16"},
    {"actor_rollout_ref.model.target_modules", named},
    {"actor_rollout_ref.model.enable_gradient_checkpointing", named},
    {"actor_rollout_ref.model.use_remove_padding", not_modelled, "true"},
    {"actor_rollout_ref.model.use_liger", named},
    {"actor_rollout_ref.model.use_fused_kernels", named},
    {"actor_rollout_ref.actor.strategy", named},
    {"actor_rollout_ref.actor.use_kl_loss", named},
    {"actor_rollout_ref.actor.entropy_coeff", named},
    {"actor_rollout_ref.actor.entropy_from_logits_with_chunking", named},
    {"actor_rollout_ref.actor.entropy_checkpointing"},
    {"actor_rollout_ref.actor.use_torch_compile", named},
    {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", training, "batch_size"},
    {"actor_rollout_ref.actor.ppo_mini_batch_size", named},
    {"actor_rollout_ref.actor.use_dynamic_bsz", named},
    {"actor_rollout_ref.actor.ppo_max_token_len_per_gpu", named},
    {"actor_rollout_ref.actor.ulysses_sequence_parallel_size", post, "sequence_ranks"},
    {"actor_rollout_ref.actor.fsdp_config.param_offload", named},
    {"actor_rollout_ref.actor.fsdp_config.optimizer_offload", named},
    {"actor_rollout_ref.ref.fsdp_config.param_offload", post, "reference_offload"},
    {"actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu", named},
    {"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu", named},
    {"actor_rollout_ref.ref.log_prob_max_token_len_per_gpu", named},
    {"actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu", named},
    {"actor_rollout_ref.rollout.name", named},
    {"actor_rollout_ref.rollout.nnodes", named},
    {"actor_rollout_ref.rollout.n_gpus_per_node"},
    {"actor_rollout_ref.rollout.n", named},
    {"actor_rollout_ref.rollout.tensor_model_parallel_size", post, "rollout_tensor_parallel"},
    {"actor_rollout_ref.rollout.gpu_memory_utilization", post, "gpu_memory_utilization"},
    {"actor_rollout_ref.rollout.enforce_eager", post, "enforce_eager"},
    {"actor_rollout_ref.rollout.free_cache_engine", named},
    {"actor_rollout_ref.rollout.max_model_len", post, "max_model_len"},
    {"actor_rollout_ref.rollout.max_num_seqs", post, "max_num_seqs"},
    {"actor_rollout_ref.rollout.max_num_batched_tokens", post, "max_num_batched_tokens"},
    {"actor_rollout_ref.actor.ppo_micro_batch_size", named},
    {"actor_rollout_ref.rollout.log_prob_micro_batch_size", named},
    {"actor_rollout_ref.ref.log_prob_micro_batch_size", named},
    {"actor_rollout_ref.actor.fsdp_config.model_dtype", named},
    {"actor_rollout_ref.actor.fsdp_config.offload_policy", named},
    {"actor_rollout_ref.actor.fsdp_config.fsdp_size", not_modelled, "-1"},
    {"actor_rollout_ref.actor.fsdp_config.reshard_after_forward", not_modelled, "true"},
    {"actor_rollout_ref.actor.fsdp_config.dtype", not_modelled, "bfloat16"},
    {"actor_rollout_ref.actor.fsdp_config.mixed_precision*", not_modelled},
    {"actor_rollout_ref.actor.fsdp_config.wrap_policy.*", not_modelled, "0"},
    {"actor_rollout_ref.ref.fsdp_config.fsdp_size", not_modelled, "-1"},
    {"actor_rollout_ref.ref.fsdp_config.reshard_after_forward", not_modelled, "true"},
    {"actor_rollout_ref.ref.fsdp_config.model_dtype", not_modelled, "fp32"},
    {"actor_rollout_ref.ref.fsdp_config.offload_policy", not_modelled, "false"},
    {"actor_rollout_ref.ref.fsdp_config.dtype", not_modelled, "bfloat16"},
    {"actor_rollout_ref.ref.fsdp_config.mixed_precision*", not_modelled},
    {"actor_rollout_ref.ref.fsdp_config.wrap_policy.*", not_modelled, "0"},
    {"actor_rollout_ref.actor.freeze_vision_tower", named},
    {"actor_rollout_ref.actor.optim.optimizer", not_modelled, "AdamW"},
    {"actor_rollout_ref.actor.calculate_entropy", not_modelled, "false"},
    {"actor_rollout_ref.actor.calculate_sum_pi_squared", not_modelled, "false"},
    {"actor_rollout_ref.actor.use_prefix_grouper", not_modelled, "false"},
    {"actor_rollout_ref.actor.megatron.tensor_model_parallel_size", training, "tensor_parallel"},
    {"actor_rollout_ref.actor.megatron.pipeline_model_parallel_size", training, "pipeline_parallel"},
    {"actor_rollout_ref.actor.megatron.context_parallel_size", training, "context_parallel"},
    {"actor_rollout_ref.actor.megatron.expert_model_parallel_size", training, "expert_parallel"},
    {"actor_rollout_ref.actor.megatron.expert_tensor_parallel_size", post, "expert_tensor_parallel"},
    {"actor_rollout_ref.actor.megatron.virtual_pipeline_model_parallel_size", not_modelled, "1"},
    {"actor_rollout_ref.actor.megatron.sequence_parallel", named},
    {"actor_rollout_ref.actor.megatron.param_offload", named},
    {"actor_rollout_ref.actor.megatron.optimizer_offload", named},
    {"actor_rollout_ref.actor.megatron.grad_offload"},  // with the weights
    {"actor_rollout_ref.actor.megatron.use_distributed_optimizer", not_modelled, "true"},
    {"actor_rollout_ref.actor.megatron.use_remove_padding", not_modelled, "true"},
    {"actor_rollout_ref.actor.megatron.use_*"},
    {"actor_rollout_ref.actor.megatron.vanilla_mbridge"},
    {"actor_rollout_ref.actor.megatron.dist_checkpointing*"},
    {"actor_rollout_ref.actor.megatron.seed"},
    {"actor_rollout_ref.actor.megatron.dtype", not_modelled, "bfloat16"},
    {"actor_rollout_ref.actor.megatron.param_dtype", not_modelled, "bfloat16"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity", named},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.recompute_method", not_modelled, "uniform"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.recompute_num_layers", not_modelled, "1"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.apply_rope_fusion"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.attention_backend", not_modelled, "flash"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.bias_*"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.deallocate_pipeline_outputs"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.gradient_accumulation_fusion", not_modelled, "true"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.masked_softmax_fusion"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.moe_aux*"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.moe_grouped_gemm", not_modelled, "true"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.moe_permute_fusion", not_modelled, "true"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.moe_router*"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.moe_shared_expert_overlap"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.moe_z_loss*"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.persist_layer_norm"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.use_flash_attn"},
    {"actor_rollout_ref.ref.megatron.param_offload", post, "reference_offload"},
    {"actor_rollout_ref.actor.megatron.*", not_modelled},
    {"actor_rollout_ref.ref.strategy", not_modelled, "fsdp"},
    {"actor_rollout_ref.ref.megatron.*", not_modelled},
    {"actor_rollout_ref.ref.ulysses_sequence_parallel_size", not_modelled, "1"},
    {"actor_rollout_ref.model.enable_activation_offload", named},
    {"actor_rollout_ref.model.tiled_mlp.enabled", not_modelled, "false"},
    {"actor_rollout_ref.model.mtp.enable", not_modelled, "false"},
    {"actor_rollout_ref.model.override_config.*", not_modelled},
    {"actor_rollout_ref.rollout.dtype", not_modelled, "bfloat16"},
    {"actor_rollout_ref.rollout.quantization", not_modelled},
    {"actor_rollout_ref.rollout.expert_parallel_size", not_modelled, "1"},
    {"actor_rollout_ref.rollout.pipeline_model_parallel_size", not_modelled, "1"},
    {"critic.strategy", not_modelled, "fsdp"},
    {"critic.ppo_micro_batch_size_per_gpu", named},
    {"critic.model.enable_gradient_checkpointing", not_modelled, "true"},
    {"critic.model.use_remove_padding", not_modelled, "true"},
    {"critic.model.enable_activation_offload", not_modelled, "false"},
    {"critic.model.fsdp_config.param_offload", not_modelled, "false"},
    {"critic.model.fsdp_config.optimizer_offload", not_modelled, "false"},
    {"critic.model.fsdp_config.model_dtype", not_modelled, "fp32"},
    {"critic.model.fsdp_config.fsdp_size", not_modelled, "-1"},
    {"critic.model.fsdp_config.reshard_after_forward", not_modelled, "true"},
    {"critic.model.fsdp_config.offload_policy", not_modelled, "false"},
    {"critic.model.lora_rank", not_modelled, "0"},
    {"critic.model.tiled_mlp.enabled", not_modelled, "false"},
    {"critic.ulysses_sequence_parallel_size", not_modelled, "1"},
    {"critic.megatron.*", not_modelled},
    {"critic.use_dynamic_bsz", not_modelled, "false"},
    {"critic.ppo_max_token_len_per_gpu", not_modelled, "16384"},  // the actor's, where nobody says it
    {"reward_model.model.fsdp_config.param_offload", not_modelled, "false"},
    {"reward_model.model.fsdp_config.fsdp_size", not_modelled, "-1"},
    {"reward_model.model.fsdp_config.reshard_after_forward", not_modelled, "true"},
    {"critic.model.path", post, "critic_model"},
    {"reward_model.model.path", post, "reward_model"},
    {"trainer.n_gpus_per_node", named},
    {"trainer.nnodes", named},
    {"algorithm.*"},
    {"data.*"},
    {"actor_rollout_ref.actor.clip*"},
    {"actor_rollout_ref.actor.grad_clip"},
    {"actor_rollout_ref.actor.kl_loss*"},
    {"actor_rollout_ref.actor.loss_agg_mode"},
    {"actor_rollout_ref.actor.ppo_epochs"},
    {"actor_rollout_ref.actor.shuffle"},
    {"actor_rollout_ref.hybrid_engine", named},
    {"actor_rollout_ref.rollout.temperature"},
    {"actor_rollout_ref.rollout.top_*"},
    {"actor_rollout_ref.rollout.val_kwargs.*"},
    {"actor_rollout_ref.rollout.mode"},
    {"trainer.*"},
    {"critic.optim.*"},
    {"actor_rollout_ref.actor.optim.override_optimizer_config", not_modelled},
    {"actor_rollout_ref.actor.optim.*"},
    {"reward_model.enable_resource_pool"},
    {"reward_model.enable", named},
    {"env:PYTORCH_CUDA_ALLOC_CONF", training, "alloc_conf"},
    {"env:*"},
};

/// What EasyR1 calls the settings of verl, of which it is a fork. Source: EasyR1 (2026-08), verl/workers/config.py,
/// actor/config.py, critic/config.py and rollout/config.py.
inline constexpr std::pair<std::string_view, std::string_view> kEasyR1Names[] = {
    {"algorithm.use_kl_loss", "actor_rollout_ref.actor.use_kl_loss"},
    {"data.rollout_batch_size", "data.train_batch_size"},
    {"worker.actor.fsdp.enable_cpu_offload", "actor_rollout_ref.actor.fsdp_config.offload_policy"},
    {"worker.actor.fsdp.enable_full_shard", "actor_rollout_ref.actor.fsdp_config.reshard_after_forward"},
    {"worker.actor.fsdp.fsdp_size", "actor_rollout_ref.actor.fsdp_config.fsdp_size"},
    {"worker.actor.fsdp.torch_dtype", "actor_rollout_ref.actor.fsdp_config.model_dtype"},
    {"worker.actor.global_batch_size", "actor_rollout_ref.actor.ppo_mini_batch_size"},
    {"worker.actor.micro_batch_size_per_device_for_experience",
     "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu"},
    {"worker.actor.micro_batch_size_per_device_for_update", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"},
    {"worker.actor.model.enable_gradient_checkpointing", "actor_rollout_ref.model.enable_gradient_checkpointing"},
    {"worker.actor.model.freeze_vision_tower", "actor_rollout_ref.actor.freeze_vision_tower"},
    {"worker.actor.model.lora.rank", "actor_rollout_ref.model.lora_rank"},
    {"worker.actor.model.lora.target_modules", "actor_rollout_ref.model.target_modules"},
    {"worker.actor.model.lora_rank", "actor_rollout_ref.model.lora_rank"},
    {"worker.actor.model.model_path", "actor_rollout_ref.model.path"},
    {"worker.actor.offload.offload_optimizer", "actor_rollout_ref.actor.fsdp_config.optimizer_offload"},
    {"worker.actor.offload.offload_params", "actor_rollout_ref.actor.fsdp_config.param_offload"},
    {"worker.actor.optim.strategy", "actor_rollout_ref.actor.optim.optimizer"},
    {"worker.actor.padding_free", "actor_rollout_ref.model.use_remove_padding"},
    {"worker.actor.ulysses_size", "actor_rollout_ref.actor.ulysses_sequence_parallel_size"},
    {"worker.actor.use_torch_compile", "actor_rollout_ref.actor.use_torch_compile"},
    {"worker.critic.fsdp.enable_cpu_offload", "critic.model.fsdp_config.offload_policy"},
    {"worker.critic.fsdp.enable_full_shard", "critic.model.fsdp_config.reshard_after_forward"},
    {"worker.critic.fsdp.fsdp_size", "critic.model.fsdp_config.fsdp_size"},
    {"worker.critic.fsdp.torch_dtype", "critic.model.fsdp_config.model_dtype"},
    {"worker.critic.micro_batch_size_per_device_for_update", "critic.ppo_micro_batch_size_per_gpu"},
    {"worker.critic.model.enable_gradient_checkpointing", "critic.model.enable_gradient_checkpointing"},
    {"worker.critic.model.model_path", "critic.model.path"},
    {"worker.critic.offload.offload_optimizer", "critic.model.fsdp_config.optimizer_offload"},
    {"worker.critic.offload.offload_params", "critic.model.fsdp_config.param_offload"},
    {"worker.critic.padding_free", "critic.model.use_remove_padding"},
    {"worker.critic.ulysses_size", "critic.ulysses_sequence_parallel_size"},
    {"worker.ref.fsdp.enable_cpu_offload", "actor_rollout_ref.ref.fsdp_config.param_offload"},
    {"worker.ref.offload.offload_params", "actor_rollout_ref.ref.fsdp_config.param_offload"},
    {"worker.rollout.enforce_eager", "actor_rollout_ref.rollout.enforce_eager"},
    {"worker.rollout.gpu_memory_utilization", "actor_rollout_ref.rollout.gpu_memory_utilization"},
    {"worker.rollout.max_model_len", "actor_rollout_ref.rollout.max_model_len"},
    {"worker.rollout.max_num_batched_tokens", "actor_rollout_ref.rollout.max_num_batched_tokens"},
    {"worker.rollout.n", "actor_rollout_ref.rollout.n"},
    {"worker.rollout.tensor_parallel_size", "actor_rollout_ref.rollout.tensor_model_parallel_size"},
};

/// Where verl's actor has the setting that its critic or its reference has by this key; empty: it is no such key.
inline std::string actors_key(Program program, std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kActors[] = {
      {"critic.model.fsdp_config.", "actor_rollout_ref.actor.fsdp_config."},
      {"critic.model.", "actor_rollout_ref.model."},
      {"critic.", "actor_rollout_ref.actor."},
      {"actor_rollout_ref.ref.", "actor_rollout_ref.actor."}};
  if (program != Program::verl) return {};
  for (const auto& [begin, of_actor] : kActors) {
    if (key.starts_with(begin)) return std::string(of_actor).append(key.substr(begin.size()));
  }
  return {};
}

/// What a setting is called here.
inline std::string_view own_name(Program program, std::string_view key) {
  using Names = std::span<const std::pair<std::string_view, std::string_view>>;
  const Names names = program == Program::openrlhf ? Names(kOpenRlhfNames)
                      : program == Program::verl   ? Names(kEasyR1Names)
                                                   : Names();
  for (const auto& [name, own] : names) {
    if (name == key) return own;
  }
  return key;
}

}  // namespace launch_detail

}  // namespace gpumem::posttrain
