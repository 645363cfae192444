// The calls of PEFT 0.14, tuners/lora: layer.py, bnb.py, gptq.py.
#include "gpumem/adapt/adapters.hpp"

#include <algorithm>

#include "adapted_jobs.hpp"
#include "expect.hpp"
#include "graphs.hpp"

namespace gpumem::adapt {
namespace {

using Lines = std::vector<std::string>;
using testing::adapted_lines;

TrainingJob with_adapter(model::Quantization quantization, double dropout = 0.0) {
  TrainingJob job = testing::small_model();
  job.lora = 2;
  job.lora_targets = "v_proj";
  job.lora_dropout = dropout;
  job.quantize = quantization;
  return job;
}

/// The lines of the adapter's layers, of which the first is number 4.
Lines adapter(const TrainingJob& job) {
  Lines lines = adapted_lines(job);
  if (lines.size() < 6) return lines;
  Lines part(lines.begin() + 4, lines.end() - 1);
  part.push_back(lines.back().substr(lines.back().find(' ') + 1));
  for (std::string& line : part) {
    const std::size_t at = line.find("model.layers.0.v_proj.");
    if (at != std::string::npos) line.erase(at, std::string_view("model.layers.0.v_proj.").size());
  }
  return part;
}

TEST(Adapters, StandBesideALinearLayer) {
  const Lines wanted = {"4 cast cast [N, 4, 16] <- 2",
                        "5 dropout dropout [N, 4, 16] <- 4",
                        "6 linear lora_A.default [N, 4, 2] <- 5",
                        "7 linear lora_B.default [N, 4, 16] <- 6",
                        "8 mul mul [N, 4, 16] <- 7",
                        "9 adapter_sum adapter_sum [N, 4, 16] <- 3 <- 8 <- 4",
                        "linear lm_head [N, 4, 8] <- 9 frozen"};
  EXPECT_EQ(adapter(with_adapter(model::Quantization::none, 0.1)), wanted);
}

TEST(Adapters, OfAnEmbeddingLookTheirRowsUp) {
  TrainingJob job = testing::small_model();
  job.lora = 2;
  job.lora_targets = "embed";
  const Lines lines = adapted_lines(job);
  ASSERT_GT(lines.size(), 5U);
  EXPECT_EQ(lines[0], "0 embedding model.embed [N, 4, 16] <- -1 frozen");
  EXPECT_EQ(lines[1], "1 embedding model.embed.lora_embedding_A.default [N, 4, 2] <- -1");
  EXPECT_EQ(lines[2], "2 linear model.embed.lora_embedding_B.default [N, 4, 16] <- 1");
  EXPECT_EQ(lines[3], "3 mul model.embed.mul [N, 4, 16] <- 2");
  EXPECT_EQ(lines[4], "4 adapter_sum model.embed.adapter_sum [N, 4, 16] <- 0 <- 3 <- -1");
  EXPECT_EQ(lines[5], "5 linear model.layers.0.q_proj [N, 4, 16] <- 4 frozen");
  job.activation_checkpointing = true;
  EXPECT_EQ(adapted_lines(job)[1], lines[1]) << "it needs gradients by itself";
}

TEST(Adapters, OverFourBitsCopyTheBasesOutput) {
  const Lines wanted = {"4 clone clone [N, 4, 16] <- 3",
                        "5 cast cast [N, 4, 16] <- 2",
                        "6 linear lora_A.default [N, 4, 2] <- 5",
                        "7 linear lora_B.default [N, 4, 16] <- 6",
                        "8 mul mul [N, 4, 16] <- 7",
                        "9 cast cast [N, 4, 16] <- 8 <- 4",
                        "10 adapter_sum adapter_sum [N, 4, 16] <- 4 <- 9 <- 5",
                        "linear lm_head [N, 4, 8] <- 10 frozen"};
  EXPECT_EQ(adapter(with_adapter(model::Quantization::nf4)), wanted);
}

TEST(Adapters, OverFourBitsUnderAutocastCastNothingThemselves) {
  TrainingJob job = with_adapter(model::Quantization::nf4_double);
  job.precision = Precision::amp_bf16;
  const Lines wanted = {"4 clone clone [N, 4, 16] <- 3",
                        "5 linear lora_A.default [N, 4, 2] <- 2",
                        "6 linear lora_B.default [N, 4, 16] <- 5",
                        "7 mul mul [N, 4, 16] <- 6",
                        "8 adapter_sum adapter_sum [N, 4, 16] <- 4 <- 7 <- 2",
                        "linear lm_head [N, 4, 8] <- 8 frozen"};
  EXPECT_EQ(adapter(job), wanted);
}

TEST(Adapters, OverGptqAddInPlace) {
  const TrainingJob job = with_adapter(model::Quantization::gptq_4bit);
  const Lines wanted = {"4 cast cast [N, 4, 16] <- 2",
                        "5 linear lora_A.default [N, 4, 2] <- 4",
                        "6 linear lora_B.default [N, 4, 16] <- 5",
                        "7 cast cast [N, 4, 16] <- 6 <- 3",
                        "8 mul mul [N, 4, 16] <- 7",
                        "9 add add [N, 4, 16] <- 3 <- 8",
                        "linear lm_head [N, 4, 8] <- 9 frozen"};
  EXPECT_EQ(adapter(job), wanted);
  analysis::Analysis analysis(job);
  const auto adapted = analysis.adapted();
  ASSERT_TRUE(testing::succeeds(adapted));
  const ModelGraph& graph = (*adapted)->graph();
  EXPECT_TRUE(graph.attributes(graph.layers()[9]).flag("inplace", false));
}

TEST(Adapters, HaveATypeOfTheirOwn) {
  for (const auto& [type, bytes] :
       {std::pair(model::AdapterType::fp32, 128), std::pair(model::AdapterType::bf16, 64)}) {
    TrainingJob job = with_adapter(model::Quantization::none);
    job.lora_dtype = type;
    const auto built = testing::adapted_events(job, plan::Phase::construction, 0);
    const std::string event = "+" + std::to_string(bytes) + " model.layers.0.v_proj.lora_A.default parameter";
    EXPECT_EQ(testing::count(built, event), 1) << event;
  }
}

/// Batch 2: token ids [N, 4], an embedding of 16 features, and two experts whose weights are one tensor.
TrainingJob with_experts(std::string targets) {
  TrainingJob job = testing::job_of(R"({"name": "ids", "shape": ["N", 4], "dtype": "int64"})", R"(
    {"name": "model.embed", "op": "embedding", "inputs": ["ids"], "attrs": {"num_embeddings": 32, "embedding_dim": 16}},
    {"name": "model.experts.rows", "op": "gather_tokens", "inputs": ["model.embed"],
     "attrs": {"experts": 2, "per_token": 1, "ranks": 2}},
    {"name": "model.experts.down_proj", "op": "parameter", "inputs": [], "attrs": {"shape": [2, 16, 8]}},
    {"name": "model.experts.product", "op": "grouped_product", "inputs": ["model.experts.rows", "model.experts.down_proj"]},
    {"name": "lm_head", "op": "linear", "inputs": ["model.experts.product"],
     "attrs": {"in_features": 8, "out_features": 8, "bias": false}})",
                                    2);
  job.precision = Precision::bf16;
  job.lora = 3;
  job.lora_targets = std::move(targets);
  return job;
}

/// The updates of all experts are made first, and live until the module returns. Compared with PyTorch 2.6
/// (torch.nn.utils.parametrize, einsum): it keeps A and B, and the sum where it keeps the weight.
TEST(Adapters, OfExpertsMakeTheUpdatesOfAllOfThem) {
  const Lines wanted = {"0 embedding model.embed [N, 4, 16] <- -1 frozen",
                        "1 gather_tokens model.experts.rows [4N, 16] <- 0",
                        "2 parameter model.experts.down_proj.lora_A.default [6, 8]",
                        "3 parameter model.experts.down_proj.lora_B.default [16, 6]",
                        "4 adapter_part model.experts.down_proj.adapter_part [2, 3, 8] <- 2",
                        "5 adapter_part model.experts.down_proj.adapter_part [16, 3, 2] <- 3",
                        "6 permute model.experts.down_proj.permute [2, 16, 3] <- 5",
                        "7 matmul model.experts.down_proj.matmul [2, 16, 8] <- 6 <- 4",
                        "8 mul model.experts.down_proj.mul [2, 16, 8] <- 7",
                        "9 cast model.experts.down_proj.cast [2, 16, 8] <- 8",
                        "10 parameter model.experts.down_proj [2, 16, 8] frozen",
                        "11 add model.experts.down_proj.adapted [2, 16, 8] <- 10 <- 9",
                        "12 grouped_product model.experts.product [4N, 8] <- 1 <- 11",
                        "13 return return [4N, 8] <- 12 <- 9 <- 11",
                        "14 linear lm_head [4N, 8] <- 13 frozen"};
  EXPECT_EQ(adapted_lines(with_experts("parameter:experts.down_proj")), wanted);
  // Of 2 x 16 x 8 figures: the product and its multiple in float32, the update and the sum in the weight's type.
  const auto forward = testing::adapted_events(with_experts("parameter:experts.down_proj"), plan::Phase::forward);
  for (const std::string event : {"+1024 model.experts.down_proj.matmul", "+1024 model.experts.down_proj.mul",
                                  "+512 model.experts.down_proj.cast", "+512 model.experts.down_proj.adapted"}) {
    EXPECT_TRUE(std::ranges::any_of(forward, [&](const std::string& line) { return line.starts_with(event); }))
        << event;
  }
}

/// With transformers 5 no update is made: the sum is one product in the weight's type, which keeps both factors in it.
TEST(Adapters, OfExpertsAreFoldedIntoTheWeightWithTransformers5) {
  TrainingJob job = with_experts("parameter:experts.down_proj");
  job.transformers = model::Transformers::v5_0;
  const Lines lines = adapted_lines(job);
  ASSERT_EQ(lines.size(), 14U);
  EXPECT_EQ(lines[7], "7 cast model.experts.down_proj.cast [2, 16, 3] <- 6");
  EXPECT_EQ(lines[8], "8 cast model.experts.down_proj.cast [2, 3, 8] <- 4");
  EXPECT_EQ(lines[10], "10 adapter_function model.experts.down_proj.adapted [2, 16, 8] <- 9 <- 7 <- 8");
  EXPECT_EQ(lines[12], "12 return return [4N, 8] <- 11 <- 7 <- 8 <- 10");
  const auto forward = testing::adapted_events(job, plan::Phase::forward);
  EXPECT_EQ(std::ranges::count_if(forward, [](const std::string& line) { return line.starts_with("+1024"); }), 0);
  EXPECT_TRUE(std::ranges::any_of(
      forward, [](const std::string& line) { return line.starts_with("+512 model.experts.down_proj.adapted"); }));
}

/// Held in four bits, the experts' weights are made whole for the sum, which alone stays.
TEST(Adapters, OfExpertsInFourBitsAddToWeightsThatAreMadeWhole) {
  TrainingJob job = with_experts("parameter:experts.down_proj");
  const auto events_of = [&](std::string_view bytes) {
    return std::ranges::count_if(testing::adapted_events(job, plan::Phase::forward),
                                 [&](const std::string& line) { return line.starts_with(bytes); });
  };
  const auto made = events_of("+512 model.experts.down_proj");
  const auto freed = events_of("-512");
  job.quantize = model::Quantization::nf4_experts;
  EXPECT_EQ(events_of("+512 model.experts.down_proj"), made + 1);
  EXPECT_EQ(events_of("-512"), freed + 1);
}

/// A layer of another module may stand between two parameters of one.
TEST(Adapters, OfAModulesLastParameterAreThereToo) {
  TrainingJob job = testing::job_of(R"({"name": "ids", "shape": ["N", 4], "dtype": "int64"})", R"(
    {"name": "model.embed", "op": "embedding", "inputs": ["ids"], "attrs": {"num_embeddings": 32, "embedding_dim": 16}},
    {"name": "model.experts.rows", "op": "gather_tokens", "inputs": ["model.embed"],
     "attrs": {"experts": 2, "per_token": 1, "ranks": 2}},
    {"name": "model.experts.up", "op": "parameter", "inputs": [], "attrs": {"shape": [2, 16, 8]}},
    {"name": "model.experts.wide", "op": "grouped_product", "inputs": ["model.experts.rows", "model.experts.up"]},
    {"name": "model.act", "op": "gelu", "inputs": ["model.experts.wide"]},
    {"name": "model.experts.down", "op": "parameter", "inputs": [], "attrs": {"shape": [2, 8, 16]}},
    {"name": "model.experts.product", "op": "grouped_product", "inputs": ["model.act", "model.experts.down"]})",
                                    2);
  job.precision = Precision::bf16;
  job.lora = 3;
  job.lora_targets = "parameter:experts.up+parameter:experts.down";
  const Lines lines = adapted_lines(job);
  for (const std::string name : {" model.experts.up.adapted ", " model.experts.down.adapted "}) {
    EXPECT_EQ(std::ranges::count_if(lines, [&](const std::string& line) { return line.find(name) != line.npos; }), 1)
        << name << lines.size();
  }
}

TEST(Adapters, OfParametersAreLorasAlone) {
  const auto refusal = [](const TrainingJob& job) {
    const Lines lines = adapted_lines(job);
    return lines.size() == 1 ? lines[0] : std::string();
  };
  EXPECT_NE(refusal(with_experts("parameter:down")).find("no parameter that is a tensor of its own"),
            std::string::npos);
  TrainingJob job = with_experts("parameter:experts.down_proj");
  job.lora_dropout = 0.1;
  EXPECT_NE(refusal(job).find("no dropout"), std::string::npos);
  job.lora_dropout = 0.0;
  job.peft = model::PeftMethod::dora;
  EXPECT_NE(refusal(job).find("PEFT's LoRA alone"), std::string::npos);
  const auto layers = parse_summary(
      R"({"model_type": "qwen3_moe", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "head_dim": 8,
          "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu",
          "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "decoder_sparse_step": 1})");
  ASSERT_TRUE(testing::succeeds(layers));
  TrainingJob modules(*layers, 1);
  modules.sequence_length = 4;
  modules.lora = 3;
  modules.lora_targets = "q_proj+parameter:experts.down_proj";
  EXPECT_NE(refusal(modules).find("experts are layers"), std::string::npos) << refusal(modules);
  const TrainingJob both = with_experts("lm_head+parameter:down");
  EXPECT_GT(adapted_lines(both).size(), 6U) << "the other name is known";
}

/// Liger's, Apple's and Unsloth's losses read lm_head.weight, which is the base's.
TEST(Adapters, OfAHeadUnderAFusedLossAreNotRead) {
  TrainingJob job = testing::small_model();
  job.lora = 2;
  job.lora_targets = "v_proj+lm_head";
  const Lines called = adapted_lines(job);
  job.loss_form.kind = model::LossForms::fused;
  const Lines fused = adapted_lines(job);
  ASSERT_GT(fused.size(), 3U);
  EXPECT_EQ(fused[fused.size() - 3], "9 linear lm_head [N, 4, 8] <- 8 frozen");
  EXPECT_EQ(fused[fused.size() - 2], "10 parameter lm_head.lora_A.default [2, 16] frozen");
  EXPECT_EQ(fused[fused.size() - 1], "11 parameter lm_head.lora_B.default [8, 2] frozen");
  EXPECT_GT(called.size(), fused.size());
}

}  // namespace
}  // namespace gpumem::adapt
