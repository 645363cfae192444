// Input: a block that is a sum of branches, as a module tree declares it.
// Output: the parts of each branch in the order of their calls: a norm before each mixer (attention, an MLP, a
// convolution), or after it if the block declares it there.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace branch_order_detail {

enum class Role : std::uint8_t { norm, mixer, tail };

inline bool begins_with_any(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

inline Role role_of(std::string_view name) {
  if (name.ends_with("_post")) return Role::tail;
  if (begins_with_any(name, {"norm", "ln"})) return Role::norm;
  if (begins_with_any(name, {"ls", "layer_scale", "drop_path", "gamma", "res_scale"})) return Role::tail;
  return Role::mixer;
}

/// The block's parts: those that are called before any branch, and those of each branch.
struct Branches {
  std::vector<Part> first;
  std::vector<std::vector<Part>> branches;
  std::vector<Part> last;
};

/// Norms come before their mixers if the last of both is a mixer. A branch then begins at each norm, else at each
/// mixer.
inline Branches branches_of(const Wiring& wiring, const Container& block) {
  Role last = Role::mixer;
  for (const Part& part : block.parts) {
    const Role role = role_of(wiring.name(part));
    const bool again = wiring.name(part) == "norm3";  // after the last sum, where there is one
    if (role != Role::tail && !again) last = role;
  }
  const bool normed_first =
      last == Role::mixer && std::any_of(block.parts.begin(), block.parts.end(),
                                         [&](const Part& part) { return role_of(wiring.name(part)) == Role::norm; });
  const Role opener = normed_first ? Role::norm : Role::mixer;
  Branches result;
  for (const Part& part : block.parts) {
    const Role role = role_of(wiring.name(part));
    if (!normed_first && wiring.name(part) == "norm3") {
      result.last.push_back(part);
      continue;
    }
    if (role == opener) result.branches.emplace_back();
    (result.branches.empty() ? result.first : result.branches.back()).push_back(part);
  }
  return result;
}

}  // namespace branch_order_detail

}  // namespace gpumem::connect
