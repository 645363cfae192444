#include "gpumem/ops/catalogue.hpp"

#include <gtest/gtest.h>

#include <map>

#include "gpumem/model/model_graph.hpp"

namespace gpumem::ops {
namespace {

TEST(Catalogue, NamesAreUnique) {
  std::map<std::string_view, int> seen;
  for (const Op* op : catalogue()) EXPECT_EQ(++seen[op->traits.name], 1) << op->traits.name;
  EXPECT_GT(seen.size(), 80U);
}

TEST(Catalogue, ATorchClassIsOfOneOp) {
  std::map<std::string_view, std::string_view> seen;
  for (const Op* op : catalogue()) {
    for (const std::string_view name : op->traits.torch_classes) {
      EXPECT_TRUE(seen.emplace(name, op->traits.name).second)
          << name << " is of " << seen[name] << " and " << op->traits.name;
    }
  }
}

TEST(Catalogue, AKerasClassIsOfOneOp) {
  std::map<std::string_view, std::string_view> seen;
  for (const Op* op : catalogue()) {
    for (const std::string_view name : op->traits.keras_classes) {
      EXPECT_TRUE(seen.emplace(name, op->traits.name).second)
          << name << " is of " << seen[name] << " and " << op->traits.name;
    }
  }
}

TEST(Catalogue, NoOpTakesTheNameOfUnknownLayers) { EXPECT_EQ(vocabulary().find_op(model::kUnknownOp), nullptr); }

TEST(Catalogue, HoldsTheOpOfBareParameters) { EXPECT_NE(vocabulary().find_op(model::kParameterOp), nullptr); }

TEST(Catalogue, OpsThatExpectAWidthNameTheAttribute) {
  for (const Op* op : catalogue()) {
    const bool expects = op->expects.axis != ExpectedWidth::Axis::none;
    EXPECT_EQ(expects, !op->expects.attribute.empty()) << op->traits.name;
  }
}

TEST(Catalogue, APrintedConv1DOfHuggingFaceIsLinear) {
  EXPECT_EQ(vocabulary().find_torch("Conv1D")->name, "linear");
  EXPECT_EQ(vocabulary().find_keras("Conv1D")->name, "conv1d");
}

TEST(Catalogue, AnExtendedListKnowsItsOwnOpsToo) {
  static constexpr std::array<std::string_view, 1> kMine = {"MyLayer"};
  static constexpr Op kOp = {.traits = {.name = "mine", .family = OpFamily::other, .torch_classes = kMine},
                             .output_shape = same_shape};
  Catalogue extended = catalogue();
  extended.push_back(&kOp);
  const model::Vocabulary names = vocabulary_of(extended);
  EXPECT_EQ(names.find_torch("MyLayer"), &kOp.traits);
  EXPECT_NE(names.find_torch("Conv2d"), nullptr);
  EXPECT_EQ(vocabulary().find_torch("MyLayer"), nullptr) << "the built-in list stays as it is";
}

}  // namespace
}  // namespace gpumem::ops
