// Enters: the layouts that a search found. Leaves: what people read (a table) and what programs read (JSON, schema 1).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "estimated_jobs.hpp"
#include "gpumem/search/find_layouts.hpp"

namespace gpumem::cli {

/// {"schema": 1, "summary": ..., "gpus": ..., "layouts": [...], ...}
[[nodiscard]] nlohmann::ordered_json to_json(const EstimatedJob& estimated_job, const search::LayoutPlan& plan,
                                             const search::Question& question);

/// "tensor 8, data 8 (fsdp2), micro-batch 1 x 64, checkpointing full".
[[nodiscard]] std::string layout_text(const model::TrainingJob& job);

/// The table of layouts, the settings of the first `settings` of them, and what is assumed.
[[nodiscard]] std::string to_text(const search::LayoutPlan& plan, const GpuProfile& gpu, std::int64_t global_batch,
                                  std::size_t settings);

/// What is said where no layout fits.
[[nodiscard]] Error no_layout(const search::LayoutPlan& plan, const EstimatedJob& estimated_job);

}  // namespace gpumem::cli
