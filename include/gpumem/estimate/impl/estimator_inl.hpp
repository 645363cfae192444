
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <type_traits>

#include "gpumem/core/deadline.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/estimate/evidence.hpp"
#include "gpumem/estimate/published.hpp"
#include "gpumem/estimate/replay.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "gpumem/model/step_recording.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::estimate {

namespace evidence_detail {

/// Whether the estimate has the allocator's options that a recorded program sets.
GPUMEM_INLINE std::string alloc_conf_text(const std::string& value, const device::AllocatorOptions& allocator) {
  if (allocator.said) return "`alloc_conf` of the job counts in its place";
  const auto known = device::parse_allocator_options(value);
  return known ? "it counts, as `alloc_conf` is not given" : "it is not counted (" + known.error().message + ")";
}

inline constexpr std::size_t kLongestSetting = 200;

/// What is said of a setting of a recorded program; nothing where the estimate has all of it.
GPUMEM_INLINE std::string setting_text(std::string_view name, const std::string& value, const model::TrainingJob& job,
                                       const device::AllocatorOptions& allocator) {
  const std::string said = core::shortened(value, kLongestSetting);
  if (name == model::kRecordedAllocConf) {
    return "the program sets PYTORCH_CUDA_ALLOC_CONF=" + said + ": " + alloc_conf_text(value, allocator);
  }
  if (name == model::kRecordedMemoryFraction) {
    return "the program may take " + said + " of the GPU's memory" +
           (allocator.said && allocator.memory_fraction ? ": `alloc_conf` of the job counts in its place" : "");
  }
  if (name == model::kRecordedBenchmark) {
    return job.cudnn_benchmark ? "" : "the program sets cudnn_benchmark: the job's option counts in its place";
  }
  if (name == model::kRecordedGraphs) {
    return "the program captures " + said +
           " CUDA graphs, whose pools keep their memory to themselves, as counted; what the graphs themselves take is "
           "not";
  }
  if (name == model::kRecordedCompiled) {
    return "torch.compile: buffers are those of PyTorch's Inductor as it compiled for this GPU's capability; kernels "
           "that it would choose by measuring (padded products, max-autotune) are the default ones";
  }
  if (name == "tf32" || name == model::kRecordedTorch) return {};
  return "the program sets " + core::shortened(name, kLongestSetting) + "=" + said +
         "; workspaces are those without it";
}

GPUMEM_INLINE void add_recorded(const model::StepRecording& recording, const model::TrainingJob& job,
                                const device::AllocatorOptions& allocator, std::vector<Assumption>& assumed) {
  if (!recording.invented.empty()) {
    std::string lines;
    constexpr std::size_t kNamed = 5;
    for (std::size_t at = 0; at < std::min(kNamed, recording.invented.size()); ++at) {
      if (!recording.invented[at].empty()) lines += (lines.empty() ? "" : ", ") + recording.invented[at];
    }
    if (recording.invented.size() > kNamed)
      lines += " and " + std::to_string(recording.invented.size() - kNamed) + " more";
    assumed.push_back({"values", "values that only a GPU has were invented" + (lines.empty() ? "" : " at " + lines) +
                                     (recording.invented_sizes ? ", some of which decide sizes" : "")});
  }
  for (const auto& [name, value] : recording.settings) {
    std::string text = setting_text(name, value, job, allocator);
    if (!text.empty()) assumed.push_back({"settings", std::move(text)});
  }
}

}  // namespace evidence_detail

namespace estimator_detail {

/// How many GPUs an estimate of this job is of.
GPUMEM_INLINE core::Result<std::int64_t> gpus_like_it(const model::TrainingJob& job) {
  if (const model::StepRecording* recording = job.graph->recording()) return recording->world_size;
  if (job.layout.rank.kind != model::Ranks::max) return std::int64_t{1};
  return parallel::world_size(job.layout);
}

/// `edges`: see WiredGraph::edges().
GPUMEM_INLINE std::string edges_text(std::string_view edges) {
  constexpr std::string_view kKnown = "architecture: ";
  if (!edges.starts_with(kKnown)) return "what each layer reads was inferred (" + std::string(edges) + ")";
  return "each layer reads what the code of its model's class reads (" + std::string(edges.substr(kKnown.size())) + ")";
}

GPUMEM_INLINE std::string_view name_of(model::Doubt::About about) {
  switch (about) {
    case model::Doubt::About::model_type: return "model_type";
    case model::Doubt::About::fields: return "fields";
    case model::Doubt::About::parameters: return "parameters";
    case model::Doubt::About::quantization: return "quantize";
    case model::Doubt::About::kernels: return "kernels";
    case model::Doubt::About::images: return "images";
  }
  return {};
}

/// What the model's source does not settle comes first: it may change an estimate most. Runs of such a model were not
/// measured.
GPUMEM_INLINE void add_doubts(const model::TrainingJob& job, MemoryEstimate& estimate) {
  std::vector<Assumption> doubts;
  const auto add = [&](const model::Doubt& doubt) {
    doubts.push_back({std::string(name_of(doubt.about)), doubt.text});
  };
  for (const model::Doubt& doubt : job.graph->doubts()) add(doubt);
  if (const auto graphs = model::doubt_of_cuda_graphs(model::megatron_option(job, "cuda_graph_impl").value_or(""))) {
    add(*graphs);
  }
  if (doubts.empty()) return;
  estimate.upper_coverage.reset();
  estimate.assumed.insert(estimate.assumed.begin(), doubts.begin(), doubts.end());
}

}  // namespace estimator_detail

GPUMEM_INLINE void judge(MemoryEstimate& estimate, const model::ModelGraph& graph, core::Bytes capacity) {
  estimate.coverage.layers_total = static_cast<std::int64_t>(graph.layers().size());
  estimate.coverage.layers_unknown = std::max(estimate.coverage.layers_unknown, graph.unknown_layers());
  estimate.coverage.edges_inferred = graph.edges_inferred();
  estimate.lower_bound = estimate.coverage.layers_unknown > 0 || !estimate.leaves_out.empty();
  estimate.fits = estimate.fits && !estimate.lower_bound;
  estimate.upper_uncut = std::max(estimate.upper_uncut, estimate.upper);
  estimate.verdict = verdict_of(estimate, capacity);
}

GPUMEM_INLINE Breakdown breakdown_of_live(std::span<const std::int64_t> by_category) {
  Breakdown parts;
  for (std::size_t category = 0; category < by_category.size(); ++category) {
    core::Bytes& part = parts.part(plan::part_of(static_cast<plan::Category>(category)));
    part = core::Bytes(part.count() + by_category[category]);
  }
  return parts;
}

GPUMEM_INLINE core::Result<MemoryEstimate> Estimator::estimate(const model::TrainingJob& job,
                                                               const device::GpuProfile& gpu) const {
  analysis::Analysis analysis(job);
  return estimate(analysis, gpu);
}

GPUMEM_INLINE core::Result<MemoryEstimate> Estimator::estimate(analysis::Analysis& analysis,
                                                               const device::GpuProfile& gpu) const {
  const model::TrainingJob& job = analysis.job();
  const core::Status valid = model::validate(job);
  if (!valid) return valid.error();
  const core::Status taken = takes_layouts()         ? analysis.modelled()
                             : takes_data_parallel() ? parallel::check_data_parallel(job, name())
                                                     : parallel::check_one_gpu(job, name());
  if (!taken) return taken.error();
  core::Result<MemoryEstimate> estimate = do_estimate(analysis, gpu);
  // Replays of variants and the like end early: what they gave is not whole.
  if (core::deadline_passed()) return core::deadline_error().in_file(job.graph->file());
  if (!estimate) return std::move(estimate.error()).in_file(job.graph->file());
  assert(estimate->breakdown.total().value() == 0 || estimate->breakdown.total().value() == estimate->expected.count());
  const core::Result<std::int64_t> gpus = estimator_detail::gpus_like_it(job);
  if (!gpus) return gpus.error();
  estimate->gpus = *gpus;
  if (job.graph->edges_inferred() && !estimate->coverage.edges.empty()) {
    estimate->assumed.push_back({"edges", estimator_detail::edges_text(estimate->coverage.edges)});
  }
  estimator_detail::add_doubts(job, *estimate);
  estimate->provenance.estimator = name();
  estimate->provenance.gpu = gpu.name;
  if (!decides_fit()) {
    estimate->fits = estimate->upper <= gpu.capacity();
    estimate->most_needed = estimate->upper;
  }
  judge(*estimate, *job.graph, gpu.capacity());
  return estimate;
}

namespace estimators_detail {

template <typename Kind>
core::Result<std::unique_ptr<Estimator>> create(const EstimatorOptions& options) {
  if constexpr (std::is_constructible_v<Kind, device::AllocatorOptions>) {
    return std::unique_ptr<Estimator>(std::make_unique<Kind>(options.allocator));
  } else {
    return std::unique_ptr<Estimator>(std::make_unique<Kind>());
  }
}

template <FakeTensor::Step Step>
core::Result<std::unique_ptr<Estimator>> create_fake_tensor(const EstimatorOptions& /*options*/) {
  return std::unique_ptr<Estimator>(std::make_unique<FakeTensor>(Step));
}

template <ZeroStates::Kind Kind>
core::Result<std::unique_ptr<Estimator>> create_zero(const EstimatorOptions& /*options*/) {
  return std::unique_ptr<Estimator>(std::make_unique<ZeroStates>(Kind));
}

template <const std::string_view& Name>
core::Result<std::unique_ptr<Estimator>> create_gpumemnet(const EstimatorOptions& options) {
  std::vector<ml::TrainedModel> models;
  if (options.model.empty()) {
    core::Result<std::vector<ml::TrainedModel>> builtin = ml::find_models(std::string(Name) + "-");
    if (!builtin) return builtin.error();
    models = *std::move(builtin);
  } else {
    core::Result<ml::TrainedModel> model = ml::find_model(options.model);
    if (!model) return model.error();
    models.push_back(*std::move(model));
  }
  return Gpumemnet::create(Name, std::move(models), options.allocator);
}

GPUMEM_INLINE core::Result<std::unique_ptr<Estimator>> create_corrected(const EstimatorOptions& options) {
  constexpr std::string_view kBuiltin = "replay-corrector-cnn";
  core::Result<ml::TrainedModel> model = ml::find_model(options.model.empty() ? kBuiltin : options.model);
  if (!model) return model.error();
  return CorrectedReplay::create(*std::move(model), options.allocator);
}

inline constexpr std::array<EstimatorEntry, 15> kAll = {{
    {Replay::kName, "replay of PyTorch's caching allocator over a plan of the training steps", create<Replay>},
    {CorrectedReplay::kName, "the replay, corrected for CNNs by a model trained on measured runs", create_corrected},
    {Horus::kName, "Horus' published formula, with its mistakes: a baseline", create<Horus>},
    {FakeTensor::kName, "peak of live tensors in forward and backward, as FakeTensorMode counts it without a GPU",
     create_fake_tensor<FakeTensor::Step::forward_backward>},
    {FakeTensor::kOptimizerName, "the same in the second step, with the optimizer",
     create_fake_tensor<FakeTensor::Step::with_optimizer>},
    {Gpumemnet::kMlpName,
     "memory bin by ensembles of small perceptrons, trained on measured MLPs and CNNs and simulated Transformers",
     create_gpumemnet<Gpumemnet::kMlpName>},
    {Gpumemnet::kTransformerName,
     "the same by ensembles of Transformer encoders over the layers, trained on the same jobs",
     create_gpumemnet<Gpumemnet::kTransformerName>},
    {ModelStates::kName, "only weights, gradients and optimizer state: a lower bound", create<ModelStates>},
    {ZeroStates::kOneName, "model states on each GPU under ZeRO-1, by the paper: a lower bound",
     create_zero<ZeroStates::Kind::one>},
    {ZeroStates::kOneOffloadName, "the same, optimizer states in the host's memory",
     create_zero<ZeroStates::Kind::one_offload>},
    {ZeroStates::kTwoName, "model states on each GPU under ZeRO-2, by DeepSpeed's formula: a lower bound",
     create_zero<ZeroStates::Kind::two>},
    {ZeroStates::kTwoOffloadName, "the same, gradients and optimizer states in the host's memory",
     create_zero<ZeroStates::Kind::two_offload>},
    {ZeroStates::kThreeName, "model states on each GPU under ZeRO-3, by DeepSpeed's formula: a lower bound",
     create_zero<ZeroStates::Kind::three>},
    {ZeroStates::kThreeOffloadName, "the same, optimizer states in the host's memory",
     create_zero<ZeroStates::Kind::three_offload>},
    {ZeroStates::kThreeOffloadAllName, "the same, the parameters too",
     create_zero<ZeroStates::Kind::three_offload_all>},
}};

}  // namespace estimators_detail

GPUMEM_INLINE std::span<const EstimatorEntry> estimators() { return estimators_detail::kAll; }

GPUMEM_INLINE core::Result<std::unique_ptr<Estimator>> make_estimator(std::string_view name,
                                                                      const EstimatorOptions& options) {
  std::string names;
  for (const EstimatorEntry& entry : estimators()) {
    if (entry.name == name) return entry.create(options);
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return core::Error{core::ErrorCode::invalid_argument,
                     "there is no estimator " + core::quoted(name) + "; choose one of " + names,
                     {}};
}

}  // namespace gpumem::estimate
