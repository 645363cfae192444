// The bodies of plan/, compiled once.
#include "gpumem/plan/impl/checkpoints_inl.hpp"
#include "gpumem/plan/impl/output_shapes_inl.hpp"
#include "gpumem/plan/impl/record_inl.hpp"
#include "gpumem/plan/impl/step_plan_inl.hpp"
#include "gpumem/plan/impl/step_work_inl.hpp"
