// A post-training job, which trains on preferences or on what the model itself generates, and what it takes on one GPU.
//
// Units: bytes in the names; tokens, samples, sequences; shares of a GPU's memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/model/named.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/serve/served_model.hpp"

namespace gpumem::posttrain {

enum class Algorithm : std::uint8_t { dpo, kto, orpo, simpo, reward, gkd, grpo, ppo, bco, online_dpo, prm };

/// All that an algorithm means for memory.
struct AlgorithmRow {
  Algorithm value = Algorithm::dpo;
  std::string_view name;
  bool pairs = false;       ///< a sample is a chosen and a rejected sequence, in one forward pass
  bool reference = false;   ///< compares with a reference model, unless the job says otherwise
  bool mismatched = false;  ///< a second pass of policy and reference over answers to other prompts (KL of KTO)
  bool teacher = false;     ///< learns from another model's logits
  bool generates = false;   ///< trains on completions of its own
  bool scores = false;      ///< the model gives one figure a token: a reward model
  bool critic = false;      ///< trains a second model, of values
  bool likelihood = false;  ///< its loss has the chosen answers' cross entropy, too
  bool in_step = false;     ///< completions are generated, compared and scored for each pass of a step
};
inline constexpr std::array kAlgorithmRows = {
    AlgorithmRow{.value = Algorithm::dpo, .name = "dpo", .pairs = true, .reference = true},
    AlgorithmRow{.value = Algorithm::kto, .name = "kto", .reference = true, .mismatched = true},
    AlgorithmRow{.value = Algorithm::orpo, .name = "orpo", .pairs = true, .likelihood = true},
    AlgorithmRow{.value = Algorithm::simpo, .name = "simpo", .pairs = true},
    AlgorithmRow{.value = Algorithm::reward, .name = "rm", .pairs = true, .scores = true},
    AlgorithmRow{.value = Algorithm::gkd, .name = "gkd", .teacher = true},
    AlgorithmRow{.value = Algorithm::grpo, .name = "grpo", .generates = true},
    AlgorithmRow{.value = Algorithm::ppo, .name = "ppo", .reference = true, .generates = true, .critic = true},
    AlgorithmRow{.value = Algorithm::bco, .name = "bco", .reference = true},
    AlgorithmRow{.value = Algorithm::online_dpo,
                 .name = "online-dpo",
                 .pairs = true,
                 .reference = true,
                 .generates = true,
                 .in_step = true},
    AlgorithmRow{.value = Algorithm::prm, .name = "prm", .scores = true},
};
[[nodiscard]] constexpr const AlgorithmRow& row_of(Algorithm algorithm) {
  return kAlgorithmRows[static_cast<std::size_t>(algorithm)];
}

/// The program that trains.
enum class Program : std::uint8_t {
  trl,
  ms_swift,
  megatron,
  verl,
  openrlhf,
  unsloth,
  verl_megatron,
  nemo_rl,
  nemo_rl_megatron,
  slime,
  areal,
  areal_megatron,
  roll,
  roll_megatron,
  open_instruct,
  prime_rl,
  llama_factory,
  axolotl,
};

/// When the reference model runs.
enum class ReferencePlace : std::uint8_t {
  before,          ///< the policy's forward pass, of which nothing is there yet
  after,           ///< it: what the policy keeps for backward is there
  before_returns,  ///< after it, in the same function: the policy's logits are there, too
};

/// All that is known of a program's order and of what it holds.
struct ProgramRow {
  Program value = Program::trl;
  std::string_view name;
  std::string_view source;
  ReferencePlace reference = ReferencePlace::after;
  bool megatron = false;  ///< trains the model in Megatron's form, and moves its gradients to the host with its weights
  bool fused_logits = false;  ///< log-probabilities by flash-attn's cross entropy, gradients over the logits
  bool whole_logits = false;  ///< log-probabilities by one log_softmax of all logits in float32
  bool all_logits = false;    ///< log-probabilities of completions from the logits of all tokens
  bool always_old = false;    ///< the policy's log-probabilities of completions are computed before the update
  bool optimizer_only_updates = false;  ///< states that are offloaded are on the GPU in the update only
  bool states_for_step = false;         ///< and then for the optimizer's step alone
  bool old_of_engine = false;           ///< or of the update's first pass: no pass before it computes them
  bool empties_cache = false;           ///< torch.cuda.empty_cache() between phases
  bool reference_first = false;         ///< a reference of its own runs before what the policy's weights are needed for
  bool streams_reference = false;       ///< its shards are on the host, and each unit comes to the GPU for its passes
  bool usual_reference = false;         ///< GRPO compares with a reference unless it is told not to
  bool joint_critic = false;            ///< policy and critic run in one step
  bool shares_weights = false;          ///< vLLM reads the weights that are trained: they are there once
  bool flat_parameters = false;         ///< FSDP1 without `use_orig_params`: zero_grad() frees gradients at once
  bool expands = false;                 ///< switches expandable segments on for the training process
  bool expands_behind_rollout = false;  ///< the same, where completions are generated on the same GPUs
  bool expands_on_several = false;      ///< the same, where its launcher starts several processes
  double utilization = 0.9;             ///< share of the GPU that a colocated vLLM gets
  std::int64_t batched_tokens = 0;      ///< max_num_batched_tokens of a colocated vLLM; 0: vLLM's own default
  bool seats_a_step = false;            ///< a colocated vLLM's max_num_seqs is what it generates at once
  std::int64_t seats = 0;               ///< its max_num_seqs otherwise; 0: vLLM's own default
  model::Transformers transformers = model::Transformers::v4_51;  ///< that it runs on
};
inline constexpr std::array kProgramRows = {
    ProgramRow{.value = Program::trl,
               .name = "trl",
               .source = "TRL 1.9, trainer/dpo_trainer.py: _compute_loss; trainer/grpo_trainer.py: "
                         "_generate_and_score_completions, _get_per_token_logps_and_entropies; experimental/ppo",
               .reference = ReferencePlace::before_returns,
               .joint_critic = true,
               .utilization = 0.3,
               .batched_tokens = 4096,
               .seats_a_step = true,
               .transformers = model::Transformers::v5_5},
    ProgramRow{.value = Program::ms_swift,
               .name = "ms-swift",
               .source = "ms-swift 4 (2026-08), rlhf_trainers/dpo_trainer.py: get_batch_loss_metrics; "
                         "rlhf_trainers/grpo_trainer.py; rlhf_trainers/rlhf_mixin.py: get_per_token_logps",
               .reference = ReferencePlace::after,
               .always_old = true,
               .empties_cache = true,
               .usual_reference = true,
               .joint_critic = true,
               .seats_a_step = true},
    ProgramRow{.value = Program::megatron,
               .name = "megatron-swift",
               .source = "ms-swift 4 (2026-08), megatron/trainers: forward_step of dpo_trainer.py and kto_trainer.py; "
                         "rlhf_mixin.py: prepare_model",
               .reference = ReferencePlace::before,
               .megatron = true,
               .empties_cache = true,
               .usual_reference = true},
    ProgramRow{.value = Program::verl,
               .name = "verl",
               .source = "verl 0.7 (2026-01), workers/fsdp_workers.py: rollout_mode (set_expandable_segments), "
                         "update_actor, compute_log_prob; utils/torch_functional.py: logprobs_from_logits; "
                         "trainer/config/engine/fsdp.yaml: use_orig_params",
               .reference = ReferencePlace::before,
               .fused_logits = true,
               .always_old = true,
               .optimizer_only_updates = true,
               .empties_cache = true,
               .streams_reference = true,
               .flat_parameters = true,
               .expands_behind_rollout = true,
               .utilization = 0.5,
               .batched_tokens = 8192,
               .seats = 256},
    ProgramRow{.value = Program::openrlhf,
               .name = "openrlhf",
               .source = "OpenRLHF 0.8, cli/train_ppo_ray.py; trainer/ray/ppo_actor.py; models/utils.py: "
                         "log_probs_from_logits",
               .reference = ReferencePlace::before,
               .fused_logits = true,
               .always_old = true,
               .optimizer_only_updates = true,
               .empties_cache = true,
               .utilization = 0.95},
    ProgramRow{.value = Program::unsloth,
               .name = "unsloth",
               .source = "unsloth 2025.8, models/rl.py and rl_replacements.py (TRL's trainers, log-probabilities of "
                         "chunks); models/loader.py: fast_inference, gpu_memory_utilization; __init__.py "
                         "(PYTORCH_CUDA_ALLOC_CONF, unless UNSLOTH_VLLM_STANDBY is 1)",
               .reference = ReferencePlace::after,
               .shares_weights = true,
               .expands = true,
               .utilization = 0.5},
    ProgramRow{.value = Program::verl_megatron,
               .name = "verl-megatron",
               .source = "verl 0.7 (2026-01), workers/megatron_workers.py; workers/actor/megatron_actor.py; "
                         "utils/megatron_utils.py: offload_megatron_model_to_cpu",
               .reference = ReferencePlace::before,
               .megatron = true,
               .always_old = true,
               .optimizer_only_updates = true,
               .empties_cache = true,
               .expands_behind_rollout = true,
               .utilization = 0.5,
               .batched_tokens = 8192,
               .seats = 256},
    ProgramRow{.value = Program::nemo_rl,
               .name = "nemo-rl",
               .source = "NeMo-RL (2026-08), algorithms/grpo.py: grpo_train; models/policy/workers/"
                         "dtensor_policy_worker_v2.py; distributed/model_utils.py",
               .reference = ReferencePlace::before,
               .all_logits = true,
               .always_old = true,
               .optimizer_only_updates = true,
               .empties_cache = true,
               .utilization = 0.6},
    ProgramRow{.value = Program::nemo_rl_megatron,
               .name = "nemo-rl-megatron",
               .source = "NeMo-RL (2026-08), models/policy/workers/megatron_policy_worker.py: offload_before_refit, "
                         "prepare_for_lp_inference",
               .reference = ReferencePlace::before,
               .megatron = true,
               .always_old = true,
               .optimizer_only_updates = true,
               .empties_cache = true,
               .utilization = 0.6},
    ProgramRow{.value = Program::slime,
               .name = "slime",
               .source = "slime (2026-08), backends/megatron_utils/actor.py: train, train_actor, wake_up",
               .reference = ReferencePlace::before,
               .megatron = true,
               .always_old = true,
               .empties_cache = true},
    ProgramRow{.value = Program::areal,
               .name = "areal",
               .source = "AReaL (2026-05), trainer/rl_trainer.py: train; utils/functional/vocab_parallel.py",
               .reference = ReferencePlace::before,
               .fused_logits = true,
               .always_old = true},
    ProgramRow{.value = Program::areal_megatron,
               .name = "areal-megatron",
               .source = "AReaL (2026-05), engine/megatron_engine.py",
               .reference = ReferencePlace::before,
               .megatron = true,
               .always_old = true},
    ProgramRow{.value = Program::roll,
               .name = "roll",
               .source = "ROLL (2026-08), pipeline/rlvr/rlvr_pipeline.py: run; utils/functionals.py: "
                         "log_probs_from_logits; platforms/cuda.py: get_custom_env_vars",
               .reference = ReferencePlace::before,
               .all_logits = true,
               .always_old = true,
               .optimizer_only_updates = true,
               .empties_cache = true,
               .reference_first = true,
               .expands = true},
    ProgramRow{.value = Program::roll_megatron,
               .name = "roll-megatron",
               .source = "ROLL (2026-08), distributed/strategy/megatron_strategy.py: load_states, offload_states",
               .reference = ReferencePlace::before,
               .megatron = true,
               .always_old = true,
               .optimizer_only_updates = true,
               .empties_cache = true,
               .reference_first = true,
               .expands = true},
    ProgramRow{.value = Program::open_instruct,
               .name = "open-instruct",
               .source = "open-instruct (2026-08), grpo_fast.py: step; grpo_utils.py: compute_logprobs; "
                         "dpo_tune_cache.py",
               .reference = ReferencePlace::before,
               .fused_logits = true,
               .old_of_engine = true,
               .empties_cache = true},
    ProgramRow{.value = Program::prime_rl,
               .name = "prime-rl",
               .source = "PRIME-RL (2026-08), trainer/rl/train.py; trainer/optim/state_offload.py",
               .reference = ReferencePlace::before,
               .fused_logits = true,
               .optimizer_only_updates = true,
               .states_for_step = true,
               .old_of_engine = true},
    ProgramRow{.value = Program::llama_factory,
               .name = "llama-factory",
               .source = "LLaMA-Factory 0.9.4 (2026-08), train/dpo/trainer.py: concatenated_forward; "
                         "train/trainer_utils.py: get_batch_logps, create_ref_model; train/rm/trainer.py",
               .reference = ReferencePlace::before_returns,
               .whole_logits = true,
               .expands_on_several = true},
    ProgramRow{.value = Program::axolotl,
               .name = "axolotl",
               .source = "axolotl 0.18 (2026-07), core/builders/rl.py, train.py: setup_reference_model; TRL's trainers",
               .reference = ReferencePlace::before_returns,
               .joint_critic = true,
               .expands = true,
               .utilization = 0.9,
               .batched_tokens = 4096,
               .seats_a_step = true,
               .transformers = model::Transformers::v4_56},
};
[[nodiscard]] constexpr const ProgramRow& row_of(Program program) {
  return kProgramRows[static_cast<std::size_t>(program)];
}

enum class Reference : std::uint8_t {
  usual,        ///< as algorithm and program have it: adapters switched off, or a copy of the model
  none,         ///< there is none
  own,          ///< a frozen model of its own, shared as the policy is
  whole,        ///< the same, and each GPU has all of it
  swapped,      ///< its weights wait on the host, and take the place of the policy's for its passes
  base,         ///< the policy without its adapters
  precomputed,  ///< its log-probabilities are in the data set
};
inline constexpr std::array<model::Named<Reference>, 7> kReferences = {{{Reference::usual, "usual"},
                                                                        {Reference::none, "none"},
                                                                        {Reference::own, "own"},
                                                                        {Reference::whole, "whole"},
                                                                        {Reference::swapped, "swapped"},
                                                                        {Reference::base, "base"},
                                                                        {Reference::precomputed, "precomputed"}}};

/// Whether its weights take memory of their own.
[[nodiscard]] constexpr bool is_own(Reference reference) {
  return reference == Reference::own || reference == Reference::whole;
}

/// Who generates.
enum class Rollout : std::uint8_t {
  usual,      ///< by the training program itself
  generate,   ///< the training model, with transformers' generate()
  colocated,  ///< vLLM on the same GPUs, in the same process
  elsewhere,  ///< a server on other GPUs
};
inline constexpr std::array<model::Named<Rollout>, 4> kRollouts = {{{Rollout::usual, "usual"},
                                                                    {Rollout::generate, "generate"},
                                                                    {Rollout::colocated, "vllm"},
                                                                    {Rollout::elsewhere, "server"}}};

/// What generates, where the training model does not.
enum class Engine : std::uint8_t { vllm, sglang };
inline constexpr std::array<model::Named<Engine>, 2> kEngines = {{{Engine::vllm, "vllm"}, {Engine::sglang, "sglang"}}};

/// How an entropy of the policy, which the loss has, is computed.
enum class Entropy : std::uint8_t {
  none,     ///< the loss has no such term
  fused,    ///< by a compiled function, which keeps the logits alone
  whole,    ///< by PyTorch's calls, which keep probabilities
  chunked,  ///< of some positions at a time, and again in backward
};
inline constexpr std::array<model::Named<Entropy>, 4> kEntropies = {
    {{Entropy::none, "none"}, {Entropy::fused, "fused"}, {Entropy::whole, "whole"}, {Entropy::chunked, "chunked"}}};

/// What is on the host while a model waits.
enum class Waiting : std::uint8_t { none, optimizer, model, both };
inline constexpr std::array<model::Named<Waiting>, 4> kWaitings = {
    {{Waiting::none, "none"}, {Waiting::optimizer, "optimizer"}, {Waiting::model, "model"}, {Waiting::both, "both"}}};

template <typename Row, std::size_t Count>
constexpr auto names_of(const std::array<Row, Count>& rows) {
  std::array<model::Named<decltype(Row::value)>, Count> names{};
  for (std::size_t at = 0; at < Count; ++at) names[at] = {rows[at].value, rows[at].name};
  return names;
}
inline constexpr auto kAlgorithms = names_of(kAlgorithmRows);
inline constexpr auto kPrograms = names_of(kProgramRows);

/// What a post-training job says in addition to how its policy is trained.
struct PostTrainingOptions {
  Algorithm algorithm = Algorithm::dpo;
  Program program = Program::trl;
  std::string reference_model = {};  ///< paths; empty: a copy of the policy's model
  std::string critic_model = {};
  std::string reward_model = {};  ///< empty: rewards are computed by functions, or elsewhere
  std::string teacher_model = {};
  Reference reference = Reference::usual;
  Rollout rollout = Rollout::usual;
  std::optional<std::int64_t> prompt_length = {};      ///< tokens of the longest prompt
  std::optional<std::int64_t> completion_length = {};  ///< tokens of the longest completion
  std::optional<std::int64_t> num_generations = {};    ///< completions of each prompt; nothing: nobody says
  std::optional<std::int64_t> rollout_batch = {};      ///< completions that are generated at once; nothing: a step's
  std::optional<std::int64_t> log_prob_batch = {};  ///< sequences of a pass for log-probabilities; nothing: the batch's
  bool packing = false;  ///< a batch is one row of `seq_length` tokens, however many samples it holds
  std::optional<std::int64_t> log_prob_tokens = {};  ///< of a packed row for log-probabilities; nothing: the same
  std::optional<double> gpu_memory_utilization = {};
  std::int64_t rollout_tensor_parallel = 1;
  std::optional<std::int64_t> max_model_len = {};
  std::optional<std::int64_t> max_num_seqs = {};            ///< of the engine; nothing: as the program has it
  std::optional<std::int64_t> max_num_batched_tokens = {};  ///< likewise
  std::int64_t sleep_level = 0;                             ///< of vLLM while the policy is trained: 0, 1 or 2
  Waiting offload = Waiting::none;                          ///< of the policy, while others run
  bool reference_offload = false;                           ///< the reference model is on the host while others run
  bool enforce_eager = false;                               ///< the engine captures no graphs
  Engine engine = Engine::vllm;
  std::string engine_version = {};
  std::int64_t sequence_ranks = 1;                ///< GPUs that share each sequence (Ulysses, ring attention)
  std::optional<std::int64_t> length_limit = {};  ///< tokens of the longest sequence that there may be
  Entropy entropy = Entropy::none;
  bool label_loss = false;      ///< the labels' cross entropy is added: of distillation, of chosen answers
  bool old_log_probs = false;   ///< a pass before the update computes the policy's, also where none is usual
  double states_on_host = 0.0;  ///< share of the optimizer's states that is always there
  std::int64_t expert_tensor_parallel = 0;  ///< GPUs that share each expert's weights in Megatron; 0: all

  friend bool operator==(const PostTrainingOptions&, const PostTrainingOptions&) = default;
};

/// One row an option: every front end takes these, beside those of the policy (gpumem/job/job_options.hpp).
struct PostTrainingOption {
  std::string_view name;   ///< in JSON: "gpu_memory_utilization"; its flag is --gpu-memory-utilization
  std::string_view value;  ///< the placeholder of its value: "N"; empty: it is on or off
  std::string_view help;   ///< one line, for people; the choices follow
  /// False: the word is no value of it.
  bool (*set)(PostTrainingOptions& options, std::string_view word);
  std::vector<std::string_view> (*choices)() = nullptr;  ///< of a choice
};

[[nodiscard]] std::span<const PostTrainingOption> post_training_options();
/// Null: there is no such option.
[[nodiscard]] const PostTrainingOption* find_post_training_option(std::string_view name);

/// The help with the choices: "the program that trains: trl, verl".
[[nodiscard]] std::string help_of(const PostTrainingOption& option);

/// Of an option that is on or off, the word is "true", "false", "1" or "0". Names are taken in any case. Errors:
/// invalid_argument, naming option and word.
[[nodiscard]] core::Status set_post_training_option(PostTrainingOptions& options, std::string_view name,
                                                    std::string_view word);

/// What somebody asks: the policy's training, with `batch_size` samples (pairs, or completions) a forward pass, and the
/// rest.
struct PostTrainingRequest {
  job::JobRequest training = {};
  PostTrainingOptions options = {};
  bool buckets_by_width = false;  ///< DeepSpeed's "auto": the model's width says how large its buckets are
  bool text_prompt = false;       ///< nobody says how long prompts are: the tokens of images come on top
  bool freezes_tower = false;     ///< of a model that sees: its tower is not trained, unless `training` says otherwise
  std::optional<bool> holds_speech = {};  ///< of models that speak: what makes it, or the thinker alone; else as named
  std::string speech_key = {};            ///< the setting that says so
  std::vector<std::string> named =
      {};  ///< models that settings name: one that is not found is taken to be like the policy
  std::vector<estimate::Assumption> assumed = {};  ///< by who made the request
};

/// A job with its models read. A model that is not given is not there, or a copy of the policy's.
struct PostTrainingJob {
  model::TrainingJob policy;  ///< with its graph; its batch counts samples
  PostTrainingOptions options;
  std::shared_ptr<const model::ModelGraph> reference = nullptr;
  std::shared_ptr<const model::ModelGraph> critic = nullptr;
  std::shared_ptr<const model::ModelGraph> reward = nullptr;
  std::shared_ptr<const model::ModelGraph> teacher = nullptr;
  std::shared_ptr<const serve::ServedModel> served = nullptr;  ///< the policy's sizes, for who generates
  std::int64_t tower_parameters = 0;  ///< of a frozen image tower in bfloat16 that the policy's graph leaves out
  bool one_process = false;           ///< vLLM runs in the training process: its memory is allocated there, too
  bool share_unknown = false;  ///< nobody knows the engine's share of the GPU: the range is that of any usual one
  std::vector<estimate::Assumption> assumed = {};  ///< by who made the job
};

/// What the options leave open, decided.
struct Decided {
  AlgorithmRow algorithm;
  ProgramRow program;
  Reference reference = Reference::none;  ///< never `usual`
  Rollout rollout = Rollout::elsewhere;   ///< never `usual`
  model::TrainingJob policy;              ///< as it is updated: its batch counts sequences
  model::TrainingJob reading;             ///< the same in a pass for log-probabilities
  std::vector<estimate::Assumption> assumed;
};
/// Errors: invalid_argument for what does not go together or is missing.
[[nodiscard]] core::Result<Decided> decide(const PostTrainingJob& job);
/// The passes of a frozen model: no adapters, no optimizer, weights as they are computed with. Null: the policy's.
[[nodiscard]] model::TrainingJob frozen_job(const Decided& decided, std::shared_ptr<const model::ModelGraph> graph);
/// What verl only reads: FSDP keeps its shards on the host, whatever the settings say.
void stream_from_host(model::TrainingJob& frozen);
/// Whether the program has its allocator grow segments.
[[nodiscard]] inline bool expands_segments(const Decided& decided) {
  const bool shares = decided.algorithm.generates && decided.rollout == Rollout::colocated;
  const bool several = decided.policy.layout.data_parallel > 1;
  return decided.program.expands || (shares && decided.program.expands_behind_rollout) ||
         (several && decided.program.expands_on_several);
}
/// The passes of a reference that is a model of its own, or the policy without its adapters.
[[nodiscard]] model::TrainingJob reference_job(const PostTrainingJob& job, const Decided& decided);

/// A part of the memory: "policy: parameters", "KV cache of the rollout".
struct NamedBytes {
  std::string name;
  core::Bytes bytes;
};

/// The most that one phase takes. `device` is the sum of context, reserved and rollout.
struct PhaseEstimate {
  std::string name;
  core::Bytes allocated;  ///< in the training process' live tensors
  core::Bytes reserved;   ///< by its allocator
  core::Bytes rollout;    ///< of vLLM in this phase
  core::Bytes device;
};

/// What a job takes on each GPU.
struct PostTrainingEstimate {
  estimate::MemoryEstimate memory;    ///< allocated and reserved are the training process'
  std::vector<PhaseEstimate> phases;  ///< of an iteration, in their order
  std::size_t peak_phase = 0;         ///< the one with the most in live tensors, where memory runs out
  std::vector<NamedBytes> parts;      ///< at its peak; they sum to `memory.expected`
  std::vector<NamedBytes> elsewhere;  ///< of each GPU that generates alone, where completions come from a server
};

}  // namespace gpumem::posttrain
