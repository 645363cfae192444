#include <cmath>
#include <numbers>
#include <set>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/connect/connect.hpp"
#include "gpumem/device/workspace.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::ml {
namespace {

using core::ErrorCode;

/// A convolution to 4 x 8 x 8, an activation, a view, a linear layer.
std::string small_cnn(const std::string& activation) {
  return R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 3, 8, 8], "dtype": "float32"}],
 "nodes": [
  {"name": "conv1", "op": "conv2d", "inputs": ["x"],
   "attrs": {"in_channels": 3, "out_channels": 4, "kernel_size": [3, 3], "padding": [1, 1]}},
  {"name": "conv2", "op": "conv2d", "inputs": ["conv1"],
   "attrs": {"in_channels": 4, "out_channels": 4, "kernel_size": [3, 3], "padding": [1, 1]}},
  {"name": "act", "op": ")" +
         activation + R"(", "inputs": ["conv2"]},
  {"name": "drop", "op": "dropout", "inputs": ["act"]},
  {"name": "flat", "op": "flatten", "inputs": ["drop"], "attrs": {"start_dim": 1}},
  {"name": "fc", "op": "linear", "inputs": ["flat"], "attrs": {"in_features": 256, "out_features": 10}}
 ]})";
}

struct Facts {
  TrainingJob job;
  core::Result<JobFacts> facts;
};

Facts facts_of_text(const std::string& text, std::int64_t batch = 2) {
  auto graph = parse_summary(text);
  EXPECT_TRUE(testing::succeeds(graph));
  Facts made{TrainingJob(*std::move(graph), batch), core::Error{}};
  const auto wired = connect::connect(made.job, ops::catalogue());
  EXPECT_TRUE(testing::succeeds(wired));
  made.facts = facts_of(made.job, *made.job.graph, [&](std::size_t layer) { return wired->outputs(layer); });
  EXPECT_TRUE(testing::succeeds(made.facts));
  return made;
}

TEST(JobFacts, CountsLayersByFamily) {
  const Facts made = facts_of_text(small_cnn("relu"));
  const JobFacts& facts = *made.facts;
  EXPECT_EQ(facts.kind, NetKind::cnn);
  EXPECT_EQ(facts.layers_of(OpFamily::conv), 2);
  EXPECT_EQ(facts.layers_of(OpFamily::activation), 1);
  EXPECT_EQ(facts.layers_of(OpFamily::dropout), 1);
  EXPECT_EQ(facts.layers_of(OpFamily::view), 1);
  EXPECT_EQ(facts.layers_of(OpFamily::linear), 1);
  EXPECT_EQ(facts.function, ActivationFunction::relu);
  EXPECT_EQ(facts.layers[0].outputs, 256.0);
  EXPECT_EQ(facts.layers[0].positions, 64.0);
  EXPECT_EQ(facts.layers[5].positions, 10.0);
  EXPECT_EQ(facts.largest_output, 256.0);
  EXPECT_EQ(facts.largest_parameters, 2570.0);
  EXPECT_EQ(facts.convolution_operands, 512.0);
}

TEST(JobFacts, WhatBackwardReadsAgainIsCountedOnceThroughViews) {
  // conv1 (conv2's input), relu's output, the dropout's output (the linear layer's input, after a view).
  EXPECT_EQ(facts_of_text(small_cnn("relu")).facts->kept, 3 * 256.0);
  // silu reads conv2's output again; its own is the dropout's input, which that does not keep.
  EXPECT_EQ(facts_of_text(small_cnn("silu")).facts->kept, 3 * 256.0);
}

TEST(JobFacts, KnowsKindsOfNets) {
  const std::string mlp = R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 8], "dtype": "float32"}],
 "nodes": [{"name": "fc", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 8, "out_features": 4}}]})";
  const Facts made = facts_of_text(mlp);
  EXPECT_EQ(made.facts->kind, NetKind::mlp);
  EXPECT_EQ(made.facts->function, ActivationFunction::none);
  std::string transformer = mlp;
  transformer.insert(transformer.rfind("]}"),
                     R"(,{"name": "norm", "op": "layer_norm", "inputs": ["fc"], "attrs": {"normalized_shape": [4]}})");
  EXPECT_EQ(facts_of_text(transformer).facts->kind, NetKind::transformer);
}

TEST(JobFacts, AnUnknownDimensionIsAnErrorThatNamesTheLayer) {
  const TrainingJob job(*parse_summary(small_cnn("relu")), 2);
  core::Shape shape;
  shape.push_back(core::Dim::batch());
  shape.push_back(core::Dim::unknown());
  const auto facts = facts_of(job, *job.graph, [&](std::size_t) { return std::span<const core::Shape>(&shape, 1); });
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, ErrorCode::missing_information);
  EXPECT_EQ(facts.error().place.element, "conv1");
}

TEST(JobFacts, ASizeBeyond64BitsIsAnError) {
  const TrainingJob job(*parse_summary(small_cnn("relu")), 2);
  core::Shape shape;
  for (int axis = 0; axis < 3; ++axis) shape.push_back(core::Dim::fixed(std::int64_t{1} << 40));
  const auto facts = facts_of(job, *job.graph, [&](std::size_t) { return std::span<const core::Shape>(&shape, 1); });
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, ErrorCode::overflow);
}

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

const std::string kModels = GPUMEM_SOURCE_DIR "/models/";

TrainingJob resnet(std::int64_t batch_size = 8) {
  return {*read_summary(kModels + "summaries/resnet50.torchsummary.txt"), batch_size};
}

/// A reader of these features.
FeatureReader reader_of(const std::vector<std::string>& features) {
  ModelConfig config;
  for (const std::string& name : features) config.features.push_back({.name = name});
  auto reader = FeatureReader::create(config);
  EXPECT_TRUE(testing::succeeds(reader));
  return *std::move(reader);
}

/// The facts of a job with the replay that the reader needs.
core::Result<JobFacts> facts_for(const FeatureReader& reader, analysis::Analysis& analysis,
                                 const std::string& gpu = "a100-40gb") {
  core::Result<JobFacts> facts = facts_of(analysis);
  if (!facts) return facts;
  const core::Status added = add_replay(*facts, reader, analysis, *find_profile(gpu));
  if (!added) return added.error();
  return facts;
}

TEST(ReplayFigures, VariantsAreNamedAsTheDevicesAre) {
  const auto variants = device::workspace_variants();
  ASSERT_EQ(variants.size(), kVariantNames.size());
  for (std::size_t index = 0; index < variants.size(); ++index) {
    EXPECT_EQ(variants[index].name, kVariantNames[index]);
  }
}

TEST(ReplayFigures, OfATreeAndOfATableAreOfTheJobsRunOnTheGpu) {
  for (const TrainingJob& job :
       {resnet(), TrainingJob(*read_summary(kModels + "summaries/vgg16.module_tree.txt"), 4)}) {
    analysis::Analysis analysis(job);
    analysis::Analysis alone(job);
    TrainingJob given = job;
    given.input_shape = {3, 224, 224};
    analysis.set_job(given);
    alone.set_job(given);
    ASSERT_TRUE(testing::succeeds(facts_for(reader_of({"replay.reserved"}), analysis)));  // another GPU's
    const auto facts = facts_for(reader_of({"replay.reserved"}), analysis, "t4-16gb");
    ASSERT_TRUE(testing::succeeds(facts));
    const auto figures = replay_figures(alone, *find_profile("t4-16gb"), Needs::replay);
    ASSERT_TRUE(testing::succeeds(figures));
    EXPECT_EQ(*facts->replay, *figures);
    const auto run = alone.run(*find_profile("t4-16gb"));
    ASSERT_TRUE(testing::succeeds(run));
    EXPECT_DOUBLE_EQ((*figures)[static_cast<std::size_t>(ReplayFigure::reserved)], Bytes(run->run.peak_reserved).mib());
  }
}

TEST(ReplayFigures, AreMadeAsFarAsAModelReadsThem) {
  analysis::Analysis analysis(resnet());
  const auto none = facts_for(reader_of({"batch_size"}), analysis);
  ASSERT_TRUE(testing::succeeds(none));
  EXPECT_FALSE(none->replay);

  const auto rule = facts_for(reader_of({"replay.reserved"}), analysis);
  ASSERT_TRUE(testing::succeeds(rule));
  const auto replay = make_estimator("replay");
  const auto estimate = (*replay)->estimate(resnet(), *find_profile("a100-40gb"));
  ASSERT_TRUE(testing::succeeds(estimate));
  const auto figure = [&](ReplayFigure which) { return (*rule->replay)[static_cast<std::size_t>(which)]; };
  EXPECT_DOUBLE_EQ(figure(ReplayFigure::device), estimate->expected.mib());
  EXPECT_DOUBLE_EQ(figure(ReplayFigure::reserved), estimate->reserved->mib());
  EXPECT_DOUBLE_EQ(figure(ReplayFigure::allocated), estimate->allocated->mib());
  EXPECT_DOUBLE_EQ(figure(ReplayFigure::context), estimate->breakdown.context.mib());
  EXPECT_DOUBLE_EQ(figure(ReplayFigure::fragmentation), estimate->breakdown.fragmentation.mib());
  EXPECT_EQ(figure(ReplayFigure::fits), 1.0);
  EXPECT_EQ((*rule->replay)[kFirstVariantFigure], 0.0);

  const auto variants = facts_for(reader_of({"replay.slices-1"}), analysis);
  ASSERT_TRUE(testing::succeeds(variants));
  std::size_t different = 0;
  for (std::size_t variant = 0; variant < kVariantNames.size(); ++variant) {
    const double ratio = (*variants->replay)[kFirstVariantFigure + variant];
    EXPECT_LT(std::abs(ratio), 1.0) << kVariantNames[variant];
    different += ratio != 0.0 ? 1 : 0;
  }
  EXPECT_GT(different, 5U);
}

TEST(ReplayFigures, OfAFailedRunLeaveTheFactsAsTheyWere) {
  TrainingJob job = resnet();
  job.software = "abacus";
  analysis::Analysis analysis(job);
  auto facts = facts_of(analysis);
  ASSERT_TRUE(testing::succeeds(facts));
  const auto added = add_replay(*facts, reader_of({"replay.reserved"}), analysis, *find_profile("a100-40gb"));
  EXPECT_TRUE(testing::fails(added, core::ErrorCode::invalid_argument, 0, "abacus"));
  EXPECT_FALSE(facts->replay);
}

TEST(ReplayFigures, ATreeGetsItsEdgesFirst) {
  TrainingJob job(*read_summary(kModels + "trees/bert-base-uncased.txt"), 4);
  job.sequence_length = 16;
  analysis::Analysis analysis(job);
  const auto facts = facts_of(analysis);
  ASSERT_TRUE(testing::succeeds(facts));
  EXPECT_EQ((*analysis.wired())->edges(), "architecture: bert, 12 heads, as published models of this width have");
  EXPECT_EQ(facts->kind, NetKind::transformer);
}

}  // namespace
}  // namespace gpumem::ml
