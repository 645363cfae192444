// What a model's repeated blocks share (attributes, shapes, calls on the tape), against the long way: a graph in which
// every layer has an attribute of its own, so that nothing is taken from another layer. Every event must be the same.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "expect.hpp"
#include "golden.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/connect/connect.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "graphs.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

/// The same layers, no two of which have the same attributes. No op has one of this name.
Result<ModelGraph> apart(const ModelGraph& graph) {
  const auto layers = graph.layers();
  const connect::WiredGraph source({.graph = std::make_shared<const ModelGraph>(graph),
                                    .edges = "given",
                                    .ops = {},
                                    .shapes = {{}, {}, std::vector<bool>(layers.size(), false), {}}});
  connect::GraphCopy copy(source, ops::catalogue(), connect::CopiedShapes::inferred);
  for (std::size_t at = 0; at < layers.size(); ++at) {
    const auto all = graph.attributes(layers[at]).all();
    connect::ChangedLayer alone = {{all.begin(), all.end()}, layers[at].tied_parameters};
    alone.attributes.push_back({"own", static_cast<std::int64_t>(at)});
    (void)copy.copy({}, layers[at].frozen, alone);
  }
  auto made = std::move(copy).finish();
  if (!made) return made.error();
  return made->graph();
}

bool same(const plan::Event& left, const plan::Event& right) {
  return std::tie(left.bytes, left.slot, left.layer, left.call, left.kind, left.category, left.stream) ==
         std::tie(right.bytes, right.slot, right.layer, right.call, right.kind, right.category, right.stream);
}
bool same(const plan::LibraryCall& left, const plan::LibraryCall& right) {
  return std::tie(left.library, left.direction, left.backward_thread, left.convolution, left.batch_size) ==
         std::tie(right.library, right.direction, right.backward_thread, right.convolution, right.batch_size);
}
bool same(const plan::PhaseMark& left, const plan::PhaseMark& right) {
  return std::tie(left.first_event, left.phase, left.step, left.batch_size) ==
         std::tie(right.first_event, right.phase, right.step, right.batch_size);
}
template <typename T>
bool same(const std::vector<T>& left, const std::vector<T>& right) {
  return std::ranges::equal(left, right, [](const T& one, const T& other) { return same(one, other); });
}

/// Whether both are refused, with the same words, or make the same plan. Returns whether there is one.
bool expect_same_figures(const TrainingJob& job, const TrainingJob& long_way, const std::string& what) {
  analysis::Analysis left(job, ops::catalogue());
  analysis::Analysis right(long_way, ops::catalogue());
  const auto one = left.steps();
  const auto other = right.steps();
  EXPECT_EQ(one.has_value(), other.has_value()) << what;
  if (!one || !other) {
    if (!one && !other) {
      EXPECT_EQ(one.error().message, other.error().message) << what;
    }
    return false;
  }
  EXPECT_TRUE(same((*one)->events, (*other)->events)) << what;
  EXPECT_TRUE(same((*one)->calls, (*other)->calls)) << what;
  EXPECT_TRUE(same((*one)->phases, (*other)->phases)) << what;
  EXPECT_EQ((*one)->slots, (*other)->slots) << what;
  EXPECT_EQ((*one)->peak_bytes, (*other)->peak_bytes) << what;
  return true;
}

class DrawnFromName {
 public:
  explicit DrawnFromName(const std::string& name) : words_(name.begin(), name.end()), random_(words_) {}

  template <typename T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[random_() % all.size()];
  }

 private:
  std::seed_seq words_;
  std::mt19937 random_;
};

TrainingJob drawn_job(const ModelGraph& graph, DrawnFromName& draw) {
  TrainingJob job(graph, draw.one_of({1, 3}));
  if (graph.reads_tokens()) job.sequence_length = draw.one_of({32, 64});
  job.precision = draw.one_of({Precision::fp32, Precision::bf16, Precision::amp_bf16, Precision::bf16_mixed});
  job.optimizer = draw.one_of({Optimizer::adamw, Optimizer::sgd, Optimizer::adafactor});
  job.attention = draw.one_of({model::AttentionBackend::sdpa, model::AttentionBackend::flash});
  job.activation_checkpointing = draw.one_of({false, true});
  job.checkpoints.kind = draw.one_of({model::Checkpoints::full, model::Checkpoints::full,
                                      model::Checkpoints::selective_op, model::Checkpoints::every});
  if (job.checkpoints.kind == model::Checkpoints::every) job.checkpoints.count = 2;
  job.offload = draw.one_of({model::Offload::none, model::Offload::none, model::Offload::activations,
                             model::Offload::optimizer, model::Offload::parameters});
  job.compile = draw.one_of({false, false, true});
  job.gradient_accumulation = draw.one_of({1, 2, 4});
  if (draw.one_of({false, false, true})) job.lora = 4;
  job.layout.data_parallel = draw.one_of({1, 2, 8});
  if (job.layout.data_parallel > 1) {
    job.layout.sharding.kind =
        draw.one_of({model::Shardings::ddp, model::Shardings::fsdp1, model::Shardings::fsdp2, model::Shardings::zero_1,
                     model::Shardings::zero_2, model::Shardings::zero_3});
  }
  job.layout.tensor_parallel = draw.one_of({1, 1, 2});
  job.layout.sequence_parallel = job.layout.tensor_parallel > 1 && draw.one_of({false, true});
  job.layout.pipeline_parallel = draw.one_of({1, 1, 2});
  const bool last_stage = job.layout.pipeline_parallel > 1 && draw.one_of({false, true});
  job.layout.rank = {model::Ranks::one, last_stage ? job.layout.tensor_parallel * job.layout.data_parallel : 0};
  return job;
}

constexpr int kJobsAModel = 12;

/// How many of a model's jobs have a plan. What is drawn depends on the name alone.
int planned_jobs(const ModelGraph& graph, const std::string& name) {
  const auto long_way = apart(graph);
  if (!testing::succeeds(long_way)) {
    ADD_FAILURE() << name;
    return 0;
  }
  DrawnFromName draw(name);
  int planned = 0;
  for (int number = 0; number < kJobsAModel; ++number) {
    const TrainingJob job = drawn_job(graph, draw);
    TrainingJob alone = job;
    alone.graph = std::make_shared<const ModelGraph>(*long_way);
    planned += expect_same_figures(job, alone, name + ", job " + std::to_string(number));
  }
  return planned;
}

TEST(RepeatedLayers, ArePlannedAsEachByItself) {
  int planned = 0;
  int models = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(GPUMEM_GOLDEN_DIR) / "architectures")) {
    if (entry.path().extension() != ".json") continue;
    const auto golden = nlohmann::json::parse(testing::text_of(entry.path()));
    const auto graph = parse_summary(golden["config"].dump());
    if (!graph) continue;  // of another format (diffusers)
    ++models;
    planned += planned_jobs(*graph, entry.path().stem().string());
  }
  EXPECT_GT(models, 60);
  EXPECT_GT(planned, models * kJobsAModel / 4) << "most jobs were refused";
}

TEST(RepeatedLayers, WithConvolutionsAndRecurrencesToo) {
  const fs::path shipped = fs::path(GPUMEM_SOURCE_DIR) / "models" / "graphs";
  for (const fs::path& path : {shipped / "resnet50.json", shipped / "inception_v3.json",
                               fs::path(GPUMEM_GOLDEN_DIR) / "fake_tensor" / "graphs" / "lstm.json"}) {
    const auto graph = read_summary(path.string());
    ASSERT_TRUE(testing::succeeds(graph)) << path;
    EXPECT_GT(planned_jobs(*graph, path.stem().string()), 0) << path;
  }
}

TEST(RepeatedLayers, ShareTheirAttributesAndShapes) {
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/examples/configs/llama3_8b/config.json");
  ASSERT_TRUE(testing::succeeds(graph));
  const auto first_of = [](const ModelGraph& of, std::string_view name) {
    std::vector<const model::Attribute*> all;
    for (const model::Layer& layer : of.layers()) {
      if (of.name(layer) == name) all.push_back(of.attributes(layer).all().data());
    }
    return all;
  };
  const auto shared = first_of(*graph, "down_proj");
  ASSERT_EQ(shared.size(), 32U);
  EXPECT_EQ(std::ranges::count(shared, shared[0]), 32);
  TrainingJob job(*graph, 1);
  job.sequence_length = 128;
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  const core::Shape* known = nullptr;
  for (std::size_t at = 0; at < wired->graph().layers().size(); ++at) {
    if (wired->graph().name(wired->graph().layers()[at]) != "down_proj") continue;
    if (known == nullptr) known = wired->outputs(at).data();
    EXPECT_EQ(wired->outputs(at).data(), known);
  }
  ASSERT_NE(known, nullptr);
  const auto alone = apart(*graph);
  ASSERT_TRUE(testing::succeeds(alone));
  const auto each = first_of(*alone, "down_proj");
  EXPECT_EQ(std::ranges::count(each, each[0]), 1);
}

}  // namespace
}  // namespace gpumem
