// The step that follows from an exported graph takes what PyTorch's recorded step does: for small nets, each around one
// operation (golden/operations, made by tests/recorder/op_nets.py), and for models of timm (golden/timm_nets, made by
// tests/recorder/timm_nets.py). Recordings hold the calls of PyTorch 2.6.
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

constexpr std::string_view kRecording = ".recording.json.gz";

/// Paths of the nets of a folder, without their endings.
std::vector<std::string> nets_of(const std::string& folder) {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(std::string(GPUMEM_GOLDEN_DIR) + "/" + folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(kRecording)) all.push_back(path.substr(0, path.size() - kRecording.size()));
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// The most that is live in tensors and what kernels hold in addition; -1 and a failure where there is no plan.
double peak_of(const std::string& file, std::int64_t batch_size) {
  const auto graph = read_summary(file);
  EXPECT_TRUE(testing::succeeds(graph)) << file;
  if (!graph) return -1;
  TrainingJob job(*graph, batch_size);
  analysis::Analysis analysis(job);
  const auto made = analysis.steps();
  EXPECT_TRUE(testing::succeeds(made)) << file;
  return made ? static_cast<double>((*made)->peak_bytes) : -1;
}

// What differs, as a share of the recorded peak, and why.
const std::map<std::string, double> kKnownOperations = {
    // value_selecting_reduction_backward scatters into new zeros in place, except the subclass of a recording.
    {"values_of_max", 0.02},
    // A gradient whose axes are permuted is copied by softmax's kernel; a plan knows only whether gradients are spread.
    {"softmax_of_permuted", 0.14},
};

TEST(Operations, TakeInTheGraphsStepWhatPyTorchRecords) {
  const std::vector<std::string> nets = nets_of("operations");
  ASSERT_GE(nets.size(), 20U);
  for (const std::string& net : nets) {
    const double recorded = peak_of(net + std::string(kRecording), 16);
    const auto known = kKnownOperations.find(fs::path(net).filename().string());
    const double allowed = known == kKnownOperations.end() ? 0.0001 : known->second;
    EXPECT_NEAR(peak_of(net + ".graph.json", 16), recorded, allowed * recorded) << net;
  }
}

TEST(TimmNets, TakeInTheGraphsStepWhatPyTorchRecords) {
  const std::vector<std::string> nets = nets_of("timm_nets");
  ASSERT_GE(nets.size(), 7U);
  for (const std::string& net : nets) {
    const double recorded = peak_of(net + std::string(kRecording), 8);
    EXPECT_NEAR(peak_of(net + ".graph.json.gz", 8), recorded, 0.005 * recorded) << net;
  }
}

}  // namespace
}  // namespace gpumem
