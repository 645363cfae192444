#include "gpumem_datasets/gpumemnet_checkpoint.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "checkpoints.hpp"
#include "expect.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/trained_model.hpp"

namespace gpumem::datasets {

using namespace ml;
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

::testing::AssertionResult refused(const std::string& bytes, std::string_view part) {
  return fails(import_gpumemnet(bytes, "t.ckpt"), ErrorCode::malformed_input, 0, part);
}

/// Whether the model is one that the loader takes back from its two files.
void expect_loads(const ImportedModel& model) {
  const auto loaded = make_model(write_model_config(model.config), write_safetensors(model.weights));
  ASSERT_TRUE(succeeds(loaded));
  EXPECT_EQ(loaded->config, model.config);
}

TEST(GpumemnetCheckpoint, ImportsAnMlpEnsemble) {
  const auto model = import_gpumemnet(testing::mlp4mlp_checkpoint());
  ASSERT_TRUE(succeeds(model));
  const ModelConfig& config = model->config;
  EXPECT_EQ(config.name, "gpumemnet-mlp4mlp");
  EXPECT_EQ(config.nets, NetKind::mlp);
  ASSERT_EQ(config.features.size(), 8U);
  EXPECT_EQ(config.features[1], FeatureSpec{.name = "gpumemnet.batch_size"});
  EXPECT_TRUE(config.sequence.empty());
  EXPECT_EQ(config.head.edges_mib, (std::vector<double>{1000, 2000, 3000, 4000, 5000, 6000}));
  ASSERT_EQ(config.network.branches.size(), 1U);
  const auto& members = config.network.branches[0].members;
  ASSERT_EQ(members.size(), 13U);
  EXPECT_EQ(members[0], (std::vector<std::int64_t>{8}));
  EXPECT_EQ(members[9], (std::vector<std::int64_t>{8, 4, 4}));
  EXPECT_EQ(config.test_vectors.size(), 3U);
  expect_loads(*model);
}

TEST(GpumemnetCheckpoint, KeepsEachTensorsValues) {
  testing::GpumemnetWriter writer;
  writer.ensemble("", testing::kThirteenDepths, 8, 5);
  const auto model = import_gpumemnet(writer.checkpoint.bytes());
  ASSERT_TRUE(succeeds(model));
  const auto& tensors = model->weights.tensors;
  ASSERT_FALSE(tensors.empty());
  // The writer numbers tensors in this order, and values follow from the number.
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    ASSERT_FALSE(tensors[index].values.empty());
    EXPECT_EQ(tensors[index].values[0], 0.05F + static_cast<float>((7 * index) % 11) / 8.0F) << tensors[index].name;
  }
  EXPECT_EQ(tensors[0].name, "branches.0.members.0.hidden.0.linear.weight");
  EXPECT_EQ(tensors.back().name, "branches.0.members.12.output.bias");
}

TEST(GpumemnetCheckpoint, ImportsATransformerEnsemble) {
  const auto model = import_gpumemnet(testing::transformer4mlp_checkpoint());
  ASSERT_TRUE(succeeds(model));
  const ModelConfig& config = model->config;
  EXPECT_EQ(config.name, "gpumemnet-transformer4mlp");
  EXPECT_EQ(config.network.sequence_length, 46);
  ASSERT_EQ(config.sequence.size(), 4U);
  EXPECT_EQ(config.sequence[1].name, "gpumemnet.code_1");
  EXPECT_EQ(config.sequence[3].name, "gpumemnet.layer_parameters");
  ASSERT_EQ(config.network.branches.size(), 2U);
  EXPECT_EQ(config.network.branches[1].encoder->width, 4);
  EXPECT_EQ(config.network.branches[1].encoder->attention, Attention::self);
  expect_loads(*model);
}

TEST(GpumemnetCheckpoint, SaysWhereItComesFrom) {
  const auto model = import_gpumemnet(testing::mlp4mlp_checkpoint());
  ASSERT_TRUE(succeeds(model));
  const auto& provenance = model->config.provenance;
  const auto says = [&](std::string_view key, std::string_view part) {
    for (const auto& [name, text] : provenance) {
      if (name == key) return text.find(part) != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(says("source", "GPUMemNet's published checkpoint mlp4mlp"));
  EXPECT_TRUE(says("source", "itu-rad/GPUMemNet"));
  EXPECT_TRUE(says("software", "PyTorch Lightning 2.4.0, epoch 7"));
  EXPECT_TRUE(says("licence", "see the source"));
}

TEST(GpumemnetCheckpoint, SaysWhatWasFoundInstead) {
  EXPECT_TRUE(refused(testing::mlp4mlp_checkpoint(7, 5), "none of GPUMemNet's six published models; mlp4mlp comes"));
  EXPECT_TRUE(refused(testing::mlp4mlp_checkpoint(7, 5), "model.0.weight is float32 [8, 7], not float32 [8, 8]"));
  EXPECT_TRUE(refused(testing::mlp4mlp_checkpoint(7, 6), "mlp4transformer comes closest"));
  EXPECT_TRUE(refused(testing::CheckpointWriter().bytes(), "holds 0 tensors"));
  testing::GpumemnetWriter more;
  more.ensemble("", testing::kThirteenDepths, 8, 5);
  more.add("another", {1});
  EXPECT_TRUE(refused(more.checkpoint.bytes(), "it has 370 tensors, not 369"));
}

TEST(GpumemnetCheckpoint, RefusesAnotherPositionalEncoding) {
  EXPECT_TRUE(refused(testing::transformer4mlp_checkpoint(true),
                      "'models.0.positional_encoding' is not the sinusoidal encoding"));
}

TEST(GpumemnetCheckpoint, RefusesValuesThatMakeNoNetwork) {
  testing::GpumemnetWriter writer;
  writer.first_value = std::numeric_limits<float>::infinity();
  writer.ensemble("", testing::kThirteenDepths, 8, 5);
  EXPECT_TRUE(refused(writer.checkpoint.bytes(), "finite"));
  // Finite, but what it gives is not.
  testing::GpumemnetWriter large;
  large.first_value = std::numeric_limits<float>::max();
  large.ensemble("", testing::kThirteenDepths, 8, 5);
  EXPECT_TRUE(refused(large.checkpoint.bytes(), "finite"));
}

}  // namespace
}  // namespace gpumem::datasets
