// Input: a job, what its plan is made from, and a GPU.
// Output: how far such jobs lay from the replay where they were measured, and what an estimate takes as given although
// nobody measured it. Units: shares of the reserved memory.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpumem/adapt/adapt.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/model/step_recording.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::estimate {

/// The range of the reserved memory, as shares of the replay's figure.
struct Margin {
  double lower = 1.0;
  double upper = 1.0;
  std::optional<double> coverage;  ///< of runs below `upper`; nothing: none were measured, the margin is a guess
  /// What layers of unknown classes may keep less or more than is planned, at the job's batch size.
  core::Bytes fewer = {};
  core::Bytes more = {};
};

/// Calibrated on the odd lines of GPUMemNet's published runs (A100-40GB, PyTorch 2.x, nvidia-smi), so that 95 % of them
/// lie below `upper` and 97.5 % above `lower`; of the even lines, which had no part in it, see the README. With
/// convolutions cuDNN's choice of kernels decides; without them the rounding of the allocator is all there is, and the
/// margin is for what a summary does not tell of a program. It held on an RTX 3060 and an RTX 4060 too (xMem's
/// published runs, PyTorch 2.6): all of 78 runs with convolutions were within it. Elsewhere judgement widens it.
[[nodiscard]] Margin margin_of(const model::TrainingJob& job, const analysis::PlanSource& source,
                               const device::GpuProfile& gpu);

/// What the replay of this job takes as given; `context` is CUDA's, communicators apart, `allocator` as it ran.
[[nodiscard]] std::vector<Assumption> assumptions_of(const model::TrainingJob& job, const analysis::PlanSource& source,
                                                     const device::GpuProfile& gpu, const device::Context& context,
                                                     const device::AllocatorOptions& allocator = {});

namespace evidence_detail {

inline constexpr double kCoverage = 0.95;
inline constexpr Margin kWithConvolutions = {0.83, 1.235, kCoverage, {}, {}};
inline constexpr Margin kWithoutConvolutions = {0.97, 1.05, kCoverage, {}, {}};

/// Compute capabilities of GPUs on which runs were measured.
inline constexpr std::array<std::string_view, 3> kMeasuredOn = {"8.0", "8.6", "8.9"};

inline bool measured_on(const device::GpuProfile& gpu) {
  return std::find(kMeasuredOn.begin(), kMeasuredOn.end(), gpu.compute_capability) != kMeasuredOn.end();
}

inline bool measured_in(model::Precision precision) { return precision == model::Precision::fp32; }

inline bool makes_images(const model::TrainingJob& job) {
  return !job.graph->reads_tokens() && !job.graph->config().empty();
}

/// Whether others published runs like it, on one GPU: of language models that are known, and of what makes images.
inline bool published(const model::TrainingJob& job, const analysis::PlanSource& source) {
  constexpr std::array kPrecisions = {model::Precision::bf16, model::Precision::amp_bf16, model::Precision::amp_fp16};
  const bool half = std::find(kPrecisions.begin(), kPrecisions.end(), job.precision) != kPrecisions.end();
  const bool known = (source.graph->reads_tokens() || makes_images(job)) && !source.graph->architecture().empty();
  return half && known && parallel::on_one_gpu(job.layout);
}

/// Of 288 published runs of image and video models on A100, H100 and L40S (docs/images.md) none took more than 1.21
/// times what the replay says, and all but 4 of full fine-tuning 0.91 times or more; without convolutions at most 1.09
/// times.
inline constexpr Margin kImages = {0.87, 1.20, {}, {}, {}};
inline constexpr Margin kImagesWithoutConvolutions = {0.90, 1.12, {}, {}, {}};
/// Models that read images and text convolve patches alone. 43 runs of a plain loop on an H200 (even numbers of
/// bench/measured/GPU/h200-141gb/vision-language-2) took 0.99 to 1.08 times what the replay says.
inline constexpr Margin kReadsImages = {0.92, 1.08, {}, {}, {}};

/// Whether runs like it were measured: a plain loop over text with still images.
inline bool reads_images(const model::TrainingJob& job) {
  const bool sees = job.graph->doubts(model::Doubt::About::images) && job.graph->picture_tokens() > 0;
  return sees && !job.frames && job.loop == model::Loop::script;
}

inline const char* measured_models(const model::TrainingJob& job) {
  if (makes_images(job)) return "published runs of image and video models";
  return reads_images(job) ? "runs of models that read images on an H200" : "published runs of eight language models";
}

/// How much wider, as a share of the replay's figure, where nothing was measured.
inline constexpr double kOtherGpuWithConvolutions = 0.10;
inline constexpr double kOtherGpu = 0.03;
inline constexpr double kOtherPrecision = 0.05;
inline constexpr double kAdapted = 0.05;
inline constexpr double kSeveralGpus = 0.05;
/// For language models by their config.json, others published runs in half precision: 99 on one GPU of eight models,
/// whole and with adapters, quantised and not (fms-acceleration's and litgpt's tables; `gpumem evaluate`). Whichever of
/// the models is left out, none of its runs took more than 1.03 times what the replay says.
inline constexpr double kPublishedPrecision = 0.01;
inline constexpr double kPublishedAdapted = 0.02;
inline constexpr double kGuess = 0.25;
/// cuDNN's benchmark mode, where it tries kernels with larger workspaces: of 2,570 runs of timm's models (A100-40GB,
/// the FakeTensor study of GPUMemNet's repository) 73 took clearly more than the runs of the same model at other batch
/// sizes, half of these 1.3 times as much or more. The rest lay where they lie without it.
inline constexpr double kBenchmarkMode = 0.30;

/// Among torchtitan's 20 compiled runs on H100 and H200 (benchmarks/llama3_h100_202412, llama3-8b_h200_202506,
/// torchao's page on pretraining, PR 1881), 14 took 1.00 to 1.11 times what the replay says, three under aot_eager 0.86
/// to 0.90 times, and three whose loss is compiled as well 0.82 times, which nobody has explained.
inline constexpr double kCompiled = 0.25;

inline void widen(Margin& margin, double by) {
  margin.lower = std::max(0.0, margin.lower - by);
  margin.upper += by;
  margin.coverage.reset();
}

/// A forward() that nobody has read, of a model whose fields are all those of a Llama. More norms, dropout, an
/// activation with more parts or a copy of the hidden states each add a few of the tensors that a block keeps: of the
/// known models whose fields say no more than a Llama's, the one that differs most (Gemma 3) takes 1.26 times what is
/// planned for a Llama of its sizes.
inline constexpr double kUnknownModelLess = 0.25;
inline constexpr double kUnknownModelMore = 0.50;
/// Fields that change what is computed and hold no parameters that are known.
inline constexpr double kUnknownFields = 0.15;
/// Kernels and towers that follow their source and that no measured run used.
inline constexpr double kUnmeasured = 0.15;
/// Beyond this a file that disagrees with its config says nothing about the memory.
inline constexpr double kMostTimes = 16.0;

/// Unsloth's dynamic 4-bit checkpoint whose config does not name the layers that it leaves whole: none beside those of
/// all such checkpoints, or as many as in the one that takes most of those that Unsloth compares (Qwen2-VL-2B: 1.81 GB
/// in place of 1.36; unsloth.ai/blog/dynamic-4bit), where a twentieth is planned.
inline constexpr double kDynamicLess = 0.05;
inline constexpr double kDynamicMore = 0.28;

inline bool guesses_whole_layers(const model::TrainingJob& job) {
  return job.quantize == model::Quantization::nf4_dynamic && job.graph->whole_modules().empty();
}

inline void widen_for_doubts(Margin& margin, const model::ModelGraph& graph) {
  for (const model::Doubt& doubt : graph.doubts()) {
    switch (doubt.about) {
      case model::Doubt::About::model_type:
        margin.lower = std::max(0.0, margin.lower - kUnknownModelLess);
        margin.upper += kUnknownModelMore;
        break;
      case model::Doubt::About::fields: widen(margin, kUnknownFields); break;
      case model::Doubt::About::parameters: {
        const double times = std::clamp(doubt.times, 1.0 / kMostTimes, kMostTimes);
        if (times < 1.0) margin.lower *= times;
        if (times > 1.0) margin.upper *= times;
        break;
      }
      case model::Doubt::About::quantization: break;
      case model::Doubt::About::kernels: widen(margin, kUnmeasured); break;
      case model::Doubt::About::images: break;  // kReadsImages
    }
    margin.coverage.reset();
  }
}

/// What the training of parts that are held as frozen takes more at most: float32 weights, gradients and two states of
/// AdamW; with adapters what their passes keep, taken as large as their weights in two bytes.
inline std::int64_t of_trained_parts(const model::ModelGraph& graph, const model::TrainingJob& job) {
  constexpr std::int64_t kWhole = 16;
  constexpr std::int64_t kAdapters = 2;
  if (job.trained_parts.empty()) return 0;
  const std::string name = job.trained_parts.substr(0, job.trained_parts.find(':'));
  std::int64_t parameters = 0;
  for (const model::Layer& layer : graph.layers()) {
    if (graph.path(layer).starts_with(name)) parameters = core::bounded_sum({parameters, layer.parameters});
  }
  return core::bounded_product({parameters, name == job.trained_parts ? kWhole : kAdapters});
}

/// How many of the layers read what is a guess, at most 1.
inline double guessed_share(const connect::Guesses& guesses) {
  const auto layers = static_cast<double>(std::max<std::int64_t>(guesses.layers, 1));
  return std::min(1.0, static_cast<double>(guesses.edges) / layers);
}

inline core::Bytes of_batch(std::int64_t elements, const model::TrainingJob& job) {
  const std::int64_t size = core::element_size(model::parameter_dtype(job.precision));
  return core::Bytes(core::bounded_product({elements, job.batch_size, size}));
}

inline bool reentrant_fully_shard(const model::TrainingJob& job) {
  const model::Shardings kind = job.layout.sharding.kind;
  const bool fully = kind == model::Shardings::fsdp2 || kind == model::Shardings::hsdp;
  return fully && model::has_reentrant_checkpoints(job);
}

/// What PyTorch 2.10 does not hold (parallel/sharing.hpp): at most what is gathered at the peak.
inline core::Bytes gathered_again(const model::TrainingJob& job, const Breakdown& at_peak) {
  return reentrant_fully_shard(job) ? at_peak.gathered : core::Bytes(0);
}

/// `routed`: at even routing, of one micro-batch. A pipeline's first stage holds those of several.
inline core::Bytes of_routing(core::Bytes routed, const model::TrainingJob& job) {
  const std::int64_t held = std::min(job.layout.pipeline_parallel, job.gradient_accumulation);
  const double bytes =
      static_cast<double>(routed.count()) * static_cast<double>(held) * (parallel::most_routed(job) - 1.0);
  return core::Bytes(static_cast<std::int64_t>(std::min(bytes, 0x1p60)));
}

inline bool compiles_itself(const model::ModelGraph& graph) {
  const model::StepRecording* const recording = graph.recording();
  return recording != nullptr && recording->setting(model::kRecordedCompiled) != nullptr;
}

/// Only blocks are planned as torch.compile has them, and nothing of a recorded step.
inline std::string compile_text(const model::TrainingJob& job, const analysis::PlanSource& source) {
  if (compiles_itself(*job.graph)) return "as the program compiles itself";
  if (job.graph->recording() != nullptr) return "as much as was recorded; torch.compile mostly takes less";
  if (connect::repeated_blocks(*source.graph).empty()) {
    return "as much as without torch.compile, which mostly takes less: the model shows no repeated blocks";
  }
  return "backward recomputes elementwise results; within a block, buffers are planned as without torch.compile: of 20 "
         "published runs 6 took 10 to 18 % less";
}

/// The first few guesses, each with its line, and how many more there are. A wired graph's warnings are those of
/// wiring.
inline void add_guesses(const analysis::PlanSource& source, std::vector<Assumption>& assumed) {
  constexpr std::size_t kShown = 3;
  const auto guesses = std::span(source.graph->warnings());
  for (const model::Warning& guess : guesses.first(std::min(kShown, guesses.size()))) {
    const std::string line = guess.place.line > 0 ? "line " + std::to_string(guess.place.line) + ": " : "";
    assumed.push_back({"guess", line + guess.message});
  }
  if (guesses.size() > kShown) {
    assumed.push_back(
        {"guess", "and " + std::to_string(guesses.size() - kShown) + " more guesses; `strict` refuses them"});
  }
}

inline std::string range_text(const device::Context& context) {
  return core::to_string(context.lower) + " to " + core::to_string(context.upper);
}

inline std::optional<Assumption> of_context(const device::GpuProfile& gpu, const device::Context& context) {
  const std::string figure = core::to_string(context.expected) + " for CUDA's context";
  switch (context.basis) {
    case device::ContextBasis::runs: return std::nullopt;
    case device::ContextBasis::range:
      return Assumption{"context", figure + " (" + range_text(context) + " were seen on such GPUs)"};
    case device::ContextBasis::size:
      return Assumption{"context", figure + ", from the size of the GPU and a guess of the kernels that it loads (" +
                                       range_text(context) + "); not measured on " + gpu.title};
    case device::ContextBasis::nothing:
      return Assumption{"context", figure + ", as on an A100 (" + range_text(context) + "); the profile of " +
                                       gpu.name + " names neither a context nor a number of SMs"};
  }
  return std::nullopt;
}

/// Where a model reads tokens, whether its batches hold padding.
inline std::string padding_text(const model::TrainingJob& job) {
  if (!job.padding) return "batches hold no padding, so attention has no mask";
  if (job.attention == model::AttentionBackend::flash) return "batches hold padding, which flash attention leaves out";
  return "batches hold padding, so attention has a mask";
}

/// In which type a model that is trained with a frozen one holds it, where the job does not say so.
inline void add_frozen_type(const model::TrainingJob& job, const analysis::PlanSource& source,
                            std::vector<Assumption>& assumed) {
  if (job.base_dtype != model::BaseType::precision || source.graph == nullptr) return;
  const auto type = adapt::frozen_dtype(*source.graph, job);
  if (!type) return;
  assumed.push_back({"adaptation", "the frozen model is held in " + std::string(core::to_string(*type)) +
                                       ", as diffusers' examples cast it; `base_dtype` says otherwise"});
}

inline void add_quantised_base(const model::TrainingJob& job, std::vector<Assumption>& assumed) {
  if (job.quantize == model::Quantization::none) return;
  const core::DType type =
      model::dtype_of(job.base_dtype).value_or(adapt::unquantised_dtype(job.quantize, job.precision));
  if (job.quantize == model::Quantization::int8_sdnq) {
    assumed.push_back({"quantize",
                       "SDNQ holds linear layers in int8 with a scale a row (group_size -1), and multiplies copies in "
                       "int8, rotated by Hadamard matrices; its kernels are compiled; embedders, modulation of whole "
                       "models and the last layer are held in " +
                           std::string(core::to_string(type))});
    return;
  }
  if (!model::has_own_adapters(job.quantize)) {
    const bool whole = job.quantize == model::Quantization::fp8wo_torchao;
    assumed.push_back(
        {"quantize", std::string(whole ? "torchao makes each weight whole for its product, which keeps it for backward"
                                       : "torchao's copies of rows in float8 are made call by call, not compiled, and "
                                         "autograd keeps what they are made of") +
                         "; other weights are held in " + std::string(core::to_string(type))});
    return;
  }
  if (guesses_whole_layers(job)) {
    assumed.push_back({"quantize",
                       "which layers Unsloth's checkpoint leaves whole is in its own config.json "
                       "(quantization_config.llm_int8_skip_modules), which this is not: routers and towers do, and the "
                       "first layers as far as they add a twentieth to the weights"});
  }
  const std::string as_prepared = type == core::DType::float32 ? ", as prepare_model_for_kbit_training() leaves them"
                                                               : ", without prepare_model_for_kbit_training()";
  assumed.push_back(
      {"quantize", "norms, embeddings and the head are held in " + std::string(core::to_string(type)) + as_prepared});
  if (job.quantize == model::Quantization::int8) {
    assumed.push_back({"quantize", "no columns of outliers, which int8 multiplies separately"});
  }
}

inline void add_adaptation(const model::TrainingJob& job, const analysis::PlanSource& source,
                           std::vector<Assumption>& assumed) {
  if (model::multiplies_copies(job.quantize) && job.loop == model::Loop::megatron) {
    const std::string name(model::name_of(model::kQuantizations, job.quantize));
    assumed.push_back(
        {"quantize", "TransformerEngine's products copy their operands to " + name +
                         "; backward reads these copies, and those of weights stay, one for each direction (on "
                         "Blackwell float8 needs one for both); the range does not come from such runs"});
    return;
  }
  if (model::multiplies_copies(job.quantize)) {
    const std::string name = job.quantize == model::Quantization::mxfp8 ? "mxfp8" : "float8";
    assumed.push_back({"quantize", "products copy their operands to " + name +
                                       " for each call, all but the head's (torchao, compiled); "
                                       "what backward reads is not converted; the range does not come from such runs"});
    return;
  }
  if (adapt::adapts(job)) {
    assumed.push_back({"adaptation", published(job, source)
                                         ? std::string("the range comes from ") + measured_models(job)
                                         : "the range does not come from runs with frozen layers, adapters or "
                                           "quantised weights"});
  }
  for (const std::string& remark : source.remarks) assumed.push_back({"adaptation", remark});
  add_frozen_type(job, source, assumed);
  if (model::bounces_weights(job.offload)) {
    assumed.push_back({"adaptation",
                       "frozen weights cross from the host once for each product, as in SimpleTuner's RamTorch; of "
                       "each direction the last two stay on the GPU"});
  }
  if (job.block_swap.kind != model::BlockSwap::none)
    assumed.push_back({"adaptation", "blocks take turns as in the programs' source; no such run was measured"});
  add_quantised_base(job, assumed);
}

inline void add_layout(const model::TrainingJob& job, const analysis::PlanSource& source, const device::GpuProfile& gpu,
                       std::vector<Assumption>& assumed) {
  const device::Communicators more = analysis::communicators(job, gpu);
  if (more.count > 0) assumed.push_back({"communicators", device::nccl_text(gpu, more)});
  if (reentrant_fully_shard(job)) {
    assumed.push_back({"checkpointing",
                       "reentrant, and by PyTorch before 2.10, which gathers blocks again behind their backward; "
                       "`+non-reentrant` behind the kind of `checkpointing` leaves this out"});
  }
  if (source.routed_elements > 0) assumed.push_back({"routing", parallel::routing_text(job)});
  if (std::string text = parallel::rank_text(job.layout); !text.empty()) assumed.push_back({"rank", std::move(text)});
  if (std::string text = parallel::sharing_text(job); !text.empty()) assumed.push_back({"sharding", std::move(text)});
  const bool fixed = job.graph != nullptr && job.graph->run_settings().cublas_workspace > 0;
  if (fixed) assumed.push_back({"workspaces", "a deterministic run has CUBLAS_WORKSPACE_CONFIG=:4096:8"});
  const bool meets = job.layout.semi_sync.kind > model::SemiSync::local_sgd;
  if (meets) assumed.push_back({"semi_sync", "the last meeting's parameters lie on the host, as torchft's do"});
}

/// What a recording's program was given or sets, and what of it is not in the estimate.
void add_recorded(const model::StepRecording& recording, const model::TrainingJob& job,
                  const device::AllocatorOptions& allocator, std::vector<Assumption>& assumed);

}  // namespace evidence_detail

inline Margin margin_of(const model::TrainingJob& job, const analysis::PlanSource& source,
                        const device::GpuProfile& gpu) {
  namespace detail = evidence_detail;
  const bool bounded = source.guesses.bounded > 0;  // these may convolve
  const bool published = detail::published(job, source);
  const bool images = published && detail::makes_images(job) && !bounded;
  Margin margin = source.convolves || bounded ? detail::kWithConvolutions : detail::kWithoutConvolutions;
  if (images) margin = source.convolves ? detail::kImages : detail::kImagesWithoutConvolutions;
  const bool brings_images = job.graph->doubts(model::Doubt::About::images);
  const bool reads = published && detail::reads_images(job) && !bounded;
  if (reads) margin = detail::kReadsImages;
  else if (brings_images) detail::widen(margin, detail::kUnmeasured);
  if (!detail::measured_on(gpu) && !((images || reads) && gpu.compute_capability == "9.0")) {
    detail::widen(margin, source.convolves && !reads ? detail::kOtherGpuWithConvolutions : detail::kOtherGpu);
  }
  if (!detail::measured_in(job.precision)) {
    detail::widen(margin, published ? detail::kPublishedPrecision : detail::kOtherPrecision);
  }
  if (job.cudnn_benchmark && source.convolves) {
    margin.upper += detail::kBenchmarkMode;
    margin.coverage.reset();
  }
  if (job.compile && !detail::compiles_itself(*source.graph)) {
    margin.lower = std::max(0.0, margin.lower - detail::kCompiled);
    margin.coverage.reset();
  }
  if (adapt::adapts(job)) detail::widen(margin, published ? detail::kPublishedAdapted : detail::kAdapted);
  if (detail::guesses_whole_layers(job)) {
    margin.lower = std::max(0.0, margin.lower - detail::kDynamicLess);
    margin.upper += detail::kDynamicMore;
    margin.coverage.reset();
  }
  if (!parallel::on_one_gpu(job.layout)) detail::widen(margin, detail::kSeveralGpus);
  if (source.guesses.edges > 0) detail::widen(margin, detail::kGuess + detail::guessed_share(source.guesses));
  if (source.unknown_layers > 0 || bounded) margin.coverage.reset();
  if (const model::StepRecording* recording = source.graph->recording()) {
    // Sizes that values decide are mostly taken as large as they can be, so the range reaches further down than up.
    if (recording->invented_sizes) {
      margin.lower = std::max(0.0, margin.lower - 2 * detail::kGuess);
      detail::widen(margin, detail::kGuess / 2);
    }
    if (recording->invented_sizes || recording->setting(model::kRecordedGraphs) != nullptr) margin.coverage.reset();
  }
  detail::widen_for_doubts(margin, *job.graph);
  if (model::megatron_option(job, "cuda_graph_impl").value_or("none") != "none") {
    detail::widen(margin, detail::kUnmeasured);
  }
  margin.fewer = detail::of_batch(source.guesses.fewer_elements, job);
  margin.more = detail::of_batch(source.guesses.more_elements, job);
  const std::int64_t routed = detail::of_routing(detail::of_batch(source.routed_elements, job), job).count();
  margin.more = core::Bytes(core::bounded_sum({margin.more.count(), routed, source.shorter_batches, job.uncounted,
                                               detail::of_trained_parts(*source.graph, job)}));
  return margin;
}

inline std::vector<Assumption> assumptions_of(const model::TrainingJob& job, const analysis::PlanSource& source,
                                              const device::GpuProfile& gpu, const device::Context& context,
                                              const device::AllocatorOptions& allocator) {
  namespace detail = evidence_detail;
  std::vector<Assumption> assumed;
  if (auto of_context = detail::of_context(gpu, context)) assumed.push_back(*std::move(of_context));
  if (!gpu.usable_bytes) {
    assumed.push_back(
        {"capacity", "all of " + core::to_string(gpu.capacity()) + " can be used; a driver keeps a little"});
  }
  if (source.convolves && !gpu.convolution_workspace.fitted)
    assumed.push_back({"workspaces", "cuDNN takes the workspaces that it takes on an A100"});
  if (job.cudnn_benchmark && source.convolves) {
    assumed.push_back({"benchmark",
                       "cuDNN's benchmark mode takes the workspaces that its heuristics take; of 100 measured runs 3 "
                       "took more, half of these 1.3 times as much"});
  }
  if (job.compile) assumed.push_back({"compile", detail::compile_text(job, source)});
  if (!source.loss.empty()) assumed.push_back({"loss", source.loss});
  if (source.guesses.edges > 0 || source.guesses.bounded > 0) detail::add_guesses(source, assumed);
  if (!detail::measured_in(job.precision)) {
    const std::string name(model::name_of(model::kPrecisions, job.precision));
    assumed.push_back({"precision", detail::published(job, source)
                                        ? "the range for " + name + " comes from runs that others published"
                                        : "no run in " + name + " was measured"});
  }
  if (source.graph->reads_tokens() && !source.graph->architecture().empty()) {
    assumed.push_back({"padding", detail::padding_text(job)});
  }
  const bool decomposes = model::row_of(job.optimizer).projection == model::OptimizerRow::Projection::singular;
  if (decomposes) assumed.push_back({"optimizer", "what cuSOLVER takes to decompose a gradient is not counted"});
  for (const model::SettingNote& note : job.notes) assumed.push_back({note.setting, note.text});
  detail::add_adaptation(job, source, assumed);
  detail::add_layout(job, source, gpu, assumed);
  if (const model::StepRecording* recording = job.graph->recording()) {
    detail::add_recorded(*recording, job, allocator, assumed);
    if (!recording->torch.empty()) assumed.push_back({"pytorch", model::torch_text(*recording)});
    const auto& [major, minor] = recording->capability;
    const std::string capability = std::to_string(major) + "." + std::to_string(minor);
    if (capability != gpu.compute_capability) {
      assumed.push_back({"recording", "the same kernels as at compute capability " + capability +
                                          ", which the recording pretended; " + gpu.name + " has " +
                                          gpu.compute_capability});
    }
  }
  return assumed;
}

}  // namespace gpumem::estimate
