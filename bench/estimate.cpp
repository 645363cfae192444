// Estimates in process: one job from its text, and many jobs from cached summaries as `gpumem batch` has them.
#include <benchmark/benchmark.h>

#include "commands.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/estimate/replay.hpp"

namespace {

void parse_and_horus_resnet50(benchmark::State& state) {
  const auto text = gpumem::core::read_file(GPUMEM_RESNET50);
  const auto gpu = gpumem::find_profile("a100-40gb");
  const gpumem::estimate::Horus horus;
  for (auto _ : state) {
    auto graph = gpumem::parse_summary(*text);
    auto estimate = horus.estimate({*std::move(graph), 32}, *gpu);
    if (!estimate) state.SkipWithError("no estimate was made");
    benchmark::DoNotOptimize(estimate);
  }
}
BENCHMARK(parse_and_horus_resnet50)->Unit(benchmark::kMicrosecond);

void horus_resnet50(benchmark::State& state) {
  const gpumem::TrainingJob job(*gpumem::read_summary(GPUMEM_RESNET50), 32);
  const auto gpu = gpumem::find_profile("a100-40gb");
  const gpumem::estimate::Horus horus;
  for (auto _ : state) {
    auto estimate = horus.estimate(job, *gpu);
    benchmark::DoNotOptimize(estimate);
  }
}
BENCHMARK(horus_resnet50)->Unit(benchmark::kMicrosecond);

void replay_resnet50(benchmark::State& state) {
  const gpumem::TrainingJob job(*gpumem::read_summary(GPUMEM_RESNET50), 32);
  const auto gpu = gpumem::find_profile("a100-40gb");
  const gpumem::estimate::Replay replay;
  for (auto _ : state) {
    auto estimate = replay.estimate(job, *gpu);
    if (!estimate) state.SkipWithError("no estimate was made");
    benchmark::DoNotOptimize(estimate);
  }
}
BENCHMARK(replay_resnet50)->Unit(benchmark::kMicrosecond);

void read_and_replay_resnet50_table(benchmark::State& state) {
  const auto text = gpumem::core::read_file(GPUMEM_RESNET50);
  const auto gpu = gpumem::find_profile("a100-40gb");
  const gpumem::estimate::Replay replay;
  for (auto _ : state) {
    auto graph = gpumem::parse_summary(*text);
    auto estimate = replay.estimate({*std::move(graph), 32}, *gpu);
    if (!estimate) state.SkipWithError("no estimate was made");
    benchmark::DoNotOptimize(estimate);
  }
}
BENCHMARK(read_and_replay_resnet50_table)->Unit(benchmark::kMicrosecond);

/// `gpumem fit`: every estimate until the largest batch is found.
void fit_resnet50(benchmark::State& state) {
  const gpumem::TrainingJob job(*gpumem::read_summary(GPUMEM_RESNET50), 1);
  const auto gpu = gpumem::find_profile("rtx4090-24gb");
  const gpumem::estimate::Replay replay;
  for (auto _ : state) {
    auto fit = gpumem::largest_batch(job, *gpu, replay);
    if (!fit) state.SkipWithError("no batch was found");
    state.counters["estimates"] = static_cast<double>(fit->estimates);
    benchmark::DoNotOptimize(fit);
  }
}
BENCHMARK(fit_resnet50)->Unit(benchmark::kMillisecond);

void timeline_resnet50(benchmark::State& state) {
  const gpumem::TrainingJob job(*gpumem::read_summary(GPUMEM_RESNET50), 32);
  const auto gpu = gpumem::find_profile("a100-40gb");
  for (auto _ : state) {
    auto timeline = gpumem::make_timeline(job, *gpu);
    if (!timeline) state.SkipWithError("no timeline was made");
    benchmark::DoNotOptimize(timeline);
  }
}
BENCHMARK(timeline_resnet50)->Unit(benchmark::kMillisecond);

/// One line of JSON in, one out: what `gpumem batch` does a line, without the streams.
void batch_line(benchmark::State& state) {
  gpumem::cli::BatchAnswers answers{gpumem::cli::JobRequest()};
  const std::string line = R"({"summary": ")" GPUMEM_RESNET50 R"(", "batch_size": 32, "gpu": "a100-40gb"})";
  for (auto _ : state) {
    std::string answer = answers.answer(line, 1);
    benchmark::DoNotOptimize(answer);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(batch_line)->Unit(benchmark::kMicrosecond);

}  // namespace
