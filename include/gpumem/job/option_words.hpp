// Input: the word that a user gives an option.
// Output: a value of the option's type, or nothing if the word is not one.
// Units: those of the option.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gpumem/job/job_options.hpp"

namespace gpumem::job {

/// Whether accessors of an option of this type take the value.
[[nodiscard]] bool is_of_kind(OptionType type, const OptionValue& value);

/// The word as a value of this type; nothing if it is none.
[[nodiscard]] std::optional<OptionValue> value_of_word(OptionType type, std::string_view word);

/// The shortest text that is read as the same number: "0.05", "0".
[[nodiscard]] std::string fraction_text(double number);

}  // namespace gpumem::job
