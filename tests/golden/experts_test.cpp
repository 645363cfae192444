// Trees of transformers 5, whose experts are one tensor each (experts/trees.json.gz, made by make_trees.py there).
// print(model) shows no size of these: those of published models answer, counts behind the modules do, others are
// refused.
#include <nlohmann/json.hpp>
#include <string>

#include "expect.hpp"
#include "golden.hpp"
#include "gpumem/all.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/file.hpp"

namespace gpumem {
namespace {

using nlohmann::json;

json trees() {
  constexpr std::size_t kMost = std::size_t{16} << 20U;
  const auto text =
      core::unpack_gzip(testing::text_of(std::string(GPUMEM_GOLDEN_DIR) + "/experts/trees.json.gz"), kMost);
  EXPECT_TRUE(testing::succeeds(text));
  return json::parse(*text);
}

std::string with(std::string text, const std::string& part, const std::string& instead) {
  std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  for (; at != std::string::npos; at = text.find(part, at + instead.size())) text.replace(at, part.size(), instead);
  return text;
}

/// What connecting makes of a tree.
Result<connect::WiredGraph> wired(const std::string& tree) {
  const auto graph = parse_summary(tree);
  if (!graph) return graph.error();
  TrainingJob job(*graph, 1);
  job.sequence_length = 64;
  analysis::Analysis analysis(job);
  const auto made = analysis.wired();
  if (!made) return made.error();
  return **made;
}

TEST(FusedExperts, OfPublishedSizesAreCounted) {
  const json all = trees();
  for (const auto& [type, each] : all.items()) {
    const auto made = wired(each["tree"].get<std::string>());
    ASSERT_TRUE(testing::succeeds(made)) << type;
    EXPECT_EQ(made->graph().parameters(), each["parameters"].get<std::int64_t>()) << type;
    EXPECT_TRUE(made->edges().starts_with("architecture: ")) << type << ' ' << made->edges();
    EXPECT_NE(made->edges().find("experts"), std::string::npos) << type << ' ' << made->edges();
  }
}

TEST(FusedExperts, OfOtherSizesAreRefused) {
  struct Fewer {
    const char* type;
    const char* layers;
    const char* instead;
  };
  const json all = trees();
  for (const Fewer& row :
       {Fewer{"mixtral", "(0-31): 32 x", "(0-30): 31 x"}, Fewer{"qwen3_moe", "(0-47): 48 x", "(0-46): 47 x"},
        Fewer{"deepseek_v3", "(3-60): 58 x", "(3-59): 57 x"}, Fewer{"granitemoe", "(0-23): 24 x", "(0-22): 23 x"}}) {
    const auto made = wired(with(all[row.type]["tree"].get<std::string>(), row.layers, row.instead));
    ASSERT_FALSE(made) << row.type;
    EXPECT_NE(made.error().message.find("config.json"), std::string::npos) << row.type << ' ' << made.error().message;
  }
}

/// Four experts 512 wide where Mixtral-8x7B has eight of 14,336.
TEST(FusedExperts, AreTheCountedOnesWhereTheTreeCounts) {
  const auto tree = trees()["mixtral"]["tree"].get<std::string>();
  const std::string router = with(tree, "MixtralTopKRouter()", "MixtralTopKRouter(), 16,384 params");
  const auto made = wired(with(router, "(act_fn): SiLUActivation()\n          )",
                               "(act_fn): SiLUActivation(), 0 params\n          ), 25,165,824 params"));
  ASSERT_TRUE(testing::succeeds(made));
  EXPECT_NE(made->edges().find("2 experts a token"), std::string::npos) << made->edges();
  EXPECT_EQ(made->edges().find("14336"), std::string::npos) << made->edges();
}

TEST(FusedExperts, OfAClassThatIsNotKnownAreRefused) {
  const auto made = wired(with(trees()["mixtral"]["tree"].get<std::string>(), "Mixtral", "Someones"));
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("is a SomeonesExperts"), std::string::npos) << made.error().message;
  EXPECT_NE(made.error().message.find("config.json"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace gpumem
