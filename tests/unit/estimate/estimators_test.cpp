#include "gpumem/estimate/estimator.hpp"

#include <set>
#include <thread>
#include <vector>

#include "graphs.hpp"

namespace gpumem::estimate {
namespace {

TEST(Estimators, EachIsMadeUnderItsOwnName) {
  std::set<std::string_view> names;
  for (const EstimatorEntry& entry : estimators()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.description.empty()) << entry.name;
    const auto made = make_estimator(entry.name);
    ASSERT_TRUE(testing::succeeds(made)) << entry.name;
    EXPECT_EQ((*made)->name(), entry.name);
  }
  EXPECT_TRUE(names.contains("horus"));
}

TEST(Estimators, EachServesManyThreads) {
  constexpr int kThreads = 4;
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json");
  const auto gpu = find_profile("a100-40gb");
  ASSERT_TRUE(testing::succeeds(graph));
  const TrainingJob job(*graph, 32);
  for (const EstimatorEntry& entry : estimators()) {
    const auto estimator = entry.create({});
    ASSERT_TRUE(testing::succeeds(estimator));
    const Bytes alone = (*estimator)->estimate(job, *gpu)->expected;
    std::vector<Bytes> together(kThreads);
    std::vector<std::thread> threads;
    for (Bytes& answer : together) {
      // Reading shares the lists of ops and formats, which are made at first use.
      threads.emplace_back([&] {
        const auto own = read_summary(GPUMEM_SOURCE_DIR "/models/summaries/resnet50.module_tree.txt");
        if (own) answer = (*estimator)->estimate(job, *gpu)->expected;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(together, std::vector<Bytes>(kThreads, alone)) << entry.name;
  }
}

TEST(Estimators, NoneIsCalledAll) {
  for (const EstimatorEntry& entry : estimators()) EXPECT_NE(entry.name, "all") << "the command line takes it for all";
}

TEST(MakeEstimator, ListsTheNames) {
  EXPECT_TRUE(testing::fails(make_estimator("horos"), core::ErrorCode::invalid_argument, 0,
                             "no estimator 'horos'; choose one of replay, replay-corrected, horus"));
}

}  // namespace
}  // namespace gpumem::estimate
