#include "gpumem/connect/opt.hpp"

#include <algorithm>

#include "wired.hpp"

namespace gpumem::testing {
namespace {

constexpr std::string_view kTree = R"(OPTForCausalLM(
  (model): OPTModel(
    (decoder): OPTDecoder(
      (embed_tokens): Embedding(100, 128, padding_idx=1)
      (embed_positions): OPTLearnedPositionalEmbedding(18, 128)
      (final_layer_norm): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
      (layers): ModuleList(
        (0-1): 2 x OPTDecoderLayer(
          (self_attn): OPTSdpaAttention(
            (k_proj): Linear(in_features=128, out_features=128, bias=True)
            (v_proj): Linear(in_features=128, out_features=128, bias=True)
            (q_proj): Linear(in_features=128, out_features=128, bias=True)
            (out_proj): Linear(in_features=128, out_features=128, bias=True)
          )
          (activation_fn): ReLU()
          (self_attn_layer_norm): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
          (fc1): Linear(in_features=128, out_features=512, bias=True)
          (fc2): Linear(in_features=512, out_features=128, bias=True)
          (final_layer_norm): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
        )
      )
    )
  )
  (lm_head): Linear(in_features=128, out_features=100, bias=False)
)
)";

TrainingJob tiny() {
  TrainingJob job = job_of(kTree, 8);
  return job;
}

TEST(OptFamily, RecognisesItsOwnTreesOnly) {
  EXPECT_TRUE(connect::opt().recognises(*tiny().graph));
  EXPECT_FALSE(connect::opt().recognises(*job_of("Sequential(\n  (0): Linear(2, 2)\n)\n", 0).graph));
}

TEST(OptFamily, ReadsWhatTheModelsCodeReads) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  const std::vector<std::string> expected = {
      "6 add add [N, 8, 128] <- 0 <- 5",
      "8 linear q_proj [N, 8, 128] <- 7",
      "9 mul mul [N, 8, 128] <- 8",
      "12 linear k_proj [N, 8, 128] <- 7",
      "15 linear v_proj [N, 8, 128] <- 7",
      "18 identity identity [N, 2, 8, 64] <- 14 returned",
      "19 identity identity_1 [N, 2, 8, 64] <- 17 returned",
      "20 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 8, 64] <- 11 <- 14 <- 17 <- 4",
      "23 linear out_proj [N, 8, 128] <- 22",
      "24 dropout dropout [N, 8, 128] <- 23",
      "25 add add [N, 8, 128] <- 6 <- 24",
      "27 linear fc1 [N, 8, 512] <- 26",
      "29 linear fc2 [N, 8, 128] <- 28",
      "30 dropout dropout_1 [N, 8, 128] <- 29",
      "31 add add_1 [N, 8, 128] <- 25 <- 30",
      "33 linear q_proj [N, 8, 128] <- 32",
      "34 mul mul [N, 8, 128] <- 33",
      "37 linear k_proj [N, 8, 128] <- 32",
      "40 linear v_proj [N, 8, 128] <- 32",
      "43 identity identity [N, 2, 8, 64] <- 39 returned",
      "44 identity identity_1 [N, 2, 8, 64] <- 42 returned",
      "45 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 8, 64] <- 36 <- 39 <- 42 <- 4",
      "48 linear out_proj [N, 8, 128] <- 47",
      "49 dropout dropout [N, 8, 128] <- 48",
      "50 add add [N, 8, 128] <- 31 <- 49",
      "52 linear fc1 [N, 8, 512] <- 51",
      "54 linear fc2 [N, 8, 128] <- 53",
      "55 dropout dropout_1 [N, 8, 128] <- 54",
      "56 add add_1 [N, 8, 128] <- 50 <- 55",
      "58 linear lm_head [N, 8, 100] <- 57"};
  EXPECT_EQ(wiring_of(*job, {"linear", "mul", "scaled_dot_product_attention", "identity", "dropout", "add"}), expected);
}

}  // namespace
}  // namespace gpumem::testing
