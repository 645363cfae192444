#include "gpumem/model/optimizers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <string>

namespace gpumem::model {
namespace {

TEST(Optimizers, EveryRowIsFoundByItsValueAndByItsName) {
  std::set<std::string_view> names;
  for (const OptimizerRow& row : kOptimizerRows) {
    EXPECT_EQ(&row_of(row.value), &row);
    EXPECT_EQ(name_of(kOptimizers, row.value), row.name);
    EXPECT_EQ(value_of(kOptimizers, row.name), row.value);
    names.insert(row.name);
  }
  EXPECT_EQ(names.size(), kOptimizerRows.size());
  EXPECT_EQ(kOptimizers.size(), kOptimizerRows.size());
}

TEST(Optimizers, NamesAreInLowerCase) {
  const auto plain = [](unsigned char letter) {
    return std::islower(letter) != 0 || std::isdigit(letter) != 0 || letter == '-';
  };
  for (const OptimizerRow& row : kOptimizerRows) {
    EXPECT_FALSE(row.name.empty());
    EXPECT_TRUE(std::all_of(row.name.begin(), row.name.end(), plain)) << row.name;
  }
  EXPECT_EQ(value_of(kOptimizers, "Adam"), std::nullopt);
}

TEST(Optimizers, EveryRowIsWhole) {
  for (const OptimizerRow& row : kOptimizerRows) {
    SCOPED_TRACE(row.name);
    EXPECT_NE(row.source.find(".py"), std::string_view::npos) << "it names the code that it follows";
    EXPECT_GE(row.states, 0);
    EXPECT_GE(row.scalars, 0);
    EXPECT_GE(row.single_temporaries, 0);
    EXPECT_TRUE(!row.single_keeps_last || row.single_temporaries > 0);
    EXPECT_GE(row.kernels, 1);
    EXPECT_GE(row.kernel_tensors, 3) << "it reads parameter and gradient, and writes the parameter";
    const bool bytes = row.state_shape == OptimizerRow::StateShape::blockwise ||  // a quarter of a parameter's size
                       row.state_shape == OptimizerRow::StateShape::half_bytes;
    EXPECT_GE(row.kernel_tensors, 3 + (bytes ? row.states / 2 : 2 * row.states)) << "it reads and writes each state";
    EXPECT_EQ(row.has_fused, row.fused_kernel_tensors > 0);
    EXPECT_LE(row.fused_kernel_tensors, row.kernel_tensors);
  }
}

TEST(Optimizers, ThePageOfOptionsNamesEveryRowAndNoOther) {
  std::ifstream page(GPUMEM_SOURCE_DIR "/docs/job-options.md");
  std::string wanted;
  for (const OptimizerRow& row : kOptimizerRows) wanted += (wanted.empty() ? "`" : ", `") + std::string(row.name) + "`";
  std::string found;
  for (std::string word; page >> word && word != "**Optimizers**:";) continue;
  for (std::string word; !found.ends_with('.') && page >> word;) found += (found.empty() ? "" : " ") + word;
  EXPECT_EQ(found, wanted + ".");
}

TEST(Optimizers, SayWhatTheyKeepOfAParameter) {
  EXPECT_EQ(optimizer_states(Optimizer::sgd), 0);
  EXPECT_EQ(optimizer_states(Optimizer::lion), 1);
  EXPECT_EQ(optimizer_states(Optimizer::adamw), 2);
  EXPECT_EQ(optimizer_states(Optimizer::adafactor), 0) << "it is factored";
  EXPECT_EQ(optimizer_states(Optimizer::paged_adamw), 2);
  EXPECT_EQ(optimizer_states(Optimizer::adamw_8bit), 0) << "bytes are not as large as a parameter";
}

TEST(Optimizers, StatesOfEightBitsHaveAFigureABlock) {
  const auto state = [](Optimizer optimizer, std::int64_t elements) {
    return state_bytes(row_of(optimizer), 0, elements, elements * 2, 0);
  };
  EXPECT_EQ(state(Optimizer::adamw_8bit, 4095), 4095 * 4) << "a small parameter's are float32";
  EXPECT_EQ(state(Optimizer::adamw_8bit, 4096), 4096 + 16 * 4);
  EXPECT_EQ(state(Optimizer::adamw_8bit, 4097), 4097 + 17 * 4);
  EXPECT_EQ(state(Optimizer::lion_8bit, 1 << 20), (1 << 20) + 4096 * 4);
}

TEST(Optimizers, StatesOfFourBitsAreOfEvenBlocksAlone) {
  const auto state = [](Optimizer optimizer, std::int64_t elements) {
    return state_bytes(row_of(optimizer), 0, elements, elements * 2, 0);
  };
  EXPECT_EQ(state(Optimizer::adamw_4bit, 4095), 4095 * 4) << "a small parameter's are float32";
  EXPECT_EQ(state(Optimizer::adamw_4bit, 4096), 2048 + 32 * 4);
  EXPECT_EQ(state(Optimizer::adamw_4bit, 4160), 4160 * 4) << "no whole number of blocks";
  EXPECT_EQ(state(Optimizer::adamw_fp8, 8192), 8192 + 32 * 4);
}

TEST(Optimizers, PagedStatesOfLargeParametersAreNotOnTheGpu) {
  const auto state = [](Optimizer optimizer, std::int64_t elements) {
    return state_bytes(row_of(optimizer), 0, elements, elements * 2, 0);
  };
  EXPECT_EQ(state(Optimizer::paged_adamw, 99999), 99999 * 4) << "float32, whatever the parameter is";
  EXPECT_EQ(state(Optimizer::paged_adamw, 100000), 0);
  EXPECT_EQ(state(Optimizer::paged_adamw_8bit, 4096), 4096 + 64);
  EXPECT_EQ(state(Optimizer::paged_adamw_8bit, 102400), 400 * 4) << "the blocks' figures stay";
}

TEST(Optimizers, MuonKeepsOneStateOfAMatrix) {
  const OptimizerRow& row = row_of(Optimizer::muon);
  EXPECT_EQ(state_bytes(row, 0, 12, 48, 7) + state_bytes(row, 1, 12, 48, 7), 48);
  EXPECT_EQ(state_bytes(row, 0, 12, 48, 0) + state_bytes(row, 1, 12, 48, 0), 96);
}

TEST(Optimizers, HalfStatesAndRemaindersHaveTwoBytes) {
  const OptimizerRow& row = row_of(Optimizer::adamw_half_states);
  EXPECT_EQ(state_bytes(row, 0, 1000, 4000, 0), 2000);
  EXPECT_EQ(state_bytes(row, 1, 1000, 4000, 0), 2000);
  EXPECT_EQ(master_bytes(row, 1000, true), 2000);
  EXPECT_EQ(master_bytes(row, 1000, false), 4000) << "parameters in float8 have whole masters";
  EXPECT_EQ(master_bytes(row_of(Optimizer::adamw), 1000, true), 4000);
}

}  // namespace
}  // namespace gpumem::model
