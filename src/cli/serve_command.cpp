#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/serve/vllm.hpp"
#include "gpumem/serve/vllm_command.hpp"
#include "table.hpp"

namespace gpumem::cli {

namespace {

/// The file, or the config.json of the folder.
std::string config_of(const ServeOptions& options) {
  std::string path = options.config;
  if (path.empty() && options.command.size() > 2) path = options.command[2];  // "vllm serve NAME"
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path + "/config.json" : path;
}

Result<serve::ServingEstimate> serving_estimate(const ServeOptions& options, const GpuProfile& gpu) {
  const std::string path = config_of(options);
  if (path.empty()) return Error{core::ErrorCode::invalid_argument, "give a config.json, or a folder that has one", {}};
  const Result<std::string> text = core::read_file(path);
  if (!text) return text.error();
  const Result<serve::ServedModel> model = serve::read_served_model(*text);
  if (!model) return Error(model.error()).in_file(path);
  serve::ServingJob job;
  job.version = options.engine_version;
  Result<serve::ServingJob> asked = options.command.empty() ? job : serve::read_vllm_command(options.command, job);
  if (!asked) return asked.error();
  return serve::estimate_vllm(*model, *asked, gpu);
}

nlohmann::ordered_json serving_json(const serve::ServingEstimate& estimate, const GpuProfile& gpu) {
  const std::int64_t within = estimate.requested.count();
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["gpu"] = gpu.name;
  json["capacity_bytes"] = gpu.capacity().count();
  json["engine"] = "vllm";
  json["rules_of"] = estimate.version;
  json["stage"] = estimate.stage;
  json["expected_bytes"] = estimate.expected().count();
  json["lower_bytes"] = within + (estimate.starts ? estimate.cuda_graphs_lower.count() : 0);
  json["upper_bytes"] = within + (estimate.starts ? estimate.cuda_graphs_upper.count() : 0);
  json["requested_bytes"] = within;
  json["weights_bytes"] = estimate.weights.count();
  json["activation_bytes"] = estimate.activation.count();
  json["outside_pytorch_bytes"] = estimate.outside_pytorch.count();
  json["outside_pytorch_range"] = {estimate.outside_pytorch_lower.count(), estimate.outside_pytorch_upper.count()};
  json["cuda_graph_bytes"] = estimate.cuda_graphs.count();
  json["cuda_graph_range"] = {estimate.cuda_graphs_lower.count(), estimate.cuda_graphs_upper.count()};
  json["kv_cache_bytes"] = estimate.kv_cache.count();
  json["kv_cache_blocks"] = estimate.kv_cache_blocks;
  json["kv_cache_tokens"] = estimate.kv_cache_tokens;
  json["max_model_len"] = estimate.max_model_len;
  json["largest_max_model_len"] = estimate.largest_max_model_len;
  json["max_concurrency"] = estimate.concurrency;
  json["kv_cache_needed_bytes"] = estimate.kv_cache_needed.count();
  json["starts"] = estimate.starts;
  json["fits"] = estimate.starts;
  json["verdict"] = model::name_of(estimate::kVerdicts, estimate.verdict());
  if (!estimate.starts) json["reason"] = estimate.reason;
  json["assumed"] = estimate.assumed;
  return json;
}

void print_serving(const serve::ServingEstimate& estimate) {
  Table table({{.title = "on each GPU"}, {.title = "memory", .right = true}});
  table.add({"weights", estimate.weights});
  table.add({"activation", estimate.activation});
  table.add({"outside PyTorch", estimate.outside_pytorch});
  table.add({"KV cache", estimate.kv_cache});
  table.add({"CUDA graphs", estimate.cuda_graphs});
  std::printf("%s", table.text(terminal_of(STDOUT_FILENO)).c_str());
  if (estimate.starts) {
    const bool tight = estimate.verdict() == estimate::Verdict::tight;
    std::printf("starts%s: %s tokens of KV cache, %.2f requests of %s tokens at once\n",
                tight ? ", but it is tight" : "", core::with_separators(estimate.kv_cache_tokens).c_str(),
                estimate.concurrency, core::with_separators(estimate.max_model_len).c_str());
  } else {
    std::printf("does not start: %s\n", estimate.reason.c_str());
  }
  for (const std::string& line : estimate.assumed) std::printf("assumed: %s\n", line.c_str());
}

}  // namespace

int run_serve(const ServeOptions& options) {
  const Result<GpuProfile> gpu = find_profile(options.gpu);
  if (!gpu) return report_error(gpu.error());
  const Result<serve::ServingEstimate> estimate = serving_estimate(options, *gpu);
  if (!estimate) return report_error(estimate.error());
  if (options.json) {
    std::printf("%s\n", serving_json(*estimate, *gpu).dump(2).c_str());
  } else {
    print_serving(*estimate);
  }
  return estimate->starts ? 0 : 4;
}

}  // namespace gpumem::cli
