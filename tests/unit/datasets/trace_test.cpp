#include "gpumem_datasets/trace.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumem::datasets {
namespace {

using core::Bytes;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

const std::string kHeader = "arrival_s,task,gpus,duration_s,measured_mib";

Trace read(const std::string& text) {
  auto trace = parse_trace(text, "jobs.csv");
  EXPECT_TRUE(trace) << to_string(trace.error());
  return trace ? *std::move(trace) : Trace();
}

TEST(Trace, HoldsItsJobsAsTheyArrive) {
  const Trace trace = read(kHeader + "\n20,vgg,2,100.5,1000\n0,bert,1,30,512.5\n20,vgg,1,,7\n");
  ASSERT_EQ(trace.jobs.size(), 3U);
  EXPECT_EQ(trace.jobs[0].id, "bert");
  EXPECT_EQ(trace.jobs[0].line, 3);
  EXPECT_EQ(trace.jobs[0].row, 1U);
  EXPECT_EQ(trace.jobs[0].need, Bytes(512 * kMiB + kMiB / 2));
  EXPECT_EQ(trace.jobs[1].id, "vgg");
  EXPECT_EQ(trace.jobs[1].gpus, 2);
  EXPECT_DOUBLE_EQ(trace.jobs[1].duration_s.value_or(0), 100.5);
  EXPECT_EQ(trace.jobs[2].id, "vgg#2");
  EXPECT_EQ(trace.jobs[2].task, "vgg");
  EXPECT_FALSE(trace.jobs[2].duration_s);
  EXPECT_FALSE(trace.jobs[2].smact);
}

TEST(Trace, AnEmptyNumberOfGpusIsOne) { EXPECT_EQ(read(kHeader + "\n0,a,,1,1\n").jobs[0].gpus, 1); }

TEST(Trace, EstimatesStandInColumnsOfTheirOwn) {
  const Trace trace = read(kHeader +
                           ",horus_mb,faketensor_mb,replay_mib,note\n0,a,1,9,100,40000,39999.5,40000,x\n"
                           "1,b,1,9,100,,5,,\n");
  EXPECT_EQ(trace.estimators, (std::vector<std::string>{"horus", "faketensor", "replay"}));
  EXPECT_FALSE(trace.jobs[0].estimates[0]);  // CARMA's way to say that there is none
  EXPECT_EQ(trace.jobs[0].estimates[1], Bytes(39999 * kMiB + kMiB / 2));
  EXPECT_EQ(trace.jobs[0].estimates[2], Bytes(40000 * kMiB));
  EXPECT_FALSE(trace.jobs[1].estimates[0]);
  EXPECT_EQ(trace.jobs[1].estimates[1], Bytes(5 * kMiB));
  EXPECT_FALSE(trace.jobs[1].estimates[2]);
}

TEST(Trace, EstimatorsAreFoundByAnyOfTheirNames) {
  const Trace trace = read(kHeader + ",horus_mb,faketensor_mb\n0,a,1,9,100,1,2\n");
  EXPECT_EQ(trace.find("horus"), 0U);
  EXPECT_EQ(trace.find("horus_mb"), 0U);
  EXPECT_EQ(trace.find("fake-tensor"), 1U);
  EXPECT_EQ(trace.find("FakeTensor"), 1U);
  EXPECT_FALSE(trace.find("measured"));
  EXPECT_FALSE(trace.find("gpumemnet"));
}

TEST(Trace, ActivityAndNamesMayBeGiven) {
  const Trace trace = read(kHeader + ",job,smact\n0,a,1,9,100,first,0.25\n0,a,1,9,100,second,1\n");
  EXPECT_EQ(trace.jobs[0].id, "first");
  EXPECT_DOUBLE_EQ(trace.jobs[0].smact.value_or(0), 0.25);
  EXPECT_EQ(trace.jobs[1].id, "second");
}

struct Wrong {
  std::string text;
  std::string says;
  std::int64_t line;
};

class WrongTrace : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongTrace, IsAnErrorThatNamesTheLine) {
  const auto trace = parse_trace(GetParam().text, "jobs.csv");
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().code, core::ErrorCode::malformed_input);
  EXPECT_NE(trace.error().message.find(GetParam().says), std::string::npos) << trace.error().message;
  EXPECT_EQ(trace.error().place.line, GetParam().line);
  EXPECT_EQ(trace.error().place.file, "jobs.csv");
}

INSTANTIATE_TEST_SUITE_P(
    Traces, WrongTrace,
    ::testing::Values(Wrong{"", "is empty", 1}, Wrong{kHeader + "\n", "holds no jobs", 1},
                      Wrong{"arrival_s,task,gpus,duration_s\n0,a,1,1\n", "has no column 'measured_mib'", 1},
                      Wrong{kHeader + "\n0,a,1,1,1\n-5,a,1,1,1\n", "arrival_s is '-5'", 3},
                      Wrong{kHeader + "\n0,a,1,-1,1\n", "duration_s is '-1'", 2},
                      Wrong{kHeader + "\n0,a,1,0,1\n", "duration_s is 0", 2},
                      Wrong{kHeader + "\n,a,1,1,1\n", "arrival_s is empty", 2},
                      Wrong{kHeader + "\n1e99,a,1,1,1\n", "more than any job has", 2},
                      Wrong{kHeader + "\n0,,1,1,1\n", "task is empty", 2},
                      Wrong{kHeader + "\n0,a,0,1,1\n", "gpus is 0", 2},
                      Wrong{kHeader + "\n0,a,-1,1,1\n", "gpus is -1", 2},
                      Wrong{kHeader + "\n0,a,1,1,\n", "measured_mib is empty", 2},
                      Wrong{kHeader + "\n0,a,1,1,0\n", "measured_mib is 0", 2},
                      Wrong{kHeader + "\n0,a,1,1,nan\n", "measured_mib is 'nan'", 2},
                      Wrong{kHeader + ",x_mb\n0,a,1,1,1,-3\n", "x_mb is '-3'", 2},
                      Wrong{kHeader + ",smact\n0,a,1,1,1,1.5\n", "smact is '1.5'", 2},
                      Wrong{kHeader + ",job\n0,a,1,1,1,x\n0,b,1,1,1,x\n", "as does line 2", 3},
                      Wrong{kHeader + "\n0,a,1,1,1\n0,a,1,1,1\n0,a#2,1,1,1\n", "as does line 3", 4}));

TEST(FilledDurations, TheMedianIsTheDefault) {
  Trace trace = read(kHeader + "\n0,a,1,10,1\n0,b,1,,1\n0,c,1,30,1\n0,d,1,20,1\n");
  const auto filled = fill_durations(trace, {});
  ASSERT_TRUE(filled);
  EXPECT_EQ(filled->jobs, 1);
  EXPECT_DOUBLE_EQ(filled->seconds, 20.0);
  EXPECT_DOUBLE_EQ(trace.jobs[1].duration_s.value_or(0), 20.0);
  EXPECT_DOUBLE_EQ(trace.jobs[0].duration_s.value_or(0), 10.0);
}

TEST(FilledDurations, MayBeGivenOrLeftOut) {
  Trace trace = read(kHeader + "\n0,a,1,10,1\n0,b,1,,1\n");
  Trace other = trace;
  EXPECT_DOUBLE_EQ(fill_durations(trace, {MissingDuration::Rule::given, 120.0})->seconds, 120.0);
  EXPECT_DOUBLE_EQ(trace.jobs[1].duration_s.value_or(0), 120.0);
  EXPECT_EQ(fill_durations(other, {MissingDuration::Rule::skip, 0.0})->jobs, 1);
  ASSERT_EQ(other.jobs.size(), 1U);
  EXPECT_EQ(other.jobs[0].id, "a");
}

TEST(FilledDurations, OfNothingIsAnError) {
  Trace trace = read(kHeader + "\n0,a,1,,1\n");
  for (const auto rule : {MissingDuration::Rule::median, MissingDuration::Rule::skip}) {
    const auto filled = fill_durations(trace, {rule, 0.0});
    ASSERT_FALSE(filled);
    EXPECT_EQ(filled.error().code, core::ErrorCode::missing_information);
  }
  EXPECT_TRUE(fill_durations(trace, {MissingDuration::Rule::given, 5.0}));
  EXPECT_TRUE(fill_durations(trace, {}));  // nothing is missing any more
}

}  // namespace
}  // namespace gpumem::datasets
