#include "gpumem/summary/node_linker.hpp"

#include <gtest/gtest.h>

#include "graphs.hpp"

namespace gpumem::summary {
namespace {

using testing::N;
using testing::shape;

ReadOptions options_of(bool lenient = false) {
  ReadOptions options;
  options.vocabulary = &ops::vocabulary();
  options.lenient = lenient;
  return options;
}

/// A node that reads one other.
GraphNode relu(std::string_view name, model::LayerIndex input) {
  GraphNode node;
  node.name = name;
  node.op = "relu";
  node.inputs = {input};
  return node;
}

std::string error_of(const core::Status& status) { return status ? "none" : status.error().message; }

TEST(NodeLinker, FindsEveryName) {
  const ReadOptions options = options_of();
  NodeLinker linker(options);
  EXPECT_EQ(linker.find("x"), std::nullopt);
  ASSERT_TRUE(linker.add_input({"x", shape({N, 3})}));
  ASSERT_TRUE(linker.add_input({"y", shape({N, 3})}));
  constexpr int kNodes = 1000;
  for (int node = 0; node < kNodes; ++node) {
    const std::string name = "node" + std::to_string(node);
    GraphNode added = relu(name, node - 1);
    ASSERT_EQ(error_of(linker.add_node(added, node)), "none");
  }
  EXPECT_EQ(linker.find("x"), -1);
  EXPECT_EQ(linker.find("y"), -2);
  for (int node = 0; node < kNodes; ++node) EXPECT_EQ(linker.find("node" + std::to_string(node)), node);
  EXPECT_EQ(linker.find("node1000"), std::nullopt);
  EXPECT_EQ(linker.find(""), std::nullopt);
}

TEST(NodeLinker, ANameIsTakenOnce) {
  const ReadOptions options = options_of();
  NodeLinker linker(options);
  ASSERT_TRUE(linker.add_input({"x", shape({N, 3})}));
  EXPECT_EQ(error_of(linker.add_input({"x", shape({N, 3})})), "the name 'x' is taken");
  GraphNode node = relu("x", -1);
  EXPECT_EQ(error_of(linker.add_node(node, 1)), "the name 'x' is taken");
}

TEST(NodeLinker, WithoutEdgesTheFirstOfANameIsFound) {
  const ReadOptions options = options_of();
  NodeLinker linker(options);
  linker.builder().infer_edges();
  for (int time = 0; time < 2; ++time) {
    GraphNode node;
    node.name = "act";
    node.op = "relu";
    ASSERT_EQ(error_of(linker.add_node(node, 1)), "none");
  }
  EXPECT_EQ(linker.find("act"), 0);
}

TEST(NodeLinker, SaysWhatIsWrongWithANode) {
  const ReadOptions options = options_of();
  NodeLinker linker(options);
  GraphNode node;
  EXPECT_FALSE(linker.has_nodes());
  EXPECT_EQ(error_of(linker.add_node(node, 1)), "a node needs a name and an op");
  EXPECT_TRUE(linker.has_nodes());
  node.name = "a";
  node.op = "no such op";
  EXPECT_NE(error_of(linker.add_node(node, 1)).find("has the unknown op"), std::string::npos);
  node.op = "relu";
  EXPECT_NE(error_of(linker.add_node(node, 1)).find("has no \"inputs\""), std::string::npos);
}

TEST(NodeLinker, AnUnknownOpCanBeTaken) {
  const ReadOptions options = options_of(true);
  NodeLinker linker(options);
  linker.builder().infer_edges();
  GraphNode node;
  node.name = "a";
  node.op = "no such op";
  node.parameters = 7;
  ASSERT_EQ(error_of(linker.add_node(node, 1)), "none");
  EXPECT_EQ(linker.builder().graph().layers()[0].parameters, 7);
  EXPECT_EQ(linker.builder().graph().unknown_layers(), 1);
}

TEST(NodeLinker, ReadsDimensionsThatAreTexts) {
  EXPECT_EQ(dim_from_text("N"), core::Dim::batch());
  EXPECT_EQ(dim_from_text("64N"), core::Dim::batch(64));
  EXPECT_EQ(dim_from_text("?"), core::Dim::unknown());
  for (const std::string_view text : {"", "n", "0N", "N64", "64", "99999999999999999999N"}) {
    EXPECT_EQ(dim_from_text(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace gpumem::summary
