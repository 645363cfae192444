// Input: a graph without edges, read from a printed module tree.
// Output: its modules by path, as the model's own code names them: "layers.0.self_attn.q_proj". A repeated module
// ("(0-15): 16 x Block") is found under each of its numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpumem/model/model_graph.hpp"

namespace gpumem::architectures {

/// A layer of a tree, or one of its containers.
struct Part {
  std::uint32_t index = 0;
  bool container = false;
};

/// Views the graph, which must outlive it.
class ModuleTree {
 public:
  /// The part of the graph that is in the container `root`.
  ModuleTree(const model::ModelGraph& graph, std::uint32_t root);

  /// Modules of a model that reads images get the names that they have since transformers 4.52 ("model.language_model",
  /// "lm_head"), where the tree has those of an earlier release.
  void name_as_since_4_52();

  [[nodiscard]] const model::ModelGraph& graph() const { return *graph_; }
  /// The class that the root prints: "LlamaForCausalLM".
  [[nodiscard]] std::string_view class_name() const { return graph_->class_name(graph_->scope(root_)); }
  /// The class of the layer or container of this path; empty: there is none.
  [[nodiscard]] std::string_view class_of(std::string_view path) const;
  /// The layer of this path, as an index into the graph's layers.
  [[nodiscard]] std::optional<std::uint32_t> layer(std::string_view path) const { return find(layers_, path); }
  /// The container of this path, as an index into the graph's scopes.
  [[nodiscard]] std::optional<std::uint32_t> scope(std::string_view path) const {
    return path.empty() ? std::optional(root_) : find(scopes_, path);
  }
  /// Whether there is a layer or a container of this path.
  [[nodiscard]] bool has(std::string_view path) const {
    return find(layers_, path).has_value() || find(scopes_, path).has_value();
  }
  /// How many modules are directly in the container of this path; 0 if there is none.
  [[nodiscard]] std::int64_t count(std::string_view path) const;
  /// A whole number that the layer prints; of a list that of the axis.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view path, std::string_view attribute,
                                                    std::size_t axis = 0) const;
  [[nodiscard]] std::optional<bool> flag(std::string_view path, std::string_view attribute) const;
  [[nodiscard]] std::optional<double> number(std::string_view path, std::string_view attribute) const;
  /// The parameters of a layer, or those that a container holds itself; 0: none are counted.
  [[nodiscard]] std::int64_t held(std::string_view path) const;
  /// Whether a linear layer shares an embedding's weight.
  [[nodiscard]] bool has_tied_head() const;
  /// The graph's layers within the root, in their order.
  [[nodiscard]] const std::vector<std::uint32_t>& layers() const { return inside_; }

 private:
  using Paths = std::unordered_map<std::string, std::uint32_t>;
  static std::optional<std::uint32_t> find(const Paths& paths, std::string_view path) {
    const auto found = paths.find(std::string(path));
    return found == paths.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] std::optional<model::Attributes> attributes(std::string_view path) const;
  void name_scopes();

  const model::ModelGraph* graph_;
  std::uint32_t root_;
  Paths scopes_;
  Paths layers_;
  std::vector<std::string> scope_paths_;  ///< by scope of the graph; only those within the root
  std::vector<std::int64_t> children_;    ///< by scope of the graph
  std::vector<std::uint32_t> inside_;
};

namespace module_tree_detail {

/// "3", or "0-31" of modules that are alike; "2-1" is a name.
inline bool is_numbered(std::string_view name) {
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos) return digits(name);
  const std::string_view first = name.substr(0, dash);
  const std::string_view last = name.substr(dash + 1);
  if (!digits(first) || !digits(last)) return false;
  return last.size() > first.size() || (last.size() == first.size() && last > first);
}

inline std::string joined(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

}  // namespace module_tree_detail

inline ModuleTree::ModuleTree(const model::ModelGraph& graph, std::uint32_t root)
    : graph_(&graph), root_(root), scope_paths_(graph.scopes()), children_(graph.scopes(), 0) {
  name_scopes();
}

/// Scopes and layers are numbered in the order of the tree, so one pass over both finds which child each is.
inline void ModuleTree::name_scopes() {
  namespace detail = module_tree_detail;
  std::uint32_t next_scope = root_ + 1;
  const auto child_of = [&](std::uint32_t parent, std::string_view name) {
    const std::int64_t number = children_[parent]++;
    return detail::joined(scope_paths_[parent], detail::is_numbered(name) ? std::to_string(number) : std::string(name));
  };
  const auto open_up_to = [&](std::uint32_t last) {
    for (; next_scope <= last && graph_->within(next_scope, root_); ++next_scope) {
      scope_paths_[next_scope] = child_of(graph_->scope(next_scope).parent, graph_->scope_name(next_scope));
      scopes_.emplace(scope_paths_[next_scope], next_scope);
    }
  };
  for (std::uint32_t index = 0; index < graph_->layers().size(); ++index) {
    const model::Layer& layer = graph_->layers()[index];
    if (!graph_->within(layer.scope, root_)) continue;
    open_up_to(layer.scope);
    const std::string_view name = graph_->name(layer);
    // A layer without a name is what the container itself holds.
    const std::string path = name.empty() ? scope_paths_[layer.scope] + "." : child_of(layer.scope, name);
    layers_.emplace(path, index);
    inside_.push_back(index);
  }
  if (graph_->scopes() > 0) open_up_to(static_cast<std::uint32_t>(graph_->scopes() - 1));
}

namespace module_tree_detail {

/// `path` with `front` in place of its first part or parts; nothing if it does not begin with them.
inline std::optional<std::string> moved(const std::string& path, std::string_view parts, std::string_view front) {
  const bool whole = path.starts_with(parts) && (path.size() == parts.size() || path[parts.size()] == '.');
  return whole ? std::optional(std::string(front) + path.substr(parts.size())) : std::nullopt;
}

}  // namespace module_tree_detail

/// Until 4.51 the text model was whole, with its head, beside the tower; that of Qwen2-VL was the body itself.
inline void ModuleTree::name_as_since_4_52() {
  const bool whole = has("language_model.model") && !has("model");
  const bool body = has("visual") && has("model.layers");
  if (!whole && !body) return;
  const auto renamed = [&](const std::string& path) {
    namespace detail = module_tree_detail;
    if (path.empty()) return path;
    if (body) {
      const bool visual = path == "visual" || path.starts_with("visual.");
      return visual ? "model." + path : detail::moved(path, "model", "model.language_model").value_or(path);
    }
    if (const auto head = detail::moved(path, "language_model.lm_head", "lm_head")) return *head;
    if (const auto text = detail::moved(path, "language_model.model", "model.language_model")) return *text;
    return path == "language_model" ? path : "model." + path;
  };
  for (Paths* const paths : {&scopes_, &layers_}) {
    Paths now;
    for (const auto& [path, index] : *paths) now.emplace(renamed(path), index);
    *paths = std::move(now);
  }
}

inline std::int64_t ModuleTree::count(std::string_view path) const {
  const auto at = path.empty() ? std::optional(root_) : find(scopes_, path);
  return at ? children_[*at] : 0;
}

inline std::string_view ModuleTree::class_of(std::string_view path) const {
  if (const auto at = find(layers_, path)) return graph_->class_name(graph_->layers()[*at]);
  const auto at = find(scopes_, path);
  return at ? graph_->class_name(graph_->scope(*at)) : std::string_view();
}

inline std::int64_t ModuleTree::held(std::string_view path) const {
  for (const std::string& each : {std::string(path), std::string(path) + "."}) {
    if (const auto at = layer(each)) return graph_->layers()[*at].parameters;
  }
  return 0;
}

inline std::optional<model::Attributes> ModuleTree::attributes(std::string_view path) const {
  const auto at = find(layers_, path);
  return at ? std::optional(graph_->attributes(graph_->layers()[*at])) : std::nullopt;
}

inline std::optional<std::int64_t> ModuleTree::integer(std::string_view path, std::string_view attribute,
                                                       std::size_t axis) const {
  const auto all = attributes(path);
  return all ? all->per_axis(attribute, axis) : std::nullopt;
}

inline std::optional<bool> ModuleTree::flag(std::string_view path, std::string_view attribute) const {
  const auto all = attributes(path);
  if (!all || all->find(attribute) == nullptr) return std::nullopt;
  return all->flag(attribute, false);
}

inline std::optional<double> ModuleTree::number(std::string_view path, std::string_view attribute) const {
  const auto all = attributes(path);
  const model::AttributeValue* value = all ? all->find(attribute) : nullptr;
  if (value == nullptr) return std::nullopt;
  if (const auto* real = std::get_if<double>(value)) return *real;
  const auto whole = all->integer(attribute);
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

inline bool ModuleTree::has_tied_head() const {
  for (const std::uint32_t index : inside_) {
    const model::Layer& layer = graph_->layers()[index];
    if (layer.tied_parameters > 0 && graph_->op(layer) == "linear") return true;
  }
  return false;
}

// Input: the printed module tree of a model whose class is known.
// Output: the fields of the config.json that such a tree comes from, as far as it shows them; the architecture then
// reads these fields as it reads a file's. What no tree prints, such as the number of heads, is that of the published
// models of these sizes, or else the class's usual one, and is said.

/// How many heads published models of a width have.
struct PublishedHeads {
  std::int64_t width = 0;  ///< hidden_size
  std::int64_t heads = 0;
  std::int64_t layers = 0;  ///< that they have; 0: any number
};

/// What tells a model's heads.
struct TreeHeads {
  std::string_view query = {};  ///< the layer that makes the queries; all heads of it are `head_width` wide
  std::string_view key = {};    ///< the layer that makes the keys; empty: as many as queries
  std::string_view norm = {};   ///< a norm of one head, if the model has it
  std::span<const PublishedHeads> published = {};
  std::int64_t usual_width = 64;  ///< of a head, in other sizes
  std::string_view heads_field = "num_attention_heads";
  std::string_view kv_heads_field = "num_key_value_heads";
  std::string_view width_field = "head_dim";
};

/// The field of a config that a tree tells which holds what no tree prints and was chosen.
inline constexpr std::string_view kAssumedField = "_assumed";

/// Writes fields. Paths are those of the body ("layers.0.mlp"), or with '/' in front those of the whole model
/// ("/lm_head"). What the tree does not show is left out: the architecture's reader names a field that it must have.
class TreeFields {
 public:
  /// `body`: the path of the model's body within the tree; empty: it is the tree.
  /// `input`: one sample of the job without the batch, as 3, 224, 224; empty: the job does not say.
  TreeFields(const ModuleTree& tree, std::string_view body, std::span<const std::int64_t> input)
      : tree_(tree), body_(body), input_(input) {}

  /// A size that a layer prints. One that no config may have counts as not printed, so sums of a few do not overflow.
  [[nodiscard]] std::optional<std::int64_t> value(std::string_view path, std::string_view attribute,
                                                  std::size_t axis = 0) const {
    const auto found = tree_.integer(whole(path), attribute, axis);
    return found && *found >= 1 && *found <= kLargestSize ? found : std::nullopt;
  }
  [[nodiscard]] bool has(std::string_view path) const { return tree_.has(whole(path)); }
  [[nodiscard]] std::int64_t count_of(std::string_view path) const { return tree_.count(whole(path)); }
  /// The parameters that a module holds itself, where the tree or the table counts them; 0: it does not.
  [[nodiscard]] std::int64_t held(std::string_view path) const { return tree_.held(whole(path)); }

  /// vocab_size, hidden_size and num_hidden_layers, of the embedding and of the list of blocks. Returns the width; 0:
  /// the embedding does not show it.
  std::int64_t body(std::string_view embedding, std::string_view blocks);
  /// num_labels, of the classifier of this name, or of the other one.
  void labels(std::string_view classifier = "/score", std::string_view otherwise = "/classifier") {
    size("num_labels", has(classifier) ? classifier : otherwise, "out_features");
  }
  /// Half of a size, of a layer that makes two tensors in one.
  void half(std::string_view field, std::string_view path, std::string_view attribute) {
    if (const auto both = value(path, attribute)) set(field, *both / 2);
  }
  /// One of so many equal parts of a size.
  void part(std::string_view field, std::string_view path, std::string_view attribute, std::int64_t parts) {
    if (const auto all = value(path, attribute)) set(field, std::max<std::int64_t>(*all / parts, 1));
  }
  /// How many times a width a size is.
  void ratio(std::string_view field, std::string_view path, std::string_view attribute, std::int64_t width);
  /// What a layer prints under this name; of a list that of the axis.
  void size(std::string_view field, std::string_view path, std::string_view attribute, std::size_t axis = 0) {
    if (const auto found = value(path, attribute, axis)) set(field, *found);
  }
  /// Several numbers.
  void list(std::string_view field, std::span<const std::int64_t> numbers) {
    std::string all;
    for (const std::int64_t number : numbers) all += (all.empty() ? "" : ", ") + std::to_string(number);
    set_text(field, "[" + all + "]");
  }
  /// How many modules a list holds.
  void count(std::string_view field, std::string_view path) {
    if (const std::int64_t found = count_of(path); found > 0) set(field, found);
  }
  /// Whether a layer has a bias, or prints another flag as true.
  void flag(std::string_view field, std::string_view path, std::string_view attribute = "bias") {
    if (const auto found = tree_.flag(whole(path), attribute)) set_flag(field, *found);
  }
  /// Whether a convolution has a bias: it prints that only where it has none.
  void convolution_bias(std::string_view field, std::string_view path) {
    set_flag(field, tree_.flag(whole(path), "bias").value_or(true));
  }
  /// The probability that a dropout prints.
  void dropout(std::string_view field, std::string_view path) {
    if (const auto found = tree_.number(whole(path), "p")) set_text(field, std::to_string(*found));
  }
  /// Whether the tree has the module.
  void there(std::string_view field, std::string_view path) { set_flag(field, has(path)); }
  /// Heads, those of keys and values, and their width.
  void heads(const TreeHeads& of);
  /// The heads of a body of this width, where that is all that tells them. Returns how wide each is; 0: nothing tells.
  std::int64_t heads_of_width(const TreeHeads& of, std::int64_t width);
  /// One sample of the job without the batch; empty: the job does not say.
  [[nodiscard]] std::span<const std::int64_t> input() const { return input_; }
  /// The side of the job's images, where it says; else the reader's usual one, and that is said.
  void image_size(std::string_view field);
  /// The function of an activation, by its class, as configs name it.
  void activation(std::string_view field, std::string_view path);
  /// The side of a square of so many patches.
  [[nodiscard]] static std::int64_t square_side(std::int64_t patches);

  void set(std::string_view field, std::int64_t number) { set_text(field, std::to_string(number)); }
  void set_flag(std::string_view field, bool value) { set_text(field, value ? "true" : "false"); }
  void set_string(std::string_view field, std::string_view value) { set_text(field, quoted(value)); }
  /// Any JSON value.
  void set_text(std::string_view field, std::string value) { fields_.emplace_back(field, std::move(value)); }
  /// Fields from now on are in an object of this name, until close().
  void open(std::string_view field) { fields_.emplace_back(field, "{"); }
  void close() { fields_.emplace_back("", "}"); }

  /// Something that no tree prints and that was chosen.
  void assume(std::string what) { assumed_.push_back(std::move(what)); }
  /// The class of the model that is read.
  [[nodiscard]] std::string_view class_name() const { return class_name_.empty() ? tree_.class_name() : class_name_; }
  /// The class of a module; empty: there is none.
  [[nodiscard]] std::string_view class_of(std::string_view path) const { return tree_.class_of(whole(path)); }
  /// Reads a model of this class within the one that is read: `reads` finds what is at `path` as if it were the body.
  template <typename Reads>
  void within(std::string_view path, std::string_view class_name, Reads reads) {
    const Place outer = {body_, class_name_, layers_};
    body_ = whole(path);
    class_name_ = class_name;
    reads();
    body_ = outer.body;
    class_name_ = outer.class_name;
    layers_ = outer.layers;
  }

  /// Modules have other names than those that are written: only their sizes are taken.
  void take_sizes_alone() { sizes_alone_ = true; }
  [[nodiscard]] bool takes_sizes_alone() const { return sizes_alone_; }
  /// Experts are one tensor each.
  void fuse_experts() { fuses_experts_ = true; }
  [[nodiscard]] bool fuses_experts() const { return fuses_experts_; }

  /// The fields as the text of a config.json.
  [[nodiscard]] std::string json() const;
  /// The same with what was chosen, under kAssumedField.
  [[nodiscard]] std::string json_with_assumed() const;
  /// What is not printed and was chosen: "12 heads as published for this width".
  [[nodiscard]] const std::vector<std::string>& assumed() const { return assumed_; }

 private:
  static constexpr std::int64_t kLargestSize = INT32_MAX;
  static constexpr std::int64_t kWidestSquare = 1 << 12;
  [[nodiscard]] std::string whole(std::string_view path) const {
    if (path.starts_with('/')) return std::string(path.substr(1));
    if (path.empty()) return body_;
    return body_.empty() ? std::string(path) : body_ + "." + std::string(path);
  }
  static std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }
  [[nodiscard]] std::int64_t head_width(const TreeHeads& of, std::int64_t width, std::int64_t queries);

  struct Place {
    std::string body;
    std::string class_name;
    std::int64_t layers = 0;
  };

  const ModuleTree& tree_;
  std::string body_;
  std::string class_name_;  ///< of a model within the tree's; empty: the tree's own is read
  std::span<const std::int64_t> input_;
  std::int64_t layers_ = 0;  ///< that body() found
  std::vector<std::pair<std::string, std::string>> fields_;
  std::vector<std::string> assumed_;
  bool fuses_experts_ = false;
  bool sizes_alone_ = false;
};

inline std::int64_t TreeFields::body(std::string_view embedding, std::string_view blocks) {
  size("vocab_size", embedding, "num_embeddings");
  size("hidden_size", embedding, "embedding_dim");
  count("num_hidden_layers", blocks);
  layers_ = count_of(blocks);
  return value(embedding, "embedding_dim").value_or(0);
}

/// Published sizes first, then the class's usual width of a head; one that divides.
inline std::int64_t TreeFields::head_width(const TreeHeads& of, std::int64_t width, std::int64_t queries) {
  for (const PublishedHeads& row : of.published) {
    if (row.width != width || (row.layers != 0 && row.layers != layers_) || queries % row.heads != 0) continue;
    assume(std::to_string(row.heads) + " heads, as published models of this width have");
    return queries / row.heads;
  }
  std::int64_t each = std::min(of.usual_width, queries);
  while (each > 1 && queries % each != 0) each /= 2;
  each = std::max<std::int64_t>(each, 1);
  assume(std::to_string(queries / each) + " heads of width " + std::to_string(each) +
         ", which the tree does not print");
  return each;
}

inline void TreeFields::heads(const TreeHeads& of) {
  const auto queries = value(of.query, "out_features");
  const std::int64_t width = value(of.query, "in_features").value_or(0);
  if (!queries || *queries <= 0) return;
  const auto normed = of.norm.empty() ? std::nullopt : value(of.norm, "normalized_shape");
  const bool says = normed && *normed > 0 && *queries % *normed == 0;
  std::int64_t each = says ? *normed : head_width(of, width, *queries);
  const auto keys = of.key.empty() ? queries : value(of.key, "out_features");
  // Keys narrower than a head: there is one head of keys, and it is this wide.
  if (keys && *keys > 0 && *keys % each != 0 && *queries % *keys == 0) each = *keys;
  set(of.heads_field, *queries / each);
  if (keys && *keys > 0 && !of.key.empty() && *keys % each == 0) set(of.kv_heads_field, *keys / each);
  if (*queries != width || says) set(of.width_field, each);
}

inline std::int64_t TreeFields::heads_of_width(const TreeHeads& of, std::int64_t width) {
  if (width <= 0) return 0;
  const std::int64_t each = head_width(of, width, width);
  set(of.heads_field, width / each);
  return each;
}

inline void TreeFields::ratio(std::string_view field, std::string_view path, std::string_view attribute,
                              std::int64_t width) {
  const auto found = value(path, attribute);
  // Half a part more: what reads it cuts the product down to a whole number.
  if (found && width > 0)
    set_text(field, std::to_string((static_cast<double>(*found) + 0.5) / static_cast<double>(width)));
}

inline void TreeFields::image_size(std::string_view field) {
  constexpr std::int64_t kUsual = 224;
  const bool given = input_.size() == 3 && input_.back() > 0;
  if (given) return set(field, input_.back());
  set(field, kUsual);
  assume("images of 224 x 224, which the tree does not print");
}

inline std::int64_t TreeFields::square_side(std::int64_t patches) {
  std::int64_t side = 1;
  while ((side + 1) * (side + 1) <= patches && side < kWidestSquare) ++side;
  return side;
}

inline std::string TreeFields::json_with_assumed() const {
  std::string chosen;
  for (const std::string& each : assumed_) chosen += (chosen.empty() ? "" : ", ") + quoted(each);
  std::string text = json();
  text.pop_back();
  return text + ", " + quoted(kAssumedField) + ": [" + chosen + "]}";
}

inline std::string TreeFields::json() const {
  std::string text = "{";
  bool first = true;
  for (const auto& [field, value] : fields_) {
    const bool closes = field.empty();
    if (!first && !closes) text += ", ";
    if (!closes) text += quoted(field) + ": ";
    text += value;
    first = value == "{";
  }
  return text + "}";
}

}  // namespace gpumem::architectures
