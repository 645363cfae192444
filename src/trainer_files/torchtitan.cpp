#include "torchtitan.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "gpumem/core/bytes.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace torchtitan_detail {

/// Tables without any effect on memory.
constexpr std::string_view kWithoutEffect[] = {"checkpoint", "comm",        "env:*",   "fault_tolerance",   "job",
                                               "debug",      "metrics",     "loader*", "memory_estimation", "profiling",
                                               "validator",  "lr_scheduler"};

/// Keys of the other tables that have none.
constexpr std::string_view kKeysWithoutEffect[] = {"activation_checkpoint.debug",
                                                   "activation_checkpoint.determinism_check",
                                                   "activation_checkpoint.early_stop",
                                                   "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
                                                   "activation_checkpoint.preserve_rng_state",
                                                   "activation_checkpoint.visualize_memory_budget_pareto",
                                                   "compile.backend",
                                                   "experimental.custom_args_module",
                                                   "experimental.custom_import",
                                                   "model.hf_assets_path",
                                                   "model.norm_type",
                                                   "model.print_after_conversion",
                                                   "model.tokenizer_path",
                                                   "optimizer.beta1",
                                                   "optimizer.beta2",
                                                   "optimizer.eps",
                                                   "optimizer.lr",
                                                   "optimizer.min_lr_factor",
                                                   "optimizer.weight_decay",
                                                   "parallelism.context_parallel_load_balancer",
                                                   "parallelism.context_parallel_rotate_method",
                                                   "parallelism.enable_async_tensor_parallel",
                                                   "parallelism.enable_compiled_autograd",
                                                   "parallelism.expert_parallel_comm_backend",
                                                   "parallelism.pipeline_parallel_expert_parallel_overlap",
                                                   "quantize.linear",
                                                   "quantize.grouped_mm",
                                                   "training.data_parallel_type",
                                                   "training.dataloader",
                                                   "training.dataset",
                                                   "training.dataset_path",
                                                   "training.debug_moe_force_load_balance",
                                                   "training.deterministic",
                                                   "training.fp8_linear",
                                                   "training.gc_debug",
                                                   "training.gc_freq",
                                                   "training.max_norm",
                                                   "training.mixed_precision_reduce",
                                                   "training.seed",
                                                   "training.steps",
                                                   "training.warmup_steps",
                                                   "validation.dataset",
                                                   "validation.dataset_path",
                                                   "validation.freq",
                                                   "validation.local_batch_size",
                                                   "validation.seq_len",
                                                   "validation.steps"};

struct Flavor {
  std::string_view model;
  std::string_view flavor;
  std::string_view published;  ///< the model of the same sizes
};

constexpr Flavor kFlavors[] = {
    {"llama2", "7B", "meta-llama/Llama-2-7b-hf"},
    {"llama2", "13B", "meta-llama/Llama-2-13b-hf"},
    {"llama2", "70B", "meta-llama/Llama-2-70b-hf"},
    {"llama3", "8B", "meta-llama/Llama-3.1-8B"},
    {"llama3", "70B", "meta-llama/Llama-3.1-70B"},
    {"llama3", "405B", "meta-llama/Llama-3.1-405B"},
    {"qwen3", "0.6B", "Qwen/Qwen3-0.6B"},
    {"qwen3", "1.7B", "Qwen/Qwen3-1.7B"},
    {"qwen3", "4B", "Qwen/Qwen3-4B"},
    {"qwen3", "8B", "Qwen/Qwen3-8B"},
    {"qwen3", "14B", "Qwen/Qwen3-14B"},
    {"qwen3", "32B", "Qwen/Qwen3-32B"},
    {"qwen3", "30B-A3B", "Qwen/Qwen3-30B-A3B"},
    {"qwen3", "235B-A22B", "Qwen/Qwen3-235B-A22B"},
    {"deepseek_v3", "16B", "deepseek-ai/DeepSeek-V2-Lite"},
    {"deepseek_v3", "671B", "deepseek-ai/DeepSeek-V3"},
    {"llama4", "17bx16e", "meta-llama/Llama-4-Scout-17B-16E"},
    {"llama4", "17bx128e", "meta-llama/Llama-4-Maverick-17B-128E"},
};

/// torch's names of pipeline schedules, and whether each rank has two stages.
struct ScheduleName {
  std::string_view name;
  std::string_view schedule;
  bool looped = false;
};

constexpr ScheduleName kScheduleNames[] = {{"1F1B", "1f1b"},
                                           {"GPipe", "gpipe"},
                                           {"Interleaved1F1B", "interleaved-1f1b", true},
                                           {"LoopedBFS", "looped-bfs", true},
                                           {"InterleavedZeroBubble", "interleaved-zero-bubble", true},
                                           {"ZBVZeroBubble", "zbv-zero-bubble", true},
                                           {"DualPipeV", "dual-pipe-v", true}};

class TitanReader {
 public:
  explicit TitanReader(TrainerReading& from) : from_(from) {}

  void read() {
    from_.want("loop", "torchtitan");
    read_model();
    read_batch();
    read_layout();
    read_precision();
    read_checkpoints();
    read_compile();
    read_optimizer();
    read_quantization();
    read_allocator();
    read_other_copies();
    name_others();
  }

 private:
  // Each key that is asked for is known; those of a table that nobody asks for are named in the end.
  std::optional<std::string> word(std::string_view path) {
    asked_.emplace(path);
    return from_.word(path);
  }
  std::optional<std::int64_t> whole(std::string_view path) {
    asked_.emplace(path);
    return from_.whole(path);
  }
  bool on(std::string_view path) { return word(path).value_or("") == "true"; }
  void not_modelled(std::string_view path, std::string_view usual = {}) {
    asked_.emplace(path);
    from_.not_modelled(path, usual);
  }

  /// Before version 0.1 the sizes stood with [training], and young ones with [experimental].
  std::int64_t degree(const std::string& name, std::int64_t usual = 1) {
    for (const char* table : {"parallelism.", "experimental.", "training."}) {
      if (const auto found = whole(table + name)) return *found;
    }
    return usual;
  }

  void read_model() {
    std::string model = word("model.name").value_or("llama3");
    const std::string flavor = word("model.flavor").value_or("debugmodel");
    if (model.ends_with("_ft")) model.resize(model.size() - 3);
    read_simple_fsdp(model);
    // Behind "_" stands the kernel of attention; all of them keep as much as the fused one.
    std::string_view sizes = flavor;
    for (const std::string_view ending : {"_flex", "_varlen", "_irope", "_flex_attn", "_varlen_attn"}) {
      if (sizes.ends_with(ending)) sizes.remove_suffix(ending.size());
    }
    const auto* const row =
        std::ranges::find_if(kFlavors, [&](const Flavor& one) { return one.model == model && one.flavor == sizes; });
    const bool named = flavor.find('/') != std::string::npos;  // of DeepSeek's first port: a name on the hub
    from_.job().model = row != std::end(kFlavors) ? std::string(row->published) : named ? flavor : model + " " + flavor;
    if (model != "llama4" || row == std::end(kFlavors)) return;
    from_.want("images", "0", "model.name");
    from_.job().not_modelled.emplace_back("that torchtitan's Llama 4 has no tower for images");
  }

  /// Its experiment of this name gathers the same units as fully_shard(), within one compiled graph. Source: torchtitan
  /// of November 2025, experiments/simple_fsdp (get_transformer_block_buckets).
  void read_simple_fsdp(std::string& model) {
    constexpr std::string_view kBefore = "simple_fsdp.";
    constexpr std::string_view kBehind = "_simple_fsdp";
    const std::string named = model;
    if (model.starts_with(kBefore)) model.erase(0, kBefore.size());
    if (model.ends_with(kBehind)) model.resize(model.size() - kBehind.size());
    if (model == named) return;
    from_.job().not_modelled.emplace_back("model.name " + named + ": one graph of model and sharding (as FSDP2)");
  }

  /// A pipeline parts the local batch into micro-batches.
  void read_batch() {
    const std::int64_t older = whole("training.batch_size").value_or(8);
    const std::int64_t local = std::max<std::int64_t>(whole("training.local_batch_size").value_or(older), 1);
    const std::int64_t global = whole("training.global_batch_size").value_or(-1);
    const std::int64_t micro = whole("parallelism.pipeline_parallel_microbatch_size").value_or(1);
    pipeline_ = degree("pipeline_parallel_degree");
    from_.want("seq_length", std::to_string(whole("training.seq_len").value_or(2048)), "training.seq_len");
    not_modelled("experimental.pipeline_parallel_microbatches");
    if (pipeline_ > 1) {
      from_.want("batch_size", std::to_string(std::clamp<std::int64_t>(micro, 1, local)), "training.local_batch_size");
      from_.want("accumulate", std::to_string(std::max<std::int64_t>(local / std::max<std::int64_t>(micro, 1), 1)));
      return;
    }
    from_.want("batch_size", std::to_string(local), "training.local_batch_size");
    if (global > 0) from_.job().global_batch = global;
  }

  void read_layout() {
    const std::int64_t tensor = degree("tensor_parallel_degree");
    const std::int64_t context = degree("context_parallel_degree");
    const std::int64_t experts = degree("expert_parallel_degree");
    if (tensor > 1) {
      from_.want("tensor_parallel", std::to_string(tensor), "parallelism.tensor_parallel_degree");
      from_.want("sequence_parallel", "true");
    }
    if (context > 1) from_.want("context_parallel", std::to_string(context), "parallelism.context_parallel_degree");
    if (experts > 1) from_.want("expert_parallel", std::to_string(experts), "parallelism.expert_parallel_degree");
    // Without it tensor parallel ranks are given whole experts each.
    const bool whole_experts = degree("expert_tensor_parallel_degree") == 1 && tensor > 1 && experts > 1;
    if (whole_experts) from_.job().not_modelled.emplace_back("parallelism.expert_tensor_parallel_degree 1");
    read_pipeline();
    read_data_parallel(tensor * context * pipeline_);
    const bool loss_parallel = !on("parallelism.disable_loss_parallel") && !on("training.disable_loss_parallel") &&
                               word("training.enable_loss_parallel").value_or("true") == "true";
    if (!loss_parallel && tensor > 1) from_.job().not_modelled.emplace_back("disable_loss_parallel true");
    const std::string given_back = word("parallelism.fsdp_reshard_after_forward").value_or("default");
    if (given_back != "default" && sharded_) {
      from_.want("reshard_after_forward", given_back, "parallelism.fsdp_reshard_after_forward");
    }
  }

  void read_pipeline() {
    for (const char* table : {"parallelism", "experimental"}) {
      const std::string prefix = std::string(table) + ".pipeline_parallel_";
      const std::string name = word(prefix + "schedule").value_or("");
      for (const char* key : {"split_points", "schedule_csv", "layers_per_stage"}) asked_.emplace(prefix + key);
      for (const char* key : {"first_stage_less_layers", "last_stage_less_layers"}) asked_.emplace(prefix + key);
      if (pipeline_ <= 1 || (name.empty() && table != std::string_view("parallelism"))) continue;
      const auto* const row = std::ranges::find_if(
          kScheduleNames, [&](const ScheduleName& one) { return one.name == (name.empty() ? "1F1B" : name); });
      if (row == std::end(kScheduleNames)) {
        not_modelled(prefix + "schedule");
        continue;
      }
      from_.want("schedule", std::string(row->schedule), prefix + "schedule");
      from_.want("virtual_stages", row->looped ? "2" : "1");
      if (row->looped) not_modelled(prefix + "layers_per_stage");
      not_modelled(prefix + "split_points");
      not_modelled(prefix + "schedule_csv");
      for (const char* key : {"first_stage_less_layers", "last_stage_less_layers"}) not_modelled(prefix + key, "1");
    }
    if (pipeline_ > 1) {
      from_.want("pipeline_parallel", std::to_string(pipeline_), "parallelism.pipeline_parallel_degree");
      not_modelled("parallelism.module_fqns_per_model_part");
    }
    asked_.emplace("parallelism.module_fqns_per_model_part");
  }

  /// -1 of shards: as many as are left of the GPUs. `apart`: ranks that hold one copy of what is trained.
  void read_data_parallel(std::int64_t apart) {
    const std::int64_t copies = std::max<std::int64_t>(degree("data_parallel_replicate_degree"), 1);
    std::int64_t shards = degree("data_parallel_shard_degree", degree("data_parallel_degree", -1));
    const std::int64_t gpus = from_.whole(kGpusKey).value_or(0);
    for (const std::string_view key : {kGpusKey, kScriptKey}) from_.know(key);
    const std::int64_t others = core::bounded_product({copies, std::max<std::int64_t>(apart, 1)});
    if (shards < 1 && gpus >= others) shards = gpus / others;
    if (shards < 1) {
      from_.job().missing.emplace_back("on how many GPUs it runs (--data-parallel)");
      if (copies > 1) from_.job().not_modelled.emplace_back("parallelism.data_parallel_replicate_degree with it");
      from_.want("sharding", "fsdp2", "parallelism.data_parallel_shard_degree");
      sharded_ = true;
      return;
    }
    const std::int64_t ranks = core::bounded_product({copies, shards});
    sharded_ = shards > 1 || degree("context_parallel_degree") > 1;
    if (ranks > 1) from_.want("data_parallel", std::to_string(ranks), "parallelism.data_parallel_shard_degree");
    if (sharded_ && copies > 1) from_.want("sharding", "hsdp:" + std::to_string(shards_with_context(shards)));
    else if (sharded_) from_.want("sharding", "fsdp2", "parallelism.data_parallel_shard_degree");
    else if (copies > 1) from_.want("sharding", "ddp", "parallelism.data_parallel_replicate_degree");
  }

  /// Parameters are cut over context parallel ranks as well.
  std::int64_t shards_with_context(std::int64_t shards) {
    return core::bounded_product({shards, degree("context_parallel_degree")});
  }

  /// fully_shard() computes in another type than the shards have; alone, and under DDP, it is autocast's.
  void read_precision() {
    const std::string dtype = word("training.dtype").value_or("float32");
    const std::string computes = word("training.mixed_precision_param").value_or("bfloat16");
    if (dtype == "bfloat16") from_.want("precision", "bf16", "training.dtype");
    else if (computes == "float32") from_.want("precision", "fp32", "training.mixed_precision_param");
    else from_.want("precision", sharded_ ? "bf16-mixed" : "amp-bf16", "training.mixed_precision_param");
    if (on("training.enable_cpu_offload") || on("experimental.enable_cpu_offload")) {
      from_.want("offload", "parameters", "training.enable_cpu_offload");
    }
  }

  void read_checkpoints() {
    const std::string mode = word("activation_checkpoint.mode").value_or("selective");
    const std::string option = word("activation_checkpoint.selective_ac_option").value_or("2");
    asked_.emplace("activation_checkpoint.memory_budget");
    if (mode != "full" && mode != "selective") return not_modelled("activation_checkpoint.mode", "none");
    const std::string selective = option == "op" ? "selective-op" : "every:" + option;
    from_.want("checkpointing", mode == "full" ? mode : selective, "activation_checkpoint");
  }

  /// The blocks, the loss, or both.
  void read_compile() {
    const bool any = on("compile.enable") || on("training.compile");
    const std::string parts = word("compile.components").value_or("model+loss");
    if (any && parts.find("model") != std::string::npos) from_.want("compile", "true", "compile.enable");
    if (any && parts.find("loss") != std::string::npos) from_.want("loss", "compiled", "compile.components");
    asked_.emplace("experimental.enable_async_tensor_parallel");
    asked_.emplace("experimental.enable_compiled_autograd");
  }

  void read_optimizer() {
    want_optimizer(from_, word("optimizer.name").value_or("AdamW"), "optimizer.name");
    const std::string form = word("optimizer.implementation").value_or("fused");
    const bool unfused = word("optimizer.fused").value_or("true") == "false";
    if (form == "fused" && !unfused) from_.want("fused", "true", "optimizer.implementation");
    if (form == "for-loop") from_.want("foreach", "false", "optimizer.implementation");
    if (on("optimizer.early_step_in_backward")) {
      from_.want("optimizer_in_backward", "true", "optimizer.early_step_in_backward");
    }
  }

  /// Version 0.1: "float8", with a table of its own; then "quantize.linear.float8".
  void read_quantization() {
    const std::string converters = "+" + word("model.converters").value_or("") + "+";
    const auto has = [&](std::string_view name) {
      return converters.find("+" + std::string(name) + "+") != std::string::npos;
    };
    const bool float8 = has("float8") || has("quantize.linear.float8") || on("float8.enable_float8_linear") ||
                        on("training.enable_float8_linear") || on("training.enable_fp8_linear");
    const bool mx = has("mx") || has("quantize.linear.mx");
    bool gathers = false;
    for (const char* name :
         {"quantize.linear.float8.enable_fsdp_float8_all_gather", "float8.enable_fsdp_float8_all_gather"}) {
      gathers = gathers || (float8 && sharded_ && on(name));
    }
    if (float8) from_.want("quantize", gathers ? "float8-gather" : "float8", "model.converters");
    else if (mx) from_.want("quantize", "mxfp8", "model.converters");
    for (const char* name : {"quantize.grouped_mm.float8", "quantize.grouped_mm.mx"}) {
      if (has(name)) from_.job().not_modelled.emplace_back(std::string("model.converters ") + name);
    }
    for (const char* table : {"float8", "mx", "quantize"}) from_.know(table);
  }

  /// Copies of the model that torchft keeps in step are jobs of their own, which share no memory. Source: torchtitan of
  /// October 2025, components/ft/manager.py (maybe_semi_sync_training) and config/job_config.py (FaultTolerance).
  void read_other_copies() {
    const std::string method = word("fault_tolerance.semi_sync_method").value_or("");
    const std::int64_t fragments = std::max<std::int64_t>(whole("fault_tolerance.num_fragments").value_or(1), 1);
    const bool waits = whole("fault_tolerance.fragment_sync_delay").value_or(0) > 0;
    if (!on("fault_tolerance.enable") || method.empty()) return;
    if (method == "local_sgd") return from_.want("semi_sync", "local-sgd", "fault_tolerance.semi_sync_method");
    if (method != "diloco") return not_modelled("fault_tolerance.semi_sync_method");
    from_.want("semi_sync", (waits ? "streaming-diloco:" : "diloco:") + std::to_string(fragments),
               "fault_tolerance.semi_sync_method");
    for (const char* key : {"module_fqns_per_model_fragment", "should_quantize"}) {
      not_modelled(std::string("fault_tolerance.") + key, "false");
    }
  }

  /// Its launcher's, unless the command has another.
  void read_allocator() {
    for (const char* variable : {"env:PYTORCH_CUDA_ALLOC_CONF", "env:PYTORCH_ALLOC_CONF"}) {
      if (const auto settings = from_.word(variable)) return from_.want("alloc_conf", *settings, variable);
    }
    from_.want("alloc_conf", "expandable_segments:True");
  }

  void name_others() {
    if (on("validation.enable") || on("validation.enabled")) from_.want("validation", "true", "validation.enable");
    from_.without_effect(kWithoutEffect);
    for (const char* table : {"activation_checkpoint", "compile", "experimental", "model", "optimizer", "parallelism",
                              "training", "validation"}) {
      const Setting* const fields = from_.at(table);
      if (fields == nullptr) continue;
      for (const Setting& field : fields->items) {
        const std::string path = std::string(table) + "." + field.key;
        if (!is_among(kKeysWithoutEffect, path) && !asked_.contains(path)) from_.job().unknown.push_back(path);
      }
    }
  }

  TrainerReading& from_;
  std::set<std::string, std::less<>> asked_;
  std::int64_t pipeline_ = 1;
  bool sharded_ = false;
};

bool sniff(const Setting& root) {
  const Setting* const training = root.field("training");
  const bool named = root.at("model.flavor") != nullptr && root.at("model.name") != nullptr;
  return named && training != nullptr && training->kind == Setting::Kind::object;
}

void read(TrainerReading& from) { TitanReader(from).read(); }

}  // namespace torchtitan_detail
}  // namespace

const TrainerFormat& torchtitan() {
  static constexpr TrainerFormat kFormat = {"torchtitan", "torchtitan's TOML", &torchtitan_detail::sniff,
                                            &torchtitan_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
