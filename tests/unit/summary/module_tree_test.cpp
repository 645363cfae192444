#include "gpumem/summary/module_tree.hpp"

#include <unistd.h>

#include "graphs.hpp"

namespace gpumem::summary {
namespace {

using core::ErrorCode;
using testing::describe;
using testing::Described;
using testing::fails;
using testing::read_layers;
using testing::succeeds;
using testing::warnings;

constexpr std::string_view kNet = R"(Net(
  (features): Sequential(
    (0): Conv2d(3, 16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    (1): ReLU(inplace=True)
  )
  (fc): Linear(in_features=16, out_features=10, bias=True)
)
)";

TEST(ModuleTree, ReadsTheLeavesInOrder) {
  const auto graph = parse_summary(kNet);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->format(), "module_tree");
  EXPECT_EQ(describe(*graph), (Described{"conv2d features.0 448", "relu features.1 0", "linear fc 170"}));
  EXPECT_EQ(graph->layers()[0].line, 3U);
  EXPECT_EQ(graph->layers()[2].line, 6U);
  EXPECT_TRUE(graph->edges_inferred());
  EXPECT_FALSE(graph->shapes_printed());
  EXPECT_EQ(graph->attributes(graph->layers()[0]).per_axis("padding", 1), 1);
}

TEST(ModuleTree, ReadsByBracketsNotByIndentation) {
  std::string flat;
  for (std::string_view rest = kNet; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1)) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    flat += std::string(line.substr(std::min(line.find_first_not_of(' '), line.size()))) + "\r\n";
  }
  EXPECT_EQ(read_layers(flat), read_layers(kNet));
}

TEST(ModuleTree, IgnoresProseAroundTheTree) {
  const auto graph = parse_summary(">>> print(model)\n" + std::string(kNet) + "\nThat is all (I think).\n");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->layers().size(), 3U);
  EXPECT_EQ(graph->layers()[0].line, 4U);
}

TEST(ModuleTree, MayBeOneLeaf) {
  EXPECT_EQ(read_layers("Linear(in_features=3, out_features=4, bias=True)\n"), (Described{"linear  16"}));
}

TEST(ModuleTree, LooksThroughAWrapper) {
  const auto graph = parse_summary(R"(DataParallel(
  (module): Net(
    (fc): Linear(in_features=16, out_features=10, bias=True)
  )
)
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph), (Described{"linear module.fc 170"}));
}

TEST(ModuleTree, RepeatsAModuleAsOftenAsItSays) {
  const auto graph = parse_summary(R"(Encoder(
  (layer): ModuleList(
    (0-11): 12 x Layer(
      (dense): Linear(in_features=4, out_features=4, bias=True)
      (pair): ModuleList(
        (0-1): 2 x LayerNorm((4,), eps=1e-05, elementwise_affine=True)
      )
    )
  )
)
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->layers().size(), 36U);
  EXPECT_EQ(graph->parameters(), 12 * (20 + 2 * 8));
  EXPECT_EQ(describe(*graph)[0], "linear layer.0-11.dense 20");
  EXPECT_EQ(describe(*graph)[35], "layer_norm layer.0-11.pair.0-1 8");
}

TEST(ModuleTree, CountsRepeatedModulesInTheirParentsTotal) {
  const auto graph = parse_summary(R"(Encoder(
  (0-11): 12 x Layer(
    (dense): Linear(in_features=4, out_features=4, bias=True), 20 params
  ), 20 params
), 240 params
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 240);
  EXPECT_TRUE(graph->warnings().empty());
}

TEST(ModuleTree, AMultiheadAttentionHoldsItsInputProjection) {
  const auto graph = parse_summary(R"(Block(
  (self_attn): MultiheadAttention(
    (out_proj): NonDynamicallyQuantizableLinear(in_features=32, out_features=32, bias=True)
  )
)
)");
  ASSERT_TRUE(succeeds(graph));
  // PyTorch 1.13.1: MultiheadAttention(32, 4) holds 3,072 + 96 + 1,024 + 32.
  EXPECT_EQ(graph->parameters(), 4224);
  EXPECT_EQ(describe(*graph), (Described{"linear self_attn.out_proj 1056", "multihead_attention self_attn 3168"}));
}

constexpr std::string_view kGpt2 = R"(GPT2LMHeadModel(
  (transformer): GPT2Model(
    (wte): Embedding(50257, 768)
    (wpe): Embedding(1024, 768)
    (ln_f): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
  )
  (lm_head): Linear(in_features=768, out_features=50257, bias=False)
)
)";

TEST(ModuleTree, TiesTheHeadOfAModelThatTiesItByDefault) {
  const auto graph = parse_summary(kGpt2);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 50257 * 768 + 1024 * 768 + 1536);
  EXPECT_EQ(describe(*graph)[3], "linear lm_head 38597376 tied 38597376");
  ASSERT_EQ(graph->warnings().size(), 2U);
  EXPECT_EQ(graph->warnings()[0].place.line, 7);
  EXPECT_NE(graph->warnings()[0].message.find("GPT2LMHeadModel ties them by default: 38,597,376"), std::string::npos);
}

TEST(ModuleTree, TiesTheHeadInsideAWrapperToo) {
  std::string wrapped = "DataParallel(\n  (module): " + std::string(kGpt2) + ")\n";
  const auto graph = parse_summary(wrapped);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 50257 * 768 + 1024 * 768 + 1536);
}

TEST(ModuleTree, DoesNotTieTheHeadOfOtherModelsButSaysSo) {
  std::string other(kGpt2);
  other.replace(0, 15, "MyOwnHeadModelX");
  const auto graph = parse_summary(other);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 2 * 50257 * 768 + 1024 * 768 + 1536);
  ASSERT_EQ(graph->warnings().size(), 2U);
  EXPECT_NE(graph->warnings()[0].message.find("are counted twice"), std::string::npos);
}

TEST(ModuleTree, ACountBelowItsChildrensShowsThatTheHeadIsTied) {
  const auto graph = parse_summary(R"(MyModel(
  (wte): Embedding(100, 8), 800 params
  (head): Linear(in_features=8, out_features=100, bias=False), 800 params
), 800 params
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 800);
  EXPECT_EQ(describe(*graph)[1], "linear head 800 tied 800");
}

TEST(ModuleTree, WarnsWhereItCannotTellWhatIsShared) {
  const auto graph = parse_summary(R"(MyModel(
  (a): Linear(in_features=8, out_features=8, bias=False), 64 params
  (b): Linear(in_features=8, out_features=8, bias=False), 64 params
), 64 params
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 128);
  EXPECT_EQ(warnings(*graph),
            (Described{"1: container '' ('MyModel') prints 64 parameters less than its children: some "
                       "are shared, and are counted apiece"}));
}

TEST(ModuleTree, AContainerMayHoldParametersOfItsOwn) {
  const auto graph = parse_summary(R"(Layer(
  (rel_attn): RelativeAttention(
    (norm): LayerNorm((8,), eps=1e-12, elementwise_affine=True), 16 params
  ), 336 params
), 336 params
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph), (Described{"layer_norm rel_attn.norm 16", "parameter rel_attn 320"}));
  EXPECT_EQ(graph->parameters(), 336);
  EXPECT_EQ(warnings(*graph),
            (Described{"2: container 'rel_attn' ('RelativeAttention') holds 320 parameters of its own; "
                       "what it computes with them is not printed"}));
}

TEST(ModuleTree, AHeadsOwnBiasIsItsDecodersBias) {
  const auto graph = parse_summary(R"(Head(
  (predictions): BertLMPredictionHead(
    (decoder): Linear(in_features=8, out_features=100, bias=True), 900 params
  ), 1,000 params
), 1,000 params
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph)[1], "parameter predictions 100 tied 100");
  EXPECT_EQ(graph->parameters(), 900);
}

TEST(ModuleTree, TellsAConv1DFromItsParameterCount) {
  const auto graph = parse_summary(R"(GPT2Attention(
  (wte): Embedding(100, 8), 800 params
  (c_attn): Conv1D(), 216 params
  (c_proj): Conv1D(), 72 params
), 1,088 params
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph), (Described{"embedding wte 800", "linear c_attn 216", "linear c_proj 72"}));
  EXPECT_EQ(graph->attributes(graph->layers()[1]).integer("in_features"), 8);
  EXPECT_EQ(graph->attributes(graph->layers()[1]).integer("out_features"), 24);
}

TEST(ModuleTree, ReadsAConv1DThatPrintsItsSizes) {
  EXPECT_EQ(read_layers("M(\n  (c): Conv1D(nf=24, nx=8)\n)\n"), (Described{"linear c 216"}));
}

TEST(ModuleTree, RefusesAConv1DWhoseSizesNothingTells) {
  EXPECT_TRUE(fails(parse_summary("M(\n  (e): Embedding(10, 8)\n  (c): Conv1D()\n)\n"), ErrorCode::missing_information,
                    3, "print the tree with parameter counts"));
  EXPECT_TRUE(fails(parse_summary("M(\n  (e): Embedding(10, 8), 80 params\n  (c): Conv1D(), 7 params\n), 87 params\n"),
                    ErrorCode::missing_information, 3, "fit no width seen before it"));
}

TEST(ModuleTree, AnUnknownLayerWithParametersIsOneOfUnknownLayers) {
  const std::string_view text = "M(\n  (a): ReLU()\n  (odd): OddLayer(x=3), 1,234 params\n), 1,234 params\n";
  EXPECT_EQ(read_layers(text), (Described{"relu a 0", "opaque odd 1234"}));
  const model::Vocabulary without_that_op;
  EXPECT_TRUE(fails(summary::read(text, {&without_that_op, {}, false}), ErrorCode::unknown_layer, 3,
                    "layer 'odd' ('OddLayer') holds 1,234"));
  const auto lenient = parse_summary(text, true);
  ASSERT_TRUE(succeeds(lenient));
  EXPECT_EQ(lenient->unknown_layers(), 1);
  EXPECT_EQ(lenient->parameters(), 1234);
}

TEST(ModuleTree, WhatHasNoNameInsideAModuleIsItsText) {
  constexpr std::string_view kTree =
      "M(\n  (transform): Transform(\n      Normalize(mean=[0.5], std=[0.5])\n      Resize(min_size=(800,), "
      "max_size=1333)\n"
      "  )\n  (fc): Linear(3, 4)\n)\n";
  EXPECT_EQ(read_layers(kTree), (Described{"linear fc 16"}));
}

TEST(ModuleTree, AnUnknownLayerThatPrintsSizesMayHoldParametersAndIsAnError) {
  const std::string_view text = "M(\n  (fc): Linear(3, 4)\n  (odd): LinearX(in_features=64, bits=4)\n)\n";
  EXPECT_TRUE(fails(parse_summary(text), ErrorCode::unknown_layer, 3, "'LinearX' and prints sizes"));
  EXPECT_TRUE(fails(parse_summary("M(\n  (odd): OddLayer((7, 7))\n)\n"), ErrorCode::unknown_layer, 2, "OddLayer"));
  const auto lenient = parse_summary(text, true);
  ASSERT_TRUE(succeeds(lenient));
  EXPECT_EQ(lenient->unknown_layers(), 1);
}

TEST(ModuleTree, AnUnknownLayerThatPrintsTheSizesOfAMatrixHoldsIt) {
  EXPECT_EQ(read_layers("M(\n  (fc): Linear(3, 64)\n  (odd): LinearX(in_features=64, out_features=32)\n)\n"),
            (Described{"linear fc 256", "opaque odd 2048"}));
}

TEST(ModuleTree, AnUnknownLayerWithoutSizesIsWarnedOf) {
  const auto graph = parse_summary("M(\n  (fc): Linear(3, 4)\n  (odd): Snake(p=0.1)\n)\n");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->unknown_layers(), 1);
  ASSERT_EQ(warnings(*graph).size(), 2U);
  EXPECT_EQ(warnings(*graph)[0], "3: layer 'odd' has the unknown class 'Snake', taken to hold no parameters");
}

TEST(ModuleTree, SaysWhatATreeWithoutCountsCannotShow) {
  const auto plain = parse_summary("M(\n  (fc): Linear(3, 4)\n)\n");
  ASSERT_TRUE(succeeds(plain));
  ASSERT_EQ(warnings(*plain).size(), 1U);
  EXPECT_NE(warnings(*plain)[0].find("shows each module once"), std::string::npos);
  const auto counted = parse_summary("M(\n  (fc): Linear(3, 4), 16 params\n), 16 params\n");
  ASSERT_TRUE(succeeds(counted));
  EXPECT_TRUE(warnings(*counted).empty());
}

TEST(ModuleTree, CountsASharedEmbeddingOnce) {
  const auto graph = parse_summary(R"(T(
  (shared): Embedding(1000, 64)
  (encoder): Stack(
    (embed_tokens): Embedding(1000, 64)
    (embed_positions): Embedding(1000, 32)
  )
  (decoder): Stack(
    (embed_tokens): Embedding(1000, 64)
  )
)
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 1000 * 64 + 1000 * 32);
}

TEST(ModuleTree, ANormThatPrintsNoSizeHasTheWidthBeforeIt) {
  const auto graph = parse_summary(R"(M(
  (o): Linear(in_features=16, out_features=64, bias=False)
  (relative_attention_bias): Embedding(32, 8)
  (layer_norm): T5LayerNorm()
)
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->layers()[2].parameters, 64);
  EXPECT_TRUE(fails(parse_summary("M(\n  (norm): LlamaRMSNorm()\n)\n"), ErrorCode::missing_information, 2,
                    "use a summary with parameter counts"));
}

TEST(ModuleTree, CountsTheTensorsOfParameterListsAndDictionaries) {
  EXPECT_EQ(read_layers(R"(M(
  (list): ParameterList(
      (0): Parameter containing: [torch.float32 of size 10x10]
      (1): Parameter containing: [torch.cuda.FloatTensor of size 1x4 (GPU 0)]
  )
  (empty): ParameterDict()
  (one): ParameterDict(  (default): Parameter containing: [torch.FloatTensor of size 8x2])
)
)"),
            (Described{"parameter list 104", "parameter empty 0", "parameter one 16"}));
}

TEST(ModuleTree, AParametrizedLayerIsTheLayerThatItWas) {
  EXPECT_EQ(read_layers(R"(M(
  (fc): ParametrizedLinear(
    in_features=8, out_features=4, bias=True
    (parametrizations): ModuleDict()
  )
)
)"),
            (Described{"linear fc 36"}));
}

TEST(ModuleTree, EmptyContainersAreNoLayers) {
  EXPECT_EQ(read_layers("M(\n  (a): Sequential()\n  (b): ModuleList()\n  (c): ReLU()\n)\n"), (Described{"relu c 0"}));
}

TEST(ModuleTree, ReadsTheArgumentsOfAModuleThatHasChildren) {
  EXPECT_EQ(read_layers(R"(M(
  (norm): Wrapped(
    64, eps=1e-05
    (act): ReLU()
  )
)
)"),
            (Described{"relu norm.act 0"}));
}

TEST(ModuleTree, WarnsOfATotalThatDisagrees) {
  const auto graph = parse_summary(std::string(kNet) + "Total params: 3,000\n");
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(warnings(*graph).size(), 2U);
  EXPECT_EQ(warnings(*graph)[0],
            "8: the summary prints a total of 3,000 parameters; its layers hold 618, which is used");
}

TEST(ModuleTree, RefusesATreeThatIsNotClosed) {
  EXPECT_TRUE(fails(parse_summary("M(\n  (a): Sequential(\n    (b): ReLU()\n"), ErrorCode::malformed_input, 3,
                    "ends with 2 modules still open"));
  EXPECT_TRUE(fails(parse_summary("M(\n  (a): Linear(in_features=3, out"), ErrorCode::malformed_input, 2,
                    "is not a line of a module tree"));
}

TEST(ModuleTree, RefusesASecondTree) {
  EXPECT_TRUE(fails(parse_summary(std::string(kNet) + std::string(kNet)), ErrorCode::unknown_format, 8,
                    "a second summary begins here"));
}

TEST(ModuleTree, RefusesSizesThatDoNotFitSixtyFourBits) {
  EXPECT_TRUE(fails(parse_summary("M(\n  (a): Linear(9223372036854775807, 9)\n)\n"), ErrorCode::overflow, 2,
                    "does not fit 64 bits"));
  EXPECT_TRUE(fails(parse_summary("M(\n  (a): Linear(3, 4), 99999999999999999999 params\n)\n"), ErrorCode::overflow, 2,
                    "does not fit 64 bits"));
}

TEST(ModuleTree, RefusesSizesThatAreNegative) {
  EXPECT_FALSE(parse_summary("M(\n  (a): Linear(-3, 4)\n)\n"));
  EXPECT_FALSE(parse_summary("M(\n  (a): Embedding(100, -16)\n)\n"));
}

TEST(ModuleTree, ReadsATreeOfAHundredThousandLevels) {
  constexpr int kLevels = 100'000;
  std::string text;
  for (int level = 0; level < kLevels; ++level) text += level == 0 ? "A(\n" : "(a): A(\n";
  text += "(fc): Linear(in_features=3, out_features=4, bias=True)\n";
  for (int level = 0; level < kLevels; ++level) text += ")\n";
  const auto graph = parse_summary(text);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 16);
  EXPECT_LE(graph->path(graph->layers()[0]).size(), 210U);
}

/// A tree of `depth` levels, each repeated `times`, around `leaf`.
std::string bomb(int depth, int times, std::string_view leaf) {
  std::string text = "A(\n";
  for (int level = 0; level < depth; ++level) {
    text += "(0-" + std::to_string(times - 1) + "): " + std::to_string(times) + " x A(\n";
  }
  text += std::string(leaf) + "\n";
  for (int level = 0; level <= depth; ++level) text += ")\n";
  return text;
}

TEST(ModuleTree, RefusesRepeatsThatMakeMoreLayersThanAnyModel) {
  EXPECT_TRUE(fails(parse_summary(bomb(10, 1000, "(fc): Linear(3, 4)")), ErrorCode::malformed_input, 12,
                    "more than 250,000 layers"));
  EXPECT_TRUE(fails(parse_summary("M(\n  (0-9): 9223372036854775807 x ReLU()\n)\n"), ErrorCode::malformed_input, 2,
                    "more than 250,000 layers"));
}

/// Exits with 0 once the text has been read, well or not, and dies by SIGALRM if that takes too long.
[[noreturn]] void read_within_seconds(const std::string& text, unsigned seconds) {
  alarm(seconds);
  static_cast<void>(parse_summary(text));
  _exit(0);
}

TEST(ModuleTreeDeathTest, NestedRepeatsAroundNoLayerDoNotTakeForever) {
  EXPECT_EXIT(read_within_seconds(bomb(64, 1000, "(s): Sequential()"), 5), ::testing::ExitedWithCode(0), "");
}

TEST(ModuleTree, RefusesRepeatsThatMakeMoreContainersThanAnyModel) {
  std::string text = "A(\n(0-1999): 2000 x A(\n";
  for (int level = 0; level < 1000; ++level) text += "(a): A(\n";
  text += "(act): ReLU()\n";
  for (int level = 0; level < 1002; ++level) text += ")\n";
  EXPECT_FALSE(parse_summary(text)) << "two million containers from a file of 10 KB";
}

TEST(ModuleTree, AFileCutOffAnywhereIsAnErrorOrWholeTree) {
  EXPECT_EQ(testing::readable_prefixes(kNet), 1) << "but for the last line's end, every byte counts";
}

}  // namespace
}  // namespace gpumem::summary
