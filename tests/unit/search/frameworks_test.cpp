#include "gpumem/search/frameworks.hpp"

#include <set>

#include "expect.hpp"

namespace gpumem::search {
namespace {

using testing::fails;
using testing::succeeds;

TEST(Frameworks, HaveNamesOfTheirOwnAndSayWhatTheyWrite) {
  std::set<std::string_view> names;
  for (const Framework& framework : frameworks()) {
    EXPECT_TRUE(names.insert(framework.name).second) << framework.name;
    EXPECT_NE(framework.name, "any");
    EXPECT_FALSE(framework.settings.empty()) << framework.name;
    EXPECT_FALSE(framework.shardings(8, 1, 8).empty()) << framework.name;
    EXPECT_FALSE(framework.checkpointings().empty()) << framework.name;
    EXPECT_FALSE(framework.checkpointings().front().on) << framework.name << ": none is the first";
  }
}

TEST(Frameworks, AreFoundByNameOrAllTogether) {
  const auto all = frameworks_of("any");
  ASSERT_TRUE(succeeds(all));
  EXPECT_EQ(all->size(), frameworks().size());
  const auto one = frameworks_of("megatron");
  ASSERT_TRUE(succeeds(one));
  ASSERT_EQ(one->size(), 1U);
  EXPECT_EQ(one->front()->name, "megatron");
  EXPECT_TRUE(fails(frameworks_of("horovod"), core::ErrorCode::invalid_argument, 0,
                    "choose one of fsdp2, megatron, deepspeed, fsdp1, any"));
}

TEST(Frameworks, AQuestionNamesFrameworksAndTheAllocator) {
  const auto asked = question_about("megatron", "max_split_size_mb:64");
  ASSERT_TRUE(succeeds(asked));
  ASSERT_EQ(asked->frameworks.size(), 1U);
  EXPECT_EQ(asked->frameworks.front()->name, "megatron");
  EXPECT_EQ(asked->allocator, *device::parse_allocator_options("max_split_size_mb:64"));
  EXPECT_FALSE(question_about("horovod", ""));
  EXPECT_FALSE(question_about("any", "max_split_size_mb:small"));
}

}  // namespace
}  // namespace gpumem::search
