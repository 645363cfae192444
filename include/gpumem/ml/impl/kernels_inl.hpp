#pragma once

#include "gpumem/ml/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpumem::ml {

// Each loop is a template over the number of floats that an instruction works on, always inlined into one plain
// function for each instruction set. Vectors pass by reference only: by value, their calling convention would depend
// on the instruction set.
namespace kernels_detail {

template <int kWidth>
struct Simd {
  typedef float Floats __attribute__((vector_size(kWidth * sizeof(float))));  // NOLINT: no alias can have it
  /// As they lie in an array of float: at any address.
  typedef float Somewhere __attribute__((vector_size(kWidth * sizeof(float)), aligned(4), may_alias));  // NOLINT
  typedef std::int32_t Ints __attribute__((vector_size(kWidth * sizeof(float))));                       // NOLINT
};
template <int kWidth>
using Floats = typename Simd<kWidth>::Floats;
template <int kWidth>
using Ints = typename Simd<kWidth>::Ints;

/// Not std::memcpy: GCC 12 copies halves where the inlined loop's own function lacks the instructions.
template <int kWidth>
[[gnu::always_inline]] inline void load(const float* from, Floats<kWidth>& to) {
  to = *reinterpret_cast<const typename Simd<kWidth>::Somewhere*>(from);
}

template <int kWidth>
[[gnu::always_inline]] inline void store(const Floats<kWidth>& from, float* to) {
  *reinterpret_cast<typename Simd<kWidth>::Somewhere*>(to) = from;
}

/// What is not a number stays none.
template <int kWidth>
[[gnu::always_inline]] inline void relu(Floats<kWidth>& value) {
  const Floats<kWidth> zero{};
  value = value < zero ? zero : value;
}

template <int kWidth>
[[gnu::always_inline]] inline void finish_sum(Floats<kWidth>& sum, float* y, Finish finish) {
  if (finish == Finish::relu) relu<kWidth>(sum);
  if (finish == Finish::add) {
    Floats<kWidth> before;
    load<kWidth>(y, before);
    sum += before;
  }
  store<kWidth>(sum, y);
}

// --- Linear -----------------------------------------------------------------------------------------------------

/// kRows outputs of two vectors of lanes: enough sums at once to hide what one addition takes.
template <int kWidth, int kRows>
[[gnu::always_inline]] inline void dense_rows(const Dense& layer, std::int64_t row, const float* x, float* y,
                                              std::int64_t stride, Finish finish) {
  Floats<kWidth> low[kRows];
  Floats<kWidth> high[kRows];
  for (int at = 0; at < kRows; ++at) {
    low[at] = Floats<kWidth>{} + layer.bias[row + at];
    high[at] = low[at];
  }
  const float* weight = layer.weight + row * layer.in;
  for (std::int64_t in = 0; in < layer.in; ++in) {
    Floats<kWidth> x_low;
    Floats<kWidth> x_high;
    load<kWidth>(x + in * stride, x_low);
    load<kWidth>(x + in * stride + kWidth, x_high);
    for (int at = 0; at < kRows; ++at) {
      const float factor = weight[at * layer.in + in];
      low[at] += factor * x_low;
      high[at] += factor * x_high;
    }
  }
  for (int at = 0; at < kRows; ++at) {
    float* to = y + (row + at) * stride;
    finish_sum<kWidth>(low[at], to, finish);
    finish_sum<kWidth>(high[at], to + kWidth, finish);
  }
}

template <int kWidth>
[[gnu::always_inline]] inline void dense(const Dense& layer, const float* x, float* y, std::int64_t lanes,
                                         std::int64_t stride, Finish finish) {
  constexpr std::int64_t kBoth = 2 * std::int64_t{kWidth};
  for (std::int64_t lane = 0; lane < lanes; lane += kBoth) {
    std::int64_t row = 0;
    for (; row + 4 <= layer.out; row += 4) dense_rows<kWidth, 4>(layer, row, x + lane, y + lane, stride, finish);
    for (; row < layer.out; ++row) dense_rows<kWidth, 1>(layer, row, x + lane, y + lane, stride, finish);
  }
}

// --- Layer norm -------------------------------------------------------------------------------------------------

template <int kWidth>
[[gnu::always_inline]] inline void inverse_deviation(Floats<kWidth>& variance) {
  constexpr float kEpsilon = 1e-5F;
  for (int lane = 0; lane < kWidth; ++lane) variance[lane] = 1.0F / std::sqrt(variance[lane] + kEpsilon);
}

template <int kWidth>
[[gnu::always_inline]] inline void add_and_norm(const LayerNorm& norm, const float* addend, float* x,
                                                std::int64_t lanes, std::int64_t stride) {
  const float share = 1.0F / static_cast<float>(norm.width);
  for (std::int64_t lane = 0; lane < lanes; lane += kWidth) {
    Floats<kWidth> mean{};
    for (std::int64_t unit = 0; unit < norm.width; ++unit) {
      Floats<kWidth> value;
      Floats<kWidth> more;
      load<kWidth>(x + unit * stride + lane, value);
      load<kWidth>(addend + unit * stride + lane, more);
      value += more;
      store<kWidth>(value, x + unit * stride + lane);
      mean += value;
    }
    mean *= share;
    Floats<kWidth> deviation{};
    for (std::int64_t unit = 0; unit < norm.width; ++unit) {
      Floats<kWidth> value;
      load<kWidth>(x + unit * stride + lane, value);
      value -= mean;
      deviation += value * value;
    }
    deviation *= share;
    inverse_deviation<kWidth>(deviation);
    for (std::int64_t unit = 0; unit < norm.width; ++unit) {
      Floats<kWidth> value;
      load<kWidth>(x + unit * stride + lane, value);
      value = (value - mean) * deviation * norm.weight[unit] + norm.bias[unit];
      store<kWidth>(value, x + unit * stride + lane);
    }
  }
}

// --- Attention --------------------------------------------------------------------------------------------------

/// 2^x for x <= 0, to float's accuracy; below 2^-126 it stays there. The polynomial is that of Cephes' exp2f (Moshier),
/// for |x| <= 1/2.
template <int kWidth>
[[gnu::always_inline]] inline void exp2(Floats<kWidth>& x) {
  constexpr float kRounding = 12582912.0F;  // 1.5 * 2^23: after adding it, the last bits are the nearest integer
  constexpr float kLeast = -126.0F;
  const Floats<kWidth> least = Floats<kWidth>{} + kLeast;
  x = x < least ? least : x;
  const Floats<kWidth> rounded = x + kRounding;
  const Floats<kWidth> rest = x - (rounded - kRounding);
  Floats<kWidth> power = 1.535336188319500e-4F * rest + 1.339887440266574e-3F;
  power = power * rest + 9.618437357674640e-3F;
  power = power * rest + 5.550332471162809e-2F;
  power = power * rest + 2.402264791363012e-1F;
  power = power * rest + 6.931472028550421e-1F;
  power = power * rest + 1.0F;
  const Ints<kWidth> bits = (Ints<kWidth>(rounded) << 23) + (127 << 23);  // the integer, as a float's exponent
  x = power * Floats<kWidth>(bits);
}

/// Adds to the scores what kUnits units of queries and keys give.
template <int kWidth, int kUnits>
[[gnu::always_inline]] inline void add_scores(const float* queries, const float* keys, std::int64_t count,
                                              std::int64_t stride, float* scores) {
  Floats<kWidth> query[kUnits];
  for (int unit = 0; unit < kUnits; ++unit) load<kWidth>(queries + unit * stride, query[unit]);
  for (std::int64_t key = 0; key < count; ++key) {
    Floats<kWidth> score;
    load<kWidth>(scores + key * kWidth, score);
    for (int unit = 0; unit < kUnits; ++unit) score += keys[unit * stride + key] * query[unit];
    store<kWidth>(score, scores + key * kWidth);
  }
}

template <int kWidth, int kUnits>
[[gnu::always_inline]] inline void weigh_values(const float* scores, const float* values, std::int64_t count,
                                                std::int64_t stride, const Floats<kWidth>& share, float* y) {
  Floats<kWidth> sums[kUnits] = {};
  for (std::int64_t key = 0; key < count; ++key) {
    Floats<kWidth> score;
    load<kWidth>(scores + key * kWidth, score);
    for (int unit = 0; unit < kUnits; ++unit) sums[unit] += values[unit * stride + key] * score;
  }
  for (int unit = 0; unit < kUnits; ++unit) {
    sums[unit] *= share;
    store<kWidth>(sums[unit], y + unit * stride);
  }
}

/// Scores become 2^(score - greatest); leaves one over their sum.
template <int kWidth>
[[gnu::always_inline]] inline void exponentials(float* scores, std::int64_t count, Floats<kWidth>& share) {
  Floats<kWidth> greatest;
  load<kWidth>(scores, greatest);
  for (std::int64_t key = 1; key < count; ++key) {
    Floats<kWidth> score;
    load<kWidth>(scores + key * kWidth, score);
    greatest = greatest < score ? score : greatest;
  }
  Floats<kWidth> sum{};
  for (std::int64_t key = 0; key < count; ++key) {
    Floats<kWidth> score;
    load<kWidth>(scores + key * kWidth, score);
    score -= greatest;
    exp2<kWidth>(score);
    sum += score;
    store<kWidth>(score, scores + key * kWidth);
  }
  share = 1.0F / sum;
}

/// One vector of queries, one head.
template <int kWidth>
[[gnu::always_inline]] inline void attend(const AttentionHeads& heads, std::int64_t first, std::int64_t lane, float* y,
                                          std::int64_t stride, float* scores) {
  const float* queries = heads.queries + first * stride + lane;
  const float* keys = heads.keys + first * stride;
  const float* values = heads.values + first * stride;
  y += first * stride + lane;
  std::fill(scores, scores + heads.key_count * kWidth, 0.0F);
  std::int64_t unit = 0;
  for (; unit + 4 <= heads.head_width; unit += 4) {
    add_scores<kWidth, 4>(queries + unit * stride, keys + unit * stride, heads.key_count, stride, scores);
  }
  for (; unit + 2 <= heads.head_width; unit += 2) {
    add_scores<kWidth, 2>(queries + unit * stride, keys + unit * stride, heads.key_count, stride, scores);
  }
  if (unit < heads.head_width) {
    add_scores<kWidth, 1>(queries + unit * stride, keys + unit * stride, heads.key_count, stride, scores);
  }
  Floats<kWidth> share;
  exponentials<kWidth>(scores, heads.key_count, share);
  for (unit = 0; unit + 4 <= heads.head_width; unit += 4) {
    weigh_values<kWidth, 4>(scores, values + unit * stride, heads.key_count, stride, share, y + unit * stride);
  }
  for (; unit + 2 <= heads.head_width; unit += 2) {
    weigh_values<kWidth, 2>(scores, values + unit * stride, heads.key_count, stride, share, y + unit * stride);
  }
  if (unit < heads.head_width) {
    weigh_values<kWidth, 1>(scores, values + unit * stride, heads.key_count, stride, share, y + unit * stride);
  }
}

template <int kWidth>
[[gnu::always_inline]] inline void attention(const AttentionHeads& heads, float* y, std::int64_t lanes,
                                             std::int64_t stride, float* scores) {
  if (heads.key_count == 0) {
    std::fill(y, y + heads.heads * heads.head_width * stride, 0.0F);
    return;
  }
  for (std::int64_t head = 0; head < heads.heads; ++head) {
    for (std::int64_t lane = 0; lane < lanes; lane += kWidth) {
      attend<kWidth>(heads, head * heads.head_width, lane, y, stride, scores);
    }
  }
}

// --- Small perceptrons ------------------------------------------------------------------------------------------

constexpr std::int64_t kMembers = kGroupMembers;

/// One level's unit for all members, kUnits units at a time. kShared: every member has the same input, [unit].
template <int kWidth, int kUnits, bool kShared>
[[gnu::always_inline]] inline void perceptron_units(const float* weights, std::int64_t in, const float* x, float* y,
                                                    Finish finish) {
  for (std::int64_t part = 0; part < kMembers; part += kWidth) {
    Floats<kWidth> sums[kUnits];
    const std::int64_t row = (in + 1) * kMembers;
    for (int unit = 0; unit < kUnits; ++unit) load<kWidth>(weights + unit * row + part, sums[unit]);
    for (std::int64_t at = 0; at < in; ++at) {
      Floats<kWidth> value;
      if (kShared) value = Floats<kWidth>{} + x[at];
      else load<kWidth>(x + at * kMembers + part, value);
      for (int unit = 0; unit < kUnits; ++unit) {
        Floats<kWidth> weight;
        load<kWidth>(weights + unit * row + (at + 1) * kMembers + part, weight);
        sums[unit] += weight * value;
      }
    }
    for (int unit = 0; unit < kUnits; ++unit) finish_sum<kWidth>(sums[unit], y + unit * kMembers + part, finish);
  }
}

template <int kWidth, bool kShared>
[[gnu::always_inline]] inline const float* perceptron_level(const float* weights, std::int64_t in, std::int64_t out,
                                                            const float* x, float* y, Finish finish) {
  const std::int64_t row = (in + 1) * kMembers;
  std::int64_t unit = 0;
  for (; unit + 4 <= out; unit += 4) {
    perceptron_units<kWidth, 4, kShared>(weights + unit * row, in, x, y + unit * kMembers, finish);
  }
  for (; unit < out; ++unit) {
    perceptron_units<kWidth, 1, kShared>(weights + unit * row, in, x, y + unit * kMembers, finish);
  }
  return weights + out * row;
}

template <int kWidth>
[[gnu::always_inline]] inline void perceptrons(const PerceptronGroup& group, const float* x, float* sums,
                                               float* scratch) {
  const std::int64_t last = group.levels - 1;
  const std::int64_t widest = *std::max_element(group.widths + 1, group.widths + last);
  float* from = scratch;
  float* to = scratch + widest * kMembers;
  const float* weights =
      perceptron_level<kWidth, true>(group.weights, group.widths[0], group.widths[1], x, from, Finish::relu);
  for (std::int64_t level = 2; level < last; ++level) {
    weights =
        perceptron_level<kWidth, false>(weights, group.widths[level - 1], group.widths[level], from, to, Finish::relu);
    std::swap(from, to);
  }
  perceptron_level<kWidth, false>(weights, group.widths[last - 1], group.widths[last], from, sums, Finish::add);
}

// --- One plain function for each set of instructions --------------------------------------------------------------

constexpr int kPortable = 4;

GPUMEM_INLINE void portable_dense(const Dense& layer, const float* x, float* y, std::int64_t lanes, std::int64_t stride,
                                  Finish finish) {
  dense<kPortable>(layer, x, y, lanes, stride, finish);
}
GPUMEM_INLINE void portable_add_and_norm(const LayerNorm& norm, const float* addend, float* x, std::int64_t lanes,
                                         std::int64_t stride) {
  add_and_norm<kPortable>(norm, addend, x, lanes, stride);
}
GPUMEM_INLINE void portable_attention(const AttentionHeads& heads, float* y, std::int64_t lanes, std::int64_t stride,
                                      float* scores) {
  attention<kPortable>(heads, y, lanes, stride, scores);
}
GPUMEM_INLINE void portable_perceptrons(const PerceptronGroup& group, const float* x, float* sums, float* scratch) {
  perceptrons<kPortable>(group, x, sums, scratch);
}

#if defined(__x86_64__)
constexpr int kAvx2 = 8;

[[gnu::target("avx2,fma")]] GPUMEM_INLINE void avx2_dense(const Dense& layer, const float* x, float* y,
                                                          std::int64_t lanes, std::int64_t stride, Finish finish) {
  dense<kAvx2>(layer, x, y, lanes, stride, finish);
}
[[gnu::target("avx2,fma")]] GPUMEM_INLINE void avx2_add_and_norm(const LayerNorm& norm, const float* addend, float* x,
                                                                 std::int64_t lanes, std::int64_t stride) {
  add_and_norm<kAvx2>(norm, addend, x, lanes, stride);
}
[[gnu::target("avx2,fma")]] GPUMEM_INLINE void avx2_attention(const AttentionHeads& heads, float* y, std::int64_t lanes,
                                                              std::int64_t stride, float* scores) {
  attention<kAvx2>(heads, y, lanes, stride, scores);
}
[[gnu::target("avx2,fma")]] GPUMEM_INLINE void avx2_perceptrons(const PerceptronGroup& group, const float* x,
                                                                float* sums, float* scratch) {
  perceptrons<kAvx2>(group, x, sums, scratch);
}
#endif

}  // namespace kernels_detail

GPUMEM_INLINE Instructions best_instructions() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Instructions::avx2;
#endif
  return Instructions::portable;
}

GPUMEM_INLINE const Kernels& kernels(Instructions instructions) {
  namespace detail = kernels_detail;
  static constexpr Kernels kPortable = {detail::portable_dense, detail::portable_add_and_norm,
                                        detail::portable_attention, detail::portable_perceptrons};
#if defined(__x86_64__)
  static constexpr Kernels kAvx2 = {detail::avx2_dense, detail::avx2_add_and_norm, detail::avx2_attention,
                                    detail::avx2_perceptrons};
  if (instructions == Instructions::avx2 && best_instructions() == Instructions::avx2) return kAvx2;
#endif
  (void)instructions;
  return kPortable;
}

}  // namespace gpumem::ml
