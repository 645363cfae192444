#pragma once

#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

GPUMEM_INLINE void check_mixture(ConfigFields& config, const Mixture& mixture, std::int64_t layers,
                                 std::string_view experts_field, std::string_view per_token_field) {
  constexpr std::int64_t kMostExperts = 4096;
  constexpr std::int64_t kMostInAll = 1 << 16;  // each is some layers of the graph
  if (mixture.experts > kMostExperts || mixture.experts * layers > kMostInAll)
    config.fail("no model has this many experts", experts_field);
  if (mixture.per_token > mixture.experts) config.fail("is more than there are experts", per_token_field);
}

GPUMEM_INLINE Tensor gated_layer(Forward& forward, std::int64_t width, std::int64_t inner, std::string_view activation,
                                 Tensor input, const GatedNames& names) {
  const Tensor gate = forward.linear(names.gate, input, width, inner, {.bias = false});
  const Tensor open = forward.activation("act_fn", gate, activation);
  const Tensor up = forward.linear(names.up, input, width, inner, {.bias = false});
  return forward.linear(names.down, forward.multiply(open, up), inner, width, {.bias = false});
}

GPUMEM_INLINE void warn_of_routing(Forward& forward) {
  forward.warn("tokens are assumed to be spread evenly over the experts; in fact it depends on the data");
}

}  // namespace gpumem::architectures
