#include "gpumem/architectures/decoder.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "gpumem/architectures/architectures.hpp"
#include "plans.hpp"

namespace gpumem::architectures {
namespace {

using testing::fails;
using testing::succeeds;

/// A Llama of two blocks with grouped keys, in training.
TrainingJob small_llama(std::string_view more = "") {
  const auto graph = read_config(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100)" +
                                     std::string(more) + "}",
                                 ops::vocabulary());
  EXPECT_TRUE(succeeds(graph));
  TrainingJob job(graph ? *graph : ModelGraph(), 2);
  job.sequence_length = 16;
  return job;
}

/// The shape of the layer of this path, for the job's sequence length.
std::string shape_of(const connect::WiredGraph& wired, std::string_view path) {
  for (std::size_t index = 0; index < wired.graph().layers().size(); ++index) {
    const auto outputs = wired.outputs(index);
    if (wired.graph().path(wired.graph().layers()[index]) == path && !outputs.empty()) {
      return core::to_string(outputs[0]);
    }
  }
  return "none";
}

TEST(Decoder, TakesItsLengthFromTheJob) {
  TrainingJob job = small_llama();
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(wired->edges(), "given");
  EXPECT_EQ(shape_of(*wired, "model.layers.1.self_attn.k_proj"), "[N, 16, 32]");
  EXPECT_EQ(shape_of(*wired, "model.layers.1.self_attn.scaled_dot_product_attention"), "[N, 4, 16, 16]");
  EXPECT_EQ(shape_of(*wired, "model.rotary_emb.rotary_table"), "[1, 1, 16, 16]");
  EXPECT_EQ(shape_of(*wired, "lm_head"), "[N, 16, 100]");
  EXPECT_EQ(shape_of(*wired, "contiguous"), "[N, 15, 100]") << "all but the last token's";
  job.sequence_length = 32;
  EXPECT_EQ(shape_of(*connect::connect(job, ops::catalogue()), "lm_head"), "[N, 32, 100]");
}

TEST(Decoder, AsksForALength) {
  TrainingJob job = small_llama();
  job.sequence_length = {};
  EXPECT_TRUE(
      fails(connect::connect(job, ops::catalogue()), core::ErrorCode::missing_information, 0, "`seq_length=512`"));
}

TEST(Decoder, ComputesItsLossAndHandsOutLogitsAndCache) {
  TrainingJob job = small_llama();
  const auto pass = testing::forward(job);
  ASSERT_TRUE(succeeds(pass));
  EXPECT_EQ(pass->model_functions, pass->tape.functions().size()) << "no loss behind the model";
  EXPECT_EQ(pass->held.size(), 6U) << "a key and a value of each block, the logits, the loss";
  EXPECT_EQ(pass->tape.tensor(pass->loss).size.elements.value(), 1);
}

/// Bytes that stand when the second step's forward begins: parameters, states, gradients, and what the loop holds.
std::int64_t standing(const TrainingJob& job) {
  const testing::Planned made = testing::planned(job);
  std::int64_t live = 0;
  std::vector<std::int64_t> slots(made.plan.slots);
  for (std::size_t at = 0; at < made.plan.events.size(); ++at) {
    const plan::PhaseMark& mark = made.plan.phase_of(at);
    if (mark.step == 2 && mark.phase == plan::Phase::batch) break;
    const plan::Event& event = made.plan.events[at];
    if (event.kind == plan::Event::Kind::call) continue;
    const bool made_now = event.kind == plan::Event::Kind::allocate;
    live += made_now ? event.bytes : -slots[event.slot];
    if (made_now) slots[event.slot] = event.bytes;
  }
  return live;
}

TEST(Decoder, MakesNoCacheWhereBlocksAreCheckpointed) {
  TrainingJob job = small_llama();
  const std::int64_t with_cache = standing(job);
  job.activation_checkpointing = true;
  constexpr std::int64_t kKeysAndValues = 2 * 2 * (2 * 16 * 32 * 4);  // two blocks, of 2 samples of 16 tokens
  EXPECT_EQ(with_cache - standing(job), kKeysAndValues);
}

TEST(Decoder, UpcastsItsLogitsForTheLoss) {
  TrainingJob job = small_llama();
  job.precision = Precision::bf16;
  const auto pass = testing::forward(job);
  ASSERT_TRUE(succeeds(pass));
  std::int64_t wide = 0;
  for (const ops::Function& function : pass->tape.functions()) {
    const ops::TapeTensor& output = pass->tape.tensor(function.output);
    const bool logits = output.size.elements.value() == 16 * 100 || output.size.elements.value() == 15 * 100;
    if (logits && output.storage == function.output && output.size.dtype == core::DType::float32) ++wide;
  }
  EXPECT_EQ(wide, 3) << "the float32 logits, the copy of all but the last token's, the log-softmax";
}

/// The attentions of a model that are causal: the module and how many of it, "decoder self_attn 2".
std::string causal_attentions(std::string_view config) {
  const auto graph = read_config(config, ops::vocabulary());
  EXPECT_TRUE(succeeds(graph));
  std::map<std::string, int> found;
  for (const model::Layer& layer : graph ? graph->layers() : std::span<const model::Layer>()) {
    const std::string path = graph->path(layer);
    if (!graph->attributes(layer).flag("is_causal", false)) continue;
    const std::string side = path.find("decoder") != std::string::npos ? "decoder " : "encoder ";
    ++found[side + (path.find("encoder_attn") != std::string::npos ? "encoder_attn" : "self_attn")];
  }
  std::string text;
  for (const auto& [name, count] : found) text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
  return text;
}

TEST(Decoder, OnlyTheDecodersSelfAttentionIsCausalInModelsThatHaveBoth) {
  // BartAttention and WhisperAttention, is_causal=True in the decoder's self_attn alone.
  constexpr std::string_view kSizes = R"("d_model": 64, "vocab_size": 100, "max_position_embeddings": 32,
    "encoder_layers": 3, "encoder_attention_heads": 4, "encoder_ffn_dim": 128,
    "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 128})";
  for (const std::string type :
       {"bart", "mbart", "marian", "m2m_100", "pegasus", "plbart", "blenderbot", "blenderbot-small", "whisper"}) {
    EXPECT_EQ(causal_attentions(R"({"model_type": ")" + type + R"(", )" + std::string(kSizes)), "decoder self_attn 2")
        << type;
  }
}

// MarianConfig.share_encoder_decoder_embeddings: without it each side has a table, and the head is the decoder's.
TEST(Decoder, SidesMayHaveTablesOfTheirOwn) {
  constexpr std::string_view kMarian = R"({"model_type": "marian", "d_model": 64, "vocab_size": 100,
    "decoder_vocab_size": 80, "max_position_embeddings": 32, "encoder_layers": 1, "encoder_attention_heads": 4,
    "encoder_ffn_dim": 128, "decoder_layers": 1, "decoder_attention_heads": 4, "decoder_ffn_dim": 128)";
  const auto parameters = [&](std::string_view more) {
    const auto graph = read_config(std::string(kMarian) + std::string(more), ops::vocabulary());
    EXPECT_TRUE(graph);
    return graph ? graph->parameters() : 0;
  };
  EXPECT_EQ(parameters(R"(, "share_encoder_decoder_embeddings": false})") - parameters("}"), 80 * 64);
}

TEST(Decoder, LeavesHeadsAloneThatAreNotWhole) {
  const auto graph = read_config(R"({"model_type": "llama", "hidden_size": 100, "num_hidden_layers": 2,
    "num_attention_heads": 3, "intermediate_size": 128, "vocab_size": 100})",
                                 ops::vocabulary());
  EXPECT_TRUE(fails(graph, core::ErrorCode::malformed_input, 0, "does not divide hidden_size"));
}

/// The model of a config that these fields make.
core::Result<ModelGraph> language(std::string_view fields) {
  return read_config("{" + std::string(fields) + "}", ops::vocabulary());
}

/// How many calls of an op there are in modules whose path has this in it.
int calls_of(const ModelGraph& graph, std::string_view op, std::string_view within = "") {
  const auto is = [&](const model::Layer& layer) {
    return graph.op(layer) == op && graph.path(layer).find(within) != std::string::npos;
  };
  return static_cast<int>(std::ranges::count_if(graph.layers(), is));
}

/// The layers whose heads are turned: "01" is the second of two.
std::string turned_layers(const core::Result<ModelGraph>& graph, int layers) {
  EXPECT_TRUE(succeeds(graph));
  std::string found;
  for (int at = 0; graph && at < layers; ++at) {
    found += calls_of(*graph, "neg", "layers." + std::to_string(at) + ".self_attn") > 0 ? '1' : '0';
  }
  return found;
}

constexpr std::string_view kDecoderSizes = R"("hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 64, "vocab_size": 10)";
constexpr std::string_view kFewExperts = R"(, "num_experts": 4, "num_experts_per_tok": 2)";

TEST(LanguageConfigs, HeadsAreAsWideAsTheClassSaysWhereTheConfigDoesNot) {
  for (const std::string type : {"cohere2_moe", "afmoe", "laguna"}) {
    const std::string base = R"("model_type": ")" + type + "\", " + std::string(kDecoderSizes) +
                             std::string(kFewExperts) +
                             (type == "cohere2_moe" ? "" : R"(, "moe_intermediate_size": 64)");
    const auto silent = language(base);
    const auto same = language(base + R"(, "head_dim": 128)");
    const auto narrow = language(base + R"(, "head_dim": 64)");
    ASSERT_TRUE(succeeds(silent) && succeeds(same) && succeeds(narrow)) << type;
    EXPECT_EQ(silent->parameters(), same->parameters()) << type;
    // Queries and output, keys and values of four layers; AFMoE has a gate an element beside them.
    EXPECT_GE(silent->parameters() - narrow->parameters(), 4 * 256 * 64 * (2 * 4 + 2 * 2)) << type;
  }
}

TEST(LanguageConfigs, OlmoHybridTurnsHeadsUnlessItsBaseIsNull) {
  const auto of = [](std::string_view more) {
    return turned_layers(language(R"("model_type": "olmo_hybrid", "hidden_size": 256, "num_hidden_layers": 4,
        "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 10)" +
                                  std::string(more)),
                         4);
  };
  for (const std::string_view rope :
       {"", R"(, "rope_parameters": null)", R"(, "rope_parameters": {"rope_type": "default"})",
        R"(, "rope_parameters": {"rope_theta": 500000.0})", R"(, "rope_theta": 500000.0)"}) {
    EXPECT_EQ(of(rope), "0001") << rope;
  }
  EXPECT_EQ(of(R"(, "rope_parameters": {"rope_theta": null})"), "0000") << "as Olmo-Hybrid-7B is published";
  EXPECT_EQ(of(R"(, "rope_parameters": {"rope_theta": null, "rope_type": "default"})"), "0000");
  EXPECT_EQ(of(R"(, "rope_theta": null)"), "0000");
}

TEST(LanguageConfigs, ExaonesWindowsAreWhereItsPatternSays) {
  for (const std::string type : {"exaone_moe", "exaone4"}) {
    const bool mixes = type == "exaone_moe";
    const std::string experts = mixes ? std::string(kFewExperts) + R"(, "moe_intermediate_size": 64)" : "";
    const auto plain = [&](std::string_view more) {
      return language(R"("model_type": ")" + type + R"(", "head_dim": 64, )" + std::string(kDecoderSizes) + experts +
                      std::string(more));
    };
    const auto of = [&](std::string_view pattern) {
      return plain(R"(, "sliding_window": 128)" + std::string(pattern));
    };
    EXPECT_EQ(turned_layers(plain(""), 4), "1110") << "the class has a window";
    EXPECT_EQ(turned_layers(plain(R"(, "sliding_window": null)"), 4), "1111");
    EXPECT_EQ(turned_layers(of(""), 4), "1110") << type;
    EXPECT_EQ(turned_layers(of(R"(, "sliding_window_pattern": 2)"), 4), "1010") << type;
    EXPECT_EQ(turned_layers(of(R"(, "sliding_window_pattern": "LG")"), 4), "1010") << type;
    EXPECT_EQ(turned_layers(of(R"(, "sliding_window_pattern": "L")"), 4), "1110") << type << ", the last reads all";
    EXPECT_EQ(turned_layers(of(R"(, "sliding_window_pattern": "GLL")"), 4), "0110") << type;
    for (const std::string_view wrong : {R"("LX")", R"("")", "0", "null"}) {
      EXPECT_TRUE(
          fails(of(", \"sliding_window_pattern\": " + std::string(wrong)), core::ErrorCode::malformed_input, 0, ""))
          << type << wrong;
    }
  }
}

TEST(LanguageConfigs, DbrxDropsEmbeddingsAndClipsHeads) {
  const auto of = [](std::string_view more) {
    return language(R"("model_type": "dbrx", "d_model": 256, "n_heads": 4, "n_layers": 2, "vocab_size": 10)" +
                    std::string(more));
  };
  const auto plain = of("");
  const auto dropped = of(R"(, "emb_pdrop": 0.1)");
  const auto clipped = of(R"(, "attn_config": {"clip_qkv": 8})");
  ASSERT_TRUE(succeeds(plain) && succeeds(dropped) && succeeds(clipped));
  EXPECT_EQ(calls_of(*plain, "dropout"), 0);
  EXPECT_EQ(calls_of(*plain, "hardtanh"), 0);
  EXPECT_EQ(calls_of(*dropped, "dropout"), 1);
  EXPECT_EQ(calls_of(*clipped, "hardtanh", "attn"), 2);
  const auto held = [](const ModelGraph& graph, model::Transformers release) {
    TrainingJob job(graph, 2);
    job.sequence_length = 16;
    job.transformers = release;
    const auto pass = testing::forward(job);
    EXPECT_TRUE(succeeds(pass));
    return pass ? pass->tape.functions().size() : 0U;
  };
  using model::Transformers;
  EXPECT_EQ(held(*dropped, Transformers::v4_56), held(*plain, Transformers::v4_56) + 1);
  EXPECT_EQ(held(*dropped, Transformers::v5_0), held(*plain, Transformers::v5_0)) << "5 drops no embedding";
  EXPECT_EQ(calls_of(*of(R"(, "ffn_config": {"ffn_act_fn": {"name": "gelu"}})"), "gelu"), 2 * 4);
  const auto wrong = of(R"(, "ffn_config": {"ffn_act_fn": {"name": 5}})");
  ASSERT_TRUE(fails(wrong, core::ErrorCode::malformed_input, 0, ""));
  EXPECT_EQ(wrong.error().place.element, "/ffn_config/ffn_act_fn/name");
}

TEST(LanguageConfigs, JetMoeComputesItsHeadsWhateverTheConfigSays) {
  const auto of = [](std::string_view more) {
    const auto graph = language(R"("model_type": "jetmoe", "hidden_size": 2048, "num_hidden_layers": 1,
        "intermediate_size": 64, "vocab_size": 10)" +
                                std::string(more));
    EXPECT_TRUE(succeeds(graph)) << more;
    return graph ? graph->parameters() : 0;
  };
  const std::int64_t usual = of("");
  EXPECT_EQ(of(R"(, "num_key_value_heads": 16, "num_attention_heads": 32)"), usual);
  EXPECT_EQ(of(R"(, "num_attention_heads": 48)"), usual);
  // Keys and values; and of each of eight experts the queries, and what reads attention.
  EXPECT_EQ(of(R"(, "num_key_value_heads": 24)") - usual, 2048 * 8 * 128 * (2 + 2 * 8));
  EXPECT_EQ(of(R"(, "num_key_value_heads": 24, "num_attention_heads": 48)"), of(R"(, "num_key_value_heads": 24)"));
  EXPECT_EQ(usual - of(R"(, "kv_channels": 64)"), 2048 * 16 * 64 * (2 + 2 * 8));
}

constexpr std::string_view kCohereMoe = R"("model_type": "cohere2_moe", "hidden_size": 256, "num_hidden_layers": 4,
    "num_attention_heads": 4, "head_dim": 64, "intermediate_size": 64, "num_experts": 4, "vocab_size": 10)";

TEST(LanguageConfigs, CohereWeighsItsExpertsAsTheConfigSays) {
  const auto of = [](std::string_view more) { return language(std::string(kCohereMoe) + std::string(more)); };
  const auto softmax = of("");
  const auto sigmoid = of(R"(, "expert_selection_fn": "sigmoid")");
  const auto average = of(R"(, "num_shared_experts": 1)");
  const auto sum = of(R"(, "num_shared_experts": 1, "shared_expert_combination_strategy": "sum")");
  const auto rms = of(R"(, "rms_norm_eps": 1e-5)");
  ASSERT_TRUE(succeeds(softmax) && succeeds(sigmoid) && succeeds(average) && succeeds(sum) && succeeds(rms));
  EXPECT_EQ(calls_of(*softmax, "softmax", "mlp"), 4);
  EXPECT_EQ(calls_of(*softmax, "sigmoid", "mlp"), 0);
  EXPECT_EQ(calls_of(*sigmoid, "softmax", "mlp"), 0);
  EXPECT_EQ(calls_of(*sigmoid, "sigmoid", "mlp"), 4);
  EXPECT_EQ(calls_of(*average, "mul", "mlp"), calls_of(*sum, "mul", "mlp") + 4) << "half of the sum";
  EXPECT_EQ(average->parameters(), sum->parameters());
  EXPECT_EQ(average->parameters() - softmax->parameters(), 4 * 3 * 256 * 64);
  EXPECT_EQ(calls_of(*softmax, "rms_norm"), 0);
  EXPECT_EQ(calls_of(*rms, "rms_norm"), 4 + 1);
  EXPECT_EQ(calls_of(*rms, "rsqrt"), 0);
  EXPECT_TRUE(fails(of(R"(, "expert_selection_fn": "hash")"), core::ErrorCode::malformed_input, 0, "is not known"));
  EXPECT_TRUE(fails(of(R"(, "shared_expert_combination_strategy": "product")"), core::ErrorCode::malformed_input, 0,
                    "is not known"));
}

TEST(LanguageConfigs, CoheresFirstLayersHaveAPatternAndAWidthOfTheirOwn) {
  const auto of = [](std::string_view more) { return language(std::string(kCohereMoe) + std::string(more)); };
  const std::string dense = R"(, "first_k_dense_replace": 2)";
  const auto same = of(dense);
  const auto wide = of(dense + R"(, "prefix_dense_intermediate_size": 96)");
  ASSERT_TRUE(succeeds(same) && succeeds(wide));
  EXPECT_EQ(wide->parameters() - same->parameters(), 2 * 3 * 256 * (96 - 64));
  EXPECT_EQ(turned_layers(of(""), 4), "1110") << "every fourth reads all tokens";
  EXPECT_EQ(turned_layers(same, 4), "1111") << "those that read all tokens are turned, and the next four begin anew";
  EXPECT_EQ(turned_layers(of(dense + R"(, "prefix_dense_sliding_window_pattern": 2)"), 4), "1011");
  EXPECT_EQ(turned_layers(of(dense + R"(, "sliding_window_pattern": 2)"), 4), "1110");
}

TEST(LanguageConfigs, LongcatsExpertsOfNoKnownKindAreRefused) {
  const auto longcat = language(R"("model_type": "longcat_flash", "hidden_size": 64, "num_layers": 1,
      "num_attention_heads": 2, "ffn_hidden_size": 64, "expert_ffn_hidden_size": 32, "n_routed_experts": 2,
      "moe_topk": 2, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16,
      "v_head_dim": 16, "vocab_size": 10, "zero_expert_type": "copy")");
  EXPECT_TRUE(fails(longcat, core::ErrorCode::malformed_input, 0, "is not known"));
}

constexpr std::string_view kLaguna =
    R"("model_type": "laguna", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 512, "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64, "num_experts": 4, "num_experts_per_tok": 1, "vocab_size": 10)";

TEST(LanguageConfigs, LagunasLayersHaveHeadsOfTheirOwn) {
  const auto of = [](std::string_view more) { return language(std::string(kLaguna) + std::string(more)); };
  const auto alike = of("");
  const auto more = of(R"(, "num_attention_heads_per_layer": [4, 8])");
  ASSERT_TRUE(succeeds(alike));
  ASSERT_TRUE(succeeds(more));
  // Queries, gates and the output projection of four more heads.
  EXPECT_EQ(more->parameters() - alike->parameters(), 256 * 4 * 64 * 2 + 256 * 4);
  EXPECT_TRUE(
      fails(of(R"(, "num_attention_heads_per_layer": [4])"), core::ErrorCode::malformed_input, 0, "fewer entries"));
  EXPECT_TRUE(
      fails(of(R"(, "num_attention_heads_per_layer": [4, 3])"), core::ErrorCode::malformed_input, 0, "whole groups"));
  const auto gates = of(R"(, "gating": "per-element")");
  ASSERT_TRUE(succeeds(gates));
  EXPECT_EQ(gates->parameters() - alike->parameters(), 2 * 256 * 4 * 63);
}

TEST(LanguageConfigs, LagunaCapsScoresAndTurnsAShareOfItsHeads) {
  const auto of = [](std::string_view more) { return language(std::string(kLaguna) + std::string(more)); };
  const auto plain = of("");
  const auto capped = of(R"(, "moe_router_logit_softcapping": 30.0)");
  ASSERT_TRUE(succeeds(plain) && succeeds(capped));
  EXPECT_EQ(calls_of(*plain, "tanh"), 0);
  EXPECT_EQ(calls_of(*capped, "tanh", "layers.1.mlp.gate"), 1) << "of the layer with experts";
  EXPECT_EQ(calls_of(*capped, "tanh"), 1);
  const auto widths = [&](std::string_view more) {
    const auto graph = of(R"(, "layer_types": ["full_attention", "sliding_attention"])" + std::string(more));
    EXPECT_TRUE(succeeds(graph)) << more;
    std::string found;
    for (const model::Layer& layer : graph ? graph->layers() : std::span<const model::Layer>()) {
      if (graph->op(layer) == "rotary_table")
        found += std::to_string(graph->attributes(layer).integer("width").value_or(0)) + " ";
    }
    return found;
  };
  EXPECT_EQ(widths(""), "32 32 64 64 ") << "cosines and sines of layers that read all tokens, and of the near ones";
  EXPECT_EQ(widths(R"(, "rope_parameters": {"full_attention": {"partial_rotary_factor": 0.25},
                                            "sliding_attention": {"partial_rotary_factor": 0.5}})"),
            "16 16 32 32 ");
  EXPECT_EQ(widths(R"(, "rope_parameters": {"full_attention": {"rope_theta": 500000.0},
                                            "sliding_attention": {"rope_theta": 10000.0}})"),
            "64 64 64 64 ")
      << "a share that they leave out is the whole";
}

TEST(Decoder, LayersOfAKindHaveASizeOfTheirOwn) {
  const std::vector<bool> second = {false, true, false, true};
  const auto size = [&](std::string_view own) {
    const std::string text = R"({"head_dim": 8, "per_layer_config": )" + std::string(own) + "}";
    const auto document = core::JsonDocument::parse(text);
    EXPECT_TRUE(succeeds(document));
    ConfigFields fields(document->root());
    const std::int64_t found = own_sizes(fields, second, {{"head_dim", 32}})[0];
    const core::Status status = fields.status();
    return status ? std::to_string(found) : status.error().message;
  };
  EXPECT_EQ(size("null"), "32");
  EXPECT_EQ(size(R"({"01": {"head_dim": 16}, "3": {"head_dim": 16}})"), "16");
  EXPECT_EQ(size(R"({"0": {"head_dim": 8}, "1": {"head_dim": 16}, "3": {"head_dim": 16}})"), "16");
  EXPECT_NE(size(R"({"1": {"head_dim": 16}})").find("differ"), std::string::npos) << "the fourth layer has 32";
  EXPECT_NE(size(R"({"0": {"head_dim": 16}})").find("other kind"), std::string::npos);
  EXPECT_NE(size(R"({"4": {"head_dim": 16}})").find("number of a layer"), std::string::npos);
  EXPECT_NE(size(R"({"1x": {"head_dim": 16}})").find("number of a layer"), std::string::npos);
  EXPECT_NE(size(R"({"1": 16})").find("an object"), std::string::npos);
  EXPECT_NE(size("[16]").find("an object"), std::string::npos);
  for (const char* const size_of_one :
       {R"({"1": {"rope": 2}})", R"({"1": {"head_dim": "x"}})", R"({"1": {"head_dim": 0}})"}) {
    EXPECT_NE(size(size_of_one).find("not understood"), std::string::npos) << size_of_one;
  }
}

}  // namespace
}  // namespace gpumem::architectures
