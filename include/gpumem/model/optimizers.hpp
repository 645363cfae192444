// Enters: which optimizer trains a model. Leaves: its row, all that gpumem knows of it: its name, what it keeps of each
// parameter, the temporaries of its step, and the kernels of that step. Every other place reads the row.
// Units: tensors of a parameter's size and type, unless a field says otherwise.
// Source: torch.optim of PyTorch 2.x, each in the file that its row names; 1.13 has the same single-tensor forms.
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

enum class Optimizer : std::uint8_t { sgd, sgd_momentum, adam, adamw, adagrad, rmsprop, adafactor, lion, nadam };

struct OptimizerRow {
  Optimizer value = Optimizer::sgd;
  std::string_view name;    ///< on the command line, in JSON, C, Python and tables of runs
  std::string_view source;  ///< the code that the figures follow

  /// When the state is made: in the first step, or with the optimizer.
  enum class StateMade : std::uint8_t { first_step, creation };
  /// `whole`: each state is as large as its parameter, of its type. `factored`: of a matrix the rows and columns of one
  /// state, in float32; of any other parameter one state as large as it.
  enum class StateShape : std::uint8_t { whole, factored };

  int states = 0;  ///< kept of each parameter
  StateShape state_shape = StateShape::whole;
  StateMade state_made = StateMade::first_step;
  int scalars = 0;  ///< float32 scalars beside them (step counts): on the GPU only under the fused form

  int foreach_temporaries = 0;     ///< of all parameters at once
  bool decay_copies = false;       ///< weight decay is added to a copy of the gradients, not to the parameters
  int single_temporaries = 0;      ///< of one parameter at a time
  bool single_keeps_last = false;  ///< a name holds the last of these until the next parameter's are made
  bool has_fused = false;          ///< a fused form for parameters on a GPU

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
                 .source = "torch/optim/_adafactor.py",
                 .states = 1,
                 .state_shape = OptimizerRow::StateShape::factored,
                 .single_temporaries = 3,
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
};

[[nodiscard]] constexpr const OptimizerRow& row_of(Optimizer optimizer) {
  return kOptimizerRows[static_cast<std::size_t>(optimizer)];
}

/// Tensors of a parameter's size that the optimizer keeps of every parameter; of factored states none is.
[[nodiscard]] constexpr std::int64_t optimizer_states(Optimizer optimizer) {
  const OptimizerRow& row = row_of(optimizer);
  return row.state_shape == OptimizerRow::StateShape::whole ? row.states : 0;
}

/// The names alone, as the other choices of a job have them.
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
