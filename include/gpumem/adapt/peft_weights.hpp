// The calls of PEFT's adapters that make a whole matrix, as large as the base's weight, in every forward pass.
// Source: huggingface/peft 0.20.1.dev0 (5d602fd), tuners/: loha, lokr, hira, glora, fourierft, waveft, c3a, shira, osf,
// peanut, miss, frod: layer.py, get_delta_weight and forward of each; osf/utils.py, c3a/utils.py; frod/model.py.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "gpumem/adapt/peft_layer.hpp"

namespace gpumem::adapt::peft_calls {

void loha(PeftLayer& layer);
void lokr(PeftLayer& layer);
void hira(PeftLayer& layer);
void glora(PeftLayer& layer);
void fourierft(PeftLayer& layer);
void waveft(PeftLayer& layer);
void c3a(PeftLayer& layer);
void shira(PeftLayer& layer);
void osf(PeftLayer& layer);
void peanut(PeftLayer& layer);
void miss(PeftLayer& layer);
void frod(PeftLayer& layer);

namespace peft_weights_detail {

using Sizes = PeftLayer::Sizes;

/// Two factors of a side, the first the smaller one. Source: tuners/lokr/layer.py, factorization().
inline std::pair<std::int64_t, std::int64_t> factors_of(std::int64_t side, std::int64_t factor) {
  if (factor > 0 && side % factor == 0) return {factor, side / factor};
  if (factor < 0) factor = side;
  std::int64_t less = 1;
  std::int64_t more = side;
  std::int64_t length = less + more;
  while (less < more) {
    std::int64_t next = less + 1;
    while (next <= side / next && side % next != 0) ++next;
    if (side % next != 0) break;  // a prime is left
    const std::int64_t other = side / next;
    if (next + other > length || next > factor) break;
    less = next;
    more = other;
  }
  return {std::min(less, more), std::max(less, more)};
}

/// F.linear(x, the matrix), whose name lasts until its function returns.
inline void add_product(PeftLayer& layer, const PeftTensor& x, const PeftTensor& matrix) {
  const PeftTensor update = layer.linear(x, matrix);
  layer.add_to_output(layer.returned(update, {matrix}), x);
}

}  // namespace peft_weights_detail

/// HadaWeight keeps only the four factors: backward makes both products again, one after the other. The second one is
/// multiplied while the first one's result still has its name, beside the scaled gradient.
inline void loha(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const std::int64_t whole = layer.in() * layer.out();
  const PeftTensor a1 = layer.parameter("hada_w1_a", {layer.out(), rank});
  const PeftTensor b1 = layer.parameter("hada_w1_b", {rank, layer.in()});
  const PeftTensor a2 = layer.parameter("hada_w2_a", {layer.out(), rank});
  const PeftTensor b2 = layer.parameter("hada_w2_b", {rank, layer.in()});
  const PeftTensor delta = layer.function("hadamard", {a1, b1, a2, b2}, {layer.out(), layer.in()},
                                          {{"saved", std::int64_t{15}},
                                           {"scratch", PeftLayer::Sizes{whole, whole}},
                                           {"backward", PeftLayer::Sizes{whole, whole, whole, whole}}});
  peft_weights_detail::add_product(layer, layer.cast_input(), delta);
}

namespace peft_weights_detail {

/// LyCORIS' bypass: a row's groups times the larger matrix, then their figures across groups times the smaller one; the
/// delta itself is never made. The result is scaled by a number and by a buffer.
/// Source: LyCORIS 3.4, modules/lokr.py (bypass_forward_diff).
inline void add_bypass(PeftLayer& layer, const PeftTensor& w1, const PeftTensor& w2, std::int64_t groups) {
  const auto turned = [&](const PeftTensor& x) {
    const std::size_t last = x.shape.rank() - 1;
    PeftLayer::Sizes order;
    for (std::size_t axis = 0; axis + 1 < last; ++axis) order.push_back(static_cast<std::int64_t>(axis));
    order.push_back(static_cast<std::int64_t>(last));
    order.push_back(static_cast<std::int64_t>(last - 1));
    core::Shape shape = x.shape;
    shape.set(last, x.shape[last - 1]);
    shape.set(last - 1, x.shape[last]);
    return layer.call("permute", {x}, shape, {{"dims", std::move(order)}});
  };
  const PeftTensor& x = layer.input();
  core::Shape grouped = x.shape;
  grouped.set(grouped.rank() - 1, core::Dim::fixed(groups));
  grouped.push_back(core::Dim::fixed(layer.in() / groups));
  const PeftTensor parts = layer.call(
      "unflatten", {x}, grouped, {{"dim", std::int64_t{-1}}, {"sizes", PeftLayer::Sizes{groups, layer.in() / groups}}});
  const PeftTensor within = layer.linear(parts, w2);
  const PeftTensor across = turned(layer.linear(turned(within), w1));
  const PeftTensor update = layer.call("flatten", {across}, layer.rows(layer.out()), {{"start_dim", std::int64_t{-2}}});
  layer.leave(layer.add(layer.output(), layer.scale(layer.scale(update))));
}

}  // namespace peft_weights_detail

/// torch.kron is one product of views; the scale makes another one of it. Backward of the product makes both factors'
/// gradients whole before either is summed to its size (validate_outputs() of PyTorch's autograd/engine.cpp). LyCORIS
/// calls the larger factor whole if full_matrix says so, and its factor can differ by layer.
inline void lokr(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const std::int64_t whole = layer.in() * layer.out();
  const std::int64_t factor = layer.settings().factor_of(layer.base().leaf());
  const auto [in_m, in_n] = peft_weights_detail::factors_of(layer.in(), factor);
  const auto [out_l, out_k] = peft_weights_detail::factors_of(layer.out(), factor);
  const auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t columns, bool one) {
    if (one) return layer.parameter(name, {rows, columns});
    const PeftTensor a = layer.parameter(name + "_a", {rows, rank});
    const PeftTensor b = layer.parameter(name + "_b", {rank, columns});
    return layer.matmul(a, b);
  };
  const bool full = layer.settings().flag("full_matrix");
  const bool both = !full && layer.settings().flag("decompose_both");
  const PeftTensor w1 = matrix("lokr_w1", out_l, in_m, !(both && 2 * rank < std::max(out_l, in_m)));
  const PeftTensor w2 = matrix("lokr_w2", out_k, in_n, full || 2 * rank >= std::max(out_k, in_n));
  if (layer.settings().flag("bypass_mode")) return peft_weights_detail::add_bypass(layer, w1, w2, in_m);
  const PeftTensor product = layer.function("kron", {w1, w2}, {layer.out(), layer.in()},
                                            {{"saved", std::int64_t{3}}, {"backward", PeftLayer::Sizes{whole, whole}}});
  peft_weights_detail::add_product(layer, layer.cast_input(), layer.scale(product));
}

/// F.linear(x, W * (B A)): the product has a name until forward returns; the elementwise one is kept.
inline void hira(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const PeftTensor result = layer.base_linear(layer.input(), layer.weight());
  const PeftTensor a = layer.parameter("hira_A", {rank, layer.in()});
  const PeftTensor b = layer.parameter("hira_B", {layer.out(), rank});
  const PeftTensor product = layer.matmul(layer.turned(a), layer.turned(b));
  const PeftTensor x = layer.cast_input();
  const PeftTensor matrix = layer.mul(layer.weight(), layer.turned(product));
  const PeftTensor update = layer.linear(layer.dropped(x), matrix);
  layer.leave(layer.returned(layer.sum(result, update, x), {product, update}));
}

namespace peft_weights_detail {

/// What GLoRA learns of a layer's bias; tensors as small as the bias.
inline void learn_bias(PeftLayer& layer) {
  const std::string_view of_input = layer.settings().text("config_C");
  const std::string_view of_bias = layer.settings().text("config_D_E");
  if (of_input == "lora") {
    (void)layer.matmul(layer.parameter("glora_C.Xd", {layer.in(), layer.rank()}),
                       layer.parameter("glora_C.Xu", {layer.rank(), 1}));
  } else if (of_input == "vector") {
    (void)layer.parameter("glora_C", {layer.in(), 1});
  }
  if (of_bias != "vector" && of_bias != "constant") return;
  const std::int64_t size = of_bias == "vector" ? layer.out() : 1;
  (void)layer.parameter("glora_D", {size});
  (void)layer.parameter("glora_E", {size});
}

}  // namespace peft_weights_detail

/// W + W A + B in the base's type, in addition to what the base leaves, which is taken away again times the number of
/// adapters.
inline void glora(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const std::string_view kind = layer.settings().text("config_A_B");
  const PeftTensor& weight = layer.weight();
  const PeftTensor result = layer.base_linear(layer.input(), weight);
  const auto path = [&](const std::string& name) {
    if (kind == "vector") return layer.cast_like(layer.parameter(name, {layer.out(), 1}), weight);
    if (kind == "constant") return layer.cast_like(layer.parameter(name, {1, 1}), weight);
    if (kind != "lora") return layer.cast_like(layer.buffer(name, {layer.out(), layer.in()}), weight);
    const PeftTensor down = layer.parameter(name + ".Xd", {layer.out(), rank});
    const PeftTensor up = layer.parameter(name + ".Xu", {rank, layer.in()});
    return layer.cast_like(layer.matmul(down, up), weight);
  };
  const PeftTensor a = path("glora_A");
  const PeftTensor b = path("glora_B");
  if (layer.has_bias()) peft_weights_detail::learn_bias(layer);
  const PeftTensor whole = layer.add(layer.add(weight, layer.mul(weight, a)), b);
  const PeftTensor adapted = layer.base_linear(layer.input(), whole);
  const PeftTensor both = layer.add(result, adapted);
  const PeftTensor taken =
      layer.call("neg", {layer.scale(result)}, result.shape);  // aten::sub's gradient is a new tensor
  layer.leave(layer.returned(layer.add(both, taken), {a, b, whole, adapted, result}));
}

/// A sparse spectrum in a matrix of zeros, whose inverse transform is complex: its real part is scaled.
inline void fourierft(PeftLayer& layer) {
  const std::int64_t whole = layer.in() * layer.out();
  const std::int64_t count = layer.settings().whole("n_frequency");
  const PeftTensor spectrum = layer.parameter("fourierft_spectrum", {count});
  const PeftTensor delta = layer.function("ifft2", {spectrum}, {layer.out(), layer.in()},
                                          {{"kept", PeftLayer::Sizes{4 * count}},
                                           {"scratch", PeftLayer::Sizes{whole, 2 * whole, 2 * whole}},
                                           {"backward", PeftLayer::Sizes{whole, 2 * whole, 2 * whole, whole}}});
  peft_weights_detail::add_product(layer, layer.cast_input(), delta);
}

/// The same with wavelets: four quarters, which are put together by rows and by columns.
inline void waveft(PeftLayer& layer) {
  const std::int64_t whole = layer.in() * layer.out();
  const std::int64_t count = layer.settings().whole("n_frequency");
  const bool transforms = layer.settings().flag("use_idwt");
  const PeftTensor spectrum = layer.parameter("waveft_spectrum", {count});
  const PeftLayer::Sizes forward = transforms ? PeftLayer::Sizes{whole, whole, whole} : PeftLayer::Sizes{whole};
  const PeftTensor delta =
      layer.function("waverec2d", {spectrum}, {layer.out(), layer.in()},
                     {{"kept", PeftLayer::Sizes{4 * count}}, {"scratch", forward}, {"backward", forward}});
  peft_weights_detail::add_product(layer, layer.cast_input(), delta);
}

/// BlockCircularConvolution: Fourier transforms of the input's blocks and of the kernels, multiplied as a batch of
/// complex matrices. Its output is a view of complex figures until it is divided.
inline void c3a(PeftLayer& layer) {
  const std::int64_t block = std::max<std::int64_t>(layer.settings().whole("block_size"), 1);
  const std::int64_t in = layer.in();
  const std::int64_t out = layer.out();
  const PeftTensor kernel = layer.parameter("c3a_kernel", {out / block, in / block, block});
  const PeftTensor x = layer.cast(layer.input(), "float32");
  const PeftTensor turned = layer.function("circular", {x, kernel}, {},
                                           {{"out_features", out},
                                            {"saved", std::int64_t{3}},
                                            {"scratch_row", PeftLayer::Sizes{2 * in, 2 * in, 2 * out, out}},
                                            {"backward_row", PeftLayer::Sizes{2 * out, 2 * out, 2 * in, 2 * in}}});
  layer.add_in_place(layer.scale(turned));
}

/// A copy of the weight, to which a sparse one is added; its gradient is whole.
inline void shira(PeftLayer& layer) {
  const std::int64_t count = layer.rank() * (layer.in() + layer.out());
  const PeftTensor values = layer.parameter("shira_weight", {count});
  (void)layer.buffer("shira_indices", {2, count}, "int32");
  // The sparse tensor keeps its places in eight bytes each.
  const PeftTensor copy = layer.call("clone", {layer.weight()}, layer.weight().shape);
  const PeftTensor sparse = layer.function(
      "sparse", {copy, values}, {layer.out(), layer.in()},
      {{"in_place", true}, {"kept", PeftLayer::Sizes{4 * count}}, {"backward", PeftLayer::Sizes{4 * count, count}}});
  layer.leave(layer.base_linear(layer.input(), sparse));
}

/// Trained figures are added to the weight's largest ones in a copy, whose gradient is whole; scatter_add keeps their
/// places in eight bytes each. With a rank LoRA in float32 stands beside it.
inline void supertuning(PeftLayer& layer) {
  const double share = 1.0 - layer.settings().share("sparsity");
  const auto all = static_cast<double>(layer.in() * layer.out());
  const std::int64_t count = std::max<std::int64_t>(static_cast<std::int64_t>(all * share), 1);
  const std::int64_t rank = layer.settings().whole("r");
  const PeftTensor values = layer.parameter("supertuning_values", {count});
  (void)layer.buffer("supertuning_indices", {count}, "int32");
  const PeftTensor weight = layer.function("scatter_add", {layer.weight(), values}, {layer.out(), layer.in()},
                                           {{"typed_as_first", true},
                                            {"kept", PeftLayer::Sizes{2 * count}},
                                            {"scratch", PeftLayer::Sizes{count}},
                                            {"backward", PeftLayer::Sizes{count}}});
  const PeftTensor result = layer.base_linear(layer.input(), weight);
  if (rank == 0) return layer.leave(result);
  const PeftTensor a = layer.parameter("supertuning_lora_A", {rank, layer.in()});
  const PeftTensor b = layer.parameter("supertuning_lora_B", {layer.out(), rank});
  const PeftTensor wide = layer.linear(layer.linear(layer.cast_like(layer.dropped(layer.input()), a), a), b);
  layer.leave(layer.add(result, layer.cast_like(layer.scale(wide), result)));
}

/// The weight's singular vectors: the first ones are frozen, the last ones trained; every pass puts them together.
inline void osf(PeftLayer& layer) {
  const std::int64_t most = std::min(layer.in(), layer.out());
  const std::int64_t asked = layer.settings().rank_of(layer.base().leaf());
  const std::int64_t high = asked > 0 ? std::min(asked, most) : most / 2;
  const std::int64_t low = std::max<std::int64_t>(most - high, 1);
  const PeftTensor u_high = layer.buffer("osf_U_high", {layer.out(), high}, "parameters");
  const PeftTensor s_high = layer.buffer("osf_S_high", {high}, "parameters");
  const PeftTensor v_high = layer.buffer("osf_V_high", {high, layer.in()}, "parameters");
  const PeftTensor u = layer.parameter("U_low", {layer.out(), low});
  const PeftTensor s = layer.parameter("S_low", {low});
  const PeftTensor v = layer.parameter("V_low", {low, layer.in()});
  const PeftTensor frozen = layer.matmul(layer.mul(u_high, s_high), v_high);
  const PeftTensor trained = layer.matmul(layer.mul(u, s), v);
  const PeftTensor weight = layer.returned(layer.add(frozen, trained), {frozen, trained});
  layer.leave(layer.base_linear(layer.input(), weight));
}

/// A network that reads the base's weight, row by row of its transpose.
inline void peanut(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const std::int64_t depth = std::clamp<std::int64_t>(layer.settings().whole("depth"), 0, 64);
  const std::string_view named = layer.settings().text("act_fn");
  const std::string_view active = named == "gelu" || named == "silu" || named == "tanh" ? named : "relu";
  const PeftTensor result = layer.base_linear(layer.input(), layer.weight());
  const PeftTensor a = layer.parameter("peanut_A", {rank, layer.out()});
  const PeftTensor typed = layer.cast_like(layer.turned(layer.weight()), a);
  PeftTensor hidden = layer.linear(typed, a);
  hidden = layer.call(active, {hidden}, hidden.shape);
  std::vector<PeftTensor> residuals;
  for (std::int64_t index = 0; index < 2 * depth; ++index) {
    if (index < depth) residuals.push_back(hidden);
    const PeftTensor mixed = layer.linear(hidden, layer.parameter("peanut_coders", {rank, rank}));
    hidden = layer.call(active, {mixed}, mixed.shape);
    if (index < depth) continue;
    hidden = layer.add(hidden, residuals.back());
    residuals.pop_back();
  }
  const PeftTensor b = layer.parameter("peanut_B", {layer.out(), rank});
  const PeftTensor delta = layer.returned(layer.turned(layer.scale(layer.linear(hidden, b))), {typed});
  const PeftTensor x = layer.cast_input();
  const PeftTensor update = layer.linear(x, delta);
  const PeftTensor added = layer.cast_like(update, result);
  layer.leave(layer.returned(layer.add(result, added), {delta, x, update}));
}

/// Blocks of the input are summed before one small product. "bat" makes a whole weight, block by block.
inline void miss(PeftLayer& layer) {
  const std::int64_t rank = layer.rank();
  const std::string_view form = layer.settings().text("init_weights");
  const std::int64_t narrow = layer.settings().whole("mini_r");
  const std::int64_t out = layer.out();
  const std::int64_t whole = layer.in() * out;
  if (form == "bat") {
    const PeftTensor block = layer.parameter("miss_block", {out / rank, rank, rank});
    const PeftTensor copy = layer.call("clone", {layer.weight()}, layer.weight().shape);
    // Kept: the weight in blocks, in the adapters' type. The blocks of the adapter are copied for each column.
    const PeftTensor delta = layer.function("get_delta_weight", {block, copy}, {out, layer.in()},
                                            {{"kept", PeftLayer::Sizes{whole}},
                                             {"scratch", PeftLayer::Sizes{whole, whole, whole}},
                                             {"backward", PeftLayer::Sizes{whole, whole}}});
    const PeftTensor changed = layer.add(delta, copy);
    const PeftTensor x = layer.cast_input();
    const PeftTensor y = layer.base_linear(x, changed);
    layer.leave(layer.returned(layer.cast_like(y, layer.input()), {delta, changed, x}));
    return;
  }
  const PeftTensor result = layer.base_linear(layer.input(), layer.weight());
  const bool mini = form == "mini";
  PeftTensor block = layer.parameter("miss_block", {rank, mini ? narrow : out});
  if (mini) block = layer.function("repeat", {block}, {rank, out}, {});
  const PeftTensor x = layer.cast_input();
  const PeftTensor summed = layer.function("sum", {layer.dropped(x)}, {}, {{"out_features", rank}});
  layer.leave(layer.returned(layer.sum(result, layer.matmul(summed, block), x), {block}));
}

namespace peft_weights_detail {

/// FrodLayer: U of the layer, V of all layers of its role, and S + L between them.
struct FrodFactors {
  PeftTensor u;
  PeftTensor v;
  PeftTensor s;
  PeftTensor diagonal;
};

/// _category_from_key(): layers whose last two names are the same share V and the places of S.
inline std::string role_of(const BaseLinear& base) {
  const std::string_view path = base.path;
  const std::size_t last = path.rfind('.');
  const std::size_t before = last == std::string_view::npos || last == 0 ? last : path.rfind('.', last - 1);
  return std::string(before == std::string_view::npos ? path : path.substr(before + 1));
}

/// A matrix that nothing trains, in the base's type: with the model, or on the CPU and copied in every pass.
inline PeftTensor frozen_matrix(PeftLayer& layer, const std::string& name, Sizes sizes, bool shared) {
  if (layer.settings().flag("projections_on_cpu")) {
    return layer.function(name + ".to", {layer.input()}, std::move(sizes),
                          {{"typed_as_first", true}, {"detached", true}});
  }
  if (shared) return layer.shared_buffer(name, std::move(sizes), layer.base_type());
  return layer.buffer(name, std::move(sizes), layer.base_type());
}

/// FrodLayer._get_frod_tensors(), and S as a dense matrix, which products in 16 bits need: coalesce() sorts the places.
inline FrodFactors frod_factors(PeftLayer& layer) {
  constexpr std::int64_t kInt64Figures = 2;
  const std::int64_t in = layer.in();
  const double cells = static_cast<double>(in) * static_cast<double>(in);
  const auto wanted = static_cast<std::int64_t>(cells * layer.settings().share("sparse_rate"));
  const std::int64_t count = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(in * (in - 1), 1));
  const std::int64_t places = kInt64Figures * count;
  const std::string role = role_of(layer.base());
  const PeftTensor diagonal = layer.parameter("frod_lambda_l", {in});
  const PeftTensor values = layer.parameter("frod_lambda_s_values", {count});
  const PeftTensor u = frozen_matrix(layer, "frod_U", {layer.out(), in}, false);
  const PeftTensor v = frozen_matrix(layer, "frod_V." + role, {in, in}, true);
  const bool copies = layer.settings().flag("projections_on_cpu");
  if (!copies) (void)layer.shared_buffer("frod_s_indices." + role, {2, count}, "int64");
  Sizes kept = {2 * places, count};
  if (copies) kept.push_back(2 * places);
  const PeftTensor s = layer.function("to_dense", {layer.cast_like(values, layer.input())}, {in, in},
                                      {{"kept", std::move(kept)},
                                       {"scratch", Sizes{places, places, places, 2 * places}},
                                       {"backward", Sizes{places, places, count}}});
  return {u, v, s, layer.cast_like(diagonal, layer.input())};
}

}  // namespace peft_weights_detail

/// The adapted weight is U (S + L) V^T, so without dropout the base's weight is not read. With dropout what the base
/// makes of the input is added and taken away.
inline void frod(PeftLayer& layer) {
  const peft_weights_detail::FrodFactors factors = peft_weights_detail::frod_factors(layer);
  const PeftTensor h = layer.dropped(layer.input());
  const bool drops = h.at != layer.input().at;
  const PeftTensor z = layer.matmul(h, factors.v);
  const PeftTensor crossed = layer.matmul(z, layer.turned(factors.s));
  const PeftTensor straight = layer.mul(z, factors.diagonal);
  PeftTensor result = layer.linear(layer.add(crossed, straight), factors.u);
  if (drops) {
    const PeftTensor all = layer.add(layer.base_linear(layer.input(), layer.weight()), result);
    result = layer.function("sub", {all, layer.base_linear(h, layer.weight())}, {}, {});
  } else if (layer.has_bias()) {
    result = layer.function("add_bias", {result}, {}, {});
  }
  layer.leave(layer.returned(result, {factors.u, factors.v, z, crossed, straight}));
}

}  // namespace gpumem::adapt::peft_calls
