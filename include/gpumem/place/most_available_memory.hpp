// Input: a request and the server.
// Output: the open GPUs with the most available memory (MAGM). CARMA's "OR-MAGM", and with an estimate "EST-MAGM".
// Available is the smaller of two figures: what monitoring says is free, and what was not set aside. A job that began a
// minute ago has not grown yet.
#pragma once

#include <string_view>

#include "gpumem/place/policy.hpp"

namespace gpumem::place {

class MostAvailableMemory final : public Policy {
 public:
  static constexpr std::string_view kName = "magm";

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& gpu) const override { return -static_cast<double>(gpu.free().count()); }
};

}  // namespace gpumem::place
