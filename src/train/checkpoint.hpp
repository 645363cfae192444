// Input: the state of a run.
// Output: a file from which the state can be restored exactly. It is a safetensors file; what is not a tensor is in its
// metadata.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "train_network.hpp"

namespace gpumem::train {

/// `fingerprint` tells the training apart from others: a state goes on only where it came from.
[[nodiscard]] std::string write_state(const RunState& state, std::string_view fingerprint);

/// Errors: malformed_input; invalid_argument if it is the state of another training.
[[nodiscard]] core::Result<RunState> parse_state(std::string_view bytes, std::string_view fingerprint,
                                                 std::string_view file);

/// Nothing if there is no such file. Errors: those of parse_state(), and unreadable_file.
[[nodiscard]] core::Result<std::optional<RunState>> load_state(const std::string& path, std::string_view fingerprint);

/// Written to a temporary file and renamed. Errors: unreadable_file.
[[nodiscard]] core::Status save_state(const RunState& state, std::string_view fingerprint, const std::string& path);

}  // namespace gpumem::train
