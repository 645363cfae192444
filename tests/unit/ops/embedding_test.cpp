#include "gpumem/ops/embedding.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::N;
using testing::output;
using testing::output_text;
using testing::parameters;
using testing::shape;

TEST(Embedding, AddsAnAxis) {
  EXPECT_EQ(output_text("embedding", "100, 16", {shape({N, 12})}), "[N, 12, 16]");
  EXPECT_EQ(output_text("embedding", "100, 16, padding_idx=0", {shape({N})}), "[N, 16]");
}

TEST(EmbeddingBag, GivesOneRowABag) {
  EXPECT_EQ(output_text("embedding_bag", "100, 16, mode='mean'", {shape({N, 12})}), "[N, 16]");
}

TEST(Embedding, CountsTheParametersThatPyTorchCounts) {
  EXPECT_EQ(parameters("embedding", "100, 16"), 1600);
  EXPECT_EQ(parameters("embedding_bag", "100, 16, mode='mean'"), 1600);
  EXPECT_EQ(parameters("embedding", "100"), -1);
}

TEST(Embedding, ReadsTokenIds) {
  EXPECT_TRUE(testing::op("embedding").reads_token_ids);
  EXPECT_TRUE(testing::op("embedding_bag").reads_token_ids);
  EXPECT_FALSE(testing::op("linear").reads_token_ids);
}

TEST(Embedding, RefusesWhatItCannotHold) {
  EXPECT_TRUE(fails(output("embedding", "", {shape({N})}), ErrorCode::missing_information, 0, "embedding_dim"));
  EXPECT_TRUE(fails(output("embedding", "100, 16", {shape({N, 1, 1, 1, 1, 1, 1, 1})}), ErrorCode::missing_information,
                    0, "fewer axes"));
  EXPECT_TRUE(
      fails(output("embedding_bag", "100, 16", {core::Shape()}), ErrorCode::missing_information, 0, "one axis"));
}

}  // namespace
}  // namespace gpumem::ops
