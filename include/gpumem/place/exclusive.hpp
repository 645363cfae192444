// Input: a request and the server.
// Output: the first idle GPUs. A job has them to itself while it runs. This is CARMA's baseline ("exclusive"), and what
// schedulers do that know nothing about the jobs.
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
