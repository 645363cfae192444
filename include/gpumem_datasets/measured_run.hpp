// Input: one row of a file of measured runs.
// Output: MeasuredRun: a training job with the memory that was measured for it.
// Units: MiB (2^20 bytes), as nvidia-smi prints.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::posttrain {
struct PostTrainingJob;
}  // namespace gpumem::posttrain

namespace gpumem::datasets {

/// What was measured, each at its peak.
enum class Figure : std::uint8_t {
  device,      ///< all used memory of the device: CUDA context + what the allocator holds, as nvidia-smi shows
  reserved,    ///< torch.cuda.max_memory_reserved
  allocated,   ///< torch.cuda.max_memory_allocated
  growth,      ///< device less what was in use before the model came: without the bare context
  active,      ///< active_bytes.all.peak of torch.cuda.memory_stats
  after_step,  ///< torch.cuda.memory_allocated when a step has ended
};

inline constexpr std::array<model::Named<Figure>, 6> kFigures = {{{Figure::device, "device"},
                                                                  {Figure::reserved, "reserved"},
                                                                  {Figure::allocated, "allocated"},
                                                                  {Figure::growth, "growth"},
                                                                  {Figure::active, "active"},
                                                                  {Figure::after_step, "after step"}}};

/// What the GPU's counters said on average over the run, each from 0 to 1; nothing where none was read.
struct Counters {
  std::optional<double> gpu_utilisation;  ///< share of time with a kernel running, as nvidia-smi shows (GPUTL)
  std::optional<double> gract;            ///< DCGM: graphics engine active
  std::optional<double> smact;            ///< DCGM: share of SM cycles with a warp resident
  std::optional<double> smocc;            ///< DCGM: resident warps, of those that would fit
  std::optional<double> fp32;             ///< DCGM: the FP32 pipe active
};

/// What another estimator, of which the table knows, said about the run.
struct PublishedEstimate {
  std::string estimator;                   ///< as the table names it: "xmem", "horus"
  std::optional<double> expected_mib;      ///< nothing: it only said that the run does not fit, or knew no answer
  std::optional<bool> out_of_memory;       ///< whether it said that the run does not fit; nothing: it does not say
  std::optional<bool> failed_when_capped;  ///< whether the run failed when it was given just the estimated memory
};

struct MeasuredRun {
  std::string name;
  model::TrainingJob job;
  std::string gpu;        ///< a profile's name, or a path to one
  std::int64_t gpus = 1;  ///< devices that the job ran on; the figure is of the fullest
  std::optional<double> measured_mib;
  bool out_of_memory = false;  ///< the run did not fit; a measured figure is then where it failed
  Figure figure = Figure::device;
  Counters counters = {};
  std::vector<PublishedEstimate> published = {};
  std::int64_t line = 0;             ///< 1-based line in the file
  std::optional<core::Error> error;  ///< why there is no job; the run is reported, not dropped
  std::string refusal = {};     ///< of an error: its kind, in words that many runs share; empty: the table has none
  std::string source = {};      ///< who published the run, where a table holds several sources; else empty
  std::string training = {};    ///< what learns: "full", "LoRA", "QLoRA"; empty: the table does not say
  std::string open = {};        ///< what that decides the figure nobody says, in words that many runs share
  std::string alloc_conf = {};  ///< as PYTORCH_CUDA_ALLOC_CONF; empty: as PyTorch has it
  std::optional<double> capacity_mib = {};  ///< what the allocator could have had; nothing: all that the GPU has
  /// Its samples were shorter than the job's, or brought fewer images: the job needs at least what was measured.
  bool at_most = false;
  double rounding_mib = 0.0;  ///< how far the figure may be from the published one, which is rounded
  /// Of a post-training run: all of it; `job` is its policy's.
  std::shared_ptr<const posttrain::PostTrainingJob> post_training = nullptr;
};

struct MeasuredRuns {
  std::string format;  ///< the file's, such as "runs"
  std::vector<MeasuredRun> runs;
  std::int64_t dropped = 0;  ///< rows that measure no need, by the format's own rules
};

}  // namespace gpumem::datasets
