#include "wrong_words.hpp"

#include <algorithm>

#include "gpumem/core/result.hpp"

namespace gpumem::cli {

namespace {

/// The words that name the command which was parsed: "gpumem model show".
std::string named(const CLI::App& app) {
  std::string names = app.get_name();
  for (const CLI::App* command : app.get_subcommands()) names += " " + named(*command);
  return names;
}

/// About words that are left over, the first option among them. CLI11 turns their order round.
std::string left_over(const std::vector<std::string>& words, const std::string& command) {
  const auto option = std::find_if(words.begin(), words.end(), [](const auto& word) { return word.starts_with('-'); });
  if (option != words.end()) return command + " has no option " + core::quoted(*option);
  return command + " takes no further word " + core::quoted(words.back());
}

}  // namespace

std::string_view word_at(const std::vector<std::string>& words, std::size_t position) {
  for (std::size_t index = 1; index < words.size(); ++index) {
    if (words[index].starts_with('-')) continue;
    if (position-- == 0) return words[index];
  }
  return {};
}

std::optional<std::string> unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* place = &app;
  std::string known = app.get_name();
  for (std::size_t position = 0; place->get_require_subcommand_min() > 0; ++position) {
    const std::string word(word_at(words, position));
    if (word.empty()) return std::nullopt;
    const auto commands = place->get_subcommands([&word](const CLI::App* one) { return one->get_name() == word; });
    if (commands.empty()) {
      return "there is no command " + core::quoted(word) + "; " + known + " --help lists the commands";
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
  if (dynamic_cast<const CLI::ExtrasError*>(&wrong) != nullptr && !left.empty()) {
    message = left_over(left, command);
  } else if (message.find("subcommand is required") != std::string::npos) {
    message = "no command is named";
  }
  return message + "; see " + command + " --help";
}

}  // namespace gpumem::cli
