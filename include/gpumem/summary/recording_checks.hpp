// Input: the fields of a recording.
// Output: the recording with every index checked and every call given its layer.
// Units: those of StepRecording.
#pragma once

#include <cstdint>
#include <vector>

#include "gpumem/summary/recording_fields.hpp"

namespace gpumem::summary {

/// Later stages may follow every index of the recording when this is done. `fields.recording` has its strides, element
/// types and layers then. Output: the modules that its calls name, each once, as indices into the strings; their order
/// numbers the layers. Errors: malformed_input with the JSON pointer of what points nowhere.
[[nodiscard]] core::Result<std::vector<std::uint32_t>> check_recording(RecordingFields& fields);

}  // namespace gpumem::summary
