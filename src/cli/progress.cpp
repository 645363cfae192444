#include "progress.hpp"

#include "figures.hpp"
#include "gpumem/core/bytes.hpp"
#include "terminal.hpp"

namespace gpumem::cli {

bool shows_progress() {
  const char* const kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

std::string progress_line(std::string_view what, std::size_t done, std::size_t all, std::string_view things) {
  const auto count = [](std::size_t number) { return core::with_separators(static_cast<std::int64_t>(number)); };
  std::string text = std::string(what) + " " + count(done);
  if (all > 0) text += " of " + count(all);
  text += " " + std::string(things);
  if (all == 0) return text;
  return text + " (" + percent(static_cast<double>(done) / static_cast<double>(all)) + ")";
}

}  // namespace gpumem::cli
