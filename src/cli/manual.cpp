#include "manual.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>

#include "commands.hpp"
#include "gpumem/core/config.hpp"
#include "gpumem/core/file.hpp"

namespace gpumem::cli {

namespace {

/// Text as roff takes it: no sign of it is a command.
std::string roff(std::string_view text) {
  std::string result;
  bool at_begin = true;
  for (const char letter : text) {
    if (at_begin && (letter == '.' || letter == '\'')) result += "\\&";
    if (letter == '\\') result += "\\e";
    else if (letter == '-') result += "\\-";
    else if (letter == '\'') result += "\\(aq";
    else if (letter == '^') result += "\\(ha";
    else if (letter == '~') result += "\\(ti";
    else result += letter;
    at_begin = letter == '\n';
  }
  return result;
}

std::string dashed(std::string_view command) {
  std::string name = "gpumem" + std::string(command.empty() ? "" : "-") + std::string(command);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string section(std::string_view title) { return ".SH " + std::string(title) + "\n"; }

/// Paragraphs; lines that begin with blanks, and lines of JSON, stay as they are.
std::string paragraphs(std::string_view text) {
  std::string result;
  bool literal = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const bool as_it_is = line.starts_with("  ") || line.starts_with('"');
    if (as_it_is != literal) result += as_it_is ? std::string(result.empty() ? "" : ".PP\n") + ".nf\n" : ".fi\n.PP\n";
    literal = as_it_is;
    if (line.empty()) result += ".PP\n";
    else result += roff(line) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result + (literal ? ".fi\n" : "");
}

std::string arguments_text(const CommandRow& command) {
  std::string text;
  for (const OptionRow& argument : command.arguments) {
    const std::string name = "\\fI" + roff(argument.name()) + "\\fR" + (argument.repeats ? " ..." : "");
    text += argument.required ? " " + name : " [" + name + "]";
  }
  if (takes_command(command.name)) text += " \\-\\- \\fIprogram\\fR [\\fIarguments\\fR]";
  return text;
}

std::string synopsis(const CommandRow& command) {
  std::string text = section("SYNOPSIS");
  if (!command.commands.empty()) {
    return text + ".B gpumem " + roff(command.name) + (command.name.empty() ? "" : " ") +
           "\\fIcommand\\fR [\\fIoptions\\fR]\n";
  }
  text += ".B gpumem " + roff(command.name) + "\n";
  for (const OptionRow& option : command.options) {
    if (option.required) text += "\\fB" + roff(option.name()) + "\\fR \\fI" + roff(option.value) + "\\fR\n";
  }
  return text + "[\\fIoptions\\fR]" + arguments_text(command) + "\n";
}

/// One option: its names, its value, what it does, and its default.
std::string option_text(const OptionRow& option) {
  std::string head;
  for (const std::string& name : option.names) head += (head.empty() ? "" : ", ") + ("\\fB" + roff(name) + "\\fR");
  if (!option.value.empty()) {
    const std::string value = "\\fI" + roff(option.value) + "\\fR";
    head += option.optional_value ? "[=" + value + "]" : " " + value;
  }
  std::string text = ".TP\n" + head + "\n" + roff(option.help);
  if (option.required) text += " (required)";
  if (option.repeats) text += " (may be given several times)";
  if (!option.usual.empty()) text += ". Default: " + roff(option.usual);
  return text + "\n";
}

std::string options_of(const std::vector<OptionRow>& rows, bool of_job) {
  std::string text;
  for (const OptionRow& option : rows) {
    if (option.of_job == of_job) text += option_text(option);
  }
  return text;
}

std::string options_text(const CommandRow& command) {
  std::string text;
  if (!command.arguments.empty()) {
    text += section("ARGUMENTS");
    for (const OptionRow& argument : command.arguments) {
      text += ".TP\n\\fI" + roff(argument.name()) + "\\fR\n" + roff(argument.help) + "\n";
    }
  }
  const std::string own = options_of(command.options, false);
  const std::string of_job = options_of(command.options, true);
  if (!own.empty()) text += section("OPTIONS") + own;
  if (!of_job.empty()) text += section("OPTIONS OF A JOB") + of_job;
  return text;
}

std::string commands_text(const CommandRow& row) {
  if (row.commands.empty()) return {};
  std::string text = section("COMMANDS");
  for (const CommandRow& command : row.commands) {
    text += ".TP\n\\fB" + roff(dashed(command.name)) + "\\fR(1)\n" + roff(command.help) + "\n";
  }
  return text;
}

std::string examples_text(const ManualText& text) {
  if (text.examples.front().empty()) return {};
  std::string result = section("EXAMPLES");
  for (const std::string_view example : text.examples) {
    if (example.empty()) continue;
    if (example != text.examples.front()) result += ".PP\n";
    result += ".nf\n  " + roff(example) + "\n.fi\n";
  }
  return result;
}

bool is_of_queue(std::string_view command) { return command == "run" || command == "queue" || command == "cancel"; }

std::string files_text(std::string_view command) {
  if (!command.empty() && !is_of_queue(command)) return {};
  return section("FILES") +
         ".TP\n.I /var/lib/gpumem/queue\nthe queue of a machine that several people share: its journal, and runs.csv, "
         "what each "
         "job took. It is used where the folder exists.\n"
         ".TP\n.I $XDG_RUNTIME_DIR/gpumem/queue\nthe queue of one user, where there is no other\n";
}

std::string environment_text(std::string_view command) {
  const bool all = command.empty();
  const auto variable = [](const char* name, const char* text) {
    return ".TP\n.B " + std::string(name) + "\n" + text + "\n";
  };
  std::string text = section("ENVIRONMENT");
  if (all || is_of_queue(command))
    text += variable("GPUMEM_QUEUE", "the folder of the queue, where \\-\\-directory names none");
  if (all || is_of_queue(command) || command == "server" || command == "place") {
    text += variable("GPUMEM_NVML", "NVIDIA's management library to load, where it is not the one of the system");
  }
  if (all || command == "run") {
    text += variable("CUDA_MPS_PIPE_DIRECTORY", "where the pipes of NVIDIA's MPS are, if it runs");
  }
  text += variable("NO_COLOR", "no colours in a terminal, whatever it is set to. TERM=dumb does the same");
  text += variable("COLUMNS", "how wide the terminal is, where it is not as wide as it says");
  return text +
         variable("LC_ALL, LC_CTYPE, LANG", "bars are drawn in UTF\\-8 where the locale is of it, else in ASCII");
}

std::string exit_text(std::string_view command) {
  if (command == "run") {
    return section("EXIT STATUS") +
           "That of the command, or 128 plus the number of the signal that ended it. Before it has begun: 2 and 3 as\n"
           "\\fBgpumem\\fR(1) says, and 4 if no GPU could ever hold the job.\n";
  }
  const auto code = [](const char* number, const char* text) {
    return ".TP\n.B " + std::string(number) + "\n" + text + "\n";
  };
  return section("EXIT STATUS") + code("0", "done") + code("2", "wrong usage: a word, an option or its value") +
         code("3", "bad input: a file cannot be read, or is not what it should be") +
         code("4", "no answer: an estimate cannot be made, or nothing fits") +
         code("5", "the job has to wait (\\fBgpumem\\-place\\fR(1))");
}

std::string see_also_text(const CommandRow& row, const ManualText& text) {
  std::string result = section("SEE ALSO");
  std::vector<std::string> pages;
  if (!row.name.empty()) pages.emplace_back("gpumem");
  for (const std::string_view command : text.see_also) {
    if (!command.empty()) pages.push_back(dashed(command));
  }
  if (row.name.empty()) {
    for (const CommandRow& command : row.commands) pages.push_back(dashed(command.name));
  }
  for (const std::string& page : pages) {
    result += ".BR " + roff(page) + " (1)" + (&page == &pages.back() ? "" : ",") + "\n";
  }
  return result;
}

const CommandRow* find_command(const CommandRow& row, std::string_view name) {
  if (row.name == name) return &row;
  for (const CommandRow& command : row.commands) {
    if (const CommandRow* const found = find_command(command, name)) return found;
  }
  return nullptr;
}

ManualText text_of_command(std::string_view command) {
  for (const ManualText& text : manual_texts()) {
    if (text.command == command) return text;
  }
  return {.command = command, .description = {}};
}

core::Status write_pages(const CommandRow& program, const CommandRow& row, const std::filesystem::path& folder) {
  const std::string file = (folder / manual_file(row.name)).string();
  if (core::Status written = core::write_file(file, manual_page(program, row.name)); !written) return written;
  for (const CommandRow& command : row.commands) {
    if (core::Status written = write_pages(program, command, folder); !written) return written;
  }
  return core::Done{};
}

}  // namespace

std::string manual_file(std::string_view command) { return dashed(command) + ".1"; }

std::string manual_page(const CommandRow& program, std::string_view command) {
  const CommandRow* const row = find_command(program, command);
  if (row == nullptr) return {};
  const ManualText text = text_of_command(command);
  std::string title = dashed(command);
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char byte) { return std::toupper(byte); });
  std::string page = ".\\\" Made by: gpumem man " + std::string(command) + "\n.TH " + roff(title) +
                     " 1 \"\" \"gpumem " + roff(GPUMEM_VERSION_STRING) + "\" \"User Commands\"\n";
  page += section("NAME") + roff(dashed(command)) + " \\- " + roff(row->help) + "\n";
  page += synopsis(*row) + section("DESCRIPTION") + paragraphs(text.description);
  if (!row->footer.empty() && !row->name.empty()) page += ".PP\n" + paragraphs(row->footer);
  page += commands_text(*row) + options_text(*row) + examples_text(text) + exit_text(command) +
          environment_text(command) + files_text(command);
  return page + see_also_text(*row, text);
}

int run_man(const ManOptions& options) {
  const CommandRow program = command_table();
  if (!options.out.empty()) {
    std::error_code fault;
    std::filesystem::create_directories(options.out, fault);
    if (fault) {
      return report_error({ErrorCode::unreadable_file, "cannot be made: " + fault.message(), {options.out, 0, {}}});
    }
    const core::Status written = write_pages(program, program, options.out);
    return written ? 0 : report_error(written.error());
  }
  std::string command;
  for (const std::string& word : options.command) command += (command.empty() ? "" : " ") + word;
  const std::string page = manual_page(program, command);
  if (page.empty()) {
    return report_error(wrong_usage("there is no command " + core::quoted(command) + "; gpumem --help lists them"));
  }
  std::fwrite(page.data(), 1, page.size(), stdout);
  return 0;
}

}  // namespace gpumem::cli
