#include "gpumem/connect/xlnet.hpp"

#include <algorithm>

#include "wired.hpp"

namespace gpumem::testing {
namespace {

constexpr std::string_view kTree = R"(XLNetLMHeadModel(
  (transformer): XLNetModel(
    (word_embedding): Embedding(100, 128)
    (layer): ModuleList(
      (0-1): 2 x XLNetLayer(
        (rel_attn): XLNetRelativeAttention(
          (layer_norm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
          (dropout): Dropout(p=0.1, inplace=False)
        )
        (ff): XLNetFeedForward(
          (layer_norm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
          (layer_1): Linear(in_features=128, out_features=256, bias=True)
          (layer_2): Linear(in_features=256, out_features=128, bias=True)
          (dropout): Dropout(p=0.1, inplace=False)
          (activation_function): GELUActivation()
        )
        (dropout): Dropout(p=0.1, inplace=False)
      )
    )
    (dropout): Dropout(p=0.1, inplace=False)
  )
  (lm_loss): Linear(in_features=128, out_features=100, bias=True)
)
)";

TrainingJob tiny() {
  TrainingJob job = job_of(kTree, 8);
  return job;
}

TEST(XLNetFamily, RecognisesItsOwnTreesOnly) {
  EXPECT_TRUE(connect::xlnet().recognises(*tiny().graph));
  EXPECT_FALSE(connect::xlnet().recognises(*job_of("Sequential(\n  (0): Linear(2, 2)\n)\n", 0).graph));
}

TEST(XLNetFamily, AClassifierReadsTheSummaryOfTheLastToken) {
  std::string tree(kTree);
  tree.replace(tree.find("XLNetLMHeadModel"), 16, "XLNetForSequenceClassification");
  tree.replace(tree.find("  (lm_loss)"), std::string::npos,
               "  (sequence_summary): XLNetSequenceSummary(\n"
               "    (summary): Linear(in_features=128, out_features=128, bias=True)\n"
               "    (activation): Tanh()\n"
               "    (first_dropout): Identity()\n"
               "    (last_dropout): Dropout(p=0.1, inplace=False)\n"
               "  )\n"
               "  (logits_proj): Linear(in_features=128, out_features=2, bias=True)\n"
               ")\n");
  const auto job = wired(job_of(tree, 8));
  ASSERT_TRUE(succeeds(job));
  const std::vector<std::string> lines = wiring_of(*job, {"select", "tanh", "linear"});
  ASSERT_GE(lines.size(), 4U);
  EXPECT_NE(lines[lines.size() - 4].find("select select [N, 128]"), std::string::npos);
  EXPECT_NE(lines[lines.size() - 3].find("linear summary [N, 128]"), std::string::npos);
  EXPECT_NE(lines[lines.size() - 2].find("tanh activation [N, 128]"), std::string::npos);
  EXPECT_NE(lines.back().find("linear logits_proj [N, 2]"), std::string::npos);
}

TEST(XLNetFamily, ReadsWhatTheModelsCodeReads) {
  const auto job = wired(tiny());
  ASSERT_TRUE(succeeds(job));
  const std::vector<std::string> expected = {"0 parameter mask_emb [1, 1, 128]",
                                             "10 linear q [N, 8, 128] <- 6",
                                             "11 linear k [N, 8, 128] <- 6",
                                             "12 linear v [N, 8, 128] <- 6",
                                             "14 linear r [N, 16, 128] <- 9",
                                             "15 parameter r_s_bias [128]",
                                             "16 parameter seg_embed [2, 128]",
                                             "17 parameter r_w_bias [128]",
                                             "21 matmul matmul [N, 2, 8, 8] <- 19 <- 20",
                                             "22 parameter r_r_bias [128]",
                                             "26 matmul matmul_1 [N, 2, 8, 16] <- 24 <- 25",
                                             "31 contiguous contiguous [N, 2, 8, 8] <- 30",
                                             "38 matmul matmul_2 [N, 2, 8, 64] <- 37 <- 13",
                                             "41 linear o [N, 8, 128] <- 40",
                                             "45 linear layer_1 [N, 8, 256] <- 44",
                                             "48 linear layer_2 [N, 8, 128] <- 47",
                                             "52 linear q [N, 8, 128] <- 51",
                                             "53 linear k [N, 8, 128] <- 51",
                                             "54 linear v [N, 8, 128] <- 51",
                                             "56 linear r [N, 16, 128] <- 9",
                                             "57 parameter r_s_bias [128]",
                                             "58 parameter seg_embed [2, 128]",
                                             "59 parameter r_w_bias [128]",
                                             "63 matmul matmul [N, 2, 8, 8] <- 61 <- 62",
                                             "64 parameter r_r_bias [128]",
                                             "68 matmul matmul_1 [N, 2, 8, 16] <- 66 <- 67",
                                             "73 contiguous contiguous [N, 2, 8, 8] <- 72",
                                             "80 matmul matmul_2 [N, 2, 8, 64] <- 79 <- 55",
                                             "83 linear o [N, 8, 128] <- 82",
                                             "87 linear layer_1 [N, 8, 256] <- 86",
                                             "90 linear layer_2 [N, 8, 128] <- 89",
                                             "95 clone clone [N, 8, 128] <- 94",
                                             "96 linear lm_loss [N, 8, 100] <- 95"};
  EXPECT_EQ(wiring_of(*job, {"linear", "matmul", "parameter", "contiguous", "clone"}), expected);
}

TEST(XLNetFamily, AddsTheParametersThatTheTreeDoesNotShow) {
  const TrainingJob job = tiny();
  const auto connected = wired(job);
  ASSERT_TRUE(succeeds(connected));
  // Two layers of five projections, three biases and two segment vectors, and the mask's embedding.
  EXPECT_EQ(connected->graph->parameters() - job.graph->parameters(), 2 * (5 * 128 * 128 + 5 * 128) + 128);
}

}  // namespace
}  // namespace gpumem::testing
