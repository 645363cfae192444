#pragma once

#include "gpumem/job/job_options.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/job/lengths.hpp"
#include "gpumem/job/option_places.hpp"
#include "gpumem/model/step_recording.hpp"

namespace gpumem::job {

GPUMEM_INLINE bool JobOption::is_named(std::string_view text) const {
  return text == name || (!text.empty() && std::find(aliases.begin(), aliases.end(), text) != aliases.end());
}

GPUMEM_INLINE const JobOption* find_option(std::string_view name) {
  const auto named = [&](const JobOption& option) { return option.is_named(name); };
  const auto found = std::ranges::find_if(job_options(), named);
  return found == job_options().end() ? nullptr : &*found;
}

GPUMEM_INLINE const JobOption* find_flag(std::string_view flag) {
  std::string name(flag);
  std::replace(name.begin(), name.end(), '-', '_');
  const auto named = [&](const JobOption& option) { return option.flag == flag || option.is_named(name); };
  const auto found = std::ranges::find_if(job_options(), named);
  return found == job_options().end() ? nullptr : &*found;
}

namespace option_texts_detail {

/// Of what is not a job's estimate: `gpumem plan`, `request`, `evaluate`, a trainer's file, the recorder, and
/// `gpumem posttrain`.
inline constexpr std::string_view kOthers[] = {"global_batch",
                                               "gpus",
                                               "gpus_per_node",
                                               "network_gbps",
                                               "no_overlap",
                                               "show",
                                               "framework",
                                               "summaries",
                                               "adapter",
                                               "batch_arg",
                                               "sequence_arg",
                                               "algorithm",
                                               "program",
                                               "prompt_length",
                                               "completion_length",
                                               "explain",
                                               "teacher_model",
                                               "at_most_tensor_parallel",
                                               "at_most_context_parallel",
                                               "at_most_pipeline_parallel",
                                               "at_most_expert_parallel"};

/// Without its dashes; empty: there is no option of this name.
GPUMEM_INLINE std::string flag_of(std::string_view name) {
  if (const JobOption* option = find_option(name); option != nullptr) return std::string(option->flag);
  if (std::find(std::begin(kOthers), std::end(kOthers), name) == std::end(kOthers)) return {};
  std::string flag(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

}  // namespace option_texts_detail

GPUMEM_INLINE std::string spelled(std::string_view message, const Spelling& spelling) {
  std::string text;
  std::size_t at = 0;
  while (at < message.size()) {
    const std::size_t open = message.find('`', at);
    const std::size_t close = open == std::string_view::npos ? open : message.find('`', open + 1);
    if (close == std::string_view::npos) break;
    const std::string_view named = message.substr(open + 1, close - open - 1);
    const std::size_t equals = std::min(named.find('='), named.size());
    const std::string flag = option_texts_detail::flag_of(named.substr(0, equals));
    text += message.substr(at, open - at);
    at = close;  // a word that names nothing may end where another begins
    if (flag.empty()) {
      text += message.substr(open, close - open);
      continue;
    }
    const JobOption* option = find_option(named.substr(0, equals));
    const bool joined = option != nullptr && option->place.type == OptionType::switch_or_choice;
    text += std::string(spelling.before) + flag;
    if (equals < named.size()) {
      text += (joined ? std::string_view("=") : spelling.between);
      text += named.substr(equals + 1);
    }
    at = close + 1;
  }
  return text + std::string(message.substr(at));
}

GPUMEM_INLINE std::string_view to_string(OptionGroup group) {
  switch (group) {
    case OptionGroup::batch: return "The batch";
    case OptionGroup::training: return "How it trains";
    case OptionGroup::saving_memory: return "Saving memory";
    case OptionGroup::fine_tuning: return "Fine-tuning";
    case OptionGroup::many_gpus: return "Many GPUs";
    case OptionGroup::gpu: return "The GPU and its software";
    case OptionGroup::answer: return "The answer";
  }
  return "";
}

GPUMEM_INLINE std::string to_text(const OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* fraction = std::get_if<double>(&value)) return fraction_text(*fraction);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::string text;
  for (const std::int64_t size : std::get<Sizes>(value)) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

GPUMEM_INLINE std::optional<OptionValue> default_value(const JobOption& option) {
  return option.depends ? std::nullopt : option.place.get(JobRequest());
}

GPUMEM_INLINE std::string default_text(const JobOption& option) {
  const auto value = default_value(option);
  return value ? to_text(*value) : std::string();
}

GPUMEM_INLINE std::string expectation(const JobOption& option) {
  switch (option.place.type) {
    case OptionType::flag: return "must be \"true\" or \"false\"";
    case OptionType::whole_number: return "must be a whole number";
    case OptionType::fraction: return "must be a number";
    case OptionType::dimensions:
      return std::string("must be of the form ") + (option.name == "image" ? "1024x768" : "3x224x224");
    case OptionType::text:
    case OptionType::name_or_path: return "must be a text";
    case OptionType::choice:
    case OptionType::switch_or_choice: break;
  }
  std::string names;
  for (const std::string_view name : option.place.choices()) names += (names.empty() ? "" : ", ") + std::string(name);
  const bool numbered = option.help.find("number") != std::string_view::npos && option.help.ends_with("or one of");
  return "choose one of " + names + (numbered ? ", or give a number" : "");
}

GPUMEM_INLINE std::string help_text(const JobOption& option) {
  std::string text(option.help);
  if (option.place.choices == nullptr) return text;
  std::string separator = ": ";
  for (const std::string_view name : option.place.choices()) {
    text += separator + std::string(name);
    separator = ", ";
  }
  return text;
}

GPUMEM_INLINE std::string remark_on(const JobOption& option, const JobRequest& request) {
  if (option.remark.empty() || is_default(option, request)) return {};
  const auto value = option.place.get(request);
  std::string text(option.remark);
  const std::size_t at = text.find('%');
  if (option.place.type == OptionType::switch_or_choice && value && !std::holds_alternative<bool>(*value)) {
    text += " " + to_text(*value);
  }
  if (at == std::string::npos || !value) return text;
  const auto* number = std::get_if<std::int64_t>(&*value);
  if (number != nullptr && *number == 1) text = job_options_detail::of_one(std::move(text), at);
  return text.replace(at, 1, number != nullptr ? core::with_separators(*number) : to_text(*value));
}

GPUMEM_INLINE bool is_of_kind(OptionType type, const OptionValue& value) {
  switch (type) {
    case OptionType::flag: return std::holds_alternative<bool>(value);
    case OptionType::whole_number: return std::holds_alternative<std::int64_t>(value);
    case OptionType::switch_or_choice:
      return std::holds_alternative<bool>(value) || std::holds_alternative<std::string>(value);
    case OptionType::fraction: return std::holds_alternative<double>(value);
    case OptionType::dimensions:
      return std::holds_alternative<Sizes>(value) || std::holds_alternative<std::string>(value);
    case OptionType::text:
    case OptionType::name_or_path:
    case OptionType::choice: return std::holds_alternative<std::string>(value);
  }
  return false;
}

GPUMEM_INLINE std::string fraction_text(double number) {
  std::array<char, 32> text{};
  const auto [stop, fault] = std::to_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() ? std::string(text.data(), stop) : std::string();
}

GPUMEM_INLINE std::optional<OptionValue> value_of_word(OptionType type, std::string_view word) {
  if (type == OptionType::flag) {
    if (word != "true" && word != "false") return std::nullopt;
    return OptionValue(word == "true");
  }
  if (type == OptionType::switch_or_choice && (word == "true" || word == "false")) return OptionValue(word == "true");
  if (type == OptionType::fraction) {
    const auto number = core::parse_number(word);
    return number ? std::optional(OptionValue(*number)) : std::nullopt;
  }
  if (type != OptionType::whole_number) return OptionValue(std::string(word));
  const bool negative = word.starts_with('-');
  std::size_t at = negative ? 1 : 0;
  const auto number = read_whole(word, at);
  if (!number || at != word.size()) return std::nullopt;
  return OptionValue(negative ? -*number : *number);
}

namespace option_columns_detail {

template <typename Value>
core::Status take(const core::Result<std::optional<Value>>& cell, const JobOption& option, JobRequest& request) {
  if (!cell) return cell.error();
  return *cell ? set_option(option, request, OptionValue(**cell)) : core::Status(core::Done{});
}

/// The cell of a column that may be empty.
GPUMEM_INLINE core::Status take_cell(const core::CsvCells& cells, std::string_view column, const JobOption& option,
                                     JobRequest& request) {
  const std::string_view text = cells.text(column);
  if (text.empty()) return core::Done{};
  if (option.place.type == OptionType::flag) return take(cells.flag(column), option, request);
  if (option.place.type == OptionType::whole_number) return take(cells.whole(column), option, request);
  if (option.place.type == OptionType::switch_or_choice) {
    const auto on = cells.flag(column);  // "yes" and "no" too
    if (on && *on) return set_option(option, request, OptionValue(**on));
  }
  if (option.place.type == OptionType::fraction) {
    return set_option_text(option, request, text)
               ? core::Status(core::Done{})
               : cells.malformed(std::string(column) + " is " + core::quoted(text) + "; it " + expectation(option));
  }
  if (option.place.set(request, OptionValue(std::string(text)))) return core::Done{};
  const std::string wanted = (option.place.choices != nullptr ? "" : "it ") + expectation(option);
  return cells.malformed(std::string(column) + " is " + core::quoted(text) + "; " + wanted);
}

}  // namespace option_columns_detail

GPUMEM_INLINE core::Status take_option_cells(const core::CsvCells& cells, JobRequest& request) {
  for (const JobOption& option : job_options()) {
    if (!option.place.in_training) continue;
    core::Status taken = option_columns_detail::take_cell(cells, option.name, option, request);
    for (const std::string_view alias : option.aliases) {
      if (taken && !alias.empty()) taken = option_columns_detail::take_cell(cells, alias, option, request);
    }
    if (!taken) return taken;
  }
  return core::Done{};
}

namespace job_from_detail {

GPUMEM_INLINE core::Error refused(const model::ModelGraph& graph, std::string message) {
  return {core::ErrorCode::invalid_argument, std::move(message), {graph.file(), 0, {}}};
}

/// What is given stays; all else is as it was recorded.
GPUMEM_INLINE core::Status take_recorded(const JobRequest& request, model::TrainingJob& training) {
  const model::ModelGraph& graph = *training.graph;
  const model::StepRecording& recording = *graph.recording();
  for (const JobOption& option : job_options()) {
    if (!option.place.in_training || option.after_recording || !is_given(option, request)) continue;
    // record::check() compares a precision that has a name.
    if (option.name == "precision" && !recording.precision.empty()) continue;
    return refused(graph, model::fixed_by_recording(option.name));
  }
  if (!recording.follows_batch()) {
    const std::int64_t recorded = recording.recorded(0).value_or(1);
    if (is_given(*find_option("batch_size"), request) && training.batch_size != recorded) {
      return refused(graph, "the recording was made at one batch size; record with `batch_arg` to choose another");
    }
    training.batch_size = recorded;
  } else if (training.batch_size == 0) {
    training.batch_size = recording.recorded(0).value_or(0);
  }
  const bool benchmarks = recording.setting(model::kRecordedBenchmark) != nullptr;
  if (benchmarks && !is_given(*find_option("cudnn_benchmark"), request)) training.cudnn_benchmark = true;
  const auto precision = model::value_of(model::kPrecisions, recording.precision);
  if (precision && !is_given(*find_option("precision"), request)) training.precision = *precision;
  const auto optimizer = model::value_of(model::kOptimizers, recording.optimizer);
  const bool named = is_given(*find_option("optimizer"), request);
  if (!named && optimizer) training.optimizer = *optimizer;
  // Its form is not written down: one that is asked for is made again.
  const bool formed = is_given(*find_option("foreach"), request) || is_given(*find_option("fused"), request);
  if (formed && !named && !optimizer) {
    return refused(graph, std::string(model::kUnknownRecordedOptimizer));
  }
  training.replaces_optimizer = formed || (named && optimizer != training.optimizer);
  return core::Done{};
}

/// The file's text, or "512x40+2048" as lines.
GPUMEM_INLINE core::Result<std::string> text_of_lengths(const std::string& given) {
  constexpr std::size_t kLargest = std::size_t{1} << 26;
  if (given.find_first_not_of("0123456789x+") == std::string::npos) {
    std::string lines = given;
    std::replace(lines.begin(), lines.end(), '+', '\n');
    return lines;
  }
  core::Result<std::string> text = core::read_regular_file(given, kLargest);
  if (!text) {
    return core::Error{text.error().code,
                       "the lengths " + core::quoted(given) + " cannot be read: " + text.error().message,
                       text.error().place};
  }
  return text;
}

/// Whether the model is a net of images in which no layer could read tokens, whatever its input is called. A layer of
/// an unknown op may.
GPUMEM_INLINE bool has_no_tokens(const model::ModelGraph& graph) {
  using model::OpFamily;
  if (graph.recording() != nullptr || !graph.config().empty() || graph.reads_tokens()) return false;
  bool convolves = false;
  for (const model::Layer& layer : graph.layers()) {
    const model::OpTraits* op = graph.op_traits(layer);
    const OpFamily family = op == nullptr ? OpFamily::attention : OpFamily(op->family);
    const bool of_tokens =
        family == OpFamily::embedding || family == OpFamily::attention || family == OpFamily::recurrent;
    if (of_tokens || (family == OpFamily::conv && op->name.find("1d") != std::string_view::npos)) return false;
    convolves = convolves || family == OpFamily::conv;
  }
  return convolves;
}

/// The length of the longest batch takes the place of the length of all of them.
GPUMEM_INLINE core::Status take_lengths(const JobRequest& request, model::TrainingJob& training) {
  const auto options = parse_length_options(request.lengths_options);
  if (!options) return options.error();
  if (request.lengths.empty()) {
    if (request.lengths_options.empty()) return core::Done{};
    return core::Error{core::ErrorCode::invalid_argument,
                       "settings of lengths are given, and no lengths; say `lengths=512x40+2048`, or a file",
                       {}};
  }
  const auto text = text_of_lengths(request.lengths);
  if (!text) return text.error();
  const auto lengths = parse_lengths(*text);
  if (!lengths) return core::Error(lengths.error()).in_file(request.lengths);
  if (training.graph != nullptr && !training.graph->reads_tokens()) {
    return refused(*training.graph, "the model reads no tokens; leave `lengths` out");
  }
  const model::Layout& layout = training.layout;
  const core::Checked passes =
      core::Checked(std::max<std::int64_t>(training.gradient_accumulation, 1)) * core::Checked(layout.data_parallel);
  const Draws draws{std::max<std::int64_t>(training.batch_size, 1),
                    std::max<std::int64_t>(passes.value().value_or(1), 1)};
  const auto found = longest_batch(*lengths, *options, draws, training.sequence_length);
  if (!found) return found.error();
  training.sequence_length = found->peak;
  if (!is_given(*find_option("padding"), request)) training.padding = training.padding || found->padded;
  training.notes.push_back(
      {"lengths", found->usual == found->peak && !found->padded
                      ? "all batches have " + std::to_string(found->peak) + " tokens a sample"
                      : "the longest batch of " + std::to_string(found->steps) +
                            (found->steps == 1 ? " step has " : " steps has ") + std::to_string(found->peak) +
                            " tokens a sample or fewer in " + fraction_text(options->percentile) +
                            " % of runs; half of the batches have at most " + std::to_string(found->usual) +
                            ", 99 % at most " + std::to_string(found->nearly_all) +
                            "; what the allocator keeps of other lengths is not counted"});
  return core::Done{};
}

}  // namespace job_from_detail

namespace job_from_detail {

/// A model whose source cuts it into more stages than the pipeline has ranks: each rank runs several in turn.
GPUMEM_INLINE void take_stages(model::TrainingJob& training) {
  const std::int64_t stages = training.graph == nullptr ? 1 : training.graph->run_settings().virtual_stages;
  model::Layout& layout = training.layout;
  const bool said = layout.virtual_stages > 1 || !layout.pipeline_layers.empty();
  if (stages == 1 || said || layout.pipeline_parallel == 1) return;
  layout.virtual_stages = stages;
  layout.schedule = model::Schedule::interleaved;
}

/// A model that is younger than the usual release of transformers is trained with a later one. Programs with models of
/// their own have none of its calls.
GPUMEM_INLINE void take_release(const JobRequest& request, model::TrainingJob& training) {
  if (training.graph == nullptr || is_given(*find_option("transformers"), request)) return;
  const std::optional<model::Transformers> oldest = training.graph->run_settings().transformers;
  if (!oldest || *oldest <= training.transformers || !model::row_of(training.loop).caches) return;
  training.transformers = *oldest;
  training.notes.push_back(
      {"transformers", "calls are those of transformers " + std::string(model::name_of(model::kTransformers, *oldest)) +
                           ", from the age of the model or the version in its config; `transformers` names another"});
}

/// Weights of a checkpoint are float32 where no type is said, which transformers 5 no longer does.
/// Source: transformers 5.0, modeling_utils.py: from_pretrained(), whose dtype is "auto".
GPUMEM_INLINE void note_precision(const JobRequest& request, model::TrainingJob& training) {
  const model::ModelGraph* const graph = training.graph.get();
  if (graph == nullptr || !model::row_of(training.loop).caches) return;
  // Before its layers are connected, a printed tree does not tell what it reads.
  const bool of_transformers =
      graph->run_settings().transformers || (graph->reads_tokens() && !graph->architecture().empty());
  const bool said = is_given(*find_option("precision"), request) || training.precision != model::Precision::fp32 ||
                    training.base_dtype != model::BaseType::precision;
  if (!of_transformers || said || training.transformers < model::Transformers::v5_0) return;
  training.notes.push_back({"precision",
                            "weights and activations are float32, as no `precision` is given; from_pretrained() of "
                            "transformers 5 takes the checkpoint's type, mostly bfloat16: `precision=bf16`"});
}

}  // namespace job_from_detail

GPUMEM_INLINE core::Result<model::TrainingJob> job_from(const JobRequest& request,
                                                        std::shared_ptr<const model::ModelGraph> graph) {
  model::TrainingJob training = request.training;
  training.graph = std::move(graph);
  const bool own_place = training.loop == model::Loop::script || is_given(*find_option("zero_grad"), request);
  if (!own_place) training.zero_grad = model::row_of(training.loop).zero_grad;
  if (!is_given(*find_option("padding"), request)) training.padding = model::row_of(training.loop).pads;
  if (training.graph != nullptr && training.graph->recording() != nullptr) {
    if (const core::Status taken = job_from_detail::take_recorded(request, training); !taken) return taken.error();
  }
  const bool long_images = training.sequence_length.value_or(0) > 0 && is_given(*find_option("seq_length"), request) &&
                           training.graph != nullptr && job_from_detail::has_no_tokens(*training.graph);
  if (long_images)
    return job_from_detail::refused(*training.graph, "the model reads no tokens; leave `seq_length` out");
  if (const core::Status taken = job_from_detail::take_lengths(request, training); !taken) return taken.error();
  job_from_detail::take_stages(training);
  job_from_detail::take_release(request, training);
  job_from_detail::note_precision(request, training);
  const core::Status valid = model::validate(training);
  if (!valid) return valid.error();
  return training;
}

namespace option_values_detail {

GPUMEM_INLINE core::Error refused(const JobOption& option, std::string_view text) {
  if (option.place.choices != nullptr) {
    return {core::ErrorCode::invalid_argument,
            "there is no " + std::string(option.name) + " " + core::quoted(text) +
                core::did_you_mean(text, option.place.choices()) + "; " + expectation(option),
            {}};
  }
  return {core::ErrorCode::invalid_argument,
          "the " + std::string(option.name) + " " + core::quoted(text) + " is not of the form " +
              (option.name == "image" ? "1024x768" : "3x224x224"),
          {}};
}

/// `option` is a row of the list.
GPUMEM_INLINE std::size_t bit_of(const JobOption& option) {
  return static_cast<std::size_t>(&option - job_options().data());
}

}  // namespace option_values_detail

GPUMEM_INLINE core::Status set_option(const JobOption& option, JobRequest& request, const OptionValue& value) {
  if (!is_of_kind(option.place.type, value)) {
    return core::Error{
        core::ErrorCode::invalid_argument,
        "the " + std::string(option.name) + " " + expectation(option) + ", not " + core::quoted(to_text(value)),
        {}};
  }
  if (option.place.set(request, value)) {
    request.given.bits.set(option_values_detail::bit_of(option));
    return core::Done{};
  }
  return option_values_detail::refused(option, to_text(value));
}

GPUMEM_INLINE core::Status set_option_text(const JobOption& option, JobRequest& request, std::string_view word) {
  if (const auto value = value_of_word(option.place.type, word)) return set_option(option, request, *value);
  const std::string wanted = expectation(option) + ", not ";
  return core::Error{core::ErrorCode::malformed_input, wanted + core::quoted(word), {}};
}

GPUMEM_INLINE bool is_given(const JobOption& option, const JobRequest& request) {
  return request.given.bits.test(option_values_detail::bit_of(option));
}

GPUMEM_INLINE void forget_defaults(JobRequest& request) {
  for (const JobOption& option : job_options()) {
    if (is_default(option, request)) request.given.bits.reset(option_values_detail::bit_of(option));
  }
}

GPUMEM_INLINE bool is_default(const JobOption& option, const JobRequest& request) {
  return option.place.get(request) == option.place.get(JobRequest());
}

}  // namespace gpumem::job
