#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "answers.hpp"
#include "plan_report.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "told_jobs.hpp"

namespace gpumem::cli {

namespace {

Result<FoundPlan> find_with_progress(const PlanOptions& options, Session& session) {
  Progress progress("looking at", "layouts");
  return find_plan(options, session, [&progress](std::size_t done, std::size_t all) { progress.show(done, all); });
}

void print_json(const nlohmann::ordered_json& json) {
  std::printf("%s\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

/// What any of the plans assumes, each said once.
std::vector<estimate::Assumption> assumed_of(const std::vector<search::LayoutPlan>& plans) {
  std::vector<estimate::Assumption> all;
  for (const search::LayoutPlan& plan : plans) {
    for (const estimate::Assumption& one : plan.assumed) {
      const auto is_same = [&one](const estimate::Assumption& other) { return other.text == one.text; };
      if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(one);
    }
  }
  return all;
}

/// The plan, which also assumes what the command told.
Result<FoundPlan> find_told(const PlanOptions& options, const ToldJob& told, Session& session) {
  auto found = find_with_progress(options, session);
  if (found) found->plan.assumed.insert(found->plan.assumed.end(), told.notes.begin(), told.notes.end());
  return found;
}

/// A plan for each of several numbers of GPUs.
int run_plans(const PlanOptions& options, const ToldJob& told, Session& session) {
  if (!options.explain.empty()) {
    return report_error({ErrorCode::invalid_argument, "`explain` is about one number of `gpus`", {}});
  }
  nlohmann::ordered_json json = {{"schema", 1}, {"plans", nlohmann::ordered_json::array()}};
  std::vector<search::LayoutPlan> plans;
  std::optional<EstimatedJob> job;
  bool any = false;
  for (const std::int64_t gpus : options.gpus) {
    PlanOptions one = options;
    one.gpus = {gpus};
    auto found = find_told(one, told, session);
    if (!found) return report_error(found.error());
    any = any || !found->plan.layouts.empty();
    if (options.json) json["plans"].push_back(to_json(found->estimated_job, found->plan, found->question));
    plans.push_back(std::move(found->plan));
    if (!job) job.emplace(std::move(found->estimated_job));
  }
  print_warnings(*job);
  if (options.json) print_json(json);
  if (!any) return report_error(no_layout(plans.back(), *job));
  if (!options.json) {
    std::printf("%s\n%s\n%s", headline(*job, Grows::batch).c_str(),
                counts_table(plans, *job->gpu, terminal_of(STDOUT_FILENO)).c_str(),
                assumed_lines(assumed_of(plans)).c_str());
  }
  return 0;
}

}  // namespace

int run_plan(const PlanOptions& asked) {
  const Result<Launched> launched = launched_by(asked.command);
  if (!launched) return report_error(launched.error());
  if (const auto code = answered_elsewhere(*launched, asked.request, Question::plan, asked.json)) return *code;
  PlanOptions options = asked;
  Session session;
  const Result<ToldJob> told = told_for_plan(session, *launched, options);
  if (!told) return report_error(told.error());
  if (options.gpus.size() > 1) return run_plans(options, *told, session);
  const auto found = find_told(options, *told, session);
  if (!found) return report_error(found.error());
  const auto& [estimated_job, question, plan, explanation] = *found;
  print_warnings(estimated_job);
  if (options.json) print_json(to_json(estimated_job, plan, question, explanation ? &*explanation : nullptr));
  const std::string explained = explanation && !options.json ? to_text(*explanation, plan, *estimated_job.gpu) : "";
  if (plan.layouts.empty()) {
    std::printf("%s", explained.c_str());
    return report_error(no_layout(plan, estimated_job));
  }
  if (!options.json) {
    const PlanShown shown = {question.global_batch, static_cast<std::size_t>(options.settings),
                             terminal_of(STDOUT_FILENO)};
    std::printf("%s%s%s%s", headline(estimated_job, Grows::batch).c_str(),
                to_text(plan, *estimated_job.gpu, shown).c_str(), explained.empty() ? "" : "\n", explained.c_str());
  }
  return 0;
}

}  // namespace gpumem::cli
