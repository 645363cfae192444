// Input: a training job, a GPU and an estimator.
// Output: Fit: the largest batch that fits on the GPU, the longest sequence, the largest image, the most images or
// frames, what it takes, and what one more would take; and of the smaller ones the largest safe one, and the largest
// for which the allocator gives back no cached memory; or all of several GPUs, with what the job takes on each. The
// rules are those of verdict_of(), the same for every estimator and precision. Units: batch sizes in samples, sequences
// in tokens, images in pixels of their longer side.
//
// Need grows with either, though not at every step: an allocator's rounding can make a larger batch fit where a smaller
// one does not. What is returned is a boundary that was checked on both sides: what is found fits, and one more does
// not.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/model/named.hpp"

namespace gpumem::estimate {

/// Larger batches are not tried.
inline constexpr std::int64_t kLargestBatch = std::int64_t{1} << 20;
/// Longer sequences are not tried.
inline constexpr std::int64_t kLongestSequence = std::int64_t{1} << 22;

/// Sides of an image grow by this many pixels: what VAEs, patches and windows divide.
inline constexpr std::int64_t kImageStep = 32;
/// Longer sides of images are not tried.
inline constexpr std::int64_t kLongestSide = std::int64_t{1} << 14;
/// More images and frames a sample are not tried.
inline constexpr std::int64_t kMostPictures = std::int64_t{1} << 12;

/// What is made larger, the rest of the job staying as it is.
enum class Grows : std::uint8_t { batch, sequence, image, images, frames };

inline constexpr std::array<model::Named<Grows>, 5> kGrows = {{{Grows::batch, "batch"},
                                                               {Grows::sequence, "sequence"},
                                                               {Grows::image, "image"},
                                                               {Grows::images, "images"},
                                                               {Grows::frames, "frames"}}};

/// What is looked for: what has that name, else the longest sequence where there is a batch size, else the largest
/// batch. Errors: invalid_argument for another name.
[[nodiscard]] core::Result<Grows> what_grows(const std::optional<std::string>& find, bool has_batch);

/// The image of a longer side whose shape is that of `shape` as nearly as sides of whole steps can be.
[[nodiscard]] model::PictureSize image_with_side(const model::PictureSize& shape, std::int64_t longer_side);

/// A batch size, a sequence length or another size, and what the job takes there.
struct FitSize {
  std::int64_t size = 0;                   ///< 0: none
  std::optional<MemoryEstimate> estimate;  ///< nothing if there is none
};

struct Fit {
  Grows grows = Grows::batch;
  /// Of what grows, the largest that is expected to fit, be it tight; 0: not even the smallest does.
  std::int64_t size = 0;
  std::int64_t batch_size = 0;             ///< where the batch grows, `size`; else the job's
  std::int64_t step = 1;                   ///< the next larger size is so much larger
  model::PictureSize shape;                ///< where the image grows: that of image_with_side()
  bool at_least = false;                   ///< the largest that is tried fits, and perhaps more
  std::optional<core::Error> model_ends;   ///< not of a batch: the model takes no more, whatever the memory
  std::optional<MemoryEstimate> estimate;  ///< of what fits; nothing if nothing does
  std::optional<MemoryEstimate> next;      ///< of one more; nothing with at_least, model_ends, or beyond 64 bits
  FitSize safe;                            ///< the largest with Verdict::fits
  FitSize without_flushes;                 ///< the largest that fits and for which no cached memory is given back
  std::int64_t estimates = 0;              ///< how many were made to find it
};

/// The batch size of the job itself is ignored. Errors: the estimator's at batch 1; missing_information if layers are
/// unknown or the estimator gives a lower bound that fits, so that no batch is known to.
[[nodiscard]] core::Result<Fit> largest_batch(model::TrainingJob job, const device::GpuProfile& gpu,
                                              const Estimator& estimator);
/// The same of a job's Analysis, which is left at the batch size that was tried last.
[[nodiscard]] core::Result<Fit> largest_batch(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                              const Estimator& estimator);

/// The sequence length of the job itself is ignored. Errors: the estimator's at the first length that is tried, so of a
/// model that takes no tokens; missing_information as above.
[[nodiscard]] core::Result<Fit> longest_sequence(model::TrainingJob job, const device::GpuProfile& gpu,
                                                 const Estimator& estimator);
/// The same of a job's Analysis, which is left at the length that was tried last.
[[nodiscard]] core::Result<Fit> longest_sequence(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                                 const Estimator& estimator);

/// The largest of whatever grows; largest_batch() and longest_sequence() are two of these. What the job itself says of
/// it is ignored, but for the shape of its images: where the job names none, the model's usual, else a square. Of a
/// model that reads text and images, samples keep sequence_length tokens of text, besides those of the images. Errors:
/// as above, so of a model that reads or makes no images, or no videos; invalid_argument where more of it takes no more
/// memory.
[[nodiscard]] core::Result<Fit> find_largest(analysis::Analysis& analysis, Grows grows, const device::GpuProfile& gpu,
                                             const Estimator& estimator);

/// A job on one of several GPUs.
struct GpuFit {
  device::GpuProfile gpu;
  MemoryEstimate takes;            ///< at the job's batch size
  core::Bytes headroom;            ///< of the GPU's capacity beyond takes.upper; 0: none
  std::int64_t largest_batch = 0;  ///< as of largest_batch(); 0: not even one sample fits
  bool batch_at_least = false;     ///< perhaps more
};

/// The job on each of the GPUs: those that it surely fits on, the smallest first; those where it is tight; the others,
/// the largest first. Errors: those of largest_batch().
[[nodiscard]] core::Result<std::vector<GpuFit>> fit_each(analysis::Analysis& analysis,
                                                         std::span<const device::GpuProfile> gpus,
                                                         const Estimator& estimator);

}  // namespace gpumem::estimate
