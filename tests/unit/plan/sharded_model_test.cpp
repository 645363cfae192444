#include "gpumem/plan/sharded_model.hpp"

#include <algorithm>

#include "expect.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "plans.hpp"

namespace gpumem::plan {
namespace {

using model::Shardings;
using testing::Live;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

TrainingJob gpt(const model::Sharding& sharding, std::int64_t ranks, Precision precision = Precision::fp32) {
  TrainingJob job(*read_summary(GPUMEM_SOURCE_DIR "/models/graphs/gpt_like.json"), 2);
  job.sequence_length = 64;
  job.optimizer = Optimizer::adam;
  job.zero_grad = model::ZeroGrad::step_end;
  job.precision = precision;
  job.layout.data_parallel = ranks;
  job.layout.sharding = sharding;
  return job;
}

/// What is live after the last event.
Live left_of(const StepPlan& plan) {
  Live live(plan);
  for (const Event& event : plan.events) live.apply(event);
  return live;
}

/// Trained elements, each tied one once.
std::int64_t parameters_of(const testing::Planned& planned) {
  std::int64_t sum = 0;
  for (const auto& parameter : planned.pass.tape.parameters()) {
    if (!parameter.tied) sum += planned.pass.tape.tensor(parameter.tensor).size.elements.value().value_or(0);
  }
  return sum;
}

/// The most that is live of a category.
std::int64_t most_of(const StepPlan& plan, Category category) {
  Live live(plan);
  std::int64_t most = 0;
  for (const Event& event : plan.events) {
    live.apply(event);
    most = std::max(most, live.of(category));
  }
  return most;
}

TEST(ShardedModel, LeavesNothingOfAStepBehind) {
  for (const Shardings kind : {Shardings::ddp, Shardings::fsdp1, Shardings::fsdp2, Shardings::hsdp, Shardings::zero_1,
                               Shardings::zero_2, Shardings::zero_3, Shardings::distributed_optimizer}) {
    for (const bool checkpoints : {false, true}) {
      for (const std::int64_t passes : {1, 3}) {
        TrainingJob job = gpt({kind, 2}, 4);
        job.activation_checkpointing = checkpoints;
        if (passes > 1) job.checkpoints.reentrance = model::Reentrance::on;
        job.gradient_accumulation = passes;
        const StepPlan plan = testing::planned(job).plan;
        const Live left = left_of(plan);
        EXPECT_EQ(left.of(Category::gathered), 0) << parallel::name_of({kind, 2});
        EXPECT_EQ(left.of(Category::activation_gradient), 0);
        EXPECT_EQ(left.of(Category::temporary), 0);
        EXPECT_EQ(testing::bytes_of(plan, 1).left, testing::bytes_of(plan, 2).left) << "steps repeat";
      }
    }
  }
}

TEST(ShardedModel, EachRankHoldsItsShareOfEverything) {
  for (const Shardings kind : {Shardings::fsdp1, Shardings::fsdp2}) {
    TrainingJob job = gpt({kind, 0}, 8);
    job.zero_grad = model::ZeroGrad::before_forward;
    const testing::Planned planned = testing::planned(job);
    const std::int64_t share = parameters_of(planned) * 4 / 8;
    const Live left = left_of(planned.plan);
    // Each parameter is padded to a multiple of the ranks.
    const auto padding = static_cast<double>(planned.pass.tape.parameters().size() * 8 * 4);
    EXPECT_NEAR(static_cast<double>(left.of(Category::parameter)), static_cast<double>(share), padding);
    EXPECT_NEAR(static_cast<double>(left.of(Category::optimizer)), 2.0 * static_cast<double>(share), 2.0 * padding);
    EXPECT_NEAR(static_cast<double>(left.of(Category::gradient)), static_cast<double>(share), padding);
  }
}

TEST(ShardedModel, NotAllUnitsAreGatheredAtOnce) {
  const testing::Planned planned = testing::planned(gpt({Shardings::fsdp2, 0}, 8));
  const std::int64_t gathered = most_of(planned.plan, Category::gathered);
  EXPECT_GT(gathered, 0);
  const Live left = left_of(testing::planned(gpt({Shardings::none, 0}, 1)).plan);
  EXPECT_LT(gathered, left.of(Category::parameter));
}

/// Bytes of gathered parameters when the second step's backward begins.
std::int64_t gathered_before_backward(const TrainingJob& job) {
  const StepPlan plan = testing::planned(job).plan;
  Live live(plan);
  for (std::size_t at = 0; at < plan.events.size(); ++at) {
    if (plan.phase_of(at).phase == Phase::backward && plan.phase_of(at).step == 2) break;
    live.apply(plan.events[at]);
  }
  return live.of(Category::gathered);
}

TEST(ShardedModel, BetweenForwardAndBackwardUnitsStayAsTheJobSays) {
  TrainingJob job = gpt({Shardings::fsdp2, 0}, 8);
  const std::int64_t whole = left_of(testing::planned(gpt({Shardings::none, 0}, 1)).plan).of(Category::parameter);
  const std::int64_t root = gathered_before_backward(job);
  job.layout.reshard_after_forward = {model::Reshard::never, 0};
  const std::int64_t never = gathered_before_backward(job);
  EXPECT_GE(never, whole) << "padded to a multiple of the ranks";
  EXPECT_LT(never, whole + whole / 50);
  for (const std::int64_t ranks : {2, 4}) {
    job.layout.reshard_after_forward = {model::Reshard::within, ranks};
    const std::int64_t parts = (never - root) / ranks;
    EXPECT_NEAR(static_cast<double>(gathered_before_backward(job)), static_cast<double>(root + parts), 64.0);
  }
  for (const std::int64_t all : {8, 1}) {
    job.layout.reshard_after_forward = {model::Reshard::within, all};
    EXPECT_EQ(gathered_before_backward(job), all == 1 ? never : root) << "fully_shard() takes these for false and true";
  }
}

TEST(ShardedModel, WhateverStaysEndsWithTheStep) {
  for (const model::Reshard kind : {model::Reshard::always, model::Reshard::never, model::Reshard::within}) {
    TrainingJob job = gpt({Shardings::hsdp, 4}, 8, Precision::bf16_mixed);
    job.layout.reshard_after_forward = {kind, kind == model::Reshard::within ? 2 : 0};
    job.gradient_accumulation = 2;
    const StepPlan plan = testing::planned(job).plan;
    EXPECT_EQ(left_of(plan).of(Category::gathered), 0);
    EXPECT_EQ(testing::bytes_of(plan, 1).left, testing::bytes_of(plan, 2).left) << "steps repeat";
  }
}

TEST(ShardedModel, CopiesThatTrainApartKeepAMomentumAndMeetByFragments) {
  TrainingJob job = gpt({Shardings::fsdp2, 0}, 4, Precision::bf16_mixed);
  const testing::Planned alone = testing::planned(job);
  const std::int64_t shards = left_of(alone.plan).of(Category::parameter);
  const std::int64_t states = left_of(alone.plan).of(Category::optimizer);
  job.layout.semi_sync = {model::SemiSync::local_sgd, 0};
  const StepPlan averaged = testing::planned(job).plan;
  EXPECT_EQ(left_of(averaged).of(Category::optimizer), states);
  EXPECT_GE(most_of(averaged, Category::temporary), shards) << "a copy of all";
  job.layout.semi_sync = {model::SemiSync::diloco, 1};
  const StepPlan together = testing::planned(job).plan;
  EXPECT_EQ(left_of(together).of(Category::optimizer), states + shards) << "the outer optimizer's momentum";
  EXPECT_EQ(left_of(together).of(Category::gradient), 0);
  job.layout.semi_sync.count = 3;
  const StepPlan parted = testing::planned(job).plan;
  EXPECT_EQ(left_of(parted).of(Category::optimizer), states + shards);
  EXPECT_LT(most_of(parted, Category::temporary), most_of(together, Category::temporary));
  job.layout.semi_sync.kind = model::SemiSync::streaming_diloco;
  const std::int64_t on_their_way = left_of(testing::planned(job).plan).of(Category::gradient);
  EXPECT_GE(on_their_way, shards / 3) << "the largest fragment's";
  EXPECT_LT(on_their_way, shards);
}

TEST(ShardedModel, MoreFragmentsThanLayersAreRefused) {
  TrainingJob job = gpt({Shardings::fsdp2, 0}, 4);
  job.layout.semi_sync = {model::SemiSync::diloco, 1000};
  analysis::Analysis analysis(job);
  EXPECT_TRUE(testing::fails(analysis.steps(), core::ErrorCode::invalid_argument, 0, "do not make 1000 fragments"));
}

TEST(ShardedModel, BucketsAreAsLargeAsTheGradients) {
  const StepPlan alone = testing::planned(gpt({Shardings::none, 0}, 1)).plan;
  const testing::Planned planned = testing::planned(gpt({Shardings::ddp, 0}, 8));
  EXPECT_EQ(most_of(planned.plan, Category::communication), parameters_of(planned) * 4);
  EXPECT_EQ(planned.plan.peak_bytes, alone.peak_bytes + parameters_of(planned) * 4);
  std::int64_t first = 0;
  for (const Event& event : planned.plan.events) {
    if (event.category != Category::communication || event.kind != Event::Kind::allocate) continue;
    if (first == 0) first = event.bytes;
    EXPECT_GT(event.bytes, 0);
  }
  EXPECT_GE(first, kMiB) << "the first bucket is full with 1 MiB";
}

TEST(ShardedModel, MainGradientsAreFloat32AndStandAllTheTime) {
  const testing::Planned planned =
      testing::planned(gpt({Shardings::distributed_optimizer, 0}, 4, Precision::bf16_mixed));
  const std::int64_t parameters = parameters_of(planned);
  const Live left = left_of(planned.plan);
  EXPECT_EQ(left.of(Category::parameter), 2 * parameters);
  EXPECT_EQ(left.of(Category::gradient), 4 * parameters);
  const auto padding = static_cast<double>(planned.pass.tape.parameters().size() * 12);
  EXPECT_NEAR(static_cast<double>(left.of(Category::optimizer)), 12.0 * static_cast<double>(parameters) / 4, padding);
}

TEST(ShardedModel, WeightsAreThereTwiceWhileTheyMoveIntoTheirBuffer) {
  for (const Shardings kind : {Shardings::distributed_optimizer, Shardings::ddp}) {
    const testing::Planned planned = testing::planned(gpt({kind, 0}, 4, Precision::bf16_mixed));
    Live live(planned.plan);
    std::int64_t beside = 0;  // when the buffer of gradients comes, which is the first of its category
    for (const Event& event : planned.plan.events) {
      live.apply(event);
      if (beside == 0 && live.of(Category::gradient) > 0) beside = live.of(Category::parameter);
    }
    const std::int64_t copies = kind == Shardings::distributed_optimizer ? 2 : 1;
    EXPECT_EQ(beside, copies * 2 * parameters_of(planned)) << parallel::name_of({kind, 0});
  }
}

/// The model's source says it, or the job.
void expect_half_main_gradients(std::string_view of_model, std::string_view of_job) {
  auto graph = architectures::read_config(R"({"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
      "padded_vocab_size": 128, "max_position_embeddings": 32)" +
                                              std::string(of_model) + "}",
                                          ops::vocabulary());
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*std::move(graph), 2);
  job.sequence_length = 32;
  job.precision = Precision::bf16_mixed;
  job.loop = model::Loop::megatron;
  job.layout.data_parallel = 4;
  job.layout.sharding.kind = Shardings::distributed_optimizer;
  job.megatron_options = of_job;
  const testing::Planned planned = testing::planned(job);
  const std::int64_t parameters = parameters_of(planned);
  const Live left = left_of(planned.plan);
  EXPECT_GE(left.of(Category::gradient), 2 * parameters) << "and stand-ins";
  EXPECT_LT(left.of(Category::gradient), 4 * parameters);
  EXPECT_GE(most_of(planned.plan, Category::temporary), 4 * parameters / 4) << "the rank's part, in float32";
}

TEST(ShardedModel, HalfMainGradientsAreCopiedForTheMasters) {
  expect_half_main_gradients(R"(, "grad_reduce_in_bf16": true)", "");
  expect_half_main_gradients("", "grad_reduce_in_bf16");
}

TEST(ShardedModel, ZeroTwoKeepsItsShareOfTheGradientsUntilTheStep) {
  TrainingJob job = gpt({Shardings::zero_2, 0}, 4, Precision::bf16_mixed);
  job.zero_grad = model::ZeroGrad::before_forward;
  const testing::Planned planned = testing::planned(job);
  EXPECT_EQ(left_of(planned.plan).of(Category::gradient), (2 * parameters_of(planned) + 3) / 4);
  EXPECT_EQ(most_of(planned.plan, Category::communication), 1'000'000'000) << "5e8 elements of two bytes";
}

/// What is left of a category under ZeRO with something on the host.
Live with_host(Shardings kind, model::Offload offload) {
  TrainingJob job = gpt({kind, 0}, 4, Precision::bf16_mixed);
  job.zero_grad = model::ZeroGrad::before_forward;
  job.offload = offload;
  job.layout.zero_persistence_threshold = 1000;
  return left_of(testing::planned(job).plan);
}

TEST(ShardedModel, ZeroSendsSharesAndShardsToTheHost) {
  for (const Shardings kind : {Shardings::zero_2, Shardings::zero_3}) {
    EXPECT_GT(with_host(kind, model::Offload::none).of(Category::gradient), 0);
    EXPECT_EQ(with_host(kind, model::Offload::optimizer).of(Category::gradient), 0);
    EXPECT_EQ(with_host(kind, model::Offload::optimizer).of(Category::optimizer), 0);
  }
  const std::int64_t here = with_host(Shardings::zero_3, model::Offload::optimizer).of(Category::parameter);
  const std::int64_t persistent = with_host(Shardings::zero_3, model::Offload::parameters).of(Category::parameter);
  EXPECT_GT(persistent, 0) << "small parameters stay whole on the GPU";
  EXPECT_LT(persistent, here / 4);
}

/// A net of fewer elements than the reuse distance stays gathered from forward to backward.
TEST(ShardedModel, ZeroThreeGathersLayerByLayerAndItsBuffersStand) {
  const testing::Planned planned = testing::planned(gpt({Shardings::zero_3, 0}, 4, Precision::bf16_mixed));
  const std::int64_t parameters = parameters_of(planned);
  std::int64_t small = 0;  // 1e5 elements or fewer: these are never given back
  for (const auto& parameter : planned.pass.tape.parameters()) {
    const std::int64_t elements = planned.pass.tape.tensor(parameter.tensor).size.elements.value().value_or(0);
    if (!parameter.tied && elements <= 100'000) small += 2 * elements;
  }
  const Live left = left_of(planned.plan);
  const auto padding = static_cast<double>(2 * planned.pass.tape.parameters().size());
  EXPECT_NEAR(static_cast<double>(left.of(Category::parameter)), static_cast<double>(2 * parameters / 4 + small),
              padding);
  EXPECT_EQ(left.of(Category::gradient), (2 * parameters + 3) / 4);
  EXPECT_EQ(left.of(Category::communication), 1'000'000'000);
  EXPECT_LE(most_of(planned.plan, Category::gathered), 2 * parameters);
}

/// What is live of gradients on their way when backward gathers its last unit, the first block; some layers are frozen.
std::int64_t gradients_at_the_last_gather(Shardings kind, const char* frozen) {
  TrainingJob job = gpt({kind, 0}, 4);
  job.activation_checkpointing = true;
  job.loop = model::Loop::hf_trainer;
  job.freeze = frozen;
  analysis::Analysis analysis(job);
  const auto steps = analysis.steps();
  EXPECT_TRUE(testing::succeeds(steps));
  if (!steps) return 0;
  Live live(**steps);
  std::int64_t there = 0;
  for (const Event& event : (*steps)->events) {
    live.apply(event);
    const bool gathers = event.kind == Event::Kind::allocate && event.category == Category::gathered;
    if (gathers) there = live.of(Category::activation_gradient);
  }
  EXPECT_EQ(live.of(Category::activation_gradient), 0);
  return there;
}

TEST(ShardedModel, FrozenUnitsOfFsdp1KeepTheirInputsGradientsUnderReentrantCheckpointing) {
  constexpr std::int64_t kHidden = 2 * 64 * 768 * 4;
  const std::int64_t trained = gradients_at_the_last_gather(Shardings::fsdp1, "");
  const std::int64_t two_frozen = gradients_at_the_last_gather(Shardings::fsdp1, "blocks.2,blocks.3");
  EXPECT_EQ(two_frozen, trained + 2 * kHidden) << "one input a unit";
  EXPECT_EQ(gradients_at_the_last_gather(Shardings::fsdp1, "*.bias"), trained) << "a flat parameter trained in part";
  EXPECT_EQ(gradients_at_the_last_gather(Shardings::fsdp2, "blocks.2,blocks.3"),
            gradients_at_the_last_gather(Shardings::fsdp2, ""));
}

/// PyTorch before 2.10: by the time that the first block's backward runs, all others are gathered once more.
TEST(ShardedModel, ReentrantCheckpointsUnderFullyShardGatherEndedBlocksAgain) {
  constexpr std::int64_t kRanks = 8;
  const auto gathered = [](model::Reentrance reentrance, model::Reshard reshard) {
    TrainingJob job = gpt({Shardings::fsdp2, 0}, kRanks);
    job.activation_checkpointing = true;
    job.checkpoints.reentrance = reentrance;
    job.layout.reshard_after_forward.kind = reshard;
    const StepPlan plan = testing::planned(job).plan;
    EXPECT_EQ(left_of(plan).of(Category::gathered), 0) << "the end of backward lets go of them";
    return most_of(plan, Category::gathered);
  };
  const std::int64_t plain = gathered(model::Reentrance::off, model::Reshard::always);
  const std::int64_t again = gathered(model::Reentrance::on, model::Reshard::always);
  const testing::Planned planned = testing::planned(gpt({Shardings::fsdp2, 0}, kRanks));
  EXPECT_EQ(plain, gathered(model::Reentrance::usual, model::Reshard::always)) << "no Trainer";
  // Of 4-byte parameters, all blocks but the first, and the root and the first block while it runs.
  EXPECT_GT(again, plain);
  EXPECT_GE(again + again / 50, parameters_of(planned) * 4);
  EXPECT_GE(gathered(model::Reentrance::on, model::Reshard::never), again - plain);
}

TEST(ShardedModel, OffloadedShardsTakeNothingBetweenSteps) {
  TrainingJob job = gpt({Shardings::fsdp2, 0}, 4);
  job.offload = model::Offload::parameters;
  const Live left = left_of(testing::planned(job).plan);
  EXPECT_EQ(left.of(Category::parameter) + left.of(Category::gradient) + left.of(Category::optimizer), 0);
}

/// A small FLUX.1 with adapters on its queries: 4 blocks of two streams, 8 of one.
TrainingJob swapping(model::Counted<model::BlockSwap> swap) {
  TrainingJob job(*parse_summary(R"({"_class_name": "FluxTransformer2DModel", "num_attention_heads": 2,
    "attention_head_dim": 32, "num_layers": 4, "num_single_layers": 8, "joint_attention_dim": 64,
    "pooled_projection_dim": 32, "axes_dims_rope": [8, 12, 12]})"),
                  1);
  job.image = {128, 128};
  job.lora = 4;
  job.lora_targets = "to_q";
  job.activation_checkpointing = true;
  job.block_swap = swap;
  return job;
}

/// Parameters on the GPU: when the first step begins, at most before its backward, at most, and at the end.
struct SwappedBytes {
  std::int64_t begin = 0;
  std::int64_t forward = 0;
  std::int64_t most = 0;
  std::int64_t end = 0;
};

SwappedBytes swapped_bytes(const TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto steps = analysis.steps();
  EXPECT_TRUE(testing::succeeds(steps));
  SwappedBytes bytes;
  if (!steps) return bytes;
  const StepPlan& plan = **steps;
  const auto begins = [&](Phase phase) {
    const auto found = std::ranges::find(plan.phases, phase, &PhaseMark::phase);
    return found == plan.phases.end() ? std::size_t{0} : std::size_t{found->first_event};
  };
  Live live(plan);
  for (std::size_t at = 0; at < plan.events.size(); ++at) {
    if (at == begins(Phase::forward)) bytes.begin = live.of(Category::parameter);
    live.apply(plan.events[at]);
    const std::int64_t now = live.of(Category::parameter);
    if (at < begins(Phase::backward)) bytes.forward = std::max(bytes.forward, now);
    bytes.most = std::max(bytes.most, now);
  }
  bytes.end = live.of(Category::parameter);
  return bytes;
}

TEST(SwappedBlocks, ByExchangeTheirLinearWeightsAreNeverInAdditionToTheOthers) {
  constexpr std::int64_t kTwoStreams = 12 * 64 * 64 + 8 * 64 * 64 + 4 * 64 * 256;
  constexpr std::int64_t kOneStream = 3 * 64 * 64 + 64 * 256 + 320 * 64 + 3 * 64 * 64;
  const SwappedBytes all = swapped_bytes(swapping({}));
  const SwappedBytes four = swapped_bytes(swapping({model::BlockSwap::exchanged, 4}));
  EXPECT_EQ(all.most - four.most, 4 * (2 * kTwoStreams + 4 * kOneStream)) << "half of four, and two for each left";
  EXPECT_EQ(four.begin, four.most);
  EXPECT_EQ(four.begin, four.end);
  const SwappedBytes more = swapped_bytes(swapping({model::BlockSwap::exchanged, 40}));
  EXPECT_EQ(all.most - more.most, 4 * (2 * kTwoStreams + 6 * kOneStream)) << "two blocks of a stack stay";
}

TEST(SwappedBlocks, StreamedOnesComeBackForBackwardAndStay) {
  constexpr std::int64_t kOneStream = 3 * 64 * 65 + 65 * 256 + 321 * 64 + 3 * 64 * 65 + 2 * 32;
  const SwappedBytes all = swapped_bytes(swapping({}));
  const SwappedBytes six = swapped_bytes(swapping({model::BlockSwap::streamed, 6}));
  EXPECT_EQ(all.most - six.begin, 4 * 6 * kOneStream);
  EXPECT_EQ(six.forward, six.begin + 4 * kOneStream) << "one at a time";
  EXPECT_EQ(six.most, all.most);
  EXPECT_EQ(six.end, all.end);
  const SwappedBytes many = swapped_bytes(swapping({model::BlockSwap::streamed, 40}));
  EXPECT_EQ(many.most, all.most);
  EXPECT_LT(many.begin, six.begin);
}

TEST(SwappedBlocks, NeedRecomputationAndAWholeModel) {
  TrainingJob job = swapping({model::BlockSwap::exchanged, 4});
  EXPECT_TRUE(model::validate(job));
  job.activation_checkpointing = false;
  EXPECT_NE(model::validate(job).error().message.find("say `checkpointing`"), std::string::npos);
  job.compile = true;
  EXPECT_TRUE(model::validate(job));
  job.layout.sharding = {Shardings::fsdp2, 0};
  EXPECT_NE(model::validate(job).error().message.find("leave `block_swap`"), std::string::npos);
  job.layout.sharding = {};
  job.block_swap.count = 0;
  EXPECT_FALSE(model::validate(job));
}

}  // namespace
}  // namespace gpumem::plan
