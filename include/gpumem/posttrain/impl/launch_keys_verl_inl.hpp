#pragma once

#include "gpumem/posttrain/impl/launch_keys_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpumem::posttrain {

namespace launch_detail {

/// verl's own files, which hydra puts below what it is told.
inline constexpr std::string_view kOwnFiles =
    "ppo_trainer ppo_trainer.yaml ppo_megatron_trainer ppo_megatron_trainer.yaml";

/// verl's, as hydra overrides.
inline constexpr LaunchKey kVerlKeys[] = {
    {"algorithm.adv_estimator", named},
    {"config_name", not_modelled, kOwnFiles},
    {"model_engine", named},
    {"config", not_modelled},  // a file
    {"defaults", not_modelled, kOwnFiles},
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
    {"actor_rollout_ref.rollout.n", post, "num_generations"},
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
    {"actor_rollout_ref.actor.fsdp_config.fsdp_size", named},
    {"actor_rollout_ref.actor.fsdp_config.reshard_after_forward", named},
    {"actor_rollout_ref.actor.fsdp_config.use_orig_params", not_modelled, "false"},
    {"actor_rollout_ref.actor.fsdp_config.dtype", not_modelled, "bfloat16"},
    {"actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype", not_modelled, "bf16 bfloat16"},
    {"actor_rollout_ref.actor.fsdp_config.mixed_precision.*", not_modelled, "fp32 float32"},
    {"actor_rollout_ref.actor.fsdp_config.mixed_precision*", not_modelled},
    {"actor_rollout_ref.actor.fsdp_config.wrap_policy.*", not_modelled, "0"},
    {"actor_rollout_ref.ref.fsdp_config.fsdp_size", not_modelled, "-1"},
    {"actor_rollout_ref.ref.fsdp_config.reshard_after_forward", not_modelled, "true"},
    {"actor_rollout_ref.ref.fsdp_config.model_dtype", not_modelled, "fp32"},
    {"actor_rollout_ref.ref.fsdp_config.offload_policy"},  // its parameters are on the host in any case
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
    {"reward_model.model.fsdp_config.param_offload"},             // they are there in any case
    {"reward_model.model.fsdp_config.fsdp_size", not_modelled, "-1"},
    {"reward_model.model.fsdp_config.reshard_after_forward", not_modelled, "true"},
    {"critic.model.path", post, "critic_model"},
    {"reward_model.model.path", post, "reward_model"},
    {"trainer.n_gpus_per_node", named},
    {"trainer.nnodes", named},
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
    {"critic.optim.*"},
    {"actor_rollout_ref.actor.optim.override_optimizer_config", not_modelled},
    {"actor_rollout_ref.actor.optim.*"},
    {"reward_model.enable_resource_pool"},
    {"reward_model.enable", named},
    {"env:PYTORCH_CUDA_ALLOC_CONF", training, "alloc_conf"},
    {"env:*"},
};

/// What changes no memory in verl's large sections. Source: verl 0.2 to 0.7, trainer/config; EasyR1 and rllm (2026).
struct VerlSection {
  std::string_view section;
  std::string_view idle;  ///< keys below it
};
inline constexpr VerlSection kVerlSections[] = {
    {"data.",
     "accuracy_* answer_key apply_chat_template_kwargs* balance_dp_token batch_size chat_template custom_cls.* "
     "data_source_key datagen.* dataloader_num_workers enable_thinking_key filter_* format_prompt gen_batch_size "
     "ignore_input_ids_mismatch image_* max_length max_pixels max_token_len_per_gpu messages_key micro_batch_size* "
     "min_pixels mini_rollout_batch_size multiturn.* n_samples output_path override_chat_template oversample_factor "
     "pad_mode path prompt_* renderer_name response_* return_* reward_* rllm.* rollout_batch_size sampler.* seed "
     "shuffle tokenizer tool_config_path tools_key train_* truncation trust_remote_code use_dynamic_bsz use_shm val_* "
     "validation_shuffle video_*"},
    {"trainer.",
     "balance_batch checkpoint.* controller_nsight_options.* critic_warmup default_* del_* device episode_log_dir "
     "esi_redundant_time experiment_name find_last_checkpoint load_checkpoint_path log* max_* n_env_gpus_per_node "
     "n_rollout_gpus_per_node npu_profile.* profile_* project_name ray_timeline ray_wait_register_center_timeout "
     "ref_update_freq resume_* rollout_data_dir save_* scheduler seed test_freq total_* use_legacy_worker_impl val_* "
     "validation_data_dir wandb_proxy worker_nsight_options.*"},
    {"algorithm.",
     "_target_ disable_kl eps_clip* filter_* gamma grouping_level kl_* lam loss_agg_mode loss_fn lr_schedule "
     "norm_adv_by_std_in_grpo online_filtering pf_ppo.* remove_constant_reward_groups reward_dpo_coef reward_gt_coef "
     "rollout_correction.* rollout_is* router_replay shared_tokenizer sppo_eta teacher_rollout_args.* use_pf_ppo "
     "use_precomputed_advantage use_rllm warmup_steps*"},
    {"actor_rollout_ref.actor.fsdp_config.",
     "_target_ entropy_* forward_* full_determinism seed strategy ulysses_sequence_parallel_size use_torch_compile"},
    {"actor_rollout_ref.ref.fsdp_config.",
     "_target_ entropy_* forward_* full_determinism optimizer_offload seed strategy ulysses_sequence_parallel_size "
     "use_orig_params use_torch_compile"},
    {"critic.model.fsdp_config.",
     "_target_ dtype entropy_* forward_* full_determinism mixed_precision* optimizer_offload seed strategy "
     "ulysses_sequence_parallel_size use_orig_params use_torch_compile wrap_policy.*"},
    {"reward_model.model.fsdp_config.", "forward_prefetch model_dtype optimizer_offload wrap_policy.*"},
    {"actor_rollout_ref.rollout.engine_kwargs.vllm.",
     "disable_cascade_attn disable_log_stats disable_mm_preprocessor_cache enable_auto_tool_choice "
     "enable_prefix_caching swap_space tokenizer_mode tool_call_parser"},
    {"actor_rollout_ref.rollout.engine_kwargs.sglang.", "attention_backend reasoning_parser tool_call_parser"},
    {"actor_rollout_ref.rollout.engine_kwargs.", "sglang trtllm* vllm"},
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

// Settings of programs that are restated as verl's. `post`: verl's setting of the name behind it means the same;
// `named`: OtherReader reads it; `nothing` and `not_modelled` as in other lists.

/// Source: NeMo-RL (2026-08), examples/configs/grpo_math_1B.yaml, dpo.yaml, rm.yaml, ppo_math_1B.yaml and recipes.
inline constexpr LaunchKey kNemoRlKeys[] = {
    {"defaults", not_modelled},  // a file that is not there
    {"policy.model_name", post, "actor_rollout_ref.model.path"},
    {"policy.train_micro_batch_size", post, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"},
    {"policy.train_global_batch_size", named},
    {"policy.logprob_batch_size", named},
    {"policy.max_total_sequence_length", named},
    {"policy.precision", not_modelled, "bfloat16"},
    {"policy.logprob_chunk_size", not_modelled, "0"},
    {"policy.sequence_packing.enabled", named},
    {"policy.sequence_packing.*", named},
    {"policy.dynamic_batching.*", named},
    {"policy.dtensor_cfg.enabled", named},
    {"policy.dtensor_cfg.tensor_parallel_size", named},
    {"policy.dtensor_cfg.context_parallel_size", named},
    {"policy.dtensor_cfg.expert_parallel_size", named},
    {"policy.dtensor_cfg.sequence_parallel", named},
    {"policy.dtensor_cfg.activation_checkpointing", named},
    {"policy.dtensor_cfg.cpu_offload", named},
    {"policy.dtensor_cfg.lora_cfg.enabled", named},
    {"policy.dtensor_cfg.lora_cfg.dim", named},
    {"policy.dtensor_cfg.lora_cfg.target_modules", named},
    {"policy.dtensor_cfg.lora_cfg.match_all_linear", named},
    {"policy.dtensor_cfg.lora_cfg.exclude_modules", not_modelled, "[]"},
    {"policy.dtensor_cfg.lora_cfg.*"},
    {"policy.dtensor_cfg.env_vars.PYTORCH_CUDA_ALLOC_CONF", named},
    {"policy.dtensor_cfg.env_vars*"},
    {"policy.dtensor_cfg.custom_parallel_plan", not_modelled},
    {"policy.dtensor_cfg.clear_cache_every_n_steps", not_modelled},
    {"policy.dtensor_cfg.dp_replicate_size", not_modelled, "1"},
    {"policy.dtensor_cfg.automodel_kwargs.freeze_config.freeze_language_model", not_modelled, "false"},
    {"policy.dtensor_cfg.automodel_kwargs.use_liger_kernel", not_modelled, "false"},
    {"policy.dtensor_cfg.automodel_kwargs.attn_implementation", not_modelled},
    {"policy.dtensor_cfg.*"},
    {"policy.megatron_cfg.enabled", named},
    {"policy.megatron_cfg.tensor_model_parallel_size", named},
    {"policy.megatron_cfg.pipeline_model_parallel_size", named},
    {"policy.megatron_cfg.context_parallel_size", named},
    {"policy.megatron_cfg.expert_model_parallel_size", named},
    {"policy.megatron_cfg.expert_tensor_parallel_size", named},
    {"policy.megatron_cfg.sequence_parallel", named},
    {"policy.megatron_cfg.activation_checkpointing", named},
    {"policy.megatron_cfg.recompute_granularity", named},
    {"policy.megatron_cfg.recompute_modules", not_modelled},
    {"policy.megatron_cfg.num_layers_in_*", not_modelled},
    {"policy.megatron_cfg.peft.enabled", named},
    {"policy.megatron_cfg.peft.dim", named},
    {"policy.megatron_cfg.peft.target_modules", named},
    {"policy.megatron_cfg.peft.exclude_modules", not_modelled, "[]"},
    {"policy.megatron_cfg.peft.*"},
    {"policy.megatron_cfg.optimizer.optimizer_cpu_offload", named},
    {"policy.megatron_cfg.optimizer.optimizer_offload_fraction", named},
    {"policy.megatron_cfg.optimizer.optimizer", not_modelled, "adam"},
    {"policy.megatron_cfg.optimizer.use_distributed_optimizer", not_modelled, "true"},
    {"policy.megatron_cfg.optimizer.params_dtype", not_modelled, "float32"},
    {"policy.megatron_cfg.optimizer.*"},
    {"policy.megatron_cfg.distributed_data_parallel_config.grad_reduce_in_fp32", named},
    {"policy.megatron_cfg.distributed_data_parallel_config.use_custom_fsdp", not_modelled, "false"},
    {"policy.megatron_cfg.distributed_data_parallel_config.*"},
    {"policy.megatron_cfg.fp8_cfg.enabled", not_modelled, "false"},
    {"policy.megatron_cfg.fp8_cfg.*"},
    {"policy.megatron_cfg.cuda_graph_impl", not_modelled, "none"},
    {"policy.megatron_cfg.fine_grained_activation_offloading", not_modelled, "false"},
    {"policy.megatron_cfg.use_fused_linear_logprobs", post, "actor_rollout_ref.model.use_fused_kernels"},
    {"policy.megatron_cfg.mtp_num_layers", not_modelled, "0"},
    {"policy.megatron_cfg.moe_enable_deepep", not_modelled, "false"},
    {"policy.megatron_cfg.moe_token_dispatcher_type", not_modelled, "alltoall"},
    {"policy.megatron_cfg.moe_grouped_gemm", not_modelled, "true"},
    {"policy.megatron_cfg.moe_permute_fusion", not_modelled, "true"},
    {"policy.megatron_cfg.attention_backend", not_modelled, "flash"},
    {"policy.megatron_cfg.gradient_accumulation_fusion"},
    {"policy.megatron_cfg.env_vars.PYTORCH_CUDA_ALLOC_CONF", named},
    {"policy.megatron_cfg.freeze_config.freeze_language_model", not_modelled, "false"},
    {"policy.megatron_cfg.*"},
    {"policy.optimizer.name", named},
    {"policy.optimizer*"},
    {"policy.generation.backend", named},
    {"policy.generation.max_new_tokens", named},
    {"policy.generation.colocated.*", named},
    {"policy.generation.vllm_cfg.tensor_parallel_size", named},
    {"policy.generation.vllm_cfg.gpu_memory_utilization", named},
    {"policy.generation.vllm_cfg.max_model_len", named},
    {"policy.generation.vllm_cfg.enforce_eager", named},
    {"policy.generation.vllm_cfg.precision", not_modelled, "bfloat16"},
    {"policy.generation.vllm_cfg.kv_cache_dtype", not_modelled, "auto"},
    {"policy.generation.vllm_cfg.pipeline_parallel_size", not_modelled, "1"},
    {"policy.generation.vllm_cfg.expert_parallel_size", not_modelled, "1"},
    {"policy.generation.vllm_cfg.enable_expert_parallel", not_modelled, "false"},
    {"policy.generation.vllm_cfg.*"},
    {"policy.generation.vllm_kwargs.max_num_seqs", post, "actor_rollout_ref.rollout.max_num_seqs"},
    {"policy.generation.vllm_kwargs.max_num_batched_tokens", post, "actor_rollout_ref.rollout.max_num_batched_tokens"},
    {"policy.generation.vllm_kwargs.kv_cache_memory_bytes", not_modelled},
    {"policy.generation.vllm_kwargs.speculative_config.*", not_modelled},
    {"policy.generation.vllm_kwargs.compilation_config.cudagraph*", not_modelled},
    {"policy.generation.vllm_kwargs*"},
    {"policy.generation.sglang_cfg.tp_size", named},
    {"policy.generation.sglang_cfg.mem_fraction_static", named},
    {"policy.generation.sglang_cfg.context_length", named},
    {"policy.generation.sglang_cfg.disable_cuda_graph", named},
    {"policy.generation.sglang_cfg.*"},
    {"policy.generation.quant_cfg", not_modelled},
    {"policy.generation.real_quant", not_modelled, "false"},
    {"policy.generation.*"},
    {"policy.draft.enabled", not_modelled, "false"},
    {"policy.draft.*"},
    {"policy.quant_cfg", not_modelled},
    {"policy.reward_model_cfg.*"},
    {"policy.hf_config_overrides*"},
    {"policy.tokenizer*"},
    {"policy.offload_optimizer_for_logprob", named},
    {"value.model_name", post, "critic.model.path"},
    {"value.*", named},
    {"cluster.gpus_per_node", named},
    {"cluster.num_nodes", named},
    {"loss_fn.reference_policy_kl_penalty", named},
    {"dpo.reference_policy_kl_penalty"},
    {"grpo.num_generations_per_prompt", named},
    {"ppo.num_generations_per_prompt", named},
    {"grpo.async_grpo*"},
    {"on_policy_distillation.enabled", not_modelled, "false"},
    {"grpo.*"},
    {"ppo.*"},
    {"dpo.*"},
    {"rm.*"},
    {"sft.*"},
    {"distillation.*"},
    {"teacher.*"},
    {"teachers"},
    {"async_rl.*"},
    {"value_loss_fn.*"},
    {"loss_fn.*"},
    {"on_policy_distillation*"},
    {"checkpointing.*"},
    {"cluster.*"},
    {"data.*"},
    {"env.*"},
    {"logger.*"},
    {"env:*"},
    {"config"},
};

/// What changes no memory of NeMo-RL's.
inline constexpr std::string_view kOfNemoRl =
    "checkpoint_engine* data_plane.* policy.dequantize_base_checkpoint policy.disable_modelopt_layer_spec "
    "policy.generation_batch_size policy.is_vlm policy.make_sequence_length_divisible_by policy.max_grad_norm "
    "policy.quant_batch_size policy.quant_calib* policy.quant_sequence_length policy.refit_buffer_size_gb "
    "policy.router_replay.* policy.scheduler* policy.worker_extension_cls reward_penalties.* "
    "token_mult_prob_error_plotting*";
/// A setting by the name that it has here. What people read has the name that they gave.
struct OwnSetting {
  std::string key;
  std::string value;
  std::string given;
};

/// A program's settings under another's names, verl's or TRL's, and what of them has none there.
struct RestatedSettings {
  Program program = Program::verl;  ///< whose they are
  Program names = Program::verl;    ///< whose names they have
  std::vector<OwnSetting> settings;
  std::vector<std::string> unknown;
  std::vector<std::string> not_modelled;
  std::vector<std::string> decided;
  bool megatron = false;
  bool swaps_reference = false;  ///< its weights take the place of the policy's for its passes
  bool whole_reference = false;  ///< each GPU has all of it
  bool old_log_probs = false;    ///< a pass computes them before the update
  std::int64_t sleep_level = 0;  ///< of the engine on the same GPUs
  std::optional<core::Error> fault;
};

/// Settings of restated programs that verl has no name for.
inline constexpr LaunchKey kRestatedKeys[] = {
    {"gradient_accumulation_steps", training, "accumulate"},
    {"seq_length", training, "seq_length"},
    {"max_length", named},
    {"liger_layers", named},  // without its loss
    {"optimizer_cpu_offload", named},
    {"optimizer_offload_fraction", named},
};

/// Where verl's actor has the setting that its critic or its reference has by this key; empty: it is no such key.
inline std::string actors_key(Program program, std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kActors[] = {
      {"critic.model.fsdp_config.", "actor_rollout_ref.actor.fsdp_config."},
      {"critic.model.", "actor_rollout_ref.model."},
      {"critic.", "actor_rollout_ref.actor."},
      {"actor_rollout_ref.ref.", "actor_rollout_ref.actor."}};
  // The reference's units are taken as they usually are.
  if (program != Program::verl || key == "actor_rollout_ref.ref.fsdp_config.reshard_after_forward") return {};
  for (const auto& [begin, of_actor] : kActors) {
    if (key.starts_with(begin)) return std::string(of_actor).append(key.substr(begin.size()));
  }
  return {};
}

/// Whether a loss has the cross entropy of labels beside what it compares. Source: ms-swift 3.5 to 4, gkd_trainer.py:
/// compute_loss; TRL 0.22 to 1.9, trainer/dpo_trainer.py: loss_type "sft"; TRL 0.9 to 1.9, cpo_trainer.py, and
/// ms-swift's, which is made of it: cpo_alpha, which is 1 unless it is given.
inline bool adds_label_loss(Program program, const AlgorithmRow& algorithm, std::string_view weight,
                            std::string_view types) {
  if (algorithm.teacher) return program == Program::ms_swift && weight.find_first_not_of("0.") != weight.npos;
  if (algorithm.value == Algorithm::simpo) return weight.find_first_not_of("0.") != weight.npos;
  const bool compares = algorithm.value == Algorithm::dpo && program == Program::trl;
  return compares && types.find("sft") != types.npos;
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
