#include "plan_report.hpp"

#include <algorithm>
#include <array>

#include "figures.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;
using search::LayoutPlan;
using search::PlannedLayout;

/// The options of a job that a plan chooses.
constexpr std::array<std::string_view, 13> kChosen = {"batch_size",
                                                      "accumulate",
                                                      "checkpointing",
                                                      "data_parallel",
                                                      "sharding",
                                                      "tensor_parallel",
                                                      "sequence_parallel",
                                                      "pipeline_parallel",
                                                      "virtual_stages",
                                                      "schedule",
                                                      "context_parallel",
                                                      "expert_parallel",
                                                      "loop"};

Json value_json(const job::OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  if (const std::int64_t* number = std::get_if<std::int64_t>(&value)) return *number;
  return job::to_text(value);
}

Json parts_json(const search::LayoutTime& time) {
  return {{"compute", rounded(time.compute)},    {"tensor", rounded(time.tensor)},
          {"context", rounded(time.context)},    {"experts", rounded(time.experts)},
          {"sharding", rounded(time.sharding)},  {"pipeline", rounded(time.pipeline)},
          {"optimizer", rounded(time.optimizer)}};
}

Json options_json(const model::TrainingJob& training) {
  const JobRequest asked = {.training = training};
  Json options = Json::object();
  for (const std::string_view name : kChosen) {
    const job::JobOption* option = job::find_option(name);
    const auto value = option->place.get(asked);
    if (value) options[std::string(name)] = value_json(*value);
  }
  if (training.offload != model::Offload::none) {
    options["offload"] = std::string(model::name_of(model::kOffloads, training.offload));
  }
  return options;
}

Json layout_json(const PlannedLayout& layout, const LayoutPlan& plan, const GpuProfile& gpu) {
  Json json;
  json["framework"] = layout.framework->name;
  json["options"] = options_json(layout.job);
  json["estimate"] = cli::to_json(layout.memory);
  json["headroom_bytes"] = search::headroom(layout.memory, gpu).count();
  json["step_seconds"] = rounded(layout.step);
  json["step"] = parts_json(layout.time);
  json["samples_per_second"] = rounded(layout.samples);
  json["tokens_per_second_per_gpu"] = layout.tokens > 0.0 ? Json(rounded(layout.tokens)) : Json(nullptr);
  json["settings"] = {{"format", layout.framework->settings}, {"text", search::settings_of(plan, layout)}};
  return json;
}

void add_ranks(std::string& text, std::string_view kind, std::int64_t ranks) {
  if (ranks > 1) text += (text.empty() ? "" : ", ") + std::string(kind) + " " + std::to_string(ranks);
}

/// What an estimate that does not fit is beyond the GPU's memory: as expected, or else at most.
core::Bytes too_much(const estimate::MemoryEstimate& memory, const GpuProfile& gpu) {
  if (memory.fits) return core::Bytes(0);
  const std::int64_t room = gpu.capacity().count();
  const std::int64_t expected = memory.expected.count() - room;
  return core::Bytes(std::max<std::int64_t>(expected > 0 ? expected : memory.upper.count() - room, 0));
}

std::string layouts_table(const LayoutPlan& plan, const GpuProfile& gpu, const Terminal& terminal) {
  const bool tokens = !plan.layouts.empty() && plan.layouts.front().tokens > 0.0;
  Table table({{.title = "#", .right = true},
               {.title = "framework"},
               {.title = "layout"},
               {.title = "memory", .right = true},
               {.title = "up to", .right = true},
               {.title = "headroom", .right = true},
               {.title = "step", .right = true},
               {.title = tokens ? "tokens/s/GPU" : "samples/s", .right = true},
               {.title = "of " + core::to_string(gpu.capacity()), .gauge = true, .below = true}});
  for (std::size_t at = 0; at < plan.layouts.size(); ++at) {
    const PlannedLayout& layout = plan.layouts[at];
    table.add({std::to_string(at + 1), layout.framework->name, layout_text(layout.job), layout.memory.expected,
               layout.memory.upper, search::headroom(layout.memory, gpu), text_of("%.3g s", layout.step),
               layout.tokens > 0.0 ? text_of("%.0f", layout.tokens) : text_of("%.3g", layout.samples)},
              gauge_of(layout.memory, gpu));
  }
  return table.text(terminal);
}

Json explained_json(const search::Explanation& told, const LayoutPlan& plan, const GpuProfile& gpu) {
  Json json;
  json["framework"] = told.framework->name;
  json["options"] = options_json(told.job);
  json["outside"] = Json::array();
  for (const search::Refusal& refusal : told.outside) {
    json["outside"].push_back({{"rule", refusal.text}, {"code", model::name_of(search::kRules, refusal.rule)}});
  }
  json["estimate"] = told.memory ? cli::to_json(*told.memory) : Json(nullptr);
  json["too_much_bytes"] = told.memory ? Json(too_much(*told.memory, gpu).count()) : Json(nullptr);
  json["step_seconds"] = told.time ? Json(rounded(told.time->step())) : Json(nullptr);
  json["step"] = told.time ? parts_json(*told.time) : Json(nullptr);
  const bool compared = told.time && !plan.layouts.empty();
  json["slower_by_seconds"] = compared ? Json(rounded(told.time->step() - plan.layouts.front().step)) : Json(nullptr);
  return json;
}

std::string memory_line(const search::Explanation& told, const GpuProfile& gpu) {
  if (!told.memory) return "  memory: no estimate\n";
  std::string text = "  memory: " + core::to_string(told.memory->expected) + ", up to " +
                     core::to_string(told.memory->upper) + " of " + core::to_string(gpu.capacity()) + ": ";
  const core::Bytes over = too_much(*told.memory, gpu);
  const estimate::Verdict verdict = estimate::verdict_of(*told.memory, gpu.capacity());
  text += estimate::to_string(verdict);
  if (over.count() > 0) {
    const std::string more = core::to_string(over);
    text += verdict == estimate::Verdict::does_not_fit ? ", by " + more : ", it may take " + more + " too much";
  }
  const auto& assumed = told.memory->assumed;
  const auto rank = std::find_if(assumed.begin(), assumed.end(), [](const auto& one) { return one.about == "rank"; });
  return text + (rank == assumed.end() ? "" : ", " + said(rank->text)) + "\n";
}

/// The parts of a step that take longer than in the plan's first layout, the largest first.
std::string longer_parts(const search::LayoutTime& time, const search::LayoutTime& first) {
  std::vector<std::pair<double, std::string_view>> parts = {
      {time.compute - first.compute, "compute"},      {time.tensor - first.tensor, "tensor"},
      {time.context - first.context, "context"},      {time.experts - first.experts, "experts"},
      {time.sharding - first.sharding, "sharding"},   {time.pipeline - first.pipeline, "pipeline"},
      {time.optimizer - first.optimizer, "optimizer"}};
  std::sort(parts.begin(), parts.end(), [](const auto& one, const auto& other) { return one.first > other.first; });
  constexpr double kCounts = 0.01;  // of the step
  std::string text;
  for (const auto& [seconds, name] : parts) {
    if (seconds < kCounts * first.step()) break;
    text += (text.empty() ? "; " : ", ") + std::string(name) + " +" + text_of("%.3g s", seconds);
  }
  return text;
}

/// A layout without headroom may be faster than the first one, which has some.
std::string faster_text(const search::Explanation& told, const PlannedLayout& first, const GpuProfile& gpu) {
  const bool tight = told.memory && told.memory->fits && search::headroom(*told.memory, gpu).count() == 0;
  const bool decides = tight && search::headroom(first.memory, gpu).count() > 0;
  return std::string(", faster than layout 1") + (decides ? ", which comes first because it has headroom" : "");
}

std::string time_line(const search::Explanation& told, const LayoutPlan& plan, const GpuProfile& gpu) {
  if (!told.time) return "  time: not known\n";
  std::string text = "  time: " + text_of("%.3g s", told.time->step()) + " a step";
  if (plan.layouts.empty()) return text + "\n";
  const PlannedLayout& first = plan.layouts.front();
  const double more = told.time->step() - first.step;
  const double percent = 100.0 * more / first.step;
  if (more <= 0.0) return text + (more < 0.0 ? faster_text(told, first, gpu) : ", as layout 1") + "\n";
  return text + ", " + text_of("%.3g s", more) + text_of(" (%.3g %%)", percent) + " more than layout 1" +
         longer_parts(*told.time, first.time) + "\n";
}

std::string counts(const LayoutPlan& plan) {
  const std::int64_t tight = plan.fitting - static_cast<std::int64_t>(plan.layouts.size());
  const std::int64_t too_large = plan.candidates - plan.slower - plan.fitting;
  std::string text = core::with_separators(plan.candidates) + " possible layouts: ";
  text += too_large == 0 ? "all of the fastest fit"
                         : core::with_separators(too_large) + " are as fast or faster but do not fit";
  if (tight > 0) text += ", " + core::with_separators(tight) + (tight == 1 ? " fits" : " fit") + " without headroom";
  if (plan.slower > 0) text += ", " + core::with_separators(plan.slower) + " are slower and were not tried";
  return text + "\n";
}

}  // namespace

std::string layout_text(const model::TrainingJob& job) {
  const model::Layout& layout = job.layout;
  std::string text;
  add_ranks(text, "tensor", layout.tensor_parallel);
  add_ranks(text, "context", layout.context_parallel);
  add_ranks(text, "pipeline", layout.pipeline_parallel);
  if (layout.virtual_stages > 1) text += " x " + std::to_string(layout.virtual_stages) + " stages";
  add_ranks(text, "expert", layout.expert_parallel);
  text += (text.empty() ? "" : ", ") + std::string("data ") + std::to_string(layout.data_parallel);
  // One rank shards nothing, whatever the framework calls it.
  if (layout.data_parallel * layout.context_parallel > 1) text += " (" + parallel::name_of(layout.sharding) + ")";
  text += ", micro-batch " + std::to_string(job.batch_size) + " x " + std::to_string(job.gradient_accumulation);
  if (job.offload != model::Offload::none) {
    text += ", offload " + std::string(model::name_of(model::kOffloads, job.offload));
  }
  if (!job.activation_checkpointing) return text;
  return text + ", checkpointing " + std::string(model::name_of(model::kCheckpoints, job.checkpoints.kind));
}

Json to_json(const EstimatedJob& estimated_job, const LayoutPlan& plan, const search::Question& question,
             const search::Explanation* told) {
  Json json = head_json(estimated_job);
  for (const std::string_view name : kChosen) json["job"].erase(std::string(name));
  json["gpus"] = plan.gpus;
  json["global_batch"] = question.global_batch;
  json["layouts"] = Json::array();
  for (const PlannedLayout& layout : plan.layouts) {
    json["layouts"].push_back(layout_json(layout, plan, *estimated_job.gpu));
  }
  json["candidates"] = plan.candidates;
  json["too_large"] = plan.too_large;
  json["estimated"] = plan.estimated;
  json["slower"] = plan.slower;
  json["refused"] = Json::array();
  for (const auto& [refusal, count] : plan.refused) {
    const std::string_view code = model::name_of(search::kRules, refusal.rule);
    json["refused"].push_back({{"rule", refusal.text}, {"code", code}, {"layouts", count}});
  }
  if (told != nullptr) json["explained"] = explained_json(*told, plan, *estimated_job.gpu);
  json["assumed"] = to_json(plan.assumed);
  return json;
}

std::string to_text(const search::Explanation& told, const LayoutPlan& plan, const GpuProfile& gpu) {
  std::string text = std::string(told.framework->name) + ", " + layout_text(told.job) + ":\n" + memory_line(told, gpu) +
                     time_line(told, plan, gpu);
  if (told.outside.empty()) return text + "  search: it is among the layouts of the search\n";
  for (const search::Refusal& refusal : told.outside) {
    text +=
        "  left out (" + std::string(model::name_of(search::kRules, refusal.rule)) + "): " + said(refusal.text) + "\n";
  }
  return text;
}

std::string counts_table(const std::vector<LayoutPlan>& plans, const GpuProfile& gpu, const Terminal& terminal) {
  Table table({{.title = "GPUs", .right = true},
               {.title = "framework"},
               {.title = "first layout"},
               {.title = "memory", .right = true},
               {.title = "up to", .right = true},
               {.title = "step", .right = true},
               {.title = "samples/s", .right = true},
               {.title = "of one GPU", .right = true},
               {.title = "of " + core::to_string(gpu.capacity()), .gauge = true, .below = true}});
  for (const LayoutPlan& plan : plans) {
    const std::string gpus = core::with_separators(plan.gpus);
    if (plan.layouts.empty()) {
      table.add({gpus, "no layout is known to fit"});
      continue;
    }
    const PlannedLayout& first = plan.layouts.front();
    table.add({gpus, first.framework->name, layout_text(first.job), first.memory.expected, first.memory.upper,
               text_of("%.3g s", first.step), text_of("%.3g", first.samples),
               text_of("%.3g", first.samples / static_cast<double>(plan.gpus))},
              gauge_of(first.memory, gpu));
  }
  return table.text(terminal);
}

std::string to_text(const LayoutPlan& plan, const GpuProfile& gpu, const PlanShown& shown) {
  const std::int64_t batch = shown.global_batch;
  std::string text = core::with_separators(plan.gpus) + (plan.gpus == 1 ? " GPU" : " GPUs") + ", " +
                     core::with_separators(batch) + (batch == 1 ? " sample" : " samples") + " a step\n" + counts(plan) +
                     "\n" + layouts_table(plan, gpu, shown.terminal);
  for (std::size_t at = 0; at < std::min(shown.settings, plan.layouts.size()); ++at) {
    const PlannedLayout& layout = plan.layouts[at];
    text += "\nlayout " + std::to_string(at + 1) + " as " + std::string(layout.framework->settings) + ":\n" +
            search::settings_of(plan, layout);
  }
  text += "\n";
  for (const estimate::Assumption& assumption : plan.assumed) text += "assumed: " + said(assumption.text) + "\n";
  return text;
}

Error no_layout(const LayoutPlan& plan, const EstimatedJob& estimated_job) {
  const std::string gpus = core::with_separators(plan.gpus) + " of " + estimated_job.gpu->name;
  std::string message = plan.candidates == 0
                            ? "no layout is possible on " + gpus
                            : "no layout on " + gpus + " is known to fit: " + core::with_separators(plan.candidates) +
                                  " are possible, and none of them fits";
  const auto most = std::max_element(plan.refused.begin(), plan.refused.end(),
                                     [](const auto& left, const auto& right) { return left.second < right.second; });
  if (most == plan.refused.end())
    return {ErrorCode::missing_information, message, {estimated_job.graph->file(), 0, {}}};
  message += plan.candidates == 0 ? "; most break this rule: " : "; of the others, most break this rule: ";
  message += most->first.text;
  // A layout is refused by this rule before others are looked at, so that it counts few.
  const auto batch = std::find_if(plan.refused.begin(), plan.refused.end(),
                                  [](const auto& one) { return one.first.rule == search::Rule::batch; });
  if (batch != plan.refused.end() && batch != most) message += "; and of some, " + batch->first.text;
  return {ErrorCode::missing_information, std::move(message), {estimated_job.graph->file(), 0, {}}};
}

}  // namespace gpumem::cli
