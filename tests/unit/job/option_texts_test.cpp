#include "gpumem/job/job_options.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "golden.hpp"

namespace gpumem::job {
namespace {

std::string typed(std::string_view message) { return spelled(message, kCommandLine); }

TEST(OptionTexts, AMessageNamesOptionsAsTheFrontEndWritesThem) {
  EXPECT_EQ(typed("say `seq_length=512`, or `lora`"), "say --seq 512, or --lora");
  EXPECT_EQ(typed("`sharding=hsdp:4` needs `gpus_per_node`"), "--sharding hsdp:4 needs --gpus-per-node");
  EXPECT_EQ(typed("`checkpointing=every:2`"), "--checkpointing=every:2") << "a switch takes its kind after =";
  EXPECT_EQ(spelled("say `seq_length=512`", {"gpumem.io/", ": "}), "say gpumem.io/seq: 512");
}

TEST(OptionTexts, WhatNamesNoOptionStays) {
  for (const std::string_view text : {"", "`", "``", "a `b", "`no_option=3`", "`", "a ` b ` c", "``no``"}) {
    EXPECT_EQ(typed(text), text);
  }
  EXPECT_EQ(typed("`no` `lora` `"), "`no` --lora `");
  EXPECT_EQ(typed("the layer 'a`b' needs `lora`"), "the layer 'a`b' needs --lora");
}

/// The texts in quotation marks of a file of the library, without comments.
std::vector<std::string> literals_of(const std::filesystem::path& file) {
  std::vector<std::string> found;
  std::istringstream lines(testing::text_of(file));
  static const std::regex literal(R"re("((?:[^"\\]|\\.)*)")re");
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t comment = line.find("//"); comment != std::string::npos) line.resize(comment);
    for (std::sregex_iterator at(line.begin(), line.end(), literal), end; at != end; ++at) found.push_back((*at)[1]);
  }
  return found;
}

/// Files that write or read other programs' command lines.
bool has_arguments(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return name == "slurm.hpp" || name == "targets_inl.hpp" || name == "accelerate_inl.hpp" ||
         name == "megatron_inl.hpp" || name == "vllm_command_inl.hpp";
}

TEST(OptionTexts, TheLibraryNamesOptionsAndLeavesTheirSpellingToFrontEnds) {
  static const std::regex dashes("(^|[^-])--[a-z]");
  static const std::regex named("`([a-z_0-9]+)(=[^`]*)?`");
  int names = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(GPUMEM_SOURCE_DIR "/include/gpumem")) {
    if (entry.path().extension() != ".hpp" || has_arguments(entry.path())) continue;
    for (const std::string& text : literals_of(entry.path())) {
      EXPECT_FALSE(std::regex_search(text, dashes)) << entry.path() << ": " << text;
      for (std::sregex_iterator at(text.begin(), text.end(), named), end; at != end; ++at, ++names) {
        EXPECT_TRUE(typed((*at).str()).starts_with("--")) << entry.path() << ": no option of " << (*at).str();
      }
    }
  }
  EXPECT_GT(names, 50) << "messages that name options are found";
}

}  // namespace
}  // namespace gpumem::job
