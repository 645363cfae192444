// One model, one answer: a config.json and the tree that print(model) shows of the same model give the same figures,
// whatever the job.
#include <cctype>
#include <cmath>
#include <map>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/core/json_document.hpp"
#include "printed_tree.hpp"
#include "published_models.hpp"

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

struct Job {
  model::Precision precision;
  bool checkpointing;
  bool padding;
};

Result<MemoryEstimate> answer_of(const model::ModelGraph& graph, const Job& asked) {
  TrainingJob job(graph, 2);
  job.sequence_length = 64;  // CLIP's text tower reads 77 at most
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

class Roads : public ::testing::TestWithParam<Published> {};

TEST_P(Roads, OfAConfigAndOfItsPrintedTreeAgree) {
  const auto from_config = parse_summary(GetParam().config);
  ASSERT_TRUE(succeeds(from_config));
  const std::string class_name = class_of(GetParam().config);
  if (class_name.empty()) GTEST_SKIP() << "Megatron's models are not printed";
  const std::string tree = printed_tree(*from_config, class_name, body_of(class_name));
  const auto from_tree = parse_summary(tree);
  ASSERT_TRUE(succeeds(from_tree)) << tree.substr(0, 3000);
  for (const auto precision : {model::Precision::fp32, model::Precision::amp_bf16, model::Precision::bf16}) {
    for (const bool checkpointing : {false, true}) {
      const Job job = {precision, checkpointing, precision == model::Precision::bf16};
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

std::string name_of(const ::testing::TestParamInfo<Published>& info) {
  std::string name(info.param.name);
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(PublishedModels, Roads, ::testing::ValuesIn(kPublished), name_of);

}  // namespace
}  // namespace gpumem::testing
