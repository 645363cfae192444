#include "gpumem/job/job_from.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/model/graph_builder.hpp"

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
  request.training.data_parallel = 4;
  const auto graph = small_model();
  const auto training = job_from(request, graph);
  ASSERT_TRUE(testing::succeeds(training));
  EXPECT_EQ(training->graph, graph);
  EXPECT_EQ(training->batch_size, 8);
  EXPECT_EQ(training->data_parallel, 4);
}

TEST(JobRequest, IsCheckedAsAJob) {
  EXPECT_TRUE(testing::fails(job_from({}, small_model()), core::ErrorCode::invalid_argument, 0, "the batch size is 0"));
  EXPECT_TRUE(testing::fails(job_from({}, nullptr), core::ErrorCode::invalid_argument, 0, "the job has no model"));
}

}  // namespace
}  // namespace gpumem::job
