// The C API as a scheduler uses it: a resident summary, one call a job, from one thread and from several at once; and
// what a deadline is missed by.
//
// To see how threads scale, compare items_per_second of 1, 2 and 8 threads on an idle machine.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "gpumem/gpumem.h"

namespace {

gpumem_summary* summary_of(const char* path) {
  gpumem_summary* summary = nullptr;
  return gpumem_summary_from_file(path, nullptr, &summary, nullptr, 0) == GPUMEM_OK ? summary : nullptr;
}

/// With `batches` above 1 another batch size at every call: nothing of the plan is left from the call before. With 1
/// the same job, as one that is asked about every GPU.
void estimate(benchmark::State& state, const char* path, std::int64_t batches) {
  static gpumem_summary* summary = nullptr;
  if (state.thread_index() == 0) summary = summary_of(path);
  gpumem_job job = GPUMEM_JOB_INIT;
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  char message[200];
  job.gpu = "a100-40gb";
  std::int64_t call = 0;
  for (auto _ : state) {
    job.batch_size = 32 + call++ % batches;
    if (gpumem_estimate(summary, &job, &need, message, sizeof message) != GPUMEM_OK) state.SkipWithError(message);
    benchmark::DoNotOptimize(need);
  }
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) gpumem_summary_free(summary);
}

void capi_replay_resnet50_table(benchmark::State& state) { estimate(state, GPUMEM_RESNET50, 64); }
void capi_replay_resnet50_graph(benchmark::State& state) { estimate(state, GPUMEM_RESNET50_GRAPH, 64); }
void capi_replay_resnet50_again(benchmark::State& state) { estimate(state, GPUMEM_RESNET50, 1); }
BENCHMARK(capi_replay_resnet50_again)->Unit(benchmark::kMicrosecond);
BENCHMARK(capi_replay_resnet50_table)->Unit(benchmark::kMicrosecond)->UseRealTime()->Threads(1)->Threads(2)->Threads(8);
BENCHMARK(capi_replay_resnet50_graph)->Unit(benchmark::kMicrosecond)->UseRealTime()->Threads(1)->Threads(2)->Threads(8);

/// A server of a model that was asked about before.
void capi_serve_llama(benchmark::State& state) {
  const char* const words[] = {"vllm", "serve", "llama", "--max-model-len", "8192"};
  for (auto _ : state) {
    gpumem_serving_result start = GPUMEM_SERVING_RESULT_INIT;
    char message[200];
    if (gpumem_serve(GPUMEM_LLAMA_CONFIG, "h100-80gb", "0.19.0", words, 5, &start, message, sizeof message) !=
        GPUMEM_OK) {
      state.SkipWithError(message);
    }
    benchmark::DoNotOptimize(start);
  }
}
BENCHMARK(capi_serve_llama)->Unit(benchmark::kMicrosecond);

void capi_fit_resnet50(benchmark::State& state) {
  gpumem_summary* summary = summary_of(GPUMEM_RESNET50);
  gpumem_job job = GPUMEM_JOB_INIT;
  job.gpu = "rtx4090-24gb";
  for (auto _ : state) {
    gpumem_fit_result fit = GPUMEM_FIT_RESULT_INIT;
    if (gpumem_fit(summary, &job, &fit, nullptr, nullptr, nullptr, 0) != GPUMEM_OK) state.SkipWithError("no batch");
    benchmark::DoNotOptimize(fit);
  }
  gpumem_summary_free(summary);
}
BENCHMARK(capi_fit_resnet50)->Unit(benchmark::kMillisecond);

void capi_read_resnet50(benchmark::State& state) {
  for (auto _ : state) gpumem_summary_free(summary_of(GPUMEM_RESNET50));
}
BENCHMARK(capi_read_resnet50)->Unit(benchmark::kMicrosecond);

void capi_job_from_json(benchmark::State& state) {
  const std::string json = R"({"batch_size": 32, "gpu": "a100-40gb", "optimizer": "sgd", "precision": "amp-fp16"})";
  for (auto _ : state) {
    gpumem_job* job = nullptr;
    gpumem_job_from_json(json.data(), json.size(), &job, nullptr, 0);
    gpumem_job_free(job);
  }
}
BENCHMARK(capi_job_from_json)->Unit(benchmark::kMicrosecond);

/// A GPU of eight for a job; no estimate.
void capi_place(benchmark::State& state) {
  gpumem_server_gpu gpus[8];
  for (int index = 0; index < 8; ++index) {
    gpus[index] = GPUMEM_SERVER_GPU_INIT;
    gpus[index].total_bytes = std::int64_t{40} << 30;
    gpus[index].used_bytes = std::int64_t{index} << 30;
    gpus[index].set_aside_bytes = std::int64_t{2 * index} << 30;
    gpus[index].jobs = index;
  }
  gpumem_request request = GPUMEM_REQUEST_INIT;
  request.memory_bytes = std::int64_t{12} << 30;
  std::size_t chosen = 0;
  gpumem_decision decision = GPUMEM_DECISION_INIT;
  decision.gpus = &chosen;
  decision.gpus_capacity = 1;
  for (auto _ : state) {
    gpumem_place(&request, gpus, 8, nullptr, nullptr, &decision, nullptr, 0);
    benchmark::DoNotOptimize(chosen);
  }
}
BENCHMARK(capi_place)->Unit(benchmark::kMicrosecond);

/// How late a call comes back whose work would take far longer than its deadline of this many milliseconds: "late_us"
/// is the worst of all calls.
void capi_overshoot(benchmark::State& state, bool reading, const char* estimator) {
  std::string text = "Sequential(\n";
  for (int layer = 0; layer < 150'000; ++layer) text += "  (0): Linear(in_features=64, out_features=64, bias=True)\n";
  text += ")\n";
  gpumem_summary* summary = nullptr;
  if (!reading) gpumem_summary_from_memory(text.data(), text.size(), nullptr, &summary, nullptr, 0);
  gpumem_job job = GPUMEM_JOB_INIT;
  job.batch_size = 8;
  job.input = "64";
  job.estimator = estimator;
  job.deadline_ms = state.range(0);
  gpumem_read_options options = GPUMEM_READ_OPTIONS_INIT;
  options.deadline_ms = state.range(0);
  double worst = 0.0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
    const gpumem_status status =
        reading ? gpumem_summary_from_memory(text.data(), text.size(), &options, &summary, nullptr, 0)
                : gpumem_estimate(summary, &job, &need, nullptr, 0);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (status != GPUMEM_DEADLINE_EXCEEDED) {
      state.SkipWithError("it was done in time");
      break;
    }
    worst = std::max(worst, took.count() - 1000.0 * static_cast<double>(state.range(0)));
  }
  state.counters["late_us"] = worst;
  gpumem_summary_free(summary);
}
BENCHMARK_CAPTURE(capi_overshoot, reading, true, nullptr)->Arg(1)->Arg(5)->Arg(10)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(capi_overshoot, replay, false, nullptr)
    ->Arg(1)
    ->Arg(20)
    ->Arg(50)
    ->Arg(100)
    ->Arg(200)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(capi_overshoot, gpumemnet, false, "gpumemnet-mlp")->Arg(1)->Arg(50)->Unit(benchmark::kMillisecond);

}  // namespace
