#include "gpumem/connect/gpt2.hpp"

#include <algorithm>

#include "wired.hpp"

namespace gpumem::testing {
namespace {

constexpr std::string_view kTree = R"(GPT2LMHeadModel(
  (transformer): GPT2Model(
    (wte): Embedding(100, 128)
    (wpe): Embedding(16, 128)
    (drop): Dropout(p=0.1, inplace=False)
    (h): ModuleList(
      (0-1): 2 x GPT2Block(
        (ln_1): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
        (attn): GPT2Attention(
          (c_attn): Conv1D(nf=384, nx=128)
          (c_proj): Conv1D(nf=128, nx=128)
          (attn_dropout): Dropout(p=0.1, inplace=False)
          (resid_dropout): Dropout(p=0.1, inplace=False)
        )
        (ln_2): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
        (mlp): GPT2MLP(
          (c_fc): Conv1D(nf=512, nx=128)
          (c_proj): Conv1D(nf=128, nx=512)
          (act): NewGELUActivation()
          (dropout): Dropout(p=0.1, inplace=False)
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

TEST(Gpt2Family, RecognisesItsOwnTreesOnly) {
  EXPECT_TRUE(connect::gpt2().recognises(*tiny().graph));
  EXPECT_FALSE(connect::gpt2().recognises(*job_of("Sequential(\n  (0): Linear(2, 2)\n)\n", 0).graph));
}

TEST(Gpt2Family, ReadsWhatTheModelsCodeReads) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  const std::vector<std::string> expected = {
      "1 constant position_ids [1, 8]",
      "3 add add [N, 8, 128] <- 0 <- 2",
      "10 constant bias [1, 1, 16, 16]",
      "11 linear c_attn [N, 8, 384] <- 9",
      "13 item item [N, 8, 128] <- 12",
      "16 item item_1 [N, 8, 128] <- 12",
      "19 item item_2 [N, 8, 128] <- 12",
      "22 identity identity [N, 2, 8, 64] <- 18 returned",
      "23 identity identity_1 [N, 2, 8, 64] <- 21 returned",
      "24 contiguous contiguous [N, 2, 8, 64] <- 15",
      "25 contiguous contiguous_1 [N, 2, 8, 64] <- 18",
      "26 contiguous contiguous_2 [N, 2, 8, 64] <- 21",
      "27 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 8, 64] <- 24 <- 25 <- 26 <- 7",
      "30 linear c_proj [N, 8, 128] <- 29",
      "32 add add [N, 8, 128] <- 31 <- 8",
      "34 linear c_fc [N, 8, 512] <- 33",
      "36 linear c_proj [N, 8, 128] <- 35",
      "38 add add_1 [N, 8, 128] <- 32 <- 37",
      "40 constant bias [1, 1, 16, 16]",
      "41 linear c_attn [N, 8, 384] <- 39",
      "43 item item [N, 8, 128] <- 42",
      "46 item item_1 [N, 8, 128] <- 42",
      "49 item item_2 [N, 8, 128] <- 42",
      "52 identity identity [N, 2, 8, 64] <- 48 returned",
      "53 identity identity_1 [N, 2, 8, 64] <- 51 returned",
      "54 contiguous contiguous [N, 2, 8, 64] <- 45",
      "55 contiguous contiguous_1 [N, 2, 8, 64] <- 48",
      "56 contiguous contiguous_2 [N, 2, 8, 64] <- 51",
      "57 scaled_dot_product_attention scaled_dot_product_attention [N, 2, 8, 64] <- 54 <- 55 <- 56 <- 7",
      "60 linear c_proj [N, 8, 128] <- 59",
      "62 add add [N, 8, 128] <- 61 <- 38",
      "64 linear c_fc [N, 8, 512] <- 63",
      "66 linear c_proj [N, 8, 128] <- 65",
      "68 add add_1 [N, 8, 128] <- 62 <- 67",
      "70 linear lm_head [N, 8, 100] <- 69"};
  EXPECT_EQ(
      wiring_of(*job, {"linear", "item", "contiguous", "scaled_dot_product_attention", "identity", "add", "constant"}),
      expected);
}

TEST(Gpt2Family, OlderVersionsCallTheKernelOnViews) {
  std::string tree(kTree);
  tree.replace(tree.find("GPT2Attention"), 13, "GPT2SdpaAttention");
  const auto job = wired(job_of(tree, 8));
  ASSERT_TRUE(succeeds(job));
  EXPECT_TRUE(wiring_of(*job, {"contiguous"}).empty());
}

TEST(Gpt2Family, NeedsTheSequenceLength) {
  EXPECT_TRUE(fails(wired(job_of(kTree, 0)), ErrorCode::missing_information, 0, "--seq 512"));
}

TEST(Gpt2Family, ReadsNoMoreTokensThanItHasPositions) {
  EXPECT_TRUE(succeeds(wired(job_of(kTree, 16))));
  EXPECT_TRUE(fails(wired(job_of(kTree, 17)), ErrorCode::missing_information, 0, "has 16 positions"));
}

TEST(Gpt2Family, SaysWhichModuleIsMissing) {
  std::string tree(kTree);
  tree.replace(tree.find("(ln_2)"), 6, "(ln_9)");
  EXPECT_TRUE(fails(wired(job_of(tree, 8)), ErrorCode::missing_information, 0, "0-1.ln_2"));
}

TEST(Gpt2Family, LeavesNoParametersOut) {
  std::string tree(kTree);
  tree.replace(tree.find("  (lm_head)"), 2, "  (adapter): Linear(128, 7)\n  ");
  EXPECT_TRUE(fails(wired(job_of(tree, 8)), ErrorCode::missing_information, 26, "holds parameters"));
}

TEST(Gpt2Family, FindsTheModelInsideAWrapper) {
  std::string tree = "DataParallel(\n  (module): " + std::string(kTree);
  tree.insert(tree.size(), ")\n");
  const auto wrapped = wired(job_of(tree, 8));
  ASSERT_TRUE(succeeds(wrapped));
  EXPECT_EQ(wrapped->graph->parameters(), wired(tiny())->graph->parameters());
}

}  // namespace
}  // namespace gpumem::testing
