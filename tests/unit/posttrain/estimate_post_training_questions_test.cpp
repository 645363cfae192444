#include "gpumem/posttrain/estimate_post_training.hpp"

#include <algorithm>

#include "gpumem/all.hpp"
#include "small_transformers.hpp"

namespace gpumem::posttrain {
namespace {

using testing::succeeds;

const device::GpuProfile& gpu() {
  static const device::GpuProfile kGpu = *find_profile("t4-16gb");
  return kGpu;
}

PostTrainingJob preferences() {
  PostTrainingJob job{.policy = testing::small_llama(2), .options = {.algorithm = Algorithm::dpo}};
  job.policy.precision = model::Precision::fp32;
  job.policy.batch_size = 1;
  return job;
}

/// Why there is no such limit; empty: there is one.
std::string reason_of(const PostTrainingLimits& limits, std::string_view limit) {
  const auto found =
      std::find_if(limits.reasons.begin(), limits.reasons.end(), [&](const auto& at) { return at.first == limit; });
  return found == limits.reasons.end() ? std::string() : found->second;
}

TEST(PostTrainingLimits, TheLargestBatchFitsAndOneMoreDoesNot) {
  PostTrainingJob job = preferences();
  const auto limits = find_post_training_limits(job, gpu());
  ASSERT_TRUE(succeeds(limits));
  ASSERT_TRUE(limits->largest_batch.has_value());
  EXPECT_FALSE(limits->largest_utilization.has_value()) << "nobody generates";
  EXPECT_TRUE(limits->longest_sequence.has_value());
  EXPECT_NE(reason_of(*limits, "largest_group"), "");
  EXPECT_NE(reason_of(*limits, "largest_utilization"), "");
  const auto verdict = [&](std::int64_t batch) {
    job.policy.batch_size = batch;
    const auto estimate = estimate_post_training(job, gpu());
    return estimate ? estimate->memory.verdict : estimate::Verdict::does_not_fit;
  };
  EXPECT_EQ(verdict(*limits->largest_batch), estimate::Verdict::fits);
  EXPECT_NE(verdict(*limits->largest_batch + 1), estimate::Verdict::fits);
}

TEST(PostTrainingAdvice, EveryChangeTakesLess) {
  PostTrainingJob job = preferences();
  job.policy.batch_size = 16;
  const auto now = estimate_post_training(job, gpu());
  ASSERT_TRUE(succeeds(now));
  const auto advice = advise_post_training(job, gpu());
  ASSERT_TRUE(succeeds(advice));
  for (const PostTrainingChange& change : *advice) {
    EXPECT_LT(change.estimate.memory.most_needed, now->memory.most_needed) << change.option << " " << change.value;
  }
  const auto has = [&](std::string_view option) {
    return std::any_of(advice->begin(), advice->end(),
                       [&](const PostTrainingChange& at) { return at.option == option; });
  };
  EXPECT_TRUE(has("reference")) << "it may be precomputed";
  EXPECT_TRUE(has("batch_size"));
  EXPECT_FALSE(has("sleep_level"));
}

PostTrainingJob completions() {
  PostTrainingJob job{.policy = testing::small_llama(2), .options = {.algorithm = Algorithm::grpo}};
  job.options.program = Program::verl;
  job.options.rollout = Rollout::elsewhere;
  job.options.prompt_length = 512;
  job.options.completion_length = 512;
  job.policy.sequence_length.reset();
  return job;
}

/// The training is run once for all shares, and each batch takes what the one before has recorded.
TEST(PostTrainingLimits, AreThoseOfEstimatesOneByOne) {
  const auto sizes = serve::read_served_model(
      R"({"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
      "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 1024, "max_position_embeddings": 4096})");
  const auto h100 = find_profile("h100-80gb");
  ASSERT_TRUE(succeeds(sizes) && succeeds(h100));
  PostTrainingJob job = completions();
  job.options.rollout = Rollout::colocated;
  job.served = std::make_shared<const serve::ServedModel>(*sizes);
  const auto limits = find_post_training_limits(job, *h100);
  ASSERT_TRUE(succeeds(limits));
  const auto fits = [&](const PostTrainingJob& one) {
    const auto estimate = estimate_post_training(one, *h100);
    return estimate && estimate->memory.verdict == estimate::Verdict::fits;
  };
  std::optional<double> largest;
  for (int hundredths = 99; hundredths > 0 && !largest; --hundredths) {
    PostTrainingJob one = job;
    one.options.gpu_memory_utilization = hundredths / 100.0;
    if (fits(one)) largest = hundredths / 100.0;
  }
  EXPECT_TRUE(largest.has_value());
  EXPECT_EQ(limits->largest_utilization, largest);
  ASSERT_TRUE(limits->largest_batch.has_value());
  PostTrainingJob more = job;
  more.policy.batch_size = *limits->largest_batch;
  EXPECT_TRUE(fits(more));
  ++more.policy.batch_size;
  EXPECT_FALSE(fits(more));
}

TEST(PostTrainingLimits, ARowIsNoShorterForShortCompletions) {
  PostTrainingJob job = completions();
  const auto padded = find_post_training_limits(job, gpu());
  ASSERT_TRUE(succeeds(padded));
  EXPECT_TRUE(padded->longest_completion.has_value());
  job.options.packing = true;
  job.policy.batch_size = 1;
  job.policy.sequence_length = std::int64_t{1} << 26;  // more than any GPU holds
  const auto packed = find_post_training_limits(job, gpu());
  ASSERT_TRUE(succeeds(packed));
  EXPECT_FALSE(packed->longest_completion.has_value());
}

TEST(PostTrainingLimits, SayWhyNothingFits) {
  PostTrainingJob job = preferences();
  job.policy.sequence_length = std::int64_t{1} << 24;
  const auto limits = find_post_training_limits(job, gpu());
  ASSERT_TRUE(succeeds(limits));
  EXPECT_FALSE(limits->largest_batch.has_value());
  const std::string reason = reason_of(*limits, "largest_batch");
  EXPECT_EQ(reason.find("even 1 takes "), 0U) << reason;
  EXPECT_NE(reason.find(" in \"reference\""), std::string::npos) << reason;
}

TEST(PostTrainingLimits, AGroupIsLimitedByTheCacheOfWhoGeneratesIt) {
  PostTrainingJob job = completions();
  EXPECT_NE(reason_of(*find_post_training_limits(job, gpu()), "largest_group").find("num_generations"),
            std::string::npos);
  job.options.num_generations = 4;
  const auto elsewhere = find_post_training_limits(job, gpu());
  EXPECT_NE(reason_of(*elsewhere, "largest_group").find("memory does not limit it"), std::string::npos);
  job.options.program = Program::trl;
  job.options.rollout = Rollout::generate;
  job.policy.batch_size = 4;
  auto sizes = serve::read_served_model(
      R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 64, "num_attention_heads": 32,
          "num_key_value_heads": 32, "intermediate_size": 128, "vocab_size": 512, "max_position_embeddings": 8192})");
  ASSERT_TRUE(succeeds(sizes));
  job.served = std::make_shared<const serve::ServedModel>(*std::move(sizes));
  const auto own = find_post_training_limits(job, gpu());
  ASSERT_TRUE(succeeds(own));
  ASSERT_TRUE(own->largest_group.has_value()) << reason_of(*own, "largest_group");
  job.options.rollout_batch = *own->largest_group;
  EXPECT_EQ(estimate_post_training(job, gpu())->memory.verdict, estimate::Verdict::fits);
  job.options.rollout_batch = *own->largest_group + 1;
  EXPECT_NE(estimate_post_training(job, gpu())->memory.verdict, estimate::Verdict::fits);
}

TEST(PostTrainingAdvice, SeveralChangesAreEnoughWhereNoneIsAlone) {
  PostTrainingJob job = preferences();
  std::int64_t batch = 1;
  const auto last = [&]() -> std::optional<PostTrainingChange> {
    job.policy.batch_size = batch;
    const auto advice = advise_post_training(job, gpu());
    EXPECT_TRUE(succeeds(advice));
    if (!advice || advice->empty()) return std::nullopt;
    return advice->back();
  };
  std::optional<PostTrainingChange> together;
  for (; batch < (1 << 16) && (!together || together->also.empty()); batch *= 2) together = last();
  ASSERT_TRUE(together.has_value());
  ASSERT_FALSE(together->also.empty()) << "at some batch no change is enough alone";
  EXPECT_EQ(together->estimate.memory.verdict, estimate::Verdict::fits);
  EXPECT_NE(together->costs.find("; "), std::string::npos);
  for (const auto& [option, value] : together->also) EXPECT_NE(option, together->option) << value;
}

TEST(PostTrainingAdvice, AnEntropyMayBeComputedInChunks) {
  PostTrainingJob job = completions();
  job.policy.batch_size = 64;
  const auto advises = [&](Entropy entropy) {
    job.options.entropy = entropy;
    const auto advice = advise_post_training(job, gpu());
    EXPECT_TRUE(succeeds(advice));
    return advice && std::any_of(advice->begin(), advice->end(),
                                 [](const PostTrainingChange& at) { return at.option == "entropy"; });
  };
  EXPECT_TRUE(advises(Entropy::whole));
  EXPECT_FALSE(advises(Entropy::chunked));
  EXPECT_FALSE(advises(Entropy::none));
}

TEST(PostTrainingLimits, ABatchThatNobodySaysIsOneAndIsNamed) {
  PostTrainingRequest request;
  request.training.training.batch_size = 0;
  const PostTrainingRequest asked = with_a_batch(request);
  EXPECT_EQ(asked.training.training.batch_size, 1);
  ASSERT_EQ(asked.assumed.size(), 1U);
  request.training.training.batch_size = 4;
  EXPECT_EQ(with_a_batch(request).training.training.batch_size, 4);
  EXPECT_TRUE(with_a_batch(request).assumed.empty());
}

TEST(PostTrainingEstimate, ASwappedReferenceTakesNoMemoryOfItsOwn) {
  PostTrainingJob job = completions();
  const auto takes = [&](Reference reference) {
    job.options.reference = reference;
    const auto estimate = estimate_post_training(job, gpu());
    EXPECT_TRUE(succeeds(estimate));
    return estimate ? estimate->memory.allocated : core::Bytes();
  };
  EXPECT_EQ(takes(Reference::swapped), takes(Reference::none));
  EXPECT_LT(takes(Reference::swapped), takes(Reference::own));
}

TEST(PostTrainingLayouts, VerlShardsAsItsStrategySays) {
  PostTrainingJob job = completions();
  for (const model::Shardings kind : {model::Shardings::fsdp1, model::Shardings::fsdp2}) {
    job.policy.layout.sharding.kind = kind;
    job.policy.layout.data_parallel = 2;
    const auto layouts = find_post_training_layouts(job, gpu(), 4);
    ASSERT_TRUE(succeeds(layouts));
    ASSERT_FALSE(layouts->empty());
    EXPECT_EQ(layouts->front().sharding.kind, kind);
  }
}

TEST(PostTrainingLayouts, ThoseThatMoveLeastComeFirst) {
  PostTrainingJob job = preferences();
  const auto layouts = find_post_training_layouts(job, gpu(), 4);
  ASSERT_TRUE(succeeds(layouts));
  ASSERT_GE(layouts->size(), 3U);
  EXPECT_EQ(layouts->front().sharding.kind, model::Shardings::ddp);
  EXPECT_EQ(layouts->back().sharding.kind, model::Shardings::zero_3);
  for (const PostTrainingLayout& layout : *layouts) {
    EXPECT_EQ(layout.data_parallel, 4);
    EXPECT_NE(layout.estimate.memory.verdict, estimate::Verdict::does_not_fit);
  }
  EXPECT_EQ(layouts->front().precision, model::Precision::fp32);
  EXPECT_EQ(layouts->back().precision, model::Precision::bf16_mixed) << "DeepSpeed keeps float32 masters";
  EXPECT_FALSE(find_post_training_layouts(job, gpu(), 0));
  EXPECT_FALSE(find_post_training_layouts(job, gpu(), 1025));
  job.policy.layout.tensor_parallel = 2;
  EXPECT_FALSE(find_post_training_layouts(job, gpu(), 3)) << "two GPUs share the model";
}

}  // namespace
}  // namespace gpumem::posttrain
