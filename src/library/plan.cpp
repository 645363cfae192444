// The bodies of plan/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/plan/impl/checkpoints_inl.hpp"
#include "gpumem/plan/impl/forward_pass_inl.hpp"
#include "gpumem/plan/impl/forward_pass_inputs_inl.hpp"
#include "gpumem/plan/impl/forward_pass_saved_inl.hpp"
#include "gpumem/plan/impl/gradient_flow_inl.hpp"
#include "gpumem/plan/impl/optimizer_step_inl.hpp"
#include "gpumem/plan/impl/phased_plan_inl.hpp"
#include "gpumem/plan/impl/run_state_inl.hpp"
#include "gpumem/plan/impl/sharded_model_inl.hpp"
#include "gpumem/plan/impl/step_plan_inl.hpp"
#include "gpumem/plan/impl/step_plan_work_inl.hpp"
