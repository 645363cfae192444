// gpumem_accuracy: every estimator on every table of measured runs, as a report, a picture and the README's tables.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "estimated_jobs.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "progress.hpp"
#include "readme.hpp"
#include "report.hpp"
#include "scatter.hpp"

namespace {

using namespace gpumem;
using namespace gpumem::accuracy;
namespace fs = std::filesystem;

constexpr int kStale = 1;  ///< the exit code of a README that is not what the data say

struct AccuracyOptions {
  std::vector<std::string> tables;
  std::string measured = "bench/measured";
  std::string summaries;
  std::string estimator = "all";
  std::string out;
  std::string readme;
  bool check = false;
  unsigned threads = 0;
};

int report_error(const Error& error) {
  std::fprintf(stderr, "gpumem_accuracy: error: %s\n", core::to_string(error).c_str());
  return core::exit_code(error.code);
}

std::vector<TableFile> table_files(const AccuracyOptions& options) {
  std::vector<TableFile> files;
  for (const std::string& path : tables_below(options.measured)) {
    const fs::path below = fs::path(path).lexically_relative(options.measured);
    files.push_back({path, below.parent_path().empty() ? "." : below.begin()->string()});
  }
  for (const std::string& path : options.tables) files.push_back({path});
  return files;
}

Result<std::vector<ml::ModelConfig>> model_configs() {
  std::vector<ml::ModelConfig> configs;
  for (const ml::BuiltinModel& model : ml::builtin_models()) {
    auto config = ml::parse_model_config(model.config, model.name);
    if (!config) return config.error();
    configs.push_back(*std::move(config));
  }
  return configs;
}

core::Status write_report(const Data& data, const std::vector<SetVerdicts>& verdicts, const std::string& folder) {
  constexpr const char* kPicture = "accuracy.svg";
  std::error_code failed;
  fs::create_directories(folder, failed);
  core::Status written = core::write_file((fs::path(folder) / kPicture).string(), scatter_of(verdicts));
  if (!written) return written;
  return core::write_file((fs::path(folder) / "accuracy.md").string(), report_of(data, verdicts, {kPicture}));
}

/// The first line in which the two differ, 1-based.
std::int64_t first_difference(std::string_view left, std::string_view right) {
  const auto [at, other] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return 1 + std::count(left.begin(), at, '\n');
}

int take_readme(const AccuracyOptions& options, const std::vector<SetVerdicts>& verdicts) {
  const auto models = model_configs();
  if (!models) return report_error(models.error());
  const auto readme = core::read_file(options.readme);
  if (!readme) return report_error(readme.error());
  const std::vector<ReadmeTable> tables = readme_tables(verdicts, *models);
  const auto anew = rewritten(*readme, tables, options.readme);
  if (!anew) return report_error(anew.error());
  for (const std::string& key : not_at_hand(tables)) {
    std::fprintf(stderr, "not at hand, stands as it is: %s\n", key.c_str());
  }
  if (!options.check) {
    const core::Status written = core::write_file(options.readme, *anew);
    return written ? 0 : report_error(written.error());
  }
  if (*anew == *readme) return 0;
  std::fprintf(stderr, "gpumem_accuracy: error: %s:%lld: is not what the data say; write it anew without --check\n",
               options.readme.c_str(), static_cast<long long>(first_difference(*readme, *anew)));
  return kStale;
}

int run_accuracy(const AccuracyOptions& options) {
  const std::vector<TableFile> files = table_files(options);
  if (files.empty() && options.readme.empty()) {
    return report_error({ErrorCode::invalid_argument, "there are no runs; name a table of measured runs", {}});
  }
  const auto data = read_data(files, options.summaries);
  if (!data) return report_error(data.error());
  Session session;
  const auto estimators = session.estimators({.estimator = options.estimator});
  if (!estimators) return report_error(estimators.error());
  std::size_t runs = 0;
  for (const DataSet& set : data->sets) runs += set.runs.size();
  cli::Progress progress("estimating", "runs", runs);
  const unsigned threads = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  const std::vector<SetVerdicts> verdicts = judge(*data, *estimators, threads, [&] { progress.step(); });
  if (!options.out.empty()) {
    const core::Status written = write_report(*data, verdicts, options.out);
    if (!written) return report_error(written.error());
  } else if (options.readme.empty()) {
    const std::string text = report_of(*data, verdicts, {});
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return options.readme.empty() ? 0 : take_readme(options, verdicts);
}

int run(int argc, char** argv) {
  AccuracyOptions options;
  CLI::App app(
      "How close every estimator comes to measured runs: a report (Markdown), a picture (SVG), the README's tables",
      "gpumem_accuracy");
  app.add_option("TABLES", options.tables, "tables of measured runs, as 'gpumem evaluate' reads them");
  app.add_option("--measured", options.measured,
                 "folder whose tables are taken as well (bench/measured, if it is there)");
  app.add_option("--summaries", options.summaries, "folder with the summaries of models that a table only names");
  app.add_option("--estimator", options.estimator, "one estimator, or all (all)");
  app.add_option("-o,--out", options.out, "folder for accuracy.md and accuracy.svg; else the report is printed");
  app.add_option("--readme", options.readme, "write the tables between this file's marks anew");
  app.add_flag("--check", options.check,
               "only say whether the file of --readme is what the data say (exit code 1: no)");
  app.add_option("--threads", options.threads, "how many (as many as there are cores)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help
    return app.exit(asked);
  } catch (const CLI::ParseError& wrong) {
    return report_error({ErrorCode::invalid_argument, std::string(wrong.what()) + "; see gpumem_accuracy --help", {}});
  }
  if (options.check && options.readme.empty()) {
    return report_error({ErrorCode::invalid_argument, "--check needs --readme FILE", {}});
  }
  return run_accuracy(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return report_error({ErrorCode::unreadable_file, "standard output cannot be written", {}});
  } catch (const std::exception& error) {  // gpumem throws nothing by design; memory may run out
    std::fprintf(stderr, "gpumem_accuracy: error: %s\n", error.what());
    return core::exit_code(ErrorCode::overflow);
  }
}
