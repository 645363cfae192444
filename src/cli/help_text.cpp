#include "help_text.hpp"

#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "command_table.hpp"
#include "terminal.hpp"

namespace gpumem::cli {

namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kTextColumn = 28;             ///< where what an option does is said
constexpr std::string_view kUngrouped = "Options";  ///< CLI11's name for the group of options that name none

std::vector<const CLI::Option*> options_of(const CLI::App& app, const std::string& group) {
  return app.get_options(
      [&group](const CLI::Option* option) { return option->get_group() == group && option->nonpositional(); });
}

/// CLI11 lists them in the order of their first options, and --help is the first of all.
std::vector<std::string> groups_of(const CLI::App& app) {
  std::vector<std::string> groups = app.get_groups();
  std::stable_partition(groups.begin(), groups.end(), [](const std::string& group) { return group != kUngrouped; });
  return groups;
}

}  // namespace

std::string help_entry(std::string_view name, std::string_view text, std::size_t width) {
  std::string out = std::string(kIndent, ' ') + std::string(name);
  if (text.empty()) return out + "\n";
  const bool fits = out.size() + kIndent <= kTextColumn;
  out += fits ? std::string(kTextColumn - out.size(), ' ') : "\n" + std::string(kTextColumn, ' ');
  return out + wrapped(text, width - kTextColumn, kTextColumn) + "\n";
}

std::string paragraphs(std::string_view text, std::size_t width) {
  std::string out;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) out += wrapped(paragraph, width, 0) + "\n";
    paragraph.clear();
  };
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(' ') || line.empty()) {
      end_paragraph();
      out += line + "\n";
    } else {
      paragraph += line + " ";
    }
  }
  end_paragraph();
  return out;
}

std::size_t help_width() {
  constexpr std::size_t kNarrowest = 50;
  constexpr std::size_t kWidest = 100;  // longer lines are hard to read
  return std::clamp(terminal_of(STDOUT_FILENO).width, kNarrowest, kWidest);
}

/// CLI11 knows nothing of what follows "--".
std::string HelpText::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = Formatter::make_usage(app, std::move(name));
  if (takes_command(app->get_name())) usage.insert(usage.find_last_not_of('\n') + 1, " -- COMMAND [ARGUMENTS]");
  return usage;
}

std::string HelpText::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = make_option_name(option, is_positional);
  const bool switches = option->get_type_size() == 0;
  const std::string value = value_name(*option);
  if (!switches && !is_positional && !value.empty()) name += " " + value;
  std::string text = option->get_description();
  if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
  if (option->get_required()) text += " (required)";
  return help_entry(name, text, width_);
}

std::string HelpText::make_subcommand(const CLI::App* command) const {
  return help_entry(command->get_display_name(true), command->get_description(), width_);
}

std::string HelpText::all_groups(const CLI::App* app) const {
  std::string out;
  for (const std::string& group : groups_of(*app)) {
    const auto options = options_of(*app, group);
    if (!group.empty() && !options.empty()) out += make_group(group, false, options);
  }
  return out;
}

std::string HelpText::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string out = wrapped(app->get_description(), width_, 0) + "\n\n" + make_usage(app, std::move(name));
  out += make_positionals(app) + make_subcommands(app, mode) + all_groups(app);
  if (const std::string footer = app->get_footer(); !footer.empty()) out += "\n" + paragraphs(footer, width_);
  return out;
}

}  // namespace gpumem::cli
