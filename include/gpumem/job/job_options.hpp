// JobRequest: all that a user asks for, option by option, in one value. job_from() makes a TrainingJob from it.
//
// The list of a job's options, one row each: names, type, default, choices, help, and the member of JobRequest that
// holds its value. Every front end is made from this list: the command line and its help, JSON, the C API, Python, the
// webhook's annotations, Slurm's plugin, the columns of measured runs, and what a report says about a job.
// Units: each row's help names them; JobRequest's are those of TrainingJob.
//
// An option that is added needs a row in impl/job_options_inl.hpp, a member of TrainingJob (or of JobRequest) for its
// value, and what the value does. Python's arguments and help are written from the rows (python_options_test.cpp).
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpumem/core/csv.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::job {

inline constexpr const char* kDefaultGpu = "a100-40gb";
/// The estimator that is used where none is named.
inline constexpr const char* kDefaultEstimator = "replay";

/// Which options were given, by their place in the list: a value may be given and be the default. Requests are compared
/// only by their values.
struct GivenOptions {
  std::bitset<96> bits = {};

  friend bool operator==(const GivenOptions& /*left*/, const GivenOptions& /*right*/) { return true; }
};

struct JobRequest {
  std::string summary = {};       ///< the model summary's path
  model::TrainingJob training{};  ///< without its graph; batch size 0: not given
  std::string gpu = kDefaultGpu;
  std::string estimator = kDefaultEstimator;
  std::string model = {};            ///< of learned estimators: a built-in model, or a folder; empty: their own
  std::string alloc_conf = {};       ///< as PYTORCH_CUDA_ALLOC_CONF
  std::string lengths = {};          ///< of a data set's samples (lengths.hpp): a file, or "512x40+2048"; empty: alike
  std::string lengths_options = {};  ///< "batching=sorted,steps=500"
  bool lenient = false;
  GivenOptions given{};

  friend bool operator==(const JobRequest&, const JobRequest&) = default;
};

enum class OptionType : std::uint8_t {
  flag,          ///< bool
  whole_number,  ///< std::int64_t, 1 or more
  fraction,      ///< double
  text,
  name_or_path,      ///< text: the name of something built in, or the path of a file or folder of the user's own
  choice,            ///< text: one of the row's choices; in one that ends in ":N", N is a whole number of 1 or more
  switch_or_choice,  ///< bool, or as text one of the row's choices: "checkpointing" and "checkpointing=every:2"
  dimensions,        ///< sizes; as text "3x224x224"
};

using Sizes = std::vector<std::int64_t>;
using OptionValue = std::variant<bool, std::int64_t, double, std::string, Sizes>;
using Names = std::vector<std::string_view>;

/// What an option is about: help texts list the options of a group together.
enum class OptionGroup : std::uint8_t { batch, training, saving_memory, fine_tuning, many_gpus, gpu, answer };

/// Where an option's value is kept.
struct OptionPlace {
  OptionType type;
  bool in_training;  ///< in the TrainingJob: it says how the model is trained, and a table of runs may have it
  /// Takes a value of the type's kind; `choice` and `dimensions` take text as well. False: there is no such choice, or
  /// the text is not of the form.
  bool (*set)(JobRequest& request, const OptionValue& value);
  /// Nothing: not given, and there is no default.
  std::optional<OptionValue> (*get)(const JobRequest& request);
  Names (*choices)() = nullptr;  ///< of a choice, or what a switch may be besides on and off
};

struct JobOption {
  std::string_view name;  ///< in JSON, in Python, as a column: "data_parallel"
  OptionGroup group;
  std::string_view flag;                         ///< on a command line, without its dashes: "data-parallel"
  std::array<std::string_view, 2> aliases = {};  ///< other names in JSON and tables; empty: none
  /// The placeholder of the value in a line of help: "N"; empty for an option without a value.
  std::string_view value = {};
  std::string_view help;  ///< what it says, in a few words; the choices follow
  /// What a report says about a job with another value than the default; "%" is the value.
  std::string_view remark = {};
  bool after_recording = false;  ///< it can be chosen after the step was recorded
  bool repeats = false;          ///< on a command line it may be given several times: commas part the values
  bool trains = true;            ///< it says how the job is trained; false: what is asked about it
  bool depends = false;          ///< not given, the loop or the model says what it is, so that no value of it is usual
  OptionPlace place;

  /// Whether this is one of its names in JSON and in tables.
  [[nodiscard]] bool is_named(std::string_view text) const;
};

/// All options, in the order of help texts and reports.
[[nodiscard]] std::span<const JobOption> job_options();

/// Whether it can be written without a value: a flag or a switch.
[[nodiscard]] constexpr bool stands_alone(OptionType type) {
  return type == OptionType::flag || type == OptionType::switch_or_choice;
}

/// By its name or an alias. Null: there is none.
[[nodiscard]] const JobOption* find_option(std::string_view name);
/// By its name on a command line, or as `name`. Null: there is none.
[[nodiscard]] const JobOption* find_flag(std::string_view flag);

/// Errors: invalid_argument, saying what the option takes.
[[nodiscard]] core::Status set_option(const JobOption& option, JobRequest& request, const OptionValue& value);
/// The same of a word: a flag is "true" or "false", a number has digits. Errors: malformed_input if the word is of
/// the wrong type, with what it must be; and those of set_option.
[[nodiscard]] core::Status set_option_text(const JobOption& option, JobRequest& request, std::string_view word);

[[nodiscard]] bool is_default(const JobOption& option, const JobRequest& request);
/// Whether set_option() has set it. `option` is one of job_options().
[[nodiscard]] bool is_given(const JobOption& option, const JobRequest& request);
/// Options at their defaults count as not given: for front ends that always pass all of them.
void forget_defaults(JobRequest& request);

// Input: an option of a job, or a value of one; a message that names options.
// Output: what people read of it: help, defaults, remarks of a report, a message with the options as a front end writes
// them.

/// Its heading: "Saving memory".
[[nodiscard]] std::string_view to_string(OptionGroup group);

/// "adam", "8", "true", "3x224x224".
[[nodiscard]] std::string to_text(const OptionValue& value);
/// Nothing: there is none, or the rest of the job says it.
[[nodiscard]] std::optional<OptionValue> default_value(const JobOption& option);
/// Empty where there is none.
[[nodiscard]] std::string default_text(const JobOption& option);

/// What a value must be: "must be of the form 3x224x224", or of a choice "choose one of sgd, adam".
[[nodiscard]] std::string expectation(const JobOption& option);
/// The help with the choices: "element types: fp32, amp-fp16".
[[nodiscard]] std::string help_text(const JobOption& option);
/// What a report says about the option's value: "8 passes a step"; empty for the default.
[[nodiscard]] std::string remark_on(const JobOption& option, const JobRequest& request);

/// How a front end writes an option: "--" "tensor-parallel" " " "2".
struct Spelling {
  std::string_view before;
  std::string_view between;
};
inline constexpr Spelling kCommandLine = {"--", " "};

/// Messages, warnings and help of the library name an option between backticks, with a value or without: "say
/// `tensor_parallel=2`". This writes it as the front end does: "say --tensor-parallel 2". What names no option stays.
[[nodiscard]] std::string spelled(std::string_view message, const Spelling& spelling);

// Input: the word that a user gives an option.
// Output: a value of the option's type, or nothing if the word is not one.
// Units: those of the option.

/// Whether accessors of an option of this type take the value.
[[nodiscard]] bool is_of_kind(OptionType type, const OptionValue& value);

/// The word as a value of this type; nothing if it is none.
[[nodiscard]] std::optional<OptionValue> value_of_word(OptionType type, std::string_view word);

/// The shortest text that is read as the same number: "0.05", "0".
[[nodiscard]] std::string fraction_text(double number);

// Input: a row of a table of jobs (CSV).
// Output: a JobRequest with what the cells say about how the job is trained. There is a column for each option that a
// TrainingJob holds, by its name or an alias (job_options.hpp).
// Units: those of the options.

/// An empty cell, or no such column: the request keeps what it has. Errors: malformed_input, naming line and column.
[[nodiscard]] core::Status take_option_cells(const core::CsvCells& cells, JobRequest& request);

// Input: what a user asks for, and a model.
// Output: the TrainingJob that it means.
// Units: those of TrainingJob.

/// The job that the request means for this model. Of a recording it takes what was not given: batch size, precision,
/// optimizer. Errors: those of model::validate; invalid_argument for an option that a recording fixes.
[[nodiscard]] core::Result<model::TrainingJob> job_from(const JobRequest& request,
                                                        std::shared_ptr<const model::ModelGraph> graph);

}  // namespace gpumem::job
