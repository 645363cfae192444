#include "gpumem/ml/trained_model.hpp"

#include "expect.hpp"

namespace gpumem::ml {
namespace {

using core::ErrorCode;

TEST(BuiltinModels, LoadAndAreNamedAsTheirFolders) {
  EXPECT_GE(builtin_models().size(), 7U);
  for (const BuiltinModel& builtin : builtin_models()) {
    const auto model = find_model(builtin.name);
    ASSERT_TRUE(testing::succeeds(model)) << builtin.name;
    EXPECT_EQ(model->config.name, builtin.name);
    EXPECT_TRUE(builtin.name.ends_with("-" + std::string(model::name_of(kNetKinds, model->config.nets))))
        << builtin.name;
  }
}

TEST(BuiltinModels, SayWhereTheyCameFrom) {
  for (const BuiltinModel& builtin : builtin_models()) {
    const auto model = find_model(builtin.name);
    ASSERT_TRUE(testing::succeeds(model));
    for (const char* field : {"data", "gpu", "licence", "profile"}) {
      const auto& entries = model->config.provenance;
      EXPECT_TRUE(std::any_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == field; }))
          << builtin.name << ": " << field;
    }
  }
}

TEST(BuiltinModels, AreFoundByTheBeginningOfTheirNames) {
  const auto perceptrons = find_models("gpumemnet-mlp-");
  ASSERT_TRUE(testing::succeeds(perceptrons));
  EXPECT_EQ(perceptrons->size(), 3U);
  EXPECT_TRUE(testing::fails(find_models("crystal-ball-"), ErrorCode::invalid_argument, 0, "crystal-ball-"));
}

TEST(BuiltinModels, AFolderIsLoaded) {
  EXPECT_TRUE(testing::succeeds(find_model(GPUMEM_SOURCE_DIR "/tests/golden/models/bins")));
  EXPECT_TRUE(testing::fails(find_model("./nowhere"), ErrorCode::unreadable_file, 0, ""));
  EXPECT_TRUE(testing::fails(find_model("crystal-ball"), ErrorCode::invalid_argument, 0, "choose one of gpumemnet-"));
}

}  // namespace
}  // namespace gpumem::ml
