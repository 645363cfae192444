// Trees of transformers 5, whose experts are one tensor each (experts/trees.json.gz, made by make_trees.py there).
// print(model) shows no size of these: those of published models answer, counts behind the modules do, others are
// refused.
#include <nlohmann/json.hpp>
#include <string>

#include "expect.hpp"
#include "golden.hpp"
#include "gpumem/all.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/file.hpp"

namespace gpumem {
namespace {

using nlohmann::json;

json trees() {
  constexpr std::size_t kMost = std::size_t{16} << 20U;
  const auto text =
      core::unpack_gzip(testing::text_of(std::string(GPUMEM_GOLDEN_DIR) + "/experts/trees.json.gz"), kMost);
  EXPECT_TRUE(testing::succeeds(text));
  return json::parse(*text);
}

std::string with(std::string text, const std::string& part, const std::string& instead) {
  std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  for (; at != std::string::npos; at = text.find(part, at + instead.size())) text.replace(at, part.size(), instead);
  return text;
}

/// What connecting makes of a tree.
Result<connect::WiredGraph> wired(const std::string& tree) {
  const auto graph = parse_summary(tree);
  if (!graph) return graph.error();
  TrainingJob job(*graph, 1);
  job.sequence_length = 64;
  analysis::Analysis analysis(job);
  const auto made = analysis.wired();
  if (!made) return made.error();
  return **made;
}

TEST(FusedExperts, OfPublishedSizesAreCounted) {
  const json all = trees();
  for (const auto& [type, each] : all.items()) {
    const auto made = wired(each["tree"].get<std::string>());
    ASSERT_TRUE(testing::succeeds(made)) << type;
    EXPECT_EQ(made->graph().parameters(), each["parameters"].get<std::int64_t>()) << type;
    EXPECT_TRUE(made->edges().starts_with("architecture: ")) << type << ' ' << made->edges();
    EXPECT_NE(made->edges().find("experts"), std::string::npos) << type << ' ' << made->edges();
  }
}

TEST(FusedExperts, OfOtherSizesAreRefused) {
  struct Fewer {
    const char* type;
    const char* layers;
    const char* instead;
  };
  const json all = trees();
  for (const Fewer& row :
       {Fewer{"mixtral", "(0-31): 32 x", "(0-30): 31 x"}, Fewer{"qwen3_moe", "(0-47): 48 x", "(0-46): 47 x"},
        Fewer{"deepseek_v3", "(3-60): 58 x", "(3-59): 57 x"}, Fewer{"granitemoe", "(0-23): 24 x", "(0-22): 23 x"}}) {
    const auto made = wired(with(all[row.type]["tree"].get<std::string>(), row.layers, row.instead));
    ASSERT_FALSE(made) << row.type;
    EXPECT_NE(made.error().message.find("config.json"), std::string::npos) << row.type << ' ' << made.error().message;
  }
}

/// Four experts 512 wide where Mixtral-8x7B has eight of 14,336.
TEST(FusedExperts, AreTheCountedOnesWhereTheTreeCounts) {
  const auto tree = trees()["mixtral"]["tree"].get<std::string>();
  const std::string router = with(tree, "MixtralTopKRouter()", "MixtralTopKRouter(), 16,384 params");
  const auto made = wired(with(router, "(act_fn): SiLUActivation()\n          )",
                               "(act_fn): SiLUActivation(), 0 params\n          ), 25,165,824 params"));
  ASSERT_TRUE(testing::succeeds(made));
  EXPECT_NE(made->edges().find("2 experts a token"), std::string::npos) << made->edges();
  EXPECT_EQ(made->edges().find("14336"), std::string::npos) << made->edges();
}

/// A tree with the parameters of what is in it: `router` and `experts` are modules without further ones.
std::string counted(std::string tree, const std::string& router, std::int64_t of_router, const std::string& experts,
                    std::int64_t of_experts) {
  tree = with(std::move(tree), router + "()", router + "(), " + core::with_separators(of_router) + " params");
  return with(std::move(tree), experts + "()", experts + "(), " + core::with_separators(of_experts) + " params");
}

constexpr std::int64_t kGptOssWidth = 2880;  // of its experts, too
constexpr std::int64_t kGptOssExperts = 128;
constexpr std::int64_t kGptOssRouter = kGptOssExperts * (kGptOssWidth + 1);
constexpr std::int64_t kGptOssHeld = kGptOssExperts * (3 * kGptOssWidth + 3) * kGptOssWidth;

/// A third of the layers of gpt-oss-120b, so no published model is as deep.
std::string counted_gpt_oss(std::int64_t router, std::int64_t held) {
  const auto tree = with(trees()["gpt_oss"]["tree"].get<std::string>(), "(0-35): 36 x", "(0-11): 12 x");
  return counted(tree, "GptOssTopKRouter", router, "GptOssExperts", held);
}

TEST(FusedExperts, HaveTheirBiasesInTheCount) {
  const auto made = wired(counted_gpt_oss(kGptOssRouter, kGptOssHeld));
  ASSERT_TRUE(testing::succeeds(made));
  EXPECT_NE(made->edges().find(", 4 experts a token"), std::string::npos) << made->edges();
  constexpr std::int64_t kVocabulary = 201'088;
  constexpr std::int64_t kAroundLayers = (2 * kVocabulary + 1) * kGptOssWidth;
  const auto published = trees()["gpt_oss"]["parameters"].get<std::int64_t>();
  EXPECT_EQ(made->graph().parameters(), kAroundLayers + (published - kAroundLayers) / 3);
}

TEST(FusedExperts, WhoseCountsAreNoSizesAreRefused) {
  struct Counts {
    std::int64_t router;
    std::int64_t held;
  };
  for (const Counts& row : {Counts{kGptOssRouter + 1, kGptOssHeld}, Counts{kGptOssRouter, kGptOssHeld + 1},
                            Counts{kGptOssRouter, kGptOssHeld + kGptOssExperts}, Counts{kGptOssRouter, 0},
                            Counts{0, kGptOssHeld}, Counts{kGptOssExperts * kGptOssWidth, kGptOssHeld}}) {
    const auto made = wired(counted_gpt_oss(row.router, row.held));
    ASSERT_FALSE(made) << row.router << ' ' << row.held << ' ' << made->edges();
    EXPECT_NE(made.error().message.find("num_local_experts"), std::string::npos) << made.error().message;
  }
}

/// Qwen1.5-MoE chooses 4 of 60 experts; Qwen2-57B, of the same type, 8 of 64.
TEST(FusedExperts, AreAsManyATokenAsThePublishedModelOfTheirSizesHas) {
  struct Sizes {
    std::int64_t experts;
    const char* chosen;
  };
  constexpr std::int64_t kWidth = 2048;
  constexpr std::int64_t kInner = 1408;
  for (const Sizes& row : {Sizes{60, ", 4 experts a token"}, Sizes{64, ", 8 experts a token"}}) {
    const std::string held = core::with_separators(row.experts * 3 * kInner * kWidth);
    const auto tree =
        with(trees()["qwen2_moe"]["tree"].get<std::string>(),
             "(experts): Qwen2MoeExperts(\n            (act_fn): SiLUActivation()\n          )",
             "(experts): Qwen2MoeExperts(\n            (act_fn): SiLUActivation(), 0 params\n          ), " + held +
                 " params");
    const auto made = wired(with(tree, "Qwen2MoeTopKRouter()",
                                 "Qwen2MoeTopKRouter(), " + core::with_separators(row.experts * kWidth) + " params"));
    ASSERT_TRUE(testing::succeeds(made)) << row.experts;
    EXPECT_NE(made->edges().find(row.chosen), std::string::npos) << made->edges();
  }
}

/// A small model whose experts no published model has: the router is a layer that shows how many they are.
std::string granite_hybrid(const std::string& input_linear, const std::string& output_linear) {
  return R"(GraniteMoeHybridForCausalLM(
  (model): GraniteMoeHybridModel(
    (embed_tokens): Embedding(1000, 256)
    (layers): ModuleList(
      (0-1): 2 x GraniteMoeHybridDecoderLayer(
        (self_attn): GraniteMoeHybridAttention(
          (q_proj): Linear(in_features=256, out_features=256, bias=False)
          (k_proj): Linear(in_features=256, out_features=128, bias=False)
          (v_proj): Linear(in_features=256, out_features=128, bias=False)
          (o_proj): Linear(in_features=256, out_features=256, bias=False)
        )
        (input_layernorm): GraniteMoeHybridRMSNorm((256,), eps=1e-06)
        (post_attention_layernorm): GraniteMoeHybridRMSNorm((256,), eps=1e-06)
        (block_sparse_moe): GraniteMoeHybridMoE(
          (activation): SiLU()
          (input_linear): GraniteMoeHybridParallelExperts())" +
         input_linear + R"(
          (output_linear): GraniteMoeHybridParallelExperts())" +
         output_linear + R"(
          (router): GraniteMoeHybridTopKGating(
            (layer): Linear(in_features=256, out_features=16, bias=False)
          )
        )
        (shared_mlp): GraniteMoeHybridMLP(
          (activation): SiLU()
          (input_linear): Linear(in_features=256, out_features=512, bias=False)
          (output_linear): Linear(in_features=256, out_features=256, bias=False)
        )
      )
    )
    (norm): GraniteMoeHybridRMSNorm((256,), eps=1e-06)
    (rotary_emb): GraniteMoeHybridRotaryEmbedding()
  )
  (lm_head): Linear(in_features=256, out_features=1000, bias=False)
)
)";
}

TEST(FusedExperts, OfGraniteAreNotGuessed) {
  const auto made = wired(granite_hybrid("", ""));
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("num_experts_per_tok"), std::string::npos) << made.error().message;
  // 16 experts 128 wide.
  const auto counted = wired(granite_hybrid(", 1,048,576 params", ", 524,288 params"));
  ASSERT_TRUE(testing::succeeds(counted));
  EXPECT_NE(counted->edges().find(", 6 experts a token"), std::string::npos) << counted->edges();
  constexpr std::int64_t kAttention = 2 * 256 * 256 + 2 * 256 * 128;
  constexpr std::int64_t kFed = 16 * 256 + 16 * 3 * 128 * 256 + 3 * 256 * 256;
  EXPECT_EQ(counted->graph().parameters(), 1000 * 256 + 2 * (kAttention + kFed + 2 * 256) + 256);
}

/// Each hybrid layer prints the block that all of them share.
TEST(SharedBlocks, OfATreeAreNotCountedAtEachLayer) {
  const auto made = wired(R"(Zamba2ForCausalLM(
  (model): Zamba2Model(
    (embed_tokens): Embedding(1000, 256)
    (layers): ModuleList(
      (0-1): 2 x Zamba2HybridLayer(
        (shared_transformer): Zamba2AttentionDecoderLayer(
          (input_layernorm): Zamba2RMSNorm((512,), eps=1e-05)
          (pre_ff_layernorm): Zamba2RMSNorm((256,), eps=1e-05)
        )
        (linear): Linear(in_features=256, out_features=256, bias=False)
      )
    )
  )
  (lm_head): Linear(in_features=256, out_features=1000, bias=False)
)
)");
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("config.json"), std::string::npos) << made.error().message;
}

/// That experts are one tensor each is a tree's to say.
TEST(FusedExperts, AreNoFieldOfAConfig) {
  const std::string config = R"({"model_type": "mixtral", "vocab_size": 1000, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_local_experts": 4,
    "num_experts_per_tok": 2})";
  const auto plain = parse_summary(config);
  const auto with_field = parse_summary(with(config, "}", R"(, "_fused_experts": true})"));
  ASSERT_TRUE(testing::succeeds(plain));
  ASSERT_TRUE(testing::succeeds(with_field));
  EXPECT_EQ(with_field->layers().size(), plain->layers().size());
}

/// Of a module within a module there is no layer directly in the experts.
TEST(FusedExperts, OfAClassThatIsNotKnownAreRefusedWhateverIsInThem) {
  const auto tree = with(trees()["mixtral"]["tree"].get<std::string>(), "Mixtral", "Someones");
  const auto made = wired(with(tree, "(experts): SomeonesExperts(\n            (act_fn): SiLUActivation()\n          )",
                               "(experts): SomeonesExperts(\n            (inner): SomeonesAct(\n"
                               "              (act_fn): SiLUActivation()\n            )\n          )"));
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("is a SomeonesExperts"), std::string::npos) << made.error().message;
}

TEST(FusedExperts, OfAClassThatIsNotKnownAreRefused) {
  const auto made = wired(with(trees()["mixtral"]["tree"].get<std::string>(), "Mixtral", "Someones"));
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("is a SomeonesExperts"), std::string::npos) << made.error().message;
  EXPECT_NE(made.error().message.find("config.json"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace gpumem
