#include "gpumem/plan/forward_pass.hpp"

#include <algorithm>

#include "small_plans.hpp"

namespace gpumem::plan {
namespace {

using testing::forward;
using testing::job_of;
using testing::kRows;
using testing::net;

TEST(NameLifetimes, EachNameEndsBehindItsLastReader) {
  const auto pass = forward(net());
  ASSERT_TRUE(testing::succeeds(pass));
  const NameLifetimes names(*pass);
  const auto functions = pass->tape.functions();
  const auto ends_at = [&](std::size_t function, ops::TensorId id) {
    const auto ending = names.ending_at(function);
    return std::find(ending.begin(), ending.end(), id) != ending.end();
  };
  EXPECT_TRUE(names.ending_at(0).empty()) << "the batch keeps its name";
  EXPECT_TRUE(ends_at(1, functions[0].output)) << "relu reads what the first layer made";
  EXPECT_TRUE(ends_at(2, functions[1].output));
  std::size_t ended = 0;
  for (std::size_t index = 0; index < functions.size(); ++index) {
    ended += names.ending_at(index).size();
    for (const ops::TensorId held : pass->held) EXPECT_FALSE(ends_at(index, held)) << "the loop holds it";
    for (const auto& parameter : pass->tape.parameters()) EXPECT_FALSE(ends_at(index, parameter.tensor));
  }
  EXPECT_EQ(ended, functions.size() - pass->held.size()) << "each output ends once, unless it is held";
}

TEST(NameLifetimes, WhatNobodyReadsEndsAtOnce) {
  const auto pass = forward(job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
    {"name": "b", "op": "relu", "inputs": ["a"]},
    {"name": "c", "op": "tanh", "inputs": ["a"]},
    {"name": "d", "op": "add", "inputs": ["b", "c"]})",
                                   2));
  ASSERT_TRUE(testing::succeeds(pass));
  const NameLifetimes names(*pass);
  const auto functions = pass->tape.functions();
  EXPECT_TRUE(names.ending_at(1).empty()) << "tanh still reads a";
  ASSERT_EQ(names.ending_at(2).size(), 1U);
  EXPECT_EQ(names.ending_at(2)[0], functions[0].output);
  EXPECT_EQ(names.ending_at(3).size(), 2U) << "b and c";
}

}  // namespace
}  // namespace gpumem::plan
