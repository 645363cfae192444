// What `gpumem plan` prints.
#include <nlohmann/json.hpp>

#include "command_line.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using testing::expect_golden_run;
using testing::Outcome;
using testing::run;

constexpr const char* kSmall = "plan tests/golden/cli/configs/llama_made_up.json --gpu h100-80gb --seq 128 ";
constexpr const char* kShown =
    "plan tests/golden/cli/configs/llama3_70b.json --gpu h100-80gb --gpus 64 --seq 8192 --global-batch 512 --show 3";

TEST(CliPlan, Table) { expect_golden_run("plan_table", kShown); }

TEST(CliPlan, NoLayoutFits) {
  expect_golden_run("plan_does_not_fit",
                    "plan tests/golden/cli/configs/llama3_70b.json --gpu l4-24gb --gpus 1 --seq 8192 --global-batch 8");
}

TEST(CliPlan, WhatDoesNotFitGoesToTheHost) {
  expect_golden_run("plan_on_host",
                    "plan tests/golden/cli/configs/llama3_70b.json --gpu l4-24gb --gpus 8 --seq 8192 --global-batch 8 "
                    "--show 2");
}

TEST(CliPlan, JsonHasEveryFigure) {
  const Outcome result = run(std::string(kSmall) + "--gpus 4 --global-batch 8 --framework megatron --json");
  EXPECT_EQ(result.exit, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["gpus"], 4);
  EXPECT_EQ(json["global_batch"], 8);
  ASSERT_EQ(json["layouts"].size(), 10U);
  double last = 0.0;
  for (const auto& layout : json["layouts"]) {
    EXPECT_EQ(layout["framework"], "megatron");
    EXPECT_TRUE(layout["estimate"]["fits"]);
    const auto& options = layout["options"];
    EXPECT_EQ(options["data_parallel"].get<int>() * options["batch_size"].get<int>() * options["accumulate"].get<int>(),
              8);
    EXPECT_GE(layout["step_seconds"].get<double>(), last);
    last = layout["step_seconds"];
    double parts = 0.0;
    for (const auto& part : layout["step"]) parts += part.get<double>();
    EXPECT_NEAR(parts, last, 1e-5);
    EXPECT_EQ(layout["settings"]["format"], "Megatron-LM arguments");
    EXPECT_NE(layout["settings"]["text"].get<std::string>().find("--global-batch-size 8\n"), std::string::npos);
  }
  EXPECT_EQ(json["candidates"],
            json["too_large"].get<int>() + json["estimated"].get<int>() + json["slower"].get<int>());
}

TEST(CliPlan, ALayoutIsAnEstimatesOptions) {
  const Outcome plan = run(std::string(kSmall) + "--gpus 4 --global-batch 8 --show 1 --json");
  const nlohmann::json json = nlohmann::json::parse(plan.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << plan.err;
  nlohmann::json job = json["layouts"][0]["options"];
  job["summary"] = "tests/golden/cli/configs/llama_made_up.json";
  job["gpu"] = "h100-80gb";
  job["seq_length"] = 128;
  job["precision"] = "bf16-mixed";
  job["optimizer"] = "adamw";
  const Outcome estimate = run("batch -", job.dump() + "\n");
  const nlohmann::json answer = nlohmann::json::parse(estimate.out, nullptr, false);
  ASSERT_FALSE(answer.is_discarded()) << estimate.out;
  ASSERT_TRUE(answer.contains("estimates")) << estimate.out;
  EXPECT_EQ(answer["estimates"][0]["expected_bytes"], json["layouts"][0]["estimate"]["expected_bytes"]);
}

TEST(CliPlan, ExplainsALayout) {
  const Outcome result = run(std::string(kSmall) + "--gpus 4 --global-batch 8 --json --explain 'tensor-parallel=2'");
  EXPECT_EQ(result.exit, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.contains("explained")) << result.out;
  EXPECT_EQ(json["explained"]["options"]["data_parallel"], 2) << "what is left of 4 GPUs";
  EXPECT_TRUE(json["explained"]["outside"].empty());
  EXPECT_GT(json["explained"]["slower_by_seconds"].get<double>(), 0.0);
  const Outcome large =
      run("plan src/web/examples/llama3_8b.json --gpu h100-80gb --gpus 8 --seq 6144 --global-batch 16 --show 1 "
          "--settings 0 --explain 'data-parallel=8 sharding=fsdp2 batch=1 checkpointing=none'");
  EXPECT_NE(large.out.find(": tight, it may take "), std::string::npos) << large.out;
  const Outcome wrong = run(std::string(kSmall) + "--gpus 4 --global-batch 8 --explain optimizer=sgd");
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_NE(wrong.err.find("a layout to explain has no option 'optimizer=sgd'"), std::string::npos) << wrong.err;
}

TEST(CliPlan, ComparesNumbersOfGpus) {
  const Outcome result = run(std::string(kSmall) + "--gpus 2,4 --global-batch 8 --at-most-tensor-parallel 1 --json");
  EXPECT_EQ(result.exit, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_EQ(json["plans"].size(), 2U) << result.out;
  EXPECT_EQ(json["plans"][1]["gpus"], 4);
  for (const auto& layout : json["plans"][1]["layouts"]) EXPECT_EQ(layout["options"].value("tensor_parallel", 1), 1);
}

TEST(CliPlan, WrongWordsAreNamed) {
  const auto fails = [](const std::string& words, int exit, const char* part) {
    const Outcome result = run(words);
    EXPECT_EQ(result.exit, exit) << words;
    EXPECT_NE(result.err.find(part), std::string::npos) << words << ": " << result.err;
  };
  fails(std::string(kSmall) + "--gpus 4", 2, "--global-batch is required");
  fails(std::string(kSmall) + "--gpus 0 --global-batch 8", 2, "--gpus must be at least 1");
  fails(std::string(kSmall) + "--gpus 4 --global-batch 0", 2, "--global-batch must be at least 1");
  fails(std::string(kSmall) + "--gpus 4 --global-batch 8 --framework jax", 2, "no framework 'jax'");
  fails(std::string(kSmall) + "--gpus 4 --global-batch 8 --show 0", 2, "--show must be at least 1");
  fails(std::string(kSmall) + "--gpus 4 --global-batch 8 --network-gbps 0", 2, "--network-gbps must be more than 0");
  fails(std::string(kSmall) + "--gpus 4 --global-batch 8 --tensor-parallel 2", 2, "--tensor-parallel");
}

}  // namespace
}  // namespace gpumem
