// The bodies of parallel/, compiled once.
#include "gpumem/parallel/impl/layout_inl.hpp"
