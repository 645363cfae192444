// Blocks that add their input to what they compute: torchvision's and timm's ResNet (BasicBlock, Bottleneck: out +=
// identity, then the activation), MobileNetV2 and V3, MnasNet and EfficientNet (InvertedResidual, MBConv, FusedMBConv,
// where input and output have one shape), RegNet (ResBottleneckBlock). ShuffleNetV2's InvertedResidual joins its
// branches side by side. Source: torchvision.models, timm.models.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "gpumem/connect/block_rules.hpp"

namespace gpumem::connect {

namespace residual_detail {

inline bool is_activation(std::string_view op) {
  constexpr std::array<std::string_view, 8> kActivations = {"relu", "relu6",      "silu", "hardswish",
                                                            "gelu", "leaky_relu", "mish", "hardtanh"};
  return std::find(kActivations.begin(), kActivations.end(), op) != kActivations.end();
}

/// How many parts come before the activation that ends the block, if one does.
inline std::size_t before_activation(const Wiring& wiring, const Container& block) {
  const std::size_t count = block.parts.size();
  return count > 0 && is_activation(wiring.op(block.parts.back())) ? count - 1 : count;
}

/// The block's parts in a table: a part that can read the block's input, and not its predecessor, begins the shortcut.
struct Sides {
  Tensor main = 0;
  std::optional<Tensor> shortcut;
};
inline Sides walk(Wiring& wiring, std::span<const Part> parts, Tensor input) {
  Sides sides{input, std::nullopt};
  for (const Part& part : parts) {
    Tensor& side = sides.shortcut ? *sides.shortcut : sides.main;
    const bool first = &part == parts.data();
    const bool begins = !sides.shortcut && !first && !wiring.fits(part, side) && wiring.fits(part, input);
    if (begins) {
      sides.shortcut = wiring.call(part, input);
    } else {
      side = wiring.call(part, side);
    }
  }
  return sides;
}

/// main + shortcut where there is one, input + main where they have one shape; else what the main path leaves.
inline Tensor joined(Wiring& wiring, const Sides& sides, Tensor input, bool in_place) {
  if (sides.shortcut) return wiring.add(sides.main, *sides.shortcut, in_place);
  if (!(wiring.shape(sides.main) == wiring.shape(input))) return sides.main;
  return in_place ? wiring.add(sides.main, input, true) : wiring.add(input, sides.main, false);
}

/// A tree declares one relu for all of its calls, and the shortcut last.
inline Tensor wire_declared_resnet(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 2> kShortcuts = {"downsample", "shortcut"};
  Sides sides{input, std::nullopt};
  const auto relu = wiring.child(block, "relu");
  const auto last = wiring.child(block, "conv3") ? wiring.child(block, "bn3") : wiring.child(block, "bn2");
  for (const Part& part : block.parts) {
    const std::string_view name = wiring.name(part);
    if (name == "relu" || name == "act2" || name == "act3") continue;
    if (std::find(kShortcuts.begin(), kShortcuts.end(), name) != kShortcuts.end()) {
      sides.shortcut = wiring.call(part, input);
      continue;
    }
    sides.main = wiring.call(part, sides.main);
    const bool norm = name.starts_with("bn") && !(last && last->index == part.index);
    if (norm && relu) sides.main = wiring.call(*relu, sides.main);
    if (name == "bn2" && last && last->index != part.index) {
      if (const auto act = wiring.child(block, "act2")) sides.main = wiring.call(*act, sides.main);
    }
  }
  const Tensor sum = joined(wiring, sides, input, true);
  if (relu) return wiring.call(*relu, sum);
  const auto act = wiring.child(block, wiring.child(block, "conv3") ? "act3" : "act2");
  return act ? wiring.call(*act, sum) : sum;
}

inline constexpr std::array<std::string_view, 5> kShortcutNames = {"downsample", "shortcut", "identity", "skip",
                                                                   "proj"};

inline bool is_shortcut(std::string_view name) {
  return std::find(kShortcutNames.begin(), kShortcutNames.end(), name) != kShortcutNames.end();
}

/// The parts of a block that declares its shortcut by a usual name.
struct NamedParts {
  std::vector<Part> main;
  std::optional<Part> shortcut;
  std::optional<Part> last;  ///< the activation after the sum
};

/// Not inlined, like what follows the calls in wire_named: the blocks of a tree nest, and each would keep room for it.
[[gnu::noinline]] inline NamedParts named_parts(const Wiring& wiring, const Container& block) {
  NamedParts parts;
  for (const Part& part : block.parts) {
    if (is_shortcut(wiring.name(part))) {
      parts.shortcut = part;
    } else {
      parts.main.push_back(part);
    }
  }
  for (std::size_t at = parts.main.size(); at > 1; --at) {  // only what drops paths may follow the activation
    const std::string_view name = wiring.name(parts.main[at - 1]);
    if (is_activation(wiring.op(parts.main[at - 1])) && name.starts_with("act")) {
      parts.last = parts.main[at - 1];
      parts.main.erase(parts.main.begin() + static_cast<std::ptrdiff_t>(at) - 1);
      break;
    }
    if (!name.starts_with("drop_path") && !name.starts_with("attn_last")) break;
  }
  return parts;
}

[[gnu::noinline]] inline Tensor join_named(Wiring& wiring, Sides sides, Tensor input) {
  if (sides.shortcut && !(wiring.shape(*sides.shortcut) == wiring.shape(sides.main))) sides.shortcut.reset();
  return joined(wiring, sides, input, false);
}

/// Any block of a tree that declares its shortcut by a usual name, and the activation after the sum last: the others
/// are called in their order.
inline Tensor wire_named(Wiring& wiring, const Container& block, Tensor input) {
  if (wiring.called()) return wiring.chain(block.parts, input);
  const NamedParts parts = named_parts(wiring, block);
  Sides sides{input, std::nullopt};
  if (parts.shortcut) sides.shortcut = wiring.call(*parts.shortcut, input);
  sides.main = wiring.chain(parts.main, input);
  if (wiring.failed()) return input;
  const Tensor sum = join_named(wiring, sides, input);
  return parts.last ? wiring.call(*parts.last, sum) : sum;
}

/// The same of a table. Not inlined: the blocks of a tree nest, and each would keep room for its variables.
[[gnu::noinline]] inline Tensor wire_called_resnet(Wiring& wiring, const Container& block, Tensor input) {
  const std::span<const Part> parts = block.parts;
  const std::size_t main = before_activation(wiring, block);
  const Tensor sum = joined(wiring, walk(wiring, parts.first(main), input), input, true);
  return wiring.chain(parts.subspan(main), sum);
}

/// out = main(x); out += shortcut(x); activation(out).
inline Tensor wire_resnet(Wiring& wiring, const Container& block, Tensor input) {
  if (wiring.called()) return wire_called_resnet(wiring, block, input);
  const bool plain = wiring.child(block, "bn1") || wiring.child(block, "relu");
  return plain ? wire_declared_resnet(wiring, block, input) : wire_named(wiring, block, input);
}

/// RegNet: shortcut(x) + main(x), the shortcut called first.
inline Tensor wire_regnet(Wiring& wiring, const Container& block, Tensor input) {
  const std::size_t main = before_activation(wiring, block);
  const std::span<const Part> parts = block.parts;
  if (wiring.called()) {
    return wiring.chain(parts.subspan(main), joined(wiring, walk(wiring, parts.first(main), input), input, false));
  }
  const auto shortcut = wiring.child(block, "proj");
  const auto transform = wiring.child(block, "f");
  const auto activation = wiring.child(block, "activation");
  if (!transform || !activation) return wiring.chain(parts, input);
  const Tensor left = shortcut ? wiring.call(*shortcut, input) : input;
  return wiring.call(*activation, wiring.add(left, wiring.call(*transform, input), false));
}

/// Whether a layer of this op is in the container.
inline bool contains(const Wiring& wiring, const Container& container, std::string_view op) {
  const auto has = [&](const Part& part) {
    return part.container ? contains(wiring, wiring.container(part), op) : wiring.op(part) == op;
  };
  return std::any_of(container.parts.begin(), container.parts.end(), has);
}

/// ShuffleNetV2's groups of channels, taken in turns (channel_shuffle with two groups).
inline Tensor shuffled(Wiring& wiring, Tensor input) {
  const std::int64_t half = wiring.shape(input)[1].size / 2;
  Tensor parted = wiring.operation("unflatten", {&input, 1},
                                   {{"dim", std::int64_t{1}}, {"sizes", std::vector<std::int64_t>{2, half}}});
  parted = wiring.operation("permute", {&parted, 1}, {{"dims", std::vector<std::int64_t>{0, 2, 1, 3, 4}}});
  parted = wiring.operation("contiguous", {&parted, 1});
  return wiring.operation("flatten", {&parted, 1}, {{"start_dim", std::int64_t{1}}, {"end_dim", std::int64_t{2}}});
}

/// ShuffleNetV2's block of the same name, in a tree: two branches side by side, or one on half of the channels.
inline Tensor wire_shuffle(Wiring& wiring, const Container& block, Part branch, Tensor input) {
  if (const auto other = wiring.child(block, "branch1")) {
    const Tensor left = wiring.call(*other, input);
    return shuffled(wiring, wiring.concatenate(std::array<Tensor, 2>{left, wiring.call(branch, input)}));
  }
  const std::int64_t half = wiring.shape(input)[1].size / 2;
  const std::vector<std::int64_t> sizes = {half, half};
  const Tensor split = wiring.operation("split", {&input, 1}, {{"sizes", sizes}, {"dim", std::int64_t{1}}});
  const auto item = [&](std::int64_t start) {
    return wiring.operation("item", {&split, 1}, {{"dim", std::int64_t{1}}, {"start", start}, {"length", half}});
  };
  const Tensor left = item(0);
  const Tensor right = item(half);
  return shuffled(wiring, wiring.concatenate(std::array<Tensor, 2>{left, wiring.call(branch, right)}));
}

/// Where the shapes allow it MobileNetV2, whose activation is relu6, makes a new tensor of its sum, MobileNetV3 not.
/// A tree declares a StochasticDepth that only then is called.
template <bool EverInPlace>
Tensor wire_inverted(Wiring& wiring, const Container& block, Tensor input) {
  const bool in_place = EverInPlace && !contains(wiring, block, "relu6");
  if (wiring.called()) return joined(wiring, walk(wiring, block.parts, input), input, in_place);
  if (const auto branch = wiring.child(block, "branch2")) return wire_shuffle(wiring, block, *branch, input);
  std::optional<Part> depth = wiring.child(block, "stochastic_depth");
  Tensor main = input;
  for (const Part& part : block.parts) {
    if (!depth || part.index != depth->index || part.container != depth->container) main = wiring.call(part, main);
  }
  if (!(wiring.shape(main) == wiring.shape(input))) return main;
  if (depth) main = wiring.call(*depth, main);
  return joined(wiring, {main, std::nullopt}, input, in_place);
}

/// Whether rows from `begin` on can be a block whose sum is possible: each reads its predecessor or, once, the
/// block's input, and what is added has one shape.
inline bool adds_up(const OpenRows& rows, std::size_t begin) {
  const core::Shape& input = rows.shapes[begin];
  const core::Shape& output = rows.shapes.back();
  const auto fits = [&](std::size_t part, const core::Shape& shape) {
    return readable(rows.graph, rows.containers, rows.parts[part], shape);
  };
  if (!fits(begin, input)) return false;
  for (std::size_t part = begin + 1; part < rows.parts.size(); ++part) {
    if (rows.op(part).starts_with("conv") && !fits(part, rows.shapes[part]) && fits(part, input)) {
      return rows.shapes[part] == output;
    }
  }
  return input == output;
}

/// The first convolution from which on the rows add up.
inline std::optional<std::size_t> begin_resnet(const OpenRows& rows) {
  constexpr std::size_t kLongest = 64;  // parts of one block
  const std::size_t count = rows.parts.size();
  for (std::size_t part = std::max(rows.after_block, count - std::min(count, kLongest)); part < count; ++part) {
    const bool behind_gate = part > rows.after_block && rows.parts[part - 1].container;  // the middle of a block
    if (!behind_gate && rows.op(part).starts_with("conv") && adds_up(rows, part)) return part;
  }
  return std::nullopt;
}

/// After another such block it begins at once; the first one is looked for.
inline std::optional<std::size_t> begin_inverted(const OpenRows& rows) {
  if (rows.any_block) return rows.after_block;
  return begin_resnet(rows);
}

inline constexpr std::array<std::string_view, 9> kResnet = {
    "BasicBlock",          "Bottleneck",           "ResNestBottleneck",
    "SEResNetBlock",       "SEBottleneck",         "SEResNetBottleneck",
    "SEResNeXtBottleneck", "SelectiveKernelBasic", "SelectiveKernelBottleneck"};
inline constexpr std::array<std::string_view, 11> kNamed = {
    "MbConvBlock",   "MbConvLNBlock",    "BottleneckBlock",      "DarkBlock",
    "EdgeBlock",     "SelfAttnBlock",    "PreActBottleneck",     "PreActBasic",
    "ResBottleneck", "MultiBranchBlock", "LinearBottleneckBlock"};
inline constexpr std::array<std::string_view, 1> kRegnet = {"ResBottleneckBlock"};
inline constexpr std::array<std::string_view, 1> kMnasnet = {"_InvertedResidual"};
inline constexpr std::array<std::string_view, 9> kMobile = {
    "InvertedResidual", "MBConv",    "FusedMBConv",     "DepthwiseSeparableConv",   "EdgeResidual",
    "CondConvResidual", "ConvBnAct", "MobileAttention", "UniversalInvertedResidual"};

}  // namespace residual_detail

inline constexpr std::array<BlockRule, 5> kResidualBlocks = {
    {{residual_detail::kResnet, residual_detail::wire_resnet, residual_detail::begin_resnet},
     {residual_detail::kNamed, residual_detail::wire_named, nullptr},
     {residual_detail::kRegnet, residual_detail::wire_regnet, residual_detail::begin_resnet},
     {residual_detail::kMnasnet, residual_detail::wire_inverted<false>, residual_detail::begin_inverted},
     {residual_detail::kMobile, residual_detail::wire_inverted<true>, residual_detail::begin_inverted}}};

// Convolutions whose branches are weighted by a softmax: ResNeSt's SplitAttn, SKNet's SelectiveKernel; Res2Net's
// hierarchy of splits. Source: timm 1.0.9, timm.layers.split_attn, timm.layers.selective_kernel, timm.models.res2net.

namespace split_attention_detail {

using blocks_detail::Sizes;

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
  const std::int64_t width = blocks_detail::fixed(shape, 1);
  const std::int64_t groups = *reads > 0 && width % *reads == 0 ? width / *reads : 1;
  const Tensor parted = groups > 1 ? wiring.operation("unflatten", {&all, 1},
                                                      {{"dim", std::int64_t{1}}, {"sizes", Sizes{groups, *reads}}})
                                   : all;
  const Tensor mean = one_pixel(wiring, groups > 1 ? summed(wiring, parted, 1) : all);
  Tensor weights = wiring.chain_named(block, kGate, mean);
  if (wiring.failed()) return input;
  if (groups == 1) return wiring.multiply(all, wiring.operation("sigmoid", {&weights, 1}));
  weights = blocks_detail::reshaped(wiring, weights, {groups, *reads, 1, 1});
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
  weights = blocks_detail::reshaped(wiring, weights, {count, -1, 1, 1});
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
      blocks_detail::parts_of(wiring, output, static_cast<std::int64_t>(all.size()) + 1, 1);
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

// ConvNeXt's block: input += stochastic_depth(layer_scale * block(input)), where the block permutes images to
// channels last and back; no summary shows layer_scale's product, and a tree not the axes. Source:
// torchvision.models.convnext.CNBlock.

namespace convnext_detail {

inline Tensor permuted(Wiring& wiring, Tensor input, bool channels_last) {
  std::vector<std::int64_t> dims = {0, 3, 1, 2};
  if (channels_last) dims = {0, 2, 3, 1};
  return wiring.operation("permute", {&input, 1}, {{"dims", std::move(dims)}});
}

/// The layers of the block, then the parameter that scales what they leave.
inline Tensor wire(Wiring& wiring, const Container& block, Tensor input) {
  std::vector<Part> parts;
  for (const Part& part : block.parts) {
    if (!part.container) parts.push_back(part);
    if (part.container) {
      const std::vector<Part>& inner = wiring.container(part).parts;
      parts.insert(parts.end(), inner.begin(), inner.end());
    }
  }
  Tensor output = input;
  int permutes = 0;
  for (const Part& part : parts) {
    const std::string_view op = wiring.op(part);
    if (op == model::kParameterOp) continue;  // layer_scale, where a table counts it
    if (op != "permute") {
      output = wiring.call(part, output);
      continue;
    }
    output = permuted(wiring, output, permutes == 0);
    if (++permutes != 2 || wiring.failed()) continue;
    const std::vector<std::int64_t> channels = {wiring.shape(output)[1].size, 1, 1};
    const Tensor scale = wiring.operation(model::kParameterOp, {}, {{"shape", channels}});
    output = wiring.multiply(scale, output);
  }
  if (permutes != 2) return output;
  return wiring.add(output, input, true);
}

/// The convolution nearest before.
inline std::optional<std::size_t> begin(const OpenRows& rows) {
  for (std::size_t part = rows.parts.size(); part > 0; --part) {
    if (rows.op(part - 1) == "conv2d") return part - 1;
  }
  return std::nullopt;
}

inline constexpr std::array<std::string_view, 1> kBlock = {"CNBlock"};

}  // namespace convnext_detail

inline constexpr std::array<BlockRule, 1> kConvnextBlocks = {
    {{convnext_detail::kBlock, convnext_detail::wire, convnext_detail::begin}}};

}  // namespace gpumem::connect
