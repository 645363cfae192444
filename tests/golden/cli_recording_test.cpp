// What the commands print of a recording in a summary's place.
#include <nlohmann/json.hpp>

#include "command_line.hpp"

namespace gpumem {
namespace {

using testing::expect_golden_run;
using testing::Outcome;
using testing::run;

std::string of(const char* recording, const std::string& options) {
  return "estimate tests/golden/recordings/" + std::string(recording) + ".json.gz " + options;
}

TEST(CliRecording, IsEstimatedAtAnyBatchAndLength) {
  expect_golden_run("recording_estimate", of("resnet50", "--batch 64"));
  expect_golden_run("recording_sequence", of("gpt", "--batch 16 --seq 1024"));
}

TEST(CliRecording, HasABatchOfItsOwn) {
  const Outcome plain = run(of("gpt", "--json"));
  ASSERT_EQ(plain.exit, 0) << plain.err;
  EXPECT_EQ(nlohmann::json::parse(plain.out)["job"]["batch_size"], 4);
}

TEST(CliRecording, MayBeTrainedByAnotherOptimizer) {
  const auto optimizer = [](const Outcome& outcome) {
    return nlohmann::json::parse(outcome.out)["estimates"][0]["breakdown"]["optimizer"].get<std::int64_t>();
  };
  const Outcome adamw = run(of("gpt", "--batch 16 --json"));
  const Outcome lion = run(of("gpt", "--batch 16 --optimizer lion --json"));
  ASSERT_EQ(adamw.exit, 0) << adamw.err;
  ASSERT_EQ(lion.exit, 0) << lion.err;
  EXPECT_NEAR(static_cast<double>(optimizer(adamw)), 2.0 * static_cast<double>(optimizer(lion)), 65536.0);
}

TEST(CliRecording, KeepsWhatWasRecorded) {
  for (const char* option : {"--precision bf16", "--checkpointing", "--zero-grad step-end", "--accumulate 4",
                             "--loss mse", "--input 3x8x8"}) {
    const Outcome refused = run(of("gpt", std::string("--batch 16 ") + option));
    EXPECT_NE(refused.exit, 0) << option;
    EXPECT_NE(refused.err.find("record again"), std::string::npos) << option << ": " << refused.err;
  }
  EXPECT_EQ(run(of("gpt_bf16", "--batch 16 --precision bf16")).exit, 0) << "as it was recorded";
}

TEST(CliRecording, FitsAsManySamplesAsTheGpuHolds) {
  expect_golden_run("recording_fit", "fit tests/golden/recordings/resnet50.json.gz --gpu t4-16gb");
}

TEST(CliRecording, EstimatorsOfLayersRefuseIt) {
  const Outcome horus = run(of("resnet50", "--batch 8 --estimator horus"));
  EXPECT_NE(horus.exit, 0);
  EXPECT_NE(horus.err.find("recorded step"), std::string::npos) << horus.err;
}

}  // namespace
}  // namespace gpumem
