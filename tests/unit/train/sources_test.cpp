#include "../../../src/train/sources.hpp"

#include "../../../src/train/featurise.hpp"
#include "gpumem/all.hpp"
#include "gpumem_datasets/runs_format.hpp"
#include "small_recipes.hpp"

namespace gpumem::train {
namespace {

using testing::fails;
using testing::recipe_of;
using testing::succeeds;

datasets::MeasuredRuns runs_of(const std::string& text) {
  auto runs = datasets::parse_runs(text, {.vocabulary = &ops::vocabulary()}, "runs.csv");
  EXPECT_TRUE(succeeds(runs));
  return runs ? *std::move(runs) : datasets::MeasuredRuns();
}

class Sources : public ::testing::Test {
 protected:
  [[nodiscard]] Labelling labelling(const Recipe& recipe) const {
    const auto featurise = featurise_of(recipe.model, *gpu_);
    EXPECT_TRUE(succeeds(featurise));
    const auto targets = targets_of(recipe.model.head.names, {});
    EXPECT_TRUE(succeeds(targets));
    return {&recipe.model, *featurise, *targets};
  }

  core::Result<device::GpuProfile> gpu_ = device::find_profile("a100-40gb");
};

TEST_F(Sources, RowsOfRunsAreGroupedByNet) {
  const Recipe recipe = recipe_of(testing::sequence_recipe());
  const Source source = rows_of(runs_of(testing::mlp_runs()), "runs.csv", labelling(recipe));
  ASSERT_EQ(source.rows.size(), 12U);
  for (std::size_t row = 0; row < 12; row += 2) {
    EXPECT_EQ(source.rows[row].group, source.rows[row + 1].group);
    EXPECT_NE(source.rows[row].group, source.rows[(row + 2) % 12].group);
  }
  EXPECT_EQ(source.rows[3].measured_mib, 70.0);
  EXPECT_EQ(source.rows[3].source, "runs.csv");
  EXPECT_EQ(source.rows[3].sequence.size(), 3U);
  EXPECT_TRUE(succeeds(validate({source.rows}, recipe.model)));
}

TEST_F(Sources, RunsThatTellNothingAreCounted) {
  const Recipe bins = recipe_of(testing::bins_recipe());
  datasets::MeasuredRuns runs = runs_of(testing::mlp_runs());
  runs.runs[0].gpus = 2;
  runs.runs[1].measured_mib.reset();
  runs.runs[2].out_of_memory = true;
  runs.runs[3].error = core::Error{core::ErrorCode::malformed_input, "is broken", {}};
  const Source source = rows_of(runs, "runs.csv", labelling(bins));
  EXPECT_EQ(source.rows.size(), 9U);
  EXPECT_EQ(source.several_gpus, 1);
  EXPECT_EQ(source.unmeasured, 1);
  EXPECT_EQ(source.failed, 1);
  ASSERT_TRUE(source.first_failure.has_value());
  EXPECT_EQ(source.first_failure->message, "is broken");
  EXPECT_TRUE(source.rows[0].out_of_memory);

  const Recipe values = recipe_of(testing::values_recipe());
  const Source measured = rows_of(runs, "runs.csv", labelling(values));
  EXPECT_EQ(measured.rows.size(), 8U);
  EXPECT_EQ(measured.out_of_memory, 1);
  EXPECT_EQ(measured.rows[0].targets, (std::vector<double>{90.0, 90.0}));

  Recipe of_cnns = bins;
  of_cnns.model.nets = ml::NetKind::cnn;
  EXPECT_EQ(rows_of(runs, "runs.csv", labelling(of_cnns)).other_nets, 9);
}

core::Result<Source> table_rows(const std::string& text, const ml::ModelConfig& model) {
  const auto table = core::parse_csv(text, "table.csv");
  EXPECT_TRUE(succeeds(table));
  return rows_of(*table, model);
}

TEST_F(Sources, TablesOfFeatures) {
  const ml::ModelConfig model = recipe_of(testing::sequence_recipe()).model;
  const std::string header = "name,group,measured_mib,out_of_memory,kept_mib,activation_sin,activation_cos,sequence\n";
  const auto source = table_rows(header + "one,x,12.5,no,1,-2.5,3e2,1 2;3 -4\ntwo,x,,yes,0,0,0,\n", model);
  ASSERT_TRUE(succeeds(source));
  ASSERT_EQ(source->rows.size(), 2U);
  EXPECT_EQ(source->rows[0].features, (std::vector<double>{1, -2.5, 300}));
  EXPECT_EQ(source->rows[0].sequence, (std::vector<std::vector<double>>{{1, 2}, {3, -4}}));
  EXPECT_EQ(source->rows[0].group, source->rows[1].group);
  EXPECT_TRUE(source->rows[1].out_of_memory);
  EXPECT_TRUE(fails(table_rows(header + "one,x,12.5,no,1,much,3,\n", model), core::ErrorCode::malformed_input, 2,
                    "activation_sin is 'much', not a number"));
  EXPECT_TRUE(fails(table_rows("name,group,measured_mib\n", model), core::ErrorCode::malformed_input, 1,
                    "lacks the column 'kept_mib'"));
  ml::ModelConfig mixture = model;
  mixture.head = {.names = {"rule"}, .spread = 0.01, .lower_share = 0.1, .upper_share = 0.9};
  EXPECT_TRUE(fails(table_rows(header, mixture), core::ErrorCode::invalid_argument, 1, "is trained on tables of runs"));
}

TEST(RandomSources, AreNamedByKindCountAndSeed) {
  const auto plain = parse_random_source("random:cnn:3000:7");
  ASSERT_TRUE(succeeds(plain));
  ASSERT_TRUE(plain->has_value());
  EXPECT_EQ((*plain)->kind, ml::NetKind::cnn);
  EXPECT_EQ((*plain)->count, 3000);
  EXPECT_EQ((*plain)->seed, 7U);
  EXPECT_EQ((*plain)->bin_mib, 0.0);
  EXPECT_EQ((**parse_random_source("random:any:1:0:8000")).bin_mib, 8000.0);
  EXPECT_FALSE(parse_random_source("runs.csv")->has_value());
  for (const char* wrong : {"random:", "random:cnn:5", "random:rnn:5:1", "random:cnn:0:1", "random:cnn:5:1:2:3",
                            "random:cnn:5:-1", "random:cnn:5:1:-2"}) {
    EXPECT_TRUE(fails(parse_random_source(wrong), core::ErrorCode::invalid_argument, 0, "random:KIND:COUNT:SEED"))
        << wrong;
  }
}

TEST(Targets, AreNamed) {
  const auto expected = [](const model::TrainingJob&) { return core::Result<double>(200.0); };
  const auto targets = targets_of({"mib", "log_mib_p50", "log_ratio_p95"}, expected);
  ASSERT_TRUE(succeeds(targets));
  datasets::MeasuredRun run;
  run.measured_mib = 400.0;
  const auto values = (*targets)(run);
  ASSERT_TRUE(succeeds(values));
  EXPECT_DOUBLE_EQ((*values)[0], 400.0);
  EXPECT_DOUBLE_EQ((*values)[1], std::log(400.0));
  EXPECT_DOUBLE_EQ((*values)[2], std::log(2.0));
  EXPECT_TRUE(fails(targets_of({"mib", "mib_px"}, expected), core::ErrorCode::invalid_argument, 0, "'mib_px'"));
}

TEST(Targets, MayBeCounters) {
  const auto targets = targets_of({"smact", "gract_p95"}, {});
  ASSERT_TRUE(succeeds(targets));
  datasets::MeasuredRun run;
  run.counters.smact = 0.25;
  EXPECT_FALSE(is_measured(run, {.names = {"smact", "gract"}})) << "one is missing";
  EXPECT_TRUE(std::isnan((*targets)(run)->back()));
  run.counters.gract = 0.5;
  EXPECT_TRUE(is_measured(run, {.names = {"smact", "gract"}})) << "memory need not be measured";
  EXPECT_EQ(*(*targets)(run), (std::vector<double>{0.25, 0.5}));
  EXPECT_TRUE(is_measured(run, {.edges_mib = {0.0, 1.0}, .of = "smact"}));
  EXPECT_FALSE(is_measured(run, {.edges_mib = {0.0, 1.0}}));
  EXPECT_EQ(counter_named("watts"), nullptr);
}

TEST_F(Sources, BinsMayBeOfACounter) {
  Recipe recipe = recipe_of(testing::bins_recipe());
  recipe.model.head.of = "smact";
  datasets::MeasuredRuns runs = runs_of(testing::mlp_runs());
  for (std::size_t run = 0; run < 3; ++run) runs.runs[run].counters.smact = 0.125 * static_cast<double>(run);
  runs.runs[2].out_of_memory = true;
  const Source source = rows_of(runs, "runs.csv", labelling(recipe));
  ASSERT_EQ(source.rows.size(), 2U);
  EXPECT_EQ(source.rows[1].measured_mib, 0.125);
  EXPECT_EQ(source.out_of_memory, 1);
  EXPECT_EQ(source.unmeasured, 9);
}

}  // namespace
}  // namespace gpumem::train
