// Input: a file of JSON objects, one a line.
// Output: an answer to each on standard output, one a line and in order.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "gpumem/all.hpp"

namespace gpumem::cli {

/// Makes the answer to a line; `number` counts from 1.
using AnswerLine = std::function<std::string(std::string_view line, std::int64_t number)>;

/// Answers every line of the file ("-" is standard input) by what `answer` makes of it, on this many threads.
/// The answers to all lines that are there are written before more are waited for. Of a line beyond 1 MiB, `answer`
/// sees as much as fault_of() needs. Errors: unreadable_file.
[[nodiscard]] core::Status answer_lines(const std::string& file, const AnswerLine& answer, unsigned threads = 1);

/// Reads one line; of a longer one only the first MiB is kept. False at the end of the stream.
[[nodiscard]] bool read_line(std::istream& stream, std::string& line);

/// What keeps a line from being JSON at all; nothing if it may be.
[[nodiscard]] std::optional<std::string> fault_of(std::string_view line);

/// {"schema": 1, "error": {...}}
[[nodiscard]] nlohmann::ordered_json error_object(const Error& error);

/// The object on one line, with the line's number and, if it has one, the caller's "id". What a line's own text puts
/// into a message may be any bytes; output is always UTF-8.
[[nodiscard]] std::string answer_line(nlohmann::ordered_json answer, std::int64_t number,
                                      const nlohmann::ordered_json* id);

}  // namespace gpumem::cli
