#include "post_training_arguments.hpp"

#include <string>

#include "gpumem/job/job_options.hpp"
#include "gpumem/posttrain/post_training_job.hpp"
#include "job_arguments.hpp"

namespace gpumem::cli {

namespace {

/// The options of post-training; those of how the policy is trained stand below them.
void add_post_training_options(CLI::App& command, PostTrainingCommand& options) {
  for (const posttrain::PostTrainingOption& option : posttrain::post_training_options()) {
    const std::string help = job::spelled(posttrain::help_of(option), job::kCommandLine);
    add_word(command, options.values, {option.name, option.value, help, "Post-training"});
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
  add_questions(command, options, "changes after which it takes less, by what they cost",
                "how to share out this many GPUs between training and generation");
  command.footer(
      "The figures are those of one GPU. Behind -- comes the command that starts the training, or give options here:\n"
      "  gpumem posttrain config.json --gpu h100-80gb -- swift rlhf SETTINGS\n"
      "Exit code 4 if the job does not fit, with --fit if no batch does, with --advise if no change helps, with --plan "
      "if no layout fits.");
}

}  // namespace gpumem::cli
