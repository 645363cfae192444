// The modules of convolutional nets of torchvision and timm that compute several tensors of one: Inception's branches
// of all versions, branches of several resolutions, blocks that join what each of their parts left.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

// Blocks whose tree names their branches: "branch0", "branch1", each a layer or a Sequential that reads the block's
// input; "branch1_0", "branch1_1a", "branch1_1b" are one branch, the last two of which read the same tensor. The
// outputs are concatenated. Source: timm 1.0.9, timm.models.inception_v4, inception_resnet_v2.

namespace named_branches_detail {

/// A branch: what it calls in a row, and what reads the last of these side by side.
struct NamedBranch {
  std::vector<Module> chained;
  std::vector<Module> leaves;
};

/// "branch2_3a": {"2", true}; nothing for another name.
struct BranchName {
  std::string_view branch;
  bool leaf = false;
};
inline std::optional<BranchName> branch_name(std::string_view name) {
  constexpr std::string_view kPrefix = "branch";
  if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const std::string_view branch = name.substr(0, name.find('_'));
  const bool digits = branch.find_first_not_of("0123456789") == std::string_view::npos;
  if (branch.empty() || !digits) return std::nullopt;
  return BranchName{branch, name.size() > branch.size() && name.back() >= 'a' && name.back() <= 'z'};
}

/// The branches in their order; none unless there are two or more.
inline std::vector<NamedBranch> named_branches(const Module& block) {
  std::vector<NamedBranch> branches;
  std::string_view last;
  for (const Module& part : block.parts()) {
    const auto name = branch_name(part.name());
    if (!name) continue;
    if (branches.empty() || name->branch != last) branches.emplace_back();
    last = name->branch;
    (name->leaf ? branches.back().leaves : branches.back().chained).push_back(part);
  }
  if (branches.size() < 2) branches.clear();
  return branches;
}

inline Tensor concatenated(Forward& f, const std::vector<NamedBranch>& branches, Tensor input) {
  std::vector<Tensor> outputs;
  for (const NamedBranch& branch : branches) {
    const Tensor last = call_all(branch.chained, input);
    if (branch.leaves.empty()) outputs.push_back(last);
    for (const Module& leaf : branch.leaves) outputs.push_back(leaf.call(last));
  }
  return f.concatenate(outputs, 1);
}

}  // namespace named_branches_detail

/// Nothing for a tree that names no branches, or a table of calls.
inline std::optional<Tensor> call_named_branches(Forward& f, const Module& block, Tensor input) {
  if (block.rows_are_calls()) return std::nullopt;
  const auto branches = named_branches_detail::named_branches(block);
  if (branches.empty()) return std::nullopt;
  return named_branches_detail::concatenated(f, branches, input);
}

// Inception v3's and GoogLeNet's blocks: branches that all read the block's input, concatenated; the poolings of v3's
// branches and the activation of BasicConv2d are calls in forward() that no row shows. Source:
// torchvision.models.inception, torchvision.models.googlenet.

namespace inception_detail {

/// One branch: how many of the parts it calls in a row, and whether the last `leaves` of them read the same tensor.
struct Branch {
  std::size_t chained = 0;
  std::size_t leaves = 0;
};

enum class Pool : std::uint8_t { none, average, maximum };

/// A block: its branches in the order of its parts, and the pooling that begins the last one.
struct Layout {
  std::array<Branch, 4> branches{};
  Pool pool = Pool::none;

  [[nodiscard]] constexpr std::size_t parts() const {
    std::size_t count = 0;
    for (const Branch& branch : branches) count += branch.chained + branch.leaves;
    return count;
  }
};

inline constexpr Layout kA = {{{{1, 0}, {2, 0}, {3, 0}, {1, 0}}}, Pool::average};
inline constexpr Layout kB = {{{{1, 0}, {3, 0}}}, Pool::maximum};
inline constexpr Layout kC = {{{{1, 0}, {3, 0}, {5, 0}, {1, 0}}}, Pool::average};
inline constexpr Layout kD = {{{{2, 0}, {4, 0}}}, Pool::maximum};
inline constexpr Layout kE = {{{{1, 0}, {1, 2}, {2, 2}, {1, 0}}}, Pool::average};
inline constexpr Layout kGooglenet = {{{{1, 0}, {2, 0}, {2, 0}, {2, 0}}}, Pool::none};

inline Tensor pooled(Forward& f, Pool pool, Tensor input) {
  const std::int64_t kernel = 3;
  if (pool == Pool::maximum) {
    return f.call("max_pool2d", {input}, {{"kernel_size", kernel}, {"stride", std::int64_t{2}}});
  }
  return f.call("avg_pool2d", {input},
                {{"kernel_size", kernel}, {"stride", std::int64_t{1}}, {"padding", std::int64_t{1}}});
}

inline Tensor call_branch(Forward& f, std::span<const Module> parts, const Branch& branch, Tensor input) {
  Tensor last = input;
  for (const Module& part : parts.first(branch.chained)) last = part.call(last);
  if (branch.leaves == 0) return last;
  std::vector<Tensor> leaves;
  for (const Module& part : parts.subspan(branch.chained, branch.leaves)) leaves.push_back(part.call(last));
  return f.concatenate(leaves, 1);
}

inline Tensor call_layout(Forward& f, const Module& block, const Layout& layout, Tensor input) {
  const std::vector<Module> all = block.parts();
  if (all.size() != layout.parts()) {  // a tree of timm's Inception v4 names its branches
    const auto named = call_named_branches(f, block, input);
    return named ? *named : block.in_order(input);
  }
  std::vector<Tensor> outputs;
  std::span<const Module> parts = all;
  for (const Branch& branch : layout.branches) {
    const std::size_t count = branch.chained + branch.leaves;
    if (count == 0) continue;
    const bool last = count == parts.size();
    const Tensor from = last && layout.pool == Pool::average ? pooled(f, layout.pool, input) : input;
    outputs.push_back(call_branch(f, parts, branch, from));
    parts = parts.subspan(count);
  }
  if (layout.pool == Pool::maximum) outputs.push_back(pooled(f, layout.pool, input));
  return f.concatenate(outputs, 1);
}

template <const Layout& Of>
Tensor call(Forward& f, const Module& block, Tensor input) {
  return call_layout(f, block, Of, input);
}

/// Four containers in a tree; torchsummary shows none of them, but the layers.
inline Tensor call_googlenet(Forward& f, const Module& block, Tensor input) {
  if (block.parts().size() == kGooglenet.parts()) return call_layout(f, block, kGooglenet, input);
  std::vector<Tensor> branches;
  for (const Module& branch : block.parts()) branches.push_back(branch.call(input));
  return f.concatenate(branches, 1);
}

/// Convolution, batch norm and relu(inplace=True), the last without a module.
inline Tensor call_basic(Forward& f, const Module& block, Tensor input) {
  const Tensor output = block.in_order(input);
  return f.call("relu", {output}, {{"inplace", true}});
}

/// Inception v3's second classifier: nothing reads it, and the model goes on from its input.
inline Tensor call_aux(Forward& f, const Module& block, Tensor input) {
  const auto linear = block.find("fc");
  if (!linear) {
    (void)block.in_order(input);
    return input;
  }
  Tensor output = f.call("avg_pool2d", {input}, {{"kernel_size", std::int64_t{5}}, {"stride", std::int64_t{3}}});
  output = block({"conv0", "conv1"}, output);
  (void)linear->call(output);
  return input;
}

inline constexpr std::array<std::string_view, 1> kBasic = {"BasicConv2d"};
inline constexpr std::array<std::string_view, 1> kClassA = {"InceptionA"};
inline constexpr std::array<std::string_view, 1> kClassB = {"InceptionB"};
inline constexpr std::array<std::string_view, 1> kClassC = {"InceptionC"};
inline constexpr std::array<std::string_view, 1> kClassD = {"InceptionD"};
inline constexpr std::array<std::string_view, 1> kClassE = {"InceptionE"};
inline constexpr std::array<std::string_view, 1> kInception = {"Inception"};
inline constexpr std::array<std::string_view, 1> kAux = {"InceptionAux"};

}  // namespace inception_detail

inline constexpr std::array<ModuleForward, 8> kInceptionBlocks = {
    {{inception_detail::kClassA, inception_detail::call<inception_detail::kA>},
     {inception_detail::kClassB, inception_detail::call<inception_detail::kB>},
     {inception_detail::kClassC, inception_detail::call<inception_detail::kC>},
     {inception_detail::kClassD, inception_detail::call<inception_detail::kD>},
     {inception_detail::kClassE, inception_detail::call<inception_detail::kE>},
     {inception_detail::kInception, inception_detail::call_googlenet},
     {inception_detail::kBasic, inception_detail::call_basic},
     {inception_detail::kAux, inception_detail::call_aux}}};

// Blocks of timm's Inception v4 and Inception-ResNet v2: branches side by side, whose outputs are concatenated; those
// of Inception-ResNet v2 project them and add the block's input. InceptionA to InceptionC are above.
// Source: timm 1.0.9, timm.models.inception_v4, inception_resnet_v2.

namespace inception_v4_detail {

inline Tensor call_branches(Forward& f, const Module& block, Tensor input) {
  const auto output = call_named_branches(f, block, input);
  return output ? *output : block.in_order(input);
}

/// Mixed3a and Mixed5a: a convolution and a pooling side by side.
inline Tensor call_pair(Forward& f, const Module& block, Tensor input) {
  std::vector<Tensor> outputs;
  for (const Module& part : block.parts()) outputs.push_back(part.call(input));
  return f.concatenate(outputs, 1);
}

/// Block35, Block17, Block8: act(conv2d(cat(branches)) * scale + x), the last one without an activation.
inline Tensor call_residual(Forward& f, const Module& block, Tensor input) {
  const auto branches = call_named_branches(f, block, input);
  if (!branches) return block.in_order(input);
  const Tensor projected = block("conv2d", *branches);
  return block("relu", block("act", f.add(f.scale(projected), input)));
}

inline Tensor call_model(Forward&, const Module& model, Tensor input) { return model.in_order(input); }

}  // namespace inception_v4_detail

inline constexpr std::array<ModuleForward, 4> kInceptionV4Blocks = {
    {{names<"Mixed4a", "ReductionA", "ReductionB", "Mixed_5b", "Mixed_6a", "Mixed_7a">,
      inception_v4_detail::call_branches},
     {names<"Mixed3a", "Mixed5a">, inception_v4_detail::call_pair},
     {names<"Block35", "Block17", "Block8">, inception_v4_detail::call_residual},
     {names<"InceptionV4", "InceptionResnetV2">, inception_v4_detail::call_model}}};

// Xception's separable modules. Source: timm 1.0.9, timm.models.xception_aligned.

namespace xception_detail {

/// XceptionModule, PreXceptionModule: a stack, and a shortcut around it where the sizes allow it.
inline Tensor call_xception(Forward& f, const Module& block, Tensor input) {
  if (!block.has("stack")) return block.in_order(input);
  const Tensor normal = block("norm", input);
  const Tensor output = block("drop_path", block("stack", normal));
  const Tensor shortcut = block("shortcut", normal);
  return with_shortcut(f, output, shortcut);
}

}  // namespace xception_detail

inline constexpr std::array<ModuleForward, 1> kXceptionBlocks = {
    {{names<"XceptionModule", "PreXceptionModule">, xception_detail::call_xception}}};

// HRNet: branches of several resolutions side by side, which exchange what they made at the end of each module. What
// flows between modules is a list of tensors, which one walk over the whole model keeps. Source: timm 1.0.9,
// timm.models.hrnet.HighResolutionNet.

namespace high_resolution_detail {

using Branches = std::vector<Tensor>;

/// Every output is a sum over all branches, each put through its own layers.
inline Branches fused(Forward& f, const Module& module, const Branches& inputs) {
  const auto layers = module.find("fuse_layers");
  Branches outputs;
  if (!layers) return inputs;
  for (const Module& row : layers->parts()) {
    if (!row.is_container()) continue;
    std::optional<Tensor> sum;
    const std::vector<Module> parts = row.parts();
    for (std::size_t from = 0; from < parts.size() && from < inputs.size(); ++from) {
      const Tensor each = parts[from].call(inputs[from]);
      sum = sum ? f.add(*sum, each) : each;
    }
    if (sum) outputs.push_back(module("fuse_act", *sum));
  }
  return outputs.empty() ? inputs : outputs;
}

inline Branches call_module(Forward& f, const Module& module, Branches inputs) {
  const auto branches = module.find("branches");
  if (!branches) return inputs;
  const std::vector<Module> parts = branches->parts();
  for (std::size_t index = 0; index < parts.size() && index < inputs.size(); ++index) {
    inputs[index] = parts[index].call(inputs[index]);
  }
  return parts.size() == 1 ? inputs : fused(f, module, inputs);
}

/// A transition makes the branches of the next stage: of the same branch, or of the last one.
inline Branches call_transition(const Module& transition, const Branches& inputs) {
  Branches outputs;
  for (const Module& part : transition.parts()) {
    const Tensor from = outputs.size() < inputs.size() ? inputs[outputs.size()] : inputs.back();
    outputs.push_back(part.call(from));
  }
  return outputs.empty() ? inputs : outputs;
}

/// The classifier's modules: each resolution is widened, and added to the next finer one made smaller.
inline Tensor call_head(Forward& f, const Module& model, const Branches& branches) {
  const auto widen = model.find("incre_modules");
  const auto shrink = model.find("downsamp_modules");
  if (!widen || !shrink) return branches.front();
  const std::vector<Module> wide = widen->parts();
  const std::vector<Module> small = shrink->parts();
  if (wide.empty()) return branches.front();
  Tensor output = wide.front().call(branches.front());
  for (std::size_t at = 0; at < small.size() && at + 1 < wide.size() && at + 1 < branches.size(); ++at) {
    const Tensor next = wide[at + 1].call(branches[at + 1]);
    const Tensor shrunk = small[at].call(output);
    output = f.add(next, shrunk);
  }
  return output;
}

inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  Branches branches = {input};
  for (const Module& part : model.parts()) {
    const std::string_view name = part.name();
    if (name.starts_with("transition") && part.is_container()) {
      branches = call_transition(part, branches);
    } else if (name.starts_with("stage") && part.is_container()) {
      for (const Module& module : part.parts()) {
        if (module.is_container()) branches = call_module(f, module, branches);
      }
    } else if (name == "incre_modules") {
      branches = {call_head(f, model, branches)};
    } else if (name != "downsamp_modules") {
      branches[0] = part.call(branches[0]);
    }
  }
  return branches.front();
}

}  // namespace high_resolution_detail

inline constexpr std::array<ModuleForward, 1> kHighResolution = {
    {{names<"HighResolutionNet">, high_resolution_detail::call_model}}};

// Blocks that keep what each of their parts leaves, and join all of it at the end (one-shot aggregation): VoVNet,
// HGNet, timm's DenseNet, DLA; CSPNet, which calls its blocks on half of the channels; DPN. Source: timm 1.0.9,
// timm.models.vovnet, hgnet, densenet, dla, cspnet, dpn, selecsls.

namespace aggregation_detail {

/// Side by side, except many in a row: their joins grow with the square of their number.
inline Tensor joined(Forward& f, const std::vector<Tensor>& tensors) {
  constexpr std::size_t kMost = 1000;
  if (tensors.size() > kMost) {
    f.fail("holds a block that joins more than 1,000 layers");
    return tensors.front();
  }
  return f.concatenate(tensors, 1);
}

/// OsaBlock, HighPerfGpuBlock: layers one after the other, all of their outputs and the input joined.
inline Tensor call_one_shot(Forward& f, const Module& block, Tensor input) {
  const auto list = block.find(block.find("conv_mid") ? "conv_mid" : "layers");
  if (!list) return block.in_order(input);
  std::vector<Tensor> outputs = {input};
  Tensor output = block("conv_reduction", input);
  for (const Module& part : list->parts()) {
    output = part.call(output);
    outputs.push_back(output);
  }
  output = block("aggregation", block("conv_concat", joined(f, outputs)));
  output = block("drop_path", block("attn", output));
  // Where input and output have one size, blocks with a gate (ese_vovnet) and HGNet's are residual.
  return block.has("drop_path") || block.has("attn") ? with_shortcut(f, output, input) : output;
}

/// CrossStage, CrossStage3: conv_exp, half of its channels through the blocks, both halves joined.
inline Tensor call_cross_stage(Forward& f, const Module& block, Tensor input) {
  if (!block.has("conv_exp")) return block.in_order(input);
  const Tensor expanded = block("conv_exp", block("conv_down", input));
  const std::vector<Tensor> halves = parts_of(f, expanded, 2, 1);
  const Tensor deep = block("conv_transition_b", block("blocks", halves[1]));
  return block("conv_transition", f.concatenate({halves[0], deep}, 1));
}

/// DlaBasic, DlaBottleneck: bn1, relu, bn2, (relu, bn3,) += shortcut, relu, of which a tree shows one. DlaBottle2neck
/// has a hierarchy of splits in the middle.
inline Tensor call_dla_block(Forward& f, const Module& block, Tensor input, Tensor shortcut) {
  Tensor output = block({"conv1", "bn1", "relu"}, input);
  if (block.has("convs")) {
    output = block({"conv3", "bn3"}, in_hierarchy(f, block, output));
  } else {
    output = block({"conv2", "bn2"}, output);
    if (block.has("conv3")) output = block({"relu", "conv3", "bn3"}, output);
  }
  if (f.shape(output) == f.shape(shortcut)) output = add_into(f, output, shortcut);
  return block("relu", output);
}

inline Tensor call_dla_tree(Forward& f, const Module& tree, Tensor input, std::vector<Tensor> children);

inline Tensor call_below(Forward& f, const Module& part, Tensor input, Tensor shortcut,
                         const std::vector<Tensor>& children) {
  if (part.class_name() == "DlaTree") return call_dla_tree(f, part, input, children);
  return call_dla_block(f, part, input, shortcut);
}

/// Whether the input of a level joins at its root, which reads more channels than the trees leave: two of the last
/// tree, and one of each tree around it.
inline bool joins_input(Forward& f, const Module& level, Tensor input, std::span<const Tensor> children) {
  std::int64_t trees = 2;
  Module tree = level;
  for (auto below = tree.find("tree2"); below && !tree.has("root"); below = tree.find("tree2"), ++trees) tree = *below;
  const auto conv = tree.find("root.conv");
  const std::int64_t reads = conv ? conv->width("in_channels").value_or(0) : 0;
  std::int64_t sum = conv ? trees * conv->width("out_channels").value_or(0) : 0;
  for (const Tensor child : children) sum += f.channels(child);
  return reads > 0 && sum + f.channels(input) == reads;
}

inline Tensor call_dla_tree(Forward& f, const Module& tree, Tensor input, std::vector<Tensor> children) {
  const auto first = tree.find("tree1");
  const auto second = tree.find("tree2");
  if (!first || !second || !first->is_container() || !second->is_container()) return tree.in_order(input);
  const Tensor bottom = tree("downsample", input);
  const Tensor shortcut = tree("project", bottom);
  if (joins_input(f, tree, bottom, children)) children.push_back(bottom);
  const Tensor one = call_below(f, *first, input, shortcut, {});
  const auto root = tree.find("root");
  if (!root || !root->is_container()) {
    children.push_back(one);
    return call_below(f, *second, one, one, children);
  }
  std::vector<Tensor> all = {call_below(f, *second, one, one, {}), one};
  all.insert(all.end(), children.begin(), children.end());
  return (*root)({"conv", "bn", "relu"}, f.concatenate(all, 1));
}

inline Tensor call_tree(Forward& f, const Module& tree, Tensor input) { return call_dla_tree(f, tree, input, {}); }

/// How wide the residual path is: the first power of two that the block's output exceeds.
inline std::int64_t residual_width(std::int64_t made) {
  std::int64_t residual = 64;
  while (residual * 2 < made) residual *= 2;
  return residual;
}

/// DualPathBlock: a residual path and a dense path, which one convolution makes together or, in dpn48b and dpn68b, one
/// each. Between blocks both are one tensor here, joined where a layer reads them, as forward() joins them.
inline Tensor call_dual_path(Forward& f, const Module& block, Tensor input) {
  if (!block.has("c1x1_a")) return block.in_order(input);
  const Tensor shortcut = block({"c1x1_w_s1", "c1x1_w_s2"}, input);
  const Tensor output = block({"c1x1_a", "c3x3_b", "c1x1_c"}, input);
  const bool parted = block.has("c1x1_c1") && block.has("c1x1_c2");
  Tensor left = block("c1x1_c1", output);
  const std::int64_t old = f.channels(shortcut);
  const std::int64_t made = f.channels(output);
  const std::int64_t residual = parted ? f.channels(left) : residual_width(made);
  if (residual >= old || (!parted && residual >= made)) return f.concatenate({shortcut, output}, 1);
  if (!parted) left = f.slice(output, 1, 0, residual);
  const Tensor sum = f.add(f.slice(shortcut, 1, 0, residual), left);
  const Tensor right = parted ? block("c1x1_c2", output) : f.slice(output, 1, residual, made - residual);
  const Tensor dense = f.concatenate({f.slice(shortcut, 1, residual, old - residual), right}, 1);
  return f.concatenate({sum, dense}, 1);
}

}  // namespace aggregation_detail

inline constexpr std::array<ModuleForward, 4> kAggregationBlocks = {
    {{names<"OsaBlock", "HighPerfGpuBlock">, aggregation_detail::call_one_shot},
     {names<"CrossStage", "CrossStage3">, aggregation_detail::call_cross_stage},
     {names<"DlaTree">, aggregation_detail::call_tree},
     {names<"DualPathBlock">, aggregation_detail::call_dual_path}}};

}  // namespace gpumem::architectures
