// The table of commands, and what is made of it; and that the documentation names all of it.
#include "command_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/job/job_options.hpp"
#include "manual.hpp"

namespace gpumem::cli {
namespace {

namespace fs = std::filesystem;

const CommandRow& program() {
  static const CommandRow kProgram = command_table();
  return kProgram;
}

const OptionRow* option_of(const CommandRow& command, std::string_view name) {
  for (const auto* rows : {&command.options, &command.arguments}) {
    for (const OptionRow& row : *rows) {
      if (std::find(row.names.begin(), row.names.end(), name) != row.names.end()) return &row;
    }
  }
  return nullptr;
}

const CommandRow& command_of(std::string_view name) {
  const auto all = all_commands(program());
  return **std::find_if(all.begin(), all.end(), [name](const CommandRow* row) { return row->name == name; });
}

TEST(CommandTable, HoldsEveryCommandWithItsOptions) {
  const CommandRow& estimate = command_of("estimate");
  for (const job::JobOption& option : job::job_options()) {
    const bool off = option.place.type == job::OptionType::flag && job::default_text(option) == "true";
    const OptionRow* row = option_of(estimate, (off ? "--no-" : "--") + std::string(option.flag));
    ASSERT_NE(row, nullptr) << option.flag;
    EXPECT_TRUE(row->of_job);
    EXPECT_EQ(row->value.empty(), option.place.type == job::OptionType::flag) << option.flag;
  }
  EXPECT_FALSE(option_of(estimate, "--json")->of_job);
  EXPECT_TRUE(option_of(estimate, "--batch")->required);
  EXPECT_TRUE(option_of(estimate, "--checkpointing")->optional_value);
  EXPECT_EQ(option_of(estimate, "summary")->values.paths, Paths::files);
  EXPECT_EQ(option_of(estimate, "--gpu")->values.words.size(), device::builtin_profiles().size());
  EXPECT_EQ(option_of(command_of("evaluate"), "--out")->names, (std::vector<std::string>{"--out"}));
  EXPECT_EQ(option_of(command_of("timeline"), "-o")->name(), "--out");
  EXPECT_NE(option_of(command_of("model import"), "--force"), nullptr);
}

TEST(CommandTable, EveryRowOfValuesIsOfAnOptionThatThereIs) {
  const auto all = all_commands(program());
  for (const ValuesRow& row : values_rows()) {
    const bool found = std::any_of(all.begin(), all.end(), [&](const CommandRow* command) {
      return (row.command.empty() || row.command == command->name) && option_of(*command, row.option) != nullptr;
    });
    EXPECT_TRUE(found) << row.command << " " << row.option;
  }
}

TEST(CommandTable, EveryChoiceCanBeCompleted) {
  for (const OptionRow& option : command_of("estimate").options) {
    const job::JobOption* const of_job = job::find_flag(option.name().substr(2));
    if (of_job == nullptr || of_job->place.choices == nullptr) continue;
    EXPECT_EQ(option.values.words.size(), of_job->place.choices().size()) << option.name();
  }
}

TEST(Manual, HasATextAndExamplesThatExistForEveryCommand) {
  std::vector<std::string> names = {"", "model"};
  for (const CommandRow* command : all_commands(program())) names.push_back(command->name);
  EXPECT_EQ(manual_texts().size(), names.size());
  for (const ManualText& text : manual_texts()) {
    EXPECT_NE(std::find(names.begin(), names.end(), text.command), names.end()) << text.command;
    EXPECT_FALSE(text.description.empty()) << text.command;
    for (const std::string_view other : text.see_also) {
      if (other.empty()) continue;
      EXPECT_FALSE(manual_page(program(), other).empty()) << text.command << " sees " << other;
    }
    EXPECT_EQ(text.examples.front().empty(), text.command == "model") << text.command;
    for (const std::string_view example : text.examples) {
      const std::string begin = "gpumem " + std::string(text.command);
      if (text.command.empty() || example.empty()) continue;
      EXPECT_TRUE(example.starts_with(begin)) << example;
      const CommandRow& command = command_of(text.command);
      std::istringstream words{std::string(example.substr(begin.size()))};
      for (std::string word; words >> word && word != "--";) {
        if (!word.starts_with('-')) continue;
        EXPECT_NE(option_of(command, word), nullptr) << example;
      }
    }
  }
}

TEST(Manual, WritesWhatRoffDoesNotTakeForItsOwn) {
  const std::string page = manual_page(program(), "run");
  EXPECT_NE(page.find(".TH GPUMEM\\-RUN 1 "), std::string::npos);
  EXPECT_NE(page.find("\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR\n"), std::string::npos);
  EXPECT_NE(page.find("/var/lib/gpumem/queue"), std::string::npos);
  EXPECT_EQ(page.find("\n'"), std::string::npos);
  EXPECT_TRUE(manual_page(program(), "nothing").empty());
  EXPECT_EQ(manual_file("model show"), "gpumem-model-show.1");
}

/// The pages of the documentation, by their names.
std::map<std::string, std::string> pages() {
  std::map<std::string, std::string> texts;
  const fs::path root = GPUMEM_SOURCE_DIR;
  std::vector<fs::path> files = {root / "README.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  for (const fs::path& file : files) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    texts[file.filename().string()] = text.str();
  }
  return texts;
}

bool names_word(const std::string& text, const std::string& word) {
  const auto in_word = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-';
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !in_word(text[at - 1])) && (end == text.size() || !in_word(text[end]))) return true;
  }
  return false;
}

TEST(Documentation, NamesEveryCommandAndEveryOptionOnAPageAboutIt) {
  const auto texts = pages();
  for (const CommandRow* command : all_commands(program())) {
    std::string about;
    for (const auto& [name, text] : texts) {
      if (names_word(text, "gpumem " + command->name)) about += text + "\n";
    }
    EXPECT_FALSE(about.empty()) << "no page names gpumem " << command->name;
    for (const OptionRow& option : command->options) {
      if (option.of_job || option.name() == "--help") continue;  // those of a job: job_options_test.cpp
      EXPECT_TRUE(names_word(about, option.name())) << "no page names gpumem " << command->name << " " << option.name();
    }
  }
}

}  // namespace
}  // namespace gpumem::cli
