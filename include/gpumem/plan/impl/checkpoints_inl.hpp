#pragma once

#include "gpumem/plan/checkpoints.hpp"

#include <algorithm>

namespace gpumem::plan {

namespace checkpoints_detail {

/// Each scaled-dot-product attention by itself. One that projects holds more than the attention.
GPUMEM_INLINE std::vector<Range> attentions(const model::ModelGraph& graph) {
  std::vector<Range> layers;
  for (std::uint32_t index = 0; index < graph.layers().size(); ++index) {
    const model::OpTraits* op = graph.op_traits(graph.layers()[index]);
    if (op != nullptr && op->family == model::OpFamily::attention && !op->projects()) {
      layers.push_back({index, index + 1});
    }
  }
  return layers;
}

/// Those of the blocks that the policy names.
GPUMEM_INLINE std::vector<Range> chosen(const std::vector<Range>& blocks, const model::CheckpointPolicy& policy) {
  std::vector<Range> some;
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(policy.count, 1));
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    const bool first = policy.kind == model::Checkpoints::first && at < count;
    const bool every = policy.kind == model::Checkpoints::every && (at + 1) % count == 0;
    if (first || every) some.push_back(blocks[at]);
  }
  return some;
}

GPUMEM_INLINE core::Error nothing_repeats(const model::ModelGraph& graph) {
  return {core::ErrorCode::missing_information,
          "activation checkpointing wraps a model's repeated blocks, and this summary shows none: it "
          "needs a format that prints containers (print(model), torchinfo) or graph JSON; torchsummary "
          "tells only blocks of known classes, such as Bottleneck",
          {graph.file(), 0, {}}};
}

GPUMEM_INLINE core::Error no_attention(const model::ModelGraph& graph) {
  return {core::ErrorCode::missing_information,
          "selective-attention runs each attention again, and this summary shows none as a layer of its own; give the "
          "model's config.json, or another kind of checkpointing",
          {graph.file(), 0, {}}};
}

}  // namespace checkpoints_detail

GPUMEM_INLINE core::Result<std::vector<Range>> checkpointed(const ForwardPass& pass,
                                                            const model::CheckpointPolicy& policy) {
  namespace detail = checkpoints_detail;
  const model::ModelGraph& graph = pass.wired.graph();
  const bool attention = policy.kind == model::Checkpoints::selective_attention;
  std::vector<Range> blocks = attention ? detail::attentions(graph) : repeated_blocks(graph);
  if (blocks.empty()) return attention ? detail::no_attention(graph) : detail::nothing_repeats(graph);
  const bool some = policy.kind == model::Checkpoints::first || policy.kind == model::Checkpoints::every;
  if (some) blocks = detail::chosen(blocks, policy);
  std::vector<Range> runs;
  std::uint32_t at = 0;
  const auto functions = pass.tape.functions().first(pass.model_functions);
  for (const Range& block : blocks) {
    while (at < functions.size() && functions[at].layer < block.first) ++at;
    const std::uint32_t first = at;
    while (at < functions.size() && functions[at].layer < block.end) ++at;
    if (at > first) runs.push_back({first, at});
  }
  return runs;
}

GPUMEM_INLINE std::vector<std::uint32_t> kept_results(const ops::Tape& tape, const Range& part,
                                                      const model::CheckpointPolicy& policy) {
  std::vector<std::uint32_t> kept;
  if (policy.kind != model::Checkpoints::selective_op) return kept;
  int products = 0;
  for (std::uint32_t index = part.first; index < part.end; ++index) {
    const ops::Function& function = tape.functions()[index];
    const bool product = function.library == ops::Library::gemm && function.parameters.count > 0;
    const bool attention = function.library == ops::Library::none && function.multiply_adds.elements.value() != 0;
    if (product) ++products;
    if (attention || (product && products % 2 == 1)) kept.push_back(index);
  }
  return kept;
}

}  // namespace gpumem::plan
