// One model, one answer: what print(model) shows of real classes, next to the configs that they were made of
// (trees/*.json.gz, made by the scripts there). A tree is read by its class, and holds what its config holds.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "golden.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/core/file.hpp"
#include "printed_tree.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json trees_of(std::string_view file) {
  constexpr std::size_t kMost = std::size_t{64} << 20U;
  const auto text = core::unpack_gzip(testing::text_of(fs::path(GPUMEM_GOLDEN_DIR) / "trees" / file), kMost);
  EXPECT_TRUE(testing::succeeds(text)) << file;
  return text ? json::parse(*text) : json::object();
}

/// Why a tree is not read by its class; empty: it is.
std::string fault_of(const model::ModelGraph& tree) {
  if (!tree.edges_inferred()) return {};
  const auto known = architectures::known_tree(tree);
  if (!known) return "its class is not known";
  const auto read = architectures::read_tree(tree, *known, ops::vocabulary());
  return read ? std::string() : read.error().message + " (" + read.error().place.element + ")";
}

void expect_one_answer_each(std::string_view file, std::size_t fewest) {
  const json trees = trees_of(file);
  EXPECT_GE(trees.size(), fewest);
  for (const auto& [name, golden] : trees.items()) {
    SCOPED_TRACE(name);
    const std::string config = golden["config"].dump();
    const std::string tree = golden["tree"].get<std::string>();
    const auto from_config = parse_summary(config);
    const auto from_tree = parse_summary(tree);
    ASSERT_TRUE(testing::succeeds(from_config));
    ASSERT_TRUE(testing::succeeds(from_tree));
    EXPECT_EQ(fault_of(*from_tree), "");
    // A ControlNet is trained with the model that it guides, which is none of its class's.
    const bool guides = name.starts_with("controlnet");
    if (!guides && golden.contains("parameters")) {
      EXPECT_EQ(from_config->parameters(), golden["parameters"].get<std::int64_t>());
    }
    const bool sounds = name == "ace_step";
    constexpr std::int64_t kSamples = 32'000;  // Moonshine reads samples of sound
    testing::expect_one_answer(config, tree, !sounds, name == "moonshine" ? kSamples : 128);
  }
}

TEST(PrintedTrees, OfDiffusersAnswerAsTheirConfigs) { expect_one_answer_each("diffusers.json.gz", 65); }
TEST(PrintedTrees, OfLanguageModelsAnswerAsTheirConfigs) { expect_one_answer_each("language.json.gz", 9); }

}  // namespace
}  // namespace gpumem
