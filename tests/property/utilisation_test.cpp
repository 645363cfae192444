// What holds for every estimate of utilisation, of any model, batch and GPU: shares within 0 and 1 and in their order,
// a part no larger than what it is a part of, and a GPU that larger batches keep busier.
#include <algorithm>
#include <filesystem>

#include "gpumem/utilisation/utilisation_estimators.hpp"
#include "graphs.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

using testing::succeeds;
using utilisation::Share;
using utilisation::UtilisationEstimate;

constexpr std::array<const char*, 5> kGpus = {"a100-40gb", "h200-141gb", "t4-16gb", "v100-16gb",
                                              "a100-40gb-mig-1g.5gb"};

TrainingJob job_of(const fs::path& file, std::int64_t batch_size) {
  auto graph = read_summary(file.string());
  EXPECT_TRUE(succeeds(graph)) << file;
  TrainingJob job(graph ? *std::move(graph) : ModelGraph(), batch_size);
  if (graph && job.graph->graph_inputs()[0].dtype == core::DType::int64) job.sequence_length = 64;
  return job;
}

void expect_ordered(const UtilisationEstimate& estimate, const std::string& what) {
  for (const auto& [name, share] : estimate.counters()) {
    EXPECT_LE(0.0, share.lower) << what << " " << name;
    EXPECT_LE(share.lower, share.expected) << what << " " << name;
    EXPECT_LE(share.expected, share.upper) << what << " " << name;
    EXPECT_LE(share.upper, 1.0) << what << " " << name;
  }
  EXPECT_LE(estimate.smocc.expected, estimate.smact.expected) << what;
  EXPECT_LE(estimate.fp32.expected, estimate.smact.expected) << what;
}

TEST(Utilisation, OfEveryShippedModelIsAShareInItsRange) {
  for (const auto& entry : utilisation::utilisation_estimators()) {
    const auto estimator = utilisation::make_utilisation_estimator(entry.name);
    ASSERT_TRUE(succeeds(estimator));
    for (const auto& file : fs::directory_iterator(GPUMEM_SOURCE_DIR "/models/graphs")) {
      if (file.path().extension() != ".json") continue;
      for (const char* gpu : kGpus) {
        for (const std::int64_t batch : {1, 7, 64}) {
          const std::string what = std::string(entry.name) + " " + file.path().stem().string() + " " + gpu;
          const auto estimate = (*estimator)->estimate(job_of(file.path(), batch), *find_profile(gpu));
          ASSERT_TRUE(succeeds(estimate)) << what;
          EXPECT_EQ(estimate->gpu, gpu);
          expect_ordered(*estimate, what);
        }
      }
    }
  }
}

TEST(Utilisation, GrowsWithTheBatchUntilTheGpuIsFull) {
  const utilisation::Roofline roofline;
  for (const char* name : {"resnet50", "vgg16", "densenet121", "vit_b_16"}) {
    double before = 0.0;
    for (const std::int64_t batch : {1, 2, 4, 8, 16, 32, 64, 128}) {
      const auto estimate =
          roofline.estimate(job_of(fs::path(GPUMEM_SOURCE_DIR "/models/graphs") / (std::string(name) + ".json"), batch),
                            *find_profile("a100-40gb"));
      ASSERT_TRUE(succeeds(estimate));
      // Reading a batch costs the host in proportion, so that a full GPU's share stays.
      EXPECT_GE(estimate->smact.expected, before - 0.02) << name << " at batch " << batch;
      before = std::max(before, estimate->smact.expected);
    }
    EXPECT_GT(before, 0.5) << name;
  }
}

}  // namespace
}  // namespace gpumem
