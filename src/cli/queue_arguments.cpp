#include "queue_arguments.hpp"

#include "job_arguments.hpp"

namespace gpumem::cli {

namespace {

void add_queue_directory(CLI::App& command, std::string& directory) {
  command.add_option("--directory", directory,
                     "the queue's directory; default: GPUMEM_QUEUE, /var/lib/gpumem/queue, or one of your own");
}

/// Where the estimate is from: one of these at most.
void add_sources(CLI::App& command, RunOptions& options) {
  std::string& summary = options.request.summary;
  CLI::Option* const summaries = command.add_option("--summary", summary, "estimate from this model summary");
  CLI::Option* const config = command.add_option("--config", summary, "or from this config.json, or a model's folder");
  CLI::Option* const recording = command.add_option("--recording", summary, "or from this recording of a step");
  CLI::Option* const rad = command.add_option("--rad", options.rad, "or from one of CARMA's job descriptions");
  CLI::Option* const memory =
      command.add_option("--memory", options.memory, "or the memory that the job takes, if you know it: 12GiB");
  const std::vector<CLI::Option*> sources = {summaries, config, recording, rad, memory};
  for (CLI::Option* const source : sources) {
    for (CLI::Option* const other : sources) {
      if (source != other) source->excludes(other);
    }
  }
}

}  // namespace

void add_run(CLI::App& command, RunOptions& options) {
  add_sources(command, options);
  command
      .add_option("--gpus", options.gpus,
                  "how many GPUs (it gets all of them or waits); default: from the .rad file, or 1")
      ->transform(whole_number());
  command.add_flag("--exclusive", options.exclusive, "only idle GPUs, and no other job on them");
  command.add_option("--smact", options.smact, "its SM activity: estimate, a share from 0 to 1, or none")
      ->capture_default_str();
  command
      .add_option("--recovery", options.recovery,
                  "when it runs out of memory: exclusive (run again with the GPUs to itself) or grow (ask for more)")
      ->capture_default_str();
  command.add_option("--retries", options.retries, "how often it runs again when it runs out of memory")
      ->transform(whole_number())
      ->capture_default_str();
  command
      .add_option("--settle", options.settle_s,
                  "without an estimate: seconds before another job may join it on its GPUs")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 86400.0).description(""));
  command.add_option("--name", options.name, "its name in the queue; default: from the command");
  command.add_flag("-q,--quiet", options.quiet, "print only errors");
  add_queue_directory(command, options.directory);
  add_job_options(command, options.request);
  command.footer(
      "Waits for its turn on the GPUs of this machine, and runs the command there (CUDA_VISIBLE_DEVICES). Everybody's\n"
      "jobs share one queue, first come, first served; a job that ran out of memory goes first. Without an estimate a\n"
      "job needs --free-floor of free memory. The exit code is the command's, or 128 plus the number of the signal "
      "that\n"
      "ended it; 4 if no GPU could ever hold it.");
}

void add_queue(CLI::App& command, QueueOptions& options) {
  add_queue_directory(command, options.directory);
  command.add_flag("--json", options.json, "print one JSON object");
}

void add_cancel(CLI::App& command, CancelOptions& options) {
  command.add_option("job", options.job, "its number in the queue, or train.py#12")->required();
  add_queue_directory(command, options.directory);
  command.footer("A job that runs gets SIGTERM, and SIGKILL ten seconds later.");
}

}  // namespace gpumem::cli
