#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "gpumem/core/gzip.hpp"
#include "gpumem/search/frameworks.hpp"
#include "gpumem/summary/text.hpp"
#include "gpumem/utilisation/utilisation_estimators.hpp"
#include "job_arguments.hpp"
#include "placement_arguments.hpp"
#include "queue_arguments.hpp"
#include "trainer_files.hpp"

namespace {

using namespace gpumem::cli;
namespace job = gpumem::job;

/// Each estimator with what it is, one line each.
std::string estimator_list() {
  constexpr std::size_t kName = 24;
  std::string text = "Estimators:\n";
  for (const auto& entry : gpumem::estimate::estimators()) {
    std::string name(entry.name);
    name.resize(std::max(name.size() + 1, kName), ' ');
    text += "  " + name + std::string(entry.description) + "\n";
  }
  return text;
}

std::string utilisation_estimator_names() {
  std::string names;
  for (const auto& entry : gpumem::utilisation::utilisation_estimators()) names += std::string(entry.name) + ", ";
  return names + "all";
}

/// Whether the file begins as a recording does, which has a batch size of its own. Others are not opened: opening alone
/// may block.
bool may_be_recording(const std::string& path) {
  std::error_code fault;
  if (!std::filesystem::is_regular_file(path, fault)) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 128> front{};
  file.read(front.data(), front.size());
  const std::string_view text(front.data(), static_cast<std::size_t>(file.gcount()));
  return gpumem::core::is_gzip(text) || gpumem::summary::is_recording(text);
}

/// The options of a job, with its summary; the batch size is required, unless that is a recording.
void add_job(CLI::App& command, JobRequest& request, std::initializer_list<std::string_view> without = {}) {
  CLI::Option& summary =
      *command.add_option("summary", request.summary, "the model summary, or a recording; - is standard input");
  summary.required();
  add_job_options(command, request, without);
  CLI::Option* const batch = command.get_option_no_throw("--batch");
  if (batch == nullptr) return;
  batch->required();
  summary.each([batch](const std::string& path) {
    if (may_be_recording(path)) batch->required(false);
  });
}

/// A trainer's file names the model and the batch size, so that neither has to be named.
void add_trainer(CLI::App& command, EstimateOptions& options) {
  std::string names;
  for (const auto* format : gpumem::trainer_files::trainer_formats()) {
    names += (names.empty() ? "" : ", ") + std::string(format->description);
  }
  CLI::Option* const summary = command.get_option("summary");
  CLI::Option* const batch = command.get_option("--batch");
  command.add_option("--trainer", options.trainer, "take the job from a trainer's file: " + names)
      ->each([summary, batch](const std::string&) {
        summary->required(false);
        batch->required(false);
      });
  command.add_option("--adapter", options.adapter, "with --trainer: PEFT's adapter_config.json, or its folder");
}

void add_estimate(CLI::App& command, EstimateOptions& options) {
  add_job(command, options.request);
  name_estimators(command);
  add_trainer(command, options);
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(estimator_list());
}

void add_fit(CLI::App& command, FitOptions& options) {
  add_job(command, options.request, {"batch_size"});
  command.add_option("--batch", options.batch, "find the longest sequence at this batch size, not the largest batch")
      ->transform(whole_number());
  name_estimators(command);
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer("Exit code 4 if not even one sample, or one token of each, fits.");
}

void add_advise(CLI::App& command, AdviseOptions& options) {
  add_job(command, options.request);
  name_estimators(command);
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer("Exit code 4 if nothing makes it fit.");
}

std::string framework_names() {
  std::string names;
  for (const auto& framework : gpumem::search::frameworks()) names += std::string(framework.name) + ", ";
  return names + "any";
}

/// What a plan chooses is no option of it.
void add_plan(CLI::App& command, PlanOptions& options) {
  add_job(command, options.request,
          {"batch_size", "accumulate", "data_parallel", "sharding", "tensor_parallel", "sequence_parallel",
           "pipeline_parallel", "virtual_stages", "schedule", "context_parallel", "expert_parallel", "rank",
           "checkpointing", "estimator", "model"});
  command.get_option("--precision")->default_str("bf16-mixed");
  command.get_option("--optimizer")->default_str("adamw");
  command
      .add_option("--gpus", options.gpus, "how many GPUs; default: the fewest of 1, 2, 4, ... on which a layout fits")
      ->transform(whole_number());
  command.add_option("--global-batch", options.global_batch, "samples a step, of all GPUs")
      ->required()
      ->transform(whole_number());
  command.add_option("--framework", options.framework, framework_names())->capture_default_str();
  command.add_option("--gpus-per-node", options.gpus_per_node, "default: as the GPU's profile says, or 8")
      ->transform(whole_number());
  command.add_option("--network-gbps", options.network_gbps,
                     "of one GPU to other nodes, in 10^9 bits a second; default: as the GPU's profile says, or 100");
  command.add_option("--show", options.show, "how many layouts")->transform(whole_number())->capture_default_str();
  command.add_option("--settings", options.settings, "of how many of them the framework's settings are printed")
      ->transform(whole_number())
      ->capture_default_str();
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(
      "Layouts are ranked by the time of a step, from a roofline of kernels, links and network: it is not measured.\n"
      "Exit code 4 if no layout fits.");
}

std::string target_names() {
  std::string names;
  for (const auto& entry : gpumem::request::targets()) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

void add_request(CLI::App& command, RequestOptions& options) {
  add_job(command, options.request);
  name_estimators(command);
  command.add_option("--for", options.target, target_names())->required();
  command
      .add_option("--margin", options.margin, "upper: the estimate's; or bytes beyond what is expected, such as 2GiB")
      ->capture_default_str();
  command
      .add_option("--gpus-per-node", options.site.gpus_per_node,
                  "GPUs of each node that a job on several takes; default: all of them on one node, up to 8")
      ->transform(whole_number());
  command.add_option("--container", options.site.container, "kai-limit: the container that trains")
      ->capture_default_str();
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(
      "Standard output holds nothing but what is to be pasted, or given to a command:\n"
      "  sbatch $(gpumem request vgg16.txt --batch 64 --for slurm) job.sh\n"
      "Exit code 4 if no GPU of the type named holds the job.");
}

void add_timeline(CLI::App& command, TimelineOptions& options) {
  add_job(command, options.request, {"estimator", "model"});
  command.add_option("-o,--out", options.out, "the HTML page to write")->required();
}

void add_batch(CLI::App& command, BatchOptions& options) {
  command.add_option("jobs", options.file, "the file with the jobs; - is standard input")->capture_default_str();
  add_job_options(command, options.defaults);
  name_estimators(command);
  command.get_option("--batch")->description("the batch size of jobs that name none");
  command.footer(
      "A job: {\"summary\": \"resnet50.txt\", \"batch_size\": 32, \"gpu\": \"a100-40gb\"}\n"
      "The options are the defaults of what a job leaves out. A bad line is answered by an error object.");
}

void add_gpus(CLI::App& command, GpusOptions& options) {
  command.add_option("name", options.name, "show this profile in full, with the source of each figure");
  command.add_flag("--json", options.json, "print the profiles as a JSON list");
}

void add_evaluate(CLI::App& command, EvaluateOptions& options) {
  command.add_option("runs", options.runs, "the table of measured runs (CSV)")->required();
  command.add_option("--estimator", options.estimator, estimator_names())->capture_default_str();
  command.add_option("--model", options.model, job::help_text(*job::find_option("model")));
  command.add_option("--summaries", options.summaries, "folder with the summaries of models that the table only names");
  command.add_option("--gpu", options.gpu, "profile for all runs; default: as the table says");
  command.add_option("--out", options.out, "write each prediction to this CSV file");
  command.add_option("--filter", options.filter, "only runs whose name holds this");
  command.add_flag(
      "--utilisation", options.utilisation,
      "how busy the GPU was, by its counters, instead of memory; --estimator: " + utilisation_estimator_names());
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(
      "A table: summary,batch_size,input,seq_length,optimizer,precision,gpu,measured_mib and one run a row, the\n"
      "summary's path relative to the table. GPUMemNet's and xMem's published tables are read as they are, and\n"
      "tables of language models: name,config,gpu,batch_size,seq_length,figure,measured_mib, and a column an option.");
}

void add_utilisation(CLI::App& command, UtilisationOptions& options) {
  add_job(command, options.request, {"estimator"});
  command.add_option("--estimator", options.estimator, utilisation_estimator_names())->capture_default_str();
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(
      "Shares are of the GPU that is named. SMACT, SMOCC, GRACT, FP32A: DCGM's profiling counters; GPU-Util: "
      "nvidia-smi's.\n"
      "The host counts as well: a slow data loader idles a GPU, and the estimates take an average one.");
}

void add_calibrate(CLI::App& command, CalibrateOptions& options) {
  command.add_option("runs", options.runs, "the table of measured runs (CSV), as for evaluate")->required();
  command.add_option("--gpu", options.gpu, "the profile to begin with")->capture_default_str();
  command.add_option("--estimator", options.estimator, "an estimator that tells reserved memory")
      ->capture_default_str();
  command.add_option("--summaries", options.summaries, "folder with the summaries of models that the table only names");
  command.add_option("-o,--out", options.out, "the profile to write, ending in .json")->required();
}

void add_model_show(CLI::App& command, ModelShowOptions& options) {
  command.add_option("folder", options.folder, "the model's folder")->required();
  command.add_flag("--json", options.json, "print its config");
}

void add_model_verify(CLI::App& command, ModelVerifyOptions& options) {
  command.add_option("folders", options.folders, "the models' folders")->required();
}

void add_model_run(CLI::App& command, ModelRunOptions& options) {
  command.add_option("folder", options.folder, "the model's folder")->required();
  command.add_option("inputs", options.file, "the file with the inputs; - is standard input")->capture_default_str();
  command.footer(
      "An input: {\"features\": [25557032, 32], \"sequence\": [[1, 0], [0, 1]]}, the sequence only for a model that\n"
      "reads one; other fields are ignored. A bad line is answered by an error object.");
}

void add_model_import(CLI::App& command, ModelImportOptions& options) {
  command.add_option("checkpoint", options.checkpoint, "the PyTorch Lightning checkpoint (.ckpt)")->required();
  command.add_option("-o,--out", options.out, "the folder to write")->required();
  command.add_flag("--force", options.force, "write over another model that is there");
  command.footer("The checkpoint is read without Python, and none of its code is run.");
}

void add_replay_trace(CLI::App& command, ReplayTraceOptions& options) {
  command.add_option("trace", options.trace, "the recording, as JSON; - is standard input")->required();
  command.add_option("--gpu", options.gpu, "say whether it fits there: a name from 'gpumem gpus', or a profile");
  command.add_option("--alloc-conf", options.allocator, "as PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True, ...");
  command.add_option("--device", options.device, "which GPU of the recording; the first that it holds")
      ->transform(whole_number());
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(
      "A recording is torch.cuda.memory._snapshot() written with json.dump, or the chrome trace of torch.profiler\n"
      "with profile_memory=True, from a GPU or a CPU; examples/pytorch/record_trace.py makes one.");
}

int run_evaluate_asked(const EvaluateOptions& options) {
  return options.utilisation ? run_evaluate_utilisation(options) : run_evaluate(options);
}

/// What runs a command that was parsed.
using Run = std::function<int()>;

/// A command: its word, what it is for, and its options, which are added to what parses them.
struct Command {
  std::string name;
  std::string description;
  std::function<Run(CLI::App& parser)> add;
};

template <typename Options>
Command command(std::string name, std::string description, void (*add)(CLI::App&, Options&),
                int (*run)(const Options&)) {
  const auto add_options = [add, run](CLI::App& parser) -> Run {
    const auto options = std::make_shared<Options>();
    add(parser, *options);
    return [run, options] { return run(*options); };
  };
  return {std::move(name), std::move(description), add_options};
}

/// Adds the commands, and the options of the one that is asked for: those of all others would take longer than most
/// estimates. Output: what runs it; empty where none is named `asked`.
Run add_commands(CLI::App& app, const std::vector<Command>& commands, std::string_view asked) {
  Run run;
  for (const Command& command : commands) {
    CLI::App& parser = *app.add_subcommand(command.name, command.description);
    if (command.name == asked) run = command.add(parser);
  }
  return run;
}

/// The `position`-th word that is no option, the first of which names the command.
std::string_view word_at(const std::vector<std::string>& words, std::size_t position) {
  for (std::size_t index = 1; index < words.size(); ++index) {
    if (words[index].starts_with('-')) continue;
    if (position-- == 0) return words[index];
  }
  return {};
}

std::vector<Command> model_commands() {
  return {
      command("show", "what a model reads and gives, where it is from, how good it is", add_model_show, run_model_show),
      command("verify", "that models load and give what their test vectors say", add_model_verify, run_model_verify),
      command("run", "one JSON object of raw figures a line in, the outputs a line out", add_model_run, run_model_run),
      command("import", "a model folder from one of GPUMemNet's published checkpoints", add_model_import,
              run_model_import),
  };
}

/// What stands behind "--" is the user's own command, and no word of ours.
Command run_command(const std::vector<std::string>& theirs) {
  const auto add = [theirs](CLI::App& parser) -> Run {
    const auto options = std::make_shared<RunOptions>();
    add_run(parser, *options);
    add_placement_options(parser, options->placing);
    name_estimators(parser);
    options->command = theirs;
    return [options] { return run_run(*options); };
  };
  return {"run", "run a command on this machine's GPUs when its turn comes", add};
}

/// The commands about trained models have commands of their own.
Command model_command(const std::vector<std::string>& words) {
  const auto add = [&words](CLI::App& parser) {
    parser.require_subcommand(1);
    return add_commands(parser, model_commands(), word_at(words, 1));
  };
  return {"model", "trained models: folders of config.json and model.safetensors", add};
}

/// Every command, a row each. They view `words`.
std::vector<Command> commands(const std::vector<std::string>& words, const std::vector<std::string>& theirs) {
  return {
      command("estimate", "how much memory one training job will take", add_estimate, run_estimate),
      command("fit", "the largest batch that fits on a GPU, or the longest sequence", add_fit, run_fit),
      command("advise", "which changes of a job make it fit, the cheapest first", add_advise, run_advise),
      command("plan", "which layouts over GPUs fit, the fastest first", add_plan, run_plan),
      command("request", "what to ask a scheduler or launcher for, in its own units", add_request, run_request),
      command("timeline", "a page that shows the memory of a training run, event by event", add_timeline, run_timeline),
      command("batch", "one JSON job a line in, one estimate a line out", add_batch, run_batch),
      command("evaluate", "predicted against measured, over a table of runs", add_evaluate, run_evaluate_asked),
      command("utilisation", "how busy one training job will keep a GPU", add_utilisation, run_utilisation),
      command("calibrate", "a GPU profile with the context that your own runs show", add_calibrate, run_calibrate),
      command("gpus", "the GPUs that gpumem knows", add_gpus, run_gpus),
      model_command(words),
      command("place", "which GPUs of a server a job should run on, or why none now", add_place, run_place),
      command("server", "the GPUs of this machine, for place and for people", add_server, run_server),
      run_command(theirs),
      command("queue", "who waits for this machine's GPUs, and what runs where", add_queue, run_queue),
      command("cancel", "take a job out of the queue, or end it", add_cancel, run_cancel),
      command("replay-trace", "what PyTorch's caching allocator makes of a recorded run", add_replay_trace,
              run_replay_trace),
      command("simulate", "what a placement policy makes of a trace of jobs", add_simulate, run_simulate),
  };
}

int run(int argc, char** argv) {
  CLI::App app("How much GPU memory a deep-learning training job will take, before it runs and without a GPU.",
               "gpumem");
  app.set_version_flag("--version", "gpumem " GPUMEM_VERSION_STRING);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 2 wrong usage, 3 bad input, 4 an estimate that cannot be made, 5 a job that has to wait.");

  const CutWords cut = cut_command({argv, static_cast<std::size_t>(argc)});
  const std::vector<std::string> words = with_switches_joined(cut.ours);
  const Run run_asked = add_commands(app, commands(words, cut.theirs), word_at(words, 0));
  std::vector<const char*> arguments;
  arguments.reserve(words.size());
  for (const std::string& word : words) arguments.push_back(word.c_str());
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const OptionRefused& refused) {
    return report_error(refused.error);
  } catch (const CLI::ParseError& wrong) {
    std::fprintf(stderr, "gpumem: error: %s; see gpumem --help\n", wrong.what());
    return gpumem::core::exit_code(gpumem::ErrorCode::invalid_argument);
  }
  return run_asked();
}

}  // namespace

int gpumem::cli::run_command_line(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    // A full disk or a closed pipe must not look like success.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return report_error({gpumem::ErrorCode::unreadable_file, "standard output cannot be written", {}});
  } catch (const std::exception& error) {  // gpumem throws nothing by design; memory may run out
    std::fprintf(stderr, "gpumem: error: %s\n", error.what());
    return gpumem::core::exit_code(gpumem::ErrorCode::overflow);
  }
}
