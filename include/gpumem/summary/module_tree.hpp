// Input: what print(model) prints for a PyTorch module, with or without ", N params" after each module.
// Output: its leaves in the order of the tree; no shapes, no edges.
//
//   ResNet(
//     (conv1): Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2), padding=(3, 3), bias=False)
//     (layer1): Sequential(
//       (0): Bottleneck( ...
//     (layers): ModuleList(
//       (0-11): 12 x BertLayer( ...
//
// Read by brackets, not by indentation, and without recursion: a tree may be 100,000 levels deep. Where counts
// are printed, what a container's count exceeds its children's by are parameters of its own, and what it falls
// short by are parameters tied within it.
#pragma once

#include <algorithm>
#include <array>
#include <set>

#include "gpumem/architectures/architectures.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/module_repr.hpp"
#include "gpumem/summary/table_reader.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& module_tree();

namespace module_tree_detail {

/// A container that is open.
struct Frame {
  std::string_view name;
  std::string_view class_name;
  std::int64_t line = 0;
  Lines inside;                   ///< the place after its first line, to read it again from
  std::int64_t repeats_left = 0;  ///< how often it is still to be read again ("12 x")
  std::int64_t times = 1;         ///< how often its parent counts it
  core::Checked children = 0;     ///< parameters that its children print
  bool counted = true;            ///< every child prints a count
  std::size_t first_layer = 0;    ///< index of the first layer inside it
  core::Checked tensors = 0;      ///< elements of the parameters that it prints among its children
  std::string_view arguments;     ///< printed above its children
};

class Reader {
 public:
  Reader(std::string_view text, std::size_t begin, const ReadOptions& options)
      : text_(text), lines_(text, begin), options_(options), builder_("module_tree", options.file) {
    builder_.infer_edges();
  }

  core::Result<model::ModelGraph> read() {
    bool done = false;
    while (!builder_.failed() && !done && lines_.next()) {
      const std::string_view line = trim(lines_.line());
      if (!line.empty()) done = read_line(line);
    }
    if (!done && !builder_.failed()) {
      refuse("the tree ends with " + std::to_string(frames_.size()) + " modules still open; the file is cut off");
    }
    if (!builder_.failed()) read_foot();
    return std::move(builder_).build();
  }

 private:
  /// A tree of a few lines must not become a graph of gigabytes ("(0-99): 100 x A(", ten levels deep).
  static constexpr std::size_t kMostLayers = 250'000;
  /// A limit for what is read again, too: twice what the largest mixture-of-experts models repeat.
  static constexpr std::size_t kMostRepeatedBytes = std::size_t{16} << 20;
  /// Smaller embeddings hold positions or types, not a vocabulary that an output layer could share.
  static constexpr std::int64_t kFewestTokens = 64;

  void refuse(core::Error error) {
    if (error.place.line == 0) error.place.line = lines_.number();
    builder_.fail(std::move(error));
  }
  void refuse(std::string message) { refuse({core::ErrorCode::malformed_input, std::move(message), {}}); }

  /// Takes bytes that are read again off the budget; false, and an error, if it is spent.
  bool repeat(std::size_t bytes) {
    repeated_bytes_ += bytes;
    if (repeated_bytes_ <= kMostRepeatedBytes) return true;
    refuse("its repeated modules make a tree of more than 16 MiB");
    return false;
  }

  /// True once the root is closed.
  bool read_line(std::string_view line) {
    const core::Result<ModuleLine> cut = cut_module_line(line);
    if (!cut) {
      refuse(cut.error());
      return false;
    }
    switch (cut->kind) {
      case ModuleLine::Kind::leaf:
        // Children have names: what has none among them is text (torchvision's transform of detection nets).
        if (cut->name.empty() && !frames_.empty()) return text_line(line);
        leaf(*cut);
        return frames_.empty();
      case ModuleLine::Kind::opens: open(*cut); return false;
      case ModuleLine::Kind::closes: return close(*cut);
      case ModuleLine::Kind::tensor:
        if (!frames_.empty()) frames_.back().tensors += core::Checked(*cut->parameters) * core::Checked(cut->repeats);
        return false;
      case ModuleLine::Kind::text: return text_line(line);
    }
    return false;
  }

  /// A module with children prints its own arguments on lines above them; anything below is no part of a tree.
  bool text_line(std::string_view line) {
    // "(64,), eps=1e-06" are arguments, too: of a layer norm that holds its activation.
    const bool sizes = line.size() > 1 && line.front() == '(' && is_digit(line[1]);
    const bool arguments = !frames_.empty() && (line.front() != '(' || sizes);
    if (!arguments) {
      refuse(core::quoted(line) + " is not a line of a module tree; the file is cut off or edited");
    } else if (frames_.back().arguments.empty()) {
      frames_.back().arguments = line;
    }
    return false;
  }

  void open(const ModuleLine& line) {
    Frame frame{.name = line.name,
                .class_name = line.class_name,
                .line = lines_.number(),
                .inside = lines_,
                .repeats_left = line.repeats - 1,
                .times = line.repeats,
                .first_layer = builder_.graph().layers().size(),
                .tensors = 0,
                .arguments = {}};
    // Not only the root: DataParallel, torch.compile and adapters wrap the model.
    if (model_class_.empty() && architectures::ties_heads(line.class_name)) model_class_ = line.class_name;
    known_class_ = known_class_ || architectures::reads_trees_of(line.class_name);
    frames_.push_back(frame);
    builder_.open_scope(line.name, line.class_name);
  }

  void leaf(const ModuleLine& line) {
    const model::OpTraits* op = options_.vocabulary->find_tree(line.class_name);
    static constexpr std::array<std::string_view, 4> kUnnamed = {"0", "1", "2", "3"};
    attributes_.clear();
    parse_arguments(line.arguments, op == nullptr ? model::Names(kUnnamed) : op->positional, attributes_);
    count_child(line.parameters, line.repeats);
    if (!line.parameters) counts_missing_ = true;
    std::optional<std::int64_t> parameters = line.parameters;
    if (op == nullptr && !is_bare_container(line.class_name)) op = opaque_op(parameters);
    if (op == nullptr && line.parameters.value_or(0) > 0 && !options_.lenient) {
      refuse({core::ErrorCode::unknown_layer,
              "layer " + core::quoted(line.name) + " (" + core::quoted(line.class_name) + ") holds " +
                  core::with_separators(*line.parameters) +
                  " parameters, and no op of that name is known; lenient reading (`lenient`) estimates a lower bound",
              {}});
      return;
    }
    if (op == nullptr && is_bare_container(line.class_name)) return;  // an empty container
    if (op == nullptr && !line.parameters && !options_.lenient && prints_sizes(model::Attributes(attributes_))) {
      refuse({core::ErrorCode::unknown_layer,
              "layer " + core::quoted(line.name) + " has the unknown class " + core::quoted(line.class_name) +
                  " and prints sizes, so it may hold parameters; print the tree with parameter counts, or read it "
                  "leniently (`lenient`) for a lower bound",
              {}});
      return;
    }
    const bool bare = op != nullptr && op->norm == model::NormKind::rms && !default_norm_width();
    if (bare && known_class_ && !parameters) parameters = 0;  // the architecture has its width
    if (!parameters && op != nullptr && op->name == model::kParameterOp) {
      // An empty ParameterDict(), or one that shows its tensors in one line.
      parameters = tensor_elements(line.arguments).value();
      attributes_.clear();
    }
    if (line.class_name == "Conv1D" && !resolve_conv1d(line)) return;
    if (op == nullptr && !line.parameters) {
      builder_.warn("layer " + core::quoted(line.name) + " has the unknown class " + core::quoted(line.class_name) +
                        ", taken to hold no parameters",
                    lines_.number());
    }
    for (std::int64_t copy = 0; copy < line.repeats && !builder_.failed(); ++copy) {
      if (copy > 0 && !repeat(1 + line.name.size() + line.arguments.size())) return;
      add(line, op, parameters);
    }
  }

  /// The op of a layer of an unknown class that holds parameters, counted as printed or else as a matrix of the sizes
  /// that it prints; null if nothing tells them, and where the tree is read leniently.
  const model::OpTraits* opaque_op(std::optional<std::int64_t>& parameters) const {
    if (options_.lenient) return nullptr;
    if (!parameters) parameters = printed_matrix(model::Attributes(attributes_));
    return parameters.value_or(0) > 0 ? options_.vocabulary->find_op(model::kOpaqueOp) : nullptr;
  }

  /// RMS norms of older transformers and of diffusers print no size; they have that of the tensor that they read.
  /// False: no layer before it tells that.
  bool default_norm_width() {
    if (model::Attributes(attributes_).find("normalized_shape") != nullptr) return true;
    if (widths_.empty()) return false;
    attributes_.push_back({"normalized_shape", widths_.back()});
    return true;
  }

  void add(const ModuleLine& line, const model::OpTraits* op, std::optional<std::int64_t> parameters) {
    if (repeated_bytes_ > 0 && builder_.graph().layers().size() >= kMostLayers) {
      refuse("its repeated modules make more than " + core::with_separators(kMostLayers) + " layers");
      return;
    }
    const bool unknown = op == nullptr;
    const model::LayerIndex index = builder_.add({.name = line.name,
                                                  .class_name = line.class_name,
                                                  .op = op,
                                                  .attributes = attributes_,
                                                  .parameters = unknown ? parameters.value_or(0) : parameters,
                                                  .line = lines_.number()});
    if (!builder_.failed()) remember_widths(index);
  }

  /// Widths that a later Conv1D() may read or a tied output layer may share.
  void remember_widths(model::LayerIndex index) {
    const model::Attributes attributes(attributes_);
    const auto rows = attributes.integer("num_embeddings");
    if (rows && *rows < kFewestTokens) return;
    for (const std::string_view name : {"embedding_dim", "normalized_shape", "out_features"}) {
      const auto width = attributes.per_axis(name, 0);
      if (width && *width > 0 && (widths_.empty() || widths_.back() != *width)) widths_.push_back(*width);
    }
    const auto width = attributes.integer("embedding_dim");
    if (rows && width) remember_embedding(index, *rows, *width);
    const auto in = attributes.integer("in_features");
    const auto out = attributes.integer("out_features");
    const bool matches = in && out && embeddings_.contains({*out, *in});
    if (!matches) return;
    heads_.push_back({index, core::Checked(*in) * core::Checked(*out), lines_.number()});
    if (architectures::ties_head(model_class_, *in, *out, builder_.graph().class_names())) tied_model_ = model_class_;
  }

  /// Encoder-decoder models of HuggingFace print one embedding three times: "shared", and in the encoder and the
  /// decoder as "embed_tokens".
  void remember_embedding(model::LayerIndex index, std::int64_t rows, std::int64_t width) {
    embeddings_.emplace(rows, width);
    const model::Layer& layer = builder_.graph().layers()[static_cast<std::size_t>(index)];
    if (builder_.graph().name(layer) == "shared") shared_ = {rows, width};
    if (builder_.graph().name(layer) != "embed_tokens" || shared_ != std::pair(rows, width)) return;
    builder_.tie(index, layer.parameters);
    builder_.warn("this embedding has the sizes of the model's shared one and is counted with it", lines_.number());
  }

  /// HuggingFace's Conv1D prints neither of its sizes in older versions. It holds nx * nf weights and nf
  /// biases, and reads a width that some layer before it made.
  bool resolve_conv1d(const ModuleLine& line) {
    const model::Attributes printed(attributes_);
    const auto nf = printed.integer("nf");
    const auto nx = printed.integer("nx");
    if (nf && nx) {
      attributes_.push_back({"in_features", *nx});
      attributes_.push_back({"out_features", *nf});
      return true;
    }
    constexpr std::size_t kMostTries = 64;
    if (line.parameters) {
      std::size_t tries = 0;
      for (auto width = widths_.rbegin(); width != widths_.rend() && tries < kMostTries; ++width, ++tries) {
        if (*line.parameters == 0 || *line.parameters % (*width + 1) != 0) continue;
        attributes_.push_back({"in_features", *width});
        attributes_.push_back({"out_features", *line.parameters / (*width + 1)});
        return true;
      }
    }
    refuse({core::ErrorCode::missing_information,
            line.parameters ? "Conv1D() holds " + core::with_separators(*line.parameters) +
                                  " parameters, which fit no width seen before it"
                            : std::string("Conv1D() prints no sizes; print the tree with parameter counts"),
            {}});
    return false;
  }

  void count_child(std::optional<std::int64_t> parameters, std::int64_t times) {
    if (frames_.empty()) return;
    if (parameters) frames_.back().children += core::Checked(*parameters) * core::Checked(times);
    if (!parameters) frames_.back().counted = false;
  }

  bool close(const ModuleLine& line) {
    if (frames_.empty()) {
      refuse("closes a module that was not opened");
      return false;
    }
    settle(line);
    builder_.close_scope();
    Frame& frame = frames_.back();
    // A module that makes no layers makes none the second time either.
    const bool made_layers = builder_.graph().layers().size() > frame.first_layer;
    if (frame.repeats_left > 0 && made_layers && !builder_.failed()) {
      --frame.repeats_left;
      again(frame);
      return false;
    }
    const std::int64_t times = frame.times;
    frames_.pop_back();
    count_child(line.parameters, times);
    return frames_.empty();
  }

  /// Reads the lines of a repeated module once more, under the same name.
  void again(Frame& frame) {
    // What all of them read again is known when the first one ends.
    const std::size_t bytes = lines_.offset() - frame.inside.offset();
    const auto more = static_cast<std::size_t>(frame.repeats_left) + 1;
    const bool too_many = more > (kMostRepeatedBytes - repeated_bytes_) / std::max<std::size_t>(bytes, 1);
    if (!repeat(too_many ? kMostRepeatedBytes + 1 : bytes)) return;
    frame.children = 0;
    frame.tensors = 0;
    frame.counted = true;
    frame.first_layer = builder_.graph().layers().size();
    lines_ = frame.inside;
    builder_.open_scope(frame.name, frame.class_name);
  }

  /// What a closing container's own count tells in addition to its children's.
  void settle(const ModuleLine& line) {
    const Frame& frame = frames_.back();
    const model::OpTraits* op = options_.vocabulary->find_torch(frame.class_name);
    // A class of the model's own may have the name of a layer, as ChatGLM's Embedding; it prints no sizes.
    const bool made_layers = builder_.graph().layers().size() > frame.first_layer;
    const bool namesake = op != nullptr && made_layers && frame.arguments.empty() && op->parameters != nullptr &&
                          !op->projects() && op->name != model::kParameterOp;
    if (op != nullptr && !namesake) return settle_op(frame, op, line);
    if (!line.parameters && frame.tensors.value() != 0) {
      if (frame.tensors.valid()) return own_parameters(frame, *frame.tensors.value());
      return refuse({core::ErrorCode::overflow, "its tensors do not fit 64 bits", {}});
    }
    if (!line.parameters || !frame.counted) return;
    const auto children = frame.children.value();
    if (!children) {
      refuse({core::ErrorCode::overflow, "the parameters of its children do not fit 64 bits", {}});
      return;
    }
    if (*line.parameters > *children) own_parameters(frame, *line.parameters - *children);
    if (*line.parameters < *children) tied_within(frame, *children - *line.parameters);
  }

  /// A container whose class is an op (MultiheadAttention, ParameterList) is a layer as well.
  void settle_op(const Frame& frame, const model::OpTraits* op, const ModuleLine& line) {
    std::optional<std::int64_t> own;
    if (op->name == model::kParameterOp) own = frame.tensors.value();
    if (line.parameters && frame.counted) own = *line.parameters - frame.children.value().value_or(0);
    ModuleLine layer;
    layer.name = "";
    layer.class_name = frame.class_name;
    const auto layers = builder_.graph().layers();
    attributes_.clear();
    parse_arguments(frame.arguments, op->positional, attributes_);
    if (op->projects() && layers.size() > frame.first_layer) {
      // The tree prints its output projection only; the packed input projection has the same width.
      const model::Attributes projection = builder_.graph().attributes(layers.back());
      if (const auto width = projection.integer("in_features")) attributes_.push_back({"embed_dim", *width});
      attributes_.push_back({"bias", projection.flag("bias", true)});
    }
    add(layer, op, own && *own >= 0 ? own : std::nullopt);
  }

  void own_parameters(const Frame& frame, std::int64_t own) {
    const model::LayerIndex index = builder_.add({.name = "",
                                                  .class_name = frame.class_name,
                                                  .op = options_.vocabulary->find_op(model::kParameterOp),
                                                  .parameters = own,
                                                  .line = frame.line});
    if (builder_.failed()) return;
    if (architectures::ties_bias(frame.class_name)) {
      builder_.tie(index, own);
      return;
    }
    builder_.warn("container " + core::quoted(frame.name) + " (" + core::quoted(frame.class_name) + ") holds " +
                      core::with_separators(own) + " parameters of its own; what it computes with them is not printed",
                  frame.line);
  }

  /// PyTorch's parameters() counts a shared tensor once: a container that prints less than its children shows
  /// that they share.
  void tied_within(const Frame& frame, std::int64_t tied) {
    const auto shares = [&](const Head& head) {
      return !head.tied && static_cast<std::size_t>(head.layer) >= frame.first_layer && head.weight.value() == tied;
    };
    // The output layer is among the last; looking at all of them for each container would take their square.
    constexpr std::size_t kMostTries = 64;
    const auto end = heads_.rbegin() + static_cast<std::ptrdiff_t>(std::min(heads_.size(), kMostTries));
    const auto head = std::find_if(heads_.rbegin(), end, shares);
    if (head != end) {
      builder_.tie(head->layer, tied);
      head->tied = true;
      return;
    }
    builder_.warn("container " + core::quoted(frame.name) + " (" + core::quoted(frame.class_name) + ") prints " +
                      core::with_separators(tied) +
                      " parameters less than its children: some are shared, and are counted apiece",
                  frame.line);
  }

  void tie_heads() {
    const bool tied_model = !tied_model_.empty();
    for (const Head& head : heads_) {
      const auto weight = head.weight.value();
      if (head.tied || !weight) continue;
      if (tied_model) builder_.tie(head.layer, *weight);
      builder_.warn(
          std::string("this layer has the sizes of an embedding; ") +
              (tied_model ? std::string(tied_model_) + " ties them by default: " + core::with_separators(*weight) +
                                " parameters are counted once"
                          : "if they are tied, " + core::with_separators(*weight) + " parameters are counted twice"),
          head.line);
    }
  }

  void read_foot() {
    tie_heads();
    if (counts_missing_) {
      builder_.warn(
          "print(model) shows each module once: further calls of it, functional calls, and parameters that "
          "containers hold are not in it, and not in the estimate",
          0);
    }
    summary::read_foot(module_tree(), text_, lines_, builder_);
  }

  /// A layer with the transposed sizes of an embedding: most likely the output layer.
  struct Head {
    model::LayerIndex layer = 0;
    core::Checked weight;
    std::int64_t line = 0;
    bool tied = false;
  };

  std::string_view text_;
  Lines lines_;
  const ReadOptions& options_;
  model::GraphBuilder builder_;
  std::vector<Frame> frames_;
  std::vector<model::Attribute> attributes_;
  std::vector<std::int64_t> widths_;
  std::set<std::pair<std::int64_t, std::int64_t>> embeddings_;  ///< rows and width
  std::vector<Head> heads_;
  std::optional<std::pair<std::int64_t, std::int64_t>> shared_;  ///< rows and width of the embedding named so
  std::string_view model_class_;  ///< a class that ties its output layer in some sizes, if one was met
  bool known_class_ = false;      ///< a class that an architecture has was opened
  std::string_view tied_model_;   ///< the same, if it does in the sizes that were met
  bool counts_missing_ = false;
  std::size_t repeated_bytes_ = 0;
};

/// "Name(" by itself on a line and a child or a closing bracket below it; or, in a text of one line, a leaf.
inline std::optional<std::size_t> sniff(std::string_view text, std::size_t from) {
  std::size_t at = from;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trim(text.substr(at, end - at));
    const bool opens = line.ends_with("(") && is_identifier(line.substr(0, line.size() - 1));
    if (opens) {
      const std::size_t below = text.find_first_not_of(" \t\r\n", end);
      if (below == std::string_view::npos || text[below] == '(' || text[below] == ')') return at;
    }
    at = end + 1;
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (from > 0 || first == std::string_view::npos) return std::nullopt;
  const std::string_view whole = text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
  const std::size_t open = whole.find('(');
  const bool one_line = open != std::string_view::npos && whole.find('\n') == std::string_view::npos;
  const bool leaf = one_line && whole.ends_with(")") && is_identifier(whole.substr(0, open));
  if (leaf) return first;
  return std::nullopt;
}

inline core::Result<model::ModelGraph> parse(std::string_view text, std::size_t begin, const ReadOptions& options) {
  return Reader(text, begin, options).read();
}

}  // namespace module_tree_detail

inline const Format& module_tree() {
  static constexpr Format kFormat = {"module_tree", "print(model) in PyTorch", module_tree_detail::sniff,
                                     module_tree_detail::parse};
  return kFormat;
}

}  // namespace gpumem::summary
