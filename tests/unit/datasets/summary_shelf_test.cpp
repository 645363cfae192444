#include "gpumem_datasets/summary_shelf.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "expect.hpp"
#include "own_path.hpp"
#include "run_tables.hpp"

namespace gpumem::datasets {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

TEST(SummaryShelf, ReadsEachPathOnce) {
  int reads = 0;
  RunsOptions options = testing::small_shelf();
  options.read_summary = [&reads, inner = options.read_summary](const std::string& path) {
    ++reads;
    return inner(path);
  };
  SummaryShelf shelf(options);
  const auto first = shelf.take("a/small.txt");
  ASSERT_TRUE(succeeds(first));
  EXPECT_EQ(first->get(), shelf.take("a/small.txt")->get());
  EXPECT_EQ((*first)->file(), "a/small.txt");
  EXPECT_TRUE(fails(shelf.take("other.txt"), ErrorCode::unreadable_file, 0, "cannot open"));
  EXPECT_TRUE(fails(shelf.take("other.txt"), ErrorCode::unreadable_file, 0, "cannot open"));
  EXPECT_EQ(reads, 2);
}

TEST(SummaryShelf, DoesNotReadStandardInput) {
  const RunsOptions options = testing::small_shelf();
  EXPECT_TRUE(fails(SummaryShelf(options).take("-"), ErrorCode::malformed_input, 0, "not standard input"));
}

TEST(SummaryShelf, KnowsWellKnownModelsAndTheirCopies) {
  RunsOptions options = testing::small_shelf();
  std::vector<std::string> names;
  options.parse_summary = [&names](std::string_view, const std::string& name) {
    names.push_back(name);
    return core::Result<model::ModelGraph>(testing::small_model(name));
  };
  SummaryShelf shelf(options);
  ASSERT_TRUE(succeeds(shelf.take_model("unsloth/Llama-3.2-3B-Instruct-bnb-4bit", "nowhere")));
  ASSERT_TRUE(succeeds(shelf.take_model("Qwen/Qwen3-0.6B", "nowhere")));
  EXPECT_EQ(names.at(0).substr(0, 22), "meta-llama/Llama-3.2-3");
  EXPECT_EQ(names.at(1), "Qwen/Qwen3-0.6B");
  EXPECT_TRUE(fails(shelf.take_model("who/knows", "nowhere"), ErrorCode::missing_information, 0, "no config of"));
}

TEST(SummaryShelf, ReadsAModelInMegatronsOwnForm) {
  RunsOptions options = testing::small_shelf();
  std::string read;
  options.parse_summary = [&read](std::string_view text, const std::string& name) {
    read = text;
    return core::Result<model::ModelGraph>(testing::small_model(name));
  };
  SummaryShelf shelf(options);
  EXPECT_NE(shelf.take_megatron("Qwen/Qwen3-0.6B", "nowhere", R"("moe_router_dtype": "fp32")"), nullptr);
  EXPECT_TRUE(read.starts_with(R"({"num_layers": 28)") && read.ends_with(R"("moe_router_dtype": "fp32"})")) << read;
  EXPECT_EQ(shelf.take_megatron("openai/gpt-oss-20b", "nowhere", R"("a": 1)"), nullptr);
  EXPECT_EQ(shelf.take_megatron("who/knows", "nowhere", R"("a": 1)"), nullptr);
}

/// Runs of one model may have arguments of their own.
TEST(SummaryShelf, ReadsEachTextOnce) {
  RunsOptions options = testing::small_shelf();
  std::vector<std::string> texts;
  options.parse_summary = [&texts](std::string_view text, const std::string& name) {
    texts.emplace_back(text);
    return core::Result<model::ModelGraph>(testing::small_model(name));
  };
  SummaryShelf shelf(options);
  for (const std::string text : {R"({"num_layers": 1})", R"({"num_layers": 2})", R"({"num_layers": 1})"}) {
    ASSERT_TRUE(succeeds(shelf.take_model(text, "nowhere")));
  }
  EXPECT_EQ(texts, (std::vector<std::string>{R"({"num_layers": 1})", R"({"num_layers": 2})"}));
}

TEST(SummaryShelf, CopiesOfNvidiasModelsLackItsName) {
  const std::filesystem::path table = testing::own_path("copies_of_nvidia");
  std::filesystem::create_directories(table / "configs");
  const std::filesystem::path config = table / "configs" / "nvidia--NVIDIA-Nemotron-9-BF16.json";
  std::ofstream(config) << "{}";
  RunsOptions options = testing::small_shelf();
  std::vector<std::string> paths;
  options.read_summary = [&paths](const std::string& path) {
    paths.push_back(path);
    return core::Result<model::ModelGraph>(testing::small_model(path));
  };
  SummaryShelf shelf(options);
  ASSERT_TRUE(succeeds(shelf.take_model("unsloth/Nemotron-9", table)));
  EXPECT_EQ(paths, std::vector<std::string>{config.string()});
}

TEST(SummaryShelf, GivesAModelAnotherHead) {
  const std::filesystem::path table = testing::own_path("other_heads");
  std::filesystem::create_directories(table / "configs");
  std::ofstream(table / "configs" / "who--Talks.json") << R"({"architectures": ["TalksForCausalLM"], "x": 1})";
  std::ofstream(table / "configs" / "who--Reads.json")
      << R"({"text": {"architectures": ["InnerForCausalLM"]}, "x": Infinity, "architectures": ["ReadsForConditionalGeneration"]})";
  std::ofstream(table / "configs" / "who--Sees.json") << R"({"architectures": ["SeesTower"], "y": "ForCausalLM"})";
  RunsOptions options = testing::small_shelf();
  std::string config;
  options.parse_summary = [&config](std::string_view text, const std::string& name) {
    config = text;
    return core::Result<model::ModelGraph>(testing::small_model(name));
  };
  SummaryShelf shelf(options);
  ASSERT_TRUE(succeeds(shelf.take_model("who/Talks", table, "ForSequenceClassification")));
  EXPECT_EQ(config, R"({"architectures": ["TalksForSequenceClassification"], "x": 1})");
  ASSERT_TRUE(succeeds(shelf.take_model("who/Talks", table, "Model")));
  EXPECT_EQ(config, R"({"architectures": ["TalksModel"], "x": 1})") << "another model, not the one read before";
  ASSERT_TRUE(succeeds(shelf.take_model("who/Reads", table, "Model")));
  EXPECT_EQ(config,
            R"({"text": {"architectures": ["InnerForCausalLM"]}, "x": Infinity, "architectures": ["ReadsModel"]})");
  EXPECT_TRUE(fails(shelf.take_model("who/Sees", table, "Model"), ErrorCode::missing_information, 0,
                    "whose head is not known"));
}

TEST(SummaryShelf, NeedsAReader) {
  const RunsOptions options;
  EXPECT_TRUE(fails(SummaryShelf(options).take("x"), ErrorCode::invalid_argument, 0, "no way to read"));
}

}  // namespace
}  // namespace gpumem::datasets
