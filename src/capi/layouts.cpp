#include "layouts.hpp"

#include <cstring>

#include "gpumem/core/deadline.hpp"
#include "gpumem/gpumem.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/search/find_layouts.hpp"
#include "held.hpp"
#include "job_struct.hpp"
#include "plan_words.hpp"
#include "sized.hpp"

namespace gpumem::capi {

namespace {

using job::JobRequest;

constexpr std::size_t kFirstQuestion = sizeof(gpumem_plan_question);
constexpr std::size_t kFirstLayout = sizeof(gpumem_layout);
/// More layouts are not asked for.
constexpr std::size_t kMostLayouts = 100'000;

Result<search::Question> question_of(const gpumem_plan_question& asked, const JobRequest& request, std::size_t show) {
  cli::PlanOptions options{.request = request};
  options.global_batch = asked.global_batch;
  options.show = static_cast<std::int64_t>(show);
  if (asked.framework != nullptr && *asked.framework != '\0') options.framework = asked.framework;
  if (asked.gpus != 0) options.gpus = {asked.gpus};
  if (asked.gpus_per_node != 0) options.gpus_per_node = asked.gpus_per_node;
  if (asked.network_gbps != 0.0) options.network_gbps = asked.network_gbps;
  return cli::question_of(options);
}

/// Names of rows are literals, which end in a NUL. "hsdp:N" is a literal as well; here the N is separate.
const char* sharding_name(const model::Sharding& sharding) {
  if (sharding.kind == model::Shardings::hsdp) return "hsdp";
  return model::name_of(model::kShardings, sharding.kind).data();
}

const char* checkpointing_name(const model::TrainingJob& job) {
  if (!job.activation_checkpointing) return "none";
  return model::name_of(model::kCheckpoints, job.checkpoints.kind).data();
}

void give_settings(const std::string& text, gpumem_layout& layout) {
  layout.settings_length = static_cast<std::int64_t>(text.size());
  if (layout.settings == nullptr || layout.settings_size == 0) return;
  const bool whole = text.size() < layout.settings_size;
  if (whole) std::memcpy(layout.settings, text.c_str(), text.size() + 1);
  else *layout.settings = '\0';
}

void give_layout(const search::PlannedLayout& found, const search::LayoutPlan& plan, const GpuProfile& gpu,
                 gpumem_layout* to) {
  gpumem_layout layout = room_of(to);
  const model::Layout& of = found.job.layout;
  layout.framework = found.framework->name.data();
  layout.sharding = sharding_name(of.sharding);
  layout.schedule = model::name_of(model::kSchedules, of.schedule).data();
  layout.checkpointing = checkpointing_name(found.job);
  layout.gpus = plan.gpus;
  layout.data_parallel = of.data_parallel;
  layout.sharding_ranks = of.sharding.count;
  layout.tensor_parallel = of.tensor_parallel;
  layout.pipeline_parallel = of.pipeline_parallel;
  layout.virtual_stages = of.virtual_stages;
  layout.context_parallel = of.context_parallel;
  layout.expert_parallel = of.expert_parallel;
  layout.micro_batch = found.job.batch_size;
  layout.accumulate = found.job.gradient_accumulation;
  layout.expected_bytes = found.memory.expected.count();
  layout.upper_bytes = found.memory.upper.count();
  layout.headroom_bytes = search::headroom(found.memory, gpu).count();
  layout.step_seconds = found.step;
  layout.tokens_per_second_per_gpu = found.tokens > 0.0 ? found.tokens : -1.0;
  layout.sequence_parallel = of.sequence_parallel ? 1 : 0;
  layout.reserved = 0;
  give_settings(search::settings_of(plan, found), layout);
  give(layout, to);
}

/// The layouts of an array lie as far apart as the first one says that they are large.
core::Status check_layouts(const gpumem_layout* layouts, std::size_t count, std::size_t& stride) {
  if (layouts == nullptr) return refused("layouts is a null pointer");
  if (count == 0 || count > kMostLayouts)
    return refused("count is " + std::to_string(count) + "; 1 to 100000 are given");
  std::memcpy(&stride, layouts, sizeof stride);
  const char* at = reinterpret_cast<const char*>(layouts);
  if (auto checked = check_size(stride, kFirstLayout, "gpumem_layout"); !checked) return checked;
  for (std::size_t index = 0; index < count; ++index) {
    std::size_t size = 0;
    std::memcpy(&size, at + index * stride, sizeof size);
    if (size != stride) return refused("layouts differ in size; begin each with GPUMEM_LAYOUT_INIT");
  }
  return core::Done{};
}

}  // namespace

core::Status make_plan(const std::shared_ptr<const session::Model>& model, const gpumem_job* given,
                       const gpumem_plan_question* asked, gpumem_layout* layouts, std::size_t count,
                       std::size_t* found) {
  const Result<gpumem_job> job = taken(given, kFirstJob, "gpumem_job");
  if (!job) return job.error();
  const Result<gpumem_plan_question> plan_question = taken(asked, kFirstQuestion, "gpumem_plan_question");
  if (!plan_question) return plan_question.error();
  std::size_t stride = 0;
  if (auto checked = check_layouts(layouts, count, stride); !checked) return checked;
  if (found == nullptr) return refused("found is a null pointer");
  const core::Deadline deadline(job->deadline_ms);
  const Result<JobRequest> request = request_of(*job);
  if (!request) return request.error();
  const Result<search::Question> question = question_of(*plan_question, *request, count);
  if (!question) return question.error();
  const auto plan = process_session().plan(*request, *question, model);
  if (!plan) return plan.error();
  const auto gpu = process_session().gpu(request->gpu);
  if (!gpu) return gpu.error();
  char* at = reinterpret_cast<char*>(layouts);
  for (std::size_t index = 0; index < plan->layouts.size(); ++index) {
    give_layout(plan->layouts[index], *plan, **gpu, reinterpret_cast<gpumem_layout*>(at + index * stride));
  }
  *found = plan->layouts.size();
  return core::Done{};
}

}  // namespace gpumem::capi
