// What `gpumem estimate`, `fit`, `request` and `utilisation` print.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "gpumem/all.hpp"
#include "own_path.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using testing::expect_golden_run;
using testing::kFit;
using testing::kResnet50;
using testing::Outcome;
using testing::resnet50;
using testing::run;

TEST(CliEstimate, PrintsATable) { expect_golden_run("estimate_table", resnet50("--batch 32")); }

TEST(CliEstimate, PrintsOneJsonObject) { expect_golden_run("estimate_json", resnet50("--batch 32 --json")); }

TEST(CliEstimate, SaysThatAJobDoesNotFit) {
  expect_golden_run("estimate_does_not_fit", resnet50("--batch 256 --gpu t4-16gb --precision fp32 --optimizer sgd"));
}

TEST(CliEstimate, ModelStatesAreALowerBound) {
  expect_golden_run("estimate_model_states", "estimate models/graphs/gpt_like.json --batch 8 --estimator model-states");
}

TEST(CliEstimate, ZeroIsOfOneOfManyGpus) {
  expect_golden_run("estimate_zero",
                    "estimate models/graphs/gpt_like.json --batch 8 --estimator zero-3-offload "
                    "--data-parallel 8 --precision bf16");
  expect_golden_run("estimate_zero_json",
                    "estimate models/graphs/gpt_like.json --batch 8 --estimator zero-2 "
                    "--data-parallel 8 --json");
}

TEST(CliEstimate, OfOneGpuDoesNotTakeSeveral) {
  expect_golden_run("estimate_data_parallel", resnet50("--batch 32 --data-parallel 8"));
}

TEST(CliEstimate, WhatATrainerMakesOfTheModelHasNoVocabularyHead) {
  const std::string model = "Qwen/Qwen3-Embedding-0.6B";
  const auto peak_of = [&](const std::string& task, const std::string& file) {
    const Outcome result =
        run("estimate --gpu h100-80gb --json -- swift sft --model " + model +
            " --tuner_type full --max_length 256 --dataset sentence-transformers/stsb:positive " + task);
    EXPECT_EQ(result.exit, 0) << result.err;
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(json["summary"]["file"], file);
    return json["estimates"][0]["expected_bytes"].get<std::int64_t>();
  };
  const std::int64_t whole = peak_of("--per_device_train_batch_size 8", model);
  const std::int64_t pairs =
      peak_of("--per_device_train_batch_size 4 --task_type embedding --loss_type infonce", model + ":Model");
  constexpr std::int64_t kLogits = 8LL * 256 * 151'669 * 2;  // in bfloat16, of as many texts
  EXPECT_LT(pairs, whole - kLogits);
}

TEST(CliEstimate, EveryEstimatorAnswersForItself) {
  const Outcome result = run(resnet50("--batch 32 --estimator all --json"));
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["estimates"].size(), estimate::estimators().size());
}

TEST(CliEstimate, JsonHasTheDocumentedFields) {
  const Outcome result = run(resnet50("--batch 32 --json"));
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["summary"]["file"], kResnet50);
  EXPECT_EQ(json["summary"]["format"], "torchsummary");
  EXPECT_EQ(json["summary"]["parameters"], 25557032);
  EXPECT_EQ(json["gpu"], "a100-40gb");
  const auto& answer = json["estimates"][0];
  for (const char* field : {"estimator", "expected_bytes", "lower_bytes", "upper_bytes", "allocated_bytes",
                            "reserved_bytes", "device_bytes", "fits", "breakdown", "peak", "coverage", "seconds"}) {
    EXPECT_TRUE(answer.contains(field)) << field;
  }
  std::int64_t sum = 0;
  for (const auto& part : answer["breakdown"]) sum += part.get<std::int64_t>();
  EXPECT_EQ(sum, answer["expected_bytes"].get<std::int64_t>());
  EXPECT_GE(answer["seconds"].get<double>(), 0.0);
  EXPECT_EQ(answer["estimator"], "replay");
  EXPECT_EQ(answer["peak"]["phase"], "backward");
  EXPECT_TRUE(answer["peak"]["layer"].is_string());
}

TEST(CliEstimate, TakesHowTheJobIsTrained) {
  const Outcome result =
      run(resnet50("--batch 32 --samples 1000 --zero-grad step-end --fused --no-foreach --accumulate 2 --validation "
                   "--software eager-loading --alloc-conf expandable_segments:True --json"));
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto job = nlohmann::json::parse(result.out)["job"];
  EXPECT_EQ(job["samples"], 1000);
  EXPECT_EQ(job["zero_grad"], "step-end");
  EXPECT_EQ(job["fused"], true);
  EXPECT_EQ(job["foreach"], false);
  EXPECT_EQ(job["accumulate"], 2);
  EXPECT_EQ(job["validation"], true);
  EXPECT_EQ(job["software"], "eager-loading");
  EXPECT_EQ(job["alloc_conf"], "expandable_segments:True");
}

TEST(CliEstimate, TakesEveryOptimizerByItsName) {
  std::string lines;
  for (const model::OptimizerRow& row : model::kOptimizerRows) {
    const std::string name(row.name);
    const Outcome words = run(resnet50("--batch 1 --json --optimizer " + name));
    ASSERT_EQ(words.exit, 0) << words.err;
    EXPECT_EQ(nlohmann::json::parse(words.out)["job"]["optimizer"], name);
    lines += R"({"summary": ")" + std::string(kResnet50) + R"(", "batch_size": 1, "optimizer": ")" + name + "\"}\n";
  }
  const Outcome batch = run("batch", lines);
  EXPECT_EQ(batch.exit, 0) << batch.err;
  std::istringstream answers(batch.out);
  std::string answer;
  for (const model::OptimizerRow& row : model::kOptimizerRows) {
    ASSERT_TRUE(std::getline(answers, answer));
    EXPECT_EQ(nlohmann::json::parse(answer)["job"]["optimizer"], row.name);
  }
}

TEST(CliEstimate, TheAllocatorsOptionsDecideWhatIsReserved) {
  const auto reserved = [](const std::string& options) {
    const Outcome result = run(resnet50("--batch 32 --json " + options));
    return nlohmann::json::parse(result.out)["estimates"][0]["reserved_bytes"].get<std::int64_t>();
  };
  EXPECT_LT(reserved("--alloc-conf expandable_segments:True"), reserved(""));
}

TEST(CliEstimate, ReadsStandardInput) {
  const Outcome result = run("estimate - --batch 4 --json", testing::text_of(fs::path(GPUMEM_SOURCE_DIR) / kResnet50));
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["summary"]["parameters"], 25557032);
}

TEST(CliEstimate, PrintsWarningsToStandardError) {
  expect_golden_run("estimate_warning", "estimate tests/golden/cli/wrong_total.txt --batch 1");
}

TEST(CliEstimate, AnUnknownLayerIsBoundedOrRefusedOrCountedAlone) {
  expect_golden_run("estimate_unknown_layer", "estimate tests/golden/cli/unknown_layer.txt --batch 1 --input 10");
  expect_golden_run("estimate_unknown_layer_strict",
                    "estimate tests/golden/cli/unknown_layer.txt --batch 1 --input 10 --strict");
  expect_golden_run("estimate_lenient",
                    "estimate tests/golden/cli/unknown_layer.txt --batch 1 --input 10 --lenient --estimator horus");
}

TEST(CliFit, OfALowerBoundIsNotKnown) {
  expect_golden_run("fit_lower_bound", "fit models/graphs/gpt_like.json --estimator zero-3 --data-parallel 8");
  expect_golden_run("fit_image", "fit flux.1-dev --find image --image 3x2 --gpu h100-80gb --precision bf16 --lora 16");
  expect_golden_run("fit_images",
                    "fit examples/configs/qwen3_vl_2b/config.json --find images --batch 2 --seq 512 "
                    "--image 640x480 --gpu h100-80gb --precision bf16 --lora 16");
  expect_golden_run("fit_frames_of_no_video",
                    "fit flux.1-dev --find frames --gpu h100-80gb --precision bf16 --lora 16");
  expect_golden_run("fit_unknown_find", "fit flux.1-dev --find photos");
}

TEST(CliFit, SaysTheLargestBatchAndWhatOneMoreNeeds) {
  const Outcome text = run(kFit);
  ASSERT_EQ(text.exit, 0) << text.err;
  const Outcome result = run(std::string(kFit) + "--json");
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_FALSE(json["job"].contains("batch_size"));
  EXPECT_EQ(json["at_least"], false);
  const std::int64_t capacity = json["capacity_bytes"];
  EXPECT_LE(json["estimate"]["expected_bytes"].get<std::int64_t>(), capacity);
  EXPECT_GT(json["one_more"]["expected_bytes"].get<std::int64_t>(), capacity);
  EXPECT_TRUE(json["estimate"]["fits"]);
  EXPECT_FALSE(json["one_more"]["fits"]);
  const std::int64_t batch = json["largest_batch"];
  EXPECT_NE(text.out.find("largest batch " + core::with_separators(batch) + ": "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("; batch " + core::with_separators(batch + 1) + " would need "), std::string::npos);
}

TEST(CliFit, OfAJobThatIsTooLargeAtBatchOneSaysTheNeed) {
  const std::string gpu =
      R"({"format": "gpumem-gpu", "version": 1, "name": "tiny", "title": "Tiny", "architecture": "none", "compute_capability": "1.0",
    "figures": {"memory_bytes": {"value": 1000000, "source": "made up"}}})";
  const fs::path profile = testing::own_path("tiny.json");
  std::ofstream(profile) << gpu;
  const std::string fit = "fit models/graphs/gpt_like.json --gpu '" + profile.string() + "'";
  const Outcome text = run(fit);
  EXPECT_EQ(text.exit, 4);
  EXPECT_EQ(text.out, "");
  EXPECT_NE(text.err.find("not even batch 1 fits: it would need "), std::string::npos) << text.err;
  const Outcome json = run(fit + " --json");
  EXPECT_EQ(json.exit, 4);
  EXPECT_EQ(nlohmann::json::parse(json.out)["largest_batch"], 0);
  fs::remove(profile);
}

std::string vgg16(std::string_view options) {
  return "request models/summaries/vgg16.torchsummary.txt --batch 64 " + std::string(options);
}

TEST(CliRequest, PrintsWhatEachTargetTakes) {
  for (const auto& target : request::targets()) {
    std::string name = "request_" + std::string(target.name);
    std::replace(name.begin(), name.end(), '-', '_');
    expect_golden_run(name, vgg16("--for " + std::string(target.name)));
  }
}

TEST(CliRequest, PrintsOneJsonObject) { expect_golden_run("request_json", vgg16("--for hami --margin 2GiB --json")); }

TEST(CliRequest, AsksForAllGpusOfALayout) {
  const auto layout = [](std::string_view options) { return vgg16("--sharding ddp " + std::string(options)); };
  expect_golden_run("request_layout_hami", layout("--data-parallel 8 --for hami"));
  expect_golden_run("request_layout_kai_limit", layout("--data-parallel 4 --for kai-limit --container vgg"));
  expect_golden_run("request_layout_slurm", layout("--data-parallel 16 --for slurm"));
  expect_golden_run("request_layout_json", layout("--data-parallel 4 --gpus-per-node 1 --for slurm --json"));
  expect_golden_run("request_layout_uneven", layout("--data-parallel 12 --for slurm"));
  expect_golden_run("request_layout_nvidia_mig", layout("--data-parallel 2 --for nvidia-mig"));
  expect_golden_run("request_layout_rank", layout("--data-parallel 8 --rank 3 --for hami"));
}

TEST(CliRequest, SaysNeedAndLimitWhereNoGpuHoldsIt) {
  expect_golden_run("request_does_not_fit", "request models/summaries/vgg16.torchsummary.txt --batch 1024 --for slurm");
  expect_golden_run("request_no_slice", vgg16("--gpu t4-16gb --for nvidia-mig"));
}

TEST(CliRequest, RefusesWrongWordsBeforeItReads) {
  EXPECT_EQ(run("request nowhere.txt --batch 1 --for k8s").exit, 2);
  EXPECT_EQ(run("request nowhere.txt --batch 1 --for ray --margin 2").exit, 2);
  EXPECT_EQ(run("request nowhere.txt --batch 1 --for ray --estimator all").exit, 2);
  EXPECT_EQ(run("request nowhere.txt --batch 1 --for ray").exit, 3);
  EXPECT_EQ(run("request nowhere.txt --batch 1").exit, 2);
}

TEST(CliRequest, OnlyTheRequestGoesToStandardOutput) {
  const Outcome result = run(vgg16("--for slurm"));
  EXPECT_TRUE(result.out.starts_with("--gres=shard:")) << result.out;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
  EXPECT_NE(result.err.find(" at batch 64 needs "), std::string::npos) << result.err;
}

TEST(CliUtilisation, PrintsATable) {
  expect_golden_run("utilisation_table", std::string("utilisation ") + kResnet50 + " --batch 32 --estimator all");
}

TEST(CliUtilisation, PrintsOneJsonObject) {
  expect_golden_run("utilisation_json",
                    std::string("utilisation ") + kResnet50 + " --batch 32 --gpu h200-141gb --estimator all --json");
}

TEST(CliWarnings, EveryCommandSaysWhatItGuessedOfTheModel) {
  const fs::path tree = testing::own_path("guessed_tree.txt");
  std::ofstream(tree) << R"(Net(
  (a): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (b): Conv2d(8, 4, kernel_size=(1, 1), stride=(1, 1))
  (c): Conv2d(12, 5, kernel_size=(1, 1), stride=(1, 1))
))";
  const std::string job = " '" + tree.string() + "' --input 3x8x8";
  const fs::path page = testing::own_path("guessed_tree.html");
  const std::string warning = run("estimate" + job + " --batch 4").err;
  EXPECT_NE(warning.find("guessed_tree.txt:4: "), std::string::npos) << warning;
  for (const std::string& words :
       {"fit" + job, "request" + job + " --batch 4 --for slurm", "utilisation" + job + " --batch 4",
        "timeline" + job + " --batch 4 -o '" + page.string() + "'"}) {
    const Outcome result = run(words);
    EXPECT_EQ(result.exit, 0) << result.err;
    EXPECT_NE(result.err.find(warning), std::string::npos) << words << "\n" << result.err;
  }
  fs::remove(tree);
  fs::remove(page);
}

/// The longest sample of a larger batch is longer than that of the batch which was asked for.
TEST(CliGpus, LengthsAreThoseOfTheLargestBatch) {
  const std::string lengths = " gpt2 --lengths 100x1000+700 --lengths-options steps=2 --json";
  const Outcome all = run("gpus --batch 8 --for" + lengths);
  const Outcome one = run("fit --gpu t4-16gb" + lengths);
  ASSERT_EQ(all.exit, 0) << all.err;
  ASSERT_EQ(one.exit, 0) << one.err;
  const nlohmann::json answer = nlohmann::json::parse(all.out);
  const nlohmann::json fit = nlohmann::json::parse(one.out);
  const auto& gpus = answer.at("gpus");
  const auto t4 = std::find_if(gpus.begin(), gpus.end(), [](const auto& gpu) { return gpu.at("gpu") == "t4-16gb"; });
  ASSERT_NE(t4, gpus.end());
  EXPECT_EQ(t4->at("largest_batch"), fit.at("largest_batch"));
}

}  // namespace
}  // namespace gpumem
