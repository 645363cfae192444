// Enters: a job whose graph may lack edges. Leaves: the same model with an edge for everything that a layer reads:
// its own edges where it has them, a family's wiring where a family recognises it, and a chain of layers otherwise.
#pragma once

#include <memory>
#include <string>

#include "gpumem/connect/families.hpp"

namespace gpumem::connect {

struct Connected {
  std::shared_ptr<const model::ModelGraph> graph;
  /// How the edges came about: "given", "family: gpt2", "chained, 16 joins inferred".
  std::string edges;
};

/// Errors: those of the family; missing_information where a chain finds no input for a layer.
[[nodiscard]] core::Result<Connected> connect(const model::TrainingJob& job, const ops::Catalogue& ops);

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/connect_inl.hpp"
#endif
