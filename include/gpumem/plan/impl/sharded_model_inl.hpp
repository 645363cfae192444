#pragma once

#include "gpumem/plan/sharded_model.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/plan/checkpoints.hpp"

namespace gpumem::plan {

namespace sharded_model_detail {

using parallel::Gather;
using parallel::Reduction;

/// Upwards.
GPUMEM_INLINE std::int64_t divided(std::int64_t count, std::int64_t by) {
  return count / by + (count % by == 0 ? 0 : 1);
}

}  // namespace sharded_model_detail

GPUMEM_INLINE ShardedModel::ShardedModel(RunState& state, const parallel::Sharing& sharing)
    : state_(state), log_(state.log()), sharing_(sharing), swapped_(state, sharing.block_swap) {
  received_.assign(takes_gradients() ? state.tape().tensors().size() : 0, 0);
  if (sharing.whole_for_step) summed_.assign(received_.size(), kNoSlot);
  if (gathers() || sharing.reduction == parallel::Reduction::scattered) find_units();
}

GPUMEM_INLINE std::int64_t ShardedModel::elements(ops::TensorId parameter) const {
  return state_.tape().tensor(parameter).size.elements.value().value_or(0);
}

GPUMEM_INLINE core::DType ShardedModel::dtype(ops::TensorId parameter) const {
  return state_.tape().tensor(parameter).size.dtype;
}

GPUMEM_INLINE core::DType ShardedModel::held_in(ops::TensorId parameter) const {
  return state_.requires_grad(parameter) ? sharing_.shard_type(dtype(parameter)) : dtype(parameter);
}

GPUMEM_INLINE core::DType ShardedModel::gathered_in(ops::TensorId parameter) const {
  if (!sharing_.gathers_float8) return dtype(parameter);
  const connect::WiredGraph& wired = state_.forward_pass().wired;
  const std::uint32_t layer = state_.layer(parameter);
  const model::Attributes attributes = wired.graph().attributes(wired.graph().layers()[layer]);
  const std::int64_t weights = core::bounded_product(
      {attributes.integer("in_features").value_or(0), attributes.integer("out_features").value_or(0)});
  return wired.weights(layer).float8 && elements(parameter) == weights ? core::DType::uint8 : dtype(parameter);
}

GPUMEM_INLINE std::int64_t ShardedModel::ranks_of(ops::TensorId parameter, std::int64_t usual) const {
  if (sharing_.expert_ranks == 0 || usual == 1) return usual;
  const model::ModelGraph& graph = state_.forward_pass().wired.graph();
  return graph.layers()[state_.layer(parameter)].expert > 0 ? sharing_.expert_ranks : usual;
}

GPUMEM_INLINE std::int64_t ShardedModel::shard_elements(ops::TensorId parameter) const {
  return sharded_model_detail::divided(elements(parameter), ranks_of(parameter, sharing_.parameter_ranks));
}

GPUMEM_INLINE std::int64_t ShardedModel::padded_elements(ops::TensorId parameter) const {
  return core::bounded_product({shard_elements(parameter), ranks_of(parameter, sharing_.parameter_ranks)});
}

GPUMEM_INLINE void ShardedModel::sum_up(Unit& unit) const {
  for (const ops::TensorId parameter : unit.parameters) {
    const std::int64_t size = core::element_size(gathered_in(parameter));
    unit.gathered = core::bounded_sum({unit.gathered, core::bounded_product({padded_elements(parameter), size})});
    unit.sharded = core::bounded_sum({unit.sharded, core::bounded_product({shard_elements(parameter), size})});
  }
}

GPUMEM_INLINE void ShardedModel::find_units() {
  const std::size_t functions = state_.tape().functions().size();
  begins_.assign(functions, kNoUnit);
  ends_.assign(functions, kNoUnit);
  unit_of_.assign(state_.tape().tensors().size(), kRoot);
  units_.emplace_back();
  units_.front().in_backward = true;
  if (sharing_.layer_by_layer) find_layers();
  else find_blocks();
  for (Unit& unit : units_) sum_up(unit);
}

/// The calls of the layers from `first` on, all or those from the first to the last with parameters, are a unit.
GPUMEM_INLINE void ShardedModel::add_unit(const Range& layers, std::int64_t kept_over, bool all) {
  const ops::Tape& tape = state_.tape();
  const auto functions = tape.functions();
  std::uint32_t first = kNoUnit;
  std::uint32_t end = 0;
  Unit unit;
  unit.kept_over = kept_over;
  for (std::uint32_t at = calls_from_; at < functions.size() && functions[at].layer < layers.end; ++at) {
    calls_from_ = at + 1;
    if (functions[at].layer < layers.first || (!all && functions[at].parameters.count == 0)) continue;
    first = std::min(first, at);
    end = at + 1;
    unit.in_backward |= state_.requires_grad(functions[at].output);
  }
  if (end == 0) return;
  const auto number = static_cast<std::uint32_t>(units_.size());
  begins_[first] = number;
  ends_[end - 1] = number;
  std::fill(unit_of_layer_.begin() + layers.first, unit_of_layer_.begin() + layers.end, number);
  units_.push_back(std::move(unit));
}

GPUMEM_INLINE void ShardedModel::find_blocks() {
  const ops::Tape& tape = state_.tape();
  const model::ModelGraph& graph = state_.forward_pass().wired.graph();
  const std::vector<Range> blocks = blocks_of_all_stacks(graph);
  unit_of_layer_.assign(graph.layers().size(), kRoot);
  const bool tied = std::ranges::any_of(tape.parameters(), [](const auto& parameter) { return parameter.tied; });
  const bool apart = sharing_.ends_apart && !tied && !blocks.empty();
  if (apart) add_unit({0, blocks.front().first}, sharing_.kept_over, false);
  for (const Range& block : blocks) add_unit(block, sharing_.kept_over, true);
  const auto layers = static_cast<std::uint32_t>(graph.layers().size());
  if (apart) add_unit({blocks.back().end, layers}, sharing_.end_kept_over, false);
  for (const ops::Tape::Parameter& parameter : tape.parameters()) {
    if (parameter.tied) continue;
    const std::uint32_t number = unit_of_layer_[tape.tensor(parameter.tensor).layer];
    unit_of_[static_cast<std::size_t>(parameter.tensor)] = number;
    units_[number].parameters.push_back(parameter.tensor);
    units_[number].frozen |= parameter.frozen;
    units_[number].trained |= !parameter.frozen;
  }
}

/// Each call that reads parameters; a tied one is gathered for each of its calls, unless all of them stay gathered.
GPUMEM_INLINE void ShardedModel::find_layers() {
  const auto functions = state_.tape().functions();
  std::int64_t all = 0;
  for (const ops::Tape::Parameter& parameter : state_.tape().parameters()) {
    if (!parameter.tied) all = core::bounded_sum({all, elements(parameter.tensor)});
  }
  const bool stays = 2 * all < sharing_.reuse_elements;
  std::vector<bool> known(state_.tape().tensors().size(), false);
  for (std::uint32_t index = 0; index < functions.size(); ++index) {
    Unit unit;
    for (const ops::TensorId parameter : state_.tape().list(functions[index].parameters)) {
      const ops::TensorId owner = state_.tied_to(parameter);
      const bool there = stays && known[static_cast<std::size_t>(owner)];
      if (!persists(owner) && !there) unit.parameters.push_back(owner);
      known[static_cast<std::size_t>(owner)] = true;
    }
    if (unit.parameters.empty()) continue;
    unit.in_backward = state_.requires_grad(functions[index].output);
    begins_[index] = ends_[index] = static_cast<std::uint32_t>(units_.size());
    units_.push_back(std::move(unit));
  }
  std::int64_t later = 0;
  for (std::size_t unit = units_.size(); unit-- > 0;) {
    units_[unit].later = 2 * later;
    for (const ops::TensorId parameter : units_[unit].parameters)
      later = core::bounded_sum({later, elements(parameter)});
  }
}

GPUMEM_INLINE void ShardedModel::begin() {
  for (const ops::TensorId id : state_.trained())
    if (sharing_.moves_weights) first_.push_back(state_.allocate(id, Category::parameter));
}

GPUMEM_INLINE void ShardedModel::construct() {
  if (gathers()) add_shards();
  if (sharing_.shares_stand) add_shares();
  if (sharing_.reduction == parallel::Reduction::bucketed) add_buckets();
  for (const bool experts : {false, true})
    if (has_main_gradients()) add_main_buffer(experts);
  if (!sharing_.buffers_stand || state_.trained().empty()) return;
  add_partition();
  add_partitioning_bucket();
}

/// One a parameter, or one a unit; layer by layer one in all.
GPUMEM_INLINE void ShardedModel::add_shards() {
  std::vector<std::int64_t> flat(units_.size(), 0);
  for (const ops::Tape::Parameter& parameter : state_.tape().parameters()) {
    if (parameter.tied) continue;
    const ops::TensorId id = parameter.tensor;
    if (persists(id)) log_.allocate(state_.bytes(id), Category::parameter, state_.layer(id));
    if (sharing_.on_host) continue;
    const std::int64_t bytes = core::bounded_product({shard_elements(id), core::element_size(held_in(id))});
    if (sharing_.gather == parallel::Gather::copied_out) {
      log_.allocate(bytes, Category::parameter, state_.layer(id));
      continue;
    }
    std::int64_t& sum = flat[unit_of_[static_cast<std::size_t>(id)]];
    sum = core::bounded_sum({sum, bytes});
  }
  for (const std::int64_t bytes : flat) {
    if (bytes > 0) log_.allocate(bytes, Category::parameter, kNoLayer);
  }
}

/// In the order in which backward makes the gradients: the last parameter first.
GPUMEM_INLINE void ShardedModel::add_buckets() {
  const auto trained = state_.trained();
  std::int64_t cap = sharing_.first_bucket_bytes;
  std::int64_t bucket = 0;
  for (std::size_t left = trained.size(); left-- > 0;) {
    bucket = core::bounded_sum({bucket, state_.bytes(trained[left])});
    if (bucket < cap && left > 0) continue;
    log_.allocate(bucket, Category::communication, state_.layer(trained[left]));
    cap = sharing_.bucket_bytes;
    bucket = 0;
  }
}

GPUMEM_INLINE void ShardedModel::add_main_buffer(bool experts) {
  const auto layers = state_.forward_pass().wired.graph().layers();
  std::int64_t sum = 0;
  std::vector<Slot> moved;
  for (std::size_t at = 0; at < state_.trained().size(); ++at) {
    const ops::TensorId parameter = state_.trained()[at];
    if ((layers[state_.layer(parameter)].expert > 0) != experts) continue;
    const core::DType type = sharing_.reduced_type(dtype(parameter));
    sum = core::bounded_sum({sum, core::bounded_product({elements(parameter), core::element_size(type)})});
    if (!first_.empty()) moved.push_back(first_[at]);
  }
  if (sum > 0) log_.allocate(sum, Category::gradient, kNoLayer);
  for (const Slot slot : moved) log_.drop(slot);
}

/// The shards in the compute type are a temporary of the call.
GPUMEM_INLINE void ShardedModel::start_gather(Unit& unit) {
  if (unit.buffer != kNoSlot || !unit.whole.empty() || unit.gathered == 0) return;
  const bool copies = (sharing_.float32_shards || sharing_.on_host) && unit.parts.empty();
  const std::uint32_t layer = state_.layer(unit.parameters.front());
  const Slot shard = copies ? log_.allocate(unit.sharded, Category::communication, layer, kGatherStream) : kNoSlot;
  unit.buffer = log_.allocate(unit.gathered, Category::gathered, layer, kGatherStream);
  log_.drop(shard);
}

GPUMEM_INLINE void ShardedModel::gather(Unit& unit, bool forward) {
  if (!unit.whole.empty()) return;
  start_gather(unit);
  if (unit.buffer == kNoSlot) return;
  if (sharing_.gather == parallel::Gather::in_place) {
    unit.whole.push_back(std::exchange(unit.buffer, kNoSlot));
    return;
  }
  if (forward) log_.drop(std::exchange(last_buffer_, kNoSlot));
  for (const ops::TensorId parameter : unit.parameters) {
    const std::int64_t bytes =
        core::bounded_product({padded_elements(parameter), core::element_size(gathered_in(parameter))});
    unit.whole.push_back(log_.allocate(bytes, Category::gathered, state_.layer(parameter)));
  }
  for (const Slot part : unit.parts) log_.drop(part);
  unit.parts.clear();
  const Slot buffer = std::exchange(unit.buffer, kNoSlot);
  if (forward) last_buffer_ = buffer;
  else log_.drop(buffer);
}

GPUMEM_INLINE void ShardedModel::release(Unit& unit) {
  for (const Slot slot : unit.whole) log_.drop(slot);
  unit.whole.clear();
}

GPUMEM_INLINE void ShardedModel::begin_forward() {
  swapped_.begin_forward();
  if (!gathers()) return;
  if (sharing_.gradients_until_forward) {
    for (Unit& unit : units_) {
      if (unit.share_ends) log_.drop(std::exchange(unit.share, kNoSlot));
      unit.share_ends = false;
    }
  }
  gather(units_[kRoot], true);
}

GPUMEM_INLINE void ShardedModel::end_call_of_unit(Unit& unit) {
  const bool soon = unit.in_backward && unit.later < sharing_.reuse_elements;
  if (soon || unit.kept_over == 1) return;
  if (unit.kept_over > 1) keep_parts(unit);
  release(unit);
}

/// Each parameter's part is a copy, and the whole one ends with it.
GPUMEM_INLINE void ShardedModel::keep_parts(Unit& unit) {
  for (std::size_t at = 0; at < unit.whole.size(); ++at) {
    const ops::TensorId parameter = unit.parameters[at];
    const std::int64_t part = sharded_model_detail::divided(padded_elements(parameter), unit.kept_over);
    const std::int64_t bytes = core::bounded_product({part, core::element_size(gathered_in(parameter))});
    unit.parts.push_back(log_.allocate(bytes, Category::gathered, state_.layer(parameter)));
    log_.drop(std::exchange(unit.whole[at], kNoSlot));
  }
}

/// Without a backward the root would stay gathered as well.
GPUMEM_INLINE void ShardedModel::end_forward() { log_.drop(std::exchange(last_buffer_, kNoSlot)); }

GPUMEM_INLINE void ShardedModel::begin_backward() {
  std::fill(received_.begin(), received_.end(), std::uint8_t{0});
  if (gathers()) prefetch_before(static_cast<std::uint32_t>(units_.size()));
  const bool makes = sharing_.reduction == parallel::Reduction::partitioned && !sharing_.buffers_stand;
  if (makes && !state_.trained().empty()) add_partitioning_bucket();
}

GPUMEM_INLINE void ShardedModel::add_partitioning_bucket() {
  const core::DType type = dtype(state_.trained().front());
  bucket_ = log_.allocate(core::bounded_product({sharing_.bucket_elements, core::element_size(type)}),
                          Category::communication, kNoLayer);
}

/// The unit that was called before this one, and that backward comes to.
GPUMEM_INLINE void ShardedModel::prefetch_before(std::uint32_t unit) {
  if (!sharing_.prefetches) return;
  std::int64_t ahead = 0;
  for (std::uint32_t before = unit; before-- > kRoot + 1;) {
    if (!units_[before].in_backward) continue;
    for (const ops::TensorId parameter : units_[before].parameters)
      ahead = core::bounded_sum({ahead, elements(parameter)});
    if (sharing_.prefetch_elements > 0 && ahead > sharing_.prefetch_elements) return;
    start_gather(units_[before]);
    if (sharing_.prefetch_elements == 0) return;
  }
}

GPUMEM_INLINE void ShardedModel::begin_backward_of_unit(std::uint32_t unit, bool as_forward) {
  if (!gathers() || !units_[unit].in_backward) return;
  gather(units_[unit], as_forward);
  if (!as_forward) prefetch_before(unit);
}

GPUMEM_INLINE void ShardedModel::end_second_run(std::size_t function) {
  if (!sharing_.gathers_again || !gathers()) return;
  const std::uint32_t number = unit_of_layer_[state_.tape().functions()[function].layer];
  if (number == kRoot || number == ran_again_) return;
  Unit& unit = units_[number];
  log_.drop(std::exchange(last_buffer_, kNoSlot));
  end_call_of_unit(unit);
  gather(unit, false);
  if (ran_again_ != kRoot) start_gather(units_[ran_again_]);
  ran_again_ = number;
}

GPUMEM_INLINE bool ShardedModel::keeps_inputs_of(const Unit& unit) const {
  return unit.frozen && (!unit.trained || sharing_.adapters_apart);
}

GPUMEM_INLINE void ShardedModel::keep_until_end(Slot slot) {
  if (slot == kNoSlot) return;
  log_.hold(slot);
  kept_.push_back(slot);
}

GPUMEM_INLINE void ShardedModel::end_backward() {
  for (const Slot slot : kept_) log_.drop(slot);
  kept_.clear();
  if (!units_.empty()) end_unit(units_[kRoot]);
  end_reductions();
  for (Unit& unit : units_) log_.drop(std::exchange(unit.buffer, kNoSlot));
  log_.drop(std::exchange(last_buffer_, kNoSlot));
  ran_again_ = kRoot;
  if (!sharing_.buffers_stand) log_.drop(std::exchange(bucket_, kNoSlot));
}

GPUMEM_INLINE void ShardedModel::take_gradient(ops::TensorId parameter, Slot gradient) {
  received_[static_cast<std::size_t>(parameter)] = 1;
  if (sharing_.reduction == parallel::Reduction::scattered) {
    Unit& unit = units_[unit_of_[static_cast<std::size_t>(parameter)]];
    unit.made.push_back(parameter);
    unit.gradients.push_back(gradient);
    return;
  }
  log_.drop(gradient);
  if (sharing_.reduction == parallel::Reduction::partitioned && partition_ == kNoSlot) add_partition();
}

GPUMEM_INLINE void ShardedModel::add_partition() {
  if (sharing_.shares_on_host) return;
  std::int64_t sum = 0;
  for (const ops::TensorId each : state_.trained()) sum = core::bounded_sum({sum, state_.bytes(each)});
  partition_ = log_.allocate(sharded_model_detail::divided(sum, sharing_.gradient_ranks), Category::gradient, kNoLayer);
}

/// In the parameters' type, one buffer.
GPUMEM_INLINE void ShardedModel::add_shares() {
  std::int64_t sum = 0;
  for (const ops::TensorId parameter : state_.trained()) {
    const std::int64_t share =
        sharded_model_detail::divided(elements(parameter), ranks_of(parameter, sharing_.gradient_ranks));
    sum = core::bounded_sum({sum, core::bounded_product({share, core::element_size(dtype(parameter))})});
  }
  if (sum > 0) log_.allocate(sum, Category::gradient, kNoLayer);
}

/// The unit's backward has run.
GPUMEM_INLINE void ShardedModel::end_unit(Unit& unit) {
  if (sharing_.whole_for_step) gather_up(unit);
  else reduce(unit);
}

/// Its whole gradients are added to those of the micro-batches before, in the type that they are reduced in.
GPUMEM_INLINE void ShardedModel::gather_up(Unit& unit) {
  for (std::size_t at = 0; at < unit.made.size(); ++at) {
    const ops::TensorId parameter = unit.made[at];
    Slot& sum = summed_[static_cast<std::size_t>(parameter)];
    if (sum != kNoSlot) {
      log_.drop(unit.gradients[at]);
      continue;
    }
    const core::DType type = sharing_.reduced_type(dtype(parameter));
    if (type == dtype(parameter)) {
      sum = unit.gradients[at];
      continue;
    }
    const std::int64_t bytes = core::bounded_product({elements(parameter), core::element_size(type)});
    sum = log_.allocate(bytes, Category::gradient, state_.layer(parameter));
    log_.drop(unit.gradients[at]);
  }
  unit.made.clear();
  unit.gradients.clear();
}

/// Unit by unit in the order of forward: _FSDPParamGroup.post_backward() of each.
GPUMEM_INLINE void ShardedModel::end_step() {
  if (!sharing_.whole_for_step) return;
  for (Unit& unit : units_) {
    for (const ops::TensorId parameter : unit.parameters) {
      Slot& sum = summed_[static_cast<std::size_t>(parameter)];
      if (sum == kNoSlot) continue;
      unit.made.push_back(parameter);
      unit.gradients.push_back(std::exchange(sum, kNoSlot));
    }
    reduce(unit);
  }
  end_reductions();
}

GPUMEM_INLINE void ShardedModel::hold_reduction(Slot slot, std::int64_t elements) {
  under_way_.emplace_back(slot, elements);
  std::int64_t sum = 0;
  for (const auto& [held, size] : under_way_) sum = core::bounded_sum({sum, size});
  while (sharing_.queue_elements > 0 && sum > sharing_.queue_elements && !under_way_.empty()) {
    log_.drop(under_way_.front().first);
    sum -= under_way_.front().second;
    under_way_.erase(under_way_.begin());
  }
}

GPUMEM_INLINE void ShardedModel::end_reductions() {
  for (const auto& [slot, size] : under_way_) log_.drop(slot);
  under_way_.clear();
}

GPUMEM_INLINE void ShardedModel::reduce(Unit& unit) {
  std::int64_t wide = 0;   // in the type that it is reduced in
  std::int64_t share = 0;  // of it
  std::int64_t held = 0;   // the share, in the shards' type
  std::int64_t count = 0;  // elements of the gradients
  bool casts = false;
  for (const ops::TensorId parameter : unit.made) {
    const core::DType type = sharing_.reduced_type(dtype(parameter));
    const std::int64_t ranks = ranks_of(parameter, sharing_.gradient_ranks);
    const std::int64_t part = sharded_model_detail::divided(elements(parameter), ranks);
    const std::int64_t part_bytes = core::bounded_product({part, core::element_size(type)});
    wide = core::bounded_sum({wide, core::bounded_product({part_bytes, ranks})});
    share = core::bounded_sum({share, part_bytes});
    held = core::bounded_sum({held, core::bounded_product({part, core::element_size(held_in(parameter))})});
    count = core::bounded_sum({count, elements(parameter)});
    casts |= type != held_in(parameter);
  }
  const std::uint32_t layer = unit.made.empty() ? kNoLayer : state_.layer(unit.made.front());
  if (!sharing_.cat_gradients || wide == 0) release(unit);
  if (sharing_.queue_elements == 0) end_reductions();
  if (wide > 0) {
    hold_reduction(log_.allocate(wide, Category::communication, layer), count);
    for (const Slot slot : unit.gradients) log_.drop(slot);
    release(unit);
    Slot made = sharing_.shares_stand ? kNoSlot : log_.allocate(share, Category::gradient, layer, kReduceStream);
    if (sharing_.cat_gradients) end_reductions();
    if (casts) log_.drop(std::exchange(made, log_.allocate(held, Category::gradient, layer, kReduceStream)));
    keep_share(unit, made);
  }
  unit.made.clear();
  unit.gradients.clear();
}

/// A share that is there already is added to in place.
GPUMEM_INLINE void ShardedModel::keep_share(Unit& unit, Slot share) {
  if (sharing_.on_host || sharing_.shares_ended || unit.share != kNoSlot) log_.drop(share);
  else unit.share = share;
}

GPUMEM_INLINE void ShardedModel::zero_grad() {
  for (Unit& unit : units_) {
    if (sharing_.gradients_until_forward) unit.share_ends = true;
    else log_.drop(std::exchange(unit.share, kNoSlot));
  }
  if (!sharing_.buffers_stand) log_.drop(std::exchange(partition_, kNoSlot));
}

}  // namespace gpumem::plan
