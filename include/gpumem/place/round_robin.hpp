// Input: a request and the server.
// Output: the next open GPUs in turn, starting after the last one that was given. CARMA's "OR-RR", which looks at
// neither memory nor activity: policy.hpp says how to have that.
#pragma once

#include <string_view>

#include "gpumem/place/policy.hpp"

namespace gpumem::place {

class RoundRobin final : public Policy {
 public:
  static constexpr std::string_view kName = "round-robin";

  RoundRobin() : Policy(Rules{.takes_turns = true}) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& /*gpu*/) const override { return 0.0; }
};

}  // namespace gpumem::place
