// What Python says of a job's options is written from their rows (job/job_options.hpp): the keyword arguments of its
// functions, which type checkers read, and the help. GPUMEM_UPDATE_GOLDEN=1 rewrites the parts between the marks.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>

#include "golden.hpp"
#include "gpumem/job/job_options.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using job::JobOption;
using job::OptionType;

constexpr std::size_t kLineLength = 100;

std::string type_of(const JobOption& option) {
  switch (option.place.type) {
    case OptionType::flag: return "bool";
    case OptionType::whole_number: return "int";
    case OptionType::fraction: return "float";
    case OptionType::text:
    case OptionType::choice: return "str";
    case OptionType::name_or_path: return "_Path";
    case OptionType::switch_or_choice: return "bool | str";
    case OptionType::dimensions: return "str | Sequence[int]";
  }
  return {};
}

/// 500_000_000
std::string grouped(std::string digits) {
  constexpr std::size_t kFrom = 6;  // digits; shorter numbers stand as they are
  if (digits.size() < kFrom) return digits;
  for (std::size_t at = digits.size() - 3; at > 0; at = at > 3 ? at - 3 : 0) digits.insert(at, "_");
  return digits;
}

/// Empty: there is none, so it is None.
std::string default_of(const JobOption& option) {
  const std::string text = job::default_text(option);
  if (text.empty()) return {};
  if (text == "true") return "True";
  if (text == "false") return "False";
  if (option.place.type == OptionType::whole_number) return grouped(text);
  if (option.place.type == OptionType::fraction) return text.find('.') == std::string::npos ? text + ".0" : text;
  return '"' + text + '"';
}

struct Function {
  std::string_view file;
  std::string_view name;
  std::vector<std::string_view> without;  ///< what it has otherwise, or not at all
};

const std::vector<Function>& functions() {
  static const std::vector<Function> kAll = {
      {"_api.py", "estimate", {"batch_size"}},
      {"_api.py", "fit", {"batch_size"}},
      {"_advise.py", "advise", {"batch_size"}},
      {"_api.py", "estimate_module", {"batch_size", "input", "seq_length"}},
      {"_plan.py",
       "plan",
       {"batch_size",
        "estimator",
        "model",
        "optimizer",
        "precision",
        "accumulate",
        "data_parallel",
        "sharding",
        "tensor_parallel",
        "sequence_parallel",
        "pipeline_parallel",
        "virtual_stages",
        "schedule",
        "pipeline_layers",
        "first_stage_layers",
        "last_stage_layers",
        "context_parallel",
        "expert_parallel",
        "rank",
        "checkpointing"}},
  };
  return kAll;
}

/// In lines of at most 100 characters.
std::string arguments_of(const Function& function) {
  std::string lines;
  std::string line;
  for (const JobOption& option : job::job_options()) {
    const bool left = std::ranges::find(function.without, option.name) != function.without.end();
    if (left || option.name == "lenient") continue;  // read_summary() takes the one option that is about reading
    const std::string usual = default_of(option);
    const std::string argument = std::string(option.name) + ": " + type_of(option) +
                                 (usual.empty() ? std::string(" | None = None,") : " = " + usual + ",");
    if (!line.empty() && line.size() + 1 + argument.size() > kLineLength) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "    " : " ") + argument;
  }
  return lines + line + "\n";
}

/// Words in lines of at most 100 characters; all but the first are set in.
std::string wrapped(const std::string& text) {
  std::string lines = "   ";
  std::size_t width = lines.size();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (width + 1 + end - at > kLineLength) {
      lines += "\n       ";
      width = 7;
    }
    lines += " " + text.substr(at, end - at);
    width += 1 + end - at;
    at = end + 1;
  }
  return lines + "\n";
}

std::string help() {
  std::string lines;
  for (const JobOption& option : job::job_options()) {
    if (option.name == "lenient") continue;
    std::string text = std::string(option.name) + ": " + job::help_text(option);
    text.erase(std::remove(text.begin(), text.end(), '`'), text.end());  // Python's names are those of the rows
    lines += wrapped(text + (text.ends_with('.') ? "" : "."));
  }
  return lines;
}

/// The file with the part between "MARK: begin" and "MARK: end" replaced, which are lines of their own.
std::string with_part(const std::string& file, const std::string& mark, const std::string& part) {
  const std::size_t begin = file.find(mark + ": begin\n");
  const std::size_t first = begin == std::string::npos ? begin : begin + mark.size() + std::string(": begin\n").size();
  const std::size_t end = begin == std::string::npos ? begin : file.find(mark + ": end", first);
  if (end == std::string::npos) return {};
  return file.substr(0, first) + part + file.substr(file.rfind('\n', end) + 1);
}

void expect_part(std::string_view name, const std::string& mark, const std::string& part) {
  const fs::path file = fs::path(GPUMEM_GOLDEN_DIR).parent_path().parent_path() / "src/python/gpumem" / name;
  const std::string wanted = with_part(testing::text_of(file), mark, part);
  ASSERT_FALSE(wanted.empty()) << file << " has no part " << mark;
  testing::expect_golden(file, wanted);
}

TEST(PythonOptions, ArgumentsAreThoseOfTheRows) {
  for (const Function& function : functions()) {
    expect_part(function.file, "# options of " + std::string(function.name) + "()", arguments_of(function));
  }
}

TEST(PythonOptions, HelpIsThatOfTheRows) {
  const std::string notes =
      "    input may also be a sequence of sizes: (3, 224, 224). None: not given, so the default holds.\n"
      "    For a recording, options at their defaults keep what was recorded.\n"
      "    deadline_ms: how long it may take; 0: no limit.\n";
  expect_part("_arguments.py", "# help of the options",
              "OPTIONS_HELP = \"\"\"\n    The options:\n\n" + help() + notes + "\"\"\"\n");
}

}  // namespace
}  // namespace gpumem
