#include "gpumem/adapt/trained_weights.hpp"

#include "adapted_jobs.hpp"
#include "gpumem/architectures/architectures.hpp"

namespace gpumem::adapt {
namespace {

using testing::small_model;

/// By layer: "-" all trained, "w" and "b" what is frozen, "*" all.
std::string frozen(const TrainingJob& job) {
  const auto wired = connect::connect(job, ops::catalogue());
  if (!wired) return core::to_string(wired.error());
  const auto storage = weight_storage(*wired, base_linears(*wired), job);
  if (!storage) return storage.error().message;
  std::string text;
  for (const model::WeightStorage& each : *storage) {
    if (each.frozen == 0) text += "-";
    else if (each.frozen == 0xFF) text += "*";
    else text += each.freezes(0) ? "w" : "b";
  }
  return text;
}

TrainingJob with(std::string freeze, std::string train) {
  TrainingJob job = small_model();
  job.freeze = std::move(freeze);
  job.train = std::move(train);
  return job;
}

TEST(TrainedWeights, FollowThePatterns) {
  EXPECT_EQ(frozen(with("model.embed", "")), "*----");
  EXPECT_EQ(frozen(with("model.layers", "")), "-*-*-");
  EXPECT_EQ(frozen(with("*.bias", "")), "bb-bb") << "of those that have one";
  EXPECT_EQ(frozen(with("*.q_proj.weight,lm_head", "")), "-w--*");
  EXPECT_EQ(frozen(with("", "lm_head")), "**-*-") << "nothing else is trained";
  EXPECT_EQ(frozen(with("*", "lm_head,*.q_proj")), "*--*-");
}

TEST(TrainedWeights, AreNotOfTheBaseOfAdapters) {
  TrainingJob job = with("", "lm_head");
  job.lora = 4;
  EXPECT_EQ(frozen(job), "**-*-");
  job.train.clear();
  EXPECT_EQ(frozen(job), "**-**");
}

TEST(TrainedWeights, BesideAdaptersMayBeNamedInVain) {
  TrainingJob job = with("", "*score,lm_head");
  EXPECT_NE(frozen(job).find("'*score' matches no layer"), std::string::npos);
  job.lora = 4;
  EXPECT_EQ(frozen(job), "**-*-");
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(wired);
  EXPECT_EQ(passed_over(wired->graph(), job), std::vector<std::string>{"*score"});
  job.train = "lm_head";
  EXPECT_TRUE(passed_over(wired->graph(), job).empty());
}

TEST(TrainedWeights, AreNotQuantised) {
  TrainingJob job = small_model();
  job.quantize = model::Quantization::nf4;
  EXPECT_EQ(frozen(job), "-w-w-") << "the head is as it was";
  job.train = "model.layers.0.q_proj";
  EXPECT_NE(frozen(job).find("is quantised and cannot be trained"), std::string::npos);
  job.train = "*.q_proj.bias";
  EXPECT_EQ(frozen(job), "*w-**");
}

/// Eight layers of a Llama, whose checkpoint leaves these modules whole: the linear layers that are not quantised.
std::string left_whole(model::Quantization quantize, const std::string& quantization_config,
                       model::Loop loop = model::Loop::hf_trainer) {
  const auto graph = parse_summary(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
      "intermediate_size": 128, "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 4,
      "vocab_size": 32, "max_position_embeddings": 64)" +
                                   quantization_config + "}");
  if (!graph) return core::to_string(graph.error());
  TrainingJob job(*graph, 2);
  job.sequence_length = 8;
  job.quantize = quantize;
  job.loop = loop;
  const auto wired = connect::connect(job, ops::catalogue());
  if (!wired) return core::to_string(wired.error());
  const std::vector<BaseLinear> linears = base_linears(*wired);
  const auto storage = weight_storage(*wired, linears, job);
  if (!storage) return storage.error().message;
  std::string names;
  for (const BaseLinear& linear : linears) {
    if ((*storage)[linear.layer].quantization == model::Quantization::none) names += linear.path + " ";
  }
  return names;
}

TEST(TrainedWeights, StayWholeWhereTheCheckpointSaysSo) {
  using model::Quantization;
  const std::string listed = R"(, "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true,
      "llm_int8_skip_modules": ["lm_head", "model.layers.1.mlp", "layers.2.self_attn.q_proj", "", 7]})";
  EXPECT_EQ(left_whole(Quantization::nf4_double, ""), "lm_head ");
  for (const Quantization each : {Quantization::nf4, Quantization::nf4_dynamic, Quantization::int8}) {
    EXPECT_EQ(left_whole(each, listed),
              "model.layers.1.mlp.gate_proj model.layers.1.mlp.up_proj model.layers.1.mlp.down_proj "
              "model.layers.2.self_attn.q_proj lm_head ");
  }
  const std::string awq =
      R"(, "quantization_config": {"quant_method": "awq", "modules_to_not_convert": ["self_attn", "down_proj", "up_proj"]})";
  EXPECT_EQ(left_whole(Quantization::gptq_4bit, awq).find("gate_proj"), std::string::npos);
  EXPECT_NE(left_whole(Quantization::gptq_4bit, awq).find("7.self_attn.k_proj"), std::string::npos);
}

TEST(TrainedWeights, OfADynamicCheckpointWithoutItsListStayWholeByATwentieth) {
  // The weights take 491,520 + 8 x 2,048 + 2,176 bytes or so: a twentieth is one projection of 64 x 64 more.
  EXPECT_EQ(left_whole(model::Quantization::nf4_dynamic, ""), "model.layers.0.self_attn.q_proj lm_head ");
}

TEST(TrainedWeights, OfModelsInTheirOwnCodeFollowNoListOfACheckpoint) {
  const std::string listed = R"(, "quantization_config": {"llm_int8_skip_modules": ["model.layers.1.mlp"]})";
  EXPECT_EQ(left_whole(model::Quantization::nf4, listed, model::Loop::litgpt), "") << "Fabric takes all, the head too";
  EXPECT_NE(left_whole(model::Quantization::nf4_dynamic, listed, model::Loop::litgpt).find("say `quantize=nf4-double`"),
            std::string::npos);
}

TEST(TrainedWeights, NamesLongerThanAnyModulesArePassedOver) {
  const std::string name(1000, 'x');
  const std::string listed = R"(, "quantization_config": {"llm_int8_skip_modules": [")" + name + R"("]})";
  EXPECT_EQ(left_whole(model::Quantization::nf4_double, listed), "lm_head ");
}

TrainingJob gpt_oss(model::Quantization quantize) {
  const auto graph =
      parse_summary(R"({"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "hidden_size": 64,
      "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16,
      "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32, "max_position_embeddings": 64,
      "sliding_window": 16})");
  EXPECT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 2);
  job.sequence_length = 8;
  job.precision = Precision::bf16;
  job.lora = 4;
  job.lora_targets = "q_proj+v_proj";
  job.quantize = quantize;
  return job;
}

TEST(TrainedWeights, OfExpertsInOneTensorMayBeLinearLayersInFourBits) {
  using model::Quantization;
  for (const Quantization each : {Quantization::nf4_dynamic, Quantization::nf4_linear_experts}) {
    TrainingJob job = gpt_oss(each);
    const auto wired = connect::connect(job, ops::catalogue());
    ASSERT_TRUE(testing::succeeds(wired));
    const auto storage = weight_storage(*wired, base_linears(*wired), job);
    ASSERT_TRUE(testing::succeeds(storage));
    EXPECT_EQ(std::ranges::count_if(*storage,
                                    [](const auto& of) { return of.quantization == Quantization::nf4_linear_experts; }),
              4)
        << "two matrices a layer, and no biases";
    for (const std::string targets : {"all-linear", "q_proj+parameter:experts.down_proj"}) {
      job.lora_targets = targets;
      EXPECT_NE(frozen(job).find("each expert has linear layers of its own"), std::string::npos) << frozen(job);
    }
  }
  TrainingJob litgpt = gpt_oss(Quantization::nf4_linear_experts);
  litgpt.loop = model::Loop::litgpt;
  EXPECT_NE(frozen(litgpt).find("`quantize=nf4-linear-experts` is for transformers' models"), std::string::npos);
}

/// A product makes one expert's weight whole, [64, 128] in two bytes, where nf4-experts has all eight at once.
TEST(TrainedWeights, OfExpertsThatAreLinearLayersAreMadeWholeOneByOne) {
  const auto events_of = [](model::Quantization quantize, std::string_view bytes) {
    return std::ranges::count_if(testing::adapted_events(gpt_oss(quantize), plan::Phase::forward),
                                 [&](const std::string& line) { return line.starts_with(bytes); });
  };
  using model::Quantization;
  constexpr std::string_view kAll = "+131072 ";
  constexpr std::string_view kOne = "+16384 ";
  EXPECT_EQ(events_of(Quantization::nf4_linear_experts, kAll), 0);
  EXPECT_EQ(events_of(Quantization::nf4_experts, kAll), 2) << "a layer";
  EXPECT_EQ(events_of(Quantization::nf4_linear_experts, kOne), events_of(Quantization::nf4_experts, kOne) + 2);
}

/// By layer: whether its weight is held in fewer bits.
std::string quantised(const std::string& layers, model::Quantization quantization) {
  TrainingJob job = testing::job_of(R"({"name": "x", "shape": ["N", 512]})", layers, 2);
  job.quantize = quantization;
  const auto wired = connect::connect(job, ops::catalogue());
  if (!wired) return core::to_string(wired.error());
  const auto storage = weight_storage(*wired, base_linears(*wired), job);
  if (!storage) return storage.error().message;
  std::string text;
  for (const model::WeightStorage& each : *storage) {
    text += each.quantization == model::Quantization::none ? "-" : "q";
  }
  return text;
}

TEST(TrainedWeights, OfExpertsInOneTensorAreQuantisedWhereTheJobSaysSo) {
  const std::string layers = R"(
    {"name": "mlp.q_proj", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 512, "out_features": 512}},
    {"name": "mlp.experts.down_proj", "op": "parameter", "inputs": [], "attrs": {"shape": [2, 512, 64]}},
    {"name": "mlp.experts.down_proj_bias", "op": "parameter", "inputs": [], "attrs": {"shape": [2, 64]}},
    {"name": "mlp.experts.product", "op": "grouped_product", "inputs": ["mlp.q_proj", "mlp.experts.down_proj"]},
    {"name": "head", "op": "linear", "inputs": ["mlp.experts.product"],
     "attrs": {"in_features": 64, "out_features": 8}})";
  EXPECT_EQ(quantised(layers, model::Quantization::nf4_double), "q----");
  EXPECT_EQ(quantised(layers, model::Quantization::nf4_experts), "qq---") << "matrices, and no biases";
}

TEST(TrainedWeights, OfImageModelsAreQuantisedAsTheirLibraryChoosesThem) {
  const std::string layers = R"(
    {"name": "x_embedder", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 512, "out_features": 512}},
    {"name": "blocks.0.proj_out", "op": "linear", "inputs": ["x_embedder"],
     "attrs": {"in_features": 512, "out_features": 512}},
    {"name": "blocks.0.narrow", "op": "linear", "inputs": ["blocks.0.proj_out"],
     "attrs": {"in_features": 512, "out_features": 24}},
    {"name": "blocks.0.wide", "op": "linear", "inputs": ["blocks.0.narrow"],
     "attrs": {"in_features": 24, "out_features": 512}},
    {"name": "proj_out", "op": "linear", "inputs": ["blocks.0.wide"],
     "attrs": {"in_features": 512, "out_features": 64}})";
  EXPECT_EQ(quantised(layers, model::Quantization::int8_sdnq), "-q---")
      << "embedders and the last layer by their names";
  EXPECT_EQ(quantised(layers, model::Quantization::fp8_torchao), "qq--q") << "sides of 16";
  EXPECT_EQ(quantised(layers, model::Quantization::fp8wo_torchao), "qq--q");
}

/// By layer: "h" where each product copies its weight from the host; the message of an error.
std::string bounced(TrainingJob job, model::Offload offload) {
  job.offload = offload;
  const auto wired = connect::connect(job, ops::catalogue());
  if (!wired) return core::to_string(wired.error());
  const auto storage = weight_storage(*wired, base_linears(*wired), job);
  if (!storage) return storage.error().message;
  std::string text;
  for (const model::WeightStorage& each : *storage) text += each.on_host ? "h" : "-";
  return text;
}

TEST(TrainedWeights, OfRamTorchWaitInTheHostsMemory) {
  TrainingJob job = small_model();
  EXPECT_NE(bounced(job, model::Offload::ramtorch).find("say adapters (`lora=16`)"), std::string::npos)
      << "all are trained";
  job.lora = 4;
  EXPECT_EQ(bounced(job, model::Offload::none), "-----");
  EXPECT_EQ(bounced(job, model::Offload::ramtorch), "-h-hh");
  EXPECT_EQ(bounced(job, model::Offload::ramtorch_blocks), "-h-h-") << "the head is in no block";
  job.train = "*.v_proj";
  EXPECT_EQ(bounced(job, model::Offload::ramtorch), "-h--h") << "a trained one stays";
  job.train.clear();
  job.quantize = model::Quantization::nf4;
  EXPECT_NE(bounced(job, model::Offload::ramtorch).find("`offload=ramtorch` takes weights that are whole"),
            std::string::npos);
}

TEST(TrainedWeights, ProductsInFloat8FreezeNothing) {
  TrainingJob job = testing::job_of(R"({"name": "x", "shape": ["N", 32]})", R"(
    {"name": "up", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 32, "out_features": 64}},
    {"name": "odd", "op": "linear", "inputs": ["up"], "attrs": {"in_features": 64, "out_features": 24}},
    {"name": "down", "op": "linear", "inputs": ["odd"], "attrs": {"in_features": 24, "out_features": 32}},
    {"name": "head", "op": "linear", "inputs": ["down"], "attrs": {"in_features": 32, "out_features": 16}})",
                                    2);
  job.quantize = model::Quantization::float8;
  EXPECT_EQ(frozen(job), "----");
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  const auto storage = weight_storage(*wired, base_linears(*wired), job);
  ASSERT_TRUE(testing::succeeds(storage));
  std::string float8;
  for (const model::WeightStorage& each : *storage) float8 += each.float8 ? "8" : "-";
  EXPECT_EQ(float8, "8---") << "tensor cores multiply sides of 16, and the head stays as it is";
}

TEST(TrainedWeights, TransformerEngineCopiesWhatMegatronGivesIt) {
  const auto kinds = [](std::string_view more) {
    auto graph = architectures::read_config(R"({"num_layers": 3, "hidden_size": 64, "num_attention_heads": 4,
        "padded_vocab_size": 128, "max_position_embeddings": 32)" +
                                                std::string(more) + "}",
                                            ops::vocabulary());
    EXPECT_TRUE(testing::succeeds(graph));
    TrainingJob job(*std::move(graph), 2);
    job.sequence_length = 16;
    job.loop = model::Loop::megatron;
    job.quantize = model::Quantization::nvfp4;
    const auto wired = connect::connect(job, ops::catalogue());
    const auto storage = weight_storage(*wired, base_linears(*wired), job);
    EXPECT_TRUE(testing::succeeds(storage));
    std::string text;
    for (std::size_t at = 0; storage && at < storage->size(); ++at) {
      const model::WeightStorage& each = (*storage)[at];
      if (wired->graph().op(wired->graph().layers()[at]) != "linear") continue;
      const bool copies = each.copies == model::Quantization::nvfp4;
      text += !copies ? "-" : each.keeps_input ? "i" : each.keeps_weight_copies ? "w" : "c";
    }
    return text;
  };
  EXPECT_EQ(kinds(""), "wiwwwiwwwiww-") << "attention's output is kept anyway, and the head is multiplied as it is";
  EXPECT_EQ(kinds(R"(, "first_last_layers_bf16": true)"), "----wiww-----");
  EXPECT_EQ(kinds(R"(, "fp8_param_gather": true)"), "cicccicccicc-");
}

TEST(TrainedWeights, NvFp4IsTransformerEngines) {
  TrainingJob job = small_model();
  job.quantize = model::Quantization::nvfp4;
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_TRUE(testing::fails(weight_storage(*wired, base_linears(*wired), job), core::ErrorCode::invalid_argument, 0,
                             "loop=megatron"));
}

TEST(TrainedWeights, FrozenOnesAreOfTheTypeThatTheBaseWasLoadedIn) {
  TrainingJob job = small_model();
  job.precision = Precision::bf16;
  job.lora = 4;
  job.train = "lm_head";
  job.base_dtype = model::BaseType::bf16;
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  const auto storage = weight_storage(*wired, base_linears(*wired), job);
  ASSERT_TRUE(testing::succeeds(storage));
  EXPECT_EQ(storage->front().dtype, core::DType::bfloat16);
  EXPECT_EQ(storage->back().dtype, std::nullopt) << "it is trained";
}

TEST(TrainedWeights, FollowWhatTheyAreTiedTo) {
  TrainingJob job = testing::job_of(R"({"name": "ids", "shape": ["N", 4], "dtype": "int64"})", R"(
    {"name": "embed", "op": "embedding", "inputs": ["ids"], "attrs": {"num_embeddings": 32, "embedding_dim": 16}},
    {"name": "mix", "op": "linear", "inputs": ["embed"],
     "attrs": {"in_features": 16, "out_features": 16, "bias": false}},
    {"name": "lm_head", "op": "linear", "inputs": ["mix"], "tied_parameters": 512,
     "attrs": {"in_features": 16, "out_features": 32, "bias": false}})",
                                    2);
  job.freeze = "embed";
  EXPECT_EQ(frozen(job), "*-*");
  job.freeze = "mix";
  EXPECT_EQ(frozen(job), "-*-");
}

/// Whoever trains on text alone freezes the tower all the same, and its layers are not there.
TEST(TrainedWeights, OfATowerThatSamplesOfTextLeaveOutMayBeFrozen) {
  const auto graph = architectures::read_config(
      R"({"model_type": "llava", "image_token_index": 32000, "projector_hidden_act": "gelu", "text_config":
         {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
          "num_attention_heads": 4, "vocab_size": 256}, "vision_config": {"model_type": "clip_vision_model",
          "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
          "image_size": 56, "patch_size": 14}, "vision_feature_layer": -2})",
      ops::vocabulary(), "config.json", {});
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 2);
  job.sequence_length = 64;
  job.freeze = "*vision_tower*";
  const std::string some = frozen(job);
  EXPECT_NE(some.find('*'), std::string::npos) << some;
  EXPECT_NE(some.find('-'), std::string::npos) << some;
  job.images = 0;
  const std::string none = frozen(job);
  EXPECT_LT(none.size(), some.size());
  job.freeze.clear();
  EXPECT_EQ(frozen(job), none) << "what is there is trained, but for what nothing calls";
  job.freeze = "*vision_towers*";
  EXPECT_NE(frozen(job).find("matches no layer with parameters"), std::string::npos);
}

TEST(TrainedWeights, APatternThatMeansNothingIsAnError) {
  EXPECT_NE(frozen(with("model.embeds", "")).find("matches no layer with parameters"), std::string::npos);
  EXPECT_NE(frozen(with("", "head")).find("'model.embed'"), std::string::npos) << "what they are called";
  TrainingJob job = testing::job_of(testing::kRows, R"({"name": "a", "op": "linear", "inputs": ["x"],
    "attrs": {"in_features": 4, "out_features": 8, "bias": true}})",
                                    2);
  job.quantize = model::Quantization::int8;
  EXPECT_NE(frozen(job).find("nothing to quantise"), std::string::npos);
}

}  // namespace
}  // namespace gpumem::adapt
