
#pragma once

#include <cstring>
#include <filesystem>

#include "gpumem/architectures/architectures.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/summary/config_json.hpp"
#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/graph_json.hpp"
#include "gpumem/summary/keras.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "gpumem/summary/module_tree.hpp"
#include "gpumem/summary/recording.hpp"
#include "gpumem/summary/text.hpp"
#include "gpumem/summary/torchinfo.hpp"
#include "gpumem/summary/torchsummary.hpp"

namespace gpumem::summary {

GPUMEM_INLINE const Formats& formats() {
  static const Formats kAll = {
      &torchsummary(), &torchinfo(), &module_tree(), &keras(), &graph_json(), &config_json(), &recording(),
  };
  return kAll;
}

namespace read_detail {

/// Length of the UTF-8 sequence at the front of `text`; 0 if it is none.
GPUMEM_INLINE std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  std::size_t length = 1;
  if (byte(0) >= 0x80) length = byte(0) < 0xC2 ? 0 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : byte(0) < 0xF5 ? 4 : 0;
  if (length > text.size()) return 0;
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0U) != 0x80U) return 0;
  }
  const bool overlong =
      (length == 3 && byte(0) == 0xE0 && byte(1) < 0xA0) || (length == 4 && byte(0) == 0xF0 && byte(1) < 0x90);
  const bool surrogate = length == 3 && byte(0) == 0xED && byte(1) >= 0xA0;
  const bool beyond = length == 4 && byte(0) == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

/// Offset of the first byte that is not UTF-8; npos if all is.
GPUMEM_INLINE std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    // Summaries are ASCII except tree glyphs: eight bytes at a time.
    std::uint64_t word = 0;
    while (at + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080U) != 0) break;
      at += sizeof word;
    }
    if (at >= text.size()) break;
    const std::size_t length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

/// What is wrong with the text whatever its format, or nothing.
GPUMEM_INLINE std::optional<core::Error> fault_of(std::string_view text) {
  const auto malformed = [&](std::string message, std::size_t offset) {
    return core::Error{core::ErrorCode::malformed_input, std::move(message),
                       core::Place{{}, line_number(text, offset), {}}};
  };
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return malformed("is empty; it should hold a model summary", 0);
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return malformed("is UTF-16, as PowerShell's '>' writes it; save it as UTF-8", 0);
  }
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {
    return malformed("is binary; it should hold a model summary as text", at);
  }
  if (const std::size_t at = find_invalid_utf8(text); at != std::string_view::npos) {
    return malformed("holds bytes that are not UTF-8; the file is cut off, or in another encoding", at);
  }
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t last = text.find_last_not_of(kBlanks);
  if (text[text.find_first_not_of(kBlanks)] == '{' && text[last] != '}') {
    return malformed("is JSON that ends in the middle; the file is cut off", last);
  }
  return std::nullopt;
}

/// For a path that cannot be read: the model that is published under this name.
GPUMEM_INLINE core::Result<model::ModelGraph> read_published(const std::string& name, const ReadOptions& options,
                                                             const Formats& known, core::Error error) {
  const auto published = published_model(name);
  if (!published) return unknown_name(name, std::move(error));
  return read(published->config, options, known);
}

/// The config alone, with another class: what files store is not held against it.
GPUMEM_INLINE core::Result<model::ModelGraph> read_with_head(const NamedModel& asked, const ReadOptions& options,
                                                             const Formats& known, std::size_t largest) {
  std::string place = path_of_model(asked.name);
  if (is_model_folder(place)) place += "/config.json";
  const core::Result<std::string> text = core::read_regular_file(place, largest);
  const auto published = text ? std::nullopt : published_model(asked.name);
  if (!text && !published) return unknown_name(asked.name, text.error());
  const core::Result<std::string> changed = with_head(text ? *text : published->config, asked.head);
  if (!changed) return core::Error(changed.error()).in_file(asked.name);
  return read(*changed, options, known);
}

GPUMEM_INLINE std::string names_of(const Formats& known) {
  std::string names;
  for (const Format* format : known) {
    names += (names.empty() ? "" : "; ") + std::string(format->name) + ", from " + std::string(format->description);
  }
  return names;
}

}  // namespace read_detail

GPUMEM_INLINE core::Error unknown_name(const std::string& path, core::Error error) {
  constexpr std::size_t kShown = 3;
  constexpr std::size_t kShortest = 4;  // letters that say which model is meant
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return error;
  std::string alike;
  if (path.size() >= kShortest) {
    for (const std::string_view name : published_models_like(path, kShown)) {
      alike += (alike.empty() ? " (names that gpumem knows: " : ", ") + std::string(name);
    }
  }
  if (!alike.empty()) alike += ")";
  if (!is_hub_name(path)) {
    if (!alike.empty()) error.message += "; if it is meant as the name of a model, give one that is known" + alike;
    return error;
  }
  if (alike.empty()) alike = core::did_you_mean(path, published_model_names());
  error.message += "; if it is the name of a model, gpumem does not know its sizes" + alike +
                   ", and the HuggingFace cache of this machine has "
                   "none of that name: give the path of its config.json (https://huggingface.co/" +
                   path + "/raw/main/config.json)";
  return error;
}

GPUMEM_INLINE core::Result<model::ModelGraph> read(std::string_view text, const ReadOptions& options,
                                                   const Formats& known) {
  if (core::is_gzip(text)) {
    const core::Result<std::string> unpacked = core::unpack_gzip(text, core::kLargestStream);
    if (!unpacked) return core::Error(unpacked.error()).in_file(options.file);
    if (core::is_gzip(*unpacked)) {
      return core::Error{core::ErrorCode::malformed_input, "is packed twice", core::Place{options.file, 0, {}}};
    }
    return read(*unpacked, options, known);
  }
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (auto fault = read_detail::fault_of(text)) return std::move(*fault).in_file(options.file);

  const Format* found = nullptr;
  std::size_t begin = 0;
  for (const Format* format : known) {
    const auto at = format->sniff(text, 0);
    if (!at) continue;
    if (found != nullptr) {
      const std::size_t later = std::max(begin, *at);
      return core::Error{core::ErrorCode::unknown_format,
                         "holds two summaries, " + std::string(found->name) + " in line " +
                             std::to_string(line_number(text, begin)) + " and " + std::string(format->name) +
                             " in line " + std::to_string(line_number(text, *at)) + "; keep one of them",
                         core::Place{options.file, line_number(text, later), {}}};
    }
    found = format;
    begin = *at;
  }
  if (found == nullptr) {
    return core::Error{core::ErrorCode::unknown_format,
                       "holds none of the summaries that gpumem reads: " + read_detail::names_of(known),
                       core::Place{options.file, 1, {}}};
  }
  core::Result<model::ModelGraph> graph = found->parse(text, begin, options);
  // A reader whose time is over ends as if its text did.
  if (core::deadline_passed()) return core::deadline_error().in_file(options.file);
  if (!graph) return graph;
  model::GraphBuilder::add_release(*graph, architectures::first_release(*graph));
  if (auto made = architectures::model_of_tree(*graph, *options.vocabulary)) {
    model::GraphBuilder::add_release(*made, graph->run_settings().transformers);
    return *std::move(made);
  }
  return graph;
}

GPUMEM_INLINE core::Result<model::ModelGraph> read_file(const std::string& path, const ReadOptions& options,
                                                        const Formats& known) {
  ReadOptions named = options;
  if (path.starts_with('{')) {
    named.file.clear();
    return read(path, named, known);
  }
  if (named.file.empty()) named.file = path;
  const NamedModel asked = named_model(path);
  if (!asked.head.empty()) return read_detail::read_with_head(asked, named, known, kLargestConfig);
  const std::string place = path_of_model(path);
  if (is_model_folder(place)) return read_folder(place, named);
  const core::Result<std::string> text = core::read_file(place);
  if (text) return read(*text, named, known);
  return read_detail::read_published(path, named, known, text.error());
}

GPUMEM_INLINE core::Result<model::ModelGraph> read_named(const std::string& name, const ReadOptions& options,
                                                         std::size_t largest, core::Error no_file) {
  const NamedModel asked = named_model(name);
  if (!asked.head.empty()) return read_detail::read_with_head(asked, options, formats(), largest);
  if (const auto folder = cached_model(name)) return read_folder(*folder, options, largest);
  return read_detail::read_published(name, options, formats(), std::move(no_file));
}

}  // namespace gpumem::summary
