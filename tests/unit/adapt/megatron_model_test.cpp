// Megatron-LM core r0.12: TENorm keeps what it reads; SwiGLUFunction keeps both halves, and not the activated one.
#include "gpumem/adapt/trainer_models.hpp"

#include <algorithm>
#include <set>

#include "adapted_jobs.hpp"
#include "expect.hpp"
#include "graphs.hpp"

namespace gpumem::adapt {
namespace {

using testing::adapted_lines;

constexpr std::string_view kLlama =
    R"({"model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu", "tie_word_embeddings": true})";

TrainingJob llama_job() {
  const auto graph = parse_summary(kLlama);
  EXPECT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 1);
  job.sequence_length = 4;
  job.precision = Precision::bf16;
  return job;
}

std::ptrdiff_t lines_of(const TrainingJob& job, std::string_view part) {
  const std::vector<std::string> lines = adapted_lines(job);
  return std::ranges::count_if(lines, [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

std::ptrdiff_t lines_with(model::Loop loop, std::string_view part) {
  TrainingJob job = llama_job();
  job.loop = loop;
  return lines_of(job, part);
}

/// What the calls of one block keep for backward, in bytes: each storage once.
std::int64_t kept_bytes(const TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto pass = analysis.forward_pass();
  EXPECT_TRUE(testing::succeeds(pass));
  if (!pass) return 0;
  const ops::Tape& tape = (*pass)->tape;
  std::set<ops::TensorId> kept;
  for (const ops::Function& function : tape.functions()) {
    if (!tape.tensor(function.output).requires_grad) continue;
    for (const ops::TensorId saved : tape.list(function.saved)) kept.insert(tape.tensor(saved).storage);
  }
  for (const ops::Tape::Parameter& parameter : tape.parameters()) kept.erase(parameter.tensor);
  std::int64_t bytes = 0;
  for (const ops::TensorId each : kept) {
    bytes += tape.tensor(each).size.elements.value().value_or(0) * core::element_size(tape.tensor(each).size.dtype);
  }
  return bytes;
}

TEST(MegatronModel, HasOneKernelForSwiGlu) {
  EXPECT_EQ(lines_with(model::Loop::hf_trainer, "silu"), 2);
  EXPECT_EQ(lines_with(model::Loop::megatron, "silu"), 0);
  EXPECT_EQ(lines_with(model::Loop::megatron, "mul"), lines_with(model::Loop::hf_trainer, "mul"));
}

/// Four tokens, 16 and 32 features, in bfloat16. A norm of transformers keeps its input in float32, a figure a row and
/// what the weight multiplies; a fused one its input and the figure. Liger-Kernel 0.6, ops/rms_norm.py, swiglu.py.
TEST(FusedLayers, KeepLessForBackward) {
  TrainingJob job = llama_job();
  const std::int64_t usual = kept_bytes(job);
  job.kernels = model::Kernels::liger;
  EXPECT_EQ(lines_of(job, "silu"), 0);
  // The residual stream is the input of a norm, so that it is kept in its own type instead of float32 (4 bytes of 16
  // features), and what the weight multiplies is gone (2 bytes); the last norm is one of five.
  const std::int64_t norms = 5 * 4 * 16 * (4 + 2 - 2);
  const std::int64_t gates = 2 * 4 * 32 * 2;  // silu(gate)
  EXPECT_EQ(usual - kept_bytes(job), norms + gates);
}

/// unsloth 2026-08, kernels/fast_lora.py: LoRA_MLP, which needs adapters on all three layers.
TEST(FusedLayers, MakeAGatedProductAgainWhereItsLayersHaveAdapters) {
  TrainingJob job = llama_job();
  job.kernels = model::Kernels::lora_mlp;
  EXPECT_EQ(lines_of(job, "silu"), 2);
  job.lora = 2;
  job.lora_targets = "q_proj+v_proj+down_proj";
  EXPECT_EQ(lines_of(job, "silu"), 2);
  job.lora_targets = "gate_proj+up_proj+down_proj";
  EXPECT_EQ(lines_of(job, "silu"), 0);
  const std::int64_t joined = kept_bytes(job);
  job.kernels = model::Kernels::liger;
  EXPECT_LT(joined - 5 * 4 * 16 * 4, kept_bytes(job)) << "the product is kept for down_proj's adapter";
}

TEST(MegatronModel, IsNoConfigOfItsOwnArguments) {
  const auto graph = parse_summary(kLlama);
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 1);
  EXPECT_FALSE(is_megatron_model(*graph, job));
  job.loop = model::Loop::megatron;
  EXPECT_TRUE(is_megatron_model(*graph, job));
}

/// Two tensor parallel ranks share each sequence, and two pairs of them the experts. Source: Megatron-LM r0.16,
/// core/transformer/moe/token_dispatcher.py; ms-swift 4 leaves experts' weights whole.
TEST(MegatronModel, SendsPartsOfSequencesToWholeExperts) {
  const auto graph = parse_summary(
      R"({"model_type": "qwen3_moe", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "head_dim": 8,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu",
          "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "decoder_sparse_step": 1,
          "tie_word_embeddings": false})");
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 1);
  job.sequence_length = 16;
  job.precision = Precision::bf16;
  job.layout.tensor_parallel = 2;
  job.layout.sequence_parallel = true;
  job.layout.data_parallel = 2;
  job.layout.expert_parallel = 4;
  EXPECT_TRUE(testing::fails(analysis::Analysis(job).ranked(), core::ErrorCode::invalid_argument, 0, "Megatron"));
  job.loop = model::Loop::megatron;
  analysis::Analysis analysis(job);
  const auto rank = analysis.ranked();
  ASSERT_TRUE(testing::succeeds(rank));
  // 8 tokens of each of 4 ranks go to 2 of 4 experts each: 16 rows for the rank's one expert.
  const model::ModelGraph& on_rank = (*rank)->graph();
  std::string seen;
  for (std::size_t at = 0; at < on_rank.layers().size(); ++at) {
    if (on_rank.name(on_rank.layers()[at]) != "gate_proj") continue;
    seen += core::to_string((*rank)->outputs(at)[0]) + " " + std::to_string(on_rank.layers()[at].parameters) + " ";
  }
  EXPECT_EQ(seen, "[16N, 24] 384 [16N, 24] 384 ");
}

/// Of each layer: three norms, the product that joins both, and a block; the head's weight is there once.
TEST(MegatronModel, ListsExpertsOfWhichTransformersHasOneTensor) {
  const auto graph = parse_summary(
      R"({"model_type": "gpt_oss", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
          "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 4,
          "num_experts_per_tok": 2})");
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 1);
  job.sequence_length = 8;
  job.precision = Precision::bf16;
  const auto experts = [&] { return lines_of(job, "linear down_proj"); };
  EXPECT_EQ(experts(), 0);
  job.loop = model::Loop::megatron;
  EXPECT_EQ(experts(), 4);
  job.layout.expert_parallel = 2;
  job.layout.data_parallel = 2;
  analysis::Analysis analysis(job);
  EXPECT_TRUE(testing::succeeds(analysis.ranked())) << "each rank has two of the four";
}

TEST(MegatronModel, PredictsFurtherTokensWithABlockAndTheHeadOnceMoreEach) {
  const auto adapted = [](const std::string& options, bool tied) -> std::int64_t {
    TrainingJob job = llama_job();
    std::string config(kLlama);
    if (!tied) config.replace(config.find("true}"), 4, "false");
    job.graph = std::make_shared<const model::ModelGraph>(*parse_summary(config));
    job.loop = model::Loop::megatron;
    job.megatron_options = options;
    analysis::Analysis analysis(job);
    const auto graph = analysis.adapted();
    EXPECT_TRUE(testing::succeeds(graph));
    EXPECT_TRUE(testing::succeeds(analysis.forward_pass()));
    return graph ? (*graph)->graph().parameters() : 0;
  };
  constexpr std::int64_t kBlock = 4 * 16 * 16 + 3 * 16 * 32 + 2 * 16;
  constexpr std::int64_t kFurther = kBlock + 3 * 16 + 2 * 16 * 16;
  for (const bool tied : {true, false}) {
    const std::int64_t plain = adapted("", tied);
    for (const std::int64_t count : {std::int64_t{1}, std::int64_t{2}}) {
      EXPECT_EQ(adapted("mtp_num_layers=" + std::to_string(count), tied), plain + count * kFurther) << tied << count;
    }
  }
}

TEST(MegatronModel, NothingPredictsFurtherTokensInAClassifier) {
  TrainingJob job = llama_job();
  std::string config(kLlama);
  config.replace(config.find('{'), 1, R"({"architectures": ["LlamaForSequenceClassification"], )");
  auto graph = parse_summary(config);
  ASSERT_TRUE(testing::succeeds(graph));
  job.graph = std::make_shared<const model::ModelGraph>(*std::move(graph));
  job.loop = model::Loop::megatron;
  job.megatron_options = "mtp_num_layers=1";
  analysis::Analysis analysis(job);
  EXPECT_TRUE(testing::fails(analysis.adapted(), core::ErrorCode::missing_information, 0, "a head over a vocabulary"));
}

TEST(MegatronModel, LogitsOfFurtherTokensAreMadeApart) {
  TrainingJob job = llama_job();
  job.loop = model::Loop::megatron;
  job.megatron_options = "mtp_num_layers=2";
  EXPECT_EQ(lines_of(job, " cross_entropy "), 3);
  EXPECT_EQ(lines_of(job, "eh_proj"), 2);
  EXPECT_EQ(lines_of(job, "mtp_model_layer.model.layers.1.self_attn.q_proj"), 2);
}

TEST(MegatronModel, RanksShareTheHeadsOfFurtherTokensAndWhatJoins) {
  TrainingJob job = llama_job();
  job.loop = model::Loop::megatron;
  job.megatron_options = "mtp_num_layers=2";
  job.layout.tensor_parallel = 2;
  job.layout.sequence_parallel = true;
  analysis::Analysis analysis(job);
  const auto ranked = analysis.ranked();
  ASSERT_TRUE(testing::succeeds(ranked));
  const model::ModelGraph& graph = (*ranked)->graph();
  std::vector<std::int64_t> heads;
  std::vector<std::int64_t> joins;
  for (const model::Layer& layer : graph.layers()) {
    const auto out = graph.attributes(layer).integer("out_features");
    if (out && graph.name(layer).ends_with("lm_head")) heads.push_back(*out);
    if (out && graph.name(layer).ends_with("eh_proj")) joins.push_back(*out);
  }
  EXPECT_EQ(heads, std::vector<std::int64_t>(3, 32 / 2));
  EXPECT_EQ(joins, std::vector<std::int64_t>(2, 16 / 2));
  EXPECT_TRUE(testing::succeeds(analysis.forward_pass()));
}

}  // namespace
}  // namespace gpumem::adapt
