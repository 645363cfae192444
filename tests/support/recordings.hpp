// Recordings as text: a small one that a test can change, and those of tests/golden/recordings.
#pragma once

#include <string>
#include <string_view>

#include "gpumem/all.hpp"

namespace gpumem::testing {

/// One step of a linear layer of 3 inputs and 4 outputs without a bias, recorded at the batch sizes 2 and 4. The number
/// of its allocations: 0 the weight, 1 the input, 2 the output, 3 the weight's gradient.
inline const std::string kSmallRecording =
    R"({"format": "gpumem-recording", "version": 1, "title": "linear", "torch": "2.6.0", "capability": [8, 0],)"
    R"( "world_size": 1, "rank": 0, "axes": ["batch"], "recorded_at": [[2], [4]], "checked_at": [[3]],)"
    R"( "optimizer": "sgd", "precision": "fp32", "warnings": [["value", "a value was made up", "train.py:3", 2]],)"
    R"( "strings": ["float32", "aten::mm", "fc", "fc.weight", "aten::_to_copy", ""],)"
    R"( "dims": [[4], [3], [0, 1]],)"
    R"( "tensors": [[0, [0, 1], []], [0, [2, 1], []], [0, [2, 0], []], [0, [1, 0], [1, 0]]],)"
    R"( "sizes": [[4, [0, 1]], [4, [2, 1]], [4, [2, 0]]],)"
    R"( "calls": [[4, 5, 0, 0, [0], [0], []], [1, 2, 1, 0, [1, 3], [2], []]],)"
    R"( "parameters": [[3, 0, 1, 0, 3]], "kernels": [[1, 1]],)"
    R"( "events": [5, 0, 0, 0, 0, 0, 0, 0, 5, 4, 1, 0, 1, 0, -1, 2, 5, 1, 1, 2, 1, 0, 2, 0, 1, 3, 3, 1, 0, 4, 1,)"
    R"( 5, 2, 1, 0, 0, 0, -1, 5, 1, 2, 5, 3, 1, 5, 4, 2, 1, 1, 1, 3]})";

/// The text with one part of it replaced, which must be there.
inline std::string with(std::string text, std::string_view part, std::string_view by) {
  const std::size_t at = text.find(part);
  return at == std::string::npos ? "no such part: " + std::string(part) : text.replace(at, part.size(), by);
}

inline std::string golden_recording(const std::string& name) {
  return GPUMEM_SOURCE_DIR "/tests/golden/recordings/" + name + ".json.gz";
}

}  // namespace gpumem::testing
