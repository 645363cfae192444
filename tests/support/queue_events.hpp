// Events of a queue as tests need them: jobs that ask for so many MiB, join, start and end.
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "event.hpp"
#include "process.hpp"

namespace gpumem::testing {

inline core::Bytes mib(std::int64_t count) { return core::Bytes(count << 20); }

/// Its launcher is the test itself, which is alive.
inline launcher::Joined joined(std::int64_t memory_mib, const std::string& name = "train.py") {
  launcher::Joined joined;
  joined.name = name;
  joined.user = 1000;
  joined.launcher = launcher::process_of(getpid());
  joined.boot = launcher::boot_id();
  joined.asked.memory = mib(memory_mib);
  joined.asked.alone = mib(memory_mib);
  return joined;
}

inline launcher::Event join(std::int64_t job, std::int64_t memory_mib = 1024) {
  return {job, 1.5 * static_cast<double>(job), joined(memory_mib)};
}

inline launcher::Event start(std::int64_t job, const std::vector<launcher::Promise>& promises, std::int64_t pid = 0) {
  return {job, 100.0, launcher::Started{{pid == 0 ? 40'000 + job : pid, 77}, promises, 0}};
}

inline launcher::Event recover(std::int64_t job, std::int64_t failures) {
  launcher::Recovers recovers{joined(2048).asked, failures};
  recovers.asked.exclusive = true;
  return {job, 200.0, recovers};
}

inline launcher::Event end(std::int64_t job) { return {job, 300.0, launcher::Ended{}}; }

}  // namespace gpumem::testing
