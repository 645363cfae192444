// What `gpumem run`, `gpumem queue` and `gpumem cancel` do and say, on GPUs that are made up.
#include <signal.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "command_line.hpp"
#include "gpumem/all.hpp"
#include "pretended_gpus.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Outcome;
using testing::run;

const std::string kJob = testing::kPretendedNvml + std::string("/pretended_job ");
constexpr const char* kNoFloor = " --free-floor 0 ";
constexpr const char* kVgg = "--summary models/summaries/vgg16.torchsummary.txt --batch 32 ";

std::string gib(long long count) { return std::to_string(count << 30); }

/// Two GPUs and a queue of their own.
class CliRun : public ::testing::Test {
 protected:
  CliRun() : queue_(testing::own_path("run_queue")) {
    fs::create_directories(queue_);
    setenv("GPUMEM_QUEUE", queue_.c_str(), 1);
  }
  ~CliRun() override {
    for (std::thread& one : behind_) one.join();
    unsetenv("GPUMEM_QUEUE");
    fs::remove_all(queue_);
  }

  /// `gpumem run` with these words in a shell of its own, while the test goes on.
  void run_behind(const std::string& words, const std::string& to = "behind") {
    const std::string command = std::string("cd '" GPUMEM_SOURCE_DIR "' && '") + testing::kCommandLine + "' run " +
                                words + " >/dev/null 2>'" + (queue_ / to).string() + "'";
    behind_.emplace_back([command] { (void)!std::system(command.c_str()); });
  }
  [[nodiscard]] static json jobs() {
    const Outcome result = run("queue --json");
    EXPECT_EQ(result.exit, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return json::parse(result.out)["jobs"];
  }
  /// Looks until it is so; a test that waits in vain ends after 20 s.
  static bool wait_until(const std::function<bool(const json&)>& so) {
    for (int tries = 0; tries < 400; ++tries) {
      if (so(jobs())) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  static bool nobody_is_there() {
    return wait_until([](const json& jobs) { return jobs.empty(); });
  }
  static bool are_there(std::size_t count) {
    return wait_until([&](const json& jobs) { return jobs.size() == count; });
  }

  testing::PretendedGpus gpus_{{testing::pretended_a100("GPU-0"), testing::pretended_a100("GPU-1")}};
  fs::path queue_;
  std::vector<std::thread> behind_;
};

TEST_F(CliRun, ALayoutGetsAllOfItsGpus) {
  const std::string job =
      "run --config tests/golden/cli/configs/llama_made_up.json --batch 1 --seq 128 --precision bf16 --data-parallel 2 "
      "--sharding fsdp2 ";
  const Outcome both = run(job + "-- sh -c 'echo $CUDA_VISIBLE_DEVICES'");
  EXPECT_EQ(both.exit, 0) << both.err;
  EXPECT_EQ(both.out, "GPU-0,GPU-1\n");
  const Outcome other = run(job + "--gpus 1 -- true");
  EXPECT_EQ(other.exit, 2);
  EXPECT_NE(other.err.find("its layout has 2"), std::string::npos) << other.err;
}

TEST_F(CliRun, RunsACommandOnAGpuAndReturnsItsExitCode) {
  const Outcome result =
      run("run --memory 2GiB --name job -- sh -c 'cat; echo $CUDA_VISIBLE_DEVICES; echo wrong >&2; exit 7'", "in\n");
  EXPECT_EQ(result.exit, 7);
  EXPECT_EQ(result.out, "in\nGPU-0\n");
  EXPECT_EQ(result.err, "gpumem: job#1 runs on GPU GPU-0: 39.6 GiB free, SM activity 0 %; 2.00 GiB promised\nwrong\n");
  EXPECT_TRUE(jobs().empty());
  EXPECT_EQ(run("run --memory 2GiB --gpus 2 -q -- sh -c 'echo $CUDA_VISIBLE_DEVICES'").out, "GPU-0,GPU-1\n");
  EXPECT_EQ(run("run -q --memory 2GiB -- sh -c 'kill -TERM $$'").exit, 128 + SIGTERM);
}

TEST_F(CliRun, WordsOfTheCommandAreNotGpumems) {
  EXPECT_EQ(run("run -q --memory 1GiB -- echo --checkpointing every:2 -- --help estimate").out,
            "--checkpointing every:2 -- --help estimate\n");
}

TEST_F(CliRun, EstimatesAndWritesWhatTheJobReallyTook) {
  const std::string job = kJob + gib(6) + " 1.5";
  EXPECT_EQ(run(std::string("run -q ") + kVgg + "--optimizer sgd -- " + job).exit, 0);
  const Outcome judged = run("evaluate '" + (queue_ / "runs.csv").string() + "' --json");
  ASSERT_EQ(judged.exit, 0) << judged.err;
  const std::string table = testing::text_of(queue_ / "runs.csv");
  EXPECT_NE(table.find(",a100-40gb,1,device,ok,6144\n"), std::string::npos) << table;
  EXPECT_NE(table.find(",sgd,"), std::string::npos) << table;
}

TEST_F(CliRun, ShowsWhoRunsAndWhoWaitsAndWhy) {
  run_behind("--memory 30GiB --name first --gpus 2 -- " + (kJob + gib(25)) + " 60", "first");
  ASSERT_TRUE(wait_until([](const json& jobs) { return jobs.size() == 1 && jobs[0]["seen_bytes"] == 25LL << 30; }));
  run_behind("--memory 20GiB --name second -- true", "second");
  ASSERT_TRUE(are_there(2));
  run_behind("--memory 1GiB --name third -- true", "third");
  ASSERT_TRUE(are_there(3));
  const json all = jobs();
  EXPECT_EQ(all[0]["name"], "first");
  EXPECT_EQ(all[0]["state"], "running");
  EXPECT_EQ(all[0]["gpus"], json({"GPU-0", "GPU-1"}));
  EXPECT_EQ(all[0]["promised_bytes"], 30LL << 30);
  EXPECT_EQ(all[1]["state"], "waiting");
  EXPECT_EQ(all[1]["why"],
            "not now: GPU GPU-0 comes closest with 9.56 GiB free of the 20.0 GiB that second#2 asks for");
  EXPECT_EQ(all[2]["why"], "after second#2") << "nobody overtakes, though it would fit";
  const Outcome table = run("queue");
  for (const char* word : {"first#1", "GPU 0, GPU 1", "30.00 GiB", "25.00 GiB", "asks for 1", "after second#2"}) {
    EXPECT_NE(table.out.find(word), std::string::npos) << word << "\n" << table.out;
  }
  EXPECT_EQ(run("cancel 1").exit, 0);
  EXPECT_TRUE(nobody_is_there());
  EXPECT_NE(testing::text_of(queue_ / "second").find("second#2 waits: not now: GPU GPU-0 comes closest"),
            std::string::npos);
  EXPECT_NE(testing::text_of(queue_ / "third").find("third#3 waits after second#2, as number 2 in the queue"),
            std::string::npos);
}

TEST_F(CliRun, CancelsWhoWaitsAndWhoRuns) {
  run_behind("--memory 30GiB --name runs --gpus 2 -- sleep 30", "runs");
  ASSERT_TRUE(are_there(1));
  run_behind("--memory 30GiB --name waits -- true", "waits");
  ASSERT_TRUE(are_there(2));
  EXPECT_EQ(run("cancel 9").exit, 2);
  EXPECT_EQ(run("cancel waits#2").out, "waits#2 leaves the queue\n");
  ASSERT_TRUE(are_there(1));
  EXPECT_EQ(run("cancel 1").out, "runs#1 was asked to end\n");
  ASSERT_TRUE(nobody_is_there());
  EXPECT_NE(testing::text_of(queue_ / "waits").find("waits#2 was cancelled while it waited"), std::string::npos);
  EXPECT_NE(testing::text_of(queue_ / "runs").find("runs#1 was cancelled"), std::string::npos);
}

TEST_F(CliRun, GoesPastAWaiterThatIsStopped) {
  run_behind("--memory 30GiB --name runs --gpus 2 -- sleep 12", "runs");
  ASSERT_TRUE(are_there(1));
  run_behind("--memory 30GiB --name stopped -- true", "stopped");
  ASSERT_TRUE(are_there(2));
  const pid_t launcher = jobs()[1]["launcher_pid"].get<pid_t>();
  ASSERT_EQ(kill(launcher, SIGSTOP), 0);
  run_behind("--memory 5GiB --name behind -- true", "behind");
  ASSERT_TRUE(wait_until([](const json& jobs) { return jobs.size() == 3 && jobs[1]["stopped"] == true; }));
  const json all = jobs();
  EXPECT_EQ(all[1]["why"], "its launcher is stopped; it keeps its place, and others go past it until kill -CONT " +
                               std::to_string(launcher));
  EXPECT_EQ(all[2]["why"], "about to start") << "nobody is before it, and it fits";
  EXPECT_NE(run("queue").out.find("stopped#2"), std::string::npos);
  ASSERT_TRUE(wait_until([](const json& jobs) { return jobs.size() == 2; })) << "the third has gone past";
  EXPECT_EQ(jobs()[1]["name"], "stopped");
  EXPECT_EQ(jobs()[1]["promised_bytes"], nullptr);
  ASSERT_EQ(kill(launcher, SIGCONT), 0);
  EXPECT_TRUE(nobody_is_there());
  EXPECT_NE(testing::text_of(queue_ / "stopped").find("stopped#2 runs on"), std::string::npos);
}

TEST_F(CliRun, KillsAJobThatRunsAloneAndDoesNotEnd) {
  const fs::path ready = queue_ / "ready";  // made when the job ignores the signal
  run_behind("--memory 30GiB --name deaf -- sh -c 'trap \"\" TERM; touch \"$0\"; while :; do sleep 1; done' '" +
                 ready.string() + "'",
             "deaf");
  ASSERT_TRUE(wait_until(
      [&](const json& jobs) { return jobs.size() == 1 && jobs[0]["state"] == "running" && fs::exists(ready); }));
  const auto launcher = jobs()[0]["launcher_pid"].get<pid_t>();
  ASSERT_EQ(kill(launcher, SIGKILL), 0);
  ASSERT_TRUE(wait_until([&](const json& jobs) { return kill(launcher, 0) != 0 && jobs.size() == 1; })) << "it runs on";
  const Outcome result = run("cancel 1");
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out, "deaf#1 was asked to end\ndeaf#1 was killed because it did not end by itself\n");
  EXPECT_TRUE(jobs().empty());
}

TEST_F(CliRun, NamesDoNotSpeakToTheTerminal) {
  run_behind("--memory 30GiB --name \"$(printf 'a\\033[2J')\" --gpus 2 -- sleep 60", "runs");
  ASSERT_TRUE(are_there(1));
  run_behind("--memory 30GiB --name \"$(printf 'b\\nc')\" -- true", "waits");
  ASSERT_TRUE(are_there(2));
  run_behind("--memory 30GiB --name third -- true", "third");
  ASSERT_TRUE(are_there(3));
  EXPECT_EQ(run("queue").out.find('\033'), std::string::npos);
  EXPECT_EQ(run("cancel 2").out, "b?c#2 leaves the queue\n");
  EXPECT_EQ(run("cancel 1").exit, 0);
  EXPECT_TRUE(nobody_is_there());
  EXPECT_NE(testing::text_of(queue_ / "runs").find("a?[2J#1 runs on"), std::string::npos);
  EXPECT_NE(testing::text_of(queue_ / "waits").find("b?c#2 was cancelled"), std::string::npos);
  EXPECT_NE(testing::text_of(queue_ / "third").find("third#3 waits after b?c#2"), std::string::npos);
}

TEST_F(CliRun, AMessageOnStandardOutputCountsToo) {
  const std::string fails = "run --memory 2GiB --name job -- sh -c 'echo CUDA out of memory; exit 3'";
  const Outcome to_file = run(fails);
  EXPECT_EQ(to_file.exit, 3);
  EXPECT_EQ(to_file.out, "CUDA out of memory\n");
  EXPECT_NE(to_file.err.find("it ran out of memory once"), std::string::npos) << to_file.err;
  const std::string to_pipe = std::string("'") + testing::kCommandLine + "' " + fails + " 2>'" +
                              (queue_ / "err").string() + "' | cat >'" + (queue_ / "out").string() + "'";
  EXPECT_EQ(std::system(to_pipe.c_str()), 0);
  EXPECT_EQ(testing::text_of(queue_ / "out"), "CUDA out of memory\n");
  EXPECT_NE(testing::text_of(queue_ / "err").find("it ran out of memory once"), std::string::npos);
  const Outcome harmless = run("run -q --memory 2GiB -- sh -c 'echo CUDA out of memory'");
  EXPECT_EQ(harmless.exit, 0);
  EXPECT_EQ(harmless.out, "CUDA out of memory\n");
}

TEST_F(CliRun, AJobThatFailsOnAFullGpuWasOutOfMemory) {
  const std::string grown = kJob + "42400000000 1.5 --exit 5";  // of 42.47 GB
  const Outcome result = run("run --memory 8GiB --name job --retries 1 -- " + grown);
  EXPECT_EQ(result.exit, 5);
  EXPECT_NE(result.err.find("job#1 failed with exit code 5 when it had outgrown its promise and its GPU was full"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("is given up"), std::string::npos) << result.err;
  const Outcome promised = run("run --memory 39GiB --name job -- " + (kJob + gib(39)) + " 0.5 --exit 5");
  EXPECT_EQ(promised.exit, 5);
  EXPECT_EQ(promised.err.find("again"), std::string::npos) << promised.err;
}

TEST_F(CliRun, AFullGpuCountsThoughTheMemoryIsGivenBackBeforeTheJobEnds) {
  const std::string grown = kJob + "42400000000 0.8 --linger 0.9 --exit 5";  // a look falls on 1.5 s
  const Outcome result = run("run --memory 8GiB --name job --retries 0 -- " + grown);
  EXPECT_EQ(result.exit, 5);
  EXPECT_NE(result.err.find("its GPU was full"), std::string::npos) << result.err;
}

TEST_F(CliRun, AJobThatWasOutOfMemoryRunsAgainAlone) {
  // Beside the first job 16 GiB are left, and the second takes 20 where 8 were promised.
  run_behind("--memory 24GiB --name first --policy first-fit" + std::string(kNoFloor) + "-- " + (kJob + gib(24)) +
             " 2");
  ASSERT_TRUE(wait_until([](const json& jobs) { return jobs.size() == 1 && jobs[0]["seen_bytes"] == 24LL << 30; }));
  const Outcome result =
      run("run --memory 8GiB --name job --policy first-fit" + std::string(kNoFloor) + "-- " + (kJob + gib(20)) + " 0");
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.err.find("torch.OutOfMemoryError: CUDA out of memory."), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("job 'job#2' runs again without other jobs\n"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("job#2 runs on GPU GPU-1"), std::string::npos) << result.err;
}

TEST_F(CliRun, AJobThatNoGpuHoldsIsGivenUp) {
  const Outcome result = run("run --memory 8GiB --name job -- " + (kJob + gib(60)) + " 0");
  EXPECT_EQ(result.exit, 1);
  EXPECT_NE(result.err.find("is given up: it ran out of memory once, the last time without other jobs, with 39.6 GiB"),
            std::string::npos)
      << result.err;
  const Outcome never = run("run --memory 60GiB --name job -- true");
  EXPECT_EQ(never.exit, 4);
  EXPECT_NE(never.err.find("never: job#2 asks for 60.0 GiB on a GPU"), std::string::npos) << never.err;
  EXPECT_TRUE(jobs().empty());
}

TEST_F(CliRun, OtherFailuresAreNotTriedAgain) {
  const Outcome result = run("run --memory 2GiB --name job -- sh -c 'echo RuntimeError >&2; exit 3'");
  EXPECT_EQ(result.exit, 3);
  EXPECT_EQ(result.err.find("again"), std::string::npos);
  const Outcome harmless = run("run --memory 2GiB --name job -- sh -c 'echo CUDA out of memory >&2'");
  EXPECT_EQ(harmless.exit, 0) << "it went on with a smaller batch by itself";
  const Outcome missing = run("run --memory 2GiB --name job -- /no/such/program");
  EXPECT_EQ(missing.exit, 127);
  EXPECT_NE(missing.err.find("the program '/no/such/program' cannot be started: No such file or directory"),
            std::string::npos);
}

TEST_F(CliRun, WhatRunsBesideTheQueueCounts) {
  gpus_.machine["gpus"][0]["used_outside"] = 35LL << 30;
  gpus_.machine["gpus"][1]["used_outside"] = 1LL << 30;
  gpus_.write();
  EXPECT_EQ(run("run -q --memory 20GiB -- sh -c 'echo $CUDA_VISIBLE_DEVICES'").out, "GPU-1\n");
}

TEST_F(CliRun, SaysWhatIsWrong) {
  const auto refuses = [](const std::string& words, int exit, std::string_view part) {
    const Outcome result = run(words);
    EXPECT_EQ(result.exit, exit) << words;
    EXPECT_TRUE(result.err.starts_with("gpumem: error: ")) << words << "\n" << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << words << "\n" << result.err;
  };
  refuses("run", 2, "run needs a command");
  refuses("run --memory 2GiB --", 2, "run needs a command");
  refuses("run --memory lots -- true", 2, "--memory takes memory such as 2GiB");
  refuses("run --memory 1GiB --recovery never -- true", 2, "write exclusive or grow");
  refuses("run --memory 1GiB --smact estimate -- true", 2, "needs a summary");
  refuses("run --memory 1GiB --smact 2 -- true", 2, "a share from 0 to 1");
  refuses("run --memory 1GiB --policy fastest -- true", 2, "there is no policy 'fastest'");
  refuses("run --memory 1GiB --gpus 0 -- true", 2, "asks for 0 GPUs");
  refuses("run --summary nowhere.txt --batch 1 -- true", 3, "nowhere.txt");
  refuses("run --summary models/summaries/vgg16.torchsummary.txt -- true", 2, "give it with --batch");
  refuses("run --memory 1GiB --config config.json -- true", 2, "excludes");
  refuses("run --memory 1GiB --directory /proc/queue -- true", 3, "/proc/queue");
  refuses("cancel everything", 2, "is not a job");
  setenv("GPUMEM_NVML", "/nowhere/libnvidia-ml.so.1", 1);
  refuses("run --memory 1GiB -- true", 3, "/nowhere/libnvidia-ml.so.1");
}

}  // namespace
}  // namespace gpumem
