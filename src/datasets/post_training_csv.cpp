#include "gpumem_datasets/runs_tables.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "gpumem/core/file.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/serve/served_model.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "gpumem_datasets/summary_shelf.hpp"

namespace gpumem::datasets {

namespace {
namespace post_training_csv_detail {

constexpr std::array<std::string_view, 8> kColumns = {"name",   "model",        "algorithm", "gpus",
                                                      "figure", "measured_mib", "software",  "args"};
constexpr std::size_t kLargestConfig = std::size_t{1} << 20;

/// The published sizes of a dense language model.
struct KnownSizes {
  std::string_view name;  ///< how its name begins, without who published it
  std::string_view type;
  std::int64_t hidden;
  std::int64_t inner;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head;
  std::int64_t words;
  bool tied;
};
constexpr KnownSizes kSizes[] = {
    {"Qwen2-0.5B", "qwen2", 896, 4864, 24, 14, 2, 64, 151936, true},
    {"Qwen2-1.5B", "qwen2", 1536, 8960, 28, 12, 2, 128, 151936, true},
    {"Qwen2-7B", "qwen2", 3584, 18944, 28, 28, 4, 128, 152064, false},
    {"Qwen2.5-0.5B", "qwen2", 896, 4864, 24, 14, 2, 64, 151936, true},
    {"Qwen2.5-1.5B", "qwen2", 1536, 8960, 28, 12, 2, 128, 151936, true},
    {"Qwen2.5-3B", "qwen2", 2048, 11008, 36, 16, 2, 128, 151936, true},
    {"Qwen2.5-7B", "qwen2", 3584, 18944, 28, 28, 4, 128, 152064, false},
    {"Qwen2.5-14B", "qwen2", 5120, 13824, 48, 40, 8, 128, 152064, false},
    {"Qwen2.5-32B", "qwen2", 5120, 27648, 64, 40, 8, 128, 152064, false},
    {"Qwen2.5-72B", "qwen2", 8192, 29568, 80, 64, 8, 128, 152064, false},
    {"DeepSeek-R1-Distill-Qwen-1.5B", "qwen2", 1536, 8960, 28, 12, 2, 128, 151936, false},
    {"DeepSeek-R1-Distill-Qwen-7B", "qwen2", 3584, 18944, 28, 28, 4, 128, 152064, false},
    {"Qwen3-0.6B", "qwen3", 1024, 3072, 28, 16, 8, 128, 151936, true},
    {"Qwen3-1.7B", "qwen3", 2048, 6144, 28, 16, 8, 128, 151936, true},
    {"Qwen3-4B", "qwen3", 2560, 9728, 36, 32, 8, 128, 151936, true},
    {"Qwen3-8B", "qwen3", 4096, 12288, 36, 32, 8, 128, 151936, false},
    {"Qwen3-14B", "qwen3", 5120, 17408, 40, 40, 8, 128, 151936, false},
    {"Qwen3-32B", "qwen3", 5120, 25600, 64, 64, 8, 128, 151936, false},
    {"SmolLM-135M", "llama", 576, 1536, 30, 9, 3, 64, 49152, true},
    {"Llama-3.2-1B", "llama", 2048, 8192, 16, 32, 8, 64, 128256, true},
    {"Llama-3.2-3B", "llama", 3072, 8192, 28, 24, 8, 128, 128256, true},
    {"Llama-3.1-8B", "llama", 4096, 14336, 32, 32, 8, 128, 128256, false},
    {"Llama-3-8B", "llama", 4096, 14336, 32, 32, 8, 128, 128256, false},
    {"Llama-3.1-70B", "llama", 8192, 28672, 80, 64, 8, 128, 128256, false},
    {"Llama-3.3-70B", "llama", 8192, 28672, 80, 64, 8, 128, 128256, false},
};

std::string config_of(const KnownSizes& model) {
  constexpr std::int64_t kContext = 32768;
  std::string text = "{";
  const auto put = [&](std::string_view key, const std::string& value) {
    text.append(text.size() > 1 ? ", \"" : "\"").append(key).append("\": ").append(value);
  };
  put("model_type", "\"" + std::string(model.type) + "\"");
  put("hidden_size", std::to_string(model.hidden));
  put("intermediate_size", std::to_string(model.inner));
  put("num_hidden_layers", std::to_string(model.layers));
  put("num_attention_heads", std::to_string(model.heads));
  put("num_key_value_heads", std::to_string(model.kv_heads));
  put("head_dim", std::to_string(model.head));
  put("vocab_size", std::to_string(model.words));
  put("max_position_embeddings", std::to_string(kContext));
  put("tie_word_embeddings", model.tied ? "true" : "false");
  put("rms_norm_eps", "1e-06");
  return text + "}";
}

/// The published config of another model.
struct KnownModel {
  std::string_view name;  ///< as of KnownSizes
  std::string_view config;
};
constexpr KnownModel kModels[] = {
    {"Qwen3-30B-A3B", R"({"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"],
      "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
      "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
      "num_experts_per_tok": 8, "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [],
      "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": false, "rms_norm_eps": 1e-06})"},
    {"Qwen2.5-VL-3B", R"({"model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"],
      "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
      "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 128000, "tie_word_embeddings": true,
      "rms_norm_eps": 1e-06, "hidden_act": "silu", "vision_config": {"depth": 32, "hidden_size": 1280,
      "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 2048, "patch_size": 14, "spatial_merge_size": 2,
      "temporal_patch_size": 2, "in_chans": 3, "hidden_act": "silu", "window_size": 112,
      "fullatt_block_indexes": [7, 15, 23, 31]}})"},
    {"Qwen2.5-VL-72B", R"({"model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"],
      "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80, "num_attention_heads": 64,
      "num_key_value_heads": 8, "vocab_size": 152064, "max_position_embeddings": 128000, "tie_word_embeddings": false,
      "rms_norm_eps": 1e-06, "hidden_act": "silu", "vision_config": {"depth": 32, "hidden_size": 1280,
      "intermediate_size": 3456, "num_heads": 16, "out_hidden_size": 8192, "patch_size": 14, "spatial_merge_size": 2,
      "temporal_patch_size": 2, "in_chans": 3, "hidden_act": "silu", "window_size": 112,
      "fullatt_block_indexes": [7, 15, 23, 31]}})"},
};

bool begins_with(std::string_view name, std::string_view known) {
  return name.starts_with(known) && (name.size() == known.size() || name[known.size()] == '-');
}

/// Of a name without who published it. Models of code and of mathematics have the sizes of those that they were made
/// of.
std::optional<std::string> known_config(std::string name) {
  name.erase(0, name.find('/') == std::string::npos ? 0 : name.rfind('/') + 1);
  for (const std::string_view word : {"Coder-", "Math-", "Meta-"}) {
    if (const std::size_t at = name.find(word); at != std::string::npos) name.erase(at, word.size());
  }
  for (const KnownModel& known : kModels)
    if (begins_with(name, known.name)) return std::string(known.config);
  for (const KnownSizes& known : kSizes)
    if (begins_with(name, known.name)) return config_of(known);
  return std::nullopt;
}

/// The GPU that a row's words mean; where they name none, one of the class that most such runs have. Empty: no profile
/// is known.
std::string gpu_of(std::string_view words) {
  constexpr std::string_view kUsual = "a100-80gb";
  if (words.empty() || words == "not stated") return std::string(kUsual);
  if (const auto known = device::find_profile(words)) return known->name;
  constexpr std::pair<std::string_view, std::string_view> kGpus[] = {
      {"T4", "t4-16gb"}, {"H100", "h100-80gb"}, {"A100", kUsual}, {"80 GB", kUsual}};
  for (const auto& [word, gpu] : kGpus)
    if (words.find(word) != std::string_view::npos) return std::string(gpu);
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
                                                                           {"r", "peft_config.r"},
                                                                           {"batch", "per_device_train_batch_size"},
                                                                           {"numgen", "num_generations"},
                                                                           {"mcl", "max_completion_length"},
                                                                           {"mpl", "max_prompt_length"},
                                                                           {"maxlen", "max_length"},
                                                                           {"targets", "peft_config.target_modules"}};
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
    const bool figure = std::ranges::count(kNotebookFigures, key) > 0;
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

/// What a row's columns say, where nobody wrote its command line down.
std::vector<posttrain::LaunchSetting> settings_of_columns(const core::CsvCells& cells, posttrain::Program program) {
  std::vector<posttrain::LaunchSetting> settings;
  const auto take = [&](std::string_view column, std::string_view key) {
    std::string_view word = cells.text(column);
    if (word.ends_with(" max")) word.remove_suffix(4);  // "prompt 63 mean, 77 max"
    word.remove_prefix(word.rfind(' ') + 1);
    const bool number = !word.empty() && word.find_first_not_of("0123456789.") == std::string_view::npos;
    if (number) settings.push_back({std::string(key), std::string(word)});
  };
  const auto says = [&](std::string_view column, std::string_view text) {
    return cells.text(column).find(text) != std::string_view::npos;
  };
  if (program == posttrain::Program::verl) {
    settings.push_back({"algorithm.adv_estimator", std::string(cells.text("algorithm"))});
    take("micro_batch", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu");
    take("max_length", "data.max_prompt_length");
    take("max_completion", "data.max_response_length");
    take("rank", "actor_rollout_ref.model.lora_rank");
    take("rollout_fraction", "actor_rollout_ref.rollout.gpu_memory_utilization");
    if (says("packing", "use_dynamic_bsz")) settings.push_back({"actor_rollout_ref.actor.use_dynamic_bsz", "true"});
    if (says("rollout", "enforce_eager")) settings.push_back({"actor_rollout_ref.rollout.enforce_eager", "true"});
    return settings;
  }
  settings.push_back({"rlhf_type", std::string(cells.text("algorithm"))});
  take("micro_batch", "per_device_train_batch_size");
  take("max_length", "max_length");
  take("max_completion", "max_completion_length");
  take("num_generations", "num_generations");
  const std::string_view method = cells.text("method");
  if (method.find("lora") != std::string_view::npos) settings.push_back({"use_peft", "true"});
  take("rank", "lora_r");
  if (method.find("4bit") != std::string_view::npos || method == "qlora") settings.push_back({"load_in_4bit", "true"});
  return settings;
}

std::optional<posttrain::Program> program_of(const core::CsvCells& cells,
                                             std::span<const posttrain::LaunchSetting> settings) {
  const std::string_view software = cells.text("software");
  if (software.starts_with("verl") || software.starts_with("siirl")) return posttrain::Program::verl;
  if (software.find("unsloth") != std::string_view::npos) return posttrain::Program::unsloth;
  if (const auto known = posttrain::program_of(settings)) return known;
  if (software.starts_with("trl")) return posttrain::Program::trl;
  return std::nullopt;
}

core::Status take_measurement(const core::CsvCells& cells, MeasuredRun& run) {
  const auto gpus = cells.whole("gpus");
  if (!gpus) return gpus.error();
  run.gpus = std::max<std::int64_t>(gpus->value_or(1), 1);
  const auto measured = cells.number("measured_mib");
  if (!measured) return measured.error();
  run.measured_mib = *measured;
  run.out_of_memory = cells.text("status") == "oom";
  if (core::Status limit = take_capacity(cells, run); !limit) return limit;
  const std::string_view figure = cells.text("figure");
  constexpr double kHalfGibOfMib = 512.0;
  if (cells.text("digits").starts_with("1 GiB")) run.rounding_mib = kHalfGibOfMib;
  run.figure = figure.find("allocated") != std::string_view::npos  ? Figure::allocated
               : figure.find("reserved") != std::string_view::npos ? Figure::reserved
                                                                   : Figure::device;
  return core::Done{};
}

core::Status refuse(const core::CsvCells& cells, std::string why, MeasuredRun& run) {
  run.refusal = std::move(why);
  return cells.malformed(run.refusal);
}

using Notes = std::vector<estimate::Assumption>;

/// What the settings leave open is taken as the program has it, and named.
void say_open(const posttrain::Launch& launch, Notes& notes) {
  const auto say = [&](std::string text) { notes.push_back({"settings", std::move(text)}); };
  for (const posttrain::MissingSetting& each : launch.missing) say("the settings do not say " + each.what);
  for (const std::string& key : launch.unknown) say("the key " + key + " is not known");
  for (const std::string& text : launch.not_modelled) say(text + " is not modelled");
}

/// Whether vLLM runs in the training process, so that its memory is in the figure: in what is built on verl before 0.6,
/// and in verl itself where the row says so. Since 0.6 it is a process of its own.
bool counts_engine(const core::CsvCells& cells) {
  const std::string_view software = cells.text("software");
  const bool says = cells.text("rollout").find("same process") != std::string_view::npos;
  return says || software.starts_with("siirl") || software.starts_with("verl-agent");
}

/// Whether the figure counts an engine whose share of the GPU nobody knows: a row without a command line does not say
/// it, and one that names no GPU does not say of what. The program's default is taken then, of the usual GPU, and the
/// range is that of other shares: those that are published ask for a tenth to nine tenths.
bool shares_unknown(const core::CsvCells& cells, const posttrain::Launch& launch, Notes& notes) {
  const posttrain::PostTrainingOptions& options = launch.request.options;
  const bool generates = posttrain::row_of(options.algorithm).generates;
  const bool shares = generates && options.rollout == posttrain::Rollout::colocated && counts_engine(cells);
  const bool names_gpu = !cells.text("gpu").empty() && cells.text("gpu") != "not stated";
  if (!shares || (options.gpu_memory_utilization && names_gpu)) return false;
  if (!options.gpu_memory_utilization) {
    notes.push_back({"rollout",
                     "nobody says the engine's share of the GPU; the program's default is taken, and a "
                     "tenth to nine tenths for the range"});
  }
  return true;
}

/// What the cells of a published notebook say, and the table does not. Its figures are older than its cell for float32:
/// what was reserved before training is less than the weights would take in that. Source: TRL (f2cd577),
/// examples/notebooks.
void add_cells_of_notebook(const core::CsvCells& cells, std::vector<posttrain::LaunchSetting>& settings) {
  if (cells.text("source").find("grpo_trl_lora_qlora.ipynb") == std::string_view::npos) return;
  settings.push_back({"use_liger_kernel", "True"});
  settings.push_back({"bnb_4bit_use_double_quant", "True"});
}

core::Result<posttrain::Launch> launch_of(const core::CsvCells& cells, MeasuredRun& run, Notes& notes) {
  auto settings = settings_of(cells);
  if (!settings) return settings.error();
  const auto program = program_of(cells, *settings);
  if (!program) {
    return refuse(cells, settings->empty() ? "missing: the settings" : "a program without rules", run).error();
  }
  const bool has_command = !settings->empty();
  add_cells_of_notebook(cells, *settings);
  if (!has_command) {
    run.open = "settings that are no columns";
    *settings = settings_of_columns(cells, *program);
    notes.push_back({"settings", "only what the table's columns say is known"});
  }
  // A script that was measured with and without it has one command line.
  if (run.name.ends_with("without-padding-free")) settings->push_back({"padding_free", "false"});
  auto launch = posttrain::read_launch(*program, *settings, run.gpus);
  if (!launch) return cells.malformed(launch.error().message);
  for (const posttrain::MissingSetting& each : launch->missing) {
    if (each.required) return refuse(cells, "missing: " + each.what, run).error();
  }
  say_open(*launch, notes);
  return launch;
}

/// The text of the model's config.json.
core::Result<std::string> config_of(std::string_view model, const std::filesystem::path& folder) {
  const std::size_t opens = model.ends_with(')') ? model.rfind('(') : std::string_view::npos;
  std::string name(model.substr(0, model.find(' ')));
  // "0.6B model (Qwen3-0.6B)"; more than a name within is about the model.
  const std::string_view within = opens == std::string_view::npos ? std::string_view() : model.substr(opens + 1);
  if (!within.empty() && within.find(' ') == std::string_view::npos) name = within.substr(0, within.size() - 1);
  if (auto known = known_config(name)) return *std::move(known);
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, "--");
  for (const char* where : {"configs", "../configs_new", "../../serving/configs"}) {
    auto text =
        core::read_regular_file((folder / where / (name + ".json")).lexically_normal().string(), kLargestConfig);
    if (text) return text;
  }
  return core::Error{core::ErrorCode::unreadable_file, "no config.json of " + core::quoted(name) + " is there", {}};
}

/// The models of a row.
class RowModels {
 public:
  RowModels(std::filesystem::path folder, SummaryShelf& shelf, const posttrain::PostTrainingOptions& options)
      : folder_(std::move(folder)), shelf_(shelf), options_(options) {}

  using Graph = std::shared_ptr<const model::ModelGraph>;

  /// As the program runs it: Megatron its own form.
  core::Result<Graph> graph(const std::string& name, const std::string& config) {
    if (!posttrain::row_of(options_.program).megatron) return shelf_.parse(name, config);
    const std::int64_t ranks = options_.expert_tensor_parallel;
    const auto arguments = posttrain::megatron_arguments_of(config, ranks);
    if (!arguments) return arguments.error();
    return shelf_.parse(name + " as Megatron's " + std::to_string(ranks), *arguments);
  }

  /// Of an image tower that Megatron's form leaves out.
  std::int64_t tower(const std::string& name, const std::string& config) {
    if (!posttrain::row_of(options_.program).megatron) return 0;
    const core::Result<Graph> whole = shelf_.parse(name, config);
    return whole ? posttrain::tower_parameters(**whole) : 0;
  }

  /// A further model by its name. Nothing: none is named, or its sizes are not known, so that one like the policy is
  /// taken.
  Graph other(const std::string& name, std::string_view role, const Graph& policy, Notes& notes) {
    if (name.empty()) return nullptr;
    const auto config = config_of(name, folder_);
    const core::Result<Graph> made = config ? graph(name, *config) : config.error();
    if (made) return *made;
    notes.push_back({std::string(role), "of the policy's architecture, as the sizes of " +
                                            core::quoted(core::shortened(name, 80)) + " are not known"});
    return policy;
  }

 private:
  std::filesystem::path folder_;
  SummaryShelf& shelf_;
  const posttrain::PostTrainingOptions& options_;
};

/// What a row says beside its settings: whether batches held padding, and the release of transformers.
core::Status take_facts(const core::CsvCells& cells, job::JobRequest& training) {
  if (const auto release = transformers_of(cells.text("software"))) training.training.transformers = *release;
  if (cells.text("padding").empty()) return core::Done{};
  const core::Status set = job::set_option_text(*job::find_option("padding"), training, cells.text("padding"));
  return set ? set : core::Status(cells.malformed(set.error().message));
}

core::Status take_model(const core::CsvCells& cells, const std::filesystem::path& folder, SummaryShelf& shelf,
                        const posttrain::Launch& launch, Notes notes, MeasuredRun& run) {
  const std::string name(cells.text("model"));
  auto text = config_of(name, folder);
  const std::optional<bool> speech = launch.request.holds_speech;
  const auto head = text && speech ? summary::head_with_speech(*text, {}, *speech) : std::nullopt;
  if (head) text = summary::with_head(*text, *head);
  const posttrain::PostTrainingOptions& options = launch.request.options;
  RowModels models(folder, shelf, options);
  const core::Result<RowModels::Graph> graph = text ? models.graph(name, *text) : text.error();
  if (!graph) {
    run.refusal = "a model that is not read";
    return graph.error();
  }
  const auto sizes = serve::read_served_model(*text);
  job::JobRequest training = launch.request.training;
  if (core::Status taken = take_facts(cells, training); !taken) return taken;
  if (launch.request.buckets_by_width && sizes) posttrain::set_buckets(training.training.layout, sizes->hidden);
  if (launch.request.freezes_tower) {
    training.training.freeze = posttrain::parts_of(**graph, posttrain::part_names({}, "", ","));
  }
  if ((*graph)->config().empty()) {  // it reads no images
    training.training.image.clear();
    training.training.images.reset();
  }
  auto job = job::job_from(training, *graph);
  if (!job) return cells.malformed(job.error().message);
  run.job = *job;
  run.alloc_conf = training.alloc_conf;
  posttrain::PostTrainingJob whole{.policy = *std::move(job), .options = options};
  whole.tower_parameters = models.tower(name, *text);
  if (sizes) whole.served = std::make_shared<const serve::ServedModel>(*sizes);
  whole.reward = models.other(options.reward_model, "reward model", *graph, notes);
  whole.critic = models.other(options.critic_model, "critic", *graph, notes);
  whole.teacher = models.other(options.teacher_model, "teacher", *graph, notes);
  whole.reference = models.other(options.reference_model, "reference", *graph, notes);
  whole.one_process = counts_engine(cells);
  whole.share_unknown = shares_unknown(cells, launch, notes);
  if (whole.share_unknown) run.open = "the engine's share of the GPU";
  whole.assumed = std::move(notes);
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
  // Of a figure that may be the card's size, nobody knows what was measured.
  if (read && cells.text("status").starts_with("weak: may be the card")) {
    read = refuse(cells, "the figure may be the card's size", run);
  }
  if (read && run.gpu.empty()) read = refuse(cells, "a GPU without a profile", run);
  if (read) {
    Notes notes;
    if (cells.text("gpu").empty() || cells.text("gpu") == "not stated") {
      notes.push_back({"GPU", "the table names none; " + run.gpu + " is taken"});
    }
    const auto launch = launch_of(cells, run, notes);
    read = launch ? take_model(cells, folder, shelf, *launch, std::move(notes), run) : core::Status(launch.error());
  }
  if (!read) run.error = std::move(read).error();
  if (run.error && run.refusal.empty()) run.refusal = "a row that is malformed";
  return run;
}

/// Tables of supervised training have the same columns (framework_csv()): the algorithms tell.
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
