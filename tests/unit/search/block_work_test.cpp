// What one block costs, against the whole model's kernels.
#include "gpumem/search/block_work.hpp"

#include <algorithm>
#include <array>

#include "gpumem/architectures/architectures.hpp"
#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::small_gpt;
using testing::small_llama;
using testing::succeeds;

utilisation::GpuPeaks peaks() {
  const auto profile = device::find_profile("h100-80gb");
  EXPECT_TRUE(succeeds(profile));
  const auto found = utilisation::peaks_of(*profile);
  EXPECT_TRUE(succeeds(found));
  return found ? *found : utilisation::GpuPeaks();
}

core::Result<std::vector<BlockWork>> work_of(const model::TrainingJob& job, std::vector<MicroBatch> micro_batches) {
  analysis::Analysis analysis(job);
  return block_work(analysis, job, micro_batches, peaks());
}

double kernels_of(const model::TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto work = analysis.work();
  EXPECT_TRUE(succeeds(work));
  return work ? utilisation::step_time(**work, job, peaks()).kernels : 0.0;
}

TEST(BlockWork, PartsComeToTheWholeModel) {
  const model::TrainingJob job = small_llama(5);
  const auto found = work_of(job, {{1, {}}});
  ASSERT_TRUE(succeeds(found));
  ASSERT_EQ(found->size(), 1U);
  const BlockWork& work = found->front();
  EXPECT_EQ(work.blocks, 5);
  const auto sum = [&](auto member) { return work.before.*member + 5 * work.block.*member + work.behind.*member; };
  EXPECT_EQ(sum(&PartWork::parameters), job.graph->parameters());
  const double parts = sum(&PartWork::forward) + sum(&PartWork::backward) + sum(&PartWork::optimizer);
  // The least times of the optimizer's few kernels count once a part.
  EXPECT_NEAR(parts, kernels_of(job), 0.1 * kernels_of(job));
}

TEST(BlockWork, ThreeBlocksTellAsMuchAsAll) {
  for (const model::TrainingJob& job : {small_llama(9), small_gpt(6)}) {
    analysis::Analysis analysis(job);
    const auto whole = analysis.wired();
    ASSERT_TRUE(succeeds(whole));
    model::TrainingJob few = job;
    few.graph = representative_blocks(**whole);
    ASSERT_NE(few.graph, nullptr);
    EXPECT_LT(few.graph->parameters(), job.graph->parameters());
    for (const std::int64_t ranks : {1, 2}) {
      model::TrainingJob one = job;
      one.layout.tensor_parallel = few.layout.tensor_parallel = ranks;
      const auto all = work_of(one, {{2, {}}});
      const auto three = work_of(few, {{2, {}}});
      ASSERT_TRUE(succeeds(all));
      ASSERT_TRUE(succeeds(three));
      EXPECT_EQ(three->front().blocks, 3);
      for (const auto part : {&BlockWork::before, &BlockWork::block, &BlockWork::behind}) {
        const PartWork& of_all = all->front().*part;
        const PartWork& of_three = three->front().*part;
        EXPECT_EQ(of_three.forward, of_all.forward);
        EXPECT_EQ(of_three.backward, of_all.backward);
        EXPECT_EQ(of_three.parameters, of_all.parameters);
      }
    }
  }
}

TEST(BlockWork, AModelOfThreeBlocksIsTakenWhole) {
  analysis::Analysis analysis(small_llama(3));
  const auto whole = analysis.wired();
  ASSERT_TRUE(succeeds(whole));
  EXPECT_EQ(representative_blocks(**whole), nullptr);
}

/// `images=0` with `freeze=*vision_tower*`: the smaller model must know the names too.
TEST(BlockWork, OfThreeBlocksKnowsWhatSamplesOfTextLeaveOut) {
  const auto graph = architectures::read_config(
      R"({"model_type": "llava", "image_token_index": 32000, "text_config": {"model_type": "llama", "hidden_size": 64,
          "intermediate_size": 128, "num_hidden_layers": 5, "num_attention_heads": 4, "vocab_size": 256},
          "vision_config": {"model_type": "clip_vision_model", "hidden_size": 32, "intermediate_size": 64,
          "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 56, "patch_size": 14}})",
      ops::vocabulary(), "config.json", {});
  ASSERT_TRUE(succeeds(graph));
  model::TrainingJob job(*graph, 1);
  job.sequence_length = 64;
  job.images = 0;
  job.freeze = "*vision_tower*";
  analysis::Analysis analysis(job);
  const auto whole = analysis.wired();
  ASSERT_TRUE(succeeds(whole));
  auto few = representative_blocks(**whole);
  ASSERT_NE(few, nullptr);
  EXPECT_TRUE(succeeds(work_of(of_fewer_blocks(job, std::move(few)), {{1, {}}})));
}

/// The order in which they are made, by checkpointing, is not that of the answers.
TEST(BlockWork, OfMicroBatchesIsThatOfEachAlone) {
  const Checkpointing full = {true, {model::Checkpoints::full, 0}};
  const std::vector<MicroBatch> all = {{1, full}, {1, {}}, {2, full}, {2, {}}, {4, {}}};
  const auto together = work_of(small_llama(4), all);
  ASSERT_TRUE(succeeds(together));
  for (std::size_t at = 0; at < all.size(); ++at) {
    const auto alone = work_of(small_llama(4), {all[at]});
    ASSERT_TRUE(succeeds(alone));
    EXPECT_EQ((*together)[at].block.forward, alone->front().block.forward) << at;
    EXPECT_EQ((*together)[at].block.backward, alone->front().block.backward) << at;
    EXPECT_EQ((*together)[at].before.parameters, alone->front().before.parameters) << at;
  }
}

TEST(BlockWork, EveryMicroBatchHasItsOwn) {
  const auto found = work_of(small_llama(4), {{1, {}}, {8, {}}, {8, {true, {model::Checkpoints::full, 0}}}});
  ASSERT_TRUE(succeeds(found));
  ASSERT_EQ(found->size(), 3U);
  EXPECT_GT((*found)[1].block.backward, (*found)[0].block.backward);
  EXPECT_NEAR((*found)[2].block.backward, (*found)[1].block.backward + (*found)[1].block.forward,
              0.05 * (*found)[1].block.backward)
      << "a block's forward runs again";
  EXPECT_EQ((*found)[2].block.forward, (*found)[1].block.forward);
}

TEST(BlockWork, TensorParallelRanksShareABlockAndSumTwiceAWay) {
  model::TrainingJob job = small_llama(4);
  const auto whole = work_of(job, {{2, {}}});
  job.layout.tensor_parallel = 4;
  const auto part = work_of(job, {{2, {}}});
  ASSERT_TRUE(succeeds(whole));
  ASSERT_TRUE(succeeds(part));
  EXPECT_EQ(part->front().sent.sums, 2) << "behind the attention and behind the feed-forward layer";
  EXPECT_EQ(part->front().sent.hidden, 2.0 * 2 * 128 * 256) << "two samples in bfloat16";
  const std::int64_t norms = 2 * 256;
  EXPECT_EQ(part->front().block.parameters, (whole->front().block.parameters - norms) / 4 + norms);
}

TEST(BlockWork, ContextParallelRanksSendKeysAndValues) {
  model::TrainingJob job = small_llama(4);
  job.layout.context_parallel = 2;
  const auto found = work_of(job, {{1, {}}});
  ASSERT_TRUE(succeeds(found));
  EXPECT_GE(found->front().sent.keys_values, 2.0 * 2 * 64 * 128) << "four heads of 32, half of the positions";
  EXPECT_EQ(found->front().sent.hidden, 2.0 * 64 * 256);
}

TEST(BlockWork, ExpertsGetTheirTokens) {
  model::TrainingJob job = small_gpt(4, R"(, "num_experts": 8, "moe_router_topk": 2, "swiglu": true)");
  job.layout.expert_parallel = 4;
  const auto found = work_of(job, {{1, {}}});
  ASSERT_TRUE(succeeds(found));
  EXPECT_GT(found->front().sent.routed, 0.0);
}

TEST(BlockWork, AModelOfTwoBlocksIsSharedOut) {
  const model::TrainingJob job = small_llama(2);
  const auto found = work_of(job, {{1, {}}});
  ASSERT_TRUE(succeeds(found));
  EXPECT_EQ(found->front().blocks, 2);
  EXPECT_NEAR(2 * (found->front().block.forward + found->front().block.backward + found->front().block.optimizer),
              kernels_of(job), 1e-9);
}

TEST(BlockWork, AModelThatRanksCannotShareIsTakenWhole) {
  auto graph = architectures::read_config(
      R"({"model_type": "gpt2", "n_layer": 4, "n_embd": 64, "n_head": 2, "vocab_size": 512, "n_positions": 64})",
      ops::vocabulary());
  ASSERT_TRUE(succeeds(graph));
  model::TrainingJob job(*std::move(graph), 1);
  job.sequence_length = 64;
  job.lora = 4;
  job.quantize = model::Quantization::nf4;
  const auto found = work_of(job, {{1, {}}});
  ASSERT_TRUE(succeeds(found));
  EXPECT_FALSE(found->front().apart) << "quantised weights are not modelled in a pipeline";
  EXPECT_EQ(found->front().blocks, 4);
}

double multiply_adds_of(const model::TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto work = analysis.work();
  EXPECT_TRUE(succeeds(work));
  double sum = 0.0;
  if (work) {
    for (const plan::Kernel& kernel : (*work)->kernels) sum += kernel.multiply_adds;
  }
  return sum;
}

TEST(BlockWork, ContextParallelRanksTogetherMultiplyAllThatOneDoes) {
  model::TrainingJob job = small_llama(2, 256, 2048);
  const double whole = multiply_adds_of(job);
  job.layout.context_parallel = 4;
  job.layout.sharding.kind = model::Shardings::ddp;
  EXPECT_NEAR(4.0 * multiply_adds_of(job), whole, 1e-9 * whole) << "each one's queries meet the keys of all";
}

TEST(BlockWork, AParameterThatNoCallReadsGetsNoLoss) {
  model::TrainingJob job = testing::job_of_config(
      R"({"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 64, "hidden_act": "silu",
          "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128,
          "vocab_size": 512, "kv_lora_rank": 16, "q_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
          "v_head_dim": 16, "first_k_dense_replace": 1, "moe_intermediate_size": 32, "n_routed_experts": 8,
          "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "rms_norm_eps": 1e-06})",
      128);
  job.loop = model::Loop::megatron;
  job.gradient_accumulation = 2;
  job.loss_form = {model::LossForms::fused_ce, 0};
  analysis::Analysis analysis(job);
  const auto pass = analysis.forward_pass();
  ASSERT_TRUE(succeeds(pass));
  for (const ops::Tape::Parameter& parameter : (*pass)->tape.parameters()) {
    EXPECT_EQ(std::count((*pass)->held.begin(), (*pass)->held.end(), parameter.tensor), 0) << "a router's bias";
  }
  EXPECT_TRUE(succeeds(analysis.steps()));
}

TEST(BlockWork, ASplitThatCannotBeIsRefusedByItsRule) {
  model::TrainingJob job = small_llama(4);
  job.layout.tensor_parallel = 3;
  EXPECT_TRUE(fails(work_of(job, {{1, {}}}), ErrorCode::invalid_argument, 0, "tensor parallel ranks cannot share"));
}

}  // namespace
}  // namespace gpumem::search
