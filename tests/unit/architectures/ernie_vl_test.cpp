#include "gpumem/architectures/ernie_vl.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

core::Result<model::ModelGraph> ernie_graph(std::string_view config, std::int64_t width = 1024,
                                            std::int64_t height = 768, std::int64_t frames = 0) {
  model::Images images = {.size = model::PictureSize{width, height}, .count = 1, .frames = {}};
  if (frames > 0) images.frames = frames;
  return read_config(config, ops::vocabulary(), {}, images);
}

std::string small_ernie(std::string_view text = "", std::string_view more = "") {
  return R"({"model_type": "ernie4_5_vl_moe", "text_config": {"hidden_size": 64, "intermediate_size": 96,
      "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
      "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": [32, 16])" +
         std::string(text) + R"(}, "vision_config": {"depth": 2, "hidden_size": 32, "num_heads": 2,
      "intermediate_size": 48})" +
         std::string(more) + "}";
}

bool ernie_has(const model::ModelGraph& graph, std::string_view path) {
  return std::ranges::any_of(graph.layers(), [&](const model::Layer& layer) { return graph.path(layer) == path; });
}

std::string ernie_tokens(std::int64_t width, std::int64_t height, std::int64_t frames = 0) {
  const auto graph = ernie_graph(small_ernie(), width, height, frames);
  EXPECT_TRUE(succeeds(graph));
  const std::string told = graph ? std::string(graph->remarks().back()) : std::string();
  return told.substr(std::min(told.rfind(": "), told.size()));
}

// The class's values are those of ERNIE-4.5-VL-28B-A3B. Its total is what Unsloth counts before it adds adapters; that
// of the 424B is what its files hold (baidu/ERNIE-4.5-VL-424B-A47B-Base-Paddle). Its fields are here as its publisher
// has them.
TEST(ErnieVl, HasThePublishedParameters) {
  const auto usual = ernie_graph(R"({"model_type": "ernie4_5_vl_moe"})");
  ASSERT_TRUE(succeeds(usual));
  EXPECT_EQ(usual->parameters(), 29'399'294'336);
  const auto large = ernie_graph(R"({"model_type": "ernie4_5_moe_vl", "hidden_size": 8192, "intermediate_size": 28672,
      "num_hidden_layers": 54, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 103424,
      "moe_num_experts": [64, 64], "moe_k": 8, "moe_intermediate_size": [3584, 1536], "moe_layer_start_index": [3, 3],
      "moe_layer_end_index": [53, 53], "moe_layer_interval": 1, "use_bias": false, "tie_word_embeddings": false,
      "im_patch_id": 100295, "pixel_hidden_size": 1280, "spatial_conv_size": 2, "temporal_conv_size": 2,
      "use_temporal_conv": true, "rope_3d": true, "freq_allocation": 20, "moe_gate": "top2_fused",
      "moe_use_aux_free": true, "moe_multimodal_dispatch_use_allgather": "v2-alltoall-unpad-text",
      "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 1280, "hidden_act": "quick_gelu",
      "in_channels": 3, "in_chans": 3, "mlp_ratio": 4, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2,
      "spatial_patch_size": 14, "model_type": "DFNRope_vision_transformer"}})");
  ASSERT_TRUE(succeeds(large));
  EXPECT_EQ(large->parameters(), 423'526'285'184);
  EXPECT_EQ(large->doubts().size(), 1U) << "that of images";
  EXPECT_EQ(large->remarks().front(), "the calls are transformers' own: the publisher's code computes no loss");
}

TEST(ErnieVl, TakesTokensAsItsProcessorDoes) {
  EXPECT_EQ(ernie_tokens(1024, 768), ": 999 of its tokens") << "37 x 27 of 28 pixels";
  EXPECT_EQ(ernie_tokens(20, 20), ": 4 of its tokens") << "grown to 56 x 56";
  EXPECT_EQ(ernie_tokens(4096, 4096), ": 6,084 of its tokens") << "at most 6,177: 78 x 78";
  EXPECT_EQ(ernie_tokens(448, 448, 5), ": 972 of its tokens") << "three pairs of frames, grown to 18 x 18";
  EXPECT_TRUE(fails(ernie_graph(small_ernie(), 28, 28 * 300), ErrorCode::malformed_input, 0, "200 to 1"));
}

TEST(ErnieVl, HasExpertsOfTextAndOfImages) {
  const auto graph = ernie_graph(small_ernie());
  ASSERT_TRUE(succeeds(graph));
  for (const char* path :
       {"model.language_model.layers.0.mlp.gate_proj", "model.language_model.layers.1.mlp.text_moe.gate.weight",
        "model.language_model.layers.2.mlp.vision_moe.experts.gate_up_proj",
        "model.language_model.layers.2.mlp.vision_moe.gate.moe_statics.e_score_correction_bias",
        "model.language_model.layers.1.mlp.shared_experts.up_proj", "model.vision_tower.patch_embed.proj",
        "model.vision_tower.blocks.1.mlp.fc2", "model.resampler_model.temporal_linear.fc1",
        "model.resampler_model.after_norm", "lm_head"}) {
    EXPECT_TRUE(ernie_has(*graph, path)) << path;
  }
  const auto without = read_config(small_ernie(), ops::vocabulary(), {}, {.size = {}, .count = 0, .frames = {}});
  ASSERT_TRUE(succeeds(without));
  EXPECT_EQ(without->parameters(), graph->parameters());
  // Experts of images, their routers and the tower are held, and never trained.
  EXPECT_LT(without->trainable_parameters(), graph->trainable_parameters() - 2 * 4 * (3 * 64 * 16 + 64));
  EXPECT_FALSE(ernie_has(*without, "model.language_model.layers.2.mlp.vision_moe.experts.gate_up_proj"));
}

TEST(ErnieVl, RefusesWhatItIsNot) {
  EXPECT_TRUE(fails(ernie_graph(small_ernie("", R"(, "audio_config": {"layers": 2})")), ErrorCode::missing_information,
                    0, "'audio_config'"));
  EXPECT_TRUE(fails(ernie_graph(small_ernie(R"(, "mlp_layer_types": ["dense"])")), ErrorCode::malformed_input, 0,
                    "fewer entries"));
  EXPECT_TRUE(fails(ernie_graph(R"({"model_type": "ernie4_5_moe_vl", "moe_num_experts": [64, 32]})"),
                    ErrorCode::malformed_input, 0, "the same for text and for images"));
  EXPECT_TRUE(fails(ernie_graph(R"({"model_type": "ernie4_5_vl_moe", "vision_config": {"temporal_merge_size": 4}})"),
                    ErrorCode::malformed_input, 0, "is 2 in this model"));
}

TEST(ErnieVl, SamplesMustHoldTextBesideTheirImages) {
  TrainingJob job(*ernie_graph(small_ernie()), 1);
  job.image = {280, 280};
  job.sequence_length = 102;
  const auto short_of_text = (*make_estimator("replay"))->estimate(job, *find_profile("b200"));
  EXPECT_TRUE(fails(short_of_text, ErrorCode::invalid_argument, 0, "102 tokens with the marks around them"));
  job.sequence_length = 103;
  EXPECT_TRUE(succeeds((*make_estimator("replay"))->estimate(job, *find_profile("b200"))));
}

TEST(ErnieVl, AFrozenTowerKeepsNothing) {
  TrainingJob job(*ernie_graph(small_ernie()), 2);
  job.sequence_length = 512;
  job.image = {512, 512};
  const auto peak = [&] {
    const auto answer = (*make_estimator("replay"))->estimate(job, *find_profile("b200"));
    EXPECT_TRUE(succeeds(answer));
    return answer && answer->allocated ? answer->allocated->count() : 0;
  };
  const std::int64_t all = peak();
  job.freeze = "model.vision_tower";
  EXPECT_LT(peak(), all);
}

}  // namespace
}  // namespace gpumem::architectures
