#include "gpumem/model/training_loop.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "gpumem/model/layout.hpp"

namespace gpumem::model {
namespace {

TEST(TrainingLoop, EveryRowIsFoundByItsValueAndByItsName) {
  std::set<std::string_view> names;
  for (const LoopRow& row : kLoopRows) {
    EXPECT_EQ(&row_of(row.value), &row);
    EXPECT_EQ(value_of(kLoops, row.name), row.value);
    EXPECT_FALSE(row.source.empty()) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  EXPECT_EQ(kLoops.size(), kLoopRows.size());
  EXPECT_EQ(value_of(kLoops, "trainer"), std::nullopt);
}

TEST(TrainingLoop, AScriptIsWhatPyTorchsExamplesWrite) {
  const LoopRow& script = row_of(Loop::script);
  EXPECT_TRUE(script.keeps_outputs);
  EXPECT_EQ(script.zero_grad, ZeroGrad::before_forward);
  EXPECT_EQ(row_of(Loop::lightning).zero_grad, ZeroGrad::before_backward)
      << "its closure zeroes behind the forward pass";
  EXPECT_EQ(row_of(Loop::hf_trainer).zero_grad, ZeroGrad::step_end);
}

TEST(TrainingLoop, AVersionOfTransformersHasItsRow) {
  EXPECT_EQ(transformers_of_version("4.37.2"), Transformers::v4_45);
  EXPECT_EQ(transformers_of_version("4.46.1"), Transformers::v4_48);
  EXPECT_EQ(transformers_of_version("4.51.0"), Transformers::v4_51);
  EXPECT_EQ(transformers_of_version("4.55.0.dev0"), Transformers::v4_52);
  EXPECT_EQ(transformers_of_version("4.57.6"), Transformers::v4_56);
  EXPECT_EQ(transformers_of_version("5.4.0"), Transformers::v5_0);
  EXPECT_EQ(transformers_of_version("5.10.4"), Transformers::v5_5);
  EXPECT_EQ(transformers_of_version("5.12.0"), Transformers::v5_11);
  for (const std::string_view none : {"", "4", "4.", ".5", "v4.5", "12345.1", "4,5"}) {
    EXPECT_EQ(transformers_of_version(none), std::nullopt) << none;
  }
}

TEST(TrainingLoop, SomeHandOutputsOutInFloat32) {
  EXPECT_EQ(row_of(Loop::script).outputs, OutputType::own);
  EXPECT_EQ(row_of(Loop::hf_trainer).outputs, OutputType::float_under_autocast);
  EXPECT_EQ(row_of(Loop::litgpt).outputs, OutputType::always_float);
  EXPECT_TRUE(row_of(Loop::litgpt).own_model);
}

TEST(MemorySavers, NamesOfAListDifferAndSayWhereANumberStands) {
  const auto check = [](const auto& list, std::size_t counted) {
    std::set<std::string_view> names;
    std::size_t numbers = 0;
    for (const auto& row : list) {
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
      if (row.name.ends_with(":N")) ++numbers;
    }
    EXPECT_EQ(numbers, counted);
  };
  check(kCheckpoints, 6);
  check(kLossForms, 3);
  EXPECT_EQ(CheckpointPolicy().kind, Checkpoints::full);
  EXPECT_EQ(LossForm().kind, LossForms::standard);
}

}  // namespace
}  // namespace gpumem::model
