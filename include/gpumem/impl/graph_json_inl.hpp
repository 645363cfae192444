#pragma once

#include "gpumem/summary/graph_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "gpumem/model/graph_builder.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::summary {

namespace graph_json_detail {

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

/// A value as a message shows it, whatever bytes it holds.
GPUMEM_INLINE std::string shown(const Json& json) {
  return core::quoted(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// "N", "64N", "?" or a positive number.
GPUMEM_INLINE core::Result<core::Dim> dim_from(const Json& json) {
  if (json.is_number_integer() && !(json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX)) {
    const auto size = json.get<std::int64_t>();
    if (size < 1) return malformed("a dimension is " + std::to_string(size) + "; it must be at least 1");
    return core::Dim::fixed(size);
  }
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    if (text == "?") return core::Dim::unknown();
    if (text == "N") return core::Dim::batch();
    std::size_t at = 0;
    const auto factor = read_digits(text, at);
    if (at > 0 && text.substr(at) == "N" && factor && *factor > 0) return core::Dim::batch(*factor);
  }
  return malformed("a dimension must be a size, \"N\", \"64N\" or \"?\", not " + shown(json));
}

GPUMEM_INLINE core::Result<core::Shape> shape_from(const Json& json) {
  if (!json.is_array()) return malformed("a shape must be a list of dimensions");
  core::Shape shape;
  for (const Json& item : json) {
    const core::Result<core::Dim> dim = dim_from(item);
    if (!dim) return dim.error();
    if (!shape.push_back(*dim)) {
      return malformed("a shape has more than " + std::to_string(core::Shape::kMaxRank) + " dimensions");
    }
  }
  return shape;
}

/// ["N", 3, -1]: what an op is told about the dimensions of its output, -1 where it keeps one.
GPUMEM_INLINE std::optional<std::vector<core::Dim>> dims_from(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<core::Dim> dims;
  for (const Json& item : json) {
    const core::Result<core::Dim> dim = item == -1 ? core::Result<core::Dim>(core::Dim::fixed(-1)) : dim_from(item);
    if (!dim || dim->kind == core::Dim::Kind::unknown) return std::nullopt;
    dims.push_back(*dim);
  }
  return dims;
}

GPUMEM_INLINE core::Result<model::AttributeValue> attribute_from(const Json& json) {
  if (json.is_boolean()) return model::AttributeValue(json.get<bool>());
  if (json.is_string()) return model::AttributeValue(json.get<std::string>());
  const auto fits = [](const Json& number) {
    return number.is_number_integer() && !(number.is_number_unsigned() && number.get<std::uint64_t>() > INT64_MAX);
  };
  if (fits(json)) return model::AttributeValue(json.get<std::int64_t>());
  if (json.is_number_float()) return model::AttributeValue(json.get<double>());
  if (json.is_array() && std::all_of(json.begin(), json.end(), fits)) {
    return model::AttributeValue(json.get<std::vector<std::int64_t>>());
  }
  if (const auto dims = dims_from(json)) return model::AttributeValue(*dims);
  return malformed("must be a boolean, number, text, list of integers or list of dimensions, not " + shown(json));
}

/// Builds the graph while the file is parsed: one node's JSON is in memory at a time, and nesting deeper than a
/// node needs ends the parse.
class Handler : public nlohmann::json_sax<Json> {
 public:
  Handler(std::string_view text, const char* const* reached, const ReadOptions& options)
      : text_(text), reached_(reached), options_(options), builder_("graph_json", options.file) {}

  bool null() override { return value(Json(nullptr)); }
  bool boolean(bool item) override { return value(Json(item)); }
  bool number_integer(std::int64_t item) override { return value(Json(item)); }
  bool number_unsigned(std::uint64_t item) override { return value(Json(item)); }
  bool number_float(double item, const std::string&) override { return value(Json(item)); }
  bool string(std::string& item) override { return value(Json(std::move(item))); }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (depth_ == 1) {
      top_key_ = std::move(name);
      item_ = 0;
    } else {
      keys_.back() = std::move(name);
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
    const std::size_t at = std::min(what.find("syntax error"), what.find("number overflow"));
    refuse(malformed("is not JSON: " + core::shortened(at == std::string::npos ? what : what.substr(at), 120) +
                     "; the file is cut off or edited"));
    return false;
  }

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
    const auto reached = static_cast<std::size_t>(*reached_ - text_.data());
    const std::size_t end = std::max(reached > 0 ? reached - 1 : 0, counted_);
    line_ += line_number(text_.substr(counted_), end - counted_) - 1;
    counted_ = end;
    return line_;
  }

  /// Depth 1 is the file's object, depth 2 a list such as "nodes", depth 3 one of its items.
  bool open(Json empty) {
    ++depth_;
    if (depth_ == 1 && !empty.is_object()) return refuse_here("the file must hold one JSON object");
    if (depth_ > kDeepest) return refuse_here("nests deeper than any graph does");
    if (depth_ == 2 && (top_key_ == "nodes" || top_key_ == "inputs") && empty.is_array()) return true;
    if (depth_ >= 2) {
      if (depth_ == 2 && empty.is_array()) return refuse_here("must not be a list");
      stack_.push_back(std::move(empty));
      keys_.emplace_back();
      item_line_ = stack_.size() == 1 ? line() : item_line_;
    }
    return true;
  }

  bool close() {
    --depth_;
    if (stack_.empty()) return true;
    Json finished = std::move(stack_.back());
    stack_.pop_back();
    keys_.pop_back();
    return value(std::move(finished));
  }

  bool value(Json item) {
    if (!stack_.empty()) {
      if (stack_.back().is_array()) {
        stack_.back().push_back(std::move(item));
      } else {
        if (stack_.back().size() >= kMostFields) return refuse_here("has more fields than any node does");
        stack_.back()[keys_.back()] = std::move(item);
      }
      return true;
    }
    if (depth_ == 0) return refuse_here("the file must hold one JSON object");
    const bool taken = depth_ == 1 ? take_field(item) : take_item(item);
    if (depth_ == 2) ++item_;
    return taken && !builder_.failed();
  }

  bool refuse_here(std::string message) {
    refuse(malformed(std::move(message)));
    return false;
  }

  bool take_field(const Json& item) {
    if (top_key_ == "format") {
      format_seen_ = item == "gpumem-graph";
      return format_seen_ || refuse_here("must be \"gpumem-graph\", not " + shown(item));
    }
    if (top_key_ == "version") {
      version_seen_ = item == 1;
      return version_seen_ || refuse_here("must be 1, not " + shown(item));
    }
    if (top_key_ == "edges") {
      if (item != "inferred" || nodes_seen_) return refuse_here("must be \"inferred\" and stand before \"nodes\"");
      builder_.infer_edges();
      return true;
    }
    if (top_key_ == "name") return item.is_string() || refuse_here("must be text");
    if (top_key_ == "nodes" || top_key_ == "inputs") return refuse_here("must be a list of objects");
    return refuse_here("is not a field of graph JSON");
  }

  bool take_item(const Json& item) {
    if (!item.is_object()) return refuse_here("must be a list of objects");
    return top_key_ == "inputs" ? take_input(item) : take_node(item);
  }

  bool fail(core::Error error) {
    error.place.line = item_line_;
    refuse(std::move(error));
    return false;
  }

  bool take_input(const Json& item) {
    if (nodes_seen_) return fail(malformed("\"inputs\" must stand before \"nodes\""));
    model::GraphInput input;
    for (const auto& [name, field] : item.items()) {
      if (name == "name" && field.is_string()) {
        input.name = field.get<std::string>();
      } else if (name == "shape") {
        const auto shape = shape_from(field);
        if (!shape) return fail(shape.error());
        input.shape = *shape;
      } else if (name == "dtype" && field.is_string()) {
        const auto dtype = core::dtype_from(field.get_ref<const std::string&>());
        if (!dtype) return fail(malformed("has the unknown dtype " + core::quoted(field.get<std::string>())));
        input.dtype = *dtype;
      } else {
        return fail(malformed("the field " + core::quoted(name) + " of an input is unknown or of the wrong type"));
      }
    }
    if (input.name.empty() || !item.contains("shape")) return fail(malformed("an input needs a name and a shape"));
    const auto index = static_cast<model::LayerIndex>(-1 - static_cast<std::int64_t>(names_inputs_++));
    if (!names_.try_emplace(input.name, index).second) {
      return fail(malformed("the name " + core::quoted(input.name) + " is taken"));
    }
    builder_.add_input(std::move(input));
    return true;
  }

  bool take_node(const Json& item) {
    nodes_seen_ = true;
    Node node;
    for (const auto& [name, field] : item.items()) {
      const core::Status read = read_field(name, field, node);
      if (!read) return fail(read.error());
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
    const bool added = names_.try_emplace(node.name, index).second;
    if (!added && !builder_.graph().edges_inferred()) {
      return fail(malformed("the name " + core::quoted(node.name) + " is taken"));
    }
    return !builder_.failed();
  }

  /// Everything a node may say.
  struct Node {
    std::string name;
    std::string op;
    std::string class_name;
    std::vector<std::pair<std::string, std::string>> scope;
    std::vector<core::Shape> outputs;
    std::vector<model::LayerIndex> inputs;
    std::vector<model::Attribute> attributes;
    std::optional<std::int64_t> parameters;
    std::int64_t tied_parameters = 0;
    bool frozen = false;
    bool returned = false;
    bool output_given = false;
  };

  core::Status read_field(const std::string& name, const Json& field, Node& node) {
    const auto wrong = [&] {
      return malformed("the field " + core::quoted(name) + " of a node is unknown or of the wrong type");
    };
    if (name == "name" && field.is_string()) return store(node.name, field);
    if (name == "op" && field.is_string()) return store(node.op, field);
    if (name == "class" && field.is_string()) return store(node.class_name, field);
    if (name == "inputs" && field.is_array()) return read_inputs(field, node);
    if (name == "attrs" && field.is_object()) return read_attributes(field, node);
    if (name == "output" && field.is_array()) return read_outputs(field, node);
    if (name == "parameters" && field.is_number_integer()) {
      if (field.is_number_unsigned() && field.get<std::uint64_t>() > INT64_MAX) return wrong();
      node.parameters = field.get<std::int64_t>();
      return core::Done{};
    }
    if (name == "tied_parameters" && field.is_number_integer()) {
      if (field.is_number_unsigned() && field.get<std::uint64_t>() > INT64_MAX) return wrong();
      node.tied_parameters = field.get<std::int64_t>();
      return core::Done{};
    }
    if (name == "frozen" && field.is_boolean()) {
      node.frozen = field.get<bool>();
      return core::Done{};
    }
    if (name == "returned" && field.is_boolean()) {
      node.returned = field.get<bool>();
      return core::Done{};
    }
    if (name == "scope" && field.is_array()) {
      for (const Json& step : field) {
        if (!step.is_array() || step.size() != 2 || !step[0].is_string() || !step[1].is_string()) return wrong();
        node.scope.emplace_back(step[0].get<std::string>(), step[1].get<std::string>());
      }
      return core::Done{};
    }
    return wrong();
  }

  static core::Status store(std::string& to, const Json& field) {
    to = field.get<std::string>();
    return core::Done{};
  }

  core::Status read_inputs(const Json& field, Node& node) const {
    for (const Json& input : field) {
      if (!input.is_string()) return malformed("an input of a node is named by text");
      const auto found = names_.find(input.get<std::string>());
      if (found == names_.end()) {
        return malformed("reads " + core::quoted(input.get<std::string>()) +
                         ", which is neither a graph input nor an earlier node");
      }
      node.inputs.push_back(found->second);
    }
    return core::Done{};
  }

  static core::Status read_attributes(const Json& field, Node& node) {
    for (const auto& [name, item] : field.items()) {
      auto attribute = attribute_from(item);
      if (!attribute) return malformed("attribute " + core::quoted(name) + " " + attribute.error().message);
      node.attributes.push_back({name, *std::move(attribute)});
    }
    return core::Done{};
  }

  /// A list of lists is a list of shapes, an empty list is none, any other list is one shape.
  static core::Status read_outputs(const Json& field, Node& node) {
    node.output_given = true;
    if (field.empty()) return core::Done{};
    const bool several = field[0].is_array();
    for (std::size_t index = 0; index < (several ? field.size() : 1); ++index) {
      const core::Result<core::Shape> shape = shape_from(several ? field[index] : field);
      if (!shape) return shape.error();
      node.outputs.push_back(*shape);
    }
    return core::Done{};
  }

  /// Closes and opens containers until those that the node names are open.
  void enter(const std::vector<std::pair<std::string, std::string>>& scope) {
    std::size_t same = 0;
    while (same < scope.size() && same < open_.size() && scope[same] == open_[same]) ++same;
    for (; open_.size() > same; open_.pop_back()) builder_.close_scope();
    for (; open_.size() < scope.size(); open_.push_back(scope[open_.size()])) {
      builder_.open_scope(scope[open_.size()].first, scope[open_.size()].second);
    }
  }

  std::string_view text_;
  const char* const* reached_;
  const ReadOptions& options_;
  model::GraphBuilder builder_;
  std::vector<Json> stack_;        ///< the item being read and what is open inside it
  std::vector<std::string> keys_;  ///< the key last read in each of them
  std::string top_key_;
  std::size_t depth_ = 0;
  std::size_t item_ = 0;
  std::size_t counted_ = 0;  ///< the offset whose line is line_
  std::int64_t line_ = 1;
  std::int64_t item_line_ = 0;
  std::unordered_map<std::string, model::LayerIndex> names_;
  std::size_t names_inputs_ = 0;
  std::vector<std::pair<std::string, std::string>> open_;
  std::optional<bool> outputs_given_;  ///< whether nodes have "output"; nothing before the first node
  bool format_seen_ = false;
  bool version_seen_ = false;
  bool nodes_seen_ = false;
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

GPUMEM_INLINE core::Result<model::ModelGraph> parse(std::string_view text, std::size_t begin,
                                                    const ReadOptions& options) {
  if (const std::size_t at = find_overlong(text.substr(begin)); at != std::string_view::npos) {
    core::Error error = malformed("holds a text, a number or white space of more than 1 MiB; no graph does");
    error.place.line = line_number(text, begin + at);
    return std::move(error).in_file(options.file);
  }
  const char* reached = text.data() + begin;
  Handler handler(text, &reached, options);
  Json::sax_parse(Cursor(reached, &reached), Cursor(text.data() + text.size(), &reached), &handler);
  return handler.finish();
}

}  // namespace graph_json_detail

GPUMEM_INLINE const Format& graph_json() {
  static constexpr Format kFormat = {"graph_json", "gpumem's own graph JSON", graph_json_detail::sniff,
                                     graph_json_detail::parse};
  return kFormat;
}

}  // namespace gpumem::summary
