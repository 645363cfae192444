// The peaks that PyTorch's FakeTensorMode reports (fake_tensor/peaks.json, made by bench/references/fake_tensor.py)
// against the fake-tensor estimators: every row whose graph is shipped.
#include "gpumem/estimate/published.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "golden.hpp"
#include "graphs.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

constexpr double kFakeTensorTolerance = 0.005;

nlohmann::json rows() {
  nlohmann::json all = nlohmann::json::array();
  for (const char* file : {"peaks.json", "peaks_2.6.json"}) {
    const auto peaks = nlohmann::json::parse(testing::text_of(fs::path(GPUMEM_GOLDEN_DIR) / "fake_tensor" / file));
    all.insert(all.end(), peaks.begin(), peaks.end());
  }
  return all;
}

/// The graph of a row: next to the peaks, or one of models/graphs.
fs::path graph_of(const nlohmann::json& row) {
  if (row.contains("graph")) {
    return fs::path(GPUMEM_GOLDEN_DIR) / "fake_tensor" / row["graph"].get<std::string>();
  }
  return fs::path(GPUMEM_SOURCE_DIR "/models/graphs") / (row["model"].get<std::string>() + ".json");
}

TrainingJob recorded_job(const nlohmann::json& row, const ModelGraph& graph) {
  TrainingJob job(graph, row["batch"].get<std::int64_t>());
  const auto input = row["input"].get<std::vector<std::int64_t>>();
  if (graph.graph_inputs()[0].dtype == core::DType::int64) {
    job.sequence_length = input.back();
  } else {
    job.input_shape = input;
  }
  job.optimizer =
      model::value_of(model::kOptimizers, row["optimizer"].get<std::string>()).value_or(model::Optimizer::sgd);
  return job;
}

TEST(FakeTensorPeaks, AreMetWithinHalfAPercent) {
  const device::GpuProfile gpu = *find_profile("a100-80gb");
  std::size_t compared = 0;
  std::size_t equal = 0;
  for (const nlohmann::json& row : rows()) {
    const std::string name = row["name"].get<std::string>();
    const fs::path file = graph_of(row);
    if (!fs::exists(file)) continue;
    const auto graph = read_summary(file.string());
    ASSERT_TRUE(testing::succeeds(graph)) << name;
    const bool plain = row["optimizer"] == "none";
    const auto estimator = make_estimator(plain ? "fake-tensor" : "fake-tensor-optimizer");
    const auto estimate = (*estimator)->estimate(recorded_job(row, *graph), gpu);
    ASSERT_TRUE(testing::succeeds(estimate)) << name;
    const auto measured = row["peak_bytes"].get<double>();
    const auto expected = static_cast<double>(estimate->expected.count());
    EXPECT_LE(std::abs(expected - measured), kFakeTensorTolerance * measured)
        << name << ": " << expected - measured << " B off";
    EXPECT_EQ(estimate->breakdown.total().value(), estimate->expected.count()) << name;
    ++compared;
    if (expected == measured) ++equal;
  }
  EXPECT_GE(compared, 180U);
  EXPECT_EQ(equal, compared) << "these are met to the byte; a change of that is worth a look";
}

TEST(FakeTensorPeaks, TheTenPublishedOnesAreMet) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  struct Published {
    std::string_view model;
    double forward_backward;
    double with_momentum;
  };
  constexpr std::array<Published, 5> kPublished = {{{"resnet18", 746.4, 791.0},
                                                    {"resnet50", 2751.8, 2849.3},
                                                    {"vgg16", 3277.5, 3808.4},
                                                    {"mobilenet_v2", 2420.6, 2433.9},
                                                    {"inception_v3", 3145.5, 3249.1}}};
  const device::GpuProfile gpu = *find_profile("a100-80gb");
  for (const Published& published : kPublished) {
    const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/" + std::string(published.model) + ".json");
    ASSERT_TRUE(testing::succeeds(graph));
    TrainingJob job(*graph, 32);
    const std::int64_t side = published.model == "inception_v3" ? 299 : 224;
    job.input_shape = {3, side, side};
    job.optimizer = Optimizer::sgd_momentum;
    const auto of = [&](std::string_view estimator) {
      return static_cast<double>((*make_estimator(estimator))->estimate(job, gpu)->expected.count()) / kMebibyte;
    };
    EXPECT_NEAR(of("fake-tensor"), published.forward_backward, kFakeTensorTolerance * published.forward_backward)
        << published.model;
    EXPECT_NEAR(of("fake-tensor-optimizer"), published.with_momentum, kFakeTensorTolerance * published.with_momentum)
        << published.model;
  }
}

}  // namespace
}  // namespace gpumem
