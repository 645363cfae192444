#include "gpumem_datasets/post_training_csv.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "gpumem/core/file.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/serve/served_model.hpp"
#include "gpumem_datasets/summary_shelf.hpp"

namespace gpumem::datasets {

namespace {
namespace post_training_csv_detail {

constexpr std::array<std::string_view, 8> kColumns = {"name",   "model",        "algorithm", "gpus",
                                                      "figure", "measured_mib", "software",  "args"};
constexpr std::size_t kLargestConfig = std::size_t{1} << 20;

/// A model's published sizes.
struct KnownModel {
  std::string_view name;  ///< how its name begins
  std::string_view config;
};
constexpr KnownModel kModels[] = {
    {"Qwen/Qwen2.5-7B", R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 3584,
      "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
      "vocab_size": 152064, "max_position_embeddings": 32768, "tie_word_embeddings": false, "rms_norm_eps": 1e-06})"},
    {"Qwen/Qwen2-7B", R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 3584,
      "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
      "vocab_size": 152064, "max_position_embeddings": 32768, "tie_word_embeddings": false, "rms_norm_eps": 1e-06})"},
    {"Qwen/Qwen2.5-3B", R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 2048,
      "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2,
      "vocab_size": 151936, "max_position_embeddings": 32768, "tie_word_embeddings": true, "rms_norm_eps": 1e-06})"},
    {"Qwen/Qwen3-8B", R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 4096,
      "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
      "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": false,
      "rms_norm_eps": 1e-06})"},
    {"Qwen/Qwen3-30B-A3B", R"({"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"],
      "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
      "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
      "num_experts_per_tok": 8, "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [],
      "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": false, "rms_norm_eps": 1e-06})"},
    {"LLM-Research/Meta-Llama-3.1-8B", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
      "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
      "tie_word_embeddings": false, "rms_norm_eps": 1e-05})"},
};

/// The GPU that a row's words mean.
std::string gpu_of(std::string_view words) {
  constexpr std::pair<std::string_view, std::string_view> kGpus[] = {
      {"T4", "t4-16gb"}, {"H100", "h100-80gb"}, {"A100", "a100-80gb"}, {"80 GB", "a100-80gb"}, {"", "a100-80gb"}};
  for (const auto& [word, gpu] : kGpus) {
    if (words.find(word) != std::string_view::npos) return std::string(gpu);
  }
  return {};
}

std::string word_of(const core::JsonValue& value) {
  using Kind = core::JsonValue::Kind;
  switch (value.kind()) {
    case Kind::boolean: return value.boolean() ? "true" : "false";
    case Kind::integer: return std::to_string(value.integer());
    case Kind::real: return std::to_string(value.real());
    case Kind::text: return std::string(value.text());
    case Kind::null:
    case Kind::beyond_int64:
    case Kind::list:
    case Kind::object: break;
  }
  return {};
}

/// Keys under which a notebook's figures were noted, and the trainer's own names for its settings.
constexpr std::pair<std::string_view, std::string_view> kNotebookKeys[] = {{"load4", "load_in_4bit"},
                                                                           {"r", "lora_r"},
                                                                           {"batch", "per_device_train_batch_size"},
                                                                           {"numgen", "num_generations"},
                                                                           {"mcl", "max_completion_length"},
                                                                           {"mpl", "max_prompt_length"},
                                                                           {"maxlen", "max_length"},
                                                                           {"targets", "target_modules"}};
constexpr std::string_view kNotebookFigures[] = {"peak", "start", "gpu", "gpu_total"};

core::Result<std::vector<posttrain::LaunchSetting>> settings_of(const core::CsvCells& cells) {
  std::vector<posttrain::LaunchSetting> settings;
  const std::string text(cells.text("args"));
  if (text.empty()) return settings;
  const auto document = core::JsonDocument::parse(text);
  if (!document || !document->root().is(core::JsonValue::Kind::object)) {
    return cells.malformed("args is no JSON object");
  }
  for (const core::JsonValue& field : document->root().items()) {
    std::string key(field.key());
    const bool figure =
        std::find(std::begin(kNotebookFigures), std::end(kNotebookFigures), key) != std::end(kNotebookFigures);
    if (figure) continue;
    for (const auto& [noted, own] : kNotebookKeys) {
      if (key == noted) key = own;
    }
    std::string value = word_of(field);
    std::erase(value, '\'');
    settings.push_back({std::move(key), std::move(value)});
  }
  return settings;
}

std::optional<posttrain::Program> program_of(const core::CsvCells& cells,
                                             std::span<const posttrain::LaunchSetting> settings) {
  const std::string_view software = cells.text("software");
  if (software.starts_with("verl") || software.starts_with("siirl")) return posttrain::Program::verl;
  if (software.find("unsloth") != std::string_view::npos) return std::nullopt;  // kernels of its own
  return posttrain::program_of(settings);
}

core::Status take_measurement(const core::CsvCells& cells, MeasuredRun& run) {
  const auto gpus = cells.whole("gpus");
  if (!gpus) return gpus.error();
  run.gpus = std::max<std::int64_t>(gpus->value_or(1), 1);
  const auto measured = cells.number("measured_mib");
  if (!measured) return measured.error();
  run.measured_mib = *measured;
  const std::string_view figure = cells.text("figure");
  run.figure = figure.find("allocated") != std::string_view::npos  ? Figure::allocated
               : figure.find("reserved") != std::string_view::npos ? Figure::reserved
                                                                   : Figure::device;
  return core::Done{};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  constexpr std::size_t kLongest = 300;
  return core::shortened(text, kLongest);
}

core::Status refuse(const core::CsvCells& cells, std::string why, MeasuredRun& run) {
  run.refusal = std::move(why);
  return cells.malformed(run.refusal);
}

core::Result<posttrain::Launch> launch_of(const core::CsvCells& cells, MeasuredRun& run) {
  const auto settings = settings_of(cells);
  if (!settings) return settings.error();
  const auto program = program_of(cells, *settings);
  if (!program) {
    return refuse(cells, settings->empty() ? "missing: the settings" : "a program without rules", run).error();
  }
  auto launch = posttrain::read_launch(*program, *settings, run.gpus);
  if (!launch) return cells.malformed(launch.error().message);
  std::vector<std::string> missing;
  for (const posttrain::MissingSetting& each : launch->missing) missing.push_back(each.what);
  if (settings->empty()) missing = {"the settings"};
  if (!missing.empty()) return refuse(cells, "missing: " + joined(missing), run).error();
  if (!launch->unknown.empty()) return refuse(cells, "unknown: " + joined(launch->unknown), run).error();
  if (!launch->not_modelled.empty()) {
    return refuse(cells, "not modelled: " + joined(launch->not_modelled), run).error();
  }
  return launch;
}

/// The text of the model's config.json.
core::Result<std::string> config_of(const core::CsvCells& cells, const std::filesystem::path& folder) {
  std::string name(cells.text("model").substr(0, cells.text("model").find(' ')));
  for (const KnownModel& known : kModels) {
    const std::string_view rest = std::string_view(name).substr(std::min(known.name.size(), name.size()));
    if (name.starts_with(known.name) && (rest.empty() || rest.starts_with('-'))) return std::string(known.config);
  }
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, "--");
  for (const char* where : {"configs", "../configs_new"}) {
    auto text =
        core::read_regular_file((folder / where / (name + ".json")).lexically_normal().string(), kLargestConfig);
    if (text) return text;
  }
  return core::Error{core::ErrorCode::unreadable_file, "no config.json of " + core::quoted(name) + " is there", {}};
}

/// Whether it sees: then how many images a batch brings, and how large they are, no command line says.
bool has_tower(const model::ModelGraph& graph) {
  return std::any_of(graph.layers().begin(), graph.layers().end(),
                     [&](const model::Layer& layer) { return graph.path(layer).find("visual") != std::string::npos; });
}

core::Status take_model(const core::CsvCells& cells, const std::filesystem::path& folder, SummaryShelf& shelf,
                        const posttrain::Launch& launch, MeasuredRun& run) {
  auto text = config_of(cells, folder);
  const std::string name(cells.text("model"));
  core::Result<std::shared_ptr<const model::ModelGraph>> graph = text ? shelf.parse(name, *text) : text.error();
  const bool megatron = launch.request.options.program == posttrain::Program::megatron;
  if (text && megatron) {
    const auto arguments = posttrain::megatron_arguments_of(*text, launch.expert_tensor_parallel);
    graph = arguments
                ? shelf.parse(name + " as Megatron's " + std::to_string(launch.expert_tensor_parallel), *arguments)
                : arguments.error();
  }
  if (!graph) {
    run.refusal = "a model that is not read";
    return graph.error();
  }
  const auto sizes = serve::read_served_model(*text);
  job::JobRequest training = launch.request.training;
  if (launch.buckets_by_width && sizes) posttrain::set_buckets(training.training.layout, sizes->hidden);
  if (has_tower(**graph)) return refuse(cells, "missing: the images of its batches", run);
  auto job = job::job_from(training, *graph);
  if (!job) return cells.malformed(job.error().message);
  run.job = *job;
  run.alloc_conf = launch.request.training.alloc_conf;
  posttrain::PostTrainingJob whole{.policy = *std::move(job), .options = launch.request.options};
  if (posttrain::row_of(whole.options.algorithm).generates) {
    if (sizes) whole.served = std::make_shared<const serve::ServedModel>(*sizes);
  }
  const bool others = !whole.options.reward_model.empty() || !whole.options.teacher_model.empty();
  if (others) return refuse(cells, "missing: the config of a further model", run);
  run.post_training = std::make_shared<const posttrain::PostTrainingJob>(std::move(whole));
  return core::Done{};
}

MeasuredRun run_of(const core::CsvCells& cells, const std::filesystem::path& folder, SummaryShelf& shelf) {
  MeasuredRun run;
  run.line = cells.line();
  run.name = cells.text("name");
  run.gpu = gpu_of(cells.text("gpu"));
  run.source = cells.text("software");
  run.training = cells.text("algorithm");
  core::Status read = take_measurement(cells, run);
  if (read) {
    const auto launch = launch_of(cells, run);
    read = launch ? take_model(cells, folder, shelf, *launch, run) : core::Status(launch.error());
  }
  if (!read) run.error = std::move(read).error();
  if (run.error && run.refusal.empty()) run.refusal = "a row that is malformed";
  return run;
}

/// Tables of supervised training have the same columns (framework_csv.hpp): the algorithms tell.
bool sniff(const core::CsvTable& table) {
  if (!table.has("algorithm") || !table.has("args") || !table.has("measured_mib")) return false;
  return std::any_of(table.rows.begin(), table.rows.end(), [&](const core::CsvRow& row) {
    const std::string_view algorithm = core::CsvCells(table, row).text("algorithm");
    return !algorithm.empty() && algorithm != "sft" && algorithm != "pretrain";
  });
}

core::Result<MeasuredRuns> read(const core::CsvTable& table, const RunsOptions& options) {
  if (const core::Status whole = needs_columns(table, kColumns); !whole) return whole.error();
  SummaryShelf shelf(options);
  const std::filesystem::path folder = std::filesystem::path(table.file).parent_path();
  MeasuredRuns all;
  all.format = post_training_csv().name;
  for (const core::CsvRow& row : table.rows) all.runs.push_back(run_of(core::CsvCells(table, row), folder, shelf));
  return all;
}

}  // namespace post_training_csv_detail
}  // namespace

const RunsFormat& post_training_csv() {
  static constexpr RunsFormat kFormat = {
      "post-training", "runs of DPO, GRPO, PPO and the like, with their command lines (name,model,algorithm,...,args)",
      &post_training_csv_detail::sniff, &post_training_csv_detail::read};
  return kFormat;
}

}  // namespace gpumem::datasets
