// Small nets, each around one operation: the step that follows from the exported graph takes what PyTorch's recorded
// step does. golden/operations is made by tests/recorder/op_nets.py; recordings hold the calls of PyTorch 2.6.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "expect.hpp"
#include "gpumem/all.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names() {
  constexpr std::string_view kEnding = ".graph.json";
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(GPUMEM_GOLDEN_DIR "/operations")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kEnding)) all.push_back(name.substr(0, name.size() - kEnding.size()));
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// The most that is live in tensors and what kernels hold in addition; -1 and a failure where there is no plan.
std::int64_t peak_of(const std::string& file) {
  const auto graph = read_summary(GPUMEM_GOLDEN_DIR "/operations/" + file);
  EXPECT_TRUE(testing::succeeds(graph)) << file;
  if (!graph) return -1;
  TrainingJob job(*graph, 16);
  analysis::Analysis analysis(job);
  const auto made = analysis.steps();
  EXPECT_TRUE(testing::succeeds(made)) << file;
  return made ? (*made)->peak_bytes : -1;
}

// What differs, as a share of the recorded peak, and why.
const std::map<std::string, double> kKnown = {
    // value_selecting_reduction_backward scatters into new zeros in place, except the subclass of a recording.
    {"values_of_max", 0.02},
};

TEST(Operations, TakeInTheGraphsStepWhatPyTorchRecords) {
  ASSERT_GE(names().size(), 20U);
  for (const std::string& name : names()) {
    const auto graph = static_cast<double>(peak_of(name + ".graph.json"));
    const auto recorded = static_cast<double>(peak_of(name + ".recording.json.gz"));
    const auto known = kKnown.find(name);
    const double allowed = known == kKnown.end() ? 0.0001 : known->second;
    EXPECT_NEAR(graph, recorded, allowed * recorded) << name;
  }
}

}  // namespace
}  // namespace gpumem
