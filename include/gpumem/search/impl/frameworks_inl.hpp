#pragma once

#include "gpumem/search/frameworks.hpp"

#include <array>
#include <string>
#include <utility>

#include "gpumem/search/accelerate.hpp"
#include "gpumem/search/deepspeed.hpp"
#include "gpumem/search/megatron.hpp"
#include "gpumem/search/torchtitan.hpp"

namespace gpumem::search {

GPUMEM_INLINE std::span<const Framework> frameworks() {
  static const std::array kAll = {torchtitan(), megatron(), deepspeed(), accelerate()};
  return kAll;
}

GPUMEM_INLINE core::Result<std::vector<const Framework*>> frameworks_of(std::string_view name) {
  std::vector<const Framework*> found;
  std::string names;
  for (const Framework& framework : frameworks()) {
    if (name == "any" || name == framework.name) found.push_back(&framework);
    names += std::string(framework.name) + ", ";
  }
  if (!found.empty()) return found;
  return core::Error{core::ErrorCode::invalid_argument,
                     "there is no framework " + core::quoted(name) + "; choose one of " + names + "any",
                     {}};
}

GPUMEM_INLINE core::Result<Question> question_about(std::string_view framework, std::string_view alloc_conf) {
  auto frameworks = frameworks_of(framework);
  if (!frameworks) return frameworks.error();
  const auto allocator = device::parse_allocator_options(alloc_conf);
  if (!allocator) return allocator.error();
  Question question;
  question.frameworks = *std::move(frameworks);
  question.allocator = *allocator;
  return question;
}

}  // namespace gpumem::search
