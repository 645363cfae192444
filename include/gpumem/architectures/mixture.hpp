// Input: tokens, and the layers of one expert; or the weights of all experts in one tensor.
// Output: the sum of the experts' results, computed as transformers does: in a loop over the experts, or of all at once
// (torch._grouped_mm). How many tokens an expert gets depends on the data; here each gets the same number.
// Source: transformers 4.48, models/mixtral/modeling_mixtral.py; 4.51, models/deepseek_v3/modeling_deepseek_v3.py; 5.0,
// integrations/moe.py: grouped_mm_experts_forward.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/architectures/forward.hpp"

namespace gpumem::architectures {

struct Mixture {
  std::int64_t experts = 1;
  std::int64_t per_token = 1;
  std::int64_t inner = 1;  ///< of an expert's feed-forward layer
  std::string expert_class = {};
};

/// Experts whose weights are one tensor each.
struct GroupedExperts {
  std::string_view list_class = {};
  std::int64_t width = 1;
  std::string_view activation = "silu";
  bool transposed = true;  ///< [experts, out, in], as F.linear has it; else [experts, in, out]
  bool bias = false;
};

/// The names of an expert's three projections, and whether they have biases.
struct GatedNames {
  std::string_view gate = "gate_proj";
  std::string_view up = "up_proj";
  std::string_view down = "down_proj";
  bool bias = false;
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
  const std::int64_t first = f.calls_one_expert() ? mixture.experts - 1 : 0;
  for (std::int64_t index = first; index < mixture.experts && !f.failed(); ++index) {
    const InModule one(f, std::to_string(index), mixture.expert_class);
    f.part_of_expert(static_cast<std::uint32_t>(index + 1));
    const Tensor made = expert(share(input));
    const Tensor weight = share(f.slice(weights, 2, 0, 1));
    sum = f.call("scatter_tokens", {sum, f.multiply(made, weight)});
    f.part_of_expert(0);
  }
  return sum;
}

/// The same of all experts at once. `gated(wide)` makes [R, inner] of gates and values [R, 2 inner].
template <typename Gated>
Tensor add_grouped_experts(Forward& f, const Mixture& m, const GroupedExperts& all, Tensor input, Tensor weights,
                           Gated gated) {
  const InModule inside(f, "experts", all.list_class);
  const auto sorted = [&](Tensor of) {
    return f.call("gather_tokens", {of}, {{"experts", m.experts}, {"per_token", m.per_token}, {"ranks", m.experts}});
  };
  const auto product = [&](std::string_view name, Tensor rows, std::int64_t in, std::int64_t out) {
    const Sizes shape = all.transposed ? Sizes{m.experts, out, in} : Sizes{m.experts, in, out};
    const Tensor weight = f.parameter(name, shape);
    const Tensor made =
        f.call("grouped_product", {rows, weight}, {{"transposed", all.transposed}, {"of_all_experts", true}});
    if (!all.bias) return made;
    const Tensor bias = f.parameter(std::string(name) + "_bias", {m.experts, out});
    return f.add(made, f.call("expert_biases", {bias, made}));
  };
  const Tensor sum = f.call("token_zeros", {input});
  const Tensor rows = sorted(input);
  const Tensor row_weights = f.call("ordered_rows", {sorted(f.slice(weights, 2, 0, 1))});
  const Tensor grouped = f.call("ordered_rows", {rows});
  const Tensor wide = product("gate_up_proj", grouped, all.width, 2 * m.inner);
  const Tensor active = gated(wide);
  const Tensor made = f.multiply(product("down_proj", active, m.inner, all.width), row_weights);
  const Tensor restored = f.as_type_of(f.call("ordered_rows", {made}), input);
  const Tensor added = f.call("scatter_tokens", {sum, restored});
  return f.leave_function(added, {rows, grouped, wide, active, made, row_weights});
}

/// act(gate) * value, of the two halves of what a product made.
inline Tensor gated_halves(Forward& f, std::int64_t inner, std::string_view activation, Tensor wide) {
  const std::vector<Tensor> halves = f.split(wide, 1, {inner, inner});
  return f.multiply(f.activation("act_fn", halves[0], activation), halves[1]);
}

/// The same with halves that are gated so.
inline Tensor add_grouped_experts(Forward& f, const Mixture& m, const GroupedExperts& all, Tensor input,
                                  Tensor weights) {
  const auto gated = [&](Tensor wide) { return gated_halves(f, m.inner, all.activation, wide); };
  return add_grouped_experts(f, m, all, input, weights, gated);
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
  const Linear linear = {.bias = names.bias};
  const Tensor gate = forward.linear(names.gate, input, width, inner, linear);
  const Tensor open = forward.activation("act_fn", gate, activation);
  const Tensor up = forward.linear(names.up, input, width, inner, linear);
  return forward.linear(names.down, forward.multiply(open, up), inner, width, linear);
}

/// Experts that the softmax of a linear layer chooses, in the module that is open.
inline Tensor softmax_experts(Forward& f, const Mixture& m, std::int64_t width, std::string_view activation,
                              std::string_view router, Tensor input, const GatedNames& names = {}) {
  const Tensor scores = f.linear(router, input, width, m.experts, {.bias = false});
  const Tensor weights = f.call("softmax", {f.to(scores, "float32")});
  const Tensor chosen = f.as_type_of(f.slice(weights, 2, 0, m.per_token), input);
  const auto expert = [&](Tensor rows) { return gated_layer(f, width, m.inner, activation, rows, names); };
  return add_experts(f, m, input, chosen, f.call("token_zeros", {input}), expert);
}

/// That the routing is taken to be even.
inline void warn_of_routing(Forward& forward) {
  forward.warn("tokens are assumed to be spread evenly over the experts; in fact it depends on the data");
}

}  // namespace gpumem::architectures
