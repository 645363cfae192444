#include "turn.hpp"

#include <algorithm>
#include <utility>

#include "attendance.hpp"
#include "gpumem/place/policies.hpp"

namespace gpumem::launcher {

namespace {

constexpr double kFirstLook = 0.01;
constexpr double kLastLook = 1.0;
/// No event tells that a launcher is stopped, or that it has ended on a kernel without descriptors of processes.
constexpr double kWithoutBell = 5.0;

/// One job's wait.
class Waiting {
 public:
  Waiting(std::int64_t job, const std::vector<std::string>& command, const EnvironmentFor& environment_for, Site& site)
      : job_(job), command_(command), environment_for_(environment_for), site_(site) {}

  Waited run();

 private:
  [[nodiscard]] const Entry* entry() const { return site_.journal.ledger().find(job_); }
  /// Looks once; true: the wait is over.
  bool look(Waited& waited);
  bool look_as_head(Waited& waited);
  bool refused(const Judgement& judgement, Waited& waited);
  core::Result<std::optional<Turn>> start(const Gpus& gpus);
  core::Result<std::optional<Turn>> promise(const Judgement& judgement, Journal::Locked& locked);
  void sleep(Alarm& alarm);
  bool signalled(Waited& waited);
  bool failed(core::Error error, Waited& waited);
  void say_once(const std::string& words);
  void warn_once(const std::string& words);
  bool failed_for_now(const std::string& words);

  std::int64_t job_;
  const std::vector<std::string>& command_;
  const EnvironmentFor& environment_for_;
  Site& site_;
  double pause_ = kFirstLook;  ///< until the head looks again
  std::int64_t before_ = 0;    ///< the job before this one; 0: this is the head
  OpenFile end_of_before_;
  StoppedWaiters stopped_;
  std::string said_;
  std::string warned_;
  bool try_again_ = false;  ///< what was tried failed, and may succeed later
};

bool Waiting::failed(core::Error error, Waited& waited) {
  waited.left = {Ending::failed, 0, std::move(error)};
  return true;
}

void Waiting::say_once(const std::string& words) {
  if (said_ == words) return;
  said_ = words;
  site_.say(words);
}

void Waiting::warn_once(const std::string& words) {
  if (warned_ == words) return;
  warned_ = words;
  site_.warn(words);
}

bool Waiting::failed_for_now(const std::string& words) {
  warn_once(words);
  try_again_ = true;
  return false;
}

bool Waiting::signalled(Waited& waited) {
  while (const auto signal = site_.signals.next()) {
    if (!asks_to_end(*signal)) continue;
    waited.left = {Ending::left, *signal, std::nullopt};
    return true;
  }
  return false;
}

bool Waiting::look(Waited& waited) {
  if (core::Status read = site_.journal.refresh(); !read) return failed(read.error(), waited);
  const auto waiting = site_.journal.ledger().waiting();
  const auto me = std::find_if(waiting.begin(), waiting.end(), [&](const Entry* one) { return one->job == job_; });
  if (me == waiting.end()) {
    return failed({core::ErrorCode::unreadable_file,
                   "the job is not in the queue any more; was its journal removed?",
                   {site_.journal.directory(), 0, {}}},
                  waited);
  }
  if ((*me)->cancelled) {
    waited.left = {Ending::cancelled, 0, std::nullopt};
    return true;
  }
  const Entry* const nearest = stopped_.nearest_before(waiting, job_);
  if (nearest == nullptr) {
    before_ = 0;
    return look_as_head(waited);
  }
  const Entry& before = *nearest;
  if (said_.empty()) {
    say_once((*me)->shown_id() + " waits after " + before.shown_id() + ", as number " +
             std::to_string(me - waiting.begin() + 1) + " in the queue");
  }
  if (before.job == before_ && is_alive(before.launcher)) return false;
  before_ = before.job;
  end_of_before_ = end_of(before.launcher);
  if (end_of_before_.is_open() || is_alive(before.launcher)) return false;
  const core::Status taken = take_back_the_gone(site_.journal);
  return taken ? look(waited) : failed_for_now(core::to_string(taken.error()));
}

bool Waiting::look_as_head(Waited& waited) {
  if (core::Status taken = take_back_ended_runs(site_.journal); !taken) {
    return failed_for_now(core::to_string(taken.error()));  // a disk that is full now need not stay so
  }
  const core::Result<Gpus> gpus = site_.read_gpus();
  if (!gpus) {
    warn_once(entry()->shown_id() + " waits: " + core::to_string(gpus.error()));  // a driver may come back
    return false;
  }
  const core::Result<Judgement> judgement = judge(*entry(), *gpus, site_.journal.ledger());
  if (!judgement) return failed(judgement.error(), waited);
  if (!judgement->decision.placed()) return refused(*judgement, waited);
  core::Result<std::optional<Turn>> turn = start(*gpus);
  if (!turn) {
    return failed_for_now(entry()->shown_id() +
                          " waits: its promise cannot be written, and without it the job is not started: " +
                          core::to_string(turn.error()));
  }
  if (!*turn) return false;
  waited.turn.emplace(*std::move(*turn));
  return true;
}

bool Waiting::refused(const Judgement& judgement, Waited& waited) {
  const Entry& me = *entry();
  const std::string words = words_of(judgement, me, site_.journal.ledger());
  if (judgement.decision.refusal == place::Refusal::never) {
    return failed({core::ErrorCode::missing_information, words, {}}, waited);
  }
  if (said_.empty()) say_once(me.shown_id() + " waits: " + words);
  return false;
}

/// Nothing: it is not this job's turn any more, or the GPUs do not take it.
core::Result<std::optional<Turn>> Waiting::start(const Gpus& gpus) {
  core::Result<Journal::Locked> locked = site_.journal.lock();
  if (!locked) return locked.error();
  const Entry* const me = entry();
  if (me == nullptr || me->holding || me->cancelled) return std::optional<Turn>();
  if (stopped_.nearest_before(site_.journal.ledger().waiting(), job_) != nullptr) return std::optional<Turn>();
  const core::Result<Judgement> judgement = judge(*me, gpus, site_.journal.ledger());
  if (!judgement) return judgement.error();
  if (!judgement->decision.placed()) return std::optional<Turn>();
  return promise(*judgement, *locked);
}

core::Result<std::optional<Turn>> Waiting::promise(const Judgement& judgement, Journal::Locked& locked) {
  const Entry& me = *entry();
  const std::string id = me.id();
  place::Server server = judgement.server;
  const core::Status placed = place::place(judgement.decision, me.request(id), server);
  if (!placed) return placed.error();
  std::vector<Promise> promises;
  for (const std::size_t index : judgement.decision.gpus) {
    const place::ServerGpu& gpu = server.gpus[index];
    promises.push_back({gpu.id, gpu.jobs.find(id)->memory});
  }
  core::Result<HeldJob> held = HeldJob::make({command_, environment_for_(me.asked, promises)}, site_.signals, locked);
  if (!held) return held.error();
  const Started started{held->leader(), promises, static_cast<std::int64_t>(judgement.turn)};
  std::string words = me.shown_id() + " runs " + words_of(judgement, me, site_.journal.ledger());
  if (me.asked.memory) words += "; " + core::to_string(promises.front().memory) + " promised";
  const core::Status written = locked.append({{job_, seconds_since_boot(), started}});
  if (!written) return written.error();
  return std::optional<Turn>(Turn{*std::move(held), std::move(promises), std::move(words)});
}

void Waiting::sleep(Alarm& alarm) {
  const bool head = before_ == 0;
  const double seconds = head ? pause_ : stopped_.may_be_passed_soon() ? StoppedWaiters::kPatience : kWithoutBell;
  alarm.sleep(seconds, {{head ? -1 : end_of_before_.number(), POLLIN, 0}});
  const bool changed = alarm.journal_changed();
  pause_ = changed ? kFirstLook : std::min(2.0 * pause_, kLastLook);
  if (!head && alarm.rang(0)) before_ = -1;  // look who is before now
}

Waited Waiting::run() {
  Waited waited;
  Alarm alarm(site_);
  while (!signalled(waited) && !look(waited)) {
    if (!std::exchange(try_again_, false)) {
      sleep(alarm);
    } else if (const auto signal = pause_before_another_try(site_)) {
      waited.left = {Ending::left, *signal, std::nullopt};
      return waited;
    }
  }
  return waited;
}

/// Where the job's own SM activity is known, it counts with that of the jobs that are there.
place::Conditions conditions_of(const Entry& entry) {
  place::Conditions conditions = entry.terms.conditions;
  conditions.smact_together = entry.asked.smact > 0.0;
  return conditions;
}

}  // namespace

core::Result<Judgement> judge(const Entry& entry, const Gpus& gpus, const Ledger& ledger, const FindFacts& facts_of) {
  const auto policy = place::make_policy(entry.terms.policy);
  if (!policy) return policy.error();
  core::Result<place::Server> server = occupied(gpus.server, use_of(gpus.machine, ledger, facts_of), ledger);
  if (!server) return server.error();
  Judgement judgement;
  judgement.server = *std::move(server);
  judgement.turn = static_cast<std::size_t>(ledger.turn());
  const std::string id = entry.id();
  judgement.decision = (*policy)->decide(entry.request(id), judgement.server, conditions_of(entry), judgement.turn);
  return judgement;
}

std::string words_of(const Judgement& judgement, const Entry& entry, const Ledger& ledger) {
  const std::string id = entry.id();
  std::string words = place::explain(judgement.decision, entry.request(id), judgement.server, conditions_of(entry));
  if (judgement.decision.refusal != place::Refusal::memory) return words;
  const place::ServerGpu& nearest = judgement.server.gpus[judgement.decision.nearest];
  const double now = seconds_since_boot();
  for (const Entry* other : ledger.running()) {
    if (nearest.jobs.find(other->id()) == nullptr || !settles(*other, now)) continue;
    return words + "; " + other->shown_id() + " has just come there, and it is not known yet what it takes";
  }
  return words;
}

Waited wait_for_turn(std::int64_t job, const std::vector<std::string>& command, const EnvironmentFor& environment_for,
                     Site& site) {
  return Waiting(job, command, environment_for, site).run();
}

}  // namespace gpumem::launcher
