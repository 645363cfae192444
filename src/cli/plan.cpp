#include <unistd.h>

#include <cstdio>
#include <optional>

#include "answers.hpp"
#include "plan_report.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "told_jobs.hpp"

namespace gpumem::cli {

namespace {

/// What the command says where no option does; its layout and batch are what a plan chooses.
Result<ToldJob> told_for_plan(PlanOptions& options) {
  Result<ToldJob> told =
      told_by_command(options.command, options.request, {std::begin(kChosenByPlan), std::end(kChosenByPlan)});
  if (!told) return told;
  options.request = told->request;
  if (!options.gpus && told->gpus > 1) options.gpus = told->gpus;
  if (options.command.empty()) return told;
  if (options.global_batch == 0) options.global_batch = told->global_batch;  // not given
  if (options.global_batch == 0) {
    return Error{ErrorCode::missing_information, "the command does not say a batch size; give --global-batch", {}};
  }
  return told;
}

}  // namespace

int run_plan(const PlanOptions& asked) {
  if (const auto code = answered_elsewhere(asked.command, asked.request, Question::plan, asked.json)) return *code;
  PlanOptions options = asked;
  const Result<ToldJob> told = told_for_plan(options);
  if (!told) return report_error(told.error());
  Session session;
  std::optional<Progress> progress(std::in_place, "looking at", "layouts");
  auto found =
      find_plan(options, session, [&progress](std::size_t done, std::size_t all) { progress->show(done, all); });
  progress.reset();
  if (!found) return report_error(found.error());
  found->plan.assumed.insert(found->plan.assumed.end(), told->notes.begin(), told->notes.end());
  const auto& [estimated_job, question, plan] = *found;
  print_warnings(estimated_job);
  if (options.json) {
    const nlohmann::ordered_json json = to_json(estimated_job, plan, question);
    std::printf("%s\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  }
  if (plan.layouts.empty()) return report_error(no_layout(plan, estimated_job));
  if (!options.json) {
    const PlanShown shown = {question.global_batch, static_cast<std::size_t>(options.settings),
                             terminal_of(STDOUT_FILENO)};
    std::printf("%s%s", headline(estimated_job, false).c_str(), to_text(plan, *estimated_job.gpu, shown).c_str());
  }
  return 0;
}

}  // namespace gpumem::cli
