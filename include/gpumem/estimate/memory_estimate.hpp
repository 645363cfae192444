// MemoryEstimate: the one answer that all estimators give.
// Units: bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/model/named.hpp"

namespace gpumem::estimate {

/// What the expected figure is made of. The parts sum to it exactly.
struct Breakdown {
  core::Bytes context;  ///< CUDA context, driver and loaded libraries
  core::Bytes parameters;
  core::Bytes gradients;
  core::Bytes optimizer;           ///< the optimizer's state
  core::Bytes activations;         ///< what the forward pass makes, its inputs, and what backward makes of them
  core::Bytes workspace;           ///< scratch memory of cuBLAS and cuDNN
  core::Bytes fragmentation;       ///< reserved by the allocator, not allocated
  core::Bytes temporaries = {};    ///< given back by the call that took them, such as a step of the optimizer
  core::Bytes gathered = {};       ///< parameters of other ranks, while a unit that is sharded is whole
  core::Bytes communication = {};  ///< buckets and what collectives read

  struct Part {
    std::string_view name;
    core::Bytes bytes;
    std::string_view words;  ///< behind "3.2 GiB are", for people
  };
  /// The parts with their names, in the order in which people think of them; those of several GPUs where there are any.
  [[nodiscard]] std::vector<Part> parts() const;
  /// The bytes of the part of this name; a name that is none counts as activations.
  [[nodiscard]] core::Bytes& part(std::string_view name);
  /// The sum of all parts; invalid if it does not fit 64 bits.
  [[nodiscard]] core::Checked total() const {
    core::Checked sum = 0;
    for (const Part& part : parts()) sum += part.bytes.count();
    return sum;
  }
};

/// The one set of names: in tables, JSON, Python, the timeline and the web page. Post-training uses them too.
struct BreakdownRow {
  std::string_view name;
  core::Bytes Breakdown::*bytes;
  std::string_view words;
  bool on_several_gpus = false;
};
inline constexpr std::array<BreakdownRow, 10> kBreakdownRows = {
    {{"context", &Breakdown::context, "the CUDA context"},
     {"parameters", &Breakdown::parameters, "parameters"},
     {"gradients", &Breakdown::gradients, "gradients"},
     {"optimizer", &Breakdown::optimizer, "states of the optimizer"},
     {"activations", &Breakdown::activations, "activations"},
     {"temporaries", &Breakdown::temporaries, "temporaries"},
     {"workspace", &Breakdown::workspace, "workspaces"},
     {"fragmentation", &Breakdown::fragmentation, "reserved and not in use"},
     {"gathered", &Breakdown::gathered, "gathered parameters", true},
     {"communication", &Breakdown::communication, "buffers of collectives", true}}};

inline std::vector<Breakdown::Part> Breakdown::parts() const {
  std::vector<Part> all;
  all.reserve(kBreakdownRows.size());
  for (const BreakdownRow& row : kBreakdownRows) {
    const core::Bytes bytes = this->*row.bytes;
    if (!row.on_several_gpus || bytes.count() > 0) all.push_back({row.name, bytes, row.words});
  }
  return all;
}

inline core::Bytes& Breakdown::part(std::string_view name) {
  for (const BreakdownRow& row : kBreakdownRows) {
    if (row.name == name) return this->*row.bytes;
  }
  return activations;
}

/// Which part of the model the estimate understood.
struct Coverage {
  std::int64_t layers_total = 0;
  std::int64_t layers_unknown = 0;  ///< of no known op: counted by their printed sizes only
  bool edges_inferred = false;      ///< the summary has no edges
  /// How the edges that the estimate is made with came about: "given", "architecture: gpt2, 12 heads, ...", "chained,
  /// 16 joins inferred". Empty: the estimator looks at none.
  std::string edges = {};
};

/// Where in the training run most memory is in live tensors.
struct PeakLayer {
  std::string path;  ///< empty: of no layer (a batch, the loss)
  std::string class_name;
  std::string phase;      ///< "construction", "forward", "backward", ...
  std::int64_t step = 0;  ///< 1 for the first training step, 0 before it
  /// All of that as a clause for people, with what takes most and what would avoid it: "optimizer of step 1; 15.0 GiB
  /// are temporaries of foreach adamw; `fused` avoids them".
  std::string text = {};
};

/// Something that an estimate takes as given although nobody said or measured it.
struct Assumption {
  /// "adaptation", "benchmark", "capacity", "checkpointing", "communicators", "compile", "context", "edges", "fields",
  /// "guess", "model_type", "padding", "parameters", "precision", "pytorch", "quantization", "quantize", "rank",
  /// "recording", "routing", "settings", "sharding", "transformers", "values", "workspaces".
  std::string about;
  std::string text;  ///< one clause for people
};

/// A memory bin of a classifier, and how likely it holds the job.
struct Bin {
  core::Bytes lower;
  core::Bytes upper;
  double probability = 0.0;
};

/// Which part of a range is not the allocator's: it is in `lower` and `upper`, and in no figure of allocated or
/// reserved memory.
struct Spread {
  core::Bytes below;  ///< of the way from expected to lower
  core::Bytes above;  ///< of the way from expected to upper
};

/// Who made the estimate, and from what.
struct Provenance {
  std::string estimator;
  std::string weights;  ///< the trained model, for learned estimators
  std::string gpu;      ///< the profile's name
};

/// Whether a job runs on a GPU. verdict_of() gives it, by one rule for every estimator and precision.
enum class Verdict : std::uint8_t {
  fits,          ///< also where it needs the most that is likely, and without giving back cached memory
  tight,         ///< as expected it fits; it may need more than there is, or must give back cached memory on the way
  does_not_fit,  ///< it is expected to need more than there is
  unknown,       ///< only a lower bound is known, and there is room for that
};
/// Their names in JSON and in Python.
inline constexpr std::array<model::Named<Verdict>, 4> kVerdicts = {{{Verdict::fits, "fits"},
                                                                    {Verdict::tight, "tight"},
                                                                    {Verdict::does_not_fit, "does_not_fit"},
                                                                    {Verdict::unknown, "unknown"}}};

/// In words, for people; a literal.
[[nodiscard]] constexpr std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::fits: return "fits";
    case Verdict::tight: return "tight";
    case Verdict::does_not_fit: return "does not fit";
    case Verdict::unknown: break;
  }
  return "not known";
}

struct MemoryEstimate {
  core::Bytes expected;  ///< the best single figure
  core::Bytes lower;
  core::Bytes upper;  ///< what a scheduler reserves
  /// `upper` on a GPU that is large enough. Of a job that fits, `upper` itself ends at the GPU's capacity, or at
  /// `limit`: the allocator then gives back what it has cached.
  core::Bytes upper_uncut = {};
  /// Share of measured runs that `upper` is known to cover. Nothing where no runs of such a job on such a GPU were
  /// measured.
  std::optional<double> upper_coverage;
  bool ranged = false;   ///< lower and upper are a range; else both equal expected
  Spread communicators;  ///< of a job on several GPUs
  /// GPUs that take at most this much each: all of the job's layout, or of the run that was recorded; one where the job
  /// names a rank.
  std::int64_t gpus = 1;

  /// The three figures that people confuse, each at its peak, where the estimator tells them apart.
  std::optional<core::Bytes> allocated;   ///< in live tensors: torch.cuda.max_memory_allocated
  std::optional<core::Bytes> after_step;  ///< in live tensors when the step has ended: torch.cuda.memory_allocated
  std::optional<core::Bytes> reserved;    ///< held by the caching allocator: torch.cuda.max_memory_reserved
  std::optional<core::Bytes> device;      ///< context + reserved: what nvidia-smi shows

  Breakdown breakdown;                  ///< all zero where the estimator does not tell
  std::optional<PeakLayer> peak_layer;  ///< where the estimator follows the run
  /// How often the allocator must give back its cache for the job to fit, which slows it down ("num_alloc_retries").
  std::int64_t retries = 0;
  Coverage coverage;
  Provenance provenance;
  std::vector<Assumption> assumed;
  std::vector<Bin> bins;  ///< of classifiers: all of them, in rising order
  /// In what respect the job is unlike those that a learned model was trained on, or a formula is made for
  /// ("parameters_mib", "gpu", "precision"). Not empty: the figures are not to be trusted.
  std::vector<std::string> out_of_domain;
  /// What the method counts nothing of, for people ("activations, the CUDA context"). Empty: nothing that is known.
  std::string leaves_out;
  bool lower_bound = false;  ///< the job needs more: layers are unknown, or the method leaves something out
  /// Known to fit: upper is within what there is for the job, and it is no lower bound. The replay follows the
  /// allocator, which gives back its cache in need: where its runs were measured (upper_coverage) it decides by itself;
  /// where none were, what it has in live tensors must fit by the upper bound, too.
  bool fits = false;
  /// What the job needs at most, without the memory that the allocator caches and gives back in need: live tensors by
  /// the upper end of the range, and what is outside of the allocator. Of an estimator that follows no allocator:
  /// upper.
  core::Bytes most_needed = {};
  /// What the process may take, where that is less than the GPU has (per_process_memory_fraction).
  std::optional<core::Bytes> limit = {};
  Verdict verdict = Verdict::unknown;  ///< by verdict_of(), on the GPU that the estimate is for

  /// What there is for the job on a GPU of this capacity.
  [[nodiscard]] core::Bytes room_on(core::Bytes capacity) const {
    return limit && *limit < capacity ? *limit : capacity;
  }

  /// Whether the method tells this part of the breakdown. One that it does not tell is 0 there, and unknown.
  [[nodiscard]] bool tells(std::string_view part) const {
    if (breakdown.total().value() == 0) return false;
    const bool state = part == "parameters" || part == "gradients" || part == "optimizer";
    return state || leaves_out.empty();
  }
};

/// The one rule for whether a job runs on a GPU of this capacity; every front end shows what it says.
[[nodiscard]] inline Verdict verdict_of(const MemoryEstimate& estimate, core::Bytes capacity) {
  const core::Bytes room = estimate.room_on(capacity);
  if (estimate.expected > room) return Verdict::does_not_fit;
  if (estimate.lower_bound) return Verdict::unknown;
  const bool surely = estimate.fits && estimate.most_needed <= room && estimate.retries == 0;
  return surely ? Verdict::fits : Verdict::tight;
}

}  // namespace gpumem::estimate
