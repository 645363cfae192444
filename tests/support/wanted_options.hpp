// What tests of trainers' files ask of a job: the options that it wants.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expect.hpp"
#include "trainer_files.hpp"

namespace gpumem::trainer_files {

/// What the job wants of the option; "-" for nothing.
inline std::string wanted(const TrainerJob& job, std::string_view option) {
  const WantedOption* const found = job.find(option);
  return found == nullptr ? "-" : found->value;
}

inline TrainerJob parsed(const std::string& text) {
  auto job = parse_trainer_job(text);
  EXPECT_TRUE(testing::succeeds(job)) << text;
  return job ? *std::move(job) : TrainerJob();
}

using Words = std::vector<std::pair<const char*, const char*>>;

inline void expect_wanted(const TrainerJob& job, const Words& words) {
  for (const auto& [option, value] : words) EXPECT_EQ(wanted(job, option), value) << option;
}

}  // namespace gpumem::trainer_files
