// Blocks whose branches all read one tensor and are concatenated or added: Inception's of all versions, and those whose
// class or tree names the branches.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/connect/block_rules.hpp"

namespace gpumem::connect {

// Blocks whose tree names their branches: "branch0", "branch1", each a layer or a Sequential that reads the block's
// input; "branch1_0", "branch1_1a", "branch1_1b" are one branch, the last two of which read the same tensor. The
// outputs are concatenated. Source: timm 1.0.9, timm.models.inception_v4, inception_resnet_v2.

namespace named_branches_detail {

/// A branch: what it calls in a row, and what reads the last of these side by side.
struct NamedBranch {
  std::vector<Part> chained;
  std::vector<Part> leaves;
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
inline std::vector<NamedBranch> named_branches(const Wiring& wiring, const Container& block) {
  std::vector<NamedBranch> branches;
  std::string_view last;
  for (const Part& part : block.parts) {
    const auto name = branch_name(wiring.name(part));
    if (!name) continue;
    if (branches.empty() || name->branch != last) branches.emplace_back();
    last = name->branch;
    (name->leaf ? branches.back().leaves : branches.back().chained).push_back(part);
  }
  if (branches.size() < 2) branches.clear();
  return branches;
}

inline Tensor concatenated(Wiring& wiring, const std::vector<NamedBranch>& branches, Tensor input) {
  std::vector<Tensor> outputs;
  for (const NamedBranch& branch : branches) {
    const Tensor last = wiring.chain(branch.chained, input);
    if (branch.leaves.empty()) outputs.push_back(last);
    for (const Part& leaf : branch.leaves) outputs.push_back(wiring.call(leaf, last));
  }
  return wiring.concatenate(outputs);
}

}  // namespace named_branches_detail

/// Nothing for a tree that names no branches, or a table of calls.
inline std::optional<Tensor> wire_named_branches(Wiring& wiring, const Container& block, Tensor input) {
  if (wiring.called()) return std::nullopt;
  const auto branches = named_branches_detail::named_branches(wiring, block);
  if (branches.empty()) return std::nullopt;
  return named_branches_detail::concatenated(wiring, branches, input);
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

inline Tensor pooled(Wiring& wiring, Pool pool, Tensor input) {
  std::vector<model::Attribute> window = {{"kernel_size", std::int64_t{3}}};
  if (pool == Pool::maximum) {
    window.push_back({"stride", std::int64_t{2}});
    return wiring.operation("max_pool2d", {&input, 1}, std::move(window));
  }
  window.push_back({"stride", std::int64_t{1}});
  window.push_back({"padding", std::int64_t{1}});
  return wiring.operation("avg_pool2d", {&input, 1}, std::move(window));
}

inline Tensor call_branch(Wiring& wiring, std::span<const Part> parts, const Branch& branch, Tensor input) {
  const Tensor last = wiring.chain(parts.first(branch.chained), input);
  if (branch.leaves == 0) return last;
  std::vector<Tensor> leaves;
  for (const Part& part : parts.subspan(branch.chained, branch.leaves)) leaves.push_back(wiring.call(part, last));
  return wiring.concatenate(leaves);
}

inline Tensor wire_layout(Wiring& wiring, const Container& block, const Layout& layout, Tensor input) {
  if (block.parts.size() != layout.parts()) {  // a tree of timm's Inception v4 names its branches
    const auto named = wire_named_branches(wiring, block, input);
    return named ? *named : wiring.chain(block.parts, input);
  }
  std::vector<Tensor> outputs;
  std::span<const Part> parts = block.parts;
  for (const Branch& branch : layout.branches) {
    const std::size_t count = branch.chained + branch.leaves;
    if (count == 0) continue;
    const bool last = count == parts.size();
    const Tensor from = last && layout.pool == Pool::average ? pooled(wiring, layout.pool, input) : input;
    outputs.push_back(call_branch(wiring, parts, branch, from));
    parts = parts.subspan(count);
  }
  if (layout.pool == Pool::maximum) outputs.push_back(pooled(wiring, layout.pool, input));
  return wiring.concatenate(outputs);
}

template <const Layout& Of>
Tensor wire(Wiring& wiring, const Container& block, Tensor input) {
  return wire_layout(wiring, block, Of, input);
}

/// As many parts back as the block has.
template <const Layout& Of>
std::optional<std::size_t> begin(const OpenRows& rows) {
  if (rows.parts.size() < Of.parts()) return std::nullopt;
  return rows.parts.size() - Of.parts();
}

/// Four containers in a tree; torchsummary shows none of them, but the layers.
inline Tensor wire_googlenet(Wiring& wiring, const Container& block, Tensor input) {
  if (block.parts.size() == kGooglenet.parts()) return wire_layout(wiring, block, kGooglenet, input);
  std::vector<Tensor> branches;
  for (const Part& branch : block.parts) branches.push_back(wiring.call(branch, input));
  return wiring.concatenate(branches);
}

/// Convolution, batch norm and relu(inplace=True), the last without a module.
inline Tensor wire_basic(Wiring& wiring, const Container& block, Tensor input) {
  const Tensor output = wiring.chain(block.parts, input);
  return wiring.operation("relu", {&output, 1}, {{"inplace", true}});
}

inline std::optional<std::size_t> begin_basic(const OpenRows& rows) {
  const std::size_t count = rows.parts.size();
  const bool fits = count >= 2 && rows.op(count - 2) == "conv2d" && rows.op(count - 1) == "batch_norm";
  return fits ? std::optional(count - 2) : std::nullopt;
}

/// Inception v3's second classifier: nothing reads it, and the model goes on from its input.
inline Tensor wire_aux(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 2> kConvolutions = {"conv0", "conv1"};
  const auto linear = wiring.child(block, "fc");
  if (!linear) {
    wiring.chain(block.parts, input);
    return input;
  }
  Tensor output =
      wiring.operation("avg_pool2d", {&input, 1}, {{"kernel_size", std::int64_t{5}}, {"stride", std::int64_t{3}}});
  output = wiring.chain_named(block, kConvolutions, output);
  wiring.call(*linear, output);
  return input;
}

inline constexpr std::array<std::string_view, 1> kClassA = {"InceptionA"};
inline constexpr std::array<std::string_view, 1> kClassB = {"InceptionB"};
inline constexpr std::array<std::string_view, 1> kClassC = {"InceptionC"};
inline constexpr std::array<std::string_view, 1> kClassD = {"InceptionD"};
inline constexpr std::array<std::string_view, 1> kClassE = {"InceptionE"};
inline constexpr std::array<std::string_view, 1> kInception = {"Inception"};
inline constexpr std::array<std::string_view, 1> kBasic = {"BasicConv2d"};
inline constexpr std::array<std::string_view, 1> kAux = {"InceptionAux"};

}  // namespace inception_detail

inline constexpr std::array<BlockRule, 8> kInceptionBlocks = {
    {{inception_detail::kClassA, inception_detail::wire<inception_detail::kA>,
      inception_detail::begin<inception_detail::kA>},
     {inception_detail::kClassB, inception_detail::wire<inception_detail::kB>,
      inception_detail::begin<inception_detail::kB>},
     {inception_detail::kClassC, inception_detail::wire<inception_detail::kC>,
      inception_detail::begin<inception_detail::kC>},
     {inception_detail::kClassD, inception_detail::wire<inception_detail::kD>,
      inception_detail::begin<inception_detail::kD>},
     {inception_detail::kClassE, inception_detail::wire<inception_detail::kE>,
      inception_detail::begin<inception_detail::kE>},
     {inception_detail::kInception, inception_detail::wire_googlenet,
      inception_detail::begin<inception_detail::kGooglenet>},
     {inception_detail::kBasic, inception_detail::wire_basic, inception_detail::begin_basic},
     {inception_detail::kAux, inception_detail::wire_aux, nullptr}}};

// Blocks of timm's Inception v4 and Inception-ResNet v2: branches side by side, whose outputs are concatenated; those
// of Inception-ResNet v2 project them and add the block's input. InceptionA to InceptionC are known by inception.hpp.
// Source: timm 1.0.9, timm.models.inception_v4, inception_resnet_v2.

namespace inception_v4_detail {

inline Tensor wire_branches(Wiring& wiring, const Container& block, Tensor input) {
  const auto output = wire_named_branches(wiring, block, input);
  return output ? *output : wiring.chain(block.parts, input);
}

/// Mixed3a and Mixed5a: a convolution and a pooling side by side.
inline Tensor wire_pair(Wiring& wiring, const Container& block, Tensor input) {
  if (wiring.called()) return wiring.chain(block.parts, input);
  std::vector<Tensor> outputs;
  for (const Part& part : block.parts) outputs.push_back(wiring.call(part, input));
  return wiring.concatenate(outputs);
}

/// Block35, Block17, Block8: act(conv2d(cat(branches)) * scale + x), the last one without an activation.
inline Tensor wire_residual(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  const auto branches = wire_named_branches(wiring, block, input);
  if (!branches) return wiring.chain(block.parts, input);
  const Tensor projected = calls("conv2d", *branches);
  const Tensor scaled = wiring.operation("mul", {&projected, 1});
  return calls("relu", calls("act", wiring.add(scaled, input, false)));
}

inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  return wiring.chain(model.parts, input);
}

inline constexpr std::array<std::string_view, 6> kBranching = {"Mixed4a",  "ReductionA", "ReductionB",
                                                               "Mixed_5b", "Mixed_6a",   "Mixed_7a"};
inline constexpr std::array<std::string_view, 2> kPairs = {"Mixed3a", "Mixed5a"};
inline constexpr std::array<std::string_view, 3> kResidual = {"Block35", "Block17", "Block8"};
inline constexpr std::array<std::string_view, 2> kModels = {"InceptionV4", "InceptionResnetV2"};

}  // namespace inception_v4_detail

inline constexpr std::array<BlockRule, 4> kInceptionV4Blocks = {
    {{inception_v4_detail::kBranching, inception_v4_detail::wire_branches, nullptr},
     {inception_v4_detail::kPairs, inception_v4_detail::wire_pair, nullptr},
     {inception_v4_detail::kResidual, inception_v4_detail::wire_residual, nullptr},
     {inception_v4_detail::kModels, inception_v4_detail::wire_model, nullptr}}};

}  // namespace gpumem::connect
