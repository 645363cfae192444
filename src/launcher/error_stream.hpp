// Enters: what a job writes on standard error. Leaves: the same on this program's standard error, unchanged, and
// whether it says that a GPU ran out of memory. Where standard error is a terminal the job gets a terminal too, of the
// same size, so that progress bars and colours stay; it is not the job's controlling one. Else it is a pipe. The order
// between what a job writes on standard output and on standard error is lost where both go to one file.
#pragma once

#include "gpumem/core/result.hpp"
#include "memory_messages.hpp"
#include "open_file.hpp"

namespace gpumem::launcher {

class ErrorStream {
 public:
  /// Errors: unreadable_file with the system's reason.
  [[nodiscard]] static core::Result<ErrorStream> open();

  /// To wait on; the end is there once nobody writes any more.
  [[nodiscard]] int descriptor() const { return ours_.number(); }
  /// In the job, before it begins.
  void become_standard_error() const;
  /// In the launcher, once the job has its end.
  void close_job_end() { theirs_ = OpenFile(); }
  /// Passes on what is there now. False: the end.
  bool pass_on(MemoryMessages& messages);
  /// This program's terminal has another size.
  void resize();

 private:
  ErrorStream() = default;

  OpenFile ours_;
  OpenFile theirs_;
  bool terminal_ = false;
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
