#include "gpumem/connect/t5.hpp"

#include <algorithm>

#include "wired.hpp"

namespace gpumem::testing {
namespace {

constexpr std::string_view kTree = R"(T5ForConditionalGeneration(
  (shared): Embedding(100, 128)
  (encoder): T5Stack(
    (embed_tokens): Embedding(100, 128)
    (block): ModuleList(
      (0): T5Block(
        (layer): ModuleList(
          (0): T5LayerSelfAttention(
            (SelfAttention): T5Attention(
              (q): Linear(in_features=128, out_features=128, bias=False)
              (k): Linear(in_features=128, out_features=128, bias=False)
              (v): Linear(in_features=128, out_features=128, bias=False)
              (o): Linear(in_features=128, out_features=128, bias=False)
              (relative_attention_bias): Embedding(32, 2)
            )
            (layer_norm): T5LayerNorm()
            (dropout): Dropout(p=0.1, inplace=False)
          )
          (1): T5LayerFF(
            (DenseReluDense): T5DenseActDense(
              (wi): Linear(in_features=128, out_features=256, bias=False)
              (wo): Linear(in_features=256, out_features=128, bias=False)
              (dropout): Dropout(p=0.1, inplace=False)
              (act): ReLU()
            )
            (layer_norm): T5LayerNorm()
            (dropout): Dropout(p=0.1, inplace=False)
          )
        )
      )
      (1): T5Block(
        (layer): ModuleList(
          (0): T5LayerSelfAttention(
            (SelfAttention): T5Attention(
              (q): Linear(in_features=128, out_features=128, bias=False)
              (k): Linear(in_features=128, out_features=128, bias=False)
              (v): Linear(in_features=128, out_features=128, bias=False)
              (o): Linear(in_features=128, out_features=128, bias=False)
            )
            (layer_norm): T5LayerNorm()
            (dropout): Dropout(p=0.1, inplace=False)
          )
          (1): T5LayerFF(
            (DenseReluDense): T5DenseActDense(
              (wi): Linear(in_features=128, out_features=256, bias=False)
              (wo): Linear(in_features=256, out_features=128, bias=False)
              (dropout): Dropout(p=0.1, inplace=False)
              (act): ReLU()
            )
            (layer_norm): T5LayerNorm()
            (dropout): Dropout(p=0.1, inplace=False)
          )
        )
      )
    )
    (final_layer_norm): T5LayerNorm()
    (dropout): Dropout(p=0.1, inplace=False)
  )
  (decoder): T5Stack(
    (embed_tokens): Embedding(100, 128)
    (block): ModuleList(
      (0): T5Block(
        (layer): ModuleList(
          (0): T5LayerSelfAttention(
            (SelfAttention): T5Attention(
              (q): Linear(in_features=128, out_features=128, bias=False)
              (k): Linear(in_features=128, out_features=128, bias=False)
              (v): Linear(in_features=128, out_features=128, bias=False)
              (o): Linear(in_features=128, out_features=128, bias=False)
              (relative_attention_bias): Embedding(32, 2)
            )
            (layer_norm): T5LayerNorm()
            (dropout): Dropout(p=0.1, inplace=False)
          )
          (1): T5LayerCrossAttention(
            (EncDecAttention): T5Attention(
              (q): Linear(in_features=128, out_features=128, bias=False)
              (k): Linear(in_features=128, out_features=128, bias=False)
              (v): Linear(in_features=128, out_features=128, bias=False)
              (o): Linear(in_features=128, out_features=128, bias=False)
            )
            (layer_norm): T5LayerNorm()
            (dropout): Dropout(p=0.1, inplace=False)
          )
          (2): T5LayerFF(
            (DenseReluDense): T5DenseActDense(
              (wi): Linear(in_features=128, out_features=256, bias=False)
              (wo): Linear(in_features=256, out_features=128, bias=False)
              (dropout): Dropout(p=0.1, inplace=False)
              (act): ReLU()
            )
            (layer_norm): T5LayerNorm()
            (dropout): Dropout(p=0.1, inplace=False)
          )
        )
      )
      (1): T5Block(
        (layer): ModuleList(
          (0): T5LayerSelfAttention(
            (SelfAttention): T5Attention(
              (q): Linear(in_features=128, out_features=128, bias=False)
              (k): Linear(in_features=128, out_features=128, bias=False)
              (v): Linear(in_features=128, out_features=128, bias=False)
              (o): Linear(in_features=128, out_features=128, bias=False)
            )
            (layer_norm): T5LayerNorm()
            (dropout): Dropout(p=0.1, inplace=False)
          )
          (1): T5LayerCrossAttention(
            (EncDecAttention): T5Attention(
              (q): Linear(in_features=128, out_features=128, bias=False)
              (k): Linear(in_features=128, out_features=128, bias=False)
              (v): Linear(in_features=128, out_features=128, bias=False)
              (o): Linear(in_features=128, out_features=128, bias=False)
            )
            (layer_norm): T5LayerNorm()
            (dropout): Dropout(p=0.1, inplace=False)
          )
          (2): T5LayerFF(
            (DenseReluDense): T5DenseActDense(
              (wi): Linear(in_features=128, out_features=256, bias=False)
              (wo): Linear(in_features=256, out_features=128, bias=False)
              (dropout): Dropout(p=0.1, inplace=False)
              (act): ReLU()
            )
            (layer_norm): T5LayerNorm()
            (dropout): Dropout(p=0.1, inplace=False)
          )
        )
      )
    )
    (final_layer_norm): T5LayerNorm()
    (dropout): Dropout(p=0.1, inplace=False)
  )
  (lm_head): Linear(in_features=128, out_features=100, bias=False)
)
)";

TrainingJob tiny() {
  TrainingJob job = job_of(kTree, 8);
  return job;
}

TEST(T5Family, RecognisesItsOwnTreesOnly) {
  EXPECT_TRUE(connect::t5().recognises(*tiny().graph));
  EXPECT_FALSE(connect::t5().recognises(*job_of("Sequential(\n  (0): Linear(2, 2)\n)\n", 0).graph));
}

const std::vector<std::string> kWiring = {"6 linear q [N, 8, 128] <- 5",
                                          "9 linear k [N, 8, 128] <- 5",
                                          "12 linear v [N, 8, 128] <- 5",
                                          "16 matmul matmul [N, 2, 8, 8] <- 8 <- 15",
                                          "21 add add [N, 2, 8, 8] <- 20 <- 3",
                                          "22 add add_1 [N, 2, 8, 8] <- 16 <- 21",
                                          "25 matmul matmul_1 [N, 2, 8, 64] <- 24 <- 14",
                                          "28 linear o [N, 8, 128] <- 27",
                                          "30 add add [N, 8, 128] <- 4 <- 29",
                                          "32 linear wi [N, 8, 256] <- 31",
                                          "35 linear wo [N, 8, 128] <- 34",
                                          "37 add add [N, 8, 128] <- 30 <- 36",
                                          "39 linear q [N, 8, 128] <- 38",
                                          "42 linear k [N, 8, 128] <- 38",
                                          "45 linear v [N, 8, 128] <- 38",
                                          "49 matmul matmul [N, 2, 8, 8] <- 41 <- 48",
                                          "50 add add [N, 2, 8, 8] <- 49 <- 21",
                                          "53 matmul matmul_1 [N, 2, 8, 64] <- 52 <- 47",
                                          "56 linear o [N, 8, 128] <- 55",
                                          "58 add add [N, 8, 128] <- 37 <- 57",
                                          "60 linear wi [N, 8, 256] <- 59",
                                          "63 linear wo [N, 8, 128] <- 62",
                                          "65 add add [N, 8, 128] <- 58 <- 64",
                                          "78 linear q [N, 8, 128] <- 77",
                                          "81 linear k [N, 8, 128] <- 77",
                                          "84 linear v [N, 8, 128] <- 77",
                                          "87 identity identity [N, 2, 8, 64] <- 83 returned",
                                          "88 identity identity_1 [N, 2, 8, 64] <- 86 returned",
                                          "90 matmul matmul [N, 2, 8, 8] <- 80 <- 89",
                                          "95 add add [N, 2, 8, 8] <- 94 <- 72",
                                          "96 add add_1 [N, 2, 8, 8] <- 90 <- 95",
                                          "99 matmul matmul_1 [N, 2, 8, 64] <- 98 <- 86",
                                          "102 linear o [N, 8, 128] <- 101",
                                          "104 add add [N, 8, 128] <- 76 <- 103",
                                          "106 linear q [N, 8, 128] <- 105",
                                          "109 linear k [N, 8, 128] <- 67",
                                          "112 linear v [N, 8, 128] <- 67",
                                          "115 identity identity [N, 2, 8, 64] <- 111 returned",
                                          "116 identity identity_1 [N, 2, 8, 64] <- 114 returned",
                                          "118 matmul matmul [N, 2, 8, 8] <- 108 <- 117",
                                          "120 add add [N, 2, 8, 8] <- 119 <- 75",
                                          "121 add add_1 [N, 2, 8, 8] <- 118 <- 120",
                                          "124 matmul matmul_1 [N, 2, 8, 64] <- 123 <- 114",
                                          "127 linear o [N, 8, 128] <- 126",
                                          "129 add add [N, 8, 128] <- 104 <- 128",
                                          "131 linear wi [N, 8, 256] <- 130",
                                          "134 linear wo [N, 8, 128] <- 133",
                                          "136 add add [N, 8, 128] <- 129 <- 135",
                                          "138 linear q [N, 8, 128] <- 137",
                                          "141 linear k [N, 8, 128] <- 137",
                                          "144 linear v [N, 8, 128] <- 137",
                                          "147 identity identity [N, 2, 8, 64] <- 143 returned",
                                          "148 identity identity_1 [N, 2, 8, 64] <- 146 returned",
                                          "150 matmul matmul [N, 2, 8, 8] <- 140 <- 149",
                                          "151 add add [N, 2, 8, 8] <- 150 <- 95",
                                          "154 matmul matmul_1 [N, 2, 8, 64] <- 153 <- 146",
                                          "157 linear o [N, 8, 128] <- 156",
                                          "159 add add [N, 8, 128] <- 136 <- 158",
                                          "161 linear q [N, 8, 128] <- 160",
                                          "164 linear k [N, 8, 128] <- 67",
                                          "167 linear v [N, 8, 128] <- 67",
                                          "170 identity identity [N, 2, 8, 64] <- 166 returned",
                                          "171 identity identity_1 [N, 2, 8, 64] <- 169 returned",
                                          "173 matmul matmul [N, 2, 8, 8] <- 163 <- 172",
                                          "174 add add [N, 2, 8, 8] <- 173 <- 120",
                                          "177 matmul matmul_1 [N, 2, 8, 64] <- 176 <- 169",
                                          "180 linear o [N, 8, 128] <- 179",
                                          "182 add add [N, 8, 128] <- 159 <- 181",
                                          "184 linear wi [N, 8, 256] <- 183",
                                          "187 linear wo [N, 8, 128] <- 186",
                                          "189 add add [N, 8, 128] <- 182 <- 188",
                                          "192 identity identity [N, 8, 128] <- 67 returned",
                                          "193 mul mul [N, 8, 128] <- 191",
                                          "194 linear lm_head [N, 8, 100] <- 193"};

TEST(T5Family, ReadsWhatTheModelsCodeReads) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  EXPECT_EQ(wiring_of(*job, {"linear", "matmul", "identity", "add", "mul"}), kWiring);
}

TEST(T5Family, AllLayersOfAStackShareOnePositionBias) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  EXPECT_EQ(wiring_of(*job, {"embedding"}).size(), 4U);  // tokens and distances of either stack
}

}  // namespace
}  // namespace gpumem::testing
