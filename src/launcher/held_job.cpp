#include "held_job.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace gpumem::launcher {

namespace {

/// What the new process does. It does not return.
[[noreturn]] void become(const Command& command, const JobOutput& output, const Signals& signals, int gate,
                         int answer) {
  (void)setpgid(0, 0);
  char go = 0;
  ssize_t count = 0;
  while ((count = read(gate, &go, 1)) < 0 && errno == EINTR) {
  }
  if (count != 1) _exit(0);  // nobody holds it any more
  for (const auto& [name, value] : command.environment) (void)setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  words.reserve(command.words.size() + 1);
  for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  output.take_places();
  signals.give_back();
  execvp(words.front(), words.data());
  const int code = errno;
  (void)!write(answer, &code, sizeof code);
  _exit(kNoProgram);
}

}  // namespace

core::Result<HeldJob> HeldJob::make(const Command& command, const Signals& signals, Journal::Locked& locked) {
  core::Result<JobOutput> output = JobOutput::open();
  if (!output) return output.error();
  auto gate = make_pipe();
  auto answer = make_pipe();
  if (!gate) return gate.error();
  if (!answer) return answer.error();
  HeldJob job(*std::move(output), command.words.front());
  const pid_t pid = fork();
  if (pid < 0) return system_error("no process can be made");
  if (pid == 0) {
    locked.forget();
    gate->second = OpenFile();
    answer->first = OpenFile();
    become(command, job.output_, signals, gate->first.number(), answer->second.number());
  }
  (void)setpgid(pid, pid);  // whoever comes first
  job.leader_ = process_of(pid);
  job.output_.close_job_ends();
  job.gate_ = std::move(gate->second);
  job.answer_ = std::move(answer->first);
  return job;
}

HeldJob::~HeldJob() {
  if (!gate_.is_open()) return;
  gate_ = OpenFile();
  (void)waitpid(static_cast<pid_t>(leader_.pid), nullptr, 0);
}

core::Status HeldJob::release() {
  const char go = 1;
  (void)!write(gate_.number(), &go, 1);
  gate_ = OpenFile();
  int code = 0;
  ssize_t count = 0;
  while ((count = read(answer_.number(), &code, sizeof code)) < 0 && errno == EINTR) {
  }
  answer_ = OpenFile();
  if (count != static_cast<ssize_t>(sizeof code)) return core::Done{};
  return system_error("the program " + core::quoted(program_) + " cannot be started", {}, code);
}

}  // namespace gpumem::launcher
