#include "gpumem/connect/vit.hpp"

#include <algorithm>

#include "wired.hpp"

namespace gpumem::testing {
namespace {

constexpr std::string_view kTree = R"(ViTForImageClassification(
  (vit): ViTModel(
    (embeddings): ViTEmbeddings(
      (patch_embeddings): ViTPatchEmbeddings(
        (projection): Conv2d(3, 128, kernel_size=(16, 16), stride=(16, 16))
      )
      (dropout): Dropout(p=0.0, inplace=False)
    )
    (encoder): ViTEncoder(
      (layer): ModuleList(
        (0-1): 2 x ViTLayer(
          (attention): ViTAttention(
            (attention): ViTSelfAttention(
              (query): Linear(in_features=128, out_features=128, bias=True)
              (key): Linear(in_features=128, out_features=128, bias=True)
              (value): Linear(in_features=128, out_features=128, bias=True)
            )
            (output): ViTSelfOutput(
              (dense): Linear(in_features=128, out_features=128, bias=True)
              (dropout): Dropout(p=0.0, inplace=False)
            )
          )
          (intermediate): ViTIntermediate(
            (dense): Linear(in_features=128, out_features=512, bias=True)
            (intermediate_act_fn): GELUActivation()
          )
          (output): ViTOutput(
            (dense): Linear(in_features=512, out_features=128, bias=True)
            (dropout): Dropout(p=0.0, inplace=False)
          )
          (layernorm_before): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
          (layernorm_after): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
        )
      )
    )
    (layernorm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
  )
  (classifier): Linear(in_features=128, out_features=10, bias=True)
)
)";

TrainingJob tiny() {
  TrainingJob job = job_of(kTree, 0);
  job.input_shape = {3, 32, 32};
  return job;
}

TEST(ViTFamily, RecognisesItsOwnTreesOnly) {
  EXPECT_TRUE(connect::vit().recognises(*tiny().graph));
  EXPECT_FALSE(connect::vit().recognises(*job_of("Sequential(\n  (0): Linear(2, 2)\n)\n", 0).graph));
}

TEST(ViTFamily, ReadsWhatTheModelsCodeReads) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  const std::vector<std::string> expected = {
      "3 parameter cls_token [1, 1, 128]",
      "4 expand expand [N, 1, 128] <- 3",
      "5 concat concat [N, 5, 128] <- 4 <- 2",
      "6 parameter position_embeddings [1, 5, 128]",
      "7 add add [N, 5, 128] <- 5 <- 6",
      "10 linear key [N, 5, 128] <- 9",
      "13 linear value [N, 5, 128] <- 9",
      "16 linear query [N, 5, 128] <- 9",
      "19 contiguous contiguous [N, 2, 5, 64] <- 18",
      "20 contiguous contiguous_1 [N, 2, 5, 64] <- 12",
      "21 contiguous contiguous_2 [N, 2, 5, 64] <- 15",
      "22 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 5, 64] <- 19 <- 20 <- 21",
      "25 linear dense [N, 5, 128] <- 24",
      "27 add add [N, 5, 128] <- 26 <- 8",
      "29 linear dense [N, 5, 512] <- 28",
      "31 linear dense [N, 5, 128] <- 30",
      "33 add add_1 [N, 5, 128] <- 32 <- 27",
      "35 linear key [N, 5, 128] <- 34",
      "38 linear value [N, 5, 128] <- 34",
      "41 linear query [N, 5, 128] <- 34",
      "44 contiguous contiguous [N, 2, 5, 64] <- 43",
      "45 contiguous contiguous_1 [N, 2, 5, 64] <- 37",
      "46 contiguous contiguous_2 [N, 2, 5, 64] <- 40",
      "47 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 5, 64] <- 44 <- 45 <- 46",
      "50 linear dense [N, 5, 128] <- 49",
      "52 add add [N, 5, 128] <- 51 <- 33",
      "54 linear dense [N, 5, 512] <- 53",
      "56 linear dense [N, 5, 128] <- 55",
      "58 add add_1 [N, 5, 128] <- 57 <- 52",
      "60 select select [N, 128] <- 59",
      "61 linear classifier [N, 10] <- 60"};
  EXPECT_EQ(wiring_of(*job, {"linear", "parameter", "expand", "concat", "contiguous", "scaled_dot_product_attention",
                             "add", "select"}),
            expected);
}

TEST(ViTFamily, NeedsTheImageSize) {
  EXPECT_TRUE(fails(wired(job_of(kTree, 0)), ErrorCode::missing_information, 0, "--input 3x224x224"));
}

}  // namespace
}  // namespace gpumem::testing
