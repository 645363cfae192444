// Input: a request and the server.
// Output: the open GPUs with the least SM activity (LUG). CARMA's "OR-LUG" and "EST-LUG".
#pragma once

#include <string_view>

#include "gpumem/place/policy.hpp"

namespace gpumem::place {

class LeastUtilised final : public Policy {
 public:
  static constexpr std::string_view kName = "lug";

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& gpu) const override { return gpu.smact; }
};

}  // namespace gpumem::place
