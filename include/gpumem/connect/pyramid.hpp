// Networks whose stages have images of several sizes: Xception, high-resolution nets, aggregated stages.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "gpumem/connect/block_rules.hpp"

namespace gpumem::connect {

// Xception's separable modules. Source: timm 1.0.9, timm.models.xception_aligned.

namespace xception_detail {

/// XceptionModule, PreXceptionModule: a stack, and a shortcut around it where the sizes allow it.
inline Tensor wire_xception(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("stack")) return wiring.chain(block.parts, input);
  const Tensor normal = calls("norm", input);
  const Tensor output = calls("drop_path", calls("stack", normal));
  const Tensor shortcut = calls("shortcut", normal);
  const bool same = !wiring.failed() && wiring.shape(output) == wiring.shape(shortcut);
  return same ? wiring.add(output, shortcut, false) : output;
}

inline constexpr std::array<std::string_view, 2> kXception = {"XceptionModule", "PreXceptionModule"};

}  // namespace xception_detail

inline constexpr std::array<BlockRule, 1> kXceptionBlocks = {
    {{xception_detail::kXception, xception_detail::wire_xception, nullptr}}};

// HRNet: branches of several resolutions side by side, which exchange what they made at the end of each module. What
// flows between modules is a list of tensors, which one walk over the whole model keeps. Source: timm 1.0.9,
// timm.models.hrnet.HighResolutionNet.

namespace high_resolution_detail {

using Branches = std::vector<Tensor>;

/// Every output is a sum over all branches, each put through its own layers.
inline Branches fused(Wiring& wiring, const Container& module, const Branches& inputs) {
  const auto layers = wiring.child(module, "fuse_layers");
  const Calls calls(wiring, module);
  Branches outputs;
  if (!layers || !layers->container) return inputs;
  for (const Part& row : wiring.container(*layers).parts) {
    if (!row.container) continue;
    std::optional<Tensor> sum;
    const std::vector<Part>& parts = wiring.container(row).parts;
    for (std::size_t from = 0; from < parts.size() && from < inputs.size(); ++from) {
      const Tensor each = wiring.call(parts[from], inputs[from]);
      if (wiring.failed()) return inputs;
      sum = sum ? wiring.add(*sum, each, false) : each;
    }
    if (sum) outputs.push_back(calls("fuse_act", *sum));
  }
  return outputs.empty() ? inputs : outputs;
}

inline Branches call_module(Wiring& wiring, const Container& module, Branches inputs) {
  const auto branches = wiring.child(module, "branches");
  if (!branches || !branches->container) return inputs;
  const std::vector<Part>& parts = wiring.container(*branches).parts;
  for (std::size_t index = 0; index < parts.size() && index < inputs.size(); ++index) {
    inputs[index] = wiring.call(parts[index], inputs[index]);
  }
  return wiring.failed() || parts.size() == 1 ? inputs : fused(wiring, module, inputs);
}

/// A transition makes the branches of the next stage: of the same branch, or of the last one.
inline Branches call_transition(Wiring& wiring, const Container& transition, const Branches& inputs) {
  Branches outputs;
  for (std::size_t index = 0; index < transition.parts.size() && !inputs.empty(); ++index) {
    const Tensor from = index < inputs.size() ? inputs[index] : inputs.back();
    outputs.push_back(wiring.call(transition.parts[index], from));
  }
  return outputs.empty() ? inputs : outputs;
}

/// The classifier's modules: each resolution is widened, and added to the next finer one made smaller.
inline Tensor call_head(Wiring& wiring, const Container& model, const Branches& branches) {
  const auto widen = wiring.child(model, "incre_modules");
  const auto shrink = wiring.child(model, "downsamp_modules");
  if (!widen || !shrink || !widen->container || !shrink->container) return branches.front();
  const std::vector<Part>& wide = wiring.container(*widen).parts;
  const std::vector<Part>& small = wiring.container(*shrink).parts;
  if (wide.empty()) return branches.front();
  Tensor output = wiring.call(wide.front(), branches.front());
  for (std::size_t at = 0; at < small.size() && at + 1 < wide.size() && at + 1 < branches.size(); ++at) {
    const Tensor next = wiring.call(wide[at + 1], branches[at + 1]);
    const Tensor shrunk = wiring.call(small[at], output);
    if (wiring.failed()) return output;
    output = wiring.add(next, shrunk, false);
  }
  return output;
}

inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  if (wiring.called()) return wiring.chain(model.parts, input);
  Branches branches = {input};
  for (const Part& part : model.parts) {
    if (wiring.failed()) return input;
    const std::string_view name = wiring.name(part);
    if (name.starts_with("transition") && part.container) {
      branches = call_transition(wiring, wiring.container(part), branches);
    } else if (name.starts_with("stage") && part.container) {
      for (const Part& module : wiring.container(part).parts) {
        if (module.container) branches = call_module(wiring, wiring.container(module), branches);
      }
    } else if (name == "incre_modules") {
      branches = {call_head(wiring, model, branches)};
    } else if (name != "downsamp_modules") {
      branches[0] = wiring.call(part, branches[0]);
    }
  }
  return branches.front();
}

inline constexpr std::array<std::string_view, 1> kModels = {"HighResolutionNet"};

}  // namespace high_resolution_detail

inline constexpr std::array<BlockRule, 1> kHighResolutionBlocks = {
    {{high_resolution_detail::kModels, high_resolution_detail::wire_model, nullptr}}};

// Blocks that keep what each of their parts leaves, and join all of it at the end (one-shot aggregation): VoVNet,
// HGNet, timm's DenseNet, DLA; CSPNet, which calls its blocks on half of the channels; DPN. Source: timm 1.0.9,
// timm.models .vovnet, hgnet, densenet, dla, cspnet, dpn, selecsls.

namespace aggregation_detail {

/// Side by side, except many in a row: their joins grow with the square of their number.
inline Tensor joined(Wiring& wiring, const std::vector<Tensor>& tensors) {
  constexpr std::size_t kMost = 1000;
  if (tensors.size() > kMost) {
    wiring.fail({core::ErrorCode::malformed_input, "holds a block that joins more than 1,000 layers", {}});
    return tensors.front();
  }
  return wiring.concatenate(tensors);
}

inline Tensor added(Wiring& wiring, Tensor output, Tensor input) {
  const bool same = !wiring.failed() && wiring.shape(output) == wiring.shape(input);
  return same ? wiring.add(output, input, false) : output;
}

/// OsaBlock, HighPerfGpuBlock: layers one after the other, all of their outputs and the input joined.
inline Tensor wire_one_shot(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  const auto list = wiring.child(block, wiring.child(block, "conv_mid") ? "conv_mid" : "layers");
  if (wiring.called() || !list || !list->container) return wiring.chain(block.parts, input);
  std::vector<Tensor> outputs = {input};
  Tensor output = calls("conv_reduction", input);
  for (const Part& part : wiring.container(*list).parts) {
    output = wiring.call(part, output);
    outputs.push_back(output);
  }
  if (wiring.failed()) return input;
  output = calls("aggregation", calls("conv_concat", joined(wiring, outputs)));
  output = calls("drop_path", calls("attn", output));
  // Where input and output have one size, blocks with a gate (ese_vovnet) and HGNet's are residual.
  return calls.has("drop_path") || calls.has("attn") ? added(wiring, output, input) : output;
}

/// CrossStage, CrossStage3: conv_exp, half of its channels through the blocks, both halves joined.
inline Tensor wire_cross_stage(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("conv_exp")) return wiring.chain(block.parts, input);
  const Tensor expanded = calls("conv_exp", calls("conv_down", input));
  if (wiring.failed()) return input;
  const std::vector<Tensor> halves = blocks_detail::parts_of(wiring, expanded, 2, 1);
  const Tensor deep = calls("conv_transition_b", calls("blocks", halves[1]));
  if (wiring.failed()) return input;
  return calls("conv_transition", wiring.concatenate(std::array<Tensor, 2>{halves[0], deep}));
}

/// DlaBasic, DlaBottleneck: bn1, relu, bn2, (relu, bn3,) += shortcut, relu, of which a tree shows one.
inline Tensor wire_dla_block(Wiring& wiring, const Container& block, Tensor input, Tensor shortcut) {
  const Calls calls(wiring, block);
  const bool three = calls.has("conv3");
  Tensor output = calls("relu", calls("bn1", calls("conv1", input)));
  const auto list = wiring.child(block, "convs");
  if (list) output = wiring.call(*list, output);  // DlaBottle2neck, its splits unseen
  if (!list) output = calls("bn2", calls("conv2", output));
  if (three) output = calls("bn3", calls("conv3", list ? output : calls("relu", output)));
  const bool same = !wiring.failed() && wiring.shape(output) == wiring.shape(shortcut);
  if (same) output = wiring.add(output, shortcut, true);
  return calls("relu", output);
}

inline Tensor wire_dla_tree(Wiring& wiring, const Container& tree, Tensor input, std::vector<Tensor> children);

inline Tensor call_tree(Wiring& wiring, Part part, Tensor input, Tensor shortcut, const std::vector<Tensor>& children) {
  const Container& inner = wiring.container(part);
  if (inner.class_name == "DlaTree") return wire_dla_tree(wiring, inner, input, children);
  return wire_dla_block(wiring, inner, input, shortcut);
}

/// Of a level whose root reads more channels than the two trees leave, the input joins as well.
inline Tensor wire_dla_tree(Wiring& wiring, const Container& tree, Tensor input, std::vector<Tensor> children) {
  const Calls calls(wiring, tree);
  const auto first = wiring.child(tree, "tree1");
  const auto second = wiring.child(tree, "tree2");
  if (!first || !second || !first->container || !second->container) return wiring.chain(tree.parts, input);
  const Tensor bottom = calls("downsample", input);
  const Tensor shortcut = calls("project", bottom);
  const Tensor one = call_tree(wiring, *first, input, shortcut, {});
  if (wiring.failed()) return input;
  const auto root = wiring.child(tree, "root");
  if (!root || !root->container) {
    children.push_back(one);
    return call_tree(wiring, *second, one, one, children);
  }
  const Tensor two = call_tree(wiring, *second, one, one, {});
  if (wiring.failed()) return input;
  std::vector<Tensor> all = {two, one};
  all.insert(all.end(), children.begin(), children.end());
  const auto conv = wiring.child(wiring.container(*root), "conv");
  const auto wanted = conv ? wiring.integer(*conv, "in_channels") : std::nullopt;
  std::int64_t sum = 0;
  for (const Tensor tensor : all) sum += wiring.channels(tensor);
  if (wanted && sum + wiring.channels(bottom) == *wanted) all.push_back(bottom);
  const Calls of_root(wiring, wiring.container(*root));
  return of_root("relu", of_root("bn", of_root("conv", wiring.concatenate(all))));
}

inline Tensor wire_tree(Wiring& wiring, const Container& tree, Tensor input) {
  return wiring.called() ? wiring.chain(tree.parts, input) : wire_dla_tree(wiring, tree, input, {});
}

/// DualPathBlock: a residual path and a dense path. Between blocks both are one tensor here, joined where a layer reads
/// them, as forward() joins them.
inline Tensor wire_dual_path(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("c1x1_a")) return wiring.chain(block.parts, input);
  const Tensor shortcut = calls("c1x1_w_s2", calls("c1x1_w_s1", input));
  const Tensor output = calls("c1x1_c", calls("c3x3_b", calls("c1x1_a", input)));
  if (wiring.failed()) return input;
  const std::int64_t old = wiring.channels(shortcut);
  const std::int64_t made = wiring.channels(output);
  const auto part = [&](Tensor tensor, std::int64_t start, std::int64_t length) {
    return wiring.operation("slice", {&tensor, 1}, {{"dim", std::int64_t{1}}, {"start", start}, {"length", length}});
  };
  // The residual path is as wide as the first power of two that the block's output exceeds.
  std::int64_t residual = 64;
  while (residual * 2 < made) residual *= 2;
  if (residual >= made || residual >= old) return wiring.concatenate(std::array<Tensor, 2>{shortcut, output});
  const Tensor sum = wiring.add(part(shortcut, 0, residual), part(output, 0, residual), false);
  const Tensor dense = wiring.concatenate(
      std::array<Tensor, 2>{part(shortcut, residual, old - residual), part(output, residual, made - residual)});
  return wiring.concatenate(std::array<Tensor, 2>{sum, dense});
}

inline constexpr std::array<std::string_view, 2> kOneShot = {"OsaBlock", "HighPerfGpuBlock"};
inline constexpr std::array<std::string_view, 2> kCross = {"CrossStage", "CrossStage3"};
inline constexpr std::array<std::string_view, 1> kTree = {"DlaTree"};
inline constexpr std::array<std::string_view, 1> kDualPath = {"DualPathBlock"};

}  // namespace aggregation_detail

inline constexpr std::array<BlockRule, 4> kAggregationBlocks = {
    {{aggregation_detail::kOneShot, aggregation_detail::wire_one_shot, nullptr},
     {aggregation_detail::kCross, aggregation_detail::wire_cross_stage, nullptr},
     {aggregation_detail::kTree, aggregation_detail::wire_tree, nullptr},
     {aggregation_detail::kDualPath, aggregation_detail::wire_dual_path, nullptr}}};

}  // namespace gpumem::connect
