#include "gpumem/job/job_options.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "expect.hpp"
#include "option_values.hpp"

namespace gpumem::job {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::other_value;
using testing::succeeds;
using testing::value_in;

const JobOption& option(std::string_view name) { return *find_option(name); }

TEST(JobOptions, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names = {"id", "summary", "deadline_ms"};
  std::set<std::string_view> flags = {"json", "out", "help"};
  for (const JobOption& each : job_options()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    for (const std::string_view alias : each.aliases) EXPECT_TRUE(alias.empty() || names.insert(alias).second) << alias;
    EXPECT_TRUE(flags.insert(each.flag).second) << each.flag;
    EXPECT_EQ(find_option(each.name), &each);
    EXPECT_EQ(find_flag(each.flag), &each);
    EXPECT_FALSE(each.help.empty()) << each.name;
    EXPECT_EQ(each.value.empty(), stands_alone(each.place.type)) << each.name;
    const bool chooses = each.place.type == OptionType::choice || each.place.type == OptionType::switch_or_choice;
    EXPECT_EQ(each.place.choices != nullptr, chooses) << each.name;
  }
  EXPECT_EQ(find_option("batch"), find_option("batch_size"));
  EXPECT_EQ(find_option(""), nullptr);
  EXPECT_EQ(find_option("colour"), nullptr);
}

TEST(JobOptions, TakeAndGiveTheirValuesAndNoOther) {
  for (const JobOption& each : job_options()) {
    JobRequest request;
    EXPECT_TRUE(is_default(each, request)) << each.name;
    ASSERT_TRUE(succeeds(set_option_text(each, request, other_value(each)))) << each.name;
    EXPECT_EQ(value_in(request, each), other_value(each)) << each.name;
    for (const JobOption& other : job_options()) {
      EXPECT_EQ(is_default(other, request), &other != &each) << each.name << " changes " << other.name;
    }
    const JobRequest usual;
    EXPECT_EQ(each.place.in_training, !(request.training == usual.training)) << each.name;
  }
}

TEST(JobOptions, FractionsAreReadAndWrittenAsTheyAre) {
  const JobOption& dropout = option("lora_dropout");
  for (const char* word : {"0.05", "0.25", "0"}) {
    JobRequest request;
    ASSERT_TRUE(succeeds(set_option_text(dropout, request, word))) << word;
    EXPECT_EQ(value_in(request, dropout), word);
  }
  for (const char* word : {"", "x", "0.1x", "nan", "inf", "1e999", " 0.1"}) {
    JobRequest request;
    EXPECT_FALSE(set_option_text(dropout, request, word)) << word;
  }
}

TEST(JobOptions, TakeEveryChoiceThatTheirHelpNames) {
  for (const JobOption& each : job_options()) {
    if (each.place.choices == nullptr) continue;
    for (const std::string_view choice : each.place.choices()) {
      JobRequest request;
      const std::string word = testing::given(choice);
      EXPECT_TRUE(succeeds(set_option_text(each, request, word)));
      const bool switched = each.place.type == OptionType::switch_or_choice && (word == "none" || word == "full");
      EXPECT_EQ(value_in(request, each), switched ? std::string(word == "full" ? "true" : "false") : word);
      EXPECT_NE(help_text(each).find(choice), std::string::npos);
      EXPECT_NE(expectation(each).find(choice), std::string::npos);
    }
  }
  EXPECT_EQ(option("optimizer").place.choices().size(), model::kOptimizers.size());
}

TEST(JobOptions, RefuseWhatTheyDoNotTake) {
  JobRequest request;
  EXPECT_TRUE(fails(set_option_text(option("optimizer"), request, "adamm"), ErrorCode::invalid_argument, 0,
                    "there is no optimizer 'adamm'; choose one of sgd, "));
  for (const char* word : {"", "many", " 1", "1 ", "0x10", "1e3", "+1", "--1", "99999999999999999999"}) {
    EXPECT_TRUE(fails(set_option_text(option("batch_size"), request, word), ErrorCode::malformed_input, 0,
                      "must be a whole number, not "))
        << word;
  }
  for (const char* word : {"3x", "x3", "axb", "3xx4", "3 x 4", "-3x4", "3x99999999999999999999"}) {
    EXPECT_TRUE(fails(set_option_text(option("input"), request, word), ErrorCode::invalid_argument, 0,
                      "is not of the form 3x224x224"))
        << word;
  }
  EXPECT_TRUE(fails(set_option_text(option("fused"), request, "yes"), ErrorCode::malformed_input, 0,
                    "must be \"true\" or \"false\", not 'yes'"));
  EXPECT_TRUE(fails(set_option(option("batch_size"), request, OptionValue(true)), ErrorCode::invalid_argument, 0,
                    "the batch_size must be a whole number, not 'true'"));
  EXPECT_EQ(request, JobRequest());
}

TEST(JobOptions, ACountedChoiceTakesAWholeNumberOfOneOrMore) {
  JobRequest request;
  ASSERT_TRUE(succeeds(set_option_text(option("loss"), request, "chunked:128")));
  EXPECT_EQ(request.training.loss_form, (model::LossForm{model::LossForms::chunked, 128}));
  EXPECT_EQ(request.training.loss, model::Loss::cross_entropy);
  const JobRequest before = request;
  for (const char* word : {"chunked", "chunked:", "chunked:N", "chunked:0", "chunked:-1", "chunked:1x", "chunked: 1",
                           "fused:2", "chunked:99999999999999999999"}) {
    EXPECT_TRUE(fails(set_option_text(option("loss"), request, word), ErrorCode::invalid_argument, 0,
                      "choose one of cross-entropy, mse, bce-with-logits, chunked:N, fused, fused-ce, compiled"))
        << word;
  }
  EXPECT_EQ(request, before);
}

TEST(JobOptions, ALossIsOneValueWhetherItNamesAFunctionOrAForm) {
  JobRequest request;
  ASSERT_TRUE(succeeds(set_option_text(option("loss"), request, "fused")));
  ASSERT_TRUE(succeeds(set_option_text(option("loss"), request, "mse")));
  EXPECT_EQ(request.training.loss_form, model::LossForm()) << "the last word stands";
  ASSERT_TRUE(succeeds(set_option_text(option("loss"), request, "fused-ce")));
  EXPECT_EQ(request.training.loss, model::Loss::cross_entropy);
  ASSERT_TRUE(succeeds(set_option_text(option("loss"), request, "standard")));
  EXPECT_TRUE(is_default(option("loss"), request));
}

TEST(JobOptions, ARankIsANameOrANumberFromNought) {
  JobRequest request;
  const JobOption& rank = option("rank");
  ASSERT_TRUE(succeeds(set_option_text(rank, request, "0")));
  EXPECT_EQ(request.training.layout.rank, (model::Rank{model::Ranks::one, 0}));
  EXPECT_EQ(value_in(request, rank), "0");
  ASSERT_TRUE(succeeds(set_option_text(rank, request, "last")));
  EXPECT_EQ(value_in(request, rank), "last");
  for (const char* word : {"", "-1", "first", "1x", "99999999999999999999"}) {
    EXPECT_TRUE(fails(set_option_text(rank, request, word), ErrorCode::invalid_argument, 0, "choose one of max, last"))
        << word;
  }
}

TEST(JobOptions, AShardingMayNameItsGroup) {
  JobRequest request;
  ASSERT_TRUE(succeeds(set_option_text(option("sharding"), request, "hsdp:16")));
  EXPECT_EQ(request.training.layout.sharding, (model::Sharding{model::Shardings::hsdp, 16}));
  EXPECT_FALSE(set_option_text(option("sharding"), request, "hsdp"));
  EXPECT_FALSE(set_option_text(option("sharding"), request, "fsdp2:4"));
}

TEST(JobOptions, CheckpointingIsASwitchOrAKind) {
  JobRequest request;
  const auto set = [&](const OptionValue& value) { return set_option(option("checkpointing"), request, value); };
  ASSERT_TRUE(succeeds(set(true)));
  EXPECT_TRUE(request.training.activation_checkpointing);
  EXPECT_EQ(value_in(request, option("checkpointing")), "true");
  ASSERT_TRUE(succeeds(set(std::string("every:2"))));
  EXPECT_EQ(request.training.checkpoints, (model::CheckpointPolicy{model::Checkpoints::every, 2}));
  EXPECT_EQ(remark_on(option("checkpointing"), request), "checkpointing every:2");
  ASSERT_TRUE(succeeds(set(std::string("full"))));
  EXPECT_EQ(request.training.checkpoints, model::CheckpointPolicy());
  EXPECT_EQ(remark_on(option("checkpointing"), request), "checkpointing");
  ASSERT_TRUE(succeeds(set(std::string("selective:mlp+self_attn"))));
  EXPECT_EQ(request.training.checkpoints,
            (model::CheckpointPolicy{model::Checkpoints::selective_modules, 0, "mlp+self_attn"}));
  EXPECT_EQ(remark_on(option("checkpointing"), request), "checkpointing selective:mlp+self_attn");
  for (const char* word : {"selective:", "selective:+", "selective:mlp+", "selective:+mlp", "selective:a++b"}) {
    EXPECT_TRUE(fails(set(std::string(word)), ErrorCode::invalid_argument, 0, "choose one of none, full")) << word;
  }
  ASSERT_TRUE(succeeds(set(std::string("selective-op"))));
  ASSERT_TRUE(succeeds(set(std::string("none"))));
  EXPECT_EQ(request, JobRequest());
  EXPECT_TRUE(fails(set(std::string("some")), ErrorCode::invalid_argument, 0,
                    "there is no checkpointing 'some'; choose one of none, full, full:N, every:N, selective-op, "));
  EXPECT_TRUE(fails(set(std::int64_t{2}), ErrorCode::invalid_argument, 0, "choose one of none, full"));
}

TEST(JobOptions, TakeWholeNumbersToTheEndsOf64Bits) {
  JobRequest request;
  ASSERT_TRUE(succeeds(set_option_text(option("batch_size"), request, "9223372036854775807")));
  EXPECT_EQ(request.training.batch_size, INT64_MAX);
  ASSERT_TRUE(succeeds(set_option_text(option("batch_size"), request, "-5")));
  EXPECT_EQ(request.training.batch_size, -5);
  ASSERT_TRUE(succeeds(set_option_text(option("batch_size"), request, "007")));
  EXPECT_EQ(request.training.batch_size, 7);
}

TEST(JobOptions, AreRemarkedOnWhereTheyAreNotTheDefault) {
  JobRequest request;
  request.training.gradient_accumulation = 4096;
  request.training.foreach = false;
  request.alloc_conf = "expandable_segments:True";
  std::string remarks;
  for (const JobOption& each : job_options()) {
    const std::string remark = remark_on(each, request);
    if (!remark.empty()) remarks += remark + "; ";
  }
  EXPECT_EQ(remarks, "expandable_segments:True; 4,096 passes a step; no foreach; ");
}

TEST(JobOptions, AreOnThePages) {
  const auto page = [](const char* name) {
    std::ostringstream text;
    text << std::ifstream(std::string(GPUMEM_SOURCE_DIR) + "/docs/" + name).rdbuf();
    return text.str();
  };
  const std::string flags = page("command-line.md");
  const std::string names = page("json.md");
  for (const JobOption& each : job_options()) {
    const bool switched_off = default_text(each) == "true";
    const std::string flag = (switched_off ? "`--no-" : "`--") + std::string(each.flag);
    EXPECT_NE(flags.find(flag), std::string::npos) << flag;
    EXPECT_TRUE(!each.trains || names.find("`" + std::string(each.name) + "`") != std::string::npos) << each.name;
  }
}

}  // namespace
}  // namespace gpumem::job
