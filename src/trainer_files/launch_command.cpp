#include "launch_command.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "axolotl.hpp"
#include "command_words.hpp"
#include "deepspeed.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "image_trainers.hpp"
#include "launchers.hpp"
#include "llama_factory.hpp"
#include "megatron_bridge.hpp"
#include "megatron_lm.hpp"
#include "ms_swift.hpp"
#include "shared_settings.hpp"
#include "torchtitan.hpp"
#include "torchtune.hpp"
#include "trainer_files.hpp"
#include "training_arguments.hpp"

namespace gpumem::trainer_files {

namespace {
namespace launch_command_detail {

namespace fs = std::filesystem;

/// A program that reads one format of settings.
struct ProgramRow {
  std::string_view name;     ///< its word, or its module
  std::string_view command;  ///< the word behind it; empty: none
  const TrainerFormat& (*format)();
};
constexpr ProgramRow kPrograms[] = {
    {"axolotl", "train", &axolotl},
    {"axolotl.cli.train", "", &axolotl},
    {"llamafactory-cli", "train", &llama_factory},
    {"lmf", "train", &llama_factory},
    {"tune", "run", &torchtune},
    {"swift", "sft", &ms_swift},
    {"swift", "pt", &ms_swift},
    {"megatron", "sft", &ms_swift},
    {"megatron", "pt", &ms_swift},
    {"trl", "sft", &training_arguments},
    {"torchtitan.train", "", &torchtitan},
    {"run_train.sh", "", &torchtitan},
    {"pretrain_gpt.py", "", &megatron_lm},
    {"pretrain_bert.py", "", &megatron_lm},
    {"pretrain_hybrid.py", "", &megatron_lm},
    {"pretrain_mamba.py", "", &megatron_lm},
    {"pretrain_t5.py", "", &megatron_lm},
};

constexpr std::int64_t kMostVisible = 64;  ///< GPUs of one process

/// Keys whose value is the file of a program's settings.
constexpr std::string_view kFileKeys[] = {"config", "config_file", "cfg", "config_path", "args_file"};

bool is_settings_file(std::string_view word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json") || word.ends_with(".toml");
}

core::Error refused(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

class CommandReader {
 public:
  CommandReader(std::span<const std::string> words, const ReadCommandFile& read_file, const CommandVariable& variable)
      : words_(words), read_file_(read_file), variable_(variable) {}

  core::Result<LaunchedJob> read() {
    launcher_ = read_launcher(words_);
    if (launcher_.begin >= words_.size()) return refused("the command names no program");
    made_.script = words_[launcher_.begin];
    if (is_server() || is_post_training()) return std::move(made_);
    core::Status taken = take_program();
    if (taken) taken = take_accelerate();
    if (taken) taken = take_deepspeed_file();
    if (!taken) return taken.error();
    take_dataset_file();
    settle_precision();
    count_gpus();
    return std::move(made_);
  }

 private:
  [[nodiscard]] std::string_view word(std::size_t offset) const {
    const std::size_t at = launcher_.begin + offset;
    return at < words_.size() ? std::string_view(words_[at]) : std::string_view();
  }

  // --- Other questions ----------------------------------------------------------------------------------------------

  bool is_server() {
    const std::string_view name = base_name(word(0));
    const bool by_word = (name == "vllm" || name == "sglang") && word(1) == "serve";
    const bool by_module = name.starts_with("vllm.entrypoints.") || name == "sglang.launch_server";
    if (!by_word && !by_module) return false;
    made_.program = LaunchedProgram::server;
    if (by_module) made_.words = {"python", "-m"};
    made_.words.emplace_back(name);
    made_.words.insert(made_.words.end(), words_.begin() + static_cast<std::ptrdiff_t>(launcher_.begin) + 1,
                       words_.end());
    return true;
  }

  bool is_post_training() {
    if (!posttrain::starts_post_training(words_)) return false;
    made_.program = LaunchedProgram::post_training;
    made_.words.assign(words_.begin(), words_.end());
    return true;
  }

  // --- The program --------------------------------------------------------------------------------------------------

  /// A recipe of Megatron-Bridge and its overrides, as Megatron-LM's arguments.
  core::Status take_bridge() {
    auto bridge = read_bridge_command(words_.subspan(launcher_.begin + 1));
    if (!bridge) return bridge.error();
    bridge_ = *std::move(bridge);
    add_large_job(bridge_.settings);
    read_into(megatron_lm(), bridge_.settings, made_.job);
    made_.job.unknown.insert(made_.job.unknown.end(), bridge_.unknown.begin(), bridge_.unknown.end());
    made_.job.format = "megatron-bridge";
    made_.known = true;
    return core::Done{};
  }

  core::Status take_program() {
    if (is_bridge_command(word(0), words_.subspan(launcher_.begin + 1))) return take_bridge();
    const auto* const row = std::find_if(std::begin(kPrograms), std::end(kPrograms), [&](const ProgramRow& one) {
      return one.name == base_name(word(0)) && (one.command.empty() || one.command == word(1));
    });
    const TrainerFormat* const format = row == std::end(kPrograms) ? nullptr : &row->format();
    const bool python = launcher_.launcher != Launcher::none || word(0).ends_with(".py") ||
                        (launcher_.begin > 0 && words_[launcher_.begin - 1] == "-m");
    if (format == nullptr && !python) {
      return refused("the command " + core::quoted(core::shortened(words_[launcher_.begin], 60)) +
                     " is not known; known are torchrun, accelerate launch, deepspeed, python, axolotl train, "
                     "llamafactory-cli train, tune run, torchtitan's run_train.sh, Megatron-Bridge's run_recipe.py, "
                     "swift sft, megatron sft, trl sft, vllm serve and sglang serve");
    }
    std::size_t at = launcher_.begin + 1;
    if (format != nullptr && !row->command.empty()) {
      made_.script += " " + std::string(row->command);
      ++at;
    }
    if (format == &torchtune()) {  // its recipe stands behind torchrun's settings
      at = read_torchrun_words(words_, at, launcher_.settings) + 1;
      if (!launcher_.settings.items.empty()) launcher_.launcher = Launcher::torchrun;
    }
    return take_settings(read_program_words(words_.subspan(std::min(at, words_.size()))), format);
  }

  core::Status take_settings(const ProgramWords& words, const TrainerFormat* format) {
    Setting root{Setting::Kind::object, {}, {}, {}, 0};
    Setting over = words.settings;
    const std::string file = file_of(words, over);
    if (!file.empty()) {
      if (core::Status taken = take_file(file, format, root); !taken) return taken;
    }
    lay_over(root, over);
    if (format == &ms_swift()) add_swift_settings(root);
    if (is_trls_tuning()) add_trl_settings(root);
    if (format == nullptr) {
      add_script(root);
      format = format_of(root);
    }
    if (format == &torchtitan() || format == &megatron_lm()) add_large_job(root);
    if (format != nullptr) {
      read_into(*format, root, made_.job);
      made_.job.format = format->name;
      made_.known = true;
      if (made_.script.ends_with(".py") && format == &training_arguments()) {
        made_.notes.push_back(made_.script + " is taken for a program of HuggingFace's Trainer, by its settings");
      }
    }
    if (const Setting* const native = root.field("deepspeed_config"); native != nullptr) {
      if (native->kind == Setting::Kind::text) made_.job.deepspeed = native->word;
    }
    return core::Done{};
  }

  /// The file of settings, which is then no setting itself; empty: there is none.
  std::string file_of(const ProgramWords& words, Setting& settings) const {
    const Setting* const titans = settings.at("job.config_file");
    if (titans != nullptr && titans->kind == Setting::Kind::text) return titans->word;
    const Setting* const variable = launcher_.environment.field("CONFIG_FILE");
    if (runs_titan() && variable != nullptr) return variable->word;
    for (const std::string_view key : kFileKeys) {
      const auto found = std::find_if(settings.items.begin(), settings.items.end(),
                                      [&](const Setting& item) { return item.key == key; });
      if (found == settings.items.end() || found->kind != Setting::Kind::text) continue;
      std::string file = found->word;
      settings.items.erase(found);
      return file;
    }
    const auto file = std::find_if(words.standing_by.begin(), words.standing_by.end(), &is_settings_file);
    return file == words.standing_by.end() ? std::string() : *file;
  }

  /// A program that is known cannot do without its file; of another nobody knows what the file is.
  core::Status take_file(const std::string& file, const TrainerFormat* format, Setting& root) {
    if (format == &torchtune() && !is_settings_file(file)) {
      return refused("torchtune's own config " + core::quoted(core::shortened(file, 80)) + " is not here: `tune cp " +
                     core::shortened(file, 80) + " .` makes it a file to name");
    }
    const auto text = read_file_(file);
    const auto settings = text ? parse_settings(*text) : core::Result<Setting>(text.error());
    if (settings) {
      made_.files.push_back(file);
      root = *settings;
      return core::Done{};
    }
    if (format != nullptr) return core::Error(settings.error()).in_file(file);
    made_.notes.push_back("the file " + core::shortened(file, 80) + " is not read: " + settings.error().message);
    return core::Done{};
  }

  /// By its keys, as of a file. A script's words name a model more often than they name a batch size.
  static const TrainerFormat* format_of(const Setting& root) {
    // Scripts for image models call their batch as DeepSpeed's file calls that of all GPUs.
    const bool images = root.field("pretrained_model_name_or_path") != nullptr || root.field("resolution") != nullptr;
    for (const TrainerFormat* format : trainer_formats()) {
      if (images && format == &deepspeed()) continue;
      if (format->sniff(root)) return format;
    }
    const bool trainer = root.field("model_name_or_path") != nullptr && root.field("output_dir") != nullptr;
    return trainer ? &training_arguments() : nullptr;
  }

  /// Scripts for image models are told by their names, and take the precision that accelerate was given.
  void add_script(Setting& root) const {
    Setting named = setting_of_word(kScriptKey, base_name(made_.script));
    Setting alone{Setting::Kind::object, {}, {}, {named}, 0};
    if (!diffusers_scripts().sniff(alone) && !sd_scripts().sniff(alone) && !is_example_script(alone)) return;
    root.items.push_back(std::move(named));
    const Setting* const mixed = launcher_.settings.field("mixed_precision");
    if (mixed != nullptr && root.field("mixed_precision") == nullptr) root.items.push_back(*mixed);
  }

  /// torchtitan's own script, which starts torchrun on NGPU GPUs. Source: torchtitan 0.2, run_train.sh.
  [[nodiscard]] bool runs_titan() const { return base_name(made_.script) == "run_train.sh"; }

  void add_environment(Setting& root) const {
    for (const Setting& variable : launcher_.environment.items) {
      Setting setting = variable;
      setting.key = "env:" + variable.key;
      root.items.push_back(std::move(setting));
    }
  }

  /// torchtitan and Megatron-LM: the script says which model it is, and the number of GPUs how many copies there are.
  void add_large_job(Setting& root) const {
    add_environment(root);
    put_setting(root, kScriptKey, setting_of_word({}, base_name(made_.script)));
    const RankCount count = counted();
    if (!count.from.empty()) put_setting(root, kGpusKey, setting_of_word({}, std::to_string(count.gpus)));
  }

  [[nodiscard]] RankCount counted() const {
    RankCount ranks = rank_count(launcher_.launcher, launcher_.settings, launcher_.environment);
    if (ranks.from.empty() && bridge_.gpus > 0) return {bridge_.gpus, bridge_.gpus_from};
    if (!runs_titan()) return ranks;
    constexpr std::int64_t kUsual = 8;
    const Setting* const given = launcher_.environment.field("NGPU");
    const std::int64_t gpus = given == nullptr ? kUsual : core::parse_whole(given->word).value_or(kUsual);
    return {std::clamp<std::int64_t>(gpus, 1, std::int64_t{1} << 20), "NGPU"};
  }

  /// ms-swift's format reads variables, and tells `megatron sft` by its batch size, which is 1 unless it is given.
  void add_swift_settings(Setting& root) const {
    add_environment(root);
    const bool megatron = made_.script.starts_with("megatron");
    if (megatron && root.field("micro_batch_size") == nullptr) {
      put_setting(root, "micro_batch_size", setting_of_word({}, "1"));
    }
  }

  /// `trl sft`, the script behind it, and the examples that are written as it is.
  [[nodiscard]] bool is_trls_tuning() const {
    const std::string_view script = base_name(made_.script);
    return made_.script == "trl sft" || (script.starts_with("sft") && script.ends_with(".py"));
  }

  /// What SFTConfig sets otherwise than TrainingArguments. Source: trl 1.9, trainer/sft_config.py and base_config.py.
  void add_trl_settings(Setting& root) {
    const auto says = [&](std::string_view key) { return root.field(key) != nullptr; };
    if (!says("model_name_or_path") || says("tuner_type") || says("train_type")) return;
    std::string taken;
    const auto add = [&](const char* key, const char* word) {
      put_setting(root, key, setting_of_word({}, word));
      taken.append(taken.empty() ? "" : ", ").append(key).append(" ").append(word);
    };
    if (!says("max_length") && !says("max_seq_length")) add("max_length", "1024");
    if (!says("gradient_checkpointing")) add("gradient_checkpointing", "true");
    if (!says("bf16") && !says("fp16")) add("bf16", "true");
    if (!says("per_device_train_batch_size")) add("per_device_train_batch_size", "8");
    const Setting* const liger = root.field("use_liger_kernel");
    const bool fuses = liger != nullptr && core::lower_case(liger->word) == "true";
    if (!says("loss_type") && !fuses) add("loss_type", "chunked_nll");
    if (!taken.empty()) made_.notes.push_back(taken + ": as trl has them since 1.7");
  }

  // --- The launcher -------------------------------------------------------------------------------------------------

  core::Status take_accelerate() {
    if (launcher_.launcher != Launcher::accelerate) return core::Done{};
    Setting file;
    if (const Setting* const named = launcher_.settings.field("config_file"); named != nullptr) {
      const auto text = read_file_(named->word);
      if (!text) return text.error();
      auto settings = parse_settings(*text);
      if (!settings) return core::Error(settings.error()).in_file(named->word);
      made_.files.push_back(named->word);
      file = *std::move(settings);
    } else {
      file = accelerates_own();
    }
    launcher_.settings = accelerate_settings(file, launcher_.settings);
    TrainerReading from(launcher_.settings, made_.job);
    const std::string type = from.word("distributed_type").value_or("NO");
    if (type == "DEEPSPEED") take_accelerates_deepspeed(from);
    else if (type == "FSDP") want_accelerate_fsdp(from);
    else if (type == "MEGATRON_LM" || type == "TP") from.not_modelled("distributed_type");
    take_mixed_precision(from);
    return core::Done{};
  }

  /// What `accelerate config` wrote: its YAML, or the JSON of older versions. Nothing where it never ran, or where its
  /// file cannot be read.
  Setting accelerates_own() {
    const std::string folder = variable_ ? accelerate_folder(launcher_.environment, variable_) : std::string();
    for (const char* name : {"/default_config.yaml", "/default_config.json"}) {
      if (folder.empty()) break;
      const auto text = read_file_(folder + name);
      if (!text) continue;
      auto settings = parse_settings(*text);
      if (!settings) {
        made_.notes.push_back("accelerate's own " + core::shortened(folder + name, 200) +
                              " cannot be read: " + settings.error().message + "; --config_file names another");
        return {};
      }
      made_.files.push_back(folder + name);
      return *std::move(settings);
    }
    made_.notes.emplace_back("accelerate's own default_config.yaml is not here; --config_file names one");
    return {};
  }

  void take_accelerates_deepspeed(TrainerReading& from) {
    if (const auto path = from.word("deepspeed_config.deepspeed_config_file"); path && *path != "none") {
      made_.job.deepspeed = *path;
      return;
    }
    const std::string stage = from.word("deepspeed_config.zero_stage").value_or("2");
    if (stage != "0") from.want("sharding", "zero-" + stage, "deepspeed_config.zero_stage");
    const auto is_away = [&](std::string_view path) {
      const auto device = from.word(path);
      return device && (*device == "cpu" || *device == "nvme");
    };
    // DeepSpeed reads the parameters' place of ZeRO-3 alone (runtime/zero/config.py).
    if (stage == "3" && is_away("deepspeed_config.offload_param_device")) {
      from.want("offload", "parameters", "deepspeed_config.offload_param_device");
    } else if (is_away("deepspeed_config.offload_optimizer_device")) {
      from.want("offload", "optimizer", "deepspeed_config.offload_optimizer_device");
    }
  }

  /// The Trainer's own bf16 and fp16 count more (training_args.py: ACCELERATE_MIXED_PRECISION is the default).
  void take_mixed_precision(TrainerReading& from) const {
    const std::string mixed = from.word("mixed_precision").value_or("no");
    const WantedOption* const precision = made_.job.find("precision");
    if (mixed == "fp8") from.not_modelled("mixed_precision");
    const bool open = precision == nullptr || precision->value == "fp32";
    if (open && (mixed == "bf16" || mixed == "fp16")) from.want("precision", "amp-" + mixed, "mixed_precision");
  }

  /// A file that the settings name, from here or from the first file. `path` is then where it is.
  core::Result<std::string> read_named(std::string& path) const {
    auto text = read_file_(path);
    if (text || made_.files.empty()) return text;
    const std::string beside = (fs::path(made_.files.front()).parent_path() / path).string();
    auto other = read_file_(beside);
    if (other) path = beside;
    return other;
  }

  void take_dataset_file() {
    TrainerJob& job = made_.job;
    if (job.dataset.empty()) return;
    std::string path = job.dataset;
    const auto text = read_named(path);
    const auto root = text ? parse_settings(*text) : core::Result<Setting>(text.error());
    if (root) {
      take_image_dataset(*root, job);
      made_.files.push_back(path);
    }
    if (job.find("image") == nullptr) {
      job.missing.push_back("the size of its images, which " + core::quoted(job.dataset) + " does (--image)");
    }
  }

  core::Status take_deepspeed_file() {
    TrainerJob& job = made_.job;
    if (job.deepspeed.empty()) return core::Done{};
    std::string path = job.deepspeed;
    const auto text = read_named(path);
    if (!text) {
      made_.missing_deepspeed = job.deepspeed;
      made_.notes.push_back("DeepSpeed's file " + core::shortened(job.deepspeed, 80) + " is not here");
      return core::Done{};
    }
    if (core::Status taken = take_deepspeed(*text, job); !taken) return std::move(taken).error().in_file(path);
    if (job.find("batch_size") != nullptr) made_.known = true;
    made_.files.push_back(path);
    return core::Done{};
  }

  /// DeepSpeed, and FSDP under accelerate, keep float32 masters of what is trained and compute in bfloat16 (accelerate
  /// 1.2: fsdp_utils.py upcasts the parameters that are trained).
  void settle_precision() {
    const WantedOption* const sharding = made_.job.find("sharding");
    const bool by_shards =
        sharding != nullptr && (sharding->value.starts_with("zero-") ||
                                (launcher_.launcher == Launcher::accelerate && made_.job.format != axolotl().name &&
                                 sharding->value.starts_with("fsdp")));
    if (by_shards) keep_masters(made_.job);
  }

  void count_gpus() {
    const RankCount count = counted();
    made_.gpus = count.from.empty() ? of_layout() : count.gpus;
    const bool several = launcher_.launcher != Launcher::none || made_.job.format == llama_factory().name ||
                         made_.job.format == axolotl().name;
    const std::int64_t visible = visible_gpus(launcher_.environment);
    if (count.from.empty() && made_.job.one_process && visible > 1) {
      made_.gpus = std::min<std::int64_t>(visible, kMostVisible);
      made_.notes.push_back("one process on " + std::to_string(made_.gpus) + " GPUs (CUDA_VISIBLE_DEVICES)");
    } else if (!count.from.empty()) {
      made_.job.one_process = false;
      if (count.gpus > 1) made_.notes.push_back(std::to_string(count.gpus) + " GPUs (" + count.from + ")");
    } else if (several) {
      made_.notes.push_back("it does not say on how many GPUs it runs, so " +
                            (made_.gpus == 1 ? std::string("one is taken")
                                             : "the " + std::to_string(made_.gpus) + " of its layout are taken"));
    }
  }

  /// The fewest GPUs that the layout can have.
  [[nodiscard]] std::int64_t of_layout() const {
    std::int64_t gpus = 1;
    for (const char* name : {"data_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel"}) {
      const WantedOption* const given = made_.job.find(name);
      const std::int64_t size = given == nullptr ? 1 : core::parse_whole(given->value).value_or(1);
      gpus = core::bounded_product({gpus, std::max<std::int64_t>(size, 1)});
    }
    return gpus;
  }

  std::span<const std::string> words_;
  const ReadCommandFile& read_file_;
  const CommandVariable& variable_;
  LauncherWords launcher_;
  BridgeCommand bridge_;
  LaunchedJob made_;
};

}  // namespace launch_command_detail
}  // namespace

core::Result<LaunchedJob> read_launch_command(std::span<const std::string> words, const ReadCommandFile& read_file,
                                              const CommandVariable& variable) {
  const auto too_long = [](const std::string& word) { return word.size() > kLongestCommandWord; };
  if (words.size() > kMostWords || std::any_of(words.begin(), words.end(), too_long)) {
    return launch_command_detail::refused("the command is longer than any that starts a training");
  }
  return launch_command_detail::CommandReader(words, read_file, variable).read();
}

core::Result<LaunchedJob> read_launch_command(std::span<const std::string> words) {
  const auto variable = [](const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::string() : std::string(value);
  };
  return read_launch_command(
      words, [](const std::string& path) { return core::read_regular_file(path, kLargestTrainerFile); }, variable);
}

}  // namespace gpumem::trainer_files
