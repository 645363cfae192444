#pragma once

#include "gpumem/monitor/machine.hpp"

namespace gpumem::monitor {

GPUMEM_INLINE std::string_view to_string(ActivitySource source) {
  switch (source) {
    case ActivitySource::none: break;
    case ActivitySource::utilisation: return "utilisation";
    case ActivitySource::gpm: return "gpm";
    case ActivitySource::dcgm: return "dcgm";
  }
  return "none";
}

GPUMEM_INLINE std::string_view to_string(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::shared: break;
    case ComputeMode::exclusive_process: return "exclusive_process";
    case ComputeMode::prohibited: return "prohibited";
  }
  return "shared";
}

}  // namespace gpumem::monitor
