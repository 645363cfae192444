// The list of a job's options against gpumem_job: through JSON, through words and through the struct's fields.
#include "job_struct.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "expect.hpp"
#include "option_values.hpp"

namespace gpumem::capi {
namespace {

using job::JobOption;
using job::JobRequest;
using testing::fails;
using testing::other_value;
using testing::succeeds;

struct Free {
  void operator()(gpumem_job* job) const { gpumem_job_free(job); }
};
using Job = std::unique_ptr<gpumem_job, Free>;

core::Result<JobRequest> from_json(const std::string& text, Job* kept = nullptr) {
  gpumem_job* job = nullptr;
  const core::Status made = job_from_json(text, &job);
  if (!made) return made.error();
  Job owner(job);
  const gpumem_job copy = *job;  // callers may copy and change it while it lives
  auto request = request_of(copy);
  if (kept != nullptr) *kept = std::move(owner);
  return request;
}

core::Result<JobRequest> from_words(const char* name, const char* value) {
  gpumem_job* job = nullptr;
  const core::Status made = job_from_words(&name, &value, 1, &job);
  if (!made) return made.error();
  const Job owner(job);
  return request_of(*job);
}

std::string json_of(const JobOption& option) {
  const std::string value = other_value(option);
  const job::OptionType type = option.place.type;
  const bool bare =
      job::stands_alone(type) || type == job::OptionType::whole_number || type == job::OptionType::fraction;
  return "{\"" + std::string(option.name) + "\": " + (bare ? value : "\"" + value + "\"") + "}";
}

TEST(JobStruct, HoldsEveryOptionThatJsonSays) {
  for (const JobOption& option : job::job_options()) {
    Job job;
    const auto request = from_json(json_of(option), &job);
    ASSERT_TRUE(succeeds(request)) << option.name;
    EXPECT_EQ(*request, testing::with_other_value(option)) << option.name;
    EXPECT_EQ(job->more_options == nullptr, has_field(option)) << option.name;
  }
}

TEST(JobStruct, ASwitchsChoiceIsAmongTheOtherOptions) {
  Job job;
  const auto request = from_json(R"({"checkpointing": "every:2"})", &job);
  ASSERT_TRUE(succeeds(request));
  EXPECT_EQ(request->training.checkpoints, (model::CheckpointPolicy{model::Checkpoints::every, 2}));
  EXPECT_EQ(job->checkpointing, 0);
  EXPECT_NE(std::string_view(job->more_options).find("every:2"), std::string_view::npos);
}

TEST(JobStruct, HoldsEveryOptionThatWordsSay) {
  for (const JobOption& option : job::job_options()) {
    const std::string flag(option.flag);
    const std::string value = other_value(option);
    const auto request = from_words(flag.c_str(), value.c_str());
    ASSERT_TRUE(succeeds(request)) << flag;
    EXPECT_EQ(*request, testing::with_other_value(option)) << flag;
  }
}

TEST(JobStruct, TakesEveryOptionInMoreOptions) {
  for (const JobOption& option : job::job_options()) {
    gpumem_job job = GPUMEM_JOB_INIT;
    const std::string text = json_of(option);
    job.more_options = text.c_str();
    const auto request = request_of(job);
    ASSERT_TRUE(succeeds(request)) << option.name;
    EXPECT_EQ(*request, testing::with_other_value(option)) << option.name;
  }
}

/// Whether a job made of one of these has the option as given.
bool gives(const core::Result<JobRequest>& request, const char* option) {
  return request && job::is_given(*job::find_option(option), *request);
}

TEST(JobStruct, TellsAValueThatTheLoopWouldDecideFromNone) {
  EXPECT_TRUE(gives(from_words("zero-grad", "before-forward"), "zero_grad"));
  EXPECT_TRUE(gives(from_words("padding", "false"), "padding"));
  EXPECT_TRUE(gives(from_words("transformers", "4.48"), "transformers"));
  EXPECT_TRUE(gives(from_json(R"({"padding": false})"), "padding"));
  for (const char* option : {"zero_grad", "padding", "transformers"}) {
    EXPECT_FALSE(gives(from_words("loop", "hf-trainer"), option)) << option;
    EXPECT_FALSE(gives(from_json(R"({"loop": "hf-trainer"})"), option)) << option;
    EXPECT_EQ(job::default_text(*job::find_option(option)), "") << option;
  }
}

TEST(JobStruct, OfZerosIsAllDefaults) {
  const gpumem_job job = GPUMEM_JOB_INIT;
  const auto request = request_of(job);
  ASSERT_TRUE(succeeds(request));
  EXPECT_EQ(*request, JobRequest());
}

TEST(JobStruct, KeepsSeveralGpusThatJsonAsksFor) {
  const auto request = from_json(R"({"data_parallel": 8, "gpu": "t4-16gb"})");
  ASSERT_TRUE(succeeds(request));
  EXPECT_EQ(request->training.layout.data_parallel, 8);
  EXPECT_EQ(request->gpu, "t4-16gb");
}

TEST(JobStruct, LaysMoreOptionsOverTheFields) {
  gpumem_job job = GPUMEM_JOB_INIT;
  job.gpu = "t4-16gb";
  job.optimizer = "sgd";
  job.more_options = R"({"optimizer": "lion"})";
  const auto request = request_of(job);
  ASSERT_TRUE(succeeds(request));
  EXPECT_EQ(request->gpu, "t4-16gb");
  EXPECT_EQ(request->training.optimizer, model::Optimizer::lion);
}

TEST(JobStruct, RefusesWhatIsWrong) {
  using core::ErrorCode;
  gpumem_job job = GPUMEM_JOB_INIT;
  job.more_options = "[1";
  EXPECT_TRUE(fails(request_of(job), ErrorCode::invalid_argument, 0, "more_options is not a JSON object"));
  job.more_options = R"({"colour": 1})";
  EXPECT_TRUE(fails(request_of(job), ErrorCode::malformed_input, 0, "no field 'colour'"));
  EXPECT_TRUE(fails(from_json(R"({"data_parallel": 0})"), ErrorCode::invalid_argument, 0, "must be at least 1"));
  EXPECT_TRUE(fails(from_json(R"({"accumulate": 0})"), ErrorCode::invalid_argument, 0, "'accumulate' is 0"));
  EXPECT_TRUE(
      fails(from_words("batch", "0"), ErrorCode::invalid_argument, 0, "batch: say a whole number of 1 or more"));
  EXPECT_TRUE(fails(from_words("seq", ""), ErrorCode::invalid_argument, 0, "seq: say a whole number of 1 or more"));
  EXPECT_TRUE(fails(from_words("optimizer", "?"), ErrorCode::invalid_argument, 0, "optimizer: there is no optimizer"));
  EXPECT_TRUE(fails(from_words("colour", "red"), ErrorCode::invalid_argument, 0, "a job has no option 'colour'"));
  EXPECT_TRUE(fails(from_words("gpu", nullptr), ErrorCode::invalid_argument, 0, "null pointer"));
  const auto usual = from_words("optimizer", "");
  ASSERT_TRUE(succeeds(usual));
  EXPECT_EQ(*usual, JobRequest());
}

TEST(JobStruct, ListsTheOptions) {
  std::size_t index = 0;
  for (const JobOption& option : job::job_options()) {
    const gpumem_job_option* listed = gpumem_job_option_at(index++);
    ASSERT_NE(listed, nullptr);
    EXPECT_EQ(listed->size, sizeof(gpumem_job_option));
    EXPECT_EQ(listed->name, option.name);
    EXPECT_EQ(listed->flag, option.flag);
    EXPECT_EQ(listed->value == nullptr, job::stands_alone(option.place.type));
    EXPECT_EQ(listed->usual == nullptr ? "" : listed->usual, job::default_text(option));
    EXPECT_EQ(listed->help, job::help_text(option));
  }
  EXPECT_EQ(gpumem_job_option_at(index), nullptr);
}

}  // namespace
}  // namespace gpumem::capi
