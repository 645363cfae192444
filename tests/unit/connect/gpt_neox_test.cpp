#include "gpumem/connect/gpt_neox.hpp"

#include <algorithm>

#include "wired.hpp"

namespace gpumem::testing {
namespace {

constexpr std::string_view kTree = R"(GPTNeoXForCausalLM(
  (gpt_neox): GPTNeoXModel(
    (embed_in): Embedding(100, 128)
    (emb_dropout): Dropout(p=0.0, inplace=False)
    (layers): ModuleList(
      (0-1): 2 x GPTNeoXLayer(
        (input_layernorm): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
        (post_attention_layernorm): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
        (post_attention_dropout): Dropout(p=0.0, inplace=False)
        (post_mlp_dropout): Dropout(p=0.0, inplace=False)
        (attention): GPTNeoXAttention(
          (query_key_value): Linear(in_features=128, out_features=384, bias=True)
          (dense): Linear(in_features=128, out_features=128, bias=True)
        )
        (mlp): GPTNeoXMLP(
          (dense_h_to_4h): Linear(in_features=128, out_features=512, bias=True)
          (dense_4h_to_h): Linear(in_features=512, out_features=128, bias=True)
          (act): GELUActivation()
        )
      )
    )
    (final_layer_norm): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
    (rotary_emb): GPTNeoXRotaryEmbedding()
  )
  (embed_out): Linear(in_features=128, out_features=100, bias=False)
)
)";

TrainingJob tiny() {
  TrainingJob job = job_of(kTree, 8);
  return job;
}

TEST(GptNeoXFamily, RecognisesItsOwnTreesOnly) {
  EXPECT_TRUE(connect::gpt_neox().recognises(*tiny().graph));
  EXPECT_FALSE(connect::gpt_neox().recognises(*job_of("Sequential(\n  (0): Linear(2, 2)\n)\n", 0).graph));
}

TEST(GptNeoXFamily, ReadsWhatTheModelsCodeReads) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  const std::vector<std::string> expected = {
      "9 linear query_key_value [N, 8, 384] <- 8",
      "13 item item [N, 2, 8, 64] <- 12",
      "14 item item_1 [N, 2, 8, 64] <- 12",
      "20 concat concat [N, 2, 8, 16] <- 19 <- 17",
      "22 add add [N, 2, 8, 16] <- 16 <- 21",
      "24 concat concat_1 [N, 2, 8, 64] <- 22 <- 23",
      "25 item item_2 [N, 2, 8, 64] <- 12",
      "31 concat concat_2 [N, 2, 8, 16] <- 30 <- 28",
      "33 add add_1 [N, 2, 8, 16] <- 27 <- 32",
      "35 concat concat_3 [N, 2, 8, 64] <- 33 <- 34",
      "36 identity identity [N, 2, 8, 64] <- 35 returned",
      "37 identity identity_1 [N, 2, 8, 64] <- 13 returned",
      "38 contiguous contiguous [N, 2, 8, 64] <- 24",
      "39 contiguous contiguous_1 [N, 2, 8, 64] <- 35",
      "40 contiguous contiguous_2 [N, 2, 8, 64] <- 13",
      "41 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 8, 64] <- 38 <- 39 <- 40 <- 4",
      "44 linear dense [N, 8, 128] <- 43",
      "47 linear dense_h_to_4h [N, 8, 512] <- 46",
      "49 linear dense_4h_to_h [N, 8, 128] <- 48",
      "51 add add [N, 8, 128] <- 50 <- 45",
      "52 add add_1 [N, 8, 128] <- 51 <- 5",
      "54 linear query_key_value [N, 8, 384] <- 53",
      "58 item item [N, 2, 8, 64] <- 57",
      "59 item item_1 [N, 2, 8, 64] <- 57",
      "65 concat concat [N, 2, 8, 16] <- 64 <- 62",
      "67 add add [N, 2, 8, 16] <- 61 <- 66",
      "69 concat concat_1 [N, 2, 8, 64] <- 67 <- 68",
      "70 item item_2 [N, 2, 8, 64] <- 57",
      "76 concat concat_2 [N, 2, 8, 16] <- 75 <- 73",
      "78 add add_1 [N, 2, 8, 16] <- 72 <- 77",
      "80 concat concat_3 [N, 2, 8, 64] <- 78 <- 79",
      "81 identity identity [N, 2, 8, 64] <- 80 returned",
      "82 identity identity_1 [N, 2, 8, 64] <- 58 returned",
      "83 contiguous contiguous [N, 2, 8, 64] <- 69",
      "84 contiguous contiguous_1 [N, 2, 8, 64] <- 80",
      "85 contiguous contiguous_2 [N, 2, 8, 64] <- 58",
      "86 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 8, 64] <- 83 <- 84 <- 85 <- 4",
      "89 linear dense [N, 8, 128] <- 88",
      "92 linear dense_h_to_4h [N, 8, 512] <- 91",
      "94 linear dense_4h_to_h [N, 8, 128] <- 93",
      "96 add add [N, 8, 128] <- 95 <- 90",
      "97 add add_1 [N, 8, 128] <- 96 <- 52",
      "99 linear embed_out [N, 8, 100] <- 98"};
  EXPECT_EQ(
      wiring_of(*job, {"linear", "item", "concat", "identity", "contiguous", "scaled_dot_product_attention", "add"}),
      expected);
}

}  // namespace
}  // namespace gpumem::testing
