// Input: which optimizer trains a model.
// Output: its row, all that gpumem knows about it: its name, what it keeps of each parameter, the temporaries of its
// step, and the kernels of that step. All other code reads the row.
// Units: tensors of a parameter's size and type, unless a field says otherwise.
// Source: torch.optim of PyTorch 2.x, each in the file that its row names; 1.13 has the same single-tensor forms.
// bitsandbytes' optimizers are one kernel a parameter, without temporaries.
//
// A step has three forms. foreach works on all parameters at once (_multi_tensor_adam). single works on one parameter
// after the other (_single_tensor_adam). fused does all in one kernel and has no temporaries. PyTorch takes
// foreach where all parameters are on a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gpumem/model/named.hpp"

namespace gpumem::model {

enum class Optimizer : std::uint8_t {
  sgd,
  sgd_momentum,
  adam,
  adamw,
  adagrad,
  rmsprop,
  adafactor,
  lion,
  nadam,
  adamax,
  radam,
  adadelta,
  muon,
  adam_8bit,
  adamw_8bit,
  lion_8bit,
  paged_adamw,
  paged_adamw_8bit,
  adamw_4bit,
  adamw_fp8,
  adamw_bf16,
  optimi_lion,
  adamw_half_states,
  galore_adamw,
  galore_adamw_8bit,
  galore_adafactor,
  apollo_adamw,
  adam_mini,
  ademamix,
  ademamix_8bit,
  schedule_free_adamw,
};

struct OptimizerRow {
  Optimizer value = Optimizer::sgd;
  std::string_view name;    ///< on the command line, in JSON, C, Python and tables of runs
  std::string_view source;  ///< the code that the figures follow

  /// When the state is made: in the first step, or with the optimizer.
  enum class StateMade : std::uint8_t { first_step, creation };
  /// `whole`: each state is as large as its parameter, of its type. `factored`: of a matrix the rows and columns of one
  /// state, in float32; of any other parameter one state as large as it. `of_matrices`: of a matrix one whole state
  /// fewer than of any other parameter. `single`: float32, whatever the parameter's type. `blockwise`: a byte an
  /// element and a float32 figure a block of 256, but float32 where the parameter has fewer than 4,096 elements.
  /// `half_bytes`: likewise, half a byte and blocks of 128, but float32 also where the blocks do not come out even.
  /// `halves`: two bytes an element, whatever the parameter's type. `figure_a_row`: the first state is whole, and of a
  /// matrix the next ones have a figure a row; its columns are counted too, which are few beside the first state.
  enum class StateShape : std::uint8_t {
    whole,
    factored,
    of_matrices,
    single,
    blockwise,
    half_bytes,
    halves,
    figure_a_row
  };

  /// Of the linear layers that the job means, states are of the gradient's projection on `TrainingJob::optimizer_rank`
  /// directions, which a matrix of its own makes. `singular`: that matrix is of the gradient's singular value
  /// decomposition; `random`: of random figures.
  enum class Projection : std::uint8_t { none, singular, random };

  int states = 0;  ///< kept of each parameter
  StateShape state_shape = StateShape::whole;
  StateMade state_made = StateMade::first_step;
  Projection projection = Projection::none;
  int scalars = 0;  ///< float32 scalars in addition (step counts): on the GPU only under the fused form
  /// Of a float32 master only what its bfloat16 parameter lacks is kept, in two bytes.
  bool keeps_remainders = false;
  bool paged = false;  ///< states of 100,000 elements or more are in unified memory, outside of PyTorch's allocator

  int foreach_temporaries = 0;     ///< of all parameters at once
  bool decay_copies = false;       ///< weight decay is added to a copy of the gradients, not to the parameters
  bool works_in_decayed = false;   ///< the foreach form: that copy then takes the place of its temporary
  int single_temporaries = 0;      ///< of one parameter at a time
  bool single_keeps_last = false;  ///< a name holds the last of these until the next parameter's are made
  int trainer_temporaries = 0;     ///< likewise in the form that transformers' Trainer has for itself; 0: it has none
  int trainer_float_temporaries = 0;  ///< the same of a parameter in lower precision, in float32
  bool has_fused = false;             ///< a fused form for parameters on a GPU

  /// The kernels of a step: passes over all parameters (foreach) or over each (single), and how many tensors of a
  /// parameter's size they read and write together; the fused form has one kernel.
  int kernels = 0;
  int kernel_tensors = 0;
  int fused_kernel_tensors = 0;  ///< 0: there is no fused form
};

/// One row an optimizer, in the order of the enum. Kernels are counted by the operations of the foreach form, each with
/// the tensors that it reads and writes: adam's are lerp 2+1, mul 1+1, addcmul 3+1, sqrt 1+1, div 1+1, add 1+1,
/// addcdiv 3+1. Those of adafactor and lion, which have no such form, are rough.
inline constexpr std::array kOptimizerRows = {
    OptimizerRow{.value = Optimizer::sgd,
                 .name = "sgd",
                 .source = "torch/optim/sgd.py",
                 .decay_copies = true,
                 .has_fused = true,
                 .kernels = 1,
                 .kernel_tensors = 3,
                 .fused_kernel_tensors = 3},
    OptimizerRow{.value = Optimizer::sgd_momentum,
                 .name = "sgd-momentum",
                 .source = "torch/optim/sgd.py, momentum above 0",
                 .states = 1,
                 .decay_copies = true,
                 .has_fused = true,
                 .kernels = 3,
                 .kernel_tensors = 8,
                 .fused_kernel_tensors = 5},
    OptimizerRow{.value = Optimizer::adam,
                 .name = "adam",
                 .source = "torch/optim/adam.py",
                 .states = 2,
                 .scalars = 1,
                 .foreach_temporaries = 1,
                 .decay_copies = true,
                 .single_temporaries = 2,
                 .single_keeps_last = true,
                 .has_fused = true,
                 .kernels = 7,
                 .kernel_tensors = 19,
                 .fused_kernel_tensors = 7},
    OptimizerRow{.value = Optimizer::adamw,
                 .name = "adamw",
                 .source = "torch/optim/adamw.py",
                 .states = 2,
                 .scalars = 1,
                 .foreach_temporaries = 1,
                 .single_temporaries = 2,
                 .single_keeps_last = true,
                 .has_fused = true,
                 .kernels = 8,
                 .kernel_tensors = 21,
                 .fused_kernel_tensors = 7},
    OptimizerRow{.value = Optimizer::adagrad,
                 .name = "adagrad",
                 .source = "torch/optim/adagrad.py",
                 .states = 1,
                 .state_made = OptimizerRow::StateMade::creation,
                 .scalars = 1,
                 .foreach_temporaries = 2,
                 .decay_copies = true,
                 .single_temporaries = 1,
                 .single_keeps_last = true,
                 .kernels = 4,
                 .kernel_tensors = 12},
    OptimizerRow{.value = Optimizer::rmsprop,
                 .name = "rmsprop",
                 .source = "torch/optim/rmsprop.py",
                 .states = 1,
                 .foreach_temporaries = 1,
                 .decay_copies = true,
                 .single_temporaries = 1,
                 .single_keeps_last = true,
                 .kernels = 5,
                 .kernel_tensors = 14},
    OptimizerRow{.value = Optimizer::adafactor,
                 .name = "adafactor",
                 .source = "torch/optim/_adafactor.py; transformers 4.30 to 5.17, optimization.py: Adafactor.step "
                           "(gradient and parameter in float32, the squared gradient before and after eps)",
                 .states = 1,
                 .state_shape = OptimizerRow::StateShape::factored,
                 .single_temporaries = 3,
                 .trainer_temporaries = 2,
                 .trainer_float_temporaries = 4,
                 .kernels = 10,
                 .kernel_tensors = 20},
    OptimizerRow{.value = Optimizer::lion,
                 .name = "lion",
                 .source = "the lion-pytorch package, lion_pytorch.py",
                 .states = 1,
                 .single_temporaries = 2,
                 .kernels = 4,
                 .kernel_tensors = 11},
    OptimizerRow{.value = Optimizer::nadam,
                 .name = "nadam",
                 .source = "torch/optim/nadam.py",
                 .states = 2,
                 .scalars = 2,  // the step and mu_product
                 .foreach_temporaries = 1,
                 .decay_copies = true,
                 .single_temporaries = 2,
                 .single_keeps_last = true,
                 .kernels = 8,  // adam's with two addcdiv
                 .kernel_tensors = 23},
    OptimizerRow{.value = Optimizer::adamax,
                 .name = "adamax",
                 .source = "torch/optim/adamax.py",
                 .states = 2,
                 .scalars = 1,
                 .foreach_temporaries = 1,
                 .decay_copies = true,
                 .works_in_decayed = true,
                 .single_temporaries = 1,
                 .kernels = 6,
                 .kernel_tensors = 16},
    OptimizerRow{.value = Optimizer::radam,
                 .name = "radam",
                 .source = "torch/optim/radam.py, from the sixth step on",
                 .states = 2,
                 .scalars = 1,
                 .foreach_temporaries = 1,
                 .decay_copies = true,
                 .works_in_decayed = true,
                 .single_temporaries = 4,
                 .single_keeps_last = true,
                 .kernels = 9,
                 .kernel_tensors = 23},
    OptimizerRow{.value = Optimizer::adadelta,
                 .name = "adadelta",
                 .source = "torch/optim/adadelta.py",
                 .states = 2,
                 .scalars = 1,
                 .foreach_temporaries = 2,
                 .decay_copies = true,
                 .single_temporaries = 2,
                 .single_keeps_last = true,
                 .kernels = 11,
                 .kernel_tensors = 29},
    // Its matrices are turned by Newton and Schulz' steps, in bfloat16; all else is AdamW's.
    OptimizerRow{.value = Optimizer::muon,
                 .name = "muon",
                 .source = "torch/optim/_muon.py of 2.9, AdamW for parameters that are not matrices",
                 .states = 2,
                 .state_shape = OptimizerRow::StateShape::of_matrices,
                 .single_temporaries = 3,
                 .kernels = 20,
                 .kernel_tensors = 48},
    OptimizerRow{.value = Optimizer::adam_8bit,
                 .name = "adam-8bit",
                 .source = "bitsandbytes 0.43, optim/optimizer.py (Optimizer2State)",
                 .states = 2,
                 .state_shape = OptimizerRow::StateShape::blockwise,
                 .kernels = 1,
                 .kernel_tensors = 4},
    OptimizerRow{.value = Optimizer::adamw_8bit,
                 .name = "adamw-8bit",
                 .source = "bitsandbytes 0.43, optim/optimizer.py (Optimizer2State)",
                 .states = 2,
                 .state_shape = OptimizerRow::StateShape::blockwise,
                 .kernels = 1,
                 .kernel_tensors = 4},
    OptimizerRow{.value = Optimizer::lion_8bit,
                 .name = "lion-8bit",
                 .source = "bitsandbytes 0.43, optim/optimizer.py (Optimizer1State)",
                 .states = 1,
                 .state_shape = OptimizerRow::StateShape::blockwise,
                 .kernels = 1,
                 .kernel_tensors = 4},
    OptimizerRow{.value = Optimizer::paged_adamw,
                 .name = "paged-adamw",
                 .source = "bitsandbytes 0.43, optim/optimizer.py (get_state_buffer)",
                 .states = 2,
                 .state_shape = OptimizerRow::StateShape::single,
                 .paged = true,
                 .kernels = 1,
                 .kernel_tensors = 7},
    OptimizerRow{.value = Optimizer::paged_adamw_8bit,
                 .name = "paged-adamw-8bit",
                 .source = "bitsandbytes 0.43, optim/optimizer.py (get_state_buffer)",
                 .states = 2,
                 .state_shape = OptimizerRow::StateShape::blockwise,
                 .paged = true,
                 .kernels = 1,
                 .kernel_tensors = 4},
    OptimizerRow{.value = Optimizer::adamw_4bit,
                 .name = "adamw-4bit",
                 .source = "torchao 0.9, optim/adam.py (AdamW4bit), subclass_4bit.py; the step is compiled",
                 .states = 2,
                 .state_shape = OptimizerRow::StateShape::half_bytes,
                 .kernels = 1,
                 .kernel_tensors = 4},
    OptimizerRow{.value = Optimizer::adamw_fp8,
                 .name = "adamw-fp8",
                 .source = "torchao 0.9, optim/adam.py (AdamWFp8), subclass_fp8.py; the step is compiled",
                 .states = 2,
                 .state_shape = OptimizerRow::StateShape::blockwise,
                 .kernels = 1,
                 .kernel_tensors = 4},
    // Its states are bfloat16 as the parameters must be: two averages, and what rounding left out. A sum with
    // stochastic rounding takes two tensors of four bytes an element, next to a root or a copy of the parameter.
    OptimizerRow{
        .value = Optimizer::adamw_bf16,
        .name = "adamw-bf16",
        .source = "SimpleTuner 2026-08, optimizers/adamw_bfloat16/__init__.py (AdamWBF16), stochastic rounding",
        .states = 3,
        .single_temporaries = 5,
        .kernels = 20,
        .kernel_tensors = 50},
    OptimizerRow{.value = Optimizer::optimi_lion,
                 .name = "optimi-lion",
                 .source = "optimi 0.2, lion.py with kahan_sum, which keeps a compensation of each parameter",
                 .states = 2,
                 .foreach_temporaries = 1,
                 .single_temporaries = 1,
                 .kernels = 8,
                 .kernel_tensors = 20},
    // Megatron's --use-precision-aware-optimizer with both averages in two bytes.
    OptimizerRow{.value = Optimizer::adamw_half_states,
                 .name = "adamw-half-states",
                 .source = "TransformerEngine 2.1, pytorch/optimizers/fused_adam.py (exp_avg_dtype, exp_avg_sq_dtype, "
                           "store_param_remainders)",
                 .states = 2,
                 .state_shape = OptimizerRow::StateShape::halves,
                 .keeps_remainders = true,
                 .has_fused = true,
                 .kernels = 1,
                 .kernel_tensors = 7,
                 .fused_kernel_tensors = 7},
    // Each is AdamW or another of its own for what is not projected. Bringing a step back makes two whole tensors.
    OptimizerRow{.value = Optimizer::galore_adamw,
                 .name = "galore-adamw",
                 .source = "GaLore 2024-09, galore_torch/adamw.py, galore_projector.py (proj_type std)",
                 .states = 2,
                 .projection = OptimizerRow::Projection::singular,
                 .single_temporaries = 2,
                 .single_keeps_last = true,
                 .kernels = 12,
                 .kernel_tensors = 12},
    OptimizerRow{.value = Optimizer::galore_adamw_8bit,
                 .name = "galore-adamw-8bit",
                 .source = "GaLore 2024-09, galore_torch/adamw8bit.py; bitsandbytes 0.43, optim/optimizer.py",
                 .states = 2,
                 .state_shape = OptimizerRow::StateShape::blockwise,
                 .projection = OptimizerRow::Projection::singular,
                 .single_temporaries = 2,
                 .kernels = 6,
                 .kernel_tensors = 10},
    OptimizerRow{.value = Optimizer::galore_adafactor,
                 .name = "galore-adafactor",
                 .source = "GaLore 2024-09, galore_torch/adafactor.py without beta1",
                 .states = 1,
                 .state_shape = OptimizerRow::StateShape::factored,
                 .projection = OptimizerRow::Projection::singular,
                 .single_temporaries = 3,
                 .kernels = 14,
                 .kernel_tensors = 20},
    OptimizerRow{.value = Optimizer::apollo_adamw,
                 .name = "apollo-adamw",
                 .source = "APOLLO 2025-04, apollo_torch/apollo.py, random_projector.py",
                 .states = 2,
                 .projection = OptimizerRow::Projection::random,
                 .single_temporaries = 2,
                 .single_keeps_last = true,
                 .kernels = 12,
                 .kernel_tensors = 12},
    // Its update and that with the sign turned; of biases it keeps what Adam does.
    OptimizerRow{.value = Optimizer::adam_mini,
                 .name = "adam-mini",
                 .source = "Adam-mini 1.1.1, adam_mini/adam_mini.py",
                 .states = 2,
                 .state_shape = OptimizerRow::StateShape::figure_a_row,
                 .single_temporaries = 2,
                 .single_keeps_last = true,
                 .kernels = 9,
                 .kernel_tensors = 18},
    // Two averages of the gradient, a fast and a slow one, and one of its square.
    OptimizerRow{.value = Optimizer::ademamix,
                 .name = "ademamix",
                 .source = "bitsandbytes 0.45, optim/ademamix.py",
                 .states = 3,
                 .state_shape = OptimizerRow::StateShape::single,
                 .kernels = 1,
                 .kernel_tensors = 9},
    OptimizerRow{.value = Optimizer::ademamix_8bit,
                 .name = "ademamix-8bit",
                 .source = "bitsandbytes 0.45, optim/ademamix.py",
                 .states = 3,
                 .state_shape = OptimizerRow::StateShape::blockwise,
                 .kernels = 1,
                 .kernel_tensors = 5},
    // An average of the gradient's square, and the weights that it steps from.
    OptimizerRow{.value = Optimizer::schedule_free_adamw,
                 .name = "schedule-free-adamw",
                 .source = "schedule_free 1.4, schedulefree/adamw_schedulefree.py",
                 .states = 2,
                 .foreach_temporaries = 1,
                 .single_temporaries = 1,
                 .single_keeps_last = true,
                 .kernels = 9,
                 .kernel_tensors = 23},
};

[[nodiscard]] constexpr const OptimizerRow& row_of(Optimizer optimizer) {
  return kOptimizerRows[static_cast<std::size_t>(optimizer)];
}

/// Tensors of a parameter's size that the optimizer keeps of every parameter; of factored states none is, and bytes are
/// no tensors of that size. What is paged counts: it is kept, if not on the GPU.
[[nodiscard]] constexpr std::int64_t optimizer_states(Optimizer optimizer) {
  const OptimizerRow& row = row_of(optimizer);
  if (row.projection != OptimizerRow::Projection::none) return 0;
  switch (row.state_shape) {
    case OptimizerRow::StateShape::whole:
    case OptimizerRow::StateShape::single: return row.states;
    case OptimizerRow::StateShape::of_matrices:
    case OptimizerRow::StateShape::figure_a_row: return row.states - 1;
    case OptimizerRow::StateShape::factored:
    case OptimizerRow::StateShape::blockwise:
    case OptimizerRow::StateShape::half_bytes:
    case OptimizerRow::StateShape::halves: break;
  }
  return 0;
}

/// The bytes of one state of a parameter, `index` the first or a later one; 0: this parameter has no such state on
/// the GPU. `factored`: the rows and columns of a matrix, 0 for other shapes.
[[nodiscard]] constexpr std::int64_t state_bytes(const OptimizerRow& row, int index, std::int64_t elements,
                                                 std::int64_t bytes, std::int64_t factored) {
  constexpr std::int64_t kSingle = 4;  // bytes of a float32
  constexpr std::int64_t kHalf = 2;    // of a bfloat16
  const bool halves = row.state_shape == OptimizerRow::StateShape::half_bytes;
  const std::int64_t block = halves ? 128 : 256;
  constexpr std::int64_t kLeastBlockwise = 4096;
  constexpr std::int64_t kLeastPaged = 100000;
  const bool paged = row.paged && elements >= kLeastPaged;
  switch (row.state_shape) {
    case OptimizerRow::StateShape::whole: return bytes;
    case OptimizerRow::StateShape::factored: return factored > 0 ? factored * kSingle : bytes;
    case OptimizerRow::StateShape::of_matrices: return factored > 0 && index + 1 == row.states ? 0 : bytes;
    case OptimizerRow::StateShape::figure_a_row:
      return factored > 0 && index > 0 ? factored * (bytes / elements) : bytes;
    case OptimizerRow::StateShape::single: return paged ? 0 : elements * kSingle;
    case OptimizerRow::StateShape::halves: return elements * kHalf;
    case OptimizerRow::StateShape::blockwise:
    case OptimizerRow::StateShape::half_bytes: break;
  }
  const bool even = elements % block == 0;
  if (elements < kLeastBlockwise || (halves && !even)) return elements * kSingle;
  const std::int64_t figures = (elements / block + (even ? 0 : 1)) * kSingle;
  if (paged) return figures;
  return (halves ? elements / 2 : elements) + figures;
}

/// The bytes of a parameter's float32 master, where the parameter has one. `reduced`: it is bfloat16, and not float8.
[[nodiscard]] constexpr std::int64_t master_bytes(const OptimizerRow& row, std::int64_t elements, bool reduced) {
  constexpr std::int64_t kSingle = 4;
  constexpr std::int64_t kRemainder = 2;
  return elements * (row.keeps_remainders && reduced ? kRemainder : kSingle);
}

/// Only the names, as the other choices of a job have them.
inline constexpr auto kOptimizers = [] {
  std::array<Named<Optimizer>, kOptimizerRows.size()> names{};
  for (std::size_t index = 0; index < names.size(); ++index) {
    names[index] = {kOptimizerRows[index].value, kOptimizerRows[index].name};
  }
  return names;
}();

static_assert(
    [] {
      for (std::size_t index = 0; index < kOptimizerRows.size(); ++index) {
        const OptimizerRow& row = kOptimizerRows[index];
        if (static_cast<std::size_t>(row.value) != index) return false;
        if (row.has_fused != (row.fused_kernel_tensors > 0)) return false;
      }
      return true;
    }(),
    "the rows stand in the order of the enum, and what has a fused form says what its kernel moves");

}  // namespace gpumem::model
