#include "gpumem/posttrain/estimate_post_training.hpp"

#include "gpumem/all.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/posttrain/post_training_job.hpp"
#include "small_transformers.hpp"

namespace gpumem::posttrain {
namespace {

using testing::fails;
using testing::small_llama;
using testing::succeeds;

constexpr std::string_view kConfig = R"({"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2,
  "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 1024,
  "max_position_embeddings": 4096, "hidden_act": "silu", "rms_norm_eps": 1e-05})";

const device::GpuProfile& gpu() {
  static const device::GpuProfile kGpu = *find_profile("h100-80gb");
  return kGpu;
}

PostTrainingJob job_of(Algorithm algorithm, Program program = Program::trl) {
  PostTrainingJob job{.policy = small_llama(2), .options = {.algorithm = algorithm, .program = program}};
  job.policy.batch_size = 2;
  auto sizes = serve::read_served_model(kConfig);
  EXPECT_TRUE(succeeds(sizes));
  if (sizes) job.served = std::make_shared<const serve::ServedModel>(*std::move(sizes));
  return job;
}

PostTrainingEstimate estimated(const PostTrainingJob& job) {
  auto estimate = estimate_post_training(job, gpu());
  EXPECT_TRUE(succeeds(estimate));
  return estimate ? *std::move(estimate) : PostTrainingEstimate();
}

std::vector<std::string> names_of(const PostTrainingEstimate& estimate) {
  std::vector<std::string> names;
  for (const PhaseEstimate& phase : estimate.phases) names.push_back(phase.name);
  return names;
}

const PhaseEstimate& phase(const PostTrainingEstimate& estimate, std::string_view name) {
  static const PhaseEstimate kNone;
  for (const PhaseEstimate& at : estimate.phases) {
    if (at.name == name) return at;
  }
  ADD_FAILURE() << "no phase " << name;
  return kNone;
}

std::int64_t part(const PostTrainingEstimate& estimate, std::string_view name) {
  for (const NamedBytes& at : estimate.parts) {
    if (at.name == name) return at.bytes.count();
  }
  return 0;
}

TEST(PostTraining, PreferencesHaveTheirPhasesInTheProgramsOrder) {
  EXPECT_EQ(
      names_of(estimated(job_of(Algorithm::dpo))),
      (std::vector<std::string>{"load", "update: forward", "reference", "update: backward", "update: optimizer"}));
  EXPECT_EQ(
      names_of(estimated(job_of(Algorithm::dpo, Program::verl))),
      (std::vector<std::string>{"load", "update: forward", "reference", "update: backward", "update: optimizer"}));
  EXPECT_EQ(names_of(estimated(job_of(Algorithm::simpo))),
            (std::vector<std::string>{"load", "update: forward", "update: backward", "update: optimizer"}));
}

TEST(PostTraining, PartsSumToTheFigureAndThePeakIsTheHighestPhase) {
  for (const AlgorithmRow& row : kAlgorithmRows) {
    SCOPED_TRACE(row.name);
    PostTrainingJob job = job_of(row.value);
    if (row.teacher) job.teacher = job.policy.graph;
    job.options.prompt_length = 64;
    job.options.completion_length = 64;
    const PostTrainingEstimate estimate = estimated(job);
    std::int64_t sum = 0;
    for (const NamedBytes& at : estimate.parts) sum += at.bytes.count();
    EXPECT_EQ(sum, estimate.memory.expected.count());
    ASSERT_LT(estimate.peak_phase, estimate.phases.size());
    for (const PhaseEstimate& at : estimate.phases) {
      const PhaseEstimate& peak = estimate.phases[estimate.peak_phase];
      EXPECT_LE(at.allocated.count() + at.rollout.count(), peak.allocated.count() + peak.rollout.count());
      EXPECT_LE(at.device, estimate.memory.expected);
      EXPECT_LE(at.allocated, at.reserved);
    }
    EXPECT_LE(estimate.memory.lower, estimate.memory.expected);
    EXPECT_GE(estimate.memory.upper, estimate.memory.expected);
    EXPECT_FALSE(estimate.memory.assumed.empty());
  }
}

TEST(PostTraining, TheReferenceTakesItsWeightsAndNoStates) {
  const PostTrainingEstimate with = estimated(job_of(Algorithm::dpo));
  PostTrainingJob job = job_of(Algorithm::dpo);
  job.options.reference = Reference::precomputed;
  const PostTrainingEstimate without = estimated(job);
  const std::int64_t weights = phase(with, "load").allocated.count() - phase(without, "load").allocated.count();
  const auto parameters = static_cast<std::int64_t>(part(with, "reference: parameters"));
  EXPECT_NEAR(static_cast<double>(weights), static_cast<double>(parameters), 4096.0);
  EXPECT_EQ(part(with, "reference: optimizer"), 0);
  EXPECT_EQ(part(without, "reference: parameters"), 0);
}

TEST(PostTraining, TheBaseOfAdaptersIsAReferenceWithoutWeightsOfItsOwn) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  job.policy.lora = 8;
  job.policy.precision = model::Precision::amp_bf16;
  job.policy.base_dtype = model::BaseType::bf16;
  const PostTrainingEstimate estimate = estimated(job);
  EXPECT_EQ(part(estimate, "reference: parameters"), 0);
  job.options.reference = Reference::own;
  EXPECT_GT(phase(estimated(job), "load").allocated, phase(estimate, "load").allocated);
}

/// Of completions that a server on the same GPUs generates, trained over four GPUs.
PostTrainingJob sharded(Program program, model::Shardings sharding) {
  PostTrainingJob job = job_of(Algorithm::grpo, program);
  job.policy.precision = model::Precision::bf16_mixed;
  job.policy.layout.data_parallel = 4;
  job.policy.layout.sharding.kind = sharding;
  job.options.prompt_length = job.options.completion_length = 64;
  job.options.rollout = Rollout::colocated;
  job.options.reference = Reference::own;
  job.options.offload = Waiting::both;
  job.options.sleep_level = 1;
  return job;
}

TEST(PostTraining, VerlKeepsTheReferencesShardsOnTheHost) {
  for (const model::Shardings kind : {model::Shardings::none, model::Shardings::fsdp1, model::Shardings::fsdp2}) {
    PostTrainingJob job = sharded(Program::verl, kind);
    if (kind == model::Shardings::none) job.policy.layout.data_parallel = 1;
    const std::int64_t with = phase(estimated(job), "update: optimizer").allocated.count();
    job.options.reference = Reference::none;
    const std::int64_t more = with - phase(estimated(job), "update: optimizer").allocated.count();
    EXPECT_LT(more, job.policy.graph->parameters() / job.policy.layout.data_parallel) << "half of its weights";
  }
}

TEST(PostTraining, RollsReferenceRunsWhileThePolicyIsOnTheHost) {
  const PostTrainingJob job = sharded(Program::roll, model::Shardings::fsdp2);
  EXPECT_EQ(names_of(estimated(job)).at(2), "reference") << "right after the rollout";
  PostTrainingJob stays = job;
  stays.options.offload = Waiting::none;
  const std::int64_t saved =
      phase(estimated(stays), "reference").allocated.count() - phase(estimated(job), "reference").allocated.count();
  EXPECT_GT(saved, job.policy.graph->parameters() * 4 / 4) << "the policy's shards in float32 are not there";
}

TEST(PostTraining, AWholeReferenceIsOnEachGpu) {
  PostTrainingJob job = sharded(Program::roll, model::Shardings::fsdp2);
  const core::Bytes shared = phase(estimated(job), "load").allocated;
  job.options.reference = Reference::whole;
  const std::int64_t more = phase(estimated(job), "load").allocated.count() - shared.count();
  const double weights = static_cast<double>(job.policy.graph->parameters()) * 2.0;
  EXPECT_NEAR(static_cast<double>(more), weights * 3 / 4, weights / 20) << "all, and not a fourth";
}

TEST(PostTraining, ThePolicysLogitsStandWhileTrlsReferenceRuns) {
  const PhaseEstimate trl = phase(estimated(job_of(Algorithm::dpo, Program::trl)), "reference");
  const PhaseEstimate swift = phase(estimated(job_of(Algorithm::dpo, Program::ms_swift)), "reference");
  // Two pairs, 128 tokens, 1,024 words, two bytes each.
  constexpr std::int64_t kLogits = std::int64_t{4} * 128 * 1024 * 2;
  EXPECT_GE(trl.allocated.count() - swift.allocated.count(), kLogits) << "and what TRL logs of them";
}

TEST(PostTraining, APairIsTwoSequencesAndAPackedRowIsOne) {
  PostTrainingJob job = job_of(Algorithm::simpo);
  job.policy.batch_size = 1;
  const PostTrainingEstimate pair = estimated(job);
  job.options.packing = true;
  EXPECT_LT(estimated(job).memory.allocated, pair.memory.allocated);
}

TEST(PostTraining, CompletionsGoThroughRolloutAndLogProbabilities) {
  PostTrainingJob job = job_of(Algorithm::grpo, Program::ms_swift);
  job.options.prompt_length = 64;
  job.options.completion_length = 64;
  job.options.rollout = Rollout::colocated;
  job.options.gpu_memory_utilization = 0.3;
  const PostTrainingEstimate awake = estimated(job);
  EXPECT_EQ(names_of(awake),
            (std::vector<std::string>{"load", "rollout", "log-probabilities", "reference", "rewards and values",
                                      "update: forward", "update: backward", "update: optimizer"}));
  EXPECT_GT(phase(awake, "update: backward").rollout, core::Bytes(gpu().capacity().count() / 4));
  job.options.sleep_level = 1;
  const PostTrainingEstimate asleep = estimated(job);
  EXPECT_EQ(phase(asleep, "rollout").rollout, phase(awake, "rollout").rollout);
  EXPECT_LT(phase(asleep, "update: backward").rollout.count(), phase(awake, "update: backward").rollout.count() / 4);
}

TEST(PostTraining, OffloadedStatesAreAwayWhileOthersRun) {
  PostTrainingJob job = job_of(Algorithm::grpo, Program::verl);
  job.options.prompt_length = 64;
  job.options.completion_length = 64;
  job.options.rollout = Rollout::elsewhere;
  const PostTrainingEstimate here = estimated(job);
  job.options.offload = Waiting::both;
  const PostTrainingEstimate away = estimated(job);
  EXPECT_LT(phase(away, "log-probabilities").allocated, phase(here, "log-probabilities").allocated);
  EXPECT_EQ(phase(away, "update: optimizer").allocated, phase(here, "update: optimizer").allocated);
}

TEST(PostTraining, ACriticIsTrainedBesideThePolicy) {
  PostTrainingJob job = job_of(Algorithm::ppo, Program::verl);
  job.options.prompt_length = 64;
  job.options.completion_length = 64;
  job.options.rollout = Rollout::elsewhere;
  const PostTrainingEstimate estimate = estimated(job);
  EXPECT_GT(part(estimate, "critic: optimizer"), 0);
  EXPECT_GT(phase(estimate, "critic's update: backward").allocated, core::Bytes(0));
}

TEST(PostTraining, AServerThatDoesNotStartMakesTheJobNotFit) {
  PostTrainingJob job = job_of(Algorithm::grpo);
  job.options.prompt_length = 64;
  job.options.completion_length = 64;
  job.options.rollout = Rollout::colocated;
  job.options.gpu_memory_utilization = 1.0;  // the context is there already
  const PostTrainingEstimate estimate = estimated(job);
  EXPECT_EQ(estimate.memory.verdict, estimate::Verdict::does_not_fit);
  EXPECT_FALSE(estimate.memory.fits);
}

TEST(PostTraining, ATeacherThatNobodyNamesIsOneLikeThePolicy) {
  PostTrainingJob job = job_of(Algorithm::gkd);
  const PostTrainingEstimate copied = estimated(job);
  job.teacher = job.policy.graph;
  EXPECT_EQ(estimated(job).memory.expected, copied.memory.expected);
  EXPECT_GT(part(copied, "teacher: parameters"), 0);
}

TEST(PostTraining, ALimitWidensTheRangeAndLeavesTheFigure) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  const PostTrainingEstimate known = estimated(job);
  job.options.length_limit = 8 * *job.policy.sequence_length;
  const PostTrainingEstimate open = estimated(job);
  EXPECT_EQ(open.memory.expected, known.memory.expected);
  EXPECT_LT(open.memory.lower, known.memory.lower);
  EXPECT_GT(open.memory.upper, known.memory.upper);
}

TEST(PostTraining, CposLossHasTheChosenAnswersCrossEntropy) {
  const auto backward = [](Algorithm algorithm, Reference reference) {
    PostTrainingJob job = job_of(algorithm);
    job.options = {.algorithm = algorithm, .reference = reference, .label_loss = algorithm == Algorithm::simpo};
    return phase(estimated(job), "update: backward").allocated;
  };
  EXPECT_GT(backward(Algorithm::simpo, Reference::usual), backward(Algorithm::dpo, Reference::precomputed));
  EXPECT_EQ(backward(Algorithm::simpo, Reference::usual), backward(Algorithm::orpo, Reference::usual));
}

TEST(PostTraining, MsSwiftMakesLogitsOfAnswersAlone) {
  PostTrainingJob job = job_of(Algorithm::dpo, Program::ms_swift);
  job.policy.sequence_length.reset();
  job.options.prompt_length = 96;
  job.options.completion_length = 32;
  const auto forward = [&] { return phase(estimated(job), "update: forward").allocated; };
  const core::Bytes answers = forward();
  job.options.program = Program::trl;
  EXPECT_LT(answers, forward());
}

TEST(PostTraining, LengthsThatDoNotGoTogetherAreSaid) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  job.options.prompt_length = 96;
  job.options.completion_length = 64;
  const PostTrainingEstimate estimate = estimated(job);
  EXPECT_TRUE(std::any_of(
      estimate.memory.assumed.begin(), estimate.memory.assumed.end(),
      [](const estimate::Assumption& at) { return at.text.find("`seq_length` counts") != std::string::npos; }));
  job.options.completion_length = 256;
  EXPECT_TRUE(fails(estimate_post_training(job, gpu()), core::ErrorCode::invalid_argument, 0, "completion_length 256"));
}

TEST(PostTraining, RanksThatShareASequenceTakeItsPart) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  const PostTrainingEstimate whole = estimated(job);
  job.options.sequence_ranks = 4;
  const PostTrainingEstimate shared = estimated(job);
  EXPECT_LT(shared.memory.allocated, whole.memory.allocated);
  job.options.sequence_ranks = 1;
  job.policy.sequence_length = *job.policy.sequence_length / 4;
  EXPECT_EQ(shared.memory.allocated, estimated(job).memory.allocated);
}

TEST(PostTraining, AnEntropyInTheLossTakesGradientsOfLogits) {
  PostTrainingJob job = job_of(Algorithm::grpo, Program::verl);
  job.options.prompt_length = 64;
  job.options.completion_length = 64;
  job.options.rollout = Rollout::elsewhere;
  const auto backward = [&](Entropy entropy) {
    job.options.entropy = entropy;
    return phase(estimated(job), "update: backward").allocated;
  };
  EXPECT_GT(backward(Entropy::fused), backward(Entropy::none));
  EXPECT_GT(backward(Entropy::whole), backward(Entropy::fused));
}

TEST(PostTraining, StatesOnTheHostAreNotOnTheGpu) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  const PostTrainingEstimate here = estimated(job);
  job.options.states_on_host = 0.5;
  const PostTrainingEstimate half = estimated(job);
  const std::int64_t states = part(here, "policy: optimizer");
  ASSERT_GT(states, 0);
  EXPECT_NEAR(static_cast<double>(part(half, "policy: optimizer")), static_cast<double>(states) / 2, 4096);
  EXPECT_LT(phase(half, "update: optimizer").allocated, phase(here, "update: optimizer").allocated);
}

TEST(PostTraining, AServerOnOtherGpusIsToldBesideTheJob) {
  PostTrainingJob job = job_of(Algorithm::grpo, Program::verl);
  job.options.prompt_length = 64;
  job.options.completion_length = 64;
  job.options.rollout = Rollout::elsewhere;
  const PostTrainingEstimate apart = estimated(job);
  EXPECT_EQ(phase(apart, "rollout").rollout.count(), 0);
  ASSERT_FALSE(apart.elsewhere.empty());
  EXPECT_EQ(apart.elsewhere[0].name, "rollout: weights");
  job.options.rollout = Rollout::colocated;
  EXPECT_TRUE(estimated(job).elsewhere.empty());
  job.options.engine = Engine::sglang;
  EXPECT_GT(phase(estimated(job), "rollout").rollout.count(), 0);
}

TEST(PostTraining, UnslothsEngineReadsTheWeightsThatAreTrained) {
  PostTrainingJob job = job_of(Algorithm::grpo, Program::unsloth);
  job.options.prompt_length = 64;
  job.options.completion_length = 64;
  job.options.rollout = Rollout::colocated;
  EXPECT_EQ(part(estimated(job), "rollout: weights"), 0);
}

/// A job that is built to take most in one phase.
struct Heavy {
  std::string_view phase;
  Algorithm algorithm;
  Program program;
  void (*change)(PostTrainingJob& job);
};
constexpr std::int64_t kMany = 64;
constexpr Heavy kHeavy[] = {
    {"rollout", Algorithm::grpo, Program::trl, [](PostTrainingJob& job) { job.options.rollout_batch = 100 * kMany; }},
    {"log-probabilities", Algorithm::grpo, Program::verl,
     [](PostTrainingJob& job) { job.options.log_prob_batch = 4 * kMany; }},
    {"reference", Algorithm::grpo, Program::ms_swift,
     [](PostTrainingJob& job) {
       job.reference = testing::small_llama(1, 2048).graph;
       job.options.log_prob_batch = 4 * kMany;
       job.options.reference_offload = true;
     }},
    {"rewards and values", Algorithm::grpo, Program::verl,
     [](PostTrainingJob& job) {
       job.reward = testing::small_llama(1, 2048).graph;
       job.options.log_prob_batch = 4 * kMany;
     }},
    {"other answers", Algorithm::kto, Program::ms_swift,
     [](PostTrainingJob& job) {
       job.options.reference = Reference::precomputed;
       job.options.log_prob_batch = 4 * kMany;
     }},
    {"reference", Algorithm::dpo, Program::trl, [](PostTrainingJob& job) { job.options.log_prob_batch = 4 * kMany; }},
    {"teacher", Algorithm::gkd, Program::ms_swift, [](PostTrainingJob& job) { job.policy.batch_size = kMany; }},
    {"update: forward", Algorithm::reward, Program::llama_factory,
     [](PostTrainingJob& job) { job.policy.batch_size = kMany; }},
    {"update: backward", Algorithm::reward, Program::trl, [](PostTrainingJob& job) { job.policy.batch_size = kMany; }},
    {"update: optimizer", Algorithm::simpo, Program::trl,
     [](PostTrainingJob& job) {
       job.policy.sequence_length = 8;
       job.policy.batch_size = 1;
     }},
    {"critic's update: backward", Algorithm::ppo, Program::verl,
     [](PostTrainingJob& job) {
       job.critic = testing::small_llama(8).graph;
       job.policy.batch_size = kMany;
     }},
};

TEST(PostTraining, ThePhaseThatRunsOutOfMemoryIsNamed) {
  for (const Heavy& heavy : kHeavy) {
    SCOPED_TRACE(std::string(heavy.phase) + " of " + std::string(row_of(heavy.algorithm).name));
    PostTrainingJob job = job_of(heavy.algorithm, heavy.program);
    job.policy.sequence_length = 128;
    if (row_of(heavy.algorithm).generates) job.options.completion_length = 64;
    if (heavy.program == Program::verl) job.options.rollout = Rollout::elsewhere;
    heavy.change(job);
    const PostTrainingEstimate on_large = estimated(job);
    const PhaseEstimate& peak = on_large.phases.at(on_large.peak_phase);
    EXPECT_EQ(peak.name, heavy.phase);
    for (const PhaseEstimate& at : on_large.phases) {
      EXPECT_TRUE(at.name == peak.name || at.allocated < peak.allocated) << at.name;
    }
    // A GPU that holds what lives in all phases but this one.
    device::GpuProfile small = gpu();
    small.usable_bytes.reset();
    small.memory_bytes.value = part(on_large, "context") + peak.allocated.count() - 1;
    const auto on_small = estimate_post_training(job, small);
    ASSERT_TRUE(succeeds(on_small));
    EXPECT_EQ(on_small->memory.verdict, estimate::Verdict::does_not_fit);
    EXPECT_EQ(on_small->phases.at(on_small->peak_phase).name, heavy.phase);
  }
}

/// Of a small mixture in Megatron's form, with adapters on every linear layer.
PostTrainingJob lora_of_experts() {
  const auto arguments = megatron_arguments_of(
      R"({"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16,
          "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 512, "max_position_embeddings": 256,
          "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32})",
      1);
  EXPECT_TRUE(succeeds(arguments));
  auto graph = parse_summary(*arguments);
  EXPECT_TRUE(succeeds(graph));
  PostTrainingJob job{.policy = {}, .options = {.algorithm = Algorithm::dpo, .program = Program::megatron}};
  job.policy.graph = std::make_shared<const ModelGraph>(*std::move(graph));
  job.policy.batch_size = 1;
  job.policy.sequence_length = 64;
  job.policy.precision = model::Precision::bf16_mixed;
  job.policy.optimizer = model::Optimizer::adamw;
  job.policy.layout.sharding.kind = model::Shardings::distributed_optimizer;
  job.policy.lora = 4;
  job.policy.lora_targets = "all-linear+not:router";
  return job;
}

TEST(PostTraining, RanksShareLorasWeightsAsTheyShareTheLayers) {
  PostTrainingJob job = lora_of_experts();
  const std::int64_t whole = part(estimated(job), "policy: optimizer");
  ASSERT_GT(whole, 0);
  job.policy.layout.tensor_parallel = 2;
  job.policy.layout.sequence_parallel = true;
  const std::int64_t shared = part(estimated(job), "policy: optimizer");
  EXPECT_LT(shared, whole);
  EXPECT_GT(shared, whole / 2) << "one side of each pair is whole on every rank, and experts are";
  job.policy.layout.expert_parallel = 2;
  const std::int64_t half_of_experts = part(estimated(job), "policy: optimizer");
  EXPECT_LT(half_of_experts, shared);
  job.policy.peft = model::PeftMethod::dora;
  EXPECT_TRUE(fails(estimate_post_training(job, gpu()), core::ErrorCode::invalid_argument, 0, "LoRA"));
}

TEST(PostTraining, UnevenRoutingIsOfOneBlockWhereAllAreComputedAgain) {
  model::TrainingJob job = lora_of_experts().policy;
  job.layout.expert_parallel = 2;
  job.layout.data_parallel = 2;
  const auto routed = [&] {
    analysis::Analysis analysis(job);
    const auto source = analysis.source();
    EXPECT_TRUE(succeeds(source));
    return source ? source->routed_elements : 0;
  };
  const std::int64_t of_both = routed();
  ASSERT_GT(of_both, 0);
  job.activation_checkpointing = true;
  EXPECT_EQ(2 * routed(), of_both);
}

TEST(PostTraining, ATowerIsHeldByPolicyAndReference) {
  PostTrainingJob job = job_of(Algorithm::dpo, Program::megatron);
  const core::Bytes without = phase(estimated(job), "load").allocated;
  job.tower_parameters = 1 << 20;
  constexpr std::int64_t kTwoOfTwoBytes = std::int64_t{4} << 20;
  EXPECT_EQ(phase(estimated(job), "load").allocated.count() - without.count(), kTwoOfTwoBytes);
}

TEST(PostTraining, OptionsThatTheAlgorithmDoesNotHaveAreRefused) {
  const auto refused = [](Algorithm algorithm, std::string_view name, std::string_view word) {
    PostTrainingJob job = job_of(algorithm);
    EXPECT_TRUE(succeeds(set_post_training_option(job.options, name, word)));
    return fails(estimate_post_training(job, gpu()), core::ErrorCode::invalid_argument, 0,
                 "has no " + std::string(name));
  };
  EXPECT_TRUE(refused(Algorithm::dpo, "rollout", "vllm"));
  EXPECT_TRUE(refused(Algorithm::dpo, "teacher_model", "t.json"));
  EXPECT_TRUE(refused(Algorithm::dpo, "gpu_memory_utilization", "0.5"));
  EXPECT_TRUE(refused(Algorithm::kto, "sleep_level", "1"));
  EXPECT_TRUE(refused(Algorithm::dpo, "entropy", "whole"));
  EXPECT_TRUE(refused(Algorithm::dpo, "engine", "sglang"));
  EXPECT_TRUE(refused(Algorithm::grpo, "critic_model", "c.json"));
}

TEST(PostTraining, WhatDoesNotGoTogetherIsAnError) {
  PostTrainingJob job = job_of(Algorithm::dpo);
  job.options.reference = Reference::base;
  EXPECT_TRUE(fails(estimate_post_training(job, gpu()), core::ErrorCode::invalid_argument, 0, "adapters"));
  job = job_of(Algorithm::grpo);
  job.policy.sequence_length.reset();
  EXPECT_TRUE(fails(estimate_post_training(job, gpu()), core::ErrorCode::invalid_argument, 0, "completion_length"));
  job = job_of(Algorithm::grpo);
  job.served = nullptr;
  EXPECT_TRUE(fails(estimate_post_training(job, gpu()), core::ErrorCode::invalid_argument, 0, "config.json"));
}

}  // namespace
}  // namespace gpumem::posttrain
