#include "trainer_files.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "axolotl.hpp"
#include "deepspeed.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "image_trainers.hpp"
#include "llama_factory.hpp"
#include "megatron_lm.hpp"
#include "ms_swift.hpp"
#include "peft_adapter.hpp"
#include "torchtitan.hpp"
#include "torchtune.hpp"
#include "training_arguments.hpp"

namespace gpumem::trainer_files {

namespace {

namespace fs = std::filesystem;

constexpr const char* kAdapterName = "adapter_config.json";

/// The first of these that is there.
std::optional<std::string> first_file(const std::vector<fs::path>& candidates) {
  for (const fs::path& path : candidates) {
    std::error_code fault;
    if (fs::is_regular_file(path, fault)) return path.string();
  }
  return std::nullopt;
}

/// The word for an option that is on or off: "full" of checkpointing is on.
std::string word_for(const job::JobOption& option, const std::string& value) {
  if (option.place.type != job::OptionType::flag) return value;
  if (value == "full") return "true";
  return value == "none" ? "false" : value;
}

/// "lora 16 (lora_rank)".
std::string shown(const WantedOption& wanted) {
  constexpr std::size_t kLongest = 80;
  std::string text = wanted.option + " " + core::shortened(wanted.value, kLongest);
  if (!wanted.from.empty() && wanted.from != wanted.option) text += " (" + wanted.from + ")";
  return text;
}

/// Texts of a file, fit for people.
std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  std::string cut = core::shortened(text, kLongest);
  std::replace_if(
      cut.begin(), cut.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; }, '?');
  return cut;
}

std::string not_modelled(std::string_view text) { return printable(text) + " is not modelled"; }

std::string unknown_keys(const std::vector<std::string>& keys) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t index = 0; index < std::min(kMost, keys.size()); ++index) {
    text += (text.empty() ? "" : ", ") + printable(keys[index]);
  }
  if (keys.size() > kMost) text += " and " + std::to_string(keys.size() - kMost) + " more";
  return text;
}

core::Status take_companion(const std::string& path, core::Status (*take)(std::string_view, TrainerJob&),
                            TrainerJob& job) {
  const auto text = core::read_regular_file(path, kLargestTrainerFile);
  if (!text) return text.error();
  core::Status taken = take(*text, job);
  if (!taken) return std::move(taken).error().in_file(path);
  return taken;
}

/// What the samples are, where the trainer's file names another that says so.
void take_dataset_file(const fs::path& folder, TrainerJob& job) {
  if (job.dataset.empty()) return;
  const auto found = first_file({job.dataset, folder / job.dataset});
  const auto text =
      found ? core::read_regular_file(*found, kLargestTrainerFile) : core::Result<std::string>(std::string());
  const auto root = text && !text->empty() ? parse_settings(*text) : core::Result<Setting>(Setting());
  if (root) take_image_dataset(*root, job);
  if (job.find("image") == nullptr) {
    job.missing.push_back("the size of its images, which " + core::quoted(job.dataset) + " does (--image)");
  }
}

core::Status take_deepspeed_file(const fs::path& folder, TrainerJob& job) {
  if (job.deepspeed.empty()) return core::Done{};
  const auto found = first_file({job.deepspeed, folder / job.deepspeed});
  if (found) return take_companion(*found, &take_deepspeed, job);
  job.not_modelled.push_back("deepspeed " + job.deepspeed + ", a file that is not here");
  return core::Done{};
}

/// Of a file, or its folder.
core::Status take_named_adapter(const std::string& adapter, TrainerJob& job) {
  std::error_code fault;
  const fs::path path = fs::is_directory(adapter, fault) ? fs::path(adapter) / kAdapterName : fs::path(adapter);
  return take_companion(path.string(), &take_adapter, job);
}

core::Status take_adapter_file(const fs::path& folder, const std::string& adapter, TrainerJob& job) {
  if (!adapter.empty()) return take_named_adapter(adapter, job);
  if (job.format != training_arguments().name) return core::Done{};
  const auto beside = first_file({folder / kAdapterName});
  return beside ? take_companion(*beside, &take_adapter, job) : core::Status(core::Done{});
}

/// One process lays the blocks on its GPUs one after the other, as a pipeline's stages; a pass ends before the next
/// begins. What is trained whole has gradients by then, which stages of one pass do not show. Source: accelerate 1.2,
/// utils/modeling.py (get_balanced_memory, infer_auto_device_map).
core::Status lay_in_turn(std::int64_t gpus, job::JobRequest& request) {
  model::TrainingJob& training = request.training;
  const bool split = training.layout.tensor_parallel > 1 || training.layout.context_parallel > 1;
  if (split || !training.has_adapters()) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "one process on several GPUs (device_map) is modelled for adapters alone",
                       {}};
  }
  training.layout.pipeline_parallel = gpus;
  training.gradient_accumulation = 1;
  return core::Done{};
}

/// What the launcher of several processes asks of PyTorch's allocator.
void expand_segments(const TrainerJob& job, job::JobRequest& request) {
  const model::Layout& layout = request.training.layout;
  const bool several = layout.data_parallel > 1 || layout.tensor_parallel > 1 || layout.pipeline_parallel > 1 ||
                       layout.context_parallel > 1;
  const bool open = !job::is_given(*job::find_option("alloc_conf"), request) && request.alloc_conf.empty();
  if (job.expands_segments && several && open) request.alloc_conf = "expandable_segments:True";
}

}  // namespace

std::span<const TrainerFormat* const> trainer_formats() {
  // LLaMA-Factory's files, axolotl's and ms-swift's hold TrainingArguments as well, so these come last.
  // Words of diffusers' and kohya's scripts are told by the script, so these come first.
  static const std::array<const TrainerFormat*, 16> kAll = {
      &diffusers_scripts(), &sd_scripts(),  &diffsynth(),      &simpletuner(),
      &ai_toolkit(),        &one_trainer(), &diffusion_pipe(), &finetrainers(),
      &llama_factory(),     &axolotl(),     &megatron_lm(),    &ms_swift(),
      &torchtune(),         &torchtitan(),  &deepspeed(),      &training_arguments(),
  };
  return kAll;
}

core::Result<TrainerJob> parse_trainer_job(std::string_view text) {
  const auto root = parse_settings(text);
  if (!root) return root.error();
  std::string names;
  for (const TrainerFormat* format : trainer_formats()) {
    if (format->sniff(*root)) {
      TrainerJob job;
      job.format = format->name;
      read_into(*format, *root, job);
      return job;
    }
    if (format->description.empty()) continue;
    names += (names.empty() ? "" : ", ") + std::string(format->description);
  }
  const char* const hint =
      peft_adapter().sniff(*root) ? "it is an adapter's config: give it as `adapter`, beside a trainer's file; " : "";
  return core::Error{core::ErrorCode::unknown_format,
                     "it is not a trainer's file that gpumem knows by its keys; " + (hint + ("known are: " + names)),
                     {}};
}

core::Status take_adapter(std::string_view text, TrainerJob& job) {
  const auto root = parse_settings(text);
  if (!root) return root.error();
  if (!peft_adapter().sniff(*root)) {
    return core::Error{core::ErrorCode::unknown_format, "is not an adapter_config.json: it has no peft_type", {}};
  }
  read_into(peft_adapter(), *root, job);
  return core::Done{};
}

core::Status take_deepspeed(std::string_view text, TrainerJob& job) {
  const auto root = parse_settings(text);
  if (!root) return root.error();
  read_into(deepspeed(), *root, job);
  return core::Done{};
}

void keep_masters(TrainerJob& job) {
  const WantedOption* const precision = job.find("precision");
  if (precision == nullptr) return;
  const bool half = precision->value == "amp-fp16";
  if (!half && precision->value != "amp-bf16" && precision->value != "bf16") return;
  const Setting none{Setting::Kind::object, {}, {}, {}, 0};
  TrainerReading from(none, job);
  from.want("precision", half ? "fp16-mixed" : "bf16-mixed", "");
  const bool adapts = job.find("lora") != nullptr && job.find("quantize") == nullptr;
  if (adapts && job.find("base_dtype") == nullptr) from.want("base_dtype", half ? "fp16" : "bf16", "");
}

core::Result<TrainerJob> read_trainer_job(const std::string& path, const std::string& adapter) {
  const auto text = core::read_regular_file(path, kLargestTrainerFile);
  if (!text) return text.error();
  auto job = parse_trainer_job(*text);
  if (!job) return std::move(job).error().in_file(path);
  const fs::path folder = fs::path(path).parent_path();
  if (core::Status taken = take_deepspeed_file(folder, *job); !taken) return taken.error();
  // "auto" in DeepSpeed's file is what the trainer says, with DeepSpeed's masters.
  const WantedOption* const sharding = job->find("sharding");
  if (sharding != nullptr && sharding->value.starts_with("zero-")) keep_masters(*job);
  take_dataset_file(folder, *job);
  if (core::Status taken = take_adapter_file(folder, adapter, *job); !taken) return taken.error();
  return job;
}

core::Result<TrainerJob> read_adapter_job(const std::string& adapter) {
  TrainerJob job;
  job.format = peft_adapter().name;
  if (core::Status taken = take_named_adapter(adapter, job); !taken) return taken.error();
  return job;
}

core::Result<std::vector<std::string>> apply(const TrainerJob& job, job::JobRequest& request) {
  if (!job.unlike.empty()) {
    return core::Error{core::ErrorCode::invalid_argument,
                       printable(job.unlike) + " is not modelled, and no other job takes the same memory",
                       {}};
  }
  if (job.wrong) return *job.wrong;
  if (!job.post_training.empty()) {
    return core::Error{core::ErrorCode::invalid_argument,
                       printable(job.post_training) +
                           ": it is post-training, of which `gpumem posttrain --config` counts all models and phases",
                       {}};
  }
  std::vector<std::string> notes;
  for (const WantedOption& wanted : job.options) {
    const job::JobOption* const option = job::find_option(wanted.option);
    if (option == nullptr) {
      notes.push_back(not_modelled(shown(wanted)));
      continue;
    }
    if (job::is_given(*option, request)) continue;
    const core::Status taken = job::set_option_text(*option, request, word_for(*option, wanted.value));
    if (taken) continue;
    if (option->place.type == job::OptionType::whole_number) {
      return core::Error{
          core::ErrorCode::malformed_input, taken.error().message, {{}, wanted.line, printable(wanted.from)}};
    }
    notes.push_back(not_modelled(shown(wanted)));
  }
  expand_segments(job, request);
  for (const std::string& text : job.not_modelled) notes.push_back(not_modelled(text));
  if (!job.unknown.empty()) notes.push_back("gpumem does not know its keys " + unknown_keys(job.unknown));
  if (request.training.strict && !notes.empty()) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "`strict` refuses the settings: " + core::listed(notes) + "; leave them out, or `strict`",
                       {}};
  }
  for (const std::string& text : job.missing) notes.push_back("the file does not say " + text);
  return notes;
}

core::Status spread(const TrainerJob& job, std::int64_t gpus, job::JobRequest& request) {
  model::Layout& layout = request.training.layout;
  if (job.one_process && gpus > 1) return lay_in_turn(gpus, request);
  const std::int64_t one_model = layout.tensor_parallel * layout.pipeline_parallel * layout.context_parallel;
  if (gpus < 1 || one_model < 1 || gpus % one_model != 0) {
    return core::Error{
        core::ErrorCode::invalid_argument,
        "its layout takes " + std::to_string(one_model) + " GPUs, which do not divide " + std::to_string(gpus),
        {}};
  }
  const auto is_open = [&](std::string_view name) { return !job::is_given(*job::find_option(name), request); };
  if (is_open("data_parallel")) layout.data_parallel = gpus / one_model;
  if (layout.data_parallel > 1 && layout.sharding == model::Sharding()) layout.sharding = {model::Shardings::ddp, 0};
  if (job.global_batch > 0 && request.training.batch_size > 0 && is_open("accumulate")) {
    const std::int64_t pass = request.training.batch_size * layout.data_parallel;
    request.training.gradient_accumulation = std::max<std::int64_t>(1, job.global_batch / pass);
  }
  expand_segments(job, request);
  return core::Done{};
}

core::Result<std::string> find_model(const TrainerJob& job, const std::string& trainer_file) {
  constexpr const char* kRemedy = "name its config.json, or its folder, before the options";
  if (job.model.empty()) {
    // A ControlNet's config stands for the model.
    const auto part = std::ranges::find_if(
        job.missing, [](const std::string& text) { return text.find("config.json") != std::string::npos; });
    const std::string which = part == job.missing.end() ? "" : " (" + *part + ")";
    return core::Error{core::ErrorCode::missing_information,
                       "the file names no model" + which + "; " + kRemedy,
                       {trainer_file, 0, {}}};
  }
  const fs::path beside = fs::path(trainer_file).parent_path() / job.model;
  const auto found = first_file({job.model, fs::path(job.model) / "config.json", beside, beside / "config.json"});
  const bool weights = found && found->ends_with(".safetensors");
  if (found && !weights) return *found;
  // A diffusers folder is read as a whole.
  const auto index = first_file({fs::path(job.model) / "model_index.json", beside / "model_index.json"});
  if (index) return fs::path(*index).parent_path().string();
  return core::Error{core::ErrorCode::missing_information,
                     "the model " + core::quoted(job.model) + " is not here; " + kRemedy,
                     {trainer_file, 0, {}}};
}

std::optional<std::string> model_by_folder(std::string_view path) {
  const auto strip = [&](std::string_view ending) {
    if (path.ends_with(ending)) path.remove_suffix(ending.size());
  };
  strip("/");
  strip("/original");  // where Meta's own checkpoint lies in a folder of Llama
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto published = summary::published_model(path.substr(slash + 1));
  return published ? std::optional<std::string>(published->name) : std::nullopt;
}

}  // namespace gpumem::trainer_files
