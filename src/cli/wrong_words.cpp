#include "wrong_words.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"

namespace gpumem::cli {

namespace {

/// The words that name the command which was parsed: "gpumem model show".
std::string named(const CLI::App& app) {
  std::string names = app.get_name();
  for (const CLI::App* command : app.get_subcommands()) names += " " + named(*command);
  return names;
}

/// The options of the command that was parsed, by their long names.
std::vector<std::string> options_of(const CLI::App& app) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  if (!commands.empty()) return options_of(*commands.front());
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string nearest_of(const std::string& word, const std::vector<std::string>& names) {
  return core::did_you_mean(word, std::vector<std::string_view>(names.begin(), names.end()));
}

/// What other programs (transformers, PEFT, accelerate, DeepSpeed, Megatron-LM, vLLM, torchrun) call an option of ours.
struct OthersWords {
  std::string_view ours;
  std::string_view theirs;  ///< with a space on each side
};
constexpr OthersWords kOthersWords[] = {
    {"--batch", " --per-device-train-batch-size --train-batch-size --micro-batch --micro-batch-size --bs "},
    {"--max-num-seqs", " --batch --batch-size --concurrency "},
    {"--seq",
     " --sequence-length --seq-length --seqlen --max-length --max-seq-length --max-seq-len --cutoff-len "
     "--context --context-length --model-max-length --max-tokens "},
    {"--max-model-len", " --seq --seq-len --context --context-length --max-length --sequence-length "},
    {"--accumulate", " --gradient-accumulation-steps --gradient-accumulation --grad-accum --accumulation-steps "},
    {"--precision", " --dtype --bf16 --fp16 --amp --mixed-precision --torch-dtype "},
    {"--quantize", " --load-in-4bit --load-in-8bit --bits --qlora --quantization --4bit --8bit "},
    {"--peft", " --finetune --fine-tune --finetuning-type --tuner-type --adapter-type "},
    {"--lora", " --lora-r --lora-rank "},
    {"--lora-targets", " --target-modules --lora-target-modules --lora-target "},
    {"--attention", " --flash-attention --flash-attn --attn-implementation --attn-impl "},
    {"--sharding", " --zero --zero-stage --zero-1 --zero-2 --zero-3 --fsdp --fsdp2 --deepspeed "},
    {"--tensor-parallel", " --tp --tensor-model-parallel-size "},
    {"--tensor-parallel-size", " --tp --tensor-model-parallel-size --gpus --num-gpus "},
    {"--pipeline-parallel", " --pp --pipeline-model-parallel-size "},
    {"--pipeline-parallel-size", " --pp "},
    {"--context-parallel", " --cp --ulysses --sequence-parallel-size "},
    {"--expert-parallel", " --ep --expert-model-parallel-size "},
    {"--gpus", " --num-gpus --n-gpus --ngpus --world-size --nproc-per-node --num-processes "},
    {"--data-parallel",
     " --dp --ddp --gpus --num-gpus --n-gpus --ngpus --world-size --nproc-per-node --num-processes "},
    {"--optimizer", " --optim "},
    {"--gpu", " --device --vram --gpu-memory --gpu-type "},
};

/// The option among these that other programs call by this word; else the nearest in spelling. transformers and PEFT
/// write their options with underscores.
std::string meant_option(const std::string& word, const std::vector<std::string>& names) {
  std::string dashed = word;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (const OthersWords& row : kOthersWords) {
    const bool is_here = std::find(names.begin(), names.end(), row.ours) != names.end();
    if (is_here && row.theirs.find(" " + dashed + " ") != std::string_view::npos) {
      return " (did you mean " + core::quoted(row.ours) + "?)";
    }
  }
  return nearest_of(dashed, names);
}

/// The first option among words that are left over; CLI11 turns their order round.
std::optional<std::string> unknown_option(const std::vector<std::string>& left) {
  const auto option = std::find_if(left.rbegin(), left.rend(), [](const auto& word) { return word.starts_with('-'); });
  return option == left.rend() ? std::nullopt : std::optional(option->substr(0, option->find('=')));
}

}  // namespace

std::string_view word_at(const std::vector<std::string>& words, std::size_t position) {
  for (std::size_t index = 1; index < words.size(); ++index) {
    if (words[index].starts_with('-')) continue;
    if (position-- == 0) return words[index];
  }
  return {};
}

const CLI::App& command_of(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* place = &app;
  for (std::size_t position = 0;; ++position) {
    const std::string_view word = word_at(words, position);
    const auto commands = place->get_subcommands([word](const CLI::App* one) { return one->get_name() == word; });
    if (commands.empty()) return *place;
    place = commands.front();
  }
}

std::optional<std::string> unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* place = &app;
  std::string known = app.get_name();
  for (std::size_t position = 0; place->get_require_subcommand_min() > 0; ++position) {
    const std::string word(word_at(words, position));
    if (word.empty()) return std::nullopt;
    const auto commands = place->get_subcommands([&word](const CLI::App* one) { return one->get_name() == word; });
    if (commands.empty()) {
      std::vector<std::string> names;
      for (const CLI::App* one : place->get_subcommands(nullptr)) names.push_back(one->get_name());
      return "there is no command " + core::quoted(word) + nearest_of(word, names) + "; " + known +
             " --help lists the commands";
    }
    place = commands.front();
    known += " " + word;
  }
  return std::nullopt;
}

std::string what_is_wrong(const CLI::App& app, const CLI::ParseError& wrong) {
  const std::string command = named(app);
  std::string message = wrong.what();
  const std::vector<std::string> left = app.remaining(true);
  if (const auto option = unknown_option(left)) {  // before what is missing: it may be misspelt
    message = command + " has no option " + core::quoted(*option) + meant_option(*option, options_of(app));
  } else if (dynamic_cast<const CLI::ExtrasError*>(&wrong) != nullptr && !left.empty()) {
    message = command + " takes no further word " + core::quoted(left.back());
  } else if (message.find("subcommand is required") != std::string::npos) {
    message = "no command is named";
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&wrong) != nullptr && message.ends_with(" missing")) {
    message = message.substr(0, message.find(':')) + " needs a value";
  }
  return message + "; see " + command + " --help";
}

}  // namespace gpumem::cli
