#include "gpumem/connect/distilbert.hpp"

#include <algorithm>

#include "wired.hpp"

namespace gpumem::testing {
namespace {

constexpr std::string_view kTree = R"(DistilBertForMaskedLM(
  (activation): GELUActivation()
  (distilbert): DistilBertModel(
    (embeddings): Embeddings(
      (word_embeddings): Embedding(100, 128, padding_idx=0)
      (position_embeddings): Embedding(512, 128)
      (LayerNorm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
      (dropout): Dropout(p=0.1, inplace=False)
    )
    (transformer): Transformer(
      (layer): ModuleList(
        (0-1): 2 x TransformerBlock(
          (attention): DistilBertSdpaAttention(
            (dropout): Dropout(p=0.1, inplace=False)
            (q_lin): Linear(in_features=128, out_features=128, bias=True)
            (k_lin): Linear(in_features=128, out_features=128, bias=True)
            (v_lin): Linear(in_features=128, out_features=128, bias=True)
            (out_lin): Linear(in_features=128, out_features=128, bias=True)
          )
          (sa_layer_norm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
          (ffn): FFN(
            (dropout): Dropout(p=0.1, inplace=False)
            (lin1): Linear(in_features=128, out_features=512, bias=True)
            (lin2): Linear(in_features=512, out_features=128, bias=True)
            (activation): GELUActivation()
          )
          (output_layer_norm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
        )
      )
    )
  )
  (vocab_transform): Linear(in_features=128, out_features=128, bias=True)
  (vocab_layer_norm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
  (vocab_projector): Linear(in_features=128, out_features=100, bias=True)
  (mlm_loss_fct): CrossEntropyLoss()
)
)";

TrainingJob tiny() {
  TrainingJob job = job_of(kTree, 8);
  return job;
}

TEST(DistilBertFamily, RecognisesItsOwnTreesOnly) {
  EXPECT_TRUE(connect::distilbert().recognises(*tiny().graph));
  EXPECT_FALSE(connect::distilbert().recognises(*job_of("Sequential(\n  (0): Linear(2, 2)\n)\n", 0).graph));
}

TEST(DistilBertFamily, ReadsWhatTheModelsCodeReads) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  const std::vector<std::string> expected = {
      "0 embedding word_embeddings [N, 8, 128] <- -1",
      "2 embedding position_embeddings [1, 8, 128] <- 1",
      "3 add add [N, 8, 128] <- 0 <- 2",
      "4 layer_norm LayerNorm [N, 8, 128] <- 3",
      "10 linear q_lin [N, 8, 128] <- 5",
      "13 linear k_lin [N, 8, 128] <- 5",
      "16 linear v_lin [N, 8, 128] <- 5",
      "19 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 8, 64] <- 12 <- 15 <- 18 <- 9",
      "22 linear out_lin [N, 8, 128] <- 21",
      "23 add add [N, 8, 128] <- 22 <- 5",
      "24 layer_norm sa_layer_norm [N, 8, 128] <- 23",
      "25 linear lin1 [N, 8, 512] <- 24",
      "27 linear lin2 [N, 8, 128] <- 26",
      "29 add add_1 [N, 8, 128] <- 28 <- 24",
      "30 layer_norm output_layer_norm [N, 8, 128] <- 29",
      "31 linear q_lin [N, 8, 128] <- 30",
      "34 linear k_lin [N, 8, 128] <- 30",
      "37 linear v_lin [N, 8, 128] <- 30",
      "40 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 8, 64] <- 33 <- 36 <- 39 <- 9",
      "43 linear out_lin [N, 8, 128] <- 42",
      "44 add add [N, 8, 128] <- 43 <- 30",
      "45 layer_norm sa_layer_norm [N, 8, 128] <- 44",
      "46 linear lin1 [N, 8, 512] <- 45",
      "48 linear lin2 [N, 8, 128] <- 47",
      "50 add add_1 [N, 8, 128] <- 49 <- 45",
      "51 layer_norm output_layer_norm [N, 8, 128] <- 50",
      "52 linear vocab_transform [N, 8, 128] <- 51",
      "54 layer_norm vocab_layer_norm [N, 8, 128] <- 53",
      "55 linear vocab_projector [N, 8, 100] <- 54"};
  EXPECT_EQ(wiring_of(*job, {"embedding", "linear", "scaled_dot_product_attention", "add", "layer_norm"}), expected);
}

}  // namespace
}  // namespace gpumem::testing
