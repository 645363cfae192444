#include "job_arguments.hpp"

#include <gtest/gtest.h>

#include "option_values.hpp"

namespace gpumem::cli {
namespace {

using job::JobOption;
using job::JobRequest;

/// The request that these words say; throws what CLI11 throws.
JobRequest parsed(std::vector<std::string> words, std::initializer_list<std::string_view> without = {}) {
  CLI::App app;
  JobRequest request;
  add_job_options(app, request, without);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return request;
}

std::vector<std::string> other_words(const JobOption& option) {
  const std::string flag(option.flag);
  if (!job::stands_alone(option.place.type)) return {"--" + flag, testing::other_value(option)};
  return {(job::default_text(option) == "true" ? "--no-" : "--") + flag};
}

TEST(JobArguments, HoldEveryOption) {
  EXPECT_EQ(parsed({}), JobRequest());
  for (const JobOption& option : job::job_options()) {
    EXPECT_EQ(parsed(other_words(option)), testing::with_other_value(option)) << option.name;
    EXPECT_THROW(parsed(other_words(option), {option.name}), CLI::ParseError) << option.name;
  }
}

TEST(JobArguments, NamesMayBeGivenSeveralTimes) {
  EXPECT_EQ(parsed({"--freeze", "embed", "--train", "head", "--freeze", "norm,*.bias"}).training.freeze,
            "embed,norm,*.bias");
}

TEST(JobArguments, TellEveryOptionWithItsDefaultAndChoicesInTheHelp) {
  CLI::App app;
  JobRequest request;
  add_job_options(app, request);
  for (const JobOption& option : job::job_options()) {
    const std::string shown = other_words(option).front();
    const CLI::Option* added = app.get_option(shown);
    const std::string help = job::spelled(option.help, job::kCommandLine);
    EXPECT_NE(added->get_description().find(help), std::string::npos) << shown;
    if (!job::stands_alone(option.place.type)) {
      EXPECT_EQ(added->get_default_str(), job::default_text(option));
    }
  }
}

TEST(JobArguments, ASwitchTakesItsChoiceBehindAnEqualsSign) {
  EXPECT_TRUE(parsed({"--checkpointing"}).training.activation_checkpointing);
  const JobRequest every = parsed({"--checkpointing=every:2", "--batch", "3"});
  EXPECT_EQ(every.training.checkpoints, (model::CheckpointPolicy{model::Checkpoints::every, 2}));
  EXPECT_EQ(every.training.batch_size, 3);
  EXPECT_FALSE(parsed({"--checkpointing=none"}).training.activation_checkpointing);
  EXPECT_THROW(parsed({"--checkpointing=some"}), OptionRefused);
}

TEST(JobArguments, ASwitchAndAChoiceBehindItBecomeOneWord) {
  using Words = std::vector<std::string>;
  const auto joined = [](std::vector<const char*> words) { return with_switches_joined(words); };
  EXPECT_EQ(joined({"gpumem", "estimate", "--checkpointing", "full:4", "model.txt"}),
            (Words{"gpumem", "estimate", "--checkpointing=full:4", "model.txt"}));
  EXPECT_EQ(joined({"estimate", "--checkpointing", "model.txt"}), (Words{"estimate", "--checkpointing", "model.txt"}));
  EXPECT_EQ(joined({"estimate", "--fused", "full", "--checkpointing"}),
            (Words{"estimate", "--fused", "full", "--checkpointing"}));
}

TEST(JobArguments, AnOptionHasTheNamesThatTablesAndTrainersKnow) {
  CLI::App command;
  JobRequest request;
  add_job_options(command, request);
  command.add_option("--seq-len");  // of the command's own
  std::vector<std::string> words = {"--batch-size=4",           "--seq-length", "8", "--seq-len",
                                    "--gradient-checkpointing", "--what"};
  name_as_usual(command, words);
  EXPECT_EQ(words, (std::vector<std::string>{"--batch=4", "--seq", "8", "--seq-len", "--checkpointing", "--what"}));
}

TEST(JobArguments, ReadWholeNumbersAsPeopleWriteThem) {
  EXPECT_EQ(parsed({"--batch", "010"}).training.batch_size, 10);
  EXPECT_EQ(parsed({"--batch", "-5"}).training.batch_size, -5);
  for (const char* word : {"1.5", "1e3", "many", "99999999999999999999"}) {
    EXPECT_THROW(parsed({"--batch", word}), CLI::ParseError) << word;
  }
}

TEST(JobArguments, SayWhatIsWrong) {
  try {
    (void)parsed({"--optimizer", "adamm"});
    FAIL() << "was taken";
  } catch (const OptionRefused& refused) {
    EXPECT_EQ(refused.error.code, core::ErrorCode::invalid_argument);
    EXPECT_NE(refused.error.message.find("there is no optimizer 'adamm'; choose one of sgd, "), std::string::npos);
  }
}

TEST(JobArguments, TheUsersOwnCommandStandsBehindItsMark) {
  const auto cut = [](const std::vector<const char*>& words) {
    const CutWords parts = cut_command(words);
    return std::pair(std::vector<std::string>(parts.ours.begin(), parts.ours.end()), parts.theirs);
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(cut({"gpumem", "run", "--gpus", "2", "--", "python3", "--", "-u"}),
            std::pair(Words({"gpumem", "run", "--gpus", "2"}), Words({"python3", "--", "-u"})));
  EXPECT_EQ(cut({"gpumem", "run", "--"}), std::pair(Words({"gpumem", "run"}), Words()));
  EXPECT_EQ(cut({"gpumem", "run"}), std::pair(Words({"gpumem", "run"}), Words()));
  EXPECT_EQ(cut({"gpumem", "batch", "--", "x"}), std::pair(Words({"gpumem", "batch", "--", "x"}), Words()))
      << "other commands have no command of the user's";
  EXPECT_EQ(cut({"gpumem"}), std::pair(Words({"gpumem"}), Words()));
}

}  // namespace
}  // namespace gpumem::cli
