#pragma once

#include "gpumem/connect/connect.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/core/deadline.hpp"

namespace gpumem::connect {

namespace further_tokens_detail {

class FurtherTokens {
 public:
  FurtherTokens(const WiredGraph& wired, std::int64_t count, const ops::Catalogue& ops)
      : wired_(wired), count_(count), copy_(wired, ops), blocks_(repeated_blocks(wired.graph())) {}

  core::Result<WiredGraph> run() {
    constexpr std::int64_t kMostLayers = 250'000;  // as in a summary
    if (!find_parts()) {
      return core::Error{
          core::ErrorCode::missing_information,
          "layers that predict further tokens are modelled for decoders with one stack of blocks, a last "
          "norm and a head over a vocabulary; leave `megatron_options` out",
          {wired_.graph().file(), 0, {}}};
    }
    if (const Range& last = blocks_.back(); count_ * static_cast<std::int64_t>(last.end - last.first) > kMostLayers) {
      return core::Error{core::ErrorCode::missing_information,
                         "so many layers that predict further tokens are more than 250,000 in all; say a smaller "
                         "mtp_num_layers in `megatron_options`",
                         {wired_.graph().file(), 0, {}}};
    }
    const auto layers = static_cast<std::uint32_t>(wired_.graph().layers().size());
    std::vector<model::LayerIndex> losses;
    core::Pace pace;
    for (std::uint32_t at = 0; at < layers; ++at) {
      if (pace.late()) return core::deadline_error();
      if (at == head_) {
        core::Result<std::vector<model::LayerIndex>> predicted = predict();
        if (!predicted) return predicted.error();
        losses = *std::move(predicted);
      }
      const model::Layer& layer = wired_.graph().layers()[at];
      std::optional<ChangedLayer> change;
      if (at == head_) {  // its weight is there already
        const auto all = wired_.graph().attributes(layer).all();
        change = ChangedLayer{{all.begin(), all.end()}, layer.parameters};
      }
      static_cast<void>(copy_.copy(wired_.weights(at), layer.frozen, change));
    }
    model::LayerIndex sum = copy_.now(static_cast<model::LayerIndex>(layers - 1));
    for (const model::LayerIndex loss : losses) sum = add("loss", "add", {sum, loss}, wired_.outputs(layers - 1)[0]);
    copy_.remark("what predicts further tokens has a block as the last one, and makes logits once more for each token");
    return std::move(copy_).finish();
  }

 private:
  using Map = std::map<model::LayerIndex, model::LayerIndex>;

  /// False: the model is not of this form.
  [[nodiscard]] bool find_parts() {
    const auto layers = static_cast<std::uint32_t>(wired_.graph().layers().size());
    if (blocks_.size() < 2) return false;
    const Range& last = blocks_.back();
    head_ = head_behind(wired_, last).value_or(0);
    const auto first_input = [&](std::uint32_t at) {
      return wired_.inputs(at).empty() ? model::LayerIndex{-1} : wired_.inputs(at)[0];
    };
    if (head_ <= last.end || head_ + 1 >= layers || wired_.outputs(layers - 1).empty()) return false;
    words_ = first_input(blocks_.front().first);
    hidden_ = first_input(last.first);
    made_ = first_input(last.end);
    normed_ = first_input(head_);
    const auto inside = [](model::LayerIndex layer, std::uint32_t first, std::uint32_t end) {
      return layer >= static_cast<model::LayerIndex>(first) && layer < static_cast<model::LayerIndex>(end);
    };
    const auto before = static_cast<std::uint32_t>(blocks_[blocks_.size() - 2].first);
    // A head over a vocabulary is wider than what it reads; that of a classifier is not.
    const auto width = [&](std::string_view of) {
      return wired_.graph().attributes(wired_.graph().layers()[head_]).integer(of).value_or(0);
    };
    if (width("out_features") <= width("in_features")) return false;
    return words_ >= 0 && inside(hidden_, before, last.first) && inside(made_, last.first, last.end) &&
           inside(normed_, last.end, head_);
  }

  model::LayerIndex add(std::string name, std::string_view op, std::vector<model::LayerIndex> inputs,
                        const core::Shape& output, std::vector<model::Attribute> attributes = {},
                        model::TensorSplit split = model::TensorSplit::whole) {
    return copy_.insert({.name = prefix_ + std::move(name),
                         .op = op,
                         .inputs = std::move(inputs),
                         .output = output,
                         .attributes = std::move(attributes),
                         .split = split});
  }

  /// Layers of the source once more, with other inputs in place of some. Returns what they make of them.
  Map again(std::string_view name, std::uint32_t first, std::uint32_t end, Map inputs) {
    const model::ModelGraph& graph = wired_.graph();
    for (std::uint32_t at = first; at < end; ++at) {
      const model::Layer& layer = graph.layers()[at];
      std::vector<model::LayerIndex> read;
      for (const model::LayerIndex input : wired_.inputs(at)) {
        const auto found = inputs.find(input);
        read.push_back(found == inputs.end() ? copy_.now(input) : found->second);
      }
      const auto all = graph.attributes(layer).all();
      const auto outputs = wired_.outputs(at);
      const bool head = at == head_;
      inputs[static_cast<model::LayerIndex>(at)] =
          copy_.insert({.name = prefix_ + std::string(name) + graph.path(layer),
                        .op = graph.op(layer),
                        .inputs = std::move(read),
                        .output = outputs.empty() ? core::Shape() : outputs[0],
                        .attributes = {all.begin(), all.end()},
                        .weights = wired_.weights(at),
                        .frozen = layer.frozen,
                        .split = layer.split,
                        .expert = layer.expert,
                        .tied_parameters = head && predicted_ > 0 ? layer.parameters : layer.tied_parameters});
    }
    return inputs;
  }

  model::LayerIndex norm(std::string_view name, model::LayerIndex input) {
    return again(name, blocks_.back().end, head_, {{made_, input}}).at(normed_);
  }

  /// What one more layer makes of the words and of the states before.
  model::LayerIndex state_after(model::LayerIndex before) {
    const core::Shape shape = wired_.outputs(static_cast<std::size_t>(normed_))[0];
    const std::int64_t width = shape[shape.rank() - 1].size;
    core::Shape wide = shape;
    wide.set(shape.rank() - 1, core::Dim::fixed(2 * width));
    const model::LayerIndex words = norm("enorm.", add("words", "clone", {copy_.now(words_)}, shape));
    const auto axis = static_cast<std::int64_t>(shape.rank()) - 1;
    const model::LayerIndex both = add("both", "concat", {words, norm("hnorm.", before)}, wide, {{"dim", axis}});
    const model::LayerIndex joined =
        add("eh_proj", "linear", {both}, shape, {{"in_features", 2 * width}, {"out_features", width}, {"bias", false}},
            model::TensorSplit::columns);
    const model::LayerIndex whole = add("joined", "gather_features", {joined}, shape, {}, model::TensorSplit::features);
    const Range& last = blocks_.back();
    return norm("final_layernorm.", again("mtp_model_layer.", last.first, last.end, {{hidden_, whole}}).at(made_));
  }

  /// The losses, each of a layer, which come before the main one. Errors: deadline.
  core::Result<std::vector<model::LayerIndex>> predict() {
    std::vector<model::LayerIndex> states = {copy_.now(normed_)};
    for (std::int64_t index = 0; index < count_; ++index) {
      if (core::deadline_passed()) return core::deadline_error();
      prefix_ = "mtp.layers." + std::to_string(index) + ".";
      states.push_back(state_after(states.back()));
    }
    std::vector<model::LayerIndex> losses;
    const auto end = static_cast<std::uint32_t>(wired_.graph().layers().size());
    for (; predicted_ < count_; ++predicted_) {
      prefix_ = "mtp." + std::to_string(predicted_) + ".";
      const model::LayerIndex state = states[static_cast<std::size_t>(predicted_) + 1];
      losses.push_back(again("", head_, end, {{normed_, state}}).at(static_cast<model::LayerIndex>(end - 1)));
    }
    prefix_.clear();
    return losses;
  }

  const WiredGraph& wired_;
  std::int64_t count_;
  GraphCopy copy_;
  std::vector<Range> blocks_;
  std::uint32_t head_ = 0;
  model::LayerIndex words_ = -1;   ///< what the first block reads
  model::LayerIndex hidden_ = -1;  ///< and the last one
  model::LayerIndex made_ = -1;    ///< what leaves the last one
  model::LayerIndex normed_ = -1;  ///< what the head reads
  std::string prefix_ = {};
  std::int64_t predicted_ = 0;  ///< heads so far
};

}  // namespace further_tokens_detail

GPUMEM_INLINE core::Result<WiredGraph> with_further_tokens(const WiredGraph& wired, std::int64_t count,
                                                           const ops::Catalogue& ops) {
  return further_tokens_detail::FurtherTokens(wired, count, ops).run();
}

}  // namespace gpumem::connect
