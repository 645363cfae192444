// Enters: what a resource manager knows of its GPUs. Leaves: Server, plain values that a policy decides on. A MIG slice
// is a GPU of its own. Units: bytes; shares of the GPU from 0 to 1.
#pragma once

#include <string>
#include <vector>

#include "gpumem/core/bytes.hpp"

namespace gpumem::place {

/// A job that was placed on a GPU.
struct PlacedJob {
  std::string id;
  core::Bytes memory;      ///< what was set aside for it on this GPU
  double smact = 0.0;      ///< its expected SM activity; 0: not known
  bool exclusive = false;  ///< no other job may come to its GPU
};

struct ServerGpu {
  std::string id;       ///< "0", "node3:1", a MIG slice's UUID
  std::string profile;  ///< a profile's name ("a100-40gb"); empty: not told
  core::Bytes total;    ///< what jobs can have of it
  core::Bytes used;     ///< in use as monitored, by anybody
  double smact = 0.0;   ///< mean SM activity over the monitoring window
  std::vector<PlacedJob> jobs;

  /// What is set aside for the placed jobs together: they may not have grown to it yet.
  [[nodiscard]] core::Bytes set_aside() const;
  /// What a further job can count on: total less the larger of what is used and what is set aside; never below 0.
  [[nodiscard]] core::Bytes free() const;
};

struct Server {
  std::vector<ServerGpu> gpus;
};

}  // namespace gpumem::place

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/impl/server_inl.hpp"
#endif
