#include "ledger.hpp"

#include <gtest/gtest.h>

#include "queue_events.hpp"

namespace gpumem::launcher {
namespace {

using testing::end;
using testing::join;
using testing::mib;
using testing::recover;
using testing::start;

Ledger ledger_of(const std::vector<Event>& events) {
  Ledger ledger;
  EXPECT_TRUE(ledger.apply({0, 0.0, Opened{}}));
  for (const Event& event : events) {
    const core::Status applied = ledger.apply(event);
    EXPECT_TRUE(applied) << core::to_string(applied.error());
  }
  return ledger;
}

std::vector<std::int64_t> numbers(const std::vector<const Entry*>& entries) {
  std::vector<std::int64_t> found;
  for (const Entry* entry : entries) found.push_back(entry->job);
  return found;
}

using Numbers = std::vector<std::int64_t>;

TEST(Ledger, ANameDoesNotSpeakToTheTerminal) {
  Event hostile = join(7);
  std::get<Joined>(hostile.what).name = "a\033[2Jb\nc";
  const Ledger ledger = ledger_of({hostile});
  EXPECT_EQ(ledger.find(7)->shown_id(), "a?[2Jb?c#7");
  EXPECT_EQ(ledger.find(7)->id(), "a\033[2Jb\nc#7");
}

TEST(Ledger, FirstComeFirstServed) {
  const Ledger ledger = ledger_of({join(1), join(2), join(3), end(2)});
  EXPECT_EQ(numbers(ledger.waiting()), (Numbers{1, 3}));
  EXPECT_TRUE(ledger.running().empty());
  EXPECT_EQ(ledger.next_job(), 4);
  EXPECT_EQ(ledger.find(1)->id(), "train.py#1");
  EXPECT_EQ(ledger.find(2), nullptr);
}

TEST(Ledger, WhatWasOutOfMemoryGoesFirstInItsOrder) {
  const std::vector<Promise> here = {{"GPU-0", mib(1)}};
  const Ledger ledger = ledger_of({join(1), join(2), join(3), join(4), start(1, here), start(2, here), start(3, here),
                                   recover(3, 1), recover(1, 1), recover(2, 2)});
  EXPECT_EQ(numbers(ledger.waiting()), (Numbers{3, 1, 2, 4}));
  EXPECT_TRUE(ledger.find(3)->asked.exclusive);
  EXPECT_EQ(ledger.find(2)->failures, 2);
  EXPECT_FALSE(ledger.find(2)->holding) << "a job that waits again holds no promise";
}

TEST(Ledger, AStartIsAPromise) {
  const Ledger ledger = ledger_of({join(1), start(1, {{"GPU-0", mib(5)}, {"GPU-1", mib(6)}})});
  EXPECT_TRUE(ledger.waiting().empty());
  ASSERT_EQ(numbers(ledger.running()), Numbers{1});
  EXPECT_EQ(ledger.find(1)->holding->promises.size(), 2U);
  EXPECT_EQ(ledger.find(1)->holding->leader.pid, 40'001);
}

TEST(Ledger, RefusesWhatCannotFollow) {
  const std::vector<Promise> here = {{"GPU-0", mib(1)}};
  Ledger ledger = ledger_of({join(1), start(1, here), join(2)});
  const auto refuses = [&](const Event& event, const std::string& part) {
    const std::vector<Event> before = ledger.snapshot();
    const core::Status applied = ledger.apply(event);
    ASSERT_FALSE(applied) << part;
    EXPECT_NE(applied.error().message.find(part), std::string::npos) << applied.error().message;
    EXPECT_EQ(ledger.snapshot().size(), before.size());
  };
  refuses(join(1), "joins twice");
  refuses(start(1, here), "starts twice");
  refuses(start(3, here), "not in the queue");
  refuses(start(2, {{"GPU-0", mib(1)}, {"GPU-0", mib(1)}}), "one GPU twice");
  refuses(recover(2, 1), "before it started");
  refuses(recover(9, 1), "not in the queue");
  refuses(end(9), "not in the queue");
  refuses({9, 0.0, Cancelled{}}, "not in the queue");
  refuses({0, 0.0, Opened{}}, "second first line");
  refuses(join(0), "no job has");
  Ledger empty;
  EXPECT_FALSE(empty.apply(join(1))) << "a journal begins with what it is";
}

TEST(Ledger, ASnapshotMakesTheSameLedger) {
  const std::vector<Promise> here = {{"GPU-0", mib(1)}};
  const Ledger ledger = ledger_of({join(1),
                                   join(2),
                                   join(3),
                                   join(4),
                                   start(2, here),
                                   start(1, here),
                                   recover(2, 1),
                                   start(3, here),
                                   end(3),
                                   {4, 9.0, Cancelled{}},
                                   {1, 9.0, Cancelled{}}});
  Ledger again;
  for (const Event& event : ledger.snapshot()) {
    const auto read = parse_event(line_of(event).substr(0, line_of(event).size() - 1));
    ASSERT_TRUE(read);
    ASSERT_TRUE(again.apply(*read));
  }
  EXPECT_EQ(numbers(again.waiting()), numbers(ledger.waiting()));
  EXPECT_EQ(numbers(again.running()), numbers(ledger.running()));
  EXPECT_EQ(again.next_job(), 5);
  EXPECT_TRUE(again.find(4)->cancelled);
  EXPECT_TRUE(again.find(1)->cancelled);
  EXPECT_EQ(again.find(1)->holding->promises, here);
  EXPECT_EQ(again.find(2)->failures, 1);
  EXPECT_EQ(again.find(2)->since, ledger.find(2)->since);
}

}  // namespace
}  // namespace gpumem::launcher
