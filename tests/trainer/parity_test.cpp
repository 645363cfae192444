// What libtorch computes in evaluation is what ml::Network computes of the weights that it hands over.
#include <gtest/gtest.h>

#include <algorithm>

#include "../../src/train/shuffle.hpp"
#include "../../src/train/torch_network.hpp"
#include "../../src/train/weights.hpp"
#include "expect.hpp"
#include "gpumem/ml/network.hpp"

namespace gpumem::train {
namespace {

using testing::succeeds;

/// Ragged sequences (none at all, and full ones, too) and targets of any class.
Examples random_examples(const ml::NetworkShape& shape, std::int64_t count) {
  Random random(11, 0);
  Examples examples;
  examples.count = count;
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t at = 0; at < shape.features; ++at) {
      examples.features.push_back(static_cast<float>(uniform(-2.0, 2.0, random)));
    }
    examples.classes.push_back(row % shape.outputs);
    if (shape.sequence_columns == 0) continue;
    const std::int64_t length = row % (shape.sequence_length + 1);
    examples.lengths.push_back(length);
    for (std::int64_t at = 0; at < shape.sequence_length * shape.sequence_columns; ++at) {
      const bool padding = at >= length * shape.sequence_columns;
      examples.sequences.push_back(padding ? 0.0F : static_cast<float>(uniform(-2.0, 2.0, random)));
    }
  }
  return examples;
}

/// Some steps, so that no weight is as it was made and the norms have figures of their own.
void train(TorchNetwork& network, const Examples& examples) {
  for (std::int64_t step = 0; step < 30; ++step) {
    std::vector<std::int64_t> batch;
    for (std::int64_t row = step % 2; row < examples.count; row += 2) batch.push_back(row);
    network.step(
        examples, batch, {},
        {.learning_rate = 0.01, .dropout = 0.1, .encoder_dropout = 0.1, .seed = static_cast<std::uint64_t>(step)});
  }
}

void expect_parity(const ml::NetworkShape& shape) {
  const Examples examples = random_examples(shape, 150);  // more than one part of sequences of like length
  TorchNetwork network(shape, initial_weights(shape, 7));
  train(network, examples);
  const auto inference = ml::Network::create(shape, network.weights());
  ASSERT_TRUE(succeeds(inference));
  const std::vector<float> expected = network.run(examples);
  ml::NetworkBuffers buffers = inference->buffers();
  std::vector<float> outputs(static_cast<std::size_t>(shape.outputs));
  for (std::int64_t row = 0; row < examples.count; ++row) {
    const std::span<const float> features(&examples.features[static_cast<std::size_t>(row * shape.features)],
                                          static_cast<std::size_t>(shape.features));
    std::span<const float> sequence;
    if (shape.sequence_columns > 0) {
      const std::int64_t each = shape.sequence_length * shape.sequence_columns;
      const std::int64_t length = examples.lengths[static_cast<std::size_t>(row)];
      sequence =
          std::span(examples.sequences)
              .subspan(static_cast<std::size_t>(row * each), static_cast<std::size_t>(length * shape.sequence_columns));
    }
    inference->run(features, sequence, buffers, outputs);
    for (std::size_t output = 0; output < outputs.size(); ++output) {
      const float said = expected[static_cast<std::size_t>(row) * outputs.size() + output];
      EXPECT_NEAR(outputs[output], said, 1e-4 * std::max(1.0F, std::abs(said))) << "row " << row;
    }
  }
}

ml::NetworkShape with_encoder(ml::Embedding embedding, ml::Attention attention, ml::Pooling pooling) {
  ml::NetworkShape shape{.features = 4, .outputs = 5, .sequence_length = 9, .sequence_columns = 3, .branches = {}};
  const ml::EncoderShape encoder{.width = 6,
                                 .layers = 2,
                                 .heads = 2,
                                 .feed_forward = 5,
                                 .embedding = embedding,
                                 .attention = attention,
                                 .pooling = pooling};
  shape.branches = {{encoder, {{8, 4}, {8}, {}}}, {{}, {{8, 4, 4}, {6}}}};
  return shape;
}

TEST(Parity, OfEnsembles) {
  expect_parity({.features = 10,
                 .outputs = 6,
                 .branches = {{{}, {{8}, {8, 4}, {8, 4, 4}, {8, 4, 4, 4}, {8, 4}, {16, 4, 8}, {16, 8}, {}}}}});
}

TEST(Parity, OfEncodersOverTheSequence) {
  for (const ml::Pooling pooling : {ml::Pooling::mean, ml::Pooling::sum}) {
    expect_parity(with_encoder(ml::Embedding::linear, ml::Attention::sequence, pooling));
  }
}

TEST(Parity, OfEveryFormOfEncoder) {
  for (const ml::Embedding embedding : {ml::Embedding::linear, ml::Embedding::position_batch_norm}) {
    for (const ml::Attention attention : {ml::Attention::sequence, ml::Attention::self}) {
      for (const ml::Pooling pooling : {ml::Pooling::mean, ml::Pooling::sum}) {
        SCOPED_TRACE(static_cast<int>(embedding) * 100 + static_cast<int>(attention) * 10 + static_cast<int>(pooling));
        expect_parity(with_encoder(embedding, attention, pooling));
      }
    }
  }
}

}  // namespace
}  // namespace gpumem::train
