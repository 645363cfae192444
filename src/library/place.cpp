// The bodies of place/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/place/impl/policies_inl.hpp"
#include "gpumem/place/impl/server_inl.hpp"
