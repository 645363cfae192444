// Networks give what PyTorch's own modules give: bench/references/network.py writes tests/golden/network/networks.json.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "expect.hpp"
#include "networks.hpp"

namespace gpumem::ml {
namespace {

using nlohmann::json;

template <typename Enum, std::size_t kCount>
Enum value_of(const std::array<model::Named<Enum>, kCount>& names, const std::string& name) {
  const auto row = std::find_if(names.begin(), names.end(), [&](const auto& named) { return named.name == name; });
  EXPECT_NE(row, names.end()) << name;
  return row->value;
}

EncoderShape encoder_from(const json& encoder) {
  return {.width = encoder["width"],
          .layers = encoder["layers"],
          .heads = encoder["heads"],
          .feed_forward = encoder["feed_forward"],
          .embedding = value_of(kEmbeddings, encoder["embedding"]),
          .attention = value_of(kAttentions, encoder["attention"]),
          .pooling = value_of(kPoolings, encoder["pooling"])};
}

NetworkShape shape_from(const json& network) {
  NetworkShape shape{.features = network["features"], .outputs = network["outputs"]};
  if (network.contains("sequence")) {
    shape.sequence_length = network["sequence"]["length"];
    shape.sequence_columns = network["sequence"]["columns"];
  }
  for (const json& part : network["branches"]) {
    BranchShape& branch = shape.branches.emplace_back();
    if (part.contains("encoder")) branch.encoder = encoder_from(part["encoder"]);
    part["members"].get_to(branch.members);
  }
  return shape;
}

/// Every job of a case, with these instructions.
void expect_as_pytorch(const json& golden, const NetworkShape& shape, Instructions instructions) {
  const auto network = Network::create(shape, testing::random_weights(shape, golden["seed"]), instructions);
  ASSERT_TRUE(testing::succeeds(network));
  NetworkBuffers buffers = network->buffers();
  testing::Figures figures(1000 + golden["seed"].get<std::uint64_t>());
  for (std::size_t job = 0; job < golden["rows"].size(); ++job) {
    const auto features = figures.symmetric(shape.features);
    const auto sequence = figures.symmetric(golden["rows"][job].get<std::int64_t>() * shape.sequence_columns);
    std::vector<float> outputs(static_cast<std::size_t>(shape.outputs));
    network->run(features, sequence, buffers, outputs);
    for (std::size_t output = 0; output < outputs.size(); ++output) {
      const double expected = golden["outputs"][job][output];
      EXPECT_NEAR(outputs[output], expected, 2e-5 * std::max(1.0, std::abs(expected)))
          << "seed " << golden["seed"] << ", job " << job << ", output " << output;
    }
  }
}

TEST(Network, GivesWhatPyTorchGives) {
  std::ifstream file(GPUMEM_GOLDEN_DIR "/network/networks.json");
  const json cases = json::parse(file);
  ASSERT_GE(cases.size(), 8U);
  for (const json& golden : cases) {
    const NetworkShape shape = shape_from(golden["network"]);
    expect_as_pytorch(golden, shape, Instructions::portable);
    expect_as_pytorch(golden, shape, best_instructions());
  }
}

}  // namespace
}  // namespace gpumem::ml
