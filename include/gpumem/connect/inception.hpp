// Inception v3's and GoogLeNet's blocks: branches that all read the block's input, concatenated; the poolings of v3's
// branches and the activation of BasicConv2d are calls in forward() that no row shows. Source:
// torchvision.models.inception, torchvision.models.googlenet.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/block_rule.hpp"
#include "gpumem/connect/named_branches.hpp"

namespace gpumem::connect {

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

}  // namespace gpumem::connect
