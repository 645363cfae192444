// Input: layers, one after the other, from a format's reader or from a program.
// Output: a ModelGraph in which every edge points backwards, every size is positive and every total fits 64 bits; or
// the first error.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <unordered_map>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::model {

/// One layer as its source describes it. Views need to live only until add() returns.
struct LayerSpec {
  std::string_view name;
  std::string_view class_name = {};  ///< as printed; empty: the op's name
  const OpTraits* op = nullptr;      ///< null: an unknown layer
  std::span<const core::Shape> outputs = {};
  std::span<const LayerIndex> inputs = {};
  std::span<const Attribute> attributes = {};
  std::optional<std::int64_t> parameters = {};  ///< as printed; empty: counted from the attributes
  std::int64_t tied_parameters = 0;
  bool frozen = false;
  bool returned = false;
  bool inferred = false;  ///< no row of the source shows it
  TensorSplit split = TensorSplit::whole;
  std::uint32_t expert = 0;  ///< see Layer
  std::int64_t line = 0;
};

/// Remembers the first error and ignores what follows it, so that callers check once, in build().
/// Thread safety: one thread at a time.
class GraphBuilder {
 public:
  /// `file` and `format` are kept for messages and results.
  explicit GraphBuilder(std::string_view format, std::string_view file = {});

  /// Makes room for this many layers of one output each: growing million-row arrays costs more than parsing.
  void reserve(std::size_t layers, std::size_t attributes = 0);

  /// Adds a layer and returns its index. With an op that holds parameters, no printed count and attributes
  /// that do not tell it, the graph is in error: unknown is not zero.
  LayerIndex add(const LayerSpec& spec);
  /// The same with these attributes, which it moves from, in place of the spec's.
  LayerIndex add(LayerSpec spec, std::vector<Attribute>&& attributes);

  /// The same as an added layer, with another name, outputs, inputs and line: in the container that is open now.
  LayerIndex add_like(LayerIndex other, std::string_view name, std::span<const core::Shape> outputs,
                      std::span<const LayerIndex> inputs, std::int64_t line);

  /// Layers added from now on are in this container, until close_scope().
  void open_scope(std::string_view name, std::string_view class_name);
  void close_scope();

  /// The layers added last are in a container of this class, which leaves this shape; where it began is not known.
  void mark_block(std::string_view class_name, const core::Shape& output);

  /// The container that is open now; 0 is the model itself.
  [[nodiscard]] std::uint32_t current_scope() const { return scope_; }

  void add_input(GraphInput input);
  /// The source has no edges: layers follow each other as they were added.
  void infer_edges() { graph_.edges_inferred_ = true; }
  /// Marks parameters of an added layer as held by an earlier one.
  void tie(LayerIndex layer, std::int64_t parameters);
  /// What the source prints as its total; a disagreement with ours becomes a warning.
  void printed_total(std::int64_t parameters, std::int64_t line);
  /// The batch size that the source's shapes are printed at.
  void printed_batch_size(std::int64_t batch_size) { graph_.printed_batch_size_ = batch_size; }
  /// The layers are the modules of a recorded training step.
  void recording(std::shared_ptr<const StepRecording> recording) { graph_.recording_ = std::move(recording); }
  void architecture(std::string_view name, std::string_view model_type = {}) {
    graph_.architecture_ = name;
    graph_.model_type_ = model_type;
  }
  void table_class(std::string_view name) { graph_.table_class_ = name; }
  void run_settings(const RunSettings& settings) { graph_.run_settings_ = settings; }
  /// Of a finished graph, the oldest release of transformers that is likely to run it: the later of these.
  static void add_release(ModelGraph& graph, std::optional<Transformers> release) {
    graph.run_settings_.transformers = std::max(graph.run_settings_.transformers, release);
  }
  static void experts_config(ModelGraph& graph, std::string_view text) { graph.experts_config_ = text; }
  void printed_input(PrintedInput input) { graph_.printed_input_ = input; }
  void printed_outputs(std::int64_t elements) { graph_.printed_outputs_ = elements; }
  void config(std::string_view text) { graph_.config_ = text; }
  void leave_whole(std::string module) { graph_.whole_modules_.push_back(std::move(module)); }
  void leave_out(std::string path) { leave_out(graph_, std::move(path)); }
  /// The same of a finished graph.
  static void leave_out(ModelGraph& graph, std::string path) { graph.left_out_.push_back(std::move(path)); }
  void usual_image(std::vector<std::int64_t> sides) { graph_.usual_image_ = std::move(sides); }
  void picture_tokens(std::int64_t tokens) { graph_.picture_tokens_ = tokens; }
  void remark(std::string text) { graph_.remarks_.push_back(std::move(text)); }
  static void add_remark(ModelGraph& graph, std::string text) { graph.remarks_.push_back(std::move(text)); }
  /// After kMostWarnings only their number is kept.
  void warn(std::string message, std::int64_t line);
  /// A warning of a finished graph, by who holds it to something else.
  static void add_warning(ModelGraph& graph, std::string message) {
    graph.warnings_.push_back({std::move(message), core::Place{graph.file_, 0, {}}});
  }
  /// The doubt, and its warning.
  void doubt(Doubt doubt);
  static void add_doubt(ModelGraph& graph, Doubt doubt) {
    add_warning(graph, doubt.text);
    graph.doubts_.push_back(std::move(doubt));
  }
  /// Fails the graph, unless it has failed before.
  void fail(core::Error error);

  [[nodiscard]] bool failed() const { return error_.has_value(); }
  [[nodiscard]] const ModelGraph& graph() const { return graph_; }

  /// The finished graph. Errors: the first one met; malformed_input if it has no layers; overflow if the
  /// parameters of all layers do not fit 64 bits.
  [[nodiscard]] core::Result<ModelGraph> build() &&;

 private:
  static constexpr std::size_t kMostWarnings = 20;
  /// Finds names by views of them.
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  /// Where each name is in an array of names. Few names make most layers of a summary: those seen last are looked
  /// at before any hash is made.
  struct NameIndex {
    std::unordered_map<std::string, std::uint32_t, NameHash, std::equal_to<>> all;
    std::array<std::uint32_t, 256> recent{};
  };

  [[nodiscard]] std::optional<std::int64_t> accept(const LayerSpec& spec);
  LayerIndex append(const LayerSpec& spec, std::int64_t parameters, Slice attributes);
  [[nodiscard]] core::Place place_of(const LayerSpec& spec) const;
  [[nodiscard]] bool sound(const LayerSpec& spec);
  [[nodiscard]] std::optional<std::int64_t> count_parameters(const LayerSpec& spec);
  [[nodiscard]] Slice keep_text(std::string_view text);
  template <typename Keep>
  [[nodiscard]] Slice share_attributes(std::span<const Attribute> attributes, Keep keep);
  static std::uint32_t intern(std::vector<std::string>& names, NameIndex& index, std::string_view name);

  ModelGraph graph_;
  NameIndex op_index_;
  NameIndex class_index_;
  /// Attributes that layers had last. Repeated blocks have the same ones, which the graph holds once.
  std::array<Slice, 64> recent_attributes_{};
  std::uint32_t scope_ = 0;
  std::int64_t more_warnings_ = 0;
  std::optional<std::pair<std::int64_t, std::int64_t>> printed_total_;  ///< count, line
  std::optional<core::Error> error_;
  core::Pace pace_;
};

}  // namespace gpumem::model
