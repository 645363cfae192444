// Input: a forward pass.
// Output: its repeated blocks as runs of recorded functions: what activation checkpointing wraps, one call of
// torch.utils.checkpoint a block, as HuggingFace's gradient_checkpointing does; or what torch.compile computes again.
// Units: indices.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/layout.hpp"
#include "gpumem/plan/forward_pass.hpp"
#include "gpumem/plan/run_state.hpp"

namespace gpumem::plan {

using connect::blocks_of_all_stacks;
using connect::Range;
using connect::repeated_blocks;

/// What the names of modules that are checkpointed are.
enum class ModuleNames : bool {
  paths,     ///< those of the model's modules
  megatron,  ///< those of recompute_modules: "mlp" is no layer with experts, "moe" is
};
[[nodiscard]] ModuleNames names_of(const model::TrainingJob& job);

/// The functions of each part that runs again: of all repeated blocks, of some, or of each attention. Errors:
/// missing_information if the graph shows none.
[[nodiscard]] core::Result<std::vector<Range>> checkpointed(const ForwardPass& pass,
                                                            const model::CheckpointPolicy& policy = {},
                                                            ModuleNames names = ModuleNames::paths);

/// The functions in this part whose results are kept and do not run again: none; under selective-op the attention,
/// every other product with a weight (aten::mm, from the first on), and what tensor parallel ranks sum and scatter.
/// Source: torchtitan 2024-10 to 2025-10, models/llama3/infra/parallelize.py: _op_sac_save_list and its policy, per
/// block (reduce_scatter_tensor was not in it from March 20 to April 21, 2025).
[[nodiscard]] std::vector<std::uint32_t> kept_results(const ops::Tape& tape, const Range& part,
                                                      const model::CheckpointPolicy& policy);

/// The functions in this part whose results a compiled graph keeps for its backward: what kernels that are not fused
/// make (products, attention, convolutions), and what such kernels read again. All that lies between is elementwise or
/// a sum, and is computed again. Source: PyTorch 2.6, _functorch/partitioners.py: solve_min_cut (is_fusible,
/// is_materialized_backwards), with the settings of _functorch/config.py.
[[nodiscard]] std::vector<std::uint32_t> compiled_results(const ops::Tape& tape, const Range& part);

/// Those of the kept results that backward of this part reads, or reads something that is computed of them. A compiled
/// graph hands no others to its backward, also where a policy says MUST_SAVE: the partitioner cuts only between inputs
/// and what backward reads.
[[nodiscard]] std::vector<std::uint32_t> asked_for(const ops::Tape& tape, const Range& part,
                                                   const std::vector<std::uint32_t>& kept);

/// The parts of a job's forward pass that run again in backward: checkpointed ones, or a compiled model's blocks; none
/// for other jobs. Errors: those of checkpointed().
[[nodiscard]] core::Result<std::vector<Range>> recomputed_parts(const ForwardPass& pass, const model::TrainingJob& job);

/// What is kept of such a part.
[[nodiscard]] std::vector<std::uint32_t> kept_of_part(const ops::Tape& tape, const Range& part,
                                                      const model::TrainingJob& job);

// Input: the checkpointed blocks of a model as runs of recorded functions (checkpoints.hpp finds them).
// Output: what a call of torch.utils.checkpoint (use_reentrant=False) holds, and the second run of each block.
// Units: bytes.
// Source: torch/utils/checkpoint.py, _checkpoint_without_reentrant_generator.
//
// Forward keeps a block's arguments and nothing else; the first backward that asks for a saved tensor runs all of the
// block again, except calls whose results were kept (torch.utils.checkpoint.create_selective_checkpoint_contexts). The
// second run's tensors are held together with what is left of the first one's. It ends with the last tensor that is
// saved: an input is saved before its function runs, an output after it.

class Recomputation {
 public:
  Recomputation(RunState& state, ForwardCalls& calls, const NameLifetimes& names, std::span<const Range> blocks,
                const model::TrainingJob& job);

  /// Whether the function is in a checkpointed block: then autograd keeps nothing of it in forward, unless hooks do.
  [[nodiscard]] bool covers(std::size_t function) const {
    return block_of(function) != nullptr && !calls_.is_hooked(state_.tape().functions()[function]);
  }
  /// Whether the saved tensors of a covered function are held: not before its block has run again.
  [[nodiscard]] bool has_saved(std::size_t function) const { return block_of(function)->recomputed; }

  /// Forward comes to this function: a block that begins here holds its arguments.
  void begin_forward(std::size_t function) {
    if (Block* block = block_of(function); block != nullptr && function == block->run.first) hold_inputs(*block);
  }
  /// Where this function's results are kept for the second run; null: they are not.
  [[nodiscard]] ForwardCalls::Results* results_of(std::size_t function);
  /// Backward asks for what this covered function saved: its block runs again, once. Returns whether it does now.
  bool begin_backward(std::size_t function) {
    Block& block = *block_of(function);
    if (block.recomputed || !saves(state_.tape().functions()[function])) return false;
    run_again(block, static_cast<std::uint32_t>(function));
    return true;
  }
  /// Backward of this function has run: with a block's first one the graph releases the arguments.
  void end_backward(std::size_t function) {
    if (Block* block = block_of(function); block != nullptr && function == block->run.first) end(*block);
  }
  /// There is no backward.
  void drop_all() {
    for (Block& block : blocks_) end(block);
  }

  /// What a pipeline's micro-batch holds between its stages' passes: its tensors, and what its blocks keep for their
  /// second run: of each block, what each of its kept functions made.
  struct MicroBatch {
    std::vector<Slot> tensors;
    std::vector<std::vector<ForwardCalls::Results>> results;
  };
  /// Another micro-batch's turn: what this one holds gives place to what that one does.
  void exchange(MicroBatch& other) {
    state_.exchange(other.tensors);
    results_.swap(other.results);
  }
  /// One that has not begun.
  [[nodiscard]] MicroBatch nothing_held() const;

 private:
  struct Block {
    Range run;
    std::uint32_t last_saver = 0;        ///< the function whose saved tensors are the last: the second run stops there
    std::vector<ops::TensorId> inputs;   ///< made before it, read in it
    std::vector<ops::TensorId> outputs;  ///< made in it, read after it
    int held = 0;                        ///< by how many micro-batches
    bool recomputed = false;
    bool fetched = false;             ///< its arguments have come back from the host
    std::vector<std::uint32_t> kept;  ///< the functions that do not run again
    /// What is still held of the first run when the second begins.
    std::vector<std::pair<ops::TensorId, Slot>> first_run;
  };

  [[nodiscard]] const Block* block_of(std::size_t function) const {
    return block_at_.empty() || block_at_[function] == kNoBlock ? nullptr : &blocks_[block_at_[function]];
  }
  [[nodiscard]] Block* block_of(std::size_t function) {
    return block_at_.empty() || block_at_[function] == kNoBlock ? nullptr : &blocks_[block_at_[function]];
  }

  [[nodiscard]] std::vector<std::uint32_t> find_makers();
  void find_block(const Range& run, const std::vector<std::uint32_t>& name_ends);
  void hold_inputs(Block& block);
  void run_again(Block& block, std::uint32_t upto);
  void end(Block& block);
  /// Whether the argument waits in the host's memory for the second run. Source: of checkpoints alone, Unsloth's and
  /// SimpleTuner 2026-08's offloaded_checkpoint(), whose hooks leave tensors without a gradient where they are.
  [[nodiscard]] bool on_host(ops::TensorId argument) const {
    return calls_.on_host(argument) || (offloads_ && state_.requires_grad(argument));
  }
  void put_aside(Block& block, ops::TensorId id, bool hooked);
  void forget_names(Block& block);
  void fetch_inputs(Block& block);
  void call_again(Block& block, std::uint32_t function, bool recorded);
  [[nodiscard]] std::vector<ForwardCalls::Results>& results_of_block(const Block& block) {
    return results_[static_cast<std::size_t>(&block - blocks_.data())];
  }
  [[nodiscard]] ForwardCalls::Results* results_in(const Block& block, std::size_t function);
  void end_names(const Block& block, std::uint32_t function, std::uint32_t end);
  [[nodiscard]] bool saves(const ops::Function& function) const;
  [[nodiscard]] bool makes_what_it_saves(const ops::Function& function) const;
  [[nodiscard]] bool made_in(const Range& run, ops::TensorId id) const;
  [[nodiscard]] bool is_constant(ops::TensorId id) const;

  static constexpr std::uint32_t kNoBlock = UINT32_MAX;
  static constexpr std::uint32_t kNoFunction = UINT32_MAX;

  RunState& state_;
  ForwardCalls& calls_;
  const NameLifetimes& names_;
  bool offloads_ = false;  ///< the arguments of blocks
  std::vector<Block> blocks_;
  std::vector<std::vector<ForwardCalls::Results>> results_;  ///< of the micro-batch whose turn it is
  std::vector<std::uint32_t> block_at_;                      ///< by function; empty: there are no blocks
  std::vector<std::uint32_t> maker_of_;                      ///< by tensor: the function that it is the output of
};

}  // namespace gpumem::plan
