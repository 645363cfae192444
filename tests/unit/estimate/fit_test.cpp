#include "gpumem/estimate/fit.hpp"

#include <functional>
#include <tuple>

#include "golden.hpp"
#include "graphs.hpp"

namespace gpumem::estimate {
namespace {

/// Needs what it is told to.
class Told final : public Estimator {
 public:
  using Need = std::function<core::Result<std::int64_t>(std::int64_t batch_size)>;
  explicit Told(Need need) : need_(std::move(need)) {}
  [[nodiscard]] std::string_view name() const override { return "told"; }
  mutable std::int64_t calls = 0;

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const GpuProfile&) const override {
    ++calls;
    const core::Result<std::int64_t> need = need_(analysis.job().batch_size);
    if (!need) return need.error();
    MemoryEstimate estimate;
    estimate.expected = estimate.lower = estimate.upper = Bytes(*need);
    estimate.breakdown.activations = Bytes(*need);
    return estimate;
  }
  Need need_;
};

TrainingJob small_job() { return {*parse_summary(testing::kSmallGraph), 1}; }

GpuProfile gpu_of(std::int64_t bytes) {
  GpuProfile gpu;
  gpu.name = "told";
  gpu.memory_bytes.value = bytes;
  return gpu;
}

core::Result<Fit> fit_told(std::int64_t capacity, const Told& told) {
  return largest_batch(small_job(), gpu_of(capacity), told);
}

/// An allocator that reserves a twentieth more than is in use, gives that back in need, and may be a tenth off.
class Allocating final : public Estimator {
 public:
  [[nodiscard]] std::string_view name() const override { return "allocating"; }
  mutable std::int64_t calls = 0;

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const GpuProfile& gpu) const override {
    ++calls;
    const std::int64_t live = 100 + 10 * analysis.job().batch_size;
    const std::int64_t reserved = live * 21 / 20;
    const std::int64_t capacity = gpu.capacity().count();
    MemoryEstimate estimate;
    estimate.retries = reserved > capacity && live <= capacity ? 3 : 0;
    estimate.expected = estimate.lower = estimate.upper = Bytes(estimate.retries > 0 ? capacity : reserved);
    estimate.allocated = Bytes(live);
    estimate.reserved = estimate.device = estimate.expected;
    estimate.most_needed = Bytes(live * 11 / 10);
    estimate.fits = live <= capacity;
    return estimate;
  }
  [[nodiscard]] bool decides_fit() const override { return true; }
};

TEST(LargestBatch, NamesTheSafeOneAndTheOneWithoutFlushes) {
  for (std::int64_t capacity = 150; capacity < 20'000; capacity += 13) {
    const Allocating allocating;
    const auto fit = largest_batch(small_job(), gpu_of(capacity), allocating);
    ASSERT_TRUE(testing::succeeds(fit));
    // Sizes for which so much is within the capacity, with the allocator's rounding.
    const auto last = [&](std::int64_t times, std::int64_t by) {
      std::int64_t size = 0;
      while ((100 + 10 * (size + 1)) * times / by <= capacity) ++size;
      return size;
    };
    EXPECT_EQ(fit->batch_size, last(1, 1)) << capacity;
    EXPECT_EQ(fit->without_flushes.size, last(21, 20)) << capacity;
    EXPECT_EQ(fit->safe.size, last(11, 10)) << capacity;
    EXPECT_EQ(fit->safe.estimate.has_value(), fit->safe.size > 0);
    EXPECT_EQ(fit->estimates, allocating.calls);
    EXPECT_LE(fit->estimates, 24) << capacity;
  }
}

TEST(LargestBatch, IsTheLastThatFits) {
  for (std::int64_t capacity = 150; capacity < 5000; capacity += 7) {
    const Told told([](std::int64_t batch_size) { return 100 + 10 * batch_size; });
    const auto fit = fit_told(capacity, told);
    ASSERT_TRUE(testing::succeeds(fit));
    EXPECT_EQ(fit->batch_size, (capacity - 100) / 10) << capacity;
    ASSERT_TRUE(fit->estimate && fit->next);
    EXPECT_EQ(fit->estimate->expected.count(), 100 + 10 * fit->batch_size);
    EXPECT_EQ(fit->next->expected.count(), 110 + 10 * fit->batch_size);
    EXPECT_FALSE(fit->at_least);
    EXPECT_EQ(fit->estimates, told.calls);
    EXPECT_LE(fit->estimates, 16);
  }
}

TEST(LargestBatch, OfANeedThatGrowsOtherwiseIsABoundaryAllTheSame) {
  const std::vector<Told::Need> needs = {
      [](std::int64_t n) { return n * n; },                                  // attention over a growing window
      [](std::int64_t n) { return (n / 50 + 1) * 2000; },                    // steps of an allocator
      [](std::int64_t n) { return 1000 + n * 8 - (n % 7 == 0 ? 900 : 0); },  // larger batches that take less
      [](std::int64_t n) { return n < 400 ? 1000 : 1'000'000; },             // a cliff
  };
  for (std::size_t index = 0; index < needs.size(); ++index) {
    for (const std::int64_t capacity : {2500, 9999, 123456}) {
      const auto fit = fit_told(capacity, Told(needs[index]));
      ASSERT_TRUE(testing::succeeds(fit)) << index;
      EXPECT_GE(fit->batch_size, 1);
      EXPECT_LE(*needs[index](fit->batch_size), capacity) << index;
      EXPECT_GT(*needs[index](fit->batch_size + 1), capacity) << index;
      EXPECT_EQ(fit->next->expected.count(), *needs[index](fit->batch_size + 1)) << index;
    }
  }
}

TEST(LargestBatch, IsNoneWhereOneSampleIsTooMuch) {
  const auto fit = fit_told(99, Told([](std::int64_t) { return 100; }));
  ASSERT_TRUE(testing::succeeds(fit));
  EXPECT_EQ(fit->batch_size, 0);
  EXPECT_FALSE(fit->estimate);
  ASSERT_TRUE(fit->next);
  EXPECT_EQ(fit->next->expected, Bytes(100));
}

TEST(LargestBatch, IsLimited) {
  const auto fit = fit_told(99, Told([](std::int64_t) { return 1; }));
  ASSERT_TRUE(testing::succeeds(fit));
  EXPECT_EQ(fit->batch_size, kLargestBatch);
  EXPECT_TRUE(fit->at_least);
  EXPECT_FALSE(fit->next);
  EXPECT_LE(fit->estimates, 32);
}

TEST(LargestBatch, ASizeBeyond64BitsDoesNotFit) {
  const auto need = [](std::int64_t batch_size) -> core::Result<std::int64_t> {
    if (batch_size > 7) return Error{ErrorCode::overflow, "too large", {}};
    return 1;
  };
  const auto fit = fit_told(99, Told(need));
  ASSERT_TRUE(testing::succeeds(fit));
  EXPECT_EQ(fit->batch_size, 7);
  EXPECT_FALSE(fit->next);
}

TEST(LargestBatch, HandsOnWhatTheEstimatorCannotDo) {
  const auto need = [](std::int64_t) -> core::Result<std::int64_t> {
    return Error{ErrorCode::missing_information, "no input size", {}};
  };
  EXPECT_TRUE(testing::fails(fit_told(99, Told(need)), ErrorCode::missing_information, 0, "no input size"));
}

TEST(LargestBatch, IsUnknownWhereLayersAre) {
  const auto graph = parse_summary(testing::text_of(GPUMEM_SOURCE_DIR "/tests/golden/cli/unknown_layer.txt"), true);
  ASSERT_TRUE(testing::succeeds(graph));
  const Told told([](std::int64_t) { return 1; });
  EXPECT_TRUE(testing::fails(largest_batch({*graph, 1}, gpu_of(99), told), ErrorCode::missing_information, 0,
                             "no batch is known to fit"));
}

TEST(LargestBatch, OfALowerBoundIsKnownOnlyWhereNothingFits) {
  const auto states = make_estimator("model-states");
  const auto fits = largest_batch(small_job(), gpu_of(1'000'000), **states);
  EXPECT_TRUE(testing::fails(fits, core::ErrorCode::missing_information, 0,
                             "model-states gives a lower bound of what batch 1 takes"));
  const auto none = largest_batch(small_job(), gpu_of(10), **states);
  ASSERT_TRUE(testing::succeeds(none));
  EXPECT_EQ(none->batch_size, 0);
}

TEST(LargestBatch, OfEveryPrecisionFollowsOneRule) {
  const auto gpu = find_profile("a100-40gb");
  const auto replay = make_estimator("replay");
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json");
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 1);
  std::vector<Fit> fits;
  for (const model::Precision precision : {model::Precision::fp32, model::Precision::bf16_mixed}) {
    job.precision = precision;
    const auto fit = largest_batch(job, *gpu, **replay);
    ASSERT_TRUE(testing::succeeds(fit));
    EXPECT_LT(0, fit->safe.size);
    EXPECT_LE(fit->safe.size, fit->without_flushes.size);
    EXPECT_LE(fit->without_flushes.size, fit->batch_size);
    const auto verdict = [&](std::int64_t size) {
      job.batch_size = size;
      return (*replay)->estimate(job, *gpu)->verdict;
    };
    EXPECT_EQ(verdict(fit->safe.size), Verdict::fits);
    EXPECT_NE(verdict(fit->safe.size + 1), Verdict::fits);
    EXPECT_EQ(verdict(fit->batch_size), Verdict::tight);
    EXPECT_EQ(verdict(fit->batch_size + 1), Verdict::does_not_fit);
    fits.push_back(*fit);
  }
  // Half precision costs no memory, whichever of the three one looks at.
  EXPECT_GT(fits[1].batch_size, fits[0].batch_size);
  EXPECT_GT(fits[1].without_flushes.size, fits[0].without_flushes.size);
  EXPECT_GT(fits[1].safe.size, fits[0].safe.size);
}

TEST(LargestBatch, OfAReplayIsItsVerdict) {
  const auto gpu = find_profile("rtx4090-24gb");
  const auto replay = make_estimator("replay");
  for (const char* name : {"resnet50", "gpt_like"}) {
    const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/" + std::string(name) + ".json");
    ASSERT_TRUE(testing::succeeds(graph));
    TrainingJob job(*graph, 1);
    const auto fit = largest_batch(job, *gpu, **replay);
    ASSERT_TRUE(testing::succeeds(fit));
    job.batch_size = fit->batch_size;
    EXPECT_LE((*replay)->estimate(job, *gpu)->verdict, Verdict::tight);
    ++job.batch_size;
    EXPECT_EQ((*replay)->estimate(job, *gpu)->verdict, Verdict::does_not_fit);
    EXPECT_GT(fit->next->expected, gpu->capacity());
  }
}

/// Needs what it is told to of a sequence, up to what the model takes.
class ToldBySequence final : public Estimator {
 public:
  ToldBySequence(std::int64_t bytes_a_token, std::int64_t positions, std::int64_t least = 1)
      : bytes_(bytes_a_token), positions_(positions), least_(least) {}
  [[nodiscard]] std::string_view name() const override { return "told"; }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const GpuProfile&) const override {
    const std::int64_t length = analysis.job().sequence_length.value();
    if (length < least_) return core::Error{core::ErrorCode::invalid_argument, "too few positions", {}};
    if (length > positions_) return core::Error{core::ErrorCode::invalid_argument, "too many positions", {}};
    MemoryEstimate estimate;
    estimate.expected = estimate.lower = estimate.upper = Bytes(analysis.job().batch_size * bytes_ * length);
    estimate.breakdown.activations = estimate.expected;
    return estimate;
  }
  std::int64_t bytes_;
  std::int64_t positions_;
  std::int64_t least_;
};

core::Result<Fit> fit_sequence(std::int64_t capacity, const Estimator& told) {
  TrainingJob job = small_job();
  job.batch_size = 2;
  return longest_sequence(std::move(job), gpu_of(capacity), told);
}

TEST(LongestSequence, IsTheLastThatFitsAtTheJobsBatch) {
  for (std::int64_t capacity = 20; capacity < 40'000; capacity += 997) {
    const auto fit = fit_sequence(capacity, ToldBySequence(10, 1 << 20));
    ASSERT_TRUE(testing::succeeds(fit));
    EXPECT_EQ(fit->grows, Grows::sequence);
    EXPECT_EQ(fit->batch_size, 2);
    EXPECT_EQ(fit->size, capacity / 20) << capacity;
    EXPECT_EQ(fit->next->expected.count(), 20 * (fit->size + 1));
    EXPECT_FALSE(fit->at_least);
    EXPECT_FALSE(fit->model_ends);
  }
}

TEST(LongestSequence, IsAMultipleOfWhatRanksShare) {
  const auto graph = parse_summary(
      R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256, "num_hidden_layers": 2,
          "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 32000,
          "max_position_embeddings": 1048576})");
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 1);
  job.precision = Precision::bf16;
  job.layout.context_parallel = 4;
  const auto fit = longest_sequence(job, *find_profile("t4-16gb"), **make_estimator("replay"));
  ASSERT_TRUE(testing::succeeds(fit));
  EXPECT_GT(fit->size, 4096);
  EXPECT_EQ(fit->size % 8, 0);
  EXPECT_TRUE(fit->next.has_value());
}

TEST(LongestSequence, EndsWhereTheModelDoes) {
  const auto fit = fit_sequence(1'000'000, ToldBySequence(10, 1024));
  ASSERT_TRUE(testing::succeeds(fit));
  EXPECT_EQ(fit->size, 1024);
  EXPECT_FALSE(fit->at_least);
  EXPECT_FALSE(fit->next);
  ASSERT_TRUE(fit->model_ends);
  EXPECT_EQ(fit->model_ends->message, "too many positions");
}

TEST(LongestSequence, OfAModelThatEndsBeyondTheMemoryIsThatOfTheMemory) {
  const auto fit = fit_sequence(20'000, ToldBySequence(10, 1024));
  ASSERT_TRUE(testing::succeeds(fit));
  EXPECT_EQ(fit->size, 1000);
  EXPECT_FALSE(fit->model_ends);
  EXPECT_TRUE(fit->next);
}

TEST(LongestSequence, IsNoneWhereOneTokenIsTooMuch) {
  const auto fit = fit_sequence(19, ToldBySequence(10, 1024));
  ASSERT_TRUE(testing::succeeds(fit));
  EXPECT_EQ(fit->size, 0);
  EXPECT_FALSE(fit->estimate);
}

TEST(LongestSequence, IsNoneWhereTheLeastThatAModelTakesIsTooMuch) {
  for (const std::int64_t least : {2, 3, 7, 16}) {
    const auto fit = fit_sequence(20 * least - 1, ToldBySequence(10, 1024, least));
    ASSERT_TRUE(testing::succeeds(fit));
    EXPECT_EQ(fit->size, 0) << least;
    ASSERT_TRUE(fit->next);
    EXPECT_EQ(fit->next->expected.count(), 20 * least);
    const auto larger = fit_sequence(20 * least, ToldBySequence(10, 1024, least));
    ASSERT_TRUE(testing::succeeds(larger));
    EXPECT_LE(larger->size, least);
  }
}

TEST(LongestSequence, OfAModelThatReadsNoTokensIsAnError) {
  EXPECT_TRUE(testing::fails(fit_sequence(1'000'000, ToldBySequence(0, 1024)), core::ErrorCode::invalid_argument, 0,
                             "the model reads no tokens"));
  const auto replay = make_estimator("replay");
  EXPECT_TRUE(testing::fails(longest_sequence(small_job(), *find_profile("t4-16gb"), **replay),
                             core::ErrorCode::invalid_argument, 0, "the model reads no tokens"));
}

TEST(LongestSequence, OfAModelThatTakesNoSequenceIsItsError) {
  EXPECT_TRUE(testing::fails(fit_sequence(1'000'000, ToldBySequence(10, 0)), core::ErrorCode::invalid_argument, 0,
                             "too many positions"));
}

TEST(LongestSequence, IsALeastFigureWhereTheLongestThatIsTriedFits) {
  const auto fit = fit_sequence(std::int64_t{1} << 50, ToldBySequence(1, std::int64_t{1} << 40));
  ASSERT_TRUE(testing::succeeds(fit));
  EXPECT_EQ(fit->size, kLongestSequence);
  EXPECT_TRUE(fit->at_least);
}

TEST(FitEach, PutsTheSmallestGpuThatHoldsTheJobFirst) {
  model::TrainingJob job = small_job();
  job.batch_size = 90;  // 1,000 bytes are live, 1,050 are reserved, 1,100 needed at most
  analysis::Analysis analysis(std::move(job));
  const std::vector<GpuProfile> gpus = {gpu_of(500), gpu_of(20'000), gpu_of(1'100), gpu_of(1'020), gpu_of(900)};
  const auto fits = fit_each(analysis, gpus, Allocating());
  ASSERT_TRUE(testing::succeeds(fits));
  std::vector<std::int64_t> capacities;
  for (const GpuFit& fit : *fits) capacities.push_back(fit.gpu.capacity().count());
  EXPECT_EQ(capacities, (std::vector<std::int64_t>{1'100, 20'000, 1'020, 900, 500}));
  EXPECT_EQ(fits->front().takes.expected, Bytes(1'050));
  EXPECT_EQ(fits->front().headroom, Bytes(50));
  EXPECT_EQ(fits->front().largest_batch, 100);
  EXPECT_EQ(fits->back().headroom, Bytes(0));
  EXPECT_EQ(fits->back().largest_batch, 40);
  EXPECT_EQ((*fits)[2].takes.verdict, Verdict::tight);
}

/// Needs what it is told to of a job.
class ToldOfJob final : public Estimator {
 public:
  using Need = std::function<core::Result<std::int64_t>(const TrainingJob& job)>;
  explicit ToldOfJob(Need need) : need_(std::move(need)) {}
  [[nodiscard]] std::string_view name() const override { return "told"; }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const GpuProfile&) const override {
    const core::Result<std::int64_t> need = need_(analysis.job());
    if (!need) return need.error();
    MemoryEstimate estimate;
    estimate.expected = estimate.lower = estimate.upper = Bytes(*need);
    return estimate;
  }
  Need need_;
};

core::Result<Fit> find_told(Grows grows, std::int64_t capacity, const ToldOfJob::Need& need,
                            std::vector<std::int64_t> image = {}) {
  TrainingJob job = small_job();
  job.image = std::move(image);
  job.batch_size = 3;
  analysis::Analysis analysis(std::move(job));
  return find_largest(analysis, grows, gpu_of(capacity), ToldOfJob(need));
}

TEST(FindLargest, AnImageKeepsItsShape) {
  const ToldOfJob::Need area = [](const TrainingJob& job) { return job.batch_size * job.image[0] * job.image[1]; };
  for (const auto& [image, width, height] : {std::tuple(std::vector<std::int64_t>{}, 1024, 1024),
                                             std::tuple(std::vector<std::int64_t>{1280, 720}, 1376, 768),
                                             std::tuple(std::vector<std::int64_t>{2, 3}, 832, 1248)}) {
    const auto fit = find_told(Grows::image, 3 * 1024 * 1055, area, image);
    ASSERT_TRUE(testing::succeeds(fit));
    const auto found = image_with_side(fit->shape, fit->size);
    EXPECT_EQ(found, (model::PictureSize{width, height}));
    EXPECT_EQ(fit->estimate->expected.count(), 3 * width * height);
    EXPECT_GT(fit->next->expected.count(), 3 * 1024 * 1055);
    EXPECT_EQ(fit->step, kImageStep);
    EXPECT_EQ(fit->batch_size, 3);
  }
}

TEST(FindLargest, ImageSidesAreWholeSteps) {
  for (std::int64_t width = 1; width < 40; ++width) {
    for (std::int64_t side = kImageStep; side <= 2048; side += 7 * kImageStep) {
      const auto [wide, high] = image_with_side({width, 20}, side);
      EXPECT_EQ(std::max(wide, high), side);
      EXPECT_GE(std::min(wide, high), kImageStep);
      EXPECT_EQ(wide % kImageStep + high % kImageStep, 0);
      EXPECT_NEAR(static_cast<double>(std::min(wide, high)),
                  static_cast<double>(side * std::min<std::int64_t>(width, 20)) /
                      static_cast<double>(std::max<std::int64_t>(width, 20)),
                  kImageStep);
    }
  }
}

TEST(FindLargest, CountsImagesAndFrames) {
  const auto images = find_told(Grows::images, 1000, [](const TrainingJob& job) { return 90 * *job.images; });
  ASSERT_TRUE(testing::succeeds(images));
  EXPECT_EQ(images->size, 11);
  EXPECT_EQ(images->next->expected.count(), 90 * 12);
  const auto frames = find_told(Grows::frames, 1 << 20, [](const TrainingJob& job) -> core::Result<std::int64_t> {
    if (*job.frames > 40) return core::Error{core::ErrorCode::invalid_argument, "too many tokens", {}};
    return 10 * *job.frames;
  });
  ASSERT_TRUE(testing::succeeds(frames));
  EXPECT_EQ(frames->size, 40);
  EXPECT_EQ(frames->model_ends->message, "too many tokens");
}

TEST(FindLargest, SaysWhereAProcessorMakesTheSameOfAllImages) {
  const auto fit = find_told(Grows::image, 1000, [](const TrainingJob&) { return 90; });
  ASSERT_FALSE(fit);
  EXPECT_NE(fit.error().message.find("a sample is the same to the model"), std::string::npos);
}

TEST(FindLargest, ASampleKeepsItsTextBesideItsImages) {
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/examples/configs/qwen3_vl_2b/config.json");
  ASSERT_TRUE(testing::succeeds(graph));
  const auto replay = make_estimator("replay");
  const auto gpu = find_profile("a100-40gb");
  TrainingJob job(*graph, 1);
  job.precision = Precision::bf16;
  job.image = {640, 480};
  job.sequence_length = 100;
  analysis::Analysis analysis(job);
  const auto fit = find_largest(analysis, Grows::images, *gpu, **replay);
  ASSERT_TRUE(testing::succeeds(fit));
  ASSERT_GT(fit->size, 1);
  job.images = fit->size;
  job.sequence_length = 100 + fit->size * (640 / 32) * (480 / 32);
  const auto there = (*replay)->estimate(job, *gpu);
  ASSERT_TRUE(testing::succeeds(there));
  EXPECT_EQ(there->expected, fit->estimate->expected);
}

}  // namespace
}  // namespace gpumem::estimate
