#pragma once

#include "gpumem/posttrain/estimate_post_training.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "gpumem/analysis/allocator_run.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/device/workspace.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/estimate/evidence.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/posttrain/phases.hpp"
#include "gpumem/serve/serving_questions.hpp"

namespace gpumem::posttrain {

namespace estimate_post_training_detail {

inline constexpr std::size_t kOwners = plan::PhaseWriter::kMostModels;
using ByCategory = std::array<std::int64_t, plan::kCategories>;

/// What is allocated, by the model that it belongs to, and by what it is for.
struct Allocated {
  std::array<ByCategory, kOwners> of{};
  std::int64_t workspaces = 0;
  std::int64_t total = 0;
};

/// The most of one phase.
struct PhasePeak {
  std::string name;
  Allocated allocated;
  std::int64_t reserved = 0;
};

/// Follows the run and keeps the peaks of each phase; of phases of one name the higher.
class PhaseWatcher final : public analysis::AllocatorObserver {
 public:
  explicit PhaseWatcher(const plan::PhasedPlan& phased)
      : phased_(phased), bytes_(phased.plan.slots, 0), kinds_(phased.plan.slots) {}

  void after(const analysis::AllocatorMoment& moment) override {
    while (next_ < phased_.phases.size() && phased_.phases[next_].first_event <= moment.event) begin_phase();
    const plan::Event& event = phased_.plan.events[moment.event];
    const std::int64_t change = moment.total - now_.total;
    if (change < 0) keep_peak();
    switch (event.kind) {
      case plan::Event::Kind::allocate:
        bytes_[event.slot] = change;
        kinds_[event.slot] = event.category;
        of(event.slot) += change;
        break;
      case plan::Event::Kind::release: of(event.slot) -= std::exchange(bytes_[event.slot], 0); break;
      case plan::Event::Kind::call: now_.workspaces += change; break;
      case plan::Event::Kind::empty_cache: break;
    }
    now_.total += change;
    reserved_ = moment.reserved;
    note(moment.for_a_moment);
  }

  [[nodiscard]] std::vector<PhasePeak> peaks() && {
    while (next_ < phased_.phases.size()) begin_phase();
    keep_peak();
    return std::move(peaks_);
  }

 private:
  std::int64_t& of(std::uint32_t slot) {
    return now_.of[phased_.owner_of_slot[slot]][static_cast<std::size_t>(kinds_[slot])];
  }

  /// What is there when it begins is there in the phase.
  void begin_phase() {
    keep_peak();
    const std::string& name = phased_.phases[next_++].name;
    const auto known = std::find_if(peaks_.begin(), peaks_.end(), [&](const PhasePeak& at) { return at.name == name; });
    current_ = static_cast<std::size_t>(known - peaks_.begin());
    if (known == peaks_.end()) peaks_.push_back({name, {}, 0});
    note(0);
  }

  void note(std::int64_t for_a_moment) {
    if (peaks_.empty()) return;
    PhasePeak& peak = peaks_[current_];
    peak.reserved = std::max(peak.reserved, reserved_);
    if (now_.total + for_a_moment <= peak.allocated.total) return;
    peak.allocated.total = now_.total + for_a_moment;
    climbs_ = true;
    if (for_a_moment > 0) keep_peak(for_a_moment);
  }

  /// What is allocated now is the phase's most, if it has just risen to that. It is a long list, which is copied where
  /// it is about to fall, and not at each step of a rise.
  void keep_peak(std::int64_t for_a_moment = 0) {
    if (!std::exchange(climbs_, false)) return;
    Allocated& peak = peaks_[current_].allocated;
    peak = now_;
    peak.workspaces += for_a_moment;
    peak.total += for_a_moment;
  }

  const plan::PhasedPlan& phased_;
  std::vector<std::int64_t> bytes_;    ///< by slot
  std::vector<plan::Category> kinds_;  ///< likewise
  std::vector<PhasePeak> peaks_;
  std::size_t next_ = 0;  ///< the phase that begins next
  std::size_t current_ = 0;
  Allocated now_;
  std::int64_t reserved_ = 0;
  bool climbs_ = false;  ///< `now_` is the phase's most, and not kept yet
};

/// What vLLM takes beside the training process' allocator. Asleep it has given back its weights and its cache: level 1
/// copies the weights to the host, level 2 drops them. Source: vLLM 0.17 to 0.19, v1/worker/gpu_worker.py: sleep().
struct RolloutMemory {
  std::vector<NamedBytes> awake;
  std::vector<NamedBytes> asleep;
  std::vector<NamedBytes> elsewhere;  ///< of GPUs that generate alone
  std::int64_t lower = 0;             ///< of all, as far below as it may be
  std::int64_t upper = 0;
  std::string reason;  ///< why vLLM would not start
  std::vector<std::string> assumed;
};

inline std::int64_t sum_of(const std::vector<NamedBytes>& parts) {
  std::int64_t sum = 0;
  for (const NamedBytes& part : parts) sum = core::bounded_sum({sum, part.bytes.count()});
  return sum;
}

/// What vLLM profiles itself with, beside its weights. Source: TRL 1.9, generation/vllm_generation.py: _init_vllm, and
/// trainer/grpo_trainer.py (max_num_seqs); ms-swift 4, rlhf_trainers/rollout_mixin.py: _prepare_vllm_engine; verl 0.7,
/// trainer/config/rollout/rollout.yaml.
inline void choose_profile(const PostTrainingJob& job, const Decided& decided, serve::ServingJob& server) {
  const PostTrainingOptions& options = job.options;
  server.max_num_seqs = options.max_num_seqs;
  server.max_num_batched_tokens = options.max_num_batched_tokens;
  if (decided.rollout != Rollout::colocated || options.engine != Engine::vllm) return;
  const std::int64_t tokens = decided.program.batched_tokens;
  if (!server.max_num_batched_tokens && tokens > 0) server.max_num_batched_tokens = tokens;
  if (!server.max_num_seqs && decided.program.seats > 0) server.max_num_seqs = decided.program.seats;
  if (server.max_num_seqs || !decided.program.seats_a_step) return;
  const std::int64_t each = options.rollout_batch.value_or(
      core::bounded_product({decided.policy.batch_size, decided.policy.gradient_accumulation}));
  server.max_num_seqs = core::bounded_product({std::max<std::int64_t>(each, 1), options.rollout_tensor_parallel});
}

/// A server that has a GPU for itself takes as much of it as it does where nobody says otherwise.
inline serve::ServingJob server_of(const PostTrainingJob& job, const Decided& decided) {
  constexpr double kAlone = 0.9;
  const PostTrainingOptions& options = job.options;
  const double usual = decided.rollout == Rollout::elsewhere ? kAlone : decided.program.utilization;
  serve::ServingJob server;
  server.engine = model::name_of(kEngines, options.engine);
  server.version = options.engine_version;
  server.tensor_parallel = options.rollout_tensor_parallel;
  server.gpu_memory_utilization = options.gpu_memory_utilization.value_or(usual);
  const std::int64_t sequence =
      core::bounded_product({decided.policy.sequence_length.value_or(1), options.sequence_ranks});
  const bool row = options.packing && options.prompt_length && options.completion_length;
  server.max_model_len = options.max_model_len;
  if (!server.max_model_len) {
    server.max_model_len = row ? core::bounded_sum({*options.prompt_length, *options.completion_length}) : sequence;
  }
  server.enforce_eager = options.enforce_eager;
  choose_profile(job, decided, server);
  return server;
}

/// What SGLang keeps asleep is taken as vLLM's: what is outside PyTorch, and its graphs.
inline core::Result<RolloutMemory> rollout_of(const PostTrainingJob& job, const Decided& decided,
                                              const device::GpuProfile& gpu) {
  RolloutMemory memory;
  const bool serves = decided.rollout == Rollout::colocated || decided.rollout == Rollout::elsewhere;
  if (!decided.algorithm.generates || !serves || job.served == nullptr) return memory;
  serve::ServingJob asked = server_of(job, decided);
  core::Result<serve::ServingEstimate> server = serve::estimate_server(*job.served, asked, gpu);
  if (!server && job.options.engine == Engine::sglang &&
      asked.version.empty()) {  // one that sees, which has no rules of SGLang's
    const core::Error reason = server.error();
    asked.engine = model::name_of(kEngines, Engine::vllm);
    server = serve::estimate_server(*job.served, asked, gpu);
    if (server) server->assumed.push_back("as vLLM takes it: " + reason.message);
  }
  if (!server) return server.error();
  const std::string_view engine = job.options.engine == Engine::vllm ? "vLLM" : "SGLang";
  if (!server->starts) memory.reason = std::string(engine) + std::string(kDoesNotStart) + server->reason;
  const std::vector<NamedBytes> stays = {{"rollout: outside PyTorch", server->outside_pytorch},
                                         {"rollout: CUDA graphs", server->cuda_graphs}};
  memory.awake = {{"rollout: activation", server->activation}, {"rollout: KV cache", server->kv_cache}};
  if (!decided.program.shares_weights) memory.awake.insert(memory.awake.begin(), {"rollout: weights", server->weights});
  memory.awake.insert(memory.awake.end(), stays.begin(), stays.end());
  memory.asleep = job.options.sleep_level > 0 ? stays : memory.awake;
  memory.lower = server->cuda_graphs.count() - server->cuda_graphs_lower.count();
  memory.upper = server->cuda_graphs_upper.count() - server->cuda_graphs.count();
  memory.assumed = server->assumed;
  if (decided.rollout == Rollout::colocated) return memory;
  RolloutMemory apart;
  apart.elsewhere = std::move(memory.awake);
  apart.reason = std::move(memory.reason);
  apart.assumed = std::move(memory.assumed);
  return apart;
}

inline void add_part(std::vector<NamedBytes>& parts, std::string name, std::int64_t bytes) {
  if (bytes <= 0) return;
  const auto known = std::find_if(parts.begin(), parts.end(), [&](const NamedBytes& at) { return at.name == name; });
  if (known == parts.end()) parts.push_back({std::move(name), core::Bytes(bytes)});
  else known->bytes = core::Bytes(known->bytes.count() + bytes);
}

/// Of a run that is through, for the next one.
struct RunMemory {
  plan::PhasedPlan plan;
  analysis::AllocatorMemory allocator;
};
/// A job's models, planned and run: all of an estimate that does not depend on how much of the GPU the engine takes.
struct TrainingSide {
  Decided decided;
  PostTrainingPlan plan;    ///< without its events, which are through
  device::Context context;  ///< CUDA's
  std::vector<PhasePeak> peaks = {};
};

inline core::Result<TrainingSide> run_training(const PostTrainingJob& job, const device::GpuProfile& gpu,
                                               device::AllocatorOptions options, bool lengths_differ,
                                               analysis::Analyses* analyses, RunMemory& memory) {
  core::Result<Decided> decided = decide(job);
  if (!decided) return decided.error();
  auto plan = plan_post_training(job, *decided, gpu, lengths_differ, analyses, std::move(memory.plan));
  if (!plan) return plan.error();
  const core::Result<device::Context> context = plan->policy->context(gpu);
  if (!context) return context.error();
  TrainingSide side = {*std::move(decided), *std::move(plan), *context};
  options.capacity = core::Bytes(core::kMostBytes);
  options.expandable_segments = options.expandable_segments || expands_segments(side.decided);
  PhaseWatcher watcher(side.plan.phased);
  const analysis::AllocatorRun run =
      analysis::run_allocator(side.plan.phased.plan, gpu, options, &watcher, &memory.allocator);
  if (core::deadline_passed()) return core::deadline_error();
  if (run.out_of_memory) {
    return core::Error{core::ErrorCode::overflow, "the job's memory is beyond any machine's", {}};
  }
  side.peaks = std::move(watcher).peaks();
  memory.plan = std::exchange(side.plan.phased, {});
  return side;
}

class Estimate {
 public:
  Estimate(const PostTrainingJob& job, const TrainingSide& side, const device::GpuProfile& gpu)
      : job_(job), decided_(side.decided), gpu_(gpu), plan_(side.plan), peaks_(side.peaks), beside_(side.context) {
    const device::Communicators communicators = analysis::communicators(decided_.policy, gpu_);
    const auto add = [](core::Bytes& to, core::Bytes more) { to = core::Bytes(to.count() + more.count()); };
    add(beside_.expected, communicators.expected);
    add(beside_.lower, communicators.lower);
    add(beside_.upper, communicators.upper);
  }

  core::Result<PostTrainingEstimate> make(const device::Context& context) {
    core::Result<RolloutMemory> rollout = rollout_of(job_, decided_, gpu_);
    if (!rollout) return rollout.error();
    rollout_ = *std::move(rollout);
    fill_phases();
    if (const core::Status filled = fill_memory(context); !filled) return filled.error();
    fill_parts();
    made_.elsewhere = std::move(rollout_.elsewhere);
    return std::move(made_);
  }

 private:
  [[nodiscard]] const std::vector<NamedBytes>& rollout_in(const PhasePeak& phase) const {
    return phase.name == kRolloutPhase ? rollout_.awake : rollout_.asleep;
  }

  /// What is cached stays from phase to phase, and is given back where memory runs out: the phase with the most in live
  /// tensors is the one that decides. The GPU's figure is that of the fullest phase.
  void fill_phases() {
    std::pair<std::int64_t, std::int64_t> most = {-1, -1};
    for (const PhasePeak& peak : peaks_) {
      const std::int64_t rollout = peak.name == "load" ? 0 : sum_of(rollout_in(peak));
      const std::int64_t device = core::bounded_sum({beside_.expected.count(), peak.reserved, rollout});
      const std::int64_t live = core::bounded_sum({peak.allocated.total, rollout});
      if (std::pair(live, device) > most) made_.peak_phase = made_.phases.size();
      most = std::max(most, {live, device});
      made_.phases.push_back({peak.name, core::Bytes(peak.allocated.total), core::Bytes(peak.reserved),
                              core::Bytes(rollout), core::Bytes(device)});
    }
    needed_ = std::max<std::int64_t>(most.first, 0);
  }
  [[nodiscard]] const PhaseEstimate& fullest() const {
    return *std::max_element(made_.phases.begin(), made_.phases.end(),
                             [](const PhaseEstimate& a, const PhaseEstimate& b) { return a.device < b.device; });
  }

  core::Status fill_memory(const device::Context& context) {
    const auto source = plan_.policy->source();
    if (!source) return source.error();
    const PhaseEstimate& peak = fullest();
    const estimate::Margin margin = estimate::margin_of(decided_.policy, *source, gpu_);
    const auto share = [](std::int64_t bytes, double of) {
      return static_cast<std::int64_t>(static_cast<double>(bytes) * of);
    };
    estimate::MemoryEstimate& memory = made_.memory;
    memory.expected = peak.device;
    const std::int64_t rollout = peak.rollout.count();
    const std::int64_t below = rollout > 0 ? rollout_.lower : 0;
    const std::int64_t above = rollout > 0 ? rollout_.upper : 0;
    memory.lower = core::Bytes(core::bounded_sum(
        {beside_.lower.count(), rollout - below, share(peak.reserved.count(), margin.lower * kLess)}));
    memory.upper =
        core::Bytes(core::bounded_sum({beside_.upper.count(), rollout, above,
                                       share(peak.reserved.count(), margin.upper * kMore), margin.more.count()}));
    memory.most_needed = core::Bytes(
        core::bounded_sum({beside_.upper.count(), share(needed_, margin.upper * kMore), above, margin.more.count()}));
    memory.ranged = true;
    memory.assumed = decided_.assumed;
    for (const std::string& line : rollout_.assumed) memory.assumed.push_back({"rollout", line});
    if (!rollout_.reason.empty()) memory.assumed.push_back({"rollout", rollout_.reason});
    for (estimate::Assumption& line : estimate::assumptions_of(decided_.policy, *source, gpu_, context)) {
      memory.assumed.push_back(std::move(line));
    }
    std::int64_t allocated = 0;
    std::int64_t reserved = 0;
    for (const PhaseEstimate& phase : made_.phases) {
      allocated = std::max(allocated, phase.allocated.count());
      reserved = std::max(reserved, phase.reserved.count());
    }
    if (job_.one_process) {
      for (const NamedBytes& part : rollout_.awake) {
        if (part.name != "rollout: weights" && part.name != "rollout: KV cache") continue;
        allocated = core::bounded_sum({allocated, part.bytes.count()});
        reserved = core::bounded_sum({reserved, part.bytes.count()});
      }
    }
    memory.allocated = core::Bytes(allocated);
    memory.reserved = core::Bytes(reserved);
    memory.coverage.edges = source->edges;
    memory.coverage.layers_unknown = source->unknown_layers;
    memory.provenance = {"replay", {}, gpu_.name};
    const core::Result<std::int64_t> gpus = parallel::world_size(decided_.policy.layout);
    if (!gpus) return gpus.error();
    memory.gpus = *gpus;
    judge();
    return core::Done{};
  }

  /// A job whose live tensors fit runs: its allocator gives back what it has cached.
  void judge() {
    estimate::MemoryEstimate& memory = made_.memory;
    const std::int64_t live = core::bounded_sum({beside_.expected.count(), needed_});
    if (memory.expected > gpu_.capacity() && live <= gpu_.capacity().count()) {
      memory.retries = 1;
      memory.expected = gpu_.capacity();
    }
    memory.fits = memory.most_needed <= gpu_.capacity();
    if (memory.fits) memory.upper = std::max(memory.expected, std::min(memory.upper, gpu_.capacity()));
    memory.lower = std::min(memory.lower, memory.expected);
    memory.device = memory.expected;
    for (const model::Doubt& doubt : decided_.policy.graph->doubts()) memory.assumed.push_back({"model", doubt.text});
    estimate::judge(memory, *decided_.policy.graph, gpu_.capacity());
    if (!rollout_.reason.empty()) {
      memory.fits = false;
      memory.verdict = estimate::Verdict::does_not_fit;
    }
  }

  /// What the allocator has cached is what is left.
  void fill_parts() {
    const PhasePeak& peak = peaks_[made_.peak_phase];
    std::vector<NamedBytes>& parts = made_.parts;
    add_part(parts, "context", beside_.expected.count());
    for (std::size_t owner = 0; owner < plan_.roles.size(); ++owner) {
      const std::string role(model::name_of(kRoles, plan_.roles[owner]));
      for (std::size_t category = 0; category < plan::kCategories; ++category) {
        add_part(parts, role + ": " + std::string(plan::part_of(static_cast<plan::Category>(category))),
                 peak.allocated.of[owner][category]);
      }
    }
    add_part(parts, "workspaces", peak.allocated.workspaces);
    if (peak.name != "load") {
      for (const NamedBytes& part : rollout_in(peak)) add_part(parts, part.name, part.bytes.count());
    }
    add_part(parts, "cache of the allocator", made_.memory.expected.count() - sum_of(parts));
  }

  /// By judgement: nobody measured such jobs phase by phase, and lengths differ from batch to batch.
  static constexpr double kLess = 0.85;
  static constexpr double kMore = 1.1;

  const PostTrainingJob& job_;
  const Decided& decided_;
  const device::GpuProfile& gpu_;
  const PostTrainingPlan& plan_;
  const std::vector<PhasePeak>& peaks_;
  device::Context beside_;
  RolloutMemory rollout_;
  std::int64_t needed_ = 0;  ///< live tensors and the server's memory, where they are most
  PostTrainingEstimate made_;
};

/// Of lengths that nobody gave: in the lower end none of what grows with them, in the upper end the limit's.
inline void widen(PostTrainingEstimate& likely, const PostTrainingEstimate& longest, const model::ModelGraph& graph,
                  core::Bytes capacity) {
  std::int64_t grows = 0;
  for (const auto& [name, bytes] : likely.parts) {
    const bool does =
        name.ends_with("activations") || name.ends_with("temporaries") || name == "cache of the allocator";
    if (does) grows = core::bounded_sum({grows, bytes.count()});
  }
  estimate::MemoryEstimate& memory = likely.memory;
  const double whole = static_cast<double>(std::max<std::int64_t>(memory.expected.count(), 1));
  const double stays = std::max(1.0 - static_cast<double>(grows) / whole, 0.0);
  memory.lower = core::Bytes(static_cast<std::int64_t>(static_cast<double>(memory.lower.count()) * stays));
  memory.upper = std::max(memory.upper, longest.memory.upper);
  memory.most_needed = std::max(memory.most_needed, longest.memory.most_needed);
  memory.fits = memory.most_needed <= capacity && memory.verdict != estimate::Verdict::does_not_fit;
  if (memory.verdict == estimate::Verdict::does_not_fit) return;
  estimate::judge(memory, graph, capacity);
}

/// A job whose training was run, with the longest samples as they are given and, where it is another, of the limit's
/// length. The estimate may be asked for again and again.
class RunJob {
 public:
  /// `analyses`: where the models' analyses come from and go back to, for jobs that are nearly alike. Errors: those of
  /// estimate_post_training() that no engine gives.
  static core::Result<RunJob> of(const PostTrainingJob& job, const device::GpuProfile& gpu,
                                 const device::AllocatorOptions& options, analysis::Analyses* analyses = nullptr) {
    // Rows of many samples are nearly alike. Expandable segments grow: no block is held beside one of another size.
    const bool padded = !row_of(job.options.algorithm).generates && !job.options.packing;
    const bool differ = job.options.length_limit && padded && !options.expandable_segments;
    RunMemory memory;
    auto likely = run_training(job, gpu, options, differ, analyses, memory);
    if (!likely) return likely.error();
    RunJob made(job, gpu, *std::move(likely));
    if (!job.options.length_limit) return made;
    auto longest = run_training(longer(job), gpu, options, differ, analyses, memory);
    if (!longest) return longest.error();
    made.longest_ = *std::move(longest);
    return made;
  }

  /// `utilization`: the engine's share of the GPU in place of the job's.
  [[nodiscard]] core::Result<PostTrainingEstimate> estimate(std::optional<double> utilization = {}) const {
    PostTrainingJob job = job_;
    if (utilization) job.options.gpu_memory_utilization = utilization;
    core::Result<PostTrainingEstimate> likely = Estimate(job, likely_, gpu_).make(likely_.context);
    if (likely && !utilization && job.share_unknown) widen_by_shares(*likely);
    if (!likely || !longest_) return likely;
    const auto longest = Estimate(longer(job), *longest_, gpu_).make(longest_->context);
    if (!longest) return longest.error();
    widen(*likely, *longest, *job.policy.graph, gpu_.capacity());
    return likely;
  }

 private:
  /// Over what published commands give an engine on the same GPUs, of a GPU that may be another one, too.
  void widen_by_shares(PostTrainingEstimate& likely) const {
    for (const double share : {0.1, 0.9}) {
      PostTrainingJob job = job_;
      job.options.gpu_memory_utilization = share;
      const auto other = Estimate(job, likely_, gpu_).make(likely_.context);
      estimate::MemoryEstimate& memory = likely.memory;
      const std::int64_t moved = other ? other->memory.allocated->count() - memory.allocated->count() : 0;
      memory.lower = std::max(core::Bytes(0), std::min(memory.lower, core::Bytes(memory.lower.count() + moved)));
      memory.upper = std::max(memory.upper, core::Bytes(memory.upper.count() + moved));
    }
    estimate::judge(likely.memory, *job_.policy.graph, gpu_.capacity());
  }

  RunJob(const PostTrainingJob& job, const device::GpuProfile& gpu, TrainingSide likely)
      : job_(job), gpu_(gpu), likely_(std::move(likely)) {}

  static PostTrainingJob longer(PostTrainingJob job) {
    job.policy.sequence_length = *job.options.length_limit;
    job.options.length_limit.reset();
    return job;
  }

  PostTrainingJob job_;
  const device::GpuProfile& gpu_;
  TrainingSide likely_;
  std::optional<TrainingSide> longest_;
};

}  // namespace estimate_post_training_detail

GPUMEM_INLINE core::Result<PostTrainingEstimate> estimate_post_training(const PostTrainingJob& job,
                                                                        const device::GpuProfile& gpu,
                                                                        const device::AllocatorOptions& options) {
  const auto run = estimate_post_training_detail::RunJob::of(job, gpu, options);
  return run ? run->estimate() : core::Result<PostTrainingEstimate>(run.error());
}

}  // namespace gpumem::posttrain
