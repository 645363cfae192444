#include "gpumem_datasets/runs_tables.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/model/optimizers.hpp"
#include "gpumem_datasets/summary_shelf.hpp"

namespace gpumem::datasets {

namespace {
namespace language_model_csv_detail {

constexpr std::array<std::string_view, 7> kColumns = {"name",       "config", "gpu",         "batch_size",
                                                      "seq_length", "figure", "measured_mib"};

/// A column, and the option of a job that it means.
struct OptionColumn {
  std::string_view column;
  std::string_view option;
  /// Cells that say what a job is without the option; besides the empty one.
  std::array<std::string_view, 2> usual = {};
};

constexpr OptionColumn kOptionColumns[] = {
    {"batch_size", "batch_size"},
    {"seq_length", "seq_length"},
    {"precision", "precision"},
    {"optimizer", "optimizer"},
    {"fused", "fused", {"no", "unknown"}},
    {"lora_rank", "lora"},
    {"lora_targets", "lora_targets"},
    {"quantization", "quantize"},
    {"checkpointing", "checkpointing", {"none"}},
    // Without the option a job takes PyTorch's own choice, which keeps what flash attention keeps.
    {"attention", "attention", {"sdpa", "flash"}},
    {"loss", "loss", {"standard"}},
    {"compile", "compile", {"no"}},
    {"accumulate", "accumulate"},
    {"data_parallel", "data_parallel", {"1"}},
    {"sharding", "sharding", {"none"}},
    {"tensor_parallel", "tensor_parallel", {"1"}},
    {"sequence_parallel", "sequence_parallel", {"no"}},
    {"pipeline_parallel", "pipeline_parallel", {"1"}},
    {"virtual_stages", "virtual_stages", {"1"}},
    {"schedule", "schedule", {"none"}},
    {"pipeline_layers", "pipeline_layers", {"none"}},
    {"first_stage_layers", "first_stage_layers", {"none"}},
    {"last_stage_layers", "last_stage_layers", {"none"}},
    {"optimizer_in_backward", "optimizer_in_backward", {"no"}},
    {"context_parallel", "context_parallel", {"1"}},
    {"expert_parallel", "expert_parallel", {"1"}},
    {"offload", "offload", {"none"}},
    {"rank", "rank", {"0", "max"}},  // of one rank, or of many that are alike
};

/// A GPU without a profile, and one with the same chip and kernels.
constexpr std::pair<std::string_view, std::string_view> kLikeGpus[] = {{"gb200", "b200-180gb"}};

/// A cell's word, or the beginning of one that ends in '-' or ':', and the option's word for the same.
struct OptionWord {
  std::string_view column;
  std::string_view cell;
  std::string_view word;
};

constexpr OptionWord kOptionWords[] = {
    {"checkpointing", "full-block:", "full:"},
    {"checkpointing", "every-", "every:"},
    {"attention", "unfused", "eager"},
};

/// An option that a source implies, with where that is to be seen.
struct SourceOption {
  std::string_view source;
  std::string_view option;
  std::string_view value;
};

constexpr SourceOption kSourceOptions[] = {
    // SFTTrainer, which is HuggingFace's Trainer.
    {"foundation-model-stack/fms-acceleration", "loop", "hf-trainer"},
    // The guide's runs: Trainer, and transformers' own AdamW, which goes tensor by tensor.
    {"huggingface/transformers", "loop", "hf-trainer"},
    {"huggingface/transformers", "foreach", "false"},
    // litgpt/finetune/lora.py: fit() binds `logits` and `loss` until the next micro-batch binds them again.
    {"Lightning-AI/litgpt", "loop", "litgpt"},
    {"Lightning-AI/litgpt", "lora_dropout", "0.05"},  // of the script and of the hub's files
    // train.py of fsdp_qlora binds `output` and `loss` likewise.
    {"AnswerDotAI/fsdp_qlora", "loop", "script"},
    {"pytorch/torchtune", "loop", "torchtune"},
    {"NVIDIA/Megatron-LM", "loop", "megatron"},
    {"MooreThreads/SimuMax", "loop", "megatron"},
};

/// What a row says about its job that gpumem does not model.
struct NotModelled {
  std::string kinds;   ///< for counting: "lora, loss fused-ce"
  std::string values;  ///< for people: "lora 16, loss fused-ce"

  void add(std::string_view kind, std::string_view value) {
    const char* const separator = kinds.empty() ? "" : ", ";
    kinds.append(separator).append(kind);
    values.append(separator).append(value);
  }
};

std::string option_word(std::string_view column, std::string_view cell) {
  for (const OptionWord& row : kOptionWords) {
    if (row.column != column || !cell.starts_with(row.cell)) continue;
    return std::string(row.word) + std::string(cell.substr(row.cell.size()));
  }
  return std::string(cell);
}

/// The word for an option that is on or off: "full" of checkpointing is on.
std::string flag_word(std::string_view word) {
  if (word == "yes" || word == "full") return "true";
  return word == "no" || word == "none" ? "false" : std::string(word);
}

bool is_usual(const OptionColumn& row, std::string_view cell) {
  return cell.empty() || std::find(row.usual.begin(), row.usual.end(), cell) != row.usual.end();
}

/// Whether "fused" says nothing more of this optimizer: one of few bits is a kernel of its own, and has no other form;
/// of Megatron's Muon, which works matrix by matrix, it is the Adam of the other parameters that is fused.
bool is_fused_anyway(std::string_view optimizer) {
  const auto known = model::value_of(model::kOptimizers, optimizer);
  return known && !model::row_of(*known).has_fused;
}

/// Takes one cell by its option. Errors: malformed_input for what is no number.
core::Status take_option(const core::CsvCells& cells, const OptionColumn& row, job::JobRequest& request,
                         NotModelled& missing) {
  const std::string_view cell = cells.text(row.column);
  if (is_usual(row, cell)) return core::Done{};
  if (row.column == "fused" && is_fused_anyway(cells.text("optimizer"))) return core::Done{};
  const std::string shown = std::string(row.option) + " " + core::shortened(cell, 60);
  const job::JobOption* const option = job::find_option(row.option);
  if (option == nullptr) {
    missing.add(row.option, shown);
    return core::Done{};
  }
  std::string word = option_word(row.column, cell);
  if (option->place.type == job::OptionType::flag) word = flag_word(word);
  core::Status taken = job::set_option_text(*option, request, word);
  if (taken) return taken;
  if (option->place.type == job::OptionType::whole_number) {
    return cells.malformed(std::string(row.column) + " " + taken.error().message);
  }
  missing.add(shown, shown);
  return core::Done{};
}

/// The part of `source` before ':' or '@'.
std::string_view source_of(const core::CsvCells& cells) {
  const std::string_view text = cells.text("source");
  return text.substr(0, text.find_first_of(":@"));
}

/// What the source implies, where there is such an option.
void take_source_options(std::string_view source, job::JobRequest& request) {
  for (const SourceOption& row : kSourceOptions) {
    const job::JobOption* const option = job::find_option(row.option);
    const bool of_none = row.option.starts_with("lora") && !request.training.lora;
    if (row.source == source && option != nullptr && !of_none) (void)job::set_option_text(*option, request, row.value);
  }
}

/// The rows of a table for which a clause tells an option.
enum class Where : std::uint8_t { any, adapters, one_gpu, adapters_on_one_gpu };

bool holds(Where where, bool adapts, bool one_gpu) {
  const bool of_adapters = where == Where::adapters || where == Where::adapters_on_one_gpu;
  const bool on_one_gpu = where == Where::one_gpu || where == Where::adapters_on_one_gpu;
  return (adapts || !of_adapters) && (one_gpu || !on_one_gpu);
}

/// An option that a clause of a row's notes tells.
struct ToldOption {
  std::string_view column;
  std::string_view clause;
  std::string_view option;
  std::string_view value;
  Where where = Where::any;
};

constexpr ToldOption kToldOptions[] = {
    {"notes", "adapters=fp32", "lora_dtype", "fp32", Where::adapters},
    {"notes", "adapters=bf16", "lora_dtype", "bf16", Where::adapters},
    {"notes", "alpha 16, dropout 0.1", "lora_dropout", "0.1", Where::adapters},
    // SFTTrainer with bf16: the base as it was loaded, in bfloat16, under autocast, which accelerate puts around
    // forward() under FSDP, too (accelerate 1.0, accelerator.py: prepare_model).
    {"notes", "bf16 autocast on", "precision", "amp-bf16", Where::adapters},
    {"notes", "bf16 autocast on", "base_dtype", "bf16", Where::adapters},
    {"notes", "norms, embeddings and lm_head are cast to float32", "base_dtype", "fp32", Where::adapters_on_one_gpu},
    // prepare_model_for_kbit_training() casts what is not quantised to float32; computing stays in bfloat16.
    {"notes", "norms, embeddings and lm_head are cast to float32", "precision", "amp-bf16", Where::one_gpu},
    // torchtune's recipes: optimizer_in_bwd=True.
    {"notes", "optimizer_in_bwd", "optimizer_in_backward", "true"},
    {"notes", "optimizer in backward", "optimizer_in_backward", "true"},
    {"software", "transformers 4.45", "transformers", "4.45"},
    {"notes", "the first iteration holds the longest", "batch_lengths", "longest-first"},
    {"software", "CUDA 11.2", "software", "cuda-11.2"},
    {"software", "flash-attn", "attention", "flash"},
    {"notes", "reshard_after_forward=always", "reshard_after_forward", "always"},
    {"notes", "reshard_after_forward=never", "reshard_after_forward", "never"},
    {"notes", "fp8 all-gather", "quantize", "float8-gather"},
    // Megatron's --fp16: float16 weights with float32 masters.
    {"notes", "fp16 weights", "precision", "fp16-mixed"},
};

void take_told_options(const core::CsvCells& cells, bool one_gpu, job::JobRequest& request) {
  const bool adapts = !cells.text("lora_rank").empty();
  for (const ToldOption& row : kToldOptions) {
    const bool told = cells.text(row.column).find(row.clause) != std::string_view::npos;
    const job::JobOption* const option = job::find_option(row.option);
    if (!told || option == nullptr || !holds(row.where, adapts, one_gpu)) continue;
    (void)job::set_option_text(*option, request, row.value);
  }
}

/// The first date that the text has, "2025-10" of "torch nightly 2025-10"; empty: it has none.
std::string_view date_of(std::string_view software) {
  constexpr std::string_view kForm = "2025-10-31";
  constexpr std::size_t kYear = 4;
  for (std::size_t at = software.find("20"); at != std::string_view::npos; at = software.find("20", at + 1)) {
    const std::string_view date = software.substr(at, kForm.size());
    if (date.size() > kYear && date[kYear] == '-') return date;
  }
  return {};
}

/// torchtitan's train.py at that date, or at an unknown one of 2025. It frees the logits before backward, as torchtune
/// does, since June 12, 2024 (commit e29b6b4d4); since July 2025 it shards the embedding apart, and norm and head
/// (commit 83e694105).
model::Loop torchtitans_loop(std::string_view date) {
  if (!date.empty() && date < "2024-06-12") return model::Loop::script;
  return date >= "2025-08" ? model::Loop::torchtitan : model::Loop::torchtune;
}

/// What torchtitan's launcher and trainer do, of rows that torchao tells too. run_train.sh asks for expandable segments
/// since October 2024 (commit a5e57e4a9). Where the model is compiled, so is the loss since April 2025
/// (components/loss.py, commit bbb1b616e), by which time its AdamW was fused; aot_eager fuses nothing. The runs on H200
/// have a command of their own (benchmarks/llama3-8b_h200_202506_trainy-whitefiber.md): torchrun, and weights gathered
/// in eight bits.
void take_torchtitan(std::string_view source, const core::CsvCells& cells, job::JobRequest& request) {
  const auto says = [&](std::string_view column, std::string_view clause) {
    return cells.text(column).find(clause) != std::string_view::npos;
  };
  const bool titan = source == "pytorch/torchtitan" || (source == "pytorch/ao" && says("software", "torchtitan"));
  if (!titan) return;
  const bool by_torchrun = says("source", "llama3-8b_h200_202506");
  if (!by_torchrun && !says("software", "2024-06")) request.alloc_conf = "expandable_segments:True";
  model::TrainingJob& job = request.training;
  job.loop = torchtitans_loop(date_of(cells.text("software")));
  if (by_torchrun && job.quantize == model::Quantization::float8) job.quantize = model::Quantization::float8_gather;
  const bool fuses = job.compile && job.fused && !says("notes", "aot_eager");
  if (fuses && job.loss_form == model::LossForm()) job.loss_form = {model::LossForms::compiled, 0};
}

/// Before PyTorch 2.0, zero_grad() filled the gradients with zeros and left them standing.
void take_older_pytorch(const core::CsvCells& cells, job::JobRequest& request) {
  if (cells.text("software").starts_with("transformers of 2022")) {
    request.training.zero_grad = model::ZeroGrad::in_place;
  }
}

/// "full", "LoRA", "QLoRA" (a base in nf4) or "LoRA on gptq-4bit".
std::string trained_part(const core::CsvCells& cells) {
  const std::string_view quantization = cells.text("quantization");
  if (cells.text("lora_rank").empty()) {
    return quantization.empty() ? "full" : "full, " + std::string(quantization);
  }
  if (quantization.empty()) return "LoRA";
  return quantization.starts_with("nf4") ? "QLoRA" : "LoRA on " + std::string(quantization);
}

/// What learns, and whether it was compiled.
std::string training_of(const core::CsvCells& cells) {
  return trained_part(cells) + (cells.text("compile") == "yes" ? ", compiled" : "");
}

core::Status take_measurement(const core::CsvCells& cells, MeasuredRun& run) {
  const auto gpus = cells.whole("gpus");
  if (!gpus) return gpus.error();
  run.gpus = gpus->value_or(1);
  if (run.gpus < 1) return cells.malformed("gpus is " + std::to_string(run.gpus) + "; it must be at least 1");
  const auto measured = cells.number("measured_mib");
  if (!measured) return measured.error();
  run.measured_mib = *measured;
  const auto figure = model::value_of(kFigures, cells.text("figure"));
  if (!figure) {
    return cells.malformed("figure is " + core::quoted(cells.text("figure")) +
                           "; it must be allocated, reserved, active or device");
  }
  run.figure = *figure;
  return core::Done{};
}

core::Status take_job(const core::CsvCells& cells, MeasuredRun& run, job::JobRequest& request) {
  NotModelled missing;
  for (const OptionColumn& row : kOptionColumns) {
    if (core::Status taken = take_option(cells, row, request, missing); !taken) return taken;
  }
  take_source_options(run.source, request);
  take_told_options(cells, run.gpus == 1, request);
  take_torchtitan(run.source, cells, request);
  take_older_pytorch(cells, request);
  if (missing.kinds.empty()) return core::Done{};
  run.refusal = "not modelled: " + missing.kinds;
  return cells.malformed("not modelled: " + missing.values);
}

core::Status take_model(const core::CsvCells& cells, const std::filesystem::path& folder, SummaryShelf& shelf,
                        const job::JobRequest& request, MeasuredRun& run) {
  if (cells.text("config").empty()) return cells.malformed("names no config");
  auto graph = shelf.take((folder / "configs" / cells.text("config")).lexically_normal().string());
  if (!graph) {
    run.refusal = "a model that is not read";
    return graph.error();
  }
  auto job = job::job_from(request, *std::move(graph));
  if (!job) return cells.malformed(job.error().message);
  run.job = *std::move(job);
  run.alloc_conf = request.alloc_conf;
  return core::Done{};
}

MeasuredRun run_of(const core::CsvCells& cells, const std::filesystem::path& folder, SummaryShelf& shelf) {
  MeasuredRun run;
  run.line = cells.line();
  run.name = cells.text(cells.text("name").empty() ? "config" : "name");
  run.gpu = cells.text("gpu");
  for (const auto& [name, like] : kLikeGpus) {
    if (run.gpu == name) run.gpu = like;
  }
  run.source = source_of(cells);
  run.training = training_of(cells);
  job::JobRequest request;
  core::Status read = take_measurement(cells, run);
  if (read) read = take_job(cells, run, request);
  if (read) read = take_model(cells, folder, shelf, request, run);
  if (!read) run.error = std::move(read).error();
  if (run.error && run.refusal.empty()) run.refusal = "a row that is malformed";
  return run;
}

bool sniff(const core::CsvTable& table) {
  return table.has("config") && table.has("figure") && table.has("measured_mib");
}

core::Result<MeasuredRuns> read(const core::CsvTable& table, const RunsOptions& options) {
  if (const core::Status whole = needs_columns(table, kColumns); !whole) return whole.error();
  SummaryShelf shelf(options);
  const std::filesystem::path folder = std::filesystem::path(table.file).parent_path();
  MeasuredRuns all;
  all.format = language_model_csv().name;
  for (const core::CsvRow& row : table.rows) all.runs.push_back(run_of(core::CsvCells(table, row), folder, shelf));
  return all;
}

}  // namespace language_model_csv_detail
}  // namespace

const RunsFormat& language_model_csv() {
  static constexpr RunsFormat kFormat = {
      "language-models", "runs of language models, with their configs in configs/ (name,config,...,figure)",
      &language_model_csv_detail::sniff, &language_model_csv_detail::read};
  return kFormat;
}

}  // namespace gpumem::datasets
