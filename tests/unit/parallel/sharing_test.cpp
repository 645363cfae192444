#include "gpumem/parallel/sharing.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "small_transformers.hpp"

namespace gpumem::parallel {
namespace {

using core::ErrorCode;
using model::Offload;
using model::Precision;
using model::Shardings;
using model::TrainingJob;
using testing::fails;
using testing::succeeds;

TrainingJob job_on(std::int64_t ranks, const model::Sharding& sharding, Precision precision = Precision::bf16_mixed) {
  TrainingJob job;
  job.batch_size = 1;
  job.layout.data_parallel = ranks;
  job.layout.sharding = sharding;
  job.precision = precision;
  return job;
}

Sharing of(const TrainingJob& job) {
  const auto sharing = sharing_of(job);
  EXPECT_TRUE(succeeds(sharing));
  return sharing ? *sharing : Sharing();
}

/// Over how many ranks parameters, gradients and states are cut, by the papers of each.
TEST(Sharing, CutsWhatItsNameSays) {
  struct Case {
    model::Sharding sharding;
    std::int64_t parameters, gradients, states;
  };
  for (const Case& one :
       {Case{{Shardings::none, 0}, 1, 1, 1}, Case{{Shardings::ddp, 0}, 1, 1, 1}, Case{{Shardings::fsdp1, 0}, 8, 8, 8},
        Case{{Shardings::fsdp2, 0}, 8, 8, 8}, Case{{Shardings::hsdp, 2}, 2, 2, 2},
        Case{{Shardings::zero_1, 0}, 1, 1, 8}, Case{{Shardings::zero_2, 0}, 1, 8, 8},
        Case{{Shardings::zero_3, 0}, 8, 8, 8}, Case{{Shardings::distributed_optimizer, 0}, 1, 1, 8}}) {
    const Sharing sharing = of(job_on(8, one.sharding));
    EXPECT_EQ(sharing.parameter_ranks, one.parameters);
    EXPECT_EQ(sharing.gradient_ranks, one.gradients);
    EXPECT_EQ(sharing.state_ranks, one.states);
  }
}

TEST(Sharing, ShardsInFloat32AreTheMasters) {
  for (const Shardings kind : {Shardings::fsdp1, Shardings::fsdp2}) {
    const Sharing mixed = of(job_on(8, {kind, 0}));
    EXPECT_TRUE(mixed.float32_shards);
    EXPECT_FALSE(mixed.masters);
    EXPECT_FALSE(of(job_on(8, {kind, 0}, Precision::bf16)).float32_shards);
  }
  EXPECT_TRUE(of(job_on(8, {Shardings::zero_2, 0}, Precision::fp32)).masters) << "DeepSpeed clones its partition";
  EXPECT_TRUE(of(job_on(8, {Shardings::distributed_optimizer, 0})).masters);
  EXPECT_FALSE(of(job_on(8, {Shardings::distributed_optimizer, 0})).gradients_copied) << "the buffer is float32";
}

TEST(Sharing, WhatStaysAfterForwardIsFullyShards) {
  TrainingJob job = job_on(8, {Shardings::fsdp2, 0});
  EXPECT_EQ(of(job).kept_over, 0);
  job.layout.pipeline_parallel = 2;
  EXPECT_EQ(of(job).kept_over, 1) << "torchtitan gathers a stage once a step";
  job.layout.reshard_after_forward.kind = model::Reshard::always;
  EXPECT_EQ(of(job).kept_over, 0);
  job.layout.pipeline_parallel = 1;
  job.layout.reshard_after_forward = {model::Reshard::within, 3};
  EXPECT_TRUE(fails(sharing_of(job), ErrorCode::invalid_argument, 0,
                    "divides the 8 ranks that share parameters, and is 3; say `reshard_after_forward=2`"));
  job.layout.reshard_after_forward.count = 4;
  EXPECT_EQ(of(job).kept_over, 4);
  job.layout.tensor_parallel = 2;
  EXPECT_TRUE(fails(sharing_of(job), ErrorCode::invalid_argument, 0, "does not cut tensor parallel parameters"));
  job.layout.sharding.kind = Shardings::ddp;
  EXPECT_TRUE(fails(sharing_of(job), ErrorCode::invalid_argument, 0, "fully_shard()'s; say `sharding=fsdp2`"));
}

TEST(Sharing, TorchtitanShardsTheEndsApart) {
  TrainingJob job = job_on(8, {Shardings::hsdp, 4});
  EXPECT_FALSE(of(job).ends_apart);
  job.loop = model::Loop::torchtitan;
  EXPECT_TRUE(of(job).ends_apart);
  EXPECT_EQ(of(job).end_kept_over, 1) << "norm and head stay";
  job.layout.reshard_after_forward.kind = model::Reshard::always;
  EXPECT_EQ(of(job).end_kept_over, 0);
}

TEST(Sharing, CopiesThatTrainApartAreTorchfts) {
  TrainingJob job = job_on(8, {Shardings::fsdp2, 0});
  job.layout.semi_sync = {model::SemiSync::diloco, 2};
  EXPECT_TRUE(succeeds(sharing_of(job)));
  job.layout.pipeline_parallel = 2;
  EXPECT_TRUE(fails(sharing_of(job), ErrorCode::invalid_argument, 0, "`semi_sync` in a pipeline"));
  job.layout.pipeline_parallel = 1;
  job.layout.sharding.kind = Shardings::zero_1;
  EXPECT_TRUE(fails(sharing_of(job), ErrorCode::invalid_argument, 0, "is torchft's"));
}

TEST(Sharing, GatheringInEightBitsIsFsdp2s) {
  TrainingJob job = job_on(8, {Shardings::fsdp2, 0});
  job.quantize = model::Quantization::float8_gather;
  EXPECT_TRUE(of(job).gathers_float8);
  job.layout.sharding.kind = Shardings::fsdp1;
  EXPECT_TRUE(fails(sharing_of(job), ErrorCode::invalid_argument, 0, "weights that FSDP2 gathers"));
}

TEST(Sharing, SpansContextParallelRanks) {
  TrainingJob job = job_on(4, {Shardings::distributed_optimizer, 0});
  job.layout.context_parallel = 2;
  EXPECT_EQ(of(job).state_ranks, 8);
}

TEST(Sharing, OneRankShardsNothingUnderFsdp1) {
  const Sharing alone = of(job_on(1, {Shardings::fsdp1, 0}));
  EXPECT_EQ(alone.gather, Gather::never);
  EXPECT_TRUE(alone.masters);
}

TEST(Sharing, WhatIsNotModelledIsRefusedWithTheRule) {
  for (const Shardings kind :
       {Shardings::zero_1, Shardings::zero_2, Shardings::zero_3, Shardings::distributed_optimizer}) {
    EXPECT_TRUE(fails(sharing_of(job_on(8, {kind, 0}, Precision::amp_bf16)), ErrorCode::invalid_argument, 0,
                      "keeps float32 masters; say `precision=bf16-mixed`"));
  }
  TrainingJob away = job_on(1, {Shardings::none, 0});
  away.offload = Offload::parameters;
  EXPECT_TRUE(fails(sharing_of(away), ErrorCode::invalid_argument, 0, "`offload=parameters` is FSDP's CPU offload"));
  away.layout.data_parallel = 2;
  away.layout.sharding = {Shardings::ddp, 0};
  EXPECT_TRUE(fails(sharing_of(away), ErrorCode::invalid_argument, 0, "has none that is modelled"));
  away.layout.sharding.kind = Shardings::zero_2;
  away.precision = Precision::bf16_mixed;
  EXPECT_TRUE(fails(sharing_of(away), ErrorCode::invalid_argument, 0, "and ZeRO-3's; `sharding=zero-2` has none"));
  away.layout.sharding.kind = Shardings::zero_3;
  EXPECT_TRUE(of(away).on_host && of(away).shares_on_host);
  away.layout.sharding.kind = Shardings::ddp;
  away.offload = Offload::ramtorch;
  EXPECT_TRUE(testing::succeeds(sharing_of(away))) << "each rank streams whole weights";
  away.offload = Offload::ramtorch_blocks;
  away.layout.tensor_parallel = 2;
  EXPECT_TRUE(
      fails(sharing_of(away), ErrorCode::invalid_argument, 0,
            "`offload=ramtorch-blocks` keeps whole weights in the host's memory, and is not modelled where GPUs "
            "share them; leave out `tensor_parallel`, or"));
  away.layout.tensor_parallel = 1;
  away.layout.pipeline_parallel = 2;
  EXPECT_TRUE(fails(sharing_of(away), ErrorCode::invalid_argument, 0, "leave out `pipeline_parallel`, or"));
  away.layout.pipeline_parallel = 1;
  away.layout.sharding = {Shardings::fsdp2, 0};
  EXPECT_TRUE(fails(sharing_of(away), ErrorCode::invalid_argument, 0, "say `sharding=ddp`, or"));
  TrainingJob staged = job_on(1, {Shardings::none, 0});
  staged.activation_checkpointing = true;
  staged.checkpoints.host_attention = model::HostAttention::module;
  EXPECT_TRUE(testing::succeeds(sharing_of(staged)));
  staged.layout.pipeline_parallel = 2;
  EXPECT_TRUE(fails(sharing_of(staged), ErrorCode::invalid_argument, 0, "in the stages of a pipeline"));
}

TEST(Sharing, IsToldInWords) {
  EXPECT_EQ(sharing_text(job_on(8, {Shardings::zero_2, 0})), "sharded: gradients over 8 ranks, states over 8 ranks");
  EXPECT_EQ(sharing_text(job_on(8, {Shardings::ddp, 0})), "nothing is sharded");
  EXPECT_EQ(sharing_text(job_on(1, {Shardings::none, 0})), "");
}

TEST(Sharing, SeveralDistributedOptimizersCutTheirStatesOverFewerRanks) {
  const auto state_ranks = [](std::string_view more, std::int64_t data_parallel) {
    model::TrainingJob job = testing::small_gpt(2, more);
    job.loop = model::Loop::megatron;
    job.layout = {.data_parallel = data_parallel, .sharding = {model::Shardings::distributed_optimizer, 0}};
    const auto sharing = sharing_of(job);
    EXPECT_TRUE(testing::succeeds(sharing));
    return sharing ? sharing->state_ranks : 0;
  };
  EXPECT_EQ(state_ranks("", 8), 8);
  EXPECT_EQ(state_ranks(R"(, "num_distributed_optimizer_instances": 2)", 8), 4);
  EXPECT_EQ(state_ranks(R"(, "num_distributed_optimizer_instances": 2)", 2), 1);
  EXPECT_EQ(state_ranks(R"(, "num_distributed_optimizer_instances": 4)", 2), 1) << "each rank has all of its own";
}

}  // namespace
}  // namespace gpumem::parallel
