// Parameters of published models, from the fields of their config.json: each number is the one that its model card, its
// paper or transformers' num_parameters() gives.
#include "gpumem/architectures/architectures.hpp"

#include <set>

#include "expect.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "newest_models.hpp"
#include "published_vision_models.hpp"
#include "recent_models.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::all_published;
using testing::fails;
using testing::kPublished;
using testing::Published;
using testing::succeeds;

core::Result<model::ModelGraph> read(std::string_view config) { return read_config(config, ops::vocabulary()); }

TEST(Architectures, HaveThePublishedParameters) {
  for (const Published& model : all_published()) {
    const auto graph = read(model.config);
    ASSERT_TRUE(succeeds(graph)) << model.name;
    EXPECT_EQ(graph->parameters(), model.parameters) << model.name;
    EXPECT_FALSE(graph->edges_inferred()) << model.name;
    EXPECT_EQ(graph->unknown_layers(), 0) << model.name;
    const bool mixes = model.config.find("expert") != std::string_view::npos;
    const std::size_t doubts = graph->doubts().size();
    for (const model::Doubt& doubt : graph->doubts()) EXPECT_EQ(doubt.about, model::Doubt::About::kernels);
    EXPECT_EQ(graph->warnings().size(), doubts + (mixes ? 1 : 0)) << model.name << ": the routing depends on the data";
  }
}

TEST(Architectures, CountTheLargestHybrids) {
  constexpr std::string_view kNext =
      R"({"model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16,
      "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120, "vocab_size": 151936, "num_experts": 512,
      "num_experts_per_tok": 10, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512})";
  constexpr std::string_view kUltra =
      R"({"model_type": "nemotron_h", "hidden_size": 8192, "hybrid_override_pattern": "MEME*E-", "vocab_size": 131072,
      "num_attention_heads": 64, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 5120,
      "mamba_num_heads": 256, "mamba_head_dim": 64, "n_routed_experts": 4, "num_experts_per_tok": 2,
      "moe_intermediate_size": 5120, "moe_latent_size": 2048, "moe_shared_expert_intermediate_size": 10240})";
  const auto next = read(kNext);
  ASSERT_TRUE(succeeds(next));
  EXPECT_EQ(next->parameters(), 79'674'391'296);
  const auto ultra = read(kUltra);
  ASSERT_TRUE(succeeds(ultra));
  constexpr std::int64_t kInner = 256 * 64;
  constexpr std::int64_t kConvolved = kInner + 2 * 8 * 128;
  constexpr std::int64_t kMixer =
      8192 * (kInner + kConvolved + 256) + 5 * kConvolved + 3 * 256 + kInner + kInner * 8192;
  constexpr std::int64_t kExperts = 4 * 2 * 2048 * 5120 + 4 * 8192 + 2 * 8192 * 2048 + 2 * 8192 * 10240;
  constexpr std::int64_t kAttention = 2 * 8192 * 64 * 128 + 2 * 8192 * 2 * 128;
  constexpr std::int64_t kWords = std::int64_t{2} * 131072 * 8192;
  EXPECT_EQ(ultra->parameters(), kWords + 8192 * 8 + 2 * kMixer + 3 * kExperts + kAttention + 2 * 8192 * 5120);
}

TEST(Architectures, SayWhichLayersHoldAState) {
  const auto states = [](std::string_view name) {
    const auto* row = std::ranges::find(kPublished, name, &Published::name);
    const auto graph = read(row->config);
    EXPECT_TRUE(succeeds(graph));
    return graph && keeps_state(*graph);
  };
  for (const std::string_view name : {"mamba-130m", "lfm2-1.2b", "falcon-h1-0.5b", "qwen3.5-0.8b, without its tower"}) {
    EXPECT_TRUE(states(name)) << name;
  }
  EXPECT_FALSE(states("llama-3.2-1b"));
}

TEST(Architectures, RefuseHybridsWhoseLayersAreNotSaid) {
  const auto nemotron = [](std::string_view fields) {
    return read(R"({"model_type": "nemotron_h", "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128,
      "vocab_size": 100, "mamba_num_heads": 8, "mamba_head_dim": 16)" +
                std::string(fields) + "}");
  };
  EXPECT_TRUE(succeeds(nemotron(R"(, "hybrid_override_pattern": "M*-")")));
  EXPECT_TRUE(succeeds(nemotron(R"(, "layers_block_type": ["mamba", "attention", "mlp"])")));
  EXPECT_TRUE(fails(nemotron(""), ErrorCode::malformed_input, 0, "what each layer is"));
  EXPECT_TRUE(fails(nemotron(R"(, "hybrid_override_pattern": "MX")"), ErrorCode::malformed_input, 0, "letter"));
  EXPECT_TRUE(fails(nemotron(R"(, "hybrid_override_pattern": "M*", "num_hidden_layers": 3)"),
                    ErrorCode::malformed_input, 0, "number of layers"));
  EXPECT_TRUE(fails(nemotron(R"(, "layers_block_type": ["mamba", "rwkv"])"), ErrorCode::malformed_input, 0, "kind"));
  EXPECT_TRUE(fails(nemotron(R"(, "hybrid_override_pattern": "M", "n_groups": 3)"), ErrorCode::malformed_input, 0,
                    "does not divide"));
  EXPECT_TRUE(
      fails(nemotron(R"(, "hybrid_override_pattern": "ME")"), ErrorCode::missing_information, 0, "n_routed_experts"));
}

TEST(Architectures, AnswerEachForTypesOfTheirOwn) {
  std::set<std::string_view> types;
  for (const Architecture* architecture : architectures()) {
    EXPECT_NE(architecture->write, nullptr) << architecture->name;
    EXPECT_FALSE(architecture->model_types.empty()) << architecture->name;
    for (const std::string_view type : architecture->model_types) EXPECT_TRUE(types.insert(type).second) << type;
  }
}

TEST(Architectures, GraniteMoeSharedHasALayerOfAllTokensBesideItsExperts) {
  const auto parameters = [](std::string_view type, std::string_view more) {
    const auto graph = read(R"({"model_type": ")" + std::string(type) +
                            R"(", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 32, "vocab_size": 100, "num_local_experts": 4, "num_experts_per_tok": 2)" +
                            std::string(more) + "}");
    EXPECT_TRUE(succeeds(graph));
    return graph ? graph->parameters() : 0;
  };
  const std::int64_t experts = parameters("granitemoe", "");
  EXPECT_EQ(parameters("granitemoeshared", ""), experts);
  EXPECT_EQ(parameters("granitemoeshared", R"(, "shared_intermediate_size": 48)"), experts + 2 * (3 * 64 * 48));
}

TEST(Architectures, Gemma4HoldsItsTowerForSound) {
  const auto counted = [](std::string_view sound) {
    const auto graph = read(R"({"model_type": "gemma4", "vision_config": {"hidden_size": 16, "intermediate_size": 32,
      "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 8, "position_embedding_size": 8},
      "text_config": {"model_type": "gemma4_text", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
      "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "vocab_size": 100}, "audio_config": )" +
                            std::string(sound) + "}");
    EXPECT_TRUE(succeeds(graph));
    return graph ? std::pair(graph->parameters(), graph->trainable_parameters())
                 : std::pair<std::int64_t, std::int64_t>();
  };
  const auto deaf = counted("null");
  const auto hears = counted(R"({"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
      "subsampling_conv_channels": [8, 4], "conv_kernel_size": 3, "output_proj_dims": 12})");
  // Counted from the modules of Gemma4AudioModel, and of the layer behind it (12 to 32).
  EXPECT_EQ(hears.first - deaf.first, 2 * 1636 + 436 + 108 + 12 * 32);
  EXPECT_EQ(hears.second, deaf.second) << "what is not called learns nothing";
}

TEST(Architectures, EveryTypeIsAmongThePublishedModels) {
  std::string configs;
  for (const Published& model : all_published()) configs += model.config;
  for (const Published& model : testing::kPublishedVision) configs += model.config;
  for (const Published& model : testing::kPublishedWithMore) configs += model.config;
  for (const testing::Newest& model : testing::kNewest) configs += model.config;
  configs += testing::kKimiVl;
  for (const Architecture* architecture : architectures()) {
    // Classes of diffusers: dit_parts_test.cpp and denoiser_test.cpp have their parameters.
    const char first = architecture->model_types.front().front();
    if (first >= 'A' && first <= 'Z') continue;
    bool any = false;
    for (const std::string_view type : architecture->model_types) {
      any = any || configs.find("\"model_type\": \"" + std::string(type) + "\"") != std::string::npos;
      // diffusers' classes: denoiser_test.cpp has their published parameters.
      any = any || (type[0] >= 'A' && type[0] <= 'Z');
    }
    EXPECT_TRUE(any) << architecture->name;
  }
}

constexpr std::string_view kSmall = R"("hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
  "intermediate_size": 128, "vocab_size": 100)";

std::string small(std::string_view more) { return "{" + std::string(kSmall) + ", " + std::string(more) + "}"; }

TEST(ReadConfig, TellsTheHeadByTheClass) {
  const auto parameters = [](std::string_view name) {
    const auto graph = read(small(R"("model_type": "llama", "architectures": [")" + std::string(name) + "\"]"));
    EXPECT_TRUE(succeeds(graph));
    return graph ? graph->parameters() : 0;
  };
  const std::int64_t body = parameters("LlamaModel");
  EXPECT_EQ(parameters("LlamaForCausalLM"), body + 64 * 100);
  EXPECT_EQ(parameters("LlamaForSequenceClassification"), body + 64 * 2);
  EXPECT_EQ(parameters("LlamaForTokenClassification"), body + 64 * 2 + 2);
  EXPECT_EQ(parameters("LlamaForQuestionAnswering"), body + 64 * 2 + 2);
  EXPECT_EQ(parameters("LlamaForSomethingElse"), body + 64 * 100) << "what it usually is";
}

TEST(ReadConfig, GivesXLNetTheHeadOfItsClass) {
  const auto parameters = [](std::string_view name, std::string_view more = "") {
    const auto graph = read(R"({"model_type": "xlnet", "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128,
      "vocab_size": 100, "architectures": [")" +
                            std::string(name) + "\"]" + std::string(more) + "}");
    EXPECT_TRUE(succeeds(graph)) << name;
    return graph ? graph->parameters() : 0;
  };
  const std::int64_t body = parameters("XLNetModel");
  constexpr std::int64_t kSquare = 64 * 64 + 64;
  EXPECT_EQ(parameters("XLNetLMHeadModel"), body + 100) << "the weight is the embedding's";
  EXPECT_EQ(parameters("XLNetForTokenClassification"), body + 64 * 2 + 2);
  EXPECT_EQ(parameters("XLNetForSequenceClassification"), body + kSquare + 64 * 2 + 2);
  EXPECT_EQ(parameters("XLNetForSequenceClassification", R"(, "summary_use_proj": false)"), body + 64 * 2 + 2);
  EXPECT_EQ(parameters("XLNetForQuestionAnsweringSimple"), body + 64 * 2 + 2);
  constexpr std::int64_t kTwice = 2 * 64 * 64 + 64;
  EXPECT_EQ(parameters("XLNetForQuestionAnswering"), body + 65 + (kTwice + 2 * 64 + 65) + (kTwice + 64))
      << "logits of the start, of the end, of whether there is an answer";
}

TEST(ReadConfig, RefusesAnXLNetThatIsNotFineTunedSo) {
  const auto xlnet = [](std::string_view more) {
    return read(R"({"model_type": "xlnet", "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128,
      "vocab_size": 100, )" +
                std::string(more) + "}");
  };
  EXPECT_TRUE(fails(xlnet(R"("d_head": 32)"), ErrorCode::malformed_input, 0, "d_model / n_head"));
  EXPECT_TRUE(fails(xlnet(R"("attn_type": "uni")"), ErrorCode::malformed_input, 0, "both directions"));
  EXPECT_TRUE(fails(xlnet(R"("summary_type": "attn")"), ErrorCode::malformed_input, 0, "last, first, mean"));
}

TEST(ReadConfig, ReadsAnEncoderAlone) {
  const auto parameters = [](std::string_view name) {
    const auto graph =
        read(R"({"model_type": "t5", "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4,
      "vocab_size": 100, "architectures": [")" +
             std::string(name) + "\"]}");
    EXPECT_TRUE(succeeds(graph));
    return graph ? graph->parameters() : 0;
  };
  constexpr std::int64_t kBlock = 4 * 64 * 64 + 2 * 64 * 128 + 2 * 64;  // attention, feed-forward layer, norms
  EXPECT_EQ(parameters("T5EncoderModel"), 64 * 100 + 2 * kBlock + 32 * 4 + 64);
  EXPECT_EQ(parameters("T5Model"), parameters("T5ForConditionalGeneration")) << "the output layer is the embedding";
}

TEST(ReadConfig, CountsLabelsByTheirNames) {
  const auto graph = read(small(R"("model_type": "llama", "architectures": ["LlamaForSequenceClassification"],
    "id2label": {"0": "a", "1": "b", "2": "c"})"));
  ASSERT_TRUE(succeeds(graph));
  const auto two = read(small(R"("model_type": "llama", "architectures": ["LlamaForSequenceClassification"])"));
  EXPECT_EQ(graph->parameters() - two->parameters(), 64);
}

using About = model::Doubt::About;

/// What the graph's source leaves open, in order.
std::vector<About> doubts(const core::Result<model::ModelGraph>& graph) {
  std::vector<About> all;
  EXPECT_TRUE(succeeds(graph));
  if (!graph) return all;
  for (const model::Doubt& doubt : graph->doubts()) all.push_back(doubt.about);
  return all;
}

TEST(ReadConfig, TakesAnUnknownTypeWithALlamasFieldsForOneAndSaysSo) {
  const auto graph = read(small(R"("model_type": "newcomer", "rms_norm_eps": 1e-5, "rope_interval": 4)"));
  EXPECT_EQ(doubts(graph), (std::vector{About::model_type, About::fields}));
  ASSERT_EQ(graph->warnings().size(), 2U);
  EXPECT_NE(graph->warnings()[0].message.find("'newcomer' is not known"), std::string::npos);
  const auto llama = read(small(R"("model_type": "llama")"));
  EXPECT_EQ(graph->parameters(), llama->parameters());
  EXPECT_TRUE(llama->doubts().empty());
}

TEST(ReadConfig, RefusesAnUnknownTypeWithOtherFields) {
  for (const std::string_view field :
       {R"("num_experts": 8)", R"("moe_k": 2)", R"("vision_config": {"depth": 2})", R"("num_mtp_modules": 1)",
        R"("residual_streams": 4)", R"("new_width": 512)", R"("hybrid_override_pattern": "M-M*")",
        R"("layer_types": ["full_attention", "linear_attention"])", R"("block_configs": [{"no_op": true}])"}) {
    const std::string config = small(R"("model_type": "newcomer", "rms_norm_eps": 1e-5, )" + std::string(field));
    const auto name = field.substr(1, field.find('"', 1) - 1);
    EXPECT_TRUE(fails(read(config), ErrorCode::missing_information, 0, "'" + std::string(name) + "'")) << field;
    EXPECT_TRUE(fails(read(config), ErrorCode::missing_information, 0, "'newcomer' is not known")) << field;
  }
  EXPECT_TRUE(fails(read(small(R"("model_type": "newcomer")")), ErrorCode::missing_information, 0, "'newcomer'"));
  EXPECT_TRUE(
      fails(read(R"({"model_type": "newcomer", "d_state": 16})"), ErrorCode::missing_information, 0, "'rms_norm_eps'"));
  EXPECT_TRUE(fails(read(R"({"model_type": "lama", "d_state": 16})"), ErrorCode::missing_information, 0, "'llama'?"));
}

TEST(ReadConfig, RefusesAKnownTypeWithPartsThatItHasNot) {
  EXPECT_TRUE(fails(read(small(R"("model_type": "llama", "n_routed_experts": 160, "moe_intermediate_size": 64)")),
                    ErrorCode::missing_information, 0, "'n_routed_experts', 'moe_intermediate_size'"))
      << "most of its weights are experts'";
  EXPECT_TRUE(succeeds(read(small(R"("model_type": "llama", "n_routed_experts": 0, "vision_config": null,
    "layer_types": ["full_attention", "sliding_attention"], "router_aux_loss_coef": 0.001)"))));
}

TEST(ReadConfig, ReadsNumbersAsPythonWritesThem) {
  const auto graph = read(small(R"("model_type": "llama", "time_step_limit": [0.0, Infinity], "mystery": NaN)"));
  EXPECT_EQ(doubts(graph), (std::vector{About::fields}));
  EXPECT_NE(graph->doubts()[0].text.find("'time_step_limit'"), std::string::npos);
  EXPECT_EQ(graph->doubts()[0].text.find("mystery"), std::string::npos) << "not a number says nothing";
  EXPECT_TRUE(fails(read(small(R"("model_type": "llama", "num_key_value_heads": Infinity)")),
                    ErrorCode::malformed_input, 0, "whole number"));
}

TEST(ReadConfig, HoldsTheSizeInTheNameAgainstTheCount) {
  const auto named = [](std::string_view name) {
    return read(R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "_name_or_path": ")" +
                std::string(name) + "\"}");
  };
  for (const std::string_view agrees : {"meta-llama/Llama-3.1-8B-Instruct", "OLMoE-1B-8B", "bloom-8b1", "Mixtral-8x7B",
                                        "Qwen3-30-A3B", "gpt2", "v2_8b_chat", "llama-1M-8B", "/checkpoint-500", ""}) {
    EXPECT_TRUE(doubts(named(agrees)).empty()) << agrees;
  }
  const auto larger = named("zai/glm-4.5-355b");
  ASSERT_EQ(doubts(larger), (std::vector{About::parameters}));
  EXPECT_TRUE(larger->doubts()[0].large);
  EXPECT_NEAR(larger->doubts()[0].times, 355.0 / 8.03, 0.1);
  const auto smaller = named("llama-500m");
  ASSERT_EQ(doubts(smaller), (std::vector{About::parameters}));
  EXPECT_NEAR(smaller->doubts()[0].times, 0.5 / 8.03, 0.001);
  const auto near = named("llama-5.5B.gguf");
  ASSERT_EQ(doubts(near), (std::vector{About::parameters}));
  EXPECT_FALSE(near->doubts()[0].large) << "names round";
}

TEST(ReadConfig, NamesWhatIsMissing) {
  EXPECT_TRUE(fails(read(R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 64})"),
                    ErrorCode::missing_information, 0, "num_hidden_layers, num_attention_heads, intermediate_size"));
  EXPECT_TRUE(fails(read(R"({"model_type": "t5"})"), ErrorCode::missing_information, 0, "vocab_size, d_model"));
}

TEST(ReadConfig, NamesFieldsThatItDoesNotUnderstand) {
  const auto graph = read(small(R"("model_type": "llama", "gate_width": 8,
    "quantization_config": {"quant_method": "mxfp4"}, "rope_theta": 10000.0, "torch_dtype": "bfloat16",
    "mystery": false, "adapter": "none")"));
  ASSERT_EQ(doubts(graph), (std::vector{About::quantization, About::fields}));
  EXPECT_NE(graph->doubts()[0].text.find("'mxfp4'"), std::string::npos);
  EXPECT_FALSE(graph->doubts()[0].large) << "training dequantises them";
  const std::string& message = graph->doubts()[1].text;
  EXPECT_TRUE(message.ends_with(": 'gate_width'")) << message;
}

TEST(ReadConfig, ChecksSizes) {
  EXPECT_TRUE(fails(read(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1000000000,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100})"),
                    ErrorCode::malformed_input, 0, "4096 layers"));
  for (const std::string_view width : {"0", "-64", "1.5", "\"64\"", "true", "4294967296", "99999999999999999999"}) {
    const std::string config = R"({"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4,
      "intermediate_size": 128, "vocab_size": 100, "hidden_size": )" +
                               std::string(width) + "}";
    EXPECT_TRUE(fails(read(config), ErrorCode::malformed_input, 0, "whole number")) << width;
  }
  EXPECT_TRUE(fails(read(small(R"("model_type": "llama", "num_key_value_heads": 3)")), ErrorCode::malformed_input, 0,
                    "does not divide"));
  EXPECT_TRUE(fails(read(small(R"("model_type": "llama", "hidden_act": "soft")")), ErrorCode::malformed_input, 0,
                    "unknown activation 'soft'"));
  EXPECT_TRUE(fails(read(small(R"("model_type": "phi", "partial_rotary_factor": 0.01)")), ErrorCode::malformed_input, 0,
                    "rotary"));
}

TEST(ReadConfig, RefusesMoreExpertsThanAnyModelHas) {
  const auto mixture = [](std::string_view layers, std::string_view experts) {
    return read(R"({"model_type": "mixtral", "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128,
      "vocab_size": 100, "num_experts_per_tok": 2, "num_hidden_layers": )" +
                std::string(layers) + R"(, "num_local_experts": )" + std::string(experts) + "}");
  };
  EXPECT_TRUE(succeeds(mixture("2", "8")));
  EXPECT_TRUE(fails(mixture("2", "5000"), ErrorCode::malformed_input, 0, "this many experts"));
  EXPECT_TRUE(fails(mixture("4096", "4096"), ErrorCode::malformed_input, 0, "this many experts"));
  EXPECT_TRUE(fails(mixture("2", "1"), ErrorCode::malformed_input, 0, "more than there are experts"));
  EXPECT_TRUE(fails(read(R"({"model_type": "swin", "image_size": 4096, "patch_size": 1, "window_size": 4096})"),
                    ErrorCode::malformed_input, 0, "too wide"));
}

TEST(ReadConfig, RefusesWhatIsNoObject) {
  EXPECT_TRUE(fails(read("[1, 2]"), ErrorCode::malformed_input, 0, "object"));
  EXPECT_TRUE(fails(read(R"({"model_type": )"), ErrorCode::malformed_input, 1, "not JSON"));
}

/// A mixture of two layers, of which the first may be dense, with experts 32 wide.
std::string mixture_of(std::string_view more) {
  return R"({"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "intermediate_size": 128, "vocab_size": 100, "moe_intermediate_size": 32, )" +
         std::string(more) + "}";
}

std::int64_t parameters_of(std::string_view config) {
  const auto graph = read(config);
  EXPECT_TRUE(succeeds(graph)) << config;
  return graph ? graph->parameters() : 0;
}

TEST(ReadConfig, CountsExpertsByHand) {
  constexpr std::int64_t kAttention = 2 * 64 * 64 + 2 * 64 * 32;
  constexpr std::int64_t kExpert = 3 * 64 * 32;
  constexpr std::int64_t kDense = 3 * 64 * 128;
  constexpr std::int64_t kRest = 2 * 100 * 64 + 5 * 64;  // embedding, head and norms
  const auto glm = [](std::string_view more) {
    return parameters_of(mixture_of(R"("model_type": "glm4_moe", "n_routed_experts": 8, "n_shared_experts": 1,
      "num_experts_per_tok": 2)" + std::string(more)));
  };
  const std::int64_t sparse = 8 * 64 + 9 * kExpert;
  EXPECT_EQ(glm(R"(, "first_k_dense_replace": 1)"), kRest + 2 * kAttention + kDense + sparse);
  EXPECT_EQ(glm(R"(, "first_k_dense_replace": 0)"), kRest + 2 * kAttention + 2 * sparse);
  EXPECT_EQ(glm(R"(, "first_k_dense_replace": 1, "use_qk_norm": true)"),
            kRest + 2 * (kAttention + 2 * 16) + kDense + sparse);
  const auto qwen = [](std::string_view more) {
    return parameters_of(
        mixture_of(R"("model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2)" + std::string(more)));
  };
  const std::int64_t heads = kAttention + 2 * 16;
  EXPECT_EQ(qwen(""), kRest + 2 * heads + 2 * (8 * 64 + 8 * kExpert));
  EXPECT_EQ(qwen(R"(, "mlp_only_layers": [1])"), kRest + 2 * heads + kDense + 8 * 64 + 8 * kExpert);
  const auto dots = parameters_of(mixture_of(R"("model_type": "dots1", "n_routed_experts": 8, "n_shared_experts": 2,
    "num_experts_per_tok": 2, "first_k_dense_replace": 1)"));
  EXPECT_EQ(dots, kRest + 2 * heads + kDense + 8 * 64 + 10 * kExpert);
}

TEST(ReadConfig, CountsTheExpertsOfNewerModelsByHand) {
  constexpr std::int64_t kAttention = 2 * 64 * 64 + 2 * 64 * 32;
  constexpr std::int64_t kHeads = kAttention + 2 * 16;
  constexpr std::int64_t kExpert = 3 * 64 * 32;
  constexpr std::int64_t kDense = 3 * 64 * 128;
  constexpr std::int64_t kRest = 2 * 100 * 64 + 5 * 64;
  constexpr std::int64_t kShared = 8 * 64 + 9 * kExpert;
  const auto of = [](std::string_view more) {
    return parameters_of(mixture_of(R"("num_experts_per_tok": 2, )" + std::string(more)));
  };
  EXPECT_EQ(of(R"("model_type": "solar_open", "n_routed_experts": 8)"), kRest + 2 * (kAttention + kShared));
  EXPECT_EQ(of(R"("model_type": "hy_v3", "num_experts": 8)"), kRest + 2 * kHeads + kDense + kShared);
  EXPECT_EQ(of(R"("model_type": "hy_v3", "num_experts": 8, "mlp_layer_types": ["sparse", "sparse"])"),
            kRest + 2 * (kHeads + kShared));
  EXPECT_EQ(of(R"("model_type": "mellum", "num_local_experts": 8, "mlp_layer_types": ["sparse", "dense"])"),
            kRest + 2 * kHeads + kDense + 8 * 64 + 8 * kExpert);
  constexpr std::int64_t kConvolution = 4 * 64 * 64 + 3 * 64;
  EXPECT_EQ(of(R"("model_type": "lfm2_moe", "num_experts": 8, "layer_types": ["conv", "full_attention"],
                  "num_dense_layers": 1)"),
            kRest - 100 * 64 + kConvolution + kDense + kHeads + 8 * 64 + 8 * kExpert);
}

TEST(ReadConfig, CountsNormsThatAModelHasMoreOrLessOf) {
  const auto of = [](std::string_view more) { return parameters_of(small(more)); };
  const std::int64_t llama = of(R"("model_type": "llama")");
  EXPECT_EQ(of(R"("model_type": "ministral", "attention_bias": true)"), llama) << "it has no biases";
  EXPECT_EQ(of(R"("model_type": "hyperclovax")"), llama + 2 * 2 * 64);
  EXPECT_EQ(of(R"("model_type": "hyperclovax", "use_post_norm": false)"), llama);
  EXPECT_EQ(of(R"("model_type": "nanochat")"), llama - 5 * 64 - 2 * 64 * 128);
}

TEST(ReadConfig, CountsExpertsOfOneTensorByHand) {
  constexpr std::int64_t kRest = 2 * 100 * 64 + 5 * 64;
  constexpr std::int64_t kAttention = 2 * 64 * 64 + 2 * 64 * 32 + 4 * 16 + 2 * 2 * 16 + 64;  // with biases
  constexpr std::int64_t kExpert = 3 * 64 * 128 + 2 * 128 + 64;
  EXPECT_EQ(parameters_of(small(R"("model_type": "gpt_oss", "num_key_value_heads": 2, "head_dim": 16,
              "num_local_experts": 8, "num_experts_per_tok": 2)")),
            kRest + 2 * (kAttention + 4 + 8 * 64 + 8 + 8 * kExpert));
}

TEST(ReadConfig, TakesAnIndexersKeysOverWhereTheConfigSaysSo) {
  const auto glm = [](std::string_view more) {
    return parameters_of(R"({"model_type": "glm_moe_dsa", "hidden_size": 64, "num_hidden_layers": 4,
      "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "q_lora_rank": 32, "kv_lora_rank": 16,
      "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "index_n_heads": 2, "index_head_dim": 16)" +
                         std::string(more) + "}");
  };
  constexpr std::int64_t kIndexer = 32 * 2 * 16 + 64 * 16 + 2 * 16 + 64 * 2;
  const std::int64_t all = glm("");
  EXPECT_EQ(glm(R"(, "indexer_types": ["full", "shared", "full", "shared"])"), all - 2 * kIndexer);
  EXPECT_EQ(glm(R"(, "index_topk_freq": 4, "index_skip_topk_offset": 1)"), all - 3 * kIndexer);
}

TEST(ReadConfig, ReadsMiniMaxM3AsPublishedAndAsTransformersNamesItsFields) {
  const auto m3 = [](std::string_view more) {
    return parameters_of(R"({"model_type": "minimax_m3_vl_text", "hidden_size": 64, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rotary_dim": 8, "intermediate_size": 32,
      "dense_intermediate_size": 128, "shared_intermediate_size": 32, "vocab_size": 100, "num_local_experts": 4,
      "num_experts_per_tok": 2)" +
                         std::string(more) + "}");
  };
  const std::int64_t published = m3(R"(, "moe_layer_freq": [0, 0, 1, 1], "sparse_attention_config":
      {"sparse_attention_freq": [0, 1, 1, 1], "sparse_num_index_heads": 2, "sparse_index_dim": 8,
       "sparse_block_size": 128, "sparse_topk_blocks": 16, "sparse_local_block": 1})");
  const std::int64_t saved = m3(R"(, "mlp_layer_types": ["dense", "dense", "sparse", "sparse"], "layer_types":
      ["full_attention", "minimax_m3_sparse", "minimax_m3_sparse", "minimax_m3_sparse"], "index_n_heads": 2,
      "index_head_dim": 8, "index_block_size": 128, "index_topk_blocks": 16, "index_local_blocks": 1)");
  EXPECT_EQ(saved, published);
  EXPECT_GT(published, 0);
}

TEST(ReadConfig, TakesTheNearerKindOfModelThatTheClassNames) {
  const auto graph = read(mixture_of(R"("model_type": "glm", "architectures": ["Glm4MoeForCausalLM"],
    "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2)"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->architecture(), "mixtral");
  const auto text = read(small(R"("model_type": "gemma3", "architectures": ["Gemma3ForCausalLM"])"));
  ASSERT_TRUE(succeeds(text));
  EXPECT_EQ(text->architecture(), "gemma");
  const auto other = read(small(R"("model_type": "llama", "architectures": ["MistralForCausalLM"])"));
  ASSERT_TRUE(succeeds(other));
  EXPECT_EQ(other->architecture(), "llama") << "another model's class tells nothing";
}

TEST(ReadConfig, RefusesListsThatAreTooShort) {
  EXPECT_TRUE(fails(read(R"({"model_type": "glm_moe_dsa", "hidden_size": 64, "num_hidden_layers": 4,
      "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "q_lora_rank": 32, "kv_lora_rank": 16,
      "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "index_n_heads": 2, "index_head_dim": 16,
      "indexer_types": ["full"]})"),
                    ErrorCode::malformed_input, 0, "fewer entries"));
  EXPECT_TRUE(fails(read(small(R"("model_type": "nemotron-nas", "block_configs": [{}])")), ErrorCode::malformed_input,
                    0, "of each layer"));
  EXPECT_TRUE(fails(read(mixture_of(R"("model_type": "hunyuan_v1_moe", "num_experts": 4, "moe_topk": [1, 2])")),
                    ErrorCode::malformed_input, 0, "one size for all layers"));
}

}  // namespace
}  // namespace gpumem::architectures
