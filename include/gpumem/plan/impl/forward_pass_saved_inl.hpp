#pragma once

#include "gpumem/plan/forward_pass.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "gpumem/parallel/pipeline_parallel.hpp"

namespace gpumem::plan {

namespace saved_tensors_detail {

inline constexpr std::string_view kLatentAttention = "MLASelfAttention";
inline constexpr std::string_view kMixture = "MoELayer";

/// "blocks.0.attn" of "blocks.0.attn.to_q"; empty where nothing is around it.
GPUMEM_INLINE std::string_view around(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

GPUMEM_INLINE std::string_view last_name(std::string_view path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 is 0
}

/// By layer: whether it is an attention.
GPUMEM_INLINE std::vector<bool> kernels(const model::ModelGraph& graph) {
  std::vector<bool> found(graph.layers().size(), false);
  for (const connect::Range& attention : attention_layers(graph)) found[attention.first] = true;
  return found;
}

/// By layer: whether it is in a module with an attention.
GPUMEM_INLINE std::vector<bool> in_attention(const model::ModelGraph& graph) {
  std::set<std::string, std::less<>> modules;
  for (const connect::Range& attention : attention_layers(graph)) {
    modules.emplace(around(graph.path(graph.layers()[attention.first])));
  }
  modules.erase(std::string());
  std::vector<bool> inside;
  for (const model::Layer& layer : graph.layers()) {
    const std::string path = graph.path(layer);
    bool found = false;
    for (std::string_view part = around(path); !part.empty() && !found; part = around(part)) {
      found = modules.contains(part);
    }
    inside.push_back(found);
  }
  return inside;
}

/// The innermost container of this class around the layer, or nothing.
GPUMEM_INLINE std::optional<std::uint32_t> container_of(const model::ModelGraph& graph, std::uint32_t layer,
                                                        std::string_view class_name) {
  for (std::uint32_t scope = graph.layers()[layer].scope; scope != 0; scope = graph.scope(scope).parent) {
    if (graph.class_name(graph.scope(scope)) == class_name) return scope;
  }
  return std::nullopt;
}

/// What Megatron's lists of modules mean by layer.
class MegatronModules {
 public:
  MegatronModules(const model::ModelGraph& graph, const model::TrainingJob& job)
      : graph_(graph), kernels_(kernels(graph)) {
    const bool named = job.activation_checkpointing && job.checkpoints.kind == model::Checkpoints::selective_modules;
    if (named) recomputed_ = joined_names(job.checkpoints.modules);
    const bool offloads = job.offload == model::Offload::activations;
    if (offloads) offloaded_ = joined_names(graph.run_settings().offloaded_modules);
    for (std::uint32_t at = 0; at < graph.layers().size(); ++at) {
      if (kernels_[at]) attention_of_.push_back({container_of(graph, at, kLatentAttention), at});
    }
    find_last_blocks(job.layout);
  }

  [[nodiscard]] bool any_discarded() const {
    return std::any_of(recomputed_.begin(), recomputed_.end(), discards_output);
  }
  [[nodiscard]] bool any_offloaded() const { return !offloaded_.empty(); }

  /// Whether what the layer makes is computed again after its readers have run.
  [[nodiscard]] bool discards(std::uint32_t layer) const {
    if (recomputes("layernorm") && (norm_of(layer, kLatentAttention) || norm_of(layer, kMixture))) return true;
    return recomputes("mla_up_proj") && projects_up(layer);
  }

  /// Whether hooks take what the layer saves.
  [[nodiscard]] bool offloads(std::uint32_t layer) const {
    const std::string_view module = module_of(layer);
    return takes(module) && !(module == "moe_act" && recomputes(module)) && !stays(layer, module);
  }

  /// Whether what the layer reads waits on the host for a checkpointed part to run again.
  [[nodiscard]] bool sends_arguments(std::uint32_t layer) const {
    const std::string_view module = module_of(layer);
    return module == "moe_act" && takes(module) && recomputes(module) && !stays(layer, module);
  }

 private:
  struct Attention {
    std::optional<std::uint32_t> container;  ///< of latent attention
    std::uint32_t layer = 0;
  };

  [[nodiscard]] bool recomputes(std::string_view name) const {
    return std::find(recomputed_.begin(), recomputed_.end(), name) != recomputed_.end();
  }
  [[nodiscard]] bool takes(std::string_view name) const {
    return std::find(offloaded_.begin(), offloaded_.end(), name) != offloaded_.end();
  }
  /// Which of offload_modules the layer is in; empty: none.
  [[nodiscard]] std::string_view module_of(std::uint32_t layer) const {
    const std::string path = graph_.path(graph_.layers()[layer]);
    const std::string_view name = last_name(path);
    if (kernels_[layer]) return "core_attn";
    if (name == "o_proj" || name == "linear_proj") return "attn_proj";
    if (norm_of(layer, kLatentAttention)) return "attn_norm";
    if (norm_of(layer, kMixture)) return "mlp_norm";
    if (name == "linear_qkv" || makes_heads(layer)) return "qkv_linear";
    if (path.find(".experts.") == std::string::npos) return {};
    if (name == "linear_fc1") return "expert_fc1";
    return is_activation(path) ? "moe_act" : std::string_view();
  }
  /// Of each module the last block's stays where its backward is the next thing to run: on the pipeline's last rank.
  /// Source: Megatron-LM of August 2026, core/pipeline_parallel/fine_grained_activation_offload.py
  /// (should_bulk_offload: "about to be used immediately").
  void find_last_blocks(const model::Layout& layout) {
    if (offloaded_.empty() || parallel::stage_of_rank(layout) + 1 < layout.pipeline_parallel) return;
    for (const connect::Range& block : connect::repeated_blocks(graph_)) {
      for (std::uint32_t at = block.first; at < block.end; ++at) {
        if (const std::string_view module = module_of(at); takes(module)) last_blocks_[module] = block;
      }
    }
  }
  [[nodiscard]] bool stays(std::uint32_t layer, std::string_view module) const {
    const auto last = last_blocks_.find(module);
    return last != last_blocks_.end() && layer >= last->second.first && layer < last->second.end;
  }
  [[nodiscard]] static bool is_activation(std::string_view path) {
    return path.find(".moe_act.") != std::string_view::npos && last_name(path) != "linear_fc2";
  }

  /// Whether the layer is a norm of its own in front of a module of this class. Elsewhere TransformerEngine's product
  /// has the norm in it (core/models/gpt/gpt_layer_specs.py).
  [[nodiscard]] bool norm_of(std::uint32_t layer, std::string_view class_name) const {
    const std::string path = graph_.path(graph_.layers()[layer]);
    const std::string_view wanted = class_name == kMixture ? "pre_mlp_layernorm" : "input_layernorm";
    if (last_name(path) != wanted || layer + 1 == graph_.layers().size()) return false;
    return container_of(graph_, layer + 1, class_name).has_value();
  }

  /// Whether the layer is one of latent attention, before the attention itself.
  [[nodiscard]] bool makes_heads(std::uint32_t layer) const {
    const auto inside = container_of(graph_, layer, kLatentAttention);
    return inside && std::any_of(attention_of_.begin(), attention_of_.end(), [&](const Attention& attention) {
             return attention.container == inside && layer < attention.layer;
           });
  }
  /// Whether it is one of those behind the narrow vectors.
  [[nodiscard]] bool projects_up(std::uint32_t layer) const {
    const std::string path = graph_.path(graph_.layers()[layer]);
    const std::string_view name = last_name(path);
    return name != "q_a_proj" && name != "kv_a_proj_with_mqa" && makes_heads(layer);
  }

  const model::ModelGraph& graph_;
  std::vector<bool> kernels_;
  std::vector<Attention> attention_of_;
  std::vector<std::string_view> recomputed_;
  std::vector<std::string_view> offloaded_;
  std::map<std::string_view, connect::Range> last_blocks_;  ///< by module
};

/// By layer: whether the rule holds.
template <typename Rule>
std::vector<bool> by_layer(const model::ModelGraph& graph, Rule rule) {
  std::vector<bool> found;
  found.reserve(graph.layers().size());
  for (std::uint32_t at = 0; at < graph.layers().size(); ++at) found.push_back(rule(at));
  return found;
}

GPUMEM_INLINE void add_megatron(const ForwardPass& pass, const MegatronModules& modules, SavedHooks& hooks) {
  const model::ModelGraph& graph = pass.wired.graph();
  const auto discards = by_layer(graph, [&](std::uint32_t at) { return modules.discards(at); });
  const auto offloads = by_layer(graph, [&](std::uint32_t at) { return modules.offloads(at); });
  const auto sends = by_layer(graph, [&](std::uint32_t at) { return modules.sends_arguments(at); });
  const std::size_t tensors = pass.tape.tensors().size();
  hooks.least_elements = graph.run_settings().least_offloaded;
  if (modules.any_offloaded()) hooks.ahead = connect::repeated_blocks(graph);
  if (modules.any_discarded()) hooks.discarded.assign(tensors, false);
  hooks.arguments.assign(tensors, false);
  for (const ops::Function& function : pass.tape.functions()) {
    if (modules.any_offloaded()) hooks.functions.push_back(offloads[function.layer]);
    const bool fresh = function.kind == ops::Output::fresh;
    if (modules.any_discarded() && fresh && discards[function.layer]) {
      hooks.discarded[static_cast<std::size_t>(pass.tape.tensor(function.output).storage)] = true;
    }
    if (!sends[function.layer]) continue;
    for (const ops::TensorId saved : pass.tape.list(function.saved))
      hooks.arguments[static_cast<std::size_t>(saved)] = true;
  }
}

}  // namespace saved_tensors_detail

GPUMEM_INLINE bool offloads_all(const ForwardPass& pass, const model::TrainingJob& job) {
  const bool some = job.loop == model::Loop::megatron && !pass.wired.graph().run_settings().offloaded_modules.empty();
  return job.offload == model::Offload::activations && !some;
}

GPUMEM_INLINE std::vector<connect::Range> attention_layers(const model::ModelGraph& graph) {
  std::vector<connect::Range> layers;
  for (std::uint32_t index = 0; index < graph.layers().size(); ++index) {
    const model::OpTraits* op = graph.op_traits(graph.layers()[index]);
    if (op != nullptr && op->family == model::OpFamily::attention && !op->projects()) {
      layers.push_back({index, index + 1});
    }
  }
  return layers;
}

GPUMEM_INLINE std::vector<std::string_view> joined_names(std::string_view joined) {
  std::vector<std::string_view> names;
  for (std::size_t begin = 0; begin <= joined.size() && !joined.empty();) {
    const std::size_t end = std::min(joined.find('+', begin), joined.size());
    names.push_back(joined.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

GPUMEM_INLINE bool is_megatron_module(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"});
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

GPUMEM_INLINE bool discards_output(std::string_view name) { return name == "layernorm" || name == "mla_up_proj"; }

GPUMEM_INLINE std::string megatron_path(const model::ModelGraph& graph, std::uint32_t layer) {
  constexpr std::string_view kDense = ".mlp.";
  std::string path = graph.path(graph.layers()[layer]);
  const model::OpTraits* op = graph.op_traits(graph.layers()[layer]);
  if (op != nullptr && op->family == model::OpFamily::attention && !op->projects()) path += ".core_attn";
  const std::size_t dense = path.find(kDense);
  const bool mixes = saved_tensors_detail::container_of(graph, layer, saved_tensors_detail::kMixture).has_value();
  if (mixes && dense != std::string::npos) path.replace(dense, kDense.size(), ".moe.");
  return path;
}

GPUMEM_INLINE SavedHooks saved_hooks(const ForwardPass& pass, const model::TrainingJob& job) {
  namespace detail = saved_tensors_detail;
  SavedHooks hooks;
  const model::ModelGraph& graph = pass.wired.graph();
  if (job.loop == model::Loop::megatron) {
    const detail::MegatronModules modules(graph, job);
    if (modules.any_discarded() || modules.any_offloaded()) detail::add_megatron(pass, modules, hooks);
    return hooks;
  }
  const model::HostAttention hosted = job.checkpoints.host_attention;
  if (!job.activation_checkpointing || hosted == model::HostAttention::none) return hooks;
  const std::vector<bool> inside =
      hosted == model::HostAttention::kernel ? detail::kernels(graph) : detail::in_attention(graph);
  for (const ops::Function& function : pass.tape.functions()) hooks.functions.push_back(inside[function.layer]);
  return hooks;
}

}  // namespace gpumem::plan
