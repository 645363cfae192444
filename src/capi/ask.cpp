// The entry points of gpumem.h that take a question in words and answer in JSON and text.
#include <array>
#include <string>
#include <string_view>

#include "gpumem/core/deadline.hpp"
#include "gpumem/gpumem.h"
#include "guarded.hpp"
#include "held.hpp"
#include "questions.hpp"

namespace gpumem::capi {

namespace {

struct QuestionRow {
  std::string_view name;
  Answered (*answer)(Question& question);
};

constexpr std::array<QuestionRow, 17> kQuestions = {{{"estimate", &answer_estimate},
                                                     {"fit", &answer_fit},
                                                     {"advise", &answer_advise},
                                                     {"plan", &answer_plan},
                                                     {"job", &answer_job},
                                                     {"summary", &answer_summary},
                                                     {"serve", &answer_serve},
                                                     {"serving-limits", &answer_serving_limits},
                                                     {"serving-advice", &answer_serving_advice},
                                                     {"posttrain", &answer_posttrain},
                                                     {"posttrain-limits", &answer_posttrain_limits},
                                                     {"posttrain-advice", &answer_posttrain_advice},
                                                     {"posttrain-layouts", &answer_posttrain_layouts},
                                                     {"gpus", &answer_gpus},
                                                     {"estimators", &answer_estimators},
                                                     {"options", &answer_options},
                                                     {"server", &answer_server}}};

core::Result<QuestionRow> row_of(std::string_view name) {
  std::string names;
  for (const QuestionRow& row : kQuestions) {
    if (row.name == name) return row;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return refused("there is no question " + core::quoted(name) + "; there are: " + names);
}

core::Status ask(const char* name, Question& question, gpumem_answer** answer) {
  const core::Result<QuestionRow> row = row_of(name);
  if (!row) return row.error();
  const auto deadline_ms = question.words.take_whole("deadline_ms");
  if (!deadline_ms) return deadline_ms.error();
  if (deadline_ms->value_or(0) < 0) return refused("deadline_ms is negative");
  const core::Deadline deadline(deadline_ms->value_or(0));
  Answered made = row->answer(question);
  if (!made) return made.error();
  *answer = made->release();
  return core::Done{};
}

}  // namespace

}  // namespace gpumem::capi

extern "C" {

GPUMEM_API gpumem_status gpumem_ask(const char* question, const gpumem_summary* summary, const char* const* names,
                                    const char* const* values, size_t count, gpumem_answer** answer, char* message,
                                    size_t message_size) noexcept {
  using namespace gpumem::capi;  // NOLINT(google-build-using-namespace)
  return guarded({message, message_size}, [&]() -> gpumem::core::Status {
    if (question == nullptr) return null_pointer("question");
    if (answer == nullptr) return null_pointer("answer");
    auto words = Words::read(names, values, count);
    if (!words) return words.error();
    Question asked{summary, *std::move(words)};
    return ask(question, asked, answer);
  });
}

GPUMEM_API const char* gpumem_answer_text(const gpumem_answer* answer, const char* form) noexcept {
  if (answer == nullptr || form == nullptr) return nullptr;
  try {
    const auto made = answer->forms.find(std::string_view(form));
    return made == answer->forms.end() ? nullptr : made->second->text().c_str();
  } catch (...) {  // no memory for the text
    return nullptr;
  }
}

GPUMEM_API const gpumem_answer* gpumem_answer_part(const gpumem_answer* answer, const char* part) noexcept {
  if (answer == nullptr || part == nullptr) return nullptr;
  const auto found = answer->parts.find(std::string_view(part));
  return found == answer->parts.end() ? nullptr : found->second.get();
}

GPUMEM_API void gpumem_answer_free(gpumem_answer* answer) noexcept { delete answer; }

GPUMEM_API const char* gpumem_last_failure(void) noexcept { return gpumem::capi::last_failure(); }

GPUMEM_API void gpumem_after_fork(void) noexcept {
  try {
    gpumem::capi::renew_process_session();
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a new session: the old one stays
  }
}

}  // extern "C"
