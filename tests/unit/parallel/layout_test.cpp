#include "gpumem/parallel/sharing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "expect.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/rank_graph.hpp"

namespace gpumem::parallel {
namespace {

using core::ErrorCode;
using model::Layout;
using model::Ranks;
using model::Schedule;
using model::Shardings;
using model::TrainingJob;
using testing::fails;
using testing::succeeds;

TrainingJob job_with(const std::function<void(Layout&)>& change) {
  TrainingJob job;
  job.batch_size = 1;
  change(job.layout);
  return job;
}

TEST(Layout, TheWorldIsTheProductOfItsGroups) {
  Layout layout;
  EXPECT_EQ(*world_size(layout), 1);
  EXPECT_TRUE(on_one_gpu(layout));
  layout.data_parallel = 4;
  layout.tensor_parallel = 8;
  layout.pipeline_parallel = 2;
  layout.context_parallel = 3;
  layout.expert_parallel = 4;
  EXPECT_EQ(*world_size(layout), 192) << "experts are shared by the ranks that there are";
  EXPECT_EQ(sharing_ranks(layout), 12);
  EXPECT_FALSE(on_one_gpu(layout));
  layout.data_parallel = std::int64_t{1} << 62;
  EXPECT_TRUE(fails(world_size(layout), ErrorCode::overflow, 0, "more ranks than can be counted"));
}

TEST(Layout, OneGpuIsALayoutToo) {
  EXPECT_TRUE(succeeds(check(job_with([](Layout&) {}))));
  EXPECT_TRUE(succeeds(check_one_gpu(job_with([](Layout&) {}), "replay")));
  for (const auto& row : model::kShardings) {  // a trainer's file names one and not how many GPUs there are
    EXPECT_TRUE(succeeds(check(job_with([&](Layout& of) { of.sharding = {row.value, 1}; })))) << row.name;
  }
}

TEST(Layout, ThatCannotBeIsRefusedWithTheRule) {
  struct Case {
    std::function<void(Layout&)> change;
    const char* rule;
  };
  const std::vector<Case> cases = {
      {[](Layout& of) {
         of.data_parallel = 8;
         of.sharding = {Shardings::hsdp, 3};
       },
       "`sharding=hsdp:3` cuts parameters within groups of 3 ranks, and 8 ranks are not a multiple of "
       "that; say `sharding=fsdp2`"},
      {[](Layout& of) { of.sequence_parallel = true; }, "`sequence_parallel` splits what tensor parallel ranks"},
      {[](Layout& of) { of.virtual_stages = 2; }, "`virtual_stages` needs a pipeline"},
      {[](Layout& of) { of.schedule = Schedule::gpipe; }, "`schedule` is a pipeline's"},
      {[](Layout& of) {
         of.pipeline_parallel = 2;
         of.virtual_stages = 2;
       },
       "`virtual_stages` needs `schedule=interleaved-1f1b`"},
      {[](Layout& of) {
         of.pipeline_parallel = 2;
         of.schedule = Schedule::interleaved;
       },
       "needs two stages a rank or more"},
      {[](Layout& of) {
         of.pipeline_parallel = 2;
         of.virtual_stages = 2;
         of.schedule = Schedule::interleaved;
       },
       "a multiple of `pipeline_parallel`"},
      {[](Layout& of) {
         of.data_parallel = 4;
         of.expert_parallel = 3;
       },
       "`expert_parallel=3` must divide the 4 ranks of a pipeline stage (data x tensor x context parallel); say "
       "`expert_parallel=1`"},
      {[](Layout& of) {
         of.rank = {Ranks::one, 1};
       },
       "there is no rank 1 among 1; ranks count from 0: say `rank=0` for the last one"},
  };
  for (const Case& one : cases) {
    EXPECT_TRUE(fails(check(job_with(one.change)), ErrorCode::invalid_argument, 0, one.rule));
    EXPECT_TRUE(fails(check_modelled(job_with(one.change), "replay"), ErrorCode::invalid_argument, 0, one.rule));
  }
}

TEST(Layout, NoMethodGivesOneGpusAnswerForAnother) {
  const std::vector<std::pair<std::function<void(Layout&)>, const char*>> splits = {
      {[](Layout& of) { of.tensor_parallel = 2; }, "`tensor_parallel=2`"},
      {[](Layout& of) { of.pipeline_parallel = 2; }, "`pipeline_parallel=2`"},
      {[](Layout& of) { of.context_parallel = 2; }, "`context_parallel=2`"},
      {[](Layout& of) {
         of.data_parallel = 2;
         of.expert_parallel = 2;
       },
       "`expert_parallel=2`"},
      {[](Layout& of) {
         of.data_parallel = 2;
         of.sharding = {Shardings::zero_3, 0};
       },
       "`sharding=zero-3`"},
  };
  for (const auto& [change, option] : splits) {
    const std::string words = std::string("horus does not model ") + option;
    EXPECT_TRUE(fails(check_one_gpu(job_with(change), "horus"), ErrorCode::invalid_argument, 0, words));
    EXPECT_TRUE(fails(check_data_parallel(job_with(change), "horus"), ErrorCode::invalid_argument, 0, words));
  }
  const TrainingJob replicas = job_with([](Layout& of) { of.data_parallel = 8; });
  EXPECT_TRUE(succeeds(check_data_parallel(replicas, "zero-2")));
  const char* const words = "is for one GPU, not for 8 in data parallel";
  EXPECT_TRUE(fails(check_one_gpu(replicas, "horus"), ErrorCode::invalid_argument, 0, words));
  EXPECT_TRUE(fails(check_modelled(replicas, "replay"), ErrorCode::invalid_argument, 0, words));
}

TEST(Layout, CountsAreThoseOfAClusterThatCanBe) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  for (std::int64_t Layout::*count : {&Layout::data_parallel, &Layout::tensor_parallel, &Layout::pipeline_parallel,
                                      &Layout::virtual_stages, &Layout::context_parallel, &Layout::expert_parallel}) {
    for (const std::int64_t wrong : {kHuge, std::int64_t{0}, std::int64_t{-1}}) {
      const TrainingJob job = job_with([&](Layout& of) { of.*count = wrong; });
      EXPECT_TRUE(fails(check(job), ErrorCode::invalid_argument, 0, "a layout counts from 1 to 1048576"));
      EXPECT_TRUE(fails(check_one_gpu(job, "horus"), ErrorCode::invalid_argument, 0, "a layout counts"));
    }
  }
}

TEST(Layout, GpipeIsBoundedByWhatItKeeps) {
  TrainingJob job = job_with([](Layout& of) {
    of.pipeline_parallel = 2;
    of.schedule = Schedule::gpipe;
  });
  job.gradient_accumulation = 4096;
  EXPECT_TRUE(succeeds(check(job)));
  job.gradient_accumulation = 4097;
  EXPECT_TRUE(fails(check(job), ErrorCode::invalid_argument, 0, "keeps every micro-batch"));
}

TEST(Layout, CombinationsThatNoPlanFollowsAreRefused) {
  TrainingJob job = job_with([](Layout& of) { of.pipeline_parallel = 2; });
  job.prefetch = true;
  EXPECT_TRUE(fails(check_modelled(job, "replay"), ErrorCode::invalid_argument, 0, "`prefetch` in a pipeline"));
  job.prefetch = false;
  job.batch_lengths = model::BatchLengths::longest_first;
  EXPECT_TRUE(fails(check_modelled(job, "replay"), ErrorCode::invalid_argument, 0, "`batch_lengths` in a pipeline"));
  TrainingJob experts = job_with([](Layout& of) {
    of.data_parallel = 8;
    of.expert_parallel = 8;
    of.sharding = {Shardings::fsdp1, 0};
  });
  EXPECT_TRUE(fails(check_modelled(experts, "replay"), ErrorCode::invalid_argument, 0,
                    "`expert_parallel=8` cannot be combined with `sharding=fsdp1`"));
  experts.layout.sharding.kind = Shardings::fsdp2;
  EXPECT_TRUE(succeeds(check_modelled(experts, "replay")));
}

TEST(Layout, UpdatesInBackwardNeedStepsOfOnePass) {
  TrainingJob job = job_with([](Layout& of) { of.data_parallel = 2; });
  job.optimizer_in_backward = true;
  job.layout.sharding.kind = Shardings::fsdp2;
  EXPECT_TRUE(succeeds(check_modelled(job, "replay")));
  job.gradient_accumulation = 2;
  EXPECT_TRUE(fails(check_modelled(job, "replay"), ErrorCode::invalid_argument, 0, "`accumulate`"));
  job.gradient_accumulation = 1;
  job.layout.sharding.kind = Shardings::ddp;
  EXPECT_TRUE(fails(check_modelled(job, "replay"), ErrorCode::invalid_argument, 0, "say `sharding=fsdp2`"));
}

TEST(Layout, LayersOfStagesAreAPipelines) {
  TrainingJob job = job_with([](Layout& of) { of.pipeline_layers = "?"; });
  EXPECT_TRUE(fails(check(job), ErrorCode::invalid_argument, 0, "'?'"));
  job.layout.pipeline_parallel = 2;
  EXPECT_TRUE(fails(check(job), ErrorCode::invalid_argument, 0, "Megatron's layout"));
  job.layout.pipeline_layers = "3,4";
  EXPECT_TRUE(succeeds(check(job)));
  job.layout.pipeline_parallel = 1;
  job.layout.pipeline_layers.clear();
  job.layout.first_stage_layers = 3;
  EXPECT_TRUE(fails(check(job), ErrorCode::invalid_argument, 0, "a pipeline's"));
  job.layout.pipeline_parallel = 2;
  EXPECT_TRUE(succeeds(check(job)));
  job.layout.pipeline_layers = "3,4";
  EXPECT_TRUE(fails(check(job), ErrorCode::invalid_argument, 0, "leave out"));
  std::string nothings;
  for (int at = 0; at < 10000; ++at) nothings += "()*1048576";
  EXPECT_FALSE(layers_of_stages(nothings)) << "and at once";
}

TEST(Layout, SchedulesHaveRulesOfTheirOwn) {
  using model::Schedule;
  TrainingJob job = job_with([](Layout& of) {
    of.pipeline_parallel = 4;
    of.schedule = Schedule::zero_bubble_v;
  });
  job.gradient_accumulation = 8;
  EXPECT_TRUE(fails(check(job), ErrorCode::invalid_argument, 0, "say `virtual_stages=2`"));
  job.layout.virtual_stages = 3;
  EXPECT_TRUE(fails(check(job), ErrorCode::invalid_argument, 0, "two stages a rank"));
  job.layout.virtual_stages = 2;
  EXPECT_TRUE(succeeds(check(job)));
  job.layout.schedule = Schedule::dual_pipe_v;
  EXPECT_TRUE(succeeds(check(job)));
  job.gradient_accumulation = 7;
  EXPECT_TRUE(fails(check(job), ErrorCode::invalid_argument, 0, "`accumulate=8`"));
  job.gradient_accumulation = 8;
  job.activation_checkpointing = true;
  EXPECT_TRUE(fails(check_modelled(job, "replay"), ErrorCode::invalid_argument, 0, "interleaved-1f1b"));
  job.layout.schedule = Schedule::looped_bfs;
  EXPECT_TRUE(succeeds(check_modelled(job, "replay")));
  job.loop = model::Loop::megatron;
  EXPECT_TRUE(fails(check(job), ErrorCode::invalid_argument, 0, "Megatron-LM has no"));
}

TEST(Layout, DeepSpeedsPipelinesShareStatesAtMost) {
  TrainingJob job = job_with([](Layout& of) {
    of.pipeline_parallel = 2;
    of.data_parallel = 2;
    of.sharding.kind = Shardings::zero_2;
  });
  EXPECT_TRUE(fails(check(job), ErrorCode::invalid_argument, 0, "say `sharding=zero-1`"));
  job.layout.sharding.kind = Shardings::zero_1;
  EXPECT_TRUE(succeeds(check(job)));
  job.layout.sharding.kind = Shardings::zero_3;
  job.loop = model::Loop::megatron;
  EXPECT_TRUE(succeeds(check(job))) << "Megatron-FSDP's";
}

TEST(Layout, ExpertsGetAsManyTokensAsTheRouterLetsThem) {
  TrainingJob job;
  EXPECT_EQ(most_routed(job), 1.5) << "nothing bounds it";
  EXPECT_NE(routing_text(job).find("half as many again"), std::string::npos);
  job.layout.expert_imbalance = 1.25;
  EXPECT_EQ(most_routed(job), 1.25);
  EXPECT_NE(routing_text(job).find("25 % more, as the job says"), std::string::npos);
  job.layout.expert_imbalance = 1.0;
  EXPECT_EQ(routing_text(job), "each expert gets the same number of tokens");
}

TEST(Layout, SequencesAreMultiplesOfWhatRanksShare) {
  Layout layout;
  EXPECT_EQ(tokens_multiple(layout), 1);
  layout.context_parallel = 4;
  EXPECT_EQ(tokens_multiple(layout), 8);
  layout.tensor_parallel = 2;
  EXPECT_EQ(tokens_multiple(layout), 8);
  layout.sequence_parallel = true;
  EXPECT_EQ(tokens_multiple(layout), 16);
}

TEST(Layout, APipelineMayKeepResultsOfCheckpointing) {
  TrainingJob job = job_with([](Layout& of) { of.pipeline_parallel = 2; });
  job.activation_checkpointing = true;
  EXPECT_TRUE(succeeds(check_modelled(job, "replay")));
  job.checkpoints.kind = model::Checkpoints::selective_op;
  EXPECT_TRUE(succeeds(check_modelled(job, "replay")));
}

using Groups = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// The ranks and the peers of each communicator, in order.
Groups groups_of(const TrainingJob& job) {
  Groups groups;
  for (const RankGroup& group : communicators(job)) groups.emplace_back(group.ranks, group.peers);
  std::ranges::sort(groups);
  return groups;
}

TEST(Layout, OnlyJobsOfSeveralGpusHaveCommunicators) {
  EXPECT_EQ(groups_of(job_with([](Layout&) {})), Groups{});
  TrainingJob pipeline = job_with([](Layout& of) { of.pipeline_parallel = 2; });
  EXPECT_EQ(groups_of(pipeline), (Groups{{2, 0}, {2, 1}}));
  pipeline.loop = model::Loop::hf_trainer;
  EXPECT_EQ(groups_of(pipeline), Groups{}) << "one process (device_map)";
  pipeline.layout.data_parallel = 2;
  EXPECT_EQ(groups_of(pipeline), (Groups{{2, 0}})) << "two of them";
}

TEST(Layout, AMeshOfOneDimensionUsesTheDefaultGroup) {
  const auto sharded = [](Shardings kind, std::int64_t tensor_ranks) {
    return groups_of(job_with([&](Layout& of) {
      of.data_parallel = 8;
      of.tensor_parallel = tensor_ranks;
      of.sharding = {kind, kind == Shardings::hsdp ? 4 : 0};
    }));
  };
  EXPECT_EQ(sharded(Shardings::fsdp2, 1), (Groups{{8, 0}}));
  EXPECT_EQ(sharded(Shardings::zero_3, 1), (Groups{{8, 0}, {8, 0}})) << "DeepSpeed copies it";
  EXPECT_EQ(sharded(Shardings::fsdp2, 2), (Groups{{2, 0}, {8, 0}, {16, 0}}));
  EXPECT_EQ(sharded(Shardings::hsdp, 1), (Groups{{2, 0}, {4, 0}, {8, 0}})) << "two ranks have the same shard";
}

TEST(Layout, GroupsOfWholeNodesHaveTheirRanksApart) {
  TrainingJob job = job_with([](Layout& of) {
    of.data_parallel = 8;
    of.tensor_parallel = 8;
    of.pipeline_parallel = 8;
  });
  job.loop = model::Loop::megatron;
  std::vector<std::pair<std::int64_t, std::int64_t>> apart;
  for (const RankGroup& group : communicators(job)) apart.emplace_back(group.ranks, group.apart);
  // All of them; tensor, data and pipeline parallel ranks; a model's.
  EXPECT_EQ(apart, (Groups{{512, 1}, {8, 1}, {8, 8}, {8, 64}, {64, 1}}));
}

TEST(Layout, MegatronHasAGroupForEachPurpose) {
  TrainingJob job = job_with([](Layout& of) {
    of.data_parallel = 2;
    of.tensor_parallel = 4;
    of.sharding.kind = Shardings::distributed_optimizer;
  });
  job.loop = model::Loop::megatron;
  // The default group and that of norms; tensor parallel ranks and a model's ranks; those that share states.
  EXPECT_EQ(groups_of(job), (Groups{{2, 0}, {4, 0}, {4, 0}, {8, 0}, {8, 0}}));
  job.layout.expert_parallel = 4;
  // Experts: tokens go from each rank to each, their counts to all; two ranks hold the same experts.
  EXPECT_EQ(groups_of(job), (Groups{{2, 0}, {2, 0}, {4, 0}, {4, 0}, {4, 0}, {4, 3}, {8, 0}, {8, 0}}));
}

TEST(Layout, ShardingsHaveTheirOptionsNames) {
  EXPECT_EQ(name_of({Shardings::distributed_optimizer, 0}), "distributed-optimizer");
  EXPECT_EQ(name_of({Shardings::hsdp, 16}), "hsdp:16");
}

}  // namespace
}  // namespace gpumem::parallel
