#pragma once

#include "gpumem/posttrain/impl/launch_restated_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

#include <set>
#include <string>
#include <utility>

namespace gpumem::posttrain {

namespace launch_detail {

/// Restates the settings of NeMo-RL, slime, AReaL and ROLL as verl's, whose form of an iteration they have.
class OtherReader : private RestatingReader {
 public:
  OtherReader(Program program, std::span<const LaunchSetting> settings)
      : RestatingReader(program, settings, known_to(program)) {}

  [[nodiscard]] RestatedSettings read() {
    made_.program = program_;
    take_all();
    put("env:PYTORCH_CUDA_ALLOC_CONF",
        first({"env:PYTORCH_CUDA_ALLOC_CONF", "policy.dtensor_cfg.env_vars.PYTORCH_CUDA_ALLOC_CONF",
               "policy.megatron_cfg.env_vars.PYTORCH_CUDA_ALLOC_CONF"}));
    switch (program_) {
      case Program::nemo_rl: read_nemo(); break;
      case Program::slime: read_slime(); break;
      case Program::areal: read_areal(); break;
      default: read_roll(); break;
    }
    return std::move(made_);
  }

 private:
  static KnownKeys known_to(Program program) {
    switch (program) {
      case Program::nemo_rl: return {kNemoRlKeys, kOfNemoRl};
      case Program::slime: return {kSlimeKeys, kOfSlime};
      case Program::areal: return {kArealKeys, kOfAreal};
      default: return {kRollKeys, kOfRoll};
    }
  }

  // --- NeMo-RL ------------------------------------------------------------------------------------------------------

  static constexpr std::int64_t kRank = 8;  ///< examples/configs/sft.yaml: lora_cfg.dim, peft.dim

  /// Source: NeMo-RL (2026-08), algorithms/grpo.py: setup, refit_policy_generation; models/automodel/setup.py
  /// (float32 weights, computed with in `precision`); workers/dtensor_policy_worker_v2.py: use_reference_model,
  /// prepare_for_lp_inference; generation/vllm/vllm_worker.py: sleep.
  void read_nemo() {
    const bool megatron = on("policy.megatron_cfg.enabled");
    const std::string_view section = says("grpo.") ? "grpo." : says("ppo.") ? "ppo." : "";
    const bool generates = !section.empty();
    if (generates) {
      say("algorithm.adv_estimator", std::string(section == "ppo." ? "gae" : "grpo"));
    } else {
      say("trainer", std::string(says("dpo.")    ? "dpo"
                                 : says("rm.")   ? "rm"
                                 : says("sft.")  ? "sft"
                                 : says("disti") ? "distillation of NeMo-RL"
                                                 : ""));
    }
    train_in_megatron(megatron);
    nemo_layout(megatron);
    const std::int64_t total = number("policy.max_total_sequence_length");
    if (generates && total > 0) {
      const std::int64_t asked = number("policy.generation.max_new_tokens", total);
      const std::int64_t completion = std::max<std::int64_t>(std::min(asked, total - 1), 1);
      say("data.max_response_length", completion);
      say("data.max_prompt_length", std::max<std::int64_t>(total - completion, 1));
    } else if (total > 0) {
      say("seq_length", total);
    }
    nemo_batches(generates ? std::max<std::int64_t>(number(joined(section, "num_generations_per_prompt"), 1), 1) : 1);
    if (generates) nemo_generation(megatron);
    const std::string_view penalty = value("loss_fn.reference_policy_kl_penalty");
    const bool compares = !generates || penalty.empty() || penalty.find_first_not_of("0.") != std::string_view::npos;
    say(joined(kActor, "use_kl_loss"), compares && !says("rm."));
    made_.swaps_reference = true;
    if (says("value.")) made_.not_modelled.emplace_back("value.*, but as the policy is trained,");
    if (megatron && !on("policy.megatron_cfg.distributed_data_parallel_config.grad_reduce_in_fp32")) {
      made_.not_modelled.emplace_back("grad_reduce_in_fp32 false");
    }
  }
  void nemo_layout(bool megatron) {
    if (megatron) {
      put_megatron("policy.megatron_cfg.");
      const std::string_view granularity = value("policy.megatron_cfg.recompute_granularity");
      const bool again = on("policy.megatron_cfg.activation_checkpointing");
      recompute(!again ? "none" : granularity.empty() ? "full" : granularity);
      const std::string adapters = "policy.megatron_cfg.peft.";
      if (on(adapters + "enabled")) adapt(adapters + "dim", kRank, adapters + "target_modules");
      put("optimizer_cpu_offload", "policy.megatron_cfg.optimizer.optimizer_cpu_offload");
      put("optimizer_offload_fraction", "policy.megatron_cfg.optimizer.optimizer_offload_fraction");
    } else {
      const std::string sizes = "policy.dtensor_cfg.";
      put(joined(kActor, "megatron.tensor_model_parallel_size"), sizes + "tensor_parallel_size");
      put(joined(kActor, "megatron.context_parallel_size"), sizes + "context_parallel_size");
      put(joined(kActor, "megatron.expert_model_parallel_size"), sizes + "expert_parallel_size");
      put(joined(kActor, "fsdp_config.offload_policy"), sizes + "cpu_offload");
      say(joined(kActor, "megatron.sequence_parallel"), on(sizes + "sequence_parallel"));
      say("actor_rollout_ref.model.enable_gradient_checkpointing", on(sizes + "activation_checkpointing"));
      const std::string adapters = sizes + "lora_cfg.";
      // All linear layers, whatever modules are named beside that.
      const std::string targets = on(adapters + "match_all_linear") ? std::string() : adapters + "target_modules";
      if (on(adapters + "enabled")) adapt(adapters + "dim", kRank, targets);
      const std::string_view optimizer = value("policy.optimizer.name");
      if (!optimizer.empty() && optimizer != "torch.optim.AdamW") {
        made_.not_modelled.push_back("policy.optimizer.name " + core::shortened(optimizer, 60));
      }
    }
    const std::int64_t each = number("cluster.gpus_per_node", 1);
    const std::int64_t nodes = std::max<std::int64_t>(number("cluster.num_nodes", 1), 1);
    std::int64_t gpus = core::bounded_product({each, nodes});
    if (value("policy.generation.colocated.enabled") == "false" ||
        value("policy.generation.colocated.enabled") == "False") {
      const std::int64_t apart =
          std::max<std::int64_t>(number("policy.generation.colocated.resources.num_nodes", 1), 1);
      const std::int64_t given = number("policy.generation.colocated.resources.gpus_per_node", each);
      gpus -= nodes == 1 ? given : core::bounded_product({apart, each});
    }
    train_on(gpus);
  }
  void nemo_batches(std::int64_t each) {
    const std::int64_t reading = number("policy.logprob_batch_size", number("policy.train_micro_batch_size", 1));
    const std::int64_t total = number("policy.max_total_sequence_length");
    for (const std::string packs : {"policy.sequence_packing.", "policy.dynamic_batching."}) {
      if (!on(packs + "enabled")) continue;
      const std::int64_t usual = core::bounded_product({total, number("policy.train_micro_batch_size", 1)});
      pack(number(packs + "train_mb_tokens", usual),
           number(packs + "logprob_mb_tokens", core::bounded_product({total, reading})));
      break;
    }
    say(joined(kRollout, "log_prob_micro_batch_size_per_gpu"), std::max<std::int64_t>(reading, 1));
    say(joined(kRollout, "n"), each);
    step(number("policy.train_global_batch_size"), each);
  }
  void nemo_generation(bool megatron) {
    const std::string_view backend = value("policy.generation.backend");
    const bool sglang = backend == "sglang";
    const bool apart = !on("policy.generation.colocated.enabled", true);
    generate(backend.empty() ? "vllm" : backend, apart, 1);
    wait_on_host(megatron, !apart, !apart || on("policy.offload_optimizer_for_logprob"));
    if (sglang) {
      put_engine("policy.generation.sglang_cfg.", "mem_fraction_static", "context_length", "disable_cuda_graph");
      put(joined(kRollout, "tensor_model_parallel_size"), "policy.generation.sglang_cfg.tp_size");
      return;
    }
    put_engine("policy.generation.vllm_cfg.", "gpu_memory_utilization", "max_model_len", "enforce_eager");
    put(joined(kRollout, "tensor_model_parallel_size"), "policy.generation.vllm_cfg.tensor_parallel_size");
  }

  // --- slime --------------------------------------------------------------------------------------------------------

  /// Source: slime (2026-08), utils/arguments.py: slime_validate_args; backends/megatron_utils/actor.py: sleep,
  /// wake_up (all that is trained, by torch_memory_saver), _switch_model (weights of the reference are copied over the
  /// policy's); utils/dp_schedule.py.
  void read_slime() {
    const std::string_view estimator = value("advantage_estimator");
    const bool supervised = value("loss_type") == "sft_loss";
    if (supervised) {
      say("trainer", std::string("sft"));
    } else {
      say("algorithm.adv_estimator", std::string(estimator == "ppo"                          ? "gae"
                                                 : estimator == "cispo" || estimator.empty() ? "grpo"
                                                                                             : estimator));
    }
    train_in_megatron(true);
    put_megatron("");
    recompute(value("recompute_granularity"));
    put("optimizer_cpu_offload", "optimizer_cpu_offload");
    put("optimizer_offload_fraction", "optimizer_offload_fraction");
    constexpr std::int64_t kOfNode = 8;
    train_on(core::bounded_product({number("actor_num_nodes", 1), number("actor_num_gpus_per_node", kOfNode)}));
    const bool apart = !on("colocate");
    const bool trains_on = !on("no_offload_train") && on("offload_train", !apart);
    const bool offloads = on("offload") || trains_on || estimator == "ppo";
    const bool sleeps = on("offload") || (!on("no_offload_rollout") && on("offload_rollout", true));
    generate("sglang", apart, sleeps ? 1 : 0);
    wait_on_host(true, offloads, offloads);
    put(joined(kRollout, "max_model_len"), "rollout_max_context_len");
    const std::int64_t ranks = std::max<std::int64_t>(number("context_parallel_size", 1), 1);
    const std::int64_t tokens = core::bounded_product({number("max_tokens_per_gpu"), ranks});
    if (on("use_dynamic_batch_size")) {
      // A sample that is longer is a row of its own.
      const std::int64_t sample =
          core::bounded_sum({number("rollout_max_prompt_len", 0), number("rollout_max_response_len", 0)});
      const std::int64_t row = std::max(tokens, sample);
      const std::int64_t reading =
          core::bounded_product({number("log_probs_max_tokens_per_gpu", number("max_tokens_per_gpu")), ranks});
      pack(row, std::max(reading, sample));
    }
    say(joined(kActor, "ppo_micro_batch_size_per_gpu"), std::max<std::int64_t>(number("micro_batch_size", 1), 1));
    const std::int64_t each = std::max<std::int64_t>(number("n_samples_per_prompt", 1), 1);
    const std::int64_t parts = std::max<std::int64_t>(number("num_steps_per_rollout", 1), 1);
    const std::int64_t all = core::bounded_product({number("rollout_batch_size"), each}) / parts;
    step(number("global_batch_size", all), each);
    const std::string_view penalty = value("kl_coef");
    const bool in_reward = !penalty.empty() && penalty.find_first_not_of("0.") != std::string_view::npos;
    say(joined(kActor, "use_kl_loss"), on("use_kl_loss") || in_reward);
    made_.swaps_reference = true;
  }

  // --- AReaL --------------------------------------------------------------------------------------------------------

  /// "fsdp:d4p1t2", and "sglang:d4+d4p1t1c2", of which the training is behind the '+'. Experts that are split otherwise
  /// are "megatron:(attn:d4p4t2|ffn:d2p4e4)". Source: AReaL (2026-05), api/alloc_mode.py.
  struct Allocation {
    std::string engine;
    std::map<char, std::int64_t> sizes;
    [[nodiscard]] std::int64_t size(char of) const {
      const auto found = sizes.find(of);
      return found == sizes.end() ? 1 : found->second;
    }
  };
  static Allocation allocation_of(std::string_view text) {
    Allocation made;
    const std::size_t colon = text.find(':');
    if (colon != std::string_view::npos && text.find('(') > 0) {
      made.engine = std::string(text.substr(0, colon));
      text.remove_prefix(colon + 1);
    }
    for (std::string_view part : {std::string_view("attn:"), std::string_view("ffn:")}) {
      const std::size_t begin = text.find(part);
      if (begin != std::string_view::npos) add_sizes(text.substr(begin + part.size()), made.sizes);
    }
    if (made.sizes.empty()) add_sizes(text, made.sizes);
    return made;
  }
  /// Of attention and of experts: a size that both have is attention's.
  static void add_sizes(std::string_view text, std::map<char, std::int64_t>& sizes) {
    for (std::size_t at = 0; at < text.size();) {
      const char of = text[at++];
      std::size_t end = at;
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
      const auto whole = core::parse_whole(text.substr(at, end - at));
      if (of == '|' || of == ')' || !whole || *whole < 1 || *whole > INT32_MAX) return;
      sizes.emplace(of, *whole);
      at = end;
    }
  }

  /// Source: AReaL (2026-05), engine/fsdp_engine.py (weights in `dtype`, AdamW over them), trainer/rl_trainer.py (the
  /// reference where kl_ctl is above 0), utils/functional/vocab_parallel.py.
  void read_areal() {
    const std::string_view type = value("train_dataset.type");
    const bool pairs = type == "dpo" || type == "rw";
    if (type == "sft" || pairs) say("trainer", std::string(type == "rw" ? "rm" : type));
    else say("algorithm.adv_estimator", std::string(says("critic.") && !leaves_alone("critic") ? "gae" : "grpo"));
    const auto [engine, training] = areal_engines();
    const bool megatron = training.engine == "megatron" || training.size('p') > 1 || training.size('e') > 1;
    train_in_megatron(megatron);
    areal_layout(training, megatron);
    const bool colocated = shares("rollout", "actor") || shares("actor", "rollout");
    if (!pairs && type != "sft") areal_generation(engine, !colocated);
    const bool offloads = colocated || on("actor.offload");
    wait_on_host(megatron, offloads, offloads);
    constexpr std::int64_t kUsualRank = 32;
    if (on("actor.use_lora")) adapt("actor.lora_rank", kUsualRank, "actor.target_modules");
    const std::string_view type_of_weights = value("actor.dtype");
    if (!megatron && (type_of_weights.empty() || type_of_weights.starts_with("bf"))) {
      say(joined(kActor, "fsdp_config.model_dtype"), std::string("bf16"));
    }
    if (!on("actor.gradient_checkpointing")) say("actor_rollout_ref.model.enable_gradient_checkpointing", false);
    areal_batches(training, pairs);
    const std::string_view penalty = value("actor.kl_ctl");
    const bool compares = type == "dpo" || penalty.empty() || penalty.find_first_not_of("0.") != std::string_view::npos;
    say(joined(kActor, "use_kl_loss"), compares && says("ref.") && !leaves_alone("ref"));
  }
  /// A role has GPUs of its own unless it is scheduled with another. `allocation_mode` alone has no roles: there the
  /// trainer holds all models. Source: AReaL (2026-05), api/cli_args.py: SchedulingStrategy; infra/scheduler/local.py.
  [[nodiscard]] bool leaves_alone(std::string_view role) {
    const std::string_view type = value(joined(role, ".scheduling_strategy.type"));
    const bool apart = type == "separation" || (type.empty() && !value("actor.backend").empty());
    if (apart) made_.decided.push_back(std::string(role) + " is not scheduled with actor, so it has GPUs of its own");
    return apart;
  }
  /// Whether the first one runs on the GPUs of the other.
  [[nodiscard]] bool shares(std::string_view one, std::string_view other) const {
    const std::string strategy = joined(one, ".scheduling_strategy.");
    return value(strategy + "type") == "colocation" && value(strategy + "target") == other;
  }
  std::pair<Allocation, Allocation> areal_engines() const {
    const std::string_view all = value("allocation_mode");
    const std::size_t plus = all.find('+');
    if (value("actor.backend").empty() && plus != std::string_view::npos) {
      return {allocation_of(all.substr(0, plus)), allocation_of(all.substr(plus + 1))};
    }
    return {allocation_of(value("rollout.backend")), allocation_of(value("actor.backend"))};
  }
  void areal_layout(const Allocation& training, bool megatron) {
    const std::pair<char, std::string_view> sizes[] = {{'t', "tensor_model_parallel_size"},
                                                       {'p', "pipeline_model_parallel_size"},
                                                       {'e', "expert_model_parallel_size"}};
    for (const auto& [of, name] : sizes) say(joined(joined(kActor, "megatron."), name), training.size(of));
    // FSDP's 'c' is Ulysses.
    say(megatron ? joined(kActor, "megatron.context_parallel_size") : joined(kActor, "ulysses_sequence_parallel_size"),
        training.size('c'));
    say(joined(kActor, "megatron.sequence_parallel"), training.size('t') > 1);
    const std::string_view granularity = value("actor.megatron.recompute_granularity");
    if (megatron) recompute(!on("actor.gradient_checkpointing") ? "none" : granularity.empty() ? "full" : granularity);
    train_on(core::bounded_product({training.size('d'), training.size('t'), training.size('p'), training.size('c')}));
  }
  void areal_generation(const Allocation& engine, bool apart) {
    const bool vllm = engine.engine == "vllm";
    generate(vllm ? "vllm" : "sglang", apart, 1);
    say(joined(kRollout, "tensor_model_parallel_size"), engine.size('t'));
    if (vllm) put_engine("vllm.", "gpu_memory_utilization", "max_model_len", "enforce_eager");
    else put_engine("sglang.", "mem_fraction_static", "context_length", "disable_cuda_graph");
    constexpr std::int64_t kUsualContext = 32768;  // api/cli_args.py: SGLangConfig, vLLMConfig
    const std::string_view context = vllm ? "vllm.max_model_len" : "sglang.context_length";
    if (value(context).empty()) say(joined(kRollout, "max_model_len"), kUsualContext);
    put(joined(kRollout, "max_num_seqs"), vllm ? "vllm.max_num_seqs" : "sglang.max_running_requests");
    put("data.max_prompt_length", "train_dataset.max_length");
    constexpr std::int64_t kUsualCompletion = 16384;
    if (value("gconfig.max_new_tokens").empty()) {
      say("data.max_response_length", std::min(number("gconfig.max_tokens", kUsualCompletion), kUsualCompletion));
    }
  }
  void areal_batches(const Allocation& training, bool pairs) {
    if (pairs) put("max_length", "train_dataset.max_length");
    pack(number("actor.mb_spec.max_tokens_per_mb"), number("ref.mb_spec.max_tokens_per_mb"));
    const std::int64_t each = pairs ? 1 : std::max<std::int64_t>(number("gconfig.n_samples", 1), 1);
    constexpr std::int64_t kUsualMinis = 4;
    const std::int64_t minis = pairs ? 1 : std::max<std::int64_t>(number("actor.ppo_n_minibatches", kUsualMinis), 1);
    const std::int64_t samples = core::bounded_product({number("train_dataset.batch_size"), each}) / minis;
    step(samples, each);
    const std::int64_t passes = std::max<std::int64_t>(number("actor.mb_spec.n_mbs", 1), 1);
    const std::int64_t ranks = std::max<std::int64_t>(training.size('d'), 1);
    if (samples > 0) {
      say(joined(kActor, "ppo_micro_batch_size_per_gpu"), std::max<std::int64_t>(samples / ranks / passes, 1));
    }
  }

  // --- ROLL ---------------------------------------------------------------------------------------------------------

  /// "list(range(0,8)) + list([8,9])", and a list of the file. Source: ROLL (2026-08), worker_config.py: __post_init__.
  static std::set<std::int64_t> devices_of(std::string_view text) {
    constexpr std::size_t kMost = 4096;
    std::set<std::int64_t> devices;
    while (!text.empty() && devices.size() < kMost) {
      const std::size_t begin = text.find_first_of("0123456789r");
      if (begin == std::string_view::npos) break;
      text.remove_prefix(begin);
      const bool range = text.starts_with("range(");
      if (!range && text.front() == 'r') {
        text.remove_prefix(1);
        continue;
      }
      const std::size_t end = std::min(range ? text.find(')') : text.find_first_not_of("0123456789"), text.size());
      const std::string_view part = range ? text.substr(6, end - std::min<std::size_t>(end, 6)) : text.substr(0, end);
      text.remove_prefix(end);
      const std::size_t comma = part.find(',');
      const auto number = [](std::string_view word) {
        while (word.starts_with(' ')) word.remove_prefix(1);
        while (word.ends_with(' ')) word.remove_suffix(1);
        return core::parse_whole(word).value_or(0);
      };
      const std::int64_t from =
          comma == std::string_view::npos && range ? 0 : number(part.substr(0, std::min(comma, part.size())));
      const std::int64_t to = comma != std::string_view::npos ? number(part.substr(comma + 1))
                              : range                         ? number(part)
                                                              : from + 1;
      for (std::int64_t each = from; each < to && devices.size() < kMost; ++each) devices.insert(each);
    }
    return devices;
  }

  /// Source: ROLL (2026-08), pipeline/rlvr/rlvr_pipeline.py; pipeline/base_worker.py: state_offload_manger;
  /// distributed/strategy/fsdp2_strategy.py: load_states, offload_states (the optimizer's stay on the GPU unless
  /// offload_policy is on); strategy/vllm_strategy.py (sleep_level 1); configs/base_config.py: enable_reference.
  void read_roll() {
    roll_algorithm();
    const std::string config = "actor_train.strategy_args.strategy_config.";
    const std::string_view strategy = value("actor_train.strategy_args.strategy_name");
    const bool megatron = strategy.starts_with("megatron");
    if (strategy.starts_with("deepspeed")) say("deepspeed_config_file", std::string("zero3"));
    train_in_megatron(megatron);
    if (megatron) put_megatron(config);
    else roll_shards(config);
    recompute(value(config + "recompute_granularity"));
    const bool off = on("actor_train.model_args.disable_gradient_checkpointing");
    say("actor_rollout_ref.model.enable_gradient_checkpointing", !off);
    const bool apart = is_apart("actor_infer");
    train_on(static_cast<std::int64_t>(devices_of(value("actor_train.device_mapping")).size()));
    const std::string_view engine = value("actor_infer.strategy_args.strategy_name");
    generate(engine.empty() ? "vllm" : engine, apart,
             number("actor_infer.strategy_args.strategy_config.sleep_level", 1));
    put(joined(kRollout, "tensor_model_parallel_size"),
        first({"actor_infer.strategy_args.strategy_config.tensor_parallel_size", "actor_infer.num_gpus_per_worker"}));
    wait_on_host(megatron, !apart, megatron && !apart);
    roll_passes();
    roll_lengths();
    if (value("actor_train.model_args.freeze_module_prefix").find("vis") != std::string_view::npos) {
      say(joined(kActor, "freeze_vision_tower"), true);
    }
  }
  /// Whether none of its GPUs trains the policy.
  [[nodiscard]] bool is_apart(std::string_view worker) const {
    const std::set<std::int64_t> trains = devices_of(value("actor_train.device_mapping"));
    const std::set<std::int64_t> its = devices_of(value(joined(worker, ".device_mapping")));
    return std::none_of(its.begin(), its.end(), [&](std::int64_t at) { return trains.contains(at); });
  }
  /// Such a model takes nothing of the GPUs that train the policy.
  [[nodiscard]] bool leaves_out(std::string_view worker, bool runs) {
    const std::string mapping = joined(worker, ".device_mapping");
    if (!runs || value(mapping).empty() || !is_apart(worker)) return false;
    made_.decided.push_back(mapping + " has none of the GPUs of actor_train, so its model is not held on them");
    return true;
  }
  /// Weights are loaded, and stepped, in `param_dtype` where it is given, else in float32. Groups of 1 GPU are one of
  /// all. Source: ROLL (2026-08), fsdp2_strategy.py: _prepare_fsdp2_model, create_device_mesh_with_ep.
  void roll_shards(const std::string& config) {
    const std::string_view type = value(config + "param_dtype");
    if (type.starts_with("bf")) say(joined(kActor, "fsdp_config.model_dtype"), std::string("bf16"));
    const bool other = !type.empty() && !type.starts_with("bf") && type != "float32" && type != "fp32";
    if (other) made_.not_modelled.push_back(config + "param_dtype " + core::shortened(type, 60));
    if (number(config + "fsdp_size") > 1) put(joined(kActor, "fsdp_config.fsdp_size"), config + "fsdp_size");
  }
  /// Source: ROLL (2026-08), base_config.py: PPOConfig.
  void roll_algorithm() {
    const std::string_view estimator = value("adv_estimator");
    const bool supervised = says("sft_train.");
    const bool distils = says("student");
    if (supervised || distils) say("trainer", std::string(supervised ? "sft" : "distillation of ROLL"));
    else if (!value("beta").empty() && !says("actor_infer.")) say("trainer", std::string("dpo"));
    else {
      const bool critic = (estimator.empty() || estimator == "gae") && !leaves_out("critic", true);
      say("algorithm.adv_estimator", std::string(critic ? "gae" : "grpo"));
    }
    const std::string_view penalty = value("init_kl_coef");  // 0.2, where nobody says it
    const bool in_reward = penalty.empty() || penalty.find_first_not_of("0.") != std::string_view::npos;
    const bool prefers = !value("beta").empty();
    const bool compares = on("enable_reference") || on("use_kl_loss") || in_reward || prefers;
    const bool adapts = !value("actor_train.model_args.lora_target").empty();  // its base is the reference
    say(joined(kActor, "use_kl_loss"), compares && !leaves_out("reference", compares && !adapts));
    made_.whole_reference = value("reference.strategy_args.strategy_name") == "hf_infer";
    say("actor_rollout_ref.ref.fsdp_config.param_offload", true);
  }
  /// Source: ROLL (2026-08), training_args.py: per_device_train_batch_size; worker_config.py: infer_batch_size;
  /// model_args.py: lora_rank, of adapters that there are where lora_target is given.
  void roll_passes() {
    constexpr std::int64_t kUsualBatch = 8;
    constexpr std::int64_t kUsualReading = 16;
    constexpr std::int64_t kUsualRank = 8;
    const auto usual = [&](std::string_view own, std::string_view given, std::int64_t samples) {
      if (value(given).empty()) say(own, samples);
    };
    usual(joined(kActor, "ppo_micro_batch_size_per_gpu"), "actor_train.training_args.per_device_train_batch_size",
          kUsualBatch);
    usual(joined(kRollout, "log_prob_micro_batch_size_per_gpu"), "actor_train.infer_batch_size", kUsualReading);
    usual("actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu", "reference.infer_batch_size", kUsualReading);
    const std::string adapters = "actor_train.model_args.lora_";
    if (!value(adapters + "target").empty()) adapt(adapters + "rank", kUsualRank, adapters + "target");
  }
  void roll_lengths() {
    const std::int64_t whole = number("sequence_length");
    if (!says("actor_infer.")) return put("max_length", "sequence_length");
    constexpr std::int64_t kUsualPrompt = 1024;
    if (value("prompt_length").empty()) say("data.max_prompt_length", kUsualPrompt);
    if (whole > 0 && value("response_length").empty()) {
      const std::int64_t turn = std::max<std::int64_t>(number("max_tokens_per_step", whole / 2), 1);
      const std::int64_t completion = std::min(turn, std::max<std::int64_t>(whole - 1, 1));
      say("data.max_response_length", completion);
      say("data.max_prompt_length", std::max<std::int64_t>(whole - completion, 1));
    }
    if (on("actor_train.use_dynamic_batching_in_train")) {
      pack(number("actor_train.max_tokens_per_microbatch_in_train"),
           number("actor_train.max_tokens_per_microbatch_in_infer"));
    }
    if (on("actor_train.use_sequence_packing")) {
      pack(number("actor_train.sequence_packing_args.max_packed_sequence_length_train"),
           number("actor_train.sequence_packing_args.max_packed_sequence_length_forward"));
    }
  }
};

}  // namespace launch_detail

}  // namespace gpumem::posttrain
