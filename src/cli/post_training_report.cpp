#include "post_training_report.hpp"

#include <algorithm>
#include <optional>

#include "figures.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "table.hpp"

namespace gpumem::cli {

namespace {

std::string verdict_line(const posttrain::PostTrainingEstimate& estimate, const device::GpuProfile& gpu) {
  const estimate::MemoryEstimate& memory = estimate.memory;
  return std::string(estimate::to_string(memory.verdict)) + " on " + gpu.name + " (" + core::to_string(gpu.capacity()) +
         "): " + core::to_string(memory.expected) + " in \"" + estimate.phases[estimate.peak_phase].name +
         "\", between " + core::to_string(memory.lower) + " and " + core::to_string(memory.upper) + "\n";
}

/// What each GPU takes that generates alone.
std::string elsewhere_line(const posttrain::PostTrainingEstimate& estimate) {
  if (estimate.elsewhere.empty()) return {};
  core::Bytes sum;
  for (const posttrain::NamedBytes& part : estimate.elsewhere) sum = core::Bytes(sum.count() + part.bytes.count());
  return "on each GPU that generates: " + core::to_string(sum) + "\n";
}

}  // namespace

std::string to_text(const posttrain::PostTrainingEstimate& estimate, const device::GpuProfile& gpu,
                    const Terminal& terminal) {
  const bool serves = std::any_of(estimate.phases.begin(), estimate.phases.end(),
                                  [](const posttrain::PhaseEstimate& phase) { return phase.rollout.count() > 0; });
  std::vector<Column> columns = {
      {.title = "phase"}, {.title = "allocated", .right = true}, {.title = "reserved", .right = true}};
  if (serves) columns.push_back({.title = "vLLM", .right = true});
  columns.push_back({.title = "on the GPU", .right = true});
  Table phases(std::move(columns));
  for (const posttrain::PhaseEstimate& phase : estimate.phases) {
    std::vector<Cell> cells = {phase.name, phase.allocated, phase.reserved};
    if (serves) cells.emplace_back(phase.rollout);
    cells.emplace_back(phase.device);
    phases.add(std::move(cells));
  }
  Table parts({{.title = "at the peak"}, {.title = "memory", .right = true}});
  for (const posttrain::NamedBytes& part : estimate.parts) parts.add({part.name, part.bytes});
  return phases.text(terminal) + "\n" + parts.text(terminal) + elsewhere_line(estimate) + verdict_line(estimate, gpu) +
         to_text(estimate.memory.assumed);
}

std::string to_text(std::span<const estimate::Assumption> assumed) {
  std::string text;
  for (const estimate::Assumption& line : assumed) {
    text += "assumed: " + line.about + ": " + job::spelled(line.text, job::kCommandLine) + "\n";
  }
  return text;
}

std::string to_text(const posttrain::PostTrainingLimits& limits, const Terminal& terminal) {
  Table table({{.title = "it fits up to"}, {.title = "value"}});
  const auto add = [&](std::string_view limit, std::string_view title, const std::optional<std::string>& value) {
    const auto reason =
        std::find_if(limits.reasons.begin(), limits.reasons.end(), [&](const auto& at) { return at.first == limit; });
    if (value) table.add({std::string(title), *value});
    else if (reason != limits.reasons.end()) {
      table.add({std::string(title), "-: " + job::spelled(reason->second, job::kCommandLine)});
    }
  };
  const auto whole = [](const std::optional<std::int64_t>& value) {
    return value ? std::optional(core::with_separators(*value)) : std::nullopt;
  };
  add("largest_batch", "the largest batch", whole(limits.largest_batch));
  add("largest_group", "the largest group", whole(limits.largest_group));
  add("longest_completion", "the longest completion", whole(limits.longest_completion));
  add("longest_sequence", "the longest sequence", whole(limits.longest_sequence));
  add("largest_utilization", "the largest gpu_memory_utilization",
      limits.largest_utilization ? std::optional(text_of("%.2f", *limits.largest_utilization)) : std::nullopt);
  return table.text(terminal);
}

std::string to_text(const std::vector<posttrain::PostTrainingChange>& advice, const Terminal& terminal) {
  if (advice.empty()) return "no change lets the job take less\n";
  Table table(
      {{.title = "change"}, {.title = "on the GPU", .right = true}, {.title = "fits"}, {.title = "what it costs"}});
  const auto words = [](const posttrain::PostTrainingChange& change) {
    std::string text = std::string(change.option) + " " + change.value;
    for (const auto& [option, value] : change.also) text.append(", ").append(option).append(" ").append(value);
    return text;
  };
  std::string together;
  for (const posttrain::PostTrainingChange& change : advice) {
    const estimate::MemoryEstimate& memory = change.estimate.memory;
    const std::string verdict(estimate::to_string(memory.verdict));
    if (change.also.empty()) table.add({words(change), memory.expected, verdict, change.costs});
    else together = "together: " + words(change) + ": " + core::to_string(memory.expected) + ", " + verdict + "\n";
  }
  const auto fits = [](const posttrain::PostTrainingChange& change) {
    return change.estimate.memory.verdict == estimate::Verdict::fits;
  };
  if (together.empty() && std::none_of(advice.begin(), advice.end(), fits)) {
    together = "all of them together are not enough\n";
  }
  return table.text(terminal) + together;
}

std::string to_text(const std::vector<posttrain::PostTrainingLayout>& layouts, const Terminal& terminal) {
  if (layouts.empty()) return "no layout of these GPUs holds the job\n";
  Table table({{.title = "training"},
               {.title = "precision"},
               {.title = "engine over", .right = true},
               {.title = "offload_policy"},
               {.title = "on the GPU", .right = true},
               {.title = "most in"},
               {.title = "fits"}});
  for (const posttrain::PostTrainingLayout& layout : layouts) {
    const posttrain::PostTrainingEstimate& estimate = layout.estimate;
    table.add({parallel::name_of(layout.sharding) + " over " + std::to_string(layout.data_parallel),
               std::string(model::name_of(model::kPrecisions, layout.precision)),
               core::with_separators(layout.rollout_tensor_parallel),
               std::string(model::name_of(posttrain::kWaitings, layout.offload)), estimate.memory.expected,
               estimate.phases[estimate.peak_phase].name, std::string(estimate::to_string(estimate.memory.verdict))});
  }
  return table.text(terminal);
}

}  // namespace gpumem::cli
