#include "plan_words.hpp"

#include <algorithm>
#include <array>

#include "gpumem/core/bytes.hpp"
#include "gpumem/search/frameworks.hpp"

namespace gpumem::cli {

namespace {

using core::Error;
using core::ErrorCode;
using core::Status;

enum class WordKind : std::uint8_t { text, count, number, flag };

struct PlanWord {
  std::string_view name;
  WordKind kind;
  std::string_view must_be;
};

constexpr std::array<PlanWord, 12> kWords = {{{"framework", WordKind::text, "a name"},
                                              {"explain", WordKind::text, "a layout"},
                                              {"network_gbps", WordKind::number, "a number"},
                                              {"no_overlap", WordKind::flag, "true or false"},
                                              {"gpus", WordKind::count, "a whole number"},
                                              {"global_batch", WordKind::count, "a whole number"},
                                              {"show", WordKind::count, "a whole number"},
                                              {"gpus_per_node", WordKind::count, "a whole number"},
                                              {"at_most_tensor_parallel", WordKind::count, "a whole number"},
                                              {"at_most_context_parallel", WordKind::count, "a whole number"},
                                              {"at_most_pipeline_parallel", WordKind::count, "a whole number"},
                                              {"at_most_expert_parallel", WordKind::count, "a whole number"}}};

const PlanWord* word_named(std::string_view name) {
  const auto* const row = std::find_if(kWords.begin(), kWords.end(), [&](const auto& one) { return one.name == name; });
  return row == kWords.end() ? nullptr : row;
}

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message), {}}; }

Error unlike(const PlanWord& row) { return wrong(std::string(row.name) + " must be " + std::string(row.must_be)); }

Error unknown(std::string_view name) {
  std::array<std::string_view, kWords.size()> names;
  std::transform(kWords.begin(), kWords.end(), names.begin(), [](const PlanWord& row) { return row.name; });
  return wrong("a plan has no option " + core::quoted(core::shortened(name, 60)) + core::did_you_mean(name, names));
}

bool is_alike(const nlohmann::ordered_json& value, WordKind kind) {
  switch (kind) {
    case WordKind::text: return value.is_string();
    case WordKind::count: return value.is_number_integer();
    case WordKind::number: return value.is_number();
    case WordKind::flag: return value.is_boolean();
  }
  return false;
}

/// The number goes where rows of WordKind::count keep theirs.
void set_count(std::string_view name, std::int64_t count, PlanOptions& options) {
  const std::pair<std::string_view, std::optional<std::int64_t>*> limits[] = {
      {"gpus_per_node", &options.gpus_per_node},
      {"at_most_tensor_parallel", &options.most.tensor_parallel},
      {"at_most_context_parallel", &options.most.context_parallel},
      {"at_most_pipeline_parallel", &options.most.pipeline_parallel},
      {"at_most_expert_parallel", &options.most.expert_parallel}};
  for (const auto& [known, limit] : limits) {
    if (known == name) *limit = count;
  }
  if (name == "gpus") options.gpus = {count};
  if (name == "global_batch") options.global_batch = count;
  if (name == "show") options.show = count;
}

Status check_counts(const PlanOptions& options) {
  const std::pair<std::string_view, std::optional<std::int64_t>> counts[] = {
      {"global_batch", options.global_batch},
      {"show", options.show},
      {"gpus", options.gpus.empty() ? std::nullopt : std::optional(options.gpus.front())},
      {"gpus_per_node", options.gpus_per_node},
      {"at_most_tensor_parallel", options.most.tensor_parallel},
      {"at_most_context_parallel", options.most.context_parallel},
      {"at_most_pipeline_parallel", options.most.pipeline_parallel},
      {"at_most_expert_parallel", options.most.expert_parallel}};
  for (const auto& [name, count] : counts) {
    if (count.value_or(1) < 1) return wrong("`" + std::string(name) + "` must be at least 1");
  }
  return core::Done{};
}

}  // namespace

bool is_plan_word(std::string_view name) { return word_named(name) != nullptr; }

Status take_plan_word(std::string_view name, std::string_view word, PlanOptions& options) {
  const PlanWord* const row = word_named(name);
  if (row == nullptr) return unknown(name);
  if (row->kind == WordKind::text) {
    (name == "explain" ? options.explain : options.framework) = std::string(word);
  } else if (row->kind == WordKind::flag) {
    if (word != "true" && word != "false") return unlike(*row);
    options.no_overlap = word == "true";
  } else if (row->kind == WordKind::number) {
    options.network_gbps = core::parse_number(word);
    if (!options.network_gbps) return unlike(*row);
  } else {
    const std::optional<std::int64_t> count = core::parse_whole(word);
    if (!count) return unlike(*row);
    set_count(name, *count, options);
  }
  return core::Done{};
}

Status take_plan_options(const nlohmann::ordered_json& asked, PlanOptions& options) {
  for (const auto& [name, value] : asked.items()) {
    const PlanWord* const row = word_named(name);
    if (row == nullptr) return unknown(name);
    const bool is_text = row->kind == WordKind::text;
    if (!is_alike(value, row->kind)) return unlike(*row);
    Status taken = take_plan_word(name, is_text ? value.get<std::string>() : value.dump(), options);
    if (!taken) return taken;
  }
  return core::Done{};
}

core::Result<search::Question> question_of(const PlanOptions& options) {
  if (const Status counts = check_counts(options); !counts) return counts.error();
  if (options.gpus.size() > 1) return wrong("`gpus` is one number here");
  core::Result<search::Question> question = search::question_about(options.framework, options.request.alloc_conf);
  if (!question) return question;
  if (!options.gpus.empty()) question->gpus = options.gpus.front();
  question->most = options.most;
  question->global_batch = options.global_batch;
  question->show = static_cast<std::size_t>(options.show);
  question->links = {options.gpus_per_node, options.network_gbps, !options.no_overlap};
  return question;
}

}  // namespace gpumem::cli
