// The replay of a training job, whole and in its parts: parse, connect, record, plan, replay. ResNet-50 at batch 32,
// the construction and two training steps; and chains of many layers, which must take time in proportion.
#include <benchmark/benchmark.h>

#include "gpumem/all.hpp"
#include "gpumem/analysis/allocator_run.hpp"
#include "gpumem/connect/connect.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/estimate/replay.hpp"
#include "gpumem/plan/forward_pass.hpp"

namespace {

namespace ops = gpumem::ops;
namespace plan = gpumem::plan;

void read_and_replay_resnet50_graph(benchmark::State& state) {
  const auto text = gpumem::core::read_file(GPUMEM_RESNET50_GRAPH);
  const auto gpu = gpumem::find_profile("a100-40gb");
  const gpumem::estimate::Replay replay;
  for (auto _ : state) {
    auto graph = gpumem::parse_summary(*text);
    auto estimate = replay.estimate({*std::move(graph), 32}, *gpu);
    if (!estimate) state.SkipWithError("no estimate was made");
    benchmark::DoNotOptimize(estimate);
  }
}
BENCHMARK(read_and_replay_resnet50_graph)->Unit(benchmark::kMicrosecond);

void parse_resnet50_graph(benchmark::State& state) {
  const auto text = gpumem::core::read_file(GPUMEM_RESNET50_GRAPH);
  for (auto _ : state) {
    auto graph = gpumem::parse_summary(*text);
    benchmark::DoNotOptimize(graph);
  }
}
BENCHMARK(parse_resnet50_graph)->Unit(benchmark::kMicrosecond);

void record_resnet50(benchmark::State& state) {
  const gpumem::TrainingJob job(*gpumem::read_summary(GPUMEM_RESNET50_GRAPH), 32);
  for (auto _ : state) {
    const auto wired = gpumem::connect::connect(job, ops::catalogue());
    auto pass = plan::make_forward_pass(*wired, job, ops::catalogue());
    benchmark::DoNotOptimize(pass);
  }
}
BENCHMARK(record_resnet50)->Unit(benchmark::kMicrosecond);

void plan_resnet50(benchmark::State& state) {
  const gpumem::TrainingJob job(*gpumem::read_summary(GPUMEM_RESNET50_GRAPH), 32);
  const auto wired = gpumem::connect::connect(job, ops::catalogue());
  const auto pass = plan::make_forward_pass(*wired, job, ops::catalogue());
  for (auto _ : state) {
    auto steps = plan::make_step_plan(job, *pass);
    benchmark::DoNotOptimize(steps);
  }
}
BENCHMARK(plan_resnet50)->Unit(benchmark::kMicrosecond);

void replay_plan_of_resnet50(benchmark::State& state) {
  const gpumem::TrainingJob job(*gpumem::read_summary(GPUMEM_RESNET50_GRAPH), 32);
  const auto gpu = gpumem::find_profile("a100-40gb");
  const auto wired = gpumem::connect::connect(job, ops::catalogue());
  const auto pass = plan::make_forward_pass(*wired, job, ops::catalogue());
  const auto steps = plan::make_step_plan(job, *pass);
  for (auto _ : state) {
    auto replay = gpumem::analysis::run_allocator(*steps, *gpu);
    benchmark::DoNotOptimize(replay);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(steps->events.size()));
}
BENCHMARK(replay_plan_of_resnet50)->Unit(benchmark::kMicrosecond);

/// A perceptron of this many linear layers and activations.
void replay_chain(benchmark::State& state) {
  const auto layers = state.range(0);
  std::string text = R"({"format":"gpumem-graph","version":1,"inputs":[{"name":"x","shape":["N",64]}],"nodes":[)";
  std::string last = "x";
  for (std::int64_t layer = 0; layer < layers; layer += 2) {
    const std::string number = std::to_string(layer);
    text += R"({"name":"l)" + number + R"(","op":"linear","inputs":[")" + last +
            R"("],"attrs":{"in_features":64,"out_features":64}},{"name":"r)" + number +
            R"(","op":"relu","inputs":["l)" + number + R"("]},)";
    last = "r" + number;
  }
  text.back() = ']';
  const gpumem::TrainingJob job(*gpumem::parse_summary(text + "}"), 32);
  const auto gpu = gpumem::find_profile("a100-40gb");
  const gpumem::estimate::Replay replay;
  for (auto _ : state) {
    auto estimate = replay.estimate(job, *gpu);
    if (!estimate) state.SkipWithError("no estimate was made");
    benchmark::DoNotOptimize(estimate);
  }
  state.SetComplexityN(layers);
  state.SetItemsProcessed(state.iterations() * layers);
}
BENCHMARK(replay_chain)->RangeMultiplier(10)->Range(100, 100000)->Unit(benchmark::kMicrosecond)->Complexity();

}  // namespace
