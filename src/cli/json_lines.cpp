#include "json_lines.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "report.hpp"

namespace gpumem::cli {

namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 20;

/// Reads one line; of a longer one only the first kLongestLine bytes are kept. False at the end of the stream.
bool read_line(std::istream& stream, std::string& line) {
  line.clear();
  std::streambuf& buffer = *stream.rdbuf();
  bool any = false;
  for (int byte = buffer.sbumpc(); byte != std::char_traits<char>::eof(); byte = buffer.sbumpc()) {
    any = true;
    if (byte == '\n') return true;
    if (line.size() < kLongestLine) line += static_cast<char>(byte);
  }
  return any;
}

void answer_each(std::istream& lines, const std::function<std::string(std::string_view line)>& answer) {
  std::string line;
  while (read_line(lines, line)) {
    const std::string text = answer(line) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
    // A caller that waits for this answer before it sends the next line must get it.
    if (lines.rdbuf()->in_avail() <= 0) std::fflush(stdout);
  }
}

}  // namespace

core::Status answer_lines(const std::string& file, const std::function<std::string(std::string_view line)>& answer) {
  if (file == "-") {
    std::ios::sync_with_stdio(false);
    answer_each(std::cin, answer);
    return core::Done{};
  }
  if (std::filesystem::is_directory(file)) {
    return Error{ErrorCode::unreadable_file, "is a directory; name a file", {file, 0, {}}};
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error{ErrorCode::unreadable_file, "cannot be opened", {file, 0, {}}};
  answer_each(stream, answer);
  return core::Done{};
}

std::optional<std::string> fault_of(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return "is empty";
  if (line.size() >= kLongestLine) return "is longer than 1 MiB";
  return std::nullopt;
}

nlohmann::ordered_json error_object(const Error& error) { return {{"schema", 1}, {"error", to_json(error)}}; }

std::string answer_line(nlohmann::ordered_json answer, std::int64_t number, const nlohmann::ordered_json* id) {
  answer["line"] = number;
  if (id != nullptr) answer["id"] = *id;
  return answer.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace gpumem::cli
