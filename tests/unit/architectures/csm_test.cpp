#include "gpumem/architectures/csm.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

core::Result<model::ModelGraph> csm_graph(std::string_view config) {
  return read_config(config, ops::vocabulary(), {}, {});
}

std::string small_csm(std::string_view more = "") {
  return R"({"model_type": "csm", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50, "text_vocab_size": 100, "num_codebooks": 4,
      "depth_decoder_config": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
      "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 50, "num_codebooks": 4,
      "backbone_hidden_size": 64})" +
         std::string(more) + "}";
}

// The classes' values are those of sesame/csm-1b, which Unsloth counts before it adds adapters. Mimi's part of it is
// 79,308,609.
TEST(Csm, HasThePublishedParameters) {
  const auto graph = csm_graph(R"({"model_type": "csm"})");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 1'632'100'161);
  EXPECT_EQ(graph->parameters() - graph->trainable_parameters(), 79'308'609);
  EXPECT_TRUE(graph->doubts().empty());
  EXPECT_EQ(graph->remarks().size(), 2U) << "frames, and the codec";
}

TEST(Csm, BothDecodersHaveOneTableOfCodes) {
  const auto tied = csm_graph(small_csm());
  const auto apart = csm_graph(small_csm(R"(, "tie_codebooks_embeddings": false)"));
  ASSERT_TRUE(succeeds(tied) && succeeds(apart));
  EXPECT_EQ(apart->parameters() - tied->parameters(), 4 * 50 * 64);
  for (const char* path : {"backbone_model.embed_tokens.embed_audio_tokens", "backbone_model.layers.1.self_attn.q_proj",
                           "depth_decoder.model.inputs_embeds_projector", "depth_decoder.model.layers.0.mlp.down_proj",
                           "depth_decoder.codebooks_head.weight", "embed_text_tokens", "lm_head"}) {
    EXPECT_TRUE(std::ranges::any_of(tied->layers(), [&](const model::Layer& each) { return tied->path(each) == path; }))
        << path;
  }
}

TEST(Csm, FramesCountByTheirCodes) {
  const auto peak = [](std::int64_t tokens) {
    TrainingJob job(*csm_graph(small_csm()), 2);
    job.sequence_length = tokens;
    job.lora = 4;
    job.lora_targets = "q_proj+v_proj";
    const auto answer = (*make_estimator("replay"))->estimate(job, *find_profile("b200"));
    EXPECT_TRUE(succeeds(answer));
    return answer && answer->allocated ? answer->allocated->count() : 0;
  };
  EXPECT_LT(peak(256), peak(512));
}

TEST(Csm, RefusesWhatItIsNot) {
  EXPECT_TRUE(fails(csm_graph(small_csm(R"(, "architectures": ["CsmModel"])")), ErrorCode::malformed_input, 0,
                    "only the class that speaks"));
  EXPECT_TRUE(fails(csm_graph(small_csm(R"(, "attention_bias": true)")), ErrorCode::malformed_input, 0,
                    "is false in this model"));
  EXPECT_TRUE(fails(csm_graph(small_csm(R"(, "codec_config": {"use_conv_shortcut": true})")),
                    ErrorCode::malformed_input, 0, "is false in this codec"));
  EXPECT_TRUE(fails(csm_graph(R"({"model_type": "csm", "num_codebooks": 16})"), ErrorCode::malformed_input, 0,
                    "must be the depth decoder's"));
}

}  // namespace
}  // namespace gpumem::architectures
