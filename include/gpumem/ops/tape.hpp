// Input: what one layer computes, call by call, as its op's rule tells it.
// Output: Tape, the autograd graph of a whole model as PyTorch would record it: tensors, and functions with what each
// keeps for its backward and what it allocates in either direction.
// Units: elements, for any batch size N; bytes(N) turns them into bytes.
// Source: torch.autograd (derivatives.yaml, FunctionsManual.cpp); each op names the function that it follows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::ops {

/// How a tensor is made in parts, one at a time: in so few that a part would take `target` MiB in float32; 0: as a
/// whole. Their number is one, or a multiple of four. Source: unsloth_zoo 2026-08 (of `nearest`: 2025-08 to 2026-06),
/// fused_losses/cross_entropy_loss.py: get_chunk_size().
struct Chunks {
  std::int32_t target = 0;
  bool nearest = false;  ///< the number is rounded to the nearest, half to even, in place of up

  [[nodiscard]] std::int64_t count(std::int64_t elements) const;
  /// The most elements that a part has, whatever the size of the whole up to this one.
  [[nodiscard]] std::int64_t largest(std::int64_t elements) const;
};

/// How large a tensor is for any batch size: elements · N^batch_power · element size, or a part of it.
struct TensorSize {
  core::Checked elements = 0;
  std::uint8_t batch_power = 0;
  core::DType dtype = core::DType::float32;
  Chunks chunks = {};
  bool of_several = false;  ///< nothing in a batch of one: there an axis that is expanded behind the batch's is a view

  [[nodiscard]] core::Checked bytes(std::int64_t batch_size) const {
    if (of_several && batch_size <= 1) return 0;
    core::Checked result = elements * core::Checked(core::element_size(dtype));
    for (std::uint8_t power = 0; power < batch_power; ++power) result *= batch_size;
    return chunks.target == 0 ? result : part_of(result);
  }
  /// How many bytes more a part of a smaller batch may have.
  [[nodiscard]] std::int64_t more_in_smaller_batches(std::int64_t batch_size) const;
  /// The same elements in another type.
  [[nodiscard]] TensorSize as(core::DType other) const { return {elements, batch_power, other, {}, of_several}; }
  /// `count` such tensors in one.
  [[nodiscard]] TensorSize times(std::int64_t count) const {
    return {elements * count, batch_power, dtype, {}, of_several};
  }

 private:
  [[nodiscard]] core::Checked part_of(core::Checked whole) const;
};

/// The size of a tensor of this shape; nothing if a dimension is unknown.
[[nodiscard]] std::optional<TensorSize> size_of(const core::Shape& shape, core::DType dtype = core::DType::float32);

/// The product of all axes but the last `count`: the rows that a normalisation or softmax works on.
[[nodiscard]] std::optional<TensorSize> rows_of(const core::Shape& shape, std::size_t count = 1);

using TensorId = std::int32_t;
inline constexpr TensorId kNoTensor = -1;

/// In what order a tensor's axes lie in memory, outermost first; a view may also leave gaps between its rows.
struct Layout {
  static constexpr std::uint32_t kInOrder = 0x76543210;  ///< four bits a place: the axis that lies there

  std::uint32_t order = kInOrder;
  bool gaps = false;

  [[nodiscard]] bool dense() const { return order == kInOrder && !gaps; }
  [[nodiscard]] std::uint32_t axis_at(std::size_t place) const { return order >> (4 * place) & 0xFU; }
  /// The layout after the axes are renamed: new axis j is old axis dims[j].
  [[nodiscard]] Layout permuted(std::span<const std::size_t> dims) const;
  /// The layout after the axis has become `count` axes: none (it had one element), or several that lie where it lay.
  [[nodiscard]] Layout regrouped(std::size_t axis, std::size_t count) const;
  /// The layout after an axis of one element has come in before this one.
  [[nodiscard]] Layout with_axis(std::size_t axis) const;
  /// The layout after the axes first..last have become one, if they lie side by side in their order without gaps;
  /// nothing: only a copy can make them one.
  [[nodiscard]] std::optional<Layout> merged(std::size_t first, std::size_t last) const;
  /// The layout after a tensor of the first shape is viewed as one of the second (at::detail::computeStride); nothing:
  /// only a copy can be.
  [[nodiscard]] std::optional<Layout> viewed(const core::Shape& from, const core::Shape& to) const;
  /// Images with their channels innermost in memory, which cuDNN reads and writes as they are.
  [[nodiscard]] bool channels_last(std::size_t rank) const;
  /// Whether the first `count` axes are one run in memory, so that a view can make them one axis.
  [[nodiscard]] bool leading_axes_merge(std::size_t count) const;

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// One tensor on the tape.
struct TapeTensor {
  TensorSize size;
  TensorId storage = kNoTensor;  ///< the tensor whose memory it uses: itself, or what it is a view of
  std::uint32_t layer = 0;
  bool requires_grad = false;
  Layout layout = {};
  bool view = false;  ///< shares its memory in autograd's eyes too: what writes to it rewrites its base's history
};

/// A library that takes memory of its own while a function runs.
enum class Library : std::uint8_t {
  none,
  gemm,          ///< cuBLAS: one workspace a thread, kept
  gemm_bias,     ///< cuBLASLt with the bias in its epilogue: also a transient workspace a call (forward)
  grouped_gemm,  ///< TransformerEngine's of experts: a workspace for each of its streams, kept
  convolution,   ///< cuDNN: a transient workspace a call, in each direction
};

/// What the gradient of an input is made of.
enum class Gradient : std::uint8_t {
  fresh,   ///< a tensor of its own, of the input's size
  passed,  ///< the output's gradient itself (add, view, flatten)
  part,    ///< a view of part of the output's gradient (concat)
  spread,  ///< a view that repeats the output's gradient (sum)
  joined,  ///< the parts' gradients, copied into one fresh tensor (split)
  none,    ///< no gradient flows back
  /// Forward has made them, as extras: of each input that gets one, then of each trained parameter.
  made_in_forward,
  over_input,  ///< the memory of the input, which is kept for it: the kernel writes it there
  by_sample,   ///< those of single samples, one after another, and then one tensor of all
};

/// Whether a call allocates its output, or looks at or overwrites the memory of its first input.
enum class Output : std::uint8_t {
  fresh,
  view,
  unsafe_view,  ///< a view that autograd takes for a tensor of its own (aten::unsafe_chunk, _unsafe_view)
  in_place,
};

/// Which type autocast computes in. Source: the op lists of PyTorch's torch.amp page (CUDA): matrix products,
/// convolutions, prelu and recurrent cells to float16; powers, exponentials, sums, softmax, normalisation over rows and
/// losses to float32; all other ops take what they get, and the widest of it.
enum class Autocast : std::uint8_t {
  as_is,  ///< the widest of its inputs
  lower,  ///< float16 or bfloat16: matrix products and convolutions
  full,   ///< float32: normalisation over rows, softmax, losses, powers
};

/// A convolution as cuDNN sees it: spatial sizes of input and output, three axes at most.
struct Convolution {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  std::int64_t input_pixels = 0;   ///< a sample and channel
  std::int64_t output_pixels = 0;  ///< a sample and channel
  std::int64_t kernel_elements = 1;
  std::int64_t kernel = 1;  ///< on the last axis
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::uint8_t axes = 2;
  bool transposed = false;
  core::DType dtype = core::DType::float32;

  /// For one sample: each pixel that the kernel visits, times the kernel's elements of a group's channels.
  [[nodiscard]] core::Checked multiply_adds() const {
    const std::int64_t visits = transposed ? input_pixels : output_pixels;
    return core::Checked(visits) * out_channels * (in_channels / std::max<std::int64_t>(groups, 1)) * kernel_elements;
  }
};

/// One call of an autograd function, to be recorded. Sizes have the element type of the call, which autocast
/// may change, except `extras` and scratch marked with a type of their own.
struct Call {
  std::span<const TensorId> inputs = {};
  TensorSize output = {};
  bool typed = false;  ///< a float32 output is one; else it has the type that the call computes in
  Output kind = Output::fresh;
  Layout layout = {};              ///< of the output
  std::uint32_t saved_inputs = 0;  ///< bit i: backward keeps input i
  /// Bit i: backward reads input i only for the first parameter's gradient, so it keeps it only where that is trained.
  /// Source: gen_variable_type.py, guard_for: a tensor that only one formula names is saved if that formula is needed.
  std::uint32_t saved_for_weight = 0;
  bool saves_output = false;
  std::span<const TensorSize> extras = {};            ///< made in addition to the output, kept for backward
  bool extras_first = false;                          ///< made before the output, not after it
  std::span<const TensorSize> scratch = {};           ///< forward's, given back when the call ends
  std::span<const TensorSize> backward_scratch = {};  ///< backward's, given back when it ends
  std::span<const TensorId> parameters = {};          ///< read, and given gradients
  TensorSize host_weight = {};                        ///< copied from the host for the call, and again for its backward
  Gradient gradient = Gradient::fresh;
  std::uint32_t no_gradient = 0;  ///< bit i: input i gets none (indices, masks)
  Library library = Library::none;
  const Convolution* convolution = nullptr;
  /// What forward multiplies and adds, pairs of operations, of matrix products; a convolution's follow from itself.
  /// Each gradient of an operand takes as many. Counted in elements, for any batch size; the type is the call's.
  TensorSize multiply_adds = {};
  Autocast autocast = Autocast::as_is;
  bool contiguous_gradient = false;     ///< backward copies an output gradient that is not dense
  bool folds = false;                   ///< a product that sees rows of several axes as a matrix: so is their gradient
  bool keeps_until_graph_ends = false;  ///< what it saves is an attribute of its node, which lives as long as the graph
  bool own_copy = false;                ///< the kernels copy a first input that is not dense, each for itself
  bool differentiable = true;           ///< false: the output needs no gradient whatever the inputs
  bool reduce_scatters = false;         ///< the ranks' results are summed, and each rank keeps a part of the sum
  bool of_first_type = false;  ///< computes in its first input's type, whatever type the others have (batch norms)
};

/// A call that autograd recorded.
struct Function {
  std::uint32_t layer = 0;
  TensorId output = kNoTensor;
  model::Slice inputs;
  model::Slice saved;  ///< its extras among them
  model::Slice extras;
  model::Slice scratch;
  model::Slice backward_scratch;
  model::Slice parameters;
  std::uint32_t no_gradient = 0;
  std::int32_t convolution = -1;
  TensorId host_weight = kNoTensor;
  TensorSize multiply_adds = {};  ///< of the type it computes in; calls that only move bytes count nothing
  Output kind = Output::fresh;
  Gradient gradient = Gradient::fresh;
  Library library = Library::none;
  bool extras_first = false;
  bool contiguous_gradient = false;
  bool folds = false;
  bool keeps_until_graph_ends = false;
  bool reduce_scatters = false;
  bool casts_parameters = false;  ///< autocast makes a lower-precision copy of each, once a forward pass
};

/// How far a tape has come.
struct TapeMark {
  std::uint32_t tensors = 0;
  std::uint32_t functions = 0;
  std::uint32_t lists = 0;
  std::uint32_t convolutions = 0;
  std::uint32_t parameters = 0;
  std::uint32_t buffers = 0;
  std::uint32_t requirements = 0;  ///< of gradients, which change a tensor that was there
};

/// What one layer has recorded.
struct LayerCalls {
  TapeMark first;
  TapeMark end;
  std::vector<TensorId> inputs;  ///< that its rule was given
  TensorId output = kNoTensor;
};

/// Whose memory behaviour is recorded: kernels differ in what they keep.
enum class Backend : std::uint8_t {
  cuda,
  cpu,  ///< what FakeTensorMode shows on a machine without a GPU
};

class Tape {
 public:
  explicit Tape(model::Precision precision = model::Precision::fp32, Backend backend = Backend::cuda)
      : precision_(precision), backend_(backend) {}

  [[nodiscard]] Backend backend() const { return backend_; }
  [[nodiscard]] model::Precision precision() const { return precision_; }
  /// The type that tensors of the model have, unless autocast lowers it.
  [[nodiscard]] core::DType dtype() const { return model::parameter_dtype(precision_); }
  /// The type that matrix products of the model's tensors have: autocast's, or dtype().
  [[nodiscard]] core::DType product_dtype() const { return computing_type({.autocast = Autocast::lower}); }

  /// What a kernel takes for itself while it runs: FakeTensorMode, which runs none, does not see it.
  [[nodiscard]] std::span<const TensorSize> own_scratch(std::span<const TensorSize> sizes) const {
    return backend_ == Backend::cuda ? sizes : std::span<const TensorSize>();
  }

  /// Makes room for about this many layers' calls: growing long arrays costs as much as recording.
  void reserve(std::size_t layers) {
    constexpr std::size_t kMost = 2;  // calls or tensors a layer, in nearly all models
    functions_.reserve(kMost * layers);
    tensors_.reserve(kMost * layers);
    lists_.reserve(4 * kMost * layers);
  }

  /// Calls recorded from now on belong to this layer. `wide`: torch.autocast(dtype=float32) is around it, so that what
  /// autocast lowers is float32, whatever the job's precision.
  void begin_layer(std::uint32_t layer, bool wide = false) {
    layer_ = layer;
    wide_ = wide;
    layer_parameters_.clear();
  }

  /// A tensor from outside: a batch of inputs or labels.
  TensorId add_input(const TensorSize& size);
  /// A parameter of the current layer; a tied one is held by an earlier layer, a frozen one gets no gradient.
  /// `factored` is rows + columns of what Adafactor keeps of its second moment; 0: as many elements as it has.
  /// `dtype`: nothing is the type of the model's parameters.
  TensorId add_parameter(core::Checked elements, bool tied = false, bool frozen = false, core::Checked factored = 0,
                         std::optional<core::DType> dtype = {});
  /// Something the layer holds that is not trained: running statistics, masks.
  TensorId add_buffer(const TensorSize& size);
  /// Tensor.requires_grad_(): a gradient flows back to it, and ends there.
  void require_grad(TensorId id) {
    tensors_[static_cast<std::size_t>(id)].requires_grad = true;
    ++requirements_;
  }
  [[nodiscard]] TapeMark mark() const;
  /// Whether a rule that is given these inputs cannot tell them from the ones that `calls` was recorded with.
  [[nodiscard]] bool reads_alike(const LayerCalls& calls, std::span<const TensorId> inputs) const;
  /// Records the same calls once more, of the current layer and with inputs that are alike. Returns their output.
  TensorId repeat(const LayerCalls& calls, std::span<const TensorId> inputs);
  /// Records a call and returns its output. Written to in place, a view's history is rewritten (CopySlices): backward
  /// copies the gradient of the base, cuts and copies the part that was written, and puts its gradient back.
  TensorId record(const Call& call);
  /// The type that a call computes in: autocast's, or else the widest of its floating-point inputs'.
  [[nodiscard]] core::DType computing_type(const Call& call) const;
  /// The tensor in another type: itself if it has that type already (torch.Tensor.to).
  TensorId cast(TensorId id, core::DType dtype);
  /// A rule asked which kernel the GPU takes.
  void choose_kernel() { chooses_kernels_ = true; }
  [[nodiscard]] bool chooses_kernels() const { return chooses_kernels_; }
  /// Parameters added to the current layer.
  [[nodiscard]] std::span<const TensorId> layer_parameters() const { return layer_parameters_; }
  [[nodiscard]] const TapeTensor& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }

  struct Parameter {
    TensorId tensor = kNoTensor;
    bool tied = false;
    bool frozen = false;
    core::Checked factored = 0;
  };

  [[nodiscard]] std::span<const TapeTensor> tensors() const { return tensors_; }
  [[nodiscard]] std::span<const Function> functions() const { return functions_; }
  [[nodiscard]] std::span<const TensorId> list(model::Slice slice) const {
    return std::span<const TensorId>(lists_).subspan(slice.first, slice.count);
  }
  [[nodiscard]] std::span<const Convolution> convolutions() const { return convolutions_; }
  [[nodiscard]] std::span<const Parameter> parameters() const { return parameters_; }
  [[nodiscard]] std::span<const TensorId> buffers() const { return buffers_; }
  [[nodiscard]] std::span<const TensorId> inputs() const { return inputs_; }

 private:
  TensorId add(const TensorSize& size);
  TensorId record_call(const Call& call);
  model::Slice keep_saved(const Call& call, std::span<const TensorId> inputs, const Function& function);
  [[nodiscard]] bool casts_any(std::span<const TensorId> parameters, core::DType type) const;
  [[nodiscard]] bool asks_for_gradients(const Call& call, std::span<const TensorId> inputs) const;
  model::Slice keep(std::span<const TensorId> ids);
  model::Slice add_all(std::span<const TensorSize> sizes, std::span<const TensorSize> more = {});
  void repeat_functions(const LayerCalls& calls, const TapeMark& now, std::span<const TensorId> inputs);

  model::Precision precision_;
  Backend backend_;
  std::uint32_t layer_ = 0;
  std::uint32_t requirements_ = 0;
  bool wide_ = false;
  bool chooses_kernels_ = false;
  std::vector<TapeTensor> tensors_;
  std::vector<Function> functions_;
  std::vector<TensorId> lists_;
  std::vector<Convolution> convolutions_;
  std::vector<Parameter> parameters_;
  std::vector<TensorId> buffers_;
  std::vector<TensorId> inputs_;
  std::vector<TensorId> layer_parameters_;
  std::vector<TensorId> cast_inputs_;
};

}  // namespace gpumem::ops
