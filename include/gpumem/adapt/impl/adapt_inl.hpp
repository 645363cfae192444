#pragma once

#include "gpumem/adapt/adapt.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "gpumem/adapt/adapters.hpp"
#include "gpumem/adapt/lora_targets.hpp"
#include "gpumem/adapt/peft_methods.hpp"
#include "gpumem/adapt/peft_model.hpp"
#include "gpumem/adapt/trained_weights.hpp"
#include "gpumem/adapt/trainer_models.hpp"
#include "gpumem/connect/connect.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/core/deadline.hpp"

namespace gpumem::adapt {

namespace adapt_detail {

/// The first embedding of token ids, and what is tied to it, leave tensors that need gradients.
class InputGradients {
 public:
  explicit InputGradients(const connect::WiredGraph& wired) : wired_(wired) {}

  void behind(connect::GraphCopy& copy, std::uint32_t index) {
    const model::Layer& layer = wired_.graph().layers()[index];
    const ops::Op* op = wired_.op(layer);
    if (op == nullptr || !op->reads_token_ids || wired_.outputs(index).empty()) return;
    if (parameters_ == 0) parameters_ = layer.parameters;
    if (layer.parameters != parameters_) return;
    const model::LayerIndex at = copy.now(static_cast<model::LayerIndex>(index));
    copy.replace(index, copy.insert({.name = std::string(wired_.graph().name(layer)) + ".requires_grad",
                                     .op = "requires_grad",
                                     .inputs = {at},
                                     .output = wired_.outputs(index)[0]}));
  }

 private:
  const connect::WiredGraph& wired_;
  std::int64_t parameters_ = 0;
};

}  // namespace adapt_detail

GPUMEM_INLINE bool adapts(const model::TrainingJob& job) {
  return model::further_tokens(job) > 0 || model::row_of(job.loop).own_model || job.has_adapters() ||
         job.quantize != model::Quantization::none || job.base_dtype != model::BaseType::precision ||
         !job.freeze.empty() || !job.train.empty() || job.kernels != model::Kernels::usual ||
         model::bounces_weights(job.offload) || (job.graph != nullptr && frozen_dtype(*job.graph, job).has_value());
}

GPUMEM_INLINE bool inputs_need_gradients(const model::TrainingJob& job) {
  return job.has_adapters() && job.activation_checkpointing;
}

namespace adapt_detail {

/// Whether the job's adapters are LoRA's own calls, which quantised layers, embeddings and litgpt's models have too.
GPUMEM_INLINE bool is_lora(const model::TrainingJob& job) {
  if (!job.has_adapters()) return false;
  const PeftMethodRow& row = peft_row(job);
  return row.write == nullptr && row.targets == PeftTargets::usual;
}

/// converted_targets() of the job. PEFT refuses dropout of parameters.
GPUMEM_INLINE core::Result<std::optional<std::string>> converted_for(const connect::WiredGraph& wired,
                                                                     const model::TrainingJob& job,
                                                                     const std::vector<BaseLinear>& linears,
                                                                     std::string_view targets) {
  const bool converts =
      model::runs_transformers_5(job) && is_lora(job) && job.lora_dropout == 0.0 && !is_by_name(job.lora_targets);
  if (!converts) return std::optional<std::string>();
  const model::ModelGraph& graph = wired.graph();
  std::vector<std::string> parameters;
  for (const model::Layer& layer : graph.layers()) {
    if (graph.op(layer) == model::kParameterOp) parameters.push_back(graph.path(layer));
  }
  std::vector<std::string_view> names;
  for (const BaseLinear& linear : linears) {
    if (!linear.output) names.push_back(linear.leaf());
  }
  return converted_targets(graph.model_type(), targets, names, parameters);
}

/// The layers that get adapters of the job's method.
GPUMEM_INLINE core::Result<LoraTargets> targets_of(const connect::WiredGraph& wired, const model::TrainingJob& job,
                                                   const std::vector<BaseLinear>& linears,
                                                   const std::vector<BaseEmbedding>& embeddings, bool own) {
  LoraTargets none{std::vector<bool>(linears.size(), false), std::vector<bool>(embeddings.size(), false), {}};
  if (!job.has_adapters()) return none;
  const PeftTargets kind = peft_row(job).targets;
  if (kind == PeftTargets::norms || kind == PeftTargets::tokens || kind == PeftTargets::prompts) return none;
  std::string named = own ? litgpt_targets(linears, job.lora_targets) : job.lora_targets;
  // PEFT's adaption prompts name the whole attention module (target_modules).
  if (named.empty() || kind == PeftTargets::attention) named = peft_targets(kind, linears);
  const core::Result<std::optional<std::string>> converted = converted_for(wired, job, linears, named);
  if (!converted) return core::Error(converted.error()).in_file(wired.graph().file());
  core::Result<LoraTargets> found = lora_targets(linears, converted->value_or(named), embeddings);
  if (!found) return core::Error(found.error()).in_file(wired.graph().file());
  found->converted = converted->has_value() && !found->parameters.empty();
  return found;
}

/// Modules that the job names to be trained beside adapters (PEFT's modules_to_save): what is trained is a copy, of the
/// type that the module was loaded in; the module itself stays as it is. A copy is tied to nothing. Where the job names
/// tensors of a module only, as `*.bias`, they are trained in place and nothing is copied. Source: peft 0.15,
/// utils/other.py, ModulesToSaveWrapper; the configs of prompts, tokens and adaption prompts have no modules_to_save.
class SavedModules {
 public:
  /// `storage` as the job's patterns have it. `wired` must outlive it.
  SavedModules(const connect::WiredGraph& wired, const model::TrainingJob& job, bool own_model,
               const std::vector<model::WeightStorage>& storage)
      : wired_(wired), given_(model::dtype_of(job.base_dtype)), saved_(storage.size(), false) {
    if (own_model || job.train.empty() || !has_saved_modules(job)) return;
    for (std::size_t at = 0; at < storage.size(); ++at) {
      saved_[at] = storage[at].frozen == 0 && wired.graph().layers()[at].parameters > 0;
    }
  }

  /// Whether the layer is such a copy.
  [[nodiscard]] bool has(std::uint32_t index) const { return saved_[index]; }
  /// Copies the layer, and puts the module beside it if it is such a copy.
  void copy(connect::GraphCopy& copy, std::uint32_t index, model::WeightStorage weights, bool tied) {
    const model::Layer& layer = wired_.graph().layers()[index];
    if (!saved_[index]) {
      copy.copy(weights, wholly_frozen(wired_, layer, weights), {}, tied);
      return;
    }
    if (given_) weights.dtype = given_;
    const bool again = !called_.insert(wired_.graph().path(layer)).second;
    copy.copy(weights, false, {}, again);
    const std::int64_t own = layer.parameters - layer.tied_parameters;
    if (own == 0) return;
    (void)copy.insert({.name = std::string(wired_.graph().name(layer)) + ".original_module",
                       .op = model::kParameterOp,
                       .inputs = {},
                       .output = PeftLayer::fixed({own}),
                       .attributes = {{"shape", PeftLayer::Sizes{own}}},
                       .weights = {.dtype = weights.dtype},
                       .frozen = true});
  }

 private:
  static bool has_saved_modules(const model::TrainingJob& job) {
    if (!job.has_adapters()) return false;
    const PeftTargets kind = peft_row(job).targets;
    return kind != PeftTargets::prompts && kind != PeftTargets::tokens && kind != PeftTargets::attention;
  }

  const connect::WiredGraph& wired_;
  std::optional<core::DType> given_;
  std::vector<bool> saved_;                 ///< by layer
  std::unordered_set<std::string> called_;  ///< paths of those that are copied: a later call has the same copy
};

/// model::is_megatron_model(), which says that tensor parallel ranks do not share experts' weights.
GPUMEM_INLINE bool runs_megatron(connect::GraphCopy& copy, const model::ModelGraph& graph,
                                 const model::TrainingJob& job) {
  if (!model::is_megatron_model(graph, job)) return false;
  if (graph.lists_experts())
    copy.remark("experts' weights are whole where tensor parallel GPUs share a layer, as ms-swift has them");
  return true;
}

/// Says which names no layer has: of adapters, of modules to save, and of parameters with adapters.
GPUMEM_INLINE void remark_unknown(connect::GraphCopy& copy, const LoraTargets& targets,
                                  const std::vector<std::string>& saved,
                                  const std::vector<std::string>& parameters = {}) {
  for (const std::string& name : parameters) {
    copy.remark("no parameter that is a tensor of its own is called " + name + ", which `lora_targets` names");
  }
  for (const std::string& name : targets.unknown) {
    copy.remark("no linear layer or embedding is called " + name +
                ", which `lora_targets` names; the others have adapters");
  }
  for (const std::string& name : saved) {
    copy.remark("no layer with parameters is called " + core::quoted(core::shortened(name, 80)) +
                ", which `train` names; it is passed over, as PEFT does with modules to save");
  }
}

/// Which models have the kernels is not looked up.
GPUMEM_INLINE void remark_kernels(connect::GraphCopy& copy, const model::ModelGraph& graph,
                                  const model::TrainingJob& job) {
  if (job.kernels == model::Kernels::usual) return;
  if (is_litgpt_model(graph, job)) return copy.remark("litgpt's own models have no such kernels as `kernels` names");
  std::string from = "Liger 0.6";
  if (job.kernels == model::Kernels::lora_mlp) from = "axolotl of August 2026";
  if (job.kernels == model::Kernels::unsloth) from = "Unsloth of August 2026";
  copy.remark("norms and gated layers are those of `kernels`, as " + from + " has them for the models that it knows");
}

/// Whether experts whose weights are one tensor are multiplied with all their rows.
GPUMEM_INLINE bool groups_experts(const model::ModelGraph& graph) {
  return std::ranges::any_of(graph.layers(), [&](const model::Layer& layer) {
    return trained_weights_detail::holds_expert_matrices(graph, layer);
  });
}

/// What the targets mean of experts whose weights are one tensor.
GPUMEM_INLINE void remark_experts(connect::GraphCopy& copy, const LoraTargets& targets, const model::TrainingJob& job) {
  if (targets.converted) {
    copy.remark(
        "`lora_targets` means the weights of all experts and of their router, as PEFT 0.20 converts it under "
        "transformers 5; dense layers and shared experts, whose names are alike, have no adapters");
  }
  if (!targets.parameters.empty() && job.transformers >= model::Transformers::v5_0) {
    copy.remark(
        "weights of experts and their updates are added in one product, as PEFT 0.21 does; until 0.20 each update is a "
        "tensor of its own");
  }
}

/// What is not counted: of experts that are quantised as one tensor, in a model that shows them as layers; and the
/// adapter of `unread`, a layer of litgpt's that a chunked loss calls.
GPUMEM_INLINE void remark_uncounted(connect::GraphCopy& copy, const model::ModelGraph& graph,
                                    const model::TrainingJob& job, const LoraTargets& targets,
                                    const std::string& unread) {
  remark_kernels(copy, graph, job);
  remark_experts(copy, targets, job);
  if (!unread.empty()) copy.remark("the adapter of " + unread + ", which a chunked loss calls, is not counted");
  const bool linear =
      job.quantize == model::Quantization::nf4_dynamic || job.quantize == model::Quantization::nf4_linear_experts;
  if (linear && groups_experts(graph)) {
    copy.remark(
        "experts are linear layers in four bits, called one after the other, as Unsloth of 2025 and "
        "axolotl's linearized Llama 4 have them");
  }
  if (job.quantize != model::Quantization::nf4_experts || !graph.lists_experts()) return;
  copy.remark(
      "experts are read as layers, each of which makes its own weight whole; transformers 5 makes those of a block "
      "whole together, and this is not counted");
}

/// The adapters of parameters that the targets name. PEFT's LoRA alone has them, without dropout and without variants
/// (ParamWrapper.__init__()). Without modules at least one name must be known.
GPUMEM_INLINE core::Result<ParameterAdapters> parameter_adapters(const connect::WiredGraph& wired,
                                                                 const LoraTargets& targets,
                                                                 const std::vector<model::WeightStorage>& storage,
                                                                 const model::TrainingJob& job,
                                                                 const std::optional<PeftSettings>& settings) {
  const auto wrong = [&](std::string message) {
    return core::Error{core::ErrorCode::invalid_argument, std::move(message), {wired.graph().file(), 0, {}}};
  };
  const bool any = !targets.parameters.empty();
  if (any && (!settings || !is_lora(job) || is_litgpt_model(wired.graph(), job))) {
    return wrong(
        "`lora_targets` names parameters, which PEFT's LoRA alone adapts; say `lora=16`, and leave `peft` out");
  }
  if (any && job.lora_dropout > 0.0) {
    return wrong("PEFT's LoRA of parameters has no dropout; say `lora_dropout=0`");
  }
  if (!any) return ParameterAdapters::of(wired, {}, storage, job, PeftSettings{});
  PeftSettings ranks = *settings;
  if (targets.converted) ranks.set_rank(kFusedGate, 2 * ranks.rank());
  core::Result<ParameterAdapters> made = ParameterAdapters::of(wired, targets.parameters, storage, job, ranks);
  if (!made) return made;
  if (!made->unknown().empty() && wired.graph().lists_experts()) {
    return core::Error{core::ErrorCode::missing_information,
                       "no parameter is called " + made->unknown().front() +
                           "; this model's experts are layers, as in transformers 4; name them as layers "
                           "(`lora_targets=all-linear`), or say `transformers=5.0`",
                       {wired.graph().file(), 0, {}}};
  }
  const auto adapts = [](bool each) { return each; };
  const bool others = std::ranges::any_of(targets.chosen, adapts) || std::ranges::any_of(targets.embeddings, adapts);
  if (!others && made->unknown().size() == targets.parameters.size()) {
    return wrong("no parameter that is a tensor of its own is called " + made->unknown().front() +
                 ", as `lora_targets` asks; weights of linear layers are named without `parameter:`");
  }
  return made;
}

/// A method of PEFT's other than LoRA's own.
GPUMEM_INLINE core::Result<connect::WiredGraph> adapt_by_peft(const connect::WiredGraph& wired,
                                                              const std::vector<BaseLinear>& linears,
                                                              const LoraTargets& targets,
                                                              std::vector<model::WeightStorage>& storage,
                                                              const model::TrainingJob& job, const ops::Catalogue& ops,
                                                              PeftSettings settings) {
  SavedModules saved(wired, job, false, storage);  // of norms that the method trains it makes the copies itself
  PeftModel peft(wired, linears, targets.chosen, storage, job, std::move(settings));
  core::Status fits = peft.check();
  if (!fits) return std::move(fits).error();
  connect::GraphCopy copy(wired, ops);
  const FusedLayers fused(wired, linears, std::vector<bool>(linears.size(), false), job.kernels, false, false);
  InputGradients inputs(wired);
  core::Pace pace;
  for (std::uint32_t index = 0; index < wired.graph().layers().size(); ++index) {
    if (pace.late()) return core::deadline_error();
    peft.before(copy, index);
    if (peft.take(copy, index)) continue;
    if (saved.has(index) || !fused.take(copy, index, storage[index])) saved.copy(copy, index, storage[index], true);
    if (inputs_need_gradients(job)) inputs.behind(copy, index);
    peft.behind(copy, index);
  }
  remark_kernels(copy, wired.graph(), job);
  remark_unknown(copy, targets, passed_over(wired.graph(), job));
  if (!peft.changes_shapes()) return std::move(copy).finish();
  // This stage is not given the job's length: the source's shapes have it.
  model::TrainingJob longer = job;
  const auto shapes = wired.input_shapes();
  if (!shapes.empty() && shapes[0].rank() >= 2 && shapes[0][1].kind == core::Dim::Kind::fixed) {
    const auto tokens = (core::Checked(shapes[0][1].size) + core::Checked(peft.more_tokens())).value();
    if (!tokens) {
      return core::Error{core::ErrorCode::overflow, "the tokens and those of the prompt do not fit 64 bits", {}};
    }
    longer.sequence_length = *tokens;
  }
  return std::move(copy).finish(longer);
}

/// Adapters, frozen layers, quantised weights and the trainer's own layers.
GPUMEM_INLINE core::Result<connect::WiredGraph> adapt_layers(const connect::WiredGraph& wired,
                                                             const model::TrainingJob& job, const ops::Catalogue& ops) {
  const std::vector<BaseLinear> linears = base_linears(wired);
  core::Result<std::vector<model::WeightStorage>> storage = weight_storage(wired, linears, job);
  if (!storage) return storage.error();
  const bool own = is_litgpt_model(wired.graph(), job);
  const std::vector<BaseEmbedding> embeddings = own ? std::vector<BaseEmbedding>() : base_embeddings(wired);
  core::Result<LoraTargets> found = targets_of(wired, job, linears, embeddings, own);
  if (!found) return found.error();
  const LoraTargets& targets = *found;
  std::optional<PeftSettings> ranks;
  if (job.has_adapters()) {
    core::Result<PeftSettings> settings = PeftSettings::of(job);
    if (!settings) return settings.error();
    ranks = *settings;
    if (own && (!is_lora(job) || !job.lora)) {
      return core::Error{core::ErrorCode::invalid_argument,
                         "litgpt's own models have LoRA of a given rank only; say `lora=16`, and leave `peft` out",
                         {}};
    }
    if (!is_lora(job) && targets.parameters.empty()) {
      return adapt_by_peft(wired, linears, targets, *storage, job, ops, *std::move(settings));
    }
  }
  core::Result<ParameterAdapters> parameters = parameter_adapters(wired, targets, *storage, job, ranks);
  if (!parameters) return parameters.error();
  connect::GraphCopy copy(wired, ops);
  InputGradients inputs(wired);
  std::optional<LitgptModel> litgpt;
  const bool megatron = runs_megatron(copy, wired.graph(), job);
  if (own) litgpt.emplace(wired, linears, *storage, targets.chosen, job);
  SavedModules saved(wired, job, own, *storage);
  const FusedLayers fused(wired, linears, targets.chosen, job.kernels, megatron, job.lora_dropout > 0.0);
  std::size_t linear = 0;
  std::size_t embedding = 0;
  core::Pace pace;
  for (std::uint32_t index = 0; index < wired.graph().layers().size(); ++index) {
    if (pace.late()) return core::deadline_error();
    const model::WeightStorage& weights = (*storage)[index];
    if (litgpt && litgpt->take(copy, index)) continue;
    if (megatron && take_megatron_layer(copy, wired, index, weights)) continue;
    if (own || saved.has(index) || !fused.take(copy, index, weights)) saved.copy(copy, index, weights, !own);
    if (own) continue;
    parameters->behind(copy, index);
    const bool table = embedding < embeddings.size() && embeddings[embedding].layer == index;
    const bool adapted = table && targets.embeddings[embedding];
    const std::string_view name = wired.graph().name(wired.graph().layers()[index]);
    if (adapted && ranks) add_adapter(copy, wired, embeddings[embedding], job, ranks->rank_of(name));
    if (inputs_need_gradients(job) && !adapted) inputs.behind(copy, index);
    if (table) ++embedding;
    if (linear == linears.size() || linears[linear].layer != index) continue;
    const std::int64_t rank = ranks ? ranks->rank_of(linears[linear].leaf()) : 0;
    const AdapterKernel kernel = fused.adapter(index);
    if (targets.chosen[linear]) add_adapter(copy, wired, linears[linear], job, weights.quantization, rank, kernel);
    ++linear;
  }
  remark_uncounted(copy, wired.graph(), job, targets, litgpt ? std::string(litgpt->leaves_out()) : std::string());
  remark_unknown(copy, targets, passed_over(wired.graph(), job), parameters->unknown());
  return std::move(copy).finish();
}

}  // namespace adapt_detail

GPUMEM_INLINE core::Result<connect::WiredGraph> adapt(const connect::WiredGraph& wired, const model::TrainingJob& job,
                                                      const ops::Catalogue& ops) {
  const std::int64_t count = model::further_tokens(job);
  if (count == 0) return adapt_detail::adapt_layers(wired, job, ops);
  const core::Result<connect::WiredGraph> further = connect::with_further_tokens(wired, count, ops);
  if (!further) return further.error();
  return adapt_detail::adapt_layers(*further, job, ops);
}

}  // namespace gpumem::adapt
