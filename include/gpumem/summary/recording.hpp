// Input: a recording which gpumem.record writes of a training step in PyTorch (src/python/gpumem/record/writer.py has
// the format).
// Output: a ModelGraph that names its modules and holds the StepRecording.
// Units: those of StepRecording.
//
// A recording is untrusted input: every index is checked here, so that later stages do not have to.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/model/step_recording.hpp"
#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/recording_fields.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& recording();

// Input: the fields of a recording.
// Output: the recording with every index checked and every call given its layer.
// Units: those of StepRecording.

/// Later stages may follow every index of the recording when this is done. `fields.recording` has its strides, element
/// types and layers then. Output: the modules that its calls name, each once, as indices into the strings; their order
/// numbers the layers. Errors: malformed_input with the JSON pointer of what points nowhere.
[[nodiscard]] core::Result<std::vector<std::uint32_t>> check_recording(RecordingFields& fields);

namespace recording_detail {

using model::StepRecording;

using core::malformed;

/// "layer1.0.conv1" of "layer1.0.conv1.weight".
inline std::string_view module_of(std::string_view parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : parameter.substr(0, dot);
}

/// Elements of each parameter, by the path of its module: "layer1.0.conv1.weight" is layer1.0.conv1's. Nothing: one
/// that is too large, or that changes with the batch.
struct ModuleParameters {
  std::int64_t all = 0;
  std::int64_t frozen = 0;
};
inline core::Result<std::map<std::string, ModuleParameters>> count_parameters(const StepRecording& recording) {
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
inline core::Result<model::ModelGraph> graph_of(StepRecording recording, const std::vector<std::uint32_t>& modules,
                                                const std::vector<std::string>& warnings, const ReadOptions& options) {
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

inline std::optional<std::size_t> sniff(std::string_view text, std::size_t from) {
  if (from > 0 || !is_recording(text)) return std::nullopt;
  return text.find('{');
}

inline core::Result<model::ModelGraph> parse(std::string_view text, std::size_t begin, const ReadOptions& options) {
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

inline const Format& recording() {
  static constexpr Format kFormat = {"recording", "python3 -m gpumem.record", recording_detail::sniff,
                                     recording_detail::parse};
  return kFormat;
}

namespace recording_checks_detail {

using core::malformed;
using core::Status;

class Checker {
 public:
  explicit Checker(RecordingFields& fields) : fields_(fields), recording_(fields.recording) {}

  core::Result<std::vector<std::uint32_t>> run() {
    using Check = Status (Checker::*)();
    constexpr std::array<Check, 3> kChecks = {&Checker::check_tables, &Checker::check_calls, &Checker::check_events};
    for (const Check check : kChecks) {
      if (const Status done = (this->*check)(); !done) return done.error();
    }
    note_libraries();
    return std::move(modules_);
  }

 private:
  static core::Error beyond(std::string_view table, std::size_t index, std::string_view into) {
    return core::below(table, core::below(index, malformed("points beyond " + core::quoted(into))));
  }
  [[nodiscard]] bool all_below(model::Slice slice, std::size_t end) const {
    for (const std::int64_t value : recording_.list(slice)) {
      if (static_cast<std::uint64_t>(value) >= end) return false;
    }
    return true;
  }

  /// Strides are in the table of expressions after the sizes.
  Status check_tables() {
    dims_ = recording_.expressions.size();
    const auto dims = static_cast<std::int64_t>(dims_);
    recording_.expressions.insert(recording_.expressions.end(), fields_.strides.begin(), fields_.strides.end());
    for (std::size_t index = 0; index < recording_.tensors.size(); ++index) {
      model::RecordedTensor& tensor = recording_.tensors[index];
      if (!all_below(tensor.dims, dims_)) return beyond("tensors", index, "dims");
      if (tensor.layout == model::RecordedTensor::Layout::dense && !is_order(tensor)) {
        return core::below("tensors", core::below(index, malformed("has a layout that is not an order of its axes")));
      }
      if (tensor.layout == model::RecordedTensor::Layout::strided) {
        for (std::uint32_t axis = 0; axis < tensor.order.count; ++axis) {
          recording_.numbers[tensor.order.first + axis] += dims;
        }
      }
      if (static_cast<std::uint64_t>(fields_.dtypes[index]) >= recording_.strings.size()) {
        return beyond("tensors", index, "strings");
      }
      set_dtype(tensor, recording_.strings[static_cast<std::size_t>(fields_.dtypes[index])]);
    }
    for (std::size_t index = 0; index < recording_.sizes.size(); ++index) {
      if (!all_below(recording_.sizes[index].dims, dims_)) return beyond("sizes", index, "dims");
    }
    return core::Done{};
  }
  [[nodiscard]] bool is_order(const model::RecordedTensor& tensor) {
    order_.assign(tensor.order.count, false);
    for (const std::int64_t axis : recording_.list(tensor.order)) {
      if (static_cast<std::uint64_t>(axis) >= order_.size() || order_[static_cast<std::size_t>(axis)]) return false;
      order_[static_cast<std::size_t>(axis)] = true;
    }
    return true;
  }
  static void set_dtype(model::RecordedTensor& tensor, std::string_view name) {
    if (const auto known = core::dtype_from(name)) {
      tensor.dtype = *known;
      tensor.element_bytes = core::element_size(*known);
      return;
    }
    // Types that no rule asks for: complex numbers and those of 8 bits.
    tensor.element_bytes = name == "complex128" ? 16 : name == "complex64" ? 8 : name.starts_with("float8") ? 1 : 4;
    tensor.dtype = tensor.element_bytes == 1 ? core::DType::uint8 : core::DType::float32;
  }

  Status check_calls() {
    std::unordered_map<std::uint32_t, std::uint32_t> layers;
    const auto layer_of = [&](std::uint32_t string) {
      const auto [at, added] = layers.try_emplace(string, static_cast<std::uint32_t>(modules_.size()));
      if (added) modules_.push_back(string);
      return at->second;
    };
    for (std::size_t index = 0; index < recording_.calls.size(); ++index) {
      model::RecordedCall& call = recording_.calls[index];
      if (call.op >= recording_.strings.size() || fields_.call_modules[index] >= recording_.strings.size()) {
        return beyond("calls", index, "strings");
      }
      if (!all_below(call.inputs, recording_.tensors.size()) || !all_below(call.outputs, recording_.tensors.size())) {
        return beyond("calls", index, "tensors");
      }
      call.layer = layer_of(fields_.call_modules[index]);
    }
    for (std::size_t index = 0; index < recording_.parameters.size(); ++index) {
      const model::RecordedParameter& parameter = recording_.parameters[index];
      if (parameter.name >= recording_.strings.size()) return beyond("parameters", index, "strings");
      if (parameter.tensor >= recording_.tensors.size()) return beyond("parameters", index, "tensors");
      const auto made = static_cast<std::int64_t>(fields_.released.size());
      if (parameter.allocation >= made || parameter.gradient >= made) return beyond("parameters", index, "events");
    }
    for (std::size_t index = 0; index < recording_.kernels.size(); ++index) {
      if (recording_.kernels[index].call >= recording_.calls.size()) return beyond("kernels", index, "calls");
    }
    return core::Done{};
  }

  Status check_events() {
    using EventKind = model::RecordedEvent::Kind;
    recording_.allocations = static_cast<std::uint32_t>(fields_.released.size());
    const auto calls = static_cast<std::int64_t>(recording_.calls.size());
    for (const model::RecordedEvent& event : recording_.events) {
      const bool of_call =
          event.kind == EventKind::begin || event.kind == EventKind::library || event.kind == EventKind::end;
      if ((of_call && static_cast<std::int64_t>(event.what) >= calls) ||
          (event.kind == EventKind::allocate && event.call >= calls)) {
        return core::below("events", malformed("name a call beyond \"calls\""));
      }
      if (event.kind == EventKind::allocate && event.what >= recording_.sizes.size()) {
        return core::below("events", malformed("name a size beyond \"sizes\""));
      }
    }
    return core::Done{};
  }

  void note_libraries() {
    for (const model::RecordedCall& call : recording_.calls) {
      const std::string& op = recording_.strings[call.op];
      recording_.convolves = recording_.convolves || op.find("convolution") != std::string::npos;
      recording_.normalises = recording_.normalises || op.find("_batch_norm") != std::string::npos;
    }
  }

  RecordingFields& fields_;
  model::StepRecording& recording_;
  std::vector<bool> order_;
  std::vector<std::uint32_t> modules_;
  std::size_t dims_ = 0;
};

}  // namespace recording_checks_detail

inline core::Result<std::vector<std::uint32_t>> check_recording(RecordingFields& fields) {
  return recording_checks_detail::Checker(fields).run();
}

}  // namespace gpumem::summary
