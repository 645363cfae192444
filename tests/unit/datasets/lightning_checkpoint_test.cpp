#include "gpumem_datasets/lightning_checkpoint.hpp"

#include <gtest/gtest.h>

#include "checkpoints.hpp"
#include "expect.hpp"

namespace gpumem::datasets {
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

::testing::AssertionResult refused(const std::string& bytes, std::string_view part) {
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
  EXPECT_TRUE(refused(one_tensor(12, {1}, {1}), "its tensor 'w' reaches beyond its storage"));
  EXPECT_TRUE(refused(one_tensor(0, {4, 4}, {3, 1}), "reaches beyond"));
  EXPECT_TRUE(refused(one_tensor(0, {2'000'000'000, 2'000'000'000}, {2'000'000'000, 1}), "reaches beyond"));
  // So many elements that their number does not fit 64 bits, on one element of storage.
  EXPECT_TRUE(refused(one_tensor(0, {2'000'000'000, 2'000'000'000, 2'000'000'000}, {0, 0, 0}), "reaches beyond"));
  CheckpointWriter missing;
  missing.add_raw(pickle_text("w") + pickle_tensor(pickle_storage("FloatStorage", "7", 12), 0, {1}, {1}));
  EXPECT_TRUE(refused(missing.bytes(), "the storage '7', which is not there"));
  CheckpointWriter shorter;
  shorter.add_storage("7", counted(11));
  shorter.add_raw(pickle_text("w") + pickle_tensor(pickle_storage("FloatStorage", "7", 12), 0, {1}, {1}));
  EXPECT_TRUE(refused(shorter.bytes(), "not as long as it should be"));
}

TEST(LightningCheckpoint, RefusesAStateDictOfOtherThings) {
  CheckpointWriter twice;
  twice.add("w", {1}, {1});
  twice.add("w", {1}, {1});
  EXPECT_TRUE(refused(twice.bytes(), "two tensors 'w'"));
  CheckpointWriter text;
  text.add_raw(pickle_text("w") + pickle_text("x"));
  EXPECT_TRUE(refused(text.bytes(), "more than tensors by name"));
}

TEST(LightningCheckpoint, RefusesOtherFiles) {
  EXPECT_TRUE(refused("", "does not end as a zip archive does"));
  EXPECT_TRUE(refused(zip_of({{"word/document.xml", "<x/>"}}), "not of torch.save"));
  EXPECT_TRUE(refused(zip_of({{"a/data.pkl", ""}, {"b/data.pkl", ""}}), "not of torch.save"));
  EXPECT_TRUE(refused(zip_of({{"a/data.pkl", ""}, {"a/byteorder", "big"}}), "big-endian"));
  EXPECT_TRUE(refused(zip_of({{"a/data.pkl", ""}}), "is cut off"));
  for (const std::string& root : {testing::kProto + "N.", testing::kProto + "}."}) {
    EXPECT_TRUE(refused(zip_of({{"a/data.pkl", root}}), "not a checkpoint of PyTorch Lightning"));
  }
  // The version is written into files of ours.
  const std::string root = testing::kProto + "}(" + pickle_text("epoch") + "K\1" + pickle_text("state_dict") + "}" +
                           pickle_text("pytorch-lightning_version") + pickle_text("2.4\n\xFF") + "u.";
  EXPECT_TRUE(refused(zip_of({{"a/data.pkl", root}}), "not a checkpoint of PyTorch Lightning"));
}

}  // namespace
}  // namespace gpumem::datasets
