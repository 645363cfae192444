// The bodies of serve/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/serve/impl/engine_start_inl.hpp"
#include "gpumem/serve/impl/served_model_inl.hpp"
#include "gpumem/serve/impl/served_model_parts_inl.hpp"
#include "gpumem/serve/impl/server_command_inl.hpp"
#include "gpumem/serve/impl/serving_questions_inl.hpp"
#include "gpumem/serve/impl/serving_questions_sglang_inl.hpp"
#include "gpumem/serve/impl/serving_questions_vllm_inl.hpp"
