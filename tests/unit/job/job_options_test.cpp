#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "expect.hpp"
#include "golden.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "option_values.hpp"
#include "recordings.hpp"

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

TEST(JobOptions, TakeNamesInAnyCaseAndTypesByTheirNamesInPyTorch) {
  JobRequest request;
  ASSERT_TRUE(succeeds(set_option_text(option("optimizer"), request, "AdamW")));
  ASSERT_TRUE(succeeds(set_option_text(option("precision"), request, "bfloat16")));
  EXPECT_EQ(request.training.optimizer, model::Optimizer::adamw);
  EXPECT_EQ(request.training.precision, model::Precision::bf16);
  EXPECT_TRUE(fails(set_option_text(option("precision"), request, "amp-bf61"), ErrorCode::invalid_argument, 0,
                    "there is no precision 'amp-bf61' (did you mean 'amp-bf16'?); choose one of"));
}

TEST(JobOptions, RefuseWhatTheyDoNotTake) {
  JobRequest request;
  EXPECT_TRUE(fails(set_option_text(option("optimizer"), request, "adamm"), ErrorCode::invalid_argument, 0,
                    "there is no optimizer 'adamm'; choose one of sgd, "));
  EXPECT_TRUE(fails(set_option_text(option("reshard_after_forward"), request, "some"), ErrorCode::invalid_argument, 0,
                    "choose one of default, always, never, or give a number"));
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
                      "choose one of cross-entropy, mse, bce-with-logits, chunked:N, fused, fused-ce, compiled, "
                      "fused-target:N, fused-free, fused-free-2025, checkpointed:N"))
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
  for (const std::string kind : {"full+host-attention", "joined-every-other:2+host-attention-kernel"}) {
    EXPECT_TRUE(testing::succeeds(set(kind)));
    EXPECT_NE(request.training.checkpoints.host_attention, model::HostAttention::none);
    EXPECT_EQ(remark_on(option("checkpointing"), request), "checkpointing " + kind);
  }
  ASSERT_TRUE(succeeds(set(std::string("full+non-reentrant"))));
  EXPECT_EQ(request.training.checkpoints.reentrance, model::Reentrance::off);
  EXPECT_FALSE(succeeds(set(std::string("selective-op+reentrant")))) << "it keeps results";
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

std::string page(const char* name) {
  std::ostringstream text;
  text << std::ifstream(std::string(GPUMEM_SOURCE_DIR) + "/docs/" + name).rdbuf();
  return text.str();
}

TEST(JobOptions, AreOnThePages) {
  const std::string flags = page("job-options.md");
  const std::string names = page("json.md");
  for (const JobOption& each : job_options()) {
    const bool switched_off = default_text(each) == "true";
    const std::string flag = (switched_off ? "`--no-" : "`--") + std::string(each.flag);
    EXPECT_NE(flags.find(flag), std::string::npos) << flag;
    EXPECT_TRUE(!each.trains || names.find("`" + std::string(each.name) + "`") != std::string::npos) << each.name;
  }
}

TEST(JobOptions, EachChoiceIsOnThePages) {
  const std::string options = page("job-options.md");
  const std::string adapters = page("language-models.md");
  for (const JobOption& each : job_options()) {
    if (each.place.choices == nullptr) continue;
    const std::string& text = each.name == "peft" ? adapters : options;
    for (const std::string_view choice : each.place.choices()) {
      const bool said = default_text(each) == choice || text.find("`" + std::string(choice) + "`") != std::string::npos;
      EXPECT_TRUE(said) << each.flag << " " << choice;
    }
  }
}

std::string typed(std::string_view message) { return spelled(message, kCommandLine); }

TEST(OptionTexts, AMessageNamesOptionsAsTheFrontEndWritesThem) {
  EXPECT_EQ(typed("say `seq_length=512`, or `lora`"), "say --seq 512, or --lora");
  EXPECT_EQ(typed("`sharding=hsdp:4` needs `gpus_per_node`"), "--sharding hsdp:4 needs --gpus-per-node");
  EXPECT_EQ(typed("`checkpointing=every:2`"), "--checkpointing=every:2") << "a switch takes its kind after =";
  EXPECT_EQ(spelled("say `seq_length=512`", {"gpumem.io/", ": "}), "say gpumem.io/seq: 512");
}

TEST(OptionTexts, WhatNamesNoOptionStays) {
  for (const std::string_view text : {"", "`", "``", "a `b", "`no_option=3`", "`", "a ` b ` c", "``no``"}) {
    EXPECT_EQ(typed(text), text);
  }
  EXPECT_EQ(typed("`no` `lora` `"), "`no` --lora `");
  EXPECT_EQ(typed("the layer 'a`b' needs `lora`"), "the layer 'a`b' needs --lora");
}

/// The texts in quotation marks of a file of the library, without comments.
std::vector<std::string> literals_of(const std::filesystem::path& file) {
  std::vector<std::string> found;
  std::istringstream lines(testing::text_of(file));
  static const std::regex literal(R"re("((?:[^"\\]|\\.)*)")re");
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t comment = line.find("//"); comment != std::string::npos) line.resize(comment);
    for (std::sregex_iterator at(line.begin(), line.end(), literal), end; at != end; ++at) found.push_back((*at)[1]);
  }
  return found;
}

/// Files that write or read other programs' command lines.
bool has_arguments(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return name == "targets.hpp" || name == "targets_inl.hpp" || name == "frameworks_inl.hpp" ||
         name == "server_command_inl.hpp";
}

TEST(OptionTexts, TheLibraryNamesOptionsAndLeavesTheirSpellingToFrontEnds) {
  static const std::regex dashes("(^|[^-])--[a-z]");
  static const std::regex named("`([a-z_0-9]+)(=[^`]*)?`");
  int names = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(GPUMEM_SOURCE_DIR "/include/gpumem")) {
    if (entry.path().extension() != ".hpp" || has_arguments(entry.path())) continue;
    for (const std::string& text : literals_of(entry.path())) {
      EXPECT_FALSE(std::regex_search(text, dashes)) << entry.path() << ": " << text;
      for (std::sregex_iterator at(text.begin(), text.end(), named), end; at != end; ++at, ++names) {
        EXPECT_TRUE(typed((*at).str()).starts_with("--")) << entry.path() << ": no option of " << (*at).str();
      }
    }
  }
  EXPECT_GT(names, 50) << "messages that name options are found";
}

TEST(OptionWords, AreReadAsTheOptionsTypeHasThem) {
  EXPECT_EQ(value_of_word(OptionType::flag, "true"), OptionValue(true));
  EXPECT_EQ(value_of_word(OptionType::whole_number, "-12"), OptionValue(std::int64_t{-12}));
  EXPECT_EQ(value_of_word(OptionType::fraction, "0.05"), OptionValue(0.05));
  EXPECT_EQ(value_of_word(OptionType::switch_or_choice, "full:2"), OptionValue(std::string("full:2")));
  EXPECT_EQ(value_of_word(OptionType::switch_or_choice, "false"), OptionValue(false));
  EXPECT_EQ(value_of_word(OptionType::text, "12"), OptionValue(std::string("12")));
}

TEST(OptionWords, OfAnotherTypeAreNone) {
  EXPECT_FALSE(value_of_word(OptionType::flag, "yes").has_value());
  for (const char* word : {"", "-", "1.5", "12 ", "99999999999999999999"}) {
    EXPECT_FALSE(value_of_word(OptionType::whole_number, word).has_value()) << word;
  }
  for (const char* word : {"", "nan", "inf", "0.05x"}) {
    EXPECT_FALSE(value_of_word(OptionType::fraction, word).has_value()) << word;
  }
}

TEST(OptionWords, FractionsAreWrittenAsShortAsTheyAreRead) {
  EXPECT_EQ(fraction_text(0.05), "0.05");
  EXPECT_EQ(fraction_text(0.0), "0");
}

TEST(OptionWords, AccessorsTakeValuesOfTheirType) {
  EXPECT_TRUE(is_of_kind(OptionType::flag, true));
  EXPECT_FALSE(is_of_kind(OptionType::flag, std::int64_t{1}));
  EXPECT_TRUE(is_of_kind(OptionType::dimensions, std::string("3x224x224")));
}

/// The request that a table of one column and one row says.
core::Result<JobRequest> read(std::string_view column, const std::string& cell) {
  const auto table = core::parse_csv("other," + std::string(column) + "\nx," + cell + "\n", "jobs.csv");
  if (!table) return table.error();
  JobRequest request;
  const core::Status taken = take_option_cells(core::CsvCells(*table, table->rows.at(0)), request);
  if (!taken) return taken.error();
  return request;
}

TEST(OptionColumns, HoldEveryOptionThatSaysHowAJobIsTrained) {
  for (const JobOption& option : job_options()) {
    const JobRequest expected = option.place.in_training ? testing::with_other_value(option) : JobRequest();
    const auto named = read(option.name, testing::other_value(option));
    ASSERT_TRUE(succeeds(named)) << option.name;
    EXPECT_EQ(*named, expected) << option.name;
    for (const std::string_view alias : option.aliases) {
      if (alias.empty()) continue;
      const auto renamed = read(alias, testing::other_value(option));
      ASSERT_TRUE(succeeds(renamed)) << alias;
      EXPECT_EQ(*renamed, expected) << alias;
    }
    const auto empty = read(option.name, "");
    ASSERT_TRUE(succeeds(empty)) << option.name;
    EXPECT_EQ(*empty, JobRequest()) << option.name;
  }
}

TEST(OptionColumns, ASwitchIsYesOrNoOrAKind) {
  EXPECT_TRUE(read("checkpointing", "yes")->training.activation_checkpointing);
  EXPECT_FALSE(read("checkpointing", "no")->training.activation_checkpointing);
  EXPECT_EQ(read("checkpointing", "selective-op")->training.checkpoints.kind, model::Checkpoints::selective_op);
  EXPECT_EQ(*read("checkpointing", "none"), JobRequest());
}

TEST(OptionColumns, NameTheColumnOfAWrongCell) {
  EXPECT_TRUE(fails(read("checkpointing", "some"), ErrorCode::malformed_input, 2, "choose one of none, full"));
  EXPECT_TRUE(fails(read("optimizer", "adamm"), ErrorCode::malformed_input, 2, "optimizer is 'adamm'; choose one of"));
  EXPECT_TRUE(fails(read("input", "3x"), ErrorCode::malformed_input, 2, "input is '3x'; it must be of the form"));
  EXPECT_TRUE(fails(read("gradient_accumulation", "many"), ErrorCode::malformed_input, 2, "gradient_accumulation"));
  EXPECT_TRUE(fails(read("fused", "perhaps"), ErrorCode::malformed_input, 2, "fused is 'perhaps'"));
}

std::shared_ptr<const model::ModelGraph> small_model() {
  model::GraphBuilder builder("small");
  builder.infer_edges();
  builder.add({.name = "head", .class_name = "Linear", .parameters = 36});
  return std::make_shared<const model::ModelGraph>(*std::move(builder).build());
}

TEST(JobRequest, IsATrainingJobOfAModel) {
  JobRequest request;
  request.training.batch_size = 8;
  request.training.layout.data_parallel = 4;
  const auto graph = small_model();
  const auto training = job_from(request, graph);
  ASSERT_TRUE(testing::succeeds(training));
  EXPECT_EQ(training->graph, graph);
  EXPECT_EQ(training->batch_size, 8);
  EXPECT_EQ(training->layout.data_parallel, 4);
}

TEST(JobRequest, AModelCutIntoMoreStagesThanRanksGivesEachRankSeveral) {
  model::GraphBuilder builder("staged");
  builder.infer_edges();
  builder.add({.name = "head", .class_name = "Linear", .parameters = 36});
  builder.run_settings({.pipeline_layers = "1,1,1,1", .virtual_stages = 2});
  const auto graph = std::make_shared<const model::ModelGraph>(*std::move(builder).build());
  JobRequest request;
  request.training.batch_size = 8;
  EXPECT_EQ(job_from(request, graph)->layout.virtual_stages, 1) << "there is no pipeline";
  request.training.layout.pipeline_parallel = 2;
  const auto staged = job_from(request, graph);
  ASSERT_TRUE(testing::succeeds(staged));
  EXPECT_EQ(staged->layout.virtual_stages, 2);
  EXPECT_EQ(staged->layout.schedule, model::Schedule::interleaved);
  request.training.layout.pipeline_layers = "2,2";
  EXPECT_EQ(job_from(request, graph)->layout.virtual_stages, 1) << "the job says how it is cut";
}

TEST(JobRequest, GradientsAreZeroedWhereTheLoopDoesUnlessAPlaceIsGiven) {
  for (const model::LoopRow& row : model::kLoopRows) {
    JobRequest request;
    request.training.batch_size = 8;
    request.training.loop = row.value;
    EXPECT_EQ(job_from(request, small_model())->zero_grad, row.zero_grad) << row.name;
    ASSERT_TRUE(testing::succeeds(set_option_text(*find_option("zero_grad"), request, "step-start")));
    EXPECT_EQ(job_from(request, small_model())->zero_grad, model::ZeroGrad::step_start) << row.name;
  }
}

TEST(JobRequest, ACountIsOneOrMore) {
  JobRequest request;
  request.training.batch_size = 8;
  request.training.checkpoints = {model::Checkpoints::every, 0};
  EXPECT_TRUE(testing::fails(job_from(request, small_model()), core::ErrorCode::invalid_argument, 0, "blocks is 0"));
  request.training.checkpoints = {};
  request.training.loss_form = {model::LossForms::chunked, 0};
  EXPECT_TRUE(testing::fails(job_from(request, small_model()), core::ErrorCode::invalid_argument, 0, "a chunk is 0"));
  request.training.loss_form = {model::LossForms::fused, 0};
  request.training.loss = model::Loss::mse;
  EXPECT_TRUE(testing::fails(job_from(request, small_model()), core::ErrorCode::invalid_argument, 0, "cross entropy"));
}

/// What optimizer a recorded step ran is written down, in which form is not.
TEST(JobRequest, OfARecordingAnotherOptimizerOrAFormOfItTakesThePlaceOfTheRecordedOne) {
  auto read = parse_summary(testing::kSmallRecording);
  ASSERT_TRUE(testing::succeeds(read));
  const auto graph = std::make_shared<const model::ModelGraph>(*std::move(read));
  const auto replaces = [&](std::string_view option, std::string_view value) {
    JobRequest request;
    EXPECT_TRUE(testing::succeeds(set_option_text(*find_option(option), request, value)));
    const auto job = job_from(request, graph);
    EXPECT_TRUE(testing::succeeds(job));
    return job && job->replaces_optimizer;
  };
  EXPECT_FALSE(job_from({}, graph)->replaces_optimizer);
  EXPECT_EQ(job_from({}, graph)->optimizer, model::Optimizer::sgd) << "as it was recorded";
  EXPECT_FALSE(replaces("optimizer", "sgd"));
  EXPECT_TRUE(replaces("optimizer", "adam"));
  EXPECT_TRUE(replaces("fused", "true"));
  EXPECT_TRUE(replaces("foreach", "false"));
}

TEST(JobRequest, OfARecordingBenchmarkModeCanBeSwitchedOff) {
  const std::string text = testing::with(testing::kSmallRecording, R"("optimizer": )",
                                         R"("settings": {"cudnn_benchmark": true}, "optimizer": )");
  const auto graph = parse_summary(text);
  ASSERT_TRUE(succeeds(graph));
  const auto shared = std::make_shared<const model::ModelGraph>(*graph);
  JobRequest request;
  const auto as_recorded = job_from(request, shared);
  ASSERT_TRUE(set_option_text(option("cudnn_benchmark"), request, "false"));
  const auto off = job_from(request, shared);
  ASSERT_TRUE(succeeds(as_recorded) && succeeds(off));
  EXPECT_TRUE(as_recorded->cudnn_benchmark);
  EXPECT_FALSE(off->cudnn_benchmark);
}

TEST(JobRequest, OfAnUnknownRecordedOptimizerThereIsNoOtherForm) {
  auto read =
      parse_summary(testing::with(testing::kSmallRecording, R"("optimizer": "sgd")", R"("optimizer": "sophia")"));
  ASSERT_TRUE(testing::succeeds(read));
  const auto graph = std::make_shared<const model::ModelGraph>(*std::move(read));
  JobRequest request;
  EXPECT_TRUE(testing::succeeds(set_option_text(*find_option("fused"), request, "true")));
  EXPECT_TRUE(testing::fails(job_from(request, graph), core::ErrorCode::invalid_argument, 0, "`optimizer`"));
  EXPECT_TRUE(testing::succeeds(set_option_text(*find_option("optimizer"), request, "adamw")));
  const auto job = job_from(request, graph);
  ASSERT_TRUE(testing::succeeds(job));
  EXPECT_TRUE(job->replaces_optimizer);
}

TEST(JobRequest, IsCheckedAsAJob) {
  EXPECT_TRUE(testing::fails(job_from({}, small_model()), core::ErrorCode::invalid_argument, 0, "the batch size is 0"));
  EXPECT_TRUE(testing::fails(job_from({}, nullptr), core::ErrorCode::invalid_argument, 0, "the job has no model"));
}

}  // namespace
}  // namespace gpumem::job
