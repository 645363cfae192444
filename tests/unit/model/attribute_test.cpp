#include "gpumem/model/op_traits.hpp"

#include <gtest/gtest.h>

namespace gpumem::model {
namespace {

const std::vector<Attribute> kAll = {{"stride", std::int64_t{2}},
                                     {"kernel_size", std::vector<std::int64_t>{7, 5}},
                                     {"bias", false},
                                     {"eps", 1e-5},
                                     {"padding", std::string("same")},
                                     {"stride", std::int64_t{9}}};
const Attributes kAttributes(kAll);

TEST(Attributes, AreFoundByName) {
  ASSERT_NE(kAttributes.find("eps"), nullptr);
  EXPECT_EQ(std::get<double>(*kAttributes.find("eps")), 1e-5);
  EXPECT_EQ(kAttributes.find("dilation"), nullptr);
}

TEST(Attributes, TheFirstOfTwoOfOneNameCounts) { EXPECT_EQ(kAttributes.integer("stride"), 2); }

TEST(Attributes, AnIntegerStandsForEveryAxis) {
  EXPECT_EQ(kAttributes.per_axis("stride", 0), 2);
  EXPECT_EQ(kAttributes.per_axis("stride", 5), 2);
}

TEST(Attributes, AListHasOneValueAnAxis) {
  EXPECT_EQ(kAttributes.per_axis("kernel_size", 0), 7);
  EXPECT_EQ(kAttributes.per_axis("kernel_size", 1), 5);
  EXPECT_EQ(kAttributes.per_axis("kernel_size", 2), std::nullopt);
}

TEST(Attributes, OtherTypesAreNoIntegers) {
  EXPECT_EQ(kAttributes.integer("padding"), std::nullopt);
  EXPECT_EQ(kAttributes.integer("eps"), std::nullopt);
  EXPECT_EQ(kAttributes.integer("bias"), std::nullopt);
}

TEST(Attributes, AFlagHasADefault) {
  EXPECT_FALSE(kAttributes.flag("bias", true));
  EXPECT_TRUE(kAttributes.flag("affine", true));
  EXPECT_TRUE(kAttributes.flag("stride", true)) << "a number is no flag";
}

}  // namespace
}  // namespace gpumem::model
