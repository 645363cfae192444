// What the C API says is what the C++ library says, of every shipped summary and with every estimator.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gpumem/all.hpp"
#include "gpumem/gpumem.h"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(GPUMEM_SOURCE_DIR "/models/" + folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

struct Freed {
  gpumem_summary* summary = nullptr;
  Freed() = default;
  Freed(const Freed&) = delete;
  Freed& operator=(const Freed&) = delete;
  ~Freed() { gpumem_summary_free(summary); }
};

/// Tokens a sample; 0 for a net of images, which takes no length.
std::int64_t tokens_for(const ModelGraph& graph) {
  constexpr std::int64_t kTokens = 64;
  job::JobRequest request;
  request.training.batch_size = 1;
  EXPECT_TRUE(job::set_option(*job::find_option("seq_length"), request, kTokens));
  const auto made = job::job_from(request, std::make_shared<const ModelGraph>(graph));
  const bool refused = !made && made.error().message.find("reads no tokens") != std::string::npos;
  return refused ? 0 : kTokens;
}

void expect_agreement(const std::string& file, std::string_view estimator, std::int64_t batch,
                      Optimizer optimizer = Optimizer::adam) {
  SCOPED_TRACE(file + " " + std::string(estimator) + " " + std::to_string(batch));
  static const GpuProfile gpu = *find_profile("t4-16gb");
  const auto graph = read_summary(file);
  Freed held;
  char message[1000];
  const auto read = gpumem_summary_from_file(file.c_str(), nullptr, &held.summary, message, sizeof message);
  ASSERT_EQ(read == GPUMEM_OK, graph.has_value()) << message;
  if (!graph) {
    EXPECT_EQ(message, core::to_string(graph.error()));
    return;
  }
  TrainingJob job(*graph, batch);
  const std::int64_t tokens = tokens_for(*graph);
  if (tokens > 0) job.sequence_length = tokens;
  job.optimizer = optimizer;
  const auto made = make_estimator(estimator);
  ASSERT_TRUE(made);
  const auto expected = (*made)->estimate(job, gpu);

  gpumem_job asked = GPUMEM_JOB_INIT;
  asked.gpu = "t4-16gb";
  asked.seq_length = tokens;
  const std::string name(estimator);
  asked.estimator = name.c_str();
  const std::string optimizer_name(model::row_of(optimizer).name);
  asked.optimizer = optimizer_name.c_str();
  // Twice: the second time from what the first one left.
  for (int round = 0; round < 2; ++round) {
    gpumem_estimate_result found = GPUMEM_ESTIMATE_RESULT_INIT;
    asked.batch_size = batch + 1 - round;
    const auto status = gpumem_estimate(held.summary, &asked, &found, message, sizeof message);
    if (round == 0) continue;
    ASSERT_EQ(status == GPUMEM_OK, expected.has_value()) << message;
    if (!expected) {
      EXPECT_EQ(message, core::to_string(expected.error()));
      continue;
    }
    EXPECT_EQ(found.expected_bytes, expected->expected.count());
    EXPECT_EQ(found.lower_bytes, expected->lower.count());
    EXPECT_EQ(found.upper_bytes, expected->upper.count());
    EXPECT_EQ(found.reserved_bytes, expected->reserved ? expected->reserved->count() : -1);
    EXPECT_EQ(found.fits == 1, expected->fits);
    EXPECT_EQ(found.layers, expected->coverage.layers_total);
    EXPECT_EQ(found.out_of_domain, static_cast<std::int32_t>(expected->out_of_domain.size()));
  }
}

TEST(CApi, AgreesWithTheLibraryOnEverySummary) {
  for (const std::string folder : {"summaries", "graphs"}) {
    for (const std::string& file : files_of(folder)) {
      for (const std::int64_t batch : {1, 48}) expect_agreement(file, "replay", batch);
    }
  }
}

TEST(CApi, AgreesWithEveryEstimator) {
  const std::string file = GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt";
  for (const auto& entry : estimate::estimators()) expect_agreement(file, entry.name, 16);
}

TEST(CApi, AgreesWithEveryOptimizer) {
  const std::string file = GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt";
  for (const model::OptimizerRow& row : model::kOptimizerRows) expect_agreement(file, "replay", 16, row.value);
}

TEST(CApi, FindsTheSameBatch) {
  const std::string file = GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json";
  const auto expected =
      largest_batch(TrainingJob(*read_summary(file), 1), *find_profile("t4-16gb"), **make_estimator("replay"));
  ASSERT_TRUE(expected);
  Freed held;
  ASSERT_EQ(gpumem_summary_from_file(file.c_str(), nullptr, &held.summary, nullptr, 0), GPUMEM_OK);
  gpumem_job asked = GPUMEM_JOB_INIT;
  asked.gpu = "t4-16gb";
  gpumem_fit_result fit = GPUMEM_FIT_RESULT_INIT;
  ASSERT_EQ(gpumem_fit(held.summary, &asked, &fit, nullptr, nullptr, nullptr, 0), GPUMEM_OK);
  EXPECT_EQ(fit.batch_size, expected->batch_size);
  EXPECT_EQ(fit.estimates, expected->estimates);
}

TEST(CApi, FindsTheSameLayouts) {
  const std::string file = GPUMEM_SOURCE_DIR "/tests/golden/cli/configs/llama_made_up.json";
  TrainingJob job(*read_summary(file), 1);
  job.sequence_length = 128;
  job.precision = Precision::bf16_mixed;
  search::Question question;
  question.gpus = 4;
  question.global_batch = 8;
  question.show = 3;
  question.frameworks = *search::frameworks_of("any");
  const auto expected = search::find_layouts(job, *find_profile("h100-80gb"), question);
  ASSERT_TRUE(expected);
  ASSERT_EQ(expected->layouts.size(), 3U);

  Freed held;
  ASSERT_EQ(gpumem_summary_from_file(file.c_str(), nullptr, &held.summary, nullptr, 0), GPUMEM_OK);
  gpumem_job asked = GPUMEM_JOB_INIT;
  asked.gpu = "h100-80gb";
  asked.seq_length = 128;
  asked.precision = "bf16-mixed";
  gpumem_plan_question plan = GPUMEM_PLAN_QUESTION_INIT;
  plan.gpus = 4;
  plan.global_batch = 8;
  std::vector<gpumem_layout> layouts(3, gpumem_layout GPUMEM_LAYOUT_INIT);
  std::string settings(4096, 'x');
  layouts[0].settings = settings.data();
  layouts[0].settings_size = settings.size();
  std::string little(2, 'x');
  layouts[1].settings = little.data();
  layouts[1].settings_size = little.size();
  std::size_t found = 0;
  char message[1000];
  const auto made =
      gpumem_plan(held.summary, &asked, &plan, layouts.data(), layouts.size(), &found, message, sizeof message);
  ASSERT_EQ(made, GPUMEM_OK) << message;
  ASSERT_EQ(found, 3U);
  for (std::size_t at = 0; at < found; ++at) {
    const search::PlannedLayout& one = expected->layouts[at];
    EXPECT_EQ(layouts[at].framework, one.framework->name);
    EXPECT_EQ(layouts[at].gpus, 4);
    EXPECT_EQ(layouts[at].data_parallel, one.job.layout.data_parallel);
    EXPECT_EQ(layouts[at].tensor_parallel, one.job.layout.tensor_parallel);
    EXPECT_EQ(layouts[at].micro_batch, one.job.batch_size);
    EXPECT_EQ(layouts[at].accumulate, one.job.gradient_accumulation);
    EXPECT_EQ(layouts[at].expected_bytes, one.memory.expected.count());
    EXPECT_EQ(layouts[at].step_seconds, one.step);
  }
  const std::string whole = search::settings_of(*expected, expected->layouts[0]);
  EXPECT_EQ(settings.c_str(), whole);
  EXPECT_EQ(little[0], '\0') << "a text that does not fit is not cut";
  EXPECT_GT(layouts[1].settings_length, 1);
  EXPECT_EQ(gpumem_plan(held.summary, &asked, &plan, layouts.data(), 0, &found, message, sizeof message),
            GPUMEM_INVALID_ARGUMENT);
  EXPECT_EQ(gpumem_plan(held.summary, &asked, nullptr, layouts.data(), 3, &found, message, sizeof message),
            GPUMEM_INVALID_ARGUMENT);
}

TEST(CApi, AServerIsTheSessions) {
  const std::string config = GPUMEM_SOURCE_DIR "/examples/configs/llama3_8b/config.json";
  serve::ServingRequest request{config, "h100-80gb", {}};
  request.job.version = "0.19.0";
  request.job.tensor_parallel = 2;
  const auto expected = session::process_session().serve(request);
  ASSERT_TRUE(expected) << core::to_string(expected.error());

  const std::vector<const char*> words = {"vllm", "serve", "llama", "-tp", "2"};
  gpumem_serving_result given = GPUMEM_SERVING_RESULT_INIT;
  char message[1000];
  char reason[1000] = "x";
  given.reason = reason;
  given.reason_size = sizeof reason;
  ASSERT_EQ(
      gpumem_serve(config.c_str(), "h100-80gb", "0.19.0", words.data(), words.size(), &given, message, sizeof message),
      GPUMEM_OK)
      << message;
  EXPECT_EQ(given.weights_bytes, expected->weights.count());
  EXPECT_EQ(given.kv_cache_bytes, expected->kv_cache.count());
  EXPECT_EQ(given.kv_cache_tokens, expected->kv_cache_tokens);
  EXPECT_EQ(given.max_concurrency, expected->concurrency);
  EXPECT_EQ(given.starts, 1);
  EXPECT_EQ(given.verdict, GPUMEM_FITS);
  EXPECT_STREQ(reason, "");

  ASSERT_EQ(gpumem_serve(config.c_str(), "t4-16gb", nullptr, nullptr, 0, &given, message, sizeof message), GPUMEM_OK);
  EXPECT_EQ(given.starts, 0);
  EXPECT_EQ(given.verdict, GPUMEM_DOES_NOT_FIT);
  EXPECT_NE(std::string_view(reason).find("KV cache"), std::string_view::npos) << reason;

  const std::vector<const char*> wrong = {"vllm", "serve", "llama", "--no-such-flag", "2"};
  EXPECT_EQ(gpumem_serve(config.c_str(), nullptr, nullptr, wrong.data(), wrong.size(), &given, message, sizeof message),
            GPUMEM_INVALID_ARGUMENT);
  EXPECT_NE(std::string_view(message).find("--no-such-flag"), std::string_view::npos) << message;
  EXPECT_EQ(gpumem_serve("/nowhere", nullptr, nullptr, nullptr, 0, &given, nullptr, 0), GPUMEM_UNREADABLE_FILE);
  EXPECT_EQ(gpumem_serve(nullptr, nullptr, nullptr, nullptr, 0, &given, nullptr, 0), GPUMEM_INVALID_ARGUMENT);
  EXPECT_EQ(gpumem_serve(config.c_str(), nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0), GPUMEM_INVALID_ARGUMENT);
}

TEST(CApi, APostTrainingJobIsTheSessions) {
  const std::string config = GPUMEM_SOURCE_DIR "/examples/configs/llama3_8b/config.json";
  posttrain::PostTrainingRequest request;
  request.training.summary = config;
  request.training.gpu = "h100-80gb";
  request.training.training.batch_size = 1;
  request.training.training.sequence_length = 512;
  request.training.training.lora = 8;
  const auto expected = session::process_session().post_training(request);
  ASSERT_TRUE(expected) << core::to_string(expected.error());

  std::vector<const char*> options = {"algorithm=dpo", "batch_size=1", "seq_length=512", "lora=8"};
  gpumem_post_training_result given = GPUMEM_POST_TRAINING_RESULT_INIT;
  char message[1000];
  char phase[100] = "x";
  given.phase = phase;
  given.phase_size = sizeof phase;
  const auto ask = [&](const char* model) {
    return gpumem_post_training(model, "h100-80gb", options.data(), options.size(), nullptr, 0, &given, message,
                                sizeof message);
  };
  ASSERT_EQ(ask(config.c_str()), GPUMEM_OK) << message;
  EXPECT_EQ(given.expected_bytes, expected->memory.expected.count());
  EXPECT_EQ(given.upper_bytes, expected->memory.upper.count());
  EXPECT_EQ(given.fits, 1);
  EXPECT_EQ(phase, expected->phases[expected->peak_phase].name);

  options.push_back("no_such=1");
  EXPECT_EQ(ask(config.c_str()), GPUMEM_INVALID_ARGUMENT);
  EXPECT_NE(std::string_view(message).find("no_such"), std::string_view::npos) << message;
  options.back() = "algorithm";
  EXPECT_EQ(ask(config.c_str()), GPUMEM_INVALID_ARGUMENT) << "it has no value";
  options.pop_back();
  EXPECT_EQ(ask("/nowhere"), GPUMEM_UNREADABLE_FILE);
  EXPECT_EQ(ask(nullptr), GPUMEM_INVALID_ARGUMENT);
}

TEST(CApi, HasAVersionAndANameForEveryError) {
  EXPECT_STREQ(gpumem_version(), GPUMEM_VERSION_STRING);
  for (std::uint8_t code = 0; code <= static_cast<std::uint8_t>(ErrorCode::deadline_exceeded); ++code) {
    EXPECT_EQ(gpumem_status_name(code + 1), core::to_string(static_cast<ErrorCode>(code)));
  }
}

}  // namespace
}  // namespace gpumem
