#include "gpumem/architectures/sound_parts.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::testing {
namespace {

core::Result<model::ModelGraph> read_omni(std::string_view config) {
  return architectures::read_config(config, ops::vocabulary(), {}, {});
}

bool omni_has(const model::ModelGraph& graph, std::string_view path) {
  const auto layers = graph.layers();
  return std::any_of(layers.begin(), layers.end(), [&](const model::Layer& one) { return graph.path(one) == path; });
}

/// `type` with the fields of its parts, and a tower for sound where it has one.
std::string omni_model(const std::string& type, const std::string& text, std::string_view sound, bool third) {
  const std::string experts = R"(, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2)";
  return R"({"model_type": ")" + type + R"(", "text_config": {"model_type": ")" + text +
         R"(", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 96, "vocab_size": 100, "tie_word_embeddings": false)" +
         (third ? experts : "") + R"(}, "vision_config": {"depth": 2,
         "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "out_hidden_size": 64)" +
         (third ? R"(, "num_position_embeddings": 16, "deepstack_visual_indexes": [0])" : "") + "}" +
         std::string(sound) + "}";
}

TEST(SoundParts, AnOmniModelIsItsThinkerWhichHearsToo) {
  constexpr std::string_view kSound = R"(, "audio_config": {"d_model": 8, "encoder_ffn_dim": 16, "encoder_layers": 2,
    "num_mel_bins": 10, "output_dim": 64, "downsample_hidden_size": 4})";
  // Counted from the modules of Qwen2_5OmniAudioEncoder and Qwen3OmniMoeAudioEncoder.
  constexpr std::int64_t kSecondSound = 2352;
  constexpr std::int64_t kThirdSound = 2264;
  const auto second = read_omni(omni_model("qwen2_5_omni_thinker", "qwen2_5_omni_text", kSound, false));
  const auto third = read_omni(omni_model("qwen3_omni_moe_thinker", "qwen3_omni_moe_text", kSound, true));
  const auto sees_second = read_omni(omni_model("qwen2_5_vl", "qwen2_5_vl_text", "", false));
  const auto sees_third = read_omni(omni_model("qwen3_vl_moe", "qwen3_vl_moe_text", "", true));
  ASSERT_TRUE(succeeds(second) && succeeds(third) && succeeds(sees_second) && succeeds(sees_third));
  EXPECT_EQ(second->parameters(), sees_second->parameters() + kSecondSound);
  EXPECT_EQ(third->parameters(), sees_third->parameters() + kThirdSound);
  EXPECT_EQ(second->parameters() - second->trainable_parameters(), kSecondSound) << "what is not called learns nothing";
  for (const char* path : {"visual.blocks.1.attn.q", "visual.merger.mlp.2", "model.layers.1.mlp.up_proj", "lm_head"}) {
    EXPECT_TRUE(omni_has(*second, path)) << path;
  }
  const std::string inner = omni_model("qwen2_5_omni_thinker", "qwen2_5_omni_text", kSound, false);
  const auto whole =
      read_omni(R"({"model_type": "qwen2_5_omni", "architectures": ["Qwen2_5OmniModel"], "thinker_config": )" + inner +
                R"(, "talker_config": {"hidden_size": 32}, "token2wav_config": {"dit_config": {}}})");
  ASSERT_TRUE(succeeds(whole));
  EXPECT_EQ(whole->parameters(), second->parameters());
  EXPECT_TRUE(omni_has(*whole, "lm_head"));
}

/// A whole model: its thinker, and what makes speech.
std::string speaking(const std::string& type, const std::string& class_name, std::string_view parts, bool third) {
  return R"({"model_type": ")" + type + R"(", "architectures": [")" + class_name + R"("], "thinker_config": )" +
         omni_model(type + "_thinker", type + "_text", "", third) + ", " + std::string(parts) + "}";
}

TEST(SoundParts, TheClassOfAnOmniModelHoldsWhatMakesSpeech) {
  // As transformers 5.16 counts the talkers, what makes sound of codes, and both of these sizes.
  constexpr std::int64_t kSecond = 17'712 + 22'346;
  constexpr std::int64_t kThird = 62'496 + 13'865;
  constexpr std::string_view kSecondParts = R"("talker_config": {"embedding_size": 24, "hidden_size": 32,
    "intermediate_size": 40, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "num_hidden_layers": 2,
    "vocab_size": 50}, "token2wav_config": {"dit_config": {"dim": 16, "depth": 2, "heads": 2, "ff_mult": 2,
    "emb_dim": 12, "head_dim": 8, "num_embeds": 20, "mel_dim": 10, "enc_emb_dim": 6, "enc_dim": 8, "enc_channels":
    [8, 8, 8, 16], "enc_kernel_sizes": [5, 3, 3, 1], "enc_attention_channels": 4, "enc_res2net_scale": 2,
    "enc_se_channels": 4}, "bigvgan_config": {"mel_dim": 10, "upsample_initial_channel": 16, "resblock_kernel_sizes":
    [3, 7], "upsample_kernel_sizes": [4, 4]}})";
  constexpr std::string_view kThirdParts = R"("talker_config": {"thinker_hidden_size": 64, "text_config": {"head_dim":
    16, "hidden_size": 32, "intermediate_size": 24, "moe_intermediate_size": 12, "num_attention_heads": 4,
    "num_experts": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "shared_expert_intermediate_size": 20,
    "vocab_size": 50}, "code_predictor_config": {"head_dim": 8, "hidden_size": 32, "intermediate_size": 40,
    "num_attention_heads": 4, "num_code_groups": 5, "num_hidden_layers": 3, "num_key_value_heads": 2, "vocab_size":
    30}}, "code2wav_config": {"codebook_size": 20, "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads":
    4, "intermediate_size": 28, "num_hidden_layers": 2, "num_quantizers": 3, "upsample_rates": [4, 2],
    "upsampling_ratios": [2], "decoder_dim": 16})";
  const auto held = [](const std::string& config) {
    const auto graph = read_omni(config);
    EXPECT_TRUE(succeeds(graph));
    return graph ? std::pair(graph->parameters(), graph->trainable_parameters())
                 : std::pair<std::int64_t, std::int64_t>();
  };
  const auto second = held(speaking("qwen2_5_omni", "Qwen2_5OmniForConditionalGeneration", kSecondParts, false));
  const auto thinker =
      held(speaking("qwen2_5_omni", "Qwen2_5OmniThinkerForConditionalGeneration", kSecondParts, false));
  EXPECT_EQ(second.first, thinker.first + kSecond);
  EXPECT_EQ(second.second, thinker.second) << "nothing calls it";
  const std::string off = R"("enable_audio_output": false, )" + std::string(kSecondParts);
  EXPECT_EQ(held(speaking("qwen2_5_omni", "Qwen2_5OmniForConditionalGeneration", off, false)), thinker);
  const auto third = held(speaking("qwen3_omni_moe", "Qwen3OmniMoeForConditionalGeneration", kThirdParts, true));
  const auto third_thinker =
      held(speaking("qwen3_omni_moe", "Qwen3OmniMoeThinkerForConditionalGeneration", kThirdParts, true));
  EXPECT_EQ(third.first, third_thinker.first + kThird);
  const auto classes = read_omni(speaking("qwen2_5_omni", "Qwen2_5OmniForSequenceClassification", kSecondParts, false));
  ASSERT_TRUE(succeeds(classes));
  EXPECT_TRUE(omni_has(*classes, "score"));
  EXPECT_FALSE(omni_has(*classes, "lm_head"));
}

/// The error of a whole model with these parts.
std::string refused(const std::string& parts, bool third) {
  const std::string type = third ? "qwen3_omni_moe" : "qwen2_5_omni";
  const std::string class_name = third ? "Qwen3OmniMoeForConditionalGeneration" : "Qwen2_5OmniForConditionalGeneration";
  const auto graph = read_omni(speaking(type, class_name, parts, third));
  return graph ? std::string() : core::to_string(graph.error());
}

TEST(SoundParts, WhatMakesSpeechIsRefusedAtTheFieldThatIsWrong) {
  const auto second = [](const std::string& part, const std::string& field, const std::string& value) {
    return refused(R"("talker_config": {}, "token2wav_config": {")" + part + R"(": {")" + field + "\": " + value + "}}",
                   false);
  };
  const auto third = [](const std::string& field, const std::string& value) {
    return refused(R"("talker_config": {}, "code2wav_config": {")" + field + "\": " + value + "}", true);
  };
  const auto says = [](const std::string& error, std::string_view field, std::string_view text) {
    EXPECT_NE(error.find(field), std::string::npos) << field << ": " << error;
    EXPECT_NE(error.find(text), std::string::npos) << field << ": " << error;
  };
  std::string many = "[1";
  for (int at = 1; at < 30'000; ++at) many += ", 1";
  many += "]";
  for (const char* field : {"upsample_kernel_sizes", "resblock_kernel_sizes"}) {
    says(second("bigvgan_config", field, many), field, "has more than 16 entries");
  }
  for (const char* field : {"enc_channels", "enc_kernel_sizes"}) {
    says(second("dit_config", field, many), field, "has more than 16 entries");
  }
  for (const char* field : {"upsampling_ratios", "upsample_rates"}) {
    says(third(field, many), field, "has more than 16 entries");
  }
  says(second("bigvgan_config", "upsample_initial_channel", "32"), "upsample_initial_channel", "is halved to nothing");
  says(third("decoder_dim", "8"), "decoder_dim", "is halved to nothing");
  says(second("dit_config", "enc_res2net_scale", "3"), "enc_res2net_scale", "does not divide enc_channels");
  for (const char* field : {"depth", "num_hidden_layers"}) {
    says(second("dit_config", field, "5000"), field, "no model has more than 4096 layers");
  }
  EXPECT_EQ(second("bigvgan_config", "upsample_initial_channel", "64"), "");
}

TEST(SoundParts, ATowerForSoundIsRefusedAtTheFieldThatIsTooLarge) {
  for (const char* field : {"d_model", "encoder_ffn_dim", "num_mel_bins", "output_dim", "downsample_hidden_size"}) {
    const std::string sound = R"(, "audio_config": {")" + std::string(field) + R"(": 70000})";
    const auto graph = read_omni(omni_model("qwen3_omni_moe_thinker", "qwen3_omni_moe_text", sound, true));
    ASSERT_FALSE(graph) << field;
    EXPECT_NE(core::to_string(graph.error()).find(std::string("audio_config/") + field), std::string::npos)
        << core::to_string(graph.error());
  }
}

TEST(SoundParts, ConvolutionsAreRefusedAtTheListThatIsTooLarge) {
  for (const char* field : {"conv_dim", "conv_kernel", "conv_stride"}) {
    const auto graph = read_omni(R"({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"], "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "num_conv_pos_embeddings": 16, ")" +
                                 std::string(field) + R"(": [20000, 2, 2, 2, 2, 2, 2]})");
    ASSERT_FALSE(graph) << field;
    EXPECT_NE(core::to_string(graph.error()).find(std::string(field) + ": is more than gpumem takes"),
              std::string::npos)
        << core::to_string(graph.error());
  }
}

TEST(SoundParts, PhisTowerForSoundIsRefusedAtTheFieldThatIsTooLarge) {
  for (const char* field : {"hidden_size", "nemo_conv_channels", "bias_max_distance"}) {
    const auto graph = read_omni(R"({"model_type": "phi4_multimodal", "architectures":
      ["Phi4MultimodalForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100, "vision_config": {}, "audio_config": {")" +
                                 std::string(field) + R"(": 70000}})");
    ASSERT_FALSE(graph) << field;
    EXPECT_NE(core::to_string(graph.error()).find(std::string("audio_config/") + field), std::string::npos)
        << core::to_string(graph.error());
  }
}

}  // namespace
}  // namespace gpumem::testing
