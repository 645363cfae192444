#include "event.hpp"

#include <gtest/gtest.h>

#include "queue_events.hpp"

namespace gpumem::launcher {
namespace {

/// The line without its end, as readers get it.
std::string whole_line(const Event& event) {
  const std::string line = line_of(event);
  EXPECT_TRUE(line.ends_with("}\n"));
  return line.substr(0, line.size() - 1);
}

std::vector<Event> one_of_each_kind() {
  Joined joined = testing::joined(12'288, "a \"name\"\n\x01 of \xff bytes");
  joined.asked = {4, std::nullopt, testing::mib(7), 0.25, true, true};
  joined.terms = {"round-robin", {std::nullopt, core::Bytes(), true}, 2.5};
  joined.failures = 2;
  return {{0, 0.0, Opened{9, 3}},
          {7, 81.5, joined},
          {7, 82.0, Started{{4711, 99}, {{"GPU-1", testing::mib(3)}, {"MIG-2", core::Bytes()}}, 5}},
          {7, 83.0, Recovers{{1, testing::mib(9), std::nullopt, 0.0, false, false}, 1}},
          {7, 84.0, Ended{Ending::out_of_memory, 1}},
          {7, 85.0, Cancelled{1000}}};
}

TEST(Event, IsReadAsItWasWritten) {
  for (const Event& event : one_of_each_kind()) {
    const std::string line = whole_line(event);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    ASSERT_TRUE(is_whole(line)) << line;
    const auto read = parse_event(line);
    ASSERT_TRUE(read) << core::to_string(read.error());
    EXPECT_EQ(line_of(*read), line + "\n");
  }
}

TEST(Event, FieldsKeepTheirValues) {
  const auto started = parse_event(whole_line(one_of_each_kind()[2]));
  ASSERT_TRUE(started);
  EXPECT_EQ(started->job, 7);
  EXPECT_EQ(started->at, 82.0);
  const auto& what = std::get<Started>(started->what);
  EXPECT_EQ(what.leader, (Process{4711, 99}));
  EXPECT_EQ(what.promises, (std::vector<Promise>{{"GPU-1", testing::mib(3)}, {"MIG-2", core::Bytes()}}));
  EXPECT_EQ(what.turn, 5);
  const auto joined = parse_event(whole_line(one_of_each_kind()[1]));
  ASSERT_TRUE(joined);
  const auto& asks = std::get<Joined>(joined->what);
  EXPECT_EQ(asks.asked.memory, std::nullopt);
  EXPECT_EQ(asks.asked.alone, testing::mib(7));
  EXPECT_TRUE(asks.asked.connected);
  EXPECT_EQ(asks.terms.conditions.smact_cap, std::nullopt);
  EXPECT_TRUE(asks.terms.conditions.idle_first);
  EXPECT_EQ(asks.terms.settle_s, 2.5);
  EXPECT_EQ(asks.failures, 2);
}

TEST(Event, ALineThatWasNotWrittenToItsEndIsNotWhole) {
  const std::string line = whole_line(one_of_each_kind()[1]);
  for (std::size_t size = 0; size < line.size(); ++size) EXPECT_FALSE(is_whole(line.substr(0, size))) << size;
  for (const std::size_t at : {0UL, 11UL, 30UL, line.size() / 2, line.size() - 1}) {
    std::string changed = line;
    changed[at] = changed[at] == 'x' ? 'y' : 'x';
    EXPECT_FALSE(is_whole(changed)) << at;
  }
}

/// A whole line around this body.
std::string error_of(const std::string& from, const std::string& to) {
  std::string line = whole_line(one_of_each_kind()[2]);
  const std::size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  line.replace(at, from.size(), to);
  const auto read = parse_event(line);
  return read ? "" : core::to_string(read.error());
}

TEST(Event, AFieldThatIsNotUnderstoodIsAnError) {
  EXPECT_NE(error_of("\"turn\":5", "\"turn\":5,\"more\":1").find("not a field"), std::string::npos);
  EXPECT_NE(error_of("\"turn\":5", "\"turns\":5").find("/turn: is missing"), std::string::npos);
  EXPECT_NE(error_of("\"turn\":5", "\"turn\":-5").find("0 or more"), std::string::npos);
  EXPECT_NE(error_of("\"kind\":\"start\"", "\"kind\":\"stop\"").find("not a kind of event"), std::string::npos);
  EXPECT_NE(error_of("\"pid\":4711", "\"pid\":\"4711\"").find("/leader"), std::string::npos);
  EXPECT_NE(error_of("\"at\":82.0", "\"at\":null").find("/at"), std::string::npos);
}

TEST(Event, AnotherVersionIsRefused) {
  std::string line = whole_line(one_of_each_kind()[0]);
  const std::size_t at = line.find("\"version\":1");
  ASSERT_NE(at, std::string::npos);
  line.replace(at, 11, "\"version\":2");
  const auto read = parse_event(line);
  ASSERT_FALSE(read);
  EXPECT_NE(core::to_string(read.error()).find("/version: is not 1"), std::string::npos);
}

TEST(Event, ARequestSurvives) {
  const Asked asked = {2, testing::mib(5), testing::mib(4), 0.5, true, true};
  EXPECT_EQ(asked_of(request_of(asked, "job")), asked);
  EXPECT_EQ(request_of(asked, "job").id, "job");
}

}  // namespace
}  // namespace gpumem::launcher
