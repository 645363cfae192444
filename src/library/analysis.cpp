// The bodies of analysis/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/analysis/impl/allocator_run_inl.hpp"
#include "gpumem/analysis/impl/analysis_inl.hpp"
