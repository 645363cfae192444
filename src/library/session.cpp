// The bodies of session/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/session/impl/session_inl.hpp"
