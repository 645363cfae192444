#include "supervision.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "occupancy.hpp"

namespace gpumem::launcher {

namespace {

constexpr double kFirstSample = 0.1;
constexpr double kLastSample = 1.0;
constexpr int kCannotExecute = 126;  ///< from here on shells say what is no exit code of a program

/// One job's run.
class Running {
 public:
  Running(std::int64_t job, Turn& turn, Site& site) : job_(job), turn_(turn), site_(site) {}

  JobEnd run();

 private:
  [[nodiscard]] int group() const { return static_cast<int>(turn_.held.leader().pid); }
  void signal_group(int signal) const { (void)kill(-group(), signal); }
  void take_signals();
  void reap();
  void stop_with_the_job(int stop) const;
  void pass_on_the_keyboard();
  void follow_the_terminal();
  void obey_cancelling();
  void sample();
  [[nodiscard]] double until_next(double now) const;

  std::int64_t job_;
  Turn& turn_;
  Site& site_;
  JobEnd end_;
  bool ended_ = false;
  double pause_ = kFirstSample;
  double next_sample_ = 0.0;
  double last_filled_ = 0.0;  ///< when it was last seen so; 0: never
  double kill_at_ = 0.0;      ///< 0: never
};

/// Orphans of the job come to this program as well: their ends change nothing.
void Running::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
    if (pid != turn_.held.leader().pid) continue;
    if (WIFSTOPPED(status)) {
      stop_with_the_job(WSTOPSIG(status));
      continue;
    }
    ended_ = true;
    end_.exit_code = WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
  }
}

/// The terminal stopped the job: the shell is to see that, of all that it started together, and whoever continues this
/// program continues the job. One that was stopped because it wanted the terminal goes on at once where it may have it.
void Running::stop_with_the_job(int stop) const {
  const int foreground = Terminal::foreground();
  if (foreground <= 0 || (stop == SIGSTOP && foreground != group())) return;
  const bool may_read = (stop == SIGTTIN || stop == SIGTTOU) && foreground == getpgrp();
  if (!may_read) {
    (void)Terminal::take_back(group());
    (void)(stop == SIGTSTP ? kill(0, SIGTSTP) : raise(SIGSTOP));
  }
  Terminal::give(group());
  signal_group(SIGCONT);
}

/// A shell may have brought this program to the foreground (fg); and the terminal tells only the job about another
/// size.
void Running::follow_the_terminal() {
  Terminal::give(group());
  if (turn_.held.output().resize()) signal_group(SIGWINCH);
}

/// A script that runs this program has not heard the keyboard, which the job had.
void Running::pass_on_the_keyboard() {
  const int signal = end_.exit_code - kSignalled;
  if (signal != SIGINT && signal != SIGQUIT) return;
  end_.asked_to_end = true;
  if (getpgrp() == getpid()) return;
  (void)kill(0, signal);
  (void)site_.signals.next();  // its own
}

void Running::take_signals() {
  while (const auto signal = site_.signals.next()) {
    if (*signal == SIGWINCH) (void)turn_.held.output().resize();
    if (*signal != SIGCHLD) signal_group(*signal);
    end_.asked_to_end = end_.asked_to_end || asks_to_end(*signal);
  }
  reap();
}

void Running::obey_cancelling() {
  (void)site_.journal.refresh();
  const Entry* entry = site_.journal.ledger().find(job_);
  if (end_.cancelled || entry == nullptr || !entry->cancelled) return;
  end_.cancelled = true;
  signal_group(SIGTERM);
  signal_group(SIGCONT);
  kill_at_ = seconds_since_boot() + kGrace;
}

void Running::sample() {
  const core::Result<Gpus> gpus = site_.read_gpus();
  if (!gpus) return;
  take_sample(*gpus, site_.journal.ledger(), job_, turn_.promises, end_.seen);
  if (end_.seen.filled) last_filled_ = seconds_since_boot();
}

double Running::until_next(double now) const {
  const double next = kill_at_ > 0.0 ? std::min(next_sample_, kill_at_) : next_sample_;
  return std::max(0.0, next - now);
}

JobEnd Running::run() {
  Terminal::give(group());
  if (core::Status released = turn_.held.release(); !released) end_.not_started = released.error();
  Alarm alarm(site_);
  next_sample_ = seconds_since_boot() + pause_;
  JobOutput& output = turn_.held.output();
  obey_cancelling();  // of what was said before the alarm heard
  take_signals();
  while (!ended_) {
    alarm.sleep(until_next(seconds_since_boot()), output.waits_for());
    output.pass_on();
    take_signals();
    if (!ended_) follow_the_terminal();
    if (alarm.journal_changed()) obey_cancelling();
    const double now = seconds_since_boot();
    if (kill_at_ > 0.0 && now >= kill_at_) {
      signal_group(SIGKILL);
      kill_at_ = 0.0;
    }
    if (ended_ || now < next_sample_) continue;
    sample();
    pause_ = std::min(2.0 * pause_, kLastSample);
    next_sample_ = seconds_since_boot() + pause_;
  }
  if (Terminal::take_back(group())) pass_on_the_keyboard();
  output.read_rest();
  output.pass_on();
  constexpr double kWindow = 2.0;
  const bool just_filled = last_filled_ > 0.0 && seconds_since_boot() - last_filled_ <= kWindow;
  end_.said_no_memory = end_.exit_code != 0 && output.said_no_memory();
  end_.filled_gpu = !end_.said_no_memory && just_filled && failed_by_itself(end_.exit_code);
  if (end_.out_of_memory()) sample();  // what others have now, it could not have
  return end_;
}

}  // namespace

bool failed_by_itself(int exit_code) {
  return (exit_code > 0 && exit_code < kCannotExecute) || exit_code == kSignalled + SIGABRT;
}

void take_sample(const Gpus& gpus, const Ledger& ledger, std::int64_t job, const std::vector<Promise>& promises,
                 SeenUse& seen) {
  const std::map<std::string, GpuUse> all = use_of(gpus.machine, ledger);
  bool first = true;
  seen.filled = false;
  for (const Promise& promise : promises) {
    const auto found = all.find(promise.gpu);
    const auto gpu = std::find_if(gpus.server.gpus.begin(), gpus.server.gpus.end(),
                                  [&](const place::ServerGpu& one) { return one.id == promise.gpu; });
    if (found == all.end() || gpu == gpus.server.gpus.end()) continue;
    const GpuUse& use = found->second;
    core::Bytes own;
    std::int64_t others = use.others.count();
    for (const auto& [owner, bytes] : use.jobs) {
      if (owner == job) own = bytes;
      else others += bytes.count();
    }
    core::Bytes& peak = seen.peaks[promise.gpu];
    peak = std::max(peak, own);
    seen.hidden = seen.hidden || use.hidden;
    constexpr std::int64_t kFull = 50;  // less than 2 % is left
    const std::int64_t left = gpu->total.count() - others - own.count();
    seen.filled = seen.filled || (own > promise.memory && left < gpu->total.count() / kFull);
    const auto is_there = [&](const Promise& other) { return other.gpu == promise.gpu; };
    for (const Entry* entry : ledger.running()) {
      const auto& held = entry->holding->promises;
      if (entry->job != job && std::any_of(held.begin(), held.end(), is_there)) seen.alone = false;
    }
    if (use.strangers) seen.alone = false;
    const core::Bytes had(std::max<std::int64_t>(0, gpu->total.count() - others));
    seen.had = first ? had : std::min(seen.had, had);
    first = false;
  }
}

JobEnd supervise(std::int64_t job, Turn& turn, Site& site) { return Running(job, turn, site).run(); }

}  // namespace gpumem::launcher
