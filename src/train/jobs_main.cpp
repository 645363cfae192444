// gpumem-jobs: random training jobs as files, each with what the replay estimator expects it to take.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "gpumem/summary/text.hpp"
#include "job_files.hpp"

namespace {

using namespace gpumem;
using namespace gpumem::train;

struct JobsOptions {
  std::string kind = "any";
  std::uint64_t seed = 0;
  JobFiles files{.folder = {}, .gpu = "a100-40gb", .first = 0, .count = 0};
  std::string software;
  bool vary = false;
  double balance_mib = 0.0;
};

/// A whole number from 0 on, in decimal (CLI11 reads 010 as 8, and -1 as the largest number).
const CLI::Validator kWholeNumber(
    [](std::string& text) -> std::string {
      std::size_t at = 0;
      const auto value = summary::read_digits(text, at);
      if (at == 0 || at != text.size()) return "must be a whole number, not '" + text + "'";
      if (!value) return text + " does not fit 64 bits";
      text = std::to_string(*value);
      return "";
    },
    "");

int report_error(const core::Error& error) {
  std::fprintf(stderr, "gpumem-jobs: error: %s\n", core::to_string(error).c_str());
  return core::exit_code(error.code);
}

core::Result<LabelledJobs> jobs_of(const JobsOptions& options) {
  const auto kind = model::value_of(ml::kNetKinds, options.kind);
  if (!kind) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "--kind is " + core::quoted(options.kind) + "; choose one of mlp, cnn, transformer, any",
                       {}};
  }
  auto gpu = device::find_profile(options.files.gpu);
  if (!gpu) return gpu.error();
  RandomJobs jobs({*kind, options.seed, options.vary, options.software});
  if (options.balance_mib == 0.0) return LabelledJobs(std::move(jobs), *std::move(gpu));
  return LabelledJobs::balanced(std::move(jobs), *std::move(gpu), options.balance_mib);
}

void print_classes(const std::vector<std::uint64_t>& classes, double bin_mib) {
  for (std::size_t at = 0; at + 1 < classes.size() && classes.size() > 2; ++at) {
    const bool last = at + 2 == classes.size();
    const double from = bin_mib * static_cast<double>(at);
    const std::string to = last ? "capacity" : std::to_string(static_cast<std::uint64_t>(from + bin_mib)) + " MiB";
    if (classes[at] > 0) std::printf("  from %.0f MiB to %s: %llu\n", from, to.c_str(), 1ULL * classes[at]);
  }
  std::printf("  do not fit: %llu\n", 1ULL * classes.back());
}

int run_jobs(const JobsOptions& options) {
  const auto jobs = jobs_of(options);
  if (!jobs) return report_error(jobs.error());
  std::vector<std::uint64_t> classes(jobs->classes());
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const auto count_job = [&](const LabelledJob& job, std::uint64_t done) {
    constexpr std::uint64_t kEvery = 100;
    ++classes[jobs->class_of(job)];
    if (terminal && done % kEvery == 0) std::fprintf(stderr, "\r%llu of %llu", 1ULL * done, 1ULL * options.files.count);
    if (terminal && done == options.files.count) std::fprintf(stderr, "\r\n");
  };
  const core::Status written = write_jobs(*jobs, options.files, count_job);
  if (!written) return report_error(written.error());
  std::printf("%llu jobs in %s/%s; on %s\n", 1ULL * options.files.count, options.files.folder.c_str(), kRunsFile,
              jobs->gpu().name.c_str());
  print_classes(classes, options.balance_mib);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Random training jobs in the ranges of GPUMemNet's data sets: a graph JSON each, and RUNS.csv with what the\n"
      "replay estimator expects them to take (replay_mib). Nothing is measured.",
      "gpumem-jobs");
  JobsOptions options;
  constexpr std::uint64_t kMost = 1'000'000;  // rows that a table of runs can have
  JobFiles& files = options.files;
  app.add_option("--kind", options.kind, "mlp, cnn, transformer or any")->capture_default_str();
  app.add_option("--count", files.count, "how many jobs")
      ->required()
      ->check(CLI::Range(std::uint64_t{1}, kMost))
      ->transform(kWholeNumber);
  app.add_option("--first", files.first, "number of the first one: job i is the same in every call")
      ->capture_default_str()
      ->transform(kWholeNumber);
  app.add_option("--seed", options.seed, "another seed, other jobs")->capture_default_str()->transform(kWholeNumber);
  app.add_option("-o,--out", files.folder, "the folder to write into")->required();
  app.add_option("--gpu", files.gpu, "a name from 'gpumem gpus', or a path to a profile")->capture_default_str();
  app.add_option("--software", options.software, "a software stack that the GPU's profile names; default: its first");
  app.add_flag("--vary", options.vary, "draw optimizer and precision as well (else adam, fp32)");
  app.add_option("--balance", options.balance_mib,
                 "as many jobs in each class of memory this many MiB wide, and as many that do not fit")
      ->check(CLI::Range(1.0, 1e9));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help
    return app.exit(asked);
  } catch (const CLI::ParseError& wrong) {
    std::fprintf(stderr, "gpumem-jobs: error: %s; see gpumem-jobs --help\n", wrong.what());
    return core::exit_code(core::ErrorCode::invalid_argument);
  }
  return run_jobs(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return report_error({core::ErrorCode::unreadable_file, "standard output cannot be written", {}});
  } catch (const std::exception& error) {  // gpumem throws nothing by design; memory may run out
    std::fprintf(stderr, "gpumem-jobs: error: %s\n", error.what());
    return core::exit_code(core::ErrorCode::overflow);
  }
}
