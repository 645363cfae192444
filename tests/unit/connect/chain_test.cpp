// The edges that are inferred from shipped summaries are those of the shipped graphs of the same models.
#include "gpumem/connect/chain.hpp"

#include <algorithm>

#include "graphs.hpp"

namespace gpumem::connect {
namespace {

using testing::succeeds;

std::string sizes(const model::Attributes& attributes, std::string_view name, std::int64_t otherwise) {
  return " " + std::to_string(attributes.per_axis(name, 0).value_or(otherwise)) + "," +
         std::to_string(attributes.per_axis(name, 1).value_or(otherwise));
}

/// What memory depends on, one text a layer.
std::string described(const ModelGraph& graph, const model::Layer& layer) {
  const model::Attributes attributes = graph.attributes(layer);
  std::string text(graph.op(layer));
  for (const model::LayerIndex input : graph.inputs(layer)) text += " " + std::to_string(input);
  text += " parameters " + std::to_string(layer.parameters);
  const auto inputs = graph.inputs(layer);
  const bool on_image = !inputs.empty() && inputs[0] >= 0 && graph.op(layer) != "dropout" &&
                        graph.op(graph.layers()[static_cast<std::size_t>(inputs[0])]) != "linear";
  if (on_image && attributes.flag("inplace", false)) text += " in place";  // a row a sample weighs nothing
  if (graph.op(layer) != "conv2d") return text;
  text += " kernel" + sizes(attributes, "kernel_size", 1) + " stride" + sizes(attributes, "stride", 1) + " padding" +
          sizes(attributes, "padding", 0);
  text += " groups " + std::to_string(attributes.integer("groups").value_or(1));
  return text + (attributes.flag("bias", true) ? " bias" : "");
}

testing::Described described(const ModelGraph& graph) {
  testing::Described all;
  for (const model::Layer& layer : graph.layers()) all.push_back(described(graph, layer));
  return all;
}

ModelGraph shipped(const std::string& path) {
  auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/" + path);
  EXPECT_TRUE(succeeds(graph)) << path;
  return *std::move(graph);
}

class Exact : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(Exact, EdgesAreFound) {
  const auto& [summary, graph] = GetParam();
  TrainingJob job(shipped("summaries/" + summary), 2);
  job.input_shape = {3, 224, 224};
  if (graph.starts_with("inception")) job.input_shape = {3, 299, 299};
  const auto chained = chain(job, ops::catalogue());
  ASSERT_TRUE(succeeds(chained));
  const testing::Described inferred = described(chained->graph);
  const testing::Described exact = described(shipped("graphs/" + graph));
  const auto [ours, theirs] = std::mismatch(inferred.begin(), inferred.end(), exact.begin(), exact.end());
  EXPECT_EQ(ours == inferred.end() ? "the end" : *ours, theirs == exact.end() ? "the end" : *theirs)
      << "layer " << ours - inferred.begin() << " of " << exact.size();
  EXPECT_EQ(chained->misfits, 0);
}

INSTANTIATE_TEST_SUITE_P(Shipped, Exact,
                         ::testing::Values(std::pair{"resnet50.torchsummary.txt", "resnet50.json"},
                                           std::pair{"resnet50.torchinfo.txt", "resnet50.json"},
                                           std::pair{"resnet50.module_tree.txt", "resnet50.json"},
                                           std::pair{"resnet18.torchinfo_all.txt", "resnet18.json"},
                                           std::pair{"resnet18.module_tree_params.txt", "resnet18.json"},
                                           std::pair{"mobilenet_v2.torchsummary.txt", "mobilenet_v2.json"},
                                           std::pair{"mobilenet_v2.torchinfo.txt", "mobilenet_v2.json"},
                                           std::pair{"vgg16.torchsummary.txt", "vgg16.json"},
                                           std::pair{"vgg16.torchinfo.txt", "vgg16.json"},
                                           std::pair{"vgg16.module_tree.txt", "vgg16.json"},
                                           std::pair{"efficientnet_b0.torchinfo.txt", "efficientnet_b0.json"},
                                           std::pair{"densenet121.torchinfo.txt", "densenet121.json"}));

}  // namespace
}  // namespace gpumem::connect
