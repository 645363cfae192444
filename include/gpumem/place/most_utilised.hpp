// Input: a request and the server.
// Output: the open GPUs with the most SM activity (MUG). Busy GPUs are filled up to the cap, so that others stay idle
// for jobs that want a GPU of their own, or can be powered down.
#pragma once

#include <string_view>

#include "gpumem/place/policy.hpp"

namespace gpumem::place {

class MostUtilised final : public Policy {
 public:
  static constexpr std::string_view kName = "mug";

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& gpu) const override { return -gpu.smact; }
};

}  // namespace gpumem::place
