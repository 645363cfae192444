#include "setting.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"

namespace gpumem::trainer_files {
namespace {

using testing::succeeds;

/// A refusal of YAML, or nothing where this build reads none.
std::string refusal_of_yaml(const std::string& text) {
  const auto root = parse_yaml_settings(text);
  return root ? std::string() : core::to_string(root.error());
}

TEST(Setting, ReadsJson) {
  const auto root = parse_settings(R"({"a": 1, "b": {"c": [true, null, "x"]}, "d": 2.5})");
  ASSERT_TRUE(succeeds(root));
  EXPECT_EQ(root->at("a")->word, "1");
  EXPECT_EQ(root->at("a")->kind, Setting::Kind::integer);
  const Setting* const list = root->at("b.c");
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->items.size(), 3U);
  EXPECT_EQ(list->items[0].word, "true");
  EXPECT_EQ(list->items[1].kind, Setting::Kind::null);
  EXPECT_EQ(root->at("d")->kind, Setting::Kind::real);
  EXPECT_EQ(root->at("b.x"), nullptr);
  EXPECT_EQ(root->at("a.b"), nullptr);
}

TEST(Setting, ReadsYamlAsPyYamlTypesIt) {
  if (!reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const auto root = parse_settings(
      "# a comment\nflag: yes\noff: Off\nquoted: 'yes'\nnumber: 8\nrate: 1.0e-4\nname: adamw_torch\nnone: ~\n"
      "empty:\nlist: [q_proj, v_proj]\nnested:\n  deep:\n    - path: x\n");
  ASSERT_TRUE(succeeds(root));
  EXPECT_EQ(root->at("flag")->kind, Setting::Kind::boolean);
  EXPECT_EQ(root->at("off")->word, "false");
  EXPECT_EQ(root->at("quoted")->kind, Setting::Kind::text);
  EXPECT_EQ(root->at("number")->kind, Setting::Kind::integer);
  EXPECT_EQ(root->at("number")->line, 5);
  EXPECT_EQ(root->at("rate")->kind, Setting::Kind::real);
  EXPECT_EQ(root->at("name")->word, "adamw_torch");
  EXPECT_EQ(root->at("none")->kind, Setting::Kind::null);
  EXPECT_EQ(root->at("empty")->kind, Setting::Kind::null);
  EXPECT_EQ(root->at("list")->items.at(1).word, "v_proj");
  EXPECT_EQ(root->at("nested.deep")->items.at(0).at("path")->word, "x");
}

TEST(Setting, WithoutYamlCppTheErrorSaysWhatToDo) {
  if (reads_yaml()) GTEST_SKIP() << "built with yaml-cpp";
  EXPECT_NE(refusal_of_yaml("a: 1\n").find("libyaml-cpp-dev"), std::string::npos);
}

TEST(Setting, RefusesWhatCouldStandForTooMuch) {
  if (!reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const std::string bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n";
  EXPECT_NE(refusal_of_yaml(bomb).find("2: an alias"), std::string::npos) << refusal_of_yaml(bomb);
  EXPECT_NE(refusal_of_yaml("base: &base {a: 1}\nb:\n  <<: *base\n").find("3: an alias"), std::string::npos);
  EXPECT_FALSE(refusal_of_yaml("<<: *base\n").empty()) << "there is no such anchor";
  const std::string deep = "a: " + std::string(100, '[') + std::string(100, ']') + "\n";
  EXPECT_NE(refusal_of_yaml(deep).find("nests deeper"), std::string::npos) << refusal_of_yaml(deep);
  EXPECT_FALSE(refusal_of_yaml("a: " + std::string(100'000, '[')).empty());
  std::string many = "a:\n";
  for (std::size_t index = 0; index <= kMostSettings; ++index) many += " - 1\n";
  EXPECT_NE(refusal_of_yaml(many).find("more values"), std::string::npos);
}

TEST(Setting, ReadsToml) {
  const auto root = parse_settings(R"(# what trains
a = 1_000
"b.c" = 'C:\\x' # no escape
d.e = 2.5
list = [[512, 4], # one
        [1024, 1],]
table = {name = "x\"y", on = true}

[model]
type = 'wan'
long = """
two
lines"""

[[datasets]]
size = 1
  [[datasets.subsets]]
  dir = "p"
[[datasets]]
size = 2
)");
  ASSERT_TRUE(succeeds(root));
  EXPECT_EQ(root->at("a")->word, "1000");
  EXPECT_EQ(root->at("a")->kind, Setting::Kind::integer);
  EXPECT_EQ(root->field("b.c")->word, "C:\\\\x");
  EXPECT_EQ(root->at("d.e")->kind, Setting::Kind::real);
  ASSERT_EQ(root->at("list")->items.size(), 2U);
  EXPECT_EQ(root->at("list")->items[1].items[0].word, "1024");
  EXPECT_EQ(root->at("table.name")->word, "x\"y");
  EXPECT_EQ(root->at("table.on")->kind, Setting::Kind::boolean);
  EXPECT_EQ(root->at("model.type")->line, 10);
  EXPECT_EQ(root->at("model.long")->word, "\ntwo\nlines");
  ASSERT_EQ(root->at("datasets")->items.size(), 2U);
  EXPECT_EQ(root->at("datasets")->items[0].field("subsets")->items[0].field("dir")->word, "p");
  EXPECT_EQ(root->at("datasets")->items[1].field("size")->word, "2");
}

TEST(Setting, KnowsTomlByItsFirstLine) {
  for (const char* text :
       {"[general] # of all\na = 1", "[[datasets]]\t\r\na = 1", "# words\n\na.b = 1", "a = [1, 2]"}) {
    EXPECT_TRUE(is_toml(text)) << text;
    EXPECT_TRUE(succeeds(parse_settings(text))) << text;
  }
  for (const char* text : {"a: 1", "a: b = 1", "[1, 2]", "- a = 1", "", "# words"}) EXPECT_FALSE(is_toml(text)) << text;
}

TEST(Setting, RefusesWhatIsNoToml) {
  for (const char* text :
       {"a =", "a = 'x", "a = [1, 2", "a = {b = 1", "[a\nb = 1", "a = 1\na = 2", "[a]\n= 1", "a = 1\n[a]\nb = 1",
        "a = 1\n[[a]]", "[[a]]\n[a.b]\nc = 1\n[a]\nb = 2", "a.b.c = \"\\", "[", "a = \"\"\"x\n"}) {
    const auto root = parse_settings(text);
    ASSERT_FALSE(root) << text;
    if (!is_toml(text) && !reads_yaml()) continue;  // YAML's reader has what does not begin as TOML does
    EXPECT_EQ(root.error().code, core::ErrorCode::malformed_input) << text;
  }
  EXPECT_FALSE(parse_settings("a = " + std::string(100'000, '[')));
  std::string many = "a = [";
  for (std::size_t index = 0; index <= kMostSettings; ++index) many += "1,";
  EXPECT_FALSE(parse_settings(many + "]"));
  std::string inner = "a = ";
  for (int index = 0; index < 100; ++index) inner += "{a = ";
  EXPECT_FALSE(parse_settings(inner));
}

TEST(Setting, RefusesWhatIsNoObjectOfSettings) {
  for (const char* text : {"{\"a\": }", "{\"a\": 1, \"a\": 2}"}) {
    const auto root = parse_settings(text);
    ASSERT_FALSE(root) << text;
    EXPECT_EQ(root.error().code, core::ErrorCode::malformed_input) << text;
  }
  const auto large = parse_settings(std::string(kLargestTrainerFile + 1, ' '));
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("bytes is not read"), std::string::npos);
  if (!reads_yaml()) return;
  for (const char* text : {"", "a: b: c", "a: 1\na: 2\n", "? [a]\n: b\n", "- a\n- b\n", "text", "a: \"\\\x01\""}) {
    const auto root = parse_settings(text);
    ASSERT_FALSE(root) << text;
    EXPECT_EQ(root.error().code, core::ErrorCode::malformed_input) << text;
    EXPECT_EQ(root.error().message.find('\x01'), std::string::npos);
  }
}

TEST(Setting, DepthOfJsonIsBounded) {
  std::string deep;
  for (std::size_t level = 0; level <= kDeepestSetting; ++level) deep += "{\"a\":";
  EXPECT_FALSE(parse_settings(deep + "1" + std::string(kDeepestSetting + 1, '}')));
}

}  // namespace
}  // namespace gpumem::trainer_files
