// Input: an option of a job, or a value of one; a message that names options. Output: what people read of it: help,
// defaults, remarks of a report, a message with the options as a front end writes them.
#pragma once

#include <string>
#include <string_view>

#include "gpumem/job/job_options.hpp"

namespace gpumem::job {

/// Its heading: "Saving memory".
[[nodiscard]] std::string_view to_string(OptionGroup group);

/// "adam", "8", "true", "3x224x224".
[[nodiscard]] std::string to_text(const OptionValue& value);
/// Empty where there is none.
[[nodiscard]] std::string default_text(const JobOption& option);

/// What a value must be: "must be of the form 3x224x224", or of a choice "choose one of sgd, adam".
[[nodiscard]] std::string expectation(const JobOption& option);
/// The help with the choices: "element types: fp32, amp-fp16".
[[nodiscard]] std::string help_text(const JobOption& option);
/// What a report says about the option's value: "8 passes a step"; empty for the default.
[[nodiscard]] std::string remark_on(const JobOption& option, const JobRequest& request);

/// How a front end writes an option: "--" "tensor-parallel" " " "2".
struct Spelling {
  std::string_view before;
  std::string_view between;
};
inline constexpr Spelling kCommandLine = {"--", " "};

/// Messages, warnings and help of the library name an option between backticks, with a value or without: "say
/// `tensor_parallel=2`". This writes it as the front end does: "say --tensor-parallel 2". What names no option stays.
[[nodiscard]] std::string spelled(std::string_view message, const Spelling& spelling);

}  // namespace gpumem::job
