// Input: a directory that everybody who shares the queue can write to.
// Output: Journal: the queue's events in one file there, and the Ledger that they make. There is no daemon: every
// program reads and writes the file.
//
//   DIRECTORY/lock       nobody appends without holding it (flock(2)); never read or written
//   DIRECTORY/journal    one event a line (event.hpp), the first of them Opened
//   DIRECTORY/runs.csv   what jobs really took (runs_table.hpp)
//
// What holds after a crash of programs at any moment: a line that was not written to its end is the end of the file;
// readers leave it out, and the next who appends cuts it off. A whole line is never half true. A broken line with whole
// ones after it is no crash: that is an error, which names the line. A long journal is written again without the jobs
// that have ended, into a file next to it, which is renamed (in a sticky directory only by the journal's owner; it
// grows until then).
//
// Nothing waits for the disk. What a crash of the machine could lose are events of jobs that it has ended as well: what
// is written all programs see at once, and the next start of the machine begins with no process of the queue. A journal
// that such a crash has broken holds no line of this start (Joined says which), and is begun again.
//
// Everybody who can write to the directory takes part, and these users trust each other: files there get its mode
// without the right to execute. `install -d -m 2770 -g GROUP DIRECTORY` makes a queue of a group, mode 1777 one of
// everybody. The directory must be on this machine: locks and inotify do not reach across a network.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "ledger.hpp"
#include "open_file.hpp"

namespace gpumem::launcher {

/// What a journal's text says.
struct ParsedJournal {
  std::vector<Event> events;
  std::size_t sound = 0;       ///< bytes of the whole lines; what follows is the torn end
  std::string_view last_line;  ///< of the text, without its end; empty: none
};
/// Errors: malformed_input with the line: a broken line that whole ones follow, or an event of another form.
[[nodiscard]] core::Result<ParsedJournal> parse_journal(std::string_view text);

/// The directory of the queue: `named`; else the variable GPUMEM_QUEUE; else /var/lib/gpumem/queue where this user can
/// write it; else gpumem/queue in XDG_RUNTIME_DIR, this user's own. It is made where it is not there. Errors:
/// unreadable_file, with the system's reason; invalid_argument where none of these is.
[[nodiscard]] core::Result<std::string> queue_directory(const std::string& named);

/// Opens a file of the directory, and makes it with the directory's mode where it is not there. Never follows a link.
/// Errors: unreadable_file.
[[nodiscard]] core::Result<OpenFile> open_shared(const std::string& directory, const std::string& name, int flags);

class Journal {
 public:
  /// Errors: unreadable_file; malformed_input for a journal that no crash can leave behind.
  [[nodiscard]] static core::Result<Journal> open(const std::string& directory);

  /// Reads what others have written since. Errors: as of open().
  [[nodiscard]] core::Status refresh();
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }

  /// Holds the lock; the ledger is that of this moment, and nobody else changes it.
  class Locked {
   public:
    Locked(Locked&& other) noexcept : journal_(other.journal_), before_(other.before_) { other.journal_ = nullptr; }
    Locked& operator=(Locked&&) = delete;
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked();

    /// All of the events or none. Errors: unreadable_file where the disk is full, the journal and the ledger are as
    /// before then; malformed_input for an event that cannot be.
    [[nodiscard]] core::Status append(const std::vector<Event>& events);
    /// For a process that was forked with it: closes its part of the lock, which the other still holds.
    void forget();

   private:
    friend class Journal;
    explicit Locked(Journal& journal);

    Journal* journal_;
    sigset_t before_{};  ///< the signals that were blocked: until the end Ctrl-Z is, so that nobody stops with the lock
  };
  /// Errors: as of open().
  [[nodiscard]] core::Result<Locked> lock();

 private:
  explicit Journal(std::string directory) : directory_(std::move(directory)) {}

  [[nodiscard]] std::string path() const { return directory_ + "/journal"; }
  [[nodiscard]] core::Status read_on();
  [[nodiscard]] core::Status begin_again();
  [[nodiscard]] bool is_where_it_was() const;
  [[nodiscard]] core::Status prepare_to_append();
  [[nodiscard]] core::Status write(std::string_view text);
  [[nodiscard]] bool is_of_another_boot() const;
  void shorten();

  std::string directory_;
  OpenFile lock_;
  OpenFile file_;
  Ledger ledger_;
  std::int64_t sound_ = 0;  ///< bytes that were read
  std::int64_t lines_ = 0;  ///< in them
  std::string last_line_;   ///< the last of them, with its end: if it is there no more, others wrote the file again
};

}  // namespace gpumem::launcher
