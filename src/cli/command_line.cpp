#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checking_arguments.hpp"
#include "command_table.hpp"
#include "commands.hpp"
#include "completion.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/search/frameworks.hpp"
#include "help_text.hpp"
#include "job_arguments.hpp"
#include "manual.hpp"
#include "model_arguments.hpp"
#include "placement_arguments.hpp"
#include "post_training_arguments.hpp"
#include "queue_arguments.hpp"
#include "serving_arguments.hpp"
#include "trainer_files.hpp"
#include "wrong_words.hpp"

namespace {

using namespace gpumem::cli;
namespace job = gpumem::job;

/// Each estimator with what it is.
std::string estimator_list() {
  std::string text = "Estimators:\n";
  for (const auto& entry : gpumem::estimate::estimators()) {
    text += help_entry(entry.name, entry.description, help_width());
  }
  text.pop_back();  // CLI11 ends it
  return text;
}

/// Whether a command behind "--" says what the job is.
enum class Told : std::uint8_t { here, by_command };

Told told_by(const std::vector<std::string>& theirs) { return theirs.empty() ? Told::here : Told::by_command; }

/// The options of a job, with its summary; the batch size is required, unless that is a recording, or a command tells.
void add_job(CLI::App& command, JobRequest& request, const std::vector<std::string_view>& without = {},
             Told told = Told::here) {
  CLI::Option& summary =
      *command.add_option("summary", request.summary,
                          "the model: a printed summary, a config.json or its folder, a known name, a graph or "
                          "a recording; - is standard input");
  summary.required(told == Told::here);
  add_job_options(command, request, without);
  CLI::Option* const batch = command.get_option_no_throw("--batch");
  if (batch == nullptr || told == Told::by_command) return;
  batch->required();
  summary.each([batch](const std::string& path) {
    if (may_be_recording(path)) batch->required(false);
  });
}

/// A trainer's file names the model and the batch size, so that neither has to be named.
void add_trainer(CLI::App& command, EstimateOptions& options) {
  std::string names;
  for (const auto* format : gpumem::trainer_files::trainer_formats()) {
    if (format->description.empty()) continue;  // it has words alone
    names += (names.empty() ? "" : ", ") + std::string(format->description);
  }
  CLI::Option* const summary = command.get_option("summary");
  CLI::Option* const batch = command.get_option("--batch");
  command.add_option("--trainer", options.trainer, "take the job from a trainer's file: " + names)
      ->each([summary, batch](const std::string&) {
        summary->required(false);
        batch->required(false);
      });
  command.add_option("--adapter", options.adapter, "PEFT's adapter_config.json, or its folder; also with --trainer");
}

constexpr const char* kCommandTells =
    "Behind -- comes the command that starts the training, in place of options:\n"
    "  gpumem estimate --gpu h100-80gb -- axolotl train axolotl.yaml\n";

void add_estimate(CLI::App& command, EstimateOptions& options) {
  add_job(command, options.request, {}, told_by(options.command));
  name_estimators(command);
  add_trainer(command, options);
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer([] { return kCommandTells + estimator_list(); });  // made for help alone
}

void add_fit(CLI::App& command, FitOptions& options) {
  add_job(command, options.request, {"batch_size"}, told_by(options.command));
  command.add_option("--batch", options.batch, "find the longest sequence at this batch size, not the largest batch")
      ->transform(whole_number());
  command.add_option("--find", options.find,
                     "what to make as large as fits: batch, sequence, image (of --image's shape), images or frames a "
                     "sample; a batch of 1 unless --batch says another");
  name_estimators(command, Estimators::one);
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer("Exit code 4 if not even batch 1 fits, one token per sample, or the smallest of what --find names.");
}

void add_check(CLI::App& command, CheckOptions& options) {
  add_job(command, options.request, {}, told_by(options.command));
  name_estimators(command, Estimators::one);
  command.add_flag("--surely", options.surely, "a job that is tight does not pass");
  command.add_flag("--json", options.json, "print one JSON object, on one line");
  command.footer(
      "It prints one line, for scripts:\n"
      "  gpumem check -- COMMAND && COMMAND\n"
      "Exit code 0 if the job fits, or is tight; 4 if it does not fit.");
}

void add_advise(CLI::App& command, AdviseOptions& options) {
  add_job(command, options.request, {}, told_by(options.command));
  name_estimators(command, Estimators::one);
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer("Exit code 4 if nothing makes it fit.");
}

std::string framework_names() {
  std::string names;
  for (const auto& framework : gpumem::search::frameworks()) names += std::string(framework.name) + ", ";
  return names + "any";
}

void limit_ranks(CLI::App& command, gpumem::search::MostRanks& most) {
  const auto add = [&command](const char* name, std::optional<std::int64_t>& limit, const char* help) {
    command.add_option(name, limit, help)->transform(whole_number());
  };
  add("--at-most-tensor-parallel", most.tensor_parallel, "the most tensor parallel ranks of a layout");
  add("--at-most-context-parallel", most.context_parallel, "the most context parallel ranks");
  add("--at-most-pipeline-parallel", most.pipeline_parallel, "the most pipeline stages, virtual ones not counted");
  add("--at-most-expert-parallel", most.expert_parallel, "the most expert parallel ranks");
}

/// What a plan chooses is no option of it.
void add_plan(CLI::App& command, PlanOptions& options) {
  add_job(command, options.request, {std::begin(kChosenByPlan), std::end(kChosenByPlan)}, told_by(options.command));
  command.get_option("--precision")->default_str("bf16-mixed");
  command.get_option("--optimizer")->default_str("adamw");
  command
      .add_option("--gpus", options.gpus,
                  "how many GPUs; 8,16,32 compares these; default: the smallest of 1, 2, 4, ... on which a layout fits")
      ->delimiter(',')
      ->transform(whole_number());
  const bool told = told_by(options.command) == Told::by_command;
  if (told) options.global_batch = 0;  // as the command says
  command.add_option("--global-batch", options.global_batch, "samples per step, on all GPUs together")
      ->required(!told)
      ->transform(whole_number());
  command.add_option("--framework", options.framework, framework_names())->capture_default_str();
  limit_ranks(command, options.most);
  command.add_option("--explain", options.explain,
                     "a layout, as \"tensor-parallel=8 sharding=fsdp2\": why it is not the first one");
  command.add_option("--gpus-per-node", options.gpus_per_node, "GPUs in a node; default: from the GPU's profile, or 8")
      ->transform(whole_number());
  command.add_option("--network-gbps", options.network_gbps,
                     "network speed of one GPU, in Gbit/s; default: from the GPU's profile, or 100");
  command.add_flag("--no-overlap", options.no_overlap,
                   "Megatron without --overlap-grad-reduce and --overlap-param-gather");
  command.add_option("--show", options.show, "how many layouts to print")
      ->transform(whole_number())
      ->capture_default_str();
  command.add_option("--settings", options.settings, "print the framework's settings for this many layouts")
      ->transform(whole_number())
      ->capture_default_str();
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(
      "Layouts are ranked by the time of a step; those without headroom come last. The times are not measured:\n"
      "they come from a roofline of kernels, links and network.\n"
      "Exit code 4 if no layout fits.");
}

std::string target_names() {
  std::string names;
  for (const auto& entry : gpumem::request::targets()) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

void add_request(CLI::App& command, RequestOptions& options) {
  add_job(command, options.request);
  if (!options.command.empty()) {  // it names the model, and a training's its batch
    command.get_option("--batch")->required(false);
    command.get_option("summary")->required(false);
  }
  name_estimators(command, Estimators::one);
  command.add_option("--for", options.target, target_names())->required();
  command.add_option("--engine-version", options.engine_version, "of a server's engine, such as 0.19.0");
  command
      .add_option("--margin", options.margin,
                  "upper (the estimate's upper bound), or bytes beyond what is expected, such as 2GiB")
      ->capture_default_str();
  command
      .add_option("--gpus-per-node", options.site.gpus_per_node,
                  "GPUs that a job takes on each node; default: all on one node, up to 8")
      ->transform(whole_number());
  command.add_option("--container", options.site.container, "kai-limit: the container that trains")
      ->capture_default_str();
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(
      "Standard output has only the text to paste, or to give to a command:\n"
      "  sbatch $(gpumem request vgg16.txt --batch 64 --for slurm) job.sh\n"
      "The command that starts the training, or a server, may come behind --:\n"
      "  sbatch $(gpumem request --gpu h100-80gb --for slurm -- axolotl train x.yaml) job.sh\n"
      "  gpumem request config.json --gpu h100-80gb --for hami -- vllm serve NAME --max-model-len 8192\n"
      "Exit code 4 if no GPU of this type holds the job.");
}

void add_timeline(CLI::App& command, TimelineOptions& options) {
  add_job(command, options.request, {"estimator", "model"});
  command.add_option("-o,--out", options.out, "the HTML page to write")->required();
}

void add_batch(CLI::App& command, BatchOptions& options) {
  command.add_option("jobs", options.file, "the file with the jobs; - is standard input")->capture_default_str();
  add_job_options(command, options.defaults);
  name_estimators(command);
  command.get_option("--batch")->description("the batch size of jobs without one");
  command.footer(
      "A job:\n"
      "  {\"summary\": \"resnet50.txt\", \"batch_size\": 32, \"gpu\": \"a100-40gb\"}\n"
      "The options are defaults for what a job leaves out. The answer to a bad line is an error object.");
}

void add_mcp(CLI::App& command, McpOptions& /*options*/) {
  command.footer(
      "Tools: estimate, fit, advise, gpus, plan, serve. An assistant's settings name the command `gpumem mcp`.\n"
      "It reads the files that a call or its command names, accelerate's own config and the local HuggingFace cache,\n"
      "and nothing else. It uses no network.");
}

void add_gpus(CLI::App& command, GpusOptions& options) {
  command.add_option("name", options.name, "show this profile in full, with the source of each figure");
  command.add_option("--for", options.request.summary,
                     "say which of them hold this model's job, and how large a batch");
  add_job_options(command, options.request, {"gpu"});
  name_estimators(command, Estimators::one);
  options.request.training.batch_size = 1;
  command.get_option("--batch")->default_str("1");
  command
      .add_option("--price", options.prices, "with --for: what an hour on a GPU costs, GPU=PRICE; the cheapest first")
      ->delimiter(',');
  command.add_flag("--json", options.json, "print a JSON list");
  command.footer("Exit code 4 with --for if no GPU holds the job.");
}

void add_models(CLI::App& command, ModelsOptions& options) {
  command.add_option("text", options.part, "only those with this in their names");
  command.add_flag("--json", options.json, "print a JSON object");
  command.footer("Exit code 4 if no model has the text in its name.");
}

void add_utilisation(CLI::App& command, UtilisationOptions& options) {
  add_job(command, options.request, {"estimator"});
  command.add_option("--estimator", options.estimator, utilisation_estimator_names())->capture_default_str();
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(
      "Figures are shares of this GPU. SMACT, SMOCC, GRACT, FP32A: DCGM's profiling counters; GPU-Util: "
      "nvidia-smi's.\n"
      "The host matters too: a slow data loader leaves a GPU idle. The estimates assume an average host.");
}

void add_completion(CLI::App& command, CompletionOptions& options) {
  command.add_option("shell", options.shell, "bash, zsh or fish")->required();
  command.add_option("-o,--out", options.out, "write it to this file");
  command.footer(
      "Installing gpumem puts these files where the shells look for them. Without installing, for one shell:\n"
      "  source <(gpumem completion bash)\n"
      "  source <(gpumem completion zsh)\n"
      "  gpumem completion fish | source");
}

void add_man(CLI::App& command, ManOptions& options) {
  command.add_option("command", options.command, "the command; default: gpumem itself");
  command.add_option("-o,--out", options.out, "write the page of every command to this folder");
  command.footer(
      "Installing gpumem adds these pages: man gpumem-estimate. Without installing:\n"
      "  gpumem man estimate | man -l -");
}

int run_evaluate_asked(const EvaluateOptions& options) {
  if (!options.vllm_log.empty()) return run_evaluate_vllm_log(options);
  if (const std::optional<int> served = run_evaluate_serving(options)) return *served;
  return options.utilisation ? run_evaluate_utilisation(options) : run_evaluate(options);
}

/// What runs a command that was parsed.
using Run = std::function<int()>;

/// A command: its word, the heading under which help lists it, what it is for, and its options, which are added to what
/// parses them.
struct Command {
  std::string name;
  std::string group;
  std::string description;
  std::function<Run(CLI::App& parser)> add;
};

template <typename Options>
Command command(std::string name, std::string group, std::string description, void (*add)(CLI::App&, Options&),
                int (*run)(const Options&)) {
  const auto add_options = [add, run](CLI::App& parser) -> Run {
    const auto options = std::make_shared<Options>();
    add(parser, *options);
    return [run, options] { return run(*options); };
  };
  return {std::move(name), std::move(group), std::move(description), add_options};
}

// Headings of the list of commands.
constexpr const char* kAsk = "What a job takes";
constexpr const char* kPlace = "Where it runs";
constexpr const char* kCheck = "How good the figures are";
constexpr const char* kKnow = "What gpumem knows";
constexpr const char* kTrained = "Commands";

/// In place of a command that is asked for: all of them are.
constexpr std::string_view kEvery = "*";

/// Adds the commands, and the options of the one that is asked for: those of all others would take longer than most
/// estimates. Output: what runs it; empty where none is named `asked`.
Run add_commands(CLI::App& app, const std::vector<Command>& commands, std::string_view asked) {
  Run run;
  for (const Command& command : commands) {
    CLI::App& parser = *app.add_subcommand(command.name, command.description)->group(command.group);
    if (asked == kEvery) parser.parse_complete_callback([kept = command.add(parser)] {});
    else if (command.name == asked) run = command.add(parser);
  }
  return run;
}

std::vector<Command> model_commands() {
  return {
      command("show", kTrained, "what a model reads and predicts, where it comes from, how good it is", add_model_show,
              run_model_show),
      command("verify", kTrained, "check that models load and reproduce their test vectors", add_model_verify,
              run_model_verify),
      command("run", kTrained, "run a model: one JSON object of raw figures a line in, its outputs a line out",
              add_model_run, run_model_run),
      command("import", kTrained, "make a model folder from one of GPUMemNet's published checkpoints", add_model_import,
              run_model_import),
  };
}

/// What follows "--" is the user's own command, not ours.
Command run_command(const std::vector<std::string>& theirs) {
  const auto add = [theirs](CLI::App& parser) -> Run {
    const auto options = std::make_shared<RunOptions>();
    add_run(parser, *options);
    add_placement_options(parser, options->placing);
    name_estimators(parser, Estimators::one);
    options->command = theirs;
    return [options] { return run_run(*options); };
  };
  return {"run", kPlace, "run a command on this machine's GPUs when its turn comes", add};
}

/// What follows "--" is the command of the program that the answer is about.
template <typename Options>
Command command_about(const char* name, const char* group, const std::string& help, void (*add)(CLI::App&, Options&),
                      int (*run)(const Options&), const std::vector<std::string>& theirs) {
  const auto add_it = [add, run, theirs](CLI::App& parser) -> Run {
    const auto options = std::make_shared<Options>();
    options->command = theirs;
    add(parser, *options);
    return [options, run] { return run(*options); };
  };
  return {name, group, help, add_it};
}

/// The commands about trained models have commands of their own.
Command model_command(const std::vector<std::string>& words) {
  const auto add = [&words](CLI::App& parser) {
    parser.require_subcommand(1);
    return add_commands(parser, model_commands(), word_at(words, 1));
  };
  return {"model", kKnow, "trained models: folders of config.json and model.safetensors", add};
}

/// Every command, a row each. They view `words`.
std::vector<Command> commands(const std::vector<std::string>& words, const std::vector<std::string>& theirs) {
  return {
      command_about("estimate", kAsk, "how much memory one training job will take", add_estimate, run_estimate, theirs),
      command_about("fit", kAsk, "the largest batch that fits on a GPU, or the longest sequence", add_fit, run_fit,
                    theirs),
      command_about("check", kAsk, "whether a job fits, in one line and the exit code", add_check, run_check, theirs),
      command_about("advise", kAsk, "which changes make a job fit, the cheapest first", add_advise, run_advise, theirs),
      command_about("plan", kAsk, "which layouts over GPUs fit, the fastest first", add_plan, run_plan, theirs),
      command_about("request", kPlace, "what to ask a scheduler for, in its own units", add_request, run_request,
                    theirs),
      command("timeline", kAsk, "a page that shows the memory of a training run, event by event", add_timeline,
              run_timeline),
      command("batch", kAsk, "many jobs: one JSON job per line in, one estimate per line out", add_batch, run_batch),
      command("evaluate", kCheck, "compare estimates with a table of measured runs", add_evaluate, run_evaluate_asked),
      command("utilisation", kAsk, "how busy one training job will keep a GPU", add_utilisation, run_utilisation),
      command("calibrate", kCheck, "make a GPU profile with the context that your own runs show", add_calibrate,
              run_calibrate),
      command("gpus", kKnow, "the GPUs that gpumem knows", add_gpus, run_gpus),
      command("models", kKnow, "the models that gpumem knows: by type, and by published name", add_models, run_models),
      model_command(words),
      command_about("serve", kAsk, "what an inference server of vLLM or SGLang takes, and whether it starts", add_serve,
                    run_serve, theirs),
      command_about("posttrain", kAsk, "what a job of DPO, GRPO, PPO or the like takes, phase by phase",
                    add_post_training, run_post_training, theirs),
      command_about("place", kPlace, "which GPUs of a server a job should run on, or why it has to wait", add_place,
                    run_place, theirs),
      command("server", kPlace, "the GPUs of this machine and their jobs", add_server, run_server),
      run_command(theirs),
      command("queue", kPlace, "who waits for this machine's GPUs, and what runs where", add_queue, run_queue),
      command("cancel", kPlace, "take a job out of the queue, or end it", add_cancel, run_cancel),
      command("replay-trace", kCheck, "replay a recorded run through a model of PyTorch's allocator", add_replay_trace,
              run_replay_trace),
      command("simulate", kPlace, "simulate a placement policy on a trace of jobs", add_simulate, run_simulate),
      command("mcp", kAsk, "answer an assistant, over the Model Context Protocol on standard input and output", add_mcp,
              run_mcp),
      command("completion", kKnow, "a completion script for bash, zsh or fish", add_completion, run_completion),
      command("man", kKnow, "the manual page of a command, as roff", add_man, run_man),
  };
}

constexpr const char* kWhatItIs =
    "How much GPU memory a deep-learning training job will take, before it runs and without a GPU.";
constexpr const char* kExamples =
    "  gpumem estimate resnet50.txt --batch 32 --gpu a100-40gb\n"
    "  gpumem estimate --help\n";
constexpr const char* kExitCodes =
    "Exit codes: 0 done, 2 wrong usage, 3 bad input, 4 no estimate possible, or the job does not fit, 5 the job must "
    "wait.";

/// The program's flags; commands that are added after them have them too.
void add_program_flags(CLI::App& app) {
  app.set_version_flag("--version", "gpumem " GPUMEM_VERSION_STRING, "print the version");
  app.set_help_flag("-h,--help", "print this help");
}

int run(int argc, char** argv) {
  CLI::App app(kWhatItIs, "gpumem");
  add_program_flags(app);
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpText>(help_width()));

  const CutWords cut = cut_command({argv, static_cast<std::size_t>(argc)});
  std::vector<std::string> words = with_switches_joined(cut.ours);
  const Run run_asked = add_commands(app, commands(words, cut.theirs), word_at(words, 0));
  name_as_usual(command_of(app, words), words);
  app.footer(std::string(kExamples) + "\n" + kExitCodes);  // commands made after this would have it too
  std::vector<const char*> arguments;
  arguments.reserve(words.size());
  for (const std::string& word : words) arguments.push_back(word.c_str());
  if (words.size() < 2) {
    std::fputs(app.help().c_str(), stderr);
    return gpumem::core::exit_code(gpumem::ErrorCode::invalid_argument);
  }
  if (const auto unknown = unknown_command(app, words)) {
    return report_error({gpumem::ErrorCode::invalid_argument, *unknown, {}});
  }
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const OptionRefused& refused) {
    return report_error(refused.error);
  } catch (const CLI::ParseError& wrong) {
    return report_error({gpumem::ErrorCode::invalid_argument, what_is_wrong(app, wrong), {}});
  }
  return run_asked();
}

}  // namespace

gpumem::cli::CommandRow gpumem::cli::command_table() {
  CLI::App app(kWhatItIs, "gpumem");
  add_program_flags(app);
  const std::vector<std::string> words = {"gpumem", std::string(kEvery), std::string(kEvery)};
  add_commands(app, commands(words, {}), kEvery);
  CommandRow program = row_of(app, "");
  std::vector<std::string> names;
  for (const CommandRow& command : program.commands) names.push_back(command.name);
  for (CommandRow& command : program.commands) {
    if (command.name == "man") command.arguments.front().values.words = names;
  }
  return program;
}

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
