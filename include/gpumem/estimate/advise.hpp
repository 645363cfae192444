// Input: a training job, a GPU and an estimator.
// Output: Advice: what single changes of the job's options would save, each with its estimate. Changes that cost the
// training least come first.
// Units: those of MemoryEstimate.
//
// A change is one that keeps the model, its data and its effective batch. What it costs is said in words: the order is
// a judgement (first what costs nothing, then time, then digits of the arithmetic).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/estimate/estimator.hpp"

namespace gpumem::estimate {

/// An option of a job and its value, in the words of job::job_options(): "fused", "true".
struct Setting {
  std::string_view option;
  std::string value;
};

/// A job with other settings.
struct ChangedJob {
  model::TrainingJob job;
  std::vector<Setting> settings;
};

/// One way to take less memory.
struct Change {
  std::string_view cost;  ///< in a few words, for people: "a second forward pass"
  /// The job with it, the mildest form first; empty where it would change nothing, or cannot be had on this GPU.
  std::vector<ChangedJob> (*forms)(const model::TrainingJob& job, const device::GpuProfile& gpu);
  bool after_recording = false;  ///< a recorded step can be changed so: another optimizer, or another form of it
};

/// All of them, cheapest first.
[[nodiscard]] std::span<const Change> changes();

/// What a change does. Of one in several forms, the mildest that fits; where none does, the one that takes least.
/// One that the model has no place for is left out.
struct ChangeEffect {
  std::string cost;          ///< of two, what each costs
  bool same_result = false;  ///< the job learns what it learns without it, but for rounding
  std::vector<Setting> settings;
  core::Result<MemoryEstimate> estimate;  ///< errors: the estimator's; invalid_argument for a recording that fixes it
};

/// The first of two changes that `tried` finds something for: of two pairs, that whose dearer change is the cheaper
/// one. A change may do nothing alone and much with another. `changes`: cheapest first. `tried(cheaper, dearer)` gives
/// a core::Result of an optional; its error ends the search.
template <typename Changes, typename Tried>
[[nodiscard]] auto cheapest_pair(const Changes& changes, const Tried& tried) {
  using Found = decltype(tried(changes[0], changes[0]));
  for (std::size_t dearer = 1; dearer < changes.size(); ++dearer) {
    for (std::size_t cheaper = 0; cheaper < dearer; ++cheaper) {
      Found found = tried(changes[cheaper], changes[dearer]);
      if (!found || *found) return found;
    }
  }
  return Found(std::remove_cvref_t<decltype(*std::declval<Found&>())>());
}

/// What advice looks for: a job that surely fits, not a tight one.
[[nodiscard]] inline bool is_enough(const MemoryEstimate& estimate) { return estimate.verdict == Verdict::fits; }

struct Advice {
  MemoryEstimate now;                ///< of the job as it is
  std::vector<ChangeEffect> single;  ///< each change by itself
  /// Where no single one that keeps the result fits: the two cheapest that keep it and do, or more of them; where these
  /// are not enough and no single change is, of all changes. Nothing: not needed, or not possible.
  std::optional<ChangeEffect> together;
};

/// Errors: the estimator's for the job as it is; deadline_exceeded.
[[nodiscard]] core::Result<Advice> advise(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                          const Estimator& estimator);

}  // namespace gpumem::estimate
