#include "gpumem/job/lengths.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "expect.hpp"
#include "gpumem/all.hpp"

namespace gpumem::job {
namespace {

using testing::succeeds;

std::string text_of(const core::Result<std::vector<LengthCount>>& lengths) {
  if (!lengths) return core::to_string(lengths.error());
  std::string text;
  for (const LengthCount& one : *lengths) {
    text += (text.empty() ? "" : " ") + std::to_string(one.length) + "x" + std::to_string(one.count);
  }
  return text;
}

LongestBatch longest(const std::string& lengths, const std::string& options, const Draws& draws,
                     std::optional<std::int64_t> cut = {}) {
  const auto counts = parse_lengths(lengths);
  const auto settings = parse_length_options(options);
  EXPECT_TRUE(succeeds(counts));
  EXPECT_TRUE(succeeds(settings));
  if (!counts || !settings) return {};
  const auto found = longest_batch(*counts, *settings, draws, cut);
  EXPECT_TRUE(succeeds(found));
  return found ? *found : LongestBatch{};
}

TEST(Lengths, AreOneALineOrAHistogram) {
  EXPECT_EQ(text_of(parse_lengths("7\n5\n7\n")), "5x1 7x2");
  EXPECT_EQ(text_of(parse_lengths("# tokens, samples\n512 40\r\n\n512,2\n9\t1\n2048x3")), "9x1 512x42 2048x3");
  for (const char* wrong : {"", "\n", "0", "-3", "7 0", "7 8 9", "seven", "7x", "x7", "99999999999", "7x8 9 10"}) {
    EXPECT_FALSE(parse_lengths(wrong)) << wrong;
  }
  EXPECT_EQ(parse_lengths("1\n2\nthree").error().place.line, 3);
  EXPECT_FALSE(parse_lengths("1 9007199254740992\n2 1")) << "more samples than a double counts";
}

TEST(Lengths, OptionsNameWhatIsWrong) {
  const auto options = parse_length_options("batching=sorted,pad_to=8,steps=500,percentile=99.5");
  ASSERT_TRUE(succeeds(options));
  EXPECT_EQ(options->batching, Batching::sorted);
  EXPECT_EQ(options->pad_to, 8);
  EXPECT_EQ(options->steps, 500);
  EXPECT_EQ(options->percentile, 99.5);
  for (const char* wrong : {"?", "batching=long", "pad_to=0", "steps=-1", "percentile=0", "percentile=101", "steps"}) {
    const auto refused = parse_length_options(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message.find(wrong), std::string::npos);
  }
}

/// The share of all draws of `count` of these samples whose longest is at most `length`, counted one by one.
double counted_share(const std::vector<int>& samples, std::size_t count, int length) {
  std::vector<bool> drawn(samples.size(), false);
  std::fill(drawn.begin(), drawn.begin() + static_cast<std::ptrdiff_t>(count), true);
  double all = 0.0;
  double within = 0.0;
  do {
    int longest = 0;
    for (std::size_t at = 0; at < samples.size(); ++at) longest = drawn[at] ? std::max(longest, samples[at]) : longest;
    all += 1.0;
    if (longest <= length) within += 1.0;
  } while (std::prev_permutation(drawn.begin(), drawn.end()));
  return within / all;
}

TEST(Lengths, TheLongestOfABatchIsDistributedAsCountingAllBatchesSays) {
  const std::vector<int> samples = {3, 3, 4, 6, 6, 6, 7, 9, 9, 12};
  std::string text;
  for (const int sample : samples) text += std::to_string(sample) + "\n";
  for (const std::int64_t batch : {1, 2, 3, 7, 10}) {
    for (const double percentile : {1.0, 25.0, 60.0, 90.0, 99.0, 100.0}) {
      std::int64_t expected = 12;
      for (const int length : {9, 7, 6, 4, 3}) {
        const double share = counted_share(samples, static_cast<std::size_t>(batch), length);
        if (share >= percentile / 100.0 - 1e-12) expected = length;
      }
      const std::string options = "steps=1,percentile=" + std::to_string(percentile);
      EXPECT_EQ(longest(text, options, {batch, 1}).peak, expected) << batch << " at " << percentile;
    }
  }
}

TEST(Lengths, AnEpochMeetsTheLongestSample) {
  const LongestBatch epoch = longest("100 9999\n5000 1", "", {4, 1});
  EXPECT_EQ(epoch.steps, 2500);
  EXPECT_EQ(epoch.peak, 5000);
  EXPECT_EQ(epoch.usual, 100);
  EXPECT_EQ(epoch.nearly_all, 100);
  EXPECT_TRUE(epoch.padded);
  EXPECT_EQ(longest("100 9999\n5000 1", "steps=1000", {4, 1}).peak, 100) << "4,000 of 10,000 are drawn";
  EXPECT_EQ(longest("100 9999\n5000 1", "steps=1000", {4, 2}).peak, 5000) << "8,000 of them, on two GPUs";
  EXPECT_EQ(longest("100 9999\n5000 1", "", {4, 1}, 2048).peak, 2048) << "cut";
  EXPECT_EQ(longest("100 9999\n5000 1", "pad_to=64", {4, 1}).peak, 5056);
  EXPECT_FALSE(longest("100 50", "", {4, 1}).padded) << "all are alike";
  EXPECT_FALSE(longest("100\n200", "", {1, 1}).padded) << "one sample a batch";
}

TEST(Lengths, AnyBatchMayHoldTheLongestSample) {
  JobRequest request;
  request.lengths = "100x1000+4000";
  request.lengths_options = "steps=1,percentile=10";
  take_any_batch(request);
  const auto options = parse_length_options(request.lengths_options);
  ASSERT_TRUE(succeeds(options));
  const auto found = longest_batch({{100, 1000}, {4000, 1}}, *options, {request.training.batch_size, 1}, std::nullopt);
  ASSERT_TRUE(succeeds(found));
  EXPECT_EQ(found->peak, 4000);
  EXPECT_TRUE(found->padded);
  JobRequest alike;
  take_any_batch(alike);
  EXPECT_EQ(alike.training.batch_size, 1);
  EXPECT_TRUE(alike.lengths_options.empty());
}

TEST(Lengths, SortedBatchesHoldSamplesOfLikeLength) {
  // In batches of 2: 9 9 | 8 5 | 5 5 | 1.
  const std::string text = "9 2\n8 1\n5 3\n1 1";
  EXPECT_EQ(longest(text, "batching=sorted,steps=1,percentile=25", {2, 1}).peak, 1);
  EXPECT_EQ(longest(text, "batching=sorted,steps=1,percentile=50", {2, 1}).peak, 5);
  EXPECT_EQ(longest(text, "batching=sorted,steps=1,percentile=75", {2, 1}).peak, 8);
  EXPECT_EQ(longest(text, "batching=sorted,steps=1,percentile=76", {2, 1}).peak, 9);
  EXPECT_EQ(longest(text, "batching=sorted", {2, 1}).peak, 9);
}

TEST(Lengths, PackedBatchesAreFull) {
  EXPECT_EQ(longest("100 50", "batching=packed", {2, 1}, 2048).peak, 2048);
  EXPECT_EQ(longest("100 5", "batching=packed", {2, 1}, 2048).peak, 500) << "there is no more";
  EXPECT_FALSE(longest("100 50\n7", "batching=packed", {2, 1}, 2048).padded);
  const auto open = longest_batch({{100, 5}}, {.batching = Batching::packed}, {}, std::nullopt);
  ASSERT_FALSE(open);
  EXPECT_NE(open.error().message.find("seq_length"), std::string::npos);
}

TEST(Lengths, SayHowLongAJobsBatchesAre) {
  const auto graph = session::parse_summary(
      R"({"model_type": "gpt2", "vocab_size": 64, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 128})");
  ASSERT_TRUE(succeeds(graph));
  JobRequest request;
  request.training.batch_size = 4;
  request.lengths = "16x40+96";
  const auto shared = std::make_shared<const model::ModelGraph>(*graph);
  const auto job = job_from(request, shared);
  ASSERT_TRUE(succeeds(job));
  EXPECT_EQ(job->sequence_length, 96);
  EXPECT_TRUE(job->padding);
  ASSERT_EQ(job->notes.size(), 1U);
  EXPECT_NE(job->notes.front().text.find("the longest batch of 11 steps has 96 tokens"), std::string::npos)
      << job->notes.front().text;
  request.lengths_options = "batching=by_moonlight";
  EXPECT_FALSE(job_from(request, shared));
  request.lengths_options = "steps=1";
  EXPECT_EQ(job_from(request, shared)->sequence_length, 16);
  request.lengths.clear();
  EXPECT_FALSE(job_from(request, shared)) << "settings of nothing";
  request.lengths = "no such file";
  const auto missing = job_from(request, shared);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("'no such file' cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace gpumem::job
