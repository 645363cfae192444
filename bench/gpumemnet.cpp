// Learned estimators, from a job in memory to its bin: features, network and all, on one thread. The network by itself,
// and many jobs at once: network.cpp.
#include "gpumem/estimate/published.hpp"

#include <benchmark/benchmark.h>

#include "gpumem/all.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "gpumem_datasets/runs_tables.hpp"

namespace {

using gpumem::TrainingJob;
using gpumem::datasets::ListedLayer;
using gpumem::estimate::EstimatorOptions;

/// Linear layers with their norms, ReLUs and dropouts, and a classifier: as many layers as asked for, shapes printed.
TrainingJob mlp_job(std::size_t layers) {
  constexpr std::int64_t kWidth = 1024;
  constexpr std::int64_t kClasses = 100;
  gpumem::datasets::GpumemnetNet net;
  net.architecture = "uniform";
  net.channels = kWidth;
  const std::array<ListedLayer, 4> block = {{{"linear", kWidth, kWidth * (kWidth + 1)},
                                             {"batch_normalization", kWidth, 2 * kWidth},
                                             {"ReLU", kWidth, 0},
                                             {"dropout", kWidth, 0}}};
  for (std::size_t layer = 0; layer + 2 < layers; ++layer) net.layers.push_back(block[layer % block.size()]);
  net.layers.push_back({"linear", kClasses, kClasses * (kWidth + 1)});
  net.layers.push_back({"Softmax", kClasses, 0});
  return {*gpumem::datasets::build_net(net, gpumem::ops::vocabulary(), "", 0), 256};
}

/// Of memory or of utilisation: `made` is the estimator, or why there is none.
template <typename Made>
void measure(benchmark::State& state, const Made& made, const TrainingJob& job) {
  const auto gpu = gpumem::find_profile("a100-40gb");
  if (!made) {
    state.SkipWithError(gpumem::core::to_string(made.error()).c_str());
    return;
  }
  for (auto _ : state) {
    auto estimate = (*made)->estimate(job, *gpu);
    if (!estimate) state.SkipWithError("no estimate was made");
    benchmark::DoNotOptimize(estimate);
  }
}

void run(benchmark::State& state, std::string_view estimator, const TrainingJob& job) {
  measure(state, gpumem::make_estimator(estimator, EstimatorOptions{}), job);
}

/// A CNN of 3 x 3 convolutions with their norms and activations, and a classifier.
TrainingJob cnn_job(std::size_t layers) {
  constexpr std::int64_t kSide = 32;
  constexpr std::int64_t kChannels = 64;
  constexpr std::int64_t kClasses = 100;
  gpumem::datasets::GpumemnetNet net;
  net.architecture = "uniform";
  net.channels = kChannels;
  net.side = kSide;
  const std::array<ListedLayer, 3> block = {{{"conv2d", kSide * kSide, kChannels * (9 * kChannels + 1)},
                                             {"batch_norm2d", kSide * kSide, 2 * kChannels},
                                             {"ReLU", kSide * kSide, 0}}};
  for (std::size_t layer = 0; layer + 3 < layers; ++layer) net.layers.push_back(block[layer % block.size()]);
  net.layers.push_back({"adaptive_avg_pool2d", 1, 0});
  net.layers.push_back({"linear", kClasses, kClasses * (kChannels + 1)});
  net.layers.push_back({"Softmax", kClasses, 0});
  return {*gpumem::datasets::build_net(net, gpumem::ops::vocabulary(), "", 0), 32};
}

void utilisation(benchmark::State& state, std::string_view estimator, const TrainingJob& job) {
  measure(state, gpumem::utilisation::make_utilisation_estimator(estimator), job);
}

void roofline_cnn_120_layers(benchmark::State& state) { utilisation(state, "roofline", cnn_job(120)); }
BENCHMARK(roofline_cnn_120_layers)->Unit(benchmark::kMicrosecond);
void utilisation_mlp_cnn_120_layers(benchmark::State& state) { utilisation(state, "utilisation-mlp", cnn_job(120)); }
BENCHMARK(utilisation_mlp_cnn_120_layers)->Unit(benchmark::kMicrosecond);

void gpumemnet_mlp_46_layers(benchmark::State& state) { run(state, "gpumemnet-mlp", mlp_job(46)); }
BENCHMARK(gpumemnet_mlp_46_layers)->Unit(benchmark::kMicrosecond);

/// The middle of GPUMemNet's published MLPs.
void gpumemnet_mlp_22_layers(benchmark::State& state) { run(state, "gpumemnet-mlp", mlp_job(22)); }
BENCHMARK(gpumemnet_mlp_22_layers)->Unit(benchmark::kMicrosecond);

void gpumemnet_transformer_46_layers(benchmark::State& state) { run(state, "gpumemnet-transformer", mlp_job(46)); }
BENCHMARK(gpumemnet_transformer_46_layers)->Unit(benchmark::kMicrosecond);

/// With the replay whose figures the models of CNNs read.
void gpumemnet_mlp_cnn_120_layers(benchmark::State& state) { run(state, "gpumemnet-mlp", cnn_job(120)); }
BENCHMARK(gpumemnet_mlp_cnn_120_layers)->Unit(benchmark::kMicrosecond);
void gpumemnet_transformer_cnn_120_layers(benchmark::State& state) {
  run(state, "gpumemnet-transformer", cnn_job(120));
}
BENCHMARK(gpumemnet_transformer_cnn_120_layers)->Unit(benchmark::kMicrosecond);
void replay_cnn_120_layers(benchmark::State& state) { run(state, "replay", cnn_job(120)); }
BENCHMARK(replay_cnn_120_layers)->Unit(benchmark::kMicrosecond);
void replay_corrected_cnn_120_layers(benchmark::State& state) { run(state, "replay-corrected", cnn_job(120)); }
BENCHMARK(replay_corrected_cnn_120_layers)->Unit(benchmark::kMicrosecond);

/// What the facts of the layers cost, without the replay and the network.
void gpumemnet_facts_46_layers(benchmark::State& state) {
  const TrainingJob job = mlp_job(46);
  for (auto _ : state) {
    gpumem::analysis::Analysis analysis(job);
    auto facts = gpumem::ml::facts_of(analysis);
    if (!facts) state.SkipWithError("no facts");
    benchmark::DoNotOptimize(facts);
  }
}
BENCHMARK(gpumemnet_facts_46_layers)->Unit(benchmark::kMicrosecond);

/// A model folder: its config and weights.
void gpumemnet_load(benchmark::State& state, const std::string& name) {
  for (auto _ : state) {
    auto model = gpumem::ml::load_model(GPUMEM_MODELS "/" + name);
    if (!model) state.SkipWithError(gpumem::core::to_string(model.error()).c_str());
    benchmark::DoNotOptimize(model);
  }
}
BENCHMARK_CAPTURE(gpumemnet_load, mlp, "gpumemnet-mlp-mlp")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(gpumemnet_load, transformer, "gpumemnet-transformer-transformer")->Unit(benchmark::kMicrosecond);

}  // namespace
