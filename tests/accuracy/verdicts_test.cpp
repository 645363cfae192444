#include "verdicts.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "estimated_jobs.hpp"
#include "own_path.hpp"
#include "report.hpp"
#include "scatter.hpp"

namespace gpumem::accuracy {
namespace {

const std::string kVerdictTables = GPUMEM_GOLDEN_DIR "/accuracy/";

Data data_of(const std::vector<TableFile>& tables) {
  auto data = read_data(tables, {});
  EXPECT_TRUE(data) << core::to_string(data.error());
  return *std::move(data);
}

const Verdict& verdict_of(const SetVerdicts& verdicts, std::string_view estimator, bool published = false) {
  for (const Verdict& verdict : verdicts.verdicts) {
    if (verdict.estimator == estimator && verdict.published == published) return verdict;
  }
  ADD_FAILURE() << estimator;
  return verdicts.verdicts.front();
}

TEST(DataSets, KnowWhoseRunsTheyHold) {
  const Data data =
      data_of({{kVerdictTables + "runs.csv"}, {kVerdictTables + "mlp.csv"}, {kVerdictTables + "runs.csv", "t4-16gb"}});
  ASSERT_EQ(data.sets.size(), 3U);
  EXPECT_EQ(data.sets[0].name, "accuracy/runs.csv");
  EXPECT_EQ(data.sets[0].source, "");
  EXPECT_EQ(data.sets[0].kind, ml::NetKind::cnn);
  EXPECT_EQ(data.sets[0].figure, datasets::Figure::device);
  EXPECT_EQ(data.sets[0].gpus, (std::vector<std::string>{"a100-40gb", "l4-24gb", "t4-16gb"}));
  EXPECT_EQ(data.sets[0].runs.size(), 6U);
  EXPECT_EQ(data.sets[0].several_gpus, 1);
  EXPECT_EQ(data.sets[0].without_measurement, 1);
  EXPECT_EQ(data.sets[0].known, nullptr);
  EXPECT_EQ(data.sets[1].source, "gpumemnet");
  EXPECT_EQ(data.sets[1].kind, ml::NetKind::mlp);
  ASSERT_NE(data.sets[1].known, nullptr);
  EXPECT_EQ(data.sets[1].known->what, "MLPs of GPUMemNet's set");
  EXPECT_EQ(data.sets[2].source, "bench/measured/t4-16gb");
}

TEST(DataSets, PartATableThatHasManyNetsOfSeveralKinds) {
  const std::string path = testing::own_path("several_kinds.csv").string();
  std::ofstream file(path);
  file << "summary,batch_size,input,seq_length,optimizer,precision,gpu,measured_mib\n";
  for (int run = 0; run < 20; ++run) {
    file << GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt,8,,,adam,fp32,a100-40gb,3000\n"
         << GPUMEM_SOURCE_DIR "/models/graphs/bert_like.json,8,,,adam,fp32,a100-40gb,3000\n";
  }
  file.close();
  const Data data = data_of({{path}});
  std::filesystem::remove(path);
  ASSERT_EQ(data.sets.size(), 2U);
  EXPECT_TRUE(data.sets[0].name.ends_with("several_kinds.csv, CNNs")) << data.sets[0].name;
  EXPECT_TRUE(data.sets[1].name.ends_with("several_kinds.csv, Transformers")) << data.sets[1].name;
  EXPECT_EQ(data.sets[0].runs.size(), 20U);
  EXPECT_EQ(data.sets[1].runs.size(), 20U);
}

TEST(DataSets, AreFoundByTheirColumns) {
  const std::vector<std::string> tables = tables_below(GPUMEM_GOLDEN_DIR "/accuracy");
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_TRUE(tables[0].ends_with("accuracy/mlp.csv"));
  EXPECT_TRUE(tables_below(GPUMEM_GOLDEN_DIR "/no such folder").empty());
}

TEST(Judge, TakesOursAndWhatTheTableCites) {
  const Data data = data_of({{kVerdictTables + "runs.csv"}});
  Session session;
  const auto estimators = session.estimators({.estimator = "horus"});
  ASSERT_TRUE(estimators);
  const std::vector<SetVerdicts> all = judge(data, *estimators, 2);
  ASSERT_EQ(all.size(), 1U);
  ASSERT_EQ(all[0].verdicts.size(), 3U);
  const Verdict& ours = verdict_of(all[0], "horus");
  EXPECT_EQ(ours.accuracy.fitted, 4);
  EXPECT_EQ(ours.accuracy.out_of_memory, 1);
  EXPECT_EQ(ours.failed, 1);
  EXPECT_NE(ours.first_failure.find("missing.txt"), std::string::npos) << ours.first_failure;
  const Verdict& cited = verdict_of(all[0], "horus", true);
  EXPECT_EQ(cited.accuracy.fitted, 3);
  EXPECT_EQ(cited.accuracy.false_alarms, 1);  // 50,000 MiB on a T4
  EXPECT_EQ(cited.failed, 3);
  const Verdict& other = verdict_of(all[0], "other", true);
  EXPECT_EQ(other.accuracy.fitted, 2);
  EXPECT_EQ(other.accuracy.caught, 0);  // 40,000 MiB fit into an A100 of 40 GB
  EXPECT_DOUBLE_EQ(other.accuracy.relative_error.mean, (1.0 / 7.0 + 1.0 / 12.0) / 2.0);
  EXPECT_DOUBLE_EQ(other.at_expected.failure, 2.0 / 3.0);
}

TEST(Judge, AnEstimatorThatTellsNoReservedMemoryIsComparedByAllThatItExpects) {
  const std::string path = testing::own_path("reserved.csv").string();
  std::ofstream(path) << "summary,batch_size,input,seq_length,optimizer,precision,gpu,measured_mib,figure\n"
                      << GPUMEM_SOURCE_DIR
      "/models/summaries/resnet50.torchsummary.txt,32,,,adam,fp32,a100-40gb,3500,reserved\n";
  const Data data = data_of({{path}});
  std::filesystem::remove(path);
  Session session;
  const auto estimators = session.estimators({.estimator = "all"});
  ASSERT_TRUE(estimators);
  const std::vector<SetVerdicts> all = judge(data, *estimators, 1);
  EXPECT_FALSE(verdict_of(all[0], "replay").whole);
  EXPECT_TRUE(verdict_of(all[0], "horus").whole);
  EXPECT_EQ(verdict_of(all[0], "horus").accuracy.fitted, 1);
  // The context is no part of the figure, but of what is set aside.
  EXPECT_DOUBLE_EQ(verdict_of(all[0], "replay").judged.at(0).beside_mib, 550.0);
}

TEST(Judge, SaysTheSameWithAnyNumberOfThreads) {
  const Data data = data_of({{kVerdictTables + "runs.csv"}, {kVerdictTables + "mlp.csv"}});
  Session session;
  const auto estimators = session.estimators({.estimator = "all"});
  ASSERT_TRUE(estimators);
  const std::vector<SetVerdicts> one = judge(data, *estimators, 1);
  const std::vector<SetVerdicts> four = judge(data, *estimators, 4);
  EXPECT_EQ(report_of(data, one, {}), report_of(data, four, {}));
  EXPECT_EQ(scatter_of(one), scatter_of(four));
}

TEST(Judge, KnowsWhichModelsWereTrainedOnTheRuns) {
  const Data data = data_of({{kVerdictTables + "runs.csv"}, {kVerdictTables + "mlp.csv"}});
  Session session;
  const auto estimators = session.estimators({.estimator = "gpumemnet-mlp"});
  ASSERT_TRUE(estimators);
  const std::vector<SetVerdicts> all = judge(data, *estimators, 1);
  EXPECT_EQ(all[0].verdicts[0].models, std::vector<std::string>{"gpumemnet-mlp-cnn"});
  EXPECT_TRUE(all[0].verdicts[0].trained_on_it.empty());
  EXPECT_EQ(all[1].verdicts[0].trained_on_it, std::vector<std::string>{"gpumemnet-mlp-mlp"});
}

TEST(IsTrainedOn, ReadsTheProvenance) {
  DataSet set;
  set.source = "gpumemnet";
  set.kind = ml::NetKind::cnn;
  ml::ModelConfig model;
  model.nets = ml::NetKind::cnn;
  EXPECT_TRUE(is_trained_on(model, set));  // it says nothing of its data
  model.provenance = {{"data", "runs of our cluster"}};
  EXPECT_FALSE(is_trained_on(model, set));
  model.provenance.emplace_back("attribution", "GPUMemNet, itu-rad/GPUMemNet");
  EXPECT_TRUE(is_trained_on(model, set));
  model.nets = ml::NetKind::mlp;
  EXPECT_FALSE(is_trained_on(model, set));
  model.nets = ml::NetKind::any;
  EXPECT_TRUE(is_trained_on(model, set));
  set.source.clear();
  EXPECT_FALSE(is_trained_on(model, set));
}

}  // namespace
}  // namespace gpumem::accuracy
