#pragma once

#include "gpumem/plan/gradient_flow.hpp"

#include <algorithm>
#include <utility>

namespace gpumem::plan {

GPUMEM_INLINE GradientFlow::GradientFlow(RunState& state, ForwardCalls& calls, Recomputation& blocks,
                                         ShardedModel& shards, OptimizerStep* in_backward)
    : state_(state), log_(state.log()), calls_(calls), blocks_(blocks), shards_(shards), in_backward_(in_backward) {
  const std::size_t tensors = state.tape().tensors().size();
  gradients_.assign(tensors, {});
  met_.assign(tensors, kNoSlot);
  met_views_.assign(tensors, false);
  readers_.assign(tensors, 0);
  count_readers();
  find_deferred();
}

GPUMEM_INLINE void GradientFlow::find_deferred() {
  const model::ModelGraph& graph = state_.forward_pass().wired.graph();
  if (graph.run_settings().deferred_head_gradients == 0) return;
  for (const ops::Function& function : state_.tape().functions()) {
    const bool product = function.library == ops::Library::gemm && function.parameters.count > 0;
    if (product && graph.path(graph.layers()[function.layer]).ends_with("output_layer")) deferring_ = &function;
  }
}

/// Megatron's --defer-embedding-wgrad-compute: what the head has read and the gradient of what it has made stay for so
/// many micro-batches of a step. Source: Megatron-LM core r0.12, core/tensor_parallel/layers.py
/// (LinearWithGradAccumulationAndAsyncCommunication), core/utils.py (drain_embedding_wgrad_compute).
GPUMEM_INLINE void GradientFlow::defer(const ops::Function& function, Slot gradient) {
  const std::int64_t most = state_.forward_pass().wired.graph().run_settings().deferred_head_gradients;
  if (deferrals_ >= most) return;
  ++deferrals_;
  for (const Slot slot : {gradient, state_.slot(state_.tape().list(function.inputs)[0])}) {
    if (slot == kNoSlot) continue;
    log_.hold(slot);
    deferred_.push_back(slot);
  }
}

GPUMEM_INLINE void GradientFlow::end_step() {
  for (const Slot slot : deferred_) log_.drop(slot);
  deferred_.clear();
  deferrals_ = 0;
}

GPUMEM_INLINE void GradientFlow::count_readers() {
  const auto count = [&](ops::TensorId parameter) { ++readers_[static_cast<std::size_t>(state_.tied_to(parameter))]; };
  for (const ops::Function& function : state_.tape().functions()) {
    if (!state_.requires_grad(function.output)) continue;
    for (const ops::TensorId parameter : state_.tape().list(function.parameters)) count(parameter);
    for (const ops::TensorId input : state_.tape().list(function.inputs)) {
      if (state_.is_parameter(input)) count(input);
    }
  }
}

GPUMEM_INLINE void GradientFlow::backward(const StagePart& part, Slot scaled_loss) {
  const auto functions = state_.tape().functions();
  // Tensor.backward() holds the ones that it starts from until it returns.
  const Slot ones = log_.allocate(state_.bytes(part.loss), Category::activation_gradient, kNoLayer);
  awaited_ = readers_;
  shards_.begin_backward();
  seed(part.loss, ones, scaled_loss);
  for (std::size_t index = part.functions.end; index-- > part.functions.first && !state_.pace().late();) {
    shards_.begin_backward_of(index, blocks_.covers(index));
    if (state_.requires_grad(functions[index].output)) run(index);
    if (shards_.keeps_inputs_of(index)) keep_inputs(functions[index]);
    blocks_.end_backward(index);
    shards_.end_backward_of(index);
  }
  if (state_.pace().was_late()) return;
  if (part.functions.first == 0 && !inputs_only_) deliver_rest(part.functions.end == functions.size());
  shards_.end_backward();
  log_.drop(ones);
  log_.drop(scaled_loss);
}

/// What the first function of a unit reads is what the unit does.
GPUMEM_INLINE void GradientFlow::keep_inputs(const ops::Function& function) {
  for (const ops::TensorId input : state_.tape().list(function.inputs)) {
    if (!state_.requires_grad(input) || state_.is_parameter(input)) continue;
    shards_.keep_until_end(state_.slot(input));
    shards_.keep_until_end(gradient(input).slot);
  }
}

/// The loss' own gradient: the ones, or ones times the scale.
GPUMEM_INLINE void GradientFlow::seed(ops::TensorId loss, Slot ones, Slot scaled_loss) {
  if (scaled_loss == kNoSlot) {
    log_.hold(ones);
    gradient(loss).slot = ones;
  } else {
    gradient(loss).slot = log_.allocate(state_.bytes(loss), Category::activation_gradient, kNoLayer);
  }
}

/// Parameters that no call reads (a summary shows that they are there, not what with) have gradients all the same.
/// `all`: every call has run; else those of other stages get their gradients there.
GPUMEM_INLINE void GradientFlow::deliver_rest(bool all) {
  for (const ops::Tape::Parameter& parameter : state_.tape().parameters()) {
    deliver(parameter.tensor);
    if (parameter.frozen || parameter.tied) continue;
    const bool read = readers_[static_cast<std::size_t>(parameter.tensor)] > 0;
    if (read && (!all || in_backward_ != nullptr)) continue;
    const bool taken = shards_.takes_gradients();
    if (taken ? shards_.has_gradient(parameter.tensor) : gradient(parameter.tensor).slot != kNoSlot) continue;
    const Slot rest = state_.allocate(parameter.tensor, Category::gradient);
    if (taken) shards_.take_gradient(parameter.tensor, rest);
    else gradient(parameter.tensor).slot = rest;
  }
}

GPUMEM_INLINE void GradientFlow::run(std::size_t index) {
  const ops::Function& function = state_.tape().functions()[index];
  const Flow output = gradient(function.output);
  gradient(function.output) = {};
  const bool joined = function.gradient == ops::Gradient::joined;
  const bool reached = output.slot != kNoSlot || (joined && has_parts(function.output));
  const bool covered = blocks_.covers(index);
  if (reached) {
    if (!covered) calls_.fetch(function);
    else if (blocks_.begin_backward(index)) shards_.end_second_run(index);
    make_gradients(function, output);
    calls_.drop_fetched();
    if (joined) drop_parts(function.output);
  }
  // What a second run saved goes as soon as it is unpacked (checkpoint.py: unpack_hook), the rest when the function is
  // through.
  if (reached && inputs_only_) wait_for_weights(index, output.slot);
  const bool saves = (!covered || blocks_.has_saved(index)) && !inputs_only_;
  if (saves && covered) calls_.drop_kept(function, true);
  if (reached) end_call(function, output);
  if (saves && !covered) calls_.drop_kept(function, false);
  if (reached) hand_on(function);
  if (!lower_.empty() && !follows_its_cast(index)) cast_gradients();
}

/// Whether the function before this one, whose backward comes next, is autocast's copy of what this one reads. Copies
/// of arguments are made from the last to the first, and backward goes the other way: the input's is the first.
GPUMEM_INLINE bool GradientFlow::follows_its_cast(std::size_t index) const {
  if (index == 0) return false;
  const ops::Tape& tape = state_.tape();
  const ops::Function& function = tape.functions()[index];
  const ops::Function& before = tape.functions()[index - 1];
  const auto inputs = tape.list(function.inputs);
  return function.casts_parameters && before.layer == function.layer && before.kind == ops::Output::fresh &&
         before.inputs.count == 1 && !inputs.empty() && inputs[0] == before.output &&
         state_.requires_grad(before.output) &&  // else nothing runs there
         tape.tensor(before.output).size.dtype != tape.tensor(tape.list(before.inputs)[0]).size.dtype;
}

/// Gradients in lower precision become those of the parameters: the backward of autocast's copies, which are
/// functions of their own (ToCopyBackward0).
GPUMEM_INLINE void GradientFlow::cast_gradients() {
  for (const auto& [parameter, lower] : lower_) {
    const Slot whole = state_.allocate(parameter, Category::gradient);
    log_.drop(lower);
    meet(parameter, whole);
  }
  lower_.clear();
}

GPUMEM_INLINE void GradientFlow::make_gradients(const ops::Function& function, const Flow& output) {
  Slot copy = kNoSlot;
  if (function.contiguous_gradient && !output.dense) {
    copy = log_.allocate(state_.bytes(function.output), Category::activation_gradient, function.layer);
  }
  calls_.bring_weight(function);
  taken_ = 0;
  parameter_flows_.clear();
  // A product without a bias is aten::mm, which makes the gradient of its second operand, the weight, first; one with
  // a bias is aten::addmm, which makes the input's first (MmBackward0, AddmmBackward0: by the operands' names). Where
  // there are main gradients, products are functions of their own, which make the input's first (Megatron-LM core
  // r0.12, tensor_parallel/layers.py: LinearWithGradAccumulationAndAsyncCommunication; TransformerEngine 2.1,
  // pytorch/module/linear.py: _Linear).
  const bool weight_first = function.library == ops::Library::gemm && function.parameters.count == 1 &&
                            function.gradient != ops::Gradient::made_in_forward && !shards_.has_main_gradients();
  const bool made = function.gradient == ops::Gradient::made_in_forward;
  const bool weights = !inputs_only_ || made;
  if (weight_first && weights) make_parameter_gradients(function);
  make_input_gradients(function, output);
  const auto scratch = state_.tape().list(function.backward_scratch);
  state_.add(scratch, Category::temporary);
  if (!weight_first && weights) make_parameter_gradients(function);
  state_.let_go(scratch);
  log_.drop(copy);
}

/// The engine casts gradients to the types of their tensors (engine.cpp: validate_outputs); then the gradient that the
/// function has read goes.
GPUMEM_INLINE void GradientFlow::end_call(const ops::Function& function, const Flow& output) {
  const auto inputs = state_.tape().list(function.inputs);
  wide_.clear();
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    if (flows_[at].slot == kNoSlot || !is_widened(function, inputs[at])) continue;
    wide_.push_back(flows_[at].slot);
    flows_[at].slot = state_.allocate(inputs[at], Category::activation_gradient);
    flows_[at].view = false;
  }
  const bool leaf = function.keeps_until_graph_ends && function.gradient == ops::Gradient::none;
  if (leaf) return calls_.keep_of_graph(own_gradient(function.output, output));
  if (&function == deferring_) defer(function, output.slot);
  log_.drop(output.slot);
  for (const Slot slot : wide_) log_.drop(slot);
}

/// Whether the gradient of this input is made in the wider type of the output: of a product of two types
/// (mul_tensor_backward).
GPUMEM_INLINE bool GradientFlow::is_widened(const ops::Function& function, ops::TensorId input) const {
  if (function.gradient != ops::Gradient::fresh || function.library != ops::Library::none) return false;
  if (function.inputs.count != 2 || function.saved.count == 0) return false;
  const ops::TensorSize& made = state_.tape().tensor(function.output).size;
  const ops::TensorSize& read = state_.tape().tensor(input).size;
  return made.dtype == core::DType::float32 && core::element_size(read.dtype) == 2 &&
         2 * state_.bytes(input) == state_.bytes(function.output);
}

GPUMEM_INLINE void GradientFlow::make_input_gradients(const ops::Function& function, const Flow& output) {
  constexpr std::size_t kMasked = 32;  // inputs that the mask of those without a gradient speaks of
  const auto inputs = state_.tape().list(function.inputs);
  if (flows_.size() < inputs.size()) flows_.resize(inputs.size());
  // aten::bmm makes the gradient of its second operand first (BmmBackward0).
  const bool last_first = function.library == ops::Library::gemm && function.parameters.count == 0;
  bool called = false;
  for (std::size_t turn = 0; turn < inputs.size(); ++turn) {
    const std::size_t at = last_first ? inputs.size() - 1 - turn : turn;
    const bool masked = at < kMasked && (function.no_gradient >> at & 1U) != 0;
    const bool flows = !masked && state_.requires_grad(inputs[at]);
    flows_[at] = flows ? input_gradient(function, inputs[at], output) : Flow{};
    // A weight that the model computes is a convolution's second input.
    const bool weight = at == 1 && function.library == ops::Library::convolution;
    if (flows && weight) state_.call(function, Direction::weight_gradient, true);
    if (flows && !weight && !called) {
      state_.call(function, Direction::data_gradient, true);
      called = true;
    }
  }
}

GPUMEM_INLINE GradientFlow::Flow GradientFlow::input_gradient(const ops::Function& function, ops::TensorId input,
                                                              const Flow& output) {
  const bool same_size = state_.bytes(input) == state_.bytes(function.output);
  switch (function.gradient) {
    case ops::Gradient::passed:
      if (!same_size && !is_split(input)) break;  // the input was broadcast: its gradient is a sum
      log_.hold(output.slot);
      return {output.slot, output.dense, output.view || function.kind == ops::Output::view};
    case ops::Gradient::part:
    case ops::Gradient::spread: log_.hold(output.slot); return {output.slot, output.dense && same_size, true};
    case ops::Gradient::none: return {};
    case ops::Gradient::made_in_forward: return {next_made_in_forward(function), true};
    case ops::Gradient::over_input: log_.hold(state_.slot(input)); return {state_.slot(input), true};
    case ops::Gradient::by_sample: return {gradient_by_sample(function, input), true};
    case ops::Gradient::fresh:
    case ops::Gradient::joined: break;
  }
  if (is_widened(function, input)) {
    return {log_.allocate(state_.bytes(function.output), Category::activation_gradient, function.layer), true};
  }
  const Category category = state_.is_parameter(input) ? Category::gradient : Category::activation_gradient;
  return {log_.allocate(state_.bytes(input), category, function.layer), true, function.folds};
}

/// What is kept of a sample goes when its gradient is there. Where all is kept of the input itself, a sample's gradient
/// is made of its difference from the result and the exponential of that (logsumexp_backward), and the gradient of
/// another function that reads the input is added last (gather_backward).
GPUMEM_INLINE Slot GradientFlow::gradient_by_sample(const ops::Function& function, ops::TensorId input) {
  constexpr std::int64_t kMost = 64;  // more are played as so many
  const std::int64_t samples = std::clamp<std::int64_t>(state_.batch_size(), 1, kMost);
  const std::int64_t whole = state_.bytes(input);
  const auto allocate = [&](std::int64_t bytes, Category category) {
    return log_.allocate(bytes, category, function.layer);
  };
  const auto some = [&](std::int64_t count, Category category) {
    std::vector<Slot> slots;
    for (std::int64_t each = 0; each < count; ++each) slots.push_back(allocate(whole / samples, category));
    return slots;
  };
  const auto drop = [&](const std::vector<Slot>& slots) {
    for (const Slot slot : slots) log_.drop(slot);
  };
  const auto extras = state_.tape().list(function.extras);
  state_.let_go(extras);
  std::vector<Slot> kept = some(extras.empty() ? 0 : samples, Category::activation);
  std::vector<Slot> made;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::vector<Slot> passing = some(extras.empty() ? 2 : 1, Category::temporary);
    made.push_back(allocate(whole / samples, Category::activation_gradient));
    drop(passing);
    if (kept.empty()) continue;
    log_.drop(kept.back());
    kept.pop_back();
  }
  const Slot all = allocate(whole, Category::activation_gradient);
  drop(made);
  if (extras.empty()) log_.drop(allocate(whole, Category::temporary));
  return all;
}

/// Autograd holds it, and so does whoever it goes to.
GPUMEM_INLINE Slot GradientFlow::next_made_in_forward(const ops::Function& function) {
  const Slot made = state_.slot(state_.tape().list(function.extras)[taken_++]);
  log_.hold(made);
  return made;
}

/// Under autocast they are made in lower precision, and cast when the function is through.
GPUMEM_INLINE void GradientFlow::make_parameter_gradients(const ops::Function& function) {
  bool called = false;
  for (const ops::TensorId parameter : state_.tape().list(function.parameters)) {
    if (!state_.requires_grad(parameter)) continue;
    if (function.gradient == ops::Gradient::made_in_forward) {
      const Slot made = next_made_in_forward(function);
      if (function.casts_parameters) lower_.emplace_back(parameter, made);
      else parameter_flows_.emplace_back(parameter, made);
      continue;
    }
    if (function.casts_parameters) {
      const std::int64_t bytes = state_.bytes(parameter) / 2;
      lower_.emplace_back(parameter, log_.allocate(bytes, Category::activation_gradient, function.layer));
    } else {
      parameter_flows_.emplace_back(parameter, state_.allocate(parameter, Category::gradient));
    }
    if (!called) state_.call(function, Direction::weight_gradient, true);
    called = true;
  }
}

GPUMEM_INLINE bool GradientFlow::has_trained(const ops::Function& function) const {
  const auto parameters = state_.tape().list(function.parameters);
  return function.gradient != ops::Gradient::made_in_forward &&
         std::any_of(parameters.begin(), parameters.end(), [&](ops::TensorId id) { return state_.requires_grad(id); });
}

GPUMEM_INLINE void GradientFlow::wait_for_weights(std::size_t index, Slot output) {
  const auto functions = state_.tape().functions();
  if (output == kNoSlot || !has_trained(functions[index])) return;
  if (waiting_.empty()) waiting_.assign(functions.size(), kNoSlot);
  log_.hold(output);
  waiting_[index] = output;
}

GPUMEM_INLINE void GradientFlow::backward_of_inputs(const StagePart& part, Slot scaled_loss) {
  inputs_only_ = true;
  backward(part, scaled_loss);
  inputs_only_ = false;
}

GPUMEM_INLINE void GradientFlow::backward_of_weights(const StagePart& part) {
  const auto functions = state_.tape().functions();
  awaited_ = readers_;
  shards_.begin_backward();
  const auto makes = [&](std::size_t index) {
    return index < waiting_.size() && waiting_[index] != kNoSlot && has_trained(functions[index]);
  };
  for (std::size_t index = part.functions.first; index < part.functions.end && !state_.pace().late(); ++index) {
    if (!makes(index)) continue;
    const ops::Function& function = functions[index];
    calls_.fetch(function);
    flows_.clear();
    parameter_flows_.clear();
    make_parameter_gradients(function);
    calls_.drop_fetched();
    calls_.drop_kept(function, false);
    log_.drop(waiting_[index]);
    for (const auto& [parameter, slot] : parameter_flows_) meet(parameter, slot, makes_views(functions[index]));
    cast_gradients();
  }
  if (state_.pace().was_late()) return;
  for (std::size_t index = part.functions.first; index < part.functions.end; ++index) {
    if (state_.requires_grad(functions[index].output) && !makes(index)) calls_.drop_kept(functions[index], false);
  }
  waiting_.clear();
  shards_.end_backward();
}

/// The gradients that the function has made go to whom they belong.
GPUMEM_INLINE void GradientFlow::hand_on(const ops::Function& function) {
  const auto inputs = state_.tape().list(function.inputs);
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    if (flows_[at].slot != kNoSlot) accumulate(inputs[at], flows_[at]);
  }
  for (const auto& [parameter, slot] : parameter_flows_) meet(parameter, slot, makes_views(function));
}

/// A product reads its weight transposed, so the weight's gradient is a view of what backward makes (TBackward0).
/// Functions of their own, which main gradients come with, make it as it is.
GPUMEM_INLINE bool GradientFlow::makes_views(const ops::Function& function) const {
  const bool product = function.library == ops::Library::gemm || function.library == ops::Library::gemm_bias;
  return product && function.gradient != ops::Gradient::made_in_forward && !shards_.has_main_gradients();
}

GPUMEM_INLINE void GradientFlow::accumulate(ops::TensorId input, const Flow& flow) {
  if (is_split(input)) {
    parts_.push_back({input, flow.slot});
    return;
  }
  if (state_.is_parameter(input)) {  // one that other calls read as a tensor
    meet(input, own_gradient(input, flow), flow.view);
    return;
  }
  Flow& old = gradient(input);
  if (old.slot == kNoSlot) {
    old = flow;
    return;
  }
  old = {sum_of({old.slot, flow.slot, old.dense && !old.view}, input, Category::activation_gradient), true};
}

/// The gradients of a parameter that several calls read meet before AccumulateGrad, which takes a first one as it is
/// and adds one in place to what an earlier pass left.
GPUMEM_INLINE void GradientFlow::meet(ops::TensorId parameter, Slot fresh, bool view) {
  const ops::TensorId of = state_.tied_to(parameter);
  const auto at = static_cast<std::size_t>(of);
  Slot& met = met_[at];
  const bool first = met == kNoSlot;
  met = first ? fresh : sum_of({met, fresh, !met_views_[at]}, parameter, Category::gradient);
  met_views_[at] = first && view;
  if (--awaited_[static_cast<std::size_t>(of)] == 0) deliver(of);
}

GPUMEM_INLINE void GradientFlow::deliver(ops::TensorId parameter) {
  Slot& met = met_[static_cast<std::size_t>(parameter)];
  if (met == kNoSlot) return;
  if (shards_.takes_gradients()) return shards_.take_gradient(parameter, std::exchange(met, kNoSlot));
  if (in_backward_ != nullptr) {
    in_backward_->update_one(state_.bytes(parameter), state_.layer(parameter));
    log_.drop(std::exchange(met, kNoSlot));
    return;
  }
  Slot& stands = gradient(parameter).slot;
  if (stands == kNoSlot) {
    stands = met;
  } else {
    log_.drop(met);
  }
  met = kNoSlot;
}

/// Two gradients that meet become one (InputBuffer): in the place of the first, where that may be written to. A view
/// may not: the tensor that it is of holds the same memory (input_buffer.cpp, accumulate: storage().use_count() == 1).
GPUMEM_INLINE Slot GradientFlow::sum_of(const Meeting& meeting, ops::TensorId like, Category category) {
  const bool in_place =
      state_.backend().adds_gradients_in_place && meeting.in_place && log_.has_one_holder(meeting.first);
  const Slot sum = in_place ? meeting.first : state_.allocate(like, category);
  if (!in_place) log_.drop(meeting.first);
  log_.drop(meeting.second);
  return sum;
}

/// A gradient that a parameter may keep: AccumulateGrad copies one that others hold, or that is not dense.
GPUMEM_INLINE Slot GradientFlow::own_gradient(ops::TensorId parameter, const Flow& flow) {
  if (flow.dense && log_.has_one_holder(flow.slot)) return flow.slot;
  const Slot copy = state_.allocate(parameter, Category::gradient);
  log_.drop(flow.slot);
  return copy;
}

GPUMEM_INLINE bool GradientFlow::is_split(ops::TensorId id) const {
  const std::vector<ops::TensorId>& splits = state_.forward_pass().splits;
  return !splits.empty() && std::binary_search(splits.begin(), splits.end(), id);
}

GPUMEM_INLINE bool GradientFlow::has_parts(ops::TensorId id) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.of == id; });
}

GPUMEM_INLINE void GradientFlow::drop_parts(ops::TensorId id) {
  for (const Part& part : parts_) {
    if (part.of == id) log_.drop(part.slot);
  }
  std::erase_if(parts_, [&](const Part& part) { return part.of == id; });
}

GPUMEM_INLINE void GradientFlow::zero_grad() {
  for (const ops::Tape::Parameter& parameter : state_.tape().parameters()) {
    Flow& standing = gradient(parameter.tensor);
    log_.drop(standing.slot);
    standing = {};
  }
  shards_.zero_grad();
}

}  // namespace gpumem::plan
