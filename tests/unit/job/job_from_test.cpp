#include "gpumem/job/job_options.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "recordings.hpp"

namespace gpumem::job {
namespace {

std::shared_ptr<const model::ModelGraph> small_model() {
  model::GraphBuilder builder("small");
  builder.infer_edges();
  builder.add({.name = "head", .class_name = "Linear", .parameters = 36});
  return std::make_shared<const model::ModelGraph>(*std::move(builder).build());
}

TEST(JobRequest, IsATrainingJobOfAModel) {
  JobRequest request;
  request.training.batch_size = 8;
  request.training.layout.data_parallel = 4;
  const auto graph = small_model();
  const auto training = job_from(request, graph);
  ASSERT_TRUE(testing::succeeds(training));
  EXPECT_EQ(training->graph, graph);
  EXPECT_EQ(training->batch_size, 8);
  EXPECT_EQ(training->layout.data_parallel, 4);
}

TEST(JobRequest, GradientsAreZeroedWhereTheLoopDoesUnlessAPlaceIsGiven) {
  for (const model::LoopRow& row : model::kLoopRows) {
    JobRequest request;
    request.training.batch_size = 8;
    request.training.loop = row.value;
    EXPECT_EQ(job_from(request, small_model())->zero_grad, row.zero_grad) << row.name;
    ASSERT_TRUE(testing::succeeds(set_option_text(*find_option("zero_grad"), request, "step-start")));
    EXPECT_EQ(job_from(request, small_model())->zero_grad, model::ZeroGrad::step_start) << row.name;
  }
}

TEST(JobRequest, ACountIsOneOrMore) {
  JobRequest request;
  request.training.batch_size = 8;
  request.training.checkpoints = {model::Checkpoints::every, 0};
  EXPECT_TRUE(testing::fails(job_from(request, small_model()), core::ErrorCode::invalid_argument, 0, "blocks is 0"));
  request.training.checkpoints = {};
  request.training.loss_form = {model::LossForms::chunked, 0};
  EXPECT_TRUE(testing::fails(job_from(request, small_model()), core::ErrorCode::invalid_argument, 0, "a chunk is 0"));
  request.training.loss_form = {model::LossForms::fused, 0};
  request.training.loss = model::Loss::mse;
  EXPECT_TRUE(testing::fails(job_from(request, small_model()), core::ErrorCode::invalid_argument, 0, "cross entropy"));
}

/// What optimizer a recorded step ran is written down, in which form is not.
TEST(JobRequest, OfARecordingAnotherOptimizerOrAFormOfItTakesThePlaceOfTheRecordedOne) {
  auto read = parse_summary(testing::kSmallRecording);
  ASSERT_TRUE(testing::succeeds(read));
  const auto graph = std::make_shared<const model::ModelGraph>(*std::move(read));
  const auto replaces = [&](std::string_view option, std::string_view value) {
    JobRequest request;
    EXPECT_TRUE(testing::succeeds(set_option_text(*find_option(option), request, value)));
    const auto job = job_from(request, graph);
    EXPECT_TRUE(testing::succeeds(job));
    return job && job->replaces_optimizer;
  };
  EXPECT_FALSE(job_from({}, graph)->replaces_optimizer);
  EXPECT_EQ(job_from({}, graph)->optimizer, model::Optimizer::sgd) << "as it was recorded";
  EXPECT_FALSE(replaces("optimizer", "sgd"));
  EXPECT_TRUE(replaces("optimizer", "adam"));
  EXPECT_TRUE(replaces("fused", "true"));
  EXPECT_TRUE(replaces("foreach", "false"));
}

TEST(JobRequest, OfAnUnknownRecordedOptimizerThereIsNoOtherForm) {
  auto read =
      parse_summary(testing::with(testing::kSmallRecording, R"("optimizer": "sgd")", R"("optimizer": "sophia")"));
  ASSERT_TRUE(testing::succeeds(read));
  const auto graph = std::make_shared<const model::ModelGraph>(*std::move(read));
  JobRequest request;
  EXPECT_TRUE(testing::succeeds(set_option_text(*find_option("fused"), request, "true")));
  EXPECT_TRUE(testing::fails(job_from(request, graph), core::ErrorCode::invalid_argument, 0, "`optimizer`"));
  EXPECT_TRUE(testing::succeeds(set_option_text(*find_option("optimizer"), request, "adamw")));
  const auto job = job_from(request, graph);
  ASSERT_TRUE(testing::succeeds(job));
  EXPECT_TRUE(job->replaces_optimizer);
}

TEST(JobRequest, IsCheckedAsAJob) {
  EXPECT_TRUE(testing::fails(job_from({}, small_model()), core::ErrorCode::invalid_argument, 0, "the batch size is 0"));
  EXPECT_TRUE(testing::fails(job_from({}, nullptr), core::ErrorCode::invalid_argument, 0, "the job has no model"));
}

}  // namespace
}  // namespace gpumem::job
