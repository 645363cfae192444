#include "gpumem/estimate/advise.hpp"

#include <algorithm>
#include <functional>

#include "golden.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/job/job_options.hpp"
#include "graphs.hpp"
#include "recordings.hpp"

namespace gpumem::estimate {
namespace {

/// Needs what it is told to.
class ToldByJob final : public Estimator {
 public:
  using Need = std::function<core::Result<std::int64_t>(const TrainingJob& job)>;
  explicit ToldByJob(Need need) : need_(std::move(need)) {}
  [[nodiscard]] std::string_view name() const override { return "told"; }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const GpuProfile&) const override {
    const core::Result<std::int64_t> need = need_(analysis.job());
    if (!need) return need.error();
    MemoryEstimate estimate;
    estimate.expected = estimate.lower = estimate.upper = Bytes(*need);
    estimate.breakdown.activations = Bytes(*need);
    return estimate;
  }
  Need need_;
};

TrainingJob job_with_batch(std::int64_t batch) { return {*parse_summary(testing::kSmallGraph), batch}; }

GpuProfile gpu_with(std::int64_t bytes, std::string compute_capability = "8.0") {
  GpuProfile gpu;
  gpu.name = "told";
  gpu.memory_bytes.value = bytes;
  gpu.compute_capability = std::move(compute_capability);
  return gpu;
}

std::string words_of(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings) {
    text += (text.empty() ? "" : " ") + std::string(setting.option) + "=" + setting.value;
  }
  return text;
}

std::vector<std::string> words_of(const std::vector<ChangeEffect>& effects) {
  std::vector<std::string> words;
  for (const ChangeEffect& effect : effects) words.push_back(words_of(effect.settings));
  return words;
}

/// A job for which every change makes a difference.
TrainingJob wasteful_job() {
  TrainingJob job = job_with_batch(8);
  job.zero_grad = model::ZeroGrad::before_backward;
  job.prefetch = true;
  return job;
}

/// A language model, for the changes of these.
TrainingJob language_job() {
  TrainingJob job = wasteful_job();
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/gpt_like.json");
  job.graph = std::make_shared<const ModelGraph>(*graph);
  return job;
}

/// A model that makes images, for the changes of these.
TrainingJob image_job() {
  TrainingJob job = wasteful_job();
  const auto graph = parse_summary(R"({"_class_name": "AutoencoderKL", "layers_per_block": 1})");
  job.graph = std::make_shared<const ModelGraph>(*graph);
  job.image = {1024, 768};
  job.parts = "all";
  return job;
}

TEST(Changes, SayInTheWordsOfTheOptionsWhatTheyDo) {
  for (const Change& change : changes()) {
    TrainingJob before = language_job();
    if (change.forms(before, gpu_with(1)).empty()) before = image_job();
    if (change.forms(before, gpu_with(1)).empty()) before.lora = 8;
    const std::vector<ChangedJob> forms = change.forms(before, gpu_with(1));
    EXPECT_FALSE(forms.empty()) << change.cost;
    for (const ChangedJob& form : forms) {
      job::JobRequest request;
      request.training = before;
      for (const Setting& setting : form.settings) {
        const job::JobOption* option = job::find_option(setting.option);
        ASSERT_NE(option, nullptr) << setting.option;
        EXPECT_TRUE(testing::succeeds(job::set_option_text(*option, request, setting.value))) << setting.option;
      }
      EXPECT_EQ(request.training, form.job) << words_of(form.settings);
      EXPECT_NE(request.training, before) << words_of(form.settings);
      EXPECT_EQ(form.job.batch_size * form.job.gradient_accumulation, before.batch_size) << "the samples of a step";
    }
  }
}

TEST(Changes, HostWeightsCostAJobWithAdaptersTimeAlone) {
  const auto costs_of_ramtorch = [](const TrainingJob& job) {
    std::vector<std::string> costs;
    for (const Change& change : changes()) {
      for (const ChangedJob& form : change.forms(job, gpu_with(1))) {
        if (form.job.offload == model::Offload::ramtorch) costs.emplace_back(change.cost);
      }
    }
    return costs;
  };
  TrainingJob job = image_job();
  EXPECT_EQ(costs_of_ramtorch(job), (std::vector<std::string>{"what is learned, and time: adapters, and frozen weights "
                                                              "that cross for each product (RamTorch)"}));
  job.lora = 8;
  EXPECT_EQ(costs_of_ramtorch(job),
            (std::vector<std::string>{"time: frozen weights cross for each product (RamTorch)"}));
}

TEST(Changes, SmallerImagesAreOfWhatTheModelMakesUsually) {
  TrainingJob job(*parse_summary(R"({"_class_name": "FluxTransformer2DModel", "num_attention_heads": 2,
    "attention_head_dim": 32, "num_layers": 2, "num_single_layers": 2, "joint_attention_dim": 64,
    "pooled_projection_dim": 32, "axes_dims_rope": [8, 12, 12]})"),
                  1);
  std::string said;
  for (const Change& change : changes()) {
    for (const ChangedJob& form : change.forms(job, gpu_with(1))) {
      if (form.settings[0].option == "image") said += form.settings[0].value + " ";
    }
  }
  EXPECT_EQ(said, "768x768 512x512 ");
}

/// What changes of a job's parts say, joined by spaces.
std::string parts_of_changes(const TrainingJob& job) {
  std::string said;
  for (const Change& change : changes()) {
    for (const ChangedJob& form : change.forms(job, gpu_with(1))) {
      if (form.settings[0].option == "parts") said += (said.empty() ? "" : " ") + form.settings[0].value;
    }
  }
  return said;
}

TEST(Changes, OfAnAutoencoderThatMakesLatentsAreSlicesAndTiles) {
  TrainingJob job = image_job();
  EXPECT_EQ(parts_of_changes(job), "all:sliced vae none all:tiled");
  job.parts = "vae:sliced+text_encoder*";
  EXPECT_EQ(parts_of_changes(job), "vae:sliced none vae:sliced:tiled+text_encoder*");
  job.parts = "text_encoder";
  EXPECT_EQ(parts_of_changes(job), "none");
  job.parts = "vae";
  job.batch_size = 1;
  EXPECT_EQ(parts_of_changes(job), "none vae:tiled") << "one sample is no slice";
}

TEST(Changes, OfAJobThatHasThemAllAreNone) {
  TrainingJob job = job_with_batch(1);
  job.fused = true;
  job.activation_checkpointing = true;
  job.precision = model::Precision::bf16;
  job.optimizer = model::Optimizer::adamw_8bit;
  for (const Change& change : changes()) EXPECT_TRUE(change.forms(job, gpu_with(1)).empty()) << change.cost;
}

TEST(Changes, AGpuWithoutBfloat16GetsFloat16) {
  const ToldByJob told([](const TrainingJob&) { return 100; });
  const auto advice = advise(job_with_batch(1), gpu_with(50, "7.5"), told);
  ASSERT_TRUE(testing::succeeds(advice));
  EXPECT_EQ(words_of(advice->single), (std::vector<std::string>{"fused=true", "foreach=false", "precision=amp-fp16",
                                                                "checkpointing=true", "optimizer=adam-8bit"}));
}

TEST(Advise, TellsEachChangeAloneCheapestFirst) {
  const ToldByJob told([](const TrainingJob& job) {
    return 1000 + 100 * job.batch_size - (job.fused ? 50 : 0) - (job.activation_checkpointing ? 300 : 0);
  });
  const auto advice = advise(job_with_batch(8), gpu_with(1500), told);
  ASSERT_TRUE(testing::succeeds(advice));
  EXPECT_EQ(advice->now.expected.count(), 1800);
  EXPECT_FALSE(advice->now.fits);
  EXPECT_EQ(words_of(advice->single),
            (std::vector<std::string>{"fused=true", "foreach=false", "batch_size=4 accumulate=2", "precision=amp-bf16",
                                      "checkpointing=true", "optimizer=adam-8bit", "precision=bf16"}));
  std::vector<bool> fits;
  for (const ChangeEffect& effect : advice->single) fits.push_back(effect.estimate->fits);
  EXPECT_EQ(fits, (std::vector<bool>{false, false, true, false, true, false, false}));
  EXPECT_EQ(advice->single[2].estimate->expected.count(), 1400) << "half the batch is enough";
  EXPECT_FALSE(advice->together) << "one is enough";
}

TEST(Advise, AddsUpTheCheapestChangesWhereNoSingleOneIsEnough) {
  const ToldByJob told([](const TrainingJob& job) {
    return 2000 + 100 * job.batch_size - (job.fused ? 400 : 0) - (job.activation_checkpointing ? 800 : 0);
  });
  const auto advice = advise(job_with_batch(4), gpu_with(1000), told);
  ASSERT_TRUE(testing::succeeds(advice));
  ASSERT_TRUE(advice->together);
  EXPECT_EQ(words_of(advice->together->settings), "fused=true batch_size=1 accumulate=4 checkpointing=true");
  EXPECT_EQ(advice->together->estimate->expected.count(), 900);
  EXPECT_TRUE(advice->together->estimate->fits);
}

/// A fused optimizer saves nothing while activations are the peak, and what is missing once they are not.
TEST(Advise, OfTwoChangesThatAreEnoughTogetherTakesTheCheapest) {
  const ToldByJob told([](const TrainingJob& job) {
    const std::int64_t activations = (job.activation_checkpointing ? 100 : 1000) * job.batch_size;
    return 500 + std::max<std::int64_t>(activations, job.fused ? 0 : 1000);
  });
  const auto advice = advise(job_with_batch(2), gpu_with(1000), told);
  ASSERT_TRUE(testing::succeeds(advice));
  for (const ChangeEffect& effect : advice->single) EXPECT_FALSE(effect.estimate->fits) << words_of(effect.settings);
  ASSERT_TRUE(advice->together);
  EXPECT_EQ(words_of(advice->together->settings), "fused=true checkpointing=true");
  EXPECT_EQ(advice->together->estimate->expected.count(), 700);
  EXPECT_TRUE(advice->together->same_result);
  EXPECT_EQ(advice->together->cost,
            advice->single.front().cost + "; time: every forward pass a second time, about a third more");
}

TEST(Advise, SaysOfChangesThatAreEnoughTogetherWhetherTheyKeepTheResult) {
  const ToldByJob told([](const TrainingJob& job) {
    const bool half = job.precision != model::Precision::fp32;
    const bool small = job.optimizer == model::Optimizer::adam_8bit;
    return 2000 - (half ? 700 : 0) - (small ? 700 : 0);
  });
  const auto advice = advise(job_with_batch(1), gpu_with(1000), told);
  ASSERT_TRUE(testing::succeeds(advice));
  ASSERT_TRUE(advice->together);
  EXPECT_EQ(words_of(advice->together->settings), "precision=amp-bf16 optimizer=adam-8bit");
  EXPECT_FALSE(advice->together->same_result);
  for (const ChangeEffect& effect : advice->single) {
    const std::string_view option = effect.settings.front().option;
    EXPECT_EQ(effect.same_result, option != "precision" && option != "optimizer") << option;
  }
}

/// Time that is over says nothing of a change, and so it must not read as one that does not help.
TEST(Advise, EndsWhereTheTimeIsUp) {
  int all = 0;
  for (const int last : {1, 5, 12, 10'000}) {
    all = 0;
    const ToldByJob told([&all, last](const TrainingJob&) -> core::Result<std::int64_t> {
      if (++all > last) return core::deadline_error();
      return 2000;
    });
    const auto advice = advise(job_with_batch(4), gpu_with(10), told);
    if (last == 10'000) {
      EXPECT_TRUE(testing::succeeds(advice));
    } else {
      EXPECT_TRUE(testing::fails(advice, core::ErrorCode::deadline_exceeded, 0, "")) << last;
      EXPECT_EQ(all, last + 1) << "nothing is tried once the time is up";
    }
  }
  EXPECT_GT(all, 20) << "the single changes, their pairs, and all added up";
}

TEST(Advise, PrefersSeveralChangesThatKeepTheResultToOneThatDoesNot) {
  const ToldByJob told([](const TrainingJob& job) {
    const bool small = job.optimizer == model::Optimizer::adam_8bit;
    return 2000 - (job.fused ? 400 : 0) - (job.activation_checkpointing ? 800 : 0) - (small ? 1500 : 0);
  });
  const auto advice = advise(job_with_batch(1), gpu_with(1000), told);
  ASSERT_TRUE(testing::succeeds(advice));
  ASSERT_TRUE(advice->together) << "8-bit states alone are enough, and change the result";
  EXPECT_EQ(words_of(advice->together->settings), "fused=true checkpointing=true");
}

TEST(Advise, SaysWhereNothingHelps) {
  const auto advice = advise(job_with_batch(4), gpu_with(10), ToldByJob([](const TrainingJob&) { return 2000; }));
  ASSERT_TRUE(testing::succeeds(advice));
  EXPECT_FALSE(advice->together);
  for (const ChangeEffect& effect : advice->single) EXPECT_FALSE(effect.estimate->fits);
}

TEST(Advise, LeavesOutWhatTheModelHasNoPlaceFor) {
  const ToldByJob told([](const TrainingJob& job) -> core::Result<std::int64_t> {
    if (job.fused) return core::Error{core::ErrorCode::missing_information, "no head for words", {}};
    return 100;
  });
  const auto advice = advise(job_with_batch(1), gpu_with(50), told);
  ASSERT_TRUE(testing::succeeds(advice));
  EXPECT_EQ(words_of(advice->single[0].settings), "foreach=false");
}

TEST(Advise, LeavesOutWhatTakesMore) {
  // Weights of convolutions do not cross, and RamTorch's linear layers keep their inputs: adapters alone take less.
  const auto graph = parse_summary(
      R"({"_class_name": "AutoencoderDC", "encoder_block_out_channels": [32, 64, 64, 64],
          "decoder_block_out_channels": [32, 64, 64, 64], "encoder_layers_per_block": [1, 1, 1, 1],
          "decoder_layers_per_block": [1, 1, 1, 1], "encoder_block_types":
          ["ResBlock", "ResBlock", "ResBlock", "EfficientViTBlock"]})");
  ASSERT_TRUE(testing::succeeds(graph));
  const auto replay = make_estimator("replay");
  ASSERT_TRUE(testing::succeeds(replay));
  const auto advice = advise(TrainingJob(*graph, 8), gpu_with(std::int64_t{24} << 30), **replay);
  ASSERT_TRUE(testing::succeeds(advice));
  bool adapters = false;
  for (const ChangeEffect& effect : advice->single) {
    if (!effect.estimate) continue;
    EXPECT_LE(effect.estimate->expected, advice->now.expected) << effect.cost;
    adapters = adapters || effect.cost.find("only adapters") != std::string::npos;
    EXPECT_EQ(effect.cost.find("RamTorch"), std::string::npos);
  }
  EXPECT_TRUE(adapters);
}

TEST(Advise, KeepsAnErrorOfOneChange) {
  const ToldByJob told([](const TrainingJob& job) -> core::Result<std::int64_t> {
    if (job.activation_checkpointing) return core::Error{core::ErrorCode::invalid_argument, "needs a recording", {}};
    return 100;
  });
  const auto advice = advise(job_with_batch(1), gpu_with(50), told);
  ASSERT_TRUE(testing::succeeds(advice));
  EXPECT_EQ(words_of(advice->single[3].settings), "checkpointing=true");
  EXPECT_FALSE(advice->single[3].estimate.has_value());
}

/// A recorded step has one optimizer's calls, which another form or another optimizer can take the place of; all else
/// is as it ran.
TEST(Advise, OfARecordingChangesTheOptimizerAlone) {
  auto graph = read_summary(testing::golden_recording("gpt"));
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*std::move(graph), 16);
  job.optimizer = model::Optimizer::adamw;
  const auto replay = make_estimator("replay");
  ASSERT_TRUE(testing::succeeds(replay));
  const auto advice = advise(job, *find_profile("t4-16gb"), **replay);
  ASSERT_TRUE(testing::succeeds(advice));
  const auto states = [](const MemoryEstimate& estimate) { return estimate.breakdown.optimizer.count(); };
  std::vector<std::string> possible;
  for (const ChangeEffect& effect : advice->single) {
    if (!effect.estimate) {
      EXPECT_TRUE(testing::fails(effect.estimate, core::ErrorCode::invalid_argument, 0, "record again with it"));
      continue;
    }
    possible.push_back(words_of(effect.settings));
    const bool smaller = possible.back() == "optimizer=adamw-8bit";
    EXPECT_EQ(states(*effect.estimate) < states(advice->now), smaller) << possible.back();
  }
  EXPECT_EQ(possible, (std::vector<std::string>{"fused=true", "foreach=false", "optimizer=adamw-8bit"}));
  EXPECT_GT(advice->single.size(), possible.size());
}

TEST(Advise, OfARecordedOptimizerThatIsNotKnownNothingChanges) {
  auto graph =
      parse_summary(testing::with(testing::kSmallRecording, R"("optimizer": "sgd")", R"("optimizer": "sophia")"));
  ASSERT_TRUE(testing::succeeds(graph));
  const TrainingJob job(*std::move(graph), 2);
  const auto replay = make_estimator("replay");
  ASSERT_TRUE(testing::succeeds(replay));
  const auto advice = advise(job, *find_profile("t4-16gb"), **replay);
  ASSERT_TRUE(testing::succeeds(advice));
  EXPECT_FALSE(advice->single.empty());
  for (const ChangeEffect& effect : advice->single) EXPECT_FALSE(effect.estimate) << words_of(effect.settings);
}

TEST(Advise, IsAnErrorWhereTheJobHasNoEstimate) {
  const ToldByJob told([](const TrainingJob&) {
    return core::Error{core::ErrorCode::missing_information, "no edges", {}};
  });
  EXPECT_TRUE(testing::fails(advise(job_with_batch(1), gpu_with(50), told), core::ErrorCode::missing_information, 0,
                             "no edges"));
}

}  // namespace
}  // namespace gpumem::estimate
