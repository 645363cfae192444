#include "model_arguments.hpp"

namespace gpumem::cli {

void add_model_show(CLI::App& command, ModelShowOptions& options) {
  command.add_option("folder", options.folder, "a built-in model's name, or a folder")->required();
  command.add_flag("--json", options.json, "print its config");
}

void add_model_verify(CLI::App& command, ModelVerifyOptions& options) {
  command.add_option("folders", options.folders, "built-in models' names, or folders")->required();
}

void add_model_run(CLI::App& command, ModelRunOptions& options) {
  command.add_option("folder", options.folder, "a built-in model's name, or a folder")->required();
  command.add_option("inputs", options.file, "the file with the inputs; - is standard input")->capture_default_str();
  command.footer(
      "An input: {\"features\": [25557032, 32], \"sequence\": [[1, 0], [0, 1]]}, the sequence only for a model that\n"
      "reads one; other fields are ignored. The answer to a bad line is an error object.");
}

void add_model_import(CLI::App& command, ModelImportOptions& options) {
  command.add_option("checkpoint", options.checkpoint, "the PyTorch Lightning checkpoint (.ckpt)")->required();
  command.add_option("-o,--out", options.out, "the folder to write")->required();
  command.add_flag("--force", options.force, "overwrite a model that is there");
  command.footer("The checkpoint is read without Python. None of its code is run.");
}

}  // namespace gpumem::cli
