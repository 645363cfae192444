#include "gpumem/model/op_traits.hpp"

#include <gtest/gtest.h>

#include <array>

namespace gpumem::model {
namespace {

constexpr std::array<std::string_view, 1> kDropoutTorch = {"Dropout"};
constexpr std::array<std::string_view, 2> kDropoutKeras = {"Dropout", "GaussianDropout"};
constexpr std::array<std::string_view, 2> kNormKeras = {"BatchNormalization", "BatchNormalizationV1"};
constexpr OpTraits kDropout = {
    .name = "dropout", .family = OpFamily::dropout, .torch_classes = kDropoutTorch, .keras_classes = kDropoutKeras};
constexpr std::array<std::string_view, 1> kNormEndings = {"RMSNorm"};
constexpr OpTraits kNorm = {
    .name = "batch_norm", .family = OpFamily::norm, .keras_classes = kNormKeras, .torch_endings = kNormEndings};
constexpr std::array<const OpTraits*, 2> kOps = {&kDropout, &kNorm};
const Vocabulary kVocabulary(kOps);

TEST(Vocabulary, FindsOpsByNameAndByEachFrameworksClass) {
  EXPECT_EQ(kVocabulary.find_op("dropout"), &kDropout);
  EXPECT_EQ(kVocabulary.find_torch("Dropout"), &kDropout);
  EXPECT_EQ(kVocabulary.find_keras("GaussianDropout"), &kDropout);
}

TEST(Vocabulary, KeepsTheFrameworksApart) {
  EXPECT_EQ(kVocabulary.find_torch("GaussianDropout"), nullptr);
  EXPECT_EQ(kVocabulary.find_op("Dropout"), nullptr);
}

TEST(Vocabulary, CompletesACutClassName) {
  EXPECT_EQ(kVocabulary.find_keras_prefix("BatchNorm"), &kNorm);
  EXPECT_EQ(kVocabulary.find_keras_prefix("Gau"), &kDropout);
  EXPECT_EQ(kVocabulary.find_keras_prefix("Conv"), nullptr);
}

TEST(Vocabulary, DoesNotGuessFromTooLittle) { EXPECT_EQ(kVocabulary.find_keras_prefix("Ba"), nullptr); }

TEST(Vocabulary, FindsTorchClassesByTheirEnding) {
  EXPECT_EQ(kVocabulary.find_torch("Gemma3RMSNorm"), &kNorm);
  EXPECT_EQ(kVocabulary.find_torch("RMSNormal"), nullptr);
}

TEST(Vocabulary, FindsTheLayerThatWasParametrized) {
  EXPECT_EQ(kVocabulary.find_torch("ParametrizedDropout"), &kDropout);
  EXPECT_EQ(kVocabulary.find_torch("ParametrizedOther"), nullptr);
}

TEST(Vocabulary, EmptyKnowsNothing) { EXPECT_EQ(Vocabulary().find_op("dropout"), nullptr); }

}  // namespace
}  // namespace gpumem::model
