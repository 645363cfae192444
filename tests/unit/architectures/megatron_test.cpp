// Arguments of Megatron's launcher, and the parameters that they give, counted by hand.
#include "gpumem/architectures/megatron.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "expect.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

core::Result<model::ModelGraph> read(std::string_view config) { return read_config(config, ops::vocabulary()); }

std::string with(std::string_view more) {
  return R"({"num_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "padded_vocab_size": 128,
    "max_position_embeddings": 32)" +
         std::string(more) + "}";
}

std::int64_t parameters(std::string_view more) {
  const auto graph = read(with(more));
  EXPECT_TRUE(succeeds(graph)) << more;
  return graph ? graph->parameters() : 0;
}

constexpr std::int64_t kEmbeddings = 128 * 64 + 32 * 64;
constexpr std::int64_t kNorms = 2 * 2 * 64;  // of a layer
constexpr std::int64_t kAttention = 4 * 64 * 64 + 4 * 64;
constexpr std::int64_t kFeedForward = 2 * 64 * 256 + 256 + 64;

TEST(Megatron, CountsWhatItsDefaultsSay) {
  EXPECT_EQ(parameters(""), kEmbeddings + 3 * (kNorms + kAttention + kFeedForward) + 2 * 64);
  EXPECT_EQ(parameters(R"(, "untie_embeddings_and_output_weights": true)"), parameters("") + 128 * 64);
  EXPECT_EQ(parameters(R"(, "position_embedding_type": "rope")"), parameters("") - 32 * 64);
  EXPECT_EQ(parameters(R"(, "normalization": "RMSNorm")"), parameters("") - 3 * 2 * 64 - 64);
  EXPECT_EQ(parameters(R"(, "add_bias_linear": false)"), parameters("") - 3 * (4 * 64 + 256 + 64));
}

TEST(Megatron, GroupsQueriesAndGatesTheFeedForwardLayer) {
  EXPECT_EQ(parameters(R"(, "group_query_attention": true, "num_query_groups": 2)"),
            parameters("") - 3 * 2 * (32 * 64 + 32));
  EXPECT_EQ(parameters(R"(, "swiglu": true, "ffn_hidden_size": 256)"), parameters("") + 3 * (64 * 256 + 256));
  EXPECT_EQ(parameters(R"(, "kv_channels": 32)"), parameters("") + 3 * (4 * 64 * 64 + 3 * 64));
}

TEST(Megatron, GivesTheLayersOfThePatternExperts) {
  constexpr std::string_view kExperts = R"(, "num_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 128)";
  constexpr std::int64_t kMixture = 4 * 64 + 4 * (2 * 64 * 128 + 128 + 64);
  EXPECT_EQ(parameters(kExperts), parameters("") + 3 * (kMixture - kFeedForward));
  EXPECT_EQ(parameters(std::string(kExperts) + R"x(, "moe_layer_freq": "([0]*1+[1]*2)")x"),
            parameters("") + 2 * (kMixture - kFeedForward));
  for (const std::string_view same : {"[0]+[1]*2", "[0,1,1]", "([0]+([1])*2)", "[0]*1 + [1, 1]"}) {
    EXPECT_EQ(parameters(std::string(kExperts) + R"(, "moe_layer_freq": ")" + std::string(same) + "\""),
              parameters("") + 2 * (kMixture - kFeedForward))
        << same;
  }
  EXPECT_EQ(parameters(std::string(kExperts) + R"(, "moe_layer_freq": 2)"),
            parameters("") + 2 * (kMixture - kFeedForward));
  EXPECT_EQ(parameters(std::string(kExperts) + R"(, "moe_shared_expert_intermediate_size": 32)"),
            parameters(kExperts) + 3 * (2 * 64 * 32 + 32 + 64));
  for (const std::string_view pattern : {"[1]*2", "[1]*99999999", "1+1+1", "", "[[[[", "[2,2,2]"}) {
    EXPECT_TRUE(fails(read(with(std::string(kExperts) + R"(, "moe_layer_freq": ")" + std::string(pattern) + "\"")),
                      ErrorCode::malformed_input, 0, "0 or 1 for each layer"))
        << pattern;
  }
}

TEST(Megatron, GatedExpertsReadTheirWeightsWithinTheActivation) {
  const auto graph = read(with(R"(, "num_experts": 2, "moe_router_topk": 1, "swiglu": true, "ffn_hidden_size": 64)"));
  ASSERT_TRUE(succeeds(graph));
  std::int64_t gates = 0;
  for (const model::Layer& layer : graph->layers()) {
    if (graph->op(layer) != "glu") continue;
    ++gates;
    EXPECT_EQ(graph->inputs(layer).size(), 2U);
    EXPECT_TRUE(graph->path(layer).find(".moe_act.") != std::string::npos) << "what --recompute-modules may name";
  }
  EXPECT_EQ(gates, 3 * 2);
}

TEST(Megatron, NamesTheRowsThatRanksSendEachOtherWhileExpertsCompute) {
  const std::string experts = R"(, "num_experts": 2, "moe_router_topk": 1, "moe_grouped_gemm": true)";
  const auto ops_of = [](const core::Result<model::ModelGraph>& graph) {
    std::vector<std::string> ops;
    for (const model::Layer& layer : graph->layers()) {
      const std::string op(graph->op(layer));
      if (op == "sent_rows" || op == "gather_tokens" || op == "scatter_tokens") ops.push_back(op);
    }
    ops.resize(ops.size() / 3);  // of one layer
    return ops;
  };
  const auto gathers = read(with(experts));
  const auto sends = read(with(experts + R"(, "moe_token_dispatcher_type": "alltoall")"));
  ASSERT_TRUE(succeeds(gathers));
  ASSERT_TRUE(succeeds(sends));
  const std::string rows = "gather_tokens";  // and their weights
  const std::string sum = "scatter_tokens";
  EXPECT_EQ(ops_of(gathers), (std::vector<std::string>{rows, rows, rows, rows, sum, sum})) << "grouped";
  EXPECT_EQ(ops_of(sends),
            (std::vector<std::string>{"sent_rows", "sent_rows", rows, rows, rows, rows, "sent_rows", sum, sum}));
  EXPECT_EQ(gathers->parameters(), sends->parameters());
}

TEST(Megatron, CompressesKeysAndValues) {
  constexpr std::int64_t kLatent = 64 * 16 + 16 + 16 * 4 * 12 + 64 * (16 + 4) + 16 + 16 * 4 * 16 + 4 * 8 * 64;
  EXPECT_EQ(parameters(R"(, "multi_latent_attention": true, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_head_dim": 8,
                       "qk_pos_emb_head_dim": 4, "v_head_dim": 8)"),
            parameters("") + 3 * (kLatent - kAttention));
}

TEST(Megatron, BertHasSegmentsAndTwoHeads) {
  constexpr std::int64_t kHead = 64 * 64 + 64 + 2 * 64 + 128;  // dense, norm, the output's bias
  constexpr std::int64_t kOrder = 64 * 64 + 64 + 2 * 64 + 2;   // pooler and binary head
  EXPECT_EQ(parameters(R"(, "_model_family": "bert")"), parameters("") + 2 * 64 + kHead + kOrder);
}

TEST(Megatron, AHybridsLayersAreHalfBlocks) {
  constexpr std::int64_t kInner = 128;  // 2 heads of 64
  constexpr std::int64_t kConvolved = kInner + 2 * 2 * 16;
  constexpr std::int64_t kMixer =
      64 + 64 + 64 * (kInner + kConvolved + 2) + 5 * kConvolved + 3 * 2 + kInner + kInner * 64;
  constexpr std::string_view kSizes = R"(, "mamba_state_dim": 16, "mamba_num_groups": 2)";
  const auto hybrid = [&](std::string_view pattern) {
    return parameters(R"(, "hybrid_layer_pattern": ")" + std::string(pattern) + "\"" + std::string(kSizes));
  };
  const std::int64_t feeds = kNorms / 2 + kFeedForward;
  EXPECT_EQ(hybrid("---"), kEmbeddings + 3 * feeds + 2 * 64);
  EXPECT_EQ(hybrid("**-"), hybrid("---") + 2 * (kAttention - kFeedForward));
  EXPECT_EQ(hybrid("M|M-"), hybrid("---") + 2 * (kMixer - feeds)) << "a bar ends a pipeline stage, and is no layer";
}

// Megatron's scan ends with the gate; transformers' function norms and projects too, and computes both again.
TEST(Megatron, AMixersNormAndLastProjectionKeepWhatTheyRead) {
  const auto graph = read(with(R"(, "mamba_state_dim": 16, "mamba_num_groups": 2, "hybrid_layer_pattern": "M--")"));
  ASSERT_TRUE(succeeds(graph));
  std::vector<std::string> ops;
  bool recomputes = true;
  for (const model::Layer& layer : graph->layers()) {
    const std::string path(graph->path(layer));
    if (path.find("mixer") == std::string::npos) continue;
    ops.emplace_back(graph->op(layer));
    if (path.ends_with("out_proj")) recomputes = graph->attributes(layer).flag("recomputed", false);
  }
  const auto scan = std::find(ops.begin(), ops.end(), "ssd_scan");
  ASSERT_GE(ops.end() - scan, 4);
  EXPECT_EQ(std::vector<std::string>(scan + 1, scan + 4),
            (std::vector<std::string>{"gated_norm", "rms_norm", "linear"}));
  EXPECT_FALSE(recomputes);
}

/// Two norms of what it reads, the product that joins both, a block, and a norm.
constexpr std::int64_t kPrediction = 3 * 2 * 64 + 2 * 64 * 64 + kNorms + kAttention + kFeedForward;

TEST(Megatron, PredictsFurtherTokensWithABlockEach) {
  EXPECT_EQ(parameters(R"(, "mtp_num_layers": 1)"), parameters("") + kPrediction) << "words and head are shared";
  EXPECT_EQ(parameters(R"(, "mtp_num_layers": 2)"), parameters("") + 2 * kPrediction);
  EXPECT_EQ(parameters(R"(, "mtp_num_layers": 2, "mtp_use_repeated_layer": true)"), parameters("") + kPrediction);
  EXPECT_EQ(parameters(R"(, "mtp_num_layers": 1, "untie_embeddings_and_output_weights": true)"),
            parameters("") + kPrediction + 128 * 64)
      << "one head for all tokens";
}

TEST(Megatron, CudaGraphsLeaveADoubt) {
  const auto doubts = [](std::string_view more) {
    const auto graph = read(with(more));
    EXPECT_TRUE(succeeds(graph)) << more;
    return graph && !graph->doubts().empty() ? graph->doubts()[0].text : std::string();
  };
  EXPECT_EQ(doubts(R"(, "cuda_graph_impl": "none")"), "");
  EXPECT_TRUE(doubts(R"(, "cuda_graph_impl": "local")").starts_with("CUDA graphs (local)"));
  EXPECT_TRUE(doubts(R"(, "external_cuda_graph": true)").starts_with("CUDA graphs (transformer_engine)"));
}

TEST(Megatron, APatternSaysStagesAndWhatPredictsFurtherTokens) {
  const auto hybrid = [&](std::string_view pattern) {
    return R"(, "mamba_num_groups": 2, "hybrid_layer_pattern": ")" + std::string(pattern) + "\"";
  };
  const std::int64_t plain = parameters(hybrid("-*-"));
  constexpr std::int64_t kHalves = kPrediction - 64 * 2;  // a norm less than a block's two
  EXPECT_EQ(parameters(hybrid("-*-/*")), plain + kHalves - kFeedForward);
  EXPECT_EQ(parameters(hybrid("-*-/*-/*-")), plain + 2 * kPrediction);
  const auto staged =
      read(with(R"(, "mamba_num_groups": 2, "hybrid_layer_pattern": "-|*|-|", "pipeline_model_parallel_size": 2)"));
  ASSERT_TRUE(succeeds(staged));
  EXPECT_EQ(staged->run_settings().pipeline_layers, "1,1,1,0");
  EXPECT_EQ(staged->run_settings().virtual_stages, 2);
}

TEST(Megatron, TellsWhatTheRunSaysOfItsProducts) {
  const auto graph =
      read(with(R"(, "tp_comm_overlap": true, "first_last_layers_bf16": true, "fp8_param_gather": true)"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_TRUE(graph->run_settings().overlaps_products);
  EXPECT_TRUE(graph->run_settings().ends_in_bf16);
  EXPECT_TRUE(graph->run_settings().weights_in_fp8);
}

TEST(Megatron, DeterministicRunsHaveOneWorkspaceOnEveryGpu) {
  EXPECT_EQ(read(with(""))->run_settings().cublas_workspace, 0) << "as the GPU has it";
  const auto graph = read(with(R"(, "deterministic_mode": true)"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->run_settings().cublas_workspace, std::int64_t{32} << 20) << ":4096:8";
}

/// Whether the softmax of its first attention is in float32 where it is written out.
bool float32_softmax(std::string_view more) {
  const auto graph = read(with(more));
  if (!succeeds(graph)) return false;
  for (const model::Layer& layer : graph->layers()) {
    if (graph->attributes(layer).flag("fused_softmax", false)) {
      return graph->attributes(layer).flag("float32_softmax", false);
    }
  }
  ADD_FAILURE() << "no attention";
  return false;
}

TEST(Megatron, ItsOwnAttentionTakesTheSoftmaxInFloat32WhereNothingFusesIt) {
  constexpr std::string_view kLocal = R"(, "transformer_impl": "local", "apply_query_key_layer_scaling": true)";
  EXPECT_FALSE(float32_softmax(kLocal));
  EXPECT_TRUE(float32_softmax(std::string(kLocal) + R"(, "masked_softmax_fusion": false)"));
  EXPECT_FALSE(float32_softmax(R"(, "transformer_impl": "local", "masked_softmax_fusion": false)"));
  EXPECT_TRUE(float32_softmax(
      R"(, "transformer_impl": "local", "masked_softmax_fusion": false, "attention_softmax_in_fp32": true)"));
  EXPECT_FALSE(float32_softmax(R"(, "masked_softmax_fusion": false, "attention_softmax_in_fp32": true)"))
      << "TransformerEngine's attention";
}

TEST(Megatron, RefusesWhatIsNoGpt) {
  EXPECT_TRUE(fails(read(with(R"(, "hybrid_layer_pattern": "M-M*")")), ErrorCode::malformed_input, 0, "num_layers"));
  for (const std::string_view pattern : {"--*/*/-", "--*/", "--*//", "--*/*-/*"}) {
    EXPECT_TRUE(fails(read(with(R"(, "hybrid_layer_pattern": ")" + std::string(pattern) + "\"")),
                      ErrorCode::malformed_input, 0, "further token"))
        << pattern;
  }
  EXPECT_TRUE(fails(read(with(R"(, "hybrid_layer_pattern": "-X*")")), ErrorCode::malformed_input, 0, "not one of"));
  EXPECT_TRUE(fails(read(with(R"(, "mamba_num_groups": 2, "hybrid_layer_pattern": "--*/*", "mtp_num_layers": 2)")),
                    ErrorCode::malformed_input, 0, "number of /"));
  EXPECT_TRUE(fails(read(R"({"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4})"),
                    ErrorCode::missing_information, 0, "padded_vocab_size, max_position_embeddings"));
  EXPECT_TRUE(fails(read(with(R"(, "num_query_groups": 3)")), ErrorCode::malformed_input, 0, "does not divide"));
}

}  // namespace
}  // namespace gpumem::architectures
