// OPT: learned positions, biased projections, plain feed-forward layers; OPT-350M with norms after and narrower
// embeddings. Source: transformers 4.50, models/opt/modeling_opt.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& opt();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/opt_inl.hpp"
#endif
