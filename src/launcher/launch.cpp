#include "launch.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "attendance.hpp"

namespace gpumem::launcher {

namespace {

/// One job, from joining the queue to its last end.
class Launch {
 public:
  Launch(const Job& job, Site& site) : job_(job), site_(site) {}

  core::Result<int> run();

 private:
  core::Status join();
  core::Result<int> leave(const Left& left);
  /// True: it waits again.
  bool recover(const Turn& turn, const JobEnd& end);
  bool wait_again(const Recovers& recovers);
  void finish(const Turn& turn, const JobEnd& end);
  [[nodiscard]] RunCells measured(const Turn& turn, const JobEnd& end) const;
  core::Status tell(const Event& event);
  [[nodiscard]] std::string id() const { return job_.name + "#" + std::to_string(number_); }
  [[nodiscard]] std::string shown_id() const { return shown(job_.name) + "#" + std::to_string(number_); }

  const Job& job_;
  Site& site_;
  std::int64_t number_ = 0;
  Asked asked_;
  std::int64_t failures_ = 0;
};

core::Status Launch::join() {
  const core::Result<Gpus> gpus = site_.read_gpus();
  if (!gpus) return gpus.error();
  Joined joined{job_.name, getuid(), process_of(getpid()), boot_id(), job_.asked, job_.terms, 0};
  core::Result<Journal::Locked> locked = site_.journal.lock();
  if (!locked) return locked.error();
  if (core::Status taken = take_back_the_gone(site_.journal, *locked); !taken) return taken;
  number_ = site_.journal.ledger().next_job();
  Entry entry;
  entry.job = number_;
  entry.name = job_.name;
  entry.asked = job_.asked;
  entry.terms = job_.terms;
  const core::Result<Judgement> judgement = judge(entry, *gpus, site_.journal.ledger());
  if (!judgement) return judgement.error();
  if (judgement->decision.refusal == place::Refusal::never) {
    return core::Error{core::ErrorCode::missing_information, words_of(*judgement, entry, site_.journal.ledger()), {}};
  }
  return locked->append({{number_, seconds_since_boot(), std::move(joined)}});
}

core::Status Launch::tell(const Event& event) {
  core::Result<Journal::Locked> locked = site_.journal.lock();
  if (!locked) return locked.error();
  return locked->append({event});
}

/// Where the queue cannot be told, the next who looks sees that this process is gone.
core::Result<int> Launch::leave(const Left& left) {
  const int code = left.signal != 0 ? kSignalled + left.signal : kSignalled + SIGTERM;
  (void)tell({number_, seconds_since_boot(), Ended{left.ending, left.reason ? 0 : code}});
  if (left.reason) return *left.reason;
  site_.say(shown_id() + (left.ending == Ending::cancelled ? " was cancelled while it waited" : " leaves the queue"));
  return code;
}

bool Launch::wait_again(const Recovers& recovers) {
  bool said = false;
  while (true) {
    const core::Status told = tell({number_, seconds_since_boot(), recovers});
    if (told) return true;
    if (!said) {
      site_.warn(shown_id() + " cannot wait again before the queue can be written: " + core::to_string(told.error()));
    }
    said = true;
    if (pause_before_another_try(site_)) return false;
  }
}

bool Launch::recover(const Turn& turn, const JobEnd& end) {
  ++failures_;
  const core::Result<Gpus> gpus = site_.read_gpus();
  if (!gpus) {
    site_.warn(shown_id() + " ran out of memory and is given up: " + core::to_string(gpus.error()));
    return false;
  }
  core::Bytes had = end.seen.had;
  if (end.seen.peaks.empty()) {
    for (const Promise& promise : turn.promises) had = std::max(had, promise.memory);
  }
  const std::string name = id();
  const place::Retry retry = place::after_out_of_memory(request_of(asked_, name), {failures_, had, end.seen.alone},
                                                        gpus->server, job_.recovery);
  site_.warn(retry.words);
  if (!retry.request) return false;
  asked_ = asked_of(*retry.request);
  return wait_again({asked_, failures_});
}

/// The row of runs.csv; empty: nothing is known that belongs there.
RunCells Launch::measured(const Turn& turn, const JobEnd& end) const {
  const bool fitted = end.exit_code == 0;
  const bool too_large = end.said_no_memory && end.out_of_memory() && end.seen.alone;
  core::Bytes most;
  for (const auto& [gpu, peak] : end.seen.peaks) most = std::max(most, peak);
  if (job_.described.empty() || end.seen.hidden || most == core::Bytes() || !(fitted || too_large)) return {};
  const core::Result<Gpus> gpus = site_.read_gpus();
  if (!gpus) return {};
  const auto gpu = std::find_if(gpus->server.gpus.begin(), gpus->server.gpus.end(),
                                [&](const place::ServerGpu& one) { return one.id == turn.promises.front().gpu; });
  if (gpu == gpus->server.gpus.end() || gpu->profile.empty()) return {};
  RunCells cells = {{"name", id()}};
  cells.insert(cells.end(), job_.described.begin(), job_.described.end());
  cells.emplace_back("gpu", gpu->profile);
  cells.emplace_back("gpus", std::to_string(turn.promises.size()));
  cells.emplace_back("figure", "device");
  cells.emplace_back("status", fitted ? "ok" : "oom");
  cells.emplace_back("measured_mib", std::to_string(std::llround(most.mib())));
  return cells;
}

/// The queue is told first: who waits for this memory waits for nothing else.
void Launch::finish(const Turn& turn, const JobEnd& end) {
  const Ending ending = end.cancelled         ? Ending::cancelled
                        : end.out_of_memory() ? Ending::out_of_memory
                        : end.exit_code == 0  ? Ending::done
                                              : Ending::failed;
  // Where the queue cannot be told, the next who looks sees that it is gone.
  (void)tell({number_, seconds_since_boot(), Ended{ending, end.exit_code}});
  const RunCells row = measured(turn, end);
  if (row.empty()) return;
  const core::Status written = append_run(site_.journal.directory(), row);
  if (!written) site_.warn(core::to_string(written.error()));
}

core::Result<int> Launch::run() {
  asked_ = job_.asked;
  if (core::Status joined = join(); !joined) return joined.error();
  while (true) {
    Waited waited = wait_for_turn(number_, job_.command, job_.environment_for, site_);
    if (!waited.turn) return leave(waited.left);
    site_.say(waited.turn->words);
    const JobEnd end = supervise(number_, *waited.turn, site_);
    if (end.filled_gpu) {
      site_.warn(shown_id() + " failed with exit code " + std::to_string(end.exit_code) +
                 " when it had outgrown its promise and its GPU was full: that counts as out of memory");
    }
    JobOutput& output = waited.turn->held.output();
    int asked = 0;  // by a signal to end, which ends the wait for who reads
    const auto is_asked_to_end = [&] {
      while (const auto signal = site_.signals.next()) {
        if (asks_to_end(*signal)) asked = *signal;
      }
      return asked != 0;
    };
    const auto flush = [&] { return output.flush(site_.signals.descriptor(), is_asked_to_end); };
    // Before it waits again: who waits must not wait for a reader.
    if (end.out_of_memory() && flush() && recover(*waited.turn, end)) continue;
    if (end.cancelled) site_.say(shown_id() + " was cancelled");
    finish(*waited.turn, end);
    if (asked == 0) (void)flush();  // who reads it may take its time: the queue does not wait for that
    if (end.not_started) site_.warn(core::to_string(*end.not_started));
    return asked == 0 ? end.exit_code : kSignalled + asked;
  }
}

}  // namespace

core::Result<int> launch(const Job& job, Site& site) {
  // Orphans of the job come to this process, so that what they take counts as the job's.
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
  return Launch(job, site).run();
}

std::string name_of(const std::vector<std::string>& command) {
  const auto base = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  if (command.empty()) return "job";
  for (const std::string& word : command) {
    if (word.ends_with(".py")) return base(word);
  }
  return base(command.front());
}

}  // namespace gpumem::launcher
