#include "gpumem/serve/server_command.hpp"

#include <gtest/gtest.h>

namespace gpumem::serve {
namespace {

TEST(ServerCommand, FlagsBecomeTheJob) {
  const std::vector<std::string> words = {"vllm",
                                          "serve",
                                          "some/model",
                                          "--tensor-parallel-size=2",
                                          "--max_model_len",
                                          "8K",
                                          "-q",
                                          "fp8",
                                          "--enforce-eager",
                                          "--port",
                                          "80",
                                          "-dp",
                                          "2",
                                          "-pp",
                                          "4"};
  const auto job = read_server_command(words, {});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->tensor_parallel, 2);
  EXPECT_EQ(job->max_model_len, 8192);
  EXPECT_EQ(job->quantization, "fp8");
  EXPECT_TRUE(job->enforce_eager);
  EXPECT_EQ(job->data_parallel, 2);
  EXPECT_EQ(job->pipeline_parallel, 4);
}

TEST(ServerCommand, WrongFlagsAreNamed) {
  for (const std::string flag : {"--max-model-length", "--tensor-parallel-size", "--gpu-memory-utilization"}) {
    const std::vector<std::string> words = {"vllm", "serve", "m", flag, "much"};
    const auto job = read_server_command(words, {});
    ASSERT_FALSE(job);
    EXPECT_NE(job.error().message.find(flag), std::string::npos) << job.error().message;
  }
  EXPECT_FALSE(read_server_command(std::vector<std::string>{"vllm", "bench"}, {}));
  EXPECT_FALSE(read_server_command(std::vector<std::string>{"vllm", "serve", "m", "--dtype"}, {}));
}

TEST(ServerCommand, SglangsFlagsAreReadByTheirOwnNames) {
  const std::vector<std::string> words = {"/usr/bin/python3",
                                          "-m",
                                          "sglang.launch_server",
                                          "--model-path",
                                          "some/model",
                                          "--tp",
                                          "2",
                                          "--mem-fraction-static",
                                          "0.8",
                                          "--context-length=4096",
                                          "--chunked-prefill-size",
                                          "2048",
                                          "--disable-cuda-graph",
                                          "--port",
                                          "30000"};
  const auto job = read_server_command(words, {});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->engine, "sglang");
  EXPECT_EQ(job->tensor_parallel, 2);
  EXPECT_EQ(job->gpu_memory_utilization, 0.8);
  EXPECT_EQ(job->max_model_len, 4096);
  EXPECT_EQ(job->max_num_batched_tokens, 2048);
  EXPECT_TRUE(job->enforce_eager);
  const std::vector<std::string> wrong = {"sglang", "serve", "m", "--gpu-memory-utilization", "0.8"};
  const auto refused = read_server_command(wrong, {});
  ASSERT_FALSE(refused) << "that is vLLM's name";
  EXPECT_NE(refused.error().message.find("SGLang"), std::string::npos) << refused.error().message;
}

TEST(ServerCommand, SglangsOptionsHaveSeveralNames) {
  for (const std::string flag : {"--tp", "--tp-size", "--tensor-parallel-size"}) {
    const auto job = read_server_command(std::vector<std::string>{"sglang", "serve", "m", flag, "4"}, {});
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->tensor_parallel, 4) << flag;
  }
  EXPECT_EQ(option_name("sglang", "gpu_memory_utilization"), "mem_fraction_static");
  EXPECT_EQ(option_name("sglang", "cpu_offload_gb"), "");
  EXPECT_EQ(option_name("vllm", "gpu_memory_utilization"), "gpu_memory_utilization");
  EXPECT_FALSE(read_server_command(std::vector<std::string>{"sglang", "serve", "m", "--enable-lora"}, {}));
}

TEST(ServerCommand, VersionsAreComparedByTheirNumbers) {
  EXPECT_EQ(engine_version("v0.19.1rc1"), (EngineVersion{0, 19}));
  EXPECT_EQ(engine_version("7"), (EngineVersion{7, 0}));
  EXPECT_GT(engine_version("0.50"), engine_version("0.5.6"));
  for (const std::string text : {"", "v", "zero", "0.", "0.x", "-1.2", "0.-2", "0-5"}) {
    EXPECT_FALSE(engine_version(text)) << text;
  }
}

TEST(ServerCommand, TheModelIsTheCommandsOwnWhereNoneIsGiven) {
  const auto config_of = [](const std::vector<std::string>& command) {
    const auto request = serving_request_of({.config = "", .gpu = "l4", .version = "", .command = command});
    return request ? request->config : "error: " + request.error().message;
  };
  EXPECT_EQ(config_of({"vllm", "serve", "a/b", "-tp", "2"}), "a/b");
  EXPECT_EQ(config_of({"vllm", "serve", "--model=a/b"}), "a/b");
  EXPECT_EQ(config_of({"python", "-m", "vllm.entrypoints.openai.api_server", "--model", "a/b"}), "a/b");
  EXPECT_EQ(config_of({"sglang", "serve", "--model-path", "a/b"}), "a/b");
  EXPECT_TRUE(config_of({"vllm", "serve"}).starts_with("error: "));
}

TEST(ServerCommand, OptionsHoldOverTheCommand) {
  const std::vector<std::string> command = {"vllm", "serve", "a/b", "--max-lora-rank", "64", "--cpu-offload-gb", "2.5"};
  const auto request = serving_request_of(
      {.config = "c.json", .gpu = "l4", .version = "0.19.0", .command = command, .options = {{"max_lora_rank", "8"}}});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->config, "c.json");
  EXPECT_EQ(request->job.max_lora_rank, 8);
  EXPECT_EQ(request->job.cpu_offload_gb, 2.5);
  EXPECT_EQ(request->job.version, "0.19.0");
}

TEST(ServerCommand, SpeculationIsReadFromItsJson) {
  const auto eagle = read_speculation(R"({"method": "eagle3", "model": "draft", "draft_tensor_parallel_size": 1})");
  ASSERT_TRUE(eagle && *eagle);
  EXPECT_EQ((*eagle)->method, "eagle3");
  EXPECT_EQ((*eagle)->model, "draft");
  EXPECT_EQ((*eagle)->ranks, 1);
  const auto named = read_speculation(R"({"model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"})");
  ASSERT_TRUE(named && *named);
  EXPECT_EQ((*named)->method, "eagle3");
  const auto next = read_speculation(R"({"method": "qwen3_next_mtp", "model": "unused"})");
  ASSERT_TRUE(next && *next);
  EXPECT_EQ((*next)->method, "mtp");
  EXPECT_EQ((*next)->model, "");
  const auto none = read_speculation("");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  const auto open = read_speculation(R"({"model": "draft", "draft_tensor_parallel_size": null})");
  ASSERT_TRUE(open && *open);
  EXPECT_EQ((*open)->ranks, 0);
  for (const char* const wrong :
       {"ngram", "[]", "{\"method\": \"eagle\"}", "{\"method\": \"medusa\"}", "{}",
        R"({"method": "ngram", "num_speculative_tokens": 0})", R"({"method": "mtp", "num_speculative_tokens": "x"})",
        R"({"model": "draft", "draft_tensor_parallel_size": -1})"}) {
    const auto read = read_speculation(wrong);
    ASSERT_FALSE(read) << wrong;
    EXPECT_NE(read.error().message.find("speculative_config"), std::string::npos) << read.error().message;
  }
}

TEST(ServerCommand, ImagesOfARequestAreReadInEveryForm) {
  for (const char* const two : {"image=2", "video=0,image=2", "{\"image\": 2}", "{\"image\": {\"count\": 2}}"}) {
    const auto images = images_per_prompt(two);
    ASSERT_TRUE(images) << two;
    EXPECT_EQ(*images, 2) << two;
  }
  for (const char* const none : {"", "video=1", "{\"video\": 1}"}) {
    const auto images = images_per_prompt(none);
    ASSERT_TRUE(images) << none;
    EXPECT_FALSE(*images) << none;
  }
  for (const char* const wrong :
       {"image", "image=", "image=-1", "image=2x", "{\"image\": -1}", "{\"image\": \"2\"}", "[2]"}) {
    EXPECT_FALSE(images_per_prompt(wrong)) << wrong;
  }
}

TEST(ServerCommand, OldTasksSayWhatTheModelDoes) {
  for (const char* const task : {"embed", "classify", "score", "reward"}) {
    const std::vector<std::string> words = {"vllm", "serve", "m", "--task", task};
    const auto job = read_server_command(words, {});
    ASSERT_TRUE(job) << task;
    EXPECT_EQ(job->runner, "pooling") << task;
  }
  const std::vector<std::string> words = {"vllm", "serve", "m", "--task", "sing"};
  EXPECT_FALSE(read_server_command(words, {}));
}

}  // namespace
}  // namespace gpumem::serve
