// The bodies of record/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/record/impl/recorded_steps_inl.hpp"
