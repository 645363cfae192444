// The bodies of model/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/model/impl/graph_builder_inl.hpp"
#include "gpumem/model/impl/model_graph_inl.hpp"
#include "gpumem/model/impl/training_job_inl.hpp"
