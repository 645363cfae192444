#include "gpumem/ml/features.hpp"

#include <cmath>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/device/workspace.hpp"

namespace gpumem::ml {
namespace {

const std::string kModels = GPUMEM_SOURCE_DIR "/models/";

TrainingJob resnet(std::int64_t batch_size = 8) {
  return {*read_summary(kModels + "summaries/resnet50.torchsummary.txt"), batch_size};
}

/// A reader of these features.
FeatureReader reader_of(const std::vector<std::string>& features) {
  ModelConfig config;
  for (const std::string& name : features) config.features.push_back({.name = name});
  auto reader = FeatureReader::create(config);
  EXPECT_TRUE(testing::succeeds(reader));
  return *std::move(reader);
}

/// The facts of a job with the replay that the reader needs.
core::Result<JobFacts> facts_for(const FeatureReader& reader, analysis::Analysis& analysis,
                                 const std::string& gpu = "a100-40gb") {
  core::Result<JobFacts> facts = facts_of(analysis);
  if (!facts) return facts;
  const core::Status added = add_replay(*facts, reader, analysis, *find_profile(gpu));
  if (!added) return added.error();
  return facts;
}

TEST(ReplayFigures, VariantsAreNamedAsTheDevicesAre) {
  const auto variants = device::workspace_variants();
  ASSERT_EQ(variants.size(), kVariantNames.size());
  for (std::size_t index = 0; index < variants.size(); ++index) {
    EXPECT_EQ(variants[index].name, kVariantNames[index]);
  }
}

TEST(ReplayFigures, OfATreeAndOfATableAreOfTheJobsRunOnTheGpu) {
  for (const TrainingJob& job :
       {resnet(), TrainingJob(*read_summary(kModels + "summaries/vgg16.module_tree.txt"), 4)}) {
    analysis::Analysis analysis(job);
    analysis::Analysis alone(job);
    TrainingJob given = job;
    given.input_shape = {3, 224, 224};
    analysis.set_job(given);
    alone.set_job(given);
    ASSERT_TRUE(testing::succeeds(facts_for(reader_of({"replay.reserved"}), analysis)));  // another GPU's
    const auto facts = facts_for(reader_of({"replay.reserved"}), analysis, "t4-16gb");
    ASSERT_TRUE(testing::succeeds(facts));
    const auto figures = replay_figures(alone, *find_profile("t4-16gb"), Needs::replay);
    ASSERT_TRUE(testing::succeeds(figures));
    EXPECT_EQ(*facts->replay, *figures);
    const auto run = alone.run(*find_profile("t4-16gb"));
    ASSERT_TRUE(testing::succeeds(run));
    EXPECT_DOUBLE_EQ((*figures)[static_cast<std::size_t>(ReplayFigure::reserved)], Bytes(run->run.peak_reserved).mib());
  }
}

TEST(ReplayFigures, AreMadeAsFarAsAModelReadsThem) {
  analysis::Analysis analysis(resnet());
  const auto none = facts_for(reader_of({"batch_size"}), analysis);
  ASSERT_TRUE(testing::succeeds(none));
  EXPECT_FALSE(none->replay);

  const auto rule = facts_for(reader_of({"replay.reserved"}), analysis);
  ASSERT_TRUE(testing::succeeds(rule));
  const auto replay = make_estimator("replay");
  const auto estimate = (*replay)->estimate(resnet(), *find_profile("a100-40gb"));
  ASSERT_TRUE(testing::succeeds(estimate));
  const auto figure = [&](ReplayFigure which) { return (*rule->replay)[static_cast<std::size_t>(which)]; };
  EXPECT_DOUBLE_EQ(figure(ReplayFigure::device), estimate->expected.mib());
  EXPECT_DOUBLE_EQ(figure(ReplayFigure::reserved), estimate->reserved->mib());
  EXPECT_DOUBLE_EQ(figure(ReplayFigure::allocated), estimate->allocated->mib());
  EXPECT_DOUBLE_EQ(figure(ReplayFigure::context), estimate->breakdown.context.mib());
  EXPECT_DOUBLE_EQ(figure(ReplayFigure::fragmentation), estimate->breakdown.fragmentation.mib());
  EXPECT_EQ(figure(ReplayFigure::fits), 1.0);
  EXPECT_EQ((*rule->replay)[kFirstVariantFigure], 0.0);

  const auto variants = facts_for(reader_of({"replay.slices-1"}), analysis);
  ASSERT_TRUE(testing::succeeds(variants));
  std::size_t different = 0;
  for (std::size_t variant = 0; variant < kVariantNames.size(); ++variant) {
    const double ratio = (*variants->replay)[kFirstVariantFigure + variant];
    EXPECT_LT(std::abs(ratio), 1.0) << kVariantNames[variant];
    different += ratio != 0.0 ? 1 : 0;
  }
  EXPECT_GT(different, 5U);
}

TEST(ReplayFigures, OfAFailedRunLeaveTheFactsAsTheyWere) {
  TrainingJob job = resnet();
  job.software = "abacus";
  analysis::Analysis analysis(job);
  auto facts = facts_of(analysis);
  ASSERT_TRUE(testing::succeeds(facts));
  const auto added = add_replay(*facts, reader_of({"replay.reserved"}), analysis, *find_profile("a100-40gb"));
  EXPECT_TRUE(testing::fails(added, core::ErrorCode::invalid_argument, 0, "abacus"));
  EXPECT_FALSE(facts->replay);
}

TEST(ReplayFigures, ATreeGetsItsEdgesFirst) {
  TrainingJob job(*read_summary(kModels + "trees/bert-base-uncased.txt"), 4);
  job.sequence_length = 16;
  analysis::Analysis analysis(job);
  const auto facts = facts_of(analysis);
  ASSERT_TRUE(testing::succeeds(facts));
  EXPECT_EQ((*analysis.wired())->edges(), "architecture: bert, 12 heads, as published models of this width have");
  EXPECT_EQ(facts->kind, NetKind::transformer);
}

}  // namespace
}  // namespace gpumem::ml
