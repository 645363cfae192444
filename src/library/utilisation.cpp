// The bodies of utilisation/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/utilisation/impl/step_time_inl.hpp"
#include "gpumem/utilisation/impl/utilisation_estimators_inl.hpp"
