// gpumem-train as a script sees it.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "gpumem/ml/trained_model.hpp"
#include "own_path.hpp"
#include "small_recipes.hpp"

namespace gpumem::train {
namespace {

namespace fs = std::filesystem;
using testing::succeeds;

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

class Command : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::own_path("train");
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ / "recipe.json") << testing::bins_recipe();
    std::ofstream table(folder_ / "jobs.csv");
    table << "name,group,measured_mib,out_of_memory,kept_mib,activation_sin,activation_cos\n";
    const auto recipe = testing::recipe_of(testing::bins_recipe());
    for (const Row& row : testing::made_up_data(recipe.model).rows) {
      table << row.name << "," << row.group << "," << row.measured_mib << "," << (row.out_of_memory ? "yes" : "no");
      for (const double feature : row.features) table << "," << feature;
      table << "\n";
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// The exit code; what it printed is in `out` and `err`.
  int run(const std::string& words) {
    const std::string command = "cd '" + folder_.string() + "' && '" GPUMEM_TRAIN "' " + words + " >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    out = text_of(folder_ / "out.txt");
    err = text_of(folder_ / "err.txt");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] std::string file(const std::string& name) const { return text_of(folder_ / name); }

  fs::path folder_;
  std::string out;
  std::string err;
};

TEST_F(Command, WritesAModelFolder) {
  ASSERT_EQ(run("recipe.json --data jobs.csv -o model --predictions predictions.csv"), 0) << err;
  EXPECT_NE(out.find("all: rows 120, accuracy "), std::string::npos) << out;
  EXPECT_NE(err.find("fold 2 of 3: 12 epochs"), std::string::npos) << err;
  EXPECT_TRUE(succeeds(ml::load_model((folder_ / "model").string())));
  const std::string card = file("model/README.md");
  EXPECT_EQ(card.substr(0, card.find('\n')), "# made-up: trained on 120 jobs of kind mlp, made up for a test");
  EXPECT_NE(card.find("gpumem-train recipe.json --data jobs.csv -o model\n"), std::string::npos) << card;
  const std::string predictions = file("predictions.csv");
  EXPECT_EQ(std::count(predictions.begin(), predictions.end(), '\n'), 121);
  EXPECT_FALSE(fs::exists(folder_ / "model" / "training"));
}

TEST_F(Command, GivesTheSameFilesWhenItIsStoppedAndGoesOn) {
  ASSERT_EQ(run("recipe.json --data jobs.csv -o whole --quiet"), 0) << err;
  EXPECT_EQ(err, "");
  EXPECT_EQ(run("recipe.json --data jobs.csv -o parts --quiet --stop-after 17"), 130);
  EXPECT_NE(err.find("--resume goes on"), std::string::npos) << err;
  EXPECT_FALSE(fs::exists(folder_ / "parts" / "config.json"));
  ASSERT_EQ(run("recipe.json --data jobs.csv -o parts --quiet --resume"), 0) << err;
  EXPECT_EQ(file("whole/config.json"), file("parts/config.json"));
  EXPECT_EQ(file("whole/model.safetensors"), file("parts/model.safetensors"));
}

TEST_F(Command, ASeedAndFoldsOfItsOwn) {
  ASSERT_EQ(run("recipe.json --data jobs.csv -o one --quiet --folds 2 --seed 9"), 0) << err;
  EXPECT_NE(file("one/README.md").find("with 2 folds"), std::string::npos);
  EXPECT_NE(file("one/README.md").find("--folds 2 --seed 9 -o one\n"), std::string::npos);
}

TEST_F(Command, ComputesTheFeaturesOfMeasuredAndOfRandomJobs) {
  std::ofstream(folder_ / "runs.csv") << testing::mlp_runs();
  ASSERT_EQ(run("recipe.json --data runs.csv --data random:mlp:30:7 -o model --folds 2"), 0) << err;
  EXPECT_NE(err.find("runs.csv: 12 jobs\nrandom:mlp:30:7: 30 jobs\n"), std::string::npos) << err;
  EXPECT_NE(out.find("  runs.csv: rows 12, "), std::string::npos) << out;
  EXPECT_TRUE(succeeds(ml::load_model((folder_ / "model").string())));
}

TEST_F(Command, SaysWhatIsWrong) {
  EXPECT_EQ(run("recipe.json -o model"), 2);
  EXPECT_NE(err.find("--data"), std::string::npos) << err;
  EXPECT_EQ(run("recipe.json --data none.csv -o model"), 3);
  EXPECT_NE(err.find("gpumem-train: error: none.csv: cannot open"), std::string::npos) << err;
  EXPECT_EQ(run("jobs.csv --data jobs.csv -o model"), 3);
  EXPECT_NE(err.find("is not a JSON object"), std::string::npos) << err;
  std::ofstream(folder_ / "unknown.json")
      << std::regex_replace(testing::bins_recipe(), std::regex("kept_mib"), "color");
  EXPECT_EQ(run("unknown.json --data jobs.csv -o model"), 3);
  EXPECT_NE(err.find("/features/0/name: there is no feature 'color'"), std::string::npos) << err;
  EXPECT_EQ(run("recipe.json --data random:cnn:0:1 -o model"), 2);
  EXPECT_NE(err.find("random:KIND:COUNT:SEED"), std::string::npos) << err;
}

}  // namespace
}  // namespace gpumem::train
