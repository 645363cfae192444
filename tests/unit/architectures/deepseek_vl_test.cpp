#include "gpumem/architectures/deepseek_vl.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/architectures/deepseek.hpp"
#include "gpumem/summary/model_folder.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

core::Result<model::ModelGraph> deepseek_graph(std::string_view config, std::int64_t width = 640,
                                               std::int64_t height = 400, std::int64_t images = 1) {
  return read_config(config, ops::vocabulary(), {},
                     {.size = model::PictureSize{width, height}, .count = images, .frames = {}});
}

/// The last remark from its colon on.
std::string tokens_told(const core::Result<model::ModelGraph>& graph) {
  EXPECT_TRUE(succeeds(graph));
  if (!graph) return {};
  const std::string remark(graph->remarks().back());
  return remark.substr(remark.find(": "));
}

const std::string kSmallText = R"("hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 100)";

/// As its makers publish it; `reader` stands behind SAM.
std::string published_ocr(const std::string& reader, const std::string& sam, const std::string& of_reader = "") {
  return R"({"model_type": "deepseek_vl_v2", "language_config": {"model_type": "deepseek_v2", "use_mla": false, )" +
         kSmallText + R"(}, "vision_config": {"width": {")" + reader + R"(": {)" + of_reader + R"(}, "sam_vit_b": {)" +
         sam + "}}}}";
}

/// As transformers has it: blocks of Qwen2 are 896 wide.
std::string small_ocr2(const std::string& sam, const std::string& text = "") {
  return R"({"model_type": "deepseek_ocr2", "text_config": {"model_type": "deepseek_ocr2_text", "num_experts_per_tok": 2,
      "n_routed_experts": 4, "moe_intermediate_size": 32, "mlp_layer_types": ["dense", "sparse"], )" +
         kSmallText + text + R"(}, "vision_config": {"sam_config": {)" + sam + R"(}, "encoder_config": {
      "hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2, "num_hidden_layers": 2}}})";
}

std::string small_vl2(const std::string& more) {
  return R"({"model_type": "deepseek_vl_v2", "language_config": {"model_type": "deepseek_v2", "use_mla": false, )" +
         kSmallText + R"(}, "vision_config": {"width": 32, "heads": 2, "layers": 2})" + more + "}";
}

TEST(DeepseekVl, SeesAPictureWholeAndInTiles) {
  const auto told = [](std::string_view name, std::int64_t width, std::int64_t height, std::int64_t images = 1) {
    const auto model = summary::published_model(name);
    const auto graph = deepseek_graph(model->config, width, height, images);
    EXPECT_TRUE(succeeds(graph));
    if (!graph) return std::string();
    EXPECT_EQ(graph->parameters(), model->parameters) << name;
    const std::string remark(graph->remarks().back());
    return remark.substr(remark.find(": "));
  };
  constexpr std::string_view kFirst = "deepseek-ai/DeepSeek-OCR";
  EXPECT_EQ(told(kFirst, 640, 400), ": 273 of its tokens") << "the whole alone: 16 lines of 17, and one more";
  EXPECT_EQ(told(kFirst, 1920, 1920), ": 1,203 of its tokens") << "3 x 3 tiles: 30 lines of 31";
  EXPECT_EQ(told("deepseek-ai/DeepSeek-OCR-2", 2304, 1536), ": 1,121 of its tokens") << "6 tiles of 144 and 257";
  EXPECT_EQ(told("deepseek-ai/deepseek-vl2-tiny", 1152, 1152), ": 2,017 of its tokens");
  EXPECT_EQ(told("deepseek-ai/deepseek-vl2-tiny", 1152, 1152, 3), ": 1,263 of its tokens")
      << "three pictures are not cut";
}

TEST(DeepseekVl, ListsThatAreNoPairsAreRefused) {
  for (const char* list : {"[]", "[512]", "[512, 896, 1]", "512"}) {
    const std::string sam = R"("downsample_channels": )" + std::string(list);
    EXPECT_TRUE(fails(deepseek_graph(published_ocr("clip-l-14-224", sam)), ErrorCode::malformed_input, 0, "two sizes"));
    EXPECT_TRUE(fails(deepseek_graph(small_ocr2(sam)), ErrorCode::malformed_input, 0, "two sizes"));
    EXPECT_TRUE(succeeds(deepseek_graph(published_ocr("qwen2-0-5b", sam)))) << "its code has sizes of its own";
  }
  const std::string other = R"("downsample_channels": [512, 768])";
  EXPECT_TRUE(fails(deepseek_graph(small_ocr2(other)), ErrorCode::malformed_input, 0, "as wide as the blocks"));
  EXPECT_TRUE(fails(deepseek_graph(published_ocr("clip-l-14-224", "", R"("heads": 3)")), ErrorCode::malformed_input, 0,
                    "does not divide"));
}

TEST(DeepseekVl, SamsInnerWidthIsARatioOfItsWidth) {
  const auto with = [](const std::string& sam) { return deepseek_graph(small_ocr2(sam)); };
  const auto four = with("");
  const auto half = with(R"("mlp_ratio": 2.0)");
  const auto size = with(R"("mlp_dim": 1536, "mlp_ratio": 1e9)");
  ASSERT_TRUE(succeeds(four) && succeeds(half) && succeeds(size));
  EXPECT_EQ(four->parameters() - half->parameters(), std::int64_t{12} * 1536 * (2 * 768 + 1));
  EXPECT_EQ(size->parameters(), half->parameters()) << "a size counts more";
  for (const char* ratio : {"0", "-1", "65", "1e-9", "1e300"}) {
    EXPECT_TRUE(fails(with(R"("mlp_ratio": )" + std::string(ratio)), ErrorCode::malformed_input, 0, "64 times as wide"))
        << ratio;
  }
}

TEST(DeepseekVl, PicturesFitTheResolutionsThatTheConfigNames) {
  const auto with = [](const std::string& list) {
    return deepseek_graph(small_vl2(list.empty() ? "" : R"(, "candidate_resolutions": )" + list), 1152, 1152);
  };
  EXPECT_EQ(tokens_told(with("")), ": 2,017 of its tokens");
  EXPECT_EQ(tokens_told(with("[]")), ": 2,017 of its tokens");
  EXPECT_EQ(tokens_told(with("[[384, 384], [384, 768]]")), ": 421 of its tokens") << "the other one wastes half";
  EXPECT_EQ(tokens_told(with("[[384, 768]]")), ": 631 of its tokens") << "28 lines of 14 and one more";
  EXPECT_EQ(tokens_told(with("[[768, 384]]")), ": 617 of its tokens") << "the width comes first";
  EXPECT_TRUE(fails(with("[[384, 400]]"), ErrorCode::malformed_input, 0, "whole tiles"));
  EXPECT_TRUE(fails(with("[[384]]"), ErrorCode::malformed_input, 0, "pairs of sides"));
  EXPECT_TRUE(fails(with("[[384, 0]]"), ErrorCode::malformed_input, 0, "pairs of sides"));
  EXPECT_TRUE(fails(with("[[384, 98304]]"), ErrorCode::malformed_input, 0, "pairs of sides"));
  EXPECT_TRUE(fails(with("384"), ErrorCode::malformed_input, 0, "at most 1024 pairs"));
  std::string many = "[[384, 384]";
  for (int pair = 0; pair < 1024; ++pair) many += ", [384, 384]";
  EXPECT_TRUE(fails(with(many + "]"), ErrorCode::malformed_input, 0, "at most 1024 pairs"));
}

TEST(DeepseekVl, TheOuterConfigSaysWhetherTheHeadIsTied) {
  const auto with = [](const std::string& outer, const std::string& inner) {
    return deepseek_graph(R"({"model_type": "deepseek_vl", "vision_config": {"num_hidden_layers": 2}, "text_config": {
        "model_type": "llama", )" +
                          kSmallText + inner + "}" + outer + "}");
  };
  const std::string tied = R"(, "tie_word_embeddings": true)";
  const std::string apart = R"(, "tie_word_embeddings": false)";
  const auto own = with(apart, tied);
  ASSERT_TRUE(succeeds(own));
  for (const auto& graph : {with("", ""), with("", apart), with(tied, apart)}) {
    ASSERT_TRUE(succeeds(graph));
    EXPECT_EQ(own->parameters() - graph->parameters(), 100 * 64);
  }
}

TEST(DeepseekVl, ProjectionsOfTheTextModelHaveABiasWhereItIsAskedFor) {
  const auto plain = deepseek_graph(small_ocr2(""));
  const auto biased = deepseek_graph(small_ocr2("", R"(, "attention_bias": true)"));
  ASSERT_TRUE(succeeds(plain) && succeeds(biased));
  EXPECT_EQ(biased->parameters() - plain->parameters(), 2 * 4 * 64) << "queries, keys, values and the output's";
  for (const model::Doubt& doubt : biased->doubts()) EXPECT_NE(doubt.about, model::Doubt::About::fields) << doubt.text;
}

TEST(Deepseek, ATypeWithoutARowIsDeepSeekV3) {
  EXPECT_EQ(deepseek::variant_of("deepseek_v3").prefix, "DeepseekV3");
  EXPECT_EQ(deepseek::variant_of("no such type").prefix, "DeepseekV3");
  EXPECT_EQ(deepseek::Model().variant.model_type, "deepseek_v3");
  EXPECT_EQ(deepseek::variant_of("youtu").prefix, "Youtu");
}

TEST(DeepseekOcr2, FeedForwardLayersMayHaveBiases) {
  const auto plain = deepseek_graph(small_ocr2(""));
  const auto biased = deepseek_graph(small_ocr2("", R"(, "mlp_bias": true)"));
  ASSERT_TRUE(succeeds(plain) && succeeds(biased));
  // Of the dense layer, and of the two experts that all tokens of the other go to; routed ones have none.
  EXPECT_EQ(biased->parameters() - plain->parameters(), (2 * 96 + 64) + (2 * 2 * 32 + 64));
  EXPECT_EQ(biased->warnings().size(), plain->warnings().size()) << "the key is known";
}

}  // namespace
}  // namespace gpumem::architectures
