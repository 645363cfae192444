// Input: a command with its options. Output: its help, as wide as the terminal, with the options in groups.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <string_view>

namespace gpumem::cli {

/// CLI11's help with lines that end at `width` columns; options without a group of their own come last.
class HelpText : public CLI::Formatter {
 public:
  explicit HelpText(std::size_t width) : width_(width) { label("SUBCOMMAND", "COMMAND"); }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  [[nodiscard]] std::string all_groups(const CLI::App* app) const;

  std::size_t width_;
};

/// A name, and next to it what it means, wrapped.
[[nodiscard]] std::string help_entry(std::string_view name, std::string_view text, std::size_t width);

/// Lines that begin with a space stay as they are; others are joined to paragraphs.
[[nodiscard]] std::string paragraphs(std::string_view text, std::size_t width);

/// The columns of help: those of the terminal that standard output is, at most 100; 80 otherwise.
[[nodiscard]] std::size_t help_width();

}  // namespace gpumem::cli
