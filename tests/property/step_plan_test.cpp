// What holds for the step plan of every graph, however it is trained.
#include <algorithm>
#include <filesystem>

#include "gpumem/plan/checkpoints.hpp"
#include "plans.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

using ops::Backend;
using plan::Category;
using plan::Event;
using plan::Phase;

/// Graphs to train: the shipped ones and the small nets that the reference peaks are of.
std::vector<fs::path> graphs() {
  std::vector<fs::path> files;
  for (const char* folder : {"/models/graphs", "/tests/golden/fake_tensor/graphs"}) {
    for (const auto& entry : fs::directory_iterator(GPUMEM_SOURCE_DIR + std::string(folder))) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// A small batch of small samples.
TrainingJob recorded_step(const fs::path& file) {
  const auto graph = read_summary(file.string());
  EXPECT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 3);
  const model::GraphInput& input = graph->graph_inputs()[0];
  if (input.dtype == core::DType::int64) job.sequence_length = 64;
  return job;
}

/// Ways of training: what one differs in from the default.
std::vector<TrainingJob> ways_of(const TrainingJob& job) {
  std::vector<TrainingJob> all(6, job);
  all[1].optimizer = Optimizer::sgd;
  all[1].zero_grad = model::ZeroGrad::step_end;
  all[2].gradient_accumulation = 3;
  all[2].zero_grad = model::ZeroGrad::before_backward;
  all[3].precision = Precision::amp_fp16;
  all[3].foreach = false;
  all[4].summary_pass = true;
  all[4].validation_pass = true;
  all[4].samples_per_epoch = 10;
  all[5].zero_grad = model::ZeroGrad::in_place;
  all[5].optimizer = Optimizer::adagrad;
  all[5].precision = Precision::bf16;
  return all;
}

/// Slots are taken before they are given back, once each, and sums of live bytes never fall below nothing.
void expect_sound_plan(const plan::StepPlan& plan, const std::string& what) {
  std::vector<bool> taken(plan.slots, false);
  testing::Live live(plan);
  bool sound = true;
  for (const Event& event : plan.events) {
    if (event.kind == Event::Kind::call) continue;
    const bool allocates = event.kind == Event::Kind::allocate;
    sound = sound && event.slot < plan.slots && taken[event.slot] != allocates && event.bytes >= 0;
    if (!sound) break;
    taken[event.slot] = allocates;
    live.apply(event);
    for (std::size_t category = 0; category < plan::kCategories; ++category) {
      sound = sound && live.of(static_cast<Category>(category)) >= 0;
    }
  }
  EXPECT_TRUE(sound) << what;
}

/// What is left after the last step is what training holds: nothing of the backward pass, no temporaries.
void expect_tidy(const TrainingJob& job, const testing::Planned& planned, const std::string& what) {
  testing::Live live(planned.plan);
  for (const Event& event : planned.plan.events) live.apply(event);
  const auto bytes = [&](ops::TensorId id) {
    return planned.pass.tape.tensor(id).size.bytes(job.batch_size).value().value_or(0);
  };
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  for (const auto& parameter : planned.pass.tape.parameters()) {
    if (!parameter.tied) parameters += bytes(parameter.tensor);
    if (!parameter.tied && !parameter.frozen) gradients += bytes(parameter.tensor);
  }
  std::int64_t inputs = 0;
  for (const ops::TensorId input : planned.pass.tape.inputs()) inputs += bytes(input);
  const bool cleared = job.zero_grad == model::ZeroGrad::step_end;
  EXPECT_EQ(live.of(Category::parameter), parameters) << what;
  EXPECT_EQ(live.of(Category::gradient), cleared ? 0 : gradients) << what;
  EXPECT_EQ(live.of(Category::input), inputs) << what;
  EXPECT_EQ(live.of(Category::activation_gradient), 0) << what;
  EXPECT_EQ(live.of(Category::temporary), 0) << what;
  std::int64_t held = 0;  // outputs that are views hold what they look at
  for (const ops::TensorId id : planned.pass.held) held += bytes(planned.pass.tape.tensor(id).storage);
  EXPECT_EQ(live.of(Category::activation), held) << what;
}

TEST(StepPlans, TakeAndGiveBackEverySlotOnce) {
  for (const fs::path& file : graphs()) {
    int way = 0;
    for (const TrainingJob& job : ways_of(recorded_step(file))) {
      for (const Backend backend : {Backend::cuda, Backend::cpu}) {
        const std::string what =
            file.stem().string() + ", way " + std::to_string(way) + (backend == Backend::cpu ? ", without a GPU" : "");
        const testing::Planned planned = testing::planned(job, backend);
        expect_sound_plan(planned.plan, what);
        expect_tidy(job, planned, what);
      }
      ++way;
    }
  }
}

/// Graphs without repeated blocks are refused where checkpointing is asked for.
TEST(StepPlans, CheckpointingKeepsTheBooksAndNeverAddsToWhatForwardHolds) {
  for (const fs::path& file : graphs()) {
    int way = 0;
    for (TrainingJob& job : ways_of(recorded_step(file))) {
      const std::string what = file.stem().string() + ", way " + std::to_string(way++);
      if (plan::repeated_blocks(*job.graph).empty()) continue;
      job.activation_checkpointing = true;
      const testing::Planned planned = testing::planned(job);
      expect_sound_plan(planned.plan, what);
      expect_tidy(job, planned, what);
    }
  }
}

TEST(StepPlans, StepsRepeat) {
  for (const fs::path& file : graphs()) {
    const plan::StepPlan plan = testing::planned(recorded_step(file)).plan;
    EXPECT_EQ(testing::bytes_of(plan, 1).left, testing::bytes_of(plan, 2).left) << file;
  }
}

TEST(StepPlans, MoreBatchNeverNeedsLess) {
  for (const fs::path& file : graphs()) {
    for (const Backend backend : {Backend::cuda, Backend::cpu}) {
      TrainingJob job = recorded_step(file);
      std::int64_t before = 0;
      for (const std::int64_t batch : {1, 2, 3, 8, 64}) {
        job.batch_size = batch;
        const std::int64_t peak = testing::bytes_of(testing::planned(job, backend).plan, 2).peak;
        EXPECT_GT(peak, before) << file << ", batch " << batch;
        before = peak;
      }
    }
  }
}

}  // namespace
}  // namespace gpumem
