#pragma once

#include "gpumem/core/json.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "gpumem/core/deadline.hpp"

namespace gpumem::core {

GPUMEM_INLINE std::string pointer_step(std::string_view key) {
  constexpr std::size_t kLongest = 60;
  std::string step = "/";
  for (const char byte : shortened(key, kLongest)) {
    if (byte == '~') {
      step += "~0";
    } else if (byte == '/') {
      step += "~1";
    } else {
      step += byte;
    }
  }
  return step;
}

GPUMEM_INLINE std::string pointer_step(std::size_t index) { return "/" + std::to_string(index); }

GPUMEM_INLINE Error below(std::string_view key, Error error) {
  error.place.element = pointer_step(key) + error.place.element;
  return error;
}

GPUMEM_INLINE Error below(std::size_t index, Error error) {
  error.place.element = pointer_step(index) + error.place.element;
  return error;
}

/// Puts the events of a parser into a document.
class JsonDocumentBuilder {
 public:
  explicit JsonDocumentBuilder(const JsonLimits& limits) : limits_(limits) {}

  bool open_object() { return open(JsonValue::object()); }
  bool open_list() { return open(JsonValue::list()); }
  bool value(JsonValue value) { return add(value); }

  bool key(std::string_view key) {
    key_ = key;
    return true;
  }

  bool close() {
    const std::size_t at = unfinished_.back();
    document_.values_[at].set_extent(document_.values_.size() - at);
    if (document_.values_[at].is(JsonValue::Kind::object) && !has_unique_keys(document_.values_[at])) return false;
    unfinished_.pop_back();
    return true;
  }

  /// A text that the parser will forget.
  std::string_view keep(std::string text) { return document_.kept_.emplace_back(std::move(text)); }

  bool refuse(Error error) {
    if (!error_) error_ = std::move(error);
    return false;
  }

  [[nodiscard]] std::optional<Error>& error() { return error_; }
  [[nodiscard]] JsonDocument&& document() && { return std::move(document_); }

 private:
  bool open(JsonValue value) {
    if (unfinished_.size() == limits_.depth) {
      return refuse_here("nests deeper than " + std::to_string(limits_.depth) + " lists and objects");
    }
    if (!add(value)) return false;
    unfinished_.push_back(document_.values_.size() - 1);
    return true;
  }

  bool add(JsonValue value) {
    if (pace_.late()) return refuse(deadline_error());
    if (document_.values_.size() == limits_.values) {
      return refuse_here("holds more than " + std::to_string(limits_.values) + " values");
    }
    if (!unfinished_.empty()) {
      JsonValue& parent = document_.values_[unfinished_.back()];
      parent.count_item();
      if (parent.is(JsonValue::Kind::object)) value.set_key(key_);
    }
    document_.values_.push_back(value);
    return true;
  }

  bool has_unique_keys(const JsonValue& object) {
    keys_.clear();
    for (const JsonValue& field : object.items()) keys_.push_back(field.key());
    std::sort(keys_.begin(), keys_.end());
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end());
    return twice == keys_.end() || refuse_here("is in its object twice", pointer_step(*twice));
  }

  bool refuse_here(std::string message, const std::string& last_step = {}) {
    Error error = malformed(std::move(message));
    for (std::size_t level = 1; level < unfinished_.size(); ++level) {
      const JsonValue& parent = document_.values_[unfinished_[level - 1]];
      const bool named = parent.is(JsonValue::Kind::object);
      error.place.element +=
          named ? pointer_step(document_.values_[unfinished_[level]].key()) : pointer_step(parent.size() - 1);
    }
    error.place.element += last_step;
    return refuse(std::move(error));
  }

  const JsonLimits& limits_;
  JsonDocument document_;
  std::vector<std::size_t> unfinished_;  ///< the lists and objects that are open
  Pace pace_;
  std::vector<std::string_view> keys_;
  std::string_view key_;
  std::optional<Error> error_;
};

namespace json_document_detail {

using Json = nlohmann::json;

/// Hands the events of nlohmann::json to the builder, as the scanner of plain JSON does.
class FullParser : public nlohmann::json_sax<Json> {
 public:
  FullParser(std::string_view text, JsonDocumentBuilder& builder) : text_(text), builder_(builder) {}

  bool null() override { return builder_.value(JsonValue::null()); }
  bool boolean(bool item) override { return builder_.value(JsonValue::boolean(item)); }
  bool number_integer(std::int64_t item) override { return builder_.value(JsonValue::integer(item)); }
  bool number_unsigned(std::uint64_t item) override { return builder_.value(JsonValue::unsigned_integer(item)); }
  bool number_float(double item, const std::string&) override { return builder_.value(JsonValue::real(item)); }
  bool string(std::string& item) override { return builder_.value(JsonValue::text(builder_.keep(std::move(item)))); }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return builder_.open_object(); }
  bool end_object() override { return builder_.close(); }
  bool start_array(std::size_t) override { return builder_.open_list(); }
  bool end_array() override { return builder_.close(); }
  bool key(std::string& name) override { return builder_.key(builder_.keep(std::move(name))); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kNumberOverflow = 406;
    const std::string_view before = text_.substr(0, std::min(position, text_.size()));
    Error fault = {ErrorCode::malformed_input, {}, {}};
    fault.place.line = 1 + std::count(before.begin(), before.end(), '\n');
    fault.message = error.id == kNumberOverflow
                        ? "holds a number beyond what a double holds"
                        : "is not JSON from byte " + std::to_string(position) + " on; the file is cut off or edited";
    return builder_.refuse(std::move(fault));
  }

 private:
  std::string_view text_;
  JsonDocumentBuilder& builder_;
};

/// The text with numbers of JSON in place of Python's NaN and Infinity; what stands between quotes stays.
inline std::string without_python_numbers(std::string_view text) {
  struct Word {
    std::string_view python;
    std::string_view json;
  };
  constexpr std::array<Word, 2> kWords = {{{"NaN", "null"}, {"Infinity", "1.7976931348623157e308"}}};
  std::string plain;
  plain.reserve(text.size());
  bool quoted = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto begins = [&](const Word& word) { return !quoted && text.substr(at).starts_with(word.python); };
    if (const auto word = std::find_if(kWords.begin(), kWords.end(), begins); word != kWords.end()) {
      plain += word->json;
      at += word->python.size();
      continue;
    }
    if (quoted && text[at] == '\\' && at + 1 < text.size()) plain += text[at++];
    else if (text[at] == '"') quoted = !quoted;
    plain += text[at++];
  }
  return plain;
}

/// What a config of Python's may hold: the scan for words costs little beside the full parser.
inline bool has_python_numbers(std::string_view text) {
  return text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos;
}

}  // namespace json_document_detail

GPUMEM_INLINE Result<JsonDocument> JsonDocument::parse(std::string_view text, const JsonLimits& limits) {
  // JsonValue counts with 32 bits.
  if (text.size() > UINT32_MAX) return Error{ErrorCode::malformed_input, "is JSON of more than 4 GiB", {}};
  JsonDocumentBuilder plain(limits);
  const char* reached = text.data();
  if (JsonScanner<JsonDocumentBuilder, JsonValue>(text, plain, reached).scan()) return std::move(plain).document();
  // From the beginning, so that what is wrong is told by one parser only.
  JsonDocumentBuilder full(limits);
  std::string replaced;
  if (limits.python_numbers && json_document_detail::has_python_numbers(text)) {
    replaced = json_document_detail::without_python_numbers(text);
    text = replaced;  // the builder keeps the texts of the full parser
  }
  json_document_detail::FullParser parser(text, full);
  nlohmann::json::sax_parse(text.begin(), text.end(), &parser);
  if (full.error()) return *std::move(full.error());
  return std::move(full).document();
}

}  // namespace gpumem::core
