#include <gtest/gtest.h>

#include <array>

#include "gpumem/model/op_traits.hpp"

namespace gpumem::model {
namespace {

const std::vector<Attribute> kAll = {{"stride", std::int64_t{2}},
                                     {"kernel_size", std::vector<std::int64_t>{7, 5}},
                                     {"bias", false},
                                     {"eps", 1e-5},
                                     {"padding", std::string("same")},
                                     {"stride", std::int64_t{9}}};
const Attributes kAttributes(kAll);

TEST(Attributes, AreFoundByName) {
  ASSERT_NE(kAttributes.find("eps"), nullptr);
  EXPECT_EQ(std::get<double>(*kAttributes.find("eps")), 1e-5);
  EXPECT_EQ(kAttributes.find("dilation"), nullptr);
}

TEST(Attributes, TheFirstOfTwoOfOneNameCounts) { EXPECT_EQ(kAttributes.integer("stride"), 2); }

TEST(Attributes, AnIntegerStandsForEveryAxis) {
  EXPECT_EQ(kAttributes.per_axis("stride", 0), 2);
  EXPECT_EQ(kAttributes.per_axis("stride", 5), 2);
}

TEST(Attributes, AListHasOneValueAnAxis) {
  EXPECT_EQ(kAttributes.per_axis("kernel_size", 0), 7);
  EXPECT_EQ(kAttributes.per_axis("kernel_size", 1), 5);
  EXPECT_EQ(kAttributes.per_axis("kernel_size", 2), std::nullopt);
}

TEST(Attributes, OtherTypesAreNoIntegers) {
  EXPECT_EQ(kAttributes.integer("padding"), std::nullopt);
  EXPECT_EQ(kAttributes.integer("eps"), std::nullopt);
  EXPECT_EQ(kAttributes.integer("bias"), std::nullopt);
}

TEST(Attributes, AFlagHasADefault) {
  EXPECT_FALSE(kAttributes.flag("bias", true));
  EXPECT_TRUE(kAttributes.flag("affine", true));
  EXPECT_TRUE(kAttributes.flag("stride", true)) << "a number is no flag";
}

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
