// The bodies of model/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/model/impl/attribute_inl.hpp"
#include "gpumem/model/impl/graph_builder_inl.hpp"
#include "gpumem/model/impl/model_graph_inl.hpp"
#include "gpumem/model/impl/op_traits_inl.hpp"
#include "gpumem/model/impl/step_recording_inl.hpp"
#include "gpumem/model/impl/training_job_inl.hpp"
