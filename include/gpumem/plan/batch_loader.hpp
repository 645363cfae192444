// Input: what a run reads from each batch.
// Output: when a batch arrives on the GPU and when it is freed: at the start of the step, or one step ahead on a stream
// of its own.
// Units: bytes.
// Source: the loop of PyTorch's tutorials; timm 1.0.9, timm/data/loader.py, PrefetchLoader: images arrive as bytes and
// become floating point on the GPU, and the next batch is ready while one is trained.
#pragma once

#include <vector>

#include "gpumem/model/training_job.hpp"
#include "gpumem/plan/run_state.hpp"

namespace gpumem::plan {

class BatchLoader {
 public:
  BatchLoader(RunState& state, const model::TrainingJob& job) : state_(state), prefetches_(job.prefetch) {}

  /// The last batch goes, unless the script's names hold it until the new one is there.
  void release();
  /// The batch arrives; where it was fetched ahead, the one after it does.
  void load();

 private:
  [[nodiscard]] std::vector<Slot> fetch();

  RunState& state_;
  bool prefetches_;
  std::vector<Slot> ahead_;  ///< the next batch, by input; empty: none was fetched yet
};

}  // namespace gpumem::plan
