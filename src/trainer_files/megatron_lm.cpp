#include "megatron_lm.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "gpumem/architectures/megatron_arguments.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "megatron_bridge.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace megatron_lm_detail {

/// What describes the model, beside what architectures::kMegatronRun has.
constexpr std::string_view kModelFields[] = {"add_bias_linear",
                                             "add_qkv_bias",
                                             "attention_dropout",
                                             "decoder_num_layers",
                                             "encoder_num_layers",
                                             "ffn_hidden_size",
                                             "first_last_layers_bf16",
                                             "fp8_param_gather",
                                             "hidden_dropout",
                                             "hidden_size",
                                             "hybrid_layer_pattern",
                                             "hybrid_override_pattern",
                                             "is_hybrid_model",
                                             "kv_channels",
                                             "kv_lora_rank",
                                             "mamba_head_dim",
                                             "mamba_num_groups",
                                             "mamba_num_heads",
                                             "mamba_state_dim",
                                             "min_offloaded_tensor_size",
                                             "moe_expert_capacity_factor",
                                             "moe_ffn_hidden_size",
                                             "moe_layer_freq",
                                             "moe_pad_expert_input_to_capacity",
                                             "moe_router_enable_expert_bias",
                                             "moe_router_force_load_balancing",
                                             "moe_router_topk",
                                             "moe_shared_expert_intermediate_size",
                                             "mtp_num_layers",
                                             "mtp_use_repeated_layer",
                                             "multi_latent_attention",
                                             "normalization",
                                             "num_attention_heads",
                                             "num_experts",
                                             "num_layers",
                                             "num_query_groups",
                                             "offload_modules",
                                             "q_lora_rank",
                                             "qk_head_dim",
                                             "qk_layernorm",
                                             "qk_pos_emb_head_dim",
                                             "rotary_percent",
                                             "squared_relu",
                                             "swiglu",
                                             "tp_comm_overlap",
                                             "untie_embeddings_and_output_weights",
                                             "v_head_dim"};

/// What changes no memory of the GPU, or too little to see.
constexpr std::string_view kWithoutEffect[] = {"adam_*",
                                               "app_*",
                                               "apply_layernorm_1p",
                                               "apply_wd_to_qk_layernorm",
                                               "async_*",
                                               "auto_detect_ckpt_format",
                                               "check_*",
                                               "checkpoint_*",
                                               "ckpt_*",
                                               "clip_grad",
                                               "config_logger_dir",
                                               "cuda_graph_modules",
                                               "cuda_graph_scope",
                                               "cuda_graph_use_single_mempool",
                                               "cuda_graph_warmup_steps",
                                               "data_*",
                                               "dataloader_*",
                                               "dataset_*",
                                               "ddp_*",
                                               "decoupled_*",
                                               "disable_gloo_process_groups",
                                               "dist_ckpt_*",
                                               "distributed_*",
                                               "empty_unused_memory_level",
                                               "enable_experimental",
                                               "enable_ft_package",
                                               "enable_one_logger",
                                               "end_weight_decay",
                                               "env:*",
                                               "eod_mask_loss",
                                               "eval_*",
                                               "exit_*",
                                               "finetune",
                                               "ft_*",
                                               "fp8_amax_*",
                                               "fp8_interval",
                                               "fp8_margin",
                                               "fully_parallel_*",
                                               "high_priority_stream_groups",
                                               "hysteresis",
                                               "init_method_*",
                                               "initial_loss_scale",
                                               "keep_*",
                                               "load",
                                               "local_rank",
                                               "log_*",
                                               "logging_*",
                                               "loss_scale*",
                                               "lr*",
                                               "make_vocab_size_divisible_by",
                                               "manual_gc*",
                                               "merge_file",
                                               "min_loss_scale",
                                               "min_lr",
                                               "moe_aux_loss_coeff",
                                               "moe_deepep_num_sms",
                                               "moe_enable_deepep",
                                               "moe_flex_dispatcher_backend",
                                               "moe_hybridep_num_sms",
                                               "moe_per_layer_logging",
                                               "moe_router_load_balancing_type",
                                               "moe_router_score_function",
                                               "moe_shared_expert_overlap",
                                               "moe_token_dispatcher_type",
                                               "moe_token_drop_policy",
                                               "moe_z_loss_coeff",
                                               "mtp_loss_scaling_factor",
                                               "nccl_communicator_config_path",
                                               "no_barrier_with_level_1_timing",
                                               "no_bias_gelu_fusion",
                                               "no_align_*",
                                               "no_async_tensor_model_parallel_allreduce",
                                               "no_check_for_nan_in_loss_and_grad",
                                               "no_load_*",
                                               "no_mmap_bin_files",
                                               "no_one_logger",
                                               "no_overlap_p2p_communication",
                                               "no_position_embedding",
                                               "no_rope_fusion",
                                               "no_save_*",
                                               "num_dataset_builder_threads",
                                               "num_workers",
                                               "object_storage_cache_path",
                                               "one_logger_*",
                                               "override_opt_param_scheduler",
                                               "overlap_p2p_communication",
                                               "per_split_data_args_path",
                                               "profile*",
                                               "record_memory_history",
                                               "rerun_mode",
                                               "reset_attention_mask",
                                               "reset_position_ids",
                                               "rope_scaling_factor",
                                               "rotary_seq_len_interpolation_factor",
                                               "save*",
                                               "seed",
                                               "sgd_momentum",
                                               "short_seq_prob",
                                               "spec",
                                               "special_tokens",
                                               "split",
                                               "start_weight_decay",
                                               "step_batch_size_schedule",
                                               "tensorboard_*",
                                               "test_data_path",
                                               "tiktoken_*",
                                               "timing_*",
                                               "tokenizer_*",
                                               "train_data_path",
                                               "train_iters",
                                               "train_samples",
                                               "trust_remote_code",
                                               "use_checkpoint_*",
                                               "use_dist_ckpt",
                                               "use_fused_weighted_squared_relu",
                                               "use_persistent_ckpt_worker",
                                               "use_pytorch_profiler",
                                               "use_rope_scaling",
                                               "valid_data_path",
                                               "vocab_file",
                                               "wandb_*",
                                               "warmup",
                                               "weight_decay",
                                               "weight_decay_incr_style",
                                               "window_size"};

/// What changes memory, and has no option.
constexpr std::string_view kNotModelled[] = {"fp16_lm_cross_entropy",
                                             "heterogeneous_layers_config_path",
                                             "hierarchical_context_parallel_sizes",
                                             "linear_attention_freq",
                                             "moe_use_upcycling",
                                             "no_bias_swiglu_fusion",
                                             "quick_geglu",
                                             "use_torch_fsdp2",
                                             "yaml_cfg"};

/// Vocabularies of tokenizers whose files are all alike.
constexpr std::pair<std::string_view, std::int64_t> kVocabularies[] = {
    {"GPT2BPETokenizer", 50257}, {"Llama2Tokenizer", 32000}, {"BertWordPieceLowerCase", 30522}};

/// The text in quotes; nothing for one with bytes that no argument has.
std::optional<std::string> in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte > 0x7E) return std::nullopt;
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + "\"";
}

/// The setting as JSON: a list is a text with blanks between its words.
std::optional<std::string> json_of(const Setting& setting) {
  switch (setting.kind) {
    case Setting::Kind::null: return "null";
    case Setting::Kind::boolean: return setting.word;
    case Setting::Kind::integer:
    case Setting::Kind::real: {
      const bool plain = !setting.word.empty() && setting.word.front() >= '0' && setting.word.front() <= '9';
      return plain ? std::optional(setting.word) : std::nullopt;
    }
    case Setting::Kind::text: return in_quotes(setting.word);
    case Setting::Kind::list: {
      std::string words;
      for (const Setting& item : setting.items) words += (words.empty() ? "" : " ") + item.word;
      return in_quotes(words);
    }
    case Setting::Kind::object: break;
  }
  return std::nullopt;
}

class MegatronReader {
 public:
  explicit MegatronReader(TrainerReading& from) : from_(from) {}

  void read() {
    from_.want("loop", "megatron");
    from_.want("batch_size", from_.word("micro_batch_size").value_or("1"), "micro_batch_size");
    from_.job().global_batch = from_.whole("global_batch_size").value_or(0);
    const bool encodes = from_.root().field("seq_length") == nullptr;
    from_.take(encodes ? "encoder_seq_length" : "seq_length", "seq_length");
    const bool half = from_.on("fp16");
    from_.want("precision", from_.on("bf16") ? "bf16-mixed" : half ? "fp16-mixed" : "fp32", half ? "fp16" : "bf16");
    read_layout();
    read_sharding();
    read_optimizer();
    read_recomputation();
    read_kernels();
    read_megatron_float8(from_);
    if (bridge_model(from_.root()).empty()) write_model();
    else know_model();
    read_bridge_parts(from_);
    from_.know(kGpusKey);
    for (const std::string_view path : kNotModelled) from_.not_modelled(path);
    from_.without_effect(kWithoutEffect);
  }

 private:
  std::int64_t size(std::string_view key, std::int64_t usual = 1) {
    return std::max<std::int64_t>(from_.whole(key).value_or(usual), 1);
  }

  void read_layout() {
    from_.take("tensor_model_parallel_size", "tensor_parallel");
    from_.take("pipeline_model_parallel_size", "pipeline_parallel");
    from_.take("context_parallel_size", "context_parallel");
    from_.take("expert_model_parallel_size", "expert_parallel");
    // Megatron switches it off where there is nothing to share (validate_args()).
    const bool shares = from_.on("sequence_parallel") && size("tensor_model_parallel_size") > 1;
    if (shares) from_.want("sequence_parallel", "true", "sequence_parallel");
    const std::int64_t stages = size("pipeline_model_parallel_size");
    if (stages == 1) return;
    std::int64_t each = size("num_virtual_stages_per_pipeline_rank");
    if (const auto layers = from_.whole("num_layers_per_virtual_pipeline_stage"); layers && *layers > 0) {
      each = std::max<std::int64_t>(size("num_layers") / stages / *layers, 1);
    }
    if (const auto layout = parallel::layers_of_stages(from_.word("pipeline_model_parallel_layout").value_or(""))) {
      each = std::max<std::int64_t>(static_cast<std::int64_t>(layout->size()) / stages, 1);
    }
    if (each == 1) return;
    from_.want("virtual_stages", std::to_string(each), "num_layers_per_virtual_pipeline_stage");
    from_.want("schedule", "interleaved-1f1b", "num_layers_per_virtual_pipeline_stage");
  }

  void read_sharding() {
    const bool shards = from_.on("use_megatron_fsdp") || from_.on("use_custom_fsdp");
    const std::string strategy = from_.word("data_parallel_sharding_strategy")
                                     .value_or(from_.on("use_megatron_fsdp") ? "optim_grads_params" : "no_shard");
    from_.not_modelled("outer_dp_sharding_strategy", "no_shard");
    std::string sharding = from_.on("use_distributed_optimizer") ? "distributed-optimizer" : "ddp";
    if (shards && strategy == "optim") sharding = "zero-1";
    if (shards && strategy == "optim_grads") sharding = "zero-2";
    if (shards && strategy == "optim_grads_params") sharding = "zero-3";
    from_.want("sharding", std::move(sharding),
               shards ? "data_parallel_sharding_strategy" : "use_distributed_optimizer");
  }

  /// All but Adam and Muon, which ms-swift has as well, by their names.
  void read_optimizer() {
    read_megatron_optimizer(from_);
    const std::string name = from_.word("optimizer").value_or("adam");
    if (name == "adam" || name == "muon" || name == "dist_muon") return;
    std::erase(from_.job().not_modelled, "optimizer " + name);
    from_.want("fused", "false", "optimizer");
    // Its momentum is 0.9 where nobody says otherwise (training/arguments.py: --sgd-momentum).
    const std::string momentum = from_.word("sgd_momentum").value_or("0.9");
    const bool moves = name == "sgd" && momentum.find_first_of("123456789") != std::string::npos;
    from_.want("optimizer", moves ? "sgd-momentum" : name, "optimizer");
  }

  void read_recomputation() {
    const bool selective = from_.on("recompute_activations");
    const std::string kind = from_.word("recompute_granularity").value_or(selective ? "selective" : "");
    const std::string modules = from_.word("recompute_modules").value_or("core_attn");
    const std::string method = from_.word("recompute_method").value_or("uniform");
    const std::string layers = from_.word("recompute_num_layers").value_or("1");
    if (kind == "selective") {
      from_.want("checkpointing", modules == "core_attn" ? "selective-attention" : "selective:" + modules,
                 "recompute_modules");
    } else if (kind == "full" && method == "block") {
      from_.want("checkpointing", "full:" + layers, "recompute_num_layers");
    } else if (kind == "full") {
      from_.want("checkpointing", layers == "1" ? "full" : "joined:" + layers, "recompute_num_layers");
    }
  }

  void read_kernels() {
    const std::string attention = from_.word("attention_backend").value_or("auto");
    const bool local = from_.word("transformer_impl").value_or("") == "local" && !from_.on("use_flash_attn");
    const bool unfused = attention == "unfused" || attention == "local" || (local && attention == "auto");
    from_.want("attention", unfused ? "eager" : "flash", "attention_backend");
    if (from_.on("cross_entropy_loss_fusion")) from_.want("loss", "fused-ce", "cross_entropy_loss_fusion");
  }

  // --- The model ----------------------------------------------------------------------------------------------------

  void put(std::string_view key, std::string_view json) {
    if (!written_.emplace(key).second) return;
    model_.append(model_.empty() ? "{" : ", ").append("\"").append(key).append("\": ").append(json);
  }

  void write_model() {
    const std::string script = from_.word(kScriptKey).value_or("");
    put("_model_family", script == "pretrain_bert.py" ? "\"bert\"" : "\"gpt\"");
    if (from_.on("disable_bias_linear")) put("add_bias_linear", "false");
    if (from_.on("use_rotary_position_embeddings")) put("position_embedding_type", "\"rope\"");
    put("group_query_attention", from_.on("group_query_attention") ? "true" : "false");
    put_hybrid_layers();
    if (const auto rows = padded_vocabulary()) put("padded_vocab_size", std::to_string(*rows));
    for (const Setting& field : from_.root().items) write_field(field);
    from_.job().model = model_ + "}";
  }

  /// The pattern of a hybrid tells how many layers it has: a letter each, up to those that predict further tokens.
  void put_hybrid_layers() {
    std::string pattern = from_.word("hybrid_layer_pattern").value_or("");
    if (pattern.empty()) pattern = from_.word("hybrid_override_pattern").value_or("");
    if (pattern.empty() || from_.root().field("num_layers") != nullptr) return;
    pattern.resize(std::min(pattern.find('/'), pattern.size()));
    std::erase(pattern, '|');
    put("num_layers", std::to_string(pattern.size()));
  }

  static bool known(std::string_view name) {
    return is_among(kModelFields, name) || is_among(architectures::kMegatronRun, name);
  }

  /// Its config has the sizes.
  void know_model() {
    from_.know(kScriptKey);
    for (const Setting& field : from_.root().items) {
      if (known(field.key)) from_.know(field.key);
    }
  }

  void write_field(const Setting& field) {
    const std::string_view key = field.key;
    const bool negated = key.starts_with("no_") && known(key.substr(3)) && field.word == "true";
    if (!negated && !known(key)) return;
    from_.know(key);
    if (negated) return put(key.substr(3), "false");
    if (const auto json = json_of(field)) put(key, *json);
    else from_.job().not_modelled.emplace_back(std::string(key));
  }

  std::optional<std::int64_t> padded_vocabulary() {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const std::int64_t multiple =
        core::bounded_product({size("make_vocab_size_divisible_by", 128), size("tensor_model_parallel_size")});
    if (const auto padded = from_.whole("padded_vocab_size")) return padded;
    const std::int64_t rows = vocabulary();
    if (rows < 1 || rows > kMost || multiple > kMost) {
      from_.job().missing.emplace_back("the size of its vocabulary, which its tokenizer has (--vocab-size in it)");
      return std::nullopt;
    }
    return (rows + multiple - 1) / multiple * multiple;
  }

  /// 0: nobody knows.
  std::int64_t vocabulary() {
    if (const auto given = from_.whole("vocab_size")) return *given;
    const std::string type = from_.word("tokenizer_type").value_or("GPT2BPETokenizer");
    for (const auto& [tokenizer, rows] : kVocabularies) {
      if (tokenizer == type) return rows;
    }
    if (type != "HuggingFaceTokenizer") return 0;
    const auto model = summary::published_model(from_.word("tokenizer_model").value_or(""));
    if (!model) return 0;
    const auto json = core::JsonDocument::parse(model->config);
    if (!json) return 0;
    for (const core::JsonValue& field : json->root().items()) {
      if (field.key() != "vocab_size" || !field.is(core::JsonValue::Kind::integer)) continue;
      from_.job().missing.emplace_back("its tokenizer's own size, for which the model's table of words is taken");
      return field.integer();
    }
    return 0;
  }

  TrainerReading& from_;
  std::set<std::string, std::less<>> written_;
  std::string model_;
};

bool sniff(const Setting& root) {
  const auto has = [&](std::string_view key) { return root.field(key) != nullptr; };
  const bool layers = has("num_layers") || has("encoder_num_layers") || has("hybrid_layer_pattern");
  return layers && has("hidden_size") && has("num_attention_heads") && has("micro_batch_size");
}

void read(TrainerReading& from) { MegatronReader(from).read(); }

}  // namespace megatron_lm_detail
}  // namespace

const TrainerFormat& megatron_lm() {
  static constexpr TrainerFormat kFormat = {"megatron-lm", "", &megatron_lm_detail::sniff, &megatron_lm_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
