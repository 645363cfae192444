#include "gpumem/architectures/forward.hpp"

#include "gpumem/ops/catalogue.hpp"
#include "graphs.hpp"

namespace gpumem::architectures {
namespace {

using testing::describe;
using testing::Described;
using testing::fails;
using testing::succeeds;

/// What these calls make.
template <typename Calls>
core::Result<ModelGraph> made(Calls calls) {
  GraphBuilder builder("config_json");
  Forward forward(builder, ops::vocabulary());
  calls(forward);
  return std::move(builder).build();
}

TEST(Forward, WritesLayersAndOperationsWhereTheyStand) {
  const auto graph = made([](Forward& f) {
    const Tensor ids = f.token_input("input_ids");
    const InModule model(f, "model", "Model");
    Tensor hidden = f.embedding("embed", ids, 10, 4);
    {
      const InModule block(f, "block", "Block");
      hidden = f.add(hidden, f.activation("act", f.linear("up", hidden, 4, 4, {.bias = false}), "silu"));
    }
    f.linear("head", f.layer_norm("norm", hidden, 4), 4, 10, {.bias = false, .tied = true, .returned = true});
  });
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph),
            (Described{"embedding model.embed 40", "linear model.block.up 16", "silu model.block.act 0",
                       "add model.block.add 0", "layer_norm model.norm 8", "linear model.head 40 tied 40 returned"}));
  EXPECT_EQ(graph->parameters(), 64);
  EXPECT_EQ(graph->graph_inputs()[0].dtype, core::DType::int64);
}

TEST(Forward, LeavesOutWhatDropsNothing) {
  const auto graph = made([](Forward& f) {
    const Tensor input = f.sample_input("x", {4});
    EXPECT_EQ(f.dropout("dropout", input, 0.0), input);
    f.linear("head", f.dropout("dropout", input, 0.1), 4, 2);
  });
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph), (Described{"dropout dropout 0", "linear head 10"}));
}

TEST(Forward, RefusesActivationsThatNobodyKnows) {
  const auto graph = made([](Forward& f) { f.activation("act", f.sample_input("x", {4}), "soft"); });
  EXPECT_TRUE(fails(graph, core::ErrorCode::malformed_input, 0, "'soft'"));
}

TEST(Forward, PartsAreViewsOfOneTuple) {
  const auto graph = made([](Forward& f) {
    const auto parts = f.split(f.sample_input("x", {5, 6}), 2, {4, 2});
    ASSERT_EQ(parts.size(), 2U);
    f.concatenate(parts, 2);
  });
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph), (Described{"split split 0", "item item 0", "item item 0", "concat concat 0"}));
}

}  // namespace
}  // namespace gpumem::architectures
