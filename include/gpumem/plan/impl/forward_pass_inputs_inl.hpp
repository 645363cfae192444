#pragma once

#include "gpumem/plan/forward_pass.hpp"

#include <algorithm>

#include "gpumem/ops/catalogue.hpp"

namespace gpumem::plan {

/// Layers that are alike have the same place. The graph holds equal attributes of neighbours once (GraphBuilder).
GPUMEM_INLINE std::size_t RecordedLayers::place_of(const ops::Tape& tape, std::size_t layer,
                                                   std::span<const ops::TensorId> inputs) const {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  const model::Layer& row = wired_.graph().layers()[layer];
  std::uint64_t mix = std::uint64_t{row.attributes.first} << 32U | row.op;
  for (const ops::TensorId id : inputs) {
    const ops::TapeTensor& read = tape.tensor(id);
    const std::uint64_t flags = (read.requires_grad ? 1U : 0U) | (read.view ? 2U : 0U) | (read.layout.gaps ? 4U : 0U);
    mix = mix * kFactor ^ static_cast<std::uint64_t>(read.size.elements.value().value_or(0));
    mix = mix * kFactor ^ (std::uint64_t{read.layout.order} << 32U | flags);
  }
  return (mix * kFactor) >> (64 - kPlaceBits);
}

/// The first place that is free; where none is, the layer's own.
GPUMEM_INLINE RecordedLayers::Recorded& RecordedLayers::room_at(std::size_t place) {
  for (std::size_t tried = 0; tried < kPlacesTried; ++tried) {
    Recorded& recent = recent_[(place + tried) % recent_.size()];
    if (!recent.known) return recent;
  }
  return recent_[place];
}

GPUMEM_INLINE void RecordedLayers::find_shapes(std::size_t layer) {
  const auto left = wired_.outputs(layer);
  shapes_.assign(1, left.empty() ? nullptr : &left[0]);
  for (const model::LayerIndex input : wired_.inputs(layer)) shapes_.push_back(&wired_.shape_on(input));
}

/// Inferred shapes that are equal are mostly one.
GPUMEM_INLINE bool RecordedLayers::is_alike(const Recorded& recorded, std::size_t layer) const {
  if (!recorded.known) return false;
  const auto same = [](const core::Shape* left, const core::Shape* right) {
    return left == right || (left != nullptr && right != nullptr && *left == *right);
  };
  const model::Layer& old = wired_.graph().layers()[recorded.layer];
  const model::Layer& row = wired_.graph().layers()[layer];
  const bool same_attributes = old.attributes.first == row.attributes.first || row.attributes.count == 0;
  return old.op == row.op && same_attributes && old.attributes.count == row.attributes.count &&
         old.class_name == row.class_name && old.parameters == row.parameters &&
         old.tied_parameters == row.tied_parameters && old.frozen == row.frozen &&
         std::equal(recorded.shapes.begin(), recorded.shapes.end(), shapes_.begin(), shapes_.end(), same) &&
         wired_.weights(recorded.layer) == wired_.weights(layer);
}

GPUMEM_INLINE std::optional<ops::TensorId> RecordedLayers::repeat(ops::Tape& tape, std::size_t layer,
                                                                  std::span<const ops::TensorId> inputs) {
  if (inputs.size() > kMostInputs) return std::nullopt;
  find_shapes(layer);
  const std::size_t place = place_of(tape, layer, inputs);
  for (std::size_t tried = 0; tried < kPlacesTried; ++tried) {
    const Recorded& recent = recent_[(place + tried) % recent_.size()];
    if (is_alike(recent, layer) && tape.reads_alike(recent.calls, inputs)) return tape.repeat(recent.calls, inputs);
  }
  return std::nullopt;
}

GPUMEM_INLINE core::Result<ops::TensorId> RecordedLayers::record(ops::Tape& tape, std::size_t layer, const ops::Op& op,
                                                                 const ops::OpCall& call) {
  if (call.tensors.size() > kMostInputs) return op.record(call, tape);
  const ops::TapeMark first = tape.mark();
  core::Result<ops::TensorId> output = op.record(call, tape);
  if (!output) return output;
  find_shapes(layer);
  Recorded& recent = room_at(place_of(tape, layer, call.tensors));
  recent.layer = layer;
  recent.shapes = shapes_;
  recent.calls.first = first;
  recent.calls.end = tape.mark();
  recent.calls.inputs.assign(call.tensors.begin(), call.tensors.end());
  recent.calls.output = *output;
  recent.known = recent.calls.end.requirements == first.requirements;
  return output;
}

namespace attention_inputs_detail {

/// By layer: how many layers read it.
GPUMEM_INLINE std::vector<int> count_readers(const connect::WiredGraph& wired) {
  std::vector<int> readers(wired.graph().layers().size(), 0);
  for (std::size_t index = 0; index < readers.size(); ++index) {
    for (const model::LayerIndex input : wired.inputs(index)) {
      if (input >= 0) ++readers[static_cast<std::size_t>(input)];
    }
  }
  return readers;
}

/// A view or a copy: it computes nothing, holds nothing and reads one tensor.
GPUMEM_INLINE bool moves(const connect::WiredGraph& wired, std::size_t layer) {
  const ops::Op* op = wired.op(wired.graph().layers()[layer]);
  return op != nullptr && !op->traits.computes && wired.inputs(layer).size() == 1 &&
         !wired.graph().layers()[layer].returned && wired.graph().layers()[layer].parameters == 0;
}

}  // namespace attention_inputs_detail

GPUMEM_INLINE std::vector<bool> attention_inputs(const connect::WiredGraph& wired) {
  namespace detail = attention_inputs_detail;
  const auto layers = wired.graph().layers();
  const std::vector<int> readers = detail::count_readers(wired);
  std::vector<bool> skipped(layers.size(), false);
  for (std::size_t index = 0; index < layers.size(); ++index) {
    const ops::Op* op = wired.op(layers[index]);
    if (op == nullptr || op->traits.family != model::OpFamily::attention || op->traits.projects()) continue;
    for (const model::LayerIndex input : wired.inputs(index)) {
      model::LayerIndex at = input;
      while (at >= 0 && readers[static_cast<std::size_t>(at)] == 1 &&
             detail::moves(wired, static_cast<std::size_t>(at))) {
        skipped[static_cast<std::size_t>(at)] = true;
        at = wired.inputs(static_cast<std::size_t>(at))[0];
      }
    }
  }
  return skipped;
}

namespace language_loss_detail {

/// Whether the layer hands on what it reads, in another shape, type or scale.
GPUMEM_INLINE bool scales(const connect::WiredGraph& wired, model::LayerIndex layer) {
  if (layer < 0) return false;
  const auto at = static_cast<std::size_t>(layer);
  const ops::Op* op = wired.op(wired.graph().layers()[at]);
  if (op == nullptr || wired.inputs(at).size() != 1 || wired.graph().layers()[at].parameters > 0) return false;
  return op->traits.family == model::OpFamily::view || op->traits.family == model::OpFamily::other;
}

/// scales(), or a soft cap: an activation of scaled logits, which the kernels of these losses compute too (Liger's,
/// Apple's and Unsloth's: softcap).
GPUMEM_INLINE bool hands_on(const connect::WiredGraph& wired, model::LayerIndex layer) {
  if (layer < 0) return false;
  if (scales(wired, layer)) return true;
  const auto at = static_cast<std::size_t>(layer);
  const ops::Op* op = wired.op(wired.graph().layers()[at]);
  const bool activation = op != nullptr && op->traits.family == model::OpFamily::activation;
  return activation && wired.inputs(at).size() == 1 && scales(wired, wired.inputs(at)[0]);
}

GPUMEM_INLINE core::Error no_head(const connect::WiredGraph& wired, model::LayerIndex layer) {
  const auto at = static_cast<std::size_t>(std::max<model::LayerIndex>(layer, 0));
  return {core::ErrorCode::missing_information,
          "chunked and fused losses replace a language model's head and cross entropy, and this model shows no "
          "linear layer with logits that go straight to its loss; give its config.json, or `loss=standard`",
          wired.place_of(wired.graph().layers()[at])};
}

/// The last one: encoders that are trained with a decoder have theirs before.
GPUMEM_INLINE model::LayerIndex find_loss(const connect::WiredGraph& wired) {
  const auto layers = wired.graph().layers();
  for (std::size_t index = layers.size(); index-- > 0;) {
    const ops::Op* op = wired.op(layers[index]);
    if (op != nullptr && op->loss == model::Loss::cross_entropy) return static_cast<model::LayerIndex>(index);
  }
  return -1;
}

}  // namespace language_loss_detail

GPUMEM_INLINE core::Result<HeadAndLoss> find_head_and_loss(const connect::WiredGraph& wired) {
  namespace detail = language_loss_detail;
  const auto layers = wired.graph().layers();
  HeadAndLoss found;
  found.loss = detail::find_loss(wired);
  if (found.loss < 0) return detail::no_head(wired, 0);
  found.replaced.assign(layers.size(), false);
  model::LayerIndex at = wired.inputs(static_cast<std::size_t>(found.loss))[0];
  while (detail::hands_on(wired, at)) {
    found.replaced[static_cast<std::size_t>(at)] = true;
    at = wired.inputs(static_cast<std::size_t>(at))[0];
  }
  const ops::Op* head = at < 0 ? nullptr : wired.op(layers[static_cast<std::size_t>(at)]);
  const bool linear = head != nullptr && head->traits.family == model::OpFamily::linear &&
                      head->traits.parameters != nullptr && wired.inputs(static_cast<std::size_t>(at)).size() == 1;
  if (!linear) return detail::no_head(wired, found.loss);
  found.head = at;
  found.replaced[static_cast<std::size_t>(at)] = true;
  for (std::size_t index = 0; index < layers.size(); ++index) {  // what is returned in addition to the loss
    if (!layers[index].returned || wired.inputs(index).size() != 1) continue;
    const model::LayerIndex of = wired.inputs(index)[0];
    if (of >= 0 && found.replaced[static_cast<std::size_t>(of)]) found.replaced[index] = true;
  }
  for (std::size_t index = static_cast<std::size_t>(found.loss) + 1; index < layers.size(); ++index) {
    const ops::Op* op = wired.op(layers[index]);
    const bool returns = op != nullptr && op->traits.family == model::OpFamily::view && wired.inputs(index).size() > 1;
    if (returns && wired.inputs(index)[0] == found.loss) found.end = static_cast<model::LayerIndex>(index);
  }
  return found;
}

namespace name_lifetimes_detail {

/// By tensor: the last function that makes or reads it; -1: its name stays.
GPUMEM_INLINE std::vector<std::int32_t> last_uses(const ForwardPass& pass, std::span<const ops::TensorId> held) {
  const ops::Tape& tape = pass.tape;
  const auto functions = tape.functions();
  std::vector<std::int32_t> last(tape.tensors().size(), -1);
  for (std::size_t index = 0; index < functions.size(); ++index) {
    const auto at = static_cast<std::int32_t>(index);
    last[static_cast<std::size_t>(functions[index].output)] = at;
    for (const ops::TensorId input : tape.list(functions[index].inputs)) last[static_cast<std::size_t>(input)] = at;
  }
  const auto stays = [&](ops::TensorId id) { last[static_cast<std::size_t>(id)] = -1; };
  for (const ops::TensorId id : held) stays(id);
  for (const ops::TensorId input : tape.inputs()) stays(input);
  for (const ops::TensorId buffer : tape.buffers()) stays(buffer);
  for (const ops::Tape::Parameter& parameter : tape.parameters()) stays(parameter.tensor);
  return last;
}

/// transformers up to 4.45: the float32 copy of the logits takes their name, where the loss is computed of one.
GPUMEM_INLINE void rename_cast_logits(const ForwardPass& pass, std::vector<ops::TensorId>& held) {
  const ops::Tape& tape = pass.tape;
  for (const ops::Function& function : tape.functions().first(pass.model_functions)) {
    if (function.inputs.count != 1 || tape.tensor(function.output).size.dtype != core::DType::float32) continue;
    const ops::TensorId from = tape.list(function.inputs)[0];
    const bool casts = tape.tensor(from).size.dtype != core::DType::float32 && function.kind == ops::Output::fresh &&
                       tape.tensor(from).size.elements.value() == tape.tensor(function.output).size.elements.value();
    if (casts) std::replace(held.begin(), held.end(), from, function.output);
  }
}

}  // namespace name_lifetimes_detail

GPUMEM_INLINE std::vector<ops::TensorId> held_by_loop(const model::TrainingJob& job, const ForwardPass& pass) {
  const bool older = job.transformers == model::Transformers::v4_45;
  const bool has_caches = model::returns_cache(job);
  if (has_caches && !job.activation_checkpointing && !older) return pass.held;
  const model::ModelGraph& graph = pass.wired.graph();
  std::vector<ops::TensorId> held;
  for (const ops::TensorId id : pass.held) {
    const std::uint32_t layer = pass.tape.tensor(id).layer;
    const model::Attributes attributes = graph.attributes(graph.layers()[layer]);
    const bool cached = id != pass.loss && attributes.flag("cache", false);
    const bool made = has_caches && (!job.activation_checkpointing || attributes.flag("checkpointed", false));
    if (!cached || made) held.push_back(id);
  }
  if (older) name_lifetimes_detail::rename_cast_logits(pass, held);
  return held;
}

GPUMEM_INLINE StageEnds stage_ends(const ForwardPass& pass, const StagePart& part,
                                   std::span<const ops::TensorId> held) {
  StageEnds ends;
  const auto all = pass.tape.inputs();
  std::vector<bool> made(pass.tape.tensors().size(), false);
  for (std::uint32_t index = part.functions.first; index < part.functions.end; ++index) {
    const ops::Function& function = pass.tape.functions()[index];
    made[static_cast<std::size_t>(function.output)] = true;
    for (const ops::TensorId input : pass.tape.list(function.inputs)) {
      const bool given = std::find(all.begin(), all.end(), input) != all.end();
      const bool known = std::find(ends.inputs.begin(), ends.inputs.end(), input) != ends.inputs.end();
      if (given && !known) ends.inputs.push_back(input);
    }
  }
  const auto is_loss = [&](ops::TensorId tensor) {
    return std::any_of(pass.stages.begin(), pass.stages.end(),
                       [&](const StagePart& stage) { return stage.loss == tensor; });
  };
  for (const ops::TensorId tensor : held) {
    if (made[static_cast<std::size_t>(tensor)] && !is_loss(tensor)) ends.outputs.push_back(tensor);
  }
  return ends;
}

GPUMEM_INLINE NameLifetimes::NameLifetimes(const ForwardPass& pass, std::span<const ops::TensorId> held) {
  const std::vector<std::int32_t> last = name_lifetimes_detail::last_uses(pass, held);
  first_of_.assign(pass.tape.functions().size() + 1, 0);
  for (const std::int32_t at : last) {
    if (at >= 0) ++first_of_[static_cast<std::size_t>(at) + 1];
  }
  for (std::size_t index = 1; index < first_of_.size(); ++index) first_of_[index] += first_of_[index - 1];
  ending_.resize(first_of_.back());
  std::vector<std::uint32_t> next(first_of_.begin(), first_of_.end() - 1);
  for (std::size_t id = 0; id < last.size(); ++id) {
    if (last[id] >= 0) ending_[next[static_cast<std::size_t>(last[id])]++] = static_cast<ops::TensorId>(id);
  }
}

}  // namespace gpumem::plan
