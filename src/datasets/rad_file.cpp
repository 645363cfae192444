#include "gpumem_datasets/rad_file.hpp"

#include <array>

#include "gpumem/core/bytes.hpp"

namespace gpumem::datasets {

namespace {

/// An entry, in the order of their places.
enum class Entry : std::uint8_t { model, dataset, batch, policy, gpus, measured, horus, faketensor, gpumemnet };

constexpr std::array<std::string_view, 9> kNames = {"model",    "dataset", "batch",      "policy",   "gpus",
                                                    "measured", "horus",   "faketensor", "gpumemnet"};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// The name in front of a colon, if the line has one: one word, and after the colon a space or nothing. "s3://data"
/// and "C:\data" have none.
std::optional<std::string_view> name_in(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos) return std::nullopt;
  if (colon + 1 < line.size() && line[colon + 1] != ' ' && line[colon + 1] != '\t') return std::nullopt;
  const std::string_view name = line.substr(0, colon);
  if (name.find_first_of(" \t/\\.") != std::string_view::npos) return std::nullopt;
  return name;
}

/// Reads line by line: commands, then entries.
class Reader {
 public:
  core::Status read(std::string_view text) {
    while (true) {
      ++line_;
      const std::size_t end = text.find('\n');
      core::Status status = take(trimmed(text.substr(0, end)));
      if (!status) return status;
      if (end == std::string_view::npos) return finish();
      text.remove_prefix(end + 1);
    }
  }

  [[nodiscard]] RadFile&& file() && { return std::move(file_); }

 private:
  [[nodiscard]] core::Error malformed(std::string message, std::int64_t line) const {
    return {core::ErrorCode::malformed_input, std::move(message), {{}, line, {}}};
  }

  core::Status take(std::string_view line) {
    if (commands_done_) return take_entry(line);
    if (line.empty() || line.front() == '#') return core::Done{};
    file_.commands.emplace_back(line);
    commands_done_ = line.find("python") != std::string_view::npos;
    return core::Done{};
  }

  core::Status take_entry(std::string_view line) {
    const auto name = name_in(line);
    if (name) named_ = true;
    if (named_ && (line.empty() || line.front() == '#')) return core::Done{};
    std::size_t entry = next_;
    if (name) {
      entry = 0;
      while (entry < kNames.size() && kNames[entry] != *name) ++entry;
      if (entry == kNames.size()) return unknown(*name);
      line = trimmed(line.substr(name->size() + 1));
    }
    next_ = entry + 1;
    if (line.empty()) return core::Done{};  // an entry without a value, or the end of the file
    if (entry >= kNames.size()) return malformed("is one line too many: gpumemnet's estimate is the last entry", line_);
    if (lines_[entry] != 0) {
      return malformed(std::string(kNames[entry]) + " is given in line " + std::to_string(lines_[entry]) + " already",
                       line_);
    }
    lines_[entry] = line_;
    return set(static_cast<Entry>(entry), line);
  }

  [[nodiscard]] core::Error unknown(std::string_view name) const {
    std::string names;
    for (const std::string_view known : kNames) names += (names.empty() ? "" : ", ") + std::string(known);
    return malformed("there is no entry " + core::quoted(name) + "; the entries are " + names, line_);
  }

  core::Status set(Entry entry, std::string_view value) {
    switch (entry) {
      case Entry::model: file_.model = value; return core::Done{};
      case Entry::dataset: file_.dataset = value; return core::Done{};
      case Entry::batch: return set_count("the batch size", value, file_.batch_size);
      case Entry::policy:
        file_.policy = value;
        file_.policy_line = line_;
        return core::Done{};
      case Entry::gpus: return set_count("the number of GPUs", value, file_.gpus);
      case Entry::measured: return set_figure("the measured memory", value, file_.measured_mib);
      case Entry::horus: return set_figure("Horus' estimate", value, file_.horus_mib);
      case Entry::faketensor: return set_figure("FakeTensor's estimate", value, file_.faketensor_mib);
      case Entry::gpumemnet: return set_figure("GPUMemNet's estimate", value, file_.gpumemnet_mib);
    }
    return core::Done{};
  }

  core::Status set_count(const std::string& what, std::string_view value, std::int64_t& to) const {
    const auto count = core::parse_whole(value);
    if (!count || *count < 1) {
      return malformed("should be " + what + ", a whole number of 1 or more, and is " + core::quoted(value), line_);
    }
    to = *count;
    return core::Done{};
  }

  core::Status set_figure(const std::string& what, std::string_view value, std::optional<double>& to) const {
    const auto figure = core::parse_number(value);
    if (!figure || *figure < 0.0) {
      return malformed("should be " + what + " in MiB, and is " + core::quoted(value), line_);
    }
    to = figure;
    return core::Done{};
  }

  [[nodiscard]] core::Status finish() const {
    if (!commands_done_) return malformed("no line has the command to run: none names python", 0);
    if (file_.model.empty()) return malformed("names no model: the line after the command is its summary's file", 0);
    if (file_.batch_size == 0) return malformed("names no batch size: it is two lines below the model", 0);
    return core::Done{};
  }

  RadFile file_;
  std::array<std::int64_t, kNames.size()> lines_{};  ///< where an entry was told; 0: nowhere yet
  std::int64_t line_ = 0;
  std::size_t next_ = 0;  ///< the entry that a line without a name is
  bool commands_done_ = false;
  bool named_ = false;  ///< an entry had its name: empty lines mean nothing any more
};

}  // namespace

core::Result<RadFile> parse_rad(std::string_view text, std::string_view file) {
  // A .rad file is some lines; the bound keeps a wrong file from being copied into commands.
  constexpr std::size_t kLargest = std::size_t{1} << 20;
  if (text.size() > kLargest) {
    return core::Error{core::ErrorCode::malformed_input, "is larger than 1 MiB; no job description is", {}}.in_file(
        file);
  }
  Reader reader;
  core::Status status = reader.read(text);
  if (!status) return std::move(status.error()).in_file(file);
  return std::move(reader).file();
}

}  // namespace gpumem::datasets
