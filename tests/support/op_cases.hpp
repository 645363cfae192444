// An op's rules against PyTorch: a module as print() shows it, what goes in, what comes out.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "expect.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/summary/module_repr.hpp"

namespace gpumem::testing {

/// The op of this name; the test fails (and stops at null) if there is none.
inline const ops::Op& op(std::string_view name) {
  for (const ops::Op* candidate : ops::catalogue()) {
    if (candidate->traits.name == name) return *candidate;
  }
  ADD_FAILURE() << "there is no op " << name;
  return *ops::catalogue().front();
}

/// Attributes as print(module) gives them: "3, 64, kernel_size=(7, 7)".
inline std::vector<model::Attribute> attributes(const ops::Op& of, std::string_view arguments) {
  std::vector<model::Attribute> all;
  summary::parse_arguments(arguments, of.traits.positional, all);
  return all;
}

inline core::Result<core::Shape> output(std::string_view name, std::string_view arguments,
                                        const std::vector<core::Shape>& inputs) {
  const ops::Op& rule = op(name);
  const auto all = attributes(rule, arguments);
  return rule.output_shape(ops::OpInput{model::Attributes(all), inputs});
}

/// The output shape as text, or the error's message.
inline std::string output_text(std::string_view name, std::string_view arguments,
                               const std::vector<core::Shape>& inputs) {
  const auto result = output(name, arguments, inputs);
  return result ? core::to_string(*result) : result.error().message;
}

/// The parameter count; -1 where the attributes say too little, -2 where it overflows.
inline std::int64_t parameters(std::string_view name, std::string_view arguments) {
  const ops::Op& rule = op(name);
  const auto all = attributes(rule, arguments);
  const auto count = rule.traits.parameters(model::Attributes(all));
  return count ? count->value().value_or(-2) : -1;
}

}  // namespace gpumem::testing
