#include <unistd.h>

#include <cstdio>
#include <optional>

#include "answers.hpp"
#include "plan_report.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace gpumem::cli {

int run_plan(const PlanOptions& options) {
  Session session;
  std::optional<Progress> progress(std::in_place, "looking at", "layouts");
  const auto found =
      find_plan(options, session, [&progress](std::size_t done, std::size_t all) { progress->show(done, all); });
  progress.reset();
  if (!found) return report_error(found.error());
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
