#include "gpumem/estimate/learned_facts.hpp"

#include <cmath>

#include "expect.hpp"
#include "gpumem/device/workspace.hpp"
#include "gpumem/gpumem.hpp"
#include "gpumem/ml/replay_figures.hpp"

namespace gpumem::estimate {
namespace {

const std::string kModels = GPUMEM_SOURCE_DIR "/models/";

TrainingJob resnet(std::int64_t batch_size = 8) {
  return {*read_summary(kModels + "summaries/resnet50.torchsummary.txt"), batch_size};
}

core::Result<LearnedFacts> facts_of(const TrainingJob& job, ReplayDepth depth) {
  return learned_facts(job, *find_profile("a100-40gb"), ops::catalogue(), depth);
}

TEST(LearnedFacts, VariantsAreNamedAsTheDevicesAre) {
  const auto variants = device::workspace_variants();
  ASSERT_EQ(variants.size(), ml::kVariantNames.size());
  for (std::size_t index = 0; index < variants.size(); ++index) {
    EXPECT_EQ(variants[index].name, ml::kVariantNames[index]);
  }
}

TEST(LearnedFacts, AReplayAddedIsOneThatWasAskedFor) {
  const device::GpuProfile gpu = *find_profile("t4-16gb");
  for (const TrainingJob& job :
       {resnet(), TrainingJob(*read_summary(kModels + "summaries/vgg16.module_tree.txt"), 4)}) {
    TrainingJob given = job;
    given.input_shape = {3, 224, 224};
    const auto at_once = learned_facts(given, gpu, ops::catalogue(), ReplayDepth::rule);
    auto later = facts_of(given, ReplayDepth::none);  // on another GPU, which does not matter
    ASSERT_TRUE(testing::succeeds(at_once));
    ASSERT_TRUE(testing::succeeds(later));
    ASSERT_TRUE(testing::succeeds(add_replay(*later, gpu, ops::catalogue(), ReplayDepth::none)));
    EXPECT_FALSE(later->replay);
    ASSERT_TRUE(testing::succeeds(add_replay(*later, gpu, ops::catalogue(), ReplayDepth::rule)));
    EXPECT_EQ(later->facts.replay, at_once->facts.replay);
    EXPECT_EQ(later->edges, at_once->edges);
    EXPECT_EQ(later->planned->context, at_once->planned->context);
    EXPECT_EQ(later->replay->run.peak_reserved, at_once->replay->run.peak_reserved);
  }
}

TEST(LearnedFacts, HoldReplaysAsFarAsTheyAreAskedFor) {
  const auto none = facts_of(resnet(), ReplayDepth::none);
  ASSERT_TRUE(testing::succeeds(none));
  EXPECT_FALSE(none->facts.replay);
  EXPECT_FALSE(none->planned);

  const auto rule = facts_of(resnet(), ReplayDepth::rule);
  ASSERT_TRUE(testing::succeeds(rule));
  const auto replay = make_estimator("replay");
  const auto estimate = (*replay)->estimate(resnet(), *find_profile("a100-40gb"));
  ASSERT_TRUE(testing::succeeds(estimate));
  const auto figure = [&](ml::ReplayFigure which) { return (*rule->facts.replay)[static_cast<std::size_t>(which)]; };
  EXPECT_DOUBLE_EQ(figure(ml::ReplayFigure::device), estimate->expected.mib());
  EXPECT_DOUBLE_EQ(figure(ml::ReplayFigure::reserved), estimate->reserved->mib());
  EXPECT_DOUBLE_EQ(figure(ml::ReplayFigure::allocated), estimate->allocated->mib());
  EXPECT_DOUBLE_EQ(figure(ml::ReplayFigure::context), estimate->breakdown.context.mib());
  EXPECT_DOUBLE_EQ(figure(ml::ReplayFigure::fragmentation), estimate->breakdown.fragmentation.mib());
  EXPECT_EQ(figure(ml::ReplayFigure::fits), 1.0);
  EXPECT_EQ((*rule->facts.replay)[ml::kFirstVariantFigure], 0.0);

  const auto variants = facts_of(resnet(), ReplayDepth::variants);
  ASSERT_TRUE(testing::succeeds(variants));
  std::size_t different = 0;
  for (std::size_t variant = 0; variant < ml::kVariantNames.size(); ++variant) {
    const double ratio = (*variants->facts.replay)[ml::kFirstVariantFigure + variant];
    EXPECT_LT(std::abs(ratio), 1.0) << ml::kVariantNames[variant];
    different += ratio != 0.0 ? 1 : 0;
  }
  EXPECT_GT(different, 5U);
}

TEST(LearnedFacts, ATreeGetsItsEdgesFirst) {
  TrainingJob job(*read_summary(kModels + "trees/bert-base-uncased.txt"), 4);
  job.sequence_length = 16;
  const auto facts = facts_of(job, ReplayDepth::none);
  ASSERT_TRUE(testing::succeeds(facts));
  EXPECT_EQ(facts->edges, "family: bert");
  EXPECT_EQ(facts->facts.kind, ml::NetKind::transformer);
}

}  // namespace
}  // namespace gpumem::estimate
