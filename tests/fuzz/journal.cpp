// A queue's journal: its lines, the ledger that they make, and the same after it was written again. A mutation breaks
// every checksum, so each input is read as it is, and with its lines as the events of a journal whose checksums are
// right.
#include "journal.hpp"

#include <set>

#include "fuzz.hpp"

namespace {

using namespace gpumem;

std::string text_of(const launcher::Ledger& ledger) {
  std::string text;
  for (const launcher::Event& event : ledger.snapshot()) text += launcher::line_of(event);
  return text;
}

void require_sound(const launcher::Ledger& ledger) {
  const auto waiting = ledger.waiting();
  const auto running = ledger.running();
  fuzz::require(waiting.size() + running.size() == ledger.entries().size(), "a job waits or runs");
  for (const launcher::Entry* entry : waiting) fuzz::require(!entry->holding, "who waits holds nothing");
  bool recovering = true;
  for (const launcher::Entry* entry : waiting) {
    fuzz::require(recovering || entry->failures == 0, "what was out of memory goes first");
    recovering = entry->failures > 0;
  }
  for (const auto& [job, entry] : ledger.entries()) {
    fuzz::require(job < ledger.next_job(), "no number is given twice");
    std::set<std::string> gpus;
    if (!entry.holding) continue;
    for (const launcher::Promise& promise : entry.holding->promises) {
      fuzz::require(gpus.insert(promise.gpu).second, "a job holds a GPU once");
      fuzz::require(promise.memory.count() >= 0, "no promise is negative");
    }
  }
}

/// The lines of the input, each with its checksum.
std::string framed_lines(std::string_view input) {
  std::string text;
  while (!input.empty()) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    text += launcher::framed(input.substr(0, end)) + "\n";
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  return text;
}

bool read_journal(std::string_view input) {
  const auto parsed = launcher::parse_journal(input);
  if (!parsed) {
    fuzz::require_readable(parsed.error(), input);
    return false;
  }
  fuzz::require(parsed->sound <= input.size(), "the whole lines are in the text");
  launcher::Ledger ledger;
  for (const launcher::Event& event : parsed->events) {
    const core::Status applied = ledger.apply(event);
    if (!applied) {
      fuzz::require_readable(applied.error(), input);
      return false;
    }
  }
  require_sound(ledger);
  if (!ledger.opened()) return false;
  const std::string text = text_of(ledger);
  const auto again = launcher::parse_journal(text);
  fuzz::require(again.has_value(), "what is written anew can be read");
  fuzz::require(again->sound == text.size(), "and all of it is whole");
  launcher::Ledger second;
  for (const launcher::Event& event : again->events) fuzz::require(second.apply(event).has_value(), "and follows");
  fuzz::require(text_of(second) == text, "and makes the same ledger");
  return true;
}

}  // namespace

GPUMEM_FUZZ_TARGET(journal) {
  const bool whole = read_journal(input);
  return read_journal(framed_lines(input)) || whole;
}
