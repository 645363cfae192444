#include "gpumem/connect/gpt_neo.hpp"

#include <algorithm>

#include "wired.hpp"

namespace gpumem::testing {
namespace {

constexpr std::string_view kTree = R"(GPTNeoForCausalLM(
  (transformer): GPTNeoModel(
    (wte): Embedding(100, 128)
    (wpe): Embedding(16, 128)
    (drop): Dropout(p=0.0, inplace=False)
    (h): ModuleList(
      (0-1): 2 x GPTNeoBlock(
        (ln_1): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
        (attn): GPTNeoAttention(
          (attention): GPTNeoSelfAttention(
            (attn_dropout): Dropout(p=0.0, inplace=False)
            (resid_dropout): Dropout(p=0.0, inplace=False)
            (k_proj): Linear(in_features=128, out_features=128, bias=False)
            (v_proj): Linear(in_features=128, out_features=128, bias=False)
            (q_proj): Linear(in_features=128, out_features=128, bias=False)
            (out_proj): Linear(in_features=128, out_features=128, bias=True)
          )
        )
        (ln_2): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
        (mlp): GPTNeoMLP(
          (c_fc): Linear(in_features=128, out_features=512, bias=True)
          (c_proj): Linear(in_features=512, out_features=128, bias=True)
          (act): NewGELUActivation()
          (dropout): Dropout(p=0.0, inplace=False)
        )
      )
    )
    (ln_f): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
  )
  (lm_head): Linear(in_features=128, out_features=100, bias=False)
)
)";

TrainingJob tiny() {
  TrainingJob job = job_of(kTree, 8);
  return job;
}

TEST(GptNeoFamily, RecognisesItsOwnTreesOnly) {
  EXPECT_TRUE(connect::gpt_neo().recognises(*tiny().graph));
  EXPECT_FALSE(connect::gpt_neo().recognises(*job_of("Sequential(\n  (0): Linear(2, 2)\n)\n", 0).graph));
}

TEST(GptNeoFamily, ReadsWhatTheModelsCodeReads) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  const std::vector<std::string> expected = {"5 constant position_ids [1, 8]",
                                             "7 add add [N, 8, 128] <- 0 <- 6",
                                             "10 constant bias [1, 1, 16, 16]",
                                             "11 linear q_proj [N, 8, 128] <- 9",
                                             "14 linear k_proj [N, 8, 128] <- 9",
                                             "17 linear v_proj [N, 8, 128] <- 9",
                                             "20 identity identity [N, 2, 8, 64] <- 16 returned",
                                             "21 identity identity_1 [N, 2, 8, 64] <- 19 returned",
                                             "23 matmul matmul [N, 2, 8, 8] <- 13 <- 22",
                                             "24 add add [N, 2, 8, 8] <- 23",
                                             "25 add add_1 [N, 2, 8, 8] <- 24 <- 4",
                                             "26 softmax softmax [N, 2, 8, 8] <- 25",
                                             "28 matmul matmul_1 [N, 2, 8, 64] <- 27 <- 19",
                                             "31 linear out_proj [N, 8, 128] <- 30",
                                             "33 add add [N, 8, 128] <- 32 <- 8",
                                             "35 linear c_fc [N, 8, 512] <- 34",
                                             "37 linear c_proj [N, 8, 128] <- 36",
                                             "39 add add_1 [N, 8, 128] <- 33 <- 38",
                                             "41 constant bias [1, 1, 16, 16]",
                                             "42 linear q_proj [N, 8, 128] <- 40",
                                             "45 linear k_proj [N, 8, 128] <- 40",
                                             "48 linear v_proj [N, 8, 128] <- 40",
                                             "51 identity identity [N, 2, 8, 64] <- 47 returned",
                                             "52 identity identity_1 [N, 2, 8, 64] <- 50 returned",
                                             "54 matmul matmul [N, 2, 8, 8] <- 44 <- 53",
                                             "55 add add [N, 2, 8, 8] <- 54",
                                             "56 add add_1 [N, 2, 8, 8] <- 55 <- 4",
                                             "57 softmax softmax [N, 2, 8, 8] <- 56",
                                             "59 matmul matmul_1 [N, 2, 8, 64] <- 58 <- 50",
                                             "62 linear out_proj [N, 8, 128] <- 61",
                                             "64 add add [N, 8, 128] <- 63 <- 39",
                                             "66 linear c_fc [N, 8, 512] <- 65",
                                             "68 linear c_proj [N, 8, 128] <- 67",
                                             "70 add add_1 [N, 8, 128] <- 64 <- 69",
                                             "72 linear lm_head [N, 8, 100] <- 71"};
  EXPECT_EQ(wiring_of(*job, {"linear", "matmul", "softmax", "identity", "add", "constant"}), expected);
}

}  // namespace
}  // namespace gpumem::testing
