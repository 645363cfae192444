// Input: a forward pass.
// Output: where the lifetime of the program's variables for its tensors ends: after the last function that reads them.
// Units: indices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpumem/plan/forward_pass.hpp"

namespace gpumem::plan {

class NameLifetimes {
 public:
  /// Inputs, parameters, buffers and what the training loop holds never end by themselves.
  explicit NameLifetimes(const ForwardPass& pass) : NameLifetimes(pass, pass.held) {}
  /// The same where the training loop holds these tensors and no others.
  NameLifetimes(const ForwardPass& pass, std::span<const ops::TensorId> held);

  /// The tensors whose names end after this function.
  [[nodiscard]] std::span<const ops::TensorId> ending_at(std::size_t function) const {
    const std::uint32_t first = first_of_[function];
    return std::span<const ops::TensorId>(ending_).subspan(first, first_of_[function + 1] - first);
  }

 private:
  std::vector<std::uint32_t> first_of_;  ///< by function: where its part of `ending_` begins
  std::vector<ops::TensorId> ending_;
};

}  // namespace gpumem::plan
