#include <gtest/gtest.h>

#include <cstdint>

#include "gpumem/core/bytes.hpp"

namespace gpumem::core {
namespace {

using namespace literals;

TEST(Numbers, AreReadWhole) {
  EXPECT_EQ(parse_number("0.05"), 0.05);
  EXPECT_EQ(parse_number("-1e-3"), -1e-3);
  for (const char* text : {"", " 1", "1 ", "0x1p-3", "1,5", "+1", "inf", "nan", "1e999"}) {
    EXPECT_FALSE(parse_number(text)) << text;
  }
  EXPECT_EQ(parse_whole("12"), 12);
  EXPECT_EQ(parse_whole("-9223372036854775808"), INT64_MIN);
  for (const char* text : {"", " 1", "1 ", "0x1", "1,000", "+1", "1.0", "1e3", "inf", "9223372036854775808"}) {
    EXPECT_FALSE(parse_whole(text)) << text;
  }
}

TEST(Bytes, LiteralsAreBinaryUnits) {
  EXPECT_EQ((1_KiB).count(), 1024);
  EXPECT_EQ((3_MiB).count(), 3 * 1024 * 1024);
  EXPECT_EQ((80_GiB).count(), std::int64_t{85899345920});
}

TEST(Bytes, ConvertsToMebibytesAndGibibytes) {
  EXPECT_DOUBLE_EQ(Bytes(1536 * 1024).mib(), 1.5);
  EXPECT_DOUBLE_EQ((512_MiB).gib(), 0.5);
}

TEST(Bytes, Compares) {
  EXPECT_LT(1_MiB, 1_GiB);
  EXPECT_EQ(1024_KiB, 1_MiB);
}

TEST(Bytes, PrintsTheLargestUnitThatIsAtLeastOne) {
  EXPECT_EQ(to_string(Bytes(0)), "0 B");
  EXPECT_EQ(to_string(Bytes(1023)), "1023 B");
  EXPECT_EQ(to_string(Bytes(1024)), "1.00 KiB");
  EXPECT_EQ(to_string(Bytes(102236160)), "97.5 MiB");
  EXPECT_EQ(to_string(Bytes(8287842304)), "7.72 GiB");
  EXPECT_EQ(to_string(40_GiB), "40.0 GiB");
  EXPECT_EQ(to_string(Bytes(std::int64_t{3} << 40)), "3.00 TiB");
  EXPECT_EQ(to_string(Bytes(INT64_MAX)), "8.00 EiB");
}

TEST(ParseBytes, TakesANumberWithItsUnit) {
  EXPECT_EQ(parse_bytes("2GiB"), 2_GiB);
  EXPECT_EQ(parse_bytes("512 MiB"), 512_MiB);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1536_MiB);
  EXPECT_EQ(parse_bytes("7  KiB"), 7_KiB);
  EXPECT_EQ(parse_bytes("100 B"), Bytes(100));
  EXPECT_EQ(parse_bytes("4TiB"), 4096_GiB);
  EXPECT_EQ(parse_bytes("4194304TiB"), Bytes(std::int64_t{1} << 62));
  EXPECT_EQ(parse_bytes("0"), Bytes());
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* wrong : {"", "2", "2GB", "2gib", "-1GiB", "GiB", " 2GiB", "2GiB!", "2 ", "inf", "infGiB", "nanGiB",
                            "1e3GiB", "4194305TiB", "99999999999TiB", "9223372036854775808KiB"}) {
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
  }
}

TEST(Bytes, SeparatesThousands) {
  EXPECT_EQ(with_separators(0), "0");
  EXPECT_EQ(with_separators(999), "999");
  EXPECT_EQ(with_separators(1000), "1,000");
  EXPECT_EQ(with_separators(25557032), "25,557,032");
  EXPECT_EQ(with_separators(-1000), "-1,000");
  EXPECT_EQ(with_separators(-999), "-999");
  EXPECT_EQ(with_separators(INT64_MAX), "9,223,372,036,854,775,807");
}

constexpr std::int64_t kMost = INT64_MAX;

TEST(Checked, StartsAtZero) { EXPECT_EQ(Checked().value(), 0); }

TEST(Checked, AddsAndMultiplies) {
  EXPECT_EQ((Checked(6) + Checked(7)).value(), 13);
  EXPECT_EQ((Checked(6) * Checked(7)).value(), 42);
}

TEST(Checked, HoldsTheLargestCount) {
  EXPECT_EQ((Checked(kMost - 1) + Checked(1)).value(), kMost);
  EXPECT_EQ((Checked(kMost) * Checked(1)).value(), kMost);
}

TEST(Checked, IsInvalidBeyondTheLargestCount) {
  EXPECT_EQ((Checked(kMost) + Checked(1)).value(), std::nullopt);
  EXPECT_EQ((Checked(kMost / 2 + 1) * Checked(2)).value(), std::nullopt);
  EXPECT_EQ((Checked(std::int64_t{1} << 32) * Checked(std::int64_t{1} << 31)).value(), std::nullopt);
}

TEST(Checked, StaysInvalidOnceItWas) {
  Checked count = Checked(kMost) + Checked(1);
  count *= 0;
  EXPECT_FALSE(count.valid());
  EXPECT_FALSE((Checked(1) + count).valid());
}

TEST(Checked, RefusesNegativeCounts) {
  EXPECT_FALSE(Checked(-1).valid());
  EXPECT_FALSE((Checked(5) + Checked(-1)).valid());
  EXPECT_FALSE(Checked(INT64_MIN).valid());
}

static_assert((Checked(2) * Checked(3) + Checked(4)).value() == 10, "it computes at compile time");

}  // namespace
}  // namespace gpumem::core
