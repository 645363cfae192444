#include "gpumem/summary/recording.hpp"

#include "expect.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/summary/text.hpp"
#include "recordings.hpp"

namespace gpumem::summary {
namespace {

using testing::fails;
using testing::kSmallRecording;
using testing::succeeds;
using testing::with;

TEST(Recording, NamesItsModulesWithTheirParameters) {
  const auto graph = parse_summary(kSmallRecording);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->format(), "recording");
  EXPECT_EQ(graph->parameters(), 12);
  EXPECT_EQ(graph->trainable_parameters(), 12);
  ASSERT_EQ(graph->layers().size(), 2U);
  EXPECT_EQ(graph->path(graph->layers()[0]), "model") << "what no module calls";
  EXPECT_EQ(graph->path(graph->layers()[1]), "fc");
  EXPECT_EQ(graph->class_name(graph->layers()[1]), "mm");
  ASSERT_EQ(graph->warnings().size(), 1U);
  EXPECT_EQ(graph->warnings()[0].message, "train.py:3: a value was made up (2 times)");
}

TEST(Recording, KeepsCallsSizesAndEvents) {
  const auto graph = parse_summary(kSmallRecording);
  ASSERT_TRUE(succeeds(graph));
  const model::StepRecording& recording = *graph->recording();
  EXPECT_EQ(recording.allocations, 4U);
  EXPECT_EQ(recording.calls.size(), 2U);
  EXPECT_EQ(recording.calls[1].layer, 1U);
  EXPECT_EQ(recording.expressions[2].at(7, 1), 7);
  EXPECT_EQ(recording.tensors[3].layout, model::RecordedTensor::Layout::dense);
  EXPECT_EQ(recording.optimizer, "sgd");
  EXPECT_FALSE(recording.convolves);
  EXPECT_TRUE(recording.follows_batch());
  EXPECT_FALSE(recording.follows_sequence());
}

TEST(Recording, FrozenParametersAreNotTrained) {
  const auto graph = parse_summary(with(kSmallRecording, "[[3, 0, 1, 0, 3]]", "[[3, 0, 0, 0, -1]]"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 12);
  EXPECT_EQ(graph->trainable_parameters(), 0);
}

TEST(Recording, IsReadPackedAndPlain) {
  for (const char* name : {"mlp", "resnet18", "gpt", "lora"}) {
    const auto graph = read_summary(testing::golden_recording(name));
    ASSERT_TRUE(succeeds(graph)) << name;
    EXPECT_GT(graph->recording()->events.size(), 100U) << name;
  }
}

TEST(Recording, SaysWhereAFileIsWrong) {
  struct Case {
    const char* part;
    const char* by;
    const char* element;
  };
  constexpr Case kCases[] = {
      {"\"version\": 1", "\"version\": 2", "/version"},
      {"\"rank\": 0", "\"rank\": -1", "/rank"},
      {"\"rank\": 0", "\"rank\": 0, \"mood\": 1", "/mood"},
      {"[\"batch\"]", "[\"time\"]", "/axes"},
      {"[8, 0]", "[8]", "/capability"},
      {"[[4], [3], [0, 1]]", "[[4], [3], \"batch\"]", "/dims/2"},
      {"[0, [1, 0], [1, 0]]", "[0, [1, 0], [1, 1]]", "/tensors/3"},
      {"[0, [1, 0], [1, 0]]", "[0, [1, 9], [1, 0]]", "/tensors/3"},
      {"[0, [1, 0], [1, 0]]", "[9, [1, 0], [1, 0]]", "/tensors/3"},
      {"[4, [2, 0]]]", "[4, [7, 0]]]", "/sizes/2"},
      {"[1, 2, 1, 0, [1, 3], [2], []]", "[1, 2, 1, 0, [1, 4], [2], []]", "/calls/1"},
      {"[1, 2, 1, 0, [1, 3], [2], []]", "[1, 2, 9, 0, [1, 3], [2], []]", "/calls/1"},
      {"[[3, 0, 1, 0, 3]]", "[[3, 0, 1, 0, 4]]", "/parameters/0"},
      {"\"kernels\": [[1, 1]]", "\"kernels\": [[2, 1]]", "/kernels/0"},
      {"5, 4, 2, 1, 1, 1, 3]", "5, 4, 2, 1, 1, 1, 1]", "/events/50"},
      {"5, 4, 2, 1, 1, 1, 3]", "5, 4, 2, 1, 1, 1]", "/events"},
      {"5, 4, 2, 1, 1, 1, 3]", "5, 4, 2, 1, 1, 9]", "/events/49"},
      {"0, 1, 0, -1, 2, 5", "0, 5, 0, -1, 2, 5", "/events"},
  };
  for (const Case& wrong : kCases) {
    const auto graph = parse_summary(with(kSmallRecording, wrong.part, wrong.by));
    ASSERT_FALSE(graph) << wrong.by;
    EXPECT_EQ(graph.error().code, ErrorCode::malformed_input) << wrong.by;
    EXPECT_EQ(graph.error().place.element.substr(0, 8), std::string(wrong.element).substr(0, 8)) << wrong.by;
  }
  EXPECT_TRUE(fails(parse_summary(with(kSmallRecording, "\"torch\": \"2.6.0\", ", "")), ErrorCode::malformed_input, 0,
                    "torch"));
}

TEST(Recording, IsToldFromGraphJsonByItsFormat) {
  EXPECT_TRUE(is_recording(" {\n\"format\" : \"gpumem-recording\""));
  EXPECT_FALSE(is_recording(R"({"format": "gpumem-graph"})"));
  EXPECT_FALSE(is_recording("format"));
}

}  // namespace
}  // namespace gpumem::summary
