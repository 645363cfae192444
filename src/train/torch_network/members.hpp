// The members of an ensemble. Figures are [members, width, examples]: the norms and the products of members of like
// width are then one call over contiguous memory.
#pragma once

#include "layers.hpp"

namespace gpumem::train::torch_network {

/// Members of a branch whose layer at some depth has the same widths.
struct Stack {
  std::vector<std::size_t> members;
  std::int64_t in = 0;
  std::int64_t out = 0;
  Linear linear;
  BatchNorm norm;  ///< not for output layers

  [[nodiscard]] std::vector<std::string> prefixes(const std::string& branch, const std::string& layer) const {
    std::vector<std::string> all;
    for (const std::size_t member : members) all.push_back(branch + "members." + std::to_string(member) + "." + layer);
    return all;
  }
};

/// Adds a member to the stack of its widths.
inline void stack(std::vector<Stack>& stacks, std::size_t member, std::int64_t in, std::int64_t out) {
  const auto same =
      std::find_if(stacks.begin(), stacks.end(), [&](const Stack& one) { return one.in == in && one.out == out; });
  if (same != stacks.end()) same->members.push_back(member);
  else stacks.push_back({{member}, in, out, {}, {}});
}

/// What a level gave: one tensor a stack.
struct Given {
  const std::vector<Stack>* stacks = nullptr;
  std::vector<Tensor> outputs;

  /// The figures that this stack's members read, [members, in, N].
  [[nodiscard]] Tensor of(const Stack& wanted) const {
    std::vector<Tensor> parts;
    std::vector<std::size_t> present;
    for (std::size_t index = 0; index < stacks->size(); ++index) {
      const Stack& stack = (*stacks)[index];
      if (stack.out != wanted.in) continue;
      parts.push_back(outputs[index]);
      present.insert(present.end(), stack.members.begin(), stack.members.end());
    }
    const Tensor all = parts.size() == 1 ? parts[0] : torch::cat(parts);
    if (present == wanted.members) return all;
    Sizes places;
    for (const std::size_t member : wanted.members) {
      places.push_back(std::find(present.begin(), present.end(), member) - present.begin());
    }
    return all.index_select(0, torch::tensor(places));
  }
};

class Members {
 public:
  Members(Layouts& layouts, const std::string& branch, const std::vector<Sizes>& widths, std::int64_t in,
          std::int64_t outputs) {
    std::size_t deepest = 0;
    for (const Sizes& hidden : widths) deepest = std::max(deepest, hidden.size());
    hidden_.resize(deepest);
    outputs_.resize(deepest + 1);
    for (std::size_t member = 0; member < widths.size(); ++member) {
      std::int64_t width = in;
      for (std::size_t depth = 0; depth < widths[member].size(); ++depth) {
        stack(hidden_[depth], member, width, widths[member][depth]);
        width = widths[member][depth];
      }
      stack(outputs_[widths[member].size()], member, width, outputs);
    }
    note(layouts, branch);
  }

  /// [in, N] to what each member says, [members, outputs, N].
  [[nodiscard]] Tensor operator()(const Pass& pass, const Tensor& input) const {
    std::vector<Tensor> each;
    Given given;
    for (std::size_t depth = 0; depth < outputs_.size(); ++depth) {
      for (const Stack& stack : outputs_[depth]) each.push_back(read(pass, stack, given, input));
      if (depth < hidden_.size()) given = level(pass, hidden_[depth], given, input);
    }
    return torch::cat(each);
  }

 private:
  void note(Layouts& layouts, const std::string& branch) {
    for (std::size_t depth = 0; depth < hidden_.size(); ++depth) {
      const std::string layer = "hidden." + std::to_string(depth) + ".";
      for (Stack& stack : hidden_[depth]) {
        stack.linear = Linear(layouts, stack.prefixes(branch, layer + "linear."), stack.in, stack.out);
        stack.norm = BatchNorm(layouts, stack.prefixes(branch, layer + "norm."), stack.out);
      }
    }
    for (auto& stacks : outputs_) {
      for (Stack& stack : stacks) {
        stack.linear = Linear(layouts, stack.prefixes(branch, "output."), stack.in, stack.out);
      }
    }
  }

  static Tensor read(const Pass& pass, const Stack& stack, const Given& given, const Tensor& input) {
    if (given.stacks == nullptr) return stack.linear.of_shared(pass, input);
    return stack.linear.of_each(pass, given.of(stack));
  }

  static Given level(const Pass& pass, const std::vector<Stack>& stacks, const Given& given, const Tensor& input) {
    Given next{&stacks, {}};
    for (const Stack& stack : stacks) {
      const Tensor read_in = read(pass, stack, given, input);
      const Sizes shape = read_in.sizes().vec();
      const Tensor normed = stack.norm(pass, read_in.reshape({1, shape[0] * shape[1], shape[2]}));
      next.outputs.push_back(pass.drop(torch::relu(normed)).view(shape));
    }
    return next;
  }

  std::vector<std::vector<Stack>> hidden_;   ///< by depth
  std::vector<std::vector<Stack>> outputs_;  ///< by the hidden layers before them
};

}  // namespace gpumem::train::torch_network
