// Models of 2025 and 2026, and those for sound and proteins: their parameters, what is not settled about them, and what
// in their forward() decides the memory of a step.
#include "newest_models.hpp"

#include <map>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "printed_tree.hpp"

namespace gpumem::testing {
namespace {

using core::ErrorCode;

core::Result<model::ModelGraph> read(std::string_view config, const model::Images& images = {}) {
  return architectures::read_config(config, ops::vocabulary(), {}, images);
}

/// The most that a step holds, without the device's own part.
std::int64_t held(const model::ModelGraph& graph, std::int64_t tokens, bool checkpointing = false) {
  TrainingJob job(graph, 1);
  job.sequence_length = tokens;
  job.activation_checkpointing = checkpointing;
  const auto replay = make_estimator("replay");
  const auto estimate = (*replay)->estimate(job, *find_profile("b200"));
  EXPECT_TRUE(succeeds(estimate));
  return estimate && estimate->allocated ? estimate->allocated->count() : 0;
}

std::int64_t held(std::string_view config, std::int64_t tokens, const model::Images& images = {}) {
  const auto graph = read(config, images);
  EXPECT_TRUE(succeeds(graph));
  return graph ? held(*graph, tokens) : 0;
}

bool doubts(const model::ModelGraph& graph, model::Doubt::About about) {
  return std::any_of(graph.doubts().begin(), graph.doubts().end(),
                     [&](const model::Doubt& doubt) { return doubt.about == about && doubt.large; });
}

TEST(NewestModels, HaveThePublishedParameters) {
  for (const Newest& model : kNewest) {
    const auto graph = read(model.config);
    ASSERT_TRUE(succeeds(graph)) << model.name;
    EXPECT_EQ(graph->parameters(), model.parameters) << model.name;
    EXPECT_NEAR(static_cast<double>(graph->parameters()) / 1e9, model.billions, 0.005 * model.billions) << model.name;
    EXPECT_EQ(graph->unknown_layers(), 0) << model.name;
  }
}

/// Parameters: of transformers 5.16's own classes.
TEST(NewestModels, AreReadAsTransformers5SavesThem) {
  constexpr std::string_view kQwen =
      R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 8,
      "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "moe_intermediate_size": 768,
      "num_local_experts": 128, "num_experts_per_tok": 8, "tie_word_embeddings": false, "vocab_size": 151936})";
  constexpr std::string_view kGemma =
      R"({"model_type": "gemma4_text", "hidden_size": 2816, "intermediate_size": 2112, "num_hidden_layers": 6,
      "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "attention_k_eq_v": true,
      "hidden_size_per_layer_input": 0, "enable_moe_block": true, "num_experts": 128, "top_k_experts": 8,
      "moe_intermediate_size": 704, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
      "sliding_attention", "sliding_attention", "full_attention"], "vocab_size": 262144,
      "per_layer_config": {"5": {"head_dim": 512, "num_key_value_heads": 2}}})";
  constexpr std::string_view kStep =
      R"({"model_type": "step3p5", "hidden_size": 4096, "intermediate_size": 11264, "num_hidden_layers": 4,
      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "moe_intermediate_size": 1280,
      "share_expert_dim": 1280, "n_routed_experts": 16, "num_experts_per_tok": 8, "num_sliding_attention_heads": 96,
      "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention"],
      "mlp_layer_types": ["dense", "dense", "dense", "sparse"], "vocab_size": 128815, "per_layer_config":
      {"01": {"num_attention_heads": 96}, "02": {"num_attention_heads": 96}, "03": {"num_attention_heads": 96}}})";
  const std::map<std::string_view, std::int64_t> totals = {
      {kQwen, 5'607'297'024}, {kGemma, 5'637'188'608}, {kStep, 2'142'073'856}};
  for (const auto& [config, parameters] : totals) {
    const auto graph = read(config);
    ASSERT_TRUE(succeeds(graph)) << config;
    EXPECT_EQ(graph->parameters(), parameters) << config;
    EXPECT_FALSE(doubts(*graph, model::Doubt::About::fields)) << config;
  }
}

TEST(NewestModels, NameWhatTheirSourcesDoNotSettle) {
  constexpr std::string_view kStep =
      R"({"model_type": "step3p7", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16,
      "intermediate_size": 96, "vocab_size": 100, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
      "first_k_dense_replace": 1, "layer_types": ["full_attention", "sliding_attention"])";
  const auto bare = read(std::string(kStep) + "}");
  const auto whole = read(std::string(kStep) + R"(, "attention_other_setting": {"num_attention_heads": 8}})");
  ASSERT_TRUE(succeeds(bare));
  ASSERT_TRUE(succeeds(whole));
  EXPECT_TRUE(doubts(*bare, model::Doubt::About::fields));
  EXPECT_FALSE(doubts(*whole, model::Doubt::About::fields));
  EXPECT_GT(whole->parameters(), bare->parameters());
  const auto falcon = read(R"({"model_type": "falcon_h1", "hidden_size": 64, "num_hidden_layers": 1,
      "num_attention_heads": 4, "num_key_value_heads": 2, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_ssm": 128})");
  ASSERT_TRUE(succeeds(falcon));
  EXPECT_TRUE(doubts(*falcon, model::Doubt::About::fields));
}

constexpr std::string_view kV4 =
    R"({"model_type": "deepseek_v4", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 1, "head_dim": 32, "q_lora_rank": 16, "qk_rope_head_dim": 8, "o_groups": 2, "o_lora_rank": 16,
    "index_n_heads": 4, "index_head_dim": 16, "moe_intermediate_size": 32, "n_routed_experts": 4,
    "num_experts_per_tok": 2, "vocab_size": 100, "compress_ratios": [0, 4, 128])";

TEST(NewestModels, LanguageModelsHearSoundsOfThirtySeconds) {
  constexpr std::string_view kText = R"("text_config": {"hidden_size": 64, "intermediate_size": 96,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100},
      "audio_config": {"hidden_size": 32, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}})";
  for (const std::string_view type : {"voxtral", "qwen2_audio", "audioflamingo3"}) {
    const std::string config = R"({"model_type": ")" + std::string(type) + R"(", )" + std::string(kText);
    const auto with = [&](std::int64_t sounds) {
      model::Images images;
      images.count = sounds;
      return held(config, 1600, images);
    };
    EXPECT_GT(with(2), with(1)) << type;
    EXPECT_GT(with(1), with(0)) << type;
    const auto graph = read(config);
    ASSERT_TRUE(succeeds(graph) && !graph->remarks().empty());
    const std::string_view tokens = type == "voxtral" ? "375" : "750";
    EXPECT_NE(graph->remarks().front().find(tokens), std::string::npos) << graph->remarks().front();
    model::Images video;
    video.frames = 4;
    EXPECT_TRUE(fails(read(config, video), ErrorCode::malformed_input, 0, "reads no videos")) << type;
  }
}

TEST(NewestModels, DeepSeekV4HoldsItsStreamsAndTheRoundsThatMixThem) {
  const std::string base(kV4);
  const auto four = held(base + R"(, "hc_mult": 4, "hc_sinkhorn_iters": 20})", 512);
  EXPECT_GT(four, held(base + R"(, "hc_mult": 2, "hc_sinkhorn_iters": 20})", 512));
  EXPECT_GT(four, held(base + R"(, "hc_mult": 4, "hc_sinkhorn_iters": 1})", 512));
}

TEST(NewestModels, DeepSeekV4SeesWindowsOfTokensInTheLayersThatSaySo) {
  const auto graph = read(std::string(kV4) + "}");
  ASSERT_TRUE(succeeds(graph));
  std::size_t chosen = 0;
  std::size_t compressed = 0;
  for (const model::Layer& layer : graph->layers()) {
    const std::string path = graph->path(layer);
    chosen += path.find("layers.1.self_attn.compressor.indexer") != std::string::npos ? 1U : 0U;
    compressed += path.find("layers.2.self_attn.compressor") != std::string::npos ? 1U : 0U;
    EXPECT_EQ(path.find("layers.0.self_attn.compressor"), std::string::npos);
    EXPECT_EQ(path.find("layers.2.self_attn.compressor.indexer"), std::string::npos);
  }
  EXPECT_GT(chosen, 0U);
  EXPECT_GT(compressed, 0U);
  EXPECT_TRUE(fails(read(std::string(kV4).replace(kV4.find("128]"), 3, "127") + "}"), ErrorCode::malformed_input, 0,
                    "is 0, 4 or 128"));
  // Fewer tokens than a window: one window, of what there is.
  EXPECT_GT(held(*graph, 64), 0);
}

TEST(NewestModels, KimiK3ReadsTheSumsOfBlocksOfLayers) {
  const auto config = [](std::string_view more) {
    return R"({"model_type": "kimi_linear", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
      "intermediate_size": 96, "vocab_size": 100, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 16,
      "qk_rope_head_dim": 8, "v_head_dim": 16, "num_experts": 4, "num_experts_per_token": 2,
      "moe_intermediate_size": 32, "linear_attn_config": {"num_heads": 4, "head_dim": 16, "use_full_rank_gate": true})" +
           std::string(more) + "}";
  };
  const auto plain = read(config(""));
  const auto blocks = read(config(R"(, "attn_res_block_size": 2)"));
  const auto narrow = read(config(R"(, "hidden_act": "situ", "routed_expert_hidden_size": 32)"));
  ASSERT_TRUE(succeeds(plain));
  ASSERT_TRUE(succeeds(blocks));
  ASSERT_TRUE(succeeds(narrow));
  // A norm and a score for each half of a layer, and behind all of them.
  EXPECT_EQ(blocks->parameters() - plain->parameters(), (2 * 4 - 1 + 1) * 2 * 64);
  EXPECT_GT(held(*blocks, 256), held(*plain, 256));
  EXPECT_LT(narrow->parameters(), plain->parameters());
}

TEST(NewestModels, Gemma3nTakesNoImages) {
  const std::string_view config =
      R"({"model_type": "gemma3n", "text_config": {"model_type": "gemma3n_text", "vocab_size": 100, "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
      "intermediate_size": 128, "vocab_size_per_layer_input": 100, "hidden_size_per_layer_input": 8},
      "vision_config": {}, "audio_config": {}})";
  EXPECT_TRUE(succeeds(read(config)));
  EXPECT_TRUE(succeeds(read(config, {.count = 0})));
  EXPECT_FALSE(read(config, {.count = 1}).has_value());
}

TEST(NewestModels, LlamaVisionHoldsItsCrossLayersWithoutImages) {
  const std::string_view config =
      R"({"model_type": "mllama", "text_config": {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 3,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "cross_attention_layers": [1]},
      "vision_config": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_global_layers": 1,
      "attention_heads": 2, "image_size": 56, "patch_size": 14, "intermediate_layers_indices": [1],
      "vision_output_dim": 64}})";
  const auto with = read(config);
  const auto without = read(config, {.count = 0});
  ASSERT_TRUE(succeeds(with));
  ASSERT_TRUE(succeeds(without));
  EXPECT_LT(held(*without, 64), held(*with, 64));
  EXPECT_GT(held(config, 64, {.count = 2}), held(*with, 64));
}

constexpr std::string_view kSound =
    R"({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"], "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 128, "num_conv_pos_embeddings": 16)";

TEST(NewestModels, SoundTakesMemoryByItsSamples) {
  const std::string config = std::string(kSound) + "}";
  const auto second = held(config, 16'000);
  const auto ten = held(config, 160'000);
  EXPECT_GT(ten, 2 * second);
  EXPECT_TRUE(
      fails(read(std::string(kSound) + R"(, "add_adapter": true})"), ErrorCode::malformed_input, 0, "is not known"));
  EXPECT_TRUE(fails(read(std::string(kSound) + R"(, "conv_dim": [512, 512]})"), ErrorCode::malformed_input, 0,
                    "as many entries"));
}

/// What print(model) of transformers 4.52 shows.
constexpr std::string_view kPrintedSound = R"(Wav2Vec2ForCTC(
  (wav2vec2): Wav2Vec2Model(
    (feature_extractor): Wav2Vec2FeatureEncoder(
      (conv_layers): ModuleList(
        (0): Wav2Vec2GroupNormConvLayer(
          (conv): Conv1d(1, 512, kernel_size=(10,), stride=(5,), bias=False)
          (activation): GELUActivation()
          (layer_norm): GroupNorm(512, 512, eps=1e-05, affine=True)
        )
        (1-4): 4 x Wav2Vec2NoLayerNormConvLayer(
          (conv): Conv1d(512, 512, kernel_size=(3,), stride=(2,), bias=False)
          (activation): GELUActivation()
        )
        (5-6): 2 x Wav2Vec2NoLayerNormConvLayer(
          (conv): Conv1d(512, 512, kernel_size=(2,), stride=(2,), bias=False)
          (activation): GELUActivation()
        )
      )
    )
    (feature_projection): Wav2Vec2FeatureProjection(
      (layer_norm): LayerNorm((512,), eps=1e-05, elementwise_affine=True)
      (projection): Linear(in_features=512, out_features=768, bias=True)
      (dropout): Dropout(p=0.0, inplace=False)
    )
    (encoder): Wav2Vec2Encoder(
      (pos_conv_embed): Wav2Vec2PositionalConvEmbedding(
        (conv): ParametrizedConv1d(
          768, 768, kernel_size=(128,), stride=(1,), padding=(64,), groups=16
          (parametrizations): ModuleDict(
            (weight): ParametrizationList(
              (0): _WeightNorm()
            )
          )
        )
        (padding): Wav2Vec2SamePadLayer()
        (activation): GELUActivation()
      )
      (layer_norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
      (dropout): Dropout(p=0.1, inplace=False)
      (layers): ModuleList(
        (0-11): 12 x Wav2Vec2EncoderLayer(
          (attention): Wav2Vec2SdpaAttention(
            (k_proj): Linear(in_features=768, out_features=768, bias=True)
            (v_proj): Linear(in_features=768, out_features=768, bias=True)
            (q_proj): Linear(in_features=768, out_features=768, bias=True)
            (out_proj): Linear(in_features=768, out_features=768, bias=True)
          )
          (dropout): Dropout(p=0.1, inplace=False)
          (layer_norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
          (feed_forward): Wav2Vec2FeedForward(
            (intermediate_dropout): Dropout(p=0.1, inplace=False)
            (intermediate_dense): Linear(in_features=768, out_features=3072, bias=True)
            (intermediate_act_fn): GELUActivation()
            (output_dense): Linear(in_features=3072, out_features=768, bias=True)
            (output_dropout): Dropout(p=0.1, inplace=False)
          )
          (final_layer_norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
        )
      )
    )
  )
  (dropout): Dropout(p=0.1, inplace=False)
  (lm_head): Linear(in_features=768, out_features=32, bias=True)
)
)";

TEST(NewestModels, ThatSeeImagesAloneHaveNoHeadsOfText) {
  for (const std::string_view type : {"swin", "videomae"}) {
    for (const std::string_view head : {"TokenClassification", "QuestionAnswering", "MaskedLM"}) {
      const std::string config =
          R"({"model_type": ")" + std::string(type) + R"(", "architectures": ["AnyFor)" + std::string(head) + R"("]})";
      EXPECT_TRUE(fails(read(config), ErrorCode::malformed_input, 0, "only the model that classifies")) << config;
    }
  }
}

TEST(NewestModels, OfSoundAndProteinsAConfigAndItsTreeAgree) {
  struct Case {
    std::string_view class_name;
    std::string_view config;
    std::int64_t tokens;
  };
  constexpr std::string_view kSoundConfig = R"({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"]})";
  const Case cases[] = {{"Wav2Vec2ForCTC", kSoundConfig, 16'000},
                        {"EsmForMaskedLM", kNewest[10].config, 128},
                        {"ApertusForCausalLM", kNewest[11].config, 128}};
  for (const Case& each : cases) {
    const auto graph = parse_summary(each.config);
    ASSERT_TRUE(succeeds(graph)) << each.class_name;
    const bool sound = each.config == kSoundConfig;
    const auto tree = parse_summary(sound ? std::string(kPrintedSound) : printed_tree(*graph, each.class_name, ""));
    ASSERT_TRUE(succeeds(tree)) << each.class_name;
    // A tree of so few words as ESM's does not tell that they are the output layer's too.
    const double few = each.class_name == "EsmForMaskedLM" ? 1e-4 : 0.0;
    for (const bool checkpointing : {false, true}) {
      const auto expected = static_cast<double>(held(*graph, each.tokens, checkpointing));
      const auto printed = static_cast<double>(held(*tree, each.tokens, checkpointing));
      EXPECT_NEAR(printed, expected, few * expected) << each.class_name;
    }
  }
}

TEST(NewestModels, OfLanguageAConfigAndItsTreeAgree) {
  constexpr std::string_view kSizes = R"("hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2,
    "head_dim": 128, "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 514})";
  for (const auto& [type, class_name] :
       {std::pair("nanochat", "NanoChatForCausalLM"), std::pair("hyperclovax", "HyperCLOVAXForCausalLM"),
        std::pair("ministral", "MinistralForCausalLM"), std::pair("diffllama", "DiffLlamaForCausalLM"),
        std::pair("granite_swa", "GraniteSWAForCausalLM"), std::pair("eurobert", "EuroBertForMaskedLM"),
        std::pair("eurobert", "EuroBertForSequenceClassification"), std::pair("nomic_bert", "NomicBertForMaskedLM")}) {
    const auto graph = parse_summary("{\"model_type\": \"" + std::string(type) + "\", \"architectures\": [\"" +
                                     std::string(class_name) + "\"], " + std::string(kSizes));
    ASSERT_TRUE(succeeds(graph)) << type;
    const auto tree = parse_summary(printed_tree(*graph, class_name, ""));
    ASSERT_TRUE(succeeds(tree)) << type;
    // A norm prints no weights: those of nanochat have none, and are counted until the class is known. No tree prints
    // what a module holds itself: DiffLlama's vectors, Granite SWA's sinks.
    const std::string_view of = type;
    if (of != "nanochat" && of != "diffllama" && of != "granite_swa") {
      EXPECT_EQ(tree->parameters(), graph->parameters()) << type;
    }
    EXPECT_EQ(held(*tree, 128), held(*graph, 128)) << type;
  }
}

/// The config in kNewest.
std::string_view newest(std::string_view name) {
  const auto* const row = std::ranges::find(kNewest, name, &Newest::name);
  EXPECT_NE(row, std::end(kNewest)) << name;
  return row->config;
}

TEST(NewestModels, ExpertsOfPublishedSizesAreReadFromTrees) {
  for (const auto& [name, class_name] :
       {std::pair("olmo-hybrid-7b", "OlmoHybridForCausalLM"), std::pair("flexolmo-7x7b", "FlexOlmoForCausalLM"),
        std::pair("trinity-nano", "AfmoeForCausalLM"), std::pair("k-exaone", "ExaoneMoeForCausalLM"),
        std::pair("mistral-small-4", "Mistral4ForCausalLM"), std::pair("laguna-xs.2", "LagunaForCausalLM")}) {
    const auto graph = parse_summary(newest(name));
    ASSERT_TRUE(succeeds(graph)) << name;
    const auto tree = parse_summary(printed_tree(*graph, class_name, ""));
    ASSERT_TRUE(succeeds(tree)) << name;
    EXPECT_EQ(held(*tree, 64), held(*graph, 64)) << name;
  }
}

TEST(NewestModels, EncodersOfRotaryPositionsAnswerNoQuestions) {
  for (const std::string_view config :
       {R"({"model_type": "eurobert", "architectures": ["EuroBertForQuestionAnswering"], "hidden_size": 256,
            "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 10})",
        R"({"model_type": "nomic_bert", "architectures": ["NomicBertModel"], "n_embd": 256, "n_layer": 2, "n_head": 4,
            "n_inner": 512, "vocab_size": 10, "num_experts": 8})"}) {
    const auto graph = read(config);
    EXPECT_FALSE(graph) << "no such class, and experts that no source describes";
  }
}

// DeBERTa v1 compares as many distances as a sample has tokens; v2 as many as its table tells apart.
TEST(NewestModels, DebertaHoldsTheDistancesOfItsTokens) {
  const auto of = [](std::string_view type, std::int64_t tokens) {
    return held(R"({"model_type": ")" + std::string(type) +
                    R"(", "architectures": ["DebertaModel"], "hidden_size": 64, "num_hidden_layers": 2,
      "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 10, "max_position_embeddings": 2048,
      "type_vocab_size": 0, "relative_attention": true, "pos_att_type": "c2p|p2c", "position_biased_input": false})",
                tokens);
  };
  const std::int64_t distances = of("deberta", 512) - of("deberta", 256);
  EXPECT_LT(of("deberta", 256), of("deberta-v2", 256)) << "256 of 2,048 to either side";
  EXPECT_GT(of("deberta", 2048) - of("deberta", 1024), 12 * distances) << "scores and distances grow with the square";
}

// transformers' cache_utils.py since 4.56: values are held in their keys' type, which tables of float32 make float32.
TEST(NewestModels, ACacheHoldsValuesInTheTypeOfKeysUnderAutocast) {
  const auto of = [](std::string_view cache, model::Precision precision, model::Transformers release) {
    const auto graph = read(R"({"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 2,
      "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 10, "use_cache": )" +
                            std::string(cache) + "}");
    EXPECT_TRUE(succeeds(graph));
    if (!graph) return std::int64_t{0};
    TrainingJob job(*graph, 1);
    job.sequence_length = 512;
    job.transformers = release;
    job.precision = precision;
    analysis::Analysis analysis(job);
    const auto steps = analysis.steps();
    EXPECT_TRUE(succeeds(steps));
    return steps ? static_cast<std::int64_t>((*steps)->peak_bytes) : 0;
  };
  const auto cached = [&](model::Precision precision, model::Transformers release) {
    return of("true", precision, release) - of("false", precision, release);
  };
  constexpr std::int64_t kElements = 2 * 512 * 512;  // of the values of both layers
  using model::Transformers;
  EXPECT_GT(cached(model::Precision::amp_bf16, Transformers::v4_56),
            cached(model::Precision::amp_bf16, Transformers::v4_52) + kElements);
  EXPECT_LE(cached(model::Precision::bf16, Transformers::v4_56), cached(model::Precision::bf16, Transformers::v4_52))
      << "there is but one type";
}

TEST(NewestModels, Hy3AddsItsExpertsInFloat32WhereTheConfigSaysSo) {
  const auto of = [](std::string_view combines) {
    return R"({"model_type": "hy_v3", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 64,
      "intermediate_size": 512, "moe_intermediate_size": 64, "num_experts": 4, "num_experts_per_tok": 1, "vocab_size": 10,
      "enable_moe_fp32_combine": )" +
           std::string(combines) + "}";
  };
  const auto calls = [](const std::string& config) {
    const auto graph = read(config);
    EXPECT_TRUE(succeeds(graph));
    return graph ? graph->layers().size() : 0;
  };
  EXPECT_GT(calls(of("true")), calls(of("false"))) << "casts";
}

/// The job of a request for this model, with the option that names the release, or without.
TrainingJob job_of(const model::ModelGraph& graph, std::string_view release = {}, std::string_view loop = "script") {
  job::JobRequest request;
  request.training.batch_size = 1;
  request.training.sequence_length = 16;
  EXPECT_TRUE(succeeds(job::set_option_text(*job::find_option("loop"), request, loop)));
  if (!release.empty()) {
    EXPECT_TRUE(succeeds(job::set_option_text(*job::find_option("transformers"), request, release)));
  }
  const auto made = job::job_from(request, std::make_shared<const model::ModelGraph>(graph));
  EXPECT_TRUE(succeeds(made));
  return made ? *made : TrainingJob();
}

TEST(YoungModels, HaveTheCallsOfTheReleaseThatBroughtThem) {
  const auto published = summary::published_model("Qwen/Qwen3-0.6B");
  ASSERT_TRUE(published);
  const auto config = parse_summary(published->config);
  const auto tree = read_summary(GPUMEM_SOURCE_DIR "/models/trees/Qwen_Qwen3-0.6B.txt");
  ASSERT_TRUE(succeeds(config));
  ASSERT_TRUE(succeeds(tree));
  for (const model::ModelGraph& graph : {*config, *tree}) {
    const TrainingJob job = job_of(graph);
    EXPECT_EQ(job.transformers, model::Transformers::v4_51);
    ASSERT_EQ(job.notes.size(), 1U);
    EXPECT_NE(job.notes.front().text.find("transformers 4.51"), std::string::npos) << job.notes.front().text;
    EXPECT_EQ(job_of(graph, "4.45").transformers, model::Transformers::v4_45) << "what is asked for counts";
    EXPECT_TRUE(job_of(graph, "4.45").notes.empty());
    EXPECT_EQ(job_of(graph, {}, "megatron").transformers, model::Transformers::v4_48) << "its models are others";
    const TrainingJob newest = job_of(graph, "5.0");
    ASSERT_EQ(newest.notes.size(), 1U) << "transformers 5 loads another type than float32";
    EXPECT_EQ(newest.notes.front().setting, "precision");
    EXPECT_TRUE(job_of(graph, "5.0", "megatron").notes.empty());
  }
}

TEST(YoungModels, AConfigSaysWhichReleaseWroteIt) {
  const auto release_of = [](const std::string& version) {
    const auto published = summary::published_model("meta-llama/Llama-3.2-1B");
    std::string config = published->config;
    config.insert(1, "\"transformers_version\": \"" + version + "\", ");
    const auto graph = parse_summary(config);
    EXPECT_TRUE(succeeds(graph));
    return job_of(*graph).transformers;
  };
  EXPECT_EQ(release_of("4.57.1"), model::Transformers::v4_56);
  EXPECT_EQ(release_of("5.2.0"), model::Transformers::v5_0);
  EXPECT_EQ(release_of("4.31.0"), model::Transformers::v4_48) << "an old config is trained with a later release";
  EXPECT_EQ(release_of("new"), model::Transformers::v4_48);
}

}  // namespace
}  // namespace gpumem::testing
