// Input: a model and how it is trained; what a user says about the pictures that each sample brings.
// Output: TrainingJob, all that an estimator may ask about a job. Defaults are PyTorch's.
// Units: batch size in samples, sequence length in tokens, pictures in pixels.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/adaptation.hpp"
#include "gpumem/model/layout.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/named.hpp"
#include "gpumem/model/optimizers.hpp"
#include "gpumem/model/training_loop.hpp"

namespace gpumem::model {

struct PictureSize {
  std::int64_t width = 0;
  std::int64_t height = 0;

  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};

/// What is not said is the model's usual.
struct Images {
  std::optional<PictureSize> size = {};
  std::optional<std::int64_t> count = {};        ///< images or videos a sample; 0: samples of text alone
  std::optional<std::int64_t> frames = {};       ///< of each video; nothing: samples bring images
  std::optional<std::int64_t> seconds = {};      ///< of each sound, of models that make these
  std::optional<std::int64_t> text_tokens = {};  ///< of the prompt that an image or video model reads
  std::string parts = {};  ///< of a pipeline that lie on the GPU besides its denoiser: "vae+text_encoder", "all"

  [[nodiscard]] bool said() const { return size || count || frames || seconds; }

  static constexpr std::int64_t kLargestSide = 1 << 16;
  static constexpr std::int64_t kMostImages = 4096;
  static constexpr std::int64_t kMostSeconds = 3600;
};

enum class Precision : std::uint8_t {
  fp32,         ///< PyTorch's default: TF32 allowed in convolutions, not in matrix products
  fp32_strict,  ///< no TF32 anywhere
  amp_fp16,     ///< autocast to float16, parameters in float32
  amp_bf16,     ///< autocast to bfloat16, parameters in float32
  bf16,         ///< parameters and activations in bfloat16
  bf16_mixed,   ///< as bf16, with masters of the parameters and the optimizer's states in float32
  fp16_mixed,   ///< the same in float16
};

enum class Loss : std::uint8_t { cross_entropy, mse, bce_with_logits };

/// What a program computes of a language model's output. A count is of positions: the head makes the logits of that
/// many, the last ones of a sample; 0: of all.
enum class Objective : std::uint8_t {
  loss,                     ///< the model's own
  log_probabilities,        ///< of the tokens that are there, which losses of preferences and of policies are made of
  fused_log_probabilities,  ///< the same by one kernel, which leaves its gradient in the logits' place
  read_log_probabilities,   ///< the same of a pass without gradients
  whole_log_probabilities,  ///< of all logits at once, in float32
  read_whole_log_probabilities,  ///< the same of a pass without gradients
  scaled_log_probabilities,      ///< sample by sample, of logits that are divided in their place
  last_log_probabilities,        ///< of all logits that are made those of the last positions, which are counted
  read_last_log_probabilities,   ///< the same of a pass without gradients
  handed_on,                     ///< the logits, of which somebody else makes a loss: what it keeps is not the model's
  scores,                        ///< one figure a token in place of the logits: reward and value models
};

/// Whether an objective makes all logits, and counts those that it reads.
[[nodiscard]] constexpr bool reads_last(Objective objective) {
  return objective == Objective::last_log_probabilities || objective == Objective::read_last_log_probabilities;
}
[[nodiscard]] constexpr bool reads_whole(Objective objective) {
  return objective == Objective::whole_log_probabilities || objective == Objective::read_whole_log_probabilities;
}

/// The names used on the command line and in JSON, one row a value; kOptimizers is in optimizers.hpp.
inline constexpr std::array<Named<Precision>, 7> kPrecisions = {{{Precision::fp32, "fp32"},
                                                                 {Precision::fp32_strict, "fp32-strict"},
                                                                 {Precision::amp_fp16, "amp-fp16"},
                                                                 {Precision::amp_bf16, "amp-bf16"},
                                                                 {Precision::bf16, "bf16"},
                                                                 {Precision::bf16_mixed, "bf16-mixed"},
                                                                 {Precision::fp16_mixed, "fp16-mixed"}}};
inline constexpr std::array<Named<Loss>, 3> kLosses = {
    {{Loss::cross_entropy, "cross-entropy"}, {Loss::mse, "mse"}, {Loss::bce_with_logits, "bce-with-logits"}}};

inline constexpr std::array<Named<ZeroGrad>, 5> kZeroGrads = {{{ZeroGrad::step_start, "step-start"},
                                                               {ZeroGrad::before_forward, "before-forward"},
                                                               {ZeroGrad::before_backward, "before-backward"},
                                                               {ZeroGrad::step_end, "step-end"},
                                                               {ZeroGrad::in_place, "in-place"}}};

/// Element type of parameters, gradients and activations; under autocast that of the parameters.
[[nodiscard]] constexpr core::DType parameter_dtype(Precision precision) {
  switch (precision) {
    case Precision::bf16:
    case Precision::bf16_mixed: return core::DType::bfloat16;
    case Precision::fp16_mixed: return core::DType::float16;
    case Precision::fp32:
    case Precision::fp32_strict:
    case Precision::amp_fp16:
    case Precision::amp_bf16: break;
  }
  return core::DType::float32;
}

[[nodiscard]] constexpr bool is_autocast(Precision precision) {
  return precision == Precision::amp_fp16 || precision == Precision::amp_bf16;
}

/// Whether everything is in float32.
[[nodiscard]] constexpr bool is_float32(Precision precision) {
  return precision == Precision::fp32 || precision == Precision::fp32_strict;
}

/// Whether the optimizer updates float32 copies of the parameters.
[[nodiscard]] constexpr bool has_masters(Precision precision) {
  return precision == Precision::bf16_mixed || precision == Precision::fp16_mixed;
}

/// A setting that a request leaves open, and how it was decided: one clause for people.
struct SettingNote {
  std::string setting;
  std::string text;

  friend bool operator==(const SettingNote&, const SettingNote&) = default;
};

/// One training job, seen from one GPU of its layout. Copies are cheap: the graph is shared and immutable.
struct TrainingJob {
  std::shared_ptr<const ModelGraph> graph;
  std::int64_t batch_size = 0;
  std::vector<std::int64_t> input_shape =
      {};  ///< one sample without the batch: {3, 224, 224}; empty: as the graph says
  std::optional<std::int64_t> sequence_length = {};  ///< tokens a sample, for models that read token ids
  std::vector<std::int64_t> image = {};      ///< width and height of each image of a sample; empty: the model's usual
  std::optional<std::int64_t> images = {};   ///< a sample, for models that read text and images
  std::optional<std::int64_t> frames = {};   ///< of each video, in place of images
  std::optional<std::int64_t> seconds = {};  ///< of each sound, of models that make these
  std::string parts =
      {};  ///< of a diffusers folder that lie on the GPU besides the denoiser: "vae+text_encoder", "all"
  /// Parts of the pipeline whose training is not counted: "text_encoder"; with ":lora" behind it, adapters alone. No
  /// option of a job says it: trainers' files do.
  std::string trained_parts = {};
  std::int64_t uncounted = 0;  ///< bytes that may lie on the GPU besides all that is counted: the upper figure has them
  /// Of other tensors that lie on the GPU from the start, such as another model or a cache of embeddings, in MiB.
  std::int64_t resident = 0;
  bool ema = false;  ///< a copy of the trained weights, an average over the steps, lies on the GPU too
  Optimizer optimizer = Optimizer::adam;
  Precision precision = Precision::fp32;
  Loss loss = Loss::cross_entropy;
  LossForm loss_form = {};             ///< of a language model's cross entropy
  Counted<Objective> objective = {};   ///< posttrain/ sets it: no option of a job does
  bool foreach = true;                 ///< the optimizer's multi-tensor form, PyTorch's default on CUDA
  bool fused = false;                  ///< the optimizer's fused form
  bool optimizer_in_backward = false;  ///< each parameter is updated when its gradient is there, which then ends
  std::int64_t optimizer_rank = 0;     ///< of an optimizer that projects gradients; 0: the usual one
  std::string optimizer_targets = {};  ///< whose gradients those are: "q_proj+mlp", parts of names, or "all-linear"
  bool weight_decay = false;  ///< the optimizer decays the weights: some optimizers copy the gradients to do so
  std::int64_t gradient_accumulation = 1;  ///< forward-backward passes a step
  Layout layout = {};                      ///< GPUs that train together, each on batches of `batch_size` of its own
  bool activation_checkpointing = false;
  CheckpointPolicy checkpoints = {};  ///< what activation checkpointing computes again
  AttentionBackend attention = AttentionBackend::sdpa;
  Offload offload = Offload::none;
  Counted<BlockSwap> block_swap = {};
  Kernels kernels = Kernels::usual;
  Loop loop = Loop::script;  ///< what holds the outputs; `zero_grad` is set apart from it
  Transformers transformers = Transformers::v4_48;
  std::vector<SettingNote> notes = {};  ///< what the request leaves open, and how it was decided
  BatchLengths batch_lengths = BatchLengths::alike;
  bool padding = false;  ///< batches of tokens hold padding, so that attention has a mask; loops differ, see LoopRow
  ZeroGrad zero_grad = ZeroGrad::before_forward;
  bool cudnn_benchmark = false;  ///< torch.backends.cudnn.benchmark: cuDNN tries its kernels and takes the fastest
  bool compile = false;          ///< torch.compile: kernels are fused, and less is kept for backward
  bool prefetch = false;         ///< the next batch is copied to the GPU, on a stream of its own, before a step begins
  /// For a recording: `optimizer` replaces the recorded one.
  bool replaces_optimizer = false;
  std::string software = {};  ///< the stack it runs on, as the GPU's profile names it; empty: the profile's first
  /// Samples in an epoch: tells how large its last batch is. Nothing: every batch is full (drop_last).
  std::optional<std::int64_t> samples_per_epoch = {};
  /// A forward pass in training mode at batch size 2 before training, as torchsummary.summary() makes it.
  bool summary_pass = false;
  /// A pass without gradients over full batches after each epoch.
  bool validation_pass = false;
  /// What a summary does not say is an error, not a guess.
  bool strict = false;
  std::string freeze = {};                ///< patterns of names, separated by commas: these are not trained
  std::string train = {};                 ///< likewise: these are; where nothing is frozen by name, no others
  std::optional<std::int64_t> lora = {};  ///< the rank of adapters on a frozen base; nothing: there are none
  std::string lora_targets = {};          ///< "q_proj+v_proj", "all-linear"; empty: the usual ones of the model
  AdapterType lora_dtype = AdapterType::fp32;
  double lora_dropout = 0.0;                   ///< before each adapter; 0: there is none
  PeftMethod peft = PeftMethod::none;          ///< the kind of adapters; `lora` is their rank
  std::string peft_options = {};               ///< PEFT's own settings of it: "n_frequency=1000,scaling=300"
  Quantization quantize = Quantization::none;  ///< of the frozen base's linear layers
  /// Of Megatron's arguments those that change memory and that no config.json and no other option says:
  /// "grad_reduce_in_bf16,mtp_num_layers=1".
  std::string megatron_options = {};
  BaseType base_dtype = BaseType::precision;  ///< of the frozen base's other weights
  bool cudnn_attention = false;  ///< attention with a mask is cuDNN's, where it takes it; the GPU says so: analysis/
  bool float_outputs =
      false;  ///< weights in lower precision run under autocast, and the loop hands out float32; posttrain/ sets it

  TrainingJob() = default;
  TrainingJob(ModelGraph model, std::int64_t batch)
      : graph(std::make_shared<const ModelGraph>(std::move(model))), batch_size(batch) {}
  TrainingJob(std::shared_ptr<const ModelGraph> model, std::int64_t batch)
      : graph(std::move(model)), batch_size(batch) {}

  /// Whether adapters on a frozen base are trained.
  [[nodiscard]] bool has_adapters() const { return lora.has_value() || peft != PeftMethod::none; }

  /// The same graph, not one that is alike.
  friend bool operator==(const TrainingJob&, const TrainingJob&) = default;
};

/// What the job says about images. `job` is valid.
[[nodiscard]] inline Images images_of(const TrainingJob& job) {
  Images images = {.size = {},
                   .count = job.images,
                   .frames = job.frames,
                   .seconds = job.seconds,
                   .text_tokens = job.sequence_length,
                   .parts = job.parts};
  if (job.image.size() == 2) images.size = PictureSize{job.image[0], job.image[1]};
  return images;
}

/// Whether one kernel updates all parameters: where that is asked for, and in Megatron's loop, whose Adam is
/// TransformerEngine's or apex's fused one. Source: Megatron-LM core r0.12, core/optimizer/__init__.py (FusedAdam).
[[nodiscard]] inline bool updates_in_one_kernel(const TrainingJob& job) {
  return row_of(job.optimizer).has_fused && (job.fused || row_of(job.loop).main_gradients);
}

/// Whether the loop runs the code of transformers 5, and not a model of its own.
[[nodiscard]] inline bool runs_transformers_5(const TrainingJob& job) {
  return job.transformers >= Transformers::v5_0 && row_of(job.loop).caches;
}

/// Whether models return keys and values, where their blocks run once: Trainer.__init__ of transformers 5 sets
/// config.use_cache to TrainingArguments.use_cache, which is False unless given.
[[nodiscard]] inline bool returns_cache(const TrainingJob& job) {
  const bool none = job.loop == Loop::hf_trainer && job.transformers >= Transformers::v5_0;
  return job.objective.kind == Objective::loss && !none && row_of(job.loop).caches;
}

/// Whether blocks are checkpointed by reentrant calls. The Trainer's are before transformers 5.0 (modeling_utils.py:
/// gradient_checkpointing_enable; #43203), but for calls that keep some results, which cannot be; other loops follow
/// PyTorch's advice.
[[nodiscard]] inline bool has_reentrant_checkpoints(const TrainingJob& job) {
  const Checkpoints kind = job.checkpoints.kind;
  const bool keeps = kind == Checkpoints::selective_op || kind == Checkpoints::selective_attention;
  const bool usual = job.loop == Loop::hf_trainer && job.transformers < Transformers::v5_0 && !keeps;
  const Reentrance said = job.checkpoints.reentrance;
  return job.activation_checkpointing && (said == Reentrance::usual ? usual : said == Reentrance::on);
}

/// Whether the job runs Megatron's code of this model: transformers' code named its architecture. A config of
/// Megatron's own arguments shows the model that runs.
[[nodiscard]] inline bool is_megatron_model(const ModelGraph& graph, const TrainingJob& job) {
  return job.loop == Loop::megatron && !graph.architecture().empty() && !graph.architecture().starts_with("megatron");
}

/// What the job says of one of Megatron's arguments ("true" without a value); nothing: it does not name it.
[[nodiscard]] std::optional<std::string_view> megatron_option(const TrainingJob& job, std::string_view name);

/// How many layers predict further tokens, each one, in a model that is read from a config.json (MTP).
[[nodiscard]] std::int64_t further_tokens(const TrainingJob& job);

/// What CUDA graphs leave open; nothing: there are none. All graphs share one pool, captured in the order in which they
/// run, so that it holds what a pass keeps, and nothing else gets its memory afterwards. Each captured layer also has
/// its input in a place of its own. Source: Megatron-LM of August 2026, core/transformer/cuda_graphs.py
/// (CudaGraphManager.global_mempool, TECudaGraphHelper); TransformerEngine of August 2026, pytorch/graph.py
/// (_make_graphed_callables). `kind`: none, local, transformer_engine or full_iteration.
[[nodiscard]] std::optional<Doubt> doubt_of_cuda_graphs(std::string_view kind);

/// Done if every figure of the job is in range. Errors: invalid_argument, naming the field.
[[nodiscard]] core::Status validate(const TrainingJob& job);

}  // namespace gpumem::model
