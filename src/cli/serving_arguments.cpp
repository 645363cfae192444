#include "serving_arguments.hpp"

#include <algorithm>
#include <string>

#include "gpumem/serve/server_command.hpp"

namespace gpumem::cli {

namespace {

/// vLLM's own options, for those who do not put its command behind "--".
void add_vllm_options(CLI::App& command, ServeOptions& options) {
  for (const serve::ServingOption& option : serve::serving_options()) {
    std::string flag = "--" + std::string(option.name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    const auto set = [&options, name = std::string(option.name)](const std::string& value) {
      options.values[name] = value;
    };
    const auto turn_on = [&options, name = std::string(option.name)](std::int64_t) { options.values[name] = "true"; };
    const std::string help(option.help);
    const char* const type = option.word != nullptr    ? "NAME"
                             : option.share != nullptr ? "SHARE"
                             : option.gib != nullptr   ? "GIB"
                                                       : "N";
    if (option.flag != nullptr) command.add_flag_function(flag, turn_on, help)->group("vLLM's options");
    else command.add_option_function<std::string>(flag, set, help)->type_name(type)->group("vLLM's options");
  }
}

}  // namespace

void add_serve(CLI::App& command, ServeOptions& options) {
  command.add_option(
      "config", options.config,
      "the model's config.json, its folder, or a name in the local HuggingFace cache; default: from the command");
  command.add_option("--gpu", options.gpu, "a name from 'gpumem gpus', or a profile")->capture_default_str();
  command.add_option("--engine-version", options.engine_version, "the engine's version, such as 0.19.0");
  CLI::Option* fit = command.add_flag("--fit", options.fit, "how far each option can go on this GPU");
  CLI::Option* advise =
      command.add_flag("--advise", options.advise, "changes with which it starts, or holds more, by what they cost")
          ->excludes(fit);
  CLI::Option* plan =
      command.add_option("--plan", options.plan, "how to share out this many GPUs, the most tokens of KV cache first")
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
  add_vllm_options(command, options);
  command.footer(
      "Behind -- comes the command that starts the server, or give its options here:\n"
      "  gpumem serve config.json --gpu h100-80gb -- vllm serve NAME --max-model-len 8192\n"
      "  gpumem serve config.json --gpu h100-80gb -- python -m sglang.launch_server --model-path NAME --tp 2\n"
      "Exit code 4 if the server does not start; with --fit if it starts with no context, with --advise if no change "
      "helps, with --plan if no layout starts.");
}

}  // namespace gpumem::cli
