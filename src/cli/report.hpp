// Enters: an Evaluation or an Error. Leaves: what people read (a table) and what programs read (JSON, schema 1).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "evaluation.hpp"

namespace gpumem::cli {

/// {"schema": 1, "summary": ..., "job": ..., "gpu": ..., "estimates": [...]}
[[nodiscard]] nlohmann::ordered_json to_json(const Evaluation& evaluation);

/// {"code", "message", "file", "line", "element"}, without what is unknown.
[[nodiscard]] nlohmann::ordered_json to_json(const Error& error);

/// The table, with bars of the breakdown if it goes to a terminal.
[[nodiscard]] std::string to_table(const Evaluation& evaluation, bool terminal);

}  // namespace gpumem::cli
