#include "gpumem/ml/model_config.hpp"

#include <functional>
#include <utility>

#include "expect.hpp"

namespace gpumem::ml {
namespace {

using core::ErrorCode;
using testing::succeeds;

NetworkShape ensemble() { return {.features = 3, .outputs = 2, .branches = {{.members = {{8, 4}, {}}}}}; }

NetworkShape with_encoder() {
  return {.features = 3,
          .outputs = 2,
          .sequence_length = 5,
          .sequence_columns = 4,
          .branches = {
              {.encoder = EncoderShape{.width = 6, .layers = 1, .heads = 2, .feed_forward = 7}, .members = {{8}}}}};
}

/// The fault that a change makes of a valid shape: "FIELD: message", or "" if it stays valid.
std::string fault_after(NetworkShape shape, const std::function<void(NetworkShape&)>& change) {
  change(shape);
  const auto status = validate(shape);
  if (status) return {};
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  return status.error().place.element + ": " + status.error().message;
}

std::vector<std::string> names_of(const NetworkShape& shape) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : tensors_of(shape)) names.push_back(tensor.name);
  return names;
}

TEST(NetworkShape, IsValidWithAndWithoutAnEncoder) {
  EXPECT_TRUE(succeeds(validate(ensemble())));
  EXPECT_TRUE(succeeds(validate(with_encoder())));
  EXPECT_EQ(fault_after(with_encoder(), [](NetworkShape& shape) { shape.features = 0; }), "")
      << "the encoder's suffice";
}

TEST(NetworkShape, NamesTheFieldThatIsOutOfRange) {
  const std::pair<std::function<void(NetworkShape&)>, std::string> cases[] = {
      {[](NetworkShape& shape) { shape.features = -1; }, "/features: -1 is out of range: from 0 to 4096"},
      {[](NetworkShape& shape) { shape.outputs = 0; }, "/outputs: 0 is out of range: from 1 to 4096"},
      {[](NetworkShape& shape) { shape.branches.clear(); }, "/branches: 0 is out of range: from 1 to 16"},
      {[](NetworkShape& shape) { shape.sequence_length = 65537; },
       "/sequence/length: 65537 is out of range: from 1 to 65536"},
      {[](NetworkShape& shape) { shape.sequence_columns = 0; }, "/sequence/columns: 0 is out of range: from 1 to 4096"},
      {[](NetworkShape& shape) { shape.branches[0].encoder->width = 0; },
       "/branches/0/encoder/width: 0 is out of range: from 1 to 4096"},
      {[](NetworkShape& shape) { shape.branches[0].encoder->layers = 65; },
       "/branches/0/encoder/layers: 65 is out of range: from 1 to 64"},
      {[](NetworkShape& shape) { shape.branches[0].encoder->heads = 4; },
       "/branches/0/encoder/heads: 4 heads do not divide a width of 6 evenly"},
      {[](NetworkShape& shape) { shape.branches[0].encoder->feed_forward = INT64_MAX; },
       "/branches/0/encoder/feed_forward: 9223372036854775807 is out of range: from 1 to 4096"},
      {[](NetworkShape& shape) { shape.branches[0].members.clear(); },
       "/branches/0/members: 0 is out of range: from 1 to 256"},
      {[](NetworkShape& shape) {
         shape.branches[0].members[0] = {8, 0};
       },
       "/branches/0/members/0/1: 0 is out of range: from 1 to 4096"},
      {[](NetworkShape& shape) { shape.branches[0].members[0].assign(65, 4); },
       "/branches/0/members/0: 65 is out of range: from 0 to 64"},
      {[](NetworkShape& shape) { shape.branches.assign(2, {.members = std::vector<std::vector<std::int64_t>>(129)}); },
       "/sequence: no branch has an encoder that reads it: leave it out"},
  };
  for (const auto& [change, fault] : cases) EXPECT_EQ(fault_after(with_encoder(), change), fault);
}

TEST(NetworkShape, CountsTheMembersOfAllBranches) {
  const auto many = [](NetworkShape& shape) {
    shape.branches.assign(2, {.members = std::vector<std::vector<std::int64_t>>(129)});
  };
  EXPECT_EQ(fault_after(ensemble(), many), "/branches: 258 is out of range: from 1 to 256");
}

TEST(NetworkShape, NothingEntersAnEnsembleWithoutFeatures) {
  EXPECT_EQ(fault_after(ensemble(), [](NetworkShape& shape) { shape.features = 0; }),
            "/branches/0: it has neither features nor an encoder: nothing enters its members");
}

TEST(NetworkShape, AsksForNoTerabytes) {
  const auto wide = [](NetworkShape& shape) { shape.branches[0].members.assign(256, {4096, 4096, 4096}); };
  EXPECT_EQ(fault_after(ensemble(), wide), "/branches: the weights have more than 67108864 elements");
  const auto long_and_wide = [](NetworkShape& shape) {
    shape.sequence_length = 65536;
    shape.branches[0].encoder->width = 2048;
  };
  EXPECT_EQ(fault_after(with_encoder(), long_and_wide),
            "/branches/0/encoder/width: a sequence of this length and width has more than 67108864 elements");
}

TEST(TensorsOf, AnEnsemble) {
  const std::vector<TensorSpec> expected = {
      {"branches.0.members.0.hidden.0.linear.weight", {8, 3}},  {"branches.0.members.0.hidden.0.linear.bias", {8}},
      {"branches.0.members.0.hidden.0.norm.weight", {8}},       {"branches.0.members.0.hidden.0.norm.bias", {8}},
      {"branches.0.members.0.hidden.0.norm.running_mean", {8}}, {"branches.0.members.0.hidden.0.norm.running_var", {8}},
      {"branches.0.members.0.hidden.1.linear.weight", {4, 8}},  {"branches.0.members.0.hidden.1.linear.bias", {4}},
      {"branches.0.members.0.hidden.1.norm.weight", {4}},       {"branches.0.members.0.hidden.1.norm.bias", {4}},
      {"branches.0.members.0.hidden.1.norm.running_mean", {4}}, {"branches.0.members.0.hidden.1.norm.running_var", {4}},
      {"branches.0.members.0.output.weight", {2, 4}},           {"branches.0.members.0.output.bias", {2}},
      {"branches.0.members.1.output.weight", {2, 3}},           {"branches.0.members.1.output.bias", {2}}};
  EXPECT_EQ(tensors_of(ensemble()), expected);
}

TEST(TensorsOf, AnEncoderStandsBeforeTheMembersItFeeds) {
  const auto tensors = tensors_of(with_encoder());
  const std::vector<TensorSpec> encoder = {{"branches.0.encoder.embedding.0.linear.weight", {6, 4}},
                                           {"branches.0.encoder.embedding.0.linear.bias", {6}},
                                           {"branches.0.encoder.layers.0.attention.in_proj.weight", {18, 6}},
                                           {"branches.0.encoder.layers.0.attention.in_proj.bias", {18}},
                                           {"branches.0.encoder.layers.0.attention.out_proj.weight", {6, 6}},
                                           {"branches.0.encoder.layers.0.attention.out_proj.bias", {6}},
                                           {"branches.0.encoder.layers.0.norm1.weight", {6}},
                                           {"branches.0.encoder.layers.0.norm1.bias", {6}},
                                           {"branches.0.encoder.layers.0.linear1.weight", {7, 6}},
                                           {"branches.0.encoder.layers.0.linear1.bias", {7}},
                                           {"branches.0.encoder.layers.0.linear2.weight", {6, 7}},
                                           {"branches.0.encoder.layers.0.linear2.bias", {6}},
                                           {"branches.0.encoder.layers.0.norm2.weight", {6}},
                                           {"branches.0.encoder.layers.0.norm2.bias", {6}},
                                           {"branches.0.members.0.hidden.0.linear.weight", {8, 9}}};
  ASSERT_GE(tensors.size(), encoder.size());
  EXPECT_EQ(std::vector(tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(encoder.size())), encoder);
}

TEST(TensorsOf, APositionNormHasAChannelAPosition) {
  NetworkShape shape = with_encoder();
  shape.branches[0].encoder->embedding = Embedding::position_batch_norm;
  const auto tensors = tensors_of(shape);
  ASSERT_GT(tensors.size(), 12U);
  EXPECT_EQ(tensors[2], (TensorSpec{"branches.0.encoder.embedding.0.norm.weight", {5}}));
  EXPECT_EQ(tensors[6], (TensorSpec{"branches.0.encoder.embedding.1.linear.weight", {6, 6}}));
  EXPECT_EQ(tensors[11], (TensorSpec{"branches.0.encoder.embedding.1.norm.running_var", {5}}));
}

TEST(TensorsOf, BranchesFollowEachOther) {
  NetworkShape shape = ensemble();
  shape.branches.push_back({.members = {{}}});
  const auto names = names_of(shape);
  EXPECT_EQ(names.back(), "branches.1.members.0.output.bias");
}

}  // namespace
}  // namespace gpumem::ml
