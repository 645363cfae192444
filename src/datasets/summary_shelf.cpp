#include "gpumem_datasets/summary_shelf.hpp"

namespace gpumem::datasets {

core::Result<std::shared_ptr<const model::ModelGraph>> SummaryShelf::take(const std::string& path) {
  if (path == "-") {
    return core::Error{core::ErrorCode::malformed_input, "a run must name a summary file, not standard input", {}};
  }
  if (!options_.read_summary) {
    return core::Error{core::ErrorCode::invalid_argument, "RunsOptions names no way to read a summary", {}};
  }
  if (const auto known = read_.find(path); known != read_.end()) return known->second;
  core::Result<model::ModelGraph> graph = options_.read_summary(path);
  Shared shared = graph ? Shared(std::make_shared<const model::ModelGraph>(*std::move(graph))) : Shared(graph.error());
  return read_.emplace(path, std::move(shared)).first->second;
}

core::Result<std::shared_ptr<const model::ModelGraph>> SummaryShelf::parse(const std::string& name,
                                                                           std::string_view text) {
  if (!options_.parse_summary) {
    return core::Error{core::ErrorCode::invalid_argument, "RunsOptions names no way to read the text of a summary", {}};
  }
  const std::string key = "text of " + name;
  if (const auto known = read_.find(key); known != read_.end()) return known->second;
  core::Result<model::ModelGraph> graph = options_.parse_summary(text, name);
  Shared shared = graph ? Shared(std::make_shared<const model::ModelGraph>(*std::move(graph))) : Shared(graph.error());
  return read_.emplace(key, std::move(shared)).first->second;
}

}  // namespace gpumem::datasets
