#include <unistd.h>

#include <cstdio>

#include "answers.hpp"
#include "report.hpp"
#include "told_jobs.hpp"

namespace gpumem::cli {

int run_advise(const AdviseOptions& asked) {
  const Result<Launched> launched = launched_by(asked.command);
  if (!launched) return report_error(launched.error());
  if (const auto code = answered_elsewhere(*launched, asked.request, Question::advise, asked.json)) return *code;
  Session session;
  Result<ToldJob> told = told_by_command(session, *launched, asked.request);
  if (!told) return report_error(told.error());
  AdviseOptions options = asked;
  options.request = std::move(told->request);
  Result<FoundAdvice> found = find_advice(options, session);
  if (!found) return report_error(found.error());
  assume(told->notes, found->advice.now);
  print_warnings(found->estimated_job);
  if (options.json) {
    std::printf("%s\n", to_json(*found).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s%s%s", headline(found->estimated_job).c_str(), to_text(*found, terminal_of(STDOUT_FILENO)).c_str(),
                assumed_lines(told->notes).c_str());
  }
  return helps(found->advice) ? 0 : report_error(no_advice(*found));
}

}  // namespace gpumem::cli
