// Input: a forward pass and the current batch size.
// Output: RunState, which all parts of a training run share: the slot that each tensor of the tape holds, its size now,
// the events so far.
// Units: bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpumem/core/deadline.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/plan/event_log.hpp"
#include "gpumem/plan/forward_pass.hpp"

namespace gpumem::plan {

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
  [[nodiscard]] core::Pace& pace() { return pace_; }

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

}  // namespace gpumem::plan
