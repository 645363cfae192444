// Input: what a job's sharding does (parallel/sharing.hpp).
// Output: its events in a training run: shards and buckets when the model is wrapped, units gathered before their calls
// and freed again, gradients reduced when a unit's backward has run. Does nothing for a job without sharding. Blocks
// whose weights take turns on one GPU are here too.
// Units: bytes.
// Source: what the files in parallel/ name.
#pragma once

#include <cstdint>
#include <vector>

#include "gpumem/model/layout.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/plan/run_state.hpp"

namespace gpumem::plan {

/// CUDA streams other than the default one and the batch loader's: memory that is taken on one is not used on another.
inline constexpr std::uint8_t kGatherStream = 2;
inline constexpr std::uint8_t kReduceStream = 3;

// Input: a job whose blocks' weights take turns on the GPU (model::BlockSwap).
// Output: which parameters have no memory there at the start, and the events of those that come and go.
// Units: bytes.
// Source: kohya-ss/musubi-tuner 2026, src/musubi_tuner/modules/custom_offloading_utils.py (ModelOffloader,
// swap_weight_devices_cuda: a weight is copied into the memory of the one that leaves; norms and biases stay), which
// sd-scripts and diffusion-pipe share; enable_block_swap of sd-scripts' library/flux_models.py and of musubi-tuner's
// flux_2/flux2_models.py. musubi-tuner's FLUX.1 and HunyuanVideo swap one single-stream block more than is counted
// here. SimpleTuner 2026-08, helpers/musubi_block_swap.py (MusubiBlockSwapManager: stream_in and stream_out around a
// block's forward, stream_in by its backward's hooks, and nothing moves out until the next forward activates it).

class SwappedBlocks {
 public:
  /// Errors: missing_information where the model has no such blocks.
  [[nodiscard]] static core::Status check(const model::ModelGraph& graph, const model::Counted<model::BlockSwap>& swap);
  /// Blocks beyond what the program swaps are left out: one of a stack stays, or two where they take turns by exchange.
  SwappedBlocks(RunState& state, const model::Counted<model::BlockSwap>& swap);

  [[nodiscard]] bool starts_away(ops::TensorId parameter) const {
    return !away_.empty() && away_[static_cast<std::size_t>(parameter)];
  }
  /// What the last backward left on the GPU goes to the host.
  void begin_forward() {
    for (const Block& block : streamed_) send(block);
  }
  void begin_call(std::size_t function) {
    if (const std::uint32_t block = at(begins_, function); block != kNone) bring(streamed_[block]);
  }
  void end_call(std::size_t function) {
    if (const std::uint32_t block = at(ends_, function); block != kNone) send(streamed_[block]);
  }
  void begin_backward_of(std::size_t function) {
    if (const std::uint32_t block = at(ends_, function); block != kNone) bring(streamed_[block]);
  }

 private:
  using Block = std::vector<ops::TensorId>;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  [[nodiscard]] static std::uint32_t at(const std::vector<std::uint32_t>& list, std::size_t function) {
    return list.empty() ? kNone : list[function];
  }
  void find(const model::Counted<model::BlockSwap>& swap);
  void take(const std::vector<bool>& layers, bool exchanged);
  void add_streamed(std::uint32_t first_layer, std::uint32_t end_layer);
  void bring(const Block& block);
  void send(const Block& block);

  RunState& state_;
  std::vector<bool> away_;  ///< by tensor; empty: no parameter is away
  std::vector<Block> streamed_;
  std::vector<std::uint32_t> begins_;  ///< by function: the block that begins with it
  std::vector<std::uint32_t> ends_;    ///< by function: the block that ends with it
};

class ShardedModel {
 public:
  ShardedModel(RunState& state, const parallel::Sharing& sharing);

  /// Whether the tape's parameters have no memory of their own: shards have, and units while they are gathered.
  [[nodiscard]] bool gathers() const { return sharing_.gather != parallel::Gather::never; }
  /// Whether the parameter has no memory of its own when training begins.
  [[nodiscard]] bool is_away(ops::TensorId parameter) const { return gathers() || swapped_.starts_away(parameter); }
  /// Whether gradients of parameters go to take_gradient().
  [[nodiscard]] bool takes_gradients() const {
    return sharing_.reduction != parallel::Reduction::none && sharing_.reduction != parallel::Reduction::bucketed;
  }

  /// Whether gradients are added to main gradients, as Megatron's are.
  [[nodiscard]] bool has_main_gradients() const { return sharing_.reduction == parallel::Reduction::main_buffer; }

  /// The model is there, before its parameters are where they stay.
  void begin();
  /// The model is wrapped: shards where it gathers, buckets, buffers of gradients.
  void construct();

  void begin_forward();
  void begin_call(std::size_t function) {
    swapped_.begin_call(function);
    if (begins_unit(function) && gathers()) gather(units_[begins_[function]], true);
  }
  void end_call(std::size_t function) {
    swapped_.end_call(function);
    if (ends_unit(function)) end_call_of_unit(units_[ends_[function]]);
  }
  void end_forward();

  void begin_backward();
  /// `again`: it is in a block that runs again before its backward.
  void begin_backward_of(std::size_t function, bool again) {
    swapped_.begin_backward_of(function);
    if (ends_unit(function)) begin_backward_of_unit(ends_[function], again && sharing_.gathers_again);
  }
  /// The block with this function has run again.
  void end_second_run(std::size_t function);
  void end_backward_of(std::size_t function) {
    if (begins_unit(function)) end_unit(units_[begins_[function]]);
  }
  /// Whether the inputs of the unit that begins with this function, and their gradients, live until backward has ended.
  [[nodiscard]] bool keeps_inputs_of(std::size_t function) const {
    return sharing_.keeps_frozen_inputs && begins_unit(function) && keeps_inputs_of(units_[begins_[function]]);
  }
  /// Memory that does so; kNoSlot: nothing.
  void keep_until_end(Slot slot);
  void end_backward();
  /// The last micro-batch of a step has run.
  void end_step();

  /// The parameter's gradient of this pass, whole.
  void take_gradient(ops::TensorId parameter, Slot gradient);
  [[nodiscard]] bool has_gradient(ops::TensorId parameter) const {
    return received_[static_cast<std::size_t>(parameter)] != 0;
  }
  /// optimizer.zero_grad(): shares of gradients are released, at once or when the next forward begins.
  void zero_grad();

 private:
  /// A repeated block, what comes before or after all of them, or what is in no other unit: the root.
  struct Unit {
    std::vector<ops::TensorId> parameters;
    std::int64_t gathered = 0;        ///< bytes of all of them, each padded to a multiple of the ranks
    std::int64_t sharded = 0;         ///< bytes of the rank's part of them, in the compute type
    bool frozen = false;              ///< some of them are
    bool trained = false;             ///< some of them are not
    bool in_backward = false;         ///< autograd comes to it
    std::vector<Slot> whole;          ///< its parameters while they are gathered
    std::vector<Slot> parts;          ///< of these, cut over fewer ranks than the shards, from forward to backward
    std::int64_t kept_over = 0;       ///< Sharing::kept_over
    Slot buffer = kNoSlot;            ///< of a gather that has not been copied out
    std::vector<ops::TensorId> made;  ///< whose gradients are in `gradients`
    std::vector<Slot> gradients;      ///< of this pass, whole
    Slot share = kNoSlot;             ///< of the gradients, until zero_grad
    std::int64_t later = 0;           ///< elements that are gathered between its calls in forward and in backward
    bool share_ends = false;          ///< with the next forward
  };
  static constexpr std::uint32_t kNoUnit = UINT32_MAX;
  static constexpr std::uint32_t kRoot = 0;

  [[nodiscard]] bool begins_unit(std::size_t function) const {
    return !begins_.empty() && begins_[function] != kNoUnit;
  }
  [[nodiscard]] bool ends_unit(std::size_t function) const { return !ends_.empty() && ends_[function] != kNoUnit; }
  void end_call_of_unit(Unit& unit);
  void begin_backward_of_unit(std::uint32_t unit, bool as_forward);
  [[nodiscard]] bool keeps_inputs_of(const Unit& unit) const;

  void find_units();
  void find_blocks();
  void add_unit(const connect::Range& layers, std::int64_t kept_over, bool all);
  void keep_parts(Unit& unit);
  void find_layers();
  void sum_up(Unit& unit) const;
  void add_shards();
  void add_buckets();
  void add_main_buffer(bool experts);  ///< of experts, or of all others
  void add_partition();
  void add_partitioning_bucket();
  [[nodiscard]] bool persists(ops::TensorId parameter) const {
    return elements(parameter) <= sharing_.persistent_elements;
  }
  /// How many ranks share it: an expert is on fewer.
  [[nodiscard]] std::int64_t ranks_of(ops::TensorId parameter, std::int64_t usual) const;
  [[nodiscard]] std::int64_t shard_elements(ops::TensorId parameter) const;
  /// Padded to a multiple of the ranks.
  [[nodiscard]] std::int64_t padded_elements(ops::TensorId parameter) const;
  [[nodiscard]] std::int64_t elements(ops::TensorId parameter) const;
  [[nodiscard]] core::DType dtype(ops::TensorId parameter) const;
  [[nodiscard]] core::DType held_in(ops::TensorId parameter) const;
  /// What it is gathered in.
  [[nodiscard]] core::DType gathered_in(ops::TensorId parameter) const;

  void start_gather(Unit& unit);
  void gather(Unit& unit, bool forward);
  void release(Unit& unit);
  void prefetch_before(std::uint32_t unit);
  void add_shares();
  void end_unit(Unit& unit);
  void gather_up(Unit& unit);
  void reduce(Unit& unit);
  void hold_reduction(Slot slot, std::int64_t elements);
  void end_reductions();
  void keep_share(Unit& unit, Slot share);

  RunState& state_;
  EventLog& log_;
  parallel::Sharing sharing_;
  SwappedBlocks swapped_;
  std::vector<Unit> units_;             ///< the root first; the blocks in their order
  std::vector<std::uint32_t> begins_;   ///< by function: the unit that begins with it
  std::vector<std::uint32_t> ends_;     ///< by function: the unit that ends with it
  std::vector<std::uint32_t> unit_of_;  ///< by parameter's tensor
  std::vector<std::uint32_t> unit_of_layer_;
  std::uint32_t ran_again_ = kRoot;     ///< the unit that did last, in this backward
  std::uint32_t calls_from_ = 0;        ///< the first function that is in no unit yet, while they are found
  std::vector<std::uint8_t> received_;  ///< by parameter's tensor: its gradient of this pass
  std::vector<Slot> kept_;              ///< until backward has ended
  Slot last_buffer_ = kNoSlot;          ///< of the last gather in forward, until the next one was waited for
  /// Gradients that are being reduced: the last unit's, or as many as the queue has room for.
  std::vector<std::pair<Slot, std::int64_t>> under_way_;
  std::vector<Slot> summed_;  ///< by parameter's tensor: its whole gradients of a step's micro-batches so far
  Slot partition_ = kNoSlot;  ///< the rank's share of all gradients, until zero_grad
  std::vector<Slot> first_;   ///< trained weights that were not in their buffer at first
  Slot bucket_ = kNoSlot;     ///< that gradients are copied into
};

}  // namespace gpumem::plan
