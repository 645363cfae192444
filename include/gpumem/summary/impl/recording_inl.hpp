#pragma once

#include "gpumem/summary/recording.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "gpumem/core/deadline.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/summary/recording_checks.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::summary {

namespace recording_detail {

using model::StepRecording;

using core::malformed;

/// "layer1.0.conv1" of "layer1.0.conv1.weight".
GPUMEM_INLINE std::string_view module_of(std::string_view parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : parameter.substr(0, dot);
}

/// Elements of each parameter, by the path of its module: "layer1.0.conv1.weight" is layer1.0.conv1's. Nothing: one
/// that is too large, or that changes with the batch.
struct ModuleParameters {
  std::int64_t all = 0;
  std::int64_t frozen = 0;
};
GPUMEM_INLINE core::Result<std::map<std::string, ModuleParameters>> count_parameters(const StepRecording& recording) {
  std::map<std::string, ModuleParameters> counts;
  for (const model::RecordedParameter& parameter : recording.parameters) {
    const std::string& name = recording.strings[parameter.name];
    core::Checked elements = 1;
    for (const std::int64_t dim : recording.list(recording.tensors[parameter.tensor].dims)) {
      elements *= recording.expressions[static_cast<std::size_t>(dim)].at(1, 1).value_or(-1);
    }
    ModuleParameters& of = counts[std::string(module_of(name))];
    const auto all = (core::Checked(of.all) + elements).value();
    if (!all) return malformed("parameter " + core::quoted(name) + " has a size that does not fit 64 bits");
    if (!parameter.trained) of.frozen += *elements.value();
    of.all = *all;
  }
  return counts;
}

/// A layer for each module that calls something or holds parameters. Its class is what its first call computes.
GPUMEM_INLINE core::Result<model::ModelGraph> graph_of(StepRecording recording,
                                                       const std::vector<std::uint32_t>& modules,
                                                       const std::vector<std::string>& warnings,
                                                       const ReadOptions& options) {
  auto counts = count_parameters(recording);
  if (!counts) return counts.error();
  std::vector<std::string_view> first_op(modules.size());
  for (const model::RecordedCall& call : recording.calls) {
    std::string_view& op = first_op[call.layer];
    if (!op.empty()) continue;
    op = recording.strings[call.op];
    op.remove_prefix(std::min(op.size(), op.find("::") == std::string_view::npos ? 0 : op.find("::") + 2));
    op = op.substr(0, op.find('.'));
  }
  model::GraphBuilder builder("recording", options.file);
  const model::OpTraits* parameter_op = options.vocabulary->find_op(model::kParameterOp);
  const auto add = [&](std::string_view name, std::string_view class_name, const ModuleParameters& of, bool frozen) {
    (void)builder.add({.name = name.empty() ? "model" : name,
                       .class_name = class_name,
                       .op = parameter_op,
                       .parameters = frozen ? of.frozen : of.all - of.frozen,
                       .frozen = frozen});
  };
  for (std::size_t index = 0; index < modules.size(); ++index) {
    const std::string& name = recording.strings[modules[index]];
    const auto of = counts->find(name);
    add(name, name.empty() ? "outside modules" : first_op[index], of == counts->end() ? ModuleParameters() : of->second,
        false);
  }
  // After them, so that a call's layer is its module's number: frozen parts, and parameters of modules that call
  // nothing themselves.
  for (std::size_t index = 0; index < modules.size(); ++index) {
    const auto of = counts->find(recording.strings[modules[index]]);
    if (of == counts->end()) continue;
    if (of->second.frozen > 0) add(of->first, first_op[index], of->second, true);
    counts->erase(of);
  }
  for (const auto& [name, of] : *counts) {
    if (of.all > of.frozen) add(name, "parameters", of, false);
    if (of.frozen > 0) add(name, "parameters", of, true);
  }
  std::map<std::string_view, std::uint32_t> layer_of;
  for (std::uint32_t index = 0; index < builder.graph().layers().size(); ++index) {
    layer_of.try_emplace(builder.graph().name(builder.graph().layers()[index]), index);
  }
  for (model::RecordedParameter& parameter : recording.parameters) {
    const auto found = layer_of.find(module_of(recording.strings[parameter.name]));
    if (found != layer_of.end()) parameter.layer = found->second;
  }
  for (const std::string& warning : warnings) builder.warn(warning, 0);
  builder.recording(std::make_shared<const StepRecording>(std::move(recording)));
  return std::move(builder).build();
}

GPUMEM_INLINE std::optional<std::size_t> sniff(std::string_view text, std::size_t from) {
  if (from > 0 || !is_recording(text)) return std::nullopt;
  return text.find('{');
}

GPUMEM_INLINE core::Result<model::ModelGraph> parse(std::string_view text, std::size_t begin,
                                                    const ReadOptions& options) {
  constexpr core::JsonLimits kLimits = {.depth = 6, .values = std::size_t{1} << 24};
  const auto document = core::JsonDocument::parse(text.substr(begin), kLimits);
  if (!document) return core::Error(document.error()).in_file(options.file);
  core::Result<RecordingFields> fields = read_recording_fields(document->root());
  if (core::deadline_passed()) return core::deadline_error().in_file(options.file);
  if (!fields) return std::move(fields.error()).in_file(options.file);
  auto modules = check_recording(*fields);
  if (!modules) return std::move(modules.error()).in_file(options.file);
  auto graph = graph_of(std::move(fields->recording), *modules, fields->warnings, options);
  if (!graph) return std::move(graph.error()).in_file(options.file);
  return graph;
}

}  // namespace recording_detail

GPUMEM_INLINE const Format& recording() {
  static constexpr Format kFormat = {"recording", "python3 -m gpumem.record", recording_detail::sniff,
                                     recording_detail::parse};
  return kFormat;
}

}  // namespace gpumem::summary
