// Input: Machine, the GPUs of this machine.
// Output: place::Server, which a policy reads. A GPU gets the profile of its name if one is known. GPUs of compute mode
// "prohibited" are left out: nobody may use them. If a GPU of mode "exclusive process" has a process, that process
// counts as a job that must run by itself. With MPS this process is MPS' server, and its clients share the GPU.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/monitor/machine.hpp"
#include "gpumem/place/server.hpp"

namespace gpumem::monitor {

/// Which of the built-in profiles a GPU has.
struct ProfileMatch {
  std::string name;    ///< empty: none of them
  bool exact = false;  ///< by its name; else by its kind and its memory
};

/// By the name as the driver tells it, if memory agrees: "NVIDIA A100-SXM4-40GB" is a100-40gb. A name that no profile
/// has gets the one of the same kind whose memory is the same within 4 %: "NVIDIA A100 80GB PCIe" is a100-80gb.
[[nodiscard]] ProfileMatch profile_of(const LiveGpu& gpu);

struct LiveServer {
  place::Server server;
  std::vector<std::string> warnings;  ///< those of the machine, and what was assumed here
};

/// Errors: missing_information if no GPU is left.
[[nodiscard]] core::Result<LiveServer> live_server_of(const Machine& machine);
/// The same without the warnings.
[[nodiscard]] core::Result<place::Server> server_of(const Machine& machine);

/// Asks this machine's driver; takes as long as the window. Errors: those of Nvml and live_server_of().
[[nodiscard]] core::Result<LiveServer> read_server(std::chrono::milliseconds window = {});

/// "60s", "500ms", "2min", "0". Errors: invalid_argument; also beyond an hour.
[[nodiscard]] core::Result<std::chrono::milliseconds> parse_window(const std::string& text);

}  // namespace gpumem::monitor
