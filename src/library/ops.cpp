// The bodies of ops/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/ops/impl/catalogue_inl.hpp"
#include "gpumem/ops/impl/tape_inl.hpp"
