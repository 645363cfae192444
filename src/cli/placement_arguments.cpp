#include "placement_arguments.hpp"

#include <string>

#include "gpumem/place/policies.hpp"
#include "job_arguments.hpp"

namespace gpumem::cli {

namespace {

std::string policy_names() {
  std::string names;
  for (const auto& entry : gpumem::place::policies()) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return names;
}

}  // namespace

void add_placement_options(CLI::App& command, PlacementOptions& options) {
  command.add_option("--policy", options.policy, policy_names() + "; CARMA's names work too");
  command
      .add_option("--margin", options.margin, "memory beyond what is expected, or upper: the estimate's upper bound")
      ->capture_default_str();
  command
      .add_option("--smact-cap", options.smact_cap,
                  "no further job on a GPU with this SM activity or more; none: no limit")
      ->capture_default_str();
  command.add_option("--free-floor", options.free_floor, "no further job on a GPU with less free memory than this")
      ->capture_default_str();
  command.add_flag("--idle-first", options.idle_first, "prefer idle GPUs, as CARMA's server does");
}

void add_place(CLI::App& command, PlaceOptions& options) {
  command
      .add_option("job", options.job,
                  "one of CARMA's .rad files, a model summary, or a server's config.json; - is standard input")
      ->required(options.command.empty());
  command
      .add_option("--server", options.server, "the server: its GPUs and the jobs there, as JSON; live: this machine")
      ->required();
  command.add_option("--window", options.window, "how long a live server's SM activity is watched")
      ->capture_default_str();
  command
      .add_option("--gpus", options.gpus,
                  "how many GPUs (it gets all of them or waits); default: from the layout or the .rad file, or 1")
      ->transform(whole_number());
  command.add_flag("--exclusive", options.exclusive, "only idle GPUs");
  command.add_option("--turn", options.turn, "round-robin: the first GPU to try, counted from 0")
      ->transform(whole_number());
  command.add_option("--id", options.id, "the job's name in the answer; default: the file's");
  command
      .add_option("--smact", options.smact,
                  "the job's own SM activity, added to that of the jobs there: none, estimate, or a share")
      ->capture_default_str();
  add_placement_options(command, options.placing);
  add_job_options(command, options.request);
  name_estimators(command, Estimators::one);
  command.get_option("--batch")->description("the batch size; default: from the .rad file or the recording");
  command.add_option("--engine-version", options.engine_version, "of a server's engine, such as 0.19.0");
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(
      "The command that starts a training or a server may stand behind --, and says what no option does:\n"
      "  gpumem place --server server.json -- torchrun --nproc-per-node 2 train.py --config config.yaml\n"
      "  gpumem place config.json --server server.json -- vllm serve NAME --max-model-len 8192\n"
      "--estimator none places without an estimate. --gpu is the profile of GPUs that have none in the server's file.\n"
      "A server:\n"
      "  {\"format\": \"gpumem-server\", \"version\": 1, \"gpus\": [{\"id\": \"0\", \"profile\": \"a100-40gb\",\n"
      "   \"used_mib\": 13312, \"smact\": 0.41, \"jobs\": [{\"id\": \"resnet50\", \"memory_mib\": 12288}]}]}\n"
      "Exit code 5 if the job has to wait, 4 if the server could never hold it.");
}

void add_server(CLI::App& command, ServerOptions& options) {
  command.add_option("--window", options.window, "how long SM activity is watched, such as 60s or 500ms")
      ->capture_default_str();
  CLI::Option* const watch = command.add_flag("--watch", options.watch, "print a line per second, for people");
  command.add_option("--lines", options.lines, "with --watch: stop after this many lines")
      ->transform(whole_number())
      ->needs(watch);
  command.add_flag("--json", options.json, "print JSON in a terminal too")->excludes(watch);
  command.footer(
      "Prints a table in a terminal, otherwise (or with --json) the JSON that 'gpumem place --server' reads. Needs "
      "NVIDIA's driver,\n"
      "or the library named in GPUMEM_NVML. SM activity is NVML's GPM figure on Hopper and later, otherwise\n"
      "nvidia-smi's utilisation: the share of time with any kernel, which is at least as high. \"smact_source\" says\n"
      "which.");
}

void add_simulate(CLI::App& command, SimulateOptions& options) {
  command.add_option("trace", options.trace, "the jobs (CSV); - is standard input")->required();
  command.add_option("--gpus", options.gpus, "the server, such as 4xa100-40gb,2xh200")->capture_default_str();
  command.add_option("--policy", options.policy, policy_names())->capture_default_str();
  command
      .add_option("--estimator", options.estimator,
                  "none, true (what the jobs really need), a column of estimates in the trace (horus, ...), or an "
                  "estimator of gpumem's if the trace names summaries")
      ->capture_default_str();
  command
      .add_option("--margin", options.margin,
                  "memory beyond the estimate: 2GiB, 1.15x, or upper (the estimate's upper bound)")
      ->capture_default_str();
  command.add_option("--sharing", options.sharing, "mps or streams")->capture_default_str();
  command
      .add_option("--recovery", options.recovery,
                  "when a job runs out of memory: exclusive (it runs again alone) or grow (it asks for more)")
      ->capture_default_str();
  command.add_option(
      "--smact-cap", options.smact_cap,
      "no further job on a GPU with this SM activity, or none: no limit (default 0.8; round-robin: none)");
  command.add_option("--free-floor", options.free_floor,
                     "no further job on a GPU with less free memory (default 5GiB without an estimate, otherwise 0)");
  command.add_flag("--no-idle-first", options.no_idle_first, "do not prefer idle GPUs");
  command.add_option("--window", options.window_s, "seconds from one placement to the next")->capture_default_str();
  command.add_option("--ramp", options.ramp_s, "mean seconds until a job has grown to its full memory")
      ->capture_default_str();
  command.add_option("--smact", options.smact, "SM activity of jobs without one in the trace")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0).description(""));
  command
      .add_option("--missing-duration", options.missing_duration,
                  "duration of jobs without one in the trace: median, skip, or seconds")
      ->capture_default_str();
  command.add_option("--idle-watts", options.idle_watts, "power of an idle GPU; known for the A100");
  command.add_option("--peak-watts", options.peak_watts, "power of a GPU at full SM activity");
  command.add_option("--seed", options.seed, "seed of the random part: how fast each job grows")->capture_default_str();
  command.add_flag("--json", options.json, "print one JSON object");
  command.add_option("-o,--out", options.out, "write a picture (SVG)");
  command.footer(
      "A trace: arrival_s,task,gpus,duration_s,measured_mib and one job a row. gpumem_datasets/trace.hpp says what "
      "else "
      "it\n"
      "may hold, simulator.hpp what the simulation assumes.");
}

}  // namespace gpumem::cli
