#include "gpumem/estimate/memory_estimate.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace gpumem::estimate {
namespace {

using core::Bytes;

TEST(Breakdown, TotalIsTheSumOfAllParts) {
  const Breakdown breakdown = {Bytes(1),     Bytes(20),     Bytes(300),    Bytes(4000),
                               Bytes(50000), Bytes(600000), Bytes(7000000)};
  EXPECT_EQ(breakdown.total().value(), 7654321);
}

TEST(Breakdown, NamesEachPart) {
  const Breakdown breakdown = {Bytes(1), Bytes(2), Bytes(3), Bytes(4), Bytes(5), Bytes(6), Bytes(7)};
  const auto parts = breakdown.parts();
  EXPECT_EQ(parts[0].name, "context");
  EXPECT_EQ(parts[0].bytes, Bytes(1));
  EXPECT_EQ(parts[4].name, "activations");
  EXPECT_EQ(parts[4].bytes, Bytes(5));
  EXPECT_EQ(parts[5].name, "temporaries");
  EXPECT_EQ(parts[5].bytes, Bytes(0));
  EXPECT_EQ(parts[7].name, "fragmentation");
  EXPECT_EQ(parts[7].bytes, Bytes(7));
}

TEST(Breakdown, NamesThePartsOfSeveralGpusWhereThereAreAny) {
  Breakdown breakdown = {Bytes(1), Bytes(2), Bytes(3), Bytes(4), Bytes(5), Bytes(6), Bytes(7)};
  EXPECT_EQ(breakdown.parts().size(), 8U);
  breakdown.gathered = Bytes(8);
  breakdown.communication = Bytes(9);
  const auto parts = breakdown.parts();
  ASSERT_EQ(parts.size(), 10U);
  EXPECT_EQ(parts[8].name, "gathered");
  EXPECT_EQ(parts[9].name, "communication");
  EXPECT_EQ(breakdown.total().value(), 45);
}

TEST(Breakdown, FindsAPartByItsName) {
  Breakdown breakdown;
  for (const BreakdownRow& row : kBreakdownRows) breakdown.part(row.name) = Bytes(5);
  EXPECT_EQ(breakdown.total().value(), 50);
  EXPECT_EQ(breakdown.temporaries, Bytes(5));
}

TEST(Breakdown, ATotalBeyondSixtyFourBitsIsInvalid) {
  Breakdown breakdown;
  breakdown.activations = Bytes(INT64_MAX);
  breakdown.context = Bytes(1);
  EXPECT_FALSE(breakdown.total().valid());
}

}  // namespace
}  // namespace gpumem::estimate
