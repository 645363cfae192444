// Enters: what a job writes on standard output and on standard error. Leaves: the same on this program's, unchanged,
// and whether it says that a GPU ran out of memory: training programs and their launchers write that to either.
//
// - Where both go to one place (a terminal, `> log 2>&1`), the job gets one end for both, and their order stays.
// - A terminal is a terminal for the job too, of the same size, so that progress bars and colours stay; it is not the
//   job's controlling one, which remains that of its standard input. To leave it alone would mean not to see the
//   message of who tries a job at the keyboard.
// - Standard output that goes to a file of its own is data, and the job's alone: it goes there without this program,
//   which reads what was written there once the job has failed.
// - Everything else is a pipe. Where nobody reads standard output any more, the job is told so, as without this
// program.
#pragma once

#include <poll.h>
#include <sys/types.h>

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
  /// Passes on what was taken, however long who reads takes for it.
  void flush();
  [[nodiscard]] bool said_no_memory() const { return messages_.found(); }
  /// This program's terminal has another size.
  void resize();

 private:
  explicit OutputChannel(std::vector<int> places) : places_(std::move(places)) {}
  [[nodiscard]] int target() const { return places_.front(); }
  bool become_terminal();
  /// False: nothing is there now.
  bool read_piece();
  /// False: no room is there now.
  bool write_piece(int timeout_ms);

  std::vector<int> places_;
  OpenFile ours_;
  OpenFile theirs_;
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
  void flush();
  void resize();
  /// Of all that was taken, and of what stands in the file.
  [[nodiscard]] bool said_no_memory() const;

 private:
  JobOutput() = default;

  std::vector<OutputChannel> channels_;
  OpenFile file_;  ///< standard output's own
  off_t from_ = 0;
};

/// The terminal that this program and its job read from: one process group at a time may. Does nothing where standard
/// input is no terminal, or another group has it.
class Terminal {
 public:
  Terminal();
  void give(int group) const;
  void take_back() const;
  [[nodiscard]] bool is_ours() const { return ours_; }

 private:
  bool ours_ = false;
};

}  // namespace gpumem::launcher
