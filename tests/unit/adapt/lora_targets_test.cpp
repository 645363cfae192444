// Source: PEFT 0.14, utils/constants.py and tuners/tuners_utils.py.
#include "gpumem/adapt/lora_targets.hpp"

#include "expect.hpp"

namespace gpumem::adapt {
namespace {

std::vector<BaseLinear> layers(std::initializer_list<std::string_view> paths) {
  std::vector<BaseLinear> all;
  for (const std::string_view path : paths) {
    all.push_back({static_cast<std::uint32_t>(all.size()), 8, 8, std::string(path)});
    all.back().output = all.back().leaf() == "lm_head";
  }
  return all;
}

std::string chosen(const std::vector<BaseLinear>& linears, std::string_view targets) {
  const auto which = lora_targets(linears, targets);
  if (!which) return which.error().message;
  std::string names;
  for (std::size_t at = 0; at < linears.size(); ++at) {
    if (which->chosen[at]) names += (names.empty() ? "" : " ") + linears[at].path;
  }
  return names;
}

TEST(LoraTargets, AreTheModelsUsualOnes) {
  EXPECT_EQ(chosen(layers({"l.0.q_proj", "l.0.k_proj", "l.0.v_proj", "l.0.o_proj", "lm_head"}), ""),
            "l.0.q_proj l.0.v_proj");
  EXPECT_EQ(chosen(layers({"l.0.q_proj", "l.0.v_proj", "l.0.dense", "l.0.fc1", "l.0.fc2"}), ""),
            "l.0.q_proj l.0.v_proj l.0.fc1 l.0.fc2")
      << "phi";
  EXPECT_EQ(chosen(layers({"l.0.q_proj", "l.0.v_proj", "l.0.out_proj", "l.0.fc1", "l.0.fc2"}), ""),
            "l.0.q_proj l.0.v_proj")
      << "opt";
  EXPECT_EQ(chosen(layers({"h.0.c_attn", "h.0.c_proj", "h.0.c_fc"}), ""), "h.0.c_attn");
  EXPECT_EQ(chosen(layers({"h.0.query_key_value", "h.0.dense"}), ""), "h.0.query_key_value");
  EXPECT_EQ(chosen(layers({"e.query", "e.key", "e.value", "e.dense"}), ""), "e.query e.value");
}

TEST(LoraTargets, AllLinearLeavesTheHeadOut) {
  const auto linears = layers({"l.0.up", "l.0.down", "lm_head"});
  EXPECT_EQ(chosen(linears, "all-linear"), "l.0.up l.0.down");
  EXPECT_EQ(chosen(linears, "all-linear+lm_head"), "l.0.up l.0.down lm_head");
}

TEST(LoraTargets, AreWholeNamesOrTheirLastParts) {
  const auto linears = layers({"a.up", "b.up", "a.group_up"});
  EXPECT_EQ(chosen(linears, "up"), "a.up b.up");
  EXPECT_EQ(chosen(linears, "a.up"), "a.up");
}

TEST(LoraTargets, MayLeaveModulesOutAndHaveStars) {
  const auto linears =
      layers({"model.visual.0.up", "model.language_model.0.up", "model.language_model.1.q", "lm_head"});
  EXPECT_EQ(chosen(linears, "all-linear+not:model.visual"), "model.language_model.0.up model.language_model.1.q");
  EXPECT_EQ(chosen(linears, "all-linear+not:model.elsewhere+not:*.up"), "model.language_model.1.q");
  EXPECT_EQ(chosen(linears, "model.language_model.*.up"), "model.language_model.0.up");
}

TEST(LoraTargets, MayCallATextModelAsItWasCalledBefore) {
  EXPECT_TRUE(names_module("language_model.model.layers.*.mlp.up_proj", "model.language_model.layers.3.mlp.up_proj"));
  EXPECT_TRUE(names_module("language_model.model.norm", "model.language_model.norm"));
  EXPECT_FALSE(names_module("language_model.model.layers.*.up_proj", "model.vision_tower.layers.3.up_proj"));
}

TEST(LoraTargets, AreMadeOfPeftsExpressions) {
  EXPECT_EQ(
      targets_of_expression("^model.layers.[\\d]+.(mlp|attn).(up|q)_proj$"),
      "model.layers.*.mlp.up_proj+model.layers.*.mlp.q_proj+model.layers.*.attn.up_proj+model.layers.*.attn.q_proj");
  EXPECT_EQ(targets_of_expression(".*\\.(wrapped.)?up"), "*.wrapped.up+*.up");
  EXPECT_EQ(targets_of_expression("layers.[0-2].up"), "layers.0.up+layers.1.up+layers.2.up");
  EXPECT_EQ(targets_of_expression("layers.[0-9]+.up"), "layers.*.up");
  EXPECT_EQ(targets_of_expression("layers.2[0-9]+.[gx]"),
            "layers.20*.g+layers.20*.x+layers.21*.g+layers.21*.x+layers.22*.g+layers.22*.x+layers.23*.g+layers.23*.x+"
            "layers.24*.g+layers.24*.x+layers.25*.g+layers.25*.x+layers.26*.g+layers.26*.x+layers.27*.g+layers.27*.x+"
            "layers.28*.g+layers.28*.x+layers.29*.g+layers.29*.x")
      << "layer 2 is not among them";
  for (const char* more : {"a[b.]", "a[]", "a+", "(a|(b))", "(a", "a{2}", "a|b", "\\w+", "a,b"}) {
    EXPECT_FALSE(targets_of_expression(more)) << more;
  }
}

TEST(LoraTargets, MayBeEmbeddings) {
  const auto linears = layers({"model.layers.0.up", "lm_head"});
  const std::vector<BaseEmbedding> embeddings = {{0, 100, 8, "model.embed_tokens"}, {1, 50, 8, "model.positions"}};
  const auto found = lora_targets(linears, "up+embed_tokens", embeddings);
  ASSERT_TRUE(testing::succeeds(found));
  EXPECT_EQ(found->chosen, (std::vector<bool>{true, false}));
  EXPECT_EQ(found->embeddings, (std::vector<bool>{true, false}));
  EXPECT_TRUE(found->unknown.empty());
  const auto alone = lora_targets(linears, "embed_tokens", embeddings);
  ASSERT_TRUE(testing::succeeds(alone));
  EXPECT_EQ(alone->chosen, (std::vector<bool>{false, false}));
  const auto all = lora_targets(linears, "all-linear", embeddings);
  ASSERT_TRUE(testing::succeeds(all));
  EXPECT_EQ(all->embeddings, (std::vector<bool>{false, false})) << "where a name says it";
}

TEST(LoraTargets, OfWhichSomeAreKnownAreTaken) {
  const auto found = lora_targets(layers({"a.up", "a.down"}), "up+c_attn");
  ASSERT_TRUE(testing::succeeds(found));
  EXPECT_EQ(found->chosen, (std::vector<bool>{true, false}));
  EXPECT_EQ(found->unknown, std::vector<std::string>{"'c_attn'"});
}

TEST(LoraTargets, ThatThereAreNotAreAnError) {
  const auto linears = layers({"a.up", "a.down"});
  EXPECT_TRUE(testing::fails(lora_targets(linears, "q_proj"), core::ErrorCode::invalid_argument, 0, "q_proj"));
  EXPECT_TRUE(testing::fails(lora_targets(linears, ""), core::ErrorCode::missing_information, 0, "up, down"));
  EXPECT_TRUE(testing::fails(lora_targets({}, "all-linear"), core::ErrorCode::invalid_argument, 0, "none"));
  EXPECT_TRUE(testing::fails(lora_targets(linears, "up,down"), core::ErrorCode::invalid_argument, 0,
                             "names are joined by `+`"));
}

}  // namespace
}  // namespace gpumem::adapt
