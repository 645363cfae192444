#include "gpumem/connect/llama.hpp"

#include <algorithm>

#include "wired.hpp"

namespace gpumem::testing {
namespace {

constexpr std::string_view kTree = R"(LlamaForCausalLM(
  (model): LlamaModel(
    (embed_tokens): Embedding(100, 256)
    (layers): ModuleList(
      (0-1): 2 x LlamaDecoderLayer(
        (self_attn): LlamaAttention(
          (q_proj): Linear(in_features=256, out_features=256, bias=False)
          (k_proj): Linear(in_features=256, out_features=128, bias=False)
          (v_proj): Linear(in_features=256, out_features=128, bias=False)
          (o_proj): Linear(in_features=256, out_features=256, bias=False)
        )
        (mlp): LlamaMLP(
          (gate_proj): Linear(in_features=256, out_features=512, bias=False)
          (up_proj): Linear(in_features=256, out_features=512, bias=False)
          (down_proj): Linear(in_features=512, out_features=256, bias=False)
          (act_fn): SiLU()
        )
        (input_layernorm): LlamaRMSNorm((256,), eps=1e-05)
        (post_attention_layernorm): LlamaRMSNorm((256,), eps=1e-05)
      )
    )
    (norm): LlamaRMSNorm((256,), eps=1e-05)
    (rotary_emb): LlamaRotaryEmbedding()
  )
  (lm_head): Linear(in_features=256, out_features=100, bias=False)
)
)";

TrainingJob tiny() {
  TrainingJob job = job_of(kTree, 8);
  return job;
}

TEST(LlamaFamily, RecognisesItsOwnTreesOnly) {
  EXPECT_TRUE(connect::llama().recognises(*tiny().graph));
  EXPECT_FALSE(connect::llama().recognises(*job_of("Sequential(\n  (0): Linear(2, 2)\n)\n", 0).graph));
}

const std::vector<std::string> kWiring = {
    "8 linear q_proj [N, 8, 256] <- 7",
    "11 linear k_proj [N, 8, 128] <- 7",
    "14 linear v_proj [N, 8, 128] <- 7",
    "17 mul mul [N, 4, 8, 64] <- 10 <- 5",
    "21 concat concat [N, 4, 8, 64] <- 20 <- 18",
    "22 mul mul_1 [N, 4, 8, 64] <- 21 <- 6",
    "23 add add [N, 4, 8, 64] <- 17 <- 22",
    "24 mul mul_2 [N, 2, 8, 64] <- 13 <- 5",
    "28 concat concat_1 [N, 2, 8, 64] <- 27 <- 25",
    "29 mul mul_3 [N, 2, 8, 64] <- 28 <- 6",
    "30 add add_1 [N, 2, 8, 64] <- 24 <- 29",
    "31 identity identity [N, 2, 8, 64] <- 30 returned",
    "32 identity identity_1 [N, 2, 8, 64] <- 16 returned",
    "35 reshape reshape [N, 4, 8, 64] <- 34",
    "38 reshape reshape_1 [N, 4, 8, 64] <- 37",
    "39 contiguous contiguous [N, 4, 8, 64] <- 23",
    "40 contiguous contiguous_1 [N, 4, 8, 64] <- 35",
    "41 contiguous contiguous_2 [N, 4, 8, 64] <- 38",
    "42 scaled_dot_product_attention scaled_dot_product_attention [N, 4, 8, 64] <- 39 <- 40 <- 41 <- 4",
    "44 reshape reshape_2 [N, 8, 256] <- 43",
    "45 linear o_proj [N, 8, 256] <- 44",
    "46 add add [N, 8, 256] <- 0 <- 45",
    "48 linear gate_proj [N, 8, 512] <- 47",
    "50 linear up_proj [N, 8, 512] <- 47",
    "51 mul mul [N, 8, 512] <- 49 <- 50",
    "52 linear down_proj [N, 8, 256] <- 51",
    "53 add add_1 [N, 8, 256] <- 46 <- 52",
    "55 linear q_proj [N, 8, 256] <- 54",
    "58 linear k_proj [N, 8, 128] <- 54",
    "61 linear v_proj [N, 8, 128] <- 54",
    "64 mul mul [N, 4, 8, 64] <- 57 <- 5",
    "68 concat concat [N, 4, 8, 64] <- 67 <- 65",
    "69 mul mul_1 [N, 4, 8, 64] <- 68 <- 6",
    "70 add add [N, 4, 8, 64] <- 64 <- 69",
    "71 mul mul_2 [N, 2, 8, 64] <- 60 <- 5",
    "75 concat concat_1 [N, 2, 8, 64] <- 74 <- 72",
    "76 mul mul_3 [N, 2, 8, 64] <- 75 <- 6",
    "77 add add_1 [N, 2, 8, 64] <- 71 <- 76",
    "78 identity identity [N, 2, 8, 64] <- 77 returned",
    "79 identity identity_1 [N, 2, 8, 64] <- 63 returned",
    "82 reshape reshape [N, 4, 8, 64] <- 81",
    "85 reshape reshape_1 [N, 4, 8, 64] <- 84",
    "86 contiguous contiguous [N, 4, 8, 64] <- 70",
    "87 contiguous contiguous_1 [N, 4, 8, 64] <- 82",
    "88 contiguous contiguous_2 [N, 4, 8, 64] <- 85",
    "89 scaled_dot_product_attention scaled_dot_product_attention [N, 4, 8, 64] <- 86 <- 87 <- 88 <- 4",
    "91 reshape reshape_2 [N, 8, 256] <- 90",
    "92 linear o_proj [N, 8, 256] <- 91",
    "93 add add [N, 8, 256] <- 53 <- 92",
    "95 linear gate_proj [N, 8, 512] <- 94",
    "97 linear up_proj [N, 8, 512] <- 94",
    "98 mul mul [N, 8, 512] <- 96 <- 97",
    "99 linear down_proj [N, 8, 256] <- 98",
    "100 add add_1 [N, 8, 256] <- 93 <- 99",
    "102 linear lm_head [N, 8, 100] <- 101"};

TEST(LlamaFamily, ReadsWhatTheModelsCodeReads) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  EXPECT_EQ(wiring_of(*job, {"linear", "mul", "concat", "identity", "reshape", "contiguous",
                             "scaled_dot_product_attention", "add"}),
            kWiring);
}

TEST(LlamaFamily, KeysAndValuesAreRepeatedForGroupedQueries) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  EXPECT_EQ(wiring_of(*job, {"expand"}).size(), 1U + 2U * 2U);  // the mask, and both of either layer
}

}  // namespace
}  // namespace gpumem::testing
