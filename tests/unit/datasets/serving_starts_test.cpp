#include "gpumem_datasets/serving_starts.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/serve/server_command.hpp"

namespace gpumem::datasets {
namespace {

using testing::succeeds;

// Lines as vLLM 0.19 prints them, with figures of no run.
constexpr const char* kLog =
    R"(INFO [utils.py:233] non-default args: {'model': 'some/model', 'gpu_memory_utilization': 0.85, 'max_num_seqs': 64}
INFO [scheduler.py:238] Chunked prefill is enabled with max_num_batched_tokens=4096.
INFO [core.py:105] Initializing a V1 LLM engine (v0.19.0) with config: model='some/model', speculative_config=None, dtype=torch.float16, max_seq_len=2048, tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=1, quantization=None, enforce_eager=True, kv_cache_dtype=fp8
DEBUG [gpu_worker.py:284] worker init memory snapshot: free_memory=21.5GiB, total_memory=22.0GiB, cuda_memory=0.5GiB
INFO [gpu_model_runner.py:4820] Model loading took 3.25 GiB memory and 4.0 seconds
DEBUG [gpu_worker.py:435] Total non KV cache memory: 6.0GiB; torch peak memory increase: 1.5GiB; non-torch forward increase memory: 0.25GiB; weights memory: 3.25GiB.
INFO [gpu_worker.py:436] Available KV cache memory: 12.7 GiB
INFO [kv_cache_utils.py:1319] GPU KV cache size: 203,200 tokens
)";

TEST(VllmLog, SaysWhatWasAskedForAndWhatWasTaken) {
  const auto start = read_vllm_log(kLog);
  ASSERT_TRUE(succeeds(start));
  EXPECT_EQ(start->model, "some/model");
  EXPECT_EQ(start->job.version, "0.19.0");
  EXPECT_EQ(start->job.tensor_parallel, 2);
  EXPECT_EQ(start->job.dtype, "float16");
  EXPECT_EQ(start->job.kv_cache_dtype, "fp8");
  EXPECT_EQ(start->job.max_model_len, 2048);
  EXPECT_EQ(start->job.max_num_seqs, 64);
  EXPECT_EQ(start->job.max_num_batched_tokens, 4096);
  EXPECT_EQ(start->job.gpu_memory_utilization, 0.85);
  EXPECT_TRUE(start->job.enforce_eager);
  const LoggedStart& logged = start->logged;
  EXPECT_EQ(logged.gpu_gib, 22.0);
  EXPECT_EQ(logged.weights_gib, 3.25);
  EXPECT_EQ(logged.activation_gib, 1.5);
  EXPECT_EQ(logged.outside_pytorch_gib, 0.25);
  EXPECT_EQ(logged.kv_cache_gib, 12.7);
  EXPECT_EQ(logged.kv_cache_tokens, 203200);
  EXPECT_FALSE(logged.cuda_graphs_gib);
  EXPECT_EQ(logged.outcome, StartOutcome::started);
}

/// A start with these options, as Python prints them.
core::Result<ServingStart> with_arguments(std::string_view arguments) {
  std::string log = kLog;
  const std::size_t opens = log.find('{');
  return read_vllm_log(log.replace(opens, log.find('}') + 1 - opens, arguments));
}

TEST(VllmLog, EveryOptionThatIsServedIsRead) {
  for (const serve::ServingOption& option : serve::serving_options()) {
    const std::string value = option.flag != nullptr    ? "True"
                              : option.word != nullptr  ? "'fp8'"
                              : option.share != nullptr ? "0.5"
                              : option.gib != nullptr   ? "4.0"
                                                        : "3";
    const auto start = with_arguments("{'model': 'a, {b', '" + std::string(option.name) + "': " + value + "}");
    ASSERT_TRUE(succeeds(start));
    EXPECT_TRUE(start->left_out.empty()) << option.name;
  }
  const auto start = with_arguments(
      "{'kv_cache_memory_bytes': 1024, 'enable_expert_parallel': True, 'language_model_only': False, "
      "'quantization': 'fp8', 'cpu_offload_gb': 4.0}");
  ASSERT_TRUE(succeeds(start));
  EXPECT_EQ(start->job.kv_cache_memory_bytes, 1024);
  EXPECT_TRUE(start->job.enable_expert_parallel);
  EXPECT_FALSE(start->job.language_model_only);
  EXPECT_EQ(start->job.quantization, "fp8");
  EXPECT_EQ(start->job.cpu_offload_gb, 4.0);
}

TEST(VllmLog, OptionsWithoutRulesAreLeftOutByName) {
  const auto start = with_arguments(
      "{'model_tag': 'm', 'port': 80, 'speculative_config': {'model': \"x's\", 'num_seqs': [1, 2], 'eager': True}, "
      "'dtype': None, "
      "'max_num_seqs': 32, 'block_size': 'many', \"it's\": 1, 'max_loras': 3}");
  ASSERT_TRUE(succeeds(start));
  EXPECT_EQ(start->left_out, (std::vector<std::string>{"block_size", "it's"}));
  EXPECT_EQ(start->job.speculative_config, R"({"model": "x's", "num_seqs": [1, 2], "eager": true})");
  EXPECT_EQ(start->job.max_num_seqs, 32);
  EXPECT_EQ(start->job.max_loras, 3);
  EXPECT_TRUE(succeeds(with_arguments("{'max_num_seqs': 3, 'kv")));
  EXPECT_TRUE(succeeds(with_arguments("nothing")));
}

TEST(VllmLog, ToldFailuresAreRefusalsOrUnrelated) {
  const auto outcome = [](const char* line) {
    const auto start = read_vllm_log(std::string(kLog) + line);
    return start ? start->logged.outcome : StartOutcome::started;
  };
  EXPECT_EQ(outcome("ValueError: No available memory for the cache blocks. Try increasing"), StartOutcome::refused);
  EXPECT_EQ(outcome("torch.OutOfMemoryError: CUDA out of memory. Tried to"), StartOutcome::refused);
  EXPECT_EQ(
      outcome("ValueError: Free memory on device (1/2 GiB) on startup is less than desired GPU memory utilization"),
      StartOutcome::unrelated);
  const auto other = read_vllm_log("hello\nworld\n");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, core::ErrorCode::unknown_format);
}

constexpr const char* kTable =
    "name,model,engine,version,gpu,tensor_parallel,dtype,quantization,kv_cache_dtype,max_model_len,weights_gib,"
    "cuda_graph_gib,kv_cache_tokens,status,why\n"
    "one,some/model,vllm-v1,0.19.0,h100-80gb,2,bfloat16,fp8,auto,8192,7.5,-0.5,1000,ok,\n"
    "two,some/model,vllm-v1,0.19.0,h100-80gb,1,bfloat16,,auto,8192,,,,failed,CUDA out of memory\n"
    "three,some/model,vllm-v1,0.19.0,h100-80gb,1,bfloat16,,auto,8192,,,,failed,no connection\n"
    "four,,vllm-v1,0.19.0,h100-80gb,1,,,,,,,,failed,\n"
    "five,some/model,vllm-v1,,h100-80gb,1,,,,,7.5,,,ok,\n"
    "six,some/model,vllm-v1,0.19.0,h100-80gb,none,,,,,7.5,,,ok,\n";

TEST(ServingTable, ItsRowsAreStarts) {
  const auto table = core::parse_csv(kTable, "starts.csv");
  ASSERT_TRUE(succeeds(table));
  ASSERT_TRUE(is_serving_table(*table));
  const std::vector<ServingStart> starts = read_serving_table(*table);
  ASSERT_EQ(starts.size(), 6U);
  EXPECT_FALSE(starts[0].error);
  EXPECT_EQ(starts[0].job.tensor_parallel, 2);
  EXPECT_EQ(starts[0].job.quantization, "fp8");
  EXPECT_EQ(starts[0].logged.weights_gib, 7.5);
  EXPECT_FALSE(starts[0].logged.cuda_graphs_gib) << "below zero it is no figure";
  EXPECT_EQ(starts[0].logged.kv_cache_tokens, 1000);
  EXPECT_EQ(starts[1].logged.outcome, StartOutcome::refused);
  EXPECT_EQ(starts[2].logged.outcome, StartOutcome::unrelated);
  for (const std::size_t row : {3U, 4U, 5U}) {
    ASSERT_TRUE(starts[row].error) << row;
    EXPECT_EQ(starts[row].error->place.line, starts[row].line);
  }
  EXPECT_FALSE(is_serving_table(*core::parse_csv("name,model\na,b\n")));
}

}  // namespace
}  // namespace gpumem::datasets
