// Enters: an Evaluation or an Error. Leaves: what people read (a table) and what programs read (JSON, schema 1).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "evaluation.hpp"

namespace gpumem::cli {

/// {"schema": 1, "summary": ..., "job": ..., "gpu": ..., "estimates": [...]}
[[nodiscard]] nlohmann::ordered_json to_json(const Evaluation& evaluation);

/// The same without "estimates".
[[nodiscard]] nlohmann::ordered_json head_json(const Evaluation& evaluation);

/// One object of "estimates", without the estimator's name and time.
[[nodiscard]] nlohmann::ordered_json to_json(const MemoryEstimate& estimate);

/// {"code", "message", "file", "line", "element"}, without what is unknown.
[[nodiscard]] nlohmann::ordered_json to_json(const Error& error);

/// Two lines: what was read, and what the job is (for any batch size, if that is left out).
[[nodiscard]] std::string headline(const Evaluation& evaluation, bool with_batch = true);

/// "gpumem: warning: ..." on standard error, one line a warning.
void print_warnings(const ModelGraph& graph);

/// The table, with bars of the breakdown if it goes to a terminal.
[[nodiscard]] std::string to_table(const Evaluation& evaluation, bool terminal);

}  // namespace gpumem::cli
