// Input: a forward pass and the current batch size.
// Output: what all parts of a training run share: its events in order and who holds a slot (EventLog); the slot and the
// size of each tensor of the tape (RunState); and the calls of forward, with the batch and autocast's copies of
// weights.
// Units: bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpumem/core/deadline.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/plan/forward_pass.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::plan {

// Input: what the parts of a training run allocate, hold and release, in order.
// Output: the events of a StepPlan, and who still holds a slot.
// Units: bytes.

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = UINT32_MAX;

/// Writes events. Memory has holders: names, autograd's saved tensors, gradients on their way. It is released when the
/// last holder lets go, and its slot is used again.
class EventLog {
 public:
  /// Uses the memory of a plan that is no longer needed, with room for this many events and calls.
  EventLog(StepPlan reused, std::size_t events, std::size_t calls) : plan_(std::move(reused)) {
    plan_.calls.clear();
    plan_.calls.reserve(calls);
    plan_.phases.clear();
    plan_.cublas_workspace = 0;
    plan_.slots = 0;
    plan_.events.clear();
    plan_.events.reserve(events);
  }

  /// Memory with one holder.
  Slot allocate(std::int64_t bytes, Category category, std::uint32_t layer, std::uint8_t stream = 0) {
    if (last_free_ == kNoSlot) add_slot();
    const Slot slot = last_free_;
    last_free_ = held_[slot].holders;
    held_[slot] = {bytes, 1};
    live_ += static_cast<std::uint64_t>(bytes);
    peak_ = std::max(peak_, live_);
    write({.bytes = bytes,
           .slot = slot,
           .layer = layer,
           .kind = Event::Kind::allocate,
           .category = category,
           .stream = stream});
    return slot;
  }
  /// One holder more.
  void hold(Slot slot) { ++held_[slot].holders; }
  /// One holder less; says whether it was the last. Does nothing for kNoSlot.
  bool drop(Slot slot) {
    if (slot == kNoSlot || --held_[slot].holders != 0) return false;
    live_ -= static_cast<std::uint64_t>(held_[slot].bytes);
    write({.slot = slot, .layer = kNoLayer, .kind = Event::Kind::release, .category = Category::temporary});
    held_[slot].holders = last_free_;
    last_free_ = slot;
    return true;
  }
  [[nodiscard]] bool has_one_holder(Slot slot) const { return held_[slot].holders == 1; }

  void call(const LibraryCall& call, std::uint32_t layer) {
    write({.layer = layer,
           .call = static_cast<std::uint32_t>(plan_.calls.size()),
           .kind = Event::Kind::call,
           .category = Category::temporary});
    plan_.calls.push_back(call);
  }
  /// Whoever writes may stop once more than this was held at once.
  void most(std::int64_t bytes) { most_ = static_cast<std::uint64_t>(bytes); }
  [[nodiscard]] bool beyond_most() const { return peak_ > most_; }
  /// A phase begins with the next event.
  void begin(Phase phase, std::int32_t step, std::int64_t batch_size) {
    plan_.phases.push_back({written_, phase, step, batch_size});
  }

  [[nodiscard]] StepPlan take() {
    plan_.peak_bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(peak_, INT64_MAX));
    plan_.events.resize(written_);
    return std::move(plan_);
  }

 private:
  struct Held {
    std::int64_t bytes = 0;
    std::uint32_t holders = 0;  ///< of a free slot: the one that became free before it
  };

  /// Here, and not by push_back(), which compilers do not inline: nothing else is done as often.
  void write(const Event& event) {
    if (written_ == plan_.events.size()) make_room();
    plan_.events[written_++] = event;
  }
  /// A little, so that no memory is touched that stays unused; what there is comes before more.
  [[gnu::noinline]] void make_room() {
    constexpr std::size_t kEvents = 512;
    const std::size_t left = plan_.events.capacity() - written_;
    plan_.events.resize(written_ + (left == 0 ? kEvents : std::min(left, kEvents)));
  }
  [[gnu::noinline]] void add_slot() {
    last_free_ = plan_.slots++;
    held_.push_back({0, kNoSlot});
  }

  StepPlan plan_;
  std::size_t written_ = 0;   ///< of the plan's events; the rest is room
  std::vector<Held> held_;    ///< by slot
  Slot last_free_ = kNoSlot;  ///< the next one to be used
  std::uint64_t live_ = 0;    ///< may wrap, but only where the peak is beyond 2^63 already
  std::uint64_t peak_ = 0;
  std::uint64_t most_ = UINT64_MAX;
};

// Input: a forward pass and the current batch size.
// Output: RunState, which all parts of a training run share: the slot that each tensor of the tape holds, its size now,
// the events so far.
// Units: bytes.

/// The bytes of every tensor on the tape at one batch size.
class TensorBytes {
 public:
  /// Errors: overflow, naming the layer whose tensor does not fit.
  [[nodiscard]] static core::Result<TensorBytes> at(std::int64_t batch_size, const ForwardPass& pass);

  [[nodiscard]] std::int64_t of(ops::TensorId tensor) const { return bytes_[static_cast<std::size_t>(tensor)]; }
  [[nodiscard]] std::int64_t batch_size() const { return batch_size_; }

 private:
  std::vector<std::int64_t> bytes_;
  std::int64_t batch_size_ = 0;
};

/// How a run on a GPU and one under FakeTensorMode on the CPU differ, apart from single ops, whose record rules know
/// it.
struct BackendTraits {
  bool adds_gradients_in_place;  ///< where they meet; engine.cpp asks for the sole holder, which fake tensors never are
  bool multi_tensor_optimizers;  ///< foreach and fused: the default where all parameters are on a GPU
  bool step_counts_on_device;    ///< not so on a GPU, where they are CPU tensors unless the optimizer is fused
  bool scales_gradients;         ///< torch.amp.GradScaler, which does nothing without a GPU

  static constexpr BackendTraits of(ops::Backend backend) {
    if (backend == ops::Backend::cpu) return {false, false, true, false};
    return {true, true, false, true};
  }
};

/// The parts of a run write through it. It refers to the forward pass, which must outlive it.
class RunState {
 public:
  RunState(const ForwardPass& pass, StepPlan reused);

  /// From now on tensors are as large as in this batch. `bytes` must live until the next call.
  void set_batch(const TensorBytes& bytes) { bytes_ = &bytes; }

  [[nodiscard]] const ForwardPass& forward_pass() const { return pass_; }
  [[nodiscard]] const ops::Tape& tape() const { return pass_.tape; }
  [[nodiscard]] const BackendTraits& backend() const { return backend_; }
  [[nodiscard]] EventLog& log() { return log_; }
  [[nodiscard]] core::Pace& pace() {
    if (log_.beyond_most()) pace_.stop();
    return pace_;
  }

  [[nodiscard]] std::int64_t batch_size() const { return bytes_->batch_size(); }
  [[nodiscard]] std::int64_t bytes(ops::TensorId id) const { return bytes_->of(id); }
  [[nodiscard]] std::uint32_t layer(ops::TensorId id) const { return fact(id).layer; }
  [[nodiscard]] bool requires_grad(ops::TensorId id) const { return fact(id).requires_grad; }
  [[nodiscard]] bool is_parameter(ops::TensorId id) const { return fact(id).is_parameter; }
  [[nodiscard]] bool owns_its_memory(ops::TensorId id) const { return fact(id).storage == id; }
  /// The parameter that a tied one shares its memory and gradient with; any other is its own.
  [[nodiscard]] ops::TensorId tied_to(ops::TensorId parameter) const { return fact(parameter).tied_to; }
  /// Parameters that get gradients and updates, each tied one once.
  [[nodiscard]] std::span<const ops::TensorId> trained() const { return trained_; }

  /// The slot of the tensor's memory, which a view shares with its base; kNoSlot: it has none now.
  [[nodiscard]] Slot& slot(ops::TensorId id) { return slots_[static_cast<std::size_t>(fact(id).storage)]; }
  /// New memory of the tensor's size, on account of its layer.
  Slot allocate(ops::TensorId like, Category category) { return log_.allocate(bytes(like), category, layer(like)); }
  /// The tensor gets memory of its own.
  void add(ops::TensorId id, Category category) { slot(id) = allocate(id, category); }
  void add(std::span<const ops::TensorId> ids, Category category) {
    for (const ops::TensorId id : ids) add(id, category);
  }
  /// A batch's tensor: of no layer.
  void add_input(ops::TensorId id) { slot(id) = log_.allocate(bytes(id), Category::input, kNoLayer); }
  /// What another micro-batch holds comes in the place of what this one does; parameters and buffers stay.
  void exchange(std::vector<Slot>& other);
  /// What a micro-batch that has not begun holds.
  [[nodiscard]] std::vector<Slot> nothing_held() const { return std::vector<Slot>(slots_.size(), kNoSlot); }
  void hold(ops::TensorId id) {
    if (const Slot held = slot(id); held != kNoSlot) log_.hold(held);
  }
  void let_go(ops::TensorId id) {
    Slot& held = slot(id);
    if (log_.drop(held)) held = kNoSlot;
  }
  void let_go(std::span<const ops::TensorId> ids) {
    for (const ops::TensorId id : ids) let_go(id);
  }
  /// The function calls its library, if it has one.
  void call(const ops::Function& function, Direction direction, bool backward_thread) {
    if (function.library == ops::Library::none) return;
    log_.call({function.library, direction, backward_thread, function.convolution, batch_size()}, function.layer);
  }

 private:
  struct TensorFacts {
    ops::TensorId storage = ops::kNoTensor;
    ops::TensorId tied_to = ops::kNoTensor;
    std::uint32_t layer = 0;
    bool requires_grad = false;
    bool is_parameter = false;
  };

  [[nodiscard]] const TensorFacts& fact(ops::TensorId id) const { return facts_[static_cast<std::size_t>(id)]; }
  void find_parameters();
  void find_tied();

  const ForwardPass& pass_;
  BackendTraits backend_;
  EventLog log_;
  core::Pace pace_;
  const TensorBytes* bytes_ = nullptr;
  std::vector<TensorFacts> facts_;  ///< by tensor
  std::vector<Slot> slots_;         ///< by the tensor that owns the memory
  std::vector<ops::TensorId> trained_;
};

// Input: calls that read parameters under autocast.
// Output: the copies of parameters in lower precision: which of them autocast's cache holds, which end with their call,
// which backward keeps.
// Units: bytes.
// Source: aten/src/ATen/autocast_mode.cpp (cached_cast).
//
// The cache has a copy of each trained parameter until the autocast region ends; a frozen one is copied at each call.
// Backward needs the copies of weights, not of biases; a matrix product's only for the gradient of its input.

class AutocastCopies {
 public:
  explicit AutocastCopies(RunState& state);

  /// A call reads its parameters; `keeps`: it is recorded for backward.
  void begin_call(const ops::Function& function, bool keeps) {
    if (function.casts_parameters) copy_parameters(function, keeps);
  }
  void end_call() {
    for (const Slot copy : passing_) state_.log().drop(copy);
    passing_.clear();
  }
  /// Backward of the call is through.
  void drop_kept(const ops::Function& function) {
    if (function.casts_parameters) drop_kept_copies(function);
  }
  /// `with torch.autocast()` ends: so does the cache.
  void end_region();

 private:
  void copy_parameters(const ops::Function& function, bool keeps);
  void drop_kept_copies(const ops::Function& function);
  [[nodiscard]] bool backward_reads(const ops::Function& function, std::uint32_t parameter) const;

  RunState& state_;
  std::vector<Slot> kept_;              ///< what backward reads, by the parameter's place in the tape's lists
  std::vector<Slot> cached_;            ///< by parameter
  std::vector<ops::TensorId> holding_;  ///< parameters of which the cache has a copy
  std::vector<Slot> passing_;           ///< copies that end with the call
};

// Input: what a run reads from each batch.
// Output: when a batch arrives on the GPU and when it is freed: at the start of the step, or one step ahead on a stream
// of its own.
// Units: bytes.
// Source: the loop of PyTorch's tutorials; timm 1.0.9, timm/data/loader.py, PrefetchLoader: images arrive as bytes and
// become floating point on the GPU, and the next batch is ready while one is trained.

class BatchLoader {
 public:
  BatchLoader(RunState& state, const model::TrainingJob& job) : state_(state), prefetches_(job.prefetch) {}

  /// The last batch goes, unless the script's names hold it until the new one is there.
  void release();
  /// The batch arrives; where it was fetched ahead, the one after it does.
  void load();

 private:
  [[nodiscard]] std::vector<Slot> fetch();

  RunState& state_;
  bool prefetches_;
  std::vector<Slot> ahead_;  ///< the next batch, by input; empty: none was fetched yet
};

// Input: the passes of a stage of a DeepSpeed pipeline, one by one; others have no such buffers.
// Output: a buffer for what comes from the stage before, and one for what the next one sends back; and, of each
// micro-batch until its backward has run, what came, beside the copy that the stage reads. Units: bytes. Source:
// DeepSpeed 0.18, runtime/pipe/engine.py (_exec_recv_activations, _exec_recv_grads, _exec_forward_pass).

class PipeBuffers {
 public:
  PipeBuffers(RunState& state, const model::TrainingJob& job)
      : state_(state),
        used_(job.layout.pipeline_parallel > 1 && parallel::shares_of(job) == parallel::Shares::by_parameters) {}

  [[nodiscard]] bool used() const { return used_; }
  void construct(const StageEnds& ends, const StagePart& part);
  /// `number`: of the stage's pass for one micro-batch.
  void receive(std::size_t number, const StageEnds& ends);
  void send_back(std::size_t number);

 private:
  [[nodiscard]] std::int64_t received_bytes(const StageEnds& ends);
  [[nodiscard]] std::int64_t sent_bytes(const StagePart& part);
  Slot add(std::int64_t bytes, Category category) {
    return bytes > 0 ? state_.log().allocate(bytes, category, kNoLayer) : kNoSlot;
  }

  RunState& state_;
  bool used_;
  std::vector<Slot> received_;  ///< by number
};

// Input: recorded functions, one by one.
// Output: what each allocates in forward, and what it keeps until its backward has run.
// Units: bytes.
// Source: torch.autograd's saved variables, as the op's record rule lists them.

/// On which of PyTorch's threads a function runs: each has a cuBLAS handle of its own.
enum class Thread : bool { forward, backward };

/// Copies of weights that lie in the host's memory. Of either direction the last two stay: the next one takes the older
/// one's place. Source: RamTorch's ping-pong buffers (BouncingLinearFn: w_buffers, w_bwd_buffers).
class BouncedWeights {
 public:
  explicit BouncedWeights(RunState& state) : state_(state) {}

  void bring(const ops::Function& function, Direction direction) {
    if (function.host_weight == ops::kNoTensor) return;
    Buffers& buffers = direction == Direction::forward ? forward_ : backward_;
    const Slot older = std::exchange(buffers.older, buffers.newer);
    buffers.newer = state_.allocate(function.host_weight, Category::parameter);
    state_.log().drop(older);
  }

 private:
  struct Buffers {
    Slot newer = kNoSlot;
    Slot older = kNoSlot;
  };

  RunState& state_;
  Buffers forward_;
  Buffers backward_;
};

class ForwardCalls {
 public:
  /// `offloads`: what autograd keeps goes to the host; `hooks`: what goes there or is discarded function by function.
  explicit ForwardCalls(RunState& state, bool offloads = false, SavedHooks hooks = {})
      : state_(state),
        copies_(state),
        weights_(state),
        offloads_(offloads),
        hooks_(std::move(hooks)),
        kept_by_hooks_(hooks_.functions.size()) {}

  /// What a call made and a second run takes in place of calling again: its extras, then its output.
  using Results = std::vector<Slot>;

  /// Runs the function; `recorded`: autograd keeps what its backward reads, if its output needs a gradient. `results`:
  /// holds what it made there too.
  void run(const ops::Function& function, bool recorded, Thread thread, Results* results = nullptr);
  /// In place of running the function again: what an earlier run made, which nobody else holds on to from now on.
  void take(const ops::Function& function, bool recorded, Results& results);
  /// Keeps what the function's backward reads, without running the function: its inputs are still held.
  void keep_inputs(const ops::Function& function);
  /// Its backward has run. `again`: what it kept is of a second run.
  void drop_kept(const ops::Function& function, bool again) {
    if (is_hooked(function)) return drop_hooked(function);
    for (const ops::TensorId saved : state_.tape().list(function.saved)) {
      if (!again && on_host(function, saved)) continue;
      if (function.keeps_until_graph_ends && !again) {
        if (state_.slot(saved) != kNoSlot) kept_of_graph_.push_back(state_.slot(saved));
      } else {
        state_.let_go(saved);
      }
    }
    copies_.drop_kept(function);
  }
  /// A step begins: what is fetched ahead has its place until the step ends.
  void begin_step();
  void end_step() { state_.log().drop(std::exchange(ahead_, kNoSlot)); }
  /// A gradient that stays with its leaf, which the graph holds.
  void keep_of_graph(Slot gradient) { kept_of_graph_.push_back(gradient); }
  /// What functions whose backward has run still hold, until the graph ends. Whoever takes it drops it.
  [[nodiscard]] std::vector<Slot> take_kept_of_graph() { return std::exchange(kept_of_graph_, {}); }
  /// The backward of the function needs its weight.
  void bring_weight(const ops::Function& function) { weights_.bring(function, Direction::data_gradient); }
  /// Its backward begins: copies of what is kept on the host, which end with it.
  void fetch(const ops::Function& function) {
    if (offloads_ || is_hooked(function) || !hooks_.discarded.empty()) fetch_saved(function);
  }
  void drop_fetched() {
    for (const Slot copy : fetched_) state_.log().drop(copy);
    fetched_.clear();
  }
  /// Whether hooks around the function take what it saves, whatever checkpoint is around them: PyTorch asks the
  /// innermost ones. Source: SimpleTuner 2026-08, helpers/training/offloaded_gradient_checkpointer.py
  /// (activation_offload_context); torch/csrc/autograd/saved_variable.cpp.
  [[nodiscard]] bool is_hooked(const ops::Function& function) const {
    return !hooks_.functions.empty() && hooks_.functions[index_of(function)];
  }
  /// Whether autograd keeps the tensor in the host's memory: what is large enough, and no parameter
  /// (OffloadActivations.min_offload_size of torchtune). Copies of weights under autocast stay.
  [[nodiscard]] bool on_host(ops::TensorId saved) const {
    constexpr std::int64_t kLeast = 1024;
    const bool waits = !hooks_.arguments.empty() && hooks_.arguments[static_cast<std::size_t>(saved)];
    if (waits && is_large(saved)) return true;
    return offloads_ && !state_.is_parameter(saved) && state_.bytes(saved) >= kLeast;
  }
  /// The autocast region ends.
  void end_autocast() { copies_.end_region(); }

 private:
  /// Whether a call keeps what its backward reads. What hooks took in the first run stays until backward; they take
  /// the second run's for nothing.
  [[nodiscard]] bool keeps_anything(const ops::Function& function, bool recorded, bool again) const {
    return recorded && state_.requires_grad(function.output) && !(again && is_hooked(function));
  }
  void keep(const ops::Function& function, bool again) {
    if (is_hooked(function)) return keep_hooked(function);
    for (const ops::TensorId saved : state_.tape().list(function.saved)) {
      if (again || !on_host(function, saved)) state_.hold(saved);
    }
  }
  /// Gradients that forward made stay where they are.
  [[nodiscard]] bool on_host(const ops::Function& function, ops::TensorId saved) const {
    if (is_discarded(saved)) return true;
    if (is_hooked(function)) return state_.requires_grad(saved) && !state_.is_parameter(saved) && is_large(saved);
    const bool gradients =
        function.gradient == ops::Gradient::made_in_forward || function.gradient == ops::Gradient::over_input;
    return !gradients && on_host(saved);
  }

  [[nodiscard]] bool is_discarded(ops::TensorId saved) const {
    return !hooks_.discarded.empty() && hooks_.discarded[static_cast<std::size_t>(state_.tape().tensor(saved).storage)];
  }
  /// Whether hooks take a tensor of this size.
  [[nodiscard]] bool is_large(ops::TensorId saved) const {
    const core::DType type = state_.tape().tensor(saved).size.dtype;
    return state_.bytes(saved) / core::element_size(type) >= hooks_.least_elements;
  }
  [[nodiscard]] std::size_t index_of(const ops::Function& function) const {
    return static_cast<std::size_t>(&function - state_.tape().functions().data());
  }
  [[nodiscard]] std::int64_t taken_of(const connect::Range& block) const;
  void fetch_saved(const ops::Function& function);
  void keep_hooked(const ops::Function& function);
  void drop_hooked(const ops::Function& function);

  RunState& state_;
  AutocastCopies copies_;
  BouncedWeights weights_;
  bool offloads_ = false;
  SavedHooks hooks_;
  Slot ahead_ = kNoSlot;                          ///< what hooks take of a block
  std::vector<std::vector<Slot>> kept_by_hooks_;  ///< by function: what the hooks leave on the GPU
  std::vector<Slot> kept_of_graph_;
  std::vector<Slot> fetched_;  ///< for the backward that runs
};

}  // namespace gpumem::plan
