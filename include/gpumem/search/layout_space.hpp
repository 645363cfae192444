// Input: a framework, a job and a number of GPUs.
// Output: the layouts that the framework has for them, and how a job is written in its settings.
// Units: counts.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/named.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/search/block_work.hpp"
#include "gpumem/search/layout_time.hpp"

namespace gpumem::search {

// Framework: which layouts a training framework has, and how to write a job in its settings. One function a framework;
// frameworks.hpp is the list.
// Units: counts.

/// What settings say about the cluster.
struct Cluster {
  std::int64_t node = 8;  ///< GPUs in a node
  bool overlap = true;    ///< LinkOptions::overlap
};

struct Framework {
  std::string_view name;                   ///< on the command line: "megatron"
  std::string_view description;            ///< one line for people
  std::string_view settings;               ///< what settings_of() writes: "torchtitan TOML"
  model::Loop loop = model::Loop::script;  ///< of its training program
  bool tensor_parallel = false;            ///< with sequence parallelism, where the model's is modelled
  bool context_parallel = false;
  bool pipeline_parallel = false;
  bool expert_parallel = false;
  /// How a group of ranks `apart` from each other may share parameters, gradients and states; `node` GPUs are in a
  /// node.
  std::vector<model::Sharding> (*shardings)(std::int64_t ranks, std::int64_t apart, std::int64_t node) = nullptr;
  std::vector<Checkpointing> (*checkpointings)() = nullptr;
  /// Whether its groups of experts fit these ranks; null: wherever parallel::check_modelled() says so.
  bool (*experts_fit)(const model::Layout& layout) = nullptr;
  bool tokens_alone = false;  ///< it trains models that read tokens, and no others
  /// The job in the framework's own words, ready to paste. `blocks`: how many the model has.
  std::string (*settings_of)(const model::TrainingJob& job, std::int64_t blocks, const Cluster& cluster) = nullptr;
};

/// Samples that a step trains on.
[[nodiscard]] constexpr std::int64_t global_batch(const model::TrainingJob& job) {
  return job.layout.data_parallel * job.batch_size * job.gradient_accumulation;
}

// Input: a model, a number of GPUs, a batch and the frameworks that may run it.
// Output: every possible layout, each with the time of a step, the fastest first; and the rules that refused others.
// Units: GPUs, samples, seconds.
//
// Tensor parallel ranks are in one node. The numbers of ranks divide the GPUs, a micro-batch and its count the batch.
// What can be is said by parallel::check_modelled(), parallel::stage_layers() and parallel::rank_graph(), and by
// nothing here but Framework::experts_fit. Stages that cannot share the blocks evenly differ as the framework has it
// (parallel::shares_of()), with one stage a rank.

/// One way to run the job.
struct Candidate {
  const Framework* framework = nullptr;
  model::Layout layout;
  MicroBatch micro_batch;
  std::int64_t micro_batches = 1;  ///< of a step
  LayoutTime time;
  double step = 0.0;         ///< seconds
  std::uint32_t family = 0;  ///< equal where nothing but the micro-batches differ
  /// The same layout, sharded over all ranks instead of in groups: it never takes more memory in a step.
  std::uint32_t least_family = 0;
  std::size_t work = 0;  ///< index into LayoutSpace::work
};

/// What a user wants of a layout: no more ranks of a kind than these. Nothing: as many as there are GPUs.
struct MostRanks {
  std::optional<std::int64_t> tensor_parallel = {};
  std::optional<std::int64_t> context_parallel = {};
  std::optional<std::int64_t> pipeline_parallel = {};
  std::optional<std::int64_t> expert_parallel = {};
};

/// The first of them that the layout has more of, as the option that says it; empty: none.
[[nodiscard]] std::string_view beyond(const MostRanks& most, const model::Layout& layout);

/// What refuses a layout.
enum class Rule : std::uint8_t {
  batch,     ///< data parallel ranks cannot share the batch evenly
  stages,    ///< the stages of the pipeline cannot share the model's blocks evenly
  split,     ///< the model's layers cannot be split so, or the work of a part cannot be counted
  modelled,  ///< no plan follows such a layout
  time,      ///< the links that it needs are not known
  estimate,  ///< its memory cannot be estimated
  asked,     ///< the question is about other layouts
  search,    ///< a search does not look at such layouts
};
inline constexpr std::array<model::Named<Rule>, 8> kRules = {{{Rule::batch, "batch"},
                                                              {Rule::stages, "stages"},
                                                              {Rule::split, "split"},
                                                              {Rule::modelled, "modelled"},
                                                              {Rule::time, "time"},
                                                              {Rule::estimate, "estimate"},
                                                              {Rule::asked, "asked"},
                                                              {Rule::search, "search"}}};

struct Refusal {
  std::string text;  ///< for people
  Rule rule = Rule::batch;

  // Not <=>: the standard library that the web page is compiled with has none for texts.
  friend bool operator<(const Refusal& one, const Refusal& other) {
    return std::tie(one.text, one.rule) < std::tie(other.text, other.rule);
  }
};
using Refusals = std::map<Refusal, std::int64_t>;  ///< how many layouts, counted before micro-batches are

struct LayoutSpace {
  std::vector<Candidate> candidates;  ///< by step, ascending
  std::vector<BlockWork> work;
  Refusals refused;
};

struct SpaceLimits {
  std::int64_t gpus = 1;
  std::int64_t global_batch = 1;
  std::vector<const Framework*> frameworks;
  MostRanks most = {};
};

/// The job as this candidate runs it.
[[nodiscard]] model::TrainingJob job_of(const model::TrainingJob& job, const Candidate& candidate);

/// `analysis` is of the job, and is left at another one. The job's layout is that of one GPU: ZeRO's buckets count.
/// Errors: those of connecting; deadline_exceeded. That nothing can be is not an error.
[[nodiscard]] core::Result<LayoutSpace> layout_space(analysis::Analysis& analysis, const model::TrainingJob& job,
                                                     const SpaceLimits& limits, const Links& links,
                                                     const utilisation::GpuPeaks& peaks);

/// Layouts that differ only in the size of their micro-batches, and run alike: each has as many passes that differ in
/// memory, so that a larger micro-batch takes more at every moment of the step.
struct Runs {
  std::uint32_t family = 0;
  std::int64_t passes = 0;

  friend bool operator==(const Runs&, const Runs&) = default;
};

struct RunsHash {
  std::size_t operator()(const Runs& runs) const {
    return static_cast<std::size_t>(runs.family) * 65'537U + static_cast<std::size_t>(runs.passes);
  }
};

/// plan/step_plan runs three passes at most, and a pipeline those of parallel/pipeline_parallel.hpp.
[[nodiscard]] Runs runs_of(const Candidate& candidate);

}  // namespace gpumem::search
