#include "estimate_result.hpp"

#include <cstddef>
#include <string>

#include "message.hpp"
#include "sized.hpp"

namespace gpumem::capi {

gpumem_verdict verdict_of(estimate::Verdict verdict) {
  switch (verdict) {
    case estimate::Verdict::fits: return GPUMEM_FITS;
    case estimate::Verdict::tight: return GPUMEM_TIGHT;
    case estimate::Verdict::does_not_fit: return GPUMEM_DOES_NOT_FIT;
    case estimate::Verdict::unknown: break;
  }
  return GPUMEM_NOT_KNOWN;
}

namespace {

using estimate::MemoryEstimate;

std::int64_t told(const std::optional<core::Bytes>& bytes) { return bytes ? bytes->count() : kNotTold; }

gpumem_estimate_result result_of(const MemoryEstimate& estimate, const device::GpuProfile& gpu) {
  gpumem_estimate_result result = GPUMEM_ESTIMATE_RESULT_INIT;
  result.expected_bytes = estimate.expected.count();
  result.lower_bytes = estimate.lower.count();
  result.upper_bytes = estimate.upper.count();
  result.allocated_bytes = told(estimate.allocated);
  result.reserved_bytes = told(estimate.reserved);
  result.device_bytes = told(estimate.device);
  result.capacity_bytes = gpu.capacity().count();
  const estimate::Breakdown& parts = estimate.breakdown;
  const auto part = [&](std::string_view name, core::Bytes bytes) {
    return estimate.tells(name) ? bytes.count() : kNotTold;
  };
  result.context_bytes = part("context", parts.context);
  result.parameters_bytes = part("parameters", parts.parameters);
  result.gradients_bytes = part("gradients", parts.gradients);
  result.optimizer_bytes = part("optimizer", parts.optimizer);
  result.activations_bytes = part("activations", parts.activations);
  result.workspace_bytes = part("workspace", parts.workspace);
  result.fragmentation_bytes = part("fragmentation", parts.fragmentation);
  result.upper_coverage = estimate.upper_coverage.value_or(static_cast<double>(kNotTold));
  result.retries = estimate.retries;
  result.layers = estimate.coverage.layers_total;
  result.unknown_layers = estimate.coverage.layers_unknown;
  result.fits = estimate.fits ? 1 : 0;
  result.out_of_domain = static_cast<std::int32_t>(estimate.out_of_domain.size());
  result.assumptions = static_cast<std::int64_t>(estimate.assumed.size());
  result.gpus = estimate.gpus;
  result.most_needed_bytes = estimate.most_needed.count();
  result.verdict = verdict_of(estimate.verdict);
  result.temporaries_bytes = part("temporaries", parts.temporaries);
  result.gathered_bytes = part("gathered", parts.gathered);
  result.communication_bytes = part("communication", parts.communication);
  result.upper_uncut_bytes = estimate.upper_uncut.count();
  return result;
}

/// For a program that was built before these were parts of their own: what it has no field for is where it was then.
void fold_parts(gpumem_estimate_result& result) {
  if (result.temporaries_bytes == kNotTold) return;
  result.activations_bytes += result.temporaries_bytes;
  result.parameters_bytes += result.gathered_bytes;
  result.workspace_bytes += result.communication_bytes;
}

/// "context: 550.0 MiB ...; edges: ..."
std::string assumed_text(const MemoryEstimate& estimate) {
  std::string text;
  for (const estimate::Assumption& assumption : estimate.assumed) {
    text += (text.empty() ? "" : "; ") + assumption.about + ": " + assumption.text;
  }
  return text;
}

}  // namespace

void give_estimate(const MemoryEstimate& estimate, const device::GpuProfile& gpu, gpumem_estimate_result* to) {
  const gpumem_estimate_result room = room_of(to);
  gpumem_estimate_result result = result_of(estimate, gpu);
  if (room.size <= offsetof(gpumem_estimate_result, temporaries_bytes)) fold_parts(result);
  result.assumed = room.assumed;
  result.assumed_size = room.assumed_size;
  write_text(assumed_text(estimate), room.assumed, room.assumed_size);
  give(result, to);
}

}  // namespace gpumem::capi
