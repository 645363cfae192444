// Input: a target's name and an estimate.
// Output: what to ask this scheduler or launcher for. To add a target: a file here and a row in the list of
// targets_inl.hpp.
#pragma once

#include <span>
#include <string_view>

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

struct TargetEntry {
  std::string_view name;
  std::string_view description;  ///< one line for people
  core::Result<GpuRequest> (*make)(const Need& need);
  bool kubernetes = false;  ///< fills annotations and limits of a pod
};

/// Every target that gpumem has.
[[nodiscard]] std::span<const TargetEntry> targets();

/// The target of this name. Errors: invalid_argument, listing the names.
[[nodiscard]] core::Result<const TargetEntry*> find_target(std::string_view name);

/// Asks the target of this name for a job of this estimate. Errors: those of find_target(), of need_of() and of the
/// target.
[[nodiscard]] core::Result<GpuRequest> make_request(std::string_view target, const estimate::MemoryEstimate& estimate,
                                                    const device::GpuProfile& gpu,
                                                    const place::Margin& margin = {.bytes = {}, .upper = true},
                                                    const Site& site = {});

}  // namespace gpumem::request
