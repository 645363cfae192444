// Input: the Analysis of a model, one way to split its layers over ranks (tensor, sequence, context and expert
// parallel), and a few micro-batches.
// Output: BlockWork: how long a GPU computes on one of the model's repeated blocks, on the layers before them and on
// the layers after them, and what the block sends to other ranks.
// Units: seconds and bytes a micro-batch, elements.
//
// A pipeline of as many stages as blocks gives the parts: its first rank has one block and the layers before it, its
// last rank one block and the layers after it, a rank between has only a block. A stage of any pipeline is the sum of
// its parts, so a few small graphs represent all pipelines. Kernels are those of plan/step_work.hpp, their times those
// of utilisation/step_time.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
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

/// The part of a layout that splits the model's layers and positions, on as few ranks as possible.
[[nodiscard]] model::Layout split_of(const model::Layout& layout);

}  // namespace gpumem::search
