#pragma once

#include "gpumem/ml/features.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "gpumem/device/workspace.hpp"

namespace gpumem::ml {

namespace job_facts_detail {

using model::LayerIndex;

/// Stands for an op that no row describes.
inline constexpr model::OpTraits kUnknown = {
    .name = model::kUnknownOp, .family = OpFamily::other, .keeps = Keeps::input};

/// What GPUMemNet's features ask about a class name, by the graph's class index.
struct ClassFacts {
  bool conv1d = false;
  bool not_quantizable = false;
};

GPUMEM_INLINE std::vector<ClassFacts> facts_by_class(const model::ModelGraph& graph) {
  std::vector<ClassFacts> all;
  all.reserve(graph.class_names().size());
  for (const std::string& name : graph.class_names()) {
    all.push_back({name == "Conv1D", name == "NonDynamicallyQuantizableLinear"});
  }
  return all;
}

GPUMEM_INLINE core::Error unknown_dimension(const model::ModelGraph& graph, const model::Layer& layer,
                                            const core::Shape& shape) {
  return {core::ErrorCode::missing_information,
          "has the output shape " + core::to_string(shape) +
              " with an unknown dimension; print the summary of a model with a fixed input size",
          core::Place{graph.file(), layer.line, graph.path(layer)}};
}

GPUMEM_INLINE core::Error beyond_64_bits(const model::ModelGraph& graph, const model::Layer& layer) {
  return {core::ErrorCode::overflow, "has an output whose size does not fit 64 bits",
          core::Place{graph.file(), layer.line, graph.path(layer)}};
}

/// An image's axes: batch, channels, height, width.
inline constexpr std::size_t kImageRank = 4;

GPUMEM_INLINE core::Status take_outputs(const model::ModelGraph& graph, const model::Layer& layer,
                                        std::span<const core::Shape> shapes, LayerFacts& facts) {
  for (const core::Shape& shape : shapes) {
    const auto elements = shape.elements(1);
    if (!elements) return unknown_dimension(graph, layer, shape);
    const auto count = elements->value();
    if (!count) return beyond_64_bits(graph, layer);
    const auto outputs = static_cast<double>(*count);
    facts.outputs += outputs;
    const bool image = shape.rank() == kImageRank && shape[1].size > 0;
    facts.positions += image ? outputs / static_cast<double>(shape[1].size) : outputs;
  }
  return core::Done{};
}

/// Which outputs backward reads again, by what their readers keep.
class KeptOutputs {
 public:
  explicit KeptOutputs(std::size_t layers) : kept_(layers, false), source_(layers, -1) {}

  /// In the order of the layers.
  void add(const model::ModelGraph& graph, std::size_t index, const model::OpTraits& op) {
    const auto self = static_cast<LayerIndex>(index);
    source_[index] = op.family == OpFamily::view ? first_input(graph, self) : self;
    if (op.keeps == Keeps::output) keep(self);
    if (op.keeps != Keeps::input) return;
    const auto inputs = graph.inputs(graph.layers()[index]);
    if (inputs.empty()) keep(self - 1);
    for (const LayerIndex input : inputs) keep(input);
  }

  [[nodiscard]] bool kept(std::size_t index) const { return kept_[index]; }

 private:
  [[nodiscard]] LayerIndex first_input(const model::ModelGraph& graph, LayerIndex self) const {
    const auto inputs = graph.inputs(graph.layers()[static_cast<std::size_t>(self)]);
    const LayerIndex input = inputs.empty() ? self - 1 : inputs.front();
    return input < 0 ? -1 : source_[static_cast<std::size_t>(input)];
  }

  void keep(LayerIndex index) {
    if (index < 0 || source_[static_cast<std::size_t>(index)] < 0) return;
    kept_[static_cast<std::size_t>(source_[static_cast<std::size_t>(index)])] = true;
  }

  std::vector<bool> kept_;
  std::vector<LayerIndex> source_;  ///< the layer whose output a layer's is, through views; -1: the graph's input
};

/// Input and output of a convolution, where its input is a layer's output.
GPUMEM_INLINE double operands_of(const JobFacts& facts, const model::ModelGraph& graph, std::size_t index) {
  const auto inputs = graph.inputs(graph.layers()[index]);
  const LayerIndex input = inputs.empty() ? static_cast<LayerIndex>(index) - 1 : inputs.front();
  if (input < 0) return 0.0;
  return facts.layers[static_cast<std::size_t>(input)].outputs + facts.layers[index].outputs;
}

GPUMEM_INLINE void add_to_sums(const LayerFacts& layer, JobFacts& facts) {
  const auto family = static_cast<std::size_t>(layer.family);
  ++facts.count[family];
  facts.outputs[family] += layer.outputs;
  facts.parameters[family] += static_cast<double>(layer.parameters);
  facts.largest_parameters = std::max(facts.largest_parameters, static_cast<double>(layer.parameters));
  if (layer.family != OpFamily::view) facts.largest_output = std::max(facts.largest_output, layer.outputs);
}

GPUMEM_INLINE NetKind kind_of(const JobFacts& facts) {
  if (facts.layers_of(OpFamily::conv) > 0) return NetKind::cnn;
  if (facts.layers_of(OpFamily::attention) > 0 || facts.layers_of(OpFamily::embedding) > 0) return NetKind::transformer;
  for (const LayerFacts& layer : facts.layers) {
    if (layer.layer_norm) return NetKind::transformer;
  }
  return NetKind::mlp;
}

GPUMEM_INLINE ActivationFunction most_frequent(const std::vector<LayerFacts>& layers) {
  std::array<std::int64_t, static_cast<std::size_t>(ActivationFunction::none) + 1> seen{};
  for (const LayerFacts& layer : layers) ++seen[static_cast<std::size_t>(layer.function)];
  const auto none = seen.end() - 1;
  const auto most = std::max_element(seen.begin(), none);
  if (most == none || *most == 0) return ActivationFunction::none;
  return static_cast<ActivationFunction>(most - seen.begin());
}

}  // namespace job_facts_detail

GPUMEM_INLINE double JobFacts::parameter_bytes() const {
  return static_cast<double>(core::element_size(model::parameter_dtype(job->precision)));
}

GPUMEM_INLINE double JobFacts::activation_bytes() const {
  constexpr double kSingle = 4.0;
  constexpr double kHalf = 2.0;
  return model::is_float32(job->precision) ? kSingle : kHalf;
}

GPUMEM_INLINE double JobFacts::optimizer_states() const {
  return static_cast<double>(model::optimizer_states(job->optimizer));
}

GPUMEM_INLINE core::Result<JobFacts> facts_of(const model::TrainingJob& job, const model::ModelGraph& graph,
                                              const OutputsOf& outputs_of) {
  using namespace job_facts_detail;
  const std::vector<ClassFacts> classes = facts_by_class(graph);
  JobFacts facts;
  facts.job = &job;
  facts.graph = &graph;
  facts.layers.resize(graph.layers().size());
  KeptOutputs kept(facts.layers.size());
  for (std::size_t index = 0; index < facts.layers.size(); ++index) {
    const model::Layer& layer = graph.layers()[index];
    const model::OpTraits& op = graph.op_traits(layer) == nullptr ? kUnknown : *graph.op_traits(layer);
    LayerFacts& of = facts.layers[index];
    of.family = op.family;
    of.function = op.function;
    of.layer_norm = op.norm == model::NormKind::layer;
    of.conv1d_class = classes[layer.class_name].conv1d;
    of.not_quantizable = classes[layer.class_name].not_quantizable;
    of.parameters = layer.parameters;
    const core::Status taken = take_outputs(graph, layer, outputs_of(index), of);
    if (!taken) return taken.error();
    add_to_sums(of, facts);
    kept.add(graph, index, op);
    if (of.family == OpFamily::conv) {
      facts.convolution_operands = std::max(facts.convolution_operands, operands_of(facts, graph, index));
    }
  }
  for (std::size_t index = 0; index < facts.layers.size(); ++index) {
    if (kept.kept(index)) facts.kept += facts.layers[index].outputs;
  }
  facts.kind = kind_of(facts);
  facts.function = most_frequent(facts.layers);
  return facts;
}

GPUMEM_INLINE core::Result<JobFacts> facts_of(analysis::Analysis& analysis) {
  const model::TrainingJob& job = analysis.job();
  const model::ModelGraph& given = *job.graph;
  if (given.edges_inferred() && given.shapes_printed()) {
    return facts_of(job, given, [&](std::size_t layer) { return given.outputs(given.layers()[layer]); });
  }
  const auto wired = analysis.adapted();
  if (!wired) return wired.error();
  return facts_of(job, (*wired)->graph(), [&](std::size_t layer) { return (*wired)->outputs(layer); });
}

namespace replay_figures_detail {

GPUMEM_INLINE double mib(std::int64_t bytes) { return static_cast<double>(bytes) / 1048576.0; }

GPUMEM_INLINE std::array<double, kReplayFigures> figures_of(const analysis::JobRun& of_job) {
  std::array<double, kReplayFigures> figures{};
  const auto set = [&](ReplayFigure figure, double value) { figures[static_cast<std::size_t>(figure)] = value; };
  const analysis::AllocatorRun& run = of_job.run;
  set(ReplayFigure::device, mib(of_job.beside().expected.count() + run.peak_reserved));
  set(ReplayFigure::reserved, mib(run.peak_reserved));
  set(ReplayFigure::allocated, mib(run.peak_allocated));
  set(ReplayFigure::workspace, mib(run.at_peak[analysis::kWorkspaceCategory]));
  set(ReplayFigure::fragmentation, mib(run.peak_reserved - run.peak_allocated));
  set(ReplayFigure::context, mib(of_job.beside().expected.count()));
  set(ReplayFigure::fits, of_job.fits ? 1.0 : 0.0);
  set(ReplayFigure::retries, static_cast<double>(run.retries));
  return figures;
}

}  // namespace replay_figures_detail

GPUMEM_INLINE core::Result<std::array<double, kReplayFigures>> replay_figures(analysis::Analysis& analysis,
                                                                              const device::GpuProfile& gpu,
                                                                              Needs needs,
                                                                              const device::AllocatorOptions& options) {
  const core::Result<analysis::JobRun> by_rule = analysis.run(gpu, options);
  if (!by_rule) return by_rule.error();
  const auto source = analysis.source();
  if (!source) return source.error();
  std::array<double, kReplayFigures> figures = replay_figures_detail::figures_of(*by_rule);
  if (needs != Needs::variants || !source->convolves) return figures;
  const auto least = static_cast<double>(std::max<std::int64_t>(by_rule->run.peak_reserved, 1));
  device::GpuProfile varied = gpu;
  std::size_t figure = kFirstVariantFigure;
  for (const device::WorkspaceVariant& variant : device::workspace_variants()) {
    varied.convolution_workspace.variant = variant;
    const core::Result<analysis::JobRun> other = analysis.run(varied, options);
    if (!other) return other.error();
    figures[figure++] = std::log(static_cast<double>(other->run.peak_reserved) / least);
  }
  return figures;
}

GPUMEM_INLINE core::Status add_replay(JobFacts& facts, const FeatureReader& reader, analysis::Analysis& analysis,
                                      const device::GpuProfile& gpu, const device::AllocatorOptions& options) {
  if (!reader.needs(Needs::replay)) return core::Done{};
  const Needs needs = reader.needs(Needs::variants) ? Needs::variants : Needs::replay;
  const auto figures = replay_figures(analysis, gpu, needs, options);
  if (!figures) return figures.error();
  facts.replay = *figures;
  return core::Done{};
}

}  // namespace gpumem::ml
