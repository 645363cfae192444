#include "gpumem/core/json.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gpumem::core {
namespace {

using Kind = JsonValue::Kind;

TEST(JsonValue, HoldsOneOfEachKind) {
  EXPECT_TRUE(JsonValue::null().is(Kind::null));
  EXPECT_TRUE(JsonValue::boolean(true).boolean());
  EXPECT_EQ(JsonValue::integer(-7).integer(), -7);
  EXPECT_EQ(JsonValue::real(0.5).real(), 0.5);
  EXPECT_EQ(JsonValue::text("a").text(), "a");
  EXPECT_EQ(JsonValue::unsigned_integer(7).kind(), Kind::integer);
  EXPECT_EQ(JsonValue::unsigned_integer(UINT64_MAX).kind(), Kind::beyond_int64);
  EXPECT_EQ(JsonValue::unsigned_integer(UINT64_MAX).unsigned_integer(), UINT64_MAX);
}

TEST(JsonValue, ComparesNumbersAsNumbers) {
  EXPECT_TRUE(JsonValue::integer(1).is(1));
  EXPECT_TRUE(JsonValue::real(1.0).is(1));
  EXPECT_FALSE(JsonValue::real(1.5).is(1));
  EXPECT_FALSE(JsonValue::boolean(true).is(1));
  EXPECT_FALSE(JsonValue::text("1").is(1));
  EXPECT_TRUE(JsonValue::text("1").is("1"));
}

TEST(JsonValue, ItemsSkipWhatIsInsideThem) {
  std::vector<JsonValue> values = {JsonValue::object(), JsonValue::list(), JsonValue::integer(1),
                                   JsonValue::integer(2)};
  values[0].set_extent(4);
  values[1].set_extent(2);
  values[1].set_key("list");
  values[3].set_key("two");
  std::vector<std::string_view> keys;
  for (const JsonValue& item : values[0].items()) keys.push_back(item.key());
  EXPECT_EQ(keys, (std::vector<std::string_view>{"list", "two"}));
}

}  // namespace
}  // namespace gpumem::core
