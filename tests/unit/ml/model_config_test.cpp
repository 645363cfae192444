#include <nlohmann/json.hpp>

#include <bit>
#include <functional>
#include <sstream>
#include <utility>

#include "expect.hpp"
#include "gpumem/ml/model_config.hpp"

namespace gpumem::ml {
namespace {

using core::ErrorCode;
using testing::fails;
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

using Json = nlohmann::ordered_json;

constexpr const char* kBins = R"({"format": "gpumem-model", "version": 1, "name": "small", "nets": "cnn",
  "network": {"features": 2, "outputs": 2, "branches": [{"members": [[8, 4], []]}]},
  "features": [{"name": "parameters", "transform": "log1p", "mean": 13.1, "scale": 2.5, "min": 0, "max": 1e9},
               {"name": "batch_size"}],
  "head": {"type": "bins", "edges_mib": [0, 8000, 16000.5]},
  "provenance": {"data": "made up", "licence": "Apache-2.0"},
  "test_vectors": [{"features": [1, 2.5], "outputs": [0.25, -1]}]})";

constexpr const char* kValues = R"({"format": "gpumem-model", "version": 1, "name": "deep", "nets": "transformer",
  "network": {"features": 0, "outputs": 1, "sequence": {"length": 3, "columns": 2},
              "branches": [{"encoder": {"width": 6, "layers": 3, "heads": 2, "feed_forward": 4, "embedding": "linear",
                                        "attention": "sequence", "pooling": "mean"}, "members": [[8]]}]},
  "features": [],
  "sequence": [{"name": "layer_parameters", "transform": "log1p"}, {"name": "layer_code_0"}],
  "head": {"type": "values", "names": ["log_ratio"]},
  "provenance": {},
  "accuracy": {"median": 0.013, "right_class": 0.91},
  "test_vectors": [{"features": [], "sequence": [[1, 0], [2, 1]], "outputs": [0.5]}, {"features": [], "outputs": [3]}]})";

constexpr const char* kMixture = R"({"format": "gpumem-model", "version": 1, "name": "corrector", "nets": "cnn",
  "network": {"features": 1, "outputs": 3, "branches": [{"members": [[8]]}]},
  "features": [{"name": "replay.none"}],
  "head": {"type": "mixture", "names": ["rule", "wide", "replay.none"], "spread": 0.02, "wide_spread": 0.1,
           "lower_share": 0.025, "upper_share": 0.95},
  "provenance": {},
  "test_vectors": [{"features": [1], "outputs": [0, 1, 2]}]})";

TEST(ModelConfig, MayGiveAMixtureWithAWideComponent) {
  const auto config = parse_model_config(kMixture);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(spreads_of(config->head), (std::vector<double>{0.02, 0.1, 0.02}));
  EXPECT_EQ(config->head.upper_share, 0.95);
  const auto again = parse_model_config(write_model_config(*config));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->head, config->head);
}

TEST(ModelConfig, MayHaveBinsOfAnotherFigure) {
  std::string text = kBins;
  text.replace(text.find("\"edges_mib\": [0, 8000, 16000.5]"), 31, R"("of": "smact", "edges": [0, 0.5, 1])");
  const auto config = parse_model_config(text);
  ASSERT_TRUE(succeeds(config));
  EXPECT_EQ(config->head.of, "smact");
  EXPECT_EQ(config->head.edges_mib, (std::vector<double>{0.0, 0.5, 1.0}));
  const auto again = parse_model_config(write_model_config(*config));
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(again->head, config->head);
}

TEST(ModelConfig, MayTellWhatValuesLeaveOver) {
  std::string text = kValues;
  const std::string names = R"("names": ["log_ratio"])";
  text.replace(text.find(names), names.size(),
               names + R"(, "residuals": {"lower": [-0.25], "upper": [0.5], "coverage": 0.9})");
  const auto config = parse_model_config(text);
  ASSERT_TRUE(succeeds(config));
  EXPECT_EQ(config->head.residuals, (Residuals{{-0.25}, {0.5}, 0.9}));
  const auto again = parse_model_config(write_model_config(*config));
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(again->head, config->head);
}

TEST(ModelConfig, IsReadFieldByField) {
  const auto config = parse_model_config(kBins);
  ASSERT_TRUE(succeeds(config));
  EXPECT_EQ(config->name, "small");
  EXPECT_EQ(config->nets, NetKind::cnn);
  EXPECT_EQ(config->network.features, 2);
  EXPECT_EQ(config->network.sequence_columns, 0);
  ASSERT_EQ(config->network.branches.size(), 1U);
  EXPECT_EQ(config->network.branches[0].members, (std::vector<std::vector<std::int64_t>>{{8, 4}, {}}));
  EXPECT_EQ(config->features[0], (FeatureSpec{"parameters", Transform::log1p, 13.1, 2.5, 0.0, 1e9}));
  EXPECT_EQ(config->features[1], (FeatureSpec{"batch_size", Transform::identity, 0.0, 1.0, {}, {}}));
  EXPECT_EQ(config->head.edges_mib, (std::vector<double>{0, 8000, 16000.5}));
  EXPECT_TRUE(config->head.names.empty());
  EXPECT_EQ(config->provenance[1], (std::pair<std::string, std::string>("licence", "Apache-2.0")));
  EXPECT_EQ(config->test_vectors, (std::vector<TestVector>{{{1, 2.5}, {}, {0.25, -1}}}));
}

TEST(ModelConfig, MayBeAMixture) {
  const std::string mixture = R"({"type": "mixture", "names": ["rule", "batch_size"], "spread": 0.02,
                                  "lower_share": 0.025, "upper_share": 0.95})";
  const auto with = [](const std::string& head) {
    std::string text = kBins;
    const std::string before = R"({"type": "bins", "edges_mib": [0, 8000, 16000.5]})";
    text.replace(text.find(before), before.size(), head);
    return parse_model_config(text);
  };
  const auto config = with(mixture);
  ASSERT_TRUE(succeeds(config));
  EXPECT_EQ(config->head.names, (std::vector<std::string>{"rule", "batch_size"}));
  EXPECT_EQ(config->head.spread, 0.02);
  EXPECT_EQ(config->head.lower_share, 0.025);
  EXPECT_EQ(config->head.upper_share, 0.95);
  const auto again = parse_model_config(write_model_config(*config));
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(*again, *config);

  const auto refused = [&](const std::string& what, const std::string& by) {
    std::string head = mixture;
    head.replace(head.find(what), what.size(), by);
    return !with(head);
  };
  EXPECT_TRUE(refused("0.02", "0"));
  EXPECT_TRUE(refused("0.025", "0.5"));
  EXPECT_TRUE(refused("0.95", "1"));
  EXPECT_TRUE(refused("mixture", "values"));
}

TEST(ModelConfig, MayReadASequenceAndGiveValues) {
  const auto config = parse_model_config(kValues);
  ASSERT_TRUE(succeeds(config));
  EXPECT_EQ(config->network.sequence_length, 3);
  const EncoderShape wanted = {6, 3, 2, 4, Embedding::linear, Attention::sequence, Pooling::mean};
  EXPECT_EQ(config->network.branches[0].encoder, wanted);
  EXPECT_EQ(config->sequence[0].name, "layer_parameters");
  EXPECT_EQ(config->head.names, (std::vector<std::string>{"log_ratio"}));
  EXPECT_EQ(config->accuracy[1], (std::pair<std::string, double>("right_class", 0.91)));
  EXPECT_EQ(config->test_vectors[0].sequence, (std::vector<std::vector<double>>{{1, 0}, {2, 1}}));
  EXPECT_TRUE(config->test_vectors[1].sequence.empty());
}

TEST(ModelConfig, ComesBackAsItWasWritten) {
  for (const char* text : {kBins, kValues}) {
    const auto config = parse_model_config(text);
    ASSERT_TRUE(succeeds(config));
    const std::string written = write_model_config(*config);
    const auto again = parse_model_config(written);
    ASSERT_TRUE(succeeds(again));
    EXPECT_EQ(*again, *config);
    EXPECT_EQ(write_model_config(*again), written);
  }
}

TEST(ModelConfig, NumbersComeBackToTheLastBit) {
  auto config = parse_model_config(kBins);
  ASSERT_TRUE(succeeds(config));
  const std::vector<double> numbers = {0.1,  1.0 / 3.0,    5e-324, 1.7976931348623157e308, -0.0, 9007199254740993.0,
                                       1e22, 4294967296.0, -8000};
  for (const double number : numbers) {
    config->features[1].mean = number;
    const auto again = parse_model_config(write_model_config(*config));
    ASSERT_TRUE(succeeds(again));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(again->features[1].mean), std::bit_cast<std::uint64_t>(number)) << number;
  }
}

TEST(ModelConfig, IsWrittenForPeople) {
  const auto config = parse_model_config(kBins);
  ASSERT_TRUE(succeeds(config));
  EXPECT_EQ(write_model_config(*config), R"({
  "format": "gpumem-model",
  "version": 1,
  "name": "small",
  "nets": "cnn",
  "network": {"features": 2, "outputs": 2, "branches": [{"members": [[8, 4], []]}]},
  "features": [
    {"name": "parameters", "transform": "log1p", "mean": 13.1, "scale": 2.5, "min": 0, "max": 1000000000},
    {"name": "batch_size", "transform": "identity", "mean": 0, "scale": 1}
  ],
  "head": {"type": "bins", "edges_mib": [0, 8000, 16000.5]},
  "provenance": {"data": "made up", "licence": "Apache-2.0"},
  "test_vectors": [{"features": [1, 2.5], "outputs": [0.25, -1]}]
}
)");
}

TEST(ModelConfig, LongListsHaveALineAnItem) {
  auto config = parse_model_config(kValues);
  ASSERT_TRUE(succeeds(config));
  for (int row = 0; row < 20; ++row) config->test_vectors[0].sequence.push_back({1234567.125, 0.0});
  const std::string text = write_model_config(*config);
  EXPECT_NE(text.find("\n        [1234567.125, 0],\n        [1234567.125, 0],\n"), std::string::npos) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
}

/// What is wrong if the value at this pointer is another one.
struct Fault {
  const char* base;
  const char* pointer;
  const char* value;  ///< nothing: the field is left out
  const char* place;
  const char* part;
};

const std::vector<Fault> kFaults = {
    {kBins, "/format", "\"gpumem-graph\"", "/format", "must be \"gpumem-model\""},
    {kBins, "/version", "2", "/version", "must be 1"},
    {kBins, "/version", "\"1\"", "/version", "must be 1"},
    {kBins, "/name", "7", "/name", "must be a text"},
    {kBins, "/name", "\"\"", "/name", "not empty"},
    {kBins, "/name", nullptr, "/name", "is missing"},
    {kBins, "/format", nullptr, "/format", "is missing"},
    {kBins, "/colour", "1", "/colour", "is not a field of a model's config"},
    {kBins, "/nets", "\"rnn\"", "/nets", "must be one of mlp, cnn, transformer, any"},
    {kBins, "/network", "[]", "/network", "must be an object"},
    {kBins, "/network/features", "2.0", "/network/features", "must be a whole number"},
    {kBins, "/network/features", "1e1", "/network/features", "must be a whole number"},
    {kBins, "/network/outputs", "0", "/network/outputs", "out of range"},
    {kBins, "/network/outputs", "9223372036854775808", "/network/outputs", "must be a whole number"},
    {kBins, "/network/branches/0/members/0/1", "99999", "/network/branches/0/members/0/1", "out of range"},
    {kBins, "/network/branches/0/members/0", "8", "/network/branches/0/members/0", "must be a list"},
    {kBins, "/network/branches/0/width", "8", "/network/branches/0/width", "is not a field"},
    {kBins, "/network/sequence", R"({"length": 1, "columns": 1})", "/network/sequence", "no branch has an encoder"},
    {kValues, "/network/sequence/columns", nullptr, "/network/sequence/columns", "is missing"},
    {kValues, "/network/branches/0/encoder/heads", "4", "/network/branches/0/encoder/heads", "evenly"},
    {kValues, "/network/branches/0/encoder/pooling", "\"max\"", "/network/branches/0/encoder/pooling", "mean, sum"},
    {kValues, "/network/branches/0/encoder/width", nullptr, "/network/branches/0/encoder/width", "is missing"},
    {kBins, "/features/0/mean", "null", "/features/0/mean", "must be a number"},
    {kBins, "/features/0/scale", "0.0", "/features/0/scale", "must not be 0"},
    {kBins, "/features/0/scale", "\"2\"", "/features/0/scale", "must be a number"},
    {kBins, "/features/0/max", "-1", "/features/0/max", "is below \"min\""},
    {kBins, "/features/0/transform", "\"sqrt\"", "/features/0/transform", "identity, log1p"},
    {kBins, "/features/0/unit", "\"B\"", "/features/0/unit", "is not a field"},
    {kBins, "/features/1/name", "\"parameters\"", "/features", "names 'parameters' twice"},
    {kBins, "/features/2", R"({"name": "depth"})", "/features", "has 3 items; the network has 2 features"},
    {kValues, "/sequence", nullptr, "/sequence", "has 0 items; the network has 2 columns a row"},
    {kBins, "/sequence", R"([{"name": "x"}])", "/sequence", "has 1 items; the network has 0"},
    {kBins, "/head/type", "\"class\"", "/head/type", "must be bins, values or mixture"},
    {kBins, "/head/type", "\"values\"", "/head", "has \"names\" and no \"edges_mib\""},
    {kBins, "/head/names", R"(["a", "b"])", "/head", "has \"edges_mib\" and no \"names\""},
    {kBins, "/head/edges_mib", "[]", "/head/edges_mib", "is empty"},
    {kBins, "/head/edges_mib", "[0, 1]", "/head/edges_mib", "one more than these"},
    {kBins, "/head/edges_mib", "[0, 1, 1]", "/head/edges_mib/2", "is not above the edge before it"},
    {kBins, "/head/edges_mib", "[-1, 0, 1]", "/head/edges_mib", "begins below 0"},
    {kValues, "/head/names", R"(["a", "b"])", "/head/names", "has 2 items; the network has 1 outputs"},
    {kMixture, "/head/spread", nullptr, "/head/spread", "must be above 0"},
    {kMixture, "/head/wide_spread", nullptr, "/head/wide_spread", "must be above 0 if"},
    {kMixture, "/head/names/1", "\"replay.slices-1\"", "/head/wide_spread", "absent if not"},
    {kMixture, "/head/upper_share", "0.4", "/head/upper_share", "between 0.5 and 1"},
    {kBins, "/head/wide_spread", "0.1", "/head", "figures of a mixture"},
    {kBins, "/head/of", "\"smact\"", "/head", "only one of \"edges\" and \"of\""},
    {kBins, "/head/edges", "[0, 1, 2]", "/head", "both \"edges_mib\" and \"edges\""},
    {kBins, "/head/residuals", R"({"lower": [0, 0], "upper": [1, 1], "coverage": 0.9})", "/head/residuals",
     "for heads of values"},
    {kValues, "/head/residuals", R"({"lower": [0, 0], "upper": [1], "coverage": 0.9})", "/head/residuals", "outputs"},
    {kValues, "/head/residuals", R"({"lower": [0], "upper": [1], "coverage": 2})", "/head/residuals/coverage",
     "above 0"},
    {kBins, "/provenance", nullptr, "/provenance", "is missing"},
    {kBins, "/provenance/data", "7", "/provenance/data", "must be a text"},
    {kValues, "/accuracy/median", "\"good\"", "/accuracy/median", "must be a number"},
    {kBins, "/test_vectors", "[]", "/test_vectors", "at least one"},
    {kBins, "/test_vectors/0/features", "[1]", "/test_vectors/0/features", "has 1 items"},
    {kBins, "/test_vectors/0/features/1", "null", "/test_vectors/0/features/1", "must be a number"},
    {kBins, "/test_vectors/0/outputs", "[1, 2, 3]", "/test_vectors/0/outputs", "has 3 items"},
    {kBins, "/test_vectors/0/sequence", "[[1]]", "/test_vectors/0/sequence", "the network reads none"},
    {kValues, "/test_vectors/0/sequence/1", "[1]", "/test_vectors/0/sequence/1", "has 1 items"},
};

TEST(ModelConfig, NamesThePlaceOfWhatIsWrong) {
  for (const Fault& fault : kFaults) {
    Json json = Json::parse(fault.base);
    const Json::json_pointer pointer(fault.pointer);
    if (fault.value != nullptr) {
      json[pointer] = Json::parse(fault.value);
    } else {
      json[pointer.parent_pointer()].erase(pointer.back());
    }
    const auto config = parse_model_config(json.dump(), "x/config.json");
    ASSERT_TRUE(fails(config, ErrorCode::malformed_input, 0, fault.part)) << fault.pointer;
    EXPECT_EQ(config.error().place.element, fault.place) << config.error().message;
    EXPECT_EQ(config.error().place.file, "x/config.json");
  }
}

TEST(ModelConfig, WhatIsNoConfigIsRefused) {
  EXPECT_TRUE(fails(parse_model_config(""), ErrorCode::malformed_input, 1, "is not JSON"));
  EXPECT_TRUE(fails(parse_model_config("[]"), ErrorCode::malformed_input, 0, "must be an object"));
  std::string huge(kBins);
  huge.replace(huge.find("13.1"), 4, "1e999");
  EXPECT_TRUE(fails(parse_model_config(huge), ErrorCode::malformed_input, 3, "beyond what a double holds"));
  std::string twice(kBins);
  twice.insert(1, R"("name": "other", )");
  EXPECT_EQ(parse_model_config(twice).error().place.element, "/name");
  EXPECT_TRUE(fails(parse_model_config(std::string((std::size_t{16} << 20) + 1, ' ')), ErrorCode::malformed_input, 0,
                    "16 MiB"));
}

}  // namespace
}  // namespace gpumem::ml
