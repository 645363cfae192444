#include "gpumem/summary/keras.hpp"

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

constexpr std::string_view kKeras2 = R"(Model: "small"
_________________________________________________________________
 Layer (type)                Output Shape              Param #   
=================================================================
 input_1 (InputLayer)        [(None, 28, 28, 1)]       0         
                                                                 
 conv2d (Conv2D)             (None, 26, 26, 32)        320       
                                                                 
 global_average_pooling2d (  (None, 32)                0         
 GlobalAveragePooling2D)                                         
                                                                 
 dense (Dense)               (None, 10)                330       
                                                                 
=================================================================
Total params: 650 (2.54 KB)
Trainable params: 650 (2.54 KB)
Non-trainable params: 0 (0.00 Byte)
_________________________________________________________________
)";

constexpr std::string_view kKeras3 = R"(Model: "small"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ input_1 (InputLayer)            │ (None, 28, 28, 1)      │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ conv2d (Conv2D)                 │ (None, 26, 26, 32)     │           320 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ global_average_pooling2d        │ (None, 32)             │             0 │
│ (GlobalAveragePooling2D)        │                        │               │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ dense (Dense)                   │ (None, 10)             │           330 │
└─────────────────────────────────┴────────────────────────┴───────────────┘
 Total params: 650 (2.54 KB)
 Trainable params: 650 (2.54 KB)
)";

const Described kSmall = {"conv2d conv2d [N, 32, 26, 26] 320", "adaptive_avg_pool2d global_average_pooling2d [N, 32] 0",
                          "linear dense [N, 10] 330"};

TEST(Keras, ReadsTheTableOfKeras2WithWrappedCells) {
  const auto graph = parse_summary(kKeras2);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->format(), "keras");
  EXPECT_EQ(describe(*graph), kSmall);
  EXPECT_EQ(graph->parameters(), 650);
  EXPECT_TRUE(graph->warnings().empty());
  EXPECT_EQ(graph->layers()[1].line, 9U);
}

TEST(Keras, ReadsTheBoxesOfKeras3) {
  const auto graph = parse_summary(kKeras3);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph), kSmall);
  EXPECT_TRUE(graph->warnings().empty());
  EXPECT_EQ(graph->layers()[2].line, 12U);
}

TEST(Keras, AnInputLayerIsAGraphInputWithItsChannelsInFront) {
  for (const std::string_view text : {kKeras2, kKeras3}) {
    const auto graph = parse_summary(text);
    ASSERT_TRUE(succeeds(graph));
    ASSERT_EQ(graph->graph_inputs().size(), 1U);
    EXPECT_EQ(graph->graph_inputs()[0].name, "input_1");
    EXPECT_EQ(core::to_string(graph->graph_inputs()[0].shape), "[N, 1, 28, 28]");
  }
}

TEST(Keras, CompletesAClassNameThatKeras2Cut) {
  EXPECT_EQ(
      read_layers(R"(_________________________________________________________________
Layer (type)                 Output Shape              Param #   
=================================================================
batch_normalization (BatchNo (None, 26, 26, 32)        128       
_________________________________________________________________
max_pooling2d (MaxPooling2D) (None, 13, 13, 32)        0         
=================================================================
Total params: 128
)"),
      (Described{"batch_norm batch_normalization [N, 32, 26, 26] 128", "max_pool2d max_pooling2d [N, 32, 13, 13] 0"}));
}

TEST(Keras, ReadsTheColumnsBehindTheCount) {
  EXPECT_EQ(read_layers(
                R"(__________________________________________________________________________________________________
 Layer (type)                   Output Shape         Param #     Connected to                     
==================================================================================================
 conv1 (Conv2D)                 (None, 8, 8, 16)     448         ['input_1[0][0]']                
                                                                                                  
 add (Add)                      (None, 8, 8, 16)     0           ['conv1[0][0]',                  
                                                                  'conv2[0][0]']                  
==================================================================================================
)"),
            (Described{"conv2d conv1 [N, 16, 8, 8] 448", "add add [N, 16, 8, 8] 0"}));
}

TEST(Keras, ANestedModelsRowIsAContainer) {
  const auto graph = parse_summary(R"(Model: "outer"
_________________________________________________________________
 Layer (type)                Output Shape              Param #   
=================================================================
 backbone (Functional)       (None, 10)                220       
|¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯|
| input_2 (InputLayer)       [(None, 10)]              0        |
|                                                               |
| inner (Sequential)         (None, 10)                110      |
||¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯||
|| dense (Dense)             (None, 10)                110     ||
|¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯|
|                                                               |
| dense_1 (Dense)            (None, 10)                110      |
¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯¯
                                                                 
 dense_2 (Dense)             (None, 5)                 55        
                                                                 
=================================================================
Total params: 275 (1.07 KB)
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph),
            (Described{"linear dense [N, 10] 110", "linear dense_1 [N, 10] 110", "linear dense_2 [N, 5] 55"}));
  EXPECT_TRUE(graph->warnings().empty());
}

TEST(Keras, ANestedModelThatIsNotExpandedHasItsOutput) {
  const std::string_view text = R"(Model: "outer"
_________________________________________________________________
 Layer (type)                Output Shape              Param #   
=================================================================
 backbone (Functional)       (None, 10)                110       
 dense_1 (Dense)             (None, 5)                 55        
=================================================================
)";
  EXPECT_EQ(read_layers(text), (Described{"opaque backbone [N, 10] 110", "linear dense_1 [N, 5] 55"}));
  const model::Vocabulary without_that_op;
  EXPECT_TRUE(fails(summary::read(text, {&without_that_op, {}, false}), ErrorCode::unknown_layer, 5,
                    "print with expand_nested=True"));
  const auto lenient = parse_summary(text, true);
  ASSERT_TRUE(succeeds(lenient));
  EXPECT_EQ(lenient->unknown_layers(), 1);
  EXPECT_EQ(lenient->parameters(), 165);
}

TEST(Keras, ADimensionThatIsNotFixedIsUnknown) {
  EXPECT_EQ(read_layers(R"(_________________________________________________________________
 Layer (type)                Output Shape              Param #   
=================================================================
 embedding (Embedding)       (None, None, 64)          640       
=================================================================
)"),
            (Described{"embedding embedding [N, ?, 64] 640"}));
}

TEST(Keras, ANestedModelsRowIsAContainerInABoxToo) {
  EXPECT_EQ(read_layers(R"(┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ block (Sequential)              │ (None, 30, 30, 8)      │           224 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│    └ conv2d (Conv2D)            │ (None, 30, 30, 8)      │           224 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ dense (Dense)                   │ (None, 30, 30, 2)      │            18 │
└─────────────────────────────────┴────────────────────────┴───────────────┘
)"),
            (Described{"conv2d conv2d [N, 8, 30, 30] 224", "linear dense [N, 2, 30, 30] 18"}));
}

TEST(Keras, ACutCellOfTheInputIsNoHarmAndOfALayerIsNamed) {
  const std::string head =
      "Layer (type)                    Output Shape         Param #\n"
      "=================================================================\n"
      "input_1 (InputLayer)            [(None, 224, 224, 3) 0\n";
  const std::string tail = "=================================================================\n";
  const auto graph = parse_summary(head + "relu (ReLU)                     (None, 224, 224, 3)  0\n" + tail);
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->graph_inputs().size(), 1U);
  EXPECT_EQ(core::to_string(graph->graph_inputs()[0].shape), "[N, 3, 224, 224]");
  EXPECT_TRUE(fails(parse_summary(head + "lstm (ConvLSTM2D)               (None, 10, 224, 224, 0\n" + tail),
                    ErrorCode::malformed_input, 4, "line_length=140"));
}

TEST(Keras, ReadsACountThatKeras3Remarks) {
  EXPECT_EQ(read_layers(R"(┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ relu (ReLU)                     │ ?                      │   0 (unbuilt) │
└─────────────────────────────────┴────────────────────────┴───────────────┘
)"),
            (Described{"relu relu [?] 0"}));
}

TEST(Keras, WarnsOfATotalThatDisagrees) {
  std::string text(kKeras2);
  text.replace(text.find("Total params: 650"), 17, "Total params: 651");
  const auto graph = parse_summary(text);
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->warnings().size(), 1U);
  EXPECT_EQ(graph->warnings()[0].place.line, 15);
  EXPECT_NE(graph->warnings()[0].message.find("prints a total of 651"), std::string::npos);
}

TEST(Keras, RefusesWhatIsNoTable) {
  EXPECT_TRUE(fails(parse_summary(" Layer (type)          Output Shape\n==========\n"), ErrorCode::malformed_input, 1,
                    "'Output Shape' and 'Param #'"));
  EXPECT_TRUE(fails(parse_summary(" Layer (type)     Output Shape     Param #   \n==========\n stray\n==========\n"),
                    ErrorCode::malformed_input, 3, "'stray' is not a row"));
  EXPECT_TRUE(fails(parse_summary(" Layer (type)     Output Shape     Param #   \n==========\n"
                                  " d (Dense)        (None, 0)        12        \n==========\n"),
                    ErrorCode::malformed_input, 3, "dimension of zero"));
  EXPECT_TRUE(fails(parse_summary(" Layer (type)     Output Shape     Param #   \n==========\n"
                                  " d (Dense)        (None, 5)        1,2       \n==========\n"),
                    ErrorCode::malformed_input, 3, "is not a count"));
}

TEST(Keras, AFileCutOffAnywhereIsAnErrorOrWholeTable) {
  EXPECT_LE(testing::readable_prefixes(kKeras2), static_cast<int>(kKeras2.size() - kKeras2.find("\n======", 200)));
  // The closing line of a box is known by its first character, whole or not.
  EXPECT_LE(testing::readable_prefixes(kKeras3), static_cast<int>(kKeras3.size() - kKeras3.find("└")));
}

}  // namespace
}  // namespace gpumem::summary
