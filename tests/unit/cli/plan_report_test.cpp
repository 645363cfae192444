#include "plan_report.hpp"

#include <gtest/gtest.h>

#include "gpumem/search/frameworks.hpp"

namespace gpumem::cli {
namespace {

constexpr std::int64_t kGpuBytes = 1000;

GpuProfile gpu() {
  GpuProfile made;
  made.memory_bytes.value = kGpuBytes;
  return made;
}

estimate::MemoryEstimate up_to(std::int64_t upper) {
  estimate::MemoryEstimate memory;
  memory.expected = core::Bytes(500);
  memory.upper = core::Bytes(upper);
  memory.fits = true;
  return memory;
}

search::LayoutPlan plan_of(std::int64_t upper, double seconds) {
  search::PlannedLayout layout;
  layout.framework = &search::frameworks().front();
  layout.memory = up_to(upper);
  layout.time.compute = layout.step = seconds;
  search::LayoutPlan plan;
  plan.candidates = 4;
  plan.fitting = 1;
  plan.layouts.push_back(std::move(layout));
  return plan;
}

search::Explanation told_of(std::int64_t upper, double seconds) {
  search::Explanation told;
  told.framework = &search::frameworks().front();
  told.memory = up_to(upper);
  told.time = search::LayoutTime{.compute = seconds};
  return told;
}

bool says(const search::Explanation& told, const search::LayoutPlan& plan, std::string_view words) {
  return to_text(told, plan, gpu()).find(words) != std::string::npos;
}

TEST(PlanReport, SaysWhereHeadroomDecidesAndNotTime) {
  EXPECT_TRUE(says(told_of(kGpuBytes, 1.0), plan_of(900, 2.0),
                   "1 s a step, faster than layout 1, which comes first because it has headroom\n"));
  EXPECT_TRUE(says(told_of(900, 1.0), plan_of(900, 2.0), "1 s a step, faster than layout 1\n")) << "both have some";
  EXPECT_TRUE(says(told_of(kGpuBytes, 1.0), plan_of(kGpuBytes, 2.0), "faster than layout 1\n")) << "neither has";
  EXPECT_TRUE(says(told_of(kGpuBytes, 2.0), plan_of(900, 2.0), "2 s a step, as layout 1\n"));
}

TEST(PlanReport, CountsThoseWithoutHeadroomThatGaveWay) {
  search::LayoutPlan plan = plan_of(900, 1.0);
  const PlanShown shown = {.settings = 0};
  EXPECT_NE(to_text(plan, gpu(), shown).find("3 are as fast or faster but do not fit\n"), std::string::npos);
  plan.fitting = 2;
  EXPECT_NE(to_text(plan, gpu(), shown).find("2 are as fast or faster but do not fit, 1 fits without headroom\n"),
            std::string::npos);
}

}  // namespace
}  // namespace gpumem::cli
