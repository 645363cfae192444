#include "gpumem/ml/features.hpp"

#include <cmath>
#include <numbers>
#include <set>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem_datasets/read_runs.hpp"

namespace gpumem::ml {
namespace {

using core::ErrorCode;
using Raw = std::vector<double>;

/// A row of GPUMemNet's MLP set, made up: its columns are the features of the published models.
TrainingJob published_mlp() {
  const std::string table =
      "Filename,Activations-Params,Total Activations,Total Parameters,Batch Size,Max GPU Memory (MiB),Status\n"
      "input:5_output:2_depth:1_arch:pyramid_batch:8_act:prelu_dropout:0.5_dropout:True.out,"
      R"("[('linear', 3, 18), ('batch_normalization', 3, 6), ('PReLU', 3, 0), ('dropout', 3, 0), ('linear', 2, 8), )"
      R"(('Softmax', 2, 0)]")"
      ",16,32,8,1500,\n";
  const auto runs = datasets::parse_runs(table, {.vocabulary = &ops::vocabulary()}, "t.csv");
  EXPECT_TRUE(testing::succeeds(runs));
  EXPECT_FALSE(runs->runs.at(0).error);
  return runs->runs.at(0).job;
}

/// A job's analysis, and the facts that view it.
struct Analysed {
  explicit Analysed(const TrainingJob& job) : analysis(job), facts(ml::facts_of(analysis)) {
    EXPECT_TRUE(testing::succeeds(facts));
  }
  analysis::Analysis analysis;
  core::Result<JobFacts> facts;
};

ModelConfig config_of(const std::vector<std::string>& features, const std::vector<std::string>& columns = {}) {
  ModelConfig config;
  config.network.sequence_length = 4;
  for (const std::string& name : features) config.features.push_back({.name = name});
  for (const std::string& name : columns) config.sequence.push_back({.name = name});
  return config;
}

TEST(Features, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Feature& feature : features()) {
    EXPECT_TRUE(names.insert(feature.name).second) << feature.name;
    EXPECT_FALSE(feature.description.empty()) << feature.name;
  }
  std::set<std::string_view> columns;
  for (const LayerFeature& column : layer_features()) EXPECT_TRUE(columns.insert(column.name).second) << column.name;
}

TEST(Features, OfReplaysAreNamedAsTheirFigures) {
  for (const auto& [figure, name] : kReplayFigureNames) {
    const auto reader = FeatureReader::create(config_of({std::string(name)}));
    ASSERT_TRUE(testing::succeeds(reader));
    EXPECT_TRUE(reader->needs(Needs::replay));
    EXPECT_FALSE(reader->needs(Needs::variants));
  }
  for (std::size_t variant = 0; variant < kVariantNames.size(); ++variant) {
    const auto reader = FeatureReader::create(config_of({"replay." + std::string(kVariantNames[variant])}));
    ASSERT_TRUE(testing::succeeds(reader));
    EXPECT_TRUE(reader->needs(Needs::variants));
    EXPECT_TRUE(reader->needs(Needs::replay)) << "the rule's run is what variants are held against";
    JobFacts facts;
    facts.replay.emplace();
    (*facts.replay)[kFirstVariantFigure + variant] = 0.25;
    EXPECT_EQ(reader->raw_features(facts), Raw{0.25}) << kVariantNames[variant];
  }
}

TEST(Features, OfThePublishedModelsAreTheirTablesColumns) {
  const Analysed analysed(published_mlp());
  const auto reader = FeatureReader::create(
      config_of({"gpumemnet.depth", "gpumemnet.batch_size", "gpumemnet.parameters", "gpumemnet.activations",
                 "gpumemnet.activations_times_batch", "gpumemnet.batch_norm_layers", "gpumemnet.dropout_layers",
                 "gpumemnet.activation_sin", "gpumemnet.activation_cos", "gpumemnet.activation_sin_truncated"},
                {"gpumemnet.code_0", "gpumemnet.code_1", "gpumemnet.layer_activations", "gpumemnet.layer_parameters"}));
  ASSERT_TRUE(testing::succeeds(reader));
  const double angle = 5.0 * std::numbers::pi / 11.0;  // PReLU is the sixth of eleven
  EXPECT_EQ(reader->raw_features(*analysed.facts), (Raw{2, 8, 32, 16, 128, 1, 1, std::sin(angle), std::cos(angle), 0}));
  EXPECT_EQ(reader->raw_sequence(*analysed.facts),
            (std::vector<Raw>{{0, 1, 3, 18}, {1, 0, 3, 6}, {1, 0, 3, 0}, {1, 0, 3, 0}}))
      << "cut to the model's length";
}

TEST(Features, AreTransformedAndHeldAgainstTheirRange) {
  const Analysed analysed(published_mlp());
  ModelConfig config = config_of({"batch_size", "linear_layers"}, {"is_linear"});
  config.features[0] = {.name = "batch_size", .transform = Transform::log1p, .mean = 1.0, .scale = 2.0, .max = 8.0};
  config.features[1] = {.name = "linear_layers", .min = 3.0, .max = 9.0};
  const auto reader = FeatureReader::create(config);
  ASSERT_TRUE(testing::succeeds(reader));
  std::vector<float> features(2);
  std::vector<float> sequence;
  std::vector<std::string> outside;
  reader->read(*analysed.facts, features, sequence, outside);
  EXPECT_FLOAT_EQ(features[0], static_cast<float>((std::log(9.0) - 1.0) / 2.0));
  EXPECT_EQ(features[1], 2.0F);
  EXPECT_EQ(sequence, (std::vector<float>{1, 0, 0, 0}));
  EXPECT_EQ(outside, std::vector<std::string>{"linear_layers"});
}

TEST(Features, OptimizerAndPrecisionCount) {
  TrainingJob job = published_mlp();
  const auto reader = FeatureReader::create(config_of({"optimizer_states", "parameter_bytes", "activation_bytes"}));
  ASSERT_TRUE(testing::succeeds(reader));
  const auto raw = [&] { return reader->raw_features(*Analysed(job).facts); };
  EXPECT_EQ(raw(), (Raw{2, 4, 4}));
  job.optimizer = Optimizer::sgd;
  job.precision = Precision::amp_bf16;
  EXPECT_EQ(raw(), (Raw{0, 4, 2}));
  job.optimizer = Optimizer::lion;
  job.precision = Precision::bf16;
  EXPECT_EQ(raw(), (Raw{1, 2, 2}));
}

TEST(Features, AnUnknownNameIsAnError) {
  const auto feature = FeatureReader::create(config_of({"batch_size", "moon_phase"}));
  EXPECT_TRUE(testing::fails(feature, ErrorCode::malformed_input, 0, "moon_phase"));
  EXPECT_EQ(feature.error().place.element, "/features/1/name");
  const auto column = FeatureReader::create(config_of({"batch_size"}, {"batch_size"}));
  EXPECT_TRUE(testing::fails(column, ErrorCode::malformed_input, 0, "batch_size"));
  EXPECT_EQ(column.error().place.element, "/sequence/0/name");
}

}  // namespace
}  // namespace gpumem::ml
