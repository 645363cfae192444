#include "gpumem_datasets/runs_tables.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem_datasets/adapter_file.hpp"
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
         "rms_norm_eps": 1e-05, "attention_bias": false, "mlp_bias": false})"},
    {"black-forest-labs/FLUX.2-klein-base-4B",
     R"({"_class_name": "Flux2Transformer2DModel", "patch_size": 1, "in_channels": 128, "num_layers": 5,
         "num_single_layers": 20, "attention_head_dim": 128, "num_attention_heads": 24, "joint_attention_dim": 7680,
         "timestep_guidance_channels": 256, "mlp_ratio": 3.0, "axes_dims_rope": [32, 32, 32, 32], "rope_theta": 2000,
         "eps": 1e-06, "guidance_embeds": false})"}};

/// What the image script keeps on the GPU beside the denoiser: DINOv2-base in float32 (86,580,480 parameters), and of
/// its 14 prompts the embeddings (512 x 7680 in bf16), the latents (128 x 32 x 32 in bf16) and the ids (512 x 4).
constexpr std::int64_t kImageResidentMib = 439;
/// max_sequence_length of its prompts.
constexpr std::int64_t kImageTextTokens = 512;

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

bool makes_images(const core::CsvCells& cells) { return cells.text("task") == "image-gen"; }

/// What every run of the comparison of images has. Source: method_comparison/image-gen/run.py: squares, latents and
/// embeddings precomputed, text encoder and VAE on the CPU, zero_grad() before forward, no autocast.
core::Status take_image_loop(const core::CsvCells& cells, job::JobRequest& request) {
  const auto batch = cells.whole("batch");
  if (!batch) return batch.error();
  const auto side = cells.whole("max_seq_or_resolution");
  if (!side) return side.error();
  request.training.batch_size = batch->value_or(0);
  request.training.image = {side->value_or(0), side->value_or(0)};
  request.training.sequence_length = kImageTextTokens;
  request.training.resident = kImageResidentMib;
  request.training.zero_grad = model::ZeroGrad::before_forward;
  const bool whole = cells.text("adapter_dtype").starts_with("float32");
  request.training.lora_dtype = whole ? model::AdapterType::fp32 : model::AdapterType::bf16;
  for (const auto& [name, word] :
       {std::pair{"precision", "bf16"}, std::pair{"optimizer", "adamw"}, std::pair{"loop", "script"},
        std::pair{"base_dtype", "bf16"},
        std::pair{"checkpointing", cells.text("checkpointing") == "True" ? "full" : "none"}}) {
    if (core::Status taken = set(request, name, word); !taken) return taken;
  }
  return core::Done{};
}

core::Status take_adapter(const core::CsvCells& cells, const std::filesystem::path& folder, job::JobRequest& request,
                          MeasuredRun& run) {
  if (cells.text("method") == "FULL") {
    request.training.lora_dtype = model::AdapterType::fp32;
    request.training.base_dtype = model::BaseType::precision;
    return core::Done{};
  }
  const std::string file = (folder / cells.text("adapter_file")).lexically_normal().string();
  const auto take = makes_images(cells) ? &take_moved_adapter_file : &take_adapter_file;
  if (core::Status taken = take(file, cells, request, run); !taken) return taken;
  if (cells.text("optimizer") == "lora-fa") return set(request, "peft", "lora-fa");
  // Its script makes the adapter on the GPU and moves no model later, as the one of images does.
  if (request.training.peft == model::PeftMethod::frod && !makes_images(cells)) {
    std::string& options = request.training.peft_options;
    options += options.empty() ? "projections_on_cpu=true" : ",projections_on_cpu=true";
  }
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
  if (read) read = makes_images(cells) ? take_image_loop(cells, request) : take_loop(cells, request);
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

const RunsFormat& peft_csv() {
  static constexpr RunsFormat kFormat = {
      "peft", "PEFT's comparison of its methods, with adapter_config.json files (name,method,...,adapter_file,...)",
      &peft_csv_detail::sniff, &peft_csv_detail::read};
  return kFormat;
}

}  // namespace gpumem::datasets
