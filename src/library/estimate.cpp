// The bodies of estimate/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/estimate/impl/advise_inl.hpp"
#include "gpumem/estimate/impl/estimator_inl.hpp"
#include "gpumem/estimate/impl/fit_inl.hpp"
#include "gpumem/estimate/impl/published_inl.hpp"
#include "gpumem/estimate/impl/replay_inl.hpp"
#include "gpumem/estimate/impl/timeline_inl.hpp"
