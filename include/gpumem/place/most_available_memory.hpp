// Enters: a request and the server. Leaves: the open GPUs with the most available memory (MAGM). CARMA's "OR-MAGM", and
// with an estimate "EST-MAGM". Available is what is free by monitoring and by what was set aside, whichever is less: a
// job that began a minute ago has not grown yet.
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
