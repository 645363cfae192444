// Blocks whose tree names their branches: "branch0", "branch1", each a layer or a Sequential that reads the block's
// input; "branch1_0", "branch1_1a", "branch1_1b" are one branch, the last two of which read the same tensor. The
// outputs are concatenated. Source: timm 1.0.9, timm.models.inception_v4, inception_resnet_v2.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/connect/block_rule.hpp"

namespace gpumem::connect {

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

}  // namespace gpumem::connect
