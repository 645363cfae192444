// The bodies of ml/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/ml/impl/features_facts_inl.hpp"
#include "gpumem/ml/impl/features_inl.hpp"
#include "gpumem/ml/impl/kernels_inl.hpp"
#include "gpumem/ml/impl/model_config_inl.hpp"
#include "gpumem/ml/impl/model_config_shape_inl.hpp"
#include "gpumem/ml/impl/network_compiled_inl.hpp"
#include "gpumem/ml/impl/network_inl.hpp"
#include "gpumem/ml/impl/trained_model_inl.hpp"
