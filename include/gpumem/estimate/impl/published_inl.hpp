#pragma once

#include "gpumem/estimate/published.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpumem/adapt/adapt.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/network.hpp"
#include "gpumem/plan/optimizer_step.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::estimate {

namespace horus_detail {

/// d e, from CARMA's published estimates (see published.hpp).
inline constexpr std::int64_t kOverheadBytes = std::int64_t{800} << 20;

GPUMEM_INLINE core::Error unknown_dimension(const model::ModelGraph& graph, const model::Layer& layer,
                                            const core::Shape& shape) {
  return {core::ErrorCode::missing_information,
          "has the output shape " + core::to_string(shape) +
              " with an unknown dimension; print the summary of a model with a fixed input size",
          core::Place{graph.file(), layer.line, graph.path(layer)}};
}

/// B A: elements of all counted outputs at this batch size.
GPUMEM_INLINE core::Result<core::Checked> activations(const connect::WiredGraph& wired, std::int64_t batch_size) {
  const model::ModelGraph& graph = wired.graph();
  core::Checked elements = 0;
  for (std::size_t index = 0; index < graph.layers().size(); ++index) {
    const model::Layer& layer = graph.layers()[index];
    const model::OpTraits* op = graph.op_traits(layer);
    if (layer.inferred || op == nullptr || !op->computes) continue;
    for (const core::Shape& shape : wired.outputs(index)) {
      const auto outputs = shape.elements(batch_size);
      if (!outputs) return unknown_dimension(graph, layer, shape);
      elements += *outputs;
    }
  }
  return elements;
}

}  // namespace horus_detail

GPUMEM_INLINE core::Result<MemoryEstimate> Horus::do_estimate(analysis::Analysis& analysis,
                                                              const device::GpuProfile&) const {
  const model::TrainingJob& job = analysis.job();
  const auto wired = analysis.adapted();
  if (!wired) return wired.error();
  const core::Result<core::Checked> activations = horus_detail::activations(**wired, job.batch_size);
  if (!activations) return activations.error();

  const core::Checked element = core::element_size(model::parameter_dtype(job.precision));
  const model::ModelGraph& counted = adapt::adapts(job) ? (*wired)->graph() : *job.graph;
  const core::Checked parameters = core::Checked(counted.parameters()) * element;
  const core::Checked gradients = parameters * core::Checked(job.batch_size);
  const core::Checked activation_bytes = *activations * element;
  const core::Checked total = activation_bytes + parameters + gradients + horus_detail::kOverheadBytes;
  if (!total.valid()) {
    return core::Error{core::ErrorCode::overflow,
                       "the job's memory at batch " + std::to_string(job.batch_size) + " does not fit 64 bits",
                       {}};
  }

  MemoryEstimate estimate;
  estimate.expected = core::Bytes(*total.value());
  estimate.lower = estimate.expected;
  estimate.upper = estimate.expected;
  estimate.device = estimate.expected;
  estimate.breakdown.context = core::Bytes(horus_detail::kOverheadBytes);
  estimate.breakdown.parameters = core::Bytes(*parameters.value());
  estimate.breakdown.gradients = core::Bytes(*gradients.value());
  estimate.breakdown.activations = core::Bytes(*activation_bytes.value());
  return estimate;
}

namespace fake_tensor_detail {

using LiveBytes = std::array<std::int64_t, plan::kCategories>;

/// The most that is live in a run of events.
struct Peak {
  std::int64_t bytes = 0;
  LiveBytes by_category{};
};

/// Counts live bytes over a plan, and keeps the peak of one step. Nothing: a sum does not fit 64 bits.
GPUMEM_INLINE std::optional<Peak> peak_of(const plan::StepPlan& plan, std::int32_t step) {
  struct Held {
    std::int64_t bytes = 0;
    plan::Category category = plan::Category::activation;
  };
  std::vector<Held> held(plan.slots);
  LiveBytes live{};
  std::int64_t total = 0;
  Peak peak;
  std::size_t phase = 0;
  for (std::size_t index = 0; index < plan.events.size(); ++index) {
    while (phase + 1 < plan.phases.size() && plan.phases[phase + 1].first_event <= index) ++phase;
    const plan::Event& event = plan.events[index];
    if (event.kind == plan::Event::Kind::call || event.kind == plan::Event::Kind::empty_cache) continue;
    Held& slot = held[event.slot];
    if (event.kind == plan::Event::Kind::release) {
      total -= slot.bytes;
      live[static_cast<std::size_t>(slot.category)] -= slot.bytes;
      continue;
    }
    slot = {event.bytes, event.category};
    if (__builtin_add_overflow(total, event.bytes, &total)) return std::nullopt;
    live[static_cast<std::size_t>(event.category)] += event.bytes;
    if (plan.phases[phase].step == step && total > peak.bytes) peak = {total, live};
  }
  return peak;
}

GPUMEM_INLINE core::Status add_coverage(analysis::Analysis& analysis, Coverage& coverage) {
  if (analysis.job().graph->recording() != nullptr) {
    coverage.edges = "recorded";
    return core::Done{};
  }
  const auto wired = analysis.adapted();
  if (!wired) return wired.error();
  const auto pass = analysis.forward_pass(ops::Backend::cpu);
  if (!pass) return pass.error();
  coverage.edges = (*wired)->edges();
  coverage.layers_unknown = analysis.job().graph->unknown_layers() + (*pass)->skipped_layers;
  return core::Done{};
}

}  // namespace fake_tensor_detail

GPUMEM_INLINE core::Result<MemoryEstimate> FakeTensor::do_estimate(analysis::Analysis& analysis,
                                                                   const device::GpuProfile& gpu) const {
  if (const core::Status chosen = analysis.choose_for(gpu); !chosen) return chosen.error();
  const bool first = step_ == Step::forward_backward;
  const auto which = first ? analysis::Steps::without_optimizer : analysis::Steps::whole;
  const bool recorded = analysis.job().graph->recording() != nullptr;
  const auto steps = analysis.steps(recorded ? ops::Backend::cuda : ops::Backend::cpu, which);
  if (!steps) return steps.error();
  const auto peak = fake_tensor_detail::peak_of(**steps, first ? 1 : 2);
  if (!peak) {
    return core::Error{core::ErrorCode::overflow,
                       "the live tensors at batch " + std::to_string(analysis.job().batch_size) + " do not fit 64 bits",
                       {}};
  }
  MemoryEstimate estimate;
  const core::Status covered = fake_tensor_detail::add_coverage(analysis, estimate.coverage);
  if (!covered) return covered.error();
  estimate.expected = core::Bytes(peak->bytes);
  estimate.lower = estimate.expected;
  estimate.upper = estimate.expected;
  estimate.allocated = estimate.expected;
  estimate.breakdown = breakdown_of_live(peak->by_category);
  return estimate;
}

GPUMEM_INLINE core::Result<MemoryEstimate> estimate_of(const StateBytes& bytes) {
  const core::Checked total = bytes.parameters + bytes.gradients + bytes.optimizer;
  if (!total.valid()) {
    return core::Error{core::ErrorCode::overflow, "the model's states do not fit 64 bits", {}};
  }
  MemoryEstimate estimate;
  estimate.breakdown.parameters = core::Bytes(*bytes.parameters.value());
  estimate.breakdown.gradients = core::Bytes(*bytes.gradients.value());
  estimate.breakdown.optimizer = core::Bytes(*bytes.optimizer.value());
  estimate.expected = core::Bytes(*total.value());
  estimate.lower = estimate.expected;
  estimate.upper = estimate.expected;
  estimate.allocated = estimate.expected;
  estimate.leaves_out = "activations, workspaces, the allocator's rounding, the CUDA context";
  return estimate;
}

namespace model_states_detail {

/// What the optimizer keeps on the GPU, parameter by parameter, where its states are not as large as these.
GPUMEM_INLINE core::Result<core::Checked> states_of_each(analysis::Analysis& analysis) {
  const auto pass = analysis.forward_pass();
  if (!pass) return pass.error();
  const ops::Tape& tape = (*pass)->tape;
  const model::OptimizerRow& row = model::row_of(analysis.job().optimizer);
  core::Checked bytes = 0;
  for (const ops::Tape::Parameter& parameter : tape.parameters()) {
    if (parameter.frozen || parameter.tied) continue;
    const ops::TensorSize& size = tape.tensor(parameter.tensor).size;
    const auto whole = size.bytes(analysis.job().batch_size).value();
    if (!whole) return core::Error{core::ErrorCode::overflow, "the optimizer's states do not fit 64 bits", {}};
    const bool masters = model::has_masters(analysis.job().precision);
    const std::int64_t elements = size.elements.value().value_or(0);
    const std::int64_t updated = masters ? elements * core::element_size(core::DType::float32) : *whole;
    const bool reduced = analysis.job().precision == model::Precision::bf16_mixed;
    if (masters) bytes += model::master_bytes(row, elements, reduced);
    const std::int64_t factored = parameter.factored.value().value_or(0);
    const std::uint32_t layer = tape.tensor(parameter.tensor).layer;
    const std::int64_t rank = plan::projection_rank((*pass)->wired.graph(), layer, elements, analysis.job());
    const auto projected = plan::projected_gradient(
        row, {.bytes = updated, .elements = elements, .factored = factored, .layer = layer, .rank = rank});
    const bool whole_states = projected.rank == 0;
    if (!whole_states) bytes += projected.projector_bytes(row);
    for (int kept = 0; kept < row.states; ++kept) {
      bytes += whole_states ? model::state_bytes(row, kept, elements, updated, factored)
                            : model::state_bytes(row, kept, projected.elements(), projected.bytes(),
                                                 projected.rank + projected.longer);
    }
  }
  return bytes;
}

/// For a job with weights of several types: what the tape holds of each.
struct HeldStates {
  core::Checked parameters = 0;  ///< with the scales of quantised ones
  core::Checked gradients = 0;
};

GPUMEM_INLINE core::Result<HeldStates> held_states(analysis::Analysis& analysis) {
  const auto pass = analysis.forward_pass();
  if (!pass) return pass.error();
  const ops::Tape& tape = (*pass)->tape;
  HeldStates held;
  for (const ops::Tape::Parameter& parameter : tape.parameters()) {
    if (parameter.tied) continue;
    const core::Checked bytes = tape.tensor(parameter.tensor).size.bytes(analysis.job().batch_size);
    held.parameters += bytes;
    if (!parameter.frozen) held.gradients += bytes;
  }
  if (!model::holds_in_fewer_bits(analysis.job().quantize)) return held;
  for (const ops::TensorId buffer : tape.buffers()) {
    held.parameters += tape.tensor(buffer).size.bytes(analysis.job().batch_size);
  }
  return held;
}

}  // namespace model_states_detail

GPUMEM_INLINE core::Result<MemoryEstimate> ModelStates::do_estimate(analysis::Analysis& analysis,
                                                                    const device::GpuProfile& /*gpu*/) const {
  const model::TrainingJob& job = analysis.job();
  const core::Checked element = core::element_size(model::parameter_dtype(job.precision));
  core::Checked parameters = core::Checked(job.graph->parameters()) * element;
  core::Checked gradients = core::Checked(job.graph->trainable_parameters()) * element;
  if (adapt::adapts(job)) {
    const core::Result<model_states_detail::HeldStates> held = model_states_detail::held_states(analysis);
    if (!held) return held.error();
    parameters = held->parameters;
    gradients = held->gradients;
  }
  core::Checked optimizer = gradients * core::Checked(model::optimizer_states(job.optimizer));
  const model::OptimizerRow& row = model::row_of(job.optimizer);
  const bool whole = row.state_shape == model::OptimizerRow::StateShape::whole &&
                     row.projection == model::OptimizerRow::Projection::none;
  if (job.offload == model::Offload::optimizer) {
    optimizer = 0;
  } else if (!whole || model::has_masters(job.precision)) {
    const core::Result<core::Checked> states = model_states_detail::states_of_each(analysis);
    if (!states) return states.error();
    optimizer = *states;
  }
  return estimate_of({parameters, gradients, optimizer});
}

namespace zero_states_detail {

/// Bytes a parameter, by what they hold.
struct BytesEach {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;  ///< master weights and states
};

/// A row of the header's table.
struct Formula {
  ZeroStates::Kind kind;
  std::string_view name;
  BytesEach whole;          ///< of every parameter, on every GPU
  BytesEach shared;         ///< of every parameter, by N
  BytesEach largest_layer;  ///< of the largest layer's
};

inline constexpr std::array<Formula, 7> kFormulas = {{
    {ZeroStates::Kind::one, ZeroStates::kOneName, {2, 2, 0}, {0, 0, 12}, {}},
    {ZeroStates::Kind::one_offload, ZeroStates::kOneOffloadName, {2, 2, 0}, {}, {}},
    {ZeroStates::Kind::two, ZeroStates::kTwoName, {2, 0, 0}, {0, 6, 12}, {}},
    {ZeroStates::Kind::two_offload, ZeroStates::kTwoOffloadName, {2, 0, 0}, {}, {}},
    {ZeroStates::Kind::three, ZeroStates::kThreeName, {}, {2, 4, 12}, {2, 2, 0}},
    {ZeroStates::Kind::three_offload, ZeroStates::kThreeOffloadName, {}, {2, 0, 0}, {2, 2, 0}},
    {ZeroStates::Kind::three_offload_all, ZeroStates::kThreeOffloadAllName, {}, {}, {2, 2, 0}},
}};

GPUMEM_INLINE const Formula& formula_of(ZeroStates::Kind kind) { return kFormulas[static_cast<std::size_t>(kind)]; }

/// Parameters that the largest module holds itself, tied ones included, as DeepSpeed's model_to_params() counts. Bare
/// parameters are rows of their own in a graph; the container that they are in is the module.
GPUMEM_INLINE core::Checked largest_layer(const model::ModelGraph& graph) {
  std::int64_t largest = 0;
  bool fits = true;
  std::unordered_map<std::uint32_t, std::int64_t> bare;
  for (const model::Layer& layer : graph.layers()) {
    std::int64_t held = layer.parameters;
    if (graph.op(layer) == model::kParameterOp) {
      std::int64_t& sum = bare[layer.scope];
      fits = fits && !__builtin_add_overflow(sum, held, &sum);
      held = sum;
    }
    largest = std::max(largest, held);
  }
  return fits ? core::Checked(largest) : core::Checked(-1);
}

/// These bytes of this many parameters.
GPUMEM_INLINE StateBytes times(const BytesEach& each, core::Checked parameters) {
  return {parameters * core::Checked(each.parameters), parameters * core::Checked(each.gradients),
          parameters * core::Checked(each.optimizer)};
}

/// The formulas round down what is shared as one sum; parts are rounded down, and the last takes what is left.
GPUMEM_INLINE StateBytes divided(const StateBytes& bytes, std::int64_t gpus) {
  const core::Checked sum = bytes.parameters + bytes.gradients + bytes.optimizer;
  if (!sum.valid()) return {sum, sum, sum};
  const std::int64_t parameters = *bytes.parameters.value() / gpus;
  const std::int64_t gradients = *bytes.gradients.value() / gpus;
  return {parameters, gradients, *sum.value() / gpus - parameters - gradients};
}

GPUMEM_INLINE std::vector<std::string> unlike(const model::TrainingJob& job) {
  std::vector<std::string> names;
  constexpr std::int64_t kAdamsStates = 2;
  if (model::is_float32(job.precision)) names.emplace_back("precision");
  if (model::optimizer_states(job.optimizer) != kAdamsStates) names.emplace_back("optimizer");
  if (!job.freeze.empty()) names.emplace_back("freeze");
  if (!job.train.empty()) names.emplace_back("train");
  if (job.has_adapters()) names.emplace_back("lora");
  if (job.quantize != model::Quantization::none) names.emplace_back("quantize");
  return names;
}

}  // namespace zero_states_detail

GPUMEM_INLINE std::string_view ZeroStates::name() const { return zero_states_detail::formula_of(kind_).name; }

GPUMEM_INLINE core::Result<MemoryEstimate> ZeroStates::do_estimate(analysis::Analysis& analysis,
                                                                   const device::GpuProfile& /*gpu*/) const {
  namespace detail = zero_states_detail;
  const model::TrainingJob& job = analysis.job();
  const detail::Formula& formula = detail::formula_of(kind_);
  const core::Checked all = job.graph->parameters();
  const StateBytes whole = detail::times(formula.whole, all);
  const StateBytes shared = detail::divided(detail::times(formula.shared, all), job.layout.data_parallel);
  const StateBytes gathered = detail::times(formula.largest_layer, detail::largest_layer(*job.graph));
  core::Result<MemoryEstimate> estimate = estimate_of({whole.parameters + shared.parameters + gathered.parameters,
                                                       whole.gradients + shared.gradients + gathered.gradients,
                                                       whole.optimizer + shared.optimizer + gathered.optimizer});
  if (estimate) estimate->out_of_domain = detail::unlike(job);
  return estimate;
}

}  // namespace gpumem::estimate

namespace gpumem::estimate {

namespace gpumemnet_detail {

GPUMEM_INLINE core::Bytes from_mib(double mib) { return core::Bytes(static_cast<std::int64_t>(mib * 1048576.0)); }

GPUMEM_INLINE std::vector<Bin> bins_of(const std::vector<double>& edges_mib, const std::vector<float>& logits) {
  const std::vector<double> shares = ml::softmax(logits);
  std::vector<Bin> bins;
  for (std::size_t bin = 0; bin < shares.size(); ++bin) {
    bins.push_back({from_mib(edges_mib[bin]), from_mib(edges_mib[bin + 1]), shares[bin]});
  }
  return bins;
}

/// The entry of a config's list; null if there is none.
template <typename Value>
const Value* entry_of(const std::vector<std::pair<std::string, Value>>& entries, std::string_view name) {
  for (const auto& [key, value] : entries) {
    if (key == name) return &value;
  }
  return nullptr;
}

/// Settings that no feature tells and no set of runs to train on varies. They show in the figures of a replay.
GPUMEM_INLINE void add_unseen_settings(const model::TrainingJob& job, std::vector<std::string>& unseen) {
  if (job.gradient_accumulation > 1) unseen.emplace_back("accumulate");
  if (job.activation_checkpointing) unseen.emplace_back("checkpointing");
}

}  // namespace gpumemnet_detail

GPUMEM_INLINE core::Result<std::unique_ptr<Estimator>> Gpumemnet::create(std::string_view name,
                                                                         std::vector<ml::TrainedModel> models,
                                                                         device::AllocatorOptions options) {
  if (models.empty()) return core::Error{core::ErrorCode::invalid_argument, "there is no trained model", {}};
  std::unique_ptr<Gpumemnet> made(new Gpumemnet(name == kTransformerName ? kTransformerName : kMlpName, options));
  for (ml::TrainedModel& model : models) {
    if (model.config.head.edges_mib.empty() || !model.config.head.of.empty()) {
      return core::Error{core::ErrorCode::invalid_argument,
                         "the model " + core::quoted(model.config.name) + " predicts something else, not memory bins",
                         {}};
    }
    core::Result<ml::FeatureReader> reader = ml::FeatureReader::create(model.config);
    if (!reader) return reader.error();
    made->classifiers_.push_back({std::move(model), *std::move(reader)});
  }
  return std::unique_ptr<Estimator>(std::move(made));
}

GPUMEM_INLINE const Gpumemnet::Classifier& Gpumemnet::classifier_for(ml::NetKind kind) const {
  const auto found = std::find_if(classifiers_.begin(), classifiers_.end(), [&](const Classifier& classifier) {
    return classifier.model.config.nets == kind || classifier.model.config.nets == ml::NetKind::any;
  });
  return found == classifiers_.end() ? classifiers_.front() : *found;
}

GPUMEM_INLINE core::Result<MemoryEstimate> Gpumemnet::do_estimate(analysis::Analysis& analysis,
                                                                  const device::GpuProfile& gpu) const {
  namespace detail = gpumemnet_detail;
  core::Result<ml::JobFacts> facts = ml::facts_of(analysis);
  if (!facts) return facts.error();
  const Classifier& classifier = classifier_for(facts->kind);
  // Only now: a run costs many times the rest.
  const core::Status added = ml::add_replay(*facts, classifier.reader, analysis, gpu, options_);
  if (!added) return added.error();
  const ml::ModelConfig& config = classifier.model.config;

  MemoryEstimate estimate;
  std::vector<float> features(config.features.size());
  std::vector<float> sequence;
  classifier.reader.read(*facts, features, sequence, estimate.out_of_domain);
  std::vector<float> logits(static_cast<std::size_t>(config.network.outputs));
  ml::NetworkBuffers buffers = classifier.model.network.buffers();
  classifier.model.network.run(features, sequence, buffers, logits);
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) {
    return core::Error{core::ErrorCode::overflow, "the job's figures are beyond what the model can weigh", {}};
  }

  if (config.nets != ml::NetKind::any && config.nets != facts->kind) estimate.out_of_domain.push_back("nets");
  const bool replays = classifier.reader.needs(ml::Needs::replay);
  if (!replays) detail::add_unseen_settings(analysis.job(), estimate.out_of_domain);
  const std::string* trained_on = detail::entry_of(config.provenance, "profile");
  if (trained_on != nullptr && *trained_on != gpu.name) estimate.out_of_domain.push_back("gpu");

  estimate.bins = detail::bins_of(config.head.edges_mib, logits);
  const auto likeliest = static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  estimate.lower = estimate.bins[likeliest].lower;
  estimate.upper = estimate.bins[likeliest].upper;
  estimate.expected = core::Bytes((estimate.lower.count() + estimate.upper.count()) / 2);
  estimate.device = estimate.expected;
  estimate.ranged = true;
  const double* covered = detail::entry_of(config.accuracy, "covered");
  if (covered != nullptr && estimate.out_of_domain.empty()) estimate.upper_coverage = *covered;
  estimate.provenance.weights = config.name;
  // The printed rows of a table need no edges.
  if (replays || !analysis.job().graph->shapes_printed()) {
    const auto wired = analysis.adapted();
    if (!wired) return wired.error();
    estimate.coverage.edges = (*wired)->edges();
  }
  return estimate;
}

}  // namespace gpumem::estimate
