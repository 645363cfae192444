// The commands, one file each. A command reads its options, writes its answer to standard output and what
// went wrong to standard error, and returns the exit code: 0, 2 usage, 3 bad input, 4 no estimate, 5 a job
// that has to wait.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "estimated_jobs.hpp"
#include "gpumem/posttrain/post_training_job.hpp"
#include "placement_options.hpp"
#include "plan_words.hpp"

namespace gpumem::cli {

struct EstimateOptions {
  JobRequest request;
  std::string trainer;  ///< a trainer's file, whose options count where the request was given none; empty: none
  std::string adapter;  ///< PEFT's adapter_config.json, or its folder; empty: the one next to the trainer's file
  std::vector<std::string> command;  ///< that starts the training; empty: none
  bool json = false;
};
int run_estimate(const EstimateOptions& options);

struct FitOptions {
  JobRequest request;                      ///< what it says of what is looked for is ignored
  std::optional<std::int64_t> batch = {};  ///< at which something else than the batch is looked for
  std::optional<std::string> find = {};    ///< a name of estimate::kGrows; else the sequence with `batch`, or the batch
  std::vector<std::string> command = {};   ///< that starts the training; empty: none
  bool json = false;
};
int run_fit(const FitOptions& options);

struct AdviseOptions {
  JobRequest request;
  std::vector<std::string> command = {};  ///< that starts the training; empty: none
  bool json = false;
};
int run_advise(const AdviseOptions& options);

/// A guard for scripts: one line, and whether the job fits as the exit code.
struct CheckOptions {
  JobRequest request;
  std::vector<std::string> command;  ///< that starts the training; empty: none
  bool surely = false;               ///< a job that is tight does not pass
  bool json = false;
};
int run_check(const CheckOptions& options);

/// Options of a job that a plan chooses, or has no use for: neither the command line nor a launch command sets them.
inline constexpr std::string_view kChosenByPlan[] = {"batch_size",        "accumulate",         "data_parallel",
                                                     "sharding",          "tensor_parallel",    "sequence_parallel",
                                                     "pipeline_parallel", "virtual_stages",     "schedule",
                                                     "pipeline_layers",   "first_stage_layers", "last_stage_layers",
                                                     "context_parallel",  "expert_parallel",    "rank",
                                                     "checkpointing",     "estimator",          "model"};

int run_plan(const PlanOptions& options);

struct RequestOptions {
  JobRequest request;
  std::string engine_version;        ///< of a server
  std::vector<std::string> command;  ///< "vllm serve ...": of a server, which the request's summary is the config of
  std::string target;                ///< a name of request::targets()
  std::string margin = "upper";      ///< as place::parse_margin() takes it
  request::Site site;
  bool json = false;
};
int run_request(const RequestOptions& options);

struct TimelineOptions {
  JobRequest request;
  std::string out;  ///< the page to write
};
int run_timeline(const TimelineOptions& options);

struct BatchOptions {
  std::string file = "-";  ///< one JSON job a line; "-" is standard input
  JobRequest defaults;
};
int run_batch(const BatchOptions& options);

/// What `batch` answers, line by line, to any number of threads.
class BatchAnswers {
 public:
  explicit BatchAnswers(JobRequest defaults) : defaults_(std::move(defaults)) {}
  /// One JSON object without a line end: the estimate of the job in this line, or an error object. `number` is the
  /// line's, from 1.
  [[nodiscard]] std::string answer(std::string_view line, std::int64_t number);

 private:
  JobRequest defaults_;
  Session session_;
};

struct GpusOptions {
  std::string name;                 ///< one profile in full; empty: the list
  JobRequest request;               ///< with a summary: what this job takes on each of them
  std::vector<std::string> prices;  ///< "h100-80gb=2.5": of an hour, in a currency of the user's own
  bool json = false;
};
int run_gpus(const GpusOptions& options);

struct ModelsOptions {
  std::string part;  ///< of a name, in any case; empty: all
  bool json = false;
};
int run_models(const ModelsOptions& options);

struct ServeOptions {
  std::string config;  ///< a config.json, its folder, or a name; empty: the model that the command names
  std::string gpu = kDefaultGpu;
  std::string engine_version;                 ///< "0.19.0"; empty: the newest whose rules are known
  std::map<std::string, std::string> values;  ///< of options, by vLLM's names
  bool fit = false;                           ///< how far each option can go, instead of the memory
  bool advise = false;                        ///< what would help, instead of the memory
  std::int64_t plan = 0;                      ///< layouts of so many GPUs, instead of the memory; 0: none
  std::string target;                         ///< of `request`: what to ask it for, instead of the memory
  std::string margin = "upper";               ///< with a target
  bool json = false;
  std::vector<std::string> command;  ///< "vllm serve ..."
};
int run_serve(const ServeOptions& options);

struct McpOptions {};
/// Answers a client of the Model Context Protocol on standard input and output, until that ends.
int run_mcp(const McpOptions& options);

struct PostTrainingCommand {
  posttrain::PostTrainingRequest request;
  std::map<std::string, std::string> values;  ///< of the options of post-training, by their names
  std::string config;                         ///< a program's file of settings, in JSON or YAML; empty: none
  std::vector<std::string> command;           ///< "swift rlhf --rlhf_type grpo ..."
  bool fit = false;                           ///< how far each option can go, instead of the memory
  bool advise = false;                        ///< what would help, instead of the memory
  std::int64_t plan = 0;                      ///< layouts of so many GPUs, instead of the memory; 0: none
  std::string target;                         ///< of `request`: what to ask it for, instead of the memory
  std::string margin = "upper";               ///< with a target
  bool json = false;
};
int run_post_training(const PostTrainingCommand& command);

struct EvaluateOptions {
  std::string runs;      ///< a table of measured runs
  std::string vllm_log;  ///< instead: the log of one start of vLLM
  std::string config;    ///< the model of that start; empty: by its name
  std::string estimator = kDefaultEstimator;
  std::string model;         ///< of learned estimators: a built-in model, or a folder; empty: their own
  std::string summaries;     ///< folder with the summaries, for tables that only name models
  std::string gpu;           ///< profile for all runs; empty: as the table says
  std::string out;           ///< file for the predictions, one row a run; empty: none
  std::string filter;        ///< only runs with this text in their name
  bool utilisation = false;  ///< of the GPU, instead of memory
  bool json = false;
};
int run_evaluate(const EvaluateOptions& options);
/// Of starts of inference servers; nothing: it is another table.
std::optional<int> run_evaluate_serving(const EvaluateOptions& options);
int run_evaluate_vllm_log(const EvaluateOptions& options);
/// With kDefaultEstimator, every estimator of utilisation.
int run_evaluate_utilisation(const EvaluateOptions& options);

struct UtilisationOptions {
  JobRequest request;  ///< its estimator is ignored
  std::string estimator = "utilisation-mlp";
  bool json = false;
};
int run_utilisation(const UtilisationOptions& options);

struct CalibrateOptions {
  std::string runs;  ///< a table of measured runs
  std::string gpu = kDefaultGpu;
  std::string estimator = kDefaultEstimator;  ///< one that tells reserved memory
  std::string summaries;                      ///< as of EvaluateOptions
  std::string out;                            ///< the profile to write
};
int run_calibrate(const CalibrateOptions& options);

struct ModelShowOptions {
  std::string folder;  ///< of a trained model
  bool json = false;   ///< the config
};
int run_model_show(const ModelShowOptions& options);

struct ModelVerifyOptions {
  std::vector<std::string> folders;
};
int run_model_verify(const ModelVerifyOptions& options);

struct ModelRunOptions {
  std::string folder;
  std::string file = "-";  ///< one JSON object a line: {"features": [...], "sequence": [[...], ...]}
};
int run_model_run(const ModelRunOptions& options);

struct ModelImportOptions {
  std::string checkpoint;  ///< one of GPUMemNet's
  std::string out;         ///< the model's folder
  bool force = false;      ///< overwrite a model that is there
};
int run_model_import(const ModelImportOptions& options);

/// In place of an estimator's name: nothing is known about the job's memory.
inline constexpr const char* kNoEstimator = "none";

struct PlaceOptions {
  std::string job;     ///< a .rad file, or a summary; of a server its config
  std::string server;  ///< the server as JSON, or "live": this machine
  std::string id;      ///< the job's name in the answer; empty: the file's
  JobRequest request;  ///< its summary is ignored, and its GPU is that of GPUs without a profile
  PlacementOptions placing;
  std::optional<std::int64_t> gpus = {};  ///< nothing: as the layout or the .rad file says, or 1
  std::size_t turn = 0;                   ///< the round-robin's
  std::string window = "1s";              ///< of a live server, as monitor::parse_window() takes it
  std::string smact = "none";             ///< the job's own SM activity: none (not known), estimate, or a share
  bool exclusive = false;
  bool json = false;
  std::string engine_version;        ///< of a server
  std::vector<std::string> command;  ///< that starts the training, or the server; empty: none
};
int run_place(const PlaceOptions& options);
/// The same of a job that is a server.
int run_place_server(const PlaceOptions& options);

struct ServerOptions {
  std::string window = "1s";  ///< as monitor::parse_window() takes it
  bool watch = false;         ///< a line a second for people
  std::int64_t lines = 0;     ///< of these so many; 0: without end
  bool json = false;          ///< what is printed without --watch as well
};
int run_server(const ServerOptions& options);

struct ReplayTraceOptions {
  std::string trace;                        ///< the recording; "-" is standard input
  std::string gpu;                          ///< empty: no limit
  std::string allocator;                    ///< as PYTORCH_CUDA_ALLOC_CONF
  std::optional<std::int64_t> device = {};  ///< which GPU of the recording; nothing: the first
  bool json = false;
};
int run_replay_trace(const ReplayTraceOptions& options);

struct SimulateOptions {
  std::string trace;                        ///< a CSV file (gpumem_datasets/trace.hpp)
  std::string gpus = "4xa100-40gb";         ///< "4xa100-40gb,2xh200"
  std::string policy = "magm";              ///< one of place::policies()
  std::string estimator = "none";           ///< none, true, a column of the trace, or an estimator of ours
  std::string margin = "2GiB";              ///< beyond the estimate: bytes, a factor ("1.15x") or "upper"
  std::string sharing = "mps";              ///< or streams
  std::string recovery = "exclusive";       ///< or grow
  std::string smact_cap;                    ///< a share, or "none"; empty: CARMA's
  std::string free_floor;                   ///< bytes; empty: CARMA's
  std::string missing_duration = "median";  ///< or skip, or seconds
  bool no_idle_first = false;
  double smact = 0.5;  ///< of jobs that the trace gives none for
  double window_s = 60.0;
  double ramp_s = 60.0;
  std::optional<double> idle_watts = {};
  std::optional<double> peak_watts = {};
  std::uint64_t seed = 1;
  bool json = false;
  std::string out;  ///< the picture to write; empty: none
};
int run_simulate(const SimulateOptions& options);

struct RunOptions {
  std::vector<std::string> command;  ///< the user's program and its arguments; empty: as the .rad file says
  JobRequest request;          ///< its summary, or a config or recording; its GPU is that of GPUs without a profile
  std::string rad;             ///< one of CARMA's job descriptions, instead of a summary
  std::string memory;          ///< what the user says that the job takes, instead of an estimate
  std::string smact = "none";  ///< its SM activity: a share, "none", or "estimate"
  PlacementOptions placing;
  std::optional<std::int64_t> gpus = {};  ///< nothing: as the .rad file says, or 1
  std::string recovery = "exclusive";     ///< or grow
  std::int64_t retries = 3;
  double settle_s = 30.0;  ///< without an estimate: until what it takes can be seen
  std::string directory;   ///< of the queue; empty: as launcher::queue_directory() finds it
  std::string name;        ///< of the job; empty: by its command
  bool exclusive = false;
  bool quiet = false;
};
/// Returns the exit code of the user's program.
int run_run(const RunOptions& options);

struct QueueOptions {
  std::string directory;  ///< as of RunOptions
  bool json = false;
};
int run_queue(const QueueOptions& options);

struct CancelOptions {
  std::string job;        ///< its number, or its name with the number after "#"
  std::string directory;  ///< as of RunOptions
};
int run_cancel(const CancelOptions& options);

/// "gpumem: error: FILE:LINE: ..." on standard error; returns the exit code of its kind.
int report_error(const Error& error);

}  // namespace gpumem::cli
