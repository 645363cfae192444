// The bodies of analysis/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/analysis/impl/analysis_inl.hpp"
#include "gpumem/analysis/impl/analysis_lent_inl.hpp"
