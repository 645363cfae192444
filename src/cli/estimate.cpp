#include <unistd.h>

#include <cstdio>

#include "commands.hpp"
#include "report.hpp"

namespace gpumem::cli {

int report_error(const Error& error) {
  std::fprintf(stderr, "gpumem: error: %s\n", core::to_string(error).c_str());
  return core::exit_code(error.code);
}

int run_estimate(const EstimateOptions& options) {
  Evaluator evaluator;
  const Result<Evaluation> evaluation = evaluator.evaluate(options.request);
  if (!evaluation) return report_error(evaluation.error());
  // Asked for one estimator, its failure is the answer; asked for all, each stands for itself.
  const auto& answers = evaluation->answers;
  if (answers.size() == 1 && !answers[0].estimate) return report_error(answers[0].estimate.error());
  print_warnings(*evaluation);
  const std::string text =
      options.json ? to_json(*evaluation).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                   : to_table(*evaluation, isatty(STDOUT_FILENO) != 0);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace gpumem::cli
