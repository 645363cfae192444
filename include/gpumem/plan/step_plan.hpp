// Input: a forward pass and how it is trained.
// Output: StepPlan, the ordered allocations and frees of a training run, from the model's construction to a step that
// repeats.
// Units: bytes as the program asks for them; the allocator rounds them.
// Source: torch/csrc/autograd/engine.cpp, input_buffer.cpp, torch/optim.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/plan/forward_pass.hpp"

namespace gpumem::plan {

/// What a tensor is for.
enum class Category : std::uint8_t {
  parameter,
  buffer,
  input,
  activation,           ///< outputs and what backward keeps
  activation_gradient,  ///< alive within backward
  gradient,             ///< of parameters
  optimizer,            ///< its state
  temporary,            ///< given back by the call that took it
  gathered,             ///< whole parameters of a unit that is sharded
  communication,        ///< buckets, and what collectives read
};
inline constexpr std::size_t kCategories = 10;

enum class Phase : std::uint8_t { construction, summary, batch, forward, backward, optimizer, validation };

/// The names used in reports and JSON, one row a value.
inline constexpr std::array<model::Named<Category>, kCategories> kCategoryNames = {
    {{Category::parameter, "parameter"},
     {Category::buffer, "buffer"},
     {Category::input, "input"},
     {Category::activation, "activation"},
     {Category::activation_gradient, "activation gradient"},
     {Category::gradient, "gradient"},
     {Category::optimizer, "optimizer state"},
     {Category::temporary, "temporary"},
     {Category::gathered, "gathered parameter"},
     {Category::communication, "communication"}}};
/// The part of a breakdown that people count it to, by the names of estimate::kBreakdownRows.
[[nodiscard]] constexpr std::string_view part_of(Category category) {
  switch (category) {
    case Category::parameter:
    case Category::buffer: return "parameters";
    case Category::gradient: return "gradients";
    case Category::optimizer: return "optimizer";
    case Category::temporary: return "temporaries";
    case Category::gathered: return "gathered";
    case Category::communication: return "communication";
    case Category::input:
    case Category::activation:
    case Category::activation_gradient: break;
  }
  return "activations";
}
inline constexpr std::array<model::Named<Phase>, 7> kPhaseNames = {{{Phase::construction, "construction"},
                                                                    {Phase::summary, "summary"},
                                                                    {Phase::batch, "batch"},
                                                                    {Phase::forward, "forward"},
                                                                    {Phase::backward, "backward"},
                                                                    {Phase::optimizer, "optimizer"},
                                                                    {Phase::validation, "validation"}}};

/// Memory has a slot from its allocation to its release; then the slot is used again.
struct Event {
  enum class Kind : std::uint8_t {
    allocate,
    release,
    call,
    empty_cache,  ///< torch.cuda.empty_cache()
  };

  std::int64_t bytes = 0;   ///< of an allocation
  std::uint32_t slot = 0;   ///< of an allocation or release
  std::uint32_t layer = 0;  ///< kNoLayer: of no layer (optimizer, inputs)
  std::uint32_t call = 0;   ///< of a call: which of the plan's library calls
  Kind kind = Kind::allocate;
  Category category = Category::activation;
  std::uint8_t stream = 0;  ///< of an allocation: which CUDA stream's
};
inline constexpr std::uint32_t kNoLayer = UINT32_MAX;

/// Which pass of a layer calls a library: the workspace differs.
enum class Direction : std::uint8_t { forward, data_gradient, weight_gradient };

/// A call that takes a library's workspace; device/workspace.hpp says how much.
struct LibraryCall {
  ops::Library library = ops::Library::gemm;
  Direction direction = Direction::forward;
  bool backward_thread = false;   ///< PyTorch runs backward on a thread of its own, with a cuBLAS handle of its own
  std::int32_t convolution = -1;  ///< index into the plan's convolutions
  std::int64_t batch_size = 0;
};

/// Where a phase of the run begins.
struct PhaseMark {
  std::size_t first_event = 0;
  Phase phase = Phase::construction;
  std::int32_t step = 0;  ///< 1 for the first training step
  std::int64_t batch_size = 0;
};

struct StepPlan {
  std::vector<Event> events;
  std::vector<LibraryCall> calls;
  std::vector<PhaseMark> phases;
  std::vector<ops::Convolution> convolutions;  ///< that calls name
  std::uint32_t slots = 0;                     ///< how many slots the events name
  std::int64_t cublas_workspace = 0;           ///< bytes that each thread's cuBLAS takes; 0: what the GPU's kind takes
  std::int64_t peak_bytes = 0;                 ///< the most that tensors hold at once: no allocator manages with less

  /// The phase that this event belongs to.
  [[nodiscard]] const PhaseMark& phase_of(std::size_t event) const;
};

/// The run: construction, an optional summary pass, the first two steps, then, if batches differ, the last batch of
/// an epoch, a validation pass and one step more. `reused` is a plan that is no longer needed, whose memory it takes. A
/// plan that comes to hold more than `most` bytes at once ends there: it says that it does, and nothing else.
/// Errors: overflow, naming the layer whose tensor does not fit; those of parallel::sharing_of(); deadline_exceeded.
[[nodiscard]] core::Result<StepPlan> make_step_plan(const model::TrainingJob& job, const ForwardPass& pass,
                                                    StepPlan reused = {}, std::int64_t most = INT64_MAX);

/// A part of a run: a training step, or a forward pass without gradients.
enum class RunPart : std::uint8_t { train, forward };

/// The model's construction and these parts, one after another, each with a mark for every phase in it. Errors: those
/// of make_step_plan().
[[nodiscard]] core::Result<StepPlan> make_run_plan(const model::TrainingJob& job, const ForwardPass& pass,
                                                   std::span<const RunPart> parts);

// Input: a forward pass and how it is trained.
// Output: StepWork, the kernels of one training step in launch order: what each multiplies, which bytes it moves, how
// many elements its grid covers. Counts are exact for the forward pass. The libraries launch more kernels (layout
// changes, splits of a sum), which are not counted exactly.
// Units: multiply-adds (two operations each), bytes, elements.
//
//   forward     one kernel for each recorded call that makes or overwrites a tensor; none for views
//   backward    for a matrix product or convolution one kernel for each operand that gets a gradient, each with
//               forward's multiply-adds (derivatives.yaml), and one for a bias; one kernel for fused attention, with
//               2.5 times forward's; for any other call one kernel; and one where gradients meet
//   optimizer   the multi-tensor form's passes over all parameters, or one kernel for each parameter and pass

struct Kernel {
  enum class Kind : std::uint8_t {
    product,      ///< a matrix product: cuBLAS; attention that is one kernel
    convolution,  ///< cuDNN
    elementwise,  ///< moves bytes: activations, norms, sums, copies
    optimizer,    ///< moves the parameters, gradients and states
  };

  double multiply_adds = 0.0;
  double bytes = 0.0;    ///< read and written, each tensor once
  double outputs = 0.0;  ///< elements that it makes
  double depth = 0.0;    ///< multiply-adds an output: what a grid can be split along
  core::DType dtype = core::DType::float32;
  Kind kind = Kind::elementwise;
  Phase phase = Phase::forward;
  bool attends = false;       ///< a product that is attention in one kernel
  bool backwards = false;     ///< and makes its gradients
  std::int32_t launches = 1;  ///< as many alike, which share the figures above
};

struct StepWork {
  std::vector<Kernel> kernels;
  double input_bytes = 0.0;  ///< of the batches that a step reads, labels included
  std::int64_t passes = 1;   ///< forward-backward passes, each with a batch of its own
};

/// One step on full batches. Errors: overflow, naming the layer whose tensor or product does not fit; those of finding
/// blocks to checkpoint.
[[nodiscard]] core::Result<StepWork> step_work(const model::TrainingJob& job, const ForwardPass& pass);

}  // namespace gpumem::plan
