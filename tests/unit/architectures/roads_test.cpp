// One model, one answer: a config.json and the tree that print(model) shows of the same model give the same figures,
// whatever the job.
#include <cctype>
#include <cmath>
#include <map>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/core/json.hpp"
#include "printed_tree.hpp"
#include "published_vision_models.hpp"
#include "recent_models.hpp"

namespace gpumem::testing {
namespace {

/// The class of a model type with its usual head; empty where models of it are not printed.
std::string usual_class(std::string_view type) {
  static const std::map<architectures::Head, std::string> kEndings = {
      {architectures::Head::none, "Model"},
      {architectures::Head::causal_lm, "ForCausalLM"},
      {architectures::Head::masked_lm, "ForMaskedLM"},
      {architectures::Head::sequence_classification, "ForImageClassification"}};
  for (const architectures::Architecture* each : architectures::architectures()) {
    for (const architectures::ModelClass& row : each->classes) {
      if (row.model_type == type) return std::string(row.prefix) + kEndings.at(each->usual_head);
    }
  }
  return {};
}

std::string class_of(std::string_view config) {
  const auto document = core::JsonDocument::parse(config);
  EXPECT_TRUE(succeeds(document));
  std::string type;
  for (const core::JsonValue& field : document->root().items()) {
    if (field.key() == "architectures") return std::string((*field.items().begin()).text());
    if (field.key() == "model_type") type = field.text();
  }
  return usual_class(type);
}

/// The module that a tree of this class does not show, since it is the tree.
std::string_view body_of(std::string_view class_name) {
  for (const architectures::Architecture* each : architectures::architectures()) {
    for (const architectures::ModelClass& row : each->classes) {
      if (class_name == std::string(row.prefix) + "Model") return row.body;
    }
  }
  return {};
}

/// Whether trees of the class are read as their architecture's.
bool is_read(const std::string& class_name) {
  const auto tree = parse_summary(class_name + "(\n  (any): ReLU()\n)\n");
  return tree && architectures::known_tree(*tree).has_value();
}

struct Job {
  model::Precision precision;
  bool checkpointing;
  bool padding;
  std::int64_t tokens = 64;  ///< CLIP's text tower reads 77 at most
};

Result<MemoryEstimate> answer_of(const model::ModelGraph& graph, const Job& asked) {
  TrainingJob job(graph, 2);
  job.sequence_length = asked.tokens;
  job.precision = asked.precision;
  job.activation_checkpointing = asked.checkpointing;
  job.padding = asked.padding;
  const auto replay = make_estimator("replay");
  if (!replay) return replay.error();
  return (*replay)->estimate(job, *find_profile("b200"));
}

std::string assumed_of(const MemoryEstimate& estimate, std::string_view about) {
  for (const auto& each : estimate.assumed) {
    if (each.about == about) return each.text;
  }
  return {};
}

/// A published model by its config, and what is printed of it.
class Roads : public ::testing::TestWithParam<Published> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(succeeds(from_config));
    const std::string class_name = class_of(GetParam().config);
    if (class_name.empty() || !is_read(class_name)) GTEST_SKIP() << "trees of its class are not read";
    tree = printed_tree(*from_config, class_name, body_of(class_name));
  }

  /// Of a sample: those of its images, and some.
  [[nodiscard]] std::int64_t tokens() const {
    constexpr std::int64_t kText = 64;
    return from_config->picture_tokens() + kText;
  }

  /// Lists of experts: all that is asked of one takes sanitizers a minute. One job has to do; a smaller model of the
  /// kind is asked the rest.
  [[nodiscard]] bool has_many_layers() const { return from_config->layers().size() > 5'000; }

  const Result<model::ModelGraph> from_config = parse_summary(GetParam().config);
  std::string tree;
};

TEST_P(Roads, OfAConfigAndOfItsPrintedTreeAgree) {
  const auto from_tree = parse_summary(tree);
  ASSERT_TRUE(succeeds(from_tree)) << tree.substr(0, 3000);
  const bool huge = has_many_layers();
  for (const auto precision : {model::Precision::fp32, model::Precision::amp_bf16, model::Precision::bf16}) {
    if (huge && precision != model::Precision::amp_bf16) continue;
    for (const bool checkpointing : {false, true}) {
      if (huge && checkpointing) continue;
      const Job job = {precision, checkpointing, precision == model::Precision::bf16, tokens()};
      const auto one = answer_of(*from_config, job);
      const auto other = answer_of(*from_tree, job);
      ASSERT_TRUE(succeeds(one));
      ASSERT_TRUE(succeeds(other)) << tree.substr(0, 3000);
      const double expected = static_cast<double>(one->expected.count());
      EXPECT_NEAR(static_cast<double>(other->expected.count()), expected, 0.005 * expected)
          << model::name_of(model::kPrecisions, precision);
      EXPECT_EQ(one->allocated->count(), other->allocated->count());
      for (const char* about : {"padding", "precision"}) EXPECT_EQ(assumed_of(*one, about), assumed_of(*other, about));
    }
  }
}

/// The lines of a text, each as `edit` gives it back; an empty one is left out.
template <typename Edit>
std::string edited(std::string_view text, const Edit& edit) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = edit(std::string(text.substr(at, end - at)));
    if (!line.empty()) out += line + "\n";
    at = end + 1;
  }
  return out;
}

std::string with_number(std::string line, std::string_view name, std::string_view number) {
  const std::size_t at = line.find(name);
  if (at == std::string::npos) return line;
  const std::size_t begin = at + name.size();
  return line.replace(begin, line.find_first_not_of("0123456789", begin) - begin, number);
}

/// The sizes of such a tree contradict each other, or are not there: the architecture cannot be what its class says.
TEST_P(Roads, ATreeWhoseSizesAreImpossibleIsNotTakenForTheArchitecture) {
  if (has_many_layers()) return;
  const std::string damaged[] = {
      edited(tree, [](std::string line) { return line.find("Embedding(") != std::string::npos ? "" : line; }),
      edited(tree, [](std::string line) { return with_number(std::move(line), "out_features=", "1"); }),
      edited(tree,
             [](std::string line) { return with_number(std::move(line), "out_features=", "4611686018427387905"); }),
      edited(tree, [](std::string line) { return with_number(std::move(line), "Embedding(", "0"); })};
  // Where the head alone has outputs, one output is a class.
  const bool head_alone = tree.find("out_features=") == tree.rfind("out_features=");
  for (const std::string& text : damaged) {
    if (text == tree || (head_alone && &text == &damaged[1])) continue;
    const auto graph = parse_summary(text);
    if (!graph) continue;
    const auto answer = answer_of(*graph, {model::Precision::fp32, false, false});
    if (!answer) continue;
    EXPECT_FALSE(answer->coverage.edges.starts_with("architecture: ")) << answer->coverage.edges;
  }
}

std::string name_of(const ::testing::TestParamInfo<Published>& info) {
  std::string name(info.param.name);
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(PublishedModels, Roads, ::testing::ValuesIn(printed_published()), name_of);
INSTANTIATE_TEST_SUITE_P(PublishedVisionModels, Roads, ::testing::ValuesIn(kPublishedVision), name_of);
INSTANTIATE_TEST_SUITE_P(PublishedModelsWithMore, Roads, ::testing::ValuesIn(kPublishedWithMore), name_of);

}  // namespace
}  // namespace gpumem::testing
