#include "job_struct.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <variant>
#include <vector>

#include "gpumem/all.hpp"
#include "job_json.hpp"
#include "sized.hpp"

namespace gpumem::capi {

namespace {

using job::JobOption;
using job::JobRequest;
using job::OptionType;
using job::OptionValue;

/// The field of the struct that holds an option: a text, a number, or whether a flag is unlike its default.
struct StructField {
  std::string_view option;
  std::variant<const char * gpumem_job::*, std::int64_t gpumem_job::*, std::int32_t gpumem_job::*> place;
};

constexpr std::array<StructField, 18> kFields = {{{"batch_size", &gpumem_job::batch_size},
                                                  {"seq_length", &gpumem_job::seq_length},
                                                  {"samples", &gpumem_job::samples},
                                                  {"accumulate", &gpumem_job::accumulate},
                                                  {"input", &gpumem_job::input},
                                                  {"gpu", &gpumem_job::gpu},
                                                  {"optimizer", &gpumem_job::optimizer},
                                                  {"precision", &gpumem_job::precision},
                                                  {"estimator", &gpumem_job::estimator},
                                                  {"model", &gpumem_job::model},
                                                  {"zero_grad", &gpumem_job::zero_grad},
                                                  {"software", &gpumem_job::software},
                                                  {"alloc_conf", &gpumem_job::alloc_conf},
                                                  {"foreach", &gpumem_job::no_foreach},
                                                  {"fused", &gpumem_job::fused},
                                                  {"validation", &gpumem_job::validation},
                                                  {"checkpointing", &gpumem_job::checkpointing},
                                                  {"lenient", &gpumem_job::lenient}}};

const StructField* field_of(const JobOption& option) {
  const auto* row = std::find_if(kFields.begin(), kFields.end(),
                                 [&](const StructField& field) { return field.option == option.name; });
  return row == kFields.end() ? nullptr : row;
}

bool is_on_by_default(const JobOption& option) { return job::default_text(option) == "true"; }

/// What the field says; nothing if it is the default.
std::optional<OptionValue> value_in(const gpumem_job& job, const StructField& field, const JobOption& option) {
  if (const auto* text = std::get_if<const char * gpumem_job::*>(&field.place)) {
    const char* word = job.*(*text);
    return word == nullptr || *word == '\0' ? std::nullopt : std::optional(OptionValue(std::string(word)));
  }
  if (const auto* number = std::get_if<std::int64_t gpumem_job::*>(&field.place)) {
    return job.*(*number) == 0 ? std::nullopt : std::optional(OptionValue(job.*(*number)));
  }
  const bool set = job.*std::get<std::int32_t gpumem_job::*>(field.place) != 0;
  return set ? std::optional(OptionValue(!is_on_by_default(option))) : std::nullopt;
}

const char* keep(OwnedJob& job, std::string text) { return job.texts.emplace_back(std::move(text)).c_str(); }

void put(OwnedJob& job, const StructField& field, const JobOption& option, const OptionValue& value) {
  if (const auto* text = std::get_if<const char * gpumem_job::*>(&field.place)) {
    job.*(*text) = keep(job, job::to_text(value));
  } else if (const auto* number = std::get_if<std::int64_t gpumem_job::*>(&field.place)) {
    job.*(*number) = std::get<std::int64_t>(value);
  } else {
    const bool unlike = std::get<bool>(value) != is_on_by_default(option);
    job.*std::get<std::int32_t gpumem_job::*>(field.place) = unlike ? 1 : 0;
  }
}

/// A field that says on or off does not hold a switch's choice.
bool holds(const StructField& field, const OptionValue& value) {
  return !std::holds_alternative<std::int32_t gpumem_job::*>(field.place) || std::holds_alternative<bool>(value);
}

/// Of an option without a usual value, its default would count as given.
bool says(const JobOption& option, const JobRequest& request) {
  return job::is_given(option, request) || job::default_value(option) || !job::is_default(option, request);
}

/// The request in a struct: each option in its field, and what has none in `more_options`.
std::unique_ptr<OwnedJob> owned(const JobRequest& request) {
  auto job = std::make_unique<OwnedJob>();
  nlohmann::ordered_json more = nlohmann::ordered_json::object();
  for (const JobOption& option : job::job_options()) {
    const auto value = option.place.get(request);
    const StructField* field = field_of(option);
    if (field != nullptr && value && !holds(*field, *value)) field = nullptr;
    if (field != nullptr && value && says(option, request)) put(*job, *field, option, *value);
    const bool chosen = option.depends && job::is_given(option, request);
    if (field == nullptr && (chosen || !job::is_default(option, request))) {
      more[std::string(option.name)] = job_json::to_json(value);
    }
  }
  if (!more.empty())
    job->more_options = keep(*job, more.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  if (!request.summary.empty()) job->summary = keep(*job, request.summary);
  return job;
}

/// The deadline is a matter of the call, not of the job: only gpumem.h has it in a job's JSON.
core::Status take_deadline(nlohmann::ordered_json& json, std::int64_t& deadline_ms) {
  const auto field = json.find("deadline_ms");
  if (field == json.end()) return core::Done{};
  const bool whole = field->is_number_integer() && (!field->is_number_unsigned() || *field <= INT64_MAX);
  if (!whole || field->get<std::int64_t>() < 0) {
    return core::Error{ErrorCode::malformed_input, "the field \"deadline_ms\" is not a number of milliseconds", {}};
  }
  deadline_ms = field->get<std::int64_t>();
  json.erase(field);
  return core::Done{};
}

/// Zero means not given, so a zero that was given must be refused. Only the batch size has no default, and is looked at
/// when the job is used.
core::Status check_zeros(const nlohmann::ordered_json& json) {
  for (const auto& [name, field] : json.items()) {
    const JobOption* option = job::find_option(name);
    if (option == nullptr || option->place.type != OptionType::whole_number || option->name == "batch_size") continue;
    if (field == 0) return refused("the field " + core::quoted(name) + " is 0; it must be at least 1");
  }
  return core::Done{};
}

core::Result<JobRequest> laid_over(const char* text, const JobRequest& request) {
  const auto json = job_json::parse_json(text);
  if (!json) return refused("gpumem_job.more_options is not a JSON object");
  return job_json::fields_from(*json, request);
}

bool is_positive(const std::optional<OptionValue>& number, const core::Status& taken) {
  return taken && number && std::get<std::int64_t>(*number) > 0;
}

core::Status take_word(const char* name, const char* value, JobRequest& request) {
  if (name == nullptr || value == nullptr) return refused("the name or the value of an option is a null pointer");
  const JobOption* option = job::find_flag(name);
  if (option == nullptr) return refused("a job has no option " + core::quoted(name));
  const bool empty = *value == '\0' && option->place.type != OptionType::whole_number;
  if (empty) return core::Done{};  // the default
  const std::string begin = std::string(name) + ": ";
  const core::Status taken = job::set_option_text(*option, request, value);
  if (option->place.type == OptionType::whole_number && !is_positive(option->place.get(request), taken)) {
    return refused(begin + "say a whole number of 1 or more, not " + core::quoted(value));
  }
  return taken ? taken : core::Status(refused(begin + taken.error().message));
}

/// The texts that C's list of options points into.
struct OptionTexts {
  std::string name;
  std::string flag;
  std::string value;
  std::string usual;
  std::string help;
};

struct OptionList {
  std::vector<OptionTexts> texts;
  std::vector<gpumem_job_option> options;

  OptionList() {
    for (const JobOption& option : job::job_options()) {
      texts.push_back({std::string(option.name), std::string(option.flag), std::string(option.value),
                       job::default_text(option), job::help_text(option)});
    }
    for (const OptionTexts& each : texts) {
      gpumem_job_option option = GPUMEM_JOB_OPTION_INIT;
      option.name = each.name.c_str();
      option.flag = each.flag.c_str();
      option.value = each.value.empty() ? nullptr : each.value.c_str();
      option.usual = each.usual.empty() ? nullptr : each.usual.c_str();
      option.help = each.help.c_str();
      options.push_back(option);
    }
  }
};

}  // namespace

bool has_field(const JobOption& option) { return field_of(option) != nullptr; }

core::Result<JobRequest> request_of(const gpumem_job& job) {
  if (job.reserved != 0) return refused("gpumem_job.reserved must be 0");
  JobRequest request;
  for (const StructField& field : kFields) {
    const JobOption* option = job::find_option(field.option);
    if (option == nullptr) return refused("there is no option " + std::string(field.option));
    const auto value = value_in(job, field, *option);
    if (!value) continue;
    if (auto taken = job::set_option(*option, request, *value); !taken) return taken.error();
  }
  const bool more = job.more_options != nullptr && *job.more_options != '\0';
  return more ? laid_over(job.more_options, request) : request;
}

core::Status job_from_json(std::string_view text, gpumem_job** job) {
  constexpr std::size_t kLongest = std::size_t{1} << 20;
  if (text.size() > kLongest) return core::Error{ErrorCode::malformed_input, "the job is longer than 1 MiB", {}};
  auto json = job_json::parse_json(text);
  if (!json) {
    return core::Error{ErrorCode::malformed_input, "the job is not JSON, or nests deeper than a job", {}};
  }
  std::int64_t deadline_ms = 0;
  if (json->is_object()) {
    if (auto taken = take_deadline(*json, deadline_ms); !taken) return taken;
  }
  const Result<JobRequest> request = job_json::fields_from(*json, {});
  if (!request) return request.error();
  if (auto checked = check_zeros(*json); !checked) return checked;
  std::unique_ptr<OwnedJob> made = owned(*request);
  made->deadline_ms = deadline_ms;
  *job = made.release();
  return core::Done{};
}

core::Status job_from_words(const char* const* names, const char* const* values, std::size_t count, gpumem_job** job) {
  JobRequest request;
  for (std::size_t index = 0; index < count; ++index) {
    if (auto taken = take_word(names[index], values[index], request); !taken) return taken;
  }
  *job = owned(request).release();
  return core::Done{};
}

const gpumem_job_option* option_at(std::size_t index) {
  static const OptionList kList;
  return index < kList.options.size() ? &kList.options[index] : nullptr;
}

}  // namespace gpumem::capi
