// The list of all ops. To add a family: a file here and a row in the list of catalogue_inl.hpp. A program with ops of
// its own passes a longer list to the functions that take one.
#pragma once

#include <span>
#include <vector>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

/// Ops to choose from. Pointers must outlive the catalogue; the built-in ones always do.
using Catalogue = std::vector<const Op*>;

/// Every op that gpumem knows.
[[nodiscard]] const Catalogue& catalogue();

/// The names of these ops, for reading summaries.
[[nodiscard]] model::Vocabulary vocabulary_of(const Catalogue& ops);

/// The names of every op that gpumem knows.
[[nodiscard]] const model::Vocabulary& vocabulary();

}  // namespace gpumem::ops
