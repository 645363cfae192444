// Input: a wired graph and what the job says about freezing and quantising.
// Output: for each layer, how its weights are held and which of its tensors get gradients.
//
//   only --freeze these are not trained, everything else is
//   only --train these are trained, nothing else is
//   both                first freeze, then train
//   --lora, --quantize  the base is frozen, quantised weights are; --train adds to the adapters, as PEFT's
//                       modules_to_save do: a pattern that means nothing is passed over
//
// A tensor that is tied to another is as that one is. Beside adapters a module that --train names is a copy, which is
// tied to nothing (PEFT's ModulesToSaveWrapper, which deep-copies; huggingface/peft#2777): the copy of a tied head is
// trained, and the copy of an embedding leaves its tied head frozen.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpumem/adapt/adapters.hpp"
#include "gpumem/adapt/lora_targets.hpp"
#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/adaptation.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::adapt {

/// One a layer. Errors: invalid_argument for a pattern that means nothing, or a weight that is quantised and to be
/// trained; missing_information where there is nothing to quantise.
[[nodiscard]] core::Result<std::vector<model::WeightStorage>> weight_storage(const connect::WiredGraph& wired,
                                                                             const std::vector<BaseLinear>& linears,
                                                                             const model::TrainingJob& job);

/// The patterns of `train` that are passed over because they mean nothing. Source: PEFT 0.14, utils/other.py:
/// _set_trainable.
[[nodiscard]] std::vector<std::string> passed_over(const model::ModelGraph& graph, const model::TrainingJob& job);

/// The type of what is not quantised in a base that is: the precision's, so under autocast float32, as PEFT's
/// prepare_model_for_kbit_training() leaves it; a GPTQ checkpoint is in half precision whatever the precision.
/// Source: PEFT 0.14, utils/other.py.
[[nodiscard]] core::DType unquantised_dtype(model::Quantization quantization, model::Precision precision);

/// The type of what is frozen: the job's, or autocast's where the model's source casts frozen layers to it. Nothing: as
/// the precision has it.
[[nodiscard]] inline std::optional<core::DType> frozen_dtype(const model::ModelGraph& graph,
                                                             const model::TrainingJob& job) {
  if (const auto given = model::dtype_of(job.base_dtype)) return given;
  if (!graph.run_settings().lowers_frozen) return std::nullopt;
  if (job.precision == model::Precision::amp_fp16) return core::DType::float16;
  if (job.precision == model::Precision::amp_bf16) return core::DType::bfloat16;
  return std::nullopt;
}

/// Whether every tensor of the layer is frozen.
[[nodiscard]] bool wholly_frozen(const connect::WiredGraph& wired, const model::Layer& layer,
                                 const model::WeightStorage& storage);

namespace trained_weights_detail {

inline constexpr std::uint8_t kAll = 0xFF;
inline constexpr std::uint8_t kWeight = 1;
inline constexpr std::uint8_t kBias = 2;

/// The tensors of a module that the patterns mean, as bits.
inline std::uint8_t meant(NamePatterns& patterns, const std::string& path) {
  if (patterns.empty()) return 0;
  std::uint8_t bits = patterns.match(path) ? kAll : 0;
  if (patterns.match(path + ".weight")) bits |= kWeight;
  if (patterns.match(path + ".bias")) bits |= kBias;
  return bits;
}

inline core::Error means_nothing(std::string_view option, std::string_view pattern, const model::ModelGraph& graph) {
  std::string some;
  for (const model::Layer& layer : graph.layers()) {
    if (layer.parameters == 0) continue;
    some = graph.path(layer);
    break;
  }
  return {core::ErrorCode::invalid_argument,
          "--" + std::string(option) + " " + core::quoted(pattern) +
              " matches no layer with parameters; a star matches any text, and the first such layer is called " +
              core::quoted(some),
          {graph.file(), 0, {}}};
}

/// A layer with only tied parameters is treated as the first layer that holds the same number, unless one of the two is
/// a copy of its own.
inline void follow_ties(const model::ModelGraph& graph, bool copies, std::vector<model::WeightStorage>& storage) {
  std::unordered_map<std::int64_t, std::size_t> first_of;
  for (std::size_t at = 0; at < storage.size(); ++at) {
    const model::Layer& layer = graph.layers()[at];
    if (layer.parameters == 0) continue;
    if (layer.tied_parameters < layer.parameters) {
      first_of.try_emplace(layer.parameters, at);
    } else if (const auto owner = first_of.find(layer.parameters); owner != first_of.end()) {
      const std::uint8_t frozen = storage[owner->second].frozen;
      const bool apart = copies && (frozen == 0 || storage[at].frozen == 0);
      if (!apart) storage[at].frozen = frozen;
    }
  }
}

/// What torchao converts, except the head, as torchtitan, axolotl and accelerate have it: sides that tensor cores
/// multiply in eight bits. Source: torchao 0.9, float8/float8_linear_utils.py (convert_to_float8_training) and
/// torchtitan 2024-12, float8.py (filter_fqns).
inline bool takes_float8(const BaseLinear& linear) {
  constexpr std::int64_t kMultiple = 16;
  return !linear.output && linear.in % kMultiple == 0 && linear.out % kMultiple == 0;
}

/// Which layers TransformerEngine multiplies in fewer bits under Megatron: all linear ones but the head and the router,
/// and, where the model's source says so, those of the first and last block. Attention keeps its output, so the layer
/// that reads it keeps no copy; nor does the first one of shared experts, whose input the router keeps. Source:
/// Megatron-LM of August 2026, core/fp8_utils.py (is_first_last_bf16_layer), core/transformer/attention.py and
/// moe/moe_layer.py (set_save_original_input); TransformerEngine of August 2026, pytorch/module/linear.py
/// (quantize_weight with cache_weight, backward_needs_input).
class CopyingLayers {
 public:
  CopyingLayers(const model::ModelGraph& graph, model::Quantization quantize)
      : settings_(graph.run_settings()), quantize_(quantize) {
    if (settings_.ends_in_bf16) blocks_ = connect::repeated_blocks(graph);
  }

  /// Nothing: it multiplies what it reads.
  [[nodiscard]] std::optional<model::WeightStorage> storage_of(const BaseLinear& linear) const {
    const std::string_view name = linear.leaf();
    const bool routes = name == "router" || name == "gate";
    if (!takes_float8(linear) || routes || is_at_an_end(linear.layer)) return std::nullopt;
    const bool shared = linear.path.ends_with("shared_experts.linear_fc1");
    return model::WeightStorage{
        .copies = quantize_,
        .keeps_weight_copies = !settings_.weights_in_fp8 && quantize_ != model::Quantization::float8_params,
        .keeps_input = shared || name == "linear_proj" || name == "o_proj"};
  }

 private:
  [[nodiscard]] bool is_at_an_end(std::uint32_t layer) const {
    const auto holds = [&](const connect::Range& block) { return layer >= block.first && layer < block.end; };
    return !blocks_.empty() && (holds(blocks_.front()) || holds(blocks_.back()));
  }

  model::RunSettings settings_;
  model::Quantization quantize_;
  std::vector<connect::Range> blocks_;
};

/// Names of modules that SDNQ leaves as they are: at the model's root where they begin with a dot, else any part of a
/// path. Source: SDNQ 2026-08, common.py (common_skip_keys, module_skip_keys_dict: of image models, what is called the
/// same means the same) and utils.py (check_param_name_in); diffusers' _skip_layerwise_casting_patterns.
inline constexpr std::string_view kNotForSdnq =
    ".time_embed .context_embedder .condition_embedder .x_embedder .t_embedder .y_embedder .proj_in .emb_in "
    ".txt_in .img_in .vid_in .proj_out .norm_out .emb_out .txt_out .img_out .vid_out .final_layer "
    "time_text_embed patch_embedding patch_embed lm_head pos_embed adaln_single distilled_guidance_layer "
    "double_stream_modulation_img double_stream_modulation_txt single_stream_modulation time_guidance_embed "
    "time_caption_embed cap_embedder all_x_embedder all_final_layer input_proj llm_cond_proj t_embedding "
    "adaln_proj crossattn_proj caption_projection";

inline bool is_skipped(std::string_view path, std::string_view key) {
  if (key.front() == '.') return path.starts_with(key.substr(1));
  for (std::size_t at = path.find(key); at != std::string_view::npos; at = path.find(key, at + 1)) {
    const bool begins = at == 0 || path[at - 1] == '.';
    const bool ends = at + key.size() == path.size() || path[at + key.size()] == '.';
    if (begins && ends) return true;
  }
  return false;
}

/// Sides and elements below which SDNQ leaves a layer, or its int8 product refuses it (utils.py:
/// check_quant_is_allowed, check_quantized_matmul_is_allowed).
inline bool takes_sdnq(const BaseLinear& linear) {
  constexpr std::int64_t kShortest = 32;
  constexpr std::int64_t kMultiple = 16;
  constexpr std::int64_t kFewest = 16384;
  const auto elements = (core::Checked(linear.in) * core::Checked(linear.out)).value();
  if (linear.in < kShortest || linear.out < kShortest || !elements || *elements < kFewest) return false;
  if (linear.in % kMultiple != 0 || linear.out % kMultiple != 0) return false;
  for (std::string_view left = kNotForSdnq; !left.empty();) {
    const std::size_t end = std::min(left.find(' '), left.size());
    if (is_skipped(linear.path, left.substr(0, end))) return false;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return true;
}

/// Whether the job's way to hold weights takes this layer. torchao's takes the last one of an image model, too
/// (SimpleTuner 2026-08, helpers/training/quantisation: _torchao_filter_fn).
inline bool takes_quantization(const BaseLinear& linear, const model::TrainingJob& job, bool text) {
  const bool head = linear.output && (text || linear.path.empty());
  constexpr std::int64_t kMultiple = 16;
  switch (job.quantize) {
    case model::Quantization::int8_sdnq: return !head && takes_sdnq(linear);
    case model::Quantization::fp8_torchao:
    case model::Quantization::fp8wo_torchao: return !head && linear.in % kMultiple == 0 && linear.out % kMultiple == 0;
    default: return !linear.output;
  }
}

/// What bitsandbytes leaves whole in any model that Unsloth loads in four bits, beside heads. Source: unsloth_zoo
/// 2026-08, peft_utils.py (SKIP_QUANTIZATION_MODULES).
inline constexpr auto kNotForUnsloth =
    std::to_array<std::string_view>({"multi_modal_projector", "merger", "modality_projection", "router", "mlp.gate",
                                     "block_sparse_moe.gate", "mamba", "audio_tower", "vision_tower", "vision_embedder",
                                     "embed_vision", "embed_audio", "score", "classifier", "qa_outputs"});

/// Modules that the checkpoint holds whole though the job quantises: by its config's list, or as all of Unsloth's do.
/// Source: transformers 4.51, quantizers_utils.py and integrations/bitsandbytes.py (llm_int8_skip_modules).
class WholeModules {
 public:
  WholeModules(const model::ModelGraph& graph, model::Quantization quantize) {
    for (const std::string& name : graph.whole_modules()) add(name);
    if (!graph.whole_modules().empty() || quantize != model::Quantization::nf4_dynamic) return;
    names_.assign(kNotForUnsloth.begin(), kNotForUnsloth.end());
  }

  [[nodiscard]] bool have(std::string_view path) const {
    return std::ranges::any_of(names_, [&](const std::string& name) { return is_skipped(path, name); });
  }

 private:
  /// Of models that read images, older configs call the text's part as it was called before transformers 4.52.
  void add(const std::string& name) {
    constexpr std::size_t kLongest = 256;  // no module has a longer one
    constexpr std::string_view kOlder = "language_model.model.";
    if (name.empty() || name.size() > kLongest) return;
    names_.push_back(name);
    if (name.starts_with("model.")) names_.push_back("language_" + name);
    else if (name.starts_with(kOlder)) names_.push_back("language_model." + name.substr(kOlder.size()));
  }

  std::vector<std::string> names_;
};

/// Which further layers a dynamic checkpoint leaves whole is in its config alone. Without it, the first layers stay
/// whole until they add a 20th to what all weights take: half of what Unsloth says its checkpoints add at most.
/// Source: unsloth.ai/blog/dynamic-4bit ("less than 10 % more").
inline void leave_some_whole(const model::ModelGraph& graph, const std::vector<BaseLinear>& linears,
                             std::vector<model::WeightStorage>& storage) {
  constexpr double kBytesLess = 1.5;  // a weight in four bits, its scales apart
  constexpr double kBytesWhole = 2.0;
  constexpr double kShare = 1.0 / 20.0;
  double in_four_bits = 0.0;
  const auto weights = [](const BaseLinear& linear) {
    return static_cast<double>(linear.in) * static_cast<double>(linear.out);
  };
  for (std::size_t at = 0; at < storage.size(); ++at) {
    const bool experts = storage[at].quantization == model::Quantization::nf4_linear_experts;
    if (experts) in_four_bits += static_cast<double>(graph.layers()[at].parameters);
  }
  for (const BaseLinear& linear : linears) {
    if (storage[linear.layer].quantization != model::Quantization::none) in_four_bits += weights(linear);
  }
  double left = kShare * (static_cast<double>(graph.parameters()) * kBytesWhole - in_four_bits * kBytesLess);
  for (const BaseLinear& linear : linears) {
    if (storage[linear.layer].quantization == model::Quantization::none) continue;
    left -= weights(linear) * kBytesLess;
    if (left < 0.0) return;
    storage[linear.layer].quantization = model::Quantization::none;
  }
}

/// Whether axolotl holds it in four bits: "expert" is in its name, and it has three axes or more. Source: axolotl
/// 2026-08, monkeypatch/moe_quant.py (_patched_set_param_for_module).
inline bool holds_expert_matrices(const model::ModelGraph& graph, const model::Layer& layer) {
  constexpr std::size_t kFewestAxes = 3;
  if (graph.op(layer) != model::kParameterOp || graph.path(layer).find("expert") == std::string::npos) return false;
  const model::Attributes attributes = graph.attributes(layer);
  const model::AttributeValue* shape = attributes.find("shape");
  const auto* sizes = shape == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(shape);
  return sizes != nullptr && sizes->size() >= kFewestAxes;
}

/// Loops with models of their own read no such checkpoint. Where experts are one tensor a layer, Unsloth's checkpoints
/// and axolotl's linearized ones have linear layers in their place (unsloth_zoo 2025-08, temporary_patches/gpt_oss.py:
/// gate_up_projs, down_projs), which this graph has not: adapters of all linear layers would be on each of them.
inline core::Status has_listed_form(const model::ModelGraph& graph, const model::TrainingJob& job) {
  const bool dynamic = job.quantize == model::Quantization::nf4_dynamic;
  const bool linear = dynamic || job.quantize == model::Quantization::nf4_linear_experts;
  if (!linear && job.quantize != model::Quantization::nf4_experts) return core::Done{};
  if (const model::LoopRow& loop = model::row_of(job.loop); loop.own_model) {
    const std::string whose =
        dynamic ? "nf4-dynamic` is for Unsloth's checkpoints"
                : std::string(model::name_of(model::kQuantizations, job.quantize)) + "` is for transformers' models";
    return core::Error{
        core::ErrorCode::invalid_argument,
        "`quantize=" + whose + ", which `loop=" + std::string(loop.name) + "` does not read; say `quantize=nf4-double`",
        {graph.file(), 0, {}}};
  }
  const bool adapted =
      job.lora_targets.starts_with("all-linear") || job.lora_targets.find("parameter:") != std::string::npos;
  if (!linear || !job.has_adapters() || !adapted) return core::Done{};
  core::Pace pace;
  for (const model::Layer& layer : graph.layers()) {
    if (pace.late()) return core::deadline_error();
    if (!holds_expert_matrices(graph, layer)) continue;
    return core::Error{core::ErrorCode::missing_information,
                       "in such a checkpoint each expert has linear layers of its own, and adapters on them are not "
                       "modelled; name other layers (`lora_targets=q_proj+k_proj+v_proj+o_proj`)",
                       {graph.file(), 0, {}}};
  }
  return core::Done{};
}

/// Which layers hold fewer bits; false: none does. Errors: deadline.
inline core::Result<bool> mark_quantised(const model::ModelGraph& graph, const std::vector<BaseLinear>& linears,
                                         const model::TrainingJob& job, std::vector<model::WeightStorage>& storage) {
  if (!model::holds_in_fewer_bits(job.quantize)) return false;
  // BitsandbytesPrecision of Fabric takes every linear layer, the head too, and reads no list of a checkpoint.
  const bool own_model = model::row_of(job.loop).own_model;
  const bool older = model::is_nf4(job.quantize) && own_model;
  const bool dynamic = job.quantize == model::Quantization::nf4_dynamic;
  const bool linear_experts = dynamic || job.quantize == model::Quantization::nf4_linear_experts;
  const bool experts = linear_experts || job.quantize == model::Quantization::nf4_experts;
  const bool listed = model::has_own_adapters(job.quantize) && !own_model;
  const WholeModules whole(graph, job.quantize);
  bool quantised = false;
  core::Pace pace;
  for (const BaseLinear& linear : linears) {
    if (pace.late()) return core::deadline_error();
    if (!older && !takes_quantization(linear, job, graph.reads_tokens())) continue;
    if (listed && whole.have(linear.path)) continue;
    storage[linear.layer].quantization = experts ? model::Quantization::nf4_double : job.quantize;
    storage[linear.layer].older_four_bits = older;
    quantised = true;
  }
  for (std::size_t at = 0; experts && at < storage.size(); ++at) {
    if (pace.late()) return core::deadline_error();
    if (!holds_expert_matrices(graph, graph.layers()[at])) continue;
    storage[at].quantization =
        linear_experts ? model::Quantization::nf4_linear_experts : model::Quantization::nf4_double;
    quantised = true;
  }
  if (dynamic && graph.whole_modules().empty()) leave_some_whole(graph, linears, storage);
  return quantised;
}

/// Whether a layer is inside one of a list of modules: "blocks.7.attn1.to_q" is, "to_out.0" is not.
inline bool is_in_block(std::string_view path) {
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const std::string_view rest = path.substr(dot + 1);
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits > 0 && digits < rest.size() && rest[digits] == '.') return true;
  }
  return false;
}

inline bool bounces(model::Quantization held) {
  return held == model::Quantization::none || held == model::Quantization::int8_sdnq ||
         held == model::Quantization::fp8_torchao || held == model::Quantization::fp8wo_torchao;
}

/// RamTorch's linear layers, if the job has any: those that are frozen.
inline core::Status keep_on_host(const std::vector<BaseLinear>& linears, const model::TrainingJob& job,
                                 std::vector<model::WeightStorage>& storage) {
  if (!model::bounces_weights(job.offload)) return core::Done{};
  if (!bounces(job.quantize)) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "`offload=" + std::string(model::name_of(model::kOffloads, job.offload)) +
                           "` takes weights that are whole, int8-sdnq, fp8-torchao or fp8wo-torchao; say another "
                           "`quantize`",
                       {}};
  }
  bool any = false;
  for (const BaseLinear& linear : linears) {
    model::WeightStorage& held = storage[linear.layer];
    const bool meant = job.offload == model::Offload::ramtorch || is_in_block(linear.path);
    held.on_host = meant && held.freezes(0);
    any = any || held.on_host;
  }
  if (any) return core::Done{};
  return core::Error{core::ErrorCode::invalid_argument,
                     "no linear layer with a frozen weight is there to stay in the host's memory; say adapters "
                     "(`lora=16`), or leave `offload` out",
                     {}};
}

/// Says of each layer whether its product multiplies copies in fewer bits; and whether any does. Errors:
/// invalid_argument where the job's framework has no such products.
inline core::Result<bool> mark_copies(const model::ModelGraph& graph, const std::vector<BaseLinear>& linears,
                                      const model::TrainingJob& job, std::vector<model::WeightStorage>& storage) {
  if (!model::multiplies_copies(job.quantize)) return false;
  const bool megatron = job.loop == model::Loop::megatron;
  const bool of_engine =
      job.quantize == model::Quantization::nvfp4 || job.quantize == model::Quantization::float8_params;
  if (of_engine && !megatron) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "`quantize=" + std::string(model::name_of(model::kQuantizations, job.quantize)) +
                           "` is TransformerEngine's, as Megatron has it; say `loop=megatron`, or take mxfp8",
                       {graph.file(), 0, {}}};
  }
  const CopyingLayers copying(graph, job.quantize);
  bool any = false;
  for (const BaseLinear& linear : linears) {
    model::WeightStorage& of = storage[linear.layer];
    if (megatron) of = copying.storage_of(linear).value_or(model::WeightStorage());
    else of.float8 = takes_float8(linear);
    any = any || of.float8 || of.copies != model::Quantization::none;
  }
  return any;
}

}  // namespace trained_weights_detail

inline core::Result<std::vector<model::WeightStorage>> weight_storage(const connect::WiredGraph& wired,
                                                                      const std::vector<BaseLinear>& linears,
                                                                      const model::TrainingJob& job) {
  namespace detail = trained_weights_detail;
  const model::ModelGraph& graph = wired.graph();
  std::vector<model::WeightStorage> storage(graph.layers().size());
  NamePatterns freeze(job.freeze);
  NamePatterns train(job.train);
  const std::optional<core::DType> given = frozen_dtype(graph, job);
  const bool frozen_base = job.has_adapters() || (freeze.empty() && !train.empty());
  const core::Result<bool> in_fewer_bits = detail::mark_copies(graph, linears, job, storage);
  if (!in_fewer_bits) return in_fewer_bits.error();
  if (core::Status known = detail::has_listed_form(graph, job); !known) return known.error();
  const core::Result<bool> quantised = detail::mark_quantised(graph, linears, job, storage);
  if (!quantised) return quantised.error();
  if (job.quantize != model::Quantization::none && !*quantised && !*in_fewer_bits) {
    return core::Error{core::ErrorCode::missing_information,
                       "the model shows no linear layer with known sizes except its head: there is nothing to "
                       "quantise; leave `quantize` out",
                       {graph.file(), 0, {}}};
  }
  core::Pace pace;
  for (std::size_t at = 0; at < storage.size(); ++at) {
    if (pace.late()) return core::deadline_error();
    const model::Layer& layer = graph.layers()[at];
    if (layer.parameters == 0) continue;
    model::WeightStorage& of = storage[at];
    if (*quantised) of.dtype = unquantised_dtype(job.quantize, job.precision);
    const std::string path = graph.path(layer);
    const std::uint8_t trained = detail::meant(train, path);
    of.frozen = layer.frozen || frozen_base ? detail::kAll : detail::meant(freeze, path);
    if (job.has_adapters() && !freeze.empty())
      static_cast<void>(detail::meant(freeze, path));  // they mean something all the same
    of.frozen &= static_cast<std::uint8_t>(~trained);
    if (given && of.frozen == detail::kAll) of.dtype = given;
    if (of.quantization == model::Quantization::none) continue;
    if ((trained & detail::kWeight) != 0 && layer.tied_parameters == 0) {
      return core::Error{core::ErrorCode::invalid_argument,
                         "its weight is quantised and cannot be trained; leave it out of `train`, or `quantize`",
                         wired.place_of(layer)};
    }
    of.frozen |= detail::kWeight;
  }
  // Whoever trains on text alone may freeze the tower, which is left out then.
  for (const std::string& path : graph.left_out()) static_cast<void>(detail::meant(freeze, path));
  if (const auto names = freeze.unused(); !names.empty()) return detail::means_nothing("freeze", names.front(), graph);
  const auto names = job.has_adapters() ? std::vector<std::string_view>() : train.unused();
  if (!names.empty()) return detail::means_nothing("train", names.front(), graph);
  detail::follow_ties(graph, job.has_adapters() && !job.train.empty(), storage);
  if (core::Status kept = detail::keep_on_host(linears, job, storage); !kept) return kept.error();
  return storage;
}

inline std::vector<std::string> passed_over(const model::ModelGraph& graph, const model::TrainingJob& job) {
  if (!job.has_adapters() || job.train.empty()) return {};
  NamePatterns train(job.train);
  for (const model::Layer& layer : graph.layers()) {
    if (layer.parameters > 0) static_cast<void>(trained_weights_detail::meant(train, graph.path(layer)));
  }
  const auto names = train.unused();
  return {names.begin(), names.end()};
}

inline core::DType unquantised_dtype(model::Quantization quantization, model::Precision precision) {
  const bool gptq = quantization == model::Quantization::gptq_4bit;
  if (gptq && precision == model::Precision::amp_fp16) return core::DType::float16;
  if (gptq && precision == model::Precision::amp_bf16) return core::DType::bfloat16;
  return model::parameter_dtype(precision);
}

inline bool wholly_frozen(const connect::WiredGraph& wired, const model::Layer& layer,
                          const model::WeightStorage& storage) {
  namespace detail = trained_weights_detail;
  if (storage.frozen == detail::kAll) return true;
  if ((storage.frozen & detail::kWeight) == 0) return false;
  if ((storage.frozen & detail::kBias) != 0) return true;
  const model::Attributes attributes = wired.graph().attributes(layer);
  const auto in = attributes.integer("in_features");
  const auto out = attributes.integer("out_features");
  return in && out && (core::Checked(*in) * core::Checked(*out)).value() == layer.parameters;
}

}  // namespace gpumem::adapt
