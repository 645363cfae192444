// This consumer leaves the trained networks out (GPUMEM_BUILTIN_NETWORKS=OFF): it does not start with one of them.
#include <cstdlib>
#include <gpumem/ml/trained_model.hpp>

namespace {

bool none_is_carried() {
  if (!gpumem::ml::builtin_models().empty()) std::abort();
  return true;
}

[[maybe_unused]] const bool kNone = none_is_carried();

}  // namespace
