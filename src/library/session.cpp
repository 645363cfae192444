// The bodies of session/, compiled once.
#include "gpumem/session/impl/session_inl.hpp"
