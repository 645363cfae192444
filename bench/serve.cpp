// A server's estimate in process: from its config.json, and again from what a Session has kept.
#include <benchmark/benchmark.h>

#include "gpumem/serve/server_command.hpp"
#include "gpumem/serve/serving_questions.hpp"
#include "gpumem/session/session.hpp"

namespace {

gpumem::serve::ServingRequest asked(const char* config) {
  const std::vector<std::string> words = {"vllm", "serve", "llama", "--max-model-len", "8192"};
  return *gpumem::serve::serving_request_of({config, "h100-80gb", "0.19.0", words});
}

void serve_config_of(benchmark::State& state, const char* config) {
  const gpumem::serve::ServingRequest request = asked(config);
  for (auto _ : state) {
    gpumem::session::Session session;
    const auto server = session.serve(request);
    if (!server) state.SkipWithError("no estimate was made");
    benchmark::DoNotOptimize(server);
  }
}
BENCHMARK_CAPTURE(serve_config_of, llama_8b, GPUMEM_LLAMA_CONFIG)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(serve_config_of, experts_with_states, GPUMEM_HYBRID_CONFIG)->Unit(benchmark::kMicrosecond);

void serve_warm_of(benchmark::State& state, const char* config) {
  const gpumem::serve::ServingRequest request = asked(config);
  gpumem::session::Session session;
  if (!session.serve(request)) state.SkipWithError("no estimate was made");
  for (auto _ : state) {
    const auto server = session.serve(request);
    benchmark::DoNotOptimize(server);
  }
}
BENCHMARK_CAPTURE(serve_warm_of, llama_8b, GPUMEM_LLAMA_CONFIG)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(serve_warm_of, experts_with_states, GPUMEM_HYBRID_CONFIG)->Unit(benchmark::kMicrosecond);

}  // namespace
