// The calls of PEFT's adapters that scale, shift or turn what the base reads or leaves, or add to what attention
// leaves.
// Source: huggingface/peft 0.20.1.dev0 (5d602fd), tuners/: ia3, beft, road, oft, boft, hra, adaption_prompt: layer.py,
// forward of each; adaption_prompt/utils.py.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/adapt/peft_layer.hpp"
#include "gpumem/core/bytes.hpp"

namespace gpumem::adapt::peft_calls {

void ia3(PeftLayer& layer);
void beft(PeftLayer& layer);
void road(PeftLayer& layer);
void oft(PeftLayer& layer);
void boft(PeftLayer& layer);
void hra(PeftLayer& layer);
void adaption_prompt(PeftLayer& layer);

namespace peft_rotations_detail {

/// The last layers of feed-forward networks, whose input IA3 scales. Source: utils/constants.py,
/// TRANSFORMERS_MODELS_TO_IA3_FEEDFORWARD_MODULES_MAPPING.
inline constexpr std::array<std::string_view, 6> kFeedForward = {"down_proj",     "fc2",    "wo",
                                                                 "dense_4h_to_h", "fc_out", "c_proj"};

/// One of "up_proj+gate_proj", or of the usual ones.
inline bool scales_input(const PeftLayer& layer) {
  std::string_view named = layer.settings().text("feedforward_modules");
  const std::string_view leaf = layer.base().leaf();
  if (named == "usual") return std::ranges::find(kFeedForward, leaf) != kFeedForward.end();
  while (!named.empty()) {
    const std::size_t plus = named.find('+');
    const std::string_view one = named.substr(0, plus);
    if (leaf == one.substr(one.rfind('.') + 1)) return true;
    if (plus == std::string_view::npos) break;
    named.remove_prefix(plus + 1);
  }
  return false;
}

/// The blocks of a rotation: their number, and the length of each. Source: tuners/oft/layer.py,
/// adjust_oft_parameters(): the nearest number that divides the side.
inline std::int64_t nearest_divisor(std::int64_t side, std::int64_t wanted) {
  if (wanted >= side) return side;
  std::int64_t lower = 1;
  std::int64_t higher = side;
  for (std::int64_t one = 1; one <= side / one; ++one) {
    if (side % one != 0) continue;
    for (const std::int64_t divisor : {one, side / one}) {
      if (divisor <= wanted) lower = std::max(lower, divisor);
      if (divisor >= wanted) higher = std::min(higher, divisor);
    }
  }
  return wanted - lower <= higher - wanted ? lower : higher;
}

/// Of BOFT.
inline std::int64_t butterfly_factors(PeftLayer& layer) {
  const std::int64_t asked = layer.settings().whole("boft_n_butterfly_factor");
  if (asked == 1 || layer.settings().flag("fbd_cuda")) return asked;
  layer.remark("BOFT has one butterfly factor, as PEFT sets it without its CUDA extension; where that is built, say " +
               std::string("`peft_options=fbd_cuda=true` too"));
  return 1;
}

}  // namespace peft_rotations_detail

inline void ia3(PeftLayer& layer) {
  if (peft_rotations_detail::scales_input(layer)) {
    const PeftTensor scaling = layer.parameter("ia3_l", {layer.in()});
    const PeftTensor x = layer.cast_input();
    const PeftTensor typed = layer.cast_like(layer.mul(x, scaling), layer.input());
    const PeftTensor y = layer.base_linear(typed, layer.weight());
    layer.leave(layer.returned(y, {x, typed}));
    return;
  }
  const PeftTensor scaling = layer.parameter("ia3_l", {layer.out()});
  const PeftTensor y = layer.base_linear(layer.input(), layer.weight());
  layer.leave(layer.cast_like(layer.mul(y, scaling), y));
}

inline void beft(PeftLayer& layer) {
  const PeftTensor bias = layer.parameter("beft_bias", {layer.out()});
  const PeftTensor& y = layer.output();
  layer.leave(layer.cast_like(layer.add(y, bias), y));
}

/// Two figures of the output at a time are turned and scaled, in the adapters' type.
inline void road(PeftLayer& layer) {
  const std::int64_t out = layer.out();
  const std::string_view variant = layer.settings().text("variant");
  const std::int64_t count = variant == "road_1" ? out / 2 : variant == "road_4" ? 2 * out : out;
  const PeftTensor theta = layer.parameter("road_theta", {count});
  const PeftTensor alpha = layer.parameter("road_alpha", {count});
  const auto column = [&](const char* name) {
    return layer.function(name, {theta, alpha}, {out}, {{"saved", std::int64_t{3}}, {"kept", PeftLayer::Sizes{out}}});
  };
  const PeftTensor first = column("first_col");
  const PeftTensor second = column("second_col");
  const PeftTensor y = layer.cast_like(layer.output(), theta);
  const PeftTensor turned =
      layer.function("rotate_half", {y}, {}, {{"scratch_row", PeftLayer::Sizes{std::max<std::int64_t>(out / 2, 1)}}});
  const PeftTensor straight = layer.mul(y, first);
  const PeftTensor crossed = layer.mul(turned, second);
  layer.leave(layer.cast_like(layer.returned(layer.add(straight, crossed), {y, turned}), layer.output()));
}

/// OFTRotationModule.forward: the input's blocks are turned, each by its own matrix, which Cayley's formula makes of
/// half a square. The product's blocks are copied into their order. A base in fewer bits is called as it is
/// (oft/bnb.py).
inline void oft(PeftLayer& layer) {
  const PeftSettings& settings = layer.settings();
  const std::int64_t in = layer.in();
  const std::int64_t asked = layer.rank();  // the number of blocks
  const std::int64_t length = std::max<std::int64_t>(settings.whole("oft_block_size"), 1);
  const std::int64_t size = asked > 0 ? in / peft_rotations_detail::nearest_divisor(in, asked)
                                      : peft_rotations_detail::nearest_divisor(in, length);
  const std::int64_t blocks = in / std::max<std::int64_t>(size, 1);
  const std::int64_t own = settings.flag("block_share") ? 1 : blocks;
  const std::int64_t half = size * (size - 1) / 2;
  const std::int64_t square = own * size * size;
  (void)layer.buffer("rows", {std::max<std::int64_t>(half, 1)}, "int64");
  (void)layer.buffer("cols", {std::max<std::int64_t>(half, 1)}, "int64");
  const PeftTensor angles = layer.parameter("oft_R", {own, std::max<std::int64_t>(half, 1)});
  const bool series = settings.flag("use_cayley_neumann");
  const std::int64_t terms = series ? settings.whole("num_cayley_neumann_terms") : 4;
  // Kept: the skew matrix, and its powers but the last; or the solution and its factors.
  const auto kept = static_cast<std::size_t>(std::clamp<std::int64_t>(terms - 2, 1, 16));
  const PeftTensor turn = layer.function("cayley", {angles}, {own, size * size},
                                         {{"kept", PeftLayer::Sizes(kept, square)},
                                          {"scratch", PeftLayer::Sizes{square, square}},
                                          {"backward", PeftLayer::Sizes{square, square, square}}});
  const PeftTensor x = layer.cast_input();
  const PeftTensor product = layer.function("einsum", {x, turn}, {}, {{"saved", std::int64_t{3}}});
  const PeftTensor ordered = layer.function("reshape", {product}, {}, {});
  const PeftTensor turned = layer.returned(layer.cast_like(ordered, layer.input()), {x, product, ordered, turn});
  layer.leave(layer.base_call(turned));
}

/// The rotation is a whole square matrix: a product of factors, each with blocks on its diagonal between two
/// permutations, which are a buffer of each layer. Source: update_layer(): where PEFT cannot build its extension in
/// CUDA (fbd), there is one factor, whatever the settings say.
inline void boft(PeftLayer& layer) {
  const std::int64_t in = layer.in();
  const std::int64_t given = layer.settings().whole("boft_block_size");
  const std::int64_t number = layer.settings().whole("boft_block_num");
  const std::int64_t asked = given > 0 ? given : in / std::max<std::int64_t>(number, 1);
  const std::int64_t size = std::clamp<std::int64_t>(asked, 1, std::max<std::int64_t>(in, 1));
  const std::int64_t blocks = in / std::max<std::int64_t>(size, 1);
  const std::int64_t factors = peft_rotations_detail::butterfly_factors(layer);
  const std::int64_t square = core::bounded_product({factors, blocks, size, size});
  const PeftLayer::Sizes wide = factors == 1 ? PeftLayer::Sizes{in, in} : PeftLayer::Sizes{factors, in, in};
  const PeftTensor permutation = layer.buffer("boft_P", wide);
  const PeftTensor angles = layer.parameter("boft_R", {factors * blocks, size * size});
  const PeftTensor scaling = layer.parameter("boft_s", {layer.out()});
  // Kept of the solution: itself and its factors.
  const PeftTensor turn = layer.function("cayley", {angles}, {factors * blocks, size * size},
                                         {{"kept", PeftLayer::Sizes{square, square}},
                                          {"scratch", PeftLayer::Sizes{square, square}},
                                          {"backward", PeftLayer::Sizes{square, square, square}}});
  const PeftTensor diagonal = layer.function("block_diag", {turn}, wide, {});
  const PeftTensor permuted = layer.cast_like(permutation, layer.input());
  const PeftTensor typed = layer.cast_like(diagonal, layer.input());
  const PeftTensor right = layer.matmul(typed, layer.turned(permuted));
  const PeftTensor all = layer.matmul(permuted, right);
  PeftTensor butterfly = layer.part(all, {in, in});
  for (std::int64_t at = 1; at < factors; ++at) butterfly = layer.matmul(layer.part(all, {in, in}), butterfly);
  const PeftTensor unit = layer.function("eye", {permuted}, {in, in}, {{"detached", true}});
  const PeftTensor rotation = layer.matmul(butterfly, unit);
  const PeftTensor turned = layer.matmul(layer.input(), rotation);
  PeftTensor y = layer.base_linear(turned, layer.weight());
  if (layer.has_bias()) y = layer.function("sub", {y}, {}, {});
  PeftTensor scaled = layer.mul(y, scaling);
  if (layer.has_bias()) scaled = layer.function("add_bias", {scaled}, {}, {});
  layer.leave(layer.returned(layer.cast_like(scaled, layer.input()),
                             {turned, y, rotation, diagonal, permuted, right, all, butterfly, unit}));
}

/// A chain of reflections, each a whole square matrix that is kept; then the weight times the last of them.
inline void hra(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const std::int64_t in = layer.in();
  const std::int64_t whole = in * in;
  const bool orthogonal = layer.settings().flag("apply_GS");
  const PeftTensor u = layer.parameter("hra_u", {in, rank});
  const std::size_t links = orthogonal ? 1 : static_cast<std::size_t>(std::clamp<std::int64_t>(rank, 1, 4096));
  PeftLayer::Sizes kept(orthogonal ? 0 : links, whole);
  kept.push_back(2 * in * rank);
  const PeftTensor chain = layer.function("reflections", {u}, {in, in},
                                          {{"saved", std::int64_t{1}},
                                           {"kept", kept},
                                           {"scratch", PeftLayer::Sizes{whole, whole}},
                                           {"backward", PeftLayer::Sizes{whole, whole}}});
  const PeftTensor unit = layer.function("eye", {u}, {in, in}, {{"detached", true}});
  const PeftTensor reflected = layer.matmul(unit, chain);
  const PeftTensor original = layer.cast_like(layer.weight(), u);
  const PeftTensor weight = layer.matmul(original, reflected);
  const PeftTensor x = layer.cast_input();
  const PeftTensor y = layer.base_linear(x, weight);
  layer.leave(layer.returned(layer.cast_like(y, layer.input()), {x, weight, original, chain, reflected}));
}

namespace peft_rotations_detail {

/// llama_compute_query_states: the queries once more, turned by their positions.
inline PeftTensor query_again(PeftLayer& layer) {
  const PeftTensor query = layer.lent_linear("q_proj", layer.lent_input("q_proj"));
  const PeftTensor straight = layer.scale(query);
  const PeftTensor half = layer.function("rotate_half", {query}, {}, {});
  const PeftTensor turned = layer.add(straight, layer.scale(half));
  return layer.function("reshape", {turned}, {}, {});
}

}  // namespace peft_rotations_detail

/// AdaptedAttention.forward: the queries look at a learned prompt too, through the layer's own projections; a gate
/// weighs what they find there. Called for queries, keys, values and the output in their order.
inline void adaption_prompt(PeftLayer& layer) {
  const PeftTensor output = layer.base_linear(layer.input(), layer.weight());
  layer.lend();
  if (layer.base().leaf() != "o_proj") return layer.leave(output);
  const std::int64_t length = layer.settings().whole("adapter_len");
  const std::int64_t width = layer.lent_input("q_proj").shape[layer.input().shape.rank() - 1].size;
  const PeftTensor prompt = layer.base_parameter("adaption_prompt", {length, width});
  const PeftTensor gate = layer.base_parameter("adaption_gate", {1});
  // Keys and values of the prompt, for each sample, and then for each head that shares them.
  const auto looked_at = [&](std::string_view leaf) {
    const PeftTensor each = layer.for_each_sample(layer.lent_linear(leaf, prompt));
    return layer.function("repeat_interleave", {each}, {}, {{"out_features", layer.in()}});
  };
  const PeftTensor key = looked_at("k_proj");
  const PeftTensor value = looked_at("v_proj");
  const PeftTensor query = peft_rotations_detail::query_again(layer);
  const PeftLayer::Attributes both = {{"saved", std::int64_t{3}}, {"out_features", layer.shared().heads * length}};
  const PeftTensor scores = layer.scale(layer.function("scores", {query, key}, {}, both));
  const PeftTensor shares = layer.call("softmax", {layer.cast(scores, "float32")}, scores.shape);
  const PeftTensor weights = layer.mul(layer.cast_like(shares, query), gate);
  const PeftTensor found =
      layer.function("weighted", {weights, value}, {}, {{"saved", std::int64_t{3}}, {"out_features", layer.in()}});
  const PeftTensor merged = layer.function("reshape", {found}, {}, {});
  const PeftTensor added = layer.lent_linear("o_proj", merged);
  layer.leave(layer.returned(layer.add(output, added), {key, value, query, weights, merged, output}));
}

}  // namespace gpumem::adapt::peft_calls
