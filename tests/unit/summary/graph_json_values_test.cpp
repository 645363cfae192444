#include "gpumem/summary/graph_json.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/core/json.hpp"

namespace gpumem::summary {
namespace {

using core::Dim;
using core::JsonDocument;

TEST(GraphJsonValues, ReadsShapes) {
  const auto shape_of = [](std::string_view json) {
    const auto document = JsonDocument::parse(json);
    const auto shape = shape_from_json(document->root());
    return shape ? core::to_string(*shape) : shape.error().message;
  };
  EXPECT_EQ(shape_of(R"(["N", 3, "49N", "?"])"), "[N, 3, 49N, ?]");
  EXPECT_EQ(shape_of("[]"), "[]");
  EXPECT_EQ(shape_of("3"), "a shape must be a list of dimensions");
  EXPECT_EQ(shape_of("[0]"), "a dimension is 0; it must be at least 1");
  EXPECT_EQ(shape_of("[1,1,1,1,1,1,1,1,1]"), "a shape has more than 8 dimensions");
  EXPECT_EQ(shape_of(R"([{"a": 1.5}])"), R"(a dimension must be a size, "N", "64N" or "?", not '{"a":1.5}')");
}

TEST(GraphJsonValues, ReadsAttributes) {
  const auto attribute_of = [](std::string_view json) {
    const auto document = JsonDocument::parse(json);
    return attribute_from_json(document->root());
  };
  EXPECT_EQ(*attribute_of("true"), model::AttributeValue(true));
  EXPECT_EQ(*attribute_of("7"), model::AttributeValue(std::int64_t{7}));
  EXPECT_EQ(*attribute_of("0.5"), model::AttributeValue(0.5));
  EXPECT_EQ(*attribute_of("\"same\""), model::AttributeValue(std::string("same")));
  EXPECT_EQ(*attribute_of("[3, -3]"), model::AttributeValue(std::vector<std::int64_t>{3, -3}));
  EXPECT_EQ(*attribute_of("[]"), model::AttributeValue(std::vector<std::int64_t>{}));
  EXPECT_EQ(*attribute_of(R"(["N", -1, 4])"),
            model::AttributeValue(std::vector<Dim>{Dim::batch(), Dim::fixed(-1), Dim::fixed(4)}));
  for (const std::string_view json : {"null", "{}", R"(["?"])", R"(["N", -2])", "[1.5]", "[[1]]"}) {
    EXPECT_FALSE(attribute_of(json)) << json;
  }
}

}  // namespace
}  // namespace gpumem::summary
