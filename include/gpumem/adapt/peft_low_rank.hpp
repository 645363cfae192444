// The calls of PEFT's adapters that multiply activations with small matrices: LoRA's relatives. The calls of LoRA
// itself are in adapters.hpp.
// Source: huggingface/peft 0.20.1.dev0 (5d602fd), tuners/: lora/dora.py and lora/variants.py (DoRA), adalora, vera,
// pvera, randlora, tinylora, unilora, vblora, gralora, lily, delora, deft, psoft: layer.py, Linear.forward of each.
#pragma once

#include <algorithm>

#include "gpumem/adapt/peft_layer.hpp"
#include "gpumem/core/bytes.hpp"

namespace gpumem::adapt::peft_calls {

void dora(PeftLayer& layer);
void adalora(PeftLayer& layer);
void vera(PeftLayer& layer);
void pvera(PeftLayer& layer);
void randlora(PeftLayer& layer);
void tinylora(PeftLayer& layer);
void unilora(PeftLayer& layer);
void vblora(PeftLayer& layer);
void gralora(PeftLayer& layer);
void lily(PeftLayer& layer);
void delora(PeftLayer& layer);
void deft(PeftLayer& layer);
void psoft(PeftLayer& layer);

namespace peft_low_rank_detail {

using Sizes = PeftLayer::Sizes;

inline constexpr std::int64_t kInt64Figures = 2;  ///< an index of eight bytes, in figures of float32

inline std::int64_t divided_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

}  // namespace peft_low_rank_detail

/// DoraLinearLayer.forward: the norm of each row of the whole weight, base and adapter, is made of B(A(eye)) and a copy
/// of the base's weight in the adapter's type; these have names until forward returns.
inline void dora(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const std::int64_t whole = layer.in() * layer.out();
  const PeftTensor a = layer.parameter("lora_A", {rank, layer.in()});
  const PeftTensor b = layer.parameter("lora_B", {layer.out(), rank});
  const PeftTensor magnitude = layer.parameter("lora_magnitude_vector", {layer.out()});
  const PeftTensor x = layer.dropped(layer.cast_input());
  const PeftLayer::Attributes detached = {{"detached", true}};
  // The unit matrix and A of it are kept for gradients that are never taken.
  const PeftTensor unit = layer.function("eye", {a}, {layer.in() * (layer.in() + rank)}, detached);
  const PeftTensor product = layer.function("lora_weight", {b}, {layer.out(), layer.in()}, detached);
  const PeftTensor copy =
      layer.function("weight", {b}, {layer.holds_base_in_own_type() ? 1 : layer.out(), layer.in()}, detached);
  const PeftTensor norm = layer.function("weight_norm", {product, copy}, {layer.out()},
                                         {{"detached", true}, {"scratch", PeftLayer::Sizes{whole, whole}}});
  const PeftTensor share = layer.call("div", {magnitude, norm}, magnitude.shape);
  const PeftTensor update = layer.linear(layer.linear(x, a), b);
  PeftTensor base = layer.output();
  if (layer.has_bias()) base = layer.function("sub", {base}, {}, {});
  const PeftTensor scaled_base = layer.mul(base, layer.scale(share));
  const PeftTensor scaled = layer.scale(layer.mul(update, share));
  const PeftTensor result = layer.returned(layer.add(scaled_base, scaled), {unit, product, copy});
  layer.add_to_output(result, x);
}

/// SVDLinear.forward; RankAllocator.update_ipt keeps three copies of each parameter of the adapters from the first step
/// on.
inline void adalora(PeftLayer& layer) {
  const std::int64_t rank = layer.settings().whole("init_r");
  const PeftTensor a = layer.parameter("lora_A", {rank, layer.in()});
  const PeftTensor e = layer.parameter("lora_E", {rank, 1});
  const PeftTensor b = layer.parameter("lora_B", {layer.out(), rank});
  const PeftTensor number = layer.parameter("ranknum", {1}, false);
  for (const std::string_view name : {"ipt", "exp_avg_ipt", "exp_avg_unc"}) {
    (void)layer.buffer(name, {rank, layer.in() + layer.out() + 1});
  }
  const PeftTensor x = layer.dropped(layer.cast_input());
  const PeftTensor low = layer.matmul(x, layer.turned(layer.mul(a, e)));
  const PeftTensor wide = layer.scale(layer.matmul(low, layer.turned(b)));
  layer.add_in_place(layer.call("div", {wide, number}, wide.shape));
}

/// A and B are drawn once, as large as the widest layer needs, and lie in float32 with all layers.
inline void vera(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const PeftTensor a = layer.shared_buffer("vera_A", {rank, layer.shared().widest_in});
  const PeftTensor b = layer.shared_buffer("vera_B", {layer.shared().widest_out, rank});
  const PeftTensor lambda_b = layer.parameter("vera_lambda_b", {layer.out()});
  const PeftTensor lambda_d = layer.parameter("vera_lambda_d", {rank});
  const PeftTensor x = layer.cast_input();
  const PeftTensor low = layer.linear(layer.dropped(x), layer.part(a, {rank, layer.in()}));
  const PeftTensor wide = layer.linear(layer.mul(low, lambda_d), layer.part(b, {layer.out(), rank}));
  layer.add_to_output(layer.mul(wide, lambda_b), x);
}

/// The same with a mean and a variance for each of the rank's features, of which forward draws.
inline void pvera(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const PeftTensor a = layer.shared_buffer("pvera_A", {2 * rank, layer.shared().widest_in});
  const PeftTensor b = layer.shared_buffer("pvera_B", {layer.shared().widest_out, rank});
  const PeftTensor lambda_b = layer.parameter("pvera_lambda_b", {layer.out()});
  const PeftTensor lambda_d = layer.parameter("pvera_lambda_d", {2 * rank});
  const PeftTensor x = layer.cast_input();
  const PeftTensor both = layer.mul(layer.linear(layer.dropped(x), layer.part(a, {2 * rank, layer.in()})), lambda_d);
  // exp keeps its output, and the product with the noise keeps the noise.
  const PeftTensor drawn = layer.function("reparametrize", {both}, {},
                                          {{"out_features", rank},
                                           {"kept_row", PeftLayer::Sizes{rank, rank}},
                                           {"scratch_row", PeftLayer::Sizes{rank, rank}},
                                           {"backward_row", PeftLayer::Sizes{2 * rank, rank}}});
  const PeftTensor wide = layer.linear(drawn, layer.part(b, {layer.out(), rank}));
  layer.add_to_output(layer.mul(wide, lambda_b), x);
}

/// get_scaled_bases: UniqueBaseGrad makes one matrix of A and the two trained ones; it keeps what it reads. The other
/// one is B, or a copy of the part of it that this layer needs.
inline void randlora(PeftLayer& layer) {
  namespace detail = peft_low_rank_detail;
  const std::int64_t rank = layer.rank();
  const std::int64_t in = layer.in();
  const std::int64_t out = layer.out();
  const std::int64_t least = std::min(in, out);
  const std::int64_t most = std::max(in, out);
  const std::int64_t bases = detail::divided_up(least, rank);
  const std::int64_t all = std::min(layer.shared().widest_in, layer.shared().widest_out);
  const std::int64_t all_bases = detail::divided_up(all, rank);
  const PeftTensor a = layer.shared_buffer("randlora_A", {rank, 1, all});
  const PeftTensor b = layer.shared_buffer(
      "randlora_B", {std::max(layer.shared().widest_in, layer.shared().widest_out), all_bases, rank});
  const PeftTensor lambda = layer.parameter("randlora_lambda", {rank, bases});
  const PeftTensor gamma = layer.parameter("randlora_gamma", {bases, least});
  const std::int64_t scaled = rank * bases * least;
  const PeftTensor made = layer.function("bases", {lambda, gamma, a}, {rank * bases, least},
                                         {{"saved", std::int64_t{7}},
                                          {"scratch", PeftLayer::Sizes{scaled}},
                                          {"backward", PeftLayer::Sizes{scaled, scaled}}});
  const PeftLayer::Sizes other = {most, rank * bases};
  const PeftTensor fixed = bases == all_bases ? layer.part(b, other) : layer.function("flatten", {b}, other, {});
  const PeftTensor x = layer.cast_input();
  const bool narrows = least != in;
  const PeftTensor first = narrows ? layer.turned(fixed) : made;
  const PeftTensor second = narrows ? layer.turned(made) : fixed;
  const PeftTensor wide = layer.scale(layer.linear(layer.linear(layer.dropped(x), first), second));
  layer.add_to_output(layer.returned(wide, {fixed}), x);
}

/// A and B are the base's first singular vectors; what is learned is a vector, which `weight_tying` has layers share.
inline void tinylora(PeftLayer& layer) {
  const std::int64_t rank = std::min({layer.rank(), layer.in(), layer.out()});
  const std::int64_t learned = layer.settings().whole("u");
  const bool tied = layer.settings().text("weight_tying").starts_with("1");
  const PeftTensor a = layer.buffer("tinylora_A", {rank, layer.in()});
  const PeftTensor b = layer.buffer("tinylora_B", {layer.out(), rank});
  const PeftTensor projection = layer.buffer("tinylora_P", {learned, rank * rank});
  const PeftTensor v =
      tied ? layer.shared_parameter("tinylora_v", {1, learned}) : layer.parameter("tinylora_v", {1, learned});
  const PeftTensor turn = layer.part(layer.matmul(v, projection), {rank, rank});
  const PeftTensor x = layer.cast(layer.dropped(layer.input()), "float32");
  layer.add_to_output(layer.linear(layer.linear(layer.linear(x, a), turn), b), x);
}

/// A and B are looked up in one vector of all layers, at places of eight bytes each, and scaled.
inline void unilora(PeftLayer& layer) {
  namespace detail = peft_low_rank_detail;
  const std::int64_t rank = layer.rank();
  const PeftTensor theta = layer.shared_parameter("unilora_theta_d", {layer.settings().whole("theta_d_length")});
  const auto matrix = [&](const char* name, const PeftLayer::Sizes& sizes) {
    (void)layer.buffer(std::string("unilora_indices_") + name, sizes, "int64");
    const PeftTensor scales = layer.buffer(std::string("unilora_scales_") + name, sizes);
    const std::int64_t count = sizes[0] * sizes[1];
    const PeftTensor found =
        layer.function(std::string("theta_") + name, {theta}, sizes,
                       {{"backward", PeftLayer::Sizes{count * detail::kInt64Figures, count * detail::kInt64Figures}}});
    return layer.mul(found, scales);
  };
  const PeftTensor a = matrix("A", {rank, layer.in()});
  const PeftTensor b = matrix("B", {layer.out(), rank});
  const PeftTensor x = layer.cast_input();
  layer.add_to_output(layer.linear(layer.linear(layer.dropped(x), a), b), x);
}

/// _get_low_rank_matrix: the best `topk` vectors of the bank for each place, by their softmax.
inline void vblora(PeftLayer& layer) {
  namespace detail = peft_low_rank_detail;
  const std::int64_t rank = layer.rank();
  const std::int64_t length = std::max<std::int64_t>(layer.settings().whole("vector_length"), 1);
  const std::int64_t vectors = layer.settings().whole("num_vectors");
  const std::int64_t best = layer.settings().whole("topk");
  const PeftTensor bank = layer.shared_parameter("vblora_vector_bank", {vectors, length});
  const auto matrix = [&](const char* name, std::int64_t width, const PeftLayer::Sizes& sizes) {
    const std::int64_t places = width / length * rank;
    const PeftTensor logits = layer.parameter(name, {places, vectors});
    const std::int64_t chosen = core::bounded_product({places, best});
    const std::int64_t figures = core::bounded_product({chosen, length});
    const std::int64_t numbers = core::bounded_product({chosen, detail::kInt64Figures});
    // Kept: the places, the weights, the vectors that they choose; summed over the best.
    return layer.function(std::string(name) + ".matrix", {logits, bank}, sizes,
                          {{"kept", PeftLayer::Sizes{numbers, chosen, figures}},
                           {"scratch", PeftLayer::Sizes{figures}},
                           {"backward", PeftLayer::Sizes{figures, figures}}});
  };
  const PeftTensor a = matrix("vblora_logits_A", layer.in(), {rank, layer.in()});
  const PeftTensor b = matrix("vblora_logits_B", layer.out(), {layer.out(), rank});
  const PeftTensor x = layer.cast_input();
  layer.add_to_output(layer.linear(layer.linear(layer.dropped(x), a), b), x);
}

/// Blocks of A and B, between which the rank's features are exchanged: both einsums are batched products, of views and
/// of a copy.
inline void gralora(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const std::int64_t blocks = std::max<std::int64_t>(layer.settings().whole("gralora_k"), 1);
  const std::int64_t hybrid = layer.settings().whole("hybrid_r");
  const std::int64_t in = layer.in();
  const std::int64_t out = layer.out();
  const PeftTensor a = layer.parameter("gralora_A", {blocks, in / blocks, rank});
  const PeftTensor b = layer.parameter("gralora_B", {blocks, rank, out / blocks});
  const PeftTensor x = layer.dropped(layer.cast_input());
  const PeftTensor low =
      layer.function("einsum_A", {x, a}, {}, {{"out_features", rank * blocks}, {"saved", std::int64_t{3}}});
  const PeftTensor exchanged = layer.function("exchange", {low}, {}, {});
  const PeftTensor wide =
      layer.function("einsum_B", {exchanged, b}, {}, {{"out_features", out}, {"saved", std::int64_t{3}}});
  const PeftTensor ordered = layer.function("reshape", {wide}, {}, {});
  const PeftTensor typed = layer.scale(layer.cast_like(ordered, layer.output()));
  layer.add_in_place(layer.returned(typed, {ordered}));
  if (hybrid == 0) return;
  const PeftTensor general_a = layer.parameter("gralora_A_general", {hybrid, in});
  const PeftTensor general_b = layer.parameter("gralora_B_general", {out, hybrid});
  const PeftTensor y = layer.linear(layer.linear(layer.dropped(layer.cast_input()), general_a), general_b);
  layer.add_in_place(layer.scale(layer.cast_like(y, layer.output())));
}

/// A is shared by `stride_A` layers in a row, B by all layers of a name; a router mixes B's parts.
inline void lily(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const std::int64_t in = layer.in();
  const std::int64_t out = layer.out();
  const std::int64_t parts = layer.settings().whole("num_B");
  const std::int64_t stride = std::max<std::int64_t>(layer.settings().whole("stride_A"), 1);
  const std::string leaf(layer.base().leaf());
  const std::int64_t place = layer.shared().layers_of[leaf]++;
  const PeftTensor a = layer.shared_parameter("lily_A." + leaf + "." + std::to_string(place / stride), {rank, in});
  const PeftTensor b = layer.shared_parameter("lily_B." + leaf, {parts, rank * out});
  const PeftTensor router = layer.parameter("lily_router", {parts, rank});
  const PeftTensor x = layer.cast_input();
  const PeftTensor hidden = layer.linear(x, a);
  const PeftTensor routed = layer.linear(hidden, router);
  const PeftTensor shares = layer.call("softmax", {routed}, routed.shape, {{"dim", std::int64_t{-1}}});
  const PeftTensor mean = layer.function("mean", {shares}, {1, parts}, {});
  const PeftTensor mixed = layer.part(layer.matmul(mean, b), {rank, out});
  const PeftTensor wide = layer.matmul(hidden, mixed);
  const PeftTensor typed = layer.cast_like(layer.scale(wide), layer.output());
  layer.add_to_output(typed, layer.returned(wide, {x, hidden, shares}));
}

/// The base's output gets the update in its own type; norms of A's rows and B's columns scale it.
inline void delora(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const PeftTensor a = layer.parameter("delora_A", {rank, layer.in()});
  const PeftTensor b = layer.parameter("delora_B", {layer.out(), rank});
  const PeftTensor lambda = layer.parameter("delora_lambda", {1});
  const PeftTensor norm = layer.buffer("delora_w_norm", {layer.in()});
  const std::int64_t sides = rank * (layer.in() + layer.out());
  const PeftTensor scaling = layer.function("scaling", {a, b, lambda}, {rank},
                                            {{"saved", std::int64_t{7}}, {"backward", PeftLayer::Sizes{sides}}});
  const PeftTensor low = layer.linear(layer.mul(layer.dropped(layer.input()), norm), a);
  const PeftTensor wide = layer.linear(layer.mul(low, scaling), b);
  layer.add_to_output(layer.cast_like(wide, layer.output()), wide);
}

/// The base's output goes through a projection in float32: PᵀP of what is taken away, and R for what is put in.
inline void deft(PeftLayer& layer) {
  const std::int64_t rank = std::min(layer.rank(), layer.out());
  const bool relu = layer.settings().text("decomposition_method") == "relu";
  const bool para = layer.settings().flag("para");
  const std::int64_t projection = layer.out() * rank;
  const PeftTensor p = layer.parameter("deft_P", {layer.out(), rank});
  const PeftTensor base = layer.cast(layer.output(), "float32");
  const PeftTensor x = layer.cast(layer.input(), "float32");
  const PeftTensor right = relu ? layer.call("relu", {p}, p.shape)
                                : layer.function("qr", {p}, {layer.out(), rank},
                                                 {{"kept", PeftLayer::Sizes{rank * rank}},
                                                  {"backward", PeftLayer::Sizes{projection, projection}}});
  const PeftTensor left = layer.turned(relu ? p : right);
  const PeftTensor correction = layer.matmul(layer.matmul(base, right), left);
  PeftTensor result = layer.call("sub", {base, correction}, base.shape);
  if (!para) {
    const PeftTensor r = layer.scale(layer.parameter("deft_R", {rank, layer.in()}));
    const PeftTensor added = layer.matmul(layer.linear(layer.dropped(x), r), left);
    result = layer.add(result, added);
  }
  layer.leave(layer.returned(layer.cast_like(result, layer.output()), {base, x, correction, layer.output()}));
}

/// A and B are the base's first singular vectors in float32; between them a rotation is learned, which Cayley's formula
/// makes of half a square. The full decomposition leaves A as a view of all of its vectors.
inline void psoft(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const std::int64_t square = rank * rank;
  const std::int64_t half = rank * (rank - 1) / 2;
  const PeftSettings& settings = layer.settings();
  const bool full = settings.text("psoft_svd") == "full";
  const PeftTensor vectors = layer.buffer("psoft_A", {full ? std::min(layer.in(), layer.out()) : rank, layer.in()});
  const PeftTensor a = layer.part(vectors, {rank, layer.in()});
  const PeftTensor b = layer.buffer("psoft_B", {layer.out(), rank});
  (void)layer.buffer("rows", {half}, "int64");
  (void)layer.buffer("cols", {half}, "int64");
  const PeftTensor angles = layer.parameter("psoft_R", {half});
  const PeftTensor mag_b = layer.parameter("vector_b", {settings.flag("psoft_mag_b") ? rank : 1});
  const PeftTensor mag_a = layer.parameter("vector_a", {settings.flag("psoft_mag_a") ? rank : 1});
  // Kept: the skew matrix and its powers, or the solution and the factors; then both products with the magnitudes.
  const bool series = settings.flag("use_cayley_neumann");
  const std::int64_t kept = series ? settings.whole("num_cayley_neumann_terms") - 1 : 2;
  const PeftTensor turn = layer.function(
      "get_matrix", {angles, mag_b, mag_a}, {rank, rank},
      {{"saved", std::int64_t{6}},
       {"kept", PeftLayer::Sizes(static_cast<std::size_t>(std::clamp<std::int64_t>(kept, 1, 16)), square)},
       {"scratch", PeftLayer::Sizes{square, square}},
       {"backward", PeftLayer::Sizes{square, square, square}}});
  const PeftTensor x = layer.cast(layer.input(), "float32");
  const PeftTensor low = layer.linear(layer.dropped(x), a);
  const PeftTensor rotated = layer.linear(low, turn);
  const PeftTensor difference = layer.call("sub", {rotated, low}, rotated.shape);
  const PeftTensor wide = layer.linear(difference, b);
  layer.add_to_output(layer.scale(wide), layer.returned(wide, {x, low, rotated}));
}

/// Each sample has matrices of its own, mixed of all skills' as the logits of its task say (einsum). As `bmm` reads
/// them, they are looked up here, which makes tensors of the same sizes.
inline void poly(PeftLayer& layer) {
  const PeftSettings& settings = layer.settings();
  const std::int64_t rank = layer.rank();
  const std::int64_t skills = std::max<std::int64_t>(settings.whole("n_skills"), 1);
  const std::int64_t splits = std::max<std::int64_t>(settings.whole("n_splits"), 1);
  const std::int64_t tasks = std::max<std::int64_t>(settings.whole("n_tasks"), 1);
  const PeftTensor a = layer.parameter("poly_lora_A", {skills, layer.in() * rank});
  const PeftTensor b = layer.parameter("poly_lora_B", {skills, rank * layer.out()});
  const PeftTensor logits = layer.parameter("poly_router.module_logits", {tasks, splits * skills});
  const auto mixed = [&](std::string_view name, const PeftTensor& all, std::int64_t rows, std::int64_t columns) {
    return layer.for_each_sample(layer.function(name, {all, logits}, {rows, columns}, {{"saved", std::int64_t{3}}}));
  };
  const PeftTensor own_a = mixed("einsum_A", a, layer.in(), rank);
  const PeftTensor own_b = mixed("einsum_B", b, rank, layer.out());
  const PeftTensor x = layer.cast_input();
  layer.add_in_place(layer.scale(layer.matmul(layer.matmul(x, own_a), own_b)));
}

/// The weight's first singular vectors project the input; of each cluster of the output's features two matrices are
/// trained. Clusters are taken to be alike large: their sum is the output, however the weight's rows cluster.
inline void adamss(PeftLayer& layer) {
  constexpr std::int64_t kMostSubspaces = 256;
  const std::int64_t in = layer.in() + (layer.has_bias() ? 1 : 0);
  const std::int64_t rank = std::min({layer.rank(), in, layer.out()});
  const std::int64_t count =
      std::clamp<std::int64_t>(layer.settings().whole("num_subspaces"), 1, std::min(kMostSubspaces, layer.out()));
  const std::int64_t own = std::max<std::int64_t>(layer.settings().whole("subspace_rank"), 1);
  const PeftTensor vectors = layer.buffer("adamss_newB", {rank, in}, "parameters");
  PeftTensor x = layer.cast(layer.input(), layer.base_type());
  if (layer.has_bias()) x = layer.function("cat_ones", {x}, {}, {{"out_features", in}});
  const PeftTensor projected = layer.linear(x, vectors);
  PeftTensor last;
  for (std::int64_t index = 0; index < count; ++index) {
    const std::int64_t width = layer.out() / count + (index < layer.out() % count ? 1 : 0);
    const std::string name = std::to_string(index);
    const PeftTensor a = layer.parameter("adamss_A." + name, {std::min(own, width), rank});
    const PeftTensor b = layer.parameter("adamss_B." + name, {width, std::min(own, width)});
    const PeftTensor low = layer.linear(projected, layer.cast(a, layer.base_type()));
    const PeftTensor made = layer.linear(low, layer.cast(b, layer.base_type()));
    last = index == 0
               ? made
               : layer.function("chunks", {last, made}, {}, {{"out_features", layer.out() / count * (index + 1)}});
  }
  const std::int64_t out = layer.out();
  const PeftTensor joined = layer.function("cat", {last}, {}, {{"out_features", out}});
  const PeftTensor delta = layer.function("scatter", {joined}, {}, {{"out_features", out}});
  layer.add_to_output(delta, layer.returned(delta, {x, projected, joined}));
}

}  // namespace gpumem::adapt::peft_calls
