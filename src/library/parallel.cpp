// The bodies of parallel/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/parallel/impl/pipeline_parallel_inl.hpp"
#include "gpumem/parallel/impl/pipeline_parallel_schedules_inl.hpp"
#include "gpumem/parallel/impl/rank_graph_inl.hpp"
#include "gpumem/parallel/impl/sharing_inl.hpp"
