// The bodies of adapt/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/adapt/impl/adapt_inl.hpp"
#include "gpumem/adapt/impl/peft_methods_config_inl.hpp"
#include "gpumem/adapt/impl/peft_methods_inl.hpp"
#include "gpumem/adapt/impl/peft_model_inl.hpp"
