#include <algorithm>
#include <array>

#include "gpumem/serve/server_command.hpp"
#include "gpumem_datasets/serving_starts.hpp"

namespace gpumem::datasets {

namespace {
namespace serving_table_detail {

constexpr std::array<std::string_view, 7> kColumns = {"name",        "model",           "engine", "version",
                                                      "weights_gib", "kv_cache_tokens", "status"};

/// A column, and the option of a server that it gives.
struct OptionColumn {
  std::string_view column, option;
};
constexpr std::array<OptionColumn, 9> kOptions = {{{"tensor_parallel", "tensor_parallel_size"},
                                                   {"pipeline_parallel", "pipeline_parallel_size"},
                                                   {"data_parallel", "data_parallel_size"},
                                                   {"max_model_len", "max_model_len"},
                                                   {"max_num_seqs", "max_num_seqs"},
                                                   {"max_num_batched_tokens", "max_num_batched_tokens"},
                                                   {"gpu_memory_utilization", "gpu_memory_utilization"},
                                                   {"block_size", "block_size"},
                                                   {"kv_cache_dtype", "kv_cache_dtype"}}};

struct FigureColumn {
  std::string_view column;
  std::optional<double> LoggedStart::*figure;
};
constexpr std::array<FigureColumn, 6> kFigures = {{{"total_gib", &LoggedStart::gpu_gib},
                                                   {"weights_gib", &LoggedStart::weights_gib},
                                                   {"activation_gib", &LoggedStart::activation_gib},
                                                   {"non_torch_gib", &LoggedStart::outside_pytorch_gib},
                                                   {"kv_cache_gib", &LoggedStart::kv_cache_gib},
                                                   {"cuda_graph_gib", &LoggedStart::cuda_graphs_gib}}};

core::Status read_job(const core::CsvCells& cells, serve::ServingJob& job) {
  job.version = cells.text("version");
  for (const OptionColumn& each : kOptions) {
    const std::string_view value = cells.text(each.column);
    if (value.empty()) continue;
    if (const core::Status set = serve::set_serving_option(job, each.option, value); !set) {
      return cells.malformed(set.error().message);
    }
  }
  if (const std::string_view dtype = cells.text("dtype"); !dtype.empty()) job.dtype = dtype;
  // Of a checkpoint that is quantised, the config says how.
  if (cells.text("quantization") == "fp8") job.quantization = "fp8";
  const auto eager = cells.flag("enforce_eager");
  if (!eager) return eager.error();
  job.enforce_eager = eager->value_or(false);
  return core::Done{};
}

core::Status read_figures(const core::CsvCells& cells, LoggedStart& logged) {
  for (const FigureColumn& each : kFigures) {
    // After the cache was made, memory can also have come back: a figure below zero is none.
    if (cells.text(each.column).starts_with('-')) continue;
    const auto number = cells.number(each.column);
    if (!number) return number.error();
    logged.*each.figure = *number;
  }
  const auto tokens = cells.whole("kv_cache_tokens");
  if (!tokens) return tokens.error();
  if (tokens->value_or(0) < 0) return cells.malformed("kv_cache_tokens is below zero");
  logged.kv_cache_tokens = *tokens;
  return core::Done{};
}

void read_outcome(const core::CsvCells& cells, LoggedStart& logged) {
  const std::string_view status = cells.text("status");
  logged.why = cells.text("why");
  if (status == "ok") return;
  const bool memory = status == "refused" || logged.why.find("out of memory") != std::string::npos;
  logged.outcome = memory ? StartOutcome::refused : StartOutcome::unrelated;
}

}  // namespace serving_table_detail
}  // namespace

bool is_serving_table(const core::CsvTable& table) {
  return std::all_of(serving_table_detail::kColumns.begin(), serving_table_detail::kColumns.end(),
                     [&](std::string_view column) { return table.has(column); });
}

std::vector<ServingStart> read_serving_table(const core::CsvTable& table) {
  std::vector<ServingStart> starts;
  for (const core::CsvRow& row : table.rows) {
    const core::CsvCells cells(table, row);
    ServingStart start;
    start.name = cells.text("name");
    start.model = cells.text("model");
    start.gpu = cells.text("gpu");
    start.line = row.line;
    if (const core::Status read = serving_table_detail::read_job(cells, start.job); !read) start.error = read.error();
    if (const core::Status read = serving_table_detail::read_figures(cells, start.logged); !read) {
      start.error = read.error();
    }
    serving_table_detail::read_outcome(cells, start.logged);
    if (!start.error && start.model.empty()) {
      start.error = core::Error{core::ErrorCode::missing_information, "names no model", {table.file, row.line, {}}};
    }
    if (!start.error && start.job.version.empty()) {
      start.error = core::Error{
          core::ErrorCode::missing_information, "names no version of the engine", {table.file, row.line, {}}};
    }
    starts.push_back(std::move(start));
  }
  return starts;
}

}  // namespace gpumem::datasets
