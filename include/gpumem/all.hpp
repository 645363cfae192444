// The whole library in one header: gpumem/gpumem.hpp, and the rooms that not every program needs.
#pragma once

#include "gpumem/core/config.hpp"  // first: it says so where the compiler is set to an older C++

#include "gpumem/device/allocation_trace.hpp"
#include "gpumem/device/caching_allocator.hpp"
#include "gpumem/estimate/published.hpp"
#include "gpumem/gpumem.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "gpumem/monitor/nvml.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/place/policies.hpp"
#include "gpumem/place/server.hpp"
#include "gpumem/posttrain/estimate_post_training.hpp"
#include "gpumem/posttrain/post_training_job.hpp"
#include "gpumem/request/targets.hpp"
#include "gpumem/search/find_layouts.hpp"
#include "gpumem/search/frameworks.hpp"
#include "gpumem/serve/server_command.hpp"
#include "gpumem/serve/serving_questions.hpp"
#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/graph_json.hpp"
#include "gpumem/utilisation/utilisation_estimators.hpp"

namespace gpumem {

using summary::to_graph_json;

}  // namespace gpumem
