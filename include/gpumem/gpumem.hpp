// gpumem: how much GPU memory a deep-learning training job will take, before it runs and without a GPU.
// The whole library in one header; never pulls libtorch. Names that programs use most are in gpumem itself.
#pragma once

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/config.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/allocation_trace.hpp"
#include "gpumem/device/caching_allocator.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/advise.hpp"
#include "gpumem/estimate/estimators.hpp"
#include "gpumem/estimate/fit.hpp"
#include "gpumem/estimate/gpumemnet.hpp"
#include "gpumem/estimate/horus.hpp"
#include "gpumem/estimate/timeline.hpp"
#include "gpumem/job/job_from.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/job/option_texts.hpp"
#include "gpumem/ml/builtin_models.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/monitor/live_server.hpp"
#include "gpumem/monitor/nvml.hpp"
#include "gpumem/monitor/sharing.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/parallel/layout.hpp"
#include "gpumem/place/policies.hpp"
#include "gpumem/place/queue.hpp"
#include "gpumem/place/recovery.hpp"
#include "gpumem/place/server_json.hpp"
#include "gpumem/request/targets.hpp"
#include "gpumem/search/find_layouts.hpp"
#include "gpumem/search/frameworks.hpp"
#include "gpumem/summary/graph_json_writer.hpp"
#include "gpumem/summary/read.hpp"
#include "gpumem/utilisation/translate.hpp"
#include "gpumem/utilisation/utilisation_estimators.hpp"

namespace gpumem {

using core::Bytes;
using core::Error;
using core::ErrorCode;
using core::Result;
using device::find_profile;
using device::GpuProfile;
using estimate::Estimator;
using estimate::Fit;
using estimate::largest_batch;
using estimate::longest_sequence;
using estimate::make_estimator;
using estimate::make_timeline;
using estimate::MemoryEstimate;
using estimate::Timeline;
using model::GraphBuilder;
using model::ModelGraph;
using model::Optimizer;
using model::Precision;
using model::TrainingJob;
using summary::to_graph_json;

/// Reads a model summary in any format, with every op that gpumem knows; "-" is standard input, and a folder is that of
/// a HuggingFace model: its config.json, held to the headers of its safetensors files. With `lenient`,
/// unknown layers that hold parameters are counted instead of bounded, and estimates are lower bounds.
[[nodiscard]] inline Result<ModelGraph> read_summary(const std::string& path, bool lenient = false) {
  return summary::read_file(path, {&ops::vocabulary(), path, lenient});
}

/// The same for a summary that is in memory.
[[nodiscard]] inline Result<ModelGraph> parse_summary(std::string_view text, bool lenient = false) {
  return summary::read(text, {&ops::vocabulary(), {}, lenient});
}

}  // namespace gpumem
