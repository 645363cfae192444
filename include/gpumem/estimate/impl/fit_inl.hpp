#pragma once

#include "gpumem/estimate/fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "gpumem/connect/connect.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::estimate {

namespace fit_detail {

/// What the job cannot do without: its live tensors. An allocator that runs short gives back what it has cached.
GPUMEM_INLINE double least_need(const MemoryEstimate& estimate) {
  if (!estimate.allocated || !estimate.reserved || !estimate.device) return static_cast<double>(estimate.upper.count());
  const std::int64_t cached = estimate.reserved->count() - estimate.allocated->count();
  return static_cast<double>(estimate.device->count() - cached);
}

/// What is made larger.
struct Axis {
  Grows grows = Grows::batch;
  std::int64_t first = 1;                 ///< tried first
  std::int64_t second = 16;               ///< tried next, if the first fits
  std::int64_t largest = 1;               ///< larger ones are not tried
  std::int64_t unit = 1;                  ///< of `set`: sizes are multiples of this
  model::PictureSize shape = {};          ///< of images
  std::optional<std::int64_t> text = {};  ///< tokens of a sample besides those of its images
  void (*set)(analysis::Analysis& analysis, const Axis& axis, std::int64_t size) = nullptr;

  /// Whether a model may have a limit of its own, which it says by an error, and whether this may mean nothing to it.
  [[nodiscard]] bool is_the_models() const { return grows != Grows::batch; }
};

GPUMEM_INLINE Axis batches() {
  return {.largest = kLargestBatch,
          .set = [](analysis::Analysis& of, const Axis&, std::int64_t size) { of.set_batch_size(size); }};
}

/// Sets a member of the analysis's job.
template <auto Member>
void set_member(analysis::Analysis& analysis, const Axis&, std::int64_t size) {
  model::TrainingJob job = analysis.job();
  job.*Member = size;
  analysis.set_job(std::move(job));
}

/// A sample keeps its text, and is as long as that and its images. A fault of the images is the estimate's to say.
GPUMEM_INLINE void set_with_text(analysis::Analysis& analysis, const Axis& axis, model::TrainingJob job) {
  const core::Result<std::int64_t> tokens = connect::picture_tokens(job, analysis.ops());
  if (axis.text && tokens && *tokens > 0) {
    const std::int64_t multiple = std::max<std::int64_t>(parallel::tokens_multiple(job.layout), 1);
    job.sequence_length = (*axis.text + *tokens + multiple - 1) / multiple * multiple;
  }
  analysis.set_job(std::move(job));
}

GPUMEM_INLINE void set_image(analysis::Analysis& analysis, const Axis& axis, std::int64_t side) {
  const model::PictureSize size = image_with_side(axis.shape, side);
  model::TrainingJob job = analysis.job();
  job.image = {size.width, size.height};
  set_with_text(analysis, axis, std::move(job));
}

template <auto Member>
void set_pictures(analysis::Analysis& analysis, const Axis& axis, std::int64_t count) {
  model::TrainingJob job = analysis.job();
  job.*Member = count;
  set_with_text(analysis, axis, std::move(job));
}

/// Ranks that share sequences only take multiples of some tokens. Few models take no 16 tokens; some take no single
/// one.
GPUMEM_INLINE Axis sequences_of(const model::Layout& layout) {
  Axis axis = {.grows = Grows::sequence,
               .unit = std::clamp<std::int64_t>(parallel::tokens_multiple(layout), 1, kLongestSequence / 2),
               .set = &set_member<&model::TrainingJob::sequence_length>};
  axis.first = std::max<std::int64_t>(16 / axis.unit, 1);
  axis.second = std::max(256 / axis.unit, axis.first + 1);
  axis.largest = kLongestSequence / axis.unit;
  return axis;
}

/// Begins with images of 128 and 1,024 pixels: processors make smaller ones larger.
GPUMEM_INLINE Axis image_sizes_of(const model::TrainingJob& job) {
  Axis axis = {.grows = Grows::image,
               .first = 128 / kImageStep,
               .second = 1024 / kImageStep,
               .largest = kLongestSide / kImageStep,
               .unit = kImageStep,
               .shape = {1, 1},
               .text = job.sequence_length,
               .set = &set_image};
  const std::span<const std::int64_t> image = job.image.empty() ? job.graph->usual_image() : std::span(job.image);
  if (image.size() == 2 && image[0] > 0 && image[1] > 0) axis.shape = {image[0], image[1]};
  return axis;
}

GPUMEM_INLINE Axis pictures(Grows grows, const model::TrainingJob& job) {
  Axis axis = {.grows = grows, .largest = kMostPictures, .text = job.sequence_length};
  axis.set =
      grows == Grows::images ? &set_pictures<&model::TrainingJob::images> : &set_pictures<&model::TrainingJob::frames>;
  return axis;
}

GPUMEM_INLINE Axis axis_of(Grows grows, const model::TrainingJob& job) {
  switch (grows) {
    case Grows::batch: return batches();
    case Grows::sequence: return sequences_of(job.layout);
    case Grows::image: return image_sizes_of(job);
    case Grows::images:
    case Grows::frames: break;
  }
  return pictures(grows, job);
}

/// What a size is good for. A higher value is also every lower one.
enum class Holds : std::uint8_t { nothing, with_flushes, without_flushes, safely };

GPUMEM_INLINE Holds holds(const MemoryEstimate& estimate) {
  if (estimate.verdict == Verdict::fits) return Holds::safely;
  if (estimate.verdict != Verdict::tight) return Holds::nothing;
  return estimate.retries == 0 ? Holds::without_flushes : Holds::with_flushes;
}

/// What of an estimate must be within the GPU for a size to be good for this.
GPUMEM_INLINE double need_for(Holds wanted, const MemoryEstimate& estimate) {
  if (wanted == Holds::safely) return static_cast<double>(estimate.most_needed.count());
  if (wanted == Holds::without_flushes) return static_cast<double>(estimate.expected.count());
  return least_need(estimate);
}

/// Looks for the boundary between what fits (`low`) and what does not (`high`). Need is nearly linear in the batch, so
/// a straight line through two needs leads close to it; from there steps that double, then halve, lead to it. The
/// boundaries of what is safe and of what needs no flush are found likewise, among what is known by then.
class Search {
 public:
  Search(analysis::Analysis& analysis, const Axis& axis, const device::GpuProfile& gpu, const Estimator& estimator)
      : analysis_(analysis), axis_(axis), gpu_(gpu), estimator_(estimator) {}

  core::Result<Fit> run() {
    if (const auto fault = probe(axis_.first)) return *fault;
    if (low_ == axis_.first) {
      if (const auto fault = probe(axis_.second)) return *fault;
      if (axis_.is_the_models() && low_ == axis_.second && latest_.bytes == former_.bytes) return counts_nothing();
    }
    if (const auto fault = settle()) return *fault;
    fit_.grows = axis_.grows;
    fit_.size = low_ * axis_.unit;
    fit_.batch_size = axis_.grows == Grows::batch ? fit_.size : analysis_.job().batch_size;
    fit_.step = axis_.unit;
    fit_.shape = axis_.shape;
    fit_.at_least = high_ == 0;
    fit_.estimate = estimate_of(low_);
    if (!fit_.model_ends && high_ != 0) fit_.next = estimate_of(high_);
    const std::pair<Holds, FitSize*> others[] = {{Holds::safely, &fit_.safe},
                                                 {Holds::without_flushes, &fit_.without_flushes}};
    for (const auto& [wanted, found] : others) {
      look_for(wanted);
      if (const auto fault = settle()) return *fault;
      *found = {low_ * axis_.unit, estimate_of(low_)};
    }
    return std::move(fit_);
  }

 private:
  struct Need {
    std::int64_t size = 0;
    double bytes = 0.0;
  };
  /// What became of a size; no estimate: it is beyond 64 bits, or the model takes none so large.
  struct Known {
    Holds holds = Holds::nothing;
    std::optional<MemoryEstimate> estimate = {};
  };

  [[nodiscard]] std::optional<MemoryEstimate> estimate_of(std::int64_t size) const {
    const auto known = known_.find(size);
    return known == known_.end() ? std::nullopt : known->second.estimate;
  }

  /// From here on `low` and `high` are about this; what is known already bounds it. A line goes through the sizes that
  /// lie farthest apart and show their need: where the cache is given back, need is what there is.
  void look_for(Holds wanted) {
    wanted_ = wanted;
    low_ = high_ = 0;
    step_ = 1;
    former_ = latest_ = {};
    for (const auto& [size, known] : known_) {
      if (known.holds >= wanted) low_ = size;
      if (!known.estimate || known.holds == Holds::nothing || known.estimate->retries > 0) continue;
      const Need need = {size, need_for(wanted, *known.estimate)};
      if (former_.size == 0) former_ = need;
      else latest_ = need;
    }
    const auto higher = std::find_if(known_.upper_bound(low_), known_.end(),
                                     [&](const auto& entry) { return entry.second.holds < wanted; });
    if (higher != known_.end()) high_ = higher->first;
  }

  /// Goes on until one size holds and the next does not.
  std::optional<core::Error> settle() {
    constexpr int kGuesses = 3;
    for (int guess = 0; guess < kGuesses && undecided(); ++guess) {
      const std::int64_t size = on_the_line();
      if (!inside(size)) break;
      if (auto fault = probe(size)) return fault;
    }
    while (undecided()) {
      if (auto fault = probe(next_step())) return fault;
    }
    return std::nullopt;
  }

  /// What is known to be too small: it holds, or the model takes none so small.
  [[nodiscard]] std::int64_t bottom() const { return std::max(low_, too_small_); }
  [[nodiscard]] bool undecided() const { return high_ == 0 ? low_ < axis_.largest : high_ > bottom() + 1; }
  [[nodiscard]] bool inside(std::int64_t size) const {
    return size > bottom() && size <= axis_.largest && (high_ == 0 || size < high_);
  }

  /// Where the line through the last two needs meets the capacity; 0: nowhere.
  [[nodiscard]] std::int64_t on_the_line() const {
    const double rise = latest_.bytes - former_.bytes;
    const auto run = static_cast<double>(latest_.size - former_.size);
    if (former_.size == 0 || rise * run <= 0.0) return 0;
    const double room = static_cast<double>(gpu_.capacity().count()) - latest_.bytes;
    const double size = static_cast<double>(latest_.size) + room * run / rise;
    return static_cast<std::int64_t>(std::clamp(size, 0.0, static_cast<double>(axis_.largest)));
  }

  /// From where the last probe was towards the boundary, ever further; halfway where that leads too far.
  std::int64_t next_step() {
    const bool up = latest_.size == low_;
    const std::int64_t step = step_;
    step_ *= 2;
    const std::int64_t towards = up ? low_ + step : high_ - step;
    if (inside(towards) && (high_ == 0 || step <= (high_ - bottom()) / 2)) return towards;
    return high_ == 0 ? axis_.largest : bottom() + (high_ - bottom()) / 2;
  }

  /// A lower bound tells what does not fit, and no more.
  [[nodiscard]] core::Error never_known(const MemoryEstimate& estimate, std::int64_t size) const {
    const std::string name(model::name_of(kGrows, axis_.grows));
    return {core::ErrorCode::missing_information,
            estimate.provenance.estimator + " gives a lower bound of what " + name + " " +
                std::to_string(size * axis_.unit) + " takes, so that no " + name +
                " is known to fit; use another estimator",
            {analysis_.job().graph->file(), 0, {}}};
  }

  [[nodiscard]] core::Error counts_nothing() const {
    std::string text =
        "a longer sequence takes no more memory: the model reads no tokens; leave out `batch_size` to ask for the "
        "largest batch";
    if (axis_.grows != Grows::sequence) {
      text = "more of this takes no more memory: a sample is the same to the model; ask for the largest batch";
    }
    return {core::ErrorCode::invalid_argument, std::move(text), {analysis_.job().graph->file(), 0, {}}};
  }

  /// Whether an error says that this many are too many, while fewer are not. A size beyond 64 bits is beyond the GPU
  /// too.
  [[nodiscard]] bool too_many(const core::Error& error, std::int64_t size) const {
    if (error.code == core::ErrorCode::overflow) return size > axis_.first;
    return axis_.is_the_models() && low_ > 0 && error.code != core::ErrorCode::deadline_exceeded;
  }

  /// Whether an error says that the model takes none so small: more of them got an estimate, and were too many.
  [[nodiscard]] bool too_few(const core::Error& error) const {
    return axis_.is_the_models() && low_ == 0 && high_ != 0 && error.code != core::ErrorCode::deadline_exceeded;
  }

  /// Takes what became of a size, an estimate or an error that says that it is too many.
  void learn(std::int64_t size, core::Result<MemoryEstimate> estimate) {
    former_ = latest_;
    latest_ = {size, estimate ? need_for(wanted_, *estimate) : 0.0};
    Known known;
    std::optional<core::Error> refused;
    if (estimate) {
      known = {holds(*estimate), *std::move(estimate)};
    } else if (estimate.error().code != core::ErrorCode::overflow) {
      refused = estimate.error();
    }
    const bool held = known.holds >= wanted_;
    const bool turned = held != (former_.size == low_);
    if (turned) step_ = 1;
    (held ? low_ : high_) = size;
    if (wanted_ == Holds::with_flushes && !held) fit_.model_ends = std::move(refused);
    known_.insert_or_assign(size, std::move(known));
  }

  std::optional<core::Error> probe(std::int64_t size) {
    axis_.set(analysis_, axis_, size * axis_.unit);
    ++fit_.estimates;
    core::Result<MemoryEstimate> estimate = estimator_.estimate(analysis_, gpu_);
    if (!estimate && too_few(estimate.error())) {
      too_small_ = size;
      step_ = 1;
      return std::nullopt;
    }
    if (!estimate && !too_many(estimate.error(), size)) return estimate.error();
    if (estimate && estimate->verdict == Verdict::unknown) return never_known(*estimate, size);
    learn(size, std::move(estimate));
    return std::nullopt;
  }

  analysis::Analysis& analysis_;
  const Axis& axis_;
  const device::GpuProfile& gpu_;
  const Estimator& estimator_;
  Fit fit_;
  std::map<std::int64_t, Known> known_;
  Holds wanted_ = Holds::with_flushes;
  std::int64_t low_ = 0;        ///< holds what is wanted; 0: nothing known to
  std::int64_t high_ = 0;       ///< does not; 0: nothing known not to
  std::int64_t too_small_ = 0;  ///< the model takes none so small
  Need former_;                 ///< of the last probe but one
  Need latest_;
  std::int64_t step_ = 1;
};

/// Errors: missing_information if layers are unknown.
GPUMEM_INLINE core::Status all_layers_known(const model::TrainingJob& job, std::string_view name) {
  if (job.graph == nullptr || job.graph->unknown_layers() == 0) return core::Done{};
  return core::Error{core::ErrorCode::missing_information,
                     core::with_separators(job.graph->unknown_layers()) + " layers have unknown classes, so that no " +
                         std::string(name) + " is known to fit; use a summary that gpumem knows the layers of",
                     {job.graph->file(), 0, {}}};
}

}  // namespace fit_detail

GPUMEM_INLINE core::Result<Grows> what_grows(const std::optional<std::string>& find, bool has_batch) {
  if (!find) return has_batch ? Grows::sequence : Grows::batch;
  if (const std::optional<Grows> grows = model::value_of(kGrows, *find)) return *grows;
  std::string names;
  for (const auto& row : kGrows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return core::Error{core::ErrorCode::invalid_argument,
                     "what fit finds must be one of " + names + "; it is " + core::quoted(*find),
                     {}};
}

GPUMEM_INLINE model::PictureSize image_with_side(const model::PictureSize& shape, std::int64_t longer_side) {
  const auto [shorter, longer] = std::minmax(shape.width, shape.height);
  const double steps = static_cast<double>(longer_side) / static_cast<double>(kImageStep) *
                       static_cast<double>(shorter) / static_cast<double>(longer);
  const std::int64_t shorter_side = std::max<std::int64_t>(std::llround(steps), 1) * kImageStep;
  if (shape.width >= shape.height) return {longer_side, shorter_side};
  return {shorter_side, longer_side};
}

GPUMEM_INLINE core::Result<Fit> find_largest(analysis::Analysis& analysis, Grows grows, const device::GpuProfile& gpu,
                                             const Estimator& estimator) {
  const core::Status known = fit_detail::all_layers_known(analysis.job(), model::name_of(kGrows, grows));
  if (!known) return known.error();
  const fit_detail::Axis axis = fit_detail::axis_of(grows, analysis.job());
  return fit_detail::Search(analysis, axis, gpu, estimator).run();
}

GPUMEM_INLINE core::Result<Fit> largest_batch(model::TrainingJob job, const device::GpuProfile& gpu,
                                              const Estimator& estimator) {
  analysis::Analysis analysis(std::move(job));
  return largest_batch(analysis, gpu, estimator);
}

GPUMEM_INLINE core::Result<Fit> largest_batch(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                              const Estimator& estimator) {
  return find_largest(analysis, Grows::batch, gpu, estimator);
}

GPUMEM_INLINE core::Result<Fit> longest_sequence(model::TrainingJob job, const device::GpuProfile& gpu,
                                                 const Estimator& estimator) {
  analysis::Analysis analysis(std::move(job));
  return longest_sequence(analysis, gpu, estimator);
}

GPUMEM_INLINE core::Result<Fit> longest_sequence(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                                 const Estimator& estimator) {
  return find_largest(analysis, Grows::sequence, gpu, estimator);
}

namespace fit_detail {

GPUMEM_INLINE core::Result<GpuFit> fit_one(analysis::Analysis& analysis, std::int64_t batch,
                                           const device::GpuProfile& gpu, const Estimator& estimator) {
  const core::Result<Fit> fit = largest_batch(analysis, gpu, estimator);
  if (!fit) return fit.error();
  analysis.set_batch_size(batch);
  core::Result<MemoryEstimate> takes = estimator.estimate(analysis, gpu);
  if (!takes) return std::move(takes.error());
  const std::int64_t spare = gpu.capacity().count() - takes->upper.count();
  return GpuFit{gpu, *std::move(takes), core::Bytes(std::max<std::int64_t>(spare, 0)), fit->batch_size, fit->at_least};
}

/// Smaller is better: the verdict, and among those that it fits on the memory that would be idle; else what is missing.
GPUMEM_INLINE std::tuple<int, std::int64_t> rank_of(const GpuFit& one) {
  const std::int64_t capacity = one.gpu.capacity().count();
  switch (one.takes.verdict) {
    case Verdict::fits: return {0, capacity};
    case Verdict::tight: return {1, capacity};
    case Verdict::unknown: return {2, -capacity};
    case Verdict::does_not_fit: break;
  }
  return {3, -capacity};
}

}  // namespace fit_detail

GPUMEM_INLINE core::Result<std::vector<GpuFit>> fit_each(analysis::Analysis& analysis,
                                                         std::span<const device::GpuProfile> gpus,
                                                         const Estimator& estimator) {
  const std::int64_t batch = analysis.job().batch_size;
  std::vector<GpuFit> fits;
  for (const device::GpuProfile& gpu : gpus) {
    core::Result<GpuFit> fit = fit_detail::fit_one(analysis, batch, gpu, estimator);
    if (!fit) return std::move(fit.error());
    fits.push_back(*std::move(fit));
  }
  std::stable_sort(fits.begin(), fits.end(), [](const GpuFit& one, const GpuFit& other) {
    return fit_detail::rank_of(one) < fit_detail::rank_of(other);
  });
  return fits;
}

}  // namespace gpumem::estimate
