#pragma once

#include "gpumem/posttrain/launch.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace gpumem::posttrain {

namespace launch_detail {

/// What a key means.
enum class Means : std::uint8_t {
  training,      ///< an option of how the policy is trained, with this value
  post,          ///< an option of post-training, with this value
  model,         ///< the policy's model
  named,         ///< handled by name
  nothing,       ///< it changes no memory
  not_modelled,  ///< it changes memory, unless its value is the usual one
};

/// A key that ends in '*' stands for all that begin so.
struct LaunchKey {
  std::string_view key;
  Means means = Means::nothing;
  std::string_view option = {};  ///< the option's name, or the usual value
};

using enum Means;

/// Of who starts the program: accelerate, torchrun, deepspeed; and what its words say ("trainer").
inline constexpr LaunchKey kLauncherKeys[] = {
    {"trainer", named},
    {kGivenTrainer, named},
    {"num_processes", named},
    {"nproc_per_node", named},
    {"num_gpus", named},
    {"nnodes", named},
    {"config_file", named},
    {"accelerate_config", named},  // trl's
    {"zero_stage", named},
    {"deepspeed_config_file", named},
    {"module"},
    {"multi_gpu"},
    {"use_deepspeed"},
    {"deepspeed_multinode_launcher"},
    {"mixed_precision", not_modelled, "bf16 fp16 no"},  // where the trainer's own bf16 and fp16 are off
    {"dynamo_backend", not_modelled, "no NO"},
    {"dynamo_*"},
    {"master_*"},
    {"main_process_*"},
    {"machine_rank"},
    {"node_rank"},
    {"rdzv_*"},
    {"standalone"},
    {"hostfile"},
    {"env:NNODES", named},
};

/// The processes that a file of TRL's for accelerate says; 0: it is none of these. Source: TRL 0.17 to 1.9,
/// trl/accelerate_configs and examples/accelerate_configs: num_processes.
inline std::int64_t gpus_of_file(std::string_view file) {
  constexpr std::string_view kOfEight[] = {"zero1", "zero2", "zero3", "fsdp1", "fsdp2", "multi_gpu"};
  constexpr std::int64_t kProcesses = 8;
  file.remove_prefix(file.rfind('/') + 1);
  if (file.ends_with(".yaml")) file.remove_suffix(std::string_view(".yaml").size());
  if (file.starts_with("deepspeed_")) file.remove_prefix(std::string_view("deepspeed_").size());
  return std::find(std::begin(kOfEight), std::end(kOfEight), file) != std::end(kOfEight) ? kProcesses : 0;
}

/// transformers' TrainingArguments, and what TRL and ms-swift add to them.
inline constexpr LaunchKey kTrainerKeys[] = {
    {"config", not_modelled},  // a file
    {"model", Means::model},
    {"model_name_or_path", Means::model},
    {"rlhf_type", named},
    {"per_device_train_batch_size", training, "batch_size"},
    {"gradient_accumulation_steps", training, "accumulate"},
    {"max_length", named},
    {"max_prompt_length", post, "prompt_length"},
    {"max_completion_length", post, "completion_length"},
    {"response_length", post, "completion_length"},
    {"packing", named},
    {"padding_free", named},
    {"train_type", named},
    {"tuner_type", named},
    {"use_peft", named},
    {"lora_rank", named},
    {"lora_r", named},
    {"lora_dropout", training, "lora_dropout"},
    {"target_modules", named},
    {"lora_target_modules", named},
    {"peft_config.r", named},
    {"peft_config.lora_alpha"},
    {"peft_config.lora_dropout", training, "lora_dropout"},
    {"peft_config.use_dora", named},
    {"peft_config.use_rslora"},
    {"peft_config.modules_to_save", named},
    {"peft_config.bias", not_modelled, "none"},
    {"peft_config.task_type"},
    {"peft_config.target_modules", named},
    {"load_in_4bit", named},
    {"quant_bits", named},
    {"torch_dtype", named},
    {"dtype", named},
    {"model_init_kwargs.torch_dtype", named},
    {"model_init_kwargs.dtype", named},
    {"model_init_kwargs.attn_implementation", named},
    {"bf16", named},
    {"fp16", named},
    {"deepspeed", named},
    {"optim", named},
    {"attn_impl", named},
    {"attn_implementation", named},
    {"gradient_checkpointing", named},
    {"gradient_checkpointing_kwargs.use_reentrant", named},
    {"gradient_checkpointing_kwargs", not_modelled},  // with_objects()
    {"use_liger_kernel", named},
    {"use_liger_loss", named},
    {"beta", named},
    {"ref_model", named},
    {"precompute_ref_log_probs", named},
    {"reward_model", post, "reward_model"},
    {"reward_model_path", post, "reward_model"},
    {"reward_model_name_or_path", post, "reward_model"},
    {"teacher_model", post, "teacher_model"},
    {"teacher_model_name_or_path", post, "teacher_model"},
    {"use_vllm", named},
    {"vllm_mode", named},
    {"vllm_gpu_memory_utilization", post, "gpu_memory_utilization"},
    {"vllm_tensor_parallel_size", post, "rollout_tensor_parallel"},
    {"vllm_max_model_len", post, "max_model_len"},
    {"vllm_max_model_length", post, "max_model_len"},
    {"vllm_max_num_seqs", post, "max_num_seqs"},
    {"vllm_enforce_eager", post, "enforce_eager"},
    {"gpu_memory_utilization", post, "gpu_memory_utilization"},
    {"fast_inference", named},
    {"use_gradient_checkpointing", named},
    {"load_in_8bit", named},
    {"vllm_enable_sleep_mode", named},
    {"sleep_level", post, "sleep_level"},
    {"offload_model", named},
    {"offload_optimizer", named},
    {"local_rollout_forward_batch_size", post, "log_prob_batch"},
    {"sequence_parallel_size", post, "sequence_ranks"},
    {"max_pixels", named},
    {"freeze_vit", named},
    {"freeze_aligner", not_modelled, "true"},
    {"freeze_llm", named},
    {"vit_gradient_checkpointing", not_modelled, "true"},
    {"max_new_tokens", post, "completion_length"},
    {"sft_model_path", named},
    {"sft_alpha", named},
    {"student_model_name", Means::model},  // gold_vlm.py
    {"teacher_model_name", post, "teacher_model"},
    {"disable_dropout", named},
    {"use_bnb_nested_quant", named},
    {"bnb_4bit_use_double_quant", named},
    {"bnb_4bit_quant_type", not_modelled, "nf4"},
    {"bnb_4bit_quant_storage", not_modelled, "uint8"},
    {"quant_method", not_modelled, "bnb"},
    {"use_dora", named},
    {"lora_modules_to_save", named},
    {"modules_to_save", named},
    {"lora_target_parameters", named},
    {"target_parameters", named},
    {"target_regex", not_modelled},
    {"lora_bias", not_modelled, "none"},
    {"lora_dtype", not_modelled},
    {"freeze_parameters*", not_modelled, "0"},
    {"trainable_parameters*", not_modelled},
    {"activation_offloading", named},
    {"fsdp", named},
    {"fsdp_config.fsdp_version", named},
    {"fsdp_config.version", named},
    {"fsdp_config.activation*", not_modelled, "false"},
    {"fsdp_config.fsdp_activation*", not_modelled, "false"},
    {"fsdp_config.offload*", not_modelled, "false"},
    {"fsdp_config.fsdp_offload*", not_modelled, "false"},
    {"fsdp_config", not_modelled},  // a file
    {"device_map", not_modelled},
    {"num_generations", post, "num_generations"},
    {"steps_per_generation", named},
    {"generation_batch_size", named},
    {"packing_length", named},
    {"teacher_deepspeed", named},
    {"offload_teacher_model", not_modelled, "false"},
    {"teacher_model_server", not_modelled},
    {"offload_bridge", not_modelled, "false"},
    {"cast_lm_head_to_fp32", not_modelled, "false"},
    {"use_transformers_paged", not_modelled, "false"},
    {"use_transformers_continuous_batching", not_modelled, "false"},
    {"use_logits_to_keep", not_modelled},
    {"torch_compile", not_modelled, "false"},
    {"torch_empty_cache_steps", not_modelled},
    {"auto_find_batch_size", not_modelled, "false"},
    {"neftune_noise_alpha", not_modelled},
    {"model_init_kwargs", not_modelled},
    {"model_kwargs", not_modelled},  // with_objects()
    {"use_galore", not_modelled, "false"},
    {"lisa_activated_layers", not_modelled, "0"},
    {"deepspeed_autotp_size", not_modelled, "1"},
    {"zero_hpz_partition_size", not_modelled, "1"},
    {"vllm_quantization", not_modelled},
    {"vllm_pipeline_parallel_size", not_modelled, "1"},
    {"vllm_enable_expert_parallel", not_modelled, "false"},
    {"vllm_speculative_config", not_modelled},
    {"env:NPROC_PER_NODE", named},
    {"env:PYTORCH_CUDA_ALLOC_CONF", training, "alloc_conf"},
    {"env:MAX_PIXELS", named},
    {"env:IMAGE_MAX_TOKEN_NUM", named},
    {"env:*"},
};

/// ms-swift's Megatron arguments, beside those of its trainer.
inline constexpr LaunchKey kMegatronKeys[] = {
    {"micro_batch_size", training, "batch_size"},
    {"global_batch_size", named},
    {"tensor_model_parallel_size", training, "tensor_parallel"},
    {"pipeline_model_parallel_size", training, "pipeline_parallel"},
    {"context_parallel_size", training, "context_parallel"},
    {"expert_model_parallel_size", training, "expert_parallel"},
    {"expert_tensor_parallel_size", post, "expert_tensor_parallel"},
    {"sequence_parallel", training, "sequence_parallel"},
    {"recompute_granularity", named},
    {"recompute_method", not_modelled, "uniform"},
    {"recompute_num_layers", not_modelled, "1"},
    {"optimizer_cpu_offload", named},
    {"optimizer_offload_fraction", named},
    {"main_grads_dtype", not_modelled, "fp32"},
    {"main_params_dtype", not_modelled, "fp32"},
    {"exp_avg_dtype", not_modelled, "fp32"},
    {"exp_avg_sq_dtype", not_modelled, "fp32"},
    {"use_precision_aware_optimizer"},
    {"cross_entropy_loss_fusion", named},
    {"attention_backend", named},
    {"moe_grouped_gemm", not_modelled, "true"},
    {"moe_permute_fusion", not_modelled, "true"},
    {"moe_aux_loss_coeff"},
    {"moe_router_load_balancing_type"},
    {"moe_shared_expert_overlap"},
    {"moe_token_dispatcher_type", not_modelled, "alltoall"},
    {"moe_enable_deepep", not_modelled, "false"},
    {"moe_expert_capacity_factor", not_modelled},
    {"moe_pad_expert_input_to_capacity", not_modelled, "false"},
    {"moe_layer_recompute", not_modelled, "false"},
    {"optimizer", not_modelled, "adam"},
    {"use_distributed_optimizer", not_modelled, "true"},
    {"use_megatron_fsdp", not_modelled, "false"},
    {"accumulate_allreduce_grads_in_fp32", not_modelled, "true"},
    {"gradient_accumulation_fusion", not_modelled, "true"},
    {"cross_entropy_fusion_impl", not_modelled, "native"},
    {"recompute_modules", not_modelled, "core_attn"},
    {"fp8_format", not_modelled},
    {"fp8_param_gather", not_modelled, "false"},
    {"fp4_format", not_modelled},
    {"fp4_param_gather", not_modelled, "false"},
    {"mtp_num_layers", not_modelled, "0"},
    {"virtual_pipeline_model_parallel_size", not_modelled, "1"},
    {"pipeline_model_parallel_layout", not_modelled},
    {"decoder_first_pipeline_num_layers", not_modelled},
    {"decoder_last_pipeline_num_layers", not_modelled},
};

inline constexpr LaunchKey kOpenRlhfKeys[] = {
    {"pretrain", Means::model},
    {"reward_pretrain", post, "reward_model"},
    {"critic_pretrain", post, "critic_model"},
    {"ref_pretrain", post, "reference_model"},
    {"advantage_estimator", named},
    {"micro_train_batch_size", training, "batch_size"},
    {"micro_rollout_batch_size", post, "log_prob_batch"},
    {"n_samples_per_prompt", post, "num_generations"},
    {"prompt_max_len", post, "prompt_length"},
    {"generate_max_len", post, "completion_length"},
    {"max_len", named},
    {"packing_samples", named},
    {"zero_stage", named},
    {"bf16", named},
    {"flash_attn", named},
    {"attn_implementation", named},
    {"gradient_checkpointing", named},
    {"adam_offload", named},
    {"lora_rank", named},
    {"target_modules", named},
    {"load_in_4bit", named},
    {"colocate_all_models", named},
    {"vllm_num_engines", named},
    {"vllm_tensor_parallel_size", post, "rollout_tensor_parallel"},
    {"vllm_gpu_memory_utilization", post, "gpu_memory_utilization"},
    {"vllm_enable_sleep", named},
    {"deepspeed_enable_sleep", named},
    {"enforce_eager", post, "enforce_eager"},
    {"init_kl_coef", named},
    {"actor_num_gpus_per_node", named},
    {"actor_num_nodes", named},
    {"ring_attn_size", post, "sequence_ranks"},
    {"entropy_loss_coef", named},
    {"lora_dropout", training, "lora_dropout"},
    {"use_dynamic_batch", named},
    {"train_max_tokens_per_gpu", named},
    {"rollout_max_tokens_per_gpu", post, "log_prob_tokens"},
    {"ref_reward_offload", post, "reference_offload"},
    {"reward_offload", not_modelled, "false"},
    {"param_dtype", not_modelled, "bf16"},
    {"grad_accum_dtype", not_modelled},
    {"ds_tensor_parallel_size", not_modelled, "1"},
    {"use_liger_kernel", named},
    {"enable_ema", not_modelled, "false"},
    {"optim", named},
    {"aux_loss_coef"},
    {"freeze_visual_encoder", not_modelled, "false"},
    {"nll_loss_coef"},
    {"max_images_per_prompt", not_modelled, "0"},
    {"async_train"},
    {"env:*"},
};

/// The names that OpenRLHF's settings have since 0.9, and those that they had before. Source: OpenRLHF (2026-08),
/// cli/train_ppo_ray.py, train_dpo.py and train_rm.py.
inline constexpr std::pair<std::string_view, std::string_view> kOpenRlhfNames[] = {
    {"actor.model_name_or_path", "pretrain"},
    {"model.model_name_or_path", "pretrain"},
    {"critic.model_name_or_path", "critic_pretrain"},
    {"reward.model_name_or_path", "reward_pretrain"},
    {"ref.model_name_or_path", "ref_pretrain"},
    {"reward.remote_url", "remote_rm_url"},
    {"algo.advantage.estimator", "advantage_estimator"},
    {"algo.kl.init_coef", "init_kl_coef"},
    {"actor.entropy_coef", "entropy_loss_coef"},
    {"actor.aux_loss_coef", "aux_loss_coef"},
    {"model.aux_loss_coef", "aux_loss_coef"},
    {"model.nll_loss_coef", "nll_loss_coef"},
    {"actor.freeze_visual_encoder", "freeze_visual_encoder"},
    {"actor.gradient_checkpointing_enable", "gradient_checkpointing"},
    {"model.gradient_checkpointing_enable", "gradient_checkpointing"},
    {"actor.num_gpus_per_node", "actor_num_gpus_per_node"},
    {"actor.num_nodes", "actor_num_nodes"},
    {"actor.optim", "optim"},
    {"train.micro_batch_size", "micro_train_batch_size"},
    {"train.colocate_all", "colocate_all_models"},
    {"train.dynamic_batch_enable", "use_dynamic_batch"},
    {"train.max_tokens_per_gpu", "train_max_tokens_per_gpu"},
    {"train.enable_ema", "enable_ema"},
    {"rollout.micro_batch_size", "micro_rollout_batch_size"},
    {"rollout.n_samples_per_prompt", "n_samples_per_prompt"},
    {"rollout.max_new_tokens", "generate_max_len"},
    {"rollout.max_tokens_per_gpu", "rollout_max_tokens_per_gpu"},
    {"data.max_len", "max_len"},
    {"data.max_images_per_prompt", "max_images_per_prompt"},
    {"ds.packing_samples", "packing_samples"},
    {"ds.zero_stage", "zero_stage"},
    {"ds.attn_implementation", "attn_implementation"},
    {"ds.adam_offload", "adam_offload"},
    {"ds.enable_sleep", "deepspeed_enable_sleep"},
    {"ds.lora.rank", "lora_rank"},
    {"ds.lora.dropout", "lora_dropout"},
    {"ds.lora.target_modules", "target_modules"},
    {"ds.load_in_4bit", "load_in_4bit"},
    {"ds.param_dtype", "param_dtype"},
    {"ds.grad_accum_dtype", "grad_accum_dtype"},
    {"ds.ring_attn_size", "ring_attn_size"},
    {"ds.tensor_parallel_size", "ds_tensor_parallel_size"},
    {"ds.use_liger_kernel", "use_liger_kernel"},
    {"vllm.num_engines", "vllm_num_engines"},
    {"vllm.tensor_parallel_size", "vllm_tensor_parallel_size"},
    {"vllm.gpu_memory_utilization", "vllm_gpu_memory_utilization"},
    {"vllm.enable_sleep", "vllm_enable_sleep"},
    {"vllm.enforce_eager", "enforce_eager"},
    {"ref.offload", "ref_reward_offload"},
    {"reward.offload", "reward_offload"},
};

/// Source: slime (2026-08), slime/utils/arguments.py and scripts; the rest are Megatron-LM's and SGLang's own.
inline constexpr LaunchKey kSlimeKeys[] = {
    {"hf_checkpoint", post, "actor_rollout_ref.model.path"},
    {"actor_num_nodes", named},
    {"actor_num_gpus_per_node", named},
    {"rollout_num_gpus"},
    {"colocate", named},
    {"offload*", named},
    {"no_offload*"},
    {"release_train", not_modelled, "false"},
    {"rollout_num_gpus_per_engine", post, "actor_rollout_ref.rollout.tensor_model_parallel_size"},
    {"sglang_mem_fraction_static", post, "actor_rollout_ref.rollout.gpu_memory_utilization"},
    {"sglang_context_length", post, "actor_rollout_ref.rollout.max_model_len"},
    {"rollout_max_context_len", named},
    {"sglang_disable_cuda_graph", post, "actor_rollout_ref.rollout.enforce_eager"},
    {"sglang_max_running_requests", post, "actor_rollout_ref.rollout.max_num_seqs"},
    {"sglang_cuda_graph_*", not_modelled},
    {"sglang_speculative_*", not_modelled},
    {"sglang_enable_dp_attention", not_modelled, "false"},
    {"sglang_dp_size", not_modelled, "1"},
    {"sglang_ep_size", not_modelled, "1"},
    {"sglang_quantization", not_modelled},
    {"sglang_kv_cache_dtype", not_modelled, "auto"},
    {"sglang_config", not_modelled},
    {"sglang_*"},
    {"router_*"},
    {"rollout_max_prompt_len", post, "data.max_prompt_length"},
    {"rollout_max_response_len", post, "data.max_response_length"},
    {"n_samples_per_prompt", post, "actor_rollout_ref.rollout.n"},
    {"global_batch_size", named},
    {"num_steps_per_rollout", named},
    {"rollout_batch_size", named},
    {"micro_batch_size", named},
    {"use_dynamic_batch_size", named},
    {"max_tokens_per_gpu", named},
    {"log_probs_max_tokens_per_gpu", named},
    {"log_probs_chunk_size", not_modelled, "-1"},
    {"recompute_loss_function", not_modelled, "false"},
    {"tensor_model_parallel_size", named},
    {"pipeline_model_parallel_size", named},
    {"context_parallel_size", named},
    {"expert_model_parallel_size", named},
    {"expert_tensor_parallel_size", named},
    {"sequence_parallel", named},
    {"recompute_granularity", named},
    {"recompute_method", not_modelled, "uniform"},
    {"recompute_num_layers", not_modelled, "1"},
    {"recompute_modules", not_modelled},
    {"advantage_estimator", named},
    {"loss_type", named},
    {"use_kl_loss", named},
    {"kl_coef", named},
    {"keep_old_actor", not_modelled, "false"},
    {"entropy_coef", post, "actor_rollout_ref.actor.entropy_coeff"},
    {"optimizer", not_modelled, "adam"},
    {"optimizer_cpu_offload", named},
    {"optimizer_offload_fraction", named},
    {"use_precision_aware_optimizer"},
    {"use_stateless_adam", not_modelled, "false"},
    {"accumulate_allreduce_grads_in_fp32", not_modelled, "true"},
    {"grad_reduce_in_bf16", not_modelled, "false"},
    {"use_distributed_optimizer", not_modelled, "true"},
    {"attention_backend", not_modelled, "flash"},
    {"moe_token_dispatcher_type", not_modelled, "alltoall"},
    {"moe_enable_deepep", not_modelled, "false"},
    {"fp8_*", not_modelled},
    {"fp8", not_modelled},
    {"mtp_num_layers", not_modelled, "0"},
    {"enable_mtp_training", not_modelled, "false"},
    {"decoder_*_pipeline_num_layers", not_modelled},
    {"decoder_last_pipeline_num_layers", not_modelled},
    {"decoder_first_pipeline_num_layers", not_modelled},
    {"only_train_params_name_list", not_modelled},
    {"freeze_params_name_list", not_modelled},
    {"freeze_indexer"},
    {"opd_teacher_load", not_modelled},
    {"use_opd", not_modelled, "false"},
    {"megatron_config_path", not_modelled},
    {"train_backend", not_modelled, "megatron"},
    {"custom_config_path", not_modelled},
    {"eval_*"},
    {"n_samples_per_eval_prompt"},
    {"debug_*"},
    {"env:PYTORCH_CUDA_ALLOC_CONF", named},
    {"env:*"},
};

/// What changes no memory of slime's, or is the model that its `hf_checkpoint` is.
inline constexpr std::string_view kOfSlime =
    "adam_* add_bias_linear add_qkv_bias advantage_* allgather_cp apply_chat_template* apply_layernorm_1p async_save "
    "attention_dropout attention_output_gate attention_softmax_in_fp32 balance_by_flops balance_data bf16 "
    "buffer_filter_path calculate_per_token_loss check_weight_update_equal ci_* ckpt_* clip_grad custom_* "
    "data_pad_size_multiplier data_source_path deterministic_mode disable_bias_linear "
    "disable_compute_advantages_and_returns disable_grpo_std_normalization disable_rewards_normalization "
    "disable_rollout_global_dataset disable_wandb_random_suffix distributed_* dump_details "
    "dynamic_sampling_filter_path eps_clip* fetch_trajectory_retry_times ffn_hidden_size gamma get_mismatch_metrics "
    "group_query_attention group_rm hidden_dropout hidden_size http_proxy input_key kl_loss_coef kl_loss_type "
    "kv_channels kv_lora_rank label_key lambd load load_debug_rollout_data* load_forge_rollout_data "
    "log_correct_samples log_multi_turn log_passrate log_reward_category loss_mask_type lr lr_* "
    "make_vocab_size_divisible_by mask_offpolicy_in_partial_rollout max_position_embeddings megatron_deepgemm_* "
    "memory_recorder memory_snapshot_* metadata_key min_batch_collection_ratio min_lr model_name moe_aux_loss_coeff "
    "moe_ffn_hidden_size moe_grouped_gemm moe_layer_freq moe_permute_fusion moe_router_* moe_shared_expert_gate "
    "moe_shared_expert_intermediate_size moe_shared_expert_overlap moe_token_drop_policy mscale mscale_all_dim "
    "mtp_loss_scaling_factor multi_latent_attention multimodal_keys no_check_for_nan_in_loss_and_grad "
    "no_gradient_accumulation_fusion no_masked_softmax_fusion no_position_embedding no_rope_fusion no_save_optim "
    "norm_epsilon normalization normalize_advantages num_attention_heads num_critic_only_steps num_epoch num_experts "
    "num_gpus_per_node num_layers num_query_groups num_rollout opd_ckpt_step opd_kl_coef opd_teacher_ckpt_step "
    "opd_type opsm_delta over_sampling_batch_size overlap_cpu_optimizer_d2h_h2d padded_vocab_size partial_rollout "
    "position_embedding_type post_mlp_layernorm post_self_attn_layernorm prefill_num_servers profile_target "
    "prompt_data q_lora_rank qk_head_dim qk_layernorm qk_pos_emb_head_dim qwen_gdn_backend record_memory_history "
    "ref_ckpt_step ref_load ref_update_interval reset_optimizer_states reward_key rm_* "
    "rollout_all_samples_process_path rollout_buffer_url rollout_data_* rollout_external_engine_addrs "
    "rollout_function_path rollout_health_check_* rollout_sample_* rollout_seed rollout_shuffle "
    "rollout_skip_special_tokens rollout_stop* rollout_task_type rollout_temperature rollout_top_k rollout_top_p "
    "rotary_base rotary_interleaved rotary_percent rotary_scaling_factor runtime_env_json save save_* seed "
    "seq_length skip_eval_before_train spec start_rollout_id swiglu tb_* tis_clip* tool_key train_env_vars "
    "transformer_impl untie_embeddings_and_output_weights update_weight_* update_weights_interval "
    "use_distributed_post use_fault_tolerance use_gated_attention use_opsm use_rollout_entropy use_rollout_logprobs "
    "use_rollout_routing_replay use_rope_scaling use_rotary_position_embeddings use_routing_replay use_tensorboard "
    "use_tis use_unbiased_kl use_wandb v_head_dim value_clip vocab_size wandb_* weight_decay";

}  // namespace launch_detail

}  // namespace gpumem::posttrain
