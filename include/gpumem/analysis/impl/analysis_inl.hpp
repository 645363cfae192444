#pragma once

#include "gpumem/analysis/analysis.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "gpumem/adapt/trainer_models.hpp"
#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/device/workspace.hpp"
#include "gpumem/model/step_recording.hpp"
#include "gpumem/parallel/rank_graph.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/record/recorded_steps.hpp"

namespace gpumem::analysis {

namespace working_memory_detail {

/// What this thread keeps; null when the thread has ended, which objects that live longer may see, such as static ones.
GPUMEM_INLINE WorkingMemory* kept() {
  static thread_local bool gone = false;
  struct Kept {
    WorkingMemory memory;
    Kept() = default;
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept() { gone = true; }
  };
  if (gone) return nullptr;
  static thread_local Kept kept;
  return &kept.memory;
}

}  // namespace working_memory_detail

GPUMEM_INLINE std::size_t WorkingMemory::bytes() const {
  return allocator.blocks.capacity() * sizeof(device::Block) + plan.events.capacity() * sizeof(plan::Event) +
         plan.calls.capacity() * sizeof(plan::LibraryCall);
}

GPUMEM_INLINE WorkingMemory take_working_memory() {
  WorkingMemory* kept = working_memory_detail::kept();
  return kept == nullptr ? WorkingMemory() : std::exchange(*kept, {});
}

GPUMEM_INLINE void leave_working_memory(WorkingMemory memory) {
  WorkingMemory* kept = working_memory_detail::kept();
  if (kept == nullptr || memory.bytes() > kMostWorkingMemory || memory.bytes() <= kept->bytes()) return;
  *kept = std::move(memory);
}

namespace analysis_detail {

/// Beyond this no GPU is, and sums of such sizes stay within 64 bits.
inline constexpr std::int64_t kLargestReserved = std::int64_t{1} << 60;

GPUMEM_INLINE core::Error no_layers() {
  return {core::ErrorCode::invalid_argument,
          "holds the calls of a recorded step and no layers, which this estimator reads; use `estimator=replay`, or "
          "roofline for utilisation",
          {}};
}

/// What the experts of layers `first` to before `end` make of their tokens, a sample.
GPUMEM_INLINE core::Checked routed_between(const connect::WiredGraph& wired, std::size_t first, std::size_t end) {
  core::Checked sum = 0;
  const auto layers = wired.graph().layers();
  for (std::size_t at = first; at < end; ++at) {
    if (layers[at].expert == 0 || wired.outputs(at).empty()) continue;
    sum += wired.outputs(at)[0].elements(1).value_or(core::Checked(0));
  }
  return sum;
}

/// What experts make of their tokens, a sample. Where ranks hold other experts, how many tokens come depends on the
/// data; where one holds all, their number is known. Where every block is computed again in backward, that of one block
/// is there at a time, beside that of layers in no block (Megatron's layers that predict further tokens).
GPUMEM_INLINE std::int64_t routed_elements(const connect::WiredGraph& wired, const model::TrainingJob& job) {
  if (job.layout.expert_parallel == 1) return 0;
  const std::size_t layers = wired.graph().layers().size();
  const bool again = job.activation_checkpointing && job.checkpoints.kind == model::Checkpoints::full;
  const auto blocks = again ? connect::repeated_blocks(wired.graph()) : std::vector<connect::Range>();
  core::Checked outside = 0;
  std::int64_t most = 0;
  std::size_t at = 0;
  for (const connect::Range& block : blocks) {
    outside += routed_between(wired, at, block.first);
    most = std::max(most, routed_between(wired, block.first, block.end).value().value_or(0));
    at = block.end;
  }
  outside += routed_between(wired, at, layers);
  return (outside + core::Checked(most)).value().value_or(0);
}

}  // namespace analysis_detail

GPUMEM_INLINE Analysis::Analysis(model::TrainingJob job, const ops::Catalogue& ops)
    : job_(std::move(job)), ops_(&ops), memory_(take_working_memory()) {}

GPUMEM_INLINE Analysis::~Analysis() {
  forget_plans();
  leave_working_memory(std::move(memory_));
}

GPUMEM_INLINE void Analysis::set_job(model::TrainingJob job) {
  if (job == job_) return;
  forget_plans();
  modelled_.reset();
  const bool rewired = wiring_key(std::as_const(job)) != wiring_key(std::as_const(job_));
  const bool readapted = rewired || !same_adaptation(job);
  const bool recorded_anew = readapted || forward_pass_key(std::as_const(job)) != forward_pass_key(std::as_const(job_));
  if (recorded_anew) {
    other_parts_.clear();
    for (Stage<plan::ForwardPass>& pass : forward_passes_) pass.reset();
    if (readapted || !same_split(job)) ranked_.reset();
  } else if (!same_split(job)) {
    change_part(job);
  }
  if (readapted) adapted_.reset();
  if (rewired) wired_.reset();
  job_ = std::move(job);
}

/// The job is of another rank, or its layout splits the model otherwise: what is known about this part gives place to
/// what is known about that one.
GPUMEM_INLINE void Analysis::change_part(const model::TrainingJob& job) {
  OtherPart left = {job_, std::exchange(ranked_, {}), std::exchange(forward_passes_, {})};
  const auto known = std::find_if(other_parts_.begin(), other_parts_.end(),
                                  [&](const OtherPart& part) { return same_split(part.job, job); });
  if (known != other_parts_.end()) {
    ranked_ = std::move(known->ranked);
    forward_passes_ = std::move(known->forward_passes);
    other_parts_.erase(known);
  }
  other_parts_.push_back(std::move(left));
  while (keeps_too_many_parts()) other_parts_.erase(other_parts_.begin());
}

GPUMEM_INLINE bool Analysis::keeps_too_many_parts() const {
  if (other_parts_.size() <= kMostOtherParts) return false;
  std::size_t layers = 0;
  for (const OtherPart& part : other_parts_) {
    if (part.ranked && *part.ranked) layers += (*part.ranked)->graph().layers().size();
  }
  return layers >= kept_layers_;
}

GPUMEM_INLINE void Analysis::hand_memory_to(Analysis& next) {
  forget_plans();
  next.memory_ = std::move(memory_);
  memory_ = {};
}

GPUMEM_INLINE void Analysis::set_batch_size(std::int64_t batch_size) {
  if (batch_size == job_.batch_size) return;  // no rule of layouts asks for it
  forget_plans();
  job_.batch_size = batch_size;
}

GPUMEM_INLINE void Analysis::take_stages_of(const Analysis& other) {
  if (wired_ || wiring_key(job_) != wiring_key(other.job_)) return;
  wired_ = other.wired_;
  if (!same_adaptation(other.job_)) return;
  adapted_ = other.adapted_;
  if (same_split(other.job_)) ranked_ = other.ranked_;
}

GPUMEM_INLINE void Analysis::forget_plans() {
  Stage<plan::StepPlan>& usual = plans_.front().front();
  if (usual && *usual) memory_.plan = **std::move(usual);
  for (auto& of_backend : plans_) {
    for (Stage<plan::StepPlan>& steps : of_backend) steps.reset();
  }
  work_.reset();
  runs_.clear();
  room_at_loss_.reset();
}

/// A loss that asks for free memory is recorded with the chunks that this gives it.
GPUMEM_INLINE void Analysis::set_loss_target(std::int64_t mib) {
  if (mib == loss_target_) return;
  forget_plans();
  other_parts_.clear();
  for (Stage<plan::ForwardPass>& pass : forward_passes_) pass.reset();
  loss_target_ = mib;
}

/// Forward passes in which a GPU's kernels make a difference are recorded anew.
GPUMEM_INLINE void Analysis::take_kernels_of(const device::GpuProfile& gpu) {
  const bool cudnn = device::prefers_cudnn_attention(gpu);
  if (std::exchange(cudnn_attention_, cudnn) == cudnn) return;
  const auto asks = [](const auto& passes) {
    return std::ranges::any_of(
        passes, [](const Stage<plan::ForwardPass>& pass) { return pass && *pass && (*pass)->tape.chooses_kernels(); });
  };
  std::erase_if(other_parts_, [&](const OtherPart& part) { return asks(part.forward_passes); });
  if (!asks(forward_passes_)) return;
  forget_plans();
  for (Stage<plan::ForwardPass>& pass : forward_passes_) pass.reset();
}

/// What the stage holds, made if it holds nothing. What was made while the deadline passed may not be whole.
template <typename Value, typename Make>
core::Result<const Value*> Analysis::made(Stage<Value>& stage, Make make) {
  if (!stage) {
    core::Result<Value> value = make();
    if (core::deadline_passed()) return core::deadline_error();
    stage.emplace(std::move(value));
  }
  if (!*stage) return stage->error();
  return &*std::as_const(*stage);
}

GPUMEM_INLINE core::Result<const connect::WiredGraph*> Analysis::wired() {
  return made(wired_, [&]() -> core::Result<connect::WiredGraph> {
    if (job_.graph->recording() != nullptr) return analysis_detail::no_layers();
    model::TrainingJob seen;
    wiring_key(seen) = wiring_key(std::as_const(job_));
    return connect::connect(seen, *ops_);
  });
}

GPUMEM_INLINE core::Result<const connect::WiredGraph*> Analysis::adapted() {
  if (!adapt::adapts(job_) && !model::is_megatron_model(*job_.graph, job_)) return wired();
  return made(adapted_, [&]() -> core::Result<connect::WiredGraph> {
    const auto graph = wired();
    if (!graph) return graph.error();
    model::TrainingJob seen;
    adapt::adaptation_key(seen) = adapt::adaptation_key(std::as_const(job_));
    seen.activation_checkpointing = adapt::inputs_need_gradients(job_);
    return adapt::adapt(**graph, seen, *ops_);
  });
}

GPUMEM_INLINE core::Result<const connect::WiredGraph*> Analysis::ranked() {
  if (!parallel::splits_model(job_.layout)) return adapted();
  return made(ranked_, [&]() -> core::Result<connect::WiredGraph> {
    const auto graph = adapted();
    if (!graph) return graph.error();
    model::TrainingJob seen;
    parallel::rank_key(seen) = parallel::rank_key(std::as_const(job_));
    return parallel::rank_graph(**graph, seen, *ops_);
  });
}

GPUMEM_INLINE core::Result<const plan::ForwardPass*> Analysis::forward_pass(ops::Backend backend) {
  return made(forward_passes_[static_cast<std::size_t>(backend)], [&]() -> core::Result<plan::ForwardPass> {
    const auto graph = ranked();
    if (!graph) return graph.error();
    model::TrainingJob seen;
    forward_pass_key(seen) = forward_pass_key(std::as_const(job_));
    if (model::asks_for_free(seen.loss_form.kind)) seen.loss_form.count = loss_target_;
    seen.cudnn_attention = cudnn_attention_;
    return plan::make_forward_pass(**graph, seen, *ops_, backend);
  });
}

GPUMEM_INLINE core::Result<PlanSource> Analysis::source() {
  if (const model::StepRecording* recording = job_.graph->recording()) {
    return PlanSource{.graph = job_.graph.get(),
                      .edges = "recorded",
                      .convolves = recording->convolves,
                      .normalises = recording->normalises};
  }
  const auto forward = forward_pass();
  if (!forward) return forward.error();
  const connect::WiredGraph& wired = (*forward)->wired;
  return PlanSource{.graph = &wired.graph(),
                    .edges = wired.edges(),
                    .convolves = (*forward)->convolves,
                    .normalises = (*forward)->normalises,
                    .guesses = wired.guesses(),
                    .unknown_layers = wired.graph().unknown_layers() + (*forward)->skipped_layers,
                    .remarks = wired.remarks(),
                    .routed_elements = analysis_detail::routed_elements(wired, job_),
                    .shorter_batches = analysis_detail::more_in_smaller_batches((*forward)->tape, job_),
                    .loss = analysis_detail::loss_text(job_, loss_target_, free_at_loss_)};
}

GPUMEM_INLINE core::Result<const plan::StepPlan*> Analysis::steps(ops::Backend backend, Steps which) {
  auto& stage = plans_[static_cast<std::size_t>(backend)][static_cast<std::size_t>(which)];
  return made(stage, [&]() -> core::Result<plan::StepPlan> {
    const bool recorded = job_.graph->recording() != nullptr;
    if (recorded && backend != ops::Backend::cuda) return analysis_detail::no_layers();
    std::optional<model::TrainingJob> plain;
    if (which == Steps::without_optimizer) {
      plain = job_;
      plain->optimizer = model::Optimizer::sgd;
      plain->replaces_optimizer = recorded;
    }
    const model::TrainingJob& job = plain ? *plain : job_;
    const auto memory = [&] { return plain ? plan::StepPlan() : std::exchange(memory_.plan, {}); };
    if (recorded) return record::recorded_steps(job, memory());
    const auto forward = forward_pass(backend);
    if (!forward) return forward.error();
    return plan::make_step_plan(job, **forward, memory());
  });
}

GPUMEM_INLINE core::Result<bool> Analysis::holds_more_than(std::int64_t bytes) {
  Stage<plan::StepPlan>& usual = plans_.front().front();
  if (usual || job_.graph->recording() != nullptr) {
    const auto known = steps();
    if (!known) return known.error();
    return (*known)->peak_bytes > bytes;
  }
  const auto forward = forward_pass();
  if (!forward) return forward.error();
  core::Result<plan::StepPlan> plan =
      plan::make_step_plan(job_, **forward, std::exchange(memory_.plan, {}), std::max<std::int64_t>(bytes, 0));
  if (!plan) return plan.error();
  if (core::deadline_passed()) return core::deadline_error();
  if (plan->peak_bytes > bytes) {
    memory_.plan = *std::move(plan);
    return true;
  }
  usual.emplace(*std::move(plan));
  return false;
}

GPUMEM_INLINE core::Result<const plan::StepWork*> Analysis::work() {
  return made(work_, [&]() -> core::Result<plan::StepWork> {
    if (job_.graph->recording() != nullptr) return record::recorded_work(job_);
    const auto forward = forward_pass();
    if (!forward) return forward.error();
    return plan::step_work(job_, **forward);
  });
}

GPUMEM_INLINE const core::Status& Analysis::modelled() {
  if (!modelled_) modelled_ = parallel::check_modelled(job_, "the replay");
  return *modelled_;
}

GPUMEM_INLINE core::Result<device::Context> Analysis::context(const device::GpuProfile& gpu) {
  take_kernels_of(gpu);
  const auto from = source();
  if (!from) return from.error();
  return device::context_of(gpu, job_.software, {from->convolves, from->normalises});
}

GPUMEM_INLINE device::Communicators communicators(const model::TrainingJob& job, const device::GpuProfile& gpu) {
  std::vector<device::Communicator> groups;
  for (const parallel::RankGroup& group : parallel::communicators(job)) {
    groups.push_back({group.ranks, group.peers, group.apart});
  }
  return device::nccl_buffers(gpu, groups);
}

GPUMEM_INLINE device::Context JobRun::beside() const {
  const auto sum = [](core::Bytes left, core::Bytes right) { return core::Bytes(left.count() + right.count()); };
  device::Context all = context;
  all.expected = sum(context.expected, communicators.expected);
  all.lower = sum(context.lower, communicators.lower);
  all.upper = sum(context.upper, communicators.upper);
  return all;
}

GPUMEM_INLINE core::Result<JobRun> Analysis::run(const device::GpuProfile& gpu, const device::AllocatorOptions& asked) {
  const device::AllocatorOptions options = analysis_detail::as_recorded(job_, asked);
  if (const core::Status& known = modelled(); !known) return known.error();
  const core::Result<device::Context> cuda = context(gpu);
  if (!cuda) return cuda.error();
  JobRun beginning;
  beginning.context = *cuda;
  beginning.communicators = communicators(job_, gpu);
  if (const core::Status chosen = choose_for(gpu); !chosen) return chosen.error();
  RunKey key{gpu.capacity(), beginning.beside().expected, device::cublas_workspace(gpu), gpu.convolution_workspace,
             options};
  const auto known =
      std::find_if(runs_.begin(), runs_.end(), [&](const KnownRun& candidate) { return candidate.key == key; });
  if (known != runs_.end()) return known->run;
  core::Result<JobRun> made = run_anew(gpu, options, beginning);
  if (core::deadline_passed()) return core::deadline_error();
  if (runs_.size() == kMostRuns) runs_.erase(runs_.begin());
  runs_.push_back({std::move(key), made});
  return made;
}

/// Unsloth asks how much is free when the first loss is computed, and keeps to it (functools.cache).
GPUMEM_INLINE core::Status Analysis::choose_for(const device::GpuProfile& gpu) {
  constexpr std::int64_t kMib = std::int64_t{1} << 20;
  constexpr std::int64_t kMost = 4096;
  take_kernels_of(gpu);
  if (!model::asks_for_free(job_.loss_form.kind)) return core::Done{};
  const auto cuda = context(gpu);
  if (!cuda) return cuda.error();
  const std::int64_t beside = core::bounded_sum({cuda->expected.count(), communicators(job_, gpu).expected.count()});
  const core::Bytes room(std::max<std::int64_t>(gpu.capacity().count() - beside, 0));
  if (room_at_loss_ == room) return core::Done{};
  set_loss_target(1);
  const auto forward = forward_pass();
  if (!forward) return forward.error();
  const auto planned = steps();
  if (!planned) return planned.error();
  const ops::TensorId loss = (*forward)->loss;
  const std::uint32_t layer = loss == ops::kNoTensor ? plan::kNoLayer : (*forward)->tape.tensor(loss).layer;
  const std::int64_t taken = analysis_detail::reserved_before(**planned, layer);
  const core::Bytes free(std::max<std::int64_t>(room.count() - taken, 0));
  const std::int64_t half = std::max<std::int64_t>(free.count() / 2 / kMib, 1);
  set_loss_target(job_.loss_form.kind == model::LossForms::fused_free ? std::min(half, kMost) : half);
  free_at_loss_ = free;
  room_at_loss_ = room;
  return core::Done{};
}

GPUMEM_INLINE core::Result<JobRun> Analysis::run_anew(const device::GpuProfile& gpu, device::AllocatorOptions options,
                                                      JobRun made) {
  const auto planned = steps();
  if (!planned) return planned.error();
  const core::Bytes beside = made.beside().expected;
  const core::Bytes room = analysis_detail::room_for(job_, options, gpu.capacity(), beside);
  made.limit = std::min(gpu.capacity(), core::Bytes(room.count() + beside.count()));
  const auto run_within = [&](core::Bytes capacity) {
    options.capacity = capacity;
    return run_allocator(**planned, gpu, options, nullptr, &memory_.allocator);
  };
  if ((*planned)->peak_bytes <= room.count()) {
    made.run = run_within(room);
    made.fits = !made.run.out_of_memory;
  }
  if (!made.fits) made.run = run_within(core::Bytes(analysis_detail::kLargestReserved));  // what it would have taken
  made.options = options;
  if (!made.run.out_of_memory) return made;
  return core::Error{core::ErrorCode::overflow,
                     "the job's memory at batch " + std::to_string(job_.batch_size) + " is beyond any machine's",
                     {}};
}

GPUMEM_INLINE std::size_t Analysis::bytes() const {
  std::size_t sum = memory_.bytes();
  const auto add_passes = [&sum](const std::array<Stage<plan::ForwardPass>, kBackends>& passes) {
    for (const Stage<plan::ForwardPass>& pass : passes) {
      if (!pass || !*pass) continue;
      const ops::Tape& tape = (*pass)->tape;
      sum += tape.functions().size() * sizeof(ops::Function) + tape.tensors().size() * sizeof(ops::TapeTensor);
    }
  };
  add_passes(forward_passes_);
  for (const OtherPart& part : other_parts_) add_passes(part.forward_passes);
  for (const auto& of_backend : plans_) {
    for (const Stage<plan::StepPlan>& steps : of_backend) {
      if (!steps || !*steps) continue;
      sum += (*steps)->events.capacity() * sizeof(plan::Event) + (*steps)->calls.capacity() * sizeof(plan::LibraryCall);
    }
  }
  return sum;
}

}  // namespace gpumem::analysis
