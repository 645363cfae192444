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

/// The class of the model below its head.
std::string_view class_of(const model::ModelGraph& graph) {
  for (std::uint32_t at = 0; at < graph.scopes(); ++at) {
    if (const std::string_view name = graph.class_name(graph.scope(at)); !name.empty()) return name;
  }
  return {};
}

/// The end of a class that has no head.
constexpr std::string_view kEmbeds = "Model";

template <std::size_t Count>
bool is_one_of(const std::array<std::string_view, Count>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The models that Unsloth has a forward() of its own for, with its kernels (models/llama.py, mistral.py, ...).
constexpr std::array<std::string_view, 6> kOwn = {"LlamaModel",  "MistralModel", "GemmaModel",
                                                  "Gemma2Model", "Qwen2Model",   "Qwen3Model"};

/// What Unsloth does with a model's head. It has a forward() of its own for some models; those of others it rewrites
/// where they look as it knows them. Source: unsloth and unsloth_zoo from 2024.9 to 2026.8, models/llama.py
/// (CausalLM_fast_forward), models/loader.py; compiler.py (cross_entropy_find_1 to 3), fused_losses/ and __init__.py
/// (UNSLOTH_ENABLE_CCE); dates by their repositories' history. GraniteMoe's models cast the logits before transformers
/// 5 (#42753), which is not known to it; Gemma 3's and 3n's that see have a loss of their own.
std::string_view loss_of_unsloth(std::string_view name, Release unsloth, Release torch, bool trains_head, bool sees) {
  constexpr std::array<std::string_view, 3> kCasts = {"GraniteMoeModel", "GraniteMoeHybridModel",
                                                      "GraniteMoeSharedModel"};
  // The logits were made, and their gradient written over them; then Apple's Cut Cross Entropy came.
  if (unsloth < Release{2024, 11, 8}) return "fused-ce";
  const bool own = is_one_of(kOwn, name) && !trains_head;
  if (!own && is_one_of(kCasts, name) && unsloth < Release{2026, 5, 3}) return "fused-ce";
  const bool chunks = unsloth >= Release{2025, 8, 5};
  const bool own_loss = name == "Gemma3nModel" || (name == "Gemma3Model" && sees);
  const bool can_cut = torch < Release{2, 8, 0} || unsloth < Release{2025, 8, 9};
  const bool cuts = own ? !chunks : !trains_head && !own_loss && can_cut;
  if (cuts) return "fused";
  // A loss of whole logits, which was compiled.
  if (!chunks) return "compiled";
  // At first a chunk's logits were to take 1 GiB, and took up to 2 where their number was rounded down.
  if (unsloth < Release{2025, 9, 2}) return "fused-target:2048";
  return unsloth < Release{2026, 7, 1} ? "fused-free-2025" : "fused-free";
}

/// Gemma 3's models are called with eager attention since September 2025 (models/loader.py:
/// DISABLE_SDPA_MODEL_NAMES). Since December 2025 TRL's SFTTrainer makes one row of a batch's tokens there (trainer.py:
/// _should_auto_padding_free), of which eager attention then has all pairs: not of packed samples, nor of images.
/// gpt-oss has flex attention with sinks (unsloth_zoo since the end of August 2025, temporary_patches/gpt_oss.py:
/// patch_GptOssAttention), which keeps what flash attention keeps.
void choose_attention(std::string_view name, Release unsloth, bool may_join, job::JobRequest& request) {
  model::TrainingJob& training = request.training;
  const bool flex = name == "GptOssModel" && unsloth >= Release{2025, 8, 10};
  if (flex) training.attention = model::AttentionBackend::flash;
  if (name != "Gemma3Model" && name != "Gemma3TextModel") return;
  if (unsloth < Release{2025, 9, 8}) return;
  training.attention = model::AttentionBackend::eager;
  if (unsloth < Release{2025, 12, 3} || !may_join || !training.sequence_length) return;
  training.sequence_length = core::bounded_product({*training.sequence_length, training.batch_size});
  training.batch_size = 1;
}

/// What Unsloth asks of PyTorch's allocator since March 2024. Source: unsloth, __init__.py, by its history; since
/// October 2025 unsloth_zoo, __init__.py.
std::string_view allocator_of_unsloth(Release unsloth, Release torch) {
  if (torch >= Release{2, 10, 0} || unsloth < Release{2024, 11, 8}) return "expandable_segments:True";
  if (unsloth < Release{2025, 1, 1}) {
    return "expandable_segments:True,roundup_power2_divisions:[64:128,256:64,>:32]";
  }
  return "expandable_segments:True,roundup_power2_divisions:[32:256,64:128,256:64,>:32]";
}

/// What Unsloth's models do. Source: unsloth 2025.8, models/llama.py (weights in bfloat16, on a GPU without it in
/// float16; 4-bit weights are nf4 with double quantisation; adapters in float32), gradient_checkpointing.py ("unsloth":
/// inputs of blocks go to the host).
void take_unsloth(const Settings& settings, std::string_view software, bool has_bf16, ToldJob& told) {
  job::JobRequest& request = told.request;
  const std::string type = has_bf16 ? "bf16" : "fp16";
  set(request, "precision", "amp-" + type);
  if (request.training.lora) set(request, "base_dtype", type);
  const Release release = release_of(software, "unsloth");
  const Release torch = release_of(software, "torch");
  set(request, "alloc_conf", std::string(allocator_of_unsloth(release, torch)));
  const bool packs = word_of(settings, "packing") == "True";
  const bool trains_head = !request.training.lora || word_of(settings, "targets").find("lm_head") != std::string::npos;
  const bool told_to_see = settings.contains("fv");
  told.choose_by_model = [=, embeds = told.head == kEmbeds](const model::ModelGraph& graph, job::JobRequest& chosen) {
    const std::string_view name = class_of(graph);
    // Text alone of a model that sees may be told by the config of its language model.
    const bool sees = told_to_see || !graph.config().empty();
    if (!embeds) set(chosen, "loss", std::string(loss_of_unsloth(name, release, torch, trains_head, sees)));
    if (is_one_of(kOwn, name) && chosen.training.lora) set(chosen, "kernels", "unsloth");
    choose_attention(name, release, !embeds && !sees && !packs, chosen);
  };
  const bool quantized = word_of(settings, "load4") == "True" || told.model.ends_with("bnb-4bit");
  const auto held = posttrain::four_bits_of_unsloth(told.model, release < Release{2024, 12, 0});
  if (quantized) set(request, "quantize", std::string(model::name_of(model::kQuantizations, held)));
  if (word_of(settings, "load8") == "True") set(request, "quantize", "int8");
  if (word_of(settings, "gc").find("unsloth") != std::string::npos) set(request, "offload", "checkpoints");
}

/// Unsloth's FastSentenceTransformer with MultipleNegativesRankingLoss: no trainer of language models is named, nor
/// that the model is loaded in four bits, which it does not offer. Both texts of a pair go through the model, and what
/// backward needs of both is kept. Source: unsloth 2026.1, models/sentence_transformer.py; sentence-transformers 5,
/// losses/MultipleNegativesRankingLoss.py.
void take_pairs(const Settings& settings, ToldJob& told) {
  if (!word_of(settings, "trainer").empty()) return;
  if (told.program != "unsloth" || settings.contains("load4")) {
    return told.not_modelled.push_back("trainer that the notebook does not name is not modelled");
  }
  told.head = kEmbeds;
  told.request.training.batch_size = core::bounded_product({2, told.request.training.batch_size});
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
  // What the run prints, where the cell was edited after it.
  take_setting(settings, word_of(settings, "batchprint").empty() ? "batch" : "batchprint", "batch_size", told);
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
  take_pairs(settings, told);
  if (told.program == "unsloth") take_unsloth(settings, cells.text("software"), has_bf16, told);
  else set(request, "precision", has_bf16 ? "amp-bf16" : "amp-fp16");
  told.shorter = word_of(settings, "packing") != "True";
  return told;
}

/// A row's settings as the words of `trl sft`, where its release has the defaults that are known.
std::optional<std::string> trls_command(const Settings& settings, std::string_view software) {
  constexpr Release kChunks = {1, 7, 0};
  if (!software.starts_with("trl ") || release_of(software, "trl") < kChunks || settings.contains("command")) return {};
  std::string words = "trl sft";
  for (const auto& [key, value] : settings) {
    if ((key + value).find_first_of("\"\\ ") != std::string::npos) return {};
    words.append(" --").append(key).append(" ").append(value);
  }
  return R"({"command": ")" + words + R"("})";
}

core::Result<ToldJob> told_by(const core::CsvCells& cells, const RunsOptions& options, MeasuredRun& run) {
  const std::string_view args = cells.text("args");
  const Settings settings = settings_of(args);
  if (settings.empty()) return missing(cells, run, "the program's arguments");
  if (settings.contains("peak") && settings.contains("start")) {
    return told_by_notebook(settings, cells, run.gpu != "t4-16gb");
  }
  if (!options.read_settings) return missing(cells, run, "a reader of trainers' files");
  const auto command = trls_command(settings, cells.text("software"));
  auto told = options.read_settings(command ? std::string_view(*command) : args, run.gpus);
  const auto release = command ? transformers_of(cells.text("software")) : std::nullopt;
  if (told && release) set(told->request, "transformers", std::string(model::name_of(model::kTransformers, *release)));
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
  auto graph = shelf.take_model(written_out ? told.model : cells.text("model"), folder, told.head, told.holds_speech);
  if (!graph && !told.model.empty()) graph = shelf.take_model(told.model, folder, told.head, told.holds_speech);
  const std::string& fields = told.megatron_fields;
  const auto own = fields.empty() ? nullptr : shelf.take_megatron(cells.text("model"), folder, fields);
  if (own != nullptr) graph = own;
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
  if (told.choose_by_model) told.choose_by_model(**graph, request);
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
  const std::string pads(cells.text("padding"));
  if (!set(told->request, "padding", pads)) return cells.malformed("padding is " + core::quoted(pads));
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
