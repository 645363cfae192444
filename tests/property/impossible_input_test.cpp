// Input that no model can have is refused by the layer's name, by every estimator that plans steps.
#include <string>
#include <string_view>
#include <vector>

#include "expect.hpp"
#include "gpumem/all.hpp"

namespace gpumem {
namespace {

std::string graph_json(std::string_view nodes, std::string_view input = R"(["N", 3, 8, 8])") {
  return R"({"format": "gpumem-graph", "version": 1, "inputs": [{"name": "x", "shape": )" + std::string(input) +
         R"(}], "nodes": [)" + std::string(nodes) + "]}";
}

std::string torchsummary(std::string_view rows) {
  return "----------------------------------------------------------------\n"
         "        Layer (type)               Output Shape         Param #\n"
         "================================================================\n" +
         std::string(rows) +
         "================================================================\n"
         "Total params: 0\n"
         "----------------------------------------------------------------\n";
}

/// Every estimator that plans steps refuses it, in words that hold `name`.
void expect_refused(const std::string& text, std::string_view name, std::vector<std::int64_t> input = {}) {
  const auto graph = parse_summary(text);
  if (!graph) {
    EXPECT_NE(core::to_string(graph.error()).find(name), std::string::npos) << core::to_string(graph.error());
    return;
  }
  const auto gpu = find_profile("a100-40gb");
  ASSERT_TRUE(testing::succeeds(gpu));
  TrainingJob job(*graph, 2);
  job.input_shape = std::move(input);
  job.strict = true;  // else what a tree does not tell is guessed, and said
  for (const char* estimator : {"replay", "fake-tensor"}) {
    const auto made = (*make_estimator(estimator))->estimate(job, *gpu);
    ASSERT_FALSE(made) << estimator << " takes " << text;
    EXPECT_NE(core::to_string(made.error()).find(name), std::string::npos) << core::to_string(made.error());
  }
}

TEST(ImpossibleInput, ZeroSizesAndContradictionsAreRefusedByName) {
  constexpr std::string_view kConv =
      R"({"name": "conv", "op": "conv2d", "inputs": ["x"], "attrs": {"in_channels": 3, "out_channels": 4, "kernel_size": 3}})";
  constexpr std::string_view kRelu = R"({"name": "act", "op": "relu", "inputs": ["x"]})";
  struct Case {
    std::string what;
    std::string text;
    std::string_view name;
    std::vector<std::int64_t> input = {};
  };
  const std::vector<Case> cases = {
      {"an output of 0", graph_json(R"({"name": "act", "op": "relu", "output": ["N", 3, 0, 8], "inputs": ["x"]})"),
       "'act'"},
      {"an input of 0", graph_json(kRelu, R"(["N", 3, 0, 8])"), "'x'"},
      {"0 pixels given", graph_json(kConv), "input dimension is 0", {3, 0, 8}},
      {"no pixel left", graph_json(kConv), "conv", {3, 2, 2}},
      {"0 channels",
       graph_json(
           R"({"name": "conv", "op": "conv2d", "inputs": ["x"], "attrs": {"in_channels": 3, "out_channels": 0, "kernel_size": 3}})"),
       "conv"},
      {"a stride of 0",
       graph_json(
           R"({"name": "conv", "op": "conv2d", "inputs": ["x"], "attrs": {"in_channels": 3, "out_channels": 4, "kernel_size": 3, "stride": 0}})"),
       "conv"},
      {"other channels",
       graph_json(
           R"({"name": "conv", "op": "conv2d", "inputs": ["x"], "attrs": {"in_channels": 5, "out_channels": 4, "kernel_size": 3}})"),
       "conv"},
      {"other features",
       graph_json(R"({"name": "fc", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 9, "out_features": 4}})"),
       "fc"},
      {"printed features",
       graph_json(
           R"({"name": "fc", "op": "linear", "inputs": ["x"], "output": ["N", 3, 8, 4], "attrs": {"in_features": 9, "out_features": 4}})"),
       "fc"},
      {"sizes that do not add",
       graph_json(std::string(kConv) + R"(, {"name": "sum", "op": "add", "inputs": ["conv", "x"]})"), "sum"},
      {"a row of 0 pixels",
       torchsummary("            Conv2d-1          [-1, 64, 0, 112]           1,792\n"
                    "              ReLU-2          [-1, 64, 0, 112]               0\n"),
       "Conv2d-1"},
      {"features in a tree",
       "Net(\n  (conv): Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1))\n  (flatten): Flatten(start_dim=1, "
       "end_dim=-1)\n"
       "  (fc): Linear(in_features=100, out_features=10, bias=True)\n)\n",
       "fc",
       {3, 8, 8}},
      {"a cycle",
       graph_json(R"({"inputs": ["b"], "name": "a", "op": "relu"}, {"inputs": ["a"], "name": "b", "op": "relu"})"),
       "node 'a': reads 'b'"},
      {"itself", graph_json(R"({"name": "a", "op": "relu", "inputs": ["a"]})"), "node 'a': reads 'a'"},
      {"an edge to nowhere", graph_json(std::string(kRelu) + R"(, {"name": "b", "op": "relu", "inputs": ["lost"]})"),
       "node 'b': reads 'lost'"},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(row.what);
    expect_refused(row.text, row.name, row.input);
  }
}

}  // namespace
}  // namespace gpumem
