// Enters: a request and the server. Leaves: the first idle GPUs; a job is alone on them while it runs. CARMA's baseline
// ("exclusive") and what schedulers do that know nothing of the jobs.
#pragma once

#include <string_view>

#include "gpumem/place/policy.hpp"

namespace gpumem::place {

class Exclusive final : public Policy {
 public:
  static constexpr std::string_view kName = "exclusive";

  Exclusive() : Policy(Rules{.idle_only = true}) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& /*gpu*/) const override { return 0.0; }
};

}  // namespace gpumem::place
