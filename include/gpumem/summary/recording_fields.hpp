// Input: the JSON of a recording.
// Output: its fields, read and in range one by one; what they point at is checked in recording_checks.hpp, because
// fields may be in any order.
// Units: those of StepRecording.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/named.hpp"
#include "gpumem/model/step_recording.hpp"

namespace gpumem::summary {

/// The phases in the order of the numbers that a file has for them (Phase in src/python/gpumem/record/run.py).
inline constexpr auto kRecordedPhases = std::to_array<model::Named<model::RecordedCall::Phase>>(
    {{model::RecordedCall::Phase::construction, "construction"},
     {model::RecordedCall::Phase::forward, "forward"},
     {model::RecordedCall::Phase::backward, "backward"},
     {model::RecordedCall::Phase::recomputation, "recomputation"},
     {model::RecordedCall::Phase::optimizer, "optimizer"},
     {model::RecordedCall::Phase::communication, "communication"},
     {model::RecordedCall::Phase::other, "other"}});

/// A recording whose indices may still point nowhere.
struct RecordingFields {
  model::StepRecording recording;
  std::vector<model::AxisExpression> strides;  ///< of all strided tensors, one after the other
  std::vector<std::int64_t> dtypes;            ///< of each tensor: an index into the strings
  std::vector<std::uint32_t> call_modules;     ///< of each call: an index into the strings
  std::vector<bool> released;                  ///< by allocation
  std::vector<std::string> warnings;           ///< one a row, with its place
};

/// Errors: malformed_input with the JSON pointer of what is missing, unknown, or of the wrong kind.
[[nodiscard]] core::Result<RecordingFields> read_recording_fields(const core::JsonValue& root);

}  // namespace gpumem::summary
