// `gpumem model import` on checkpoints that the test writes: what it makes, and what it does not touch.

#include "checkpoints.hpp"
#include "commands.hpp"
#include "expect.hpp"
#include "golden.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "own_path.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

class ModelImport : public ::testing::Test {
 protected:
  ~ModelImport() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(folder_);
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  /// Runs the command; what it printed on either stream is in said_.
  int import(const fs::path& checkpoint, bool force = false) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = cli::run_model_import({checkpoint.string(), out().string(), force});
    std::fflush(stdout);
    said_ = ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
    return code;
  }

  [[nodiscard]] fs::path out() const { return folder_ / "model"; }
  [[nodiscard]] std::string name() const {
    const auto model = ml::load_model(out().string());
    EXPECT_TRUE(testing::succeeds(model));
    return model ? model->config.name : "";
  }

  fs::path folder_ = testing::own_path("import");
  std::string said_;
};

TEST_F(ModelImport, WritesAFolderThatLoads) {
  EXPECT_EQ(import(write("a.ckpt", testing::mlp4mlp_checkpoint())), 0);
  EXPECT_NE(said_.find("gpumemnet-mlp4mlp, 3,189 weights in 320 tensors, 5 outputs"), std::string::npos) << said_;
  EXPECT_EQ(name(), "gpumemnet-mlp4mlp");
}

TEST_F(ModelImport, WritesOverAnotherModelOnlyIfTold) {
  const fs::path mlp = write("a.ckpt", testing::mlp4mlp_checkpoint());
  const fs::path transformer = write("b.ckpt", testing::transformer4mlp_checkpoint());
  EXPECT_EQ(import(mlp), 0);
  EXPECT_EQ(import(mlp), 0) << "the same model again";
  EXPECT_EQ(import(transformer), 2);
  EXPECT_NE(said_.find("with --force"), std::string::npos) << said_;
  EXPECT_EQ(name(), "gpumemnet-mlp4mlp");
  EXPECT_EQ(import(transformer, true), 0);
  EXPECT_EQ(name(), "gpumemnet-transformer4mlp");
}

TEST_F(ModelImport, LeavesAFolderOfOtherThingsAlone) {
  const fs::path mlp = write("a.ckpt", testing::mlp4mlp_checkpoint());
  fs::create_directories(out());
  std::ofstream(out() / "notes.txt") << "mine";
  EXPECT_EQ(import(mlp), 2);
  EXPECT_FALSE(fs::exists(out() / ml::kConfigFile));
}

TEST_F(ModelImport, WritesNothingOfABadCheckpoint) {
  EXPECT_EQ(import(write("a.ckpt", "text")), 3);
  EXPECT_EQ(import(write("b.ckpt", testing::mlp4mlp_checkpoint(7))), 3);
  EXPECT_EQ(import(folder_ / "nowhere.ckpt"), 3);
  EXPECT_NE(said_.find("nowhere.ckpt: cannot open"), std::string::npos) << said_;
  EXPECT_FALSE(fs::exists(out()));
}

}  // namespace
}  // namespace gpumem
