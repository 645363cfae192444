#include "random_jobs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "expect.hpp"
#include "gpumem/estimate/replay.hpp"
#include "gpumem/summary/graph_json.hpp"

namespace gpumem::train {
namespace {

using ml::NetKind;
using testing::fails;
using testing::succeeds;

constexpr std::uint64_t kJobs = 1000;

RandomJob job_at(const RandomJobs& jobs, std::uint64_t index) {
  auto made = jobs.at(index);
  EXPECT_TRUE(succeeds(made));
  return made ? *std::move(made) : RandomJob{};
}

/// What follows "_KEY-" in a job's name, up to the next '_'.
std::string setting(const RandomJob& made, const std::string& key) {
  const std::string mark = "_" + key + "-";
  const std::size_t at = made.name.find(mark);
  if (at == std::string::npos) return "";
  const std::size_t from = at + mark.size();
  return made.name.substr(from, made.name.find('_', from) - from);
}

/// The settings of the first jobs of a kind.
class Drawn {
 public:
  explicit Drawn(NetKind kind) {
    const RandomJobs jobs({kind, 5});
    for (std::uint64_t index = 0; index < kJobs; ++index) all_.push_back(job_at(jobs, index));
  }

  [[nodiscard]] const std::vector<RandomJob>& all() const { return all_; }

  [[nodiscard]] std::set<std::string> values(const std::string& key) const {
    std::set<std::string> met;
    for (const RandomJob& made : all_) met.insert(setting(made, key));
    return met;
  }

  /// Whether all lie in this range, and some near its ends.
  void expect_range(const std::string& key, std::int64_t low, std::int64_t high) const {
    std::set<std::int64_t> met;
    for (const RandomJob& made : all_) met.insert(std::stoll(setting(made, key)));
    EXPECT_GE(*met.begin(), low) << key;
    EXPECT_LE(*met.rbegin(), high) << key;
    EXPECT_LE(*met.begin(), low + (high - low) / 20) << key;
    EXPECT_GE(*met.rbegin(), high - (high - low) / 20) << key;
  }

 private:
  std::vector<RandomJob> all_;
};

std::int64_t count(const model::ModelGraph& graph, std::string_view op) {
  return std::count_if(graph.layers().begin(), graph.layers().end(),
                       [&](const model::Layer& layer) { return graph.op(layer) == op; });
}

const device::GpuProfile& a100() {
  static const device::GpuProfile kGpu = *device::find_profile("a100-40gb");
  return kGpu;
}

void expect_all_replay(const Drawn& drawn) {
  const estimate::Replay replay;
  for (const RandomJob& made : drawn.all()) {
    const auto estimate = replay.estimate(made.job, a100());
    ASSERT_TRUE(succeeds(estimate)) << made.name;
    EXPECT_EQ(estimate->coverage.layers_unknown, 0) << made.name;
    EXPECT_FALSE(estimate->coverage.edges_inferred) << made.name;
  }
}

TEST(RandomJobs, AreTheSameOnEveryPlatform) {
  const auto seen = [](NetKind kind, std::uint64_t index) {
    const RandomJob made = job_at(RandomJobs({kind, 1}), index);
    return made.name + ": " + std::to_string(made.job.graph->parameters());
  };
  EXPECT_EQ(seen(NetKind::mlp, 0),
            "mlp-0_input-2547_output-7_depth-4_arch-bottleneck_batch-549_act-gelu_dropout-0.23_batchnorm-yes: 4325285");
  EXPECT_EQ(
      seen(NetKind::mlp, 123456789),
      "mlp-123456789_input-11_output-9_depth-11_arch-uniform_batch-89_act-prelu_dropout-0.25_batchnorm-yes: 1813");
  EXPECT_EQ(seen(NetKind::cnn, 0),
            "cnn-0_channels-3_classes-30_depth-11_arch-residual_filters-140_kernel-5_batch-4_size-142_act-silu_dropout-"
            "0.40_batchnorm-no: 14400592");
  EXPECT_EQ(seen(NetKind::cnn, 3),
            "cnn-3_channels-3_classes-15121_depth-9_arch-uniform_filters-117_kernel-3_batch-58_size-120_act-leaky_relu_"
            "dropout-no_batchnorm-no: 2774098");
  EXPECT_EQ(seen(NetKind::transformer, 0),
            "transformer-0_classes-535_embedding-192_layers-19_heads-4_ff-442_proj-qkv_act-relu_dropout-no_seq-256_"
            "vocab-640345_batch-1: 129166373");
  EXPECT_EQ(seen(NetKind::transformer, 1),
            "transformer-1_classes-207_embedding-1152_layers-17_heads-4_ff-4593_proj-packed_act-relu_dropout-no_seq-"
            "128_vocab-414520_batch-56: 748309200");
  EXPECT_EQ(seen(NetKind::any, 2),
            "cnn-2_channels-3_classes-522_depth-15_arch-dense_filters-206_kernel-3_batch-6_size-172_act-softplus_"
            "dropout-no_batchnorm-no_pooling-4: 643608");
}

TEST(RandomJobs, DoNotDependOnWhatWasDrawnBefore) {
  RandomJobs jobs({NetKind::any, 9});
  for (std::uint64_t index = 0; index < 20; ++index) {
    const auto next = jobs.next();
    ASSERT_TRUE(succeeds(next));
    const RandomJob alone = job_at(RandomJobs({NetKind::any, 9}), index);
    EXPECT_EQ(next->name, alone.name);
    EXPECT_EQ(summary::to_graph_json(*next->job.graph), summary::to_graph_json(*alone.job.graph));
  }
  EXPECT_NE(job_at(RandomJobs({NetKind::mlp, 9}), 0).name, job_at(RandomJobs({NetKind::mlp, 10}), 0).name);
  EXPECT_NE(jobs.at(0, 0)->name, jobs.at(0, 1)->name);
}

TEST(RandomJobs, MlpsKeepTheRanges) {
  const Drawn drawn(NetKind::mlp);
  drawn.expect_range("input", 4, 4096);
  drawn.expect_range("output", 1, 1024);
  drawn.expect_range("batch", 4, 1024);
  EXPECT_EQ(drawn.values("arch"), (std::set<std::string>{"bottleneck", "gradual", "pyramid", "uniform"}));
  EXPECT_EQ(drawn.values("act").size(), 11U);
  EXPECT_EQ(drawn.values("batchnorm"), (std::set<std::string>{"no", "yes"}));
  EXPECT_EQ(*drawn.values("dropout").begin(), "0.10");
  EXPECT_EQ(*drawn.values("dropout").rbegin(), "no");
  std::set<std::int64_t> linear;
  std::set<std::int64_t> norms;
  for (const RandomJob& made : drawn.all()) {
    EXPECT_EQ(made.kind, NetKind::mlp);
    linear.insert(count(*made.job.graph, "linear"));
    norms.insert(count(*made.job.graph, "batch_norm"));
    EXPECT_EQ(made.job.loss == model::Loss::bce_with_logits, setting(made, "output") == "1");
  }
  EXPECT_EQ(*linear.begin(), 2);
  EXPECT_EQ(*linear.rbegin(), 12);
  EXPECT_EQ(*norms.begin(), 0);
  EXPECT_EQ(*norms.rbegin(), 11);
  expect_all_replay(drawn);
}

TEST(RandomJobs, CnnsKeepTheRanges) {
  const Drawn drawn(NetKind::cnn);
  drawn.expect_range("classes", 2, 22000);
  drawn.expect_range("depth", 1, 29);
  drawn.expect_range("filters", 16, 512);
  drawn.expect_range("batch", 2, 62);
  drawn.expect_range("size", 8, 224);
  EXPECT_EQ(drawn.values("channels"), (std::set<std::string>{"1", "3"}));
  EXPECT_EQ(drawn.values("kernel"), (std::set<std::string>{"3", "5", "7"}));
  EXPECT_EQ(drawn.values("arch"),
            (std::set<std::string>{"bottleneck", "dense", "gradual", "hourglass", "pyramid", "residual", "uniform"}));
  EXPECT_EQ(drawn.values("act").size(), 10U);
  for (const RandomJob& made : drawn.all()) EXPECT_GE(count(*made.job.graph, "conv2d"), 1) << made.name;
  expect_all_replay(drawn);
}

TEST(RandomJobs, TransformersKeepTheRanges) {
  const Drawn drawn(NetKind::transformer);
  drawn.expect_range("vocab", 50000, 1000000);
  drawn.expect_range("embedding", 128, 2048);
  drawn.expect_range("batch", 1, 128);
  drawn.expect_range("classes", 2, 1000);
  EXPECT_EQ(drawn.values("heads"), (std::set<std::string>{"12", "16", "2", "4", "8"}));
  EXPECT_EQ(drawn.values("seq"), (std::set<std::string>{"1024", "128", "256", "512"}));
  EXPECT_EQ(drawn.values("act"), (std::set<std::string>{"gelu", "relu"}));
  EXPECT_EQ(drawn.values("proj"), (std::set<std::string>{"packed", "qkv"}));
  std::set<std::int64_t> linear;
  for (const RandomJob& made : drawn.all()) {
    const std::int64_t ratio = 100 * std::stoll(setting(made, "ff")) / std::stoll(setting(made, "embedding"));
    EXPECT_TRUE(ratio >= 200 && ratio <= 400) << made.name;
    linear.insert(count(*made.job.graph, "linear") + count(*made.job.graph, "multihead_attention"));
    EXPECT_EQ(made.job.sequence_length, std::stoll(setting(made, "seq")));
  }
  EXPECT_EQ(*linear.begin(), 9);
  EXPECT_EQ(*linear.rbegin(), 157);
  expect_all_replay(drawn);
}

TEST(RandomJobs, AreTrainedAsThePublishedRuns) {
  for (const NetKind kind : {NetKind::mlp, NetKind::cnn, NetKind::transformer}) {
    const RandomJob made = job_at(RandomJobs({kind, 1, false, "eager-loading"}), 0);
    EXPECT_EQ(made.job.optimizer, model::Optimizer::adam);
    EXPECT_EQ(made.job.precision, model::Precision::fp32);
    EXPECT_EQ(made.job.summary_pass, kind != NetKind::transformer);
    EXPECT_TRUE(made.job.samples_per_epoch.has_value());
    EXPECT_EQ(made.job.software, "eager-loading");
  }
}

TEST(RandomJobs, TrainingVariesOnRequest) {
  const RandomJobs jobs({NetKind::any, 4, true});
  std::set<model::Optimizer> optimizers;
  std::set<model::Precision> precisions;
  std::set<NetKind> kinds;
  const estimate::Replay replay;
  for (std::uint64_t index = 0; index < 200; ++index) {
    const RandomJob made = job_at(jobs, index);
    optimizers.insert(made.job.optimizer);
    precisions.insert(made.job.precision);
    kinds.insert(made.kind);
    EXPECT_EQ(setting(made, "optimizer"), model::name_of(model::kOptimizers, made.job.optimizer));
    EXPECT_EQ(setting(made, "precision"), model::name_of(model::kPrecisions, made.job.precision));
    EXPECT_TRUE(succeeds(replay.estimate(made.job, a100()))) << made.name;
  }
  EXPECT_EQ(optimizers.size(), 9U) << "a seed gives the same jobs, whatever optimizers come to the list";
  EXPECT_EQ(precisions.size(), 5U);
  EXPECT_EQ(kinds.size(), 3U);
}

TEST(RandomJobs, NamesAreFitForFiles) {
  const RandomJobs jobs({NetKind::any, 6, true});
  std::set<std::string> names;
  for (std::uint64_t index = 0; index < kJobs; ++index) {
    const std::string name = job_at(jobs, index).name;
    EXPECT_LT(name.size() + 5, 255U);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_."), std::string::npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

}  // namespace
}  // namespace gpumem::train
