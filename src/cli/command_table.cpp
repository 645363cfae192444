#include "command_table.hpp"

#include <CLI/CLI.hpp>

#include "gpumem/job/job_options.hpp"

namespace gpumem::cli {

namespace {

/// The option of a job that has this name on a command line. Null: there is none.
const job::JobOption* job_option_of(const std::string& name) {
  if (!name.starts_with("--")) return nullptr;
  const job::JobOption* const option = job::find_flag(std::string_view(name).substr(2));
  return option != nullptr || !name.starts_with("--no-") ? option : job::find_flag(std::string_view(name).substr(5));
}

OptionRow option_row(const CLI::Option& option, const std::string& command, bool takes_job) {
  OptionRow row;
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  if (row.names.empty()) row.names.push_back(option.get_single_name());
  row.help = option.get_description();
  row.usual = option.get_default_str();
  row.required = option.get_required();
  const job::JobOption* const of_job = takes_job ? job_option_of(row.name()) : nullptr;
  row.of_job = of_job != nullptr;
  row.optional_value = row.of_job && of_job->place.type == job::OptionType::switch_or_choice;
  row.repeats = (row.of_job && of_job->repeats) || option.get_items_expected_max() > 1;
  const bool flag = option.get_expected_min() == 0 && !option.get_positional();
  if (!flag || row.optional_value) row.value = row.optional_value ? "CHOICE" : value_name(option);
  if (!row.value.empty()) row.values = values_of(command, row.name());
  return row;
}

void add_commands_of(const CommandRow& row, std::vector<const CommandRow*>& found) {
  for (const CommandRow& command : row.commands) {
    if (command.commands.empty()) found.push_back(&command);
    else add_commands_of(command, found);
  }
}

}  // namespace

std::string value_name(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  if (name == "INT" || name == "UINT") return "N";
  return name == "FLOAT" ? "X" : name;
}

CommandRow row_of(const CLI::App& parser, const std::string& name) {
  CommandRow row;
  row.name = name;
  row.help = parser.get_description();
  row.footer = parser.get_footer();
  const bool takes_job = parser.get_option_no_throw("--optimizer") != nullptr;
  for (const CLI::Option* option : parser.get_options()) {
    OptionRow one = option_row(*option, name, takes_job);
    (option->get_positional() ? row.arguments : row.options).push_back(std::move(one));
  }
  for (const CLI::App* command : parser.get_subcommands([](const CLI::App*) { return true; })) {
    row.commands.push_back(row_of(*command, name + (name.empty() ? "" : " ") + command->get_name()));
  }
  return row;
}

std::vector<const CommandRow*> all_commands(const CommandRow& program) {
  std::vector<const CommandRow*> found;
  add_commands_of(program, found);
  return found;
}

}  // namespace gpumem::cli
