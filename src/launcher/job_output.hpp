// Input: what a job writes to standard output and standard error.
// Output: the same on this program's standard output and standard error, unchanged, and whether it says that a GPU ran
// out of memory. Training programs and their launchers write that to either.
//
// - Where both go to one place (a terminal, `> log 2>&1`), the job gets one end for both, and their order stays.
// - A terminal is a terminal for the job too, of the same size, so that progress bars and colours stay; it is not the
//   job's controlling one, which remains that of its standard input. Not to touch it would mean not to see the
//   message of who tries a job at the keyboard. Where that one gets another size, so does the job's, soon after. What
//   the job sets there (a program that takes the whole screen: no echo, keys one by one) does not reach that one.
// - Standard output that goes to a file of its own is data, and belongs only to the job: it goes there without this
// program,
//   which reads what was written there once the job has failed.
// - Everything else is a pipe. Where nobody reads standard output any more, the job is told so, as without this
//   program. Where it is closed, it is closed for the job.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "memory_messages.hpp"
#include "open_file.hpp"

namespace gpumem::launcher {

/// One way from the job to a descriptor of this program.
class OutputChannel {
 public:
  /// In the place of these descriptors of the job; the first of them is where it goes. Errors: unreadable_file.
  [[nodiscard]] static core::Result<OutputChannel> open(std::vector<int> places);

  /// In the job, before it begins.
  void take_places() const;
  /// In the launcher, once the job has its end.
  void close_job_end() { theirs_ = OpenFile(); }
  /// What there is to wait for; a negative descriptor: nobody writes any more.
  [[nodiscard]] pollfd waits_for() const;
  /// Passes on what can be without waiting, neither for the job nor for who reads.
  void pass_on();
  /// Takes what is there now, though it cannot be passed on yet.
  void read_rest();
  /// As JobOutput's.
  [[nodiscard]] bool flush(int bell, const std::function<bool()>& is_enough);
  [[nodiscard]] bool said_no_memory() const { return messages_.found(); }
  bool resize();

 private:
  explicit OutputChannel(std::vector<int> places) : places_(std::move(places)) {}
  [[nodiscard]] int target() const { return screen_.is_open() ? screen_.number() : places_.front(); }
  bool become_terminal();
  /// False: nothing is there now.
  bool read_piece();
  /// False: no room is there now.
  bool write_piece();

  std::vector<int> places_;
  OpenFile ours_;
  OpenFile theirs_;
  OpenFile
      screen_;  ///< this program's terminal once more, never waited for; not open: `theirs_` is none, or it cannot be
  bool terminal_ = false;
  std::string pending_;  ///< read, and not written yet
  MemoryMessages messages_;
};

class JobOutput {
 public:
  /// Errors: unreadable_file with the system's reason.
  [[nodiscard]] static core::Result<JobOutput> open();

  void take_places() const;
  void close_job_ends();
  [[nodiscard]] std::vector<pollfd> waits_for() const;
  void pass_on();
  void read_rest();
  /// Passes on what was taken, however long who reads takes for it. False: not all, for `is_enough`, which is asked
  /// when `bell` has something to read, said so.
  [[nodiscard]] bool flush(int bell, const std::function<bool()>& is_enough);
  /// The job's terminals get the size of this program's. True: one of them had another.
  bool resize();
  /// Of all that was taken, and of what is in the file.
  [[nodiscard]] bool said_no_memory() const;

 private:
  JobOutput() = default;

  std::vector<OutputChannel> channels_;
  OpenFile file_;  ///< standard output's own
  off_t from_ = 0;
};

/// The terminal that this program and its job read from: one process group at a time may, the one in the foreground. It
/// changes hands only between these two: in the background a shell has it, and keeps it.
class Terminal {
 public:
  /// The group in the foreground. Not positive: standard input is no terminal of this session.
  [[nodiscard]] static int foreground();
  /// Where this program's group has it.
  static void give(int group);
  /// True: `group` had it.
  static bool take_back(int group);
};

}  // namespace gpumem::launcher
