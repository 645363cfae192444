// Input: a table of a model (torchinfo) whose class an architecture knows. Its rows have classes and sizes, no names.
// Output: the module tree of the same model. The rows are in the order of the calls, so another model of the class,
// with as many blocks, tells the names of the rows; the rows tell the sizes. A table that is cut, or whose rows are not
// what the class calls, has none: it is chained as tables of unknown classes are.
// Source: torchinfo 1.8.0, torchinfo.py (apply_hooks: a row is added before its module's forward()).
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/model/graph_builder.hpp"

namespace gpumem::architectures {

/// A table as a tree, and what one sample of its input was: tokens, or channels, height and width.
struct TableTree {
  model::ModelGraph graph;
  std::vector<std::int64_t> sample;
};

namespace printed_table_detail {

/// Sizes of a small model, under the names of all configs. None of them says which modules are called.
inline constexpr std::string_view kSizes =
    R"("vocab_size": 1024, "hidden_size": 256, "n_embd": 256, "d_model": 256, "dim": 256, "intermediate_size": 512, )"
    R"("ffn_dim": 512, "hidden_dim": 512, "d_ff": 512, "d_inner": 512, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512, )"
    R"("num_attention_heads": 2, "n_head": 2, "n_heads": 2, "num_heads": 2, "encoder_attention_heads": 2, )"
    R"("decoder_attention_heads": 2, "max_position_embeddings": 512, "n_positions": 512)";
/// The fields that say how many blocks there are.
inline constexpr std::array<std::string_view, 6> kCounts = {"num_hidden_layers", "n_layer",        "n_layers",
                                                            "num_layers",        "encoder_layers", "decoder_layers"};
/// Fields by which models of a type call other modules than most of the type, or in another order.
struct Form {
  std::string_view model_type;  ///< empty: any
  std::string_view fields;
};
inline constexpr auto kForms =
    std::to_array<Form>({{"", ""},
                         {"opt", R"(, "do_layer_norm_before": false)"},
                         {"opt", R"(, "do_layer_norm_before": false, "word_embed_proj_dim": 128)"},
                         {"falcon", R"(, "new_decoder_architecture": true, "num_kv_heads": 2)"},
                         {"falcon", R"(, "multi_query": false, "parallel_attn": false, "alibi": true, "bias": true)"},
                         {"gpt_neox", R"(, "use_parallel_residual": false)"},
                         {"stablelm", R"(, "use_parallel_residual": true)"},
                         {"deepseek_v3", R"(, "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 64, )"
                                         R"("qk_rope_head_dim": 64, "v_head_dim": 64)"},
                         {"t5", R"(, "feed_forward_proj": "gated-gelu")"}});

/// A class whose tables are read so.
struct Known {
  const Architecture* architecture = nullptr;
  const ModelClass* row = nullptr;
  Head head = Head::none;
  std::string_view class_name;
};

/// A model of the class with so many blocks.
inline std::optional<model::ModelGraph> likeness(const Known& known, std::int64_t blocks, std::string_view form,
                                                 const model::Vocabulary& vocabulary, std::string_view sizes = kSizes) {
  std::string text = R"({"model_type": ")" + std::string(known.row->model_type) + R"(", "architectures": [")" +
                     std::string(known.class_name) + R"("], )" + std::string(sizes) + std::string(form);
  for (const std::string_view count : kCounts) {
    text += ", \"" + std::string(count) + "\": " + std::to_string(blocks);
  }
  text += "}";  // which the document views
  const core::Result<core::JsonDocument> document = core::JsonDocument::parse(text);
  if (!document) return std::nullopt;
  ConfigFields config(document->root());
  model::GraphBuilder builder("config_json");
  Forward forward(builder, vocabulary);
  known.architecture->write(config, known.head, forward);
  if (!config.status()) return std::nullopt;
  core::Result<model::ModelGraph> made = std::move(builder).build();
  return made ? std::optional(*std::move(made)) : std::nullopt;
}

/// Whether a layer is what a module computes with a parameter of its own, as Gemma's norms do. A row shows the module.
inline bool is_inside_of_module(const model::ModelGraph& graph, const model::Layer& layer) {
  return layer.scope != 0 && graph.class_name(layer) == graph.op(layer);
}

/// The calls of modules that hold parameters, which every table shows. Bare parameters are no modules; norms without
/// any, as OLMo has, are of a class that a table's reader need not know.
inline std::vector<const model::Layer*> modules_of(const model::ModelGraph& graph) {
  std::vector<const model::Layer*> modules;
  for (const model::Layer& layer : graph.layers()) {
    const model::OpTraits* op = graph.op_traits(layer);
    const bool holds = op != nullptr && op->parameters != nullptr && op->name != model::kParameterOp;
    if (!holds || graph.name(layer).empty()) continue;
    const bool plain = op->norm != model::NormKind::none && !graph.attributes(layer).flag("elementwise_affine", true);
    if (!plain || is_inside_of_module(graph, layer)) modules.push_back(&layer);
  }
  return modules;
}

inline bool same_ops(const model::ModelGraph& left, const std::vector<const model::Layer*>& of_left,
                     const model::ModelGraph& right, const std::vector<const model::Layer*>& of_right) {
  return std::equal(
      of_left.begin(), of_left.end(), of_right.begin(), of_right.end(),
      [&](const model::Layer* one, const model::Layer* other) { return left.op(*one) == right.op(*other); });
}

/// The sizes of a Swin whose stages have the blocks that the table shows.
inline std::string stages_of(const model::ModelGraph& table) {
  std::string depths;
  std::string heads;
  for (std::uint32_t stage = 0; stage < table.scopes(); ++stage) {
    if (table.class_name(table.scope(stage)) != "SwinStage") continue;
    std::int64_t blocks = 0;
    for (std::uint32_t scope = stage + 1; scope < table.scopes() && table.within(scope, stage); ++scope) {
      blocks += table.class_name(table.scope(scope)) == "SwinLayer" ? 1 : 0;
    }
    depths += (depths.empty() ? "" : ", ") + std::to_string(blocks);
    heads += heads.empty() ? "1" : ", 1";
  }
  return R"("depths": [)" + depths + R"(], "num_heads": [)" + heads + "]";
}

/// A model of the class that calls what the table's rows show; nothing if none does.
inline std::optional<model::ModelGraph> namesake(const model::ModelGraph& table,
                                                 const std::vector<const model::Layer*>& rows, const Known& known,
                                                 const model::Vocabulary& vocabulary) {
  if (known.row->model_type == "swin") {
    auto found = likeness(known, 1, {}, vocabulary, stages_of(table));
    return found && same_ops(table, rows, *found, modules_of(*found)) ? std::move(found) : std::nullopt;
  }
  for (const auto& [type, form] : kForms) {
    if (!type.empty() && type != known.row->model_type) continue;
    const auto one = likeness(known, 1, form, vocabulary);
    const auto two = likeness(known, 2, form, vocabulary);
    if (!one || !two) continue;
    const std::size_t least = modules_of(*one).size();
    const std::size_t most = modules_of(*two).size();
    const bool grows = most > least && rows.size() >= least && (rows.size() - least) % (most - least) == 0;
    const auto blocks = grows ? static_cast<std::int64_t>(1 + (rows.size() - least) / (most - least)) : 0;
    if (blocks < 1 || blocks > ConfigFields::kMostLayers) continue;
    auto found = likeness(known, blocks, form, vocabulary);
    if (found && same_ops(table, rows, *found, modules_of(*found))) return found;
  }
  return std::nullopt;
}

/// What a row prints, as the attributes that print(model) shows of its module.
class RowSizes {
 public:
  explicit RowSizes(const model::ModelGraph& table) : table_(table) {}

  /// `bias`: of the module where its weight is another's, whose row tells no count. Nothing where the row does not tell
  /// the sizes of such a module.
  std::optional<std::vector<model::Attribute>> of(const model::Layer& row, bool bias) {
    const std::int64_t out = last_axis(row);
    const model::OpTraits& op = *table_.op_traits(row);
    if (op.norm == model::NormKind::layer || op.norm == model::NormKind::rms) return norm(row, out);
    if (op.name == "embedding") return embedding(row, out);
    if (op.name == "linear") return linear(row, out, bias);
    if (op.name == "conv1d") return frames(row);
    if (op.name == "conv2d") return patches(row);
    return std::nullopt;
  }
  /// A width that a later row may read.
  void remember(const model::Layer& row) { widths_.insert(last_axis(row)); }
  /// Of one sample; empty: no row tells.
  [[nodiscard]] const std::vector<std::int64_t>& sample() const { return sample_; }
  /// Whether the row is a module that holds an embedding's weight.
  [[nodiscard]] bool tied(const model::Layer& row) const {
    const std::string_view op = table_.op_traits(row)->name;
    return row.parameters == 0 && (op == "linear" || op == "embedding");
  }

 private:
  [[nodiscard]] std::int64_t axis(const model::Layer& row, std::size_t at) const {
    const auto outputs = table_.outputs(row);
    const bool there = outputs.size() == 1 && at < outputs[0].rank();
    const bool fixed = there && outputs[0][at].kind == core::Dim::Kind::fixed;
    return fixed && outputs[0][at].size <= ConfigFields::kLargestSize ? outputs[0][at].size : 0;
  }
  [[nodiscard]] std::int64_t last_axis(const model::Layer& row) const {
    const auto outputs = table_.outputs(row);
    return outputs.size() == 1 && outputs[0].rank() > 0 ? axis(row, outputs[0].rank() - 1) : 0;
  }

  /// Of ids [N, S]; or [S, N], as XLNet turns them: then the first axis is no multiple of the batch, or many.
  [[nodiscard]] std::int64_t tokens_of(const model::Layer& row) const {
    const auto outputs = table_.outputs(row);
    if (outputs.size() != 1 || outputs[0].rank() != 3) return axis(row, 1);
    const core::Dim& first = outputs[0][0];
    if (first.size <= 1) return axis(row, 1);
    if (first.kind == core::Dim::Kind::fixed) return axis(row, 0);
    const std::int64_t each = axis(row, 1);
    if (each == 0) return 0;
    return first.size <= ConfigFields::kLargestSize / each ? first.size * each : 0;
  }

  [[nodiscard]] std::optional<std::vector<model::Attribute>> norm(const model::Layer& row, std::int64_t out) const {
    if (out < 1) return std::nullopt;
    return std::vector<model::Attribute>{{"normalized_shape", out}, {"bias", row.parameters > out}};
  }

  std::optional<std::vector<model::Attribute>> embedding(const model::Layer& row, std::int64_t out) {
    const auto shared =
        std::find_if(embeddings_.begin(), embeddings_.end(), [&](const auto& one) { return one.second == out; });
    if (tied(row) && shared != embeddings_.end()) {
      return std::vector<model::Attribute>{{"num_embeddings", shared->first}, {"embedding_dim", out}};
    }
    if (out < 1 || row.parameters < out || row.parameters % out != 0) return std::nullopt;
    const std::int64_t rows = row.parameters / out;
    embeddings_.emplace_back(rows, out);
    if (sample_.empty() && tokens_of(row) > 0) sample_ = {tokens_of(row)};
    return std::vector<model::Attribute>{{"num_embeddings", rows}, {"embedding_dim", out}};
  }

  std::optional<std::vector<model::Attribute>> linear(const model::Layer& row, std::int64_t out, bool bias) {
    if (out < 1 || row.parameters % out != 0) return std::nullopt;
    const auto made = [&](std::int64_t in, bool biased) {
      return std::vector<model::Attribute>{{"in_features", in}, {"out_features", out}, {"bias", biased}};
    };
    if (tied(row)) {
      const auto shared =
          std::find_if(embeddings_.begin(), embeddings_.end(), [&](const auto& one) { return one.first == out; });
      if (shared == embeddings_.end()) return std::nullopt;
      return made(shared->second, bias);
    }
    const std::int64_t in = row.parameters / out;
    if (widths_.contains(in)) return made(in, false);
    return widths_.contains(in - 1) ? std::optional(made(in - 1, true)) : std::nullopt;
  }

  /// A convolution over frames, of three of them as in Whisper.
  std::optional<std::vector<model::Attribute>> frames(const model::Layer& row) {
    constexpr std::int64_t kKernel = 3;
    const std::int64_t out = axis(row, 1);
    const std::int64_t inputs = out < 1 || row.parameters % out != 0 ? 0 : row.parameters / out - 1;
    if (inputs < kKernel || inputs % kKernel != 0) return std::nullopt;
    widths_.insert(out);
    return std::vector<model::Attribute>{
        {"in_channels", inputs / kKernel}, {"out_channels", out}, {"kernel_size", kKernel}};
  }

  /// A convolution that cuts an image into patches, whose stride is its kernel.
  std::optional<std::vector<model::Attribute>> patches(const model::Layer& row) {
    constexpr std::int64_t kColours = 3;
    constexpr std::int64_t kWidest = 256;
    const std::int64_t out = axis(row, 1);
    const std::int64_t inputs = out < 1 || row.parameters % out != 0 ? 0 : row.parameters / out - 1;
    std::int64_t side = 1;
    while (side < kWidest && side * side * kColours < inputs) ++side;
    if (side * side * kColours != inputs || !sample_.empty() || axis(row, 2) < 1 || axis(row, 3) < 1) {
      return std::nullopt;
    }
    sample_ = {kColours, axis(row, 2) * side, axis(row, 3) * side};
    widths_.insert(out);
    const std::vector<std::int64_t> both = {side, side};
    return std::vector<model::Attribute>{
        {"in_channels", kColours}, {"out_channels", out}, {"kernel_size", both}, {"stride", both}};
  }

  const model::ModelGraph& table_;
  std::set<std::int64_t> widths_;
  std::vector<std::pair<std::int64_t, std::int64_t>> embeddings_;  ///< rows and width, in the order of the calls
  std::vector<std::int64_t> sample_;
};

/// Builds the tree: the names of one graph, the sizes of the other.
class TreeOfRows {
 public:
  TreeOfRows(const model::ModelGraph& table, const model::ModelGraph& names, const Known& known)
      : table_(table), names_(names), known_(known), builder_(table.format(), table.file()), sizes_(table) {}

  std::optional<TableTree> build(const std::vector<const model::Layer*>& rows,
                                 const std::vector<const model::Layer*>& named) {
    builder_.infer_edges();
    builder_.open_scope({}, known_.class_name);
    auto row = rows.begin();
    auto name = named.begin();
    std::vector<const model::Layer*> own;  // of containers that the next row is in
    for (const model::Layer& layer : table_.layers()) {
      sizes_.remember(layer);
      if (table_.op(layer) == model::kParameterOp && layer.scope != 0) own.push_back(&layer);
      if (row == rows.end() || *row != &layer) continue;
      for (const model::Layer* held : std::exchange(own, {})) {
        if (!table_.within(layer.scope, held->scope)) return std::nullopt;  // no row tells its container's name
        add_own(*held, layer, **name);
      }
      if (!add(layer, **name)) return std::nullopt;
      ++row, ++name;
    }
    enter({});
    builder_.close_scope();
    // What is left is of no row, as the foot tells: the calls may hold it, and whoever asks compares the sums.
    if (builder_.failed() || sizes_.sample().empty()) return std::nullopt;
    core::Result<model::ModelGraph> made = std::move(builder_).build();
    if (!made) return std::nullopt;
    return TableTree{*std::move(made), sizes_.sample()};
  }

 private:
  bool add(const model::Layer& row, const model::Layer& named) {
    if (row.frozen) return false;
    if (!seen_.insert(names_.path(named)).second) return true;  // the module is called again
    const auto attributes = sizes_.of(row, names_.attributes(named).flag("bias", true));
    if (!attributes) return false;
    const bool tied = sizes_.tied(row);
    std::vector<std::uint32_t> scopes = scopes_of(named);
    std::string_view name = names_.name(named);
    if (is_inside_of_module(names_, named) && !scopes.empty()) {
      name = names_.scope_name(scopes.back());
      scopes.pop_back();
    }
    enter(scopes);
    const model::LayerIndex index = builder_.add({.name = name,
                                                  .class_name = table_.class_name(row),
                                                  .op = table_.op_traits(row),
                                                  .attributes = *attributes,
                                                  .parameters = tied ? std::nullopt : std::optional(row.parameters),
                                                  .line = row.line});
    if (tied && !builder_.failed()) {
      builder_.tie(index, builder_.graph().layers()[static_cast<std::size_t>(index)].parameters);
    }
    if (row.tied_parameters > 0) builder_.tie(index, row.tied_parameters);
    return !builder_.failed();
  }

  /// What a container holds itself. `row` is the first one after it and lies in it, so the container is as many modules
  /// around the row as in the table.
  void add_own(const model::Layer& held, const model::Layer& row, const model::Layer& named) {
    std::size_t between = is_inside_of_module(names_, named) ? 1 : 0;
    for (std::uint32_t at = row.scope; at != held.scope && at != 0; at = table_.scope(at).parent) ++between;
    std::vector<std::uint32_t> scopes = scopes_of(named);
    scopes.resize(scopes.size() - std::min(between, scopes.size()));
    enter(scopes);
    builder_.add({.name = {},
                  .class_name = table_.class_name(held),
                  .op = table_.op_traits(held),
                  .parameters = held.parameters,
                  .frozen = held.frozen,
                  .line = held.line});
  }

  /// The modules around a layer, the outermost first. Where the class is the body alone, that is the tree itself.
  [[nodiscard]] std::vector<std::uint32_t> scopes_of(const model::Layer& named) const {
    std::vector<std::uint32_t> scopes;
    for (std::uint32_t at = named.scope; at != 0; at = names_.scope(at).parent) scopes.push_back(at);
    std::reverse(scopes.begin(), scopes.end());
    const bool bare = known_.head == Head::none || known_.head == Head::encoder;
    const bool body = bare && !scopes.empty() && names_.scope_name(scopes.front()) == known_.row->body;
    if (body) scopes.erase(scopes.begin());
    return scopes;
  }

  void enter(const std::vector<std::uint32_t>& scopes) {
    const auto apart = std::mismatch(open_.begin(), open_.end(), scopes.begin(), scopes.end());
    for (auto closed = apart.first; closed != open_.end(); ++closed) builder_.close_scope();
    for (auto opened = apart.second; opened != scopes.end(); ++opened) {
      builder_.open_scope(names_.scope_name(*opened), names_.class_name(names_.scope(*opened)));
    }
    open_ = scopes;
  }

  const model::ModelGraph& table_;
  const model::ModelGraph& names_;
  const Known& known_;
  model::GraphBuilder builder_;
  RowSizes sizes_;
  std::vector<std::uint32_t> open_;
  std::set<std::string> seen_;
};

}  // namespace printed_table_detail

}  // namespace gpumem::architectures
