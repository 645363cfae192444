#include "serving_arguments.hpp"

#include <string>

#include "gpumem/serve/server_command.hpp"
#include "job_arguments.hpp"

namespace gpumem::cli {

namespace {

/// vLLM's own options, for those who do not put its command behind "--".
void add_vllm_options(CLI::App& command, ServeOptions& options) {
  for (const serve::ServingOption& option : serve::serving_options()) {
    const char* const type = option.flag != nullptr    ? ""
                             : option.word != nullptr  ? "NAME"
                             : option.share != nullptr ? "SHARE"
                             : option.gib != nullptr   ? "GIB"
                                                       : "N";
    add_word(command, options.values, {option.name, type, std::string(option.help), "vLLM's options"});
  }
}

}  // namespace

void add_serve(CLI::App& command, ServeOptions& options) {
  command.add_option(
      "config", options.config,
      "the model's config.json, its folder, or its name on the HuggingFace hub; default: from the command");
  command.add_option("--gpu", options.gpu, "a name from 'gpumem gpus', or a profile")->capture_default_str();
  command.add_option("--engine-version", options.engine_version, "the engine's version, such as 0.19.0");
  add_questions(command, options, "changes with which it starts, or holds more, by what they cost",
                "how to share out this many GPUs, the most tokens of KV cache first");
  add_vllm_options(command, options);
  command.footer(
      "Behind -- comes the command that starts the server, or give its options here:\n"
      "  gpumem serve config.json --gpu h100-80gb -- vllm serve NAME --max-model-len 8192\n"
      "  gpumem serve config.json --gpu h100-80gb -- python -m sglang.launch_server --model-path NAME --tp 2\n"
      "Exit code 4 if the server does not start; with --fit if it starts with no context, with --advise if no change "
      "helps, with --plan if no layout starts.");
}

}  // namespace gpumem::cli
