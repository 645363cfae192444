#include "completion.hpp"

#include <algorithm>
#include <cstdio>

#include "commands.hpp"
#include "gpumem/core/file.hpp"
#include "terminal.hpp"

namespace gpumem::cli {

namespace {

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// The first sentence, or all up to the choices that follow: enough for a line of a menu.
std::string short_help(const OptionRow& option) {
  constexpr std::size_t kLongest = 72;
  std::string text = option.help.substr(0, option.help.find("; "));
  if (!option.values.words.empty()) text.resize(std::min(text.rfind(": "), text.size()));  // the choices follow
  if (columns_of(text) <= kLongest) return text;
  return text.substr(0, text.rfind(' ', kLongest)) + " ...";
}

/// The text with a backslash in front of each of these signs.
std::string escaped(const std::string& text, std::string_view signs) {
  std::string result;
  for (const char letter : text) {
    if (signs.find(letter) != std::string_view::npos) result += '\\';
    result += letter;
  }
  return result;
}

/// In single quotes of a shell.
std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return result + "'";
}

std::vector<std::string> names_of_commands(const CommandRow& row) {
  std::vector<std::string> names;
  for (const CommandRow& command : row.commands) names.push_back(command.name.substr(command.name.rfind(' ') + 1));
  return names;
}

// ---- bash

std::string bash_values(const OptionValues& values) {
  std::string text = "mapfile -t COMPREPLY < <(compgen";
  if (!values.words.empty()) text += " -W '" + joined_words(values.words) + "'";
  if (values.paths == Paths::files) text += " -f";
  if (values.paths == Paths::folders) text += " -d";
  return text + " -- \"$cur\")" + (values.paths == Paths::none ? "" : "; compopt -o filenames 2>/dev/null");
}

/// One case a set of values, with the options that take them.
std::string bash_option_cases(const CommandRow& program) {
  std::vector<std::pair<OptionValues, std::string>> cases;
  for (const CommandRow* command : all_commands(program)) {
    for (const OptionRow& option : command->options) {
      if (option.value.empty()) continue;
      OptionValues values = option.values;
      // Without its value, what follows may be the command's own file.
      if (option.optional_value && values.paths == Paths::none) values.paths = Paths::files;
      const auto known = std::find_if(cases.begin(), cases.end(), [&](const auto& one) { return one.first == values; });
      const auto place = known == cases.end() ? cases.insert(cases.end(), {values, ""}) : known;
      for (const std::string& name : option.names) {
        place->second += (place->second.empty() ? "" : "|") + in_quotes(command->name + " " + name);
      }
    }
  }
  std::string text;
  for (const auto& [values, patterns] : cases) {
    const bool listed = !values.words.empty() || values.paths != Paths::none;
    text += "    " + patterns + ")\n      " + (listed ? bash_values(values) + "\n      " : "") + "return ;;\n";
  }
  return text;
}

std::string bash_command_cases(const CommandRow& program) {
  std::string text =
      "    '') options='--help --version'; words='" + joined_words(names_of_commands(program)) + "' ;;\n";
  for (const CommandRow& command : program.commands) {
    if (command.commands.empty()) continue;
    text += "    " + in_quotes(command.name) + ") options='--help'; words='" +
            joined_words(names_of_commands(command)) + "' ;;\n";
  }
  for (const CommandRow* command : all_commands(program)) {
    text += "    " + in_quotes(command->name) + ") options='";
    for (const OptionRow& option : command->options)
      text += (&option == &command->options.front() ? "" : " ") + option.name();
    text += "'";
    if (!command->arguments.empty()) {
      const OptionValues& values = command->arguments.front().values;
      if (!values.words.empty()) text += "; words='" + joined_words(values.words) + "'";
      if (values.paths != Paths::none) text += values.paths == Paths::files ? "; paths=-f" : "; paths=-d";
    }
    text += " ;;\n";
  }
  return text;
}

// ---- zsh

std::string zsh_action(const OptionValues& values) {
  const std::string words = joined_words(values.words);
  const std::string paths = values.paths == Paths::files ? "_files" : values.paths == Paths::folders ? "_files -/" : "";
  if (words.empty()) return paths.empty() ? " " : paths;
  if (paths.empty()) return "(" + escaped(words, ":") + ")";
  return "{compadd -- " + escaped(words, ":") + "; " + paths + "}";
}

/// "'--batch=[the batch size]:N: '".
std::string zsh_option(const OptionRow& option, const std::string& name) {
  const bool is_long = name.starts_with("--");
  std::string spec = (option.repeats ? "*" : "") + name;
  if (!option.value.empty()) spec += option.optional_value ? "=-" : is_long ? "=" : "+";
  spec += "[" + escaped(short_help(option), "[]:\\") + "]";
  if (!option.value.empty()) {
    spec += (option.optional_value ? "::" : ":") + escaped(option.value, ":") + ":" + zsh_action(option.values);
  }
  return in_quotes(spec);
}

std::string zsh_command(const CommandRow& command) {
  std::string text = "    " + in_quotes(command.name.substr(command.name.rfind(' ') + 1)) + ")\n      _arguments -S";
  for (const OptionRow& option : command.options) {
    for (const std::string& name : option.names) text += " \\\n        " + zsh_option(option, name);
  }
  for (const OptionRow& argument : command.arguments) {
    const std::string place = argument.repeats ? "*" : std::to_string(&argument - command.arguments.data() + 1);
    text += " \\\n        " + in_quotes(place + ":" + argument.name() + ":" + zsh_action(argument.values));
  }
  if (takes_command(command.name)) text += " \\\n        '*::command:_gpumem_job'";
  return text + "\n      ;;\n";
}

/// A function that completes the commands of a row, and what follows each of them.
std::string zsh_function(const std::string& function, const CommandRow& row) {
  std::string functions;
  std::string cases;
  std::string list;
  for (const CommandRow& command : row.commands) {
    const std::string word = command.name.substr(command.name.rfind(' ') + 1);
    list += "    " + in_quotes(word + ":" + escaped(command.help, ":\\")) + "\n";
    if (command.commands.empty()) {
      cases += zsh_command(command);
      continue;
    }
    std::string own = function;
    own.append("_").append(word);
    functions += zsh_function(own, command);
    cases.append("    ").append(in_quotes(word)).append(") ").append(own).append(" ;;\n");
  }
  const std::string version = row.name.empty() ? " '(- *)--version[print the version]'" : "";
  return functions + function + "() {\n" +
         "  local context curcontext=\"$curcontext\" state line\n"
         "  local -a commands\n"
         "  typeset -A opt_args\n"
         "  commands=(\n" +
         list +
         "  )\n"
         "  _arguments -C '(- *)--help[print the help]'" +
         version +
         " '1: :->command' '*:: :->rest' && return\n"
         "  case $state in\n"
         "  command) _describe -t commands command commands && return ;;\n"
         "  rest)\n"
         "    curcontext=\"${curcontext%:*:*}:gpumem-$words[1]:\"\n"
         "    case $words[1] in\n" +
         cases +
         "    esac\n"
         "    ;;\n"
         "  esac\n"
         "}\n\n";
}

// ---- fish

std::string fish_quotes(const std::string& text) { return "'" + escaped(text, "'\\") + "'"; }

std::string fish_paths(const OptionValues& values) {
  return values.paths == Paths::none    ? ""
         : values.paths == Paths::files ? " -F"
                                        : " -a '(__fish_complete_directories)'";
}

std::string fish_words(const OptionValues& values) {
  return values.words.empty() ? "" : " -a " + fish_quotes(joined_words(values.words));
}

std::string fish_command(const CommandRow& command) {
  const std::string begin = "complete -c gpumem -n " + fish_quotes("__gpumem_at " + command.name);
  std::string text;
  for (const OptionRow& option : command.options) {
    text += begin;
    for (const std::string& name : option.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.value.empty() && !option.optional_value) text += " -r";
    text += fish_words(option.values) + fish_paths(option.values) + " -d " + fish_quotes(short_help(option)) + "\n";
  }
  if (command.arguments.empty()) return text;
  const OptionValues& values = command.arguments.front().values;
  if (!values.words.empty()) text += begin + fish_words(values) + "\n";
  if (values.paths != Paths::none) text += begin + fish_paths(values) + "\n";
  return text;
}

std::string fish_commands(const CommandRow& row) {
  std::string text;
  const std::string begin =
      "complete -c gpumem -n " + fish_quotes(row.name.empty() ? "__gpumem_at" : "__gpumem_at " + row.name);
  for (const CommandRow& command : row.commands) {
    text +=
        begin + " -a " + command.name.substr(command.name.rfind(' ') + 1) + " -d " + fish_quotes(command.help) + "\n";
  }
  for (const CommandRow& command : row.commands) {
    text += command.commands.empty() ? fish_command(command) : fish_commands(command);
  }
  return text;
}

}  // namespace

std::string bash_completion(const CommandRow& program) {
  std::string groups;
  for (const CommandRow& command : program.commands) {
    if (!command.commands.empty()) groups += (groups.empty() ? "" : "|") + command.name;
  }
  return "# bash completion of gpumem, made by: gpumem completion bash\n\n"
         "_gpumem() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} before='' command='' word at options='' words='' paths=''\n"
         "  COMPREPLY=()\n"
         "  for ((at = 1; at < COMP_CWORD; ++at)); do\n"
         "    word=${COMP_WORDS[at]}\n"
         "    if [[ $command == run && $word == -- ]]; then\n"
         "      mapfile -t COMPREPLY < <(compgen -c -f -- \"$cur\")\n"
         "      compopt -o filenames 2>/dev/null\n"
         "      return\n"
         "    fi\n"
         "    [[ $word == -* ]] && continue\n"
         "    case $command in\n"
         "    '') command=$word ;;\n"
         "    " +
         groups +
         ") command+=\" $word\" ;;\n"
         "    esac\n"
         "  done\n"
         "  ((COMP_CWORD > 1)) && before=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "  # \"--gpu=t4\" comes as three words.\n"
         "  if [[ $cur == = ]]; then cur=''\n"
         "  elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "  fi\n"
         "  case \"$command $before\" in\n" +
         bash_option_cases(program) +
         "  esac\n"
         "  case $command in\n" +
         bash_command_cases(program) +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
         "    return\n"
         "  fi\n"
         "  mapfile -t COMPREPLY < <(compgen ${words:+-W \"$words\"} $paths -- \"$cur\")\n"
         "  [[ -z $paths ]] || compopt -o filenames 2>/dev/null\n"
         "}\n\n"
         "complete -F _gpumem gpumem\n";
}

std::string zsh_completion(const CommandRow& program) {
  return "#compdef gpumem\n# zsh completion of gpumem, made by: gpumem completion zsh\n\n"
         "# The command behind \"--\" completes as it does alone.\n"
         "_gpumem_job() {\n"
         "  [[ $words[1] == -- ]] && { shift words; ((CURRENT--)); }\n"
         "  _normal\n"
         "}\n\n" +
         zsh_function("_gpumem", program) +
         "if [ \"$funcstack[1]\" = _gpumem ]; then _gpumem \"$@\"; else compdef _gpumem gpumem; fi\n";
}

std::string fish_completion(const CommandRow& program) {
  std::string groups;
  for (const CommandRow& command : program.commands) {
    if (!command.commands.empty()) groups += " " + command.name;
  }
  return "# fish completion of gpumem, made by: gpumem completion fish\n\n"
         "# Whether the words so far name this command: __gpumem_at model show\n"
         "function __gpumem_at\n"
         "    set -l found\n"
         "    for word in (commandline -opc)[2..-1]\n"
         "        test \"$word\" = --; and return 1\n"
         "        string match -q -- '-*' $word; and continue\n"
         "        test (count $found) -eq 1; and not contains -- $found[1]" +
         groups +
         "; and break\n"
         "        test (count $found) -eq 2; and break\n"
         "        set -a found $word\n"
         "    end\n"
         "    test \"$found\" = \"$argv\"\n"
         "end\n\n"
         "complete -c gpumem -f\n"
         "complete -c gpumem -n '__gpumem_at' -l version -d 'print the version'\n"
         "complete -c gpumem -n '__gpumem_at' -l help -d 'print the help'\n"
         "complete -c gpumem -n 'contains -- -- (commandline -opc)' -F -a '(__fish_complete_command)'\n" +
         fish_commands(program);
}

int run_completion(const CompletionOptions& options) {
  std::string (*script)(const CommandRow&) = nullptr;
  if (options.shell == "bash") script = &bash_completion;
  if (options.shell == "zsh") script = &zsh_completion;
  if (options.shell == "fish") script = &fish_completion;
  if (script == nullptr) {
    return report_error(
        wrong_usage("there is no completion for " + core::quoted(options.shell) + "; choose one of bash, zsh, fish"));
  }
  const std::string text = script(command_table());
  if (!options.out.empty()) {
    const core::Status written = core::write_file(options.out, text);
    return written ? 0 : report_error(written.error());
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace gpumem::cli
