// The command line as a whole process: time from start to end, and the most memory that it held.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <vector>

namespace {

/// `words` without a closing null pointer.
void run_process(benchmark::State& state, std::vector<const char*> words) {
  words.insert(words.begin(), GPUMEM_PROGRAM);
  words.push_back(nullptr);
  posix_spawn_file_actions_t quiet{};
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  long most_kib = 0;
  for (auto _ : state) {
    pid_t child = 0;
    int status = 0;
    struct rusage usage {};
    char* const* arguments = const_cast<char* const*>(words.data());  // posix_spawn promises not to write
    const bool started = posix_spawn(&child, GPUMEM_PROGRAM, &quiet, nullptr, arguments, nullptr) == 0;
    if (!started || wait4(child, &status, 0, &usage) != child || status != 0) state.SkipWithError("it failed");
    most_kib = std::max(most_kib, usage.ru_maxrss);
  }
  posix_spawn_file_actions_destroy(&quiet);
  state.counters["resident_MB"] = static_cast<double>(most_kib) / 1000.0;
}

void process_estimate_resnet50(benchmark::State& state) {
  run_process(state, {"estimate", GPUMEM_RESNET50, "--batch", "32"});
}
BENCHMARK(process_estimate_resnet50)->Unit(benchmark::kMillisecond)->UseRealTime();

void process_estimate_llama_8b(benchmark::State& state) {
  run_process(state, {"estimate", GPUMEM_LLAMA_CONFIG, "--batch", "1", "--seq", "2048", "--gpu", "h100-80gb"});
}
BENCHMARK(process_estimate_llama_8b)->Unit(benchmark::kMillisecond)->UseRealTime();

/// One rank of 512: 126 blocks, 6,439 layers.
void process_estimate_rank_of_llama_405b(benchmark::State& state) {
  run_process(state, {"estimate", GPUMEM_LLAMA_405B_CONFIG, "--batch", "1", "--seq", "8192", "--gpu", "h100-80gb",
                      "--precision", "bf16-mixed", "--optimizer", "adamw", "--tensor-parallel", "8", "--data-parallel",
                      "64", "--sharding", "fsdp2", "--checkpointing"});
}
BENCHMARK(process_estimate_rank_of_llama_405b)->Unit(benchmark::kMillisecond)->UseRealTime();

void process_start(benchmark::State& state) { run_process(state, {"--version"}); }
BENCHMARK(process_start)->Unit(benchmark::kMillisecond)->UseRealTime();

void process_serve_llama_8b(benchmark::State& state) {
  run_process(state, {"serve", GPUMEM_LLAMA_CONFIG, "--gpu", "h100-80gb", "--engine-version", "0.19.0", "--", "vllm",
                      "serve", "llama", "--max-model-len", "8192"});
}
BENCHMARK(process_serve_llama_8b)->Unit(benchmark::kMillisecond)->UseRealTime();

void process_serve_experts_with_states(benchmark::State& state) {
  run_process(state, {"serve", GPUMEM_HYBRID_CONFIG, "--gpu", "h200", "--engine-version", "0.19.0", "--", "vllm",
                      "serve", "hybrid", "--tensor-parallel-size", "16", "--enable-expert-parallel"});
}
BENCHMARK(process_serve_experts_with_states)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
