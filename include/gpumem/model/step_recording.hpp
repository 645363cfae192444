// Input: what gpumem.record wrote of a training step (summary/recording.hpp reads it).
// Output: StepRecording, every kernel call and every storage of the steps, with sizes as expressions in the batch size
// and the sequence length.
// Units: elements; storages in bytes.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/named.hpp"

namespace gpumem::model {

/// A size: c[0] + c[1] batch + c[2] sequence + c[3] batch * sequence.
struct AxisExpression {
  std::array<std::int64_t, 4> c{};

  /// Nothing if it is negative or does not fit 64 bits.
  [[nodiscard]] std::optional<std::int64_t> at(std::int64_t batch, std::int64_t sequence) const;
  /// Whether it changes with an axis.
  [[nodiscard]] bool varies() const { return c[1] != 0 || c[2] != 0 || c[3] != 0; }
};

/// Indices into StepRecording::numbers.
using NumberSlice = Slice;

struct RecordedTensor {
  enum class Layout : std::uint8_t {
    contiguous,
    dense,    ///< `order` lists its axes from the outermost to the innermost in memory
    strided,  ///< `order` lists expressions: the stride of each axis
  };

  NumberSlice dims;  ///< indices into StepRecording::expressions
  NumberSlice order;
  Layout layout = Layout::contiguous;
  std::int64_t element_bytes = 4;
  core::DType dtype = core::DType::float32;  ///< of a type that gpumem does not know: one of its size
};

/// Bytes of a storage: `item` times the product of the sizes.
struct RecordedSize {
  std::int64_t item = 0;
  NumberSlice dims;
};

struct RecordedCall {
  enum class Phase : std::uint8_t {
    construction,
    forward,
    backward,
    recomputation,
    optimizer,
    communication,
    other,
  };

  std::uint32_t op = 0;     ///< index into StepRecording::strings: "aten::addmm"
  std::uint32_t layer = 0;  ///< the graph's layer that is its module
  Phase phase = Phase::other;
  bool backward_thread = false;
  NumberSlice inputs;   ///< indices into StepRecording::tensors
  NumberSlice outputs;  ///< the same
  NumberSlice extra;    ///< of a convolution: transposed, groups, which gradients (bits 1, 2, 4)
};

struct RecordedParameter {
  std::uint32_t name = 0;    ///< index into StepRecording::strings
  std::uint32_t tensor = 0;  ///< index into StepRecording::tensors
  bool trained = true;
  std::uint32_t layer = 0;       ///< the graph's layer that is its module
  std::int64_t allocation = -1;  ///< which allocation is it; -1: none was seen
  std::int64_t gradient = -1;    ///< which allocation is its gradient in the last step; -1: it has none
};

/// A kernel call of the last step and how often it ran.
struct RecordedKernel {
  std::uint32_t call = 0;
  std::int64_t times = 0;
};

struct RecordedEvent {
  enum class Kind : std::uint8_t {
    allocate,  ///< `what` is a size
    release,   ///< `what` is the number of an allocation
    begin,     ///< `what` is a call: the copies that its kernel makes of its inputs are taken
    library,   ///< `what` is a call, `detail` 0 forward, 1 the data's gradient, 2 the weight's: its workspace
    end,       ///< `what` is a call: those copies are given back
    mark,      ///< `what` is a step, `detail` a Mark: what begins here
  };
  enum class Mark : std::uint8_t { construction, forward, backward, optimizer, between_steps };
  /// What an allocation is for.
  enum class Use : std::uint8_t {
    parameter,
    buffer,
    input,
    activation,
    activation_gradient,
    gradient,
    optimizer,
    temporary,
  };

  std::uint32_t what = 0;
  std::int32_t call = -1;  ///< of an allocation; -1: of none
  Kind kind = Kind::allocate;
  std::uint8_t detail = 0;  ///< of an allocation: a Use
  std::uint8_t stream = 0;

  [[nodiscard]] bool begins(Mark phase) const {
    return kind == Kind::mark && detail == static_cast<std::uint8_t>(phase);
  }
  /// Of an allocation.
  [[nodiscard]] Use use() const { return static_cast<Use>(detail); }
};

/// The uses in the order of the numbers that a file has for them (Category in src/python/gpumem/record/run.py), with
/// the names that plan::kCategoryNames has for them.
inline constexpr std::array<Named<RecordedEvent::Use>, 8> kRecordedUses = {
    {{RecordedEvent::Use::parameter, "parameter"},
     {RecordedEvent::Use::buffer, "buffer"},
     {RecordedEvent::Use::input, "input"},
     {RecordedEvent::Use::activation, "activation"},
     {RecordedEvent::Use::activation_gradient, "activation gradient"},
     {RecordedEvent::Use::gradient, "gradient"},
     {RecordedEvent::Use::optimizer, "optimizer state"},
     {RecordedEvent::Use::temporary, "temporary"}}};

/// Names of settings, as src/python/gpumem/record/settings.py writes them.
inline constexpr std::string_view kRecordedAllocConf = "alloc_conf";
inline constexpr std::string_view kRecordedBenchmark = "cudnn_benchmark";
inline constexpr std::string_view kRecordedMemoryFraction = "memory_fraction";
inline constexpr std::string_view kRecordedGraphs = "cuda_graphs";
inline constexpr std::string_view kRecordedCompiled = "compiled";
inline constexpr std::string_view kRecordedTorch = "torch";  ///< the version that was pretended

struct StepRecording {
  std::string title;
  std::string torch;  ///< PyTorch's version
  std::array<std::int64_t, 2> capability{};
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  std::vector<std::string> axes;                       ///< none, "batch", or "batch" and "sequence"
  std::vector<std::vector<std::int64_t>> recorded_at;  ///< values of the axes
  std::vector<std::vector<std::int64_t>> checked_at;   ///< runs that the expressions gave exactly
  std::string optimizer;                               ///< its class in lower case; empty: none, or several
  std::string precision;                               ///< as in kPrecisions; empty: a mix that has no name

  std::vector<std::string> strings;
  std::vector<AxisExpression> expressions;
  std::vector<std::int64_t> numbers;
  std::vector<RecordedTensor> tensors;
  std::vector<RecordedSize> sizes;
  std::vector<RecordedCall> calls;
  std::vector<RecordedParameter> parameters;
  std::vector<RecordedKernel> kernels;
  std::vector<RecordedEvent> events;
  std::uint32_t allocations = 0;
  std::vector<std::string> invented;  ///< lines whose values only a GPU has; "" where the line is not known
  bool invented_sizes = false;        ///< some of these values decide sizes
  /// What the program sets, where it is not PyTorch's default: "cudnn_benchmark" and "true", "alloc_conf" and its text.
  std::vector<std::pair<std::string, std::string>> settings;
  bool convolves = false;   ///< calls cuDNN's convolutions
  bool normalises = false;  ///< calls cuDNN's batch normalisation

  [[nodiscard]] std::span<const std::int64_t> list(NumberSlice slice) const {
    return std::span<const std::int64_t>(numbers).subspan(slice.first, slice.count);
  }
  /// The batch size (axis 0) or the sequence length (1) of the first run, where it is known.
  [[nodiscard]] std::optional<std::int64_t> recorded(std::size_t axis) const {
    if (recorded_at.empty() || recorded_at.front().size() <= axis) return std::nullopt;
    return recorded_at.front()[axis];
  }
  /// Whether its sizes follow the batch size, or the sequence length.
  [[nodiscard]] bool follows_batch() const { return !axes.empty(); }
  /// The value of a setting; nullptr: as PyTorch has it.
  [[nodiscard]] const std::string* setting(std::string_view name) const {
    for (const auto& [known, value] : settings) {
      if (known == name) return &value;
    }
    return nullptr;
  }
  [[nodiscard]] bool follows_sequence() const { return axes.size() > 1; }
  /// The share of the GPU's memory that the program lets itself take; nothing: it does not say, or says nonsense.
  [[nodiscard]] std::optional<double> memory_fraction() const {
    const std::string* const text = setting(kRecordedMemoryFraction);
    if (text == nullptr) return std::nullopt;
    const double share = std::strtod(text->c_str(), nullptr);
    return share > 0.0 && share <= 1.0 ? std::optional(share) : std::nullopt;
  }
};

/// Which PyTorch's memory a recorded step takes: another one keeps other tensors for backward.
[[nodiscard]] inline std::string torch_text(const StepRecording& recording) {
  constexpr std::size_t kLongest = 40;
  const std::string by = "PyTorch " + core::shortened(recording.torch, kLongest);
  if (const std::string* const pretended = recording.setting(kRecordedTorch)) {
    return "a training with PyTorch " + core::shortened(*pretended, kLongest) + ", as " + by + " was told to record";
  }
  return "a training with " + by + ", which recorded it; one with PyTorch 1 keeps more tensors";
}

/// What is said about an option that a recorded step has as it ran.
[[nodiscard]] inline std::string fixed_by_recording(std::string_view option) {
  return "a recording holds how its step ran, and `" + std::string(option) +
         "` cannot be changed afterwards; record again with it";
}
/// What is said about another form of an optimizer that is not among model::kOptimizers.
inline constexpr std::string_view kUnknownRecordedOptimizer =
    "the recorded optimizer is not known, so another form of it cannot be planned; name one with `optimizer`";

}  // namespace gpumem::model
