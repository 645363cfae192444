// Reading summaries: bytes a second, and time against the number of rows.
#include <benchmark/benchmark.h>

#include "gpumem/all.hpp"
#include "gpumem/core/file.hpp"

namespace {

/// A torchsummary table of this many rows, all of them layers.
std::string torchsummary_of(std::int64_t rows) {
  std::string text =
      "----------------------------------------------------------------\n"
      "        Layer (type)               Output Shape         Param #\n"
      "================================================================\n";
  std::array<char, 128> row{};
  for (std::int64_t index = 1; index <= rows; ++index) {
    const std::string name = (index % 2 == 0 ? "BatchNorm2d-" : "Conv2d-") + std::to_string(index);
    std::snprintf(row.data(), row.size(), "%20s  %25s %15s\n", name.c_str(), "[-1, 256, 56, 56]",
                  index % 2 == 0 ? "512" : "589,824");
    text += row.data();
  }
  return text + "================================================================\n";
}

void parse_torchsummary(benchmark::State& state) {
  const std::string text = torchsummary_of(state.range(0));
  for (auto _ : state) {
    auto graph = gpumem::parse_summary(text);
    if (!graph) state.SkipWithError("the table was not read");
    benchmark::DoNotOptimize(graph);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(parse_torchsummary)
    ->RangeMultiplier(10)
    ->Range(1'000, 1'000'000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

void parse_resnet50(benchmark::State& state) {
  const auto text = gpumem::core::read_file(GPUMEM_RESNET50);
  if (!text) state.SkipWithError("the summary was not found");
  for (auto _ : state) {
    auto graph = gpumem::parse_summary(*text);
    benchmark::DoNotOptimize(graph);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text->size()));
}
BENCHMARK(parse_resnet50)->Unit(benchmark::kMicrosecond);

}  // namespace
