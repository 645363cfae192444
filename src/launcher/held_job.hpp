// Input: a command, and variables for its environment.
// Output: HeldJob: a process that has a pid already and runs nothing yet. So its pid can be in the journal before it
// begins, and a launcher that is killed in between leaves no job: a held process whose launcher is gone ends by itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gpumem/core/result.hpp"
#include "job_output.hpp"
#include "journal.hpp"
#include "process.hpp"
#include "signals.hpp"

namespace gpumem::launcher {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct Command {
  std::vector<std::string> words;  ///< the program, found as a shell finds it, and its arguments; at least one
  Environment environment;         ///< in addition to what is there already
};

class HeldJob {
 public:
  /// A new process in a process group of its own. `locked` is held meanwhile. Errors: unreadable_file where no process
  /// can be made.
  [[nodiscard]] static core::Result<HeldJob> make(const Command& command, const Signals& signals,
                                                  Journal::Locked& locked);
  HeldJob(HeldJob&&) = default;
  HeldJob& operator=(HeldJob&&) = delete;
  /// One that was not released never ran.
  ~HeldJob();

  [[nodiscard]] const Process& leader() const { return leader_; }
  [[nodiscard]] JobOutput& output() { return output_; }
  /// It begins. Errors: unreadable_file where there is no such program; it has ended then, with kNoProgram.
  [[nodiscard]] core::Status release();

 private:
  HeldJob(JobOutput output, std::string program) : output_(std::move(output)), program_(std::move(program)) {}

  Process leader_;
  JobOutput output_;
  std::string program_;
  OpenFile gate_;    ///< a byte in it lets the job begin
  OpenFile answer_;  ///< closed by the program that begins; else why it could not
};

/// The exit code where a program could not be started, as shells have it.
inline constexpr int kNoProgram = 127;

}  // namespace gpumem::launcher
