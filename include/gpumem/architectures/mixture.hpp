// Input: tokens, and the layers of one expert.
// Output: the sum of the experts' results, computed as transformers does: in a loop over the experts. How many tokens
// an expert gets depends on the data; here each gets the same number.
// Source: transformers 4.48, models/mixtral/modeling_mixtral.py; 4.51, models/deepseek_v3/modeling_deepseek_v3.py.
#pragma once

#include <string>
#include <string_view>

#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/architectures/forward.hpp"

namespace gpumem::architectures {

struct Mixture {
  std::int64_t experts = 1;
  std::int64_t per_token = 1;
  std::int64_t inner = 1;  ///< of an expert's feed-forward layer
  std::string expert_class = {};
};

/// The names of an expert's three projections.
struct GatedNames {
  std::string_view gate = "gate_proj";
  std::string_view up = "up_proj";
  std::string_view down = "down_proj";
};

/// down(act(gate(x)) * up(x)), in the module that is open.
Tensor gated_layer(Forward& forward, std::int64_t width, std::int64_t inner, std::string_view activation, Tensor input,
                   const GatedNames& names = {});

/// `sum` with what `expert(rows)` makes of each expert's rows, times the rows' weights [N, S, per token].
template <typename Expert>
Tensor add_experts(Forward& f, const Mixture& mixture, Tensor input, Tensor weights, Tensor sum, Expert expert) {
  const InModule list(f, "experts", "ModuleList");
  const auto share = [&](Tensor of) {
    return f.call("gather_tokens", {of}, {{"experts", mixture.experts}, {"per_token", mixture.per_token}});
  };
  for (std::int64_t index = 0; index < mixture.experts && !f.failed(); ++index) {
    const InModule one(f, std::to_string(index), mixture.expert_class);
    f.part_of_expert(static_cast<std::uint32_t>(index + 1));
    const Tensor made = expert(share(input));
    const Tensor weight = share(f.slice(weights, 2, 0, 1));
    sum = f.call("scatter_tokens", {sum, f.multiply(made, weight)});
    f.part_of_expert(0);
  }
  return sum;
}

/// More experts than any model has, in a layer or in all, or more a token than there are, is a fault of these fields.
inline void check_mixture(ConfigFields& config, const Mixture& mixture, std::int64_t layers,
                          std::string_view experts_field, std::string_view per_token_field) {
  constexpr std::int64_t kMostExperts = 4096;
  constexpr std::int64_t kMostInAll = 1 << 16;  // each is some layers of the graph
  if (mixture.experts > kMostExperts || mixture.experts * layers > kMostInAll)
    config.fail("no model has this many experts", experts_field);
  if (mixture.per_token > mixture.experts) config.fail("is more than there are experts", per_token_field);
}

inline Tensor gated_layer(Forward& forward, std::int64_t width, std::int64_t inner, std::string_view activation,
                          Tensor input, const GatedNames& names) {
  const Tensor gate = forward.linear(names.gate, input, width, inner, {.bias = false});
  const Tensor open = forward.activation("act_fn", gate, activation);
  const Tensor up = forward.linear(names.up, input, width, inner, {.bias = false});
  return forward.linear(names.down, forward.multiply(open, up), inner, width, {.bias = false});
}

/// That the routing is taken to be even.
inline void warn_of_routing(Forward& forward) {
  forward.warn("tokens are assumed to be spread evenly over the experts; in fact it depends on the data");
}

}  // namespace gpumem::architectures
