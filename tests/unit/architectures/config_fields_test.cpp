#include "gpumem/architectures/config_fields.hpp"

#include "expect.hpp"
#include "gpumem/core/json.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

/// Fields of a text, which lives as long as they do.
struct Read {
  explicit Read(std::string_view text) : document(core::JsonDocument::parse(text)), fields(document->root()) {}
  core::Result<core::JsonDocument> document;
  ConfigFields fields;
};

TEST(ConfigFields, FindASizeUnderAnyOfItsNames) {
  Read read(R"({"n_embd": 768, "num_hidden_layers": 12})");
  EXPECT_EQ(read.fields.size({"hidden_size", "n_embd"}), 768);
  EXPECT_EQ(read.fields.layers({"num_hidden_layers"}), 12);
  EXPECT_EQ(read.fields.size_or({"n_inner"}, 3072), 3072);
  EXPECT_TRUE(succeeds(read.fields.status()));
  EXPECT_TRUE(read.fields.unread().empty());
}

TEST(ConfigFields, TakeNullForNotThere) {
  Read read(R"({"head_dim": null, "hidden_size": null})");
  EXPECT_FALSE(read.fields.has("head_dim"));
  EXPECT_EQ(read.fields.size_or({"head_dim"}, 64), 64);
  EXPECT_EQ(read.fields.size({"hidden_size"}), 1);
  EXPECT_TRUE(fails(read.fields.status(), ErrorCode::missing_information, 0, "hidden_size"));
}

TEST(ConfigFields, ReadListsOfLayers) {
  Read read(R"({"from_zero": [0, 2], "from_one": [1, 3], "empty": [], "none": null, "behind": [0, 3]})");
  const std::vector<bool> both = {true, false, true};
  EXPECT_EQ(read.fields.layers_listed("from_zero", 3), both);
  EXPECT_EQ(read.fields.layers_listed("from_one", 3, 1), both);
  EXPECT_EQ(read.fields.layers_listed("empty", 2), std::vector<bool>(2, false));
  EXPECT_TRUE(read.fields.layers_listed("none", 3).empty());
  EXPECT_TRUE(succeeds(read.fields.status()));
  (void)read.fields.layers_listed("behind", 3);
  EXPECT_TRUE(fails(read.fields.status(), ErrorCode::malformed_input, 0, "a layer that the model does not have"));
}

TEST(ConfigFields, NameAllThatIsMissingInOneError) {
  Read read("{}");
  (void)read.fields.size({"hidden_size", "d_model"});
  (void)read.fields.layers({"num_hidden_layers"});
  EXPECT_TRUE(fails(read.fields.status(), ErrorCode::missing_information, 0, "its hidden_size, num_hidden_layers;"));
}

TEST(ConfigFields, PointAtTheFieldThatIsWrong) {
  Read read(R"({"tie_word_embeddings": 1})");
  EXPECT_TRUE(read.fields.flag("tie_word_embeddings", true));
  ASSERT_FALSE(read.fields.status());
  EXPECT_EQ(read.fields.status().error().place.element, "/tie_word_embeddings");
}

TEST(ConfigFields, ReadNumbersAndTexts) {
  Read read(R"({"attn_pdrop": 0.1, "resid_pdrop": 1, "hidden_act": "gelu", "embd_pdrop": "none"})");
  EXPECT_DOUBLE_EQ(read.fields.number({"attn_pdrop"}, 0.0), 0.1);
  EXPECT_DOUBLE_EQ(read.fields.number({"resid_pdrop"}, 0.0), 1.0);
  EXPECT_EQ(read.fields.text({"hidden_act"}, "silu"), "gelu");
  EXPECT_EQ(read.fields.text({"activation_function"}, "silu"), "silu");
  EXPECT_TRUE(succeeds(read.fields.status()));
  EXPECT_DOUBLE_EQ(read.fields.number({"embd_pdrop"}, 0.5), 0.5);
  EXPECT_TRUE(fails(read.fields.status(), ErrorCode::malformed_input, 0, "number"));
}

TEST(ConfigFields, TellWhatNobodyAskedForAndMayMatter) {
  Read read(R"({"num_experts": 8, "is_composition": false, "bos_token_id": 1, "name": "x", "adapters": [], "window": 0,
    "mlp": {"a": 1}})");
  EXPECT_EQ(read.fields.unread(), (std::vector<std::string>{"num_experts", "mlp"}));
  read.fields.ignore({"num_experts"});
  EXPECT_EQ(read.fields.unread(), (std::vector<std::string>{"mlp"}));
}

TEST(ConfigFields, TellPartsOfAModelFromSettings) {
  Read read(R"({"num_experts": 8, "experts_scale": 2.5, "use_experts": true, "width": 64, "one": 1, "rope_step": 4,
    "expert_kind": "soft", "layer_types": ["full_attention"], "quantization_config": {"bits": 4}, "kv_lora_rank": 0})");
  EXPECT_EQ(read.fields.unread_parts(true), (std::vector<std::string>{"num_experts"}));
  EXPECT_EQ(read.fields.unread_parts(false), (std::vector<std::string>{"num_experts", "width"}));
  read.fields.ignore({"num_experts"});
  EXPECT_TRUE(read.fields.unread_parts(true).empty());
}

TEST(ConfigFields, TellWhatTheTextTurnsOff) {
  Read read(R"({"use_cache": true, "tied": false, "gated": 0, "text_config": {"use_cache": false, "bias": true}})");
  EXPECT_TRUE(read.fields.turns_off("use_cache"));
  EXPECT_TRUE(read.fields.turns_off("tied"));
  EXPECT_FALSE(read.fields.turns_off("gated"));
  EXPECT_FALSE(read.fields.turns_off("bias"));
  EXPECT_FALSE(read.fields.turns_off("other"));
  EXPECT_EQ(read.fields.peek("tied")->key(), "tied");
  EXPECT_EQ(read.fields.unread_parts(true), (std::vector<std::string>{"text_config"})) << "nothing counts as read";
}

}  // namespace
}  // namespace gpumem::architectures
