#pragma once

#include "gpumem/posttrain/impl/phases_logits_inl.hpp"
#include "gpumem/posttrain/phases.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/estimate/replay.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/posttrain/launch.hpp"

namespace gpumem::posttrain {

namespace phases_detail {

/// One model on the way through the phases: its plan, the mark of the next part, and that of the part that is played
/// again where all are through.
struct Runner {
  plan::PhaseWriter::Model model = 0;
  std::size_t mark = 0;
  std::size_t again = 0;
};

namespace detail = post_training_job_detail;

class PlanMaker {
 public:
  PlanMaker(const PostTrainingJob& job, const Decided& decided, const device::GpuProfile& gpu, bool lengths_differ,
            analysis::Analyses* analyses, plan::PhasedPlan reused)
      : job_(job), decided_(decided), gpu_(gpu), analyses_(analyses), writer_(std::move(reused)) {
    if (lengths_differ) shares_ = kGrowing;
  }

  core::Result<PostTrainingPlan> make() {
    if (core::Status added = add_models(); !added) return added.error();
    writer_.expect(events_ * iterations());
    load();
    for (std::size_t played = 0; played < iterations(); ++played) {
      if (decided_.algorithm.generates) gather_experience();
      update();
    }
    made_.phased = std::move(writer_).take();
    return std::move(made_);
  }

 private:
  using Categories = plan::PhaseWriter::Categories;
  using Parts = std::vector<plan::RunPart>;
  using Lent = analysis::Analyses::Lent;
  /// The samples of each batch, as shares of the longest. Of a thousand batches about seven are each the longest so far
  /// (the sum of 1/n), and of even lengths each comes half as far from the limit as the last.
  static constexpr double kAlike[] = {1.0};
  static constexpr double kGrowing[] = {1.0 / 2, 3.0 / 4, 7.0 / 8, 15.0 / 16, 1.0};
  static constexpr Categories weights() { return plan::only({plan::Category::parameter, plan::Category::buffer}); }
  /// What goes to the host with the policy's weights: Megatron's main gradients, too.
  [[nodiscard]] Categories waiting() const {
    using enum plan::Category;
    return decided_.program.megatron ? plan::only({parameter, buffer, gradient}) : weights();
  }
  static constexpr Categories states() { return plan::only({plan::Category::optimizer}); }
  /// From the second on all steps are alike, and all passes: the last one is played again. Not so a step that frees the
  /// gradients of the one before it.
  [[nodiscard]] Parts steps() const {
    const bool alike = decided_.policy.zero_grad == model::ZeroGrad::step_end || decided_.program.megatron;
    return Parts(alike ? 2 : iterations(), plan::RunPart::train);
  }
  /// Of the passes of a step the second is like all that follow; a pipeline has them all at once.
  [[nodiscard]] std::int64_t passes() const {
    const std::int64_t all = decided_.policy.gradient_accumulation;
    return decided_.policy.layout.pipeline_parallel > 1 ? all : std::min<std::int64_t>(all, 2);
  }
  /// Enough for all batches, and at least two: from the second on all steps are alike.
  [[nodiscard]] std::size_t iterations() const {
    const auto each = static_cast<std::size_t>(std::max<std::int64_t>(passes(), 1));
    return std::max<std::size_t>((shares_.size() + each - 1) / each, 2);
  }
  static Parts forwards() { return {plan::RunPart::forward, plan::RunPart::forward}; }
  core::Status add_models() {
    model::TrainingJob policy = decided_.policy;
    policy.gradient_accumulation = passes();
    made_.policy = analysis_of(std::move(policy));
    if (core::Status chosen = estimate::choose_rank(*made_.policy, gpu_, {}); !chosen) return chosen.error();
    rank_ = made_.policy->job().layout.rank;
    into_tower_ = kept_of_frozen_tower(decided_, *made_.policy);
    if (core::Status added = add(Role::policy, *made_.policy, steps(), policy_); !added) return added.error();
    if (core::Status added = add_readers(); !added) return added.error();
    if (core::Status added = add_others(); !added) return added.error();
    rollout_.model = writer_.add({});
    made_.roles.push_back(Role::rollout);
    return core::Done{};
  }

  /// Passes without gradients of the policy and of its reference.
  core::Status add_readers() {
    if (reads_policy()) {
      if (core::Status added = add(Role::policy, decided_.reading, forwards(), reader_); !added) return added.error();
    }
    if (!is_own(decided_.reference) && decided_.reference != Reference::base) return core::Done{};
    return add(Role::reference, reference_job(job_, decided_), forwards(), reference_);
  }

  core::Status add_others() {
    if (core::Status added = decided_.algorithm.critic ? add_critic() : core::Done{}; !added) return added.error();
    if (job_.reward != nullptr) {
      model::TrainingJob reward = frozen_job(decided_, job_.reward);
      if (decided_.program.streams_reference) stream_from_host(reward);
      reward.objective = {model::Objective::scores, 0};
      if (core::Status added = add(Role::reward, reward, forwards(), reward_); !added) return added.error();
    }
    if (!decided_.algorithm.teacher) return core::Done{};
    return add(Role::teacher, frozen_job(decided_, job_.teacher), forwards(), teacher_);
  }

  core::Status add_critic() {
    model::TrainingJob critic = decided_.policy;
    critic.gradient_accumulation = passes();
    if (job_.critic != nullptr) critic.graph = job_.critic;
    critic.objective = {model::Objective::scores, 0};
    if (core::Status added = add(Role::critic, critic, steps(), critic_); !added) return added.error();
    critic.batch_size = decided_.reading.batch_size;
    return add(Role::critic, critic, forwards(), values_);
  }

  core::Status add(Role role, model::TrainingJob job, const Parts& parts, std::optional<Runner>& runner) {
    if (job.layout != model::Layout()) job.layout.rank = rank_;
    const Lent analysis = analysis_of(std::move(job));
    analysis->take_stages_of(*made_.policy);
    return add(role, *analysis, parts, runner);
  }
  [[nodiscard]] Lent analysis_of(model::TrainingJob job) const {
    return analyses_ != nullptr ? analyses_->take(job) : Lent(new analysis::Analysis(std::move(job)));
  }
  core::Status add(Role role, analysis::Analysis& analysis, const Parts& parts, std::optional<Runner>& runner) {
    if (const core::Status valid = model::validate(analysis.job()); !valid) return valid.error();
    if (const core::Status& known = analysis.modelled(); !known) return known.error();
    if (const core::Status chosen = analysis.choose_for(gpu_); !chosen) return chosen.error();
    const auto pass = analysis.forward_pass();
    if (!pass) return pass.error();
    core::Result<plan::StepPlan> plan = plan::make_run_plan(analysis.job(), **pass, parts);
    if (!plan) return plan.error();
    if (role == Role::policy || role == Role::critic) plan::keep_on_host(*plan, job_.options.states_on_host);
    // The first mark is the model's construction, and each part has as many as another.
    const std::size_t marks = plan->phases.size();
    const std::size_t each = parts.empty() || marks == 0 ? 0 : (marks - 1) / parts.size();
    events_ += plan->events.size();
    runner = Runner{writer_.add(*std::move(plan)), 0, marks - each};
    made_.roles.push_back(role);
    return core::Done{};
  }

  [[nodiscard]] std::int64_t logits_bytes(const model::TrainingJob& of) const {
    return detail::logits_bytes(decided_, of);
  }

  [[nodiscard]] bool reads_policy() const {
    const bool serves = decided_.rollout == Rollout::colocated || decided_.rollout == Rollout::elsewhere;
    const bool older = decided_.program.always_old || (serves && !decided_.program.old_of_engine);
    return decided_.algorithm.mismatched || (before_update() && (older || job_.options.old_log_probs));
  }

  /// Whether completions are read before the update, and not within each of its passes.
  [[nodiscard]] bool before_update() const { return decided_.algorithm.generates && !decided_.algorithm.in_step; }

  [[nodiscard]] bool waits(Waiting which) const {
    return job_.options.offload == which || job_.options.offload == Waiting::both;
  }

  void play(Runner& runner, const Categories& kept = plan::all_categories()) {
    if (rewind(runner); !next(runner)) return;
    const auto [first, end] = next_events(runner);
    ++runner.mark;
    writer_.play(runner.model, first, end, kept);
  }

  /// Where all parts are through, the last one is played again.
  void rewind(Runner& runner) const {
    if (runner.mark >= writer_.plan_of(runner.model).phases.size()) runner.mark = runner.again;
  }

  /// A pass without gradients between phases. What a unit has gathered goes when the pass is through: verl shards the
  /// root again, and another pass of the same weights does not gather it a second time.
  void read(Runner& runner) {
    constexpr Categories kGathered = plan::only({plan::Category::gathered});
    writer_.bring_back(runner.model, kGathered);
    play(runner);
    if (decided_.algorithm.generates) writer_.set_aside(runner.model, kGathered);
  }

  /// The phase that the model's next part is of.
  [[nodiscard]] std::optional<plan::Phase> next(const Runner& runner) const {
    const auto& phases = writer_.plan_of(runner.model).phases;
    return runner.mark < phases.size() ? std::optional(phases[runner.mark].phase) : std::nullopt;
  }
  /// Its events, from the first to before the last.
  [[nodiscard]] detail::Span next_events(const Runner& runner) const {
    const plan::StepPlan& plan = writer_.plan_of(runner.model);
    const bool last = runner.mark + 1 == plan.phases.size();
    return {plan.phases[runner.mark].first_event, last ? plan.events.size() : plan.phases[runner.mark + 1].first_event};
  }

  void load() {
    writer_.begin("load");
    play(*policy_);
    load_towers();
    if (reader_) play(*reader_, {});  // the policy has these weights
    if (reference_) play(*reference_, is_own(decided_.reference) ? weights() : Categories{});
    if (critic_) play(*critic_);
    if (values_) play(*values_, {});
    if (reward_) play(*reward_, weights());
    if (teacher_) play(*teacher_, weights());
    if (reference_ && job_.options.reference_offload) writer_.set_aside(reference_->model, weights());
    if (decided_.program.optimizer_only_updates) leave_states();
  }
  /// One of the policy, and one of a reference that is a model of its own.
  void load_towers() {
    const bool left_out = decided_.policy.images == 0 && job_.policy.images != 0;
    const std::int64_t parameters = left_out ? tower_parameters(*job_.policy.graph) : job_.tower_parameters;
    if (parameters <= 0) return;
    const std::int64_t bytes = core::bounded_product({parameters, 2});
    const auto take = [&](const Runner& runner) {
      static_cast<void>(writer_.allocate(runner.model, bytes, plan::Category::parameter));
    };
    take(*policy_);
    if (reference_ && is_own(decided_.reference)) take(*reference_);
  }

  void leave_states() {
    if (!waits(Waiting::optimizer)) return;
    writer_.set_aside(policy_->model, states());
    if (critic_) writer_.set_aside(critic_->model, states());
  }
  void take_states() {
    writer_.bring_back(policy_->model, states());
    if (critic_) writer_.bring_back(critic_->model, states());
  }

  /// Around what generates alone: the cache of an update over preferences stays.
  void between() {
    if (decided_.program.empties_cache && decided_.algorithm.generates) writer_.empty_cache();
  }

  void gather_experience() {
    // The engine wakes when what waits is on the host, and the cache is empty: verl 0.7, fsdp_workers.py: rollout_mode.
    if (waits(Waiting::model)) writer_.set_aside(policy_->model, waiting());
    leave_states();
    between();
    writer_.begin(kRolloutPhase);
    if (decided_.rollout == Rollout::generate) generate();
    if (!before_update()) return return_policy();
    const bool first = decided_.program.reference_first && is_own(decided_.reference);
    if (first) see_reference();
    writer_.begin("log-probabilities");
    return_policy();
    if (reader_) {
      read(*reader_);
      hold_for_a_moment(*reader_, detail::read_entropy(decided_, job_.options));
    }
    between();
    if (!first) see_reference();
    writer_.begin("rewards and values");
    if (reward_) read(*reward_);
    if (values_) read(*values_);
    between();
  }
  void see_reference() {
    writer_.begin("reference");
    read_reference();
    between();
  }
  void return_policy() {
    if (waits(Waiting::model)) writer_.bring_back(policy_->model, waiting());
    if (!decided_.program.optimizer_only_updates) take_states();
  }

  void hold_for_a_moment(const Runner& runner, std::int64_t bytes) {
    if (bytes > 0) writer_.release(writer_.allocate(runner.model, bytes, plan::Category::temporary));
  }
  void read_reference() {
    if (decided_.reference == Reference::swapped && reader_) read(*reader_);
    if (!reference_) return;
    if (job_.options.reference_offload) writer_.bring_back(reference_->model, weights());
    read(*reference_);
    if (job_.options.reference_offload) writer_.set_aside(reference_->model, weights());
  }

  void update() {
    constexpr Categories kGathered = plan::only({plan::Category::gathered});
    if (decided_.algorithm.generates) writer_.begin("update: forward");
    if (decided_.program.optimizer_only_updates && !decided_.program.states_for_step) take_states();
    writer_.bring_back(policy_->model, kGathered);
    rewind(*policy_);
    if (critic_) rewind(*critic_);
    if (decided_.algorithm.critic && decided_.program.joint_critic) update_both();
    else {
      update_alone(*policy_, "update", true);
      if (critic_) update_alone(*critic_, "critic's update", false);
    }
    if (decided_.algorithm.generates) writer_.set_aside(policy_->model, kGathered);
    const bool freed = decided_.program.flat_parameters;  // by zero_grad(); others go with the next forward
    if (freed) writer_.set_aside(policy_->model, plan::only({plan::Category::gradient}));
    if (freed && critic_) writer_.set_aside(critic_->model, plan::only({plan::Category::gradient}));
    between();
    if (decided_.program.optimizer_only_updates) leave_states();
  }

  /// A step of one model: batches, forward, backward, and last the optimizer.
  void update_alone(Runner& runner, std::string_view name, bool compares) {
    const bool preferences = compares && !before_update();
    while (const std::optional<plan::Phase> phase = next(runner)) {
      if (*phase == plan::Phase::optimizer) {
        writer_.set_share(1.0);
        writer_.begin(std::string(name) + ": optimizer");
        if (decided_.program.states_for_step) take_states();
        return play(runner);
      }
      const bool forward = *phase == plan::Phase::forward;
      const bool backward = *phase == plan::Phase::backward;
      if (forward && compares) begin_batch();
      if (forward && preferences) compare_before();
      writer_.begin(std::string(name) + (backward ? ": backward" : ": forward"));
      if (backward && compares) hold_for_a_moment(*policy_, detail::entropy_gradients(decided_, job_.options));
      if (backward && compares && hands_on()) begin_backward_of_divergence();
      if (forward && compares) hold_for_backward(runner, into_tower_);
      if (forward && preferences) forward_and_compare(runner);
      else if (backward && compares) play_backward(runner);
      else play(runner);
      if (backward) drop_held();
    }
  }

  void play_backward(Runner& runner) {
    const detail::Span events = next_events(runner);
    ++runner.mark;
    detail::play_backward(writer_, runner.model, events, more_loss(), detail::returned_bytes(decided_));
  }

  /// The next batch is as long as its share says; those behind the last share as that one.
  void begin_batch() { writer_.set_share(shares_[std::min(batch_++, shares_.size() - 1)]); }

  /// Policy and critic in one step: what one keeps for backward is there while the other runs.
  void update_both() {
    while (const std::optional<plan::Phase> phase = next(*policy_)) {
      if (*phase == plan::Phase::optimizer) writer_.set_share(1.0);
      if (*phase == plan::Phase::forward) begin_batch();
      writer_.begin(*phase == plan::Phase::optimizer  ? "update: optimizer"
                    : *phase == plan::Phase::backward ? "update: backward"
                                                      : "update: forward");
      play(*policy_);
      if (next(*critic_)) play(*critic_);
      if (*phase == plan::Phase::optimizer) return;
    }
  }

  void compare_before() {
    if (decided_.algorithm.mismatched && reader_) {
      writer_.begin("other answers");
      play(*reader_);
    }
    if (decided_.program.reference == ReferencePlace::before) compare();
  }

  void forward_and_compare(Runner& runner) {
    const auto& events = writer_.plan_of(runner.model).events;
    const auto [first, end] = next_events(runner);
    std::size_t returns = end;  // what the names of the function hold goes when it returns
    if (decided_.program.reference == ReferencePlace::before_returns) {
      while (returns > first && events[returns - 1].kind == plan::Event::Kind::release) --returns;
    }
    ++runner.mark;
    writer_.play(runner.model, first, returns);
    detail::release_temporaries(writer_, runner.model, first, returns, end);
    if (decided_.program.reference != ReferencePlace::before) compare();
    learn_from_labels();
    const detail::LoggedLogits logged = detail::logged_logits(job_, decided_);
    for (const auto& moment : {logged.entropy, logged.means}) detail::take_at_once(writer_, runner.model, moment);
    if (teacher_) learn_from_teacher();
    if (decided_.algorithm.in_step && reward_) {
      writer_.begin("rewards and values");
      read(*reward_);
    }
    writer_.play(runner.model, returns, end);
    for (const std::uint32_t slot : named_) writer_.release(slot);
    named_.clear();
    if (hands_on()) writer_.empty_cache();
  }

  void compare() {
    if (!reference_) return;
    writer_.begin("reference");
    if (decided_.algorithm.mismatched) read_reference();
    const detail::LoggedLogits logged = detail::logged_logits(job_, decided_);
    if (logged.cache > 0) named_.push_back(writer_.allocate(reference_->model, logged.cache, kNamed));
    read_reference();
    if (logged.reference > 0) named_.push_back(writer_.allocate(reference_->model, logged.reference, kNamed));
  }
  /// ms-swift goes chunk by chunk, of which backward keeps the student's log-probabilities, both that are mixed, the
  /// mixture, and three factors; while it computes them there are the teacher's logits, and of both the rows that count
  /// and the same divided by the temperature. Source: ms-swift 4, rlhf_trainers/gkd_loss.py: extract_active, jsd_loss.
  void learn_from_teacher() {
    writer_.begin("teacher");
    play(*teacher_);
    if (hands_on()) return diverge();
    const std::int64_t logits = logits_bytes(decided_.policy);
    for (int tensor = 0; tensor < 7; ++tensor) hold_for_backward(*teacher_, logits);
    hold_for_a_moment(*teacher_, core::bounded_product({5, logits}));
  }

  [[nodiscard]] bool hands_on() const { return decided_.policy.objective.kind == model::Objective::handed_on; }
  void diverge() {
    const std::int64_t whole = detail::returned_bytes(decided_);
    const std::int64_t length = std::max<std::int64_t>(decided_.policy.sequence_length.value_or(1), 2);
    diverging_ = whole / length * (length - 1);
    const auto kept = detail::diverge(writer_, teacher_->model, whole, diverging_);
    held_for_backward_.insert(held_for_backward_.end(), kept.begin(), kept.end());
  }
  /// What is kept of the divergence goes on the way to the logits' gradient.
  void begin_backward_of_divergence() {
    detail::take_at_once(writer_, teacher_->model, diverging_, 5);
    drop_held();
  }
  /// A cross entropy beside the loss of log-probabilities, and what else is made of all logits.
  void learn_from_labels() {
    hold_for_backward(*policy_, more_loss().kept);
    hold_for_a_moment(*policy_, more_loss().passing);
  }
  [[nodiscard]] detail::MoreLoss more_loss() const { return detail::more_loss(decided_, job_.options); }
  void hold_for_backward(const Runner& runner, std::int64_t bytes) {
    if (bytes > 0) held_for_backward_.push_back(writer_.allocate(runner.model, bytes, plan::Category::activation));
  }
  void drop_held() {
    for (const std::uint32_t slot : held_for_backward_) writer_.release(slot);
    held_for_backward_.clear();
  }

  /// generate() of transformers, and the last token's logits in float32 while it is drawn. Parameters that ranks share
  /// are gathered first, all of them. Source: transformers 4.48 to 5.17, generation/utils.py: _sample; TRL 1.9,
  /// models/utils.py: unwrap_model_for_generation (ds3_gather_for_generation).
  void generate() {
    const serve::ServedModel* const sizes = job_.served.get();
    if (sizes == nullptr) return;
    std::vector<std::uint32_t> held;
    using enum model::Shardings;
    const model::Shardings kind = decided_.policy.layout.sharding.kind;
    if (kind == zero_3 || kind == fsdp1 || kind == fsdp2 || kind == hsdp) {
      const std::int64_t whole = detail::whole_weights(decided_.policy);
      held.push_back(writer_.allocate(rollout_.model, whole, plan::Category::gathered));
    }
    const plan::GrowingCache cache = detail::cache_of(job_, decided_, *sizes);
    const std::int64_t drawn = core::bounded_product({cache.sequences, sizes->vocabulary, 4});
    const std::array<std::int64_t, 3> drawing = {drawn, drawn, drawn};  // logits, what is left of them, probabilities
    plan::grow_cache(writer_, rollout_.model, cache, drawing);
    for (const std::uint32_t slot : held) writer_.release(slot);
  }

  static constexpr plan::Category kNamed = plan::Category::temporary;
  const PostTrainingJob& job_;
  const Decided& decided_;
  const device::GpuProfile& gpu_;
  analysis::Analyses* analyses_;
  std::span<const double> shares_ = kAlike;
  std::size_t batch_ = 0;   ///< that begins next
  std::size_t events_ = 0;  ///< of all models' plans
  PostTrainingPlan made_;
  plan::PhaseWriter writer_;
  model::Rank rank_;
  std::optional<Runner> policy_;
  std::vector<std::uint32_t> named_;  ///< of the reference's pass, until the loss is there
  std::optional<Runner> reader_;      ///< passes without gradients of the policy's own weights
  std::optional<Runner> reference_;
  std::optional<Runner> critic_;
  std::optional<Runner> values_;  ///< the same of the critic's
  std::optional<Runner> reward_;
  std::optional<Runner> teacher_;
  Runner rollout_;
  std::vector<std::uint32_t> held_for_backward_;
  std::int64_t diverging_ = 0;   ///< bytes of a tensor of TRL's loss of distillation
  std::int64_t into_tower_ = 0;  ///< bytes that backward keeps of a frozen tower
};

}  // namespace phases_detail

GPUMEM_INLINE core::Result<PostTrainingPlan> plan_post_training(const PostTrainingJob& job, const Decided& decided,
                                                                const device::GpuProfile& gpu, bool lengths_differ,
                                                                analysis::Analyses* analyses, plan::PhasedPlan reused) {
  return phases_detail::PlanMaker(job, decided, gpu, lengths_differ, analyses, std::move(reused)).make();
}

}  // namespace gpumem::posttrain
