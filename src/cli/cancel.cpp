#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>

#include "attendance.hpp"
#include "commands.hpp"
#include "journal.hpp"

namespace gpumem::cli {

namespace {

/// "12", or "train.py#12".
std::optional<std::int64_t> number_of(const std::string& text) {
  const std::string digits = text.substr(text.rfind('#') + 1);
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (fault != std::errc() || end != digits.data() + digits.size() || number < 1) return std::nullopt;
  return number;
}

/// What was done, in words. A launcher obeys by itself; where it is gone, its job gets the signal from here.
Result<std::string> cancel(const CancelOptions& options) {
  const auto number = number_of(options.job);
  if (!number) return wrong_usage(core::quoted(options.job) + " is no job; name its number, as gpumem queue shows it");
  const auto directory = launcher::queue_directory(options.directory);
  if (!directory) return directory.error();
  auto journal = launcher::Journal::open(*directory);
  if (!journal) return journal.error();
  auto locked = journal->lock();
  if (!locked) return locked.error();
  if (const auto taken = launcher::take_back_the_gone(*journal, *locked); !taken) return taken.error();
  const launcher::Entry* entry = journal->ledger().find(*number);
  if (entry == nullptr) return wrong_usage("job " + std::to_string(*number) + " is not in the queue");
  const auto user = static_cast<std::int64_t>(getuid());
  if (user != 0 && user != entry->user) return wrong_usage(core::quoted(entry->id()) + " is another user's job");
  const std::string id = entry->id();
  const bool runs = entry->holding.has_value();
  if (runs && !launcher::is_alive(entry->launcher)) {
    (void)kill(static_cast<pid_t>(-entry->holding->leader.pid), SIGTERM);
  }
  const auto written = locked->append({{*number, launcher::seconds_since_boot(), launcher::Cancelled{user}}});
  if (!written) return written.error();
  return id + (runs ? " is told to end" : " leaves the queue");
}

}  // namespace

int run_cancel(const CancelOptions& options) {
  const Result<std::string> words = cancel(options);
  if (!words) return report_error(words.error());
  std::printf("%s\n", words->c_str());
  return 0;
}

}  // namespace gpumem::cli
