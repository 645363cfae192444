#include "gpumem/connect/bert.hpp"

#include <algorithm>

#include "wired.hpp"

namespace gpumem::testing {
namespace {

constexpr std::string_view kTree = R"(BertForMaskedLM(
  (bert): BertModel(
    (embeddings): BertEmbeddings(
      (word_embeddings): Embedding(100, 128, padding_idx=0)
      (position_embeddings): Embedding(512, 128)
      (token_type_embeddings): Embedding(2, 128)
      (LayerNorm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
      (dropout): Dropout(p=0.1, inplace=False)
    )
    (encoder): BertEncoder(
      (layer): ModuleList(
        (0-1): 2 x BertLayer(
          (attention): BertAttention(
            (self): BertSdpaSelfAttention(
              (query): Linear(in_features=128, out_features=128, bias=True)
              (key): Linear(in_features=128, out_features=128, bias=True)
              (value): Linear(in_features=128, out_features=128, bias=True)
              (dropout): Dropout(p=0.1, inplace=False)
            )
            (output): BertSelfOutput(
              (dense): Linear(in_features=128, out_features=128, bias=True)
              (LayerNorm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
              (dropout): Dropout(p=0.1, inplace=False)
            )
          )
          (intermediate): BertIntermediate(
            (dense): Linear(in_features=128, out_features=512, bias=True)
            (intermediate_act_fn): GELUActivation()
          )
          (output): BertOutput(
            (dense): Linear(in_features=512, out_features=128, bias=True)
            (LayerNorm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
            (dropout): Dropout(p=0.1, inplace=False)
          )
        )
      )
    )
  )
  (cls): BertOnlyMLMHead(
    (predictions): BertLMPredictionHead(
      (transform): BertPredictionHeadTransform(
        (dense): Linear(in_features=128, out_features=128, bias=True)
        (transform_act_fn): GELUActivation()
        (LayerNorm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
      )
      (decoder): Linear(in_features=128, out_features=100, bias=True)
    )
  )
)
)";

TrainingJob tiny() {
  TrainingJob job = job_of(kTree, 8);
  return job;
}

TEST(BertFamily, RecognisesItsOwnTreesOnly) {
  EXPECT_TRUE(connect::bert().recognises(*tiny().graph));
  EXPECT_FALSE(connect::bert().recognises(*job_of("Sequential(\n  (0): Linear(2, 2)\n)\n", 0).graph));
}

TEST(BertFamily, ReadsWhatTheModelsCodeReads) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  const std::vector<std::string> expected = {
      "0 embedding word_embeddings [N, 8, 128] <- -1",
      "1 embedding token_type_embeddings [N, 8, 128] <- -2",
      "2 add add [N, 8, 128] <- 0 <- 1",
      "4 embedding position_embeddings [1, 8, 128] <- 3",
      "5 add add_1 [N, 8, 128] <- 2 <- 4",
      "6 layer_norm LayerNorm [N, 8, 128] <- 5",
      "12 linear query [N, 8, 128] <- 7",
      "15 linear key [N, 8, 128] <- 7",
      "18 linear value [N, 8, 128] <- 7",
      "21 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 8, 64] <- 14 <- 17 <- 20 <- 11",
      "24 linear dense [N, 8, 128] <- 23",
      "26 add add [N, 8, 128] <- 25 <- 7",
      "27 layer_norm LayerNorm [N, 8, 128] <- 26",
      "28 linear dense [N, 8, 512] <- 27",
      "30 linear dense [N, 8, 128] <- 29",
      "32 add add [N, 8, 128] <- 31 <- 27",
      "33 layer_norm LayerNorm [N, 8, 128] <- 32",
      "34 linear query [N, 8, 128] <- 33",
      "37 linear key [N, 8, 128] <- 33",
      "40 linear value [N, 8, 128] <- 33",
      "43 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 8, 64] <- 36 <- 39 <- 42 <- 11",
      "46 linear dense [N, 8, 128] <- 45",
      "48 add add [N, 8, 128] <- 47 <- 33",
      "49 layer_norm LayerNorm [N, 8, 128] <- 48",
      "50 linear dense [N, 8, 512] <- 49",
      "52 linear dense [N, 8, 128] <- 51",
      "54 add add [N, 8, 128] <- 53 <- 49",
      "55 layer_norm LayerNorm [N, 8, 128] <- 54",
      "56 linear dense [N, 8, 128] <- 55",
      "58 layer_norm LayerNorm [N, 8, 128] <- 57",
      "59 linear decoder [N, 8, 100] <- 58"};
  EXPECT_EQ(wiring_of(*job, {"embedding", "linear", "scaled_dot_product_attention", "add", "layer_norm"}), expected);
}

TEST(BertFamily, ClassifiersReadThePooler) {
  std::string tree(kTree);
  const auto replace = [&](std::string_view old, std::string_view with) {
    tree.replace(tree.find(old), old.size(), with);
  };
  replace("BertForMaskedLM", "BertForSequenceClassification");
  tree.resize(tree.find("  (cls)"));
  tree.resize(tree.rfind("  )"));
  tree +=
      "    (pooler): BertPooler(\n      (dense): Linear(in_features=128, out_features=128, bias=True)\n"
      "      (activation): Tanh()\n    )\n  )\n  (dropout): Dropout(p=0.1, inplace=False)\n"
      "  (classifier): Linear(in_features=128, out_features=3, bias=True)\n)\n";
  const auto job = wired(job_of(tree, 8));
  ASSERT_TRUE(succeeds(job));
  const auto linears = wiring_of(*job, {"linear"});
  EXPECT_TRUE(linears.back().find("classifier [N, 3]") != std::string::npos) << linears.back();
  EXPECT_EQ(wiring_of(*job, {"select", "tanh"}).size(), 2U);
}

}  // namespace
}  // namespace gpumem::testing
