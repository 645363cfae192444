#include "gpumem_datasets/runs_tables.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <utility>

#include "gpumem/core/csv.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem_datasets/summary_shelf.hpp"

namespace gpumem::datasets {

namespace {
namespace framework_csv_detail {

constexpr std::array<std::string_view, 8> kColumns = {"name", "model",  "method",       "gpus",
                                                      "gpu",  "figure", "measured_mib", "args"};

/// A part of what the table calls a GPU, and the profile; the first that fits counts. Where only its class is told, or
/// nothing is, the figure hardly depends on the GPU: allocated and reserved memory by its libraries' workspaces.
constexpr std::pair<std::string_view, std::string_view> kGpus[] = {{"A100-SXM4-40GB", "a100-40gb"},
                                                                   {"80 GB class", "a100-80gb"},
                                                                   {"A100", "a100-80gb"},
                                                                   {"H100", "h100-80gb"},
                                                                   {"H200", "h200-141gb"},
                                                                   {"B200", "b200-180gb"},
                                                                   {"L40S", "l40s-48gb"},
                                                                   {"A40", "a40-48gb"},
                                                                   {"NVIDIA L4", "l4-24gb"},
                                                                   {"T4", "t4-16gb"},
                                                                   {"A10", "a10-24gb"},
                                                                   {"4090", "rtx4090-24gb"},
                                                                   {"3090", "rtx3090-24gb"},
                                                                   {"not stated", "a100-80gb"}};

/// How the table's words for a figure begin. People who write down one of two figures see what the program logs, which
/// is reserved memory.
constexpr std::pair<std::string_view, Figure> kFigureWords[] = {
    {"device or reserved", Figure::reserved},    {"device", Figure::device},       {"reserved", Figure::reserved},
    {"allocated or reserved", Figure::reserved}, {"allocated", Figure::allocated}, {"peak VRAM", Figure::device}};

using Settings = std::map<std::string, std::string, std::less<>>;

/// The settings of one level, numbers and switches as words; empty: this is no JSON object.
Settings settings_of(std::string_view text) {
  using Kind = core::JsonValue::Kind;
  Settings settings;
  const auto document = core::JsonDocument::parse(text);
  if (!document || !document->root().is(Kind::object)) return settings;
  for (const core::JsonValue& field : document->root().items()) {
    std::string word;
    if (field.is(Kind::text)) word = field.text();
    else if (field.is(Kind::boolean)) word = field.boolean() ? "true" : "false";
    else if (field.is(Kind::integer)) word = std::to_string(field.integer());
    settings.emplace(field.key(), std::move(word));
  }
  return settings;
}

std::string word_of(const Settings& settings, std::string_view key) {
  const auto found = settings.find(key);
  return found == settings.end() ? std::string() : found->second;
}

/// `name`: of what it is, where many rows lack the same of different things.
core::Error missing(const core::CsvCells& cells, MeasuredRun& run, std::string what, const std::string& name = {}) {
  run.refusal = "missing: " + what;
  if (!name.empty()) what += " (" + name + ")";
  return {core::ErrorCode::missing_information, "its settings lack " + std::move(what),
          core::Place{std::string(cells.file()), cells.line(), {}}};
}

core::Error not_modelled(const core::CsvCells& cells, MeasuredRun& run, const std::vector<std::string>& clauses) {
  std::string text;
  for (const std::string& clause : clauses) text += (text.empty() ? "" : "; ") + clause;
  // "experts_impl grouped_mm is not modelled": by the setting alone many rows are alike.
  run.refusal = "not modelled: " + clauses.front().substr(0, clauses.front().find(' '));
  return cells.malformed(text);
}

/// "['q_proj','v_proj',]" as "q_proj+v_proj".
std::string joined_names(std::string_view list) {
  std::string names;
  std::string name;
  for (const char letter : list) {
    const bool of_name = std::string_view("[]'\", ").find(letter) == std::string_view::npos;
    if (of_name) {
      name += letter;
    } else if (!name.empty()) {
      names += (names.empty() ? "" : "+") + std::exchange(name, {});
    }
  }
  return names;
}

/// False: the option takes no such word.
bool set(job::JobRequest& request, std::string_view option, const std::string& word) {
  const job::JobOption* const found = job::find_option(option);
  return found != nullptr && (word.empty() || job::set_option_text(*found, request, word).has_value());
}

/// A setting as a notebook spells it; what it does not mean is named among what is not modelled.
void take_setting(const Settings& settings, std::string_view name, std::string_view option, ToldJob& told) {
  const std::string word = word_of(settings, name);
  if (!set(told.request, option, word)) told.not_modelled.push_back(std::string(name) + " " + word);
}

/// Optimizers by their names in transformers.
void take_optimizer(const std::string& word, ToldJob& told) {
  constexpr std::array<std::array<std::string_view, 2>, 6> kNames = {{{"adamw_8bit", "adamw-8bit"},
                                                                      {"paged_adamw_8bit", "paged-adamw-8bit"},
                                                                      {"adamw_bnb_8bit", "adamw-8bit"},
                                                                      {"adamw_torch", "adamw"},
                                                                      {"adamw_torch_fused", "adamw"},
                                                                      {"", "adamw"}}};
  const auto* const known = std::find_if(kNames.begin(), kNames.end(), [&](const auto& row) { return row[0] == word; });
  if (known == kNames.end()) return told.not_modelled.push_back("optim " + word);
  set(told.request, "optimizer", std::string((*known)[1]));
  if (word == "adamw_torch_fused") set(told.request, "fused", "true");
}

/// Whether the software is an Unsloth of before this month ("unsloth 2024.11.9"), or does not say its month.
bool is_unsloth_before(std::string_view software, std::int64_t year, std::int64_t month) {
  constexpr std::string_view kName = "unsloth ";
  if (!software.starts_with(kName)) return true;
  software.remove_prefix(kName.size());
  const std::size_t dot = std::min(software.find('.'), software.size() - 1);
  const std::string_view behind = software.substr(dot + 1);
  const auto its_year = core::parse_whole(software.substr(0, dot));
  const auto its_month = core::parse_whole(behind.substr(0, behind.find('.')));
  return !its_year || !its_month || std::pair(*its_year, *its_month) < std::pair(year, month);
}

/// What Unsloth's models do. Source: unsloth 2025.8, models/llama.py (weights in bfloat16, on a GPU without it in
/// float16; 4-bit weights are nf4 with double quantisation; adapters in float32), kernels/cross_entropy_loss.py and
/// unsloth_zoo's fused_losses (no float32 copy of the logits), gradient_checkpointing.py ("unsloth": inputs of blocks
/// go to the host).
void take_unsloth(const Settings& settings, std::string_view software, bool has_bf16, ToldJob& told) {
  job::JobRequest& request = told.request;
  const std::string type = has_bf16 ? "bf16" : "fp16";
  set(request, "precision", "amp-" + type);
  if (request.training.lora) set(request, "base_dtype", type);
  // Before 2024.11 the logits were made, and their gradient written over them.
  set(request, "loss", is_unsloth_before(software, 2024, 11) ? "fused-ce" : "fused");
  const bool quantized = word_of(settings, "load4") == "True" || told.model.ends_with("bnb-4bit");
  const auto held = posttrain::four_bits_of_unsloth(told.model, is_unsloth_before(software, 2024, 12));
  if (quantized) set(request, "quantize", std::string(model::name_of(model::kQuantizations, held)));
  if (word_of(settings, "load8") == "True") set(request, "quantize", "int8");
  if (word_of(settings, "gc").find("unsloth") != std::string::npos) set(request, "offload", "checkpoints");
}

/// A notebook of Unsloth or TRL: the table has the values that its cells pass.
ToldJob told_by_notebook(const Settings& settings, const core::CsvCells& cells, bool has_bf16) {
  ToldJob told;
  told.program = cells.text("software").starts_with("unsloth") ? "unsloth" : "trl";
  told.model = word_of(settings, "model");
  job::JobRequest& request = told.request;
  set(request, "loop", "hf-trainer");
  // Unsloth's models call attention in their own way, whatever the release; others as the release that is printed.
  const auto release = model::transformers_of_version(word_of(settings, "tf"));
  const bool printed = told.program == "trl" && release;
  set(request, "transformers", printed ? std::string(model::name_of(model::kTransformers, *release)) : "4.51");
  // Of models that see, the trainer's configuration says it (TRL's SFTConfig, max_length).
  take_setting(settings, word_of(settings, "max_seq").empty() ? "max_length" : "max_seq", "seq_length", told);
  take_setting(settings, "batch", "batch_size", told);
  take_setting(settings, "accum", "accumulate", told);
  take_optimizer(word_of(settings, "optim"), told);
  set(request, "weight_decay", "true");
  if (word_of(settings, "fullft") != "True") {
    set(request, "lora", word_of(settings, "r"));
    const std::string names = joined_names(word_of(settings, "targets"));
    const bool whole = word_of(settings, "fv") != "False";
    set(request, "lora_targets",
        !names.empty() ? names
        : whole        ? "all-linear"
                       : "all-linear+not:model.visual+not:model.vision_tower+not:model.multi_modal_projector");
  }
  if (word_of(settings, "gc") != "False") set(request, "checkpointing", "full");
  if (told.program == "unsloth") take_unsloth(settings, cells.text("software"), has_bf16, told);
  else set(request, "precision", has_bf16 ? "amp-bf16" : "amp-fp16");
  told.shorter = word_of(settings, "packing") != "True";
  if (word_of(settings, "trainer").empty()) told.not_modelled.emplace_back("trainer of embeddings is not modelled");
  return told;
}

core::Result<ToldJob> told_by(const core::CsvCells& cells, const RunsOptions& options, MeasuredRun& run) {
  const std::string_view args = cells.text("args");
  const Settings settings = settings_of(args);
  if (settings.empty()) return missing(cells, run, "the program's arguments");
  if (settings.contains("peak") && settings.contains("start")) {
    return told_by_notebook(settings, cells, run.gpu != "t4-16gb");
  }
  if (!options.read_settings) return missing(cells, run, "a reader of trainers' files");
  auto told = options.read_settings(args, run.gpus);
  if (!told && told.error().code == core::ErrorCode::unknown_format) {
    return missing(cells, run, "keys of a program that is known");
  }
  const bool started = settings.contains("command");
  if (!told && started) return missing(cells, run, "what its recipe sets", told.error().message);
  if (!told) return cells.malformed(told.error().message);
  return told;
}

/// Half of what `digits` names: "1 GiB", "about 0.1 GiB".
double rounding_of(std::string_view digits) {
  constexpr double kMibOfGib = 1024.0;
  if (digits.starts_with("about ")) digits.remove_prefix(6);
  double unit = 0.0;
  const auto [stop, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), unit);
  if (fault != std::errc() || unit < 0.0) return 0.0;
  const bool mib = std::string_view(stop, static_cast<std::size_t>(digits.data() + digits.size() - stop)) == " MiB";
  return unit / 2.0 * (mib ? 1.0 : kMibOfGib);
}

core::Status take_measurement(const core::CsvCells& cells, MeasuredRun& run) {
  const auto gpus = cells.whole("gpus");
  if (!gpus) return gpus.error();
  run.gpus = std::max<std::int64_t>(1, gpus->value_or(1));
  const auto measured = cells.number("measured_mib");
  if (!measured) return measured.error();
  run.measured_mib = *measured;
  run.rounding_mib = rounding_of(cells.text("digits"));
  run.out_of_memory = cells.text("status").starts_with("OOM");
  const std::string_view words = cells.text("figure");
  for (const auto& [beginning, figure] : kFigureWords) {
    if (!words.starts_with(beginning)) continue;
    run.figure = figure;
    return core::Done{};
  }
  return cells.malformed("figure is " + core::quoted(words) + "; it must be allocated, reserved or device");
}

/// The figure is the card's size, of another run, or of no training step.
bool is_dropped(std::string_view status) {
  constexpr std::array<std::string_view, 4> kOthers = {"weak: may be the card", "suspect", "upper bound",
                                                       "not a measurement"};
  return std::any_of(kOthers.begin(), kOthers.end(), [&](std::string_view one) { return status.starts_with(one); });
}

/// Images of a model that reads them: those that the settings tell; a job of text otherwise. Settings tell the largest
/// images. Packed samples have as many tokens as the length says whatever their images are, and a tower that is frozen
/// keeps nothing of them.
void take_images(const model::ModelGraph& graph, MeasuredRun& run, job::JobRequest& request, bool frozen_tower) {
  const bool told = job::is_given(*job::find_option("image"), request);
  if (graph.config().empty()) request.training.image = {};
  else if (told) run.at_most = run.at_most || !frozen_tower;
  else request.training.images = 0;
}

/// The tokens of which a sample cannot have more, as the model has a table of positions for so many; 0: it has none.
std::int64_t most_tokens(const model::ModelGraph& graph) {
  std::int64_t most = 0;
  for (const model::Layer& layer : graph.layers()) {
    if (graph.op(layer) != "positions") continue;
    const std::int64_t rows = graph.attributes(layer).integer("most").value_or(0);
    most = most == 0 ? rows : std::min(most, rows);
  }
  return most;
}

core::Status take_model(const core::CsvCells& cells, const ToldJob& told, SummaryShelf& shelf, MeasuredRun& run) {
  const std::filesystem::path folder = std::filesystem::path(cells.file()).parent_path();
  // A program's own arguments say more of the model than its config does.
  const bool written_out = told.model.starts_with('{');
  auto graph = shelf.take_model(written_out ? told.model : cells.text("model"), folder, told.head);
  if (!graph && !told.model.empty()) graph = shelf.take_model(told.model, folder, told.head);
  if (!graph && graph.error().code == core::ErrorCode::missing_information) {
    return missing(cells, run, "a config of its model", std::string(cells.text("model")) + ": `summaries`");
  }
  if (!graph) {
    run.refusal = "a model that is not read";
    return graph.error();
  }
  job::JobRequest request = told.request;
  if (request.training.sequence_length < 1) {
    request.training.sequence_length = most_tokens(**graph);
    if (request.training.sequence_length < 1) return missing(cells, run, "a length of its samples");
    run.at_most = true;
  }
  const std::string frozen = posttrain::parts_of(**graph, told.frozen_parts);
  // Adapters that are not put on a tower leave it frozen too.
  const bool spares = request.training.lora_targets.find("not:model.visual") != std::string::npos;
  take_images(**graph, run, request, !frozen.empty() || spares);
  if (!frozen.empty()) set(request, "freeze", frozen);
  if (told.trained_blocks) {
    const auto names = told.trained_blocks(**graph);
    if (!names) return cells.malformed(names.error().message);
    set(request, "train", names->train);
    set(request, "freeze", names->freeze);
  }
  auto job = job::job_from(request, *std::move(graph));
  if (!job) return cells.malformed(job.error().message);
  run.job = *std::move(job);
  run.alloc_conf = request.alloc_conf;
  return core::Done{};
}

/// How the name of a checkpoint says that it holds its weights.
enum class HeldBits : std::uint8_t { usual, four_packed, others };

HeldBits held_bits(std::string_view model) {
  constexpr std::array<std::string_view, 2> kPacked = {"-AWQ", "-GPTQ-Int4"};
  constexpr std::array<std::string_view, 3> kOthers = {"-GPTQ-Int8", "-FP8", "-NVFP4"};
  const auto ends = [&](std::string_view ending) { return model.ends_with(ending); };
  if (std::any_of(kOthers.begin(), kOthers.end(), ends)) return HeldBits::others;
  return std::any_of(kPacked.begin(), kPacked.end(), ends) ? HeldBits::four_packed : HeldBits::usual;
}

/// Adapters on four bits packed in int32, with scales and zeros for each 128, are PEFT's on GPTQ; AWQ's are held alike.
/// Source: transformers 4.51, integrations/awq.py; AutoAWQ 0.2, modules/linear/gemm.py (WQLinear_GEMM).
core::Status take_held_bits(const core::CsvCells& cells, job::JobRequest& request, MeasuredRun& run) {
  const HeldBits bits = held_bits(cells.text("model"));
  // Megatron trains what it has made of the checkpoint.
  const bool made_anew = request.training.loop == model::Loop::megatron && !request.training.has_adapters();
  if (bits == HeldBits::usual || made_anew) return core::Done{};
  const bool adapts = bits == HeldBits::four_packed && request.training.has_adapters();
  if (adapts && set(request, "quantize", "gptq-4bit")) return core::Done{};
  run.refusal = "not modelled: weights that the checkpoint holds in few bits";
  return cells.malformed(run.refusal);
}

core::Status take_job(const core::CsvCells& cells, const RunsOptions& options, SummaryShelf& shelf, MeasuredRun& run) {
  const std::string_view algorithm = cells.text("algorithm");
  if (!algorithm.empty() && algorithm != "sft" && algorithm != "pretrain") {
    run.refusal = "not modelled: " + std::string(algorithm);
    return cells.malformed(run.refusal);
  }
  auto told = told_by(cells, options, run);
  if (!told) return told.error();
  run.source = told->program;
  if (!told->not_modelled.empty()) return not_modelled(cells, run, told->not_modelled);
  if (!told->missing.empty()) return missing(cells, run, told->missing.front());
  const bool shards = told->request.training.layout.sharding != model::Sharding();
  if (shards && run.gpus == 1) return missing(cells, run, "how many GPUs share the model");
  if (core::Status taken = take_held_bits(cells, told->request, run); !taken) return taken;
  if (told->request.training.batch_size < 1) return missing(cells, run, "a batch size");
  run.at_most = told->shorter;
  return take_model(cells, *told, shelf, run);
}

MeasuredRun run_of(const core::CsvCells& cells, const RunsOptions& options, SummaryShelf& shelf) {
  MeasuredRun run;
  run.line = cells.line();
  run.name = cells.text("name");
  run.gpu = cells.text("gpu").empty() ? "a100-80gb" : std::string(cells.text("gpu"));
  for (const auto& [words, profile] : kGpus) {
    if (run.gpu.find(words) == std::string::npos) continue;
    run.gpu = profile;
    break;
  }
  run.source = "unknown";
  run.training = cells.text("method");
  core::Status read = take_measurement(cells, run);
  if (read) read = take_job(cells, options, shelf, run);
  if (!read) run.error = std::move(read).error();
  if (run.error && run.refusal.empty()) run.refusal = "a row that is malformed";
  return run;
}

bool sniff(const core::CsvTable& table) {
  return table.has("args") && table.has("micro_batch") && table.has("measured_mib");
}

core::Result<MeasuredRuns> read(const core::CsvTable& table, const RunsOptions& options) {
  if (const core::Status whole = needs_columns(table, kColumns); !whole) return whole.error();
  SummaryShelf shelf(options);
  MeasuredRuns all;
  all.format = framework_csv().name;
  for (const core::CsvRow& row : table.rows) {
    const core::CsvCells cells(table, row);
    if (is_dropped(cells.text("status"))) ++all.dropped;
    else all.runs.push_back(run_of(cells, options, shelf));
  }
  return all;
}

}  // namespace framework_csv_detail
}  // namespace

const RunsFormat& framework_csv() {
  static constexpr RunsFormat kFormat = {
      "frameworks", "runs of training programs' examples, with their arguments as JSON (name,model,method,...,args)",
      &framework_csv_detail::sniff, &framework_csv_detail::read};
  return kFormat;
}

}  // namespace gpumem::datasets
