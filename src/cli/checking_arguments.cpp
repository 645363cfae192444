#include "checking_arguments.hpp"

#include "gpumem/job/job_options.hpp"
#include "gpumem/utilisation/utilisation_estimators.hpp"
#include "job_arguments.hpp"

namespace gpumem::cli {

std::string utilisation_estimator_names() {
  std::string names;
  for (const auto& entry : gpumem::utilisation::utilisation_estimators()) names += std::string(entry.name) + ", ";
  return names + "all";
}

void add_evaluate(CLI::App& command, EvaluateOptions& options) {
  CLI::Option* log = command.add_option("--vllm-log", options.vllm_log, "instead: the log of one start of vLLM");
  command.add_option("runs", options.runs, "the table of measured runs (CSV)")->excludes(log);
  command.add_option("--config", options.config, "with --vllm-log: the model's config.json; default: by its name")
      ->needs(log);
  command.add_option("--estimator", options.estimator, estimator_names())->capture_default_str();
  command.add_option("--model", options.model, job::help_text(*job::find_option("model")));
  command.add_option("--summaries", options.summaries, "folder with the summaries, for tables that only name models");
  command.add_option("--gpu", options.gpu, "profile for all runs; default: the table's");
  command.add_option("--out", options.out, "write each prediction to this CSV file");
  command.add_option("--filter", options.filter, "only runs with this text in their name");
  command.add_flag("--utilisation", options.utilisation,
                   "compare GPU utilisation instead of memory; --estimator: " + utilisation_estimator_names());
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(
      "A table: summary,batch_size,input,seq_length,optimizer,precision,gpu,measured_mib with one run a row, the\n"
      "summary's path relative to the table. Also read: GPUMemNet's and xMem's published tables, tables of language\n"
      "models (name,config,gpu,batch_size,seq_length,figure,measured_mib, and a column per option), and of starts of\n"
      "vLLM (name,model,engine,version,gpu,weights_gib,kv_cache_tokens,status; configs/OWNER--NAME.json beside it).");
}

void add_calibrate(CLI::App& command, CalibrateOptions& options) {
  command.add_option("runs", options.runs, "the table of measured runs (CSV), as for evaluate")->required();
  command.add_option("--gpu", options.gpu, "the profile to start from")->capture_default_str();
  command.add_option("--estimator", options.estimator, "an estimator that gives reserved memory")
      ->capture_default_str();
  command.add_option("--summaries", options.summaries, "folder with the summaries, for tables that only name models");
  command.add_option("-o,--out", options.out, "the profile to write, ending in .json")->required();
}

void add_replay_trace(CLI::App& command, ReplayTraceOptions& options) {
  command.add_option("trace", options.trace, "the trace, as JSON; - is standard input")->required();
  command.add_option("--gpu", options.gpu,
                     "check whether it fits on this GPU: a name from 'gpumem gpus', or a profile");
  command.add_option("--alloc-conf", options.allocator,
                     "the value of PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True, ...");
  command.add_option("--device", options.device, "which GPU of the trace; default: the first one in it")
      ->transform(whole_number());
  command.add_flag("--json", options.json, "print one JSON object");
  command.footer(
      "A trace is torch.cuda.memory._snapshot() written with json.dump, or the chrome trace of torch.profiler\n"
      "with profile_memory=True, from a GPU or a CPU; examples/pytorch/record_trace.py makes one.");
}

}  // namespace gpumem::cli
