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

TEST(CliRecording, OfOneSizeKeepsItsBatch) {
  const Outcome detector = run(of("detector", "--gpu v100-32gb"));
  ASSERT_EQ(detector.exit, 0) << detector.err;
  EXPECT_NE(detector.out.find("\nbatch 2, "), std::string::npos) << detector.out;
  EXPECT_NE(run(of("detector", "--batch 4")).exit, 0);
}

TEST(CliRecording, ThatIsMissingIsToldOf) {
  const Outcome missing = run("estimate tests/golden/recordings/no_such.json.gz");
  EXPECT_EQ(missing.exit, 3);
  EXPECT_NE(missing.err.find("No such file"), std::string::npos) << missing.err;
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

TEST(CliRecording, IsPlacedAtTheBatchThatWasRecorded) {
  const std::string server = " --server tests/golden/cli/place/server.json --json";
  const Outcome placed = run("place tests/golden/recordings/gpt.json.gz" + server);
  const Outcome asked = run("place tests/golden/recordings/gpt.json.gz --batch 4" + server);
  EXPECT_EQ(placed.exit, 0) << placed.err;
  const auto expected = [](const Outcome& outcome) {
    return nlohmann::json::parse(outcome.out)["estimates"][0]["expected_bytes"].get<std::int64_t>();
  };
  EXPECT_EQ(expected(placed), expected(asked));
  const Outcome summary = run("place models/summaries/vgg16.torchsummary.txt" + server);
  EXPECT_EQ(summary.exit, 2);
  EXPECT_NE(summary.err.find("give it with --batch"), std::string::npos) << summary.err;
}

TEST(CliRecording, OneLayoutCannotBePlanned) {
  const Outcome plan = run("plan tests/golden/recordings/gpt.json.gz --gpu h100-80gb --global-batch 8");
  EXPECT_EQ(plan.exit, 2);
  EXPECT_NE(plan.err.find("is a recording of one layout"), std::string::npos) << plan.err;
}

}  // namespace
}  // namespace gpumem
