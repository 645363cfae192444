// The bodies of utilisation/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/utilisation/impl/collocation_inl.hpp"
#include "gpumem/utilisation/impl/roofline_estimate_inl.hpp"
#include "gpumem/utilisation/impl/roofline_inl.hpp"
#include "gpumem/utilisation/impl/step_time_inl.hpp"
#include "gpumem/utilisation/impl/translate_inl.hpp"
#include "gpumem/utilisation/impl/utilisation_estimator_inl.hpp"
#include "gpumem/utilisation/impl/utilisation_estimators_inl.hpp"
#include "gpumem/utilisation/impl/utilisation_mlp_inl.hpp"
