// Convolutions whose branches are weighted by a softmax: ResNeSt's SplitAttn, SKNet's SelectiveKernel; Res2Net's
// hierarchy of splits. Source: timm 1.0.9, timm.layers.split_attn, timm.layers.selective_kernel, timm.models.res2net.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace split_attention_detail {

using tokens_detail::Sizes;

inline Tensor summed(Wiring& wiring, Tensor tensor, std::int64_t dim) {
  return wiring.operation("sum", {&tensor, 1}, {{"dim", dim}});
}

inline Tensor one_pixel(Wiring& wiring, Tensor images) {
  return wiring.operation("mean", {&images, 1}, {{"dim", Sizes{2, 3}}, {"keepdim", true}});
}

/// [N, r C, h, w] -> r branches of C channels, each times its weight, summed.
inline Tensor wire_split(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 4> kFirst = {"conv", "bn0", "drop", "act0"};
  constexpr std::array<std::string_view, 4> kGate = {"fc1", "bn1", "act1", "fc2"};
  if (wiring.called()) return wiring.chain(block.parts, input);
  const auto reader = wiring.child(block, "fc1");
  const auto reads = reader ? wiring.integer(*reader, "in_channels") : std::nullopt;
  const Tensor all = wiring.chain_named(block, kFirst, input);
  if (!reads || wiring.failed()) return all;
  const core::Shape shape = wiring.shape(all);
  const std::int64_t width = tokens_detail::fixed(shape, 1);
  const std::int64_t groups = *reads > 0 && width % *reads == 0 ? width / *reads : 1;
  const Tensor parted = groups > 1 ? wiring.operation("unflatten", {&all, 1},
                                                      {{"dim", std::int64_t{1}}, {"sizes", Sizes{groups, *reads}}})
                                   : all;
  const Tensor mean = one_pixel(wiring, groups > 1 ? summed(wiring, parted, 1) : all);
  Tensor weights = wiring.chain_named(block, kGate, mean);
  if (wiring.failed()) return input;
  if (groups == 1) return wiring.multiply(all, wiring.operation("sigmoid", {&weights, 1}));
  weights = tokens_detail::reshaped(wiring, weights, {groups, *reads, 1, 1});
  weights = wiring.operation("softmax", {&weights, 1}, {{"dim", std::int64_t{1}}});
  return summed(wiring, wiring.multiply(parted, weights), 1);
}

/// Paths side by side, their sum pooled and put through the gate, each path times its weight.
inline Tensor wire_selective(Wiring& wiring, const Container& block, Tensor input) {
  const auto paths = wiring.child(block, "paths");
  const auto attn = wiring.child(block, "attn");
  if (wiring.called() || !paths || !attn || !paths->container || !attn->container) {
    return wiring.chain(block.parts, input);
  }
  const std::vector<Part>& parts = wiring.container(*paths).parts;
  const auto count = static_cast<std::int64_t>(parts.size());
  const std::int64_t each = wiring.channels(input) / std::max<std::int64_t>(count, 1);
  std::vector<Tensor> outputs;
  for (const Part& part : parts) {
    const auto conv = wiring.first_width(part, "in_channels");
    const bool splits = conv && *conv == each && each * count == wiring.channels(input);
    const auto start = static_cast<std::int64_t>(outputs.size()) * each;
    const Tensor read =
        splits ? wiring.operation("slice", {&input, 1}, {{"dim", std::int64_t{1}}, {"start", start}, {"length", each}})
               : input;
    const Tensor output = wiring.call(part, read);
    if (wiring.failed()) return input;
    outputs.push_back(wiring.operation("unsqueeze", {&output, 1}, {{"dim", std::int64_t{1}}}));
  }
  const Tensor stacked = wiring.concatenate(outputs);
  const Tensor mean = one_pixel(wiring, summed(wiring, stacked, 1));
  const Container& gate = wiring.container(*attn);
  Tensor weights = wiring.chain(gate.parts, mean);
  if (wiring.failed()) return input;
  weights = tokens_detail::reshaped(wiring, weights, {count, -1, 1, 1});
  weights = wiring.operation("softmax", {&weights, 1}, {{"dim", std::int64_t{1}}});
  return summed(wiring, wiring.multiply(stacked, weights), 1);
}

/// Bottle2neck's splits: each convolution reads its part of the channels and what the one before it left.
inline Tensor wire_hierarchy(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  const auto convs = wiring.child(block, "convs");
  const auto norms = wiring.child(block, "bns");
  if (wiring.called() || !convs || !norms || !convs->container || !norms->container) {
    return wiring.chain(block.parts, input);
  }
  Tensor output = calls("relu", calls("bn1", calls("conv1", input)));
  if (wiring.failed()) return input;
  const std::vector<Part>& all = wiring.container(*convs).parts;
  const std::vector<Part>& behind = wiring.container(*norms).parts;
  const bool first = calls.has("pool");
  const std::vector<Tensor> splits =
      tokens_detail::parts_of(wiring, output, static_cast<std::int64_t>(all.size()) + 1, 1);
  std::vector<Tensor> outputs;
  for (std::size_t at = 0; at < all.size() && at < behind.size() && !wiring.failed(); ++at) {
    const bool adds = at > 0 && !first;
    const Tensor read = adds ? wiring.add(outputs.back(), splits[at], false) : splits[at];
    outputs.push_back(calls("relu", wiring.call(behind[at], wiring.call(all[at], read))));
  }
  if (wiring.failed()) return input;
  outputs.push_back(calls("pool", splits.back()));
  output = calls("se", calls("bn3", calls("conv3", wiring.concatenate(outputs))));
  const Tensor shortcut = calls("downsample", input);
  if (wiring.failed()) return input;
  if (wiring.shape(output) == wiring.shape(shortcut)) output = wiring.add(output, shortcut, true);
  return calls("relu", output);
}

inline constexpr std::array<std::string_view, 1> kSplit = {"SplitAttn"};
inline constexpr std::array<std::string_view, 1> kSelective = {"SelectiveKernel"};
inline constexpr std::array<std::string_view, 1> kHierarchy = {"Bottle2neck"};

}  // namespace split_attention_detail

inline constexpr std::array<BlockRule, 3> kSplitAttentionBlocks = {
    {{split_attention_detail::kSplit, split_attention_detail::wire_split, nullptr},
     {split_attention_detail::kSelective, split_attention_detail::wire_selective, nullptr},
     {split_attention_detail::kHierarchy, split_attention_detail::wire_hierarchy, nullptr}}};

}  // namespace gpumem::connect
