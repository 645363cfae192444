#include "gpumem/record/recorded_steps.hpp"

#include "expect.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "recordings.hpp"

namespace gpumem::record {
namespace {

using testing::succeeds;

double multiply_adds(const plan::StepWork& work) {
  double sum = 0.0;
  for (const plan::Kernel& kernel : work.kernels) sum += kernel.multiply_adds;
  return sum;
}

TEST(RecordedWork, CountsAProduct) {
  auto graph = parse_summary(testing::kSmallRecording);
  ASSERT_TRUE(succeeds(graph));
  const auto work = recorded_work(TrainingJob(*std::move(graph), 10));
  ASSERT_TRUE(succeeds(work));
  ASSERT_EQ(work->kernels.size(), 1U);
  EXPECT_EQ(work->kernels[0].kind, plan::Kernel::Kind::product);
  EXPECT_EQ(work->kernels[0].multiply_adds, 10.0 * 3 * 4);
  EXPECT_EQ(work->kernels[0].bytes, 4.0 * (10 * 3 + 3 * 4 + 10 * 4));
  EXPECT_EQ(work->input_bytes, 10.0 * 3 * 4);
}

/// The same net as a summary and as a recording multiplies alike: forward once, backward twice except the image.
TEST(RecordedWork, ResNet50MultipliesAsItsSummarySays) {
  auto recorded = read_summary(testing::golden_recording("resnet50"));
  auto printed = read_summary(GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt");
  ASSERT_TRUE(succeeds(recorded) && succeeds(printed));
  const auto of_recording = recorded_work(TrainingJob(*std::move(recorded), 32));
  analysis::Analysis analysis(TrainingJob(*std::move(printed), 32));
  const auto of_summary = analysis.work();
  ASSERT_TRUE(succeeds(of_recording) && succeeds(of_summary));
  EXPECT_NEAR(multiply_adds(*of_recording), multiply_adds(**of_summary), 0.005 * multiply_adds(**of_summary));
}

TEST(RecordedWork, NeedsToKnowHowOftenKernelsRan) {
  auto graph = parse_summary(testing::with(testing::kSmallRecording, "\"kernels\": [[1, 1]],", ""));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_TRUE(testing::fails(recorded_work(TrainingJob(*std::move(graph), 2)), ErrorCode::missing_information, 0,
                             "record again"));
}

}  // namespace
}  // namespace gpumem::record
