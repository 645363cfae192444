#include "gpumem/connect/connect.hpp"

#include "graphs.hpp"

namespace gpumem::connect {
namespace {

using core::ErrorCode;
using testing::succeeds;

MemoryEstimate replayed(const std::string& file, std::vector<std::int64_t> input) {
  auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/" + file);
  EXPECT_TRUE(succeeds(graph)) << file;
  TrainingJob job(*std::move(graph), 32);
  job.input_shape = std::move(input);
  const auto estimate = (*make_estimator("replay"))->estimate(job, *find_profile("a100-40gb"));
  EXPECT_TRUE(succeeds(estimate)) << file;
  return estimate ? *estimate : MemoryEstimate{};
}

// Its table was printed in evaluation, where the second classifier is not called.
TEST(Connect, ATableGivesTheEstimateOfItsModelsGraph) {
  const auto table = replayed("summaries/inception_v3.torchinfo.txt", {3, 299, 299});
  const auto graph = replayed("graphs/inception_v3.json", {3, 299, 299});
  const double ratio = static_cast<double>(table.expected.count()) / static_cast<double>(graph.expected.count());
  EXPECT_NEAR(ratio, 1.0, 0.01);
  EXPECT_EQ(table.coverage.edges, "chained, 15 joins inferred");
  EXPECT_EQ(graph.coverage.edges, "given");
}

TEST(Connect, FindsTheInputInTheFirstLayerAndTheFoot) {
  const auto told = replayed("summaries/resnet50.torchsummary.txt", {});
  EXPECT_EQ(told.coverage.edges, "chained, 16 joins inferred, input 3x224x224 inferred");
  EXPECT_EQ(told.expected, replayed("summaries/resnet50.torchsummary.txt", {3, 224, 224}).expected);
  EXPECT_EQ(replayed("summaries/resnet50.torchinfo.txt", {}).expected, told.expected);
}

core::Result<WiredGraph> connected(std::string_view summary, std::vector<std::int64_t> input, bool strict = false) {
  auto graph = parse_summary(summary);
  if (!graph) return graph.error();
  TrainingJob job(*std::move(graph), 2);
  job.input_shape = std::move(input);
  job.strict = strict;
  return connect(job, ops::catalogue());
}

constexpr std::string_view kTable = R"(----------------------------------------------------------------
        Layer (type)               Output Shape         Param #
================================================================
            Conv2d-1            [-1, 8, 16, 16]             216
            Conv2d-2            [-1, 4, 16, 16]              71
================================================================
Total params: 287
)";

TEST(Connect, AConvolutionThatContradictsItsPredecessorIsAGuessThatSaysSo) {
  const auto guessed = connected(kTable, {3, 16, 16});
  ASSERT_TRUE(succeeds(guessed));
  EXPECT_EQ(guessed->guesses().edges, 1);
  ASSERT_EQ(guessed->graph().warnings().size(), 1U);
  EXPECT_EQ(guessed->graph().warnings()[0].place.line, 5);
  EXPECT_EQ(guessed->graph().parameters(), 287);
  EXPECT_NE(guessed->edges().find("1 layer's input guessed"), std::string::npos);
}

TEST(Connect, StrictlyAConvolutionThatContradictsItsPredecessorIsAnError) {
  const auto refused = connected(kTable, {3, 32, 32}, true);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::missing_information);
  EXPECT_EQ(refused.error().place.element, "Conv2d-2");
}

/// Ops of experts whose weights are one tensor, and whether experts are modules, in a job of this model.
std::pair<bool, bool> experts_of(std::string_view config, model::Transformers release,
                                 std::optional<std::int64_t> images) {
  auto graph = parse_summary(config);
  EXPECT_TRUE(succeeds(graph));
  if (!graph) return {};
  TrainingJob job(*std::move(graph), 1);
  job.sequence_length = 512;
  job.transformers = release;
  job.images = images;
  if (images != 0) job.image = {256, 256};
  const auto made = connect(job, ops::catalogue());
  EXPECT_TRUE(succeeds(made));
  if (!made) return {};
  const model::ModelGraph& read = made->graph();
  const bool one = std::ranges::find(read.ops(), "grouped_product") != read.ops().end();
  return {one, read.lists_experts()};
}

/// A mixture of `type` that reads images, in the text model of these fields.
std::string seeing(std::string_view type, std::string_view text, std::string_view tower = "") {
  return R"({"model_type": ")" + std::string(type) + R"(", "text_config": {"hidden_size": 64, "intermediate_size": 96,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100,
      "moe_intermediate_size": 32, "num_experts_per_tok": 2, )" +
         std::string(text) + R"(}, "vision_config": {"depth": 1, "hidden_size": 32, "num_heads": 2,
      "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48, "out_hidden_size": 64)" +
         std::string(tower) + "}}";
}

TEST(Connect, ExpertsOfModelsThatReadImagesAreOneTensorWithTransformers5Too) {
  using Release = model::Transformers;
  const std::pair<bool, bool> fused = {true, false};
  const std::pair<bool, bool> modules = {false, true};
  const std::string qwen = R"("model_type": "qwen3_vl_moe_text", "num_experts": 4)";
  const std::string glm = R"("model_type": "glm4v_moe_text", "n_routed_experts": 4)";
  const std::string kimi = R"("model_type": "deepseek_v3", "n_routed_experts": 4, "kv_lora_rank": 32,
      "q_lora_rank": null, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16, "first_k_dense_replace": 0,
      "n_group": 1, "topk_group": 1, "n_shared_experts": 1)";
  for (const std::optional<std::int64_t> images : {std::optional<std::int64_t>(), {2}, {0}}) {
    for (const std::string& config :
         {seeing("qwen3_vl_moe", qwen, R"(, "deepstack_visual_indexes": [0])"), seeing("glm4v_moe", glm)}) {
      EXPECT_EQ(experts_of(config, Release::v5_0, images), fused) << config;
      EXPECT_EQ(experts_of(config, Release::v4_56, images), modules) << config;
    }
    EXPECT_EQ(experts_of(seeing("kimi_vl", kimi), Release::v5_0, images), modules) << "code of its own";
    EXPECT_EQ(experts_of(seeing("kimi_k25", kimi), Release::v5_5, images), fused);
  }
}

TEST(Connect, AnExplicitGraphIsLeftAsItIs) {
  auto graph = std::make_shared<const ModelGraph>(*parse_summary(testing::kSmallGraph));
  const auto same = connect(TrainingJob(graph, 2), ops::catalogue());
  ASSERT_TRUE(succeeds(same));
  EXPECT_EQ(same->shared_graph(), graph);
  EXPECT_EQ(same->edges(), "given");
}

TEST(Connect, StrictlyATreeWhoseBlockIsNotKnownIsAnError) {
  const auto refused = connected(R"(Net(
  (block): Unheard(
    (a): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
    (b): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  )
)
)",
                                 {3, 8, 8}, true);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().place.element, "block.b");
}

TEST(Connect, MarksOfContainersAreKept) {
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt");
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->block_marks().size(), 16U);
  const model::BlockMark& first = graph->block_marks().front();
  EXPECT_EQ(graph->class_name(first), "Bottleneck");
  EXPECT_EQ(graph->name(graph->layers()[first.layers - 1]), "ReLU-15");
  EXPECT_EQ(core::to_string(first.output), "[N, 256, 56, 56]");
}

}  // namespace
}  // namespace gpumem::connect
