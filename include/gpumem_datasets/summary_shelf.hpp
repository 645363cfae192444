// Input: paths of model summaries. Many rows may name the same one.
// Output: their graphs, each read once and shared.
// A model that is only named ("Qwen/Qwen3-8B") has the config of its name, OWNER--MODEL.json, in a folder whose name
// begins with `configs`: next to the table, next to its folder or one above, or in the folder of summaries; otherwise
// the sizes that gpumem ships, if it is a well-known one. Copies of a model by others, its quantised forms and what was
// fine-tuned from it have its sizes: unsloth/Qwen3-8B-bnb-4bit.
#pragma once

#include <filesystem>
#include <map>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

class SummaryShelf {
 public:
  explicit SummaryShelf(const RunsOptions& options) : options_(options) {}

  /// Errors: those of reading the summary; "-" is none, for standard input cannot be read for many rows.
  [[nodiscard]] core::Result<std::shared_ptr<const model::ModelGraph>> take(const std::string& path);

  /// Of the model of this name, for a table in this folder; a name that begins with '{' is its config. `head`: how its
  /// class ends in place of "ForCausalLM"; empty: as its config has it. `speech`: of a model that speaks, as
  /// summary::head_with_speech() has it. Errors: those of reading it; missing_information where no config has its name,
  /// or such a class.
  [[nodiscard]] core::Result<std::shared_ptr<const model::ModelGraph>> take_model(std::string_view name,
                                                                                  const std::filesystem::path& folder,
                                                                                  std::string_view head = {},
                                                                                  std::optional<bool> speech = {});

  /// The same in Megatron's own form, with further arguments (posttrain::megatron_form()). Nothing: that is not known.
  [[nodiscard]] std::shared_ptr<const model::ModelGraph> take_megatron(std::string_view name,
                                                                       const std::filesystem::path& folder,
                                                                       std::string_view fields);

  /// Of a summary that is no file. Errors: those of reading it.
  [[nodiscard]] core::Result<std::shared_ptr<const model::ModelGraph>> parse(const std::string& name,
                                                                             std::string_view text);

 private:
  /// The configs that the table at this folder can name, by the key of their model's name.
  void look_for_configs(const std::filesystem::path& folder);

  /// The config's text with a class that ends so.
  [[nodiscard]] core::Result<std::shared_ptr<const model::ModelGraph>> with_head(const std::string& name,
                                                                                 std::string_view config,
                                                                                 std::string_view head);

  using Shared = core::Result<std::shared_ptr<const model::ModelGraph>>;

  const RunsOptions& options_;
  std::unordered_map<std::string, Shared> read_;
  std::map<std::string, std::string, std::less<>> configs_;  ///< paths by whole name and by the name's key
  bool looked_ = false;
};

}  // namespace gpumem::datasets
