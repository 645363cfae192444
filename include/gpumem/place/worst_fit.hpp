// Input: a request and the server.
// Output: the GPUs in which the job fits with the most memory left. With an estimate this is the same as MAGM. A job
// without one goes to idle GPUs, while MAGM goes by the floor.
#pragma once

#include <string_view>

#include "gpumem/place/policy.hpp"

namespace gpumem::place {

class WorstFit final : public Policy {
 public:
  static constexpr std::string_view kName = "worst-fit";

  WorstFit() : Policy(Rules{.needs_estimate = true}) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& gpu) const override { return -static_cast<double>(gpu.free().count()); }
};

}  // namespace gpumem::place
