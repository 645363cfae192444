#include "job_json.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "option_values.hpp"

namespace gpumem::job_json {
namespace {

using testing::fails;
using testing::succeeds;
using Json = nlohmann::ordered_json;

Json other_json(const job::JobOption& option) { return to_json(option.place.get(testing::with_other_value(option))); }

TEST(JobJson, HoldsEveryOption) {
  for (const job::JobOption& option : job::job_options()) {
    const job::JobRequest expected = testing::with_other_value(option);
    const auto named = fields_from({{std::string(option.name), other_json(option)}}, {});
    ASSERT_TRUE(succeeds(named)) << option.name;
    EXPECT_EQ(*named, expected) << option.name;
    for (const std::string_view alias : option.aliases) {
      if (alias.empty()) continue;
      const auto renamed = fields_from({{std::string(alias), other_json(option)}}, {});
      ASSERT_TRUE(succeeds(renamed)) << alias;
      EXPECT_EQ(*renamed, expected) << alias;
    }
    const auto kept = fields_from({{"id", 7}}, expected);
    ASSERT_TRUE(succeeds(kept));
    EXPECT_EQ(*kept, expected) << option.name;
  }
}

TEST(JobJson, RefusesAnotherTypeForEveryOption) {
  for (const job::JobOption& option : job::job_options()) {
    const std::string name(option.name);
    const bool is_fraction = option.place.type == job::OptionType::fraction;
    for (const Json& wrong : {Json(nullptr), is_fraction ? Json("1.5") : Json(1.5), Json::object(), Json({"3"})}) {
      EXPECT_TRUE(fails(fields_from({{name, wrong}}, {}), ErrorCode::malformed_input, 0,
                        "the field '" + name + "' has the wrong type"))
          << wrong;
    }
    const bool is_flag = option.place.type == job::OptionType::flag;
    const bool takes_both = option.place.type == job::OptionType::switch_or_choice;
    if (name == "reshard_after_forward") continue;  // PyTorch's own is a switch or a number
    EXPECT_FALSE(fields_from({{name, is_flag ? Json("true") : takes_both ? Json(1) : Json(true)}}, {})) << name;
  }
}

TEST(JobJson, TakesAShapeAsTextToo) {
  const auto request = fields_from({{"input", "3x5x7"}}, {});
  ASSERT_TRUE(succeeds(request));
  EXPECT_EQ(request->training.input_shape, (std::vector<std::int64_t>{3, 5, 7}));
}

TEST(JobJson, TakesAChoiceThatIsANumberAsOne) {
  const auto third = fields_from({{"rank", 3}, {"reshard_after_forward", 4}}, {});
  ASSERT_TRUE(succeeds(third));
  EXPECT_EQ(third->training.layout.rank.count, 3);
  EXPECT_EQ(third->training.layout.reshard_after_forward.count, 4);
  const auto freed = fields_from({{"reshard_after_forward", true}}, {});
  ASSERT_TRUE(succeeds(freed));
  EXPECT_EQ(freed->training.layout.reshard_after_forward.kind, model::Reshard::always);
  EXPECT_TRUE(fails(fields_from({{"optimizer", 3}}, {}), ErrorCode::invalid_argument, 0, "there is no optimizer '3'"));
}

TEST(JobJson, SaysWhatIsMissingAndWhatThereIs) {
  EXPECT_TRUE(fails(request_from({{"batch", 1}}, {}), ErrorCode::malformed_input, 0, "names no \"summary\""));
  EXPECT_TRUE(fails(request_from({{"summary", "a.txt"}}, {}), ErrorCode::malformed_input, 0, "no \"batch_size\""));
  EXPECT_TRUE(fails(request_from(Json(1), {}), ErrorCode::malformed_input, 0, "one JSON object"));
  EXPECT_TRUE(fails(fields_from({{"colour", 1}}, {}), ErrorCode::malformed_input, 0, "no field 'colour'; its fields"));
  const auto unknown = fields_from({{"colour", 1}}, {});
  for (const job::JobOption& option : job::job_options()) {
    EXPECT_NE(unknown.error().message.find(option.name), std::string::npos) << option.name;
  }
}

}  // namespace
}  // namespace gpumem::job_json
