#pragma once

#include "gpumem/parallel/rank_graph.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/ops/collective.hpp"
#include "gpumem/ops/language_loss.hpp"
#include "gpumem/ops/resample.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::parallel {

namespace rank_graph_detail {

using model::LayerIndex;
using model::TensorSplit;

GPUMEM_INLINE core::Error refused(std::string message, const connect::WiredGraph& wired) {
  return {core::ErrorCode::invalid_argument, std::move(message), {wired.graph().file(), 0, {}}};
}

class RankGraph {
 public:
  RankGraph(const connect::WiredGraph& whole, const model::TrainingJob& job, StageLayers layers,
            std::int64_t experts_of_rank, const ops::Catalogue& ops)
      : whole_(whole),
        job_(job),
        layout_(job.layout),
        layers_(std::move(layers)),
        copy_(whole, ops, connect::CopiedShapes::inferred),
        experts_of_rank_(experts_of_rank),
        expert_ranks_(expert_tensor_ranks(whole.graph(), job.layout)),
        marks_(says_split(whole.graph(), TensorSplit::sequence)),
        gathers_(marks_ || job.loop == model::Loop::megatron) {
    if (layout_.pipeline_parallel > 1) modules_ = modules_called(whole.graph());
  }

  core::Result<connect::WiredGraph> run() {
    const auto all = whole_.graph().layers();
    find_readers();
    find_vocabulary();
    core::Pace pace;
    for (std::size_t at = 0; at < all.size(); ++at) {
      if (pace.late()) return core::deadline_error();
      if (layers_.stages.size() > 1 && starts_stage(at)) copy_.begin_stage();
      if (const core::Status added = add(at); !added) {
        core::Error fault = added.error();
        fault.place = whole_.place_of(all[at]);
        return fault;
      }
      send_behind(at);
    }
    model::TrainingJob seen;
    seen.input_shape = job_.input_shape;
    if (job_.sequence_length) seen.sequence_length = *job_.sequence_length / layout_.context_parallel;
    return std::move(copy_).finish(seen);
  }

 private:
  [[nodiscard]] bool starts_stage(std::size_t layer) const {
    return std::any_of(layers_.stages.begin(), layers_.stages.end(),
                       [&](const connect::Range& stage) { return stage.first == layer; });
  }

  /// The first stage of the rank that holds the layer, counted from 1; 0: none does.
  [[nodiscard]] std::size_t stage_of(std::size_t layer) const {
    for (std::size_t stage = 0; stage < layers_.stages.size(); ++stage) {
      if (layer >= layers_.stages[stage].first && layer < layers_.stages[stage].end) return stage + 1;
    }
    return 0;
  }

  /// Which layers another stage reads, so that they are sent.
  void find_readers() {
    sent_.assign(whole_.graph().layers().size(), false);
    if (layout_.pipeline_parallel == 1) return;
    for (std::size_t at = 0; at < sent_.size(); ++at) {
      for (const LayerIndex input : whole_.inputs(at)) {
        if (input < 0 || !layers_.trained[static_cast<std::size_t>(input)]) continue;
        const auto from = static_cast<std::size_t>(input);
        sent_[from] = sent_[from] || (stage_of(from) != 0 && stage_of(from) != stage_of(at));
      }
    }
  }

  /// The layers that share the vocabulary where torch.distributed.tensor makes the layout: those before and after all
  /// blocks. Source: torchtitan 0.1, models/llama/parallelize_llama.py: apply_tp().
  void find_vocabulary() {
    if (!layout_.sequence_parallel || marks_) return;
    const std::vector<connect::Range> blocks = connect::repeated_blocks(whole_.graph());
    if (blocks.empty()) return;
    const auto layers = whole_.graph().layers();
    for (std::size_t at = 0; at < blocks.front().first && !words_; ++at) {
      if (whole_.graph().op(layers[at]) == "embedding") words_ = at;
    }
    parted_ = words_;
    // Features of images stand among the embeddings of all tokens, before ranks take parts of them.
    for (std::size_t at = 0; at < layers.size() && words_; ++at) {
      if (whole_.graph().op(layers[at]) == ops::kAmongTokens) parted_ = at;
    }
    head_ = connect::head_behind(whole_, blocks.back());
  }

  [[nodiscard]] std::int64_t width_of(std::size_t at) const {
    return whole_.graph().attributes(whole_.graph().layers()[at]).integer("out_features").value_or(0);
  }

  [[nodiscard]] TensorSplit split_of(std::size_t at) const {
    if (words_ == at) return TensorSplit::vocabulary;
    // Those of further tokens are as wide.
    if (head_ && at >= *head_ && width_of(at) == width_of(*head_)) return TensorSplit::columns;
    return whole_.graph().layers()[at].split;
  }

  /// Where columns do not gather the tokens that they read, one call does it for all of them. A layer may ask for it.
  void gather_for(std::size_t at) {
    const TensorSplit reader = gathers_ ? TensorSplit::tokens : TensorSplit::columns;
    if (!layout_.sequence_parallel || split_of(at) != reader) return;
    const LayerIndex input = whole_.inputs(at).empty() ? LayerIndex{-1} : whole_.inputs(at)[0];
    if (input < 0 || !gathered_.insert(input).second) return;
    const auto from = static_cast<std::size_t>(input);
    copy_.replace(from, copy_.insert({.name = "gathered",
                                      .op = ops::kGatherTokens,
                                      .inputs = {copy_.now(input)},
                                      .output = {},
                                      .attributes = {{"ranks", layout_.tensor_parallel}}}));
  }

  core::Status add(std::size_t at) {
    const model::Layer& layer = whole_.graph().layers()[at];
    if (!layers_.has[at]) {
      copy_.omit(0);
      return core::Done{};
    }
    if (static_cast<std::int64_t>(layer.expert) > experts_of_rank_) {  // the sum goes on without it
      const auto inputs = whole_.inputs(at);
      copy_.omit(inputs.empty() ? 0 : copy_.now(inputs[0]));
      return core::Done{};
    }
    receive_for(at);
    gather_for(at);
    auto change = changed(at);
    if (!change) return change.error();
    const LayerIndex index = copy_.copy(whole_.weights(at), layer.frozen, *change);
    if (!modules_.empty()) held_.insert(modules_[at]);
    const bool parts = layer.split == TensorSplit::sequence || layer.split == TensorSplit::features;
    if (layout_.sequence_parallel && (parts || parted_ == at)) {
      copy_.replace(at, copy_.insert({.name = "sequence_part",
                                      .op = ops::kScatterTokens,
                                      .inputs = {index},
                                      .output = {},
                                      .attributes = {{"ranks", layout_.tensor_parallel}}}));
    }
    return core::Done{};
  }

  /// What a layer reads of another stage becomes an input of the graph, once a stage.
  void receive_for(std::size_t at) {
    if (layout_.pipeline_parallel == 1) return;
    const std::size_t stage = stage_of(at);
    for (const LayerIndex input : whole_.inputs(at)) {
      if (input < 0 || stage == 0) continue;
      const auto from = static_cast<std::size_t>(input);
      if (stage_of(from) == stage || !layers_.trained[from]) continue;
      const auto [known, fresh] = received_.try_emplace({stage, input}, 0);
      if (fresh) {
        const core::Shape shape = shape_on_rank(whole_.outputs(from)[0]);
        const LayerIndex sent = copy_.add_input({"received", shape, core::DType::float32});
        known->second = copy_.insert({.name = "received", .op = ops::kReceived, .inputs = {sent}, .output = shape});
      }
      copy_.replace(from, known->second);
    }
  }

  /// [N, S, ...] with the rank's part of the tokens.
  [[nodiscard]] core::Shape shape_on_rank(core::Shape shape) const {
    if (shape.rank() < 3 || shape[1].kind != core::Dim::Kind::fixed) return shape;
    const std::int64_t ranks =
        layout_.context_parallel * (layout_.sequence_parallel ? layout_.tensor_parallel : std::int64_t{1});
    shape.set(1, core::Dim::fixed(std::max<std::int64_t>(shape[1].size / ranks, 1)));
    return shape;
  }

  void send_behind(std::size_t at) {
    if (!layers_.has[at] || !sent_[at]) return;
    copy_.insert({.name = "sent",
                  .op = ops::kSent,
                  .inputs = {copy_.now(static_cast<LayerIndex>(at))},
                  .output = core::Shape()});
  }

  /// What the rank has in place of the layer; nothing: all of it.
  core::Result<std::optional<connect::ChangedLayer>> changed(std::size_t at) const {
    const model::Layer& layer = whole_.graph().layers()[at];
    auto attributes = tensor_parallel_attributes(whole_.graph(), layer, layout_, {split_of(at), gathers_});
    if (!attributes) return attributes.error();
    const bool untied = layer.tied_parameters > 0 && !owner_is_here(at);
    const bool gathers = whole_.graph().attributes(layer).find("per_token") != nullptr;
    const bool sent_tokens = layer.expert > 0 && ranks_of_tokens() > 1 && gathers;
    const bool shares_loss = head_ && *head_ < at && whole_.graph().op(layer) == ops::kLossParallelOp;
    std::optional<connect::ChangedLayer> change;
    if (!*attributes && !untied && !sent_tokens && !shares_loss) return change;
    const auto all = whole_.graph().attributes(layer).all();
    change.emplace();
    if (*attributes) {
      change->attributes = **std::move(attributes);
      if (!untied) change->tied_parameters = layer.tied_parameters / layout_.tensor_parallel;
    } else {
      change->attributes.assign(all.begin(), all.end());
      if (!untied) change->tied_parameters = layer.tied_parameters;
    }
    if (sent_tokens) change->attributes.push_back({"ranks", ranks_of_tokens()});
    if (shares_loss) change->attributes.push_back({std::string(ops::kLossParallel), true});
    return change;
  }

  /// Whether the rank holds the parameters that the layer shares with an earlier one: it has an earlier call of the
  /// same module, or, for the weight of another module (a head's is the embedding's), the first stage.
  [[nodiscard]] bool owner_is_here(std::size_t layer) const {
    if (layout_.pipeline_parallel == 1) return true;
    if (modules_[layer] == layer) return layers_.stages.front().first == 0;
    return held_.contains(modules_[layer]);
  }

  /// The ranks whose tokens an expert gets: those that share the experts, and those that share its weights.
  [[nodiscard]] std::int64_t ranks_of_tokens() const {
    return layout_.expert_parallel * (layout_.sequence_parallel ? expert_ranks_ : 1);
  }

  const connect::WiredGraph& whole_;
  const model::TrainingJob& job_;
  const model::Layout& layout_;
  StageLayers layers_;
  connect::GraphCopy copy_;
  std::vector<bool> sent_;
  std::map<std::pair<std::size_t, LayerIndex>, LayerIndex> received_;
  std::int64_t experts_of_rank_ = 0;
  std::int64_t expert_ranks_ = 1;  ///< that share each expert's weights
  bool marks_ = false;             ///< the graph says where ranks take their part of the tokens
  bool gathers_ = false;           ///< columns gather tokens themselves, and keep their own part, as Megatron's do
  std::optional<std::size_t> words_ = {};
  std::optional<std::size_t> parted_ = {};  ///< behind this layer each rank has some of the tokens
  std::optional<std::size_t> head_ = {};
  std::set<LayerIndex> gathered_ = {};
  std::vector<std::size_t> modules_ = {};  ///< of a pipeline: modules_called()
  std::set<std::size_t> held_ = {};        ///< the modules that the rank has called so far
};

/// How many experts the largest mixture has.
GPUMEM_INLINE std::int64_t most_experts(const model::ModelGraph& graph) {
  std::uint32_t most = 0;
  for (const model::Layer& layer : graph.layers()) most = std::max(most, layer.expert);
  return most;
}

/// Whether experts whose weights are one tensor each are multiplied at once.
GPUMEM_INLINE bool groups_experts(const model::ModelGraph& graph) {
  const auto layers = graph.layers();
  return std::any_of(layers.begin(), layers.end(),
                     [&](const model::Layer& layer) { return graph.attributes(layer).flag("of_all_experts", false); });
}

/// The rule that the model breaks under this layout; nothing: none that can be seen before it is split.
GPUMEM_INLINE std::optional<core::Error> fault_of(const connect::WiredGraph& whole, const model::TrainingJob& job) {
  const model::Layout& layout = job.layout;
  const model::ModelGraph& graph = whole.graph();
  const auto fault = [&](std::string message) { return refused(std::move(message), whole); };
  if (graph.shapes_printed() || (layout.tensor_parallel > 1 && !says_split(graph, TensorSplit::columns))) {
    return core::Error{core::ErrorCode::missing_information,
                       "this summary does not say how ranks share the model's layers; give its config.json, of an "
                       "architecture that says so (Llama and its like, Megatron's GPT)",
                       {graph.file(), 0, {}}};
  }
  const bool mixes = most_experts(graph) > 0;
  if ((layout.tensor_parallel > 1 || layout.expert_parallel > 1) && groups_experts(graph)) {
    return fault(
        "the experts of a layer are one tensor; how tensor and expert parallel ranks share it is not modelled; "
        "shard the states (`sharding=fsdp2`), or give the arguments of Megatron's launcher");
  }
  const bool sends = job.loop == model::Loop::megatron || says_split(graph, TensorSplit::sequence);
  if (layout.sequence_parallel && mixes && !sends)
    return fault("`sequence_parallel` with a mixture of experts is only modelled for Megatron; say `loop=megatron`");
  if (layout.context_parallel > 1 && !job.sequence_length) {
    return fault("`context_parallel` splits sequences; give their length (`seq_length=8192`)");
  }
  if (layout.context_parallel > 1 && !graph.reads_tokens()) {
    return fault("`context_parallel` splits sequences of tokens, and this model reads none; say `context_parallel=1`");
  }
  const std::int64_t parts = layout.context_parallel * (layout.context_parallel > 1 ? 2 : 1);
  if (job.sequence_length && *job.sequence_length % parts != 0) {
    return fault("`context_parallel=" + std::to_string(layout.context_parallel) + "` cuts sequences into " +
                 std::to_string(parts) + " parts, and " + std::to_string(*job.sequence_length) +
                 " tokens are not a multiple of that; say `seq_length=" +
                 std::to_string((*job.sequence_length / parts + 1) * parts) + "`");
  }
  const std::int64_t experts = most_experts(graph);
  if (layout.expert_parallel > 1 && (experts == 0 || experts % layout.expert_parallel != 0)) {
    return fault("`expert_parallel=" + std::to_string(layout.expert_parallel) + "` must divide the model's " +
                 std::to_string(experts) + " experts; say `expert_parallel=" +
                 std::to_string(experts == 0 ? 1 : std::gcd(experts, layout.expert_parallel)) + "`");
  }
  const bool lora = job.peft == model::PeftMethod::none || job.peft == model::PeftMethod::lora;
  // One process that lays whole blocks on its GPUs (device_map) leaves their weights as they are.
  const bool in_turn = job.loop == model::Loop::hf_trainer && layout.pipeline_parallel > 1 &&
                       layout.data_parallel == 1 && layout.tensor_parallel == 1 && layout.context_parallel == 1;
  if ((job.has_adapters() && !lora) || (!in_turn && model::holds_in_fewer_bits(job.quantize))) {
    return fault(
        "a layout that splits the model is modelled with no adapters but LoRA's, and without quantised weights");
  }
  if (job.has_adapters() && layout.sequence_parallel && !says_split(graph, TensorSplit::sequence)) {
    return fault("`sequence_parallel` with adapters is only modelled for Megatron's GPT");
  }
  return std::nullopt;
}

}  // namespace rank_graph_detail

GPUMEM_INLINE bool splits_model(const model::Layout& layout) {
  return layout.tensor_parallel > 1 || layout.pipeline_parallel > 1 || layout.context_parallel > 1 ||
         layout.expert_parallel > 1;
}

GPUMEM_INLINE bool same_rank_graph(const model::TrainingJob& left, const model::TrainingJob& right) {
  const auto split_of = [](const model::Layout& layout) {
    model::Layout split = layout;
    split.rank = {model::Ranks::one, stage_of_rank(layout)};
    split.data_parallel = 1;
    split.sharding = {};
    split.reshard_after_forward = {};
    split.semi_sync = {};
    split.schedule = model::is_v_shaped(layout.schedule) ? model::Schedule::zero_bubble_v : model::Schedule{};
    return split;
  };
  const bool shares_alike = left.layout.pipeline_parallel == 1 || shares_of(left) == shares_of(right);
  return shares_alike &&
         std::tie(left.sequence_length, left.input_shape, left.lora, left.peft, left.quantize, left.loop) ==
             std::tie(right.sequence_length, right.input_shape, right.lora, right.peft, right.quantize, right.loop) &&
         split_of(left.layout) == split_of(right.layout);
}

GPUMEM_INLINE core::Result<connect::WiredGraph> rank_graph(const connect::WiredGraph& whole,
                                                           const model::TrainingJob& job, const ops::Catalogue& ops) {
  if (auto fault = rank_graph_detail::fault_of(whole, job)) return *std::move(fault);
  core::Result<StageLayers> layers = stage_layers(whole, job.layout, stage_of_rank(job.layout), shares_of(job));
  if (!layers) return layers.error();
  const std::int64_t experts = rank_graph_detail::most_experts(whole.graph()) / job.layout.expert_parallel;
  return rank_graph_detail::RankGraph(whole, job, *std::move(layers), experts, ops).run();
}

namespace tensor_parallel_detail {
using model::TensorSplit;

/// All tensor parallel ranks, or as many as the layer says.
GPUMEM_INLINE std::int64_t ranks_of(const model::Attributes& attributes, const model::Layout& layout) {
  const std::int64_t all = layout.tensor_parallel;
  return std::clamp<std::int64_t>(attributes.integer("tensor_ranks").value_or(all), 1, all);
}

GPUMEM_INLINE core::Error uneven(std::string_view what, std::int64_t size, std::int64_t ranks) {
  std::int64_t fits = std::clamp<std::int64_t>(ranks, 1, std::max<std::int64_t>(size, 1));
  while (size % fits != 0) --fits;
  return {core::ErrorCode::invalid_argument,
          "has " + std::to_string(size) + " " + std::string(what) + ", which " + std::to_string(ranks) +
              " tensor parallel ranks cannot share evenly; say `tensor_parallel=" + std::to_string(fits) + "`",
          {}};
}

/// One size among the attributes.
struct SplitSize {
  std::string_view attribute;
  std::string_view what;    ///< for messages
  std::size_t element = 0;  ///< of a list
  bool padded = false;      ///< where ranks cannot share it evenly
};

GPUMEM_INLINE SplitSize split_size(TensorSplit split, const model::Attributes& attributes, bool head) {
  switch (split) {
    case TensorSplit::columns: return {"out_features", "output features", 0, head};
    case TensorSplit::rows: return {"in_features", "input features"};
    case TensorSplit::vocabulary: return {"num_embeddings", "words in its vocabulary", 0, true};
    case TensorSplit::heads:
      if (attributes.find("shape") != nullptr) return {"shape", "heads", 1};
      return {"sizes", "heads of keys and values"};
    case TensorSplit::whole:
    case TensorSplit::sequence:
    case TensorSplit::tokens:
    case TensorSplit::features:
    case TensorSplit::mixer: break;
  }
  return {};
}

/// Errors: it cannot be shared.
GPUMEM_INLINE core::Status divide(std::int64_t& size, std::string_view what, std::int64_t ranks) {
  if (size % ranks != 0) return uneven(what, size, ranks);
  size /= ranks;
  return core::Done{};
}

/// Every size of a state mixer's layer becomes the rank's part of it: of its heads, its groups, what they are wide
/// together, and where the parts of a projection begin. Source: Megatron-LM of August 2026, core/ssm/mamba_mixer.py
/// (nheads_local_tp, ngroups_local_tp, d_inner_local_tp).
GPUMEM_INLINE core::Status divide_mixer(std::vector<model::Attribute>& attributes, std::int64_t ranks) {
  constexpr std::array<std::string_view, 6> kSizes = {"heads", "groups", "channels", "normalized_shape",
                                                      "start", "length"};
  for (model::Attribute& attribute : attributes) {
    auto* const list = std::get_if<std::vector<std::int64_t>>(&attribute.value);
    for (std::size_t at = 0; list != nullptr && at < list->size(); ++at) {
      const bool sizes = attribute.name == "sizes" || (attribute.name == "shape" && at == 0);
      if (!sizes) continue;
      if (core::Status shared = divide((*list)[at], "features of a state mixer", ranks); !shared) return shared;
    }
    auto* const size = std::get_if<std::int64_t>(&attribute.value);
    if (size == nullptr || std::ranges::find(kSizes, attribute.name) == kSizes.end()) continue;
    if (core::Status shared = divide(*size, attribute.name + " of a state mixer", ranks); !shared) return shared;
  }
  return core::Done{};
}

/// The size becomes the rank's part of it. Errors: it cannot be shared.
GPUMEM_INLINE core::Status divide(std::vector<model::Attribute>& attributes, const SplitSize& size,
                                  std::int64_t ranks) {
  for (model::Attribute& attribute : attributes) {
    if (attribute.name != size.attribute) continue;
    std::int64_t* value = std::get_if<std::int64_t>(&attribute.value);
    if (auto* list = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
      if (size.element < list->size()) value = &(*list)[size.element];
    }
    if (value == nullptr) return uneven(size.what, 0, ranks);
    if (size.padded) *value = core::rounded_up(*value, ranks);
    if (core::Status shared = divide(*value, size.what, ranks); !shared) return shared;
  }
  return core::Done{};
}

}  // namespace tensor_parallel_detail

GPUMEM_INLINE std::int64_t expert_tensor_ranks(const model::ModelGraph& graph, const model::Layout& layout) {
  for (const model::Layer& layer : graph.layers()) {
    if (layer.expert == 0 || layer.split != model::TensorSplit::columns) continue;
    return tensor_parallel_detail::ranks_of(graph.attributes(layer), layout);
  }
  return 1;
}

GPUMEM_INLINE core::Result<std::optional<std::vector<model::Attribute>>> tensor_parallel_attributes(
    const model::ModelGraph& graph, const model::Layer& layer, const model::Layout& layout, const SplitWay& way) {
  using model::TensorSplit;
  const std::int64_t ranks = tensor_parallel_detail::ranks_of(graph.attributes(layer), layout);
  std::optional<std::vector<model::Attribute>> changed;
  if (layout.tensor_parallel % ranks != 0) {
    return tensor_parallel_detail::uneven("ranks that share its weights", ranks, layout.tensor_parallel);
  }
  const bool stays =
      way.split == TensorSplit::whole || way.split == TensorSplit::sequence || way.split == TensorSplit::tokens;
  if (ranks == 1 || stays) return changed;
  const auto all = graph.attributes(layer).all();
  changed.emplace(all.begin(), all.end());
  if (way.split == TensorSplit::features) {
    changed->push_back({"ranks", ranks});
    return changed;
  }
  const bool mixes = way.split == TensorSplit::mixer;
  const auto outputs = graph.attributes(layer).integer("out_features");
  const bool uneven = way.split == TensorSplit::columns && outputs && *outputs % ranks != 0;
  const bool head = uneven && has_words(graph, *outputs);
  const auto size = tensor_parallel_detail::split_size(way.split, graph.attributes(layer), head);
  const core::Status shared = mixes ? tensor_parallel_detail::divide_mixer(*changed, ranks)
                                    : tensor_parallel_detail::divide(*changed, size, ranks);
  if (!shared) return shared.error();
  if (mixes) return changed;
  const bool tokens = layout.sequence_parallel && layer.expert == 0;  // experts are sent their tokens
  if (tokens && way.gathers && way.split == TensorSplit::columns) changed->push_back({"gathered", ranks});
  if (tokens && way.split == TensorSplit::rows) {
    changed->push_back({"scattered", ranks});
    if (!way.gathers) changed->push_back({"scatters_apart", true});
  }
  return changed;
}

}  // namespace gpumem::parallel
