#pragma once

#include "gpumem/summary/graph_json.hpp"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>

#include "gpumem/core/deadline.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/summary/node_linker.hpp"
#include "gpumem/summary/plain_graph_json.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::summary {

namespace graph_json_detail {

using core::JsonValue;
using Kind = JsonValue::Kind;
using Json = nlohmann::ordered_json;

/// Walks over the text for nlohmann::json and shows how far it has come, so that errors can name a line.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    Cursor before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Cursor& left, const Cursor& right) { return left.at_ == right.at_; }
  friend bool operator!=(const Cursor& left, const Cursor& right) { return left.at_ != right.at_; }

 private:
  const char* at_;
  const char** reached_;
};

using core::malformed;

/// Builds the graph while the file is parsed: one node's JSON is in memory at a time, and nesting deeper than a
/// node needs ends the parse.
class Handler {
 public:
  Handler(std::string_view text, const char* const& reached, const ReadOptions& options)
      : text_(text), reached_(reached), linker_(options) {}

  bool open_object() { return open(JsonValue::object()); }
  bool open_list() { return open(JsonValue::list()); }

  bool close() {
    --depth_;
    if (unfinished_.empty()) return true;
    const std::size_t index = unfinished_.back();
    unfinished_.pop_back();
    values_[index].set_extent(values_.size() - index);
    return complete(index);
  }

  /// Keys and texts live until the item they are in is complete.
  bool key(std::string_view name) {
    if (depth_ == 1) {
      top_key_ = name;
      item_ = 0;
    } else {
      key_ = name;
    }
    return true;
  }

  bool value(const JsonValue& item) {
    if (pace_.late()) return false;
    put(item);
    return complete(values_.size() - 1);
  }

  /// Keeps a text, which the parser is about to overwrite, until the item it is in is complete.
  std::string_view keep(std::string text) { return kept_.emplace_back(std::move(text)); }

  core::Result<model::ModelGraph> finish() {
    if (!linker_.builder().failed() && !format_seen_) refuse(malformed("names no \"format\": \"gpumem-graph\""));
    if (!linker_.builder().failed() && !version_seen_) refuse(malformed("names no \"version\""));
    return std::move(linker_.builder()).build();
  }

  void refuse(core::Error error) {
    if (error.place.line == 0) error.place.line = line();
    if (error.place.element.empty() && !top_key_.empty()) {
      error.place.element =
          "/" + core::shortened(top_key_, 60) + (depth_ > 1 || item_ > 0 ? "/" + std::to_string(item_) : "");
    }
    linker_.builder().fail(std::move(error));
  }

 private:
  static constexpr std::size_t kDeepest = 6;  // file, nodes, node, attrs, list; one to spare
  /// Fields of one object. An ordered object searches its keys one by one, which takes the square of their number.
  static constexpr std::size_t kMostFields = 1024;

  /// Counts on from where it was asked last: every node asks, and counting from the top took their square.
  [[nodiscard]] std::int64_t line() {
    // The parser has read one byte beyond what it reports.
    const auto reached = static_cast<std::size_t>(reached_ - text_.data());
    const std::size_t end = std::max(reached > 0 ? reached - 1 : 0, counted_);
    line_ += line_number(text_.substr(counted_), end - counted_) - 1;
    counted_ = end;
    return line_;
  }

  void put(const JsonValue& item) {
    values_.push_back(item);
    values_.back().set_key(key_);
  }

  /// Depth 1 is the file's object, depth 2 a list such as "nodes", depth 3 one of its items.
  bool open(const JsonValue& empty) {
    if (pace_.late()) return false;
    ++depth_;
    const bool list = empty.is(Kind::list);
    if (depth_ == 1) return !list || refuse_here("the file must hold one JSON object");
    if (depth_ > kDeepest) return refuse_here("nests deeper than any graph does");
    if (depth_ == 2 && list) return top_key_ == "nodes" || top_key_ == "inputs" || refuse_here("must not be a list");
    if (unfinished_.empty()) item_line_ = line();
    unfinished_.push_back(values_.size());
    put(empty);
    return true;
  }

  /// The value at `index`, the last of the array except what is inside it, is read.
  bool complete(std::size_t index) {
    if (!unfinished_.empty()) return add_to(unfinished_.back(), index);
    if (depth_ == 0) return refuse_here("the file must hold one JSON object");
    const bool taken = depth_ == 1 ? take_field(values_[index]) : take_item(values_[index]);
    if (depth_ == 2) ++item_;
    values_.clear();
    if (!kept_.empty()) kept_.clear();
    return taken && !linker_.builder().failed();
  }

  bool add_to(std::size_t owner, std::size_t index) {
    if (values_[owner].is(Kind::object)) {
      if (values_[owner].size() >= kMostFields) return refuse_here("has more fields than any node does");
      if (replaces_another(owner, index)) return true;
    }
    values_[owner].count_item();
    return true;
  }

  /// Among fields with the same key the last one counts, in the place of the first.
  bool replaces_another(std::size_t owner, std::size_t index) {
    const auto begin = values_.begin();
    const auto offset = [](std::size_t at) { return static_cast<std::ptrdiff_t>(at); };
    for (std::size_t at = owner + 1; at < index; at += values_[at].extent()) {
      if (values_[at].key() != values_[index].key()) continue;
      const std::size_t old = values_[at].extent();
      const std::size_t added = values_.size() - index;
      std::rotate(begin + offset(at), begin + offset(index), values_.end());
      values_.erase(begin + offset(at + added), begin + offset(at + added + old));
      return true;
    }
    return false;
  }

  bool refuse_here(std::string message) {
    refuse(malformed(std::move(message)));
    return false;
  }

  bool take_field(const JsonValue& item) {
    if (top_key_ == "format") {
      format_seen_ = item.is("gpumem-graph");
      return format_seen_ || refuse_here("must be \"gpumem-graph\", not " + shown(item));
    }
    if (top_key_ == "version") {
      version_seen_ = item.is(1);
      return version_seen_ || refuse_here("must be 1, not " + shown(item));
    }
    if (top_key_ == "edges") {
      if (!item.is("inferred") || linker_.has_nodes())
        return refuse_here("must be \"inferred\" and come before \"nodes\"");
      linker_.builder().infer_edges();
      return true;
    }
    if (top_key_ == "printed_outputs") {
      if (!item.is(Kind::integer) || item.integer() < 0)
        return refuse_here("must be a count of elements, not " + shown(item));
      linker_.builder().printed_outputs(item.integer());
      return true;
    }
    if (top_key_ == "name") return item.is(Kind::text) || refuse_here("must be text");
    if (top_key_ == "nodes" || top_key_ == "inputs") return refuse_here("must be a list of objects");
    if (is_of_config(top_key_)) {
      return refuse_here("is a field of a config.json, which must say its model_type (or _class_name) too");
    }
    return refuse_here("is not a field of graph JSON");
  }

  /// Whether models' configs have such a field, and graph JSON has none.
  static bool is_of_config(std::string_view key) {
    constexpr std::string_view kFields[] = {"architectures",       "hidden_size", "d_model",     "n_embd",
                                            "num_hidden_layers",   "n_layer",     "num_layers",  "vocab_size",
                                            "num_attention_heads", "n_head",      "text_config", "intermediate_size"};
    return std::ranges::find(kFields, key) != std::end(kFields);
  }

  bool take_item(const JsonValue& item) {
    if (!item.is(Kind::object)) return refuse_here("must be a list of objects");
    return top_key_ == "inputs" ? take_input(item) : take_node(item);
  }

  bool fail(core::Error error) {
    error.place.line = item_line_;
    refuse(std::move(error));
    return false;
  }

  /// The error of a field, said about the node or input that has it: its name may follow the field.
  static core::Error named(std::string_view kind, const JsonValue& item, core::Error error) {
    for (const JsonValue& field : item.items()) {
      if (field.key() != "name" || !field.is(Kind::text)) continue;
      error.message = std::string(kind) + " " + core::quoted(field.text()) + ": " + error.message;
    }
    return error;
  }

  bool take_input(const JsonValue& item) {
    if (linker_.has_nodes()) return fail(malformed("\"inputs\" must come before \"nodes\""));
    model::GraphInput input;
    bool shaped = false;
    for (const JsonValue& field : item.items()) {
      const core::Status read = read_input_field(field, input);
      if (!read) return fail(named("input", item, read.error()));
      shaped = shaped || field.key() == "shape";
    }
    if (input.name.empty() || !shaped) return fail(malformed("an input needs a name and a shape"));
    const core::Status added = linker_.add_input(std::move(input));
    return added ? true : fail(added.error());
  }

  static core::Status read_input_field(const JsonValue& field, model::GraphInput& input) {
    const std::string_view name = field.key();
    if (name == "name" && field.is(Kind::text)) {
      input.name = field.text();
    } else if (name == "shape") {
      const auto shape = shape_from_json(field);
      if (!shape) return shape.error();
      input.shape = *shape;
    } else if (name == "dtype" && field.is(Kind::text)) {
      const auto dtype = core::dtype_from(field.text());
      if (!dtype) return malformed("has the unknown dtype " + core::quoted(field.text()));
      input.dtype = *dtype;
    } else {
      return malformed("the field " + core::quoted(name) + " of an input is unknown or of the wrong type");
    }
    return core::Done{};
  }

  bool take_node(const JsonValue& item) {
    node_.clear();
    for (const JsonValue& field : item.items()) {
      const core::Status read = read_field(field, node_);
      if (!read) return fail(named("node", item, read.error()));
    }
    const core::Status added = linker_.add_node(node_, item_line_);
    if (!added) return fail(added.error());
    return !linker_.builder().failed();
  }

  core::Status read_field(const JsonValue& field, GraphNode& node) const {
    const std::string_view name = field.key();
    switch (field.kind()) {
      case Kind::text:
        if (name == "name") return store(node.name, field.text());
        if (name == "op") return store(node.op, field.text());
        if (name == "class") return store(node.class_name, field.text());
        break;
      case Kind::list:
        if (name == "inputs") return read_inputs(field, node);
        if (name == "output") return read_outputs(field, node);
        if (name == "scope") return read_scope(field, node);
        break;
      case Kind::object:
        if (name == "attrs") return read_attributes(field, node);
        break;
      case Kind::integer:
        if (name == "parameters") return store(node.parameters, field.integer());
        if (name == "tied_parameters") return store(node.tied_parameters, field.integer());
        break;
      case Kind::boolean:
        if (name == "frozen") return store(node.frozen, field.boolean());
        if (name == "returned") return store(node.returned, field.boolean());
        break;
      default: break;
    }
    return wrong(field);
  }

  static core::Error wrong(const JsonValue& field) {
    return malformed("the field " + core::quoted(field.key()) + " of a node is unknown or of the wrong type");
  }

  template <typename To, typename Value>
  static core::Status store(To& to, const Value& value) {
    to = value;
    return core::Done{};
  }

  static core::Status read_scope(const JsonValue& field, GraphNode& node) {
    for (const JsonValue& step : field.items()) {
      if (!step.is(Kind::list) || step.size() != 2) return wrong(field);
      const JsonValue& name = *step.items().begin();
      const JsonValue& class_name = *++step.items().begin();
      if (!name.is(Kind::text) || !class_name.is(Kind::text)) return wrong(field);
      node.scope.emplace_back(name.text(), class_name.text());
    }
    return core::Done{};
  }

  core::Status read_inputs(const JsonValue& field, GraphNode& node) const {
    for (const JsonValue& input : field.items()) {
      if (!input.is(Kind::text)) return malformed("an input of a node is named by text");
      const std::optional<model::LayerIndex> index = linker_.find(input.text());
      if (!index) {
        return malformed("reads " + core::quoted(input.text()) +
                         ", which is neither a graph input nor an earlier node");
      }
      node.inputs.push_back(*index);
    }
    return core::Done{};
  }

  static core::Status read_attributes(const JsonValue& field, GraphNode& node) {
    for (const JsonValue& item : field.items()) {
      auto attribute = attribute_from_json(item);
      if (!attribute) return malformed("attribute " + core::quoted(item.key()) + " " + attribute.error().message);
      node.attributes.push_back({std::string(item.key()), *std::move(attribute)});
    }
    return core::Done{};
  }

  /// A list of lists is a list of shapes, an empty list is none, any other list is one shape.
  static core::Status read_outputs(const JsonValue& field, GraphNode& node) {
    node.output_given = true;
    if (field.size() == 0) return core::Done{};
    if (!(*field.items().begin()).is(Kind::list)) return read_output(field, node);
    for (const JsonValue& shape : field.items()) {
      if (core::Status read = read_output(shape, node); !read) return read;
    }
    return core::Done{};
  }

  static core::Status read_output(const JsonValue& json, GraphNode& node) {
    const core::Result<core::Shape> shape = shape_from_json(json);
    if (!shape) return shape.error();
    node.outputs.push_back(*shape);
    return core::Done{};
  }

  std::string_view text_;
  const char* const& reached_;
  NodeLinker linker_;
  std::vector<JsonValue> values_;        ///< the item being read
  std::vector<std::size_t> unfinished_;  ///< the lists and objects in it that are open
  std::deque<std::string> kept_;         ///< texts of it that are nowhere else
  std::string_view key_;                 ///< the key last read in it
  std::string top_key_;
  std::size_t depth_ = 0;
  std::size_t item_ = 0;
  std::size_t counted_ = 0;  ///< the offset whose line is line_
  std::int64_t line_ = 1;
  std::int64_t item_line_ = 0;
  GraphNode node_;
  bool format_seen_ = false;
  bool version_seen_ = false;
  core::Pace pace_;
};

/// Hands the events of nlohmann::json to the handler, as the scanner of plain JSON does.
class FullParser : public nlohmann::json_sax<Json> {
 public:
  explicit FullParser(Handler& handler) : handler_(handler) {}

  bool null() override { return handler_.value(JsonValue::null()); }
  bool boolean(bool item) override { return handler_.value(JsonValue::boolean(item)); }
  bool number_integer(std::int64_t item) override { return handler_.value(JsonValue::integer(item)); }
  bool number_unsigned(std::uint64_t item) override { return handler_.value(JsonValue::unsigned_integer(item)); }
  bool number_float(double item, const std::string&) override { return handler_.value(JsonValue::real(item)); }
  bool string(std::string& item) override { return handler_.value(JsonValue::text(handler_.keep(std::move(item)))); }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return handler_.open_object(); }
  bool end_object() override { return handler_.close(); }
  bool start_array(std::size_t) override { return handler_.open_list(); }
  bool end_array() override { return handler_.close(); }
  bool key(std::string& name) override { return handler_.key(handler_.keep(std::move(name))); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
    const std::size_t at = std::min(what.find("syntax error"), what.find("number overflow"));
    handler_.refuse(malformed("is not JSON: " + core::shortened(at == std::string::npos ? what : what.substr(at), 120) +
                              "; the file is cut off or edited"));
    return false;
  }

 private:
  Handler& handler_;
};

GPUMEM_INLINE std::optional<std::size_t> sniff(std::string_view text, std::size_t from) {
  const std::size_t at = text.find_first_not_of(" \t\r\n", from);
  // Only a text that is JSON from its first byte on: a brace in prose is not a graph.
  if (from > 0 || at == std::string_view::npos || text[at] != '{') return std::nullopt;
  if (is_recording(text) || is_config(text)) return std::nullopt;
  return at;
}

/// Offset of the first text, number or stretch of white space beyond 1 MiB; npos if all are shorter. The JSON
/// parser keeps several copies of the one it is in, and puts it whole into its message.
GPUMEM_INLINE std::size_t find_overlong(std::string_view text) {
  constexpr std::size_t kLongest = std::size_t{1} << 20;
  std::size_t begin = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (quoted && byte == '\\') {
      ++at;
    } else if (byte == '"') {
      quoted = !quoted;
      begin = at;
    } else if (!quoted && (byte == ',' || byte == ':' || byte == '{' || byte == '[' || byte == '}' || byte == ']')) {
      begin = at;
    }
    if (at - begin > kLongest) return begin;
  }
  return std::string_view::npos;
}

GPUMEM_INLINE core::Result<model::ModelGraph> parse(std::string_view text, std::size_t begin,
                                                    const ReadOptions& options) {
  if (auto graph = read_plain_graph_json(text, begin, options)) return *std::move(graph);
  // From the beginning, so that what is wrong is told by one parser only.
  if (const std::size_t at = find_overlong(text.substr(begin)); at != std::string_view::npos) {
    core::Error error = malformed("holds a text, a number or white space of more than 1 MiB; no graph does");
    error.place.line = line_number(text, begin + at);
    return std::move(error).in_file(options.file);
  }
  const char* reached = text.data() + begin;
  Handler handler(text, reached, options);
  FullParser parser(handler);
  Json::sax_parse(Cursor(reached, &reached), Cursor(text.data() + text.size(), &reached), &parser);
  return handler.finish();
}

}  // namespace graph_json_detail

GPUMEM_INLINE const Format& graph_json() {
  static constexpr Format kFormat = {"graph_json", "gpumem's own graph JSON", graph_json_detail::sniff,
                                     graph_json_detail::parse};
  return kFormat;
}

}  // namespace gpumem::summary
