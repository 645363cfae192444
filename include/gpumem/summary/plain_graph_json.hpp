// Input: graph JSON (graph_json.hpp) as programs print it: plain tokens (core/json.hpp), each field once, of its
// type.
// Output: the graph, read in one pass without values in between; or nothing, and then the full parser reads the text
// again and writes the error message. This parser accepts only what the full parser accepts, and makes the same graph.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "gpumem/core/deadline.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/node_linker.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::summary {

/// `begin` is the offset of the file's brace.
[[nodiscard]] std::optional<model::ModelGraph> read_plain_graph_json(std::string_view text, std::size_t begin,
                                                                     const ReadOptions& options);

namespace plain_graph_json_detail {

/// Every member that reads something returns false to give up.
class Reader {
 public:
  Reader(std::string_view text, std::size_t begin, const ReadOptions& options)
      : tokens_(text.substr(begin)), linker_(options), counted_(text.data()) {
    linker_.reserve(text.size());
  }

  std::optional<model::ModelGraph> read() {
    const auto field = [&](std::string_view name) { return read_field(name); };
    const bool whole = read_object(field) && tokens_.skip_space() && tokens_.at_end();
    if (!whole || !format_seen_ || !version_seen_ || linker_.builder().failed()) return std::nullopt;
    core::Result<model::ModelGraph> graph = std::move(linker_.builder()).build();
    if (!graph) return std::nullopt;
    return *std::move(graph);
  }

 private:
  static constexpr std::size_t kMostAttributes = 64;  // each is compared with those before it

  // --- Lists and objects ----------------------------------------------------------------------------------------

  /// `read` is called at the first byte of each item.
  template <typename Read>
  bool read_list(Read read) {
    if (!tokens_.take('[') || !tokens_.skip_space()) return false;
    if (tokens_.take(']')) return true;
    do {
      if (pace_.late() || !tokens_.skip_space() || !read() || !tokens_.skip_space()) return false;
    } while (tokens_.take(','));
    return tokens_.take(']');
  }

  /// `read` is called with each key, at the first byte of its value.
  template <typename Read>
  bool read_object(Read read) {
    if (!tokens_.take('{') || !tokens_.skip_space()) return false;
    if (tokens_.take('}')) return true;
    do {
      std::string_view name;
      if (pace_.late() || !tokens_.skip_space() || !tokens_.take_text(name) || !tokens_.skip_space()) return false;
      if (!tokens_.take(':') || !tokens_.skip_space() || !read(name) || !tokens_.skip_space()) return false;
    } while (tokens_.take(','));
    return tokens_.take('}');
  }

  bool read_text(std::string_view& text) { return tokens_.take_text(text); }

  bool read_integer(std::int64_t& integer) {
    core::JsonNumber number;
    if (!tokens_.take_number(number) || number.is_real) return false;
    integer = number.integer;
    return true;
  }

  bool read_flag(bool& flag) {
    flag = tokens_.front() == 't';
    return tokens_.take_word(flag ? "true" : "false");
  }

  /// Of a size that is known: compared without a call.
  template <std::size_t kSize>
  static bool is(std::string_view text, const char (&word)[kSize]) {
    return text.size() == kSize - 1 && std::memcmp(text.data(), word, kSize - 1) == 0;
  }

  /// False if the field was in the object before.
  static bool first(unsigned& seen, unsigned field) {
    const bool again = (seen & (1U << field)) != 0;
    seen |= 1U << field;
    return !again;
  }

  // --- The file -------------------------------------------------------------------------------------------------

  bool read_field(std::string_view name) {
    if (is(name, "nodes")) return read_list([&] { return read_node(); });
    if (is(name, "inputs")) return read_list([&] { return read_input(); });
    std::string_view text;
    if (is(name, "format")) return read_text(text) && (format_seen_ = is(text, "gpumem-graph"));
    if (is(name, "name")) return read_text(text);
    if (is(name, "edges")) {
      if (linker_.has_nodes() || !read_text(text) || !is(text, "inferred")) return false;
      linker_.builder().infer_edges();
      return true;
    }
    if (is(name, "printed_outputs")) {
      std::int64_t elements = 0;
      if (!read_integer(elements) || elements < 0) return false;
      linker_.builder().printed_outputs(elements);
      return true;
    }
    std::int64_t version = 0;
    return is(name, "version") && read_integer(version) && (version_seen_ = version == 1);
  }

  bool read_input() {
    if (linker_.has_nodes()) return false;
    model::GraphInput input;
    unsigned seen = 0;
    const auto field = [&](std::string_view name) {
      std::string_view text;
      if (is(name, "shape")) return first(seen, 0) && read_shape(input.shape);
      if (is(name, "name")) {
        if (!first(seen, 1) || !read_text(text)) return false;
        input.name = text;
        return true;
      }
      if (!is(name, "dtype") || !first(seen, 2) || !read_text(text)) return false;
      const auto dtype = core::dtype_from(text);
      input.dtype = dtype.value_or(input.dtype);
      return dtype.has_value();
    };
    if (!read_object(field) || input.name.empty() || (seen & 1U) == 0) return false;
    return static_cast<bool>(linker_.add_input(std::move(input)));
  }

  // --- Nodes ----------------------------------------------------------------------------------------------------

  bool read_node() {
    node_.clear();
    const std::int64_t line = count_line();
    unsigned seen = 0;
    if (!read_object([&](std::string_view name) { return read_node_field(name, seen); })) return false;
    return linker_.add_node(node_, line) && !linker_.builder().failed();
  }

  /// Counts on from where it was asked last.
  std::int64_t count_line() {
    const std::string_view since(counted_, static_cast<std::size_t>(tokens_.at() - counted_));
    line_ += line_number(since, since.size()) - 1;
    counted_ = tokens_.at();
    return line_;
  }

  bool read_node_field(std::string_view name, unsigned& seen) {
    if (is(name, "name")) return first(seen, 0) && read_text(node_.name);
    if (is(name, "op")) return first(seen, 1) && read_text(node_.op);
    if (is(name, "class")) return first(seen, 2) && read_text(node_.class_name);
    if (is(name, "inputs")) return first(seen, 3) && read_list([&] { return read_edge(); });
    if (is(name, "attrs")) {
      return first(seen, 4) && read_object([&](std::string_view attribute) { return read_attribute(attribute); });
    }
    if (is(name, "parameters")) return first(seen, 5) && read_integer(node_.parameters.emplace());
    if (is(name, "scope")) return first(seen, 6) && read_list([&] { return read_scope_step(); });
    if (is(name, "output")) return first(seen, 7) && read_outputs();
    if (is(name, "tied_parameters")) return first(seen, 8) && read_integer(node_.tied_parameters);
    if (is(name, "frozen")) return first(seen, 9) && read_flag(node_.frozen);
    return is(name, "returned") && first(seen, 10) && read_flag(node_.returned);
  }

  bool read_edge() {
    std::string_view name;
    if (!read_text(name)) return false;
    const std::optional<model::LayerIndex> index = linker_.find(name);
    if (!index) return false;
    node_.inputs.push_back(*index);
    return true;
  }

  bool read_scope_step() {
    ScopeStep step;
    std::size_t texts = 0;
    const auto text = [&] { return ++texts <= 2 && read_text(texts == 1 ? step.first : step.second); };
    if (!read_list(text) || texts != 2) return false;
    node_.scope.push_back(step);
    return true;
  }

  /// A list of lists is a list of shapes, an empty list is none, any other list is one shape.
  bool read_outputs() {
    node_.output_given = true;
    core::Shape alone;
    std::size_t dims = 0;
    const auto item = [&] {
      if (tokens_.front() != '[') {
        ++dims;
        return read_dim(alone);
      }
      return dims == 0 && read_shape(node_.outputs.emplace_back());
    };
    if (!read_list(item) || (dims > 0 && !node_.outputs.empty())) return false;
    if (dims > 0) node_.outputs.push_back(alone);
    return true;
  }

  // --- Dimensions -----------------------------------------------------------------------------------------------

  bool read_shape(core::Shape& shape) {
    return read_list([&] { return read_dim(shape); });
  }

  bool read_dim(core::Shape& shape) {
    if (tokens_.front() != '"') {
      std::int64_t size = 0;
      return read_integer(size) && size > 0 && shape.push_back(core::Dim::fixed(size));
    }
    std::string_view text;
    if (!read_text(text)) return false;
    const std::optional<core::Dim> dim = dim_from_text(text);
    return dim && shape.push_back(*dim);
  }

  // --- Attributes -----------------------------------------------------------------------------------------------

  bool read_attribute(std::string_view name) {
    std::vector<model::Attribute>& all = node_.attributes;
    const auto same = [&](const model::Attribute& known) { return known.name == name; };
    if (all.size() == kMostAttributes || std::any_of(all.begin(), all.end(), same)) return false;
    model::Attribute& attribute = all.emplace_back();
    attribute.name = name;
    return read_value(attribute.value);
  }

  bool read_value(model::AttributeValue& value) {
    switch (tokens_.front()) {
      case '[': return read_values(value);
      case '"': {
        std::string_view text;
        if (!read_text(text)) return false;
        value.emplace<std::string>(text);
        return true;
      }
      case 't':
      case 'f': return read_flag(value.emplace<bool>());
      default: break;
    }
    core::JsonNumber number;
    if (!tokens_.take_number(number)) return false;
    if (number.is_real) {
      value.emplace<double>(number.real);
    } else {
      value.emplace<std::int64_t>(number.integer);
    }
    return true;
  }

  /// Integers; or dimensions, of which at least one is a text, and -1 keeps one.
  bool read_values(model::AttributeValue& value) {
    dims_.clear();
    bool integers = true;
    bool sizes = true;
    const auto item = [&] {
      core::Dim dim;
      if (tokens_.front() == '"') {
        std::string_view text;
        if (!read_text(text)) return false;
        const std::optional<core::Dim> told = dim_from_text(text);
        if (!told || told->kind == core::Dim::Kind::unknown) return false;
        integers = false;
        dim = *told;
      } else {
        if (!read_integer(dim.size)) return false;
        sizes = sizes && (dim.size == -1 || dim.size > 0);
      }
      dims_.push_back(dim);
      return true;
    };
    if (!read_list(item) || (!integers && !sizes)) return false;
    if (!integers) {
      value.emplace<std::vector<core::Dim>>(dims_);
      return true;
    }
    auto& list = value.emplace<std::vector<std::int64_t>>();
    list.reserve(dims_.size());
    for (const core::Dim& dim : dims_) list.push_back(dim.size);
    return true;
  }

  core::JsonTokens tokens_;
  NodeLinker linker_;
  GraphNode node_;
  std::vector<core::Dim> dims_;  ///< of the list being read
  const char* counted_;          ///< the place whose line is line_
  std::int64_t line_ = 1;
  bool format_seen_ = false;
  bool version_seen_ = false;
  core::Pace pace_;
};

}  // namespace plain_graph_json_detail

inline std::optional<model::ModelGraph> read_plain_graph_json(std::string_view text, std::size_t begin,
                                                              const ReadOptions& options) {
  return plain_graph_json_detail::Reader(text, begin, options).read();
}

}  // namespace gpumem::summary
