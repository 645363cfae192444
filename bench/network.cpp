// Trained networks in memory: one job, and many at once. The same networks in PyTorch, side by side with these:
//   /usr/bin/python3 bench/references/network.py --time build/bench/bench/gpumem_bench
#include "gpumem/ml/network.hpp"

#include <benchmark/benchmark.h>

#include "networks.hpp"

namespace {

using gpumem::ml::Attention;
using gpumem::ml::Embedding;
using gpumem::ml::Instructions;
using gpumem::ml::Network;
using gpumem::ml::NetworkShape;
using gpumem::ml::Pooling;

Network network_of(const NetworkShape& shape, Instructions instructions = gpumem::ml::best_instructions()) {
  return *Network::create(shape, gpumem::testing::random_weights(shape, 1), instructions);
}

/// One job, its sequence as long as it may be.
void run_one(benchmark::State& state, const Network& network) {
  gpumem::testing::Figures figures(2);
  const NetworkShape& shape = network.shape();
  const auto features = figures.symmetric(shape.features);
  const auto sequence = figures.symmetric(shape.sequence_length * shape.sequence_columns);
  auto buffers = network.buffers();
  std::vector<float> outputs(static_cast<std::size_t>(shape.outputs));
  for (auto _ : state) {
    network.run(features, sequence, buffers, outputs);
    benchmark::DoNotOptimize(outputs.data());
    benchmark::ClobberMemory();
  }
}

void run_many(benchmark::State& state, const Network& network) {
  constexpr std::int64_t kJobs = 1024;
  gpumem::testing::Figures figures(2);
  const NetworkShape& shape = network.shape();
  const auto features = figures.symmetric(kJobs * shape.features);
  auto buffers = network.buffers();
  std::vector<float> outputs(static_cast<std::size_t>(kJobs * shape.outputs));
  for (auto _ : state) {
    network.run_batch(features, {}, {}, buffers, outputs);
    benchmark::DoNotOptimize(outputs.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kJobs);
}

/// 16 members of up to 8 layers.
void network_mlp(benchmark::State& state) { run_one(state, network_of(gpumem::testing::mlp_ensemble())); }
BENCHMARK(network_mlp);

void network_mlp_portable(benchmark::State& state) {
  run_one(state, network_of(gpumem::testing::mlp_ensemble(), Instructions::portable));
}
BENCHMARK(network_mlp_portable);

/// 1,024 jobs a call.
void network_mlp_batch(benchmark::State& state) { run_many(state, network_of(gpumem::testing::mlp_ensemble())); }
BENCHMARK(network_mlp_batch)->Unit(benchmark::kMicrosecond);

void network_mlp_batch_portable(benchmark::State& state) {
  run_many(state, network_of(gpumem::testing::mlp_ensemble(), Instructions::portable));
}
BENCHMARK(network_mlp_batch_portable)->Unit(benchmark::kMicrosecond);

/// Two encoders over 119 rows that look at each other.
void network_transformer_sequence(benchmark::State& state) {
  run_one(state,
          network_of(gpumem::testing::transformer_ensemble(Embedding::linear, Attention::sequence, Pooling::mean)));
}
BENCHMARK(network_transformer_sequence)->Unit(benchmark::kMicrosecond);

/// GPUMemNet's form.
void network_transformer_self(benchmark::State& state) {
  run_one(state, network_of(gpumem::testing::transformer_ensemble(Embedding::position_batch_norm, Attention::self,
                                                                  Pooling::sum)));
}
BENCHMARK(network_transformer_self)->Unit(benchmark::kMicrosecond);

}  // namespace
