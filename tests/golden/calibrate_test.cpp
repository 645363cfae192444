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

TEST(FitSite, IsTheMedianOfWhatReservedMemoryLeaves) {
  const auto fit = fit_site({run_of(100, 600), run_of(1000, 1510), run_of(20, 540)}, Fake(), gpu());
  ASSERT_TRUE(succeeds(fit));
  EXPECT_EQ(fit->runs, 3);
  EXPECT_EQ(fit->unusable, 0);
  EXPECT_DOUBLE_EQ(fit->median_mib, 510.0);
  EXPECT_DOUBLE_EQ(fit->p10_mib, 502.0);
  EXPECT_DOUBLE_EQ(fit->p90_mib, 518.0);
}

TEST(FitSite, LeavesOutRunsThatDoNotTellIt) {
  std::vector<datasets::MeasuredRun> all(6, run_of(1, 9999));
  all[0].figure = datasets::Figure::growth;
  all[1].gpus = 2;
  all[2].gpu = "a100-40gb";
  all[3].out_of_memory = true;
  all[4].measured_mib.reset();
  all[5].error = Error{ErrorCode::malformed_input, "broken", {}};
  EXPECT_TRUE(fails(fit_site(all, Fake(), gpu()), ErrorCode::missing_information, 0, "not the device's used memory"));
  all.push_back(run_of(1, 301));
  all.push_back(run_of(1, 301));
  all.back().gpu.clear();
  const auto fit = fit_site(all, Fake(), gpu());
  ASSERT_TRUE(succeeds(fit));
  EXPECT_EQ(fit->runs, 2);
  EXPECT_EQ(fit->unusable, 6);
  EXPECT_DOUBLE_EQ(fit->median_mib, 300.0);
}

TEST(FitSite, NeedsReservedMemoryBelowTheMeasured) {
  const std::vector<datasets::MeasuredRun> all = {run_of(500, 400)};
  EXPECT_TRUE(fails(fit_site(all, Fake(false), gpu()), ErrorCode::missing_information, 0, "reserved memory"));
  EXPECT_TRUE(fails(fit_site(all, Fake(), gpu()), ErrorCode::missing_information, 0, "above all that was measured"));
  EXPECT_TRUE(fails(fit_site({}, Fake(), gpu()), ErrorCode::missing_information, 0, "no run"));
}

/// A profile's rule, or the deviation that a site shows.
class FakeWorkspaces final : public Estimator {
 public:
  [[nodiscard]] std::string_view name() const override { return "fake"; }

 private:
  /// Reserves twice the batch in MiB under the variant "none", else a share more that differs from batch to batch.
  [[nodiscard]] Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis, const GpuProfile& gpu) const override {
    const std::int64_t batch = analysis.job().batch_size;
    MemoryEstimate estimate;
    const bool none = gpu.convolution_workspace.variant.name == "none";
    estimate.reserved = Bytes((2 * batch + (none ? 0 : batch)) << 20);
    return estimate;
  }
};

TEST(FitSite, LearnsFromThreeRunsHowWorkspacesAreTaken) {
  const std::vector<datasets::MeasuredRun> all = {run_of(100, 500 + 200), run_of(200, 500 + 400),
                                                  run_of(300, 500 + 600)};
  const auto fit = fit_site(all, FakeWorkspaces(), gpu());
  ASSERT_TRUE(succeeds(fit));
  EXPECT_EQ(fit->variant.name, "none");
  EXPECT_DOUBLE_EQ(fit->median_mib, 500.0);
  EXPECT_DOUBLE_EQ(fit->most_mib - fit->least_mib, 0.0);
  EXPECT_DOUBLE_EQ(fit->spread_by_rule_mib, 200.0);
  const auto profile = calibrated_profile(device::builtin_profiles()[0].json, "mine", *fit, "three runs");
  ASSERT_TRUE(succeeds(profile));
  EXPECT_EQ(device::parse_profile(*profile)->convolution_workspace.variant.name, "none");
  EXPECT_TRUE(device::parse_profile(*profile)->convolution_workspace.fitted);

  const auto two = fit_site({all[0], all[1]}, FakeWorkspaces(), gpu());
  ASSERT_TRUE(succeeds(two));
  EXPECT_TRUE(two->variant.name.empty()) << "two runs can be explained by anything";
}

TEST(FitSite, KeepsTheRuleWhereNothingExplainsTheRuns) {
  const auto fit =
      fit_site({run_of(100, 800), run_of(200, 1500), run_of(300, 1310), run_of(310, 1900)}, FakeWorkspaces(), gpu());
  ASSERT_TRUE(succeeds(fit));
  EXPECT_TRUE(fit->variant.name.empty());
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
