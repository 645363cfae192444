// litgpt 0.4: model.py (CausalSelfAttention, GptNeoxMLP), lora.py (LoRAQKVLinear, LoRALinear).
#include "gpumem/adapt/trainer_models.hpp"

#include <algorithm>

#include "adapted_jobs.hpp"
#include "expect.hpp"
#include "graphs.hpp"

namespace gpumem::adapt {
namespace {

using plan::Phase;
using testing::adapted_events;
using testing::adapted_lines;
using testing::count;

constexpr std::string_view kLlama =
    R"({"model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu", "tie_word_embeddings": true})";
constexpr std::string_view kPhi =
    R"({"model_type": "phi", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 2, "hidden_act": "gelu_new", "resid_pdrop": 0.1, "partial_rotary_factor": 0.5})";
constexpr std::string_view kNeoX =
    R"({"model_type": "gpt_neox", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 2, "hidden_act": "gelu", "rotary_pct": 0.5})";

/// Batch 1, 4 tokens.
TrainingJob job_with(std::string_view config, std::string targets) {
  const auto graph = parse_summary(config);
  EXPECT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 1);
  job.sequence_length = 4;
  job.precision = Precision::bf16;
  job.loop = model::Loop::litgpt;
  job.lora = 2;
  job.lora_dtype = model::AdapterType::bf16;
  job.lora_targets = std::move(targets);
  return job;
}

std::ptrdiff_t lines_with(const TrainingJob& job, std::string_view part) {
  const std::vector<std::string> lines = adapted_lines(job);
  return std::ranges::count_if(lines, [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST(LitgptModel, HasOneProjectionForQueriesKeysAndValues) {
  const TrainingJob job = job_with(kLlama, "q_proj+v_proj");
  EXPECT_EQ(lines_with(job, "linear q_proj [N, 4, 48]"), 1);
  EXPECT_EQ(lines_with(job, "linear k_proj"), 0);
  EXPECT_EQ(lines_with(job, "item q_proj.item [N, 4, 16]"), 3);
  EXPECT_EQ(lines_with(job, "linear q_proj.lora_B [N, 4, 16]"), 2) << "queries and values";
  EXPECT_EQ(lines_with(job, "concat q_proj.concat [N, 4, 32]"), 1);
  EXPECT_EQ(lines_with(job, "adapter_zero_pad q_proj.adapter_zero_pad [N, 4, 48]"), 1);
  EXPECT_EQ(lines_with(job_with(kLlama, "q_proj+k_proj+v_proj"), "adapter_zero_pad"), 0) << "nothing is left out";
}

TEST(LitgptModel, KnowsTheThreeOfAModelThatHasOneLayerForThem) {
  const TrainingJob job = job_with(kNeoX, "q_proj+v_proj");
  EXPECT_EQ(lines_with(job, "linear query_key_value [N, 4, 48]"), 1);
  EXPECT_EQ(lines_with(job, "linear query_key_value.lora_B [N, 4, 16]"), 2);
  EXPECT_EQ(lines_with(job, "adapter_zero_pad"), 1);
}

TEST(LitgptModel, HasNoDropoutAndOneKernelForEachGelu) {
  TrainingJob job = job_with(kPhi, "q_proj");
  EXPECT_EQ(lines_with(job, "dropout"), 0);
  job.lora_dropout = 0.05;
  EXPECT_EQ(lines_with(job, "dropout"), 1) << "the adapter's";
  analysis::Analysis analysis(job);
  const auto adapted = analysis.adapted();
  ASSERT_TRUE(testing::succeeds(adapted));
  const ModelGraph& graph = (*adapted)->graph();
  for (const model::Layer& layer : graph.layers()) EXPECT_NE(graph.class_name(layer), "NewGELUActivation");
}

TEST(LitgptModel, HasAHeadOfItsOwn) {
  TrainingJob job = job_with(kLlama, "q_proj");
  const std::int64_t tied = job.graph->parameters();
  analysis::Analysis analysis(job);
  const auto adapted = analysis.adapted();
  ASSERT_TRUE(testing::succeeds(adapted));
  const std::int64_t adapters = 2 * (16 + 16);
  EXPECT_EQ((*adapted)->graph().parameters(), tied + 32 * 16 + adapters);
}

TEST(LitgptModel, KeepsWhatItWritesIntoZeros) {
  const TrainingJob job = job_with(kLlama, "q_proj+v_proj");
  const testing::Events forward = adapted_events(job, Phase::forward);
  const std::string update = " q_proj.concat activation";
  EXPECT_EQ(count(forward, "+256" + update), 1);
  EXPECT_EQ(count(forward, "-256" + update), 0);
  EXPECT_EQ(count(adapted_events(job, Phase::backward), "-256" + update), 1);
}

TEST(LitgptModel, IsMeantOfConfigsAloneAndOfItsLoop) {
  TrainingJob job = job_with(kLlama, "q_proj");
  EXPECT_TRUE(is_litgpt_model(*job.graph, job));
  job.loop = model::Loop::hf_trainer;
  EXPECT_FALSE(is_litgpt_model(*job.graph, job));
  EXPECT_EQ(lines_with(job, "linear q_proj [N, 4, 16]"), 1);
  TrainingJob shown = testing::small_model();
  shown.loop = model::Loop::litgpt;
  EXPECT_FALSE(is_litgpt_model(*shown.graph, shown)) << "it shows the model that runs";
}

TEST(LitgptModel, TargetsAreThoseOfTheLayersThatThereAre) {
  const std::vector<BaseLinear> three = {{.layer = 0, .path = "attn.q_proj"}, {.layer = 1, .path = "attn.v_proj"}};
  EXPECT_EQ(litgpt_targets(three, "q_proj+v_proj"), "q_proj+v_proj");
  const std::vector<BaseLinear> one = {{.layer = 0, .path = "attn.query_key_value"}, {.layer = 1, .path = "dense"}};
  EXPECT_EQ(litgpt_targets(one, "q_proj+dense"), "query_key_value+dense");
  EXPECT_EQ(litgpt_targets(one, ""), "");
}

}  // namespace
}  // namespace gpumem::adapt
