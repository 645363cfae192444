// The command line as a whole process: time from start to end, and the most memory that it held.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>

namespace {

void process_estimate_resnet50(benchmark::State& state) {
  const std::array<const char*, 6> words = {GPUMEM_PROGRAM, "estimate", GPUMEM_RESNET50, "--batch", "32", nullptr};
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
BENCHMARK(process_estimate_resnet50)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
