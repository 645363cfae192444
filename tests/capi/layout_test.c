/* The layout of every struct on 64-bit machines, to the byte: what callers were compiled with must stay. Nothing here
   is ever changed but by adding what a later version appends. */
#include <stddef.h>

#include "gpumem/gpumem.h"

#define AT(type, field, offset) typedef char type##_##field##_moved[offsetof(type, field) == (offset) ? 1 : -1]
#define SIZE(type, bytes) typedef char type##_resized[sizeof(type) == (bytes) ? 1 : -1]
#define VALUE(name, value) typedef char name##_changed[(name) == (value) ? 1 : -1]

#if UINTPTR_MAX == UINT64_MAX
SIZE(gpumem_read_options, 32);
AT(gpumem_read_options, size, 0);
AT(gpumem_read_options, deadline_ms, 8);
AT(gpumem_read_options, largest_bytes, 16);
AT(gpumem_read_options, lenient, 24);
AT(gpumem_read_options, reserved, 28);

SIZE(gpumem_summary_info, 64);
AT(gpumem_summary_info, format, 8);
AT(gpumem_summary_info, layers, 16);
AT(gpumem_summary_info, unknown_layers, 24);
AT(gpumem_summary_info, parameters, 32);
AT(gpumem_summary_info, trainable_parameters, 40);
AT(gpumem_summary_info, printed_batch_size, 48);
AT(gpumem_summary_info, warnings, 56);

SIZE(gpumem_job, 160);
AT(gpumem_job, deadline_ms, 8);
AT(gpumem_job, batch_size, 16);
AT(gpumem_job, seq_length, 24);
AT(gpumem_job, samples, 32);
AT(gpumem_job, accumulate, 40);
AT(gpumem_job, input, 48);
AT(gpumem_job, gpu, 56);
AT(gpumem_job, optimizer, 64);
AT(gpumem_job, precision, 72);
AT(gpumem_job, estimator, 80);
AT(gpumem_job, model, 88);
AT(gpumem_job, zero_grad, 96);
AT(gpumem_job, software, 104);
AT(gpumem_job, alloc_conf, 112);
AT(gpumem_job, no_foreach, 120);
AT(gpumem_job, fused, 124);
AT(gpumem_job, validation, 128);
AT(gpumem_job, checkpointing, 132);
AT(gpumem_job, summary, 136);
AT(gpumem_job, lenient, 144);
AT(gpumem_job, reserved, 148);
AT(gpumem_job, more_options, 152);

SIZE(gpumem_job_option, 48);
AT(gpumem_job_option, name, 8);
AT(gpumem_job_option, flag, 16);
AT(gpumem_job_option, value, 24);
AT(gpumem_job_option, usual, 32);
AT(gpumem_job_option, help, 40);

SIZE(gpumem_estimate_result, 240);
AT(gpumem_estimate_result, expected_bytes, 8);
AT(gpumem_estimate_result, lower_bytes, 16);
AT(gpumem_estimate_result, upper_bytes, 24);
AT(gpumem_estimate_result, allocated_bytes, 32);
AT(gpumem_estimate_result, reserved_bytes, 40);
AT(gpumem_estimate_result, device_bytes, 48);
AT(gpumem_estimate_result, capacity_bytes, 56);
AT(gpumem_estimate_result, context_bytes, 64);
AT(gpumem_estimate_result, parameters_bytes, 72);
AT(gpumem_estimate_result, gradients_bytes, 80);
AT(gpumem_estimate_result, optimizer_bytes, 88);
AT(gpumem_estimate_result, activations_bytes, 96);
AT(gpumem_estimate_result, workspace_bytes, 104);
AT(gpumem_estimate_result, fragmentation_bytes, 112);
AT(gpumem_estimate_result, upper_coverage, 120);
AT(gpumem_estimate_result, retries, 128);
AT(gpumem_estimate_result, layers, 136);
AT(gpumem_estimate_result, unknown_layers, 144);
AT(gpumem_estimate_result, fits, 152);
AT(gpumem_estimate_result, out_of_domain, 156);
AT(gpumem_estimate_result, assumed, 160);
AT(gpumem_estimate_result, assumed_size, 168);
AT(gpumem_estimate_result, assumptions, 176);
AT(gpumem_estimate_result, gpus, 184);
AT(gpumem_estimate_result, most_needed_bytes, 192);
AT(gpumem_estimate_result, verdict, 200);
AT(gpumem_estimate_result, reserved, 204);
AT(gpumem_estimate_result, temporaries_bytes, 208);
AT(gpumem_estimate_result, gathered_bytes, 216);
AT(gpumem_estimate_result, communication_bytes, 224);
AT(gpumem_estimate_result, upper_uncut_bytes, 232);

SIZE(gpumem_fit_result, 64);
AT(gpumem_fit_result, batch_size, 8);
AT(gpumem_fit_result, estimates, 16);
AT(gpumem_fit_result, at_least, 24);
AT(gpumem_fit_result, has_next, 28);
AT(gpumem_fit_result, sequence_length, 32);
AT(gpumem_fit_result, model_ends, 40);
AT(gpumem_fit_result, reserved, 44);
AT(gpumem_fit_result, safe, 48);
AT(gpumem_fit_result, without_flushes, 56);

SIZE(gpumem_server_gpu, 56);
AT(gpumem_server_gpu, id, 8);
AT(gpumem_server_gpu, total_bytes, 16);
AT(gpumem_server_gpu, used_bytes, 24);
AT(gpumem_server_gpu, set_aside_bytes, 32);
AT(gpumem_server_gpu, smact, 40);
AT(gpumem_server_gpu, jobs, 48);
AT(gpumem_server_gpu, exclusive, 52);

SIZE(gpumem_request, 56);
AT(gpumem_request, id, 8);
AT(gpumem_request, gpus, 16);
AT(gpumem_request, memory_bytes, 24);
AT(gpumem_request, alone_bytes, 32);
AT(gpumem_request, smact, 40);
AT(gpumem_request, exclusive, 48);

SIZE(gpumem_placement, 40);
AT(gpumem_placement, policy, 8);
AT(gpumem_placement, smact_cap, 16);
AT(gpumem_placement, free_floor_bytes, 24);
AT(gpumem_placement, idle_first, 32);

SIZE(gpumem_decision, 64);
AT(gpumem_decision, gpus, 8);
AT(gpumem_decision, gpus_capacity, 16);
AT(gpumem_decision, gpus_count, 24);
AT(gpumem_decision, explanation, 32);
AT(gpumem_decision, explanation_size, 40);
AT(gpumem_decision, nearest, 48);
AT(gpumem_decision, refusal, 56);
AT(gpumem_decision, open, 60);

SIZE(gpumem_plan_question, 48);
AT(gpumem_plan_question, global_batch, 8);
AT(gpumem_plan_question, gpus, 16);
AT(gpumem_plan_question, gpus_per_node, 24);
AT(gpumem_plan_question, network_gbps, 32);
AT(gpumem_plan_question, framework, 40);

SIZE(gpumem_layout, 192);
AT(gpumem_layout, framework, 8);
AT(gpumem_layout, sharding, 16);
AT(gpumem_layout, schedule, 24);
AT(gpumem_layout, checkpointing, 32);
AT(gpumem_layout, gpus, 40);
AT(gpumem_layout, data_parallel, 48);
AT(gpumem_layout, sharding_ranks, 56);
AT(gpumem_layout, tensor_parallel, 64);
AT(gpumem_layout, pipeline_parallel, 72);
AT(gpumem_layout, virtual_stages, 80);
AT(gpumem_layout, context_parallel, 88);
AT(gpumem_layout, expert_parallel, 96);
AT(gpumem_layout, micro_batch, 104);
AT(gpumem_layout, accumulate, 112);
AT(gpumem_layout, expected_bytes, 120);
AT(gpumem_layout, upper_bytes, 128);
AT(gpumem_layout, headroom_bytes, 136);
AT(gpumem_layout, step_seconds, 144);
AT(gpumem_layout, tokens_per_second_per_gpu, 152);
AT(gpumem_layout, sequence_parallel, 160);
AT(gpumem_layout, reserved, 164);
AT(gpumem_layout, settings, 168);
AT(gpumem_layout, settings_size, 176);
AT(gpumem_layout, settings_length, 184);

SIZE(gpumem_serving_result, 136);
AT(gpumem_serving_result, requested_bytes, 8);
AT(gpumem_serving_result, expected_bytes, 16);
AT(gpumem_serving_result, weights_bytes, 24);
AT(gpumem_serving_result, activation_bytes, 32);
AT(gpumem_serving_result, outside_pytorch_bytes, 40);
AT(gpumem_serving_result, cuda_graph_bytes, 48);
AT(gpumem_serving_result, kv_cache_bytes, 56);
AT(gpumem_serving_result, kv_cache_needed_bytes, 64);
AT(gpumem_serving_result, kv_cache_blocks, 72);
AT(gpumem_serving_result, kv_cache_tokens, 80);
AT(gpumem_serving_result, max_model_len, 88);
AT(gpumem_serving_result, largest_max_model_len, 96);
AT(gpumem_serving_result, max_concurrency, 104);
AT(gpumem_serving_result, verdict, 112);
AT(gpumem_serving_result, starts, 116);
AT(gpumem_serving_result, reason, 120);
AT(gpumem_serving_result, reason_size, 128);

SIZE(gpumem_post_training_result, 88);
AT(gpumem_post_training_result, expected_bytes, 8);
AT(gpumem_post_training_result, lower_bytes, 16);
AT(gpumem_post_training_result, upper_bytes, 24);
AT(gpumem_post_training_result, allocated_bytes, 32);
AT(gpumem_post_training_result, reserved_bytes, 40);
AT(gpumem_post_training_result, rollout_bytes, 48);
AT(gpumem_post_training_result, gpus, 56);
AT(gpumem_post_training_result, verdict, 64);
AT(gpumem_post_training_result, fits, 68);
AT(gpumem_post_training_result, phase, 72);
AT(gpumem_post_training_result, phase_size, 80);
#endif

VALUE(GPUMEM_OK, 0);
VALUE(GPUMEM_INVALID_ARGUMENT, 1);
VALUE(GPUMEM_UNKNOWN_GPU, 2);
VALUE(GPUMEM_UNREADABLE_FILE, 3);
VALUE(GPUMEM_UNKNOWN_FORMAT, 4);
VALUE(GPUMEM_MALFORMED_INPUT, 5);
VALUE(GPUMEM_UNKNOWN_LAYER, 6);
VALUE(GPUMEM_MISSING_INFORMATION, 7);
VALUE(GPUMEM_OVERFLOW, 8);
VALUE(GPUMEM_DEADLINE_EXCEEDED, 9);
VALUE(GPUMEM_OUT_OF_MEMORY, 10);
VALUE(GPUMEM_INTERNAL_ERROR, 11);
VALUE(GPUMEM_PLACED, 0);
VALUE(GPUMEM_REFUSED_NEVER, 1);
VALUE(GPUMEM_REFUSED_OCCUPIED, 2);
VALUE(GPUMEM_REFUSED_NO_ESTIMATE, 3);
VALUE(GPUMEM_REFUSED_MEMORY, 4);
VALUE(GPUMEM_REFUSED_FREE_FLOOR, 5);
VALUE(GPUMEM_REFUSED_SMACT, 6);

int main(void) { return 0; }
