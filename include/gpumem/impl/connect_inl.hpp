#pragma once

#include <utility>

#include "gpumem/connect/connect.hpp"

namespace gpumem::connect {

GPUMEM_INLINE core::Result<std::shared_ptr<const model::ModelGraph>> connect(const model::TrainingJob& job,
                                                                             const ops::Catalogue& ops) {
  if (!job.graph->edges_inferred()) return job.graph;
  for (const Family* family : families()) {
    if (!family->recognises(*job.graph)) continue;
    core::Result<model::ModelGraph> connected = family->connect(job, ops);
    if (!connected) return connected.error();
    return std::make_shared<const model::ModelGraph>(*std::move(connected));
  }
  return job.graph;
}

}  // namespace gpumem::connect
