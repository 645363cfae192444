// Input: a job with its layout, the work of one block and of the layers around the blocks, and the links between GPUs.
// Output: LayoutTime: how long a training step takes by a roofline, part by part.
// Units: seconds.
//
// The times rank layouts. They are not measured, and leave out what all layouts pay alike (reading data, saving).
//
//   compute    kernels of the slowest pipeline stage, or their launches where the host is slower, of all micro-batches
//   tensor     sums over tensor parallel ranks: one after each row-parallel layer forward, as many backward, again
//              where a block is computed again. Not overlapped
//   context    keys and values go around the context parallel ranks, in backward with their gradients. Not overlapped
//   experts    tokens go to their experts and back. Not overlapped
//   sharding   gathered parameters and reduced gradients, as far as they outlast the computation that they overlap:
//              a block's where parameters are sharded, a micro-batch's where gradients are reduced once a step; ZeRO-1
//              and ZeRO-2 overlap nothing, as the memory model has them (no overlap_comm)
//   pipeline   the bubble, (stages - 1) / virtual stages micro-batches, and activations that are sent
//   optimizer  the states' traffic
//
// Source: Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM"
// (bubble, sums); parallel/sharing.hpp for what each sharding gathers and reduces.
#pragma once

#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/search/block_work.hpp"
#include "gpumem/search/links.hpp"

namespace gpumem::search {

struct LayoutTime {
  double compute = 0.0;
  double tensor = 0.0;
  double context = 0.0;
  double experts = 0.0;
  double sharding = 0.0;
  double pipeline = 0.0;
  double optimizer = 0.0;

  [[nodiscard]] double step() const { return compute + tensor + context + experts + sharding + pipeline + optimizer; }
};

/// The layout passed parallel::check_modelled(), and its stages share the blocks evenly. Errors: those of
/// parallel::sharing_of().
[[nodiscard]] core::Result<LayoutTime> layout_time(const model::TrainingJob& job, const BlockWork& work,
                                                   const Links& links);

}  // namespace gpumem::search
