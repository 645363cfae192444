// What `gpumem place` and `gpumem simulate` print.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "gpumem/all.hpp"
#include "own_path.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using testing::expect_golden_run;
using testing::Outcome;
using testing::run;

constexpr const char* kPlaceServer = " --server tests/golden/cli/place/server.json";

std::string place_rad(std::string_view options) {
  return std::string("place tests/golden/cli/place/vgg.rad") + kPlaceServer + " " + std::string(options);
}

std::string place_vgg(std::string_view options) {
  return std::string("place models/summaries/vgg16.torchsummary.txt --id vgg16") + kPlaceServer + " " +
         std::string(options);
}

TEST(CliPlace, ReadsARadFile) { expect_golden_run("place_rad", place_rad("")); }

TEST(CliPlace, PutsAJobBesideOthers) { expect_golden_run("place_magm", place_rad("--policy EST-MAGM --gpus 2")); }

TEST(CliPlace, PrintsOneJsonObject) {
  expect_golden_run("place_json", place_vgg("--batch 64 --policy best-fit --margin upper --json"));
}

TEST(CliPlace, SaysThatAJobHasToWait) {
  expect_golden_run("place_waits", place_vgg("--batch 192"));
  expect_golden_run("place_waits_json", place_vgg("--estimator none --policy first-fit --exclusive --gpus 2 --json"));
}

TEST(CliPlace, SaysThatAJobCanNeverRun) { expect_golden_run("place_never", place_vgg("--batch 512")); }

TEST(CliPlace, PutsALayoutOnAllOfItsGpus) {
  expect_golden_run("place_layout", place_vgg("--batch 16 --data-parallel 2 --sharding ddp --smact-cap none"));
  expect_golden_run("place_layout_never", place_vgg("--batch 16 --data-parallel 8 --sharding ddp"));
  const Outcome other = run(place_vgg("--batch 16 --data-parallel 2 --sharding ddp --gpus 3"));
  EXPECT_EQ(other.exit, 2);
  EXPECT_NE(other.err.find("the job asks for 3 GPUs, and its layout has 2"), std::string::npos) << other.err;
  const Outcome unknown = run(place_vgg("--estimator none --data-parallel 2 --json"));
  EXPECT_EQ(nlohmann::json::parse(unknown.out)["request"]["gpus"], 2) << unknown.err;
}

TEST(CliPlace, AServerIsAskedAboutOnEachKindOfGpu) {
  const std::string config = "place examples/configs/llama3_8b/config.json --engine-version 0.19.0";
  const std::string server = " -- vllm serve llama --max-model-len 8192";
  expect_golden_run("place_server", config + " --server tests/golden/cli/place/kinds.json" + server);
  const Outcome placed = run(config + " --json --server tests/golden/cli/place/kinds.json" + server);
  EXPECT_EQ(placed.exit, 0) << placed.err;
  const nlohmann::json kinds = nlohmann::json::parse(placed.out)["kinds"];
  ASSERT_EQ(kinds.size(), 2U) << "the smallest first, until one has room";
  EXPECT_EQ(kinds[0]["starts"], false);
  EXPECT_EQ(kinds[1]["decision"]["gpus"], nlohmann::json::array({"whole"}));
  const Outcome wide =
      run(config + " --server tests/golden/cli/place/kinds.json" + server + " --tensor-parallel-size 4");
  EXPECT_EQ(wide.exit, 4) << wide.out;
  const Outcome wrong = run(config + " --server tests/golden/cli/place/kinds.json" + server + " --no-such-flag");
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_NE(wrong.err.find("--no-such-flag"), std::string::npos) << wrong.err;
}

TEST(CliPlace, ARequestForAServerIsThatOfServe) {
  const std::string options = " --engine-version 0.19.0 --gpu h100-80gb --for hami";
  const std::string config = "examples/configs/llama3_8b/config.json";
  const Outcome asked = run("request " + config + options + " -- vllm serve llama --max-model-len 8192");
  EXPECT_EQ(asked.exit, 0) << asked.err;
  EXPECT_EQ(asked.out, run("serve " + config + options + " --max-model-len 8192").out);
  const Outcome training = run("request " + config + options + " --optimizer sgd -- vllm serve llama");
  EXPECT_EQ(training.exit, 2) << training.out;
  EXPECT_NE(training.err.find("--optimizer is a training's"), std::string::npos) << training.err;
  const Outcome json = run("request " + config + options + " --json -- vllm serve llama --max-model-len 8192");
  const nlohmann::json answer = nlohmann::json::parse(json.out);
  EXPECT_TRUE(answer["starts"]);
  EXPECT_EQ(answer["request"]["for"], "hami");
  EXPECT_EQ(run("request " + config + options).exit, 2) << "a training job needs a batch size";
}

TEST(CliPlace, NeedsNoEstimate) { expect_golden_run("place_no_estimate", place_vgg("--estimator none")); }

TEST(CliPlace, ConditionsAreValues) {
  const auto words = [](std::string_view options) {
    const Outcome result = run(place_rad(std::string(options) + " --policy magm --json"));
    EXPECT_EQ(result.err, "");
    return nlohmann::json::parse(result.out)["decision"]["words"].get<std::string>();
  };
  EXPECT_EQ(words("--smact-cap none"), "on GPU 2: 31.6 GiB free, SM activity 93 %, next to 1 other job");
  EXPECT_EQ(words("--idle-first"), "on GPU 3-mig-1: 19.5 GiB free, SM activity 0 %");
  EXPECT_EQ(words("--free-floor 30GiB"), "on GPU 3-mig-1: 19.5 GiB free, SM activity 0 %");
  EXPECT_EQ(words("--smact-cap 0.4 --margin 8GiB"), "on GPU 3-mig-1: 19.5 GiB free, SM activity 0 %");
}

TEST(CliPlace, TheJobsOwnActivityJoinsIn) {
  // Without it the job goes to GPU 0, next to another that keeps it 41 % busy.
  expect_golden_run("place_smact", place_vgg("--batch 64 --smact estimate"));
  const auto placed = [](std::string_view options) {
    const Outcome result = run(place_vgg("--batch 64 --json " + std::string(options)));
    EXPECT_EQ(result.err, "");
    return nlohmann::json::parse(result.out);
  };
  const auto estimated = placed("--smact estimate");
  const Outcome utilisation = run("utilisation models/summaries/vgg16.torchsummary.txt --batch 64 --json");
  const auto smact = nlohmann::json::parse(utilisation.out)["utilisation"][0]["smact"]["expected"].get<double>();
  // On the slices of a GPU the same job keeps more of it busy.
  EXPECT_GE(estimated["request"]["smact"].get<double>(), smact);
  EXPECT_LE(estimated["request"]["smact"].get<double>(), 1.0);
  EXPECT_EQ(estimated["decision"]["gpus"][0], "3-mig-1");
  EXPECT_EQ(placed("--smact 0.3")["decision"]["gpus"][0], "0");
  EXPECT_EQ(placed("--smact 0.3")["request"]["smact"], 0.3);
  EXPECT_EQ(placed("--smact 0.5")["decision"]["gpus"][0], "3-mig-1");
  EXPECT_FALSE(placed("--smact none")["request"].contains("smact"));
}

TEST(CliPlace, RefusesWhatCannotBeMeant) {
  const auto refuses = [](const std::string& words, int exit, std::string_view part) {
    const Outcome result = run(words);
    EXPECT_EQ(result.exit, exit) << words;
    EXPECT_EQ(result.out, "") << words;
    EXPECT_NE(result.err.find(part), std::string::npos) << words << "\n" << result.err;
  };
  refuses(place_vgg(""), 2, "a summary has no batch size");
  refuses(place_rad("--policy magic"), 2, "there is no policy 'magic'");
  refuses(place_rad("--margin lots"), 2, "there is no margin 'lots'; say upper, or bytes such as 2GiB");
  refuses(place_rad("--margin -1GiB"), 2, "there is no margin '-1GiB'");
  refuses(place_rad("--free-floor 5GB"), 2, "--free-floor takes memory such as 2GiB");
  refuses(place_rad("--free-floor 99999999999TiB"), 2, "--free-floor");
  refuses(place_rad("--smact-cap 80"), 2, "--smact-cap takes a share");
  refuses(place_rad("--gpus 0"), 2, "asks for 0 GPUs");
  refuses(place_rad("--smact 2"), 2, "--smact takes a share from 0 to 1, estimate, or none, not '2'");
  refuses(place_vgg("--estimator none --smact estimate"), 2, "--smact estimate needs a batch size");
  refuses(place_rad("--estimator all"), 2, "place takes one estimator");
  refuses("place tests/golden/cli/place/unknown_policy.rad" + std::string(kPlaceServer), 3,
          "unknown_policy.rad:5: there is no policy 'sometimes'");
  refuses("place tests/golden/cli/place/vgg.rad --server nowhere.json", 3, "nowhere.json: ");
  refuses("place tests/golden/cli/place/vgg.rad --server tests/golden/cli/place/vgg.rad", 3, "vgg.rad:1: ");
  refuses("place nowhere.rad" + std::string(kPlaceServer), 3, "nowhere.rad: ");
}

constexpr const char* kJobs = "simulate tests/golden/simulate/jobs.csv ";

TEST(CliSimulate, SaysWhatBecomesOfATrace) {
  const std::string jobs = kJobs;
  expect_golden_run("simulate", jobs + "--gpus 2xa100-40gb");
  expect_golden_run("simulate_exclusive", jobs + "--gpus 2xa100-40gb --policy exclusive --missing-duration 120");
  expect_golden_run("simulate_column", jobs + "--gpus 3xa100-40gb --estimator guess --margin 0 --recovery growing");
  expect_golden_run("simulate_true",
                    jobs + "--gpus a100-40gb,h200-141gb --estimator true --margin 1.15x --sharing streams --seed 7");
}

TEST(CliSimulate, GivesALayoutAllOfItsGpus) {
  const std::string layouts = "simulate tests/golden/simulate/layouts.csv --gpus ";
  expect_golden_run("simulate_layouts", layouts + "4xa100-40gb --estimator replay");
  const Outcome few = run(layouts + "3xa100-40gb");
  EXPECT_EQ(few.exit, 3);
  EXPECT_NE(few.err.find("asks for 4 GPUs; there are 3"), std::string::npos) << few.err;
  const Outcome other = run("simulate - --gpus 4xa100-40gb",
                            "arrival_s,task,gpus,duration_s,measured_mib,data_parallel\n0,job,2,10,1000,4\n");
  EXPECT_EQ(other.exit, 3);
  EXPECT_NE(other.err.find("gpus is 2, and the layout has 4"), std::string::npos) << other.err;
}

TEST(CliSimulate, EstimatesTheSummariesThatATraceNames) {
  expect_golden_run("simulate_own", std::string(kJobs) + "--gpus 2xa100-40gb --estimator replay --margin upper");
}

TEST(CliSimulate, PrintsOneJsonObject) {
  const Outcome result = run(std::string(kJobs) + "--gpus 2xa100-40gb --estimator other --json");
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["options"]["policy"], "magm");
  EXPECT_EQ(json["totals"]["finished"], 12);
  EXPECT_EQ(json["jobs"].size(), 12U);
  EXPECT_EQ(json["runs"].size(), 12U + json["totals"]["out_of_memory"].get<std::size_t>());
  double busy = 0.0;
  for (const auto& share : json["over_time"]["smact"]) busy += share.get<double>();
  const auto steps = static_cast<double>(json["over_time"]["smact"].size());
  EXPECT_NEAR(busy / steps, json["totals"]["mean_smact"].get<double>(), 1e-9);
  EXPECT_EQ(json["over_time"]["waiting"].back(), 0);
}

TEST(CliSimulate, DrawsAPicture) {
  const fs::path file = testing::own_path("simulate.svg");
  const Outcome result = run(std::string(kJobs) + "--gpus 2xa100-40gb -o '" + file.string() + "'");
  ASSERT_EQ(result.exit, 0) << result.err;
  const std::string picture = testing::text_of(file);
  fs::remove(file);
  EXPECT_TRUE(picture.starts_with("<svg") || picture.starts_with("<?xml")) << picture.substr(0, 40);
  for (const char* word : {"GPU 0", "GPU 1", "waiting", "resnet50", "since the first arrival", "</svg>"}) {
    EXPECT_NE(picture.find(word), std::string::npos) << word;
  }
}

TEST(CliSimulate, SaysWhatIsWrong) {
  const std::string jobs = kJobs;
  std::string text;
  for (const std::string& words :
       {jobs + "--gpus 4xb100", jobs + "--gpus 0xa100-40gb", jobs + "--gpus t4-16gb", jobs + "--gpus 1xa100-40gb",
        jobs + "--policy fastest", jobs + "--estimator fake", jobs + "--estimator guess --margin upper",
        jobs + "--margin lots", jobs + "--sharing mig", jobs + "--recovery never", jobs + "--smact-cap 80",
        jobs + "--free-floor lots", jobs + "--missing-duration long", jobs + "--smact 2", jobs + "--window -1",
        jobs + "--idle-watts 50", std::string("simulate none.csv")}) {
    const Outcome result = run(words);
    text += "$ gpumem " + words + "\nexit code " + std::to_string(result.exit) + "\n" + result.out + result.err;
  }
  testing::expect_golden(fs::path(GPUMEM_GOLDEN_DIR) / "cli/simulate_wrong.golden", text);
  const std::string header = "arrival_s,task,gpus,duration_s,measured_mib\n";
  text.clear();
  for (const std::string& input :
       {std::string(), header, header + "-1,a,1,1,1\n", header + "0,a,1,1,1\n0,a,1,1,-1\n", header + "0,a,1,1,99999\n",
        header + "0,a,9,1,1\n", header + "0,a,1,,1\n", "job," + header + "x,0,a,1,1,1\nx,0,b,1,1,1\n"}) {
    const Outcome result = run("simulate -", input);
    text += result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.exit, 0) << input;
  }
  testing::expect_golden(fs::path(GPUMEM_GOLDEN_DIR) / "cli/simulate_wrong_trace.golden", text);
}

}  // namespace
}  // namespace gpumem
