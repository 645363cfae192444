#include "ms_swift.hpp"

#include <gtest/gtest.h>

#include "wanted_options.hpp"

namespace gpumem::trainer_files {
namespace {

TEST(MsSwift, MegatronTrainsInFewerBits) {
  const std::string base = R"({"model": "m", "micro_batch_size": "1", "global_batch_size": "16", )";
  const TrainerJob gathers = parsed(base + R"("fp8_format": "e4m3", "fp8_recipe": "blockwise", "fp8_param_gather": true,
    "use_precision_aware_optimizer": true, "exp_avg_dtype": "bf16", "exp_avg_sq_dtype": "bf16"})");
  expect_wanted(gathers, {{"quantize", "float8-params"}, {"optimizer", "adamw-half-states"}});
  EXPECT_EQ(gathers.not_modelled, std::vector<std::string>{});
  expect_wanted(parsed(base + R"("fp8_format": "hybrid", "fp8_recipe": "mxfp8"})"), {{"quantize", "mxfp8"}});
  const TrainerJob one = parsed(base + R"("fp8_format": "hybrid", "exp_avg_dtype": "bf16"})");
  expect_wanted(one, {{"quantize", "float8"}, {"optimizer", "adamw"}});
  EXPECT_EQ(one.not_modelled, std::vector<std::string>{"exp_avg_dtype bf16"});
}

}  // namespace
}  // namespace gpumem::trainer_files
