#include "gpumem/serve/vllm_command.hpp"

#include <gtest/gtest.h>

namespace gpumem::serve {
namespace {

TEST(VllmCommand, FlagsBecomeTheJob) {
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
  const auto job = read_vllm_command(words, {});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->tensor_parallel, 2);
  EXPECT_EQ(job->max_model_len, 8192);
  EXPECT_EQ(job->quantization, "fp8");
  EXPECT_TRUE(job->enforce_eager);
  EXPECT_EQ(job->data_parallel, 2);
  EXPECT_EQ(job->pipeline_parallel, 4);
}

TEST(VllmCommand, WrongFlagsAreNamed) {
  for (const std::string flag : {"--max-model-length", "--tensor-parallel-size", "--gpu-memory-utilization"}) {
    const std::vector<std::string> words = {"vllm", "serve", "m", flag, "much"};
    const auto job = read_vllm_command(words, {});
    ASSERT_FALSE(job);
    EXPECT_NE(job.error().message.find(flag), std::string::npos) << job.error().message;
  }
  EXPECT_FALSE(read_vllm_command(std::vector<std::string>{"vllm", "bench"}, {}));
  EXPECT_FALSE(read_vllm_command(std::vector<std::string>{"vllm", "serve", "m", "--dtype"}, {}));
}

}  // namespace
}  // namespace gpumem::serve
