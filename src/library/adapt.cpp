// The bodies of adapt/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/adapt/impl/adapt_inl.hpp"
#include "gpumem/adapt/impl/adapters_inl.hpp"
#include "gpumem/adapt/impl/base_linears_inl.hpp"
#include "gpumem/adapt/impl/litgpt_model_inl.hpp"
#include "gpumem/adapt/impl/lora_targets_inl.hpp"
#include "gpumem/adapt/impl/name_patterns_inl.hpp"
#include "gpumem/adapt/impl/trained_weights_inl.hpp"
