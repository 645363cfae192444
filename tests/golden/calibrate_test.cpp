// Fits the context of a GPU to runs, with an estimator whose answer is known.
#include "../../src/cli/calibrate.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "run_tables.hpp"

namespace gpumem::cli {
namespace {

using testing::fails;
using testing::succeeds;

/// Says that a job of batch size n reserves n MiB.
class Fake final : public Estimator {
 public:
  explicit Fake(bool tells_reserved = true) : tells_reserved_(tells_reserved) {}
  [[nodiscard]] std::string_view name() const override { return "fake"; }

 private:
  [[nodiscard]] Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis, const GpuProfile&) const override {
    MemoryEstimate estimate;
    if (tells_reserved_) estimate.reserved = Bytes(analysis.job().batch_size << 20);
    return estimate;
  }

  bool tells_reserved_;
};

const GpuProfile& gpu() {
  static const Result<GpuProfile> kGpu = find_profile("t4-16gb");
  return *kGpu;
}

datasets::MeasuredRun run_of(std::int64_t batch, double measured_mib) {
  datasets::MeasuredRun run;
  run.job = TrainingJob(testing::small_model("small.txt"), batch);
  run.gpu = "t4";
  run.measured_mib = measured_mib;
  return run;
}

TEST(FitContext, IsTheMedianOfWhatReservedMemoryLeaves) {
  const auto fit = fit_context({run_of(100, 600), run_of(1000, 1510), run_of(20, 540)}, Fake(), gpu());
  ASSERT_TRUE(succeeds(fit));
  EXPECT_EQ(fit->runs, 3);
  EXPECT_EQ(fit->unusable, 0);
  EXPECT_DOUBLE_EQ(fit->median_mib, 510.0);
  EXPECT_DOUBLE_EQ(fit->p10_mib, 502.0);
  EXPECT_DOUBLE_EQ(fit->p90_mib, 518.0);
}

TEST(FitContext, LeavesOutRunsThatDoNotTellIt) {
  std::vector<datasets::MeasuredRun> all(6, run_of(1, 9999));
  all[0].figure = datasets::Figure::growth;
  all[1].gpus = 2;
  all[2].gpu = "a100-40gb";
  all[3].out_of_memory = true;
  all[4].measured_mib.reset();
  all[5].error = Error{ErrorCode::malformed_input, "broken", {}};
  EXPECT_TRUE(
      fails(fit_context(all, Fake(), gpu()), ErrorCode::missing_information, 0, "not the device's used memory"));
  all.push_back(run_of(1, 301));
  all.push_back(run_of(1, 301));
  all.back().gpu.clear();
  const auto fit = fit_context(all, Fake(), gpu());
  ASSERT_TRUE(succeeds(fit));
  EXPECT_EQ(fit->runs, 2);
  EXPECT_EQ(fit->unusable, 6);
  EXPECT_DOUBLE_EQ(fit->median_mib, 300.0);
}

TEST(FitContext, NeedsReservedMemoryBelowTheMeasured) {
  const std::vector<datasets::MeasuredRun> all = {run_of(500, 400)};
  EXPECT_TRUE(fails(fit_context(all, Fake(false), gpu()), ErrorCode::missing_information, 0, "reserved memory"));
  EXPECT_TRUE(fails(fit_context(all, Fake(), gpu()), ErrorCode::missing_information, 0, "above all that was measured"));
  EXPECT_TRUE(fails(fit_context({}, Fake(), gpu()), ErrorCode::missing_information, 0, "no run"));
}

TEST(CalibratedProfile, IsTheOldOneWithTheNewContext) {
  for (const device::BuiltinProfile& builtin : device::builtin_profiles()) {
    const auto text = calibrated_profile(builtin.json, "my-gpu", {.runs = 3, .median_mib = 510.5}, "three runs");
    ASSERT_TRUE(succeeds(text)) << builtin.name;
    const auto before = device::parse_profile(builtin.json);
    const auto after = device::parse_profile(*text);
    ASSERT_TRUE(succeeds(after)) << builtin.name;
    EXPECT_EQ(after->name, "my-gpu");
    EXPECT_EQ(after->capacity(), before->capacity());
    ASSERT_EQ(after->contexts.size(), 1U);
    EXPECT_EQ(after->contexts[0].bytes, 535298048);  // 510.5 MiB
    EXPECT_EQ(after->contexts[0].source, "three runs");
  }
  EXPECT_TRUE(fails(calibrated_profile("no", "x", {}, "y"), ErrorCode::malformed_input, 0, "not JSON"));
}

}  // namespace
}  // namespace gpumem::cli
