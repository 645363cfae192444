#include "gpumem/summary/module_repr.hpp"

#include <array>

#include "expect.hpp"

namespace gpumem::summary {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

TEST(CutModuleLine, ReadsALeaf) {
  const auto line = cut_module_line("    (conv1): Conv2d(3, 64, kernel_size=(7, 7), bias=False)");
  ASSERT_TRUE(succeeds(line));
  EXPECT_EQ(line->kind, ModuleLine::Kind::leaf);
  EXPECT_EQ(line->name, "conv1");
  EXPECT_EQ(line->class_name, "Conv2d");
  EXPECT_EQ(line->arguments, "3, 64, kernel_size=(7, 7), bias=False");
  EXPECT_EQ(line->parameters, std::nullopt);
  EXPECT_EQ(line->repeats, 1);
}

TEST(CutModuleLine, ReadsAParameterCount) {
  EXPECT_EQ(cut_module_line("(fc): Linear(in_features=3, out_features=4), 9,408 params")->parameters, 9408);
  EXPECT_EQ(cut_module_line("), 25,557,032 params")->parameters, 25557032);
  EXPECT_EQ(cut_module_line("(relu): ReLU(), 0 params")->parameters, 0);
}

TEST(CutModuleLine, ReadsWhatOpensAndCloses) {
  const auto opens = cut_module_line("  (layer1): Sequential(");
  ASSERT_TRUE(succeeds(opens));
  EXPECT_EQ(opens->kind, ModuleLine::Kind::opens);
  EXPECT_EQ(opens->class_name, "Sequential");
  EXPECT_EQ(cut_module_line("ResNet(")->kind, ModuleLine::Kind::opens);
  EXPECT_EQ(cut_module_line("ResNet(")->name, "");
  EXPECT_EQ(cut_module_line(")")->kind, ModuleLine::Kind::closes);
}

TEST(CutModuleLine, ReadsRepeats) {
  const auto line = cut_module_line("(0-11): 12 x BertLayer(");
  ASSERT_TRUE(succeeds(line));
  EXPECT_EQ(line->kind, ModuleLine::Kind::opens);
  EXPECT_EQ(line->name, "0-11");
  EXPECT_EQ(line->class_name, "BertLayer");
  EXPECT_EQ(line->repeats, 12);
}

TEST(CutModuleLine, RefusesRepeatsThatAreNoNumberOfTimes) {
  for (const char* wrong : {"(0-1): 0 x A(", "(0-1): 99999999999999999999 x A("}) {
    EXPECT_TRUE(fails(cut_module_line(wrong), ErrorCode::malformed_input, 0, "unusable number of times")) << wrong;
  }
}

TEST(CutModuleLine, BracketsInQuotesDoNotCount) {
  const auto line = cut_module_line("(act): Act(name=')', other=\"(\")");
  ASSERT_TRUE(succeeds(line));
  EXPECT_EQ(line->kind, ModuleLine::Kind::leaf);
  EXPECT_EQ(line->arguments, "name=')', other=\"(\"");
}

TEST(CutModuleLine, ALeafWithoutItsEndIsNone) {
  EXPECT_EQ(cut_module_line("(fc): Linear(in_features=3, out")->kind, ModuleLine::Kind::text);
}

TEST(CutModuleLine, TakesTheRestForText) {
  EXPECT_EQ(cut_module_line("in_features=3, out_features=4")->kind, ModuleLine::Kind::text);
  EXPECT_EQ(cut_module_line("(conv1)")->kind, ModuleLine::Kind::text);
  EXPECT_EQ(cut_module_line("")->kind, ModuleLine::Kind::text);
}

TEST(CutModuleLine, RefusesASuffixThatIsNoCount) {
  EXPECT_TRUE(fails(cut_module_line("), many"), ErrorCode::malformed_input, 0, "is not ', N params'"));
  EXPECT_TRUE(fails(cut_module_line("(a): B(), x params"), ErrorCode::malformed_input, 0, "'x' is not a count"));
  EXPECT_TRUE(fails(cut_module_line("), 99999999999999999999 params"), ErrorCode::overflow, 0, "64 bits"));
}

std::vector<model::Attribute> parse(std::string_view arguments) {
  static constexpr std::array<std::string_view, 2> kPositional = {"in", "out"};
  std::vector<model::Attribute> all;
  parse_arguments(arguments, kPositional, all);
  return all;
}

TEST(ParseArguments, NamesThePositionalOnes) {
  EXPECT_EQ(parse("3, 64, stride=(2, 1)"),
            (std::vector<model::Attribute>{
                {"in", std::int64_t{3}}, {"out", std::int64_t{64}}, {"stride", std::vector<std::int64_t>{2, 1}}}));
}

TEST(ParseArguments, ReadsEveryKindOfValue) {
  EXPECT_EQ(parse("bias=False, eps=1e-05, p=0.5, mode='mean', shape=(768,), size=[1, 2], n=-3"),
            (std::vector<model::Attribute>{{"bias", false},
                                           {"eps", 1e-05},
                                           {"p", 0.5},
                                           {"mode", std::string("mean")},
                                           {"shape", std::vector<std::int64_t>{768}},
                                           {"size", std::vector<std::int64_t>{1, 2}},
                                           {"n", std::int64_t{-3}}}));
}

TEST(ParseArguments, ReadsABareWordAsText) {
  EXPECT_EQ(parse("padding=same"), (std::vector<model::Attribute>{{"padding", std::string("same")}}))
      << "so PyTorch prints Conv2d(..., padding='same')";
}

TEST(ParseArguments, LeavesOutWhatIsNoValue) {
  EXPECT_EQ(parse("a=None, c=(0.5, 1.0), d=<function f at 0x7f>, e="), std::vector<model::Attribute>());
}

TEST(ParseArguments, ReadsNoneInAListAsAnAxisLeftAsItIs) {
  EXPECT_EQ(parse("b=(1, None)"), (std::vector<model::Attribute>{{"b", std::vector<std::int64_t>{1, -1}}}));
}

TEST(ParseArguments, LeavesOutNumbersThatAreNotFinite) {
  EXPECT_EQ(parse("min=-inf, max=inf, x=nan"), std::vector<model::Attribute>()) << "no file format of ours has them";
}

TEST(ParseArguments, CommasInBracketsAndQuotesDoNotCut) {
  EXPECT_EQ(parse("mode='a, b', size=(1, 2), 7"),
            (std::vector<model::Attribute>{
                {"mode", std::string("a, b")}, {"size", std::vector<std::int64_t>{1, 2}}, {"in", std::int64_t{7}}}));
}

}  // namespace
}  // namespace gpumem::summary
