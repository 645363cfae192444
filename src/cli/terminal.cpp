#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <utility>

#include "gpumem/core/bytes.hpp"

namespace gpumem::cli {

namespace {

constexpr std::size_t kNarrowest = 20;
constexpr std::size_t kWidest = 1000;

/// A variable's text; empty where it is not set.
std::string_view value_of(const ReadVariable& variable, const char* name) {
  const char* const value = variable(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::optional<std::size_t> width_from(std::string_view text) {
  const std::optional<std::int64_t> width = core::parse_whole(text);
  return width && *width > 0 ? std::optional(static_cast<std::size_t>(*width)) : std::nullopt;
}

bool says_utf8(std::string_view locale) {
  std::string letters;
  for (const char letter : locale) {
    if (letter != '-') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return letters.find("utf8") != std::string::npos;
}

bool has_utf8(const ReadVariable& variable) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = value_of(variable, name);
    if (!locale.empty()) return says_utf8(locale);
  }
  return false;
}

/// The sequence of a tone; empty for what is plain.
std::string_view sequence_of(Tone tone) {
  switch (tone) {
    case Tone::plain: return {};
    case Tone::strong: return "\033[1m";
    case Tone::faint: return "\033[2m";
    case Tone::good: return "\033[32m";
    case Tone::doubtful: return "\033[33m";
    case Tone::bad: return "\033[31m";
  }
  return {};
}

/// The signs of a gauge.
struct Signs {
  std::string_view full;
  std::string_view likely;
  std::string_view possible;
  std::string_view empty;
  std::string_view beyond;
};

constexpr Signs kBlocks = {"█", "▓", "▒", "░", "▶"};
constexpr Signs kAscii = {"#", "=", "-", ".", ">"};

const Signs& signs_of(const Terminal& terminal) { return terminal.utf8 ? kBlocks : kAscii; }

}  // namespace

Terminal terminal_from(bool is_terminal, std::int64_t columns, const ReadVariable& variable) {
  Terminal terminal;
  terminal.shown = is_terminal;
  if (!is_terminal) return terminal;
  if (columns > 0) terminal.width = static_cast<std::size_t>(columns);
  if (const auto told = width_from(value_of(variable, "COLUMNS"))) terminal.width = *told;
  terminal.width = std::clamp(terminal.width, kNarrowest, kWidest);
  const std::string_view kind = value_of(variable, "TERM");
  terminal.colour = value_of(variable, "NO_COLOR").empty() && !kind.empty() && kind != "dumb";
  terminal.utf8 = has_utf8(variable);
  return terminal;
}

Terminal terminal_of(int file) {
  const bool shown = isatty(file) != 0;
  winsize size{};
  const bool told = shown && ioctl(file, TIOCGWINSZ, &size) == 0;
  return terminal_from(shown, told ? size.ws_col : 0, [](const char* name) { return std::getenv(name); });
}

std::string coloured(std::string_view text, Tone tone, const Terminal& terminal) {
  const std::string_view begin = sequence_of(tone);
  if (!terminal.colour || begin.empty() || text.empty()) return std::string(text);
  return std::string(begin) + std::string(text) + "\033[0m";
}

std::string drawn(const Gauge& gauge, std::size_t cells, const Terminal& terminal) {
  const Signs& signs = signs_of(terminal);
  std::string filled;
  std::string rest;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const double middle = (static_cast<double>(cell) + 0.5) / static_cast<double>(cells);
    const bool last = cell + 1 == cells;
    if (last && gauge.expected > 1.0) filled += signs.beyond;
    else if (middle <= gauge.lower) filled += signs.full;
    else if (middle <= gauge.expected) filled += signs.likely;
    else if (middle <= gauge.upper) filled += signs.possible;
    else rest += signs.empty;
  }
  return coloured(filled, gauge.tone, terminal) + coloured(rest, Tone::faint, terminal);
}

std::string gauge_legend(const Terminal& terminal) {
  const Signs& signs = signs_of(terminal);
  std::string text;
  std::string line;
  for (const auto& [sign, meaning] : {std::pair(signs.full, "up to lower"), std::pair(signs.likely, "up to expected"),
                                      std::pair(signs.possible, "up to upper"), std::pair(signs.empty, "free")}) {
    const std::string part = std::string(sign) + " " + meaning;
    if (!line.empty() && columns_of(line) + 2 + columns_of(part) > terminal.width) {
      text += coloured(line, Tone::faint, terminal) + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : "  ") + part;
  }
  return text + coloured(line, Tone::faint, terminal) + "\n";
}

std::size_t columns_of(std::string_view text) {
  constexpr unsigned char kContinued = 0x80;
  constexpr unsigned char kTwoBits = 0xC0;
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & kTwoBits) != kContinued; }));
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string lines;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t columns = columns_of(word);
    if (used > 0 && used + 1 + columns > width) {
      lines += "\n" + std::string(indent, ' ');
      used = 0;
    } else if (used > 0) {
      lines += ' ';
      ++used;
    }
    lines += word;
    used += columns;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace gpumem::cli
