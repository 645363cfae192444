// What adapters, frozen layers and quantised weights change in a step: gradients, states, what forward keeps.
#include "gpumem/adapt/adapt.hpp"

#include <algorithm>
#include <optional>

#include "adapted_jobs.hpp"

namespace gpumem::adapt {
namespace {

using plan::Phase;
using testing::adapted_events;
using testing::adapted_lines;
using testing::count;
using testing::Events;
using testing::small_model;

/// The events that hold all of these words.
std::ptrdiff_t having(const Events& all, std::initializer_list<std::string_view> words) {
  return std::count_if(all.begin(), all.end(), [&](const std::string& event) {
    return std::all_of(words.begin(), words.end(),
                       [&](std::string_view word) { return event.find(word) != std::string::npos; });
  });
}

TEST(Adapt, AsksForNothingWithoutItsOptions) {
  TrainingJob job = small_model();
  EXPECT_FALSE(adapts(job));
  job.activation_checkpointing = true;
  EXPECT_FALSE(inputs_need_gradients(job));
  job.lora = 2;
  EXPECT_TRUE(adapts(job));
  EXPECT_TRUE(inputs_need_gradients(job));
}

TEST(Adapt, SaysWhichModulesToSaveAreNotThere) {
  TrainingJob job = small_model();
  job.lora = 2;
  job.train = "*score";
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(wired);
  const auto adapted = adapt(*wired, job, ops::catalogue());
  ASSERT_TRUE(adapted);
  const auto remarks = adapted->remarks();
  ASSERT_FALSE(remarks.empty());
  EXPECT_NE(remarks.back().find("'*score', which `train` names"), std::string::npos) << remarks.back();
}

TEST(Adapt, FrozenLayersHaveNoGradientsAndNothingFlowsBelowThem) {
  TrainingJob job = small_model();
  job.freeze = "model.embed,*.q_proj";
  const Events backward = adapted_events(job, Phase::backward);
  EXPECT_EQ(having(backward, {"+", "q_proj"}), 0) << "neither the weight's gradient nor the input's";
  EXPECT_EQ(having(backward, {"+", "embed"}), 0);
  EXPECT_EQ(count(backward, "+512 model.layers.0.v_proj gradient"), 1);
  EXPECT_EQ(having(backward, {"+", "act", "flow"}), 0) << "v_proj's input needs no gradient";
  EXPECT_EQ(count(backward, "+256 lm_head gradient"), 1);
}

TEST(Adapt, AFrozenLinearLayerDoesNotKeepItsInput) {
  TrainingJob job = small_model();
  // q_proj's output, 2 x 4 x 16 in bf16, is overwritten by nothing and kept only for relu's output.
  const Events all = adapted_events(job, Phase::forward);
  EXPECT_EQ(having(all, {"-256 model.embed activation"}), 0) << "kept for q_proj's weight";
  job.freeze = "*.q_proj.weight";
  const Events frozen = adapted_events(job, Phase::forward);
  EXPECT_EQ(having(frozen, {"-256 model.embed activation"}), 1) << "given back in forward";
}

TEST(Adapt, OptimizersHaveStatesOfWhatIsTrainedAlone) {
  TrainingJob job = small_model();
  job.optimizer = Optimizer::adam;
  job.train = "lm_head";
  const Events step = adapted_events(job, Phase::optimizer);
  EXPECT_EQ(count(step, "+256 lm_head optimizer"), 2);
  EXPECT_EQ(having(step, {"+", "optimizer"}), 2);
  EXPECT_EQ(having(step, {"+", "temporary"}), 1) << "the foreach form's temporary";
}

TEST(Adapt, AModuleBesideAdaptersIsTrainedAsACopy) {
  TrainingJob job = small_model();
  job.optimizer = Optimizer::adam;
  job.lora = 2;
  job.train = "lm_head";
  const auto lines = adapted_lines(job);
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.back().find("parameter lm_head.original_module [128] frozen"), std::string::npos) << lines.back();
  EXPECT_EQ(having(adapted_events(job, Phase::construction, 0), {"+256", "lm_head", "parameter"}), 2);
  const Events step = adapted_events(job, Phase::optimizer);
  EXPECT_EQ(count(step, "+256 lm_head optimizer"), 2) << "of the copy alone";
  job.lora.reset();
  EXPECT_EQ(having(adapted_events(job, Phase::construction, 0), {"+256", "lm_head", "parameter"}), 1);
}

TEST(Adapt, TensorsThatAreTrainedBesideAdaptersAreNotCopied) {
  TrainingJob job = small_model();
  job.optimizer = Optimizer::adam;
  job.lora = 2;
  job.train = "*.bias";
  for (const std::string& line : adapted_lines(job)) {
    EXPECT_EQ(line.find("original_module"), std::string::npos) << line;
  }
  const Events step = adapted_events(job, Phase::optimizer);
  EXPECT_EQ(count(step, "+32 model.layers.0.q_proj optimizer"), 2) << "of 16 biases alone";
}

/// The model of Llama 3.2 in small: the head is tied to the embedding.
TrainingJob tied_model() {
  TrainingJob job = testing::job_of(R"({"name": "ids", "shape": ["N", 4], "dtype": "int64"})", R"(
    {"name": "embed", "op": "embedding", "inputs": ["ids"], "attrs": {"num_embeddings": 32, "embedding_dim": 16}},
    {"name": "q_proj", "op": "linear", "inputs": ["embed"],
     "attrs": {"in_features": 16, "out_features": 16, "bias": false}},
    {"name": "v_proj", "op": "linear", "inputs": ["q_proj"],
     "attrs": {"in_features": 16, "out_features": 16, "bias": false}},
    {"name": "lm_head", "op": "linear", "inputs": ["v_proj"], "tied_parameters": 512,
     "attrs": {"in_features": 16, "out_features": 32, "bias": false}})",
                                    2);
  job.precision = Precision::bf16;
  job.optimizer = Optimizer::adam;
  job.lora = 2;
  return job;
}

TEST(Adapt, TheCopyOfATiedModuleIsTrainedOnItsOwn) {
  TrainingJob job = tied_model();
  const auto of = [&](std::string_view name, Phase phase) {
    return count(adapted_events(job, phase, phase == Phase::construction ? 0 : 1),
                 "+1024 " + std::string(name) + (phase == Phase::construction ? " parameter" : " optimizer"));
  };
  job.train = "lm_head";
  EXPECT_EQ(of("embed", Phase::construction), 1);
  EXPECT_EQ(of("lm_head", Phase::construction), 1);
  EXPECT_EQ(of("embed", Phase::optimizer), 0);
  EXPECT_EQ(of("lm_head", Phase::optimizer), 2);
  job.train = "embed";
  EXPECT_EQ(of("embed", Phase::construction), 1);
  EXPECT_EQ(of("embed.original_module", Phase::construction), 1);
  EXPECT_EQ(of("lm_head", Phase::construction), 0) << "it reads the original";
  EXPECT_EQ(of("embed", Phase::optimizer), 2);
  EXPECT_EQ(count(adapted_events(job, Phase::backward), "+1024 lm_head gradient"), 0);
  job.train = "embed,lm_head";
  EXPECT_EQ(of("embed", Phase::optimizer), 2);
  EXPECT_EQ(of("lm_head", Phase::optimizer), 2);
}

TEST(Adapt, OtherMethodsHaveCopiesToo) {
  TrainingJob job = tied_model();
  job.lora.reset();
  job.peft = model::PeftMethod::oft;
  job.peft_options = "oft_block_size=4";
  job.train = "embed";
  EXPECT_EQ(count(adapted_events(job, Phase::construction, 0), "+1024 embed.original_module parameter"), 1);
  job.peft = model::PeftMethod::trainable_tokens;
  job.peft_options.clear();
  EXPECT_EQ(having(adapted_events(job, Phase::construction, 0), {"original_module"}), 0) << "its config has none";
}

TEST(Adapt, TheOriginalOfACopyIsOfTheTypeThatItWasLoadedIn) {
  TrainingJob job = small_model();
  job.precision = Precision::amp_fp16;
  job.quantize = model::Quantization::gptq_4bit;
  job.lora = 2;
  job.train = "lm_head";
  const Events built = adapted_events(job, Phase::construction, 0);
  EXPECT_EQ(count(built, "+256 lm_head parameter"), 1);
  EXPECT_EQ(count(built, "+256 lm_head.original_module parameter"), 1);
}

TEST(Adapt, AdaptersStatesAreOfTheirType) {
  TrainingJob job = small_model();
  job.optimizer = Optimizer::adam;
  job.lora = 2;
  const Events step = adapted_events(job, Phase::optimizer);
  EXPECT_EQ(having(step, {"+128", "lora_", "optimizer"}), 8) << "A and B, 2 x 16 in float32, of q_proj and v_proj";
  EXPECT_EQ(having(step, {"+", "optimizer"}), 8);
}

TEST(Adapt, DropoutKeepsAMaskAndACopy) {
  TrainingJob job = small_model();
  job.lora = 2;
  job.lora_targets = "v_proj";
  const std::string copy = "+512 model.layers.0.v_proj.dropout activation";
  const std::string mask = "+128 model.layers.0.v_proj.dropout activation";
  EXPECT_EQ(count(adapted_events(job, Phase::forward), copy), 0);
  job.lora_dropout = 0.1;
  const Events forward = adapted_events(job, Phase::forward);
  EXPECT_EQ(count(forward, copy), 1);
  EXPECT_EQ(count(forward, mask), 1);
  EXPECT_EQ(count(forward, "-512 model.layers.0.v_proj.dropout activation"), 0) << "kept for A";
}

TEST(Adapt, CheckpointedBlocksOnAFrozenBaseGetInputsThatNeedGradients) {
  TrainingJob job = small_model();
  job.lora = 2;
  job.activation_checkpointing = true;
  const auto lines = adapted_lines(job);
  ASSERT_GT(lines.size(), 2U);
  EXPECT_EQ(lines[0], "0 embedding model.embed [N, 4, 16] <- -1 frozen");
  EXPECT_EQ(lines[1], "1 requires_grad model.embed.requires_grad [N, 4, 16] <- 0");
  EXPECT_EQ(lines[2], "2 linear model.layers.0.q_proj [N, 4, 16] <- 1 frozen");
  job.activation_checkpointing = false;
  EXPECT_EQ(adapted_lines(job)[1], "1 linear model.layers.0.q_proj [N, 4, 16] <- 0 frozen");
}

TEST(Adapt, QuantisedWeightsAreHeldSmallAndMadeWholeInBothDirections) {
  TrainingJob job = small_model();
  job.lora = 2;
  job.lora_targets = "v_proj";
  job.quantize = model::Quantization::nf4;
  const Events built = adapted_events(job, Phase::construction, 0);
  EXPECT_EQ(count(built, "+128 model.layers.0.v_proj parameter"), 1) << "256 weights in four bits";
  EXPECT_EQ(count(built, "+16 model.layers.0.v_proj buffer"), 1) << "four blocks' scales";
  EXPECT_EQ(count(built, "+64 model.layers.0.v_proj buffer"), 1) << "sixteen levels";
  EXPECT_EQ(count(built, "+256 lm_head parameter"), 1) << "the head stays in bf16";
  EXPECT_EQ(count(built, "+1024 model.embed parameter"), 1);
  const std::string whole = "+512 model.layers.0.v_proj temporary";
  EXPECT_EQ(count(adapted_events(job, Phase::forward), whole), 1);
  EXPECT_EQ(count(adapted_events(job, Phase::backward), whole), 0) << "nothing below it is trained";
  job.lora_targets = "q_proj+v_proj";
  EXPECT_EQ(count(adapted_events(job, Phase::backward), whole), 1);
}

TEST(Adapt, CountsAdaptersAmongTheParameters) {
  TrainingJob job = small_model();
  job.lora = 2;
  analysis::Analysis analysis(job);
  const auto adapted = analysis.adapted();
  ASSERT_TRUE(testing::succeeds(adapted));
  EXPECT_EQ((*adapted)->graph().parameters(), job.graph->parameters() + 4 * 32);
  EXPECT_EQ((*adapted)->graph().trainable_parameters(), 4 * 32);
}

/// A decoder of this type with 4 experts of 24 features, 2 a token, trained with adapters of rank 3.
std::optional<TrainingJob> small_mixture(std::string_view fields) {
  const auto graph = parse_summary(R"({"vocab_size": 32, "hidden_size": 16, "num_attention_heads": 2,
      "num_key_value_heads": 2, "hidden_act": "silu", "num_experts_per_tok": 2, )" +
                                   std::string(fields) + "}");
  EXPECT_TRUE(testing::succeeds(graph)) << fields;
  if (!graph) return std::nullopt;
  TrainingJob job(*graph, 1);
  job.sequence_length = 4;
  job.transformers = model::Transformers::v5_0;
  job.lora = 3;
  job.lora_targets = "all-linear";
  return job;
}

constexpr std::string_view kQwen3 = R"("model_type": "qwen3_moe", "intermediate_size": 32, "head_dim": 8,
    "num_hidden_layers": 1, "num_experts": 4, "moe_intermediate_size": 24, "decoder_sparse_step": 1)";

/// Elements of all adapters; -1: the job is refused.
std::int64_t adapter_elements(const TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto adapted = analysis.adapted();
  if (!adapted) return -1;
  std::int64_t elements = 0;
  for (const model::Layer& layer : (*adapted)->graph().layers()) {
    if ((*adapted)->graph().name(layer).find(".lora_") != std::string_view::npos) elements += layer.parameters;
  }
  return elements;
}

/// As PEFT 0.20.1 counts them with transformers 5.16 (get_peft_model() of these configs, all-linear).
TEST(Adapt, HoldsTheAdaptersThatPeftMakesForFusedExperts) {
  struct Case {
    std::string_view fields;
    std::int64_t elements;
  };
  for (const Case& each : std::initializer_list<Case>{
           {kQwen3, 2460},
           {R"("model_type": "glm4_moe", "intermediate_size": 32, "head_dim": 8, "num_hidden_layers": 2,
               "n_routed_experts": 4, "moe_intermediate_size": 24, "n_shared_experts": 1, "first_k_dense_replace": 1)",
            2844},
           {R"("model_type": "minimax_m2", "intermediate_size": 24, "head_dim": 8, "num_hidden_layers": 1,
               "num_local_experts": 4)",
            2460},
           {R"("model_type": "mixtral", "intermediate_size": 24, "head_dim": 8, "num_hidden_layers": 1,
               "num_local_experts": 4)",
            2460},
           {R"("model_type": "qwen2_moe", "intermediate_size": 32, "num_hidden_layers": 1, "num_experts": 4,
               "moe_intermediate_size": 24, "shared_expert_intermediate_size": 32)",
            867}}) {
    const auto job = small_mixture(each.fields);
    ASSERT_TRUE(job);
    EXPECT_EQ(adapter_elements(*job), each.elements) << each.fields;
  }
}

TEST(Adapt, TakesExpertsNamesForTheirTensorInTransformers5Alone) {
  auto job = small_mixture(kQwen3);
  ASSERT_TRUE(job);
  const std::int64_t all = adapter_elements(*job);
  job->lora_targets = "q_proj+k_proj+v_proj+o_proj+gate+gate_proj+up_proj+down_proj";
  EXPECT_EQ(adapter_elements(*job), all);
  job->lora_targets = "gate_proj+up_proj";
  EXPECT_EQ(adapter_elements(*job), 4 * 2 * 3 * (16 + 48)) << "twice the rank";
  job->lora_targets = "down_proj";
  EXPECT_EQ(adapter_elements(*job), 4 * 3 * (24 + 16));
  job->lora_targets = "q_proj+gate_proj";
  EXPECT_NE(adapted_lines(*job).at(0).find("no gate_proj alone"), std::string::npos);
  const std::int64_t attention = 3 * 4 * (16 + 16);
  job->lora_targets = "all-linear+by-name";
  EXPECT_EQ(adapter_elements(*job), attention) << "what a program finds itself";
  job->lora_targets = "all-linear";
  job->lora_dropout = 0.1;
  EXPECT_EQ(adapter_elements(*job), attention);
  job->lora_dropout = 0.0;
  job->transformers = model::Transformers::v4_56;
  EXPECT_EQ(adapter_elements(*job), 3 * (4 * (16 + 16) + (16 + 4) + 4 * 3 * (16 + 24))) << "each expert's layers";
}

/// PEFT looks up the type of the whole model. Qwen3-VL-MoE, whose experts were one tensor before, has a conversion of
/// its own, of which PEFT makes no adapters.
TEST(Adapt, ExpertsOfModelsThatReadImagesHaveAdaptersByTheWholeModelsType) {
  const auto adapted = [](std::string_view type, std::string_view experts, std::int64_t images) {
    const auto graph =
        parse_summary(R"({"model_type": ")" + std::string(type) + R"(", "text_config": {"model_type": ")" +
                      std::string(type) + R"(_text", "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100,
        "moe_intermediate_size": 32, "num_experts_per_tok": 2, "first_k_dense_replace": 1, ")" +
                      std::string(experts) + R"(": 4}, "vision_config": {"depth": 1, "hidden_size": 32,
        "num_heads": 2, "intermediate_size": 48, "out_hidden_size": 64, "deepstack_visual_indexes": [0]}})");
    EXPECT_TRUE(testing::succeeds(graph));
    if (!graph) return std::int64_t{-2};
    TrainingJob job(*graph, 1);
    job.sequence_length = 512;
    job.images = images;
    if (images > 0) job.image = {256, 256};
    job.transformers = model::Transformers::v5_5;
    job.lora = 3;
    job.lora_targets = "gate_proj+up_proj";
    return adapter_elements(job);
  };
  for (const std::int64_t images : {0, 1}) {
    EXPECT_EQ(adapted("glm4v_moe", "n_routed_experts", images), 4 * 2 * 3 * (64 + 2 * 32)) << "none of the tower's";
    EXPECT_EQ(adapted("qwen3_vl_moe", "num_experts", images), -1) << "no layer of these names";
  }
}

}  // namespace
}  // namespace gpumem::adapt
