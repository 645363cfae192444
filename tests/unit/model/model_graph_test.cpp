#include "gpumem/model/model_graph.hpp"

#include <gtest/gtest.h>

#include "graphs.hpp"

namespace gpumem::model {
namespace {

TEST(ModelGraph, PathNamesEveryContainer) {
  GraphBuilder builder("test");
  builder.open_scope("encoder", "Encoder");
  builder.open_scope("0", "Layer");
  builder.add({.name = "query", .parameters = 1});
  builder.close_scope();
  builder.add({.name = "norm", .parameters = 1});
  builder.close_scope();
  builder.add({.name = "head", .parameters = 1});
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(testing::succeeds(graph));
  EXPECT_EQ(graph->path(graph->layers()[0]), "encoder.0.query");
  EXPECT_EQ(graph->path(graph->layers()[1]), "encoder.norm");
  EXPECT_EQ(graph->path(graph->layers()[2]), "head");
}

TEST(ModelGraph, PathOfADeepLayerIsShortenedAtItsFront) {
  GraphBuilder builder("test");
  for (int level = 0; level < 1000; ++level) builder.open_scope("level", "Block");
  builder.add({.name = "leaf", .parameters = 1});
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(testing::succeeds(graph));
  const std::string path = graph->path(graph->layers()[0]);
  EXPECT_TRUE(path.starts_with("...")) << path;
  EXPECT_TRUE(path.ends_with(".level.leaf")) << path;
  EXPECT_LE(path.size(), 220U);
}

TEST(ModelGraph, WithinFollowsTheContainers) {
  GraphBuilder builder("test");
  builder.open_scope("a", "A");
  const auto outer = builder.current_scope();
  builder.open_scope("b", "B");
  const auto inner = builder.current_scope();
  builder.close_scope();
  builder.close_scope();
  builder.open_scope("c", "C");
  const auto other = builder.current_scope();
  builder.add({.name = "leaf", .parameters = 1});
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(testing::succeeds(graph));
  EXPECT_TRUE(graph->within(inner, outer));
  EXPECT_TRUE(graph->within(outer, outer));
  EXPECT_TRUE(graph->within(outer, 0)) << "everything is within the model";
  EXPECT_FALSE(graph->within(outer, inner));
  EXPECT_FALSE(graph->within(other, outer));
}

TEST(ModelGraph, ListsEachOpAndClassOnce) {
  GraphBuilder builder("test");
  const OpTraits* relu = ops::vocabulary().find_op("relu");
  for (const char* name : {"a", "b", "c"}) builder.add({.name = name, .class_name = "ReLU", .op = relu});
  builder.add({.name = "d", .class_name = "Odd", .parameters = 1});
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(testing::succeeds(graph));
  ASSERT_EQ(graph->ops().size(), 2U);
  EXPECT_EQ(graph->ops()[0], "relu");
  EXPECT_EQ(graph->ops()[1], kUnknownOp);
  EXPECT_EQ(graph->unknown_layers(), 1);
  EXPECT_EQ(graph->class_name(graph->layers()[3]), "Odd");
}

}  // namespace
}  // namespace gpumem::model
