// The bodies of serve/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/serve/impl/served_model_inl.hpp"
#include "gpumem/serve/impl/serving_questions_inl.hpp"
#include "gpumem/serve/impl/vllm_command_inl.hpp"
#include "gpumem/serve/impl/vllm_inl.hpp"
