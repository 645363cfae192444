// What `gpumem server` and `gpumem place --server live` print, over the GPUs of tests/golden/cli/server/machine.json.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "gpumem/all.hpp"
#include "pretended_gpus.hpp"

namespace gpumem {
namespace {

using testing::expect_golden_run;
using testing::Outcome;
using testing::pretended_a100;
using testing::PretendedGpus;
using testing::run;
using Gpus = std::vector<nlohmann::json>;

/// The programs that run meanwhile see the machine of the file.
class CliServer : public ::testing::Test {
 protected:
  CliServer() {
    setenv("GPUMEM_NVML", (testing::kPretendedNvml + std::string("/libnvidia-ml.so.1")).c_str(), 1);
    setenv("GPUMEM_PRETENDED_NVML", "tests/golden/cli/server/machine.json", 1);
  }
  ~CliServer() override {
    unsetenv("GPUMEM_NVML");
    unsetenv("GPUMEM_PRETENDED_NVML");
  }
};

TEST_F(CliServer, PrintsWhatPlaceReads) {
  expect_golden_run("server", "server --window 200ms");
  expect_golden_run("server_at_once", "server --window 0 --json");
  const Outcome printed = run("server --window 0");
  const auto server = place::parse_server(printed.out);
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_EQ(server->gpus.size(), 4U);
}

TEST_F(CliServer, PlaceDecidesOnThisMachine) {
  const std::string vgg = "place models/summaries/vgg16.torchsummary.txt --id vgg16 --server live --window 200ms ";
  expect_golden_run("place_live", vgg + "--batch 64 --policy best-fit");
  expect_golden_run("place_live_smact", vgg + "--batch 64 --policy mug --smact 0.7");
}

TEST_F(CliServer, PrintsALineASecondForPeople) {
  const Outcome watched = run("server --watch --lines 2 --window 200ms");
  EXPECT_EQ(watched.exit, 0);
  ASSERT_EQ(std::count(watched.out.begin(), watched.out.end(), '\n'), 2) << watched.out;
  const std::string line = watched.out.substr(8, watched.out.find('\n') - 8);  // after the time
  EXPECT_EQ(
      line,
      "   GPU 0 13.0/39.6 GiB 41 %u   GPU 1 0.0/79.2 GiB 12 %   GPU 2.1 0.0/19.5 GiB ? %   GPU 2.2 0.0/4.8 GiB ? %"
      "   GPU 4 prohibited");
  // Each warning once, and how to read the lines.
  EXPECT_TRUE(watched.err.starts_with("gpumem: driver 550.54.15; ")) << watched.err;
  EXPECT_EQ(watched.err.find("GPU 3 is left out"), watched.err.rfind("GPU 3 is left out"));
}

TEST_F(CliServer, SaysWhatIsWrong) {
  const auto refuses = [](const std::string& words, int exit, std::string_view part) {
    const Outcome result = run(words);
    EXPECT_EQ(result.exit, exit) << words;
    EXPECT_EQ(result.out, "") << words;
    EXPECT_TRUE(result.err.starts_with("gpumem: error: ")) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << words << "\n" << result.err;
  };
  refuses("server --window 60", 2, "a window is a time such as 60s, 500ms or 2min, at most an hour, not '60'");
  refuses("server --lines 3", 2, "--watch");
  refuses("server --watch --json", 2, "--watch");
  refuses("place models/summaries/vgg16.torchsummary.txt --batch 1 --server live --window soon", 2,
          "a window is a time");
  refuses("place models/summaries/vgg16.torchsummary.txt --batch 1 --server live --smact busy", 2,
          "--smact takes a share from 0 to 1, estimate, or none, not 'busy'");
  setenv("GPUMEM_PRETENDED_NVML", "/nowhere/machine.json", 1);
  refuses("server --window 0", 4, "the NVIDIA driver does not answer: Driver Not Loaded (9); look at nvidia-smi");
  setenv("GPUMEM_NVML", "/nowhere/libnvidia-ml.so.1", 1);
  refuses("server --window 0", 3, "/nowhere/libnvidia-ml.so.1: no NVIDIA driver is here");
  refuses("place models/summaries/vgg16.torchsummary.txt --batch 1 --server live", 3,
          "or name the library in GPUMEM_NVML");
}

TEST(CliServerOfADriverOf2019, TellsWhatItCan) {
  nlohmann::json gpu = pretended_a100("GPU-a");
  gpu["utilisation"] = 10;
  gpu["sm_util"] = 90;
  const PretendedGpus gpus(Gpus{gpu}, "old/libnvidia-ml.so.1");
  const Outcome printed = run("server --window 200ms");
  EXPECT_EQ(printed.exit, 0);
  const auto server = nlohmann::json::parse(printed.out);
  EXPECT_EQ(server["gpus"][0]["smact"], 0.1);
  EXPECT_EQ(server["gpus"][0]["smact_source"], "utilisation");
  EXPECT_NE(printed.err.find("older than version 510"), std::string::npos) << printed.err;
}

/// Jobs that run, and one that finds too little left: what PyTorch says, and what the server then shows.
TEST(CliServerWithJobs, ShowsWhatTheyTake) {
  const PretendedGpus gpus(Gpus{pretended_a100("GPU-a"), pretended_a100("GPU-b")});
  const std::string job = std::string("'") + testing::kPretendedNvml + "/pretended_job' ";
  const std::string script = "CUDA_VISIBLE_DEVICES=GPU-b " + job +
                             "30000000000 30 --smact 0.5 & job=$!; "
                             "while ! grep -qs GPU-b '" +
                             gpus.jobs() +
                             "'/$job; do sleep 0.01; done; "
                             "CUDA_VISIBLE_DEVICES=1 " +
                             job + "20000000000 1 2>'" + gpus.jobs() +
                             "/err'; echo $?; "
                             "'" +
                             testing::kCommandLine + "' server --window 0; kill $job; wait $job; echo $?";
  std::ofstream(gpus.jobs() + "/script") << script;
  const std::string command = "sh '" + gpus.jobs() + "/script' >'" + gpus.jobs() + "/out'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string out = testing::text_of(gpus.jobs() + "/out");
  EXPECT_TRUE(out.starts_with("1\n{")) << out;
  EXPECT_TRUE(out.ends_with("143\n")) << out;
  EXPECT_NE(out.find(R"("id":"GPU-a","profile":"a100-40gb","total_bytes":42474471424,"used_bytes":0,"smact":0.0)"),
            std::string::npos);
  EXPECT_NE(out.find(R"("used_bytes":30000000000,"smact":0.5)"), std::string::npos);
  const std::string err = testing::text_of(gpus.jobs() + "/err");
  EXPECT_NE(err.find("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.63 GiB. GPU 0 has a total "
                     "capacity of 39.56 GiB of which 11.62 GiB is free."),
            std::string::npos)
      << err;
}

}  // namespace
}  // namespace gpumem
