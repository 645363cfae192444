// Input: a trainer's file as a tree of settings.
// Output: TrainerJob, what it says about a training job: options of a job by their names (gpumem/job/job_options.hpp),
// the model, and what gpumem does not model. TrainerFormat is a format of such files. The formats read with
// TrainerReading: each key that a format asks for is known, and the others are reported.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/core/result.hpp"
#include "setting.hpp"

namespace gpumem::trainer_files {

/// An option of a job as the file has it.
struct WantedOption {
  std::string option;  ///< a name of job::job_options(), which may not be there
  std::string value;   ///< as a word; "full" and "none" of an option that is on or off
  std::string from;    ///< the key in the file; empty: the trainer's default
  std::int64_t line = 0;
};

/// What alone is trained: blocks of the model's largest stack of them, and modules beside them.
struct TrainedBlocks {
  std::int64_t count = 0;  ///< the last so many; below 0 the first; 0: the file says nothing of blocks
  bool and_rest = false;   ///< what is in no block is trained as well
  bool spread = false;     ///< the stack is cut into so many groups, and the last block of each is trained
  std::string modules;     ///< of each block, joined by ','; empty: all of it
  std::string others;      ///< modules elsewhere, by parts of their names, joined by ','
};

struct TrainerJob {
  std::string format;
  std::string model;        ///< a path, or a name on the hub; empty: the file names none
  std::string usual_model;  ///< a published one of the sizes that the program trains, for weights that no config tells
  std::string changed_fields;  ///< of the model's config, which the program changes: an object; or empty
  std::vector<WantedOption> options;
  std::vector<std::string> not_modelled;  ///< what changes memory: "neftune_noise_alpha 5"
  std::vector<std::string> missing;       ///< what the job depends on and such files do not say
  std::vector<std::string> unknown;       ///< keys that the format does not know
  std::string frozen_parts;          ///< modules that are not trained where the model has them: names, joined by ','
  std::string trained_parts;         ///< of a pipeline, trained besides its denoiser: TrainingJob::trained_parts
  std::string head;                  ///< what takes the place of the language model's head: how its class ends
  std::optional<bool> holds_speech;  ///< of a model that speaks: what makes it, or the thinker alone; else as named
  std::string speech_key;            ///< the setting that says so
  std::string megatron_fields;    ///< Megatron runs its own form of the model: its arguments beside the sizes; or empty
  TrainedBlocks trained_blocks;   ///< where only some blocks are trained
  std::string unlike;             ///< what makes the job unlike any that the options say; empty: nothing does
  std::string deepspeed;          ///< the path of a DeepSpeed config that the file names
  std::string dataset;            ///< the path of a file that says how large the samples are
  bool one_process = false;       ///< several GPUs would share the layers of one model (device_map)
  bool expands_segments = false;  ///< its launcher of several processes switches PyTorch's expandable segments on
  bool shorter = false;           ///< samples are neither packed nor padded to the length, which is the most they have
  std::string post_training;  ///< what says that it learns preferences, rewards, or from what it generates: "rl dpo"
  std::optional<core::Error> wrong;  ///< a setting that decides memory has a word that its program does not take
  std::int64_t global_batch = 0;  ///< samples a step on all GPUs, in place of passes a step; 0: the file does not say

  [[nodiscard]] const WantedOption* find(std::string_view option) const;
};

class TrainerReading;

/// Keys of what a command says beside its settings; no program has such keys: the script ("train_network.py"), and the
/// number of GPUs.
inline constexpr std::string_view kScriptKey = "script:";
inline constexpr std::string_view kGpusKey = "gpus:";

struct TrainerFormat {
  std::string_view name;
  std::string_view description;  ///< for people: what such a file is; empty: it is read of a command's words alone
  bool (*sniff)(const Setting& root);
  void (*read)(TrainerReading& from);
};

/// The published model of a row whose key the text begins with; empty: none has it. The first row that fits counts.
struct UsualModel {
  std::string_view key;
  std::string_view model;
};
[[nodiscard]] std::string usual_model(std::span<const UsualModel> rows, std::string_view text);

/// What the settings say, over what the job already says.
void read_into(const TrainerFormat& format, const Setting& root, TrainerJob& job);

/// read() of settings that were made of `from`'s, whose own keys are then known.
void read_made(TrainerReading& from, const Setting& made, void (*read)(TrainerReading& from));

/// Whether the name is one of these.
[[nodiscard]] bool is_among(std::span<const std::string_view> names, std::string_view name);

/// Whether a key is one of these; one that ends in '*' means all that begin so.
[[nodiscard]] bool is_listed(std::span<const std::string_view> keys, std::string_view key);

/// Each of the names that a text joins by ','.
template <typename Take>
void each_name(std::string_view names, const Take& take) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    if (end > 0) take(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

class TrainerReading {
 public:
  TrainerReading(const Setting& root, TrainerJob& job) : root_(root), job_(job) {}

  [[nodiscard]] TrainerJob& job() { return job_; }
  /// All settings, for a format that reads them by a list of its own, and then says that it knows a key.
  [[nodiscard]] const Setting& root() const { return root_; }
  void know(std::string_view key) { known_.emplace(key); }

  /// The setting at "optimizer.params.lr"; null where it is missing, null or "auto". Its first key is then known.
  [[nodiscard]] const Setting* at(std::string_view path);
  /// As a word: items of a list are joined by '+'. Nothing for objects, and where at() is null.
  [[nodiscard]] std::optional<std::string> word(std::string_view path);
  /// Whether it is true.
  [[nodiscard]] bool on(std::string_view path);
  [[nodiscard]] std::optional<std::int64_t> whole(std::string_view path);
  /// Whether it is left to the trainer.
  [[nodiscard]] bool is_auto(std::string_view path) const;

  /// The option has this value. What is wanted last counts.
  void want(std::string_view option, std::string value, std::string_view from = {});
  /// The option has the value of the setting, if there is one.
  void take(std::string_view path, std::string_view option);
  /// One of the words that the setting takes, with a space between them; `usual` where it is missing. Any other word is
  /// wrong, and an error of the job.
  std::string choice(std::string_view path, std::string_view known, std::string_view usual);
  /// The same of a word that the setting has after all.
  void check(std::string_view path, std::string_view word, std::string_view known);

  /// Names the setting, unless it is missing, false, 0, an empty text or list, or the usual word.
  void not_modelled(std::string_view path, std::string_view usual = {});
  /// Keys that do not change memory; one that ends in '*' means all that begin so. Of an object that was asked for
  /// single keys these are in a list of their own.
  void without_effect(std::span<const std::string_view> keys);
  /// The same, where a key that is listed by its beginning alone must be one of these words, with a space behind each:
  /// the names of all arguments that the program has.
  void without_effect(std::span<const std::string_view> keys, std::string_view arguments);
  /// The same of keys in the object at this path.
  void without_effect_in(std::string_view section, std::span<const std::string_view> keys);
  /// Notes the keys that nobody asked for, and the known key that is nearest to each. In an object of which single keys
  /// were asked for, these are the known ones.
  void finish();

 private:
  void finish_in(const Setting& section, const std::string& path);
  void name(std::string_view section, std::span<const std::string_view> keys);
  [[nodiscard]] std::string nearest_in(std::string_view section, std::string_view key) const;

  const Setting& root_;
  TrainerJob& job_;
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> parted_;  ///< objects of which single keys were asked for
  /// Keys that the format lists, and the object that has them: what a misspelt one may be meant to be.
  std::vector<std::pair<std::string, std::string_view>> named_;
};

}  // namespace gpumem::trainer_files
