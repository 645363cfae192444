#pragma once

#include "gpumem/summary/recording_checks.hpp"

#include <array>
#include <unordered_map>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/json.hpp"

namespace gpumem::summary {

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

GPUMEM_INLINE core::Result<std::vector<std::uint32_t>> check_recording(RecordingFields& fields) {
  return recording_checks_detail::Checker(fields).run();
}

}  // namespace gpumem::summary
