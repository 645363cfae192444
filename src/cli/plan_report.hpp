// Input: the layouts that a search found.
// Output: a table for people and JSON (schema 1) for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "estimated_jobs.hpp"
#include "gpumem/search/find_layouts.hpp"
#include "terminal.hpp"

namespace gpumem::cli {

/// {"schema": 1, "summary": ..., "gpus": ..., "layouts": [...], ...}; `told`: with "explained", of this layout.
[[nodiscard]] nlohmann::ordered_json to_json(const EstimatedJob& estimated_job, const search::LayoutPlan& plan,
                                             const search::Question& question,
                                             const search::Explanation* told = nullptr);

/// "tensor 8, data 8 (fsdp2), micro-batch 1 x 64, checkpointing full".
[[nodiscard]] std::string layout_text(const model::TrainingJob& job);

/// What is shown of a plan: the settings of this many of its layouts, and where it is printed.
struct PlanShown {
  std::int64_t global_batch = 1;
  std::size_t settings = 1;
  Terminal terminal = {};
};
/// The table of layouts, the settings of the first of them, and what is assumed.
[[nodiscard]] std::string to_text(const search::LayoutPlan& plan, const GpuProfile& gpu, const PlanShown& shown);

/// Why a layout is not the plan's first one, for people.
[[nodiscard]] std::string to_text(const search::Explanation& told, const search::LayoutPlan& plan,
                                  const GpuProfile& gpu);

/// The first layouts of plans for several numbers of GPUs, a line each.
[[nodiscard]] std::string counts_table(const std::vector<search::LayoutPlan>& plans, const GpuProfile& gpu,
                                       const Terminal& terminal);

/// What is said where no layout fits.
[[nodiscard]] Error no_layout(const search::LayoutPlan& plan, const EstimatedJob& estimated_job);

}  // namespace gpumem::cli
