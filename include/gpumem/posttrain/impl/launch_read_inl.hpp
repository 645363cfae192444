#pragma once

#include "gpumem/posttrain/impl/launch_setting_inl.hpp"
#include "gpumem/posttrain/impl/launch_trainers_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

namespace gpumem::posttrain {

namespace launch_detail {
class LaunchReader : private TrainingReader {
 public:
  using TrainingReader::TrainingReader;

  core::Result<Launch> read() {
    if (core::Status taken = take_all(); !taken) return taken.error();
    choose_algorithm();
    choose_layout();
    say_other_engine();
    choose_units();
    choose_groups();
    choose_training();
    choose_kernels();
    choose_reference();
    choose_rollout();
    choose_lengths();
    choose_log_prob_passes();
    choose_accumulation();
    choose_generated_at_once();
    leave_out_foreign(made_.request);
    leave_out_foreign_notes();
    if (fault_) return *fault_;
    return std::move(made_);
  }

 private:
  // --- What they mean together --------------------------------------------------------------------------------------
  /// verl's engines beside FSDP, which 0.8 calls "dp", and Megatron.
  void say_other_engine() {
    if (in_megatron()) return;
    for (const std::string_view key : {"actor_rollout_ref.actor.strategy", "model_engine"}) {
      const std::string_view engine = word({key}, "fsdp");
      if (!engine.starts_with("fsdp") && engine != "dp") say_not_modelled(key, engine);
    }
  }

  /// What fully_shard() makes of each block, also on one GPU: its parameters on the host (FSDP of PyTorch 1 ignores
  /// that for what is trained; EasyR1's does not), and whether they stay gathered after forward. Source: verl 0.7,
  /// workers/fsdp_workers.py: _build_model_optimizer; ROLL (2026-08), distributed/strategy/fsdp2_strategy.py:
  /// setup_fsdp2_configuration; NeMo-RL (2026-08), models/automodel/setup.py.
  void choose_units() {
    if (in_megatron() || program_ != Program::verl) return;
    const std::string settings = "actor_rollout_ref.actor.fsdp_config.";
    const bool second = word({"actor_rollout_ref.actor.strategy"}) == "fsdp2";
    const std::string policy = settings + "offload_policy";
    if (on({policy}) && !second && !renamed_) {
      made_.decided.push_back(policy + " is FSDP2's, and strategy is not fsdp2: all stays on the GPU");
    } else if (on({policy})) {
      want_offload(model::Offload::parameters, policy, word({policy}));
    }
    const std::string reshard = settings + "reshard_after_forward";
    const std::string_view after = word({reshard}, "true");
    if (is_true(after) || after.empty() || after == "null" || after == "None" || made_.gpus == 1) return;
    if (second) want("reshard_after_forward", is_false(after) ? "never" : after);
    else say_not_modelled(reshard, after);
  }

  /// verl's ranks of a group share what all groups have. Source: verl 0.7, workers/fsdp_workers.py: create_device_mesh.
  void choose_groups() {
    constexpr std::string_view kSize = "actor_rollout_ref.actor.fsdp_config.fsdp_size";
    const auto size = core::parse_whole(word({kSize}, "-1"));
    if (in_megatron() || (size && (*size < 0 || *size >= made_.gpus))) return;
    const bool second = training().layout.sharding.kind == model::Shardings::fsdp2;
    if (second && size.value_or(0) > 1) return want("sharding", "hsdp:" + std::to_string(*size));
    say_not_modelled(kSize, word({kSize}));
  }

  void choose_kernels() {
    const std::string_view attention =
        word({"attn_impl", "attn_implementation", "attention_backend", "model_init_kwargs.attn_implementation"});
    if (attention.starts_with("flash") || on({"flash_attn"}) || program_ == Program::verl)
      training().attention = model::AttentionBackend::flash;
    if (attention == "eager") training().attention = model::AttentionBackend::eager;
    const bool usual = of_swift() || of_trl() || program_ == Program::verl;
    bool checkpoints = on({"gradient_checkpointing", "actor_rollout_ref.model.enable_gradient_checkpointing"}, usual);
    if (in_megatron()) {
      // verl's is null unless it is given (trainer/config/engine/megatron.yaml).
      const std::string_view granularity =
          word({"recompute_granularity",
                "actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity"},
               program_ == Program::verl ? "none" : "selective");
      checkpoints = granularity == "full";
      if (granularity == "selective") want("checkpointing", "selective-attention");
    }
    const BlockCalls calls = {value("gradient_checkpointing_kwargs.use_reentrant"), value("use_reentrant_gc")};
    if (checkpoints) want("checkpointing", whole_blocks(program_, training().layout.sharding.kind, calls));
    if (fuses_the_loss()) training().loss_form = {model::LossForms::fused, 0};
    const bool liger = on({"use_liger_kernel", "liger_layers", "actor_rollout_ref.model.use_liger"});
    if (liger && !in_megatron()) training().kernels = model::Kernels::liger;
    const bool hosts = program_ == Program::unsloth && word({"use_gradient_checkpointing"}, "unsloth") == "unsloth";
    if (hosts && checkpoints) want_offload(model::Offload::activations, "use_gradient_checkpointing", "unsloth");
    constexpr std::string_view kFused = "actor_rollout_ref.model.use_fused_kernels";
    if (on({kFused}) && in_megatron()) say_not_modelled(kFused, word({kFused}));
    else if (on({kFused})) training().loss_form = {model::LossForms::fused, 0};
    if (program_ == Program::megatron && on({"cross_entropy_loss_fusion"}, true)) {
      training().loss_form = {model::LossForms::fused_ce, 0};
    }
    training().transformers = row_of(options().program).transformers;
    made_.request.freezes_tower = on({"freeze_vit"}, of_swift()) || on({"actor_rollout_ref.actor.freeze_vision_tower"});
    if (on({"freeze_llm"})) say_not_modelled("freeze_llm", "true");
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
    // EasyR1's reference is there unless it is told otherwise (trainer/ray_trainer.py: use_reference_policy).
    const bool compared = on({"actor_rollout_ref.actor.use_kl_loss"}) || on({"algorithm.use_kl_in_reward"}) ||
                          (program_ == Program::verl && renamed_ && !on({"algorithm.disable_kl"}));
    const bool zero = beta == "0" || beta == "0.0";
    if (program_ == Program::verl) options().reference = compared ? verl_reference() : Reference::none;
    if (of_trl() && algorithm().generates && !algorithm().reference) {
      // Unsloth's beta is 0.001, TRL's 0 but for those that compare.
      const bool uses = beta.empty() ? program_ == Program::unsloth || compares_in_trl(algorithm_word()) : !zero;
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
      if (algorithm_word().starts_with("Async") || algorithm_word().starts_with("async")) {
        to.rollout = Rollout::elsewhere;
      }
      if (on({"vllm_enable_sleep_mode"})) to.sleep_level = 2;
      to.offload = waiting(on({"offload_model"}), on({"offload_optimizer"}));
      return;
    }
    if (program_ == Program::verl) {
      const std::string_view server = word({"actor_rollout_ref.rollout.name"}, "vllm");
      if (server == "sglang") to.engine = Engine::sglang;
      else if (server == "hf") to.rollout = Rollout::generate;
      else if (server != "vllm") say_not_modelled("actor_rollout_ref.rollout.name", server);
      // "rollout." is that of experimental/fully_async_policy and one_step_off_policy.
      const bool apart = !on({"actor_rollout_ref.hybrid_engine"}, true) ||
                         whole({"actor_rollout_ref.rollout.nnodes", "rollout.nnodes"}, 0) > 0;
      if (server != "hf") to.rollout = apart ? Rollout::elsewhere : Rollout::colocated;
      if (on({"actor_rollout_ref.rollout.free_cache_engine"}, true)) to.sleep_level = 2;
      leave_out_idle_reward();
      const bool model = on({in_megatron() ? "actor_rollout_ref.actor.megatron.param_offload"
                                           : "actor_rollout_ref.actor.fsdp_config.param_offload"});
      const bool states = on({in_megatron() ? "actor_rollout_ref.actor.megatron.optimizer_offload"
                                            : "actor_rollout_ref.actor.fsdp_config.optimizer_offload"});
      to.offload = waiting(model, states);
      return;
    }
    to.rollout = on({"colocate_all_models"}) ? Rollout::colocated : Rollout::elsewhere;
    const std::int64_t engines = whole({"vllm_num_engines"}, 1);
    if (engines == 0) say_not_modelled("vllm_num_engines", "0");  // generate() of a DeepSpeed engine
    if (on({"vllm_enable_sleep"})) to.sleep_level = 1;
    if (on({"deepspeed_enable_sleep"})) to.offload = Waiting::both;
  }

  /// verl has no reward model unless it is enabled. Source: verl 0.7, trainer/config/reward_model/reward_model.yaml and
  /// dp_reward_loop.yaml; experimental/reward_loop/reward_model.py.
  void leave_out_idle_reward() {
    if (options().reward_model.empty()) return;
    const auto decide = [&](std::string_view text) {
      made_.decided.emplace_back("reward_model.model.path " + std::string(text));
    };
    const bool enabled = on({"reward_model.enable"});
    if (enabled && !on({"reward_model.enable_resource_pool"})) {
      if (!on({"reward_model.use_reward_loop"}, true)) return;
      return decide(
          "is served by an engine of its own, which sleeps in other phases; it is taken as with "
          "use_reward_loop=false");
    }
    if (enabled) decide("has GPUs of its own: reward_model.enable_resource_pool");
    else if (!find("reward_model.enable")) decide("is not held: reward_model.enable is false unless it is given");
    options().reward_model.clear();
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

  /// Tokens that the largest image takes.
  [[nodiscard]] std::int64_t image_tokens() {
    const std::int64_t tokens = whole({"env:IMAGE_MAX_TOKEN_NUM"}, 0);
    const std::int64_t side = side_of_token(made_.model, tokens > 0);
    return tokens > 0 ? tokens : whole({"max_pixels", "env:MAX_PIXELS"}, 0) / (side * side);
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

  /// ms-swift fills a row with whole samples, and counts all that a sample has: both answers of a pair, which are in
  /// one row, and KTO's answer to another prompt, which is in the row of the other pass. Source: ms-swift 4,
  /// dataset/packing.py: create_packed_idx; template/base.py: encode (lengths), _kto_data_collator.
  void choose_packed_row(std::int64_t most) {
    const std::int64_t row = whole({"packing_length"}, most);
    const std::int64_t passes = algorithm().mismatched ? 2 : 1;
    training().sequence_length = std::max<std::int64_t>(row / passes, 1);
  }

  /// An image a sample; rows of many samples have many.
  void choose_images() {
    const std::int64_t tokens = image_tokens();
    if (tokens <= 0 || program_ == Program::megatron) return;
    std::int64_t side = 1;
    while ((side + 1) * (side + 1) <= tokens) ++side;
    side *= side_of_token(made_.model, whole({"env:IMAGE_MAX_TOKEN_NUM"}, 0) > 0);
    want("image", std::to_string(side) + "x" + std::to_string(side));
    const std::int64_t sample = core::bounded_sum({Usual::kLength, tokens});
    const std::int64_t row = training().sequence_length.value_or(0);
    if (options().packing && row > sample) want("images", std::to_string(row / sample));
  }

  /// verl's limits are of each GPU that shares a row (dp_actor.py: update_policy), other programs' of the row.
  [[nodiscard]] std::int64_t of_row(std::int64_t tokens) {
    const std::int64_t ranks = core::bounded_product({options().sequence_ranks, training().layout.context_parallel});
    return restated_ ? tokens : core::bounded_product({tokens, std::max<std::int64_t>(ranks, 1)});
  }

  /// The tokens of verl's dynamic batches: no more than a mini-batch has, where the settings say how long its samples
  /// may be. Source: verl 0.7, workers/fsdp_workers.py: __init__ (ppo_mini_batch_size); utils/seqlen_balancing.py:
  /// rearrange_micro_batches.
  [[nodiscard]] std::int64_t verl_row() {
    const std::int64_t most = of_row(whole({"actor_rollout_ref.actor.ppo_max_token_len_per_gpu"}, Usual::kRow));
    const std::int64_t prompts = whole({"actor_rollout_ref.actor.ppo_mini_batch_size"}, 0);
    const PostTrainingOptions& to = options();
    if (prompts == 0 || !to.prompt_length || !to.completion_length) return most;
    const std::int64_t samples = core::bounded_product({prompts, whole({"actor_rollout_ref.rollout.n"}, 1)});
    const std::int64_t sample = core::bounded_sum({*to.prompt_length, *to.completion_length});
    return std::max<std::int64_t>(std::min(most, core::bounded_product({on_each(samples), sample})), 1);
  }

  void choose_lengths() {
    PostTrainingOptions& to = options();
    const std::int64_t most = whole({"max_length", "max_len"}, 0);
    to.packing = on({"packing"});
    if (program_ == Program::verl && on({"actor_rollout_ref.actor.use_dynamic_bsz"})) {
      to.packing = true;
      training().sequence_length = verl_row();
      training().batch_size = 1;
    }
    if (program_ == Program::openrlhf && on({"use_dynamic_batch"})) {
      to.packing = true;
      training().sequence_length = whole({"train_max_tokens_per_gpu"}, Usual::kDynamicRow);
      training().batch_size = 1;
    }
    if (training().batch_size == 0) choose_batch_of_all();
    if (training().batch_size == 0 && to.packing) training().batch_size = 1;
    if (training().batch_size == 0) choose_usual_batch();
    if (program_ == Program::unsloth) choose_unsloths_step();
    if (of_swift() && to.packing && most > 0) choose_packed_row(most);
    else if (to.packing && most > 0 && !training().sequence_length) training().sequence_length = most;
    if (algorithm().generates) {
      choose_generated_lengths(most);
    } else if (!training().sequence_length) {
      training().sequence_length =
          most > 0 ? likely_of(most, Usual::kLength) : core::bounded_sum({Usual::kLength, image_tokens()});
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
      to.completion_length = algorithm().in_step ? Usual::kShortCompletion : Usual::kCompletion;
      say_missing("the length of the completions; " + taken(*to.completion_length, 0),
                  {"completion_length", "seq_length"}, false);
    }
    if (to.prompt_length || training().sequence_length) return;
    // OpenRLHF's limit is that of prompt and completion since 0.9.
    const std::int64_t whole_limit = renamed_ ? most : 0;
    if (whole_limit > 0) most = std::max<std::int64_t>(whole_limit - *to.completion_length, 1);
    to.prompt_length = most > 0 ? likely_of(most, Usual::kPrompt) : core::bounded_sum({Usual::kPrompt, image_tokens()});
    made_.request.text_prompt = image_tokens() == 0;
    if (most > *to.prompt_length) to.length_limit = core::bounded_sum({most, *to.completion_length});
    say_missing("the length of the prompts; " + taken(*to.prompt_length, most), {"prompt_length", "seq_length"}, false);
  }

  /// verl's older settings count the samples of all GPUs. Source: verl 0.7, workers/fsdp_workers.py: __init__.
  [[nodiscard]] std::int64_t on_each(std::int64_t samples) {
    const std::int64_t copies = in_megatron() ? training().layout.data_parallel : made_.gpus;
    const std::int64_t ranks = std::max<std::int64_t>(copies / std::max<std::int64_t>(options().sequence_ranks, 1), 1);
    return samples > 0 ? std::max<std::int64_t>(samples / ranks, 1) : 0;
  }
  void choose_batch_of_all() {
    const std::int64_t each = on_each(whole({"actor_rollout_ref.actor.ppo_micro_batch_size"}, 0));
    if (program_ == Program::verl && each > 0) training().batch_size = each;
  }

  /// What the programs take where nobody says how large a pass is. verl asks for one of two settings; of these the one
  /// with a default is taken. Source: transformers 4.48, training_args.py; ms-swift 4, arguments/base_args; verl 0.7,
  /// trainer/config/actor/actor.yaml: ppo_max_token_len_per_gpu; EasyR1, workers/actor/config.py; OpenRLHF 0.8,
  /// cli/train_ppo_ray.py and train_dpo.py; Unsloth (2026-09), models/rl.py: _patch_trl_rl_trainers_impl.
  void choose_usual_batch() {
    if (program_ == Program::verl && !renamed_) {
      options().packing = true;
      training().sequence_length = of_row(Usual::kRow);
      training().batch_size = 1;
      say_missing("the micro-batch; dynamic batches of 16,384 tokens are taken", {"batch_size"}, false);
      return;
    }
    constexpr std::int64_t kOfTransformers = 8;
    constexpr std::int64_t kFew = 4;
    const bool one = of_swift() || (program_ == Program::openrlhf && renamed_ && algorithm().generates);
    const bool few = program_ == Program::unsloth || program_ == Program::verl ||
                     (program_ == Program::openrlhf && algorithm().generates);
    training().batch_size = one ? 1 : few ? kFew : kOfTransformers;
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
    if (!options().log_prob_batch) {
      if (const auto all = larger("log_prob_micro_batch_size")) options().log_prob_batch = on_each(*all);
    }
    const std::int64_t critic = whole({"critic.ppo_micro_batch_size_per_gpu"}, 0);
    if (algorithm().critic && critic > 0 && !options().packing && critic != training().batch_size) {
      made_.decided.push_back("the critic's micro-batch of " + std::to_string(critic) + " is taken as the policy's, " +
                              std::to_string(training().batch_size));
    }
    if (const auto tokens = larger("log_prob_max_token_len_per_gpu")) options().log_prob_tokens = of_row(*tokens);
  }

  /// The passes of a step, where the settings say how many samples it takes. ms-swift takes 16 but for GRPO, where
  /// nobody says the passes. Source: ms-swift 4, trainers/arguments.py and arguments/rlhf_args.py:
  /// gradient_accumulation_steps.
  void choose_accumulation() {
    if (program_ == Program::ms_swift && !value("gradient_accumulation_steps")) return choose_swifts_accumulation();
    constexpr std::int64_t kOfMegatron = 16;  // ms-swift 4, megatron/arguments/megatron_args.py
    std::int64_t step = program_ == Program::megatron ? whole({"global_batch_size"}, kOfMegatron) : 0;
    if (program_ == Program::verl && !on({"actor_rollout_ref.actor.use_dynamic_bsz"})) {
      step = core::bounded_product(
          {whole({"actor_rollout_ref.actor.ppo_mini_batch_size"}, 0), whole({"actor_rollout_ref.rollout.n"}, 1)});
    }
    const std::int64_t samples = samples_ > 0 ? samples_ : training().batch_size;
    const std::int64_t pass = core::bounded_product(
        {std::max<std::int64_t>(samples, 0), std::max<std::int64_t>(training().layout.data_parallel, 0)});
    if (step <= 0 || pass <= 0) return;
    training().gradient_accumulation = std::max<std::int64_t>(1, step / pass);
    if (step % pass == 0 || (options().packing && samples_ == 0)) return;
    made_.decided.push_back("a step's " + std::to_string(step) + " samples are no multiple of the " +
                            std::to_string(pass) + " of a pass on all GPUs; " +
                            std::to_string(training().gradient_accumulation) + " passes are taken");
  }

  /// TRL and ms-swift generate for several passes at once: a step's, unless they are told otherwise. Source: TRL 1.9,
  /// trainer/grpo_config.py: generation_batch_size, steps_per_generation.
  void choose_generated_at_once() {
    constexpr std::int64_t kUsualGroup = 8;  // num_generations of TRL and ms-swift
    if (algorithm().generates && !options().num_generations) {
      options().num_generations = of_trl() || of_swift() ? kUsualGroup : 1;
    }
    if (!algorithm().generates || algorithm().in_step || (!of_trl() && !of_swift())) return;
    const std::int64_t all = whole({"generation_batch_size"}, 0);
    const std::int64_t passes = whole({"steps_per_generation"}, 0);
    if (all > 0) options().rollout_batch = std::max<std::int64_t>(all / std::max<std::int64_t>(made_.gpus, 1), 1);
    else if (passes > 0) options().rollout_batch = core::bounded_product({training().batch_size, passes});
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

  /// No note about a model that verl does not run, or about rows that it does not make.
  void leave_out_foreign_notes() {
    if (program_ != Program::verl) return;
    const auto drop = [&](std::string_view begin) {
      std::erase_if(made_.not_modelled, [&](const std::string& note) { return note.starts_with(begin); });
    };
    for (const std::string_view of_critic : {"critic.", "worker.critic."}) {
      if (!algorithm().critic) drop(of_critic);
    }
    if (!options().packing) drop("critic.ppo_max_token_len_per_gpu");
    if (options().reward_model.empty()) drop("reward_model.");
    if (options().reference != Reference::own) drop("actor_rollout_ref.ref.");
  }

  std::int64_t samples_ = 0;  ///< of a pass, where they follow each other in one row
};

}  // namespace launch_detail

GPUMEM_INLINE core::Result<Launch> read_launch(Program program, std::span<const LaunchSetting> settings,
                                               std::int64_t gpus) {
  namespace detail = launch_detail;
  if (program == Program::open_instruct && detail::prefers(settings)) {
    return detail::LaunchReader(Program::trl, detail::open_instruct_dpo(settings), gpus).read();
  }
  if (!detail::is_restated(program)) {
    const std::vector<LaunchSetting> own = detail::with_objects(program, settings);
    return detail::with_speech(program, own, detail::LaunchReader(program, own, gpus).read());
  }
  const Program whose = detail::settings_of(program);
  const detail::RestatedSettings restated = detail::restated(whose, settings);
  core::Result<Launch> made = detail::with_speech(whose, settings, detail::LaunchReader(restated, gpus).read());
  if (!made) return made;
  PostTrainingOptions& to = made->request.options;
  to.program = to.program == Program::verl_megatron ? detail::in_megatron(whose) : whose;
  made->request.training.training.transformers = row_of(to.program).transformers;
  if (restated.swaps_reference && to.reference == Reference::own) to.reference = Reference::swapped;
  if (restated.whole_reference && to.reference == Reference::own) to.reference = Reference::whole;
  to.old_log_probs = restated.old_log_probs;
  const bool verls = restated.names == Program::verl;
  if (verls && to.rollout == Rollout::colocated) to.sleep_level = restated.sleep_level;
  return made;
}

}  // namespace gpumem::posttrain
