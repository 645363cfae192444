// Input: the Analysis of a model, one way to split its layers over ranks (tensor, sequence, context and expert
// parallel), and a few micro-batches.
// Output: BlockWork: how long a GPU computes on one of the model's repeated blocks, on the layers before them and on
// the layers after them, and what the block sends to other ranks.
// Units: seconds and bytes a micro-batch, elements.
//
// A pipeline of as many stages as blocks gives the parts: its first rank has one block and the layers before it, its
// last rank one block and the layers after it, a rank between has only a block. A stage of any pipeline is the sum of
// its parts, so a few small graphs represent all pipelines. Kernels are those of plan/step_plan.hpp, their times those
// of utilisation/step_time.hpp.
//
// Input: a job with its layout, and a GPU.
// Output: whether it is certain, without a plan of all layers, that the job does not fit. It never says so about a job
// that fits: tests/property/search_test.cpp checks this for every layout of small models.
// Units: bytes.
//
// Three bounds, each of what tensors hold on one pipeline rank, which no allocator manages with less:
//
//   held         parameters, masters, states and main gradients, as the sharding cuts them (parallel/sharing.hpp), and
//                of sharded parameters the gathered ones of the root and of one block
//   activations  what is held, and what the estimator's plan of the same split keeps of a block between forward and
//                backward, of as many blocks as the schedule has under way; on the rank of the head, the most that a
//                micro-batch's tensors come to. Both are told by plans of three and four blocks and of one and two
//                samples: sums of sizes that grow by the same with each block and sample, and the largest of such sums,
//                which grows by no less
//   first rank   the plan of the first pipeline stage, without a run through the allocator
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/utilisation/step_time.hpp"

namespace gpumem::search {

/// Which activations backward computes again.
struct Checkpointing {
  bool on = false;
  model::CheckpointPolicy policy = {};

  friend bool operator==(const Checkpointing&, const Checkpointing&) = default;
};

/// For one part of the model on one rank.
struct PartWork {
  double forward = 0.0;         ///< kernels' time, one micro-batch
  double backward = 0.0;        ///< the same, with what is computed again
  double optimizer = 0.0;       ///< of a step, where the rank updates all of the part's parameters in their own type
  double launches = 0.0;        ///< of a micro-batch
  std::int64_t parameters = 0;  ///< that the rank holds of the part, nothing sharded
};

/// What a block's forward sends. Backward sends as much in the other direction.
struct BlockMessages {
  double hidden = 0.0;       ///< bytes that leave the block: of all tensor parallel ranks together
  double keys_values = 0.0;  ///< bytes of keys and values, of one context parallel rank
  double routed = 0.0;       ///< bytes of the tokens that the rank's experts get
  std::int64_t sums = 0;     ///< over the tensor parallel ranks
};

struct BlockWork {
  std::int64_t blocks = 0;
  bool apart = true;  ///< false: the parts are shares of all: how ranks share the model is not known
  PartWork before;
  PartWork block;
  PartWork behind;
  BlockMessages sent;
};

/// One way to run a split.
struct MicroBatch {
  std::int64_t size = 1;
  Checkpointing checkpointing = {};
};

/// One result a micro-batch, in their order. A model that ranks cannot share is taken whole, unless the layout splits
/// it. The Analysis is left at another job. Of the job's layout, tensor_parallel, sequence_parallel, context_parallel
/// and expert_parallel count. Errors: those of connecting and of rank_graph(), so of a split that the model cannot
/// have; those of plan::step_work().
[[nodiscard]] core::Result<std::vector<BlockWork>> block_work(analysis::Analysis& analysis, model::TrainingJob job,
                                                              std::span<const MicroBatch> micro_batches,
                                                              const utilisation::GpuPeaks& peaks);

/// The model with three of its blocks, in which block_work() finds the same in a fraction of the time: the first, the
/// one in the middle and the last. Null: it has no more, its blocks have not as many layers each, or another stack
/// would have more blocks than are left. `whole`: the model as it is connected, without adapters.
[[nodiscard]] std::shared_ptr<const model::ModelGraph> representative_blocks(const connect::WiredGraph& whole);

/// The job of such a model, in whose graph is what samples bring, and what they leave out.
[[nodiscard]] model::TrainingJob of_fewer_blocks(model::TrainingJob job, std::shared_ptr<const model::ModelGraph> few);

/// The part of a layout that splits the model's layers and positions, on as few ranks as possible.
[[nodiscard]] model::Layout split_of(const model::Layout& layout);

/// Bytes of tensors that are no parameters, gradients or states: of a micro-batch of one sample, and more with each
/// further one.
struct Activations {
  double kept = 0.0;  ///< by a block, between its forward and its backward
  double kept_more = 0.0;
  double most = 0.0;  ///< at once, by a model of four blocks with its head
  double most_more = 0.0;
  double most_block = 0.0;  ///< more of it with each further block
  double most_block_more = 0.0;
};

class MemoryBound {
 public:
  /// `whole`: the model's wired graph. Both must outlive it.
  MemoryBound(const connect::WiredGraph& whole, const device::GpuProfile& gpu);

  /// By what the rank holds between steps, and by its activations.
  [[nodiscard]] bool too_large(const model::TrainingJob& job, const BlockWork& work);
  /// By the plan of the first pipeline rank, or of the only one; `analysis` is left at it.
  [[nodiscard]] bool first_rank_too_large(analysis::Analysis& analysis, model::TrainingJob job);
  /// By the peak of a plan.
  [[nodiscard]] bool too_large(const model::TrainingJob& job, std::int64_t peak);

 private:
  using Split = std::array<std::int64_t, 6>;

  [[nodiscard]] std::int64_t room_for(const model::TrainingJob& job);
  [[nodiscard]] const std::optional<Activations>& activations_of(const model::TrainingJob& job);
  [[nodiscard]] std::optional<Activations> measured(const model::TrainingJob& job);

  const connect::WiredGraph& whole_;
  const device::GpuProfile& gpu_;
  /// The model with its first three, and four, blocks; null where the blocks are not alike.
  std::array<std::shared_ptr<const model::ModelGraph>, 2> fewer_;
  /// Of these, without and with checkpointing, which connects a model anew.
  std::array<std::array<std::unique_ptr<analysis::Analysis>, 2>, 2> analyses_;
  std::map<Split, std::optional<Activations>> known_;
  /// What CUDA leaves of the GPU, and how much of that a range takes.
  struct Room {
    std::int64_t expected = std::numeric_limits<std::int64_t>::max();
    std::int64_t upper = std::numeric_limits<std::int64_t>::max();
    double margin = 1.0;
    bool covered = true;
  };
  /// By whether there are communicators, and what of a layout widens an estimate's range: sharding and checkpointing.
  std::map<std::tuple<bool, model::Shardings, bool>, Room> rooms_;
};

}  // namespace gpumem::search
