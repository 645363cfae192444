// The bodies of request/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/request/impl/targets_inl.hpp"
