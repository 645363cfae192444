// The launcher forks, locks and writes files, so it is separate from the library: only the command line knows it. What
// it believes of the queue is pure, so that tests and fuzzers reach it without a process or a file.
#include <gtest/gtest.h>

#include <set>

#include "sources.hpp"

namespace gpumem::architecture {
namespace {

using RoomNames = std::set<std::string>;

const RoomNames kPure = {"event", "fields", "ledger", "memory_messages"};
const RoomNames kRooms = {"core", "monitor", "place", "utilisation"};

std::vector<Source> launcher() { return sources_below(kRoot / "src" / "launcher"); }

TEST(Launcher, KnowsTheRoomsThatDecideAndNoOther) {
  EXPECT_GT(launcher().size(), 20U);
  for (const Source& file : launcher()) {
    for (const std::string& include : file.includes) {
      if (!include.starts_with("gpumem")) continue;
      const std::string room = include.substr(include.find('/') + 1);
      EXPECT_TRUE(include.starts_with("gpumem/") && kRooms.contains(room.substr(0, room.find('/'))))
          << file.path << " includes " << include;
    }
  }
}

TEST(Launcher, WhatTheQueueIsComesFromItsEventsAlone) {
  std::size_t pure = 0;
  for (const Source& file : launcher()) {
    if (!kPure.contains(stem_of(file.path))) continue;
    ++pure;
    for (const std::string& include : file.includes) {
      const bool system = include.starts_with("sys/") || include == "unistd.h" || include == "fcntl.h" ||
                          include == "fstream" || include == "ctime" || include == "chrono";
      EXPECT_FALSE(system) << file.path << " includes " << include;
    }
  }
  EXPECT_GE(pure, 2 * kPure.size() - 1) << "memory_messages has no body";
}

TEST(Launcher, OnlyTheCommandLineKnowsIt) {
  RoomNames headers;
  for (const Source& file : launcher()) {
    if (file.path.ends_with(".hpp")) headers.insert(file.path);
  }
  EXPECT_TRUE(headers.contains("journal.hpp"));
  for (const Source& file : sources_below(kRoot / "src")) {
    if (file.path.starts_with("launcher/") || file.path.starts_with("cli/")) continue;
    for (const std::string& include : file.includes) {
      EXPECT_FALSE(headers.contains(include)) << file.path << " includes " << include;
    }
  }
}

}  // namespace
}  // namespace gpumem::architecture
