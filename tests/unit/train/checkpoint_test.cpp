#include "../../../src/train/checkpoint.hpp"

#include <filesystem>

#include "expect.hpp"
#include "own_path.hpp"

namespace gpumem::train {
namespace {

using testing::fails;
using testing::succeeds;

RunState state() {
  RunState made;
  made.training.weights.tensors = {{"a.weight", {2}, {1.5F, -2.25F}}, {"a.running_mean", {1}, {0.1F}}};
  made.training.first_moment.tensors = {{"a.weight", {2}, {3.0F, 4.0F}}};
  made.training.second_moment.tensors = {{"a.weight", {2}, {5.0F, 6.0F}}};
  made.training.steps = 70;
  made.epoch = 7;
  made.training_loss = 1.0 / 3.0;
  made.best.tensors = {{"a.weight", {2}, {7.0F, 8.0F}}};
  made.best_loss = 0.1;
  made.best_epoch = 5;
  made.done = true;
  return made;
}

TEST(Checkpoint, GivesBackWhatWasSavedExactly) {
  const std::string file = testing::own_path("state.safetensors").string();
  ASSERT_TRUE(succeeds(save_state(state(), "print", file)));
  const auto loaded = load_state(file, "print");
  ASSERT_TRUE(succeeds(loaded));
  ASSERT_TRUE(loaded->has_value());
  EXPECT_EQ(write_state(**loaded, "print"), write_state(state(), "print"));
  EXPECT_EQ((*loaded)->training_loss, 1.0 / 3.0);
  EXPECT_EQ((*loaded)->best.tensors, state().best.tensors);
  std::filesystem::remove(file);
  const auto none = load_state(file, "print");
  ASSERT_TRUE(succeeds(none));
  EXPECT_FALSE(none->has_value());
}

TEST(Checkpoint, IsOfOneTrainingAlone) {
  const std::string bytes = write_state(state(), "print");
  EXPECT_TRUE(fails(parse_state(bytes, "other", "f"), core::ErrorCode::invalid_argument, 0, "another recipe"));
  EXPECT_TRUE(fails(parse_state(bytes.substr(0, 99), "print", "f"), core::ErrorCode::malformed_input, 0, ""));
  EXPECT_TRUE(fails(parse_state(ml::write_safetensors({}), "print", "f"), core::ErrorCode::malformed_input, 0,
                    "not a saved state of a training"));
}

}  // namespace
}  // namespace gpumem::train
