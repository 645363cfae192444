#include "gpumem_datasets/peft_csv.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "gpumem/adapt/peft_config.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem_datasets/summary_shelf.hpp"

namespace gpumem::datasets {

namespace {
namespace peft_csv_detail {

constexpr std::array<std::string_view, 8> kColumns = {"name",          "method", "model",        "base_dtype",
                                                      "adapter_dtype", "batch",  "adapter_file", "reserved_p99_bytes"};

/// The length of the batch that the 99th percentile comes from. Each bucket of 80 samples is sorted by length, and the
/// cache is emptied ten steps later, so the figure is about the fifth longest of 250 leading batches; samples have at
/// most 768 tokens. LoRA's published figure (rank 32, queries and values) is met at this length.
constexpr std::int64_t kTokens = 545;
constexpr std::size_t kLargestAdapter = std::size_t{1} << 20;
constexpr double kMib = 1024.0 * 1024.0;

/// A model's published sizes.
struct KnownModel {
  std::string_view name;
  std::string_view config;
};
constexpr KnownModel kModels[] = {
    {"meta-llama/Llama-3.2-3B",
     R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 3072, "intermediate_size": 8192,
         "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128,
         "vocab_size": 128256, "tie_word_embeddings": true, "max_position_embeddings": 131072, "hidden_act": "silu",
         "rms_norm_eps": 1e-05, "attention_bias": false, "mlp_bias": false})"}};

std::string word_of(const core::JsonValue& value) {
  using Kind = core::JsonValue::Kind;
  switch (value.kind()) {
    case Kind::boolean: return value.boolean() ? "true" : "false";
    case Kind::integer: return std::to_string(value.integer());
    case Kind::real: return std::to_string(value.real());
    case Kind::text: return std::string(value.text());
    case Kind::list: {
      std::string text;
      for (const core::JsonValue& item : value.items()) text += (text.empty() ? "" : "+") + word_of(item);
      return text;
    }
    case Kind::null:
    case Kind::beyond_int64:
    case Kind::object: break;
  }
  return {};
}

/// The fields of "resolved", or of "experiment_file", or of the file itself.
core::Result<std::vector<adapt::PeftSetting>> settings_of(const std::string& path) {
  using Kind = core::JsonValue::Kind;
  const auto text = core::read_regular_file(path, kLargestAdapter);
  if (!text) return text.error();
  const auto document = core::JsonDocument::parse(*text);
  if (!document) return core::Error(document.error()).in_file(path);
  const core::JsonValue* config = &document->root();
  const auto inside = [&](std::string_view key) {
    for (const core::JsonValue& field : document->root().items()) {
      if (field.key() == key && field.is(Kind::object)) config = &field;
    }
  };
  if (config->is(Kind::object)) {
    inside("experiment_file");
    inside("resolved");
  }
  std::vector<adapt::PeftSetting> settings;
  if (!config->is(Kind::object)) return settings;
  for (const core::JsonValue& field : config->items()) {
    const std::string key(field.key());
    if (!field.is(Kind::object)) {
      if (!field.is(Kind::null)) settings.push_back({key, word_of(field)});
      continue;
    }
    for (const core::JsonValue& inner : field.items()) {
      settings.push_back({key + "." + std::string(inner.key()), word_of(inner)});
    }
  }
  return settings;
}

core::Status set(job::JobRequest& request, std::string_view name, const std::string& word) {
  const job::JobOption* const option = job::find_option(name);
  if (option == nullptr) return core::Done{};
  return job::set_option_text(*option, request, word);
}

/// What every run of the comparison has. Source: method_comparison/MetaMathQA/run.py and utils.py: outputs keep their
/// names, zero_grad() before forward, batches padded to their longest sample.
core::Status take_loop(const core::CsvCells& cells, job::JobRequest& request) {
  const auto batch = cells.whole("batch");
  if (!batch) return batch.error();
  request.training.batch_size = batch->value_or(0);
  request.training.sequence_length = kTokens;
  request.training.precision = cells.text("base_dtype") == "float32" ? model::Precision::fp32 : model::Precision::bf16;
  request.training.optimizer = model::Optimizer::adamw;
  request.training.transformers = model::Transformers::v4_51;
  request.training.padding = true;
  request.training.activation_checkpointing = cells.text("checkpointing") == "True";
  const bool whole = cells.text("adapter_dtype").starts_with("float32");
  request.training.lora_dtype = whole ? model::AdapterType::fp32 : model::AdapterType::bf16;
  return core::Done{};
}

core::Status take_adapter(const core::CsvCells& cells, const std::filesystem::path& folder, job::JobRequest& request,
                          MeasuredRun& run) {
  if (cells.text("method") == "FULL") {
    request.training.lora_dtype = model::AdapterType::fp32;
    return core::Done{};
  }
  const std::string file = (folder / cells.text("adapter_file")).lexically_normal().string();
  if (core::Status taken = take_adapter_file(file, cells, request, run); !taken) return taken;
  if (cells.text("optimizer") == "lora-fa") return set(request, "peft", "lora-fa");
  return core::Done{};
}

core::Status take_model(const core::CsvCells& cells, const std::filesystem::path& folder, SummaryShelf& shelf,
                        const job::JobRequest& request, MeasuredRun& run) {
  auto graph = shelf.take_model(cells.text("model"), folder);
  for (const KnownModel& known : kModels) {
    if (graph || known.name != cells.text("model")) continue;
    graph = shelf.parse(std::string(known.name), known.config);
  }
  if (!graph) {
    run.refusal = "a model that is not read";
    return graph.error();
  }
  auto job = job::job_from(request, *std::move(graph));
  if (!job) return cells.malformed(job.error().message);
  run.job = *std::move(job);
  return core::Done{};
}

core::Status take_measurement(const core::CsvCells& cells, MeasuredRun& run) {
  const auto bytes = cells.number("reserved_p99_bytes");
  if (!bytes) return bytes.error();
  if (*bytes) run.measured_mib = **bytes / kMib;
  run.figure = Figure::reserved;
  return core::Done{};
}

MeasuredRun run_of(const core::CsvCells& cells, const std::filesystem::path& folder, SummaryShelf& shelf) {
  MeasuredRun run;
  run.line = cells.line();
  run.name = cells.text("name");
  run.gpu = cells.text("gpu").find("L40S") != std::string_view::npos ? "l40s-48gb" : std::string(cells.text("gpu"));
  run.source = "huggingface/peft";
  run.training = cells.text("method");
  job::JobRequest request;
  core::Status read = take_measurement(cells, run);
  if (read) read = take_loop(cells, request);
  if (read && cells.text("task") == "image-gen") {
    run.refusal = "a model that is not read";
    read = cells.malformed("an image model (" + std::string(cells.text("model")) + ") is not modelled");
  }
  if (read) read = take_adapter(cells, folder, request, run);
  if (read) read = take_model(cells, folder, shelf, request, run);
  if (!read) run.error = std::move(read).error();
  if (run.error && run.refusal.empty()) run.refusal = "a row that is malformed";
  return run;
}

bool sniff(const core::CsvTable& table) { return table.has("adapter_file") && table.has("reserved_p99_bytes"); }

core::Result<MeasuredRuns> read(const core::CsvTable& table, const RunsOptions& options) {
  if (const core::Status whole = needs_columns(table, kColumns); !whole) return whole.error();
  SummaryShelf shelf(options);
  const std::filesystem::path folder = std::filesystem::path(table.file).parent_path();
  MeasuredRuns all;
  all.format = peft_csv().name;
  for (const core::CsvRow& row : table.rows) {
    all.runs.push_back(run_of(core::CsvCells(table, row), folder, shelf));
  }
  return all;
}

}  // namespace peft_csv_detail
}  // namespace

core::Status take_adapter_file(const std::string& file, const core::CsvCells& cells, job::JobRequest& request,
                               MeasuredRun& run) {
  const auto settings = peft_csv_detail::settings_of(file);
  if (!settings) return settings.error();
  const std::optional<adapt::PeftConfig> config = adapt::peft_config(*settings);
  if (!config) return cells.malformed("its adapter's file has no peft_type");
  std::string missing;
  for (const std::string& text : config->not_modelled) missing += (missing.empty() ? "" : ", ") + text;
  for (const std::string& key : config->unknown) missing += (missing.empty() ? "" : ", ") + key;
  if (!missing.empty()) {
    run.refusal = "not modelled: " + missing;
    return cells.malformed(run.refusal);
  }
  for (const adapt::PeftOption& option : config->options) {
    core::Status taken = peft_csv_detail::set(request, option.option, option.value);
    if (!taken) return cells.malformed(option.key + " " + taken.error().message);
  }
  return core::Done{};
}

const RunsFormat& peft_csv() {
  static constexpr RunsFormat kFormat = {
      "peft", "PEFT's comparison of its methods, with adapter_config.json files (name,method,...,adapter_file,...)",
      &peft_csv_detail::sniff, &peft_csv_detail::read};
  return kFormat;
}

}  // namespace gpumem::datasets
