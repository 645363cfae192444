// Input: a server as JSON, as a resource manager or `gpumem server` writes it.
// Output: Server; and from a Server the JSON again. Strict: an unknown field is an error.
//
//   {"format": "gpumem-server", "version": 1,
//    "gpus": [{"id": "0", "profile": "a100-40gb", "used_mib": 13312, "smact": 0.41,
//              "jobs": [{"id": "resnet50", "memory_mib": 12288, "smact": 0.38, "exclusive": false}]},
//             {"id": "1", "total_mib": 40506}]}
//
//   id          of the GPU, once on the server: an index, a UUID
//   profile     a name that `gpumem gpus` lists, MIG slices' too, or a path to one; total memory is the profile's
//   total_mib   what jobs can have of it; needed where there is no profile, and goes before the profile's
//   used_mib    in use by anybody, as nvidia-smi says; 0 if left out
//   smact       mean SM activity over the monitoring window, 0 to 1 (DCGM field 1002); 0 if left out
//   smact_source  where that is from: "dcgm", "gpm" (NVML's), or "utilisation", the share of time in which any kernel
//               ran, as nvidia-smi prints it, which is at least the SM activity; may be left out
//   jobs        those that were placed on it: id, and if known the memory that was set aside for it on this GPU, its
//               expected SM activity, and whether it must run by itself. A job of several GPUs is at each of them.
//
// Memory may be given in bytes instead: total_bytes, used_bytes, memory_bytes (NVML counts so). A MIG slice is a GPU
// like others; its id is the slice's, and the GPU that it is a part of is left out.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/place/server.hpp"

namespace gpumem::place {

/// Where profiles are from.
using FindProfile = std::function<core::Result<device::GpuProfile>(std::string_view name)>;

/// Errors: malformed_input, naming the line or the field, also for what validate() says about the server; unknown_gpu
/// and those of the profile. `file` is for messages.
[[nodiscard]] core::Result<Server> parse_server(std::string_view json, std::string_view file = {},
                                                const FindProfile& find_profile = device::find_profile);

/// What parse_server() reads as the same server: a GPU a line, memory in bytes, activity to four digits.
[[nodiscard]] std::string to_json(const Server& server);

}  // namespace gpumem::place
