// Which layouts there are, and which rules refuse others.
#include "gpumem/search/layout_space.hpp"

#include <algorithm>
#include <set>

#include "gpumem/parallel/sharing.hpp"
#include "gpumem/search/frameworks.hpp"
#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using model::Shardings;
using testing::small_gpt;
using testing::small_llama;
using testing::succeeds;

LayoutSpace space_of(const model::TrainingJob& job, std::int64_t gpus, std::int64_t batch, std::string_view framework,
                     const MostRanks& most = {}) {
  const auto named = frameworks_of(framework);
  const auto profile = device::find_profile("h100-80gb");
  EXPECT_TRUE(succeeds(named));
  EXPECT_TRUE(succeeds(profile));
  const auto peaks = utilisation::peaks_of(*profile);
  EXPECT_TRUE(succeeds(peaks));
  const Links links = {.link = 450e9, .network = 50e9, .gpus_per_node = 4};
  analysis::Analysis analysis(job);
  auto space = layout_space(analysis, job, {gpus, batch, *named, most}, links, *peaks);
  EXPECT_TRUE(succeeds(space));
  return space ? *std::move(space) : LayoutSpace();
}

TEST(LayoutSpace, HasEveryDivisionOfTheGpusAndOfTheBatch) {
  const LayoutSpace space = space_of(small_llama(8), 8, 16, "fsdp2");
  std::set<std::int64_t> tensor;
  std::set<std::int64_t> pipeline;
  std::set<std::int64_t> context;
  for (const Candidate& candidate : space.candidates) {
    const model::Layout& layout = candidate.layout;
    EXPECT_EQ(*parallel::world_size(layout), 8);
    EXPECT_EQ(layout.data_parallel * candidate.micro_batch.size * candidate.micro_batches, 16);
    tensor.insert(layout.tensor_parallel);
    pipeline.insert(layout.pipeline_parallel);
    context.insert(layout.context_parallel);
  }
  EXPECT_EQ(tensor, (std::set<std::int64_t>{1, 2, 4})) << "within a node of four";
  EXPECT_EQ(pipeline, (std::set<std::int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(context, (std::set<std::int64_t>{1, 2, 4, 8}));
}

TEST(LayoutSpace, EveryCandidatePassesTheRules) {
  const model::TrainingJob job = small_gpt(8, R"(, "num_experts": 4, "moe_router_topk": 2)");
  const LayoutSpace space = space_of(job, 8, 16, "any");
  EXPECT_GT(space.candidates.size(), 100U);
  for (const Candidate& candidate : space.candidates) {
    EXPECT_TRUE(succeeds(parallel::check_modelled(job_of(job, candidate), "a plan")));
  }
  const bool shares_experts = std::any_of(space.candidates.begin(), space.candidates.end(), [](const Candidate& one) {
    return one.layout.expert_parallel == 4 && one.framework->name == "megatron";
  });
  EXPECT_TRUE(shares_experts);
}

TEST(LayoutSpace, IsSortedByTheTimeOfAStep) {
  const LayoutSpace space = space_of(small_llama(4), 4, 8, "any");
  EXPECT_TRUE(std::is_sorted(space.candidates.begin(), space.candidates.end(),
                             [](const Candidate& left, const Candidate& right) { return left.step < right.step; }));
}

TEST(LayoutSpace, SequenceParallelismStandsBesideTensorParallelismWhereItIsModelled) {
  const LayoutSpace gpt = space_of(small_gpt(4), 4, 8, "megatron");
  for (const Candidate& candidate : gpt.candidates) {
    EXPECT_EQ(candidate.layout.sequence_parallel, candidate.layout.tensor_parallel > 1);
  }
}

TEST(LayoutSpace, AFrameworkHasWhatItHas) {
  for (const Candidate& candidate : space_of(small_llama(4), 8, 8, "deepspeed").candidates) {
    EXPECT_EQ(candidate.layout.data_parallel, 8);
    EXPECT_EQ(job_of(small_llama(4), candidate).loop, model::Loop::hf_trainer);
  }
}

TEST(LayoutSpace, SaysWhichRulesRefused) {
  const auto refuses_four_stages = [](std::string_view framework) {
    const LayoutSpace space = space_of(small_llama(6), 8, 8, framework);
    return std::any_of(space.refused.begin(), space.refused.end(), [](const auto& one) {
      constexpr std::string_view kRule = "has 6 repeated blocks, which 4 pipeline stages cannot share evenly";
      return one.first.rule == Rule::stages && one.first.text.find(kRule) != std::string::npos;
    });
  };
  EXPECT_TRUE(refuses_four_stages("megatron"));
  EXPECT_FALSE(refuses_four_stages("fsdp2")) << "its stages need not be even";
  const LayoutSpace batch = space_of(small_llama(4), 4, 3, "fsdp2");
  EXPECT_TRUE(batch.refused.contains({"`global_batch` is not a multiple of the data parallel ranks", Rule::batch}));
}

TEST(LayoutSpace, StagesDifferWhereTheFrameworkLetsThem) {
  std::int64_t differ = 0;
  for (const Candidate& candidate : space_of(small_llama(6), 8, 8, "any").candidates) {
    if (candidate.layout.pipeline_parallel != 4) continue;
    EXPECT_EQ(candidate.framework->name, "fsdp2");
    EXPECT_EQ(candidate.layout.virtual_stages, 1);
    ++differ;
  }
  EXPECT_GT(differ, 0) << "6 blocks, embedding and head on 4 stages: 1, 2, 2 and 1 blocks";
}

TEST(LayoutSpace, HasNoMoreRanksThanTheQuestionAllows) {
  const model::TrainingJob job = small_gpt(8, R"(, "num_experts": 4, "moe_router_topk": 2)");
  const MostRanks most = {.tensor_parallel = 2, .context_parallel = 1, .pipeline_parallel = 4, .expert_parallel = 2};
  std::set<std::int64_t> tensor;
  std::set<std::int64_t> pipeline;
  std::set<std::int64_t> experts;
  for (const Candidate& candidate : space_of(job, 16, 16, "megatron", most).candidates) {
    EXPECT_EQ(beyond(most, candidate.layout), "");
    EXPECT_EQ(candidate.layout.context_parallel, 1);
    tensor.insert(candidate.layout.tensor_parallel);
    pipeline.insert(candidate.layout.pipeline_parallel);
    experts.insert(candidate.layout.expert_parallel);
  }
  EXPECT_EQ(tensor, (std::set<std::int64_t>{1, 2}));
  EXPECT_EQ(pipeline, (std::set<std::int64_t>{1, 2, 4}));
  EXPECT_EQ(experts, (std::set<std::int64_t>{1, 2}));
}

TEST(LayoutSpace, SharesExpertsUnderFsdp2AsTorchtitanDoes) {
  const model::TrainingJob job = small_gpt(8, R"(, "num_experts": 4, "moe_router_topk": 2)");
  std::int64_t shared = 0;
  for (const Candidate& candidate : space_of(job, 8, 16, "fsdp2").candidates) {
    const model::Layout& layout = candidate.layout;
    if (layout.expert_parallel == 1) continue;
    ++shared;
    EXPECT_EQ(layout.expert_parallel % layout.context_parallel, 0);
    const bool groups = layout.sharding.kind == Shardings::hsdp;
    EXPECT_EQ((groups ? layout.sharding.count : parallel::sharing_ranks(layout)) % layout.expert_parallel, 0);
  }
  EXPECT_GT(shared, 0);
}

TEST(LayoutSpace, OfAModelThatRanksCannotShareHasDataParallelRanksAlone) {
  model::TrainingJob job = small_llama(4);
  job.lora = 4;
  job.quantize = model::Quantization::nf4;
  const LayoutSpace space = space_of(job, 4, 8, "any");
  EXPECT_FALSE(space.candidates.empty());
  for (const Candidate& candidate : space.candidates) EXPECT_EQ(candidate.layout.data_parallel, 4);
}

TEST(LayoutSpace, GroupsThatShardAreHeldToAShardingOverAllRanks) {
  const LayoutSpace space = space_of(small_llama(4), 8, 8, "fsdp2");
  for (const Candidate& candidate : space.candidates) {
    EXPECT_EQ(candidate.family == candidate.least_family, candidate.layout.sharding.kind == Shardings::fsdp2);
  }
}

TEST(LayoutSpace, MicroBatchesAloneMakeNoOtherFamily) {
  const LayoutSpace space = space_of(small_llama(4), 1, 8, "deepspeed");
  for (const Candidate& left : space.candidates) {
    for (const Candidate& right : space.candidates) {
      const bool same =
          left.layout == right.layout && left.micro_batch.checkpointing == right.micro_batch.checkpointing;
      EXPECT_EQ(left.family == right.family, same);
    }
  }
}

}  // namespace
}  // namespace gpumem::search
