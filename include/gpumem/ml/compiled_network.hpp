// Input: a network's shape and its trained weights.
// Output: CompiledNetwork, what a call reads: weights in one array, each at a cache line, norms folded in, small
// members in groups; and the places of its results in a thread's buffers. float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/kernels.hpp"
#include "gpumem/ml/network_shape.hpp"
#include "gpumem/ml/safetensors.hpp"

namespace gpumem::ml {

namespace network_detail {

inline constexpr std::size_t kAlignment = 64;
inline constexpr std::int64_t kLine = kAlignment / sizeof(float);

/// Memory that begins at a cache line, so that no vector of weights lies across two.
template <typename T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <typename Other>
  LineAllocator(const LineAllocator<Other>& /*other*/) {}  // NOLINT: allocators convert
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(kAlignment)));
  }
  void deallocate(T* memory, std::size_t /*count*/) { ::operator delete(memory, std::align_val_t(kAlignment)); }
  friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};

using Floats = std::vector<float, LineAllocator<float>>;

/// The place of a Linear or a norm among the weights.
struct LinearAt {
  std::int64_t weight = 0;
  std::int64_t bias = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
};
struct NormAt {
  std::int64_t weight = 0;
  std::int64_t bias = 0;
};

struct EncoderLayer {
  LinearAt in_proj;   ///< Attention::self: none
  LinearAt out_proj;  ///< Attention::self: of the layer's input; value and output projection in one
  NormAt norm1;
  LinearAt linear1;
  LinearAt linear2;
  NormAt norm2;
};

struct Encoder {
  EncoderShape shape;
  std::vector<LinearAt> embedding;
  std::vector<NormAt> position_norms;  ///< [position]; as many as embeddings, or none
  std::int64_t positions = 0;          ///< [unit][position]
  std::vector<EncoderLayer> layers;
};

/// Members that PerceptronGroup can hold, for single jobs.
struct GroupAt {
  std::int64_t weights = 0;
  std::vector<std::int64_t> widths;
};

using Member = std::vector<LinearAt>;

struct Branch {
  std::optional<Encoder> encoder;
  std::int64_t in = 0;  ///< of the members
  std::vector<Member> members;
  std::vector<GroupAt> groups;
  std::vector<std::size_t> wide;  ///< members in no group
};

/// Offsets into a thread's buffers.
struct Arena {
  std::int64_t input = 0;    ///< of the members: [unit], or [unit][job]
  std::int64_t sums = 0;     ///< [output][group member]
  std::int64_t hidden = 0;   ///< twice [unit][lane]
  std::int64_t outputs = 0;  ///< [output][job]
  std::int64_t state = 0;    ///< of the encoder: [unit][position]
  std::int64_t wide = 0;     ///< [unit][position], for what is wider than the encoder
  std::int64_t narrow = 0;   ///< [unit][position]
  std::int64_t scores = 0;
  std::int64_t total = 0;
  std::int64_t half = 0;  ///< length of one of the two in `hidden`
};

struct Compiled {
  Instructions instructions = Instructions::portable;
  const Kernels* kernels = nullptr;
  std::int64_t stride = 0;  ///< of the positions
  Floats weights;
  std::vector<Branch> branches;
  Arena arena;
};

/// The least multiple of `to` that holds `count`.
[[nodiscard]] constexpr std::int64_t rounded_up(std::int64_t count, std::int64_t to) {
  return (count + to - 1) / to * to;
}

/// Errors: those of Network::create().
[[nodiscard]] core::Result<std::shared_ptr<const Compiled>> compile(const NetworkShape& shape,
                                                                    const TensorFile& weights,
                                                                    Instructions instructions);

}  // namespace network_detail

}  // namespace gpumem::ml
