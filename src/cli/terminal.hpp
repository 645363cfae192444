// Input: what the environment says of a terminal, and figures as shares from 0 to 1. Output: what may be drawn there,
// and text for it: colours and gauges. Pure functions, except terminal_of(), which asks the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gpumem::cli {

/// What the output goes to. Without a terminal (a pipe, a file) nothing is drawn, and no line is cut or wrapped.
struct Terminal {
  bool shown = false;  ///< it is a terminal
  std::size_t width = 80;
  bool colour = false;
  bool utf8 = false;  ///< else ASCII is drawn with
};

/// The value of an environment variable; null: it is not set.
using ReadVariable = std::function<const char*(const char* name)>;

/// `columns`: what the terminal says of its width; 0: nothing. COLUMNS goes before it. No colour where NO_COLOR is set
/// and not empty, or where TERM is "dumb" or missing; UTF-8 where the locale (LC_ALL, LC_CTYPE, LANG) says so.
[[nodiscard]] Terminal terminal_from(bool is_terminal, std::int64_t columns, const ReadVariable& variable);
/// The terminal of an open file, such as STDOUT_FILENO.
[[nodiscard]] Terminal terminal_of(int file);

enum class Tone : std::uint8_t { plain, strong, faint, good, doubtful, bad };

/// The text in the colour of a tone, where the terminal has colours.
[[nodiscard]] std::string coloured(std::string_view text, Tone tone, const Terminal& terminal);

/// A bar of shares of a whole: full up to `lower`, darker up to `expected`, lighter up to `upper`, then empty. A plain
/// bar has three times the same.
struct Gauge {
  double lower = 0.0;
  double expected = 0.0;
  double upper = 0.0;
  Tone tone = Tone::plain;
};

/// The gauge in this many cells. What is beyond the whole ends in an arrow.
[[nodiscard]] std::string drawn(const Gauge& gauge, std::size_t cells, const Terminal& terminal);
/// Which sign of a gauge means what, in lines that the terminal holds.
[[nodiscard]] std::string gauge_legend(const Terminal& terminal);

/// How many columns a text takes: code points of UTF-8.
[[nodiscard]] std::size_t columns_of(std::string_view text);

/// The text in lines of at most `width` columns, broken at blanks; a longer word stays whole.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace gpumem::cli
