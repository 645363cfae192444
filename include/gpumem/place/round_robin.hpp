// Enters: a request and the server. Leaves: the next open GPUs in turn, beginning behind the last one that was given.
// CARMA's "OR-RR", which heeds neither memory nor activity: see policy.hpp for how to have that.
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
