// The calls of PEFT 0.14, tuners/lora: layer.py, bnb.py, gptq.py.
#include "gpumem/adapt/adapters.hpp"

#include "adapted_jobs.hpp"

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

}  // namespace
}  // namespace gpumem::adapt
