#include "json_lines.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>
#include <vector>

#include "report.hpp"

namespace gpumem::cli {

namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 20;

}  // namespace

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

namespace {

/// Reads the lines that are there, at least one unless the stream ends, and not too many: their answers are held.
std::vector<std::string> read_portion(std::istream& stream) {
  constexpr std::size_t kMostLines = 1024;
  constexpr std::size_t kMostBytes = std::size_t{4} << 20;
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  do {
    if (!read_line(stream, lines.emplace_back())) {
      lines.pop_back();
      break;
    }
    bytes += lines.back().size();
  } while (lines.size() < kMostLines && bytes < kMostBytes && stream.rdbuf()->in_avail() > 0);
  return lines;
}

/// The answers to lines, counted from this number.
std::vector<std::string> answers_to(const std::vector<std::string>& lines, std::int64_t first, const AnswerLine& answer,
                                    unsigned threads) {
  std::vector<std::string> answers(lines.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t index = next.fetch_add(1); index < lines.size(); index = next.fetch_add(1)) {
      answers[index] = answer(lines[index], first + static_cast<std::int64_t>(index));
    }
  };
  {
    std::vector<std::jthread> others;
    const std::size_t workers = std::min<std::size_t>(threads, lines.size());
    for (std::size_t worker = 1; worker < workers; ++worker) others.emplace_back(work);
    work();
  }
  return answers;
}

void answer_each(std::istream& stream, const AnswerLine& answer, unsigned threads) {
  std::int64_t number = 1;
  for (auto lines = read_portion(stream); !lines.empty(); lines = read_portion(stream)) {
    std::string text;
    for (const std::string& answered : answers_to(lines, number, answer, threads)) text.append(answered).append("\n");
    std::fwrite(text.data(), 1, text.size(), stdout);
    number += static_cast<std::int64_t>(lines.size());
    // A caller that waits for these answers before it sends the next line must get them.
    if (stream.rdbuf()->in_avail() <= 0) std::fflush(stdout);
  }
}

}  // namespace

core::Status answer_lines(const std::string& file, const AnswerLine& answer, unsigned threads) {
  if (file == "-") {
    std::ios::sync_with_stdio(false);
    answer_each(std::cin, answer, threads);
    return core::Done{};
  }
  if (std::filesystem::is_directory(file)) {
    return Error{ErrorCode::unreadable_file, "is a directory; name a file", {file, 0, {}}};
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error{ErrorCode::unreadable_file, "cannot be opened", {file, 0, {}}};
  answer_each(stream, answer, threads);
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
