// Input and output: arrays of float32. The loops in which a network spends its time, written once and compiled for
// several instruction sets. The program chooses one when it runs.
//
// Where nothing else is said, arrays are [unit][lane]: the lanes of a unit are side by side and are computed together.
// Lanes are jobs (an ensemble that answers many at once) or positions of a sequence (an encoder). `stride` is the
// distance from one unit's lanes to the next one's; lanes and stride are multiples of kLaneBlock.
#pragma once

#include <cstdint>

namespace gpumem::ml {

/// The instructions that the loops are compiled for.
enum class Instructions : std::uint8_t {
  portable,  ///< what the compiler takes for granted
  avx2,      ///< AVX2 and FMA, on x86-64
};

/// The fastest that this machine has.
[[nodiscard]] Instructions best_instructions();

inline constexpr std::int64_t kLaneBlock = 16;
/// Members that a PerceptronGroup computes together.
inline constexpr std::int64_t kGroupMembers = 8;

/// A Linear: weight is [out][in].
struct Dense {
  const float* weight = nullptr;
  const float* bias = nullptr;
  std::int64_t in = 0;
  std::int64_t out = 0;
};

/// What becomes of a Linear's sums.
enum class Finish : std::uint8_t {
  store,
  relu,  ///< negative ones are stored as 0
  add,   ///< they are added to what is there
};

struct LayerNorm {
  const float* weight = nullptr;
  const float* bias = nullptr;
  std::int64_t width = 0;
};

/// [unit][lane] arrays of heads * head_width units each. A query looks at the first `key_count` keys, by softmax; scale
/// and log2(e) are in the queries already, for the exponential is 2^x. No key: zeros.
struct AttentionHeads {
  const float* queries = nullptr;
  const float* keys = nullptr;
  const float* values = nullptr;
  std::int64_t heads = 0;
  std::int64_t head_width = 0;
  std::int64_t key_count = 0;
};

/// Small perceptrons of one input and one number of outputs, kGroupMembers of them a step. Widths are those of the
/// levels, input and outputs included; for each level and unit, `weights` has the bias and then the weights of its
/// inputs, each as kGroupMembers figures side by side. ReLU is between the levels.
struct PerceptronGroup {
  const float* weights = nullptr;
  const std::int64_t* widths = nullptr;
  std::int64_t levels = 0;
};

struct Kernels {
  /// y = finish(weight x + bias), for each lane.
  void (*dense)(const Dense& layer, const float* x, float* y, std::int64_t lanes, std::int64_t stride, Finish finish);
  /// x = layer norm of (x + addend) over the units, eps 1e-5, for each lane.
  void (*add_and_norm)(const LayerNorm& norm, const float* addend, float* x, std::int64_t lanes, std::int64_t stride);
  /// `scores` has room for key_count * kLaneBlock.
  void (*attention)(const AttentionHeads& heads, float* y, std::int64_t lanes, std::int64_t stride, float* scores);
  /// Adds the members' outputs to `sums`, [output][kGroupMembers]. `scratch` has room for twice the widest level but
  /// the first, times kGroupMembers.
  void (*perceptrons)(const PerceptronGroup& group, const float* x, float* sums, float* scratch);
};

/// Those for these instructions; portable where the machine lacks them.
[[nodiscard]] const Kernels& kernels(Instructions instructions);

}  // namespace gpumem::ml
