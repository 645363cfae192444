// Enters: a job and the ops. Leaves: the output shapes of every layer, printed ones as the summary has them,
// missing ones inferred from the graph's input on. Units: elements, with the batch size as N.
//
// A graph without edges (a module tree) is chained: a layer reads its predecessor's output if that has the width
// it was built for, else the input of a container that it stands in (a branch, such as a residual block's
// down-sampling), else the latest output of that width. What nothing fits, and a branch that ends in another
// size than the tensor it left, are errors that name the layer. Branches of equal widths cannot be seen.
#pragma once

#include <span>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::plan {

/// Views the job's graph, which must outlive it.
class OutputShapes {
 public:
  /// The shapes of the tensors that leave this layer; none for bare parameters and unknown ops.
  [[nodiscard]] std::span<const core::Shape> of(std::size_t layer) const;

 private:
  friend core::Result<OutputShapes> infer_output_shapes(const model::TrainingJob&, const ops::Catalogue&);

  const model::ModelGraph* graph_ = nullptr;
  std::vector<core::Shape> inferred_;  ///< one a layer; empty: the graph's own are used
  std::vector<bool> leaves_;           ///< whether a tensor leaves the layer
};

/// In a graph that was read leniently a layer may read what an unknown one leaves: it is taken to read the latest known
/// tensor if that fits it, else no tensor leaves it either.
///
/// Errors: missing_information where the input size (or sequence length) is not given, where a layer does not
/// say its sizes, or where no input fits it; malformed_input where an edge has not the width that its reader was built
/// for, be it printed or inferred.
[[nodiscard]] core::Result<OutputShapes> infer_output_shapes(const model::TrainingJob& job, const ops::Catalogue& ops);

}  // namespace gpumem::plan

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/plan/impl/output_shapes_inl.hpp"
#endif
