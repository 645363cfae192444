#pragma once

#include "gpumem/summary/graph_json.hpp"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "gpumem/core/deadline.hpp"
#include "gpumem/core/json_scanner.hpp"
#include "gpumem/core/json_value.hpp"
#include "gpumem/model/graph_builder.hpp"
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

GPUMEM_INLINE core::Error malformed(std::string message) {
  return {core::ErrorCode::malformed_input, std::move(message), {}};
}

GPUMEM_INLINE Json to_json(const JsonValue& value) {
  switch (value.kind()) {
    case Kind::boolean: return value.boolean();
    case Kind::integer: return value.integer();
    case Kind::beyond_int64: return value.unsigned_integer();
    case Kind::real: return value.real();
    case Kind::text: return std::string(value.text());
    case Kind::list: {
      Json list = Json::array();
      for (const JsonValue& item : value.items()) list.push_back(to_json(item));
      return list;
    }
    case Kind::object: {
      Json object = Json::object();
      for (const JsonValue& item : value.items()) object[std::string(item.key())] = to_json(item);
      return object;
    }
    default: return nullptr;
  }
}

/// A value as a message shows it, whatever bytes it holds.
GPUMEM_INLINE std::string shown(const JsonValue& value) {
  return core::quoted(to_json(value).dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// "N", "64N", "?" or a positive number.
GPUMEM_INLINE core::Result<core::Dim> dim_from(const JsonValue& json) {
  if (json.is(Kind::integer)) {
    const std::int64_t size = json.integer();
    if (size < 1) return malformed("a dimension is " + std::to_string(size) + "; it must be at least 1");
    return core::Dim::fixed(size);
  }
  if (json.is(Kind::text)) {
    const std::string_view text = json.text();
    if (text == "?") return core::Dim::unknown();
    if (text == "N") return core::Dim::batch();
    std::size_t at = 0;
    const auto factor = read_digits(text, at);
    if (at > 0 && text.substr(at) == "N" && factor && *factor > 0) return core::Dim::batch(*factor);
  }
  return malformed("a dimension must be a size, \"N\", \"64N\" or \"?\", not " + shown(json));
}

GPUMEM_INLINE core::Result<core::Shape> shape_from(const JsonValue& json) {
  if (!json.is(Kind::list)) return malformed("a shape must be a list of dimensions");
  core::Shape shape;
  for (const JsonValue& item : json.items()) {
    const core::Result<core::Dim> dim = dim_from(item);
    if (!dim) return dim.error();
    if (!shape.push_back(*dim)) {
      return malformed("a shape has more than " + std::to_string(core::Shape::kMaxRank) + " dimensions");
    }
  }
  return shape;
}

GPUMEM_INLINE std::optional<std::vector<std::int64_t>> integers_from(const JsonValue& json) {
  if (!json.is(Kind::list)) return std::nullopt;
  std::vector<std::int64_t> integers;
  integers.reserve(json.size());
  for (const JsonValue& item : json.items()) {
    if (!item.is(Kind::integer)) return std::nullopt;
    integers.push_back(item.integer());
  }
  return integers;
}

/// ["N", 3, -1]: what an op is told about the dimensions of its output, -1 where it keeps one.
GPUMEM_INLINE std::optional<std::vector<core::Dim>> dims_from(const JsonValue& json) {
  if (!json.is(Kind::list)) return std::nullopt;
  std::vector<core::Dim> dims;
  for (const JsonValue& item : json.items()) {
    const core::Result<core::Dim> dim = item.is(-1) ? core::Result<core::Dim>(core::Dim::fixed(-1)) : dim_from(item);
    if (!dim || dim->kind == core::Dim::Kind::unknown) return std::nullopt;
    dims.push_back(*dim);
  }
  return dims;
}

GPUMEM_INLINE core::Result<model::AttributeValue> attribute_from(const JsonValue& json) {
  if (json.is(Kind::boolean)) return model::AttributeValue(json.boolean());
  if (json.is(Kind::text)) return model::AttributeValue(std::string(json.text()));
  if (json.is(Kind::integer)) return model::AttributeValue(json.integer());
  if (json.is(Kind::real)) return model::AttributeValue(json.real());
  if (auto integers = integers_from(json)) return model::AttributeValue(*std::move(integers));
  if (auto dims = dims_from(json)) return model::AttributeValue(*std::move(dims));
  return malformed("must be a boolean, number, text, list of integers or list of dimensions, not " + shown(json));
}

/// Builds the graph while the file is parsed: one node's JSON is in memory at a time, and nesting deeper than a
/// node needs ends the parse.
class Handler {
 public:
  Handler(std::string_view text, const char* const& reached, const ReadOptions& options)
      : text_(text), reached_(reached), options_(options), builder_("graph_json", options.file) {}

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

  /// Keys and texts live until the item they stand in is complete.
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

  /// Keeps a text, which the parser is about to overwrite, until the item it stands in is complete.
  std::string_view keep(std::string text) { return kept_.emplace_back(std::move(text)); }

  core::Result<model::ModelGraph> finish() {
    if (!builder_.failed() && !format_seen_) refuse(malformed("names no \"format\": \"gpumem-graph\""));
    if (!builder_.failed() && !version_seen_) refuse(malformed("names no \"version\""));
    return std::move(builder_).build();
  }

  void refuse(core::Error error) {
    if (error.place.line == 0) error.place.line = line();
    if (error.place.element.empty() && !top_key_.empty()) {
      error.place.element =
          "/" + core::shortened(top_key_, 60) + (depth_ > 1 || item_ > 0 ? "/" + std::to_string(item_) : "");
    }
    builder_.fail(std::move(error));
  }

 private:
  static constexpr std::size_t kDeepest = 6;  // file, nodes, node, attrs, list; one to spare
  /// Fields of one object. An ordered object finds its keys one by one, so many of them take their square.
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

  /// The value at `index`, the last of the array but for what is inside it, is read.
  bool complete(std::size_t index) {
    if (!unfinished_.empty()) return add_to(unfinished_.back(), index);
    if (depth_ == 0) return refuse_here("the file must hold one JSON object");
    const bool taken = depth_ == 1 ? take_field(values_[index]) : take_item(values_[index]);
    if (depth_ == 2) ++item_;
    values_.clear();
    if (!kept_.empty()) kept_.clear();
    return taken && !builder_.failed();
  }

  bool add_to(std::size_t owner, std::size_t index) {
    if (values_[owner].is(Kind::object)) {
      if (values_[owner].size() >= kMostFields) return refuse_here("has more fields than any node does");
      if (replaces_another(owner, index)) return true;
    }
    values_[owner].count_item();
    return true;
  }

  /// Of fields with one key the last counts, in the place of the first.
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
      if (!item.is("inferred") || nodes_seen_) return refuse_here("must be \"inferred\" and stand before \"nodes\"");
      builder_.infer_edges();
      return true;
    }
    if (top_key_ == "name") return item.is(Kind::text) || refuse_here("must be text");
    if (top_key_ == "nodes" || top_key_ == "inputs") return refuse_here("must be a list of objects");
    return refuse_here("is not a field of graph JSON");
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

  /// The error of a field, said of the node or input that has it: its name may stand behind the field.
  static core::Error named(std::string_view kind, const JsonValue& item, core::Error error) {
    for (const JsonValue& field : item.items()) {
      if (field.key() != "name" || !field.is(Kind::text)) continue;
      error.message = std::string(kind) + " " + core::quoted(field.text()) + ": " + error.message;
    }
    return error;
  }

  bool take_input(const JsonValue& item) {
    if (nodes_seen_) return fail(malformed("\"inputs\" must stand before \"nodes\""));
    model::GraphInput input;
    bool shaped = false;
    for (const JsonValue& field : item.items()) {
      const core::Status read = read_input_field(field, input);
      if (!read) return fail(named("input", item, read.error()));
      shaped = shaped || field.key() == "shape";
    }
    if (input.name.empty() || !shaped) return fail(malformed("an input needs a name and a shape"));
    const auto index = static_cast<model::LayerIndex>(-1 - static_cast<std::int64_t>(names_inputs_++));
    if (!names_.try_emplace(input.name, index).second) {
      return fail(malformed("the name " + core::quoted(input.name) + " is taken"));
    }
    builder_.add_input(std::move(input));
    return true;
  }

  static core::Status read_input_field(const JsonValue& field, model::GraphInput& input) {
    const std::string_view name = field.key();
    if (name == "name" && field.is(Kind::text)) {
      input.name = field.text();
    } else if (name == "shape") {
      const auto shape = shape_from(field);
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
    nodes_seen_ = true;
    Node& node = node_;
    node.clear();
    for (const JsonValue& field : item.items()) {
      const core::Status read = read_field(field, node);
      if (!read) return fail(named("node", item, read.error()));
    }
    if (node.name.empty() || node.op.empty()) return fail(malformed("a node needs a name and an op"));
    const model::OpTraits* op = options_.vocabulary->find_op(node.op);
    if (op == nullptr && node.op != model::kUnknownOp && !options_.lenient) {
      return fail({core::ErrorCode::unknown_layer,
                   "node " + core::quoted(node.name) + " has the unknown op " + core::quoted(node.op) +
                       "; lenient reading (--lenient) estimates a lower bound",
                   {}});
    }
    const bool reads_nothing = node.op == model::kParameterOp || node.op == model::kConstantOp;
    if (node.inputs.empty() && !builder_.graph().edges_inferred() && !reads_nothing) {
      return fail(malformed("node " + core::quoted(node.name) +
                            " has no \"inputs\"; name them, or say \"edges\": \"inferred\" before \"nodes\""));
    }
    // A shape that is missing among printed ones would count as no activation at all.
    if (node.op != model::kParameterOp) {
      if (outputs_given_.value_or(node.output_given) != node.output_given) {
        return fail(malformed("node " + core::quoted(node.name) +
                              (node.output_given ? " has an \"output\", which nodes before it have not"
                                                 : " has no \"output\", which nodes before it have") +
                              "; give it for all nodes ([] for one that never runs) or for none"));
      }
      outputs_given_ = node.output_given;
    }
    if (op == nullptr && !node.parameters) node.parameters = 0;
    enter(node.scope);
    const model::LayerIndex index = builder_.add({.name = node.name,
                                                  .class_name = node.class_name,
                                                  .op = op,
                                                  .outputs = node.outputs,
                                                  .inputs = node.inputs,
                                                  .attributes = node.attributes,
                                                  .parameters = node.parameters,
                                                  .tied_parameters = node.tied_parameters,
                                                  .frozen = node.frozen,
                                                  .returned = node.returned,
                                                  .line = item_line_});
    // Names need to be unique only where edges are looked up by them.
    const bool added = names_.try_emplace(std::string(node.name), index).second;
    if (!added && !builder_.graph().edges_inferred()) {
      return fail(malformed("the name " + core::quoted(node.name) + " is taken"));
    }
    return !builder_.failed();
  }

  using ScopeStep = std::pair<std::string_view, std::string_view>;

  /// Everything a node may say.
  struct Node {
    std::string_view name;
    std::string_view op;
    std::string_view class_name;
    std::vector<ScopeStep> scope;
    std::vector<core::Shape> outputs;
    std::vector<model::LayerIndex> inputs;
    std::vector<model::Attribute> attributes;
    std::optional<std::int64_t> parameters;
    std::int64_t tied_parameters = 0;
    bool frozen = false;
    bool returned = false;
    bool output_given = false;

    /// As new, but for the room that its lists have.
    void clear() {
      name = op = class_name = {};
      parameters.reset();
      tied_parameters = 0;
      frozen = returned = output_given = false;
      scope.clear();
      outputs.clear();
      inputs.clear();
      attributes.clear();
    }
  };

  core::Status read_field(const JsonValue& field, Node& node) const {
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

  static core::Status read_scope(const JsonValue& field, Node& node) {
    for (const JsonValue& step : field.items()) {
      if (!step.is(Kind::list) || step.size() != 2) return wrong(field);
      const JsonValue& name = *step.items().begin();
      const JsonValue& class_name = *++step.items().begin();
      if (!name.is(Kind::text) || !class_name.is(Kind::text)) return wrong(field);
      node.scope.emplace_back(name.text(), class_name.text());
    }
    return core::Done{};
  }

  core::Status read_inputs(const JsonValue& field, Node& node) const {
    for (const JsonValue& input : field.items()) {
      if (!input.is(Kind::text)) return malformed("an input of a node is named by text");
      const auto found = names_.find(input.text());
      if (found == names_.end()) {
        return malformed("reads " + core::quoted(input.text()) +
                         ", which is neither a graph input nor an earlier node");
      }
      node.inputs.push_back(found->second);
    }
    return core::Done{};
  }

  static core::Status read_attributes(const JsonValue& field, Node& node) {
    for (const JsonValue& item : field.items()) {
      auto attribute = attribute_from(item);
      if (!attribute) return malformed("attribute " + core::quoted(item.key()) + " " + attribute.error().message);
      node.attributes.push_back({std::string(item.key()), *std::move(attribute)});
    }
    return core::Done{};
  }

  /// A list of lists is a list of shapes, an empty list is none, any other list is one shape.
  static core::Status read_outputs(const JsonValue& field, Node& node) {
    node.output_given = true;
    if (field.size() == 0) return core::Done{};
    if (!(*field.items().begin()).is(Kind::list)) return read_output(field, node);
    for (const JsonValue& shape : field.items()) {
      if (core::Status read = read_output(shape, node); !read) return read;
    }
    return core::Done{};
  }

  static core::Status read_output(const JsonValue& json, Node& node) {
    const core::Result<core::Shape> shape = shape_from(json);
    if (!shape) return shape.error();
    node.outputs.push_back(*shape);
    return core::Done{};
  }

  /// Closes and opens containers until those that the node names are open.
  void enter(const std::vector<ScopeStep>& scope) {
    std::size_t same = 0;
    while (same < scope.size() && same < scopes_.size() && scope[same] == ScopeStep(scopes_[same])) ++same;
    for (; scopes_.size() > same; scopes_.pop_back()) builder_.close_scope();
    for (; scopes_.size() < scope.size(); scopes_.emplace_back(scope[scopes_.size()])) {
      builder_.open_scope(scope[scopes_.size()].first, scope[scopes_.size()].second);
    }
  }

  /// Finds names by views of them.
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  std::string_view text_;
  const char* const& reached_;
  const ReadOptions& options_;
  model::GraphBuilder builder_;
  std::vector<JsonValue> values_;        ///< the item being read
  std::vector<std::size_t> unfinished_;  ///< the lists and objects in it that are open
  std::deque<std::string> kept_;         ///< texts of it that stand nowhere else
  std::string_view key_;                 ///< the key last read in it
  std::string top_key_;
  std::size_t depth_ = 0;
  std::size_t item_ = 0;
  std::size_t counted_ = 0;  ///< the offset whose line is line_
  std::int64_t line_ = 1;
  std::int64_t item_line_ = 0;
  std::unordered_map<std::string, model::LayerIndex, NameHash, std::equal_to<>> names_;
  std::size_t names_inputs_ = 0;
  Node node_;
  std::vector<std::pair<std::string, std::string>> scopes_;
  std::optional<bool> outputs_given_;  ///< whether nodes have "output"; nothing before the first node
  bool format_seen_ = false;
  bool version_seen_ = false;
  bool nodes_seen_ = false;
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
  // Only a text that is JSON from its first byte on: a brace in prose is no graph.
  if (from > 0 || at == std::string_view::npos || text[at] != '{') return std::nullopt;
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

/// The graph, if it is printed plainly and nothing is wrong with it.
GPUMEM_INLINE std::optional<model::ModelGraph> parse_plain(std::string_view text, std::size_t begin,
                                                           const ReadOptions& options) {
  const char* reached = text.data() + begin;
  Handler handler(text, reached, options);
  if (!core::JsonScanner<Handler, JsonValue>(text.substr(begin), handler, reached).scan()) return std::nullopt;
  core::Result<model::ModelGraph> graph = handler.finish();
  if (!graph) return std::nullopt;
  return *std::move(graph);
}

GPUMEM_INLINE core::Result<model::ModelGraph> parse(std::string_view text, std::size_t begin,
                                                    const ReadOptions& options) {
  if (auto graph = parse_plain(text, begin, options)) return *std::move(graph);
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
