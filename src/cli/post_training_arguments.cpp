#include "post_training_arguments.hpp"

#include <algorithm>
#include <string>

#include "gpumem/job/job_options.hpp"
#include "gpumem/posttrain/post_training_options.hpp"
#include "job_arguments.hpp"

namespace gpumem::cli {

namespace {

/// The options of post-training; those of how the policy is trained stand below them.
void add_post_training_options(CLI::App& command, PostTrainingCommand& options) {
  for (const posttrain::PostTrainingOption& option : posttrain::post_training_options()) {
    std::string flag = "--" + std::string(option.name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    const auto set = [&options, name = std::string(option.name)](const std::string& word) {
      options.values[name] = word;
    };
    const auto turn_on = [&options, name = std::string(option.name)](std::int64_t) { options.values[name] = "true"; };
    const std::string help = job::spelled(posttrain::help_of(option), job::kCommandLine);
    if (option.value.empty()) command.add_flag_function(flag, turn_on, help)->group("Post-training");
    else
      command.add_option_function<std::string>(flag, set, help)
          ->type_name(std::string(option.value))
          ->group("Post-training");
  }
}

}  // namespace

void add_post_training(CLI::App& command, PostTrainingCommand& options) {
  command.add_option("model", options.request.training.summary,
                     "the policy's config.json, or another model summary; default: what the program's settings name");
  command.add_option("--config", options.config, "a program's settings, as JSON or YAML: TRL's config, verl's, ...");
  add_post_training_options(command, options);
  add_job_options(command, options.request.training, {"estimator", "model", "samples", "validation"});
  command.get_option("--batch")->description("samples of a forward pass: pairs of answers, or completions");
  CLI::Option* fit = command.add_flag("--fit", options.fit, "how far each option can go on this GPU");
  CLI::Option* advise =
      command.add_flag("--advise", options.advise, "changes after which it takes less, by what they cost")
          ->excludes(fit);
  CLI::Option* plan =
      command.add_option("--plan", options.plan, "how to share out this many GPUs between training and generation")
          ->excludes(fit)
          ->excludes(advise)
          ->check(CLI::Range(1, 1024).description(""))
          ->type_name("GPUS");
  CLI::Option* target =
      command.add_option("--for", options.target, "what to ask this scheduler for, as 'gpumem request' does")
          ->excludes(fit)
          ->excludes(advise)
          ->excludes(plan)
          ->type_name("TARGET");
  command.add_option("--margin", options.margin, "with --for: upper, or bytes beyond what is expected")
      ->needs(target)
      ->capture_default_str();
  command.add_flag("--json", options.json, "print one JSON object")->excludes(target);
  command.footer(
      "The figures are those of one GPU. Behind -- comes the command that starts the training, or give options here:\n"
      "  gpumem posttrain config.json --gpu h100-80gb -- swift rlhf SETTINGS\n"
      "Exit code 4 if the job does not fit, with --fit if no batch does, with --advise if no change helps, with --plan "
      "if no layout fits.");
}

}  // namespace gpumem::cli
