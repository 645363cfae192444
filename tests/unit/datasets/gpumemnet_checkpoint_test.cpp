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
using testing::CheckpointWriter;
using testing::fails;
using testing::little_endian;
using testing::pickle_storage;
using testing::pickle_tensor;
using testing::pickle_text;
using testing::succeeds;
using testing::zip_of;

::testing::AssertionResult unread(const std::string& bytes, std::string_view part) {
  return fails(read_lightning_checkpoint(bytes, "t.ckpt"), ErrorCode::malformed_input, 0, part);
}

/// Bytes of 0, 1, 2, ... as float32.
std::string counted(int count) {
  std::string bytes;
  for (int index = 0; index < count; ++index) {
    const auto value = static_cast<float>(index);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    bytes += little_endian(bits, 4);
  }
  return bytes;
}

/// A checkpoint with one tensor "w" in a storage of 12 figures.
std::string one_tensor(std::int64_t offset, const std::vector<std::int64_t>& shape,
                       const std::vector<std::int64_t>& strides) {
  CheckpointWriter writer;
  writer.add_storage("7", counted(12));
  writer.add_raw(pickle_text("w") + pickle_tensor(pickle_storage("FloatStorage", "7", 12), offset, shape, strides));
  return writer.bytes();
}

std::vector<float> values_of(const std::string& bytes) {
  const auto checkpoint = read_lightning_checkpoint(bytes);
  EXPECT_TRUE(succeeds(checkpoint));
  return checkpoint ? float32_values(checkpoint->tensors.at(0)) : std::vector<float>();
}

using Floats = std::vector<float>;

TEST(LightningCheckpoint, ReadsTheStateDict) {
  CheckpointWriter writer;
  writer.add("layer.weight", {2, 2}, {1.5F, -2.0F, 0.25F, 3.0F});
  writer.add_count("layer.num_batches_tracked", 42);
  const std::string bytes = writer.bytes();
  const auto checkpoint = read_lightning_checkpoint(bytes);
  ASSERT_TRUE(succeeds(checkpoint));
  EXPECT_EQ(checkpoint->lightning_version, "2.4.0");
  EXPECT_EQ(checkpoint->epoch, 7);
  ASSERT_EQ(checkpoint->tensors.size(), 2U);
  EXPECT_EQ(checkpoint->tensors[0].name, "layer.weight");
  EXPECT_EQ(float32_values(checkpoint->tensors[0]), (Floats{1.5F, -2.0F, 0.25F, 3.0F}));
  EXPECT_EQ(checkpoint->tensors[1].dtype, core::DType::int64);
  EXPECT_EQ(checkpoint->tensors[1].shape, std::vector<std::int64_t>());
}

TEST(LightningCheckpoint, ReadsViews) {
  EXPECT_EQ(values_of(one_tensor(4, {}, {})), (Floats{4}));
  EXPECT_EQ(values_of(one_tensor(4, {2, 3}, {3, 1})), (Floats{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(values_of(one_tensor(1, {3, 2}, {1, 4})), (Floats{1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(values_of(one_tensor(0, {2, 2, 2}, {6, 1, 2})), (Floats{0, 2, 1, 3, 6, 8, 7, 9}));
  EXPECT_EQ(values_of(one_tensor(11, {2, 1}, {0, 2'000'000'000})), (Floats{11, 11}));
  EXPECT_EQ(values_of(one_tensor(0, {2'000'000'000, 0, 2'000'000'000, 2'000'000'000}, {1, 1, 1, 1})), Floats());
}

TEST(LightningCheckpoint, RefusesTensorsBeyondTheirStorage) {
  EXPECT_TRUE(unread(one_tensor(12, {1}, {1}), "its tensor 'w' reaches beyond its storage"));
  EXPECT_TRUE(unread(one_tensor(0, {4, 4}, {3, 1}), "reaches beyond"));
  EXPECT_TRUE(unread(one_tensor(0, {2'000'000'000, 2'000'000'000}, {2'000'000'000, 1}), "reaches beyond"));
  // So many elements that their number does not fit 64 bits, on one element of storage.
  EXPECT_TRUE(unread(one_tensor(0, {2'000'000'000, 2'000'000'000, 2'000'000'000}, {0, 0, 0}), "reaches beyond"));
  CheckpointWriter missing;
  missing.add_raw(pickle_text("w") + pickle_tensor(pickle_storage("FloatStorage", "7", 12), 0, {1}, {1}));
  EXPECT_TRUE(unread(missing.bytes(), "the storage '7', which is not there"));
  CheckpointWriter shorter;
  shorter.add_storage("7", counted(11));
  shorter.add_raw(pickle_text("w") + pickle_tensor(pickle_storage("FloatStorage", "7", 12), 0, {1}, {1}));
  EXPECT_TRUE(unread(shorter.bytes(), "not as long as it should be"));
}

TEST(LightningCheckpoint, RefusesAStateDictOfOtherThings) {
  CheckpointWriter twice;
  twice.add("w", {1}, {1});
  twice.add("w", {1}, {1});
  EXPECT_TRUE(unread(twice.bytes(), "two tensors 'w'"));
  CheckpointWriter text;
  text.add_raw(pickle_text("w") + pickle_text("x"));
  EXPECT_TRUE(unread(text.bytes(), "more than tensors by name"));
}

TEST(LightningCheckpoint, RefusesOtherFiles) {
  EXPECT_TRUE(unread("", "does not end as a zip archive does"));
  EXPECT_TRUE(unread(zip_of({{"word/document.xml", "<x/>"}}), "not of torch.save"));
  EXPECT_TRUE(unread(zip_of({{"a/data.pkl", ""}, {"b/data.pkl", ""}}), "not of torch.save"));
  EXPECT_TRUE(unread(zip_of({{"a/data.pkl", ""}, {"a/byteorder", "big"}}), "big-endian"));
  EXPECT_TRUE(unread(zip_of({{"a/data.pkl", ""}}), "is cut off"));
  for (const std::string& root : {testing::kProto + "N.", testing::kProto + "}."}) {
    EXPECT_TRUE(unread(zip_of({{"a/data.pkl", root}}), "not a checkpoint of PyTorch Lightning"));
  }
  // The version is written into files of ours.
  const std::string root = testing::kProto + "}(" + pickle_text("epoch") + "K\1" + pickle_text("state_dict") + "}" +
                           pickle_text("pytorch-lightning_version") + pickle_text("2.4\n\xFF") + "u.";
  EXPECT_TRUE(unread(zip_of({{"a/data.pkl", root}}), "not a checkpoint of PyTorch Lightning"));
}

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
