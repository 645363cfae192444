#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "commands.hpp"
#include "gpumem/monitor/nvml.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "launch.hpp"
#include "live_gpus.hpp"
#include "open_file.hpp"
#include "placed_job.hpp"
#include "told_jobs.hpp"

namespace gpumem::cli {

namespace {

namespace fs = std::filesystem;
using launcher::Asked;

/// The options with what a .rad file says where they say nothing.
Result<RunOptions> with_rad(RunOptions options) {
  if (options.rad.empty()) return options;
  const auto rad = take_rad(options.rad, {options.request, options.placing.policy, options.gpus});
  if (!rad) return rad.error();
  if (!options.command.empty()) return options;
  std::string script;
  for (const std::string& command : rad->commands) script += command + "\n";
  options.command = {"bash", "-e", "-c", script};
  if (options.name.empty()) options.name = fs::path(options.rad).stem().string();
  return options;
}

/// What the job asks for, and what runs.csv is to say about it.
struct Need {
  Asked asked;
  std::optional<Bytes> upper;  ///< of the estimate; what a client of MPS may take
  launcher::RunCells described;
};

/// A row's cells: the model, and every option that says how the job is trained.
launcher::RunCells described(const EstimatedJob& estimated_job, JobRequest request) {
  request.training.batch_size = estimated_job.job.batch_size;
  std::error_code ignored;
  const fs::path path = fs::absolute(request.summary, ignored).lexically_normal();
  launcher::RunCells cells = {{"summary", path.string()}};
  for (const job::JobOption& option : job::job_options()) {
    if (!option.place.in_training) continue;
    const auto value = job::is_default(option, request) ? std::nullopt : option.place.get(request);
    cells.emplace_back(option.name, value ? job::to_text(*value) : std::string());
  }
  return cells;
}

/// By the estimate on each kind of GPU that is there, the largest of them.
Result<Need> estimated(Session& session, const RunOptions& options, const place::Server& server,
                       const place::Margin& margin) {
  Need need;
  for (const std::string& kind : kinds_of(server, options.request.gpu)) {
    JobRequest request = options.request;
    request.gpu = kind;
    const auto estimated_job = estimate_job(session, request);
    if (!estimated_job) return without_estimate(estimated_job.error(), request);
    if (estimated_job->answers.size() > 1) return wrong_usage("run takes one estimator, not all of them");
    const auto& estimate = estimated_job->answers.front().estimate;
    if (!estimate) return estimate.error();
    place::Request asked;
    if (const auto done = place::ask_for(asked, *estimate, margin); !done) return done.error();
    need.asked.memory = std::max(need.asked.memory, asked.memory);
    need.asked.alone = std::max(need.asked.alone, asked.alone);
    need.asked.gpus = asked.gpus;
    need.upper = std::max(need.upper, std::optional(estimate->upper));
    need.described = described(*estimated_job, request);
    if (options.smact != kEstimateSmact) continue;
    const auto smact = estimated_smact(session, *estimated_job);
    if (!smact) return smact.error();
    need.asked.smact = std::max(need.asked.smact, *smact);
  }
  return need;
}

Result<Need> need_of(Session& session, const RunOptions& options, const place::Server& server,
                     const place::Margin& margin) {
  const auto smact = told_smact(options.smact);
  if (!smact) return smact.error();
  Result<Need> need = Need();
  if (!options.memory.empty()) {
    const auto bytes = bytes_from(options.memory, "memory");
    if (!bytes) return bytes.error();
    need->asked.memory = *bytes;
    need->asked.alone = *bytes;
    need->upper = *bytes;
  } else if (!options.request.summary.empty() && options.request.estimator != kNoEstimator) {
    need = estimated(session, options, server, margin);
    if (!need) return need;
  }
  if (options.smact == kEstimateSmact && need->described.empty()) {
    return wrong_usage("--smact estimate needs a summary, a config or a recording");
  }
  if (*smact) need->asked.smact = **smact;
  const bool counted = need->asked.gpus > 1;  // by the estimate
  const Result<std::int64_t> layout =
      counted ? Result<std::int64_t>(need->asked.gpus) : parallel::world_size(options.request.training.layout);
  if (!layout) return layout.error();
  const auto gpus = gpus_to_place(*layout, options.gpus);
  if (!gpus) return gpus.error();
  need->asked.gpus = *gpus;
  need->asked.connected = *layout > 1;
  need->asked.exclusive = options.exclusive;
  return need;
}

/// Where no option says what the job is, its command may. Of a command that gpumem cannot read, or cannot estimate,
/// nothing is known, as without an estimate.
Result<Need> need_by_command(const RunOptions& options, const place::Server& server, const place::Margin& margin) {
  Session session;
  const bool is_told = !options.memory.empty() || !options.rad.empty() || !options.request.summary.empty();
  if (is_told || options.request.estimator == kNoEstimator) return need_of(session, options, server, margin);
  const Result<Launched> launched = launched_by(options.command);
  if (!launched) return need_of(session, options, server, margin);
  const Result<ToldJob> told = told_by_command(session, *launched, options.request);
  if (!told) return need_of(session, options, server, margin);
  RunOptions by_command = options;
  by_command.request = told->request;
  Result<Need> need = need_of(session, by_command, server, margin);
  if (!need) return need_of(session, options, server, margin);
  if (!options.quiet) std::fputs(assumed_lines(told->notes).c_str(), stderr);
  return need;
}

Result<place::RecoveryRule> recovery_of(const RunOptions& options) {
  Result<place::RecoveryRule> rule = recovery_from(options.recovery);
  if (!rule) return rule;
  if (options.retries < 0) return wrong_usage("--retries must be 0 or more");
  rule->retries = options.retries;
  return rule;
}

/// The GPUs by UUID, which no order of devices and no MIG mode changes; and how they are shared, as far as MPS runs. A
/// job with a GPU to itself has no limit, and a job that ran out of memory is not limited to what it had.
launcher::EnvironmentFor environment_of(const Need& need) {
  return [upper = need.upper](const Asked& asked, const std::vector<launcher::Promise>& promises) {
    monitor::JobShare share{asked.gpus, upper, asked.smact > 0.0 ? std::optional(asked.smact) : std::nullopt};
    if (asked.exclusive) share = {asked.gpus, std::nullopt, std::nullopt};
    if (share.memory && asked.memory) share.memory = std::max(*share.memory, *asked.memory);
    launcher::Environment environment = monitor::plan_sharing(monitor::find_mps_daemon(), share).environment;
    std::string visible;
    for (const launcher::Promise& promise : promises) visible += (visible.empty() ? "" : ",") + promise.gpu;
    environment.emplace_back("CUDA_VISIBLE_DEVICES", visible);
    return environment;
  };
}

Result<launcher::Terms> terms_of(const RunOptions& run) {
  const PlacementOptions& options = run.placing;
  launcher::Terms terms;
  terms.settle_s = run.settle_s;
  if (!options.policy.empty()) terms.policy = options.policy;
  const auto policy = place::make_policy(terms.policy);
  if (!policy) return policy.error();
  terms.policy = (*policy)->name();
  const auto conditions = conditions_from(options);
  if (!conditions) return conditions.error();
  terms.conditions = *conditions;
  return terms;
}

Result<launcher::Job> job_of(const RunOptions& options, const launcher::ReadGpus& read_gpus) {
  const auto terms = terms_of(options);
  if (!terms) return terms.error();
  const auto margin = place::parse_margin(options.placing.margin);
  if (!margin) return margin.error();
  const auto recovery = recovery_of(options);
  if (!recovery) return recovery.error();
  const auto gpus = read_gpus();
  if (!gpus) return gpus.error();
  Result<Need> need = need_by_command(options, gpus->server, *margin);
  if (!need) return need.error();
  const std::string name = options.name.empty() ? launcher::name_of(options.command) : options.name;
  const core::Status valid = place::validate(launcher::request_of(need->asked, name));
  if (!valid) return valid.error();
  return launcher::Job{.name = name,
                       .command = options.command,
                       .asked = need->asked,
                       .terms = *terms,
                       .recovery = *recovery,
                       .environment_for = environment_of(*need),
                       .described = std::move(need->described)};
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the std::function owns what it captures

Result<int> run_in_turn(const RunOptions& given) {
  const Result<RunOptions> options = with_rad(given);
  if (!options) return options.error();
  if (options->command.empty()) return wrong_usage("run needs a command: gpumem run [OPTIONS] -- python3 train.py");
  const auto read_gpus = open_gpus();
  if (!read_gpus) return read_gpus.error();
  const auto job = job_of(*options, *read_gpus);
  if (!job) return job.error();
  const auto directory = launcher::queue_directory(options->directory);
  if (!directory) return directory.error();
  auto journal = launcher::Journal::open(*directory);
  if (!journal) return journal.error();
  auto signals = launcher::Signals::take_over();
  if (!signals) return signals.error();
  const auto warn = [](const std::string& line) { std::fprintf(stderr, "gpumem: %s\n", line.c_str()); };
  const auto say = [warn, quiet = options->quiet](const std::string& line) {
    if (!quiet) warn(line);
  };
  launcher::Site site{*std::move(journal), *read_gpus, *std::move(signals), say, warn};
  return launcher::launch(*job, site);
}

}  // namespace

int run_run(const RunOptions& options) {
  launcher::take_standard_places();  // before anything is opened
  const Result<int> code = run_in_turn(options);
  return code ? *code : report_error(code.error());
}

}  // namespace gpumem::cli
