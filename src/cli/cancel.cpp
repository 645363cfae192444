#include <unistd.h>

#include <cstdio>

#include "attendance.hpp"
#include "commands.hpp"
#include "gpumem/core/bytes.hpp"
#include "journal.hpp"

namespace gpumem::cli {

namespace {

/// "12", or "train.py#12".
std::optional<std::int64_t> number_of(const std::string& text) {
  const std::optional<std::int64_t> number = core::parse_whole(std::string_view(text).substr(text.rfind('#') + 1));
  return number && *number >= 1 ? number : std::nullopt;
}

/// What was done.
struct Cancelling {
  std::string id;
  bool runs = false;
  std::optional<launcher::Process> alone;  ///< a job whose launcher is gone: nobody else ends it
};

/// Tells the queue. A launcher that is there obeys by itself.
Result<Cancelling> cancel(const CancelOptions& options) {
  const auto number = number_of(options.job);
  if (!number)
    return wrong_usage(core::quoted(options.job) + " is not a job; name its number, as gpumem queue shows it");
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
  Cancelling done{entry->shown_id(), entry->holding.has_value(), std::nullopt};
  if (done.runs && !launcher::is_alive(entry->launcher)) done.alone = entry->holding->leader;
  const auto written = locked->append({{*number, launcher::seconds_since_boot(), launcher::Cancelled{user}}});
  if (!written) return written.error();
  return done;
}

}  // namespace

int run_cancel(const CancelOptions& options) {
  const Result<Cancelling> done = cancel(options);
  if (!done) return report_error(done.error());
  std::printf("%s%s\n", done->id.c_str(), done->runs ? " was asked to end" : " leaves the queue");
  std::fflush(stdout);
  if (!done->alone) return 0;
  const bool killed = launcher::end_group(*done->alone);
  if (killed) std::printf("%s was killed because it did not end by itself\n", done->id.c_str());
  if (!launcher::group_is_alive(*done->alone)) return 0;
  return report_error({ErrorCode::unreadable_file, done->id + " lives on: a process of it waits for a device", {}});
}

}  // namespace gpumem::cli
