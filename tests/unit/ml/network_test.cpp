#include "gpumem/ml/network.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <thread>

#include "expect.hpp"
#include "networks.hpp"

// Counts what this thread allocates, whoever asks for it: Eigen calls malloc itself. Sanitizers bring a malloc of their
// own.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define GPUMEM_TEST_SANITIZED
#endif
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(GPUMEM_TEST_SANITIZED)
#define GPUMEM_TEST_COUNTS_ALLOCATIONS
namespace {
thread_local std::int64_t allocations = 0;
}
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
}
#endif

namespace gpumem::ml {
namespace {

using core::ErrorCode;
using testing::Figures;
using testing::random_weights;
using testing::succeeds;

/// One Linear of two features to one output.
NetworkShape smallest() {
  NetworkShape shape{.features = 2, .outputs = 1};
  shape.branches.push_back({.members = {{}}});
  return shape;
}

TensorFile smallest_weights() {
  return {.tensors = {{"branches.0.members.0.output.weight", {1, 2}, {3.0F, -1.0F}},
                      {"branches.0.members.0.output.bias", {1}, {0.5F}}},
          .metadata = {}};
}

NetworkShape with_sequence(Attention attention, Pooling pooling) {
  return testing::transformer_ensemble(Embedding::linear, attention, pooling);
}

std::vector<float> outputs_of(const Network& network, const std::vector<float>& features,
                              const std::vector<float>& sequence = {}) {
  NetworkBuffers buffers = network.buffers();
  std::vector<float> outputs(static_cast<std::size_t>(network.shape().outputs));
  network.run(features, sequence, buffers, outputs);
  return outputs;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected, float tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t at = 0; at < got.size(); ++at) {
    EXPECT_NEAR(got[at], expected[at], tolerance * std::max(1.0F, std::abs(expected[at]))) << "output " << at;
  }
}

Network made(const NetworkShape& shape, const TensorFile& weights, Instructions instructions = best_instructions()) {
  auto network = Network::create(shape, weights, instructions);
  EXPECT_TRUE(succeeds(network));
  return *std::move(network);
}

// --- By hand ------------------------------------------------------------------------------------------------------

TEST(Network, IsALinearWithoutHiddenLayers) {
  EXPECT_EQ(outputs_of(made(smallest(), smallest_weights()), {2.0F, 4.0F}), std::vector<float>{2.5F});
}

TEST(Network, NormsAndCutsOffBelowZeroBehindEachHiddenLayer) {
  NetworkShape shape{.features = 1, .outputs = 1};
  shape.branches.push_back({.members = {{2}}});
  const std::string hidden = "branches.0.members.0.hidden.0.";
  const TensorFile weights{.tensors = {{hidden + "linear.weight", {2, 1}, {1.0F, -1.0F}},
                                       {hidden + "linear.bias", {2}, {1.0F, 0.0F}},
                                       {hidden + "norm.weight", {2}, {2.0F, 1.0F}},
                                       {hidden + "norm.bias", {2}, {0.5F, 0.0F}},
                                       {hidden + "norm.running_mean", {2}, {3.0F, 0.0F}},
                                       {hidden + "norm.running_var", {2}, {4.0F, 1.0F}},
                                       {"branches.0.members.0.output.weight", {1, 2}, {10.0F, 100.0F}},
                                       {"branches.0.members.0.output.bias", {1}, {-1.0F}}},
                           .metadata = {}};
  const Network network = made(shape, weights);
  // x = 4: the first is (5 - 3) / sqrt(4.00001) * 2 + 0.5 = 2.5, the second -4, cut off.
  EXPECT_NEAR(outputs_of(network, {4.0F})[0], 24.0F, 1e-4);
  // x = -4: the first is (-3 - 3) + 0.5, cut off, the second 4.
  EXPECT_NEAR(outputs_of(network, {-4.0F})[0], 399.0F, 1e-2);
}

TEST(Network, AveragesMembersAndBranches) {
  NetworkShape shape{.features = 1, .outputs = 1};
  shape.branches = {{.members = {{}, {}}}, {.members = {{}}}};
  TensorFile weights;
  float value = 1.0F;
  for (const TensorSpec& spec : tensors_of(shape)) {
    weights.tensors.push_back({spec.name, spec.shape, {spec.name.ends_with("weight") ? value : 0.0F}});
    value += 0.5F;
  }
  // Weights 1, 2 and 3: ((1 + 2) / 2 + 3) / 2.
  EXPECT_FLOAT_EQ(outputs_of(made(shape, weights), {1.0F})[0], 2.25F);
}

TEST(Network, EmbedsAndPlacesTheRowsOfASequence) {
  // One unit, and an encoder layer that passes on what LayerNorm makes of one unit: its bias.
  NetworkShape shape{.features = 0, .outputs = 1, .sequence_length = 4, .sequence_columns = 2};
  shape.branches.push_back(
      {.encoder = EncoderShape{.width = 1, .layers = 1, .heads = 1, .feed_forward = 1}, .members = {{}}});
  TensorFile weights = random_weights(shape, 1);
  for (Tensor& tensor : weights.tensors) {
    if (tensor.name.ends_with("norm2.bias")) tensor.values = {0.75F};
    if (tensor.name.ends_with("output.weight")) tensor.values = {2.0F};
    if (tensor.name.ends_with("output.bias")) tensor.values = {1.0F};
  }
  EXPECT_FLOAT_EQ(outputs_of(made(shape, weights), {}, {1.0F, 2.0F, 3.0F, 4.0F})[0], 2.5F);
}

// --- Errors -------------------------------------------------------------------------------------------------------

/// The fault that a change makes of sound weights.
std::string fault_after(const std::function<void(TensorFile&)>& change) {
  TensorFile weights = smallest_weights();
  change(weights);
  const auto network = Network::create(smallest(), weights);
  if (network) return {};
  EXPECT_EQ(network.error().code, ErrorCode::malformed_input);
  return network.error().place.element + ": " + network.error().message;
}

TEST(NetworkErrors, NameTheTensor) {
  const std::string weight = "branches.0.members.0.output.weight";
  const std::string start = weight + ": the tensor '" + weight + "' ";
  EXPECT_EQ(fault_after([](TensorFile& file) { file.tensors.erase(file.tensors.begin()); }),
            start + "is missing; the network needs it");
  EXPECT_EQ(fault_after([](TensorFile& file) {
              file.tensors[0].shape = {2, 1};
            }),
            start + "is [2, 1]; the network needs [1, 2]");
  EXPECT_EQ(fault_after([](TensorFile& file) { file.tensors[0].values.pop_back(); }),
            start + "has 1 values; its shape says 2");
  EXPECT_EQ(fault_after([](TensorFile& file) { file.tensors[0].values[1] = std::nanf(""); }),
            start + "holds no finite number at element 1");
  EXPECT_EQ(fault_after([](TensorFile& file) { file.tensors[0].values[0] = std::numeric_limits<float>::infinity(); }),
            start + "holds no finite number at element 0");
  EXPECT_EQ(fault_after([](TensorFile& file) { file.tensors.push_back(file.tensors[0]); }), start + "is there twice");
  EXPECT_EQ(fault_after([](TensorFile& file) {
              file.tensors.push_back({"more", {1}, {0.0F}});
            }),
            "more: the tensor 'more' does not belong to this network: its shape has no such tensor");
}

TEST(NetworkErrors, AVarianceIsNotBelowZero) {
  const NetworkShape shape = testing::mlp_ensemble();
  TensorFile weights = random_weights(shape, 1);
  for (Tensor& tensor : weights.tensors) {
    if (tensor.name == "branches.0.members.3.hidden.1.norm.running_var") tensor.values[2] = -1e-9F;
  }
  const auto network = Network::create(shape, weights);
  EXPECT_TRUE(testing::fails(network, ErrorCode::malformed_input, 0,
                             "'branches.0.members.3.hidden.1.norm.running_var' holds a variance below 0 at element 2"));
}

TEST(NetworkErrors, NormsMayNotTakeAWeightOutOfRange) {
  const NetworkShape shape = testing::mlp_ensemble();
  TensorFile weights = random_weights(shape, 1);
  for (Tensor& tensor : weights.tensors) {
    if (tensor.name.ends_with("hidden.0.linear.weight")) tensor.values[0] = 3e38F;
    if (tensor.name.ends_with("hidden.0.norm.running_var")) tensor.values[0] = 0.0F;
  }
  EXPECT_TRUE(testing::fails(Network::create(shape, weights), ErrorCode::malformed_input, 0, "leave the range"));
}

TEST(NetworkErrors, AreThoseOfTheShapeFirst) {
  NetworkShape shape = smallest();
  shape.outputs = 0;
  EXPECT_TRUE(testing::fails(Network::create(shape, {}), ErrorCode::invalid_argument, 0, "out of range"));
}

// --- Properties ---------------------------------------------------------------------------------------------------

std::int64_t drawn(std::mt19937& random, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

EncoderShape drawn_encoder(std::mt19937& random) {
  EncoderShape encoder;
  encoder.heads = drawn(random, 1, 3);
  encoder.width = encoder.heads * drawn(random, 1, 9);
  encoder.layers = drawn(random, 1, 2);
  encoder.feed_forward = drawn(random, 1, 20);
  encoder.embedding = drawn(random, 0, 1) == 0 ? Embedding::linear : Embedding::position_batch_norm;
  encoder.attention = drawn(random, 0, 1) == 0 ? Attention::sequence : Attention::self;
  encoder.pooling = drawn(random, 0, 1) == 0 ? Pooling::mean : Pooling::sum;
  return encoder;
}

NetworkShape drawn_shape(std::mt19937& random) {
  NetworkShape shape{.features = drawn(random, 1, 20), .outputs = drawn(random, 1, 9)};
  const bool sequence = drawn(random, 0, 1) == 1;
  if (sequence) {
    shape.sequence_length = drawn(random, 1, 40);
    shape.sequence_columns = drawn(random, 1, 7);
  }
  for (std::int64_t branch = drawn(random, 1, 3); branch > 0; --branch) {
    BranchShape& made = shape.branches.emplace_back();
    if (sequence) made.encoder = drawn_encoder(random);
    for (std::int64_t member = drawn(random, 1, 20); member > 0; --member) {
      made.members.emplace_back();
      for (std::int64_t depth = drawn(random, 0, 5); depth > 0; --depth) {
        made.members.back().push_back(drawn(random, 1, 20));
      }
    }
  }
  return shape;
}

struct Jobs {
  std::vector<float> features;
  std::vector<float> sequences;  ///< padded with figures that must not be read
  std::vector<std::int32_t> rows;
};

Jobs drawn_jobs(const NetworkShape& shape, std::int64_t jobs, std::mt19937& random) {
  Figures figures(random());
  Jobs drawn_ones{figures.symmetric(jobs * shape.features),
                  figures.symmetric(jobs * shape.sequence_length * shape.sequence_columns),
                  {}};
  for (std::int64_t job = 0; job < jobs; ++job) {
    drawn_ones.rows.push_back(static_cast<std::int32_t>(drawn(random, 0, shape.sequence_length)));
  }
  return drawn_ones;
}

std::vector<float> batch_outputs(const Network& network, const Jobs& jobs) {
  NetworkBuffers buffers = network.buffers();
  std::vector<float> outputs(jobs.rows.size() * static_cast<std::size_t>(network.shape().outputs));
  network.run_batch(jobs.features, jobs.sequences, jobs.rows, buffers, outputs);
  return outputs;
}

std::vector<float> outputs_one_by_one(const Network& network, const Jobs& jobs) {
  NetworkBuffers buffers = network.buffers();
  const auto features = static_cast<std::size_t>(network.shape().features);
  const auto columns = static_cast<std::size_t>(network.shape().sequence_columns);
  const auto padded = columns * static_cast<std::size_t>(network.shape().sequence_length);
  std::vector<float> all;
  std::vector<float> outputs(static_cast<std::size_t>(network.shape().outputs));
  for (std::size_t job = 0; job < jobs.rows.size(); ++job) {
    const std::span<const float> sequence(jobs.sequences);
    network.run(std::span<const float>(jobs.features).subspan(job * features, features),
                sequence.subspan(job * padded, static_cast<std::size_t>(jobs.rows[job]) * columns), buffers, outputs);
    all.insert(all.end(), outputs.begin(), outputs.end());
  }
  return all;
}

TEST(NetworkProperty, ManyJobsAtOnceAreAsEachAloneWithAnyInstructions) {
  std::mt19937 random(20261121);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const NetworkShape shape = drawn_shape(random);
    const TensorFile weights = random_weights(shape, random());
    const Network network = made(shape, weights);
    const Network portable = made(shape, weights, Instructions::portable);
    const Jobs jobs = drawn_jobs(shape, drawn(random, 1, 40), random);
    const auto alone = outputs_one_by_one(network, jobs);
    for (const float output : alone) ASSERT_TRUE(std::isfinite(output));
    expect_near(batch_outputs(network, jobs), alone, 1e-4F);
    expect_near(outputs_one_by_one(portable, jobs), alone, 1e-4F);
    expect_near(batch_outputs(portable, jobs), alone, 1e-4F);
  }
}

TEST(NetworkProperty, PaddingChangesNothingWhereAttentionIsMaskedAndTheMeanIsTaken) {
  NetworkShape shape = with_sequence(Attention::sequence, Pooling::mean);
  const TensorFile weights = random_weights(shape, 3);
  const Network network = made(shape, weights);
  shape.sequence_length = 60;
  const Network shorter = made(shape, weights);
  Figures figures(4);
  const auto features = figures.symmetric(shape.features);
  const auto sequence = figures.symmetric(50 * shape.sequence_columns);
  expect_near(outputs_of(network, features, sequence), outputs_of(shorter, features, sequence), 1e-6F);
}

TEST(Network, ReadsNoRowsBeyondTheSequencesLength) {
  const NetworkShape shape = with_sequence(Attention::sequence, Pooling::mean);
  const Network network = made(shape, random_weights(shape, 3));
  Figures figures(4);
  const auto features = figures.symmetric(shape.features);
  auto sequence = figures.symmetric((shape.sequence_length + 3) * shape.sequence_columns);
  const auto longer = outputs_of(network, features, sequence);
  sequence.resize(static_cast<std::size_t>(shape.sequence_length * shape.sequence_columns));
  EXPECT_EQ(longer, outputs_of(network, features, sequence));
}

TEST(Network, ASequenceMattersAndSoDoesItsOrder) {
  const NetworkShape shape = with_sequence(Attention::sequence, Pooling::mean);
  const Network network = made(shape, random_weights(shape, 3));
  Figures figures(4);
  const auto features = figures.symmetric(shape.features);
  auto sequence = figures.symmetric(20 * shape.sequence_columns);
  const auto outputs = outputs_of(network, features, sequence);
  std::rotate(sequence.begin(), sequence.begin() + shape.sequence_columns, sequence.end());
  EXPECT_NE(outputs, outputs_of(network, features, sequence));
}

TEST(Network, ASequenceWithoutRowsIsSound) {
  for (const Attention attention : {Attention::sequence, Attention::self}) {
    for (const Pooling pooling : {Pooling::mean, Pooling::sum}) {
      const NetworkShape shape = with_sequence(attention, pooling);
      const Network network = made(shape, random_weights(shape, 3));
      for (const float output : outputs_of(network, std::vector<float>(9, 1.0F))) EXPECT_TRUE(std::isfinite(output));
    }
  }
}

TEST(Network, SharpAttentionDoesNotOverflow) {
  const NetworkShape shape = with_sequence(Attention::sequence, Pooling::mean);
  TensorFile weights = random_weights(shape, 3);
  for (Tensor& tensor : weights.tensors) {
    if (!tensor.name.ends_with("in_proj.weight")) continue;
    for (float& value : tensor.values) value *= 1e3F;
  }
  const Network network = made(shape, weights);
  Figures figures(4);
  const auto sequence = figures.symmetric(100 * shape.sequence_columns);
  for (const float output : outputs_of(network, std::vector<float>(9, 1.0F), sequence)) {
    EXPECT_TRUE(std::isfinite(output));
  }
}

TEST(Network, WhatIsNoNumberStaysNone) {
  const NetworkShape shape = testing::mlp_ensemble();
  const Network network = made(shape, random_weights(shape, 3));
  std::vector<float> features(10, 1.0F);
  features[3] = std::nanf("");
  for (const float output : outputs_of(network, features)) EXPECT_TRUE(std::isnan(output));
}

TEST(Network, SaysWhichInstructionsServe) {
  const Network network = made(smallest(), smallest_weights());
  EXPECT_EQ(network.instructions(), best_instructions());
  EXPECT_EQ(made(smallest(), smallest_weights(), Instructions::portable).instructions(), Instructions::portable);
}

TEST(Network, ACallAllocatesNothing) {
#if defined(GPUMEM_TEST_COUNTS_ALLOCATIONS)
  NetworkShape shape = with_sequence(Attention::sequence, Pooling::mean);
  shape.branches[0].members.push_back({600, 300});  // too wide for the others' vectors
  const Network network = made(shape, random_weights(shape, 3));
  std::mt19937 random(1);
  const Jobs jobs = drawn_jobs(shape, 20, random);
  NetworkBuffers buffers = network.buffers();
  std::vector<float> outputs(20 * 6);
  const std::span<const float> features(jobs.features);
  const std::span<const float> sequences(jobs.sequences);
  const std::int64_t before = allocations;
  ASSERT_GT(before, 0) << "they are counted";
  network.run(features.first(9), sequences.first(119 * 4), buffers, std::span(outputs).first(6));
  network.run_batch(features, sequences, jobs.rows, buffers, outputs);
  EXPECT_EQ(allocations, before);
#else
  GTEST_SKIP() << "only where malloc can be counted";
#endif
}

TEST(Network, ServesThreadsAtOnce) {
  const NetworkShape shape = with_sequence(Attention::sequence, Pooling::mean);
  const Network network = made(shape, random_weights(shape, 3));
  std::mt19937 random(1);
  const Jobs jobs = drawn_jobs(shape, 20, random);
  const auto expected = batch_outputs(network, jobs);
  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&jobs, &result, own = network] {
      for (int round = 0; round < 5; ++round) result = batch_outputs(own, jobs);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace gpumem::ml
