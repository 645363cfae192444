#pragma once

#include "gpumem/posttrain/impl/launch_setting_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

namespace gpumem::posttrain {

namespace launch_detail {

class LaunchReader : private LayoutReader {
 public:
  using LayoutReader::LayoutReader;

  core::Result<Launch> read() {
    if (core::Status taken = take_all(); !taken) return taken.error();
    choose_algorithm();
    choose_layout();
    choose_training();
    choose_reference();
    choose_rollout();
    choose_lengths();
    choose_log_prob_passes();
    choose_accumulation();
    leave_out_foreign();
    if (fault_) return *fault_;
    return std::move(made_);
  }

 private:
  // --- What they mean together --------------------------------------------------------------------------------------

  [[nodiscard]] bool adapts() const {
    const std::string_view tuner = word({"tuner_type", "train_type"}, of_swift() ? "lora" : "");
    const std::string_view rank = word({"lora_rank", "actor_rollout_ref.model.lora_rank"}, "0");
    if (of_swift()) return tuner == "lora" || tuner == "qlora";
    return on({"use_peft"}) || (rank != "0" && !rank.empty()) || value("lora_r").has_value() ||
           value("peft_config.r").has_value();
  }

  void choose_training() {
    const std::string_view strategy = word({"actor_rollout_ref.actor.strategy"}, "fsdp");
    if (!strategy.starts_with("fsdp")) {
      say_not_modelled({"actor_rollout_ref.actor.strategy", std::string(strategy)});
    }
    if (program_ == Program::megatron) {
      const bool given = value("tuner_type").has_value() || value("train_type").has_value();
      choose_adapters(given && adapts());  // full is its default
    } else {
      choose_adapters(adapts());
    }
    choose_precision();
    choose_kernels();
    const bool unsloth = program_ == Program::unsloth;
    const std::string_view optimizer = word({"optim"}, unsloth ? "adamw_8bit" : "adamw_torch_fused");
    training().optimizer = model::Optimizer::adamw;
    training().fused = optimizer == "adamw_torch_fused";
    if (optimizer == "paged_adamw_8bit") {
      want("optimizer", "paged-adamw-8bit");
    } else if (optimizer == "adamw_8bit" || optimizer == "adamw_bnb_8bit") {
      want("optimizer", "adamw-8bit");
    } else if (!optimizer.starts_with("adamw_torch") && optimizer != "adamw") {
      say_not_modelled({"optim", std::string(optimizer)});
    }
    if (on({"optimizer_cpu_offload"})) choose_offloaded_share();
  }

  /// All states of Megatron's optimizer are on the host, or a part of them. A precision-aware optimizer holds what
  /// others do, unless the types of its states are given.
  void choose_offloaded_share() {
    const std::string_view share = word({"optimizer_offload_fraction"}, "1");
    if (share == "1" || share == "1.0") {
      training().offload = model::Offload::optimizer;
      return;
    }
    const core::Status taken = set_post_training_option(options(), "states_on_host", share);
    if (!taken) refuse("optimizer_offload_fraction: " + taken.error().message);
  }

  void choose_adapters(bool adapted) {
    if (!adapted) return;
    const std::int64_t rank =
        whole({"lora_rank", "lora_r", "peft_config.r", "actor_rollout_ref.model.lora_rank"}, of_swift() ? 8 : 16);
    training().lora = std::max<std::int64_t>(rank, 1);
    std::string targets(word({"target_modules", "lora_target_modules", "peft_config.target_modules",
                              "actor_rollout_ref.model.target_modules"},
                             of_swift() ? "all-linear" : ""));
    std::erase_if(targets, [](char byte) { return std::string_view("[]\"' ").find(byte) != std::string_view::npos; });
    while (targets.ends_with(',')) targets.pop_back();
    std::replace(targets.begin(), targets.end(), ',', '+');
    // Source: ms-swift 4, megatron/utils/utils.py: find_all_linears knows TransformerEngine's linear layers.
    if (program_ == Program::megatron && targets == "all-linear") targets += "+not:router";
    if (program_ == Program::ms_swift && targets == "all-linear") {
      const FrozenParts frozen = {on({"freeze_vit"}, true), on({"freeze_aligner"}, true)};
      const std::string left_out = part_names(frozen, "not:", "+");
      if (!left_out.empty()) targets += "+" + left_out;
    }
    training().lora_targets = targets;
    const bool four = on({"load_in_4bit"}) || word({"quant_bits"}) == "4" || word({"tuner_type"}) == "qlora";
    if (four) want("quantize", program_ == Program::unsloth ? "nf4-double" : "nf4");
    if (on({"load_in_8bit"})) want("quantize", "int8");
  }

  /// Weights are loaded in bfloat16. DeepSpeed and Megatron keep float32 masters of what is trained, verl float32
  /// weights that FSDP computes with in bfloat16; TRL and ms-swift without them run autocast on what was loaded.
  void choose_precision() {
    const std::string_view type =
        word({"torch_dtype", "dtype", "model_init_kwargs.torch_dtype", "model_init_kwargs.dtype"}, "bfloat16");
    const bool half = type == "float16" || on({"fp16"});
    if (!half && !on({"bf16"}, true)) say_not_modelled({"bf16", "false"});
    const model::Shardings sharding = training().layout.sharding.kind;
    const bool deepspeed = sharding == model::Shardings::zero_1 || sharding == model::Shardings::zero_2 ||
                           sharding == model::Shardings::zero_3 || program_ == Program::openrlhf;
    if (program_ == Program::megatron || deepspeed) {
      training().precision = half ? model::Precision::fp16_mixed : model::Precision::bf16_mixed;
      return;
    }
    if (program_ == Program::verl) {
      const bool shards = training().layout.sharding.kind != model::Shardings::none;
      training().precision = shards ? model::Precision::bf16_mixed : model::Precision::amp_bf16;
      return;
    }
    if (training().has_adapters()) {
      training().precision = half ? model::Precision::amp_fp16 : model::Precision::amp_bf16;
      training().base_dtype = half ? model::BaseType::fp16 : model::BaseType::bf16;
      return;
    }
    training().precision = type == "float32" ? model::Precision::amp_bf16 : model::Precision::bf16;
  }

  void choose_kernels() {
    const std::string_view attention =
        word({"attn_impl", "attn_implementation", "attention_backend", "model_init_kwargs.attn_implementation"});
    const bool flash = attention.starts_with("flash") || on({"flash_attn"}) || program_ == Program::verl;
    if (flash) training().attention = model::AttentionBackend::flash;
    if (attention == "eager") training().attention = model::AttentionBackend::eager;
    const bool usual = of_swift() || of_trl() || program_ == Program::verl;
    bool checkpoints = on({"gradient_checkpointing", "actor_rollout_ref.model.enable_gradient_checkpointing"}, usual);
    if (program_ == Program::megatron) {
      const std::string_view granularity = word({"recompute_granularity"}, "selective");
      checkpoints = granularity == "full";
      if (granularity == "selective") want("checkpointing", "selective-attention");
    }
    if (checkpoints) want("checkpointing", "full");
    if (fuses_the_loss()) training().loss_form = {model::LossForms::fused, 0};
    // Liger's norms, rotary positions and SwiGLU keep less; where blocks are computed again, that is of one block.
    const bool liger = on({"use_liger_kernel"});
    if (liger && !checkpoints) say_not_modelled({"use_liger_kernel", "true"});
    const bool hosts = program_ == Program::unsloth && word({"use_gradient_checkpointing"}, "unsloth") == "unsloth";
    if (hosts && checkpoints) training().offload = model::Offload::activations;
    if (on({"actor_rollout_ref.model.use_fused_kernels"})) training().loss_form = {model::LossForms::fused, 0};
    if (program_ == Program::megatron && on({"cross_entropy_loss_fusion"})) {
      training().loss_form = {model::LossForms::fused_ce, 0};
    }
    training().transformers = model::Transformers::v4_51;
    made_.request.freezes_tower = of_swift() && on({"freeze_vit"}, true);
    if (on({"freeze_llm"})) say_not_modelled({"freeze_llm", "true"});
  }

  /// Liger's losses compute logits a chunk at a time. Source: TRL 1.9, trainer/dpo_trainer.py, kto_trainer.py and
  /// grpo_trainer.py: use_liger_kernel; ms-swift 4, rlhf_trainers/grpo_trainer.py: use_liger_loss. ms-swift's DPO and
  /// KTO have Liger's layers alone.
  [[nodiscard]] bool fuses_the_loss() {
    if (program_ == Program::unsloth || on({"use_liger_loss"})) return true;
    if (!on({"use_liger_kernel"})) return false;
    const Algorithm trains = options().algorithm;
    const bool compares = trains == Algorithm::dpo || trains == Algorithm::kto;
    return trains == Algorithm::grpo ? program_ != Program::megatron : compares && program_ == Program::trl;
  }

  void choose_reference() {
    const std::string_view beta = word({"beta", "init_kl_coef"});
    const bool compared = on({"actor_rollout_ref.actor.use_kl_loss"}) || on({"algorithm.use_kl_in_reward"});
    const bool zero = beta == "0" || beta == "0.0";
    if (program_ == Program::verl) options().reference = compared ? verl_reference() : Reference::none;
    if (of_trl() && algorithm().generates) {
      const bool uses = beta.empty() ? program_ == Program::unsloth : !zero;  // Unsloth's beta is 0.001, TRL's 0
      options().reference = !uses ? Reference::none : training().has_adapters() ? Reference::base : Reference::own;
    } else if (zero && algorithm().generates) {
      options().reference = Reference::none;
    }
    if (on({"precompute_ref_log_probs"})) options().reference = Reference::precomputed;
    const std::string_view other = word({"ref_model"});
    if (!other.empty() && other != made_.model) options().reference_model = std::string(other);
  }
  [[nodiscard]] Reference verl_reference() { return training().has_adapters() ? Reference::base : Reference::own; }

  void choose_rollout() {
    if (!algorithm().generates) return;
    choose_entropy();
    PostTrainingOptions& to = options();
    const std::string_view mode = word({"vllm_mode"}, of_trl() ? "colocate" : "");
    if (of_swift() || of_trl()) {
      const bool serves = on({"use_vllm"}) || on({"fast_inference"});
      to.rollout = !serves ? Rollout::generate : mode == "server" ? Rollout::elsewhere : Rollout::colocated;
      if (on({"vllm_enable_sleep_mode"})) to.sleep_level = 2;
      const bool model = on({"offload_model"});
      const bool states = on({"offload_optimizer"});
      to.offload = model ? (states ? Waiting::both : Waiting::model) : states ? Waiting::optimizer : Waiting::none;
      return;
    }
    if (program_ == Program::verl) {
      const std::string_view engine = word({"actor_rollout_ref.rollout.name"}, "vllm");
      if (engine == "sglang") to.engine = Engine::sglang;
      else if (engine != "vllm") say_not_modelled({"actor_rollout_ref.rollout.name", std::string(engine)});
      const bool apart =
          !on({"actor_rollout_ref.hybrid_engine"}, true) || whole({"actor_rollout_ref.rollout.nnodes"}, 0) > 0;
      to.rollout = apart ? Rollout::elsewhere : Rollout::colocated;
      if (on({"actor_rollout_ref.rollout.free_cache_engine"}, true)) to.sleep_level = 2;
      const bool model = on({"actor_rollout_ref.actor.fsdp_config.param_offload"});
      const bool states = on({"actor_rollout_ref.actor.fsdp_config.optimizer_offload"});
      to.offload = model ? (states ? Waiting::both : Waiting::model) : states ? Waiting::optimizer : Waiting::none;
      return;
    }
    to.rollout = on({"colocate_all_models"}) ? Rollout::colocated : Rollout::elsewhere;
    const std::int64_t engines = whole({"vllm_num_engines"}, 1);
    if (engines == 0) say_not_modelled({"vllm_num_engines", "0"});  // generate() of a DeepSpeed engine
    if (on({"vllm_enable_sleep"})) to.sleep_level = 1;
    if (on({"deepspeed_enable_sleep"})) to.offload = Waiting::both;
  }

  /// Compiled, unless verl is told not to. Source: verl 0.7, dp_actor.py; OpenRLHF 0.8, models/utils.py.
  void choose_entropy() {
    const std::string_view weight = word({"actor_rollout_ref.actor.entropy_coeff", "entropy_loss_coef"}, "0");
    if (weight.find_first_not_of("0.") == std::string_view::npos) return;
    const bool chunks = on({"actor_rollout_ref.actor.entropy_from_logits_with_chunking"});
    const bool compiles = on({"actor_rollout_ref.actor.use_torch_compile"}, true);
    options().entropy = chunks ? Entropy::chunked : compiles ? Entropy::fused : Entropy::whole;
  }

  /// Whether samples follow each other in one row without padding. ms-swift's Megatron does it unless it is told not to
  /// (megatron/arguments/megatron_args.py: padding_free).
  [[nodiscard]] bool padding_free() const {
    return on({"padding_free"}, program_ == Program::megatron) || on({"packing_samples"});
  }

  /// Tokens that the largest image takes. A token of Qwen's processors stands for 28 x 28 pixels.
  [[nodiscard]] std::int64_t image_tokens() {
    constexpr std::int64_t kPixelsOfToken = std::int64_t{28} * 28;
    const std::int64_t tokens = whole({"env:IMAGE_MAX_TOKEN_NUM"}, 0);
    return tokens > 0 ? tokens : whole({"max_pixels", "env:MAX_PIXELS"}, 0) / kPixelsOfToken;
  }

  /// A limit that no batch need reach: what is likely, and the limit for the upper end.
  [[nodiscard]] std::int64_t likely_of(std::int64_t limit, std::int64_t usual) {
    return limit > 0 ? std::min(limit, core::bounded_sum({usual, image_tokens()})) : 0;
  }

  /// Samples that follow each other are one row of all their tokens.
  void join_samples() {
    const std::int64_t sequences =
        core::bounded_product({training().batch_size, algorithm().pairs ? std::int64_t{2} : std::int64_t{1}});
    PostTrainingOptions& to = options();
    if (to.length_limit) to.length_limit = core::bounded_product({*to.length_limit, sequences});
    training().sequence_length = core::bounded_product({*training().sequence_length, sequences});
    to.packing = true;
    samples_ = training().batch_size;
    training().batch_size = 1;
  }

  /// An image a sample; rows of many samples have many.
  void choose_images() {
    const std::int64_t tokens = image_tokens();
    if (tokens <= 0 || program_ == Program::megatron) return;
    constexpr std::int64_t kTokenSide = 28;
    std::int64_t side = 1;
    while ((side + 1) * (side + 1) <= tokens) ++side;
    const std::string pixels = std::to_string(side * kTokenSide);
    want("image", pixels + "x" + pixels);
    const std::int64_t sample = core::bounded_sum({kUsualLength, tokens});
    const std::int64_t row = training().sequence_length.value_or(0);
    if (options().packing && row > sample) want("images", std::to_string(row / sample));
  }

  void choose_lengths() {
    PostTrainingOptions& to = options();
    const std::int64_t most = whole({"max_length", "max_len"}, 0);
    to.packing = on({"packing"});
    if (program_ == Program::verl && on({"actor_rollout_ref.actor.use_dynamic_bsz"})) {
      to.packing = true;
      training().sequence_length = whole({"actor_rollout_ref.actor.ppo_max_token_len_per_gpu"}, kUsualRow);
      training().batch_size = 1;
    }
    if (training().batch_size == 0 && to.packing) training().batch_size = 1;
    if (training().batch_size == 0) choose_usual_batch();
    if (program_ == Program::unsloth) choose_unsloths_step();
    if (to.packing && most > 0) training().sequence_length = most;
    if (algorithm().generates) {
      choose_generated_lengths(most);
    } else if (!training().sequence_length) {
      training().sequence_length =
          most > 0 ? likely_of(most, kUsualLength) : core::bounded_sum({kUsualLength, image_tokens()});
      if (most > *training().sequence_length) to.length_limit = most;
      const bool open = of_swift() && most == 0;
      say_missing("the lengths of its batches; " + taken(*training().sequence_length, most) +
                      (open ? "; nothing but the model's context limits them" : ""),
                  {"seq_length", "completion_length"}, false);
      if (padding_free() && !to.packing && training().batch_size > 0) join_samples();
    }
    choose_images();
    if (algorithm().teacher && to.teacher_model.empty()) {
      say_missing("the teacher's model; one like the policy is taken", {"teacher_model"}, false);
    }
  }

  void choose_generated_lengths(std::int64_t most) {
    PostTrainingOptions& to = options();
    if (!to.completion_length) {
      to.completion_length = kUsualCompletion;
      say_missing("the length of the completions; " + taken(kUsualCompletion, 0), {"completion_length", "seq_length"},
                  false);
    }
    if (to.prompt_length || training().sequence_length) return;
    to.prompt_length = most > 0 ? likely_of(most, kUsualPrompt) : core::bounded_sum({kUsualPrompt, image_tokens()});
    if (most > *to.prompt_length) to.length_limit = core::bounded_sum({most, *to.completion_length});
    say_missing("the length of the prompts; " + taken(*to.prompt_length, most), {"prompt_length", "seq_length"}, false);
  }

  /// What the programs take where nobody says how large a pass is. verl asks for one of two settings; of these the one
  /// with a default is taken. Source: transformers 4.48, training_args.py; ms-swift 4, arguments/base_args; verl 0.7,
  /// trainer/config/actor/actor.yaml: ppo_max_token_len_per_gpu; OpenRLHF 0.8, cli/train_ppo_ray.py and train_dpo.py;
  /// Unsloth (2026-09), models/rl.py: _patch_trl_rl_trainers_impl.
  void choose_usual_batch() {
    if (program_ == Program::verl) {
      options().packing = true;
      training().sequence_length = kUsualRow;
      training().batch_size = 1;
      say_missing("the micro-batch; dynamic batches of 16,384 tokens are taken", {"batch_size"}, false);
      return;
    }
    constexpr std::int64_t kOfTransformers = 8;
    constexpr std::int64_t kFew = 4;
    const bool few = program_ == Program::unsloth || (program_ == Program::openrlhf && algorithm().generates);
    training().batch_size = of_swift() ? 1 : few ? kFew : kOfTransformers;
    say_missing("the micro-batch; the program's default of " + std::to_string(training().batch_size) + " is taken",
                {"batch_size"}, false);
  }

  /// Unsloth's two passes of a step, and its batch of a whole group, where a step would part groups. Source: as above.
  void choose_unsloths_step() {
    if (!value("gradient_accumulation_steps")) training().gradient_accumulation = 2;
    const std::int64_t group = std::max<std::int64_t>(whole({"num_generations"}, 8), 1);
    const std::int64_t step = core::bounded_product(
        {std::max<std::int64_t>(training().gradient_accumulation, 1), made_.gpus, training().batch_size});
    if (!algorithm().generates || step % group == 0) return;
    training().batch_size = group;
    made_.decided.push_back("num_generations " + std::to_string(group) + " does not divide a step, so it is the batch");
  }

  /// "1,024 tokens are taken, and max_length 2048 for the upper end of the range".
  [[nodiscard]] static std::string taken(std::int64_t tokens, std::int64_t most) {
    std::string text = core::with_separators(tokens) + " tokens are taken";
    if (most > tokens) text += ", and max_length " + std::to_string(most) + " for the upper end of the range";
    return text;
  }

  /// verl sizes the passes of policy and reference apart; the larger one is what takes more.
  [[nodiscard]] std::optional<std::int64_t> larger(std::string_view setting) {
    const std::string of_reference = "actor_rollout_ref.ref." + std::string(setting);
    const std::string of_policy = "actor_rollout_ref.rollout." + std::string(setting);
    const std::int64_t one = whole({of_policy}, 0);
    const std::int64_t other = whole({of_reference}, 0);
    const std::int64_t most = std::max(one, other);
    if (one > 0 && other > 0 && one != other) {
      made_.decided.push_back(std::string(setting) + " of policy and reference differ; both are taken as " +
                              std::to_string(most));
    }
    return most > 0 ? std::optional(most) : std::nullopt;
  }
  void choose_log_prob_passes() {
    if (program_ != Program::verl) return;
    options().log_prob_batch = larger("log_prob_micro_batch_size_per_gpu");
    options().log_prob_tokens = larger("log_prob_max_token_len_per_gpu");
  }

  /// The passes of a step, where the settings say how many samples it takes. ms-swift takes 16 but for GRPO, where
  /// nobody says the passes. Source: ms-swift 4, trainers/arguments.py and arguments/rlhf_args.py:
  /// gradient_accumulation_steps.
  void choose_accumulation() {
    if (program_ == Program::ms_swift && !value("gradient_accumulation_steps")) return choose_swifts_accumulation();
    std::int64_t step = 0;
    if (program_ == Program::megatron) step = whole({"global_batch_size"}, 0);
    if (program_ == Program::verl && !on({"actor_rollout_ref.actor.use_dynamic_bsz"})) {
      step = core::bounded_product(
          {whole({"actor_rollout_ref.actor.ppo_mini_batch_size"}, 0), whole({"actor_rollout_ref.rollout.n"}, 1)});
    }
    const std::int64_t samples = samples_ > 0 ? samples_ : training().batch_size;
    const std::int64_t pass = core::bounded_product(
        {std::max<std::int64_t>(samples, 0), std::max<std::int64_t>(training().layout.data_parallel, 0)});
    if (step > 0 && pass > 0) training().gradient_accumulation = std::max<std::int64_t>(1, step / pass);
  }

  void choose_swifts_accumulation() {
    constexpr std::int64_t kSamples = 16;
    const std::int64_t samples = samples_ > 0 ? samples_ : training().batch_size;
    const std::int64_t pass = core::bounded_product({std::max<std::int64_t>(samples, 1), made_.gpus});
    const bool one = options().algorithm == Algorithm::grpo || pass >= kSamples;
    const std::int64_t passes = one ? 1 : (kSamples + pass - 1) / pass;
    training().gradient_accumulation = passes;
    say_missing("the passes of a step; the program's default of " + std::to_string(passes) + " is taken",
                {"accumulate"}, false);
  }

  /// Files hold settings of algorithms that they do not use.
  void leave_out_foreign() {
    if (!algorithm().critic) options().critic_model.clear();
    if (!algorithm().teacher) options().teacher_model.clear();
    if (algorithm().generates) return;
    const PostTrainingOptions usual;
    PostTrainingOptions& to = options();
    to.reward_model.clear();
    to.gpu_memory_utilization = usual.gpu_memory_utilization;
    to.rollout_tensor_parallel = usual.rollout_tensor_parallel;
    to.max_model_len = usual.max_model_len;
    to.enforce_eager = usual.enforce_eager;
    to.engine = usual.engine;
    to.entropy = usual.entropy;
    to.sleep_level = usual.sleep_level;
  }

  /// What TRL's trainers of preferences cut sequences to, and TRL's and verl's of completions prompts and completions,
  /// where nobody says otherwise. Source: TRL 0.24, trainer/dpo_config.py: max_length; grpo_config.py:
  /// max_prompt_length; TRL 1.9: max_completion_length; ms-swift 4, arguments/rlhf_args.py; verl 0.7,
  /// trainer/config/data/legacy_data.yaml: 512 and 512.
  static constexpr std::int64_t kUsualRow = 16384;  ///< verl's ppo_max_token_len_per_gpu
  static constexpr std::int64_t kUsualLength = 1024;
  static constexpr std::int64_t kUsualPrompt = 512;
  static constexpr std::int64_t kUsualCompletion = 512;

  std::int64_t samples_ = 0;  ///< of a pass, where they follow each other in one row
};

}  // namespace launch_detail

GPUMEM_INLINE core::Result<Launch> read_launch(Program program, std::span<const LaunchSetting> settings,
                                               std::int64_t gpus) {
  return launch_detail::LaunchReader(program, settings, gpus).read();
}

}  // namespace gpumem::posttrain
