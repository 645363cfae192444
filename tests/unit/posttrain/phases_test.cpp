#include "gpumem/posttrain/phases.hpp"

#include "gpumem/all.hpp"
#include "gpumem/posttrain/estimate_post_training.hpp"
#include "small_transformers.hpp"

namespace gpumem::posttrain {
namespace {

using testing::small_llama;
using testing::succeeds;

PostTrainingJob job_of(Algorithm algorithm) {
  PostTrainingJob job{.policy = small_llama(2), .options = {.algorithm = algorithm}};
  if (row_of(algorithm).generates) job.options.rollout = Rollout::elsewhere;
  job.options.prompt_length = 64;
  job.options.completion_length = 64;
  return job;
}

PostTrainingEstimate estimated(const PostTrainingJob& job) {
  const auto gpu = find_profile("h100-80gb");
  EXPECT_TRUE(succeeds(gpu));
  auto estimate = estimate_post_training(job, *gpu);
  EXPECT_TRUE(succeeds(estimate));
  return estimate ? *std::move(estimate) : PostTrainingEstimate();
}

std::int64_t allocated_in(const PostTrainingEstimate& estimate, std::string_view name) {
  for (const PhaseEstimate& at : estimate.phases) {
    if (at.name == name) return at.allocated.count();
  }
  ADD_FAILURE() << "no phase " << name;
  return 0;
}

TEST(Phases, OnlineDpoComparesAndScoresWithinItsUpdate) {
  PostTrainingJob job = job_of(Algorithm::online_dpo);
  job.reward = job.policy.graph;
  const PostTrainingEstimate online = estimated(job);
  std::vector<std::string> names;
  for (const PhaseEstimate& phase : online.phases) names.push_back(phase.name);
  EXPECT_EQ(names, (std::vector<std::string>{"load", "rollout", "update: forward", "reference", "rewards and values",
                                             "update: backward", "update: optimizer"}));
  // What the policy keeps for backward is there, as with pairs that nobody generated, but of completions alone.
  job.reward.reset();
  const PostTrainingEstimate given = estimated(job_of(Algorithm::dpo));
  const std::int64_t kept = allocated_in(estimated(job), "reference");
  EXPECT_LT(kept, allocated_in(given, "reference"));
  EXPECT_GT(kept, allocated_in(estimated(job), "load"));
}

TEST(Phases, TheEngineWakesWhenWhatWaitsIsOnTheHost) {
  PostTrainingJob job = job_of(Algorithm::grpo);
  job.options.program = Program::verl;
  job.options.rollout = Rollout::elsewhere;
  job.options.offload = Waiting::both;
  const PostTrainingEstimate estimate = estimated(job);
  const auto phase = [&](std::string_view name) {
    const auto at = std::find_if(estimate.phases.begin(), estimate.phases.end(),
                                 [&](const PhaseEstimate& one) { return one.name == name; });
    EXPECT_NE(at, estimate.phases.end()) << name;
    return at == estimate.phases.end() ? PhaseEstimate() : *at;
  };
  EXPECT_LT(phase("rollout").reserved, phase("update: optimizer").reserved) << "the cache was emptied before";
  // The optimizer's states come back for the update alone.
  EXPECT_LT(phase("rewards and values").allocated, phase("update: forward").allocated);
}

TEST(Phases, BcoHasOneAnswerASampleAndAReference) {
  const std::int64_t bco = allocated_in(estimated(job_of(Algorithm::bco)), "update: backward");
  EXPECT_LT(bco, allocated_in(estimated(job_of(Algorithm::dpo)), "update: backward"));
  EXPECT_GT(bco, allocated_in(estimated(job_of(Algorithm::prm)), "update: backward"));
}

TEST(Phases, AnUpdateOverPreferencesKeepsItsCache) {
  const auto gpu = find_profile("h100-80gb");
  ASSERT_TRUE(succeeds(gpu));
  const auto empties = [&](Algorithm algorithm) {
    PostTrainingJob job = job_of(algorithm);
    job.options.program = Program::ms_swift;
    const auto decided = decide(job);
    EXPECT_TRUE(succeeds(decided));
    const auto plan = plan_post_training(job, *decided, *gpu);
    EXPECT_TRUE(succeeds(plan));
    const auto& events = plan->phased.plan.events;
    return std::count_if(events.begin(), events.end(),
                         [](const plan::Event& at) { return at.kind == plan::Event::Kind::empty_cache; });
  };
  EXPECT_EQ(empties(Algorithm::dpo), 0);
  EXPECT_GT(empties(Algorithm::grpo), 0);
}

TEST(Phases, BatchesOfDifferentLengthsLeaveBlocksThatNobodyUses) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  job.policy.batch_size = 32;
  job.policy.sequence_length = 1024;
  const auto gpu = find_profile("h100-80gb");
  ASSERT_TRUE(succeeds(gpu));
  const auto taken = [&](bool expandable) {
    const auto estimate = estimate_post_training(job, *gpu, {.expandable_segments = expandable});
    EXPECT_TRUE(succeeds(estimate));
    return estimate ? estimate->memory : estimate::MemoryEstimate();
  };
  const auto alike = taken(false);
  const auto grown = taken(true);
  job.options.length_limit = 1024;  // as long as they are, and others are shorter
  EXPECT_GT(taken(false).reserved, alike.reserved);
  ASSERT_TRUE(alike.allocated && taken(false).allocated);
  EXPECT_NEAR(taken(false).allocated->mib(), alike.allocated->mib(), 1.0) << "but for blocks that are not split";
  EXPECT_EQ(taken(true).reserved, grown.reserved) << "segments that grow have no such blocks";
  const auto fragmented = taken(false);
  job.options.packing = true;
  job.policy.batch_size = 1;
  job.policy.sequence_length = 8192;
  const auto row = taken(false);
  job.options.length_limit.reset();
  EXPECT_EQ(row.reserved, taken(false).reserved) << "rows are alike";
  EXPECT_NE(row.reserved, fragmented.reserved);
}

/// The plan of iterations of growing lengths.
plan::PhasedPlan growing(const PostTrainingJob& job) {
  const auto gpu = find_profile("h100-80gb");
  const auto decided = decide(job);
  EXPECT_TRUE(succeeds(gpu) && succeeds(decided));
  auto plan = plan_post_training(job, *decided, *gpu, true);
  EXPECT_TRUE(succeeds(plan));
  return plan ? std::move(plan->phased) : plan::PhasedPlan();
}

/// What is held where each phase of this name ends.
std::vector<std::int64_t> held_after(const plan::PhasedPlan& phased, std::string_view name) {
  std::vector<std::int64_t> held(phased.plan.slots, 0);
  std::vector<std::int64_t> after;
  std::int64_t sum = 0;
  std::size_t next = 0;
  for (std::size_t at = 0; at <= phased.plan.events.size(); ++at) {
    for (; next < phased.phases.size() && phased.phases[next].first_event == at; ++next) {
      if (next > 0 && phased.phases[next - 1].name == name) after.push_back(sum);
    }
    if (at == phased.plan.events.size()) break;
    const plan::Event& event = phased.plan.events[at];
    if (event.kind == plan::Event::Kind::allocate) {
      EXPECT_EQ(held[event.slot], 0) << "what slot " << event.slot << " held is lost";
      sum += held[event.slot] = event.bytes;
    }
    if (event.kind == plan::Event::Kind::release) sum -= std::exchange(held[event.slot], 0);
  }
  return after;
}

TEST(Phases, StepsThatArePlayedAgainHoldWhatTheSecondOneDid) {
  for (const model::ZeroGrad zero_grad : {model::ZeroGrad::step_end, model::ZeroGrad::before_backward}) {
    for (const Program program : {Program::trl, Program::verl, Program::megatron, Program::openrlhf}) {
      SCOPED_TRACE(row_of(program).name);
      PostTrainingJob job = job_of(Algorithm::grpo);
      job.policy.loop = model::Loop::lightning;
      job.policy.zero_grad = zero_grad;
      job.options.program = program;
      const std::vector<std::int64_t> held = held_after(growing(job), "rewards and values");
      ASSERT_EQ(held.size(), 5U);
      constexpr double kBatch = 4096;  // a longer batch waits under its name
      for (const std::int64_t bytes : {held[2], held[3], held[4]}) {
        EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(held[1]), kBatch);
      }
    }
  }
}

TEST(Phases, BatchesOfAStepGrowOneAfterAnother) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  const auto count = [](const plan::PhasedPlan& phased, std::string_view name) {
    return std::count_if(phased.phases.begin(), phased.phases.end(), [&](const auto& at) { return at.name == name; });
  };
  EXPECT_EQ(count(growing(job), "update: optimizer"), 5) << "a batch each";
  job.policy.gradient_accumulation = 16;
  const plan::PhasedPlan two = growing(job);
  EXPECT_EQ(count(two, "update: optimizer"), 3) << "two batches each, of which the last two are whole";
  EXPECT_EQ(count(two, "update: backward"), 6);
}

TEST(Phases, AShareOfTheLengthIsOfTheUpdateAlone) {
  PostTrainingJob job = job_of(Algorithm::ppo);
  const plan::PhasedPlan phased = growing(job);  // TRL's, whose policy and critic have one step
  std::vector<std::int64_t> read;
  for (std::size_t at = 0; at + 1 < phased.phases.size(); ++at) {
    if (phased.phases[at].name != "reference") continue;
    std::int64_t bytes = 0;
    for (std::size_t event = phased.phases[at].first_event; event < phased.phases[at + 1].first_event; ++event) {
      const plan::Event& one = phased.plan.events[event];
      if (one.kind == plan::Event::Kind::allocate) bytes += one.bytes;
    }
    read.push_back(bytes);
  }
  ASSERT_EQ(read.size(), 5U);
  EXPECT_GT(read[0], 0);
  EXPECT_EQ(read, std::vector<std::int64_t>(5, read[0])) << "passes before the update are of whole lengths";
}

TEST(Phases, VllmIsGivenWhatItsProgramGivesIt) {
  auto sizes = serve::read_served_model(
      R"({"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
      "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 1024, "max_position_embeddings": 4096})");
  ASSERT_TRUE(succeeds(sizes));
  const auto says = [&](Program program, std::string_view text, std::optional<std::int64_t> seats = {}) {
    PostTrainingJob job = job_of(Algorithm::grpo);
    job.served = std::make_shared<const serve::ServedModel>(*sizes);
    job.options.program = program;
    job.options.rollout = Rollout::colocated;
    job.options.max_num_seqs = seats;
    const PostTrainingEstimate estimate = estimated(job);
    return std::any_of(estimate.memory.assumed.begin(), estimate.memory.assumed.end(),
                       [&](const auto& at) { return at.text.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(says(Program::openrlhf, "max_num_batched_tokens"));
  EXPECT_FALSE(says(Program::verl, "max_num_batched_tokens")) << "8,192";
  EXPECT_FALSE(says(Program::trl, "max_num_batched_tokens")) << "4,096";
  EXPECT_TRUE(says(Program::openrlhf, "max_num_seqs"));
  EXPECT_FALSE(says(Program::verl, "max_num_seqs")) << "256";
  EXPECT_FALSE(says(Program::trl, "max_num_seqs")) << "what a step generates";
  EXPECT_FALSE(says(Program::openrlhf, "max_num_seqs", 64)) << "given";
}

TEST(Phases, VllmSeatsWhatItsProgramSays) {
  // Of so many words that logits are the most of what vLLM profiles.
  auto sizes = serve::read_served_model(
      R"({"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
      "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 262144, "max_position_embeddings": 4096})");
  ASSERT_TRUE(succeeds(sizes));
  const auto activation = [&](Program program, std::optional<std::int64_t> seats = {}) {
    PostTrainingJob job = job_of(Algorithm::grpo);
    job.served = std::make_shared<const serve::ServedModel>(*sizes);
    job.options.program = program;
    job.options.rollout = Rollout::colocated;
    job.options.rollout_tensor_parallel = 2;
    job.options.max_num_seqs = seats;
    job.policy.batch_size = 2;
    job.policy.gradient_accumulation = 4;
    const PostTrainingEstimate estimate = estimated(job);
    for (const NamedBytes& part : estimate.parts) {
      if (part.name == "rollout: activation") return part.bytes.count();
    }
    ADD_FAILURE() << "vLLM is not at the peak";
    return std::int64_t{0};
  };
  EXPECT_EQ(activation(Program::verl), activation(Program::verl, 256));
  EXPECT_LT(activation(Program::verl, 128), activation(Program::verl));
  EXPECT_EQ(activation(Program::trl), activation(Program::trl, 2 * 4 * 2)) << "batch, passes and GPUs of an engine";
  EXPECT_LT(activation(Program::trl, 8), activation(Program::trl));
}

TEST(Phases, AFrozenModelHasNoAdaptersAndNoOptimizer) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  job.policy.lora = 8;
  job.policy.lora_dropout = 0.1;
  const auto decided = decide(job);
  ASSERT_TRUE(succeeds(decided));
  const model::TrainingJob frozen = frozen_job(*decided, nullptr);
  EXPECT_FALSE(frozen.has_adapters());
  EXPECT_EQ(frozen.lora_dropout, 0.0);
  EXPECT_EQ(frozen.graph, job.policy.graph);
}

/// Completions of an engine on the same GPUs, trained over four of them.
PostTrainingJob over_four(Program program, model::Shardings kind) {
  PostTrainingJob job = job_of(Algorithm::grpo);
  const auto sizes = serve::read_served_model(
      R"({"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
          "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 1024, "max_position_embeddings": 4096})");
  EXPECT_TRUE(succeeds(sizes));
  if (sizes) job.served = std::make_shared<const serve::ServedModel>(*sizes);
  job.options.program = program;
  job.options.rollout = Rollout::colocated;
  job.options.sleep_level = 1;
  job.policy.precision = model::Precision::bf16_mixed;
  job.policy.layout.data_parallel = 4;
  job.policy.layout.sharding.kind = kind;
  return job;
}

TEST(Phases, VerlsGradientsAreGoneBetweenItsUpdates) {
  const auto held = [](model::Shardings kind) {
    return static_cast<double>(allocated_in(estimated(over_four(Program::verl, kind)), "rollout"));
  };
  const auto shares =
      static_cast<double>(over_four(Program::verl, model::Shardings::fsdp1).policy.graph->parameters()) / 4.0;
  EXPECT_NEAR(held(model::Shardings::fsdp1), held(model::Shardings::fsdp2), shares) << "gradients are four times that";
}

TEST(Phases, VerlStreamsTheShardsOfARewardModelFromTheHost) {
  PostTrainingJob job = over_four(Program::verl, model::Shardings::fsdp1);
  const std::int64_t without = allocated_in(estimated(job), "load");
  job.reward = job.policy.graph;
  EXPECT_LT(allocated_in(estimated(job), "load") - without, job.policy.graph->parameters() / 4) << "half of its share";
}

TEST(Phases, ALossOfLabelsIsThereUntilBackward) {
  PostTrainingJob job = job_of(Algorithm::gkd);
  job.options.program = Program::ms_swift;
  const PostTrainingEstimate without = estimated(job);
  job.options.label_loss = true;
  const PostTrainingEstimate with = estimated(job);
  constexpr std::int64_t kFloat32Logits = std::int64_t{128} * 1024 * 4;
  EXPECT_EQ(allocated_in(with, "teacher") - allocated_in(without, "teacher"), kFloat32Logits);
  EXPECT_EQ(allocated_in(with, "update: optimizer"), allocated_in(without, "update: optimizer"));
}

// TRL's generalized_jsd_loss, in sizes of the logits: PyTorch 2.6 held 2 + 15 of all but the last position in forward.
TEST(Phases, TrlsDivergenceHoldsFifteenTimesTheLogits) {
  PostTrainingJob job = job_of(Algorithm::gkd);
  job.policy.precision = model::Precision::amp_bf16;
  const PostTrainingEstimate one = estimated(job);
  job.policy.batch_size *= 2;
  const PostTrainingEstimate two = estimated(job);
  const auto decided = decide(job);
  ASSERT_TRUE(succeeds(decided));
  EXPECT_EQ(decided->policy.objective.kind, model::Objective::handed_on);
  const std::int64_t more = allocated_in(two, "teacher") - allocated_in(one, "teacher");
  const std::int64_t length = decided->policy.sequence_length.value_or(1);
  const std::int64_t logits = decided->policy.batch_size / 2 * length * 1024 * 4;
  EXPECT_GE(more, 2 * logits + 15 * (logits / length * (length - 1)));
}

// TRL 1.9, dpo_trainer.py and kto_trainer.py: _compute_loss. The reference's float32 logits, a copy of the policy's and
// three tensors of 128 rows, where ms-swift has the reference's in both types.
TEST(Phases, TrlsTrainersLogTheEntropyWhileTheReferencesLogitsHaveAName) {
  for (const Algorithm algorithm : {Algorithm::dpo, Algorithm::kto}) {
    PostTrainingJob job = job_of(algorithm);
    job.policy.precision = model::Precision::bf16;
    job.policy.batch_size = 4;
    job.policy.float_outputs = true;
    const auto decided = decide(job);
    ASSERT_TRUE(succeeds(decided));
    const std::int64_t logits = decided->policy.batch_size * decided->policy.sequence_length.value_or(0) * 1024 * 4;
    const std::int64_t trl = allocated_in(estimated(job), "reference");
    job.options.program = Program::ms_swift;
    EXPECT_GE(trl - allocated_in(estimated(job), "reference"), logits / 2);
  }
}

// TRL 1.9, experimental/utils.py: create_reference_model; autocast caches copies of weights that ask for gradients.
TEST(Phases, AReferenceThatAsksForNoGradientsHasNoCopiesInAutocastsCache) {
  PostTrainingJob job = job_of(Algorithm::online_dpo);
  job.policy.precision = model::Precision::amp_bf16;
  const auto frozen = decide(job);
  ASSERT_TRUE(succeeds(frozen));
  EXPECT_EQ(reference_job(job, *frozen).freeze, "*");
  EXPECT_GT(allocated_in(estimated(job), "reference"), 0) << "it is planned all the same";
  job = job_of(Algorithm::dpo);
  job.policy.precision = model::Precision::amp_bf16;
  const auto loaded = decide(job);
  ASSERT_TRUE(succeeds(loaded));
  EXPECT_TRUE(reference_job(job, *loaded).freeze.empty()) << "from_pretrained() leaves them as they are";
}

TEST(Phases, TrlsOnlineDpoReadsAllTokensAgainWhereItComputesActivationsAgain) {
  PostTrainingJob job = job_of(Algorithm::online_dpo);
  job.options.rollout = Rollout::generate;
  serve::ServedModel sizes;
  sizes.layers = 4;
  sizes.kv_heads = 4;
  sizes.head_dim = 64;
  sizes.vocabulary = 1024;
  job.served = std::make_shared<const serve::ServedModel>(sizes);
  const std::int64_t cached = allocated_in(estimated(job), "rollout");
  job.policy.activation_checkpointing = true;
  EXPECT_LT(allocated_in(estimated(job), "rollout"), cached);
  const auto decided = decide(job);
  ASSERT_TRUE(succeeds(decided));
  EXPECT_EQ(decided->policy.objective.kind, model::Objective::last_log_probabilities);
  EXPECT_EQ(decided->reading.objective.kind, model::Objective::read_last_log_probabilities);
}

TEST(Phases, ChosenAnswersMayHaveACrossEntropyToo) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  const std::int64_t without = allocated_in(estimated(job), "update: backward");
  job.options.label_loss = true;
  EXPECT_GT(allocated_in(estimated(job), "update: backward"), without);
  job.options.algorithm = Algorithm::kto;
  EXPECT_FALSE(decide(job)) << "it has no pairs";
}

TEST(Phases, OlderLogProbabilitiesAreComputedWhereTheJobSaysSo) {
  PostTrainingJob job = job_of(Algorithm::grpo);
  job.options.program = Program::open_instruct;
  const std::int64_t engines = allocated_in(estimated(job), "log-probabilities");
  job.options.old_log_probs = true;
  EXPECT_GT(allocated_in(estimated(job), "log-probabilities"), engines);
}

TEST(Phases, LlamaFactoryMakesAllLogitsFloat32AndReadsABfloat16Reference) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  job.policy.precision = model::Precision::amp_bf16;
  job.options.reference = Reference::own;
  const PostTrainingEstimate trl = estimated(job);
  job.options.program = Program::llama_factory;
  const PostTrainingEstimate own = estimated(job);
  EXPECT_LT(allocated_in(own, "load"), allocated_in(trl, "load")) << "the reference";
  const auto decided = decide(job);
  ASSERT_TRUE(succeeds(decided));
  EXPECT_EQ(decided->policy.objective.kind, model::Objective::whole_log_probabilities);
  EXPECT_EQ(decided->reading.objective.kind, model::Objective::read_whole_log_probabilities);
  // Its models that give rewards make logits, which nobody reads.
  PostTrainingJob rewards = job_of(Algorithm::reward);
  rewards.policy.batch_size = 64;
  const std::int64_t scores = allocated_in(estimated(rewards), "update: forward");
  rewards.options.program = Program::llama_factory;
  EXPECT_GT(allocated_in(estimated(rewards), "update: forward"), scores);
}

TEST(Phases, ALossThatAsksForFreeMemoryHasItsChunks) {
  PostTrainingJob job = job_of(Algorithm::grpo);
  job.policy.batch_size = 16384;  // whose logits take 8 GiB in float32
  const auto forward = [&](model::LossForms kind, std::int64_t mib) {
    job.policy.loss_form = {kind, mib};
    return allocated_in(estimated(job), "update: forward");
  };
  constexpr std::int64_t kMost = 4096;  // MiB, which are less than half of what is free
  constexpr std::int64_t kAll = 16384;
  EXPECT_EQ(forward(model::LossForms::fused_free, 0), forward(model::LossForms::fused_target, kMost));
  EXPECT_LT(forward(model::LossForms::fused_free, 0), forward(model::LossForms::fused_target, kAll));
}

TEST(Phases, SegmentsGrowWhereTheProgramSaysSo) {
  const auto says_so = [](const PostTrainingJob& job) {
    const auto decided = decide(job);
    return decided && expands_segments(*decided);
  };
  PostTrainingJob job = over_four(Program::verl, model::Shardings::fsdp1);
  EXPECT_TRUE(says_so(job));
  job.options.rollout = Rollout::elsewhere;
  EXPECT_FALSE(says_so(job)) << "nothing switches it on behind a rollout";
  job.options.program = Program::roll;
  EXPECT_TRUE(says_so(job));
  EXPECT_FALSE(says_so(over_four(Program::trl, model::Shardings::fsdp1)));
  const auto reserved = [](const PostTrainingJob& of) { return estimated(of).memory.reserved; };
  job.options.rollout = Rollout::colocated;
  job.options.program = Program::verl;
  const auto gpu = find_profile("h100-80gb");
  ASSERT_TRUE(succeeds(gpu));
  const auto told = estimate_post_training(job, *gpu, {.expandable_segments = true});
  ASSERT_TRUE(succeeds(told));
  EXPECT_EQ(told->memory.reserved, reserved(job)) << "as if it was told";
}

}  // namespace
}  // namespace gpumem::posttrain
