// Formats of trainers' files are separate from the library: each is one file that knows none of the others, and a row
// in the list; yaml-cpp is optional, and one file knows it.
#include <gtest/gtest.h>

#include <set>

#include "sources.hpp"

namespace gpumem::architecture {
namespace {

using Names = std::set<std::string>;

const Names kShared = {"setting",       "yaml_settings", "toml_settings",  "trainer_format", "shared_settings",
                       "command_words", "launchers",     "image_trainers", "trained_blocks", "megatron_bridge"};
const Names kLists = {"trainer_files", "launch_command"};
/// Laid over what another file says: no trainer's own.
const Names kBeside = {"peft_adapter"};

std::vector<Source> trainer_files() { return sources_below(kRoot / "src" / "trainer_files"); }

/// The formats, by the files that define them.
Names formats() {
  Names all;
  for (const Source& file : trainer_files()) {
    const std::string stem = stem_of(file.path);
    if (file.path.ends_with(".cpp") && !kShared.contains(stem) && !kLists.contains(stem)) all.insert(stem);
  }
  return all;
}

TEST(TrainerFiles, AFormatKnowsNoOther) {
  const Names all = formats();
  EXPECT_GE(all.size(), 6U);
  for (const Source& file : trainer_files()) {
    if (kLists.contains(stem_of(file.path))) continue;
    for (const std::string& include : file.includes) {
      const std::string target = stem_of(include);
      EXPECT_TRUE(!all.contains(target) || target == stem_of(file.path)) << file.path << " includes " << include;
    }
  }
}

TEST(TrainerFiles, TheListHoldsEveryFormat) {
  const std::string list = text_of(kRoot / "src/trainer_files/trainer_files.cpp");
  for (const std::string& format : formats()) {
    if (kBeside.contains(format)) continue;
    EXPECT_NE(list.find("&" + format + "(),"), std::string::npos) << format;
  }
}

TEST(TrainerFiles, OneFileKnowsYamlCpp) {
  for (const char* folder : {"src", "include"}) {
    for (const Source& file : sources_below(kRoot / folder)) {
      for (const std::string& include : file.includes) {
        EXPECT_TRUE(!include.starts_with("yaml-cpp/") || stem_of(file.path) == "yaml_settings") << file.path;
      }
    }
  }
}

TEST(TrainerFiles, EveryFormatHasAnExample) {
  // By what the format is called where its users know it.
  const std::set<std::pair<std::string, std::string>> examples = {{"ai_toolkit", "ai_toolkit.yaml"},
                                                                  {"axolotl", "axolotl.yaml"},
                                                                  {"deepspeed", "ds_config.json"},
                                                                  {"diffsynth", "diffsynth.sh"},
                                                                  {"diffusers_scripts", "diffusers.sh"},
                                                                  {"diffusion_pipe", "diffusion_pipe.toml"},
                                                                  {"finetrainers", "finetrainers.sh"},
                                                                  {"llama_factory", "llama_factory.yaml"},
                                                                  {"megatron_lm", "megatron_lm.sh"},
                                                                  {"ms_swift", "ms_swift.json"},
                                                                  {"one_trainer", "one_trainer.json"},
                                                                  {"peft_adapter", "adapter/adapter_config.json"},
                                                                  {"sd_scripts", "sd_scripts.toml"},
                                                                  {"simpletuner", "simpletuner.json"},
                                                                  {"torchtitan", "torchtitan.toml"},
                                                                  {"torchtune", "torchtune.yaml"},
                                                                  {"training_arguments", "training_arguments.json"}};
  Names named;
  for (const auto& [format, example] : examples) {
    named.insert(format);
    EXPECT_FALSE(text_of(kRoot / "examples/trainers" / example).empty()) << example;
  }
  EXPECT_EQ(named, formats());
}

}  // namespace
}  // namespace gpumem::architecture
