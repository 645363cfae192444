// The bodies of parallel/, compiled once.
#include "gpumem/parallel/impl/layout_inl.hpp"
#include "gpumem/parallel/impl/sharing_inl.hpp"
