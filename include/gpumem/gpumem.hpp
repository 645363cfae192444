// gpumem: how much GPU memory a deep-learning training job will take, before it runs and without a GPU.
// What a program needs: a Session, which answers every question about a job, and the values that go in and come out.
// Never pulls libtorch. Placement, live GPUs, layouts over GPUs and the rooms behind an estimate are includes of their
// own; gpumem/all.hpp has everything.
#pragma once

#include "gpumem/core/config.hpp"  // first: it says so where the compiler is set to an older C++

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/estimate/fit.hpp"
#include "gpumem/estimate/timeline.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/session/session.hpp"

namespace gpumem {

using core::Bytes;
using core::Error;
using core::ErrorCode;
using core::Result;
using device::find_profile;
using device::GpuProfile;
using estimate::Advice;
using estimate::Estimator;
using estimate::Fit;
using estimate::Grows;
using estimate::largest_batch;
using estimate::longest_sequence;
using estimate::make_estimator;
using estimate::make_timeline;
using estimate::MemoryEstimate;
using estimate::Timeline;
using estimate::Verdict;
using job::JobRequest;
using model::GraphBuilder;
using model::ModelGraph;
using model::Optimizer;
using model::Precision;
using model::TrainingJob;
using session::Model;
using session::parse_summary;
using session::read_summary;
using session::Session;

}  // namespace gpumem

#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/bodies.hpp"
#endif
