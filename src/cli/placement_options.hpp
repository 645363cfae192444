// Input: the words for the policy that places jobs, and for its conditions.
// Output: the values that place/ takes. The commands that place share this.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/place/policies.hpp"

namespace gpumem::cli {

struct PlacementOptions {
  std::string policy;              ///< a policy's name; empty: as the command says
  std::string margin = "2GiB";     ///< as place::parse_margin() takes it
  std::string smact_cap = "0.80";  ///< or "none"
  std::string free_floor = "5GiB";
  bool idle_first = false;
};

/// In place of a server's file: the GPUs of this machine.
inline constexpr const char* kLiveServer = "live";

/// The server of this file, or this machine, with warnings on standard error. Errors: those of parse_server(), of
/// parse_window() and of read_server().
[[nodiscard]] core::Result<place::Server> server_from(const std::string& file, const std::string& window);
/// "gpumem: warning: ..." on standard error, one line a warning.
void print_live_warnings(const std::vector<std::string>& warnings);

/// A command that was called otherwise than it can be: an invalid_argument.
[[nodiscard]] core::Error wrong_usage(std::string message);
/// As core::parse_bytes() reads them. Errors: invalid_argument, naming the option.
[[nodiscard]] core::Result<core::Bytes> bytes_from(const std::string& text, std::string_view option);
/// "0.38". Errors: invalid_argument, naming the option and what it takes.
[[nodiscard]] core::Result<double> share_from(const std::string& text, std::string_view option, std::string_view takes);
/// "exclusive" or "grow", also as "growing". Errors: invalid_argument.
[[nodiscard]] core::Result<place::RecoveryRule> recovery_from(const std::string& text);
/// As many GPUs as the layout has, all connected; of a job on one GPU as many as `said`, each with a need like that.
/// Errors: invalid_argument where both say another number.
[[nodiscard]] core::Result<std::int64_t> gpus_to_place(std::int64_t layout, const std::optional<std::int64_t>& said);
/// Errors: invalid_argument, naming the option.
[[nodiscard]] core::Result<place::Conditions> conditions_from(const PlacementOptions& options);

}  // namespace gpumem::cli
