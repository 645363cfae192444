// Jobs that the command behind "--" tells.
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "gpumem/all.hpp"

namespace gpumem {
namespace {

using nlohmann::json;
using testing::Outcome;
using testing::run;

const std::string kModel = "examples/trainers/tinyllama";
const std::string kTorchrun =
    " -- torchrun --nproc-per-node 4 train.py --output_dir o --model_name_or_path m --per_device_train_batch_size 2 "
    "--max_seq_length 256 --bf16 True";

json answer(const std::string& words) {
  const Outcome result = run(words);
  EXPECT_EQ(result.exit, 0) << result.err;
  return json::parse(result.out, nullptr, false);
}

std::int64_t expected_of(const json& estimate) {
  return estimate["estimates"][0]["expected_bytes"].get<std::int64_t>();
}

TEST(CliLaunch, ACommandSaysWhatOptionsWouldSay) {
  const json by_command = answer("estimate " + kModel + " --json" + kTorchrun);
  const json by_options = answer("estimate " + kModel +
                                 " --json --batch 2 --seq 256 --precision amp-bf16 --optimizer adamw --loop hf-trainer "
                                 "--data-parallel 4 --sharding ddp");
  EXPECT_EQ(expected_of(by_command), expected_of(by_options));
  EXPECT_EQ(by_command["job"]["data_parallel"], 4);
  bool told = false;
  for (const json& one : by_command["estimates"][0]["assumed"]) {
    told = told ||
           (one["about"] == "command" && one["text"].get<std::string>().starts_with("from the command: --batch 2"));
  }
  EXPECT_TRUE(told) << by_command["estimates"][0]["assumed"].dump();
}

TEST(CliLaunch, GivenOptionsWin) {
  const json given = answer("estimate " + kModel + " --json --batch 1 --precision fp32" + kTorchrun);
  EXPECT_EQ(given["job"]["batch_size"], 1);
  EXPECT_EQ(given["job"]["precision"], "fp32");
  EXPECT_EQ(given["job"]["seq_length"], 256);
}

TEST(CliLaunch, PartsOfAScriptAreThoseOfAFolderOrPublished) {
  const std::string folder = "examples/configs/stable_diffusion";
  const std::string script =
      " --json -- accelerate launch --mixed_precision=bf16 train_dreambooth.py --train_batch_size=1";
  const json whole = answer("estimate " + folder + script);
  const json alone = answer("estimate " + folder + "/unet/config.json" + script);
  EXPECT_EQ(whole["job"]["parts"], "all");
  EXPECT_EQ(alone["job"]["parts"], "all") << "Stable Diffusion 1.5 has these parts wherever its UNet lies";
  EXPECT_NEAR(static_cast<double>(expected_of(alone)) / static_cast<double>(expected_of(whole)), 1.0, 0.01);
  EXPECT_NE(alone["estimates"][0]["assumed"].dump().find("text_encoder (CLIP ViT-L)"), std::string::npos)
      << alone.dump();
  // Text encoders that are trained are held as frozen ones: the upper figure has the rest of 123 million.
  const json trained = answer("estimate " + folder + script + " --train_text_encoder");
  const auto range = [](const json& of) {
    return of["estimates"][0]["upper_uncut_bytes"].get<std::int64_t>() -
           of["estimates"][0]["expected_bytes"].get<std::int64_t>();
  };
  EXPECT_GT(range(trained), range(whole) + std::int64_t{15} * 123'000'000);
}

TEST(CliLaunch, AFileSaysTheSameByItselfAndBehindItsCommand) {
  const std::string model = "examples/configs/qwen3_vl_2b";
  const std::string file = "examples/trainers/llama_factory.yaml";
  const std::string said = run("estimate " + model + " --trainer " + file).err;
  if (said.find("built without yaml-cpp") != std::string::npos) GTEST_SKIP() << "built without yaml-cpp";
  const json by_file = answer("estimate " + model + " --json --trainer " + file);
  const json by_command = answer("estimate " + model + " --json -- llamafactory-cli train " + file);
  const auto targets = by_file["job"]["lora_targets"].get<std::string>();
  EXPECT_NE(targets.find("not:"), std::string::npos) << "its vision tower has no adapters: " << targets;
  EXPECT_EQ(by_command["job"]["lora_targets"], targets);
  const json given = answer("estimate " + model + " --json --lora-targets q_proj --trainer " + file);
  EXPECT_EQ(given["job"]["lora_targets"], "q_proj");
}

TEST(CliLaunch, APlaceTakesIt) {
  const std::string place = "place " + kModel + " --server tests/golden/cli/place/server.json --json";
  const json by_command = json::parse(run(place + kTorchrun).out, nullptr, false);
  const json by_options = json::parse(run(place + " --batch 2 --seq 256 --precision amp-bf16 --optimizer adamw --loop "
                                                  "hf-trainer --data-parallel 4 --sharding ddp")
                                          .out,
                                      nullptr, false);
  EXPECT_EQ(by_command["request"], by_options["request"]);
  EXPECT_EQ(by_command["request"]["gpus"], 4) << by_command;
  EXPECT_NE(by_command["estimates"][0]["assumed"].dump().find("from the command: --batch 2"), std::string::npos);
  const Outcome other = run("place --server tests/golden/cli/place/server.json -- python3 train.py");
  EXPECT_NE(other.exit, 0);
  EXPECT_NE(other.err.find("train.py"), std::string::npos) << other.err;
}

TEST(CliLaunch, APlaceWithoutAnEstimateTakesItsNumberOfGpus) {
  const std::string place = "place --estimator none --server tests/golden/cli/place/server.json --smact-cap none ";
  const std::string script = " -- torchrun --nproc-per-node 2 train.py";
  const json placed = json::parse(run(place + "--json" + script).out, nullptr, false);
  EXPECT_EQ(placed["request"]["id"], "train") << placed;
  EXPECT_EQ(placed["request"]["gpus"], 2) << placed;
  EXPECT_EQ(placed["request"]["memory_bytes"], nullptr) << placed;
  EXPECT_EQ(answer(place + "--json -- python3 train.py")["request"]["gpus"], 1);
  EXPECT_NE(run(place + script).out.find("assumed: from the command: 2 GPUs"), std::string::npos);
  EXPECT_EQ(run(place + "--gpus 1" + script).exit, 2);
  EXPECT_NE(run(place + "--smact estimate" + script).exit, 0) << "its SM activity is that of a model";
  EXPECT_NE(run(place + "-- swift rlhf --rlhf_type dpo").exit, 0) << "its GPUs are not its launcher's";
}

TEST(CliLaunch, EveryQuestionTakesIt) {
  EXPECT_EQ(run("fit " + kModel + kTorchrun).exit, 0);
  EXPECT_EQ(run("advise " + kModel + kTorchrun).exit, 0);
  const Outcome plan = run("plan " + kModel + " --gpu h100-80gb" + kTorchrun);
  EXPECT_EQ(plan.exit, 0) << plan.err;
  EXPECT_NE(plan.out.find("4 GPUs, 8 samples a step"), std::string::npos) << plan.out;
  const Outcome plans = run("plan " + kModel + " --gpu h100-80gb --gpus 2,4" + kTorchrun);
  EXPECT_EQ(plans.exit, 0) << plans.err;
  const std::size_t told = plans.out.find("assumed: from the command: ");
  EXPECT_NE(told, std::string::npos) << plans.out;
  EXPECT_EQ(plans.out.find(plans.out.substr(told, plans.out.find('\n', told) - told), told + 1), std::string::npos)
      << "what both plans assume is said once: " << plans.out;
}

TEST(CliLaunch, CheckIsOneLineAndACode) {
  const Outcome fits = run("check " + kModel + " --gpu h100-80gb" + kTorchrun);
  EXPECT_EQ(fits.exit, 0) << fits.err;
  EXPECT_EQ(fits.out.rfind("fits: ", 0), 0U) << fits.out;
  EXPECT_EQ(std::count(fits.out.begin(), fits.out.end(), '\n'), 1);
  const Outcome not_here = run("check " + kModel + " --gpu t4-16gb" + kTorchrun);
  EXPECT_EQ(not_here.exit, 4) << not_here.err;
  EXPECT_EQ(not_here.out.rfind("does not fit: ", 0), 0U) << not_here.out;
  EXPECT_EQ(run("check --json nowhere.json --batch 1").exit, 3);
}

TEST(CliLaunch, ServersAndPostTrainingsAreAnswered) {
  const Outcome server = run("estimate --gpu h100-80gb -- vllm serve " + kModel + " --max-model-len 1024");
  EXPECT_EQ(server.exit, 0) << server.err;
  EXPECT_NE(server.out.find("KV cache"), std::string::npos);
  EXPECT_EQ(run("plan -- vllm serve " + kModel).exit, 2);
  const Outcome preferences = run("estimate --gpu h100-80gb --seq 256 -- swift rlhf --rlhf_type dpo --model " + kModel +
                                  " --max_length 256 --per_device_train_batch_size 1");
  EXPECT_EQ(preferences.exit, 0) << preferences.err;
  EXPECT_NE(preferences.out.find("reference"), std::string::npos) << preferences.out;
}

TEST(CliLaunch, ARequestIsOfWhatTheCommandStarts) {
  const json told = answer("request " + kModel + " --gpu h100-80gb --for slurm --json" + kTorchrun);
  EXPECT_EQ(told["job"]["data_parallel"], 4) << told;
  const std::string server = "vllm serve " + kModel + " --max-model-len 1024";
  EXPECT_EQ(run("request --gpu h100-80gb --for slurm -- " + server).exit, 0);
  const Outcome on_one = run("request --gpu h100-80gb --for slurm -- CUDA_VISIBLE_DEVICES=0 " + server);
  EXPECT_EQ(on_one.exit, 0) << on_one.err;
  const Outcome unread =
      run("request --gpu h100-80gb --for slurm -- accelerate launch --config_file nowhere.yaml train.py");
  EXPECT_NE(unread.exit, 0);
  EXPECT_NE(unread.err.find("nowhere.yaml"), std::string::npos) << unread.err;
  const Outcome not_known = run("request --gpu h100-80gb --for slurm -- ls -l");
  EXPECT_EQ(not_known.exit, 2);
  EXPECT_NE(not_known.err.find("the command 'ls' is not known"), std::string::npos) << not_known.err;
}

TEST(CliLaunch, AServerHasNoBatchToFit) {
  const Outcome refused = run("fit --batch 4 --gpu h100-80gb -- vllm serve " + kModel);
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("leave it out"), std::string::npos) << refused.err;
}

TEST(CliLaunch, AMissingFileOfDeepSpeedWidensTheRange) {
  const std::string command = " -- deepspeed --num_gpus 8 train.py --model_name_or_path " + kModel +
                              " --output_dir o --per_device_train_batch_size 2 --max_seq_length 256 --bf16 True";
  const json known = answer("estimate --gpu h100-80gb --json" + command);
  const json open = answer("estimate --gpu h100-80gb --json" + command + " --deepspeed nowhere.json");
  const auto lower_of = [](const json& estimate) {
    return estimate["estimates"][0]["lower_bytes"].get<std::int64_t>();
  };
  EXPECT_LT(lower_of(open), lower_of(known)) << "ZeRO-3 over eight ranks takes less";
  EXPECT_NE(open.dump().find("from ZeRO-3 to no sharding"), std::string::npos);
  // Where the range is not widened, it is not said to be.
  const json given = answer("estimate --gpu h100-80gb --sharding zero-2 --precision bf16-mixed --json" + command +
                            " --deepspeed nowhere.json");
  const json fit = answer("fit --gpu h100-80gb --json" + command + " --deepspeed nowhere.json");
  for (const json& narrow : {given, fit}) {
    EXPECT_NE(narrow.dump().find("nowhere.json is not here"), std::string::npos) << narrow;
    EXPECT_EQ(narrow.dump().find("from ZeRO-3 to no sharding"), std::string::npos) << narrow;
  }
}

TEST(CliLaunch, AScriptThatIsNotKnownIsToBeRecorded) {
  const Outcome unknown = run("estimate --gpu h100-80gb -- torchrun --nproc-per-node 8 train.py --lr 1");
  EXPECT_EQ(unknown.exit, 4);
  EXPECT_NE(unknown.err.find("record one step of it"), std::string::npos) << unknown.err;
  EXPECT_EQ(run("estimate -- ls -l").exit, 2);
}

}  // namespace
}  // namespace gpumem
