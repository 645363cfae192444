// What holds of the launcher's queue whatever happens to it: jobs come, grow, end, run out of memory and are killed in
// any order, on a machine that is made up. Estimates are true, so memory never runs out.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "journal.hpp"
#include "queue_events.hpp"
#include "turn.hpp"

namespace gpumem::launcher {
namespace {

using testing::mib;

constexpr std::int64_t kTotalMib = 40'000;
constexpr std::int64_t kStrangersMib = 1500;

/// Two GPUs, on the second of which a stranger has taken memory. Process 1000 + N is the first of job N.
class MadeUpMachine {
 public:
  explicit MadeUpMachine(std::uint32_t seed) : random_(seed) { EXPECT_TRUE(ledger_.apply({0, 0.0, Opened{}})); }

  void step() {
    switch (draw(0, 5)) {
      case 0:
      case 1: arrive(); break;
      case 2:
      case 3: start(); break;
      case 4: grow(); break;
      default: finish();
    }
  }
  /// No more come; all that are there end.
  void drain() {
    for (int step = 0; step < 10'000 && !ledger_.entries().empty(); ++step) {
      start();
      finish();
    }
  }
  void check() const {
    for (const char* uuid : {"GPU-0", "GPU-1"}) {
      const std::int64_t others = uuid == std::string("GPU-1") ? kStrangersMib : 0;
      EXPECT_LE(promised(uuid) + mib(others).count(), mib(kTotalMib).count()) << uuid;
    }
  }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] std::int64_t arrived() const { return ledger_.next_job() - 1; }
  [[nodiscard]] std::int64_t ended() const { return ended_; }
  [[nodiscard]] const std::vector<std::int64_t>& started() const { return started_; }
  [[nodiscard]] const std::string& journal() const { return journal_; }

 private:
  std::int64_t draw(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  void tell(const Event& event) {
    const core::Status applied = ledger_.apply(event);
    ASSERT_TRUE(applied) << core::to_string(applied.error());
    journal_ += line_of(event);
  }
  void arrive() {
    Event event = testing::join(ledger_.next_job(), draw(1, 30) * 1000);
    Joined& joined = std::get<Joined>(event.what);
    joined.launcher = {500'000 + event.job, 1};
    joined.asked.gpus = draw(1, 4) == 1 ? 2 : 1;
    // It would never get two GPUs to itself because of the stranger.
    joined.asked.exclusive = joined.asked.gpus == 1 && draw(1, 10) == 1;
    joined.terms.conditions.free_floor = core::Bytes();
    joined.terms.conditions.smact_cap.reset();
    tell(event);
  }
  void start() {
    const auto waiting = ledger_.waiting();
    if (waiting.empty()) return;
    const Entry& head = *waiting.front();
    const auto judgement = judge(head, gpus(), ledger_, [](std::int64_t pid) { return facts(pid); });
    ASSERT_TRUE(judgement);
    if (!judgement->decision.placed()) return;
    place::Server server = judgement->server;
    ASSERT_TRUE(place::place(judgement->decision, head.request("head"), server));
    std::vector<Promise> promises;
    for (const std::size_t index : judgement->decision.gpus) {
      promises.push_back({server.gpus[index].id, server.gpus[index].jobs.find("head")->memory});
    }
    started_.push_back(head.job);
    tell(testing::start(head.job, promises, 1000 + head.job));
  }
  [[nodiscard]] const Entry* any_running() {
    const auto running = ledger_.running();
    if (running.empty()) return nullptr;
    return running[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(running.size()) - 1))];
  }
  void grow() {
    if (const Entry* entry = any_running()) {
      for (const Promise& promise : entry->holding->promises) {
        taken_[{entry->job, promise.gpu}] = core::Bytes(draw(0, promise.memory.count()));
      }
    }
  }
  void finish() {
    const Entry* entry = any_running();
    if (entry == nullptr) return;
    const std::int64_t job = entry->job;
    std::erase_if(taken_, [&](const auto& row) { return row.first.first == job; });
    ++ended_;
    tell(testing::end(job));
  }
  [[nodiscard]] std::int64_t promised(const std::string& uuid) const {
    std::int64_t sum = 0;
    for (const Entry* entry : ledger_.running()) {
      for (const Promise& promise : entry->holding->promises) sum += promise.gpu == uuid ? promise.memory.count() : 0;
    }
    return sum;
  }
  static std::optional<ProcessFacts> facts(std::int64_t pid) { return ProcessFacts{'S', 1, pid, 77}; }
  [[nodiscard]] Gpus gpus() const {
    Gpus gpus;
    for (const std::string uuid : {"GPU-0", "GPU-1"}) {
      monitor::LiveGpu live;
      live.uuid = uuid;
      live.total = mib(kTotalMib);
      std::int64_t used = 0;
      if (uuid == "GPU-1") live.processes.push_back({999, mib(kStrangersMib)});
      for (const auto& [key, bytes] : taken_) {
        if (key.second == uuid) live.processes.push_back({1000 + key.first, bytes});
      }
      for (const auto& process : live.processes) used += process.used->count();
      live.used = core::Bytes(used);
      place::ServerGpu gpu;
      gpu.id = uuid;
      gpu.total = live.total;
      gpu.used = live.used;
      gpus.server.gpus.push_back(gpu);
      gpus.machine.gpus.push_back(std::move(live));
    }
    return gpus;
  }

  std::mt19937 random_;
  Ledger ledger_;
  std::map<std::pair<std::int64_t, std::string>, core::Bytes> taken_;
  std::vector<std::int64_t> started_;
  std::string journal_ = line_of({0, 0.0, Opened{}});
  std::int64_t ended_ = 0;
};

TEST(Queue, PromisesNeverGoBeyondAGpuAndNobodyIsLostOrOvertaken) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    MadeUpMachine machine(seed);
    for (int step = 0; step < 300; ++step) {
      machine.step();
      machine.check();
    }
    EXPECT_GT(machine.started().size(), 10U);
    EXPECT_TRUE(std::is_sorted(machine.started().begin(), machine.started().end())) << "first come, first served";
    machine.drain();
    EXPECT_TRUE(machine.ledger().entries().empty()) << "nobody waits for ever";
    EXPECT_EQ(machine.ended(), machine.arrived());
    EXPECT_EQ(static_cast<std::int64_t>(machine.started().size()), machine.ended()) << "none is started twice";
  }
}

TEST(Queue, AJournalThatIsCutAnywhereIsReadToItsLastWholeLine) {
  MadeUpMachine machine(7);
  for (int step = 0; step < 60; ++step) machine.step();
  const std::string& text = machine.journal();
  for (std::size_t size = 0; size <= text.size(); size += 1 + size % 13) {
    const auto parsed = parse_journal(std::string_view(text).substr(0, size));
    ASSERT_TRUE(parsed) << size;
    const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size), '\n');
    EXPECT_EQ(static_cast<std::ptrdiff_t>(parsed->events.size()), lines);
    Ledger ledger;
    for (const Event& event : parsed->events) ASSERT_TRUE(ledger.apply(event));
  }
}

TEST(Queue, AByteThatChangesIsNeverBelieved) {
  MadeUpMachine machine(8);
  for (int step = 0; step < 40; ++step) machine.step();
  const std::string& text = machine.journal();
  const std::size_t lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  for (std::size_t at = 0; at < text.size(); at += 17) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    const auto parsed = parse_journal(changed);
    if (!parsed) continue;
    EXPECT_LT(parsed->events.size(), lines) << at;
  }
}

}  // namespace
}  // namespace gpumem::launcher
