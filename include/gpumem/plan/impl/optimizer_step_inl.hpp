#pragma once

#include "gpumem/plan/optimizer_step.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"

namespace gpumem::plan {

GPUMEM_INLINE OptimizerStep::OptimizerStep(EventLog& log, core::Pace& pace, const model::TrainingJob& job,
                                           const BackendTraits& backend, const Masters& masters)
    : log_(log), pace_(pace), row_(model::row_of(job.optimizer)), averages_(job.ema), masters_(masters) {
  keeps_remainders_ = row_.keeps_remainders && job.precision == model::Precision::bf16_mixed &&
                      job.quantize != model::Quantization::float8_params;
  const bool multi_tensor = backend.multi_tensor_optimizers;
  fused_ = multi_tensor && model::updates_in_one_kernel(job);
  decays_ = job.weight_decay && row_.decay_copies && !fused_;
  foreach_ = job.foreach && multi_tensor && (row_.foreach_temporaries > 0 || decays_);
  in_backward_ = job.optimizer_in_backward;
  of_trainer_ = job.loop == model::Loop::hf_trainer && row_.trainer_temporaries > 0;
  // PyTorch's fused optimizers count steps on the device; TransformerEngine's and apex's count them in Python.
  scalars_on_device_ = backend.step_counts_on_device || (fused_ && job.fused);
}

GPUMEM_INLINE std::int64_t projection_rank(const model::ModelGraph& graph, std::uint32_t layer, std::int64_t elements,
                                           const model::TrainingJob& job) {
  if (model::row_of(job.optimizer).projection == model::OptimizerRow::Projection::none) return 0;
  const model::Attributes attributes = graph.attributes(graph.layers()[layer]);
  const auto in = attributes.integer("in_features");
  const auto out = attributes.integer("out_features");
  if (!in || !out || core::bounded_product({*in, *out}) != elements) return 0;
  const std::int64_t rank = job.optimizer_rank > 0 ? job.optimizer_rank : kUsualOptimizerRank;
  const std::string path = graph.path(graph.layers()[layer]);
  const std::string_view targets = job.optimizer_targets;
  if (targets == "all-linear") return rank;
  if (targets.empty()) {
    constexpr std::string_view kHeads[] = {"lm_head", "output_layer", "output", "embed_out"};
    const std::string_view leaf = std::string_view(path).substr(path.rfind('.') + 1);
    return std::ranges::find(kHeads, leaf) == std::end(kHeads) ? rank : 0;
  }
  for (std::size_t from = 0; from < targets.size();) {
    const std::size_t end = std::min(targets.find('+', from), targets.size());
    if (path.find(targets.substr(from, end - from)) != path.npos) return rank;
    from = end + 1;
  }
  return 0;
}

GPUMEM_INLINE ProjectedGradient projected_gradient(const model::OptimizerRow& row, const TrainedParameter& parameter) {
  if (parameter.rank == 0 || parameter.elements == 0) return {};
  // The sides are the roots of x^2 - (rows + columns) x + rows * columns.
  const double sum = static_cast<double>(parameter.factored);
  const double apart = std::sqrt(std::max(sum * sum - 4.0 * static_cast<double>(parameter.elements), 0.0));
  const auto shorter = static_cast<std::int64_t>(std::llround((sum - apart) / 2.0));
  const std::int64_t longer = parameter.factored - shorter;
  if (shorter < 1 || core::bounded_product({shorter, longer}) != parameter.elements) return {};
  const bool clipped = row.projection == model::OptimizerRow::Projection::singular;
  return {.rank = clipped ? std::min(parameter.rank, shorter) : parameter.rank,
          .shorter = shorter,
          .longer = longer,
          .element_bytes = parameter.bytes / parameter.elements};
}

GPUMEM_INLINE void OptimizerStep::update_all(std::vector<TrainedParameter> parameters) {
  parameters_ = std::move(parameters);
  projected_.clear();
  for (std::size_t at = 0; at < parameters_.size(); ++at) {
    if (parameters_[at].rank > 0) projected_.emplace(parameters_[at].layer, at);
  }
}

GPUMEM_INLINE void OptimizerStep::create() {
  if (averages_) {
    for (const TrainedParameter& parameter : parameters_) {
      log_.allocate(parameter.bytes, Category::parameter, parameter.layer);
    }
  }
  if (masters_.on_host) return;
  if (masters_.made) {
    for (const TrainedParameter& parameter : parameters_) {
      if (pace_.late()) return;
      const std::int64_t remainders = model::master_bytes(row_, parameter.elements, true);
      log_.allocate(keeps_remainders_ ? remainders : parameter.bytes, Category::optimizer, parameter.layer);
    }
  }
  if (row_.state_made == model::OptimizerRow::StateMade::creation) make_state();
}

GPUMEM_INLINE void OptimizerStep::run() {
  if (masters_.on_host) return;
  if (in_backward_) return make_state();
  const std::vector<Slot> gradients = masters_.gradients_copied ? copy_all() : std::vector<Slot>();
  const std::vector<Slot> decayed = decays_ && foreach_ ? copy_all() : std::vector<Slot>();
  make_state();
  if (fused_) {
    // one kernel, without temporaries
  } else if (foreach_) {
    if (decayed.empty() || !row_.works_in_decayed) take_for_all();
  } else {
    take_one_by_one();
  }
  for (const Slot slot : decayed) log_.drop(slot);
  for (const Slot slot : gradients) log_.drop(slot);
}

/// Each parameter has an optimizer of its own, whose states are there from the first step on. Source: torchtune 0.4,
/// training/memory.py: register_optim_in_bwd_hooks().
GPUMEM_INLINE void OptimizerStep::update_one(std::int64_t bytes, std::uint32_t layer) {
  if (masters_.on_host) return;
  if (const auto found = projected_.find(layer);
      found != projected_.end() && parameters_[found->second].bytes == bytes) {
    take_for_projected(parameters_[found->second]);
  }
  const int kinds = fused_ ? 0 : foreach_ ? row_.foreach_temporaries : row_.single_temporaries;
  const int all = kinds + (masters_.gradients_copied ? 1 : 0) + (decays_ ? 1 : 0);
  std::vector<Slot> taken;
  taken.reserve(static_cast<std::size_t>(all));
  for (int count = 0; count < all; ++count) {
    taken.push_back(log_.allocate(bytes, Category::temporary, layer));
  }
  for (const Slot slot : taken) log_.drop(slot);
}

/// Copies of the gradients, which live until the step returns: grads = torch._foreach_add(grads, params,
/// alpha=weight_decay), or in the masters' type.
GPUMEM_INLINE std::vector<Slot> OptimizerStep::copy_all() {
  std::vector<Slot> copies;
  copies.reserve(parameters_.size());
  for (const TrainedParameter& parameter : parameters_) {
    if (pace_.late()) break;
    copies.push_back(log_.allocate(parameter.bytes, Category::temporary, parameter.layer));
  }
  return copies;
}

GPUMEM_INLINE void OptimizerStep::make_state() {
  if (has_state_) return;
  has_state_ = true;
  const int scalars = scalars_on_device_ ? row_.scalars : 0;
  if (scalars + row_.states == 0) return;
  for (const TrainedParameter& parameter : parameters_) {
    if (pace_.late()) return;
    for (int scalar = 0; scalar < scalars; ++scalar) {
      log_.allocate(core::element_size(core::DType::float32), Category::optimizer, parameter.layer);
    }
    make_states_of(parameter);
  }
}

/// bitsandbytes keeps bytes and their blocks' figures apart; together they are as many bytes.
GPUMEM_INLINE void OptimizerStep::make_states_of(const TrainedParameter& parameter) {
  if (const ProjectedGradient gradient = projected_gradient(row_, parameter); gradient.rank > 0) {
    return make_projected_states_of(gradient, parameter.layer);
  }
  for (int kept = 0; kept < row_.states; ++kept) {
    const std::int64_t bytes = model::state_bytes(row_, kept, parameter.elements, parameter.bytes, parameter.factored);
    if (bytes > 0) log_.allocate(bytes, Category::optimizer, parameter.layer);
  }
}

GPUMEM_INLINE void OptimizerStep::make_projected_states_of(const ProjectedGradient& gradient, std::uint32_t layer) {
  log_.allocate(gradient.projector_bytes(row_), Category::optimizer, layer);
  for (int kept = 0; kept < row_.states; ++kept) {
    const std::int64_t bytes =
        model::state_bytes(row_, kept, gradient.elements(), gradient.bytes(), gradient.rank + gradient.longer);
    if (bytes > 0) log_.allocate(bytes, Category::optimizer, layer);
  }
}

/// Before the step's own temporaries: the decomposition of a step that renews the projections, one in 200, when all
/// states are there. The projected gradient, a root and their quotient are small beside what the row counts.
GPUMEM_INLINE void OptimizerStep::take_for_projected(const TrainedParameter& parameter) {
  const ProjectedGradient gradient = projected_gradient(row_, parameter);
  if (gradient.rank == 0 || row_.projection != model::OptimizerRow::Projection::singular) return;
  const Slot made = log_.allocate(gradient.decomposition_bytes(), Category::temporary, parameter.layer);
  log_.drop(made);
}

GPUMEM_INLINE void OptimizerStep::take_for_all() {
  std::vector<Slot> taken;
  taken.reserve(parameters_.size() * static_cast<std::size_t>(row_.foreach_temporaries));
  for (int temporary = 0; temporary < row_.foreach_temporaries; ++temporary) {
    for (const TrainedParameter& parameter : parameters_) {
      if (pace_.late()) break;
      taken.push_back(log_.allocate(parameter.bytes, Category::temporary, parameter.layer));
    }
  }
  for (const Slot slot : taken) log_.drop(slot);
}

GPUMEM_INLINE std::pair<int, std::int64_t> OptimizerStep::temporaries_of(const TrainedParameter& parameter) const {
  if (!of_trainer_) return {row_.single_temporaries, parameter.bytes};
  const std::int64_t whole = core::bounded_product({parameter.elements, core::element_size(core::DType::float32)});
  if (parameter.bytes < whole) return {row_.trainer_float_temporaries, whole};
  return {row_.trainer_temporaries, parameter.bytes};
}

GPUMEM_INLINE void OptimizerStep::take_one_by_one() {
  if (row_.single_temporaries == 0 && !decays_) return;
  Slot last = kNoSlot;
  Slot decayed = kNoSlot;  // grad = grad.add(param, alpha=weight_decay): a name, until the next parameter's
  std::vector<Slot> taken;
  for (const TrainedParameter& parameter : parameters_) {
    if (pace_.late()) break;
    taken.clear();
    take_for_projected(parameter);
    if (decays_) {
      const Slot before = std::exchange(decayed, log_.allocate(parameter.bytes, Category::temporary, parameter.layer));
      log_.drop(before);
    }
    const auto [temporaries, bytes] = temporaries_of(parameter);
    for (int temporary = 0; temporary < temporaries; ++temporary) {
      taken.push_back(log_.allocate(bytes, Category::temporary, parameter.layer));
    }
    log_.drop(last);
    last = kNoSlot;
    if (row_.single_keeps_last && !taken.empty()) {
      last = taken.back();
      taken.pop_back();
    }
    for (const Slot slot : taken) log_.drop(slot);
  }
  log_.drop(last);
  log_.drop(decayed);
}

namespace semi_sync_detail {

/// By layer: which of so many runs of blocks it belongs to.
GPUMEM_INLINE std::vector<std::size_t> fragments_of(const model::ModelGraph& graph, std::int64_t fragments) {
  std::vector<std::size_t> fragment_of(graph.layers().size(), 0);
  if (fragments <= 1) return fragment_of;
  const std::vector<connect::Range> blocks = connect::blocks_of_all_stacks(graph);
  const auto shares = parallel::blocks_of_parts(static_cast<std::int64_t>(blocks.size()), fragments);
  std::size_t block = 0;
  for (std::size_t fragment = 0; fragment < shares.size(); ++fragment) {
    for (std::int64_t count = 0; count < shares[fragment]; ++count, ++block) {
      std::fill(fragment_of.begin() + blocks[block].first, fragment_of.begin() + blocks[block].end, fragment);
    }
  }
  std::fill(fragment_of.begin() + blocks.back().end, fragment_of.end(), shares.size() - 1);
  return fragment_of;
}

}  // namespace semi_sync_detail

GPUMEM_INLINE core::Status SemiSyncStep::check(const model::ModelGraph& graph, const model::Layout& layout) {
  if (layout.semi_sync.count <= 1) return core::Done{};
  const std::size_t blocks = connect::blocks_of_all_stacks(graph).size();
  if (blocks > 0 && layout.semi_sync.count <= static_cast<std::int64_t>(blocks) + 2) return core::Done{};
  return core::Error{core::ErrorCode::invalid_argument,
                     "the model has " + std::to_string(blocks) +
                         " repeated blocks, which with its two ends do not make " +
                         std::to_string(layout.semi_sync.count) +
                         " fragments; say `semi_sync=diloco:" + std::to_string(blocks > 0 ? blocks + 2 : 1) + "`",
                     {graph.file(), 0, {}}};
}

GPUMEM_INLINE void SemiSyncStep::meet_over(std::span<const TrainedParameter> parameters, const model::ModelGraph& graph,
                                           std::int64_t fragments) {
  if (kind_ == model::SemiSync::none) return;
  fragments_.resize(static_cast<std::size_t>(std::max<std::int64_t>(fragments, 1)));
  has_momentum_.assign(fragments_.size(), false);
  const std::vector<std::size_t> fragment_of = semi_sync_detail::fragments_of(graph, fragments);
  std::vector<std::int64_t> bytes(fragments_.size(), 0);
  for (const TrainedParameter& parameter : parameters) {
    const std::size_t fragment = fragment_of[parameter.layer];
    fragments_[fragment].push_back(parameter);
    bytes[fragment] = core::bounded_sum({bytes[fragment], parameter.held});
  }
  largest_ = static_cast<std::size_t>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

GPUMEM_INLINE void SemiSyncStep::run() {
  if (fragments_.empty()) return;
  if (kind_ == model::SemiSync::local_sgd) {
    std::vector<Slot> averages = copy_of(fragments_.front(), Category::temporary);
    return drop(averages);
  }
  meet(largest_);
  for (std::size_t fragment = 0; fragment < fragments_.size(); ++fragment) {
    if (fragment != largest_) meet(fragment);
  }
  if (kind_ == model::SemiSync::streaming_diloco) on_their_way_ = pseudo_gradients(fragments_[largest_]);
}

GPUMEM_INLINE std::vector<Slot> SemiSyncStep::copy_of(const std::vector<TrainedParameter>& fragment,
                                                      Category category) {
  std::vector<Slot> copies;
  copies.reserve(fragment.size());
  for (const TrainedParameter& parameter : fragment) {
    if (pace_.late()) break;
    copies.push_back(log_.allocate(parameter.held, category, parameter.layer));
  }
  return copies;
}

/// What the host holds comes to the GPU, a parameter at a time.
GPUMEM_INLINE std::vector<Slot> SemiSyncStep::pseudo_gradients(const std::vector<TrainedParameter>& fragment) {
  std::vector<Slot> made;
  made.reserve(fragment.size());
  for (const TrainedParameter& parameter : fragment) {
    if (pace_.late()) break;
    const Slot last_met = log_.allocate(parameter.held, Category::temporary, parameter.layer);
    made.push_back(log_.allocate(parameter.held, Category::gradient, parameter.layer));
    log_.drop(last_met);
  }
  return made;
}

GPUMEM_INLINE void SemiSyncStep::meet(std::size_t number) {
  const std::vector<TrainedParameter>& fragment = fragments_[number];
  const bool ready = number == largest_ && !on_their_way_.empty();
  std::vector<Slot> gradients = ready ? std::exchange(on_their_way_, {}) : pseudo_gradients(fragment);
  std::vector<Slot> own = copy_of(fragment, Category::temporary);
  if (!has_momentum_[number]) {
    for (const TrainedParameter& parameter : fragment) {
      log_.allocate(parameter.held, Category::optimizer, parameter.layer);
    }
    has_momentum_[number] = true;
  }
  for (const TrainedParameter& parameter : fragment) {  // each goes to the host through a copy
    log_.drop(log_.allocate(parameter.held, Category::temporary, parameter.layer));
  }
  drop(gradients);
  drop(own);
}

GPUMEM_INLINE void SemiSyncStep::drop(std::vector<Slot>& slots) {
  for (const Slot slot : slots) log_.drop(slot);
  slots.clear();
}

GPUMEM_INLINE GradientScaler::GradientScaler(RunState& state, const model::TrainingJob& job)
    : state_(state),
      active_((job.precision == model::Precision::amp_fp16 || job.precision == model::Precision::fp16_mixed) &&
              state.backend().scales_gradients) {}

/// The scale (float32) and the growth tracker (int32) are held from the first call on; the scaled loss lives while
/// backward() runs.
GPUMEM_INLINE Slot GradientScaler::scale_loss() {
  if (!active_) return kNoSlot;
  constexpr std::int64_t kScalar = 4;
  if (!has_scale_) {
    state_.log().allocate(kScalar, Category::optimizer, kNoLayer);
    state_.log().allocate(kScalar, Category::optimizer, kNoLayer);
    has_scale_ = true;
  }
  return state_.log().allocate(kScalar, Category::activation, kNoLayer);
}

/// The scale's inverse is made in float64.
GPUMEM_INLINE Slot GradientScaler::unscale(bool fused_optimizer) {
  if (!active_) return kNoSlot;
  constexpr std::int64_t kScalar = 4;
  constexpr std::int64_t kWide = 8;
  const auto take = [&](std::int64_t bytes) { return state_.log().allocate(bytes, Category::temporary, kNoLayer); };
  if (fused_optimizer) return take(kScalar);  // it unscales by itself
  const Slot wide = take(kWide);
  const Slot inverse_wide = take(kWide);
  state_.log().drop(wide);
  const Slot inverse = take(kScalar);
  state_.log().drop(inverse_wide);
  const Slot found = take(kScalar);
  state_.log().drop(inverse);
  return found;
}

}  // namespace gpumem::plan
