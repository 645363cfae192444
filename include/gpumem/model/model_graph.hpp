// Input: layers from a GraphBuilder.
// Output: ModelGraph, the one normal form: every format is read into it and every estimator reads it.
// Units: parameters are elements, shapes are elements with batch size N.
//
// A million-row summary becomes a million layers, so a Layer is a small fixed record, and what varies in
// length (names, shapes, edges, attributes) is in arrays that the graph owns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"
#include "gpumem/model/training_loop.hpp"

namespace gpumem::model {

/// Index of a layer in execution order; negative values name graph inputs: -1 the first, -2 the second.
using LayerIndex = std::int32_t;
inline constexpr LayerIndex kFirstGraphInput = -1;

/// A run of elements in one of the graph's arrays.
struct Slice {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// The op of a layer that no op describes. Its parameters are counted as printed.
inline constexpr std::string_view kUnknownOp = "unknown";
/// A module of a class that no op describes, whose output is known and whose layers are not: what it keeps is a guess
/// with bounds (connect/wiring.hpp).
inline constexpr std::string_view kOpaqueOp = "opaque";
/// The attribute of layers that run under torch.no_grad(): they keep nothing, and adapters of theirs are never trained.
inline constexpr std::string_view kNoGrad = "no_grad";
/// Parameters that a container holds in addition to its children's: no computation of its own that we can see. With an
/// attribute "shape" it is the tensor itself, which other layers read.
inline constexpr std::string_view kParameterOp = "parameter";
/// A tensor that is not a parameter and gets no gradient: a buffer, a mask, token positions.
inline constexpr std::string_view kConstantOp = "constant";

/// How tensor parallel ranks split a layer, in the terms of Megatron and torchtitan. The author of a model's forward()
/// knows it; a graph without this information cannot be split.
enum class TensorSplit : std::uint8_t {
  whole,       ///< every rank has all of it
  columns,     ///< of a linear layer's output features: each rank makes some of them
  rows,        ///< of a linear layer's input features: each rank reads some of them, and the products are summed
  vocabulary,  ///< of an embedding's rows
  heads,       ///< its sizes name attention heads, of which each rank has some
  sequence,    ///< from here on each rank has some of the tokens, where the layout is sequence parallel
  tokens,      ///< it reads all tokens, of which ranks had some each
  features,    ///< it joins the features that columns made, and is followed by what `sequence` says
  mixer,       ///< every size that it names is of a state mixer's heads, of which each rank has some
};

struct Layer {
  Slice name;                    ///< the layer's own name, in the text array
  std::uint32_t scope = 0;       ///< the container it is in; 0 is the model itself
  std::uint32_t class_name = 0;  ///< index into ModelGraph::class_names()
  std::uint32_t op = 0;          ///< index into ModelGraph::ops()
  std::uint32_t line = 0;        ///< 1-based line in the summary; 0: not from a file
  Slice outputs;                 ///< printed output shapes; none: the summary prints none
  Slice inputs;                  ///< edges; none: see ModelGraph::edges_inferred()
  Slice attributes;
  std::int64_t parameters = 0;       ///< elements that this layer holds, tied ones included
  std::int64_t tied_parameters = 0;  ///< those of them that an earlier layer holds already
  bool frozen = false;               ///< not trained: no gradient, no optimizer state
  /// The model returns it in addition to what the loss reads (keys and values of a cache): it lives as long as the
  /// outputs.
  bool returned = false;
  /// No row of the summary shows it: connect/ found it between the layers that are shown, such as a sum.
  bool inferred = false;
  TensorSplit split = TensorSplit::whole;
  std::uint32_t expert = 0;  ///< which expert of a mixture it is part of, from 1; 0: of none
};

/// Whether two layers of one graph differ in nothing but their names, where they stand and what they read.
[[nodiscard]] inline bool same_but_for_place(const Layer& left, const Layer& right) {
  const bool same_attributes = left.attributes.first == right.attributes.first || left.attributes.count == 0;
  return left.op == right.op && left.class_name == right.class_name && same_attributes &&
         left.attributes.count == right.attributes.count && left.parameters == right.parameters &&
         left.tied_parameters == right.tied_parameters && left.frozen == right.frozen &&
         left.returned == right.returned && left.inferred == right.inferred && left.split == right.split &&
         left.expert == right.expert;
}

struct GraphInput {
  std::string name;
  core::Shape shape;
  core::DType dtype = core::DType::float32;

  friend bool operator==(const GraphInput&, const GraphInput&) = default;
};

/// A container that layers are in; scope 0 is the model itself.
struct Scope {
  std::uint32_t parent = 0;
  Slice name;
  std::uint32_t class_name = 0;
  std::uint32_t last = UINT32_MAX;  ///< the last scope opened inside it; UINT32_MAX: never closed
};

/// A container whose row follows those of its layers (torchsummary): its last layer is known, its first is not.
struct BlockMark {
  std::uint32_t class_name = 0;  ///< index into ModelGraph::class_names()
  std::uint32_t layers = 0;      ///< how many layers of the graph come before the row
  core::Shape output;            ///< as printed
};

/// What a summary's foot says about one sample of the model's input: "Input size (MB): 0.57", rounded as it is.
struct PrintedInput {
  std::int64_t least_bytes = 0;
  std::int64_t most_bytes = 0;
};

/// What the source says about a run besides its model, as Megatron's arguments do.
struct RunSettings {
  std::int64_t optimizer_instances = 1;  ///< distributed optimizers, each of which cuts states over its own ranks
  std::optional<std::int64_t> first_stage_blocks = {};  ///< of a pipeline's first rank; nothing: as many as others
  std::optional<std::int64_t> last_stage_blocks = {};   ///< and of its last rank
  bool embedding_counts = false;       ///< what comes before the blocks counts as one when stages share them
  bool head_counts = false;            ///< and what comes after them
  std::string pipeline_layers = {};    ///< of each stage, as Layout::pipeline_layers
  std::int64_t virtual_stages = 1;     ///< of each pipeline rank, where `pipeline_layers` makes more than one
  std::int64_t micro_batch_group = 0;  ///< that a virtual stage runs in turn; 0: as many as pipeline ranks
  bool ends_in_bf16 = false;           ///< the first and last block, where others multiply in fewer bits
  bool overlaps_products = false;      ///< with the collectives of tensor parallelism (--tp-comm-overlap)
  bool weights_in_fp8 = false;         ///< where products are in float8, weights have no other form
  bool lowers_frozen = false;          ///< frozen layers are cast to autocast's type, as with a ControlNet
  std::optional<Transformers> transformers = {};  ///< the oldest release that is likely to run it
  bool half_main_gradients = false;          ///< Megatron's main gradients are in the weights' type, not in float32
  std::int64_t cublas_workspace = 0;         ///< bytes that each thread's cuBLAS takes; 0: what the GPU's kind takes
  std::int64_t deferred_head_gradients = 0;  ///< micro-batches whose gradient of the head's weight waits for the step
  std::string offloaded_modules = {};  ///< Megatron's --offload-modules, joined by '+'; empty: all that autograd keeps
  std::int64_t least_offloaded = 0;    ///< elements of the smallest tensor that such modules send to the host
  double expert_capacity = 0.0;        ///< times the even share that an expert takes at most; 0: all that are sent
  bool even_experts = false;           ///< each expert gets as many: padded to its capacity, or forced to
  bool pads_experts = false;           ///< to their capacity
};

/// Something the reader should know, though the summary could be read.
struct Warning {
  std::string message;
  core::Place place;
};

/// Something about the model that its source does not settle, and that was taken as given. Every estimate names it
/// under `assumed`, with a wider range.
struct Doubt {
  enum class About : std::uint8_t {
    model_type,    ///< no architecture of this name is known: another one's forward() was taken
    fields,        ///< fields of the source that are not understood
    parameters,    ///< another figure of the source disagrees with the count
    quantization,  ///< the weights are stored in another type than they are trained in
    kernels,       ///< which kernels run depends on packages that the source does not name
    images,        ///< what samples bring beside text was measured little, or is left out
  };
  About about = About::model_type;
  std::string text = {};  ///< one clause for people
  bool large = true;      ///< a strict job is refused
  double times = 1.0;     ///< so many times the parameters that were counted there may be
};

struct StepRecording;

/// Thread safety: immutable; any number of threads may read one.
class ModelGraph {
 public:
  [[nodiscard]] std::span<const Layer> layers() const { return layers_; }
  [[nodiscard]] std::span<const GraphInput> graph_inputs() const { return graph_inputs_; }

  [[nodiscard]] std::string_view name(const Layer& layer) const { return text(layer.name); }
  [[nodiscard]] std::string_view op(const Layer& layer) const { return ops_[layer.op]; }
  /// The row of the layer's op; null for an unknown one. Rows must outlive the graph: the built-in ones always do.
  [[nodiscard]] const OpTraits* op_traits(const Layer& layer) const { return op_traits_[layer.op]; }
  [[nodiscard]] std::string_view class_name(const Layer& layer) const { return class_names_[layer.class_name]; }
  [[nodiscard]] std::span<const core::Shape> outputs(const Layer& layer) const { return view(shapes_, layer.outputs); }
  [[nodiscard]] std::span<const LayerIndex> inputs(const Layer& layer) const { return view(edges_, layer.inputs); }
  [[nodiscard]] Attributes attributes(const Layer& layer) const { return view(attributes_, layer.attributes); }

  /// The ops and class names that occur, each once.
  [[nodiscard]] std::span<const std::string> ops() const { return ops_; }
  [[nodiscard]] std::span<const std::string> class_names() const { return class_names_; }

  [[nodiscard]] std::size_t scopes() const { return scopes_.size(); }
  [[nodiscard]] const Scope& scope(std::uint32_t index) const { return scopes_[index]; }
  [[nodiscard]] std::string_view scope_name(std::uint32_t index) const { return text(scopes_[index].name); }
  /// Whether scope `inner` is `outer` or lies within it.
  [[nodiscard]] bool within(std::uint32_t inner, std::uint32_t outer) const;
  /// "encoder.layer.0.attention.query"; a path of more than 200 bytes is shortened at its front.
  [[nodiscard]] std::string path(const Layer& layer) const;

  /// Containers printed after their layers, in this order; none where scopes tell.
  [[nodiscard]] std::span<const BlockMark> block_marks() const { return block_marks_; }
  [[nodiscard]] std::string_view class_name(const BlockMark& mark) const { return class_names_[mark.class_name]; }
  [[nodiscard]] std::string_view class_name(const Scope& scope) const { return class_names_[scope.class_name]; }

  /// Elements of all parameters, each tied one counted once.
  [[nodiscard]] std::int64_t parameters() const { return parameters_; }
  /// The trained part of parameters().
  [[nodiscard]] std::int64_t trainable_parameters() const { return trainable_parameters_; }
  /// Layers whose op is kUnknownOp.
  [[nodiscard]] std::int64_t unknown_layers() const { return unknown_layers_; }

  /// True if the source has no edges: each layer without inputs follows some earlier layer.
  [[nodiscard]] bool edges_inferred() const { return edges_inferred_; }
  /// True if the source prints output shapes.
  [[nodiscard]] bool shapes_printed() const { return !shapes_.empty(); }

  /// Whether an input of it holds token ids.
  [[nodiscard]] bool reads_tokens() const {
    return std::any_of(graph_inputs_.begin(), graph_inputs_.end(),
                       [](const GraphInput& input) { return input.dtype == core::DType::int64; });
  }

  /// Whether experts are layers of their own.
  [[nodiscard]] bool lists_experts() const {
    return std::any_of(layers_.begin(), layers_.end(), [](const Layer& layer) { return layer.expert > 0; });
  }

  [[nodiscard]] const RunSettings& run_settings() const { return run_settings_; }

  /// What a training step of it does call by call, if the source is a recording: then the layers are its modules, which
  /// have no edges and no ops. Null otherwise.
  [[nodiscard]] const StepRecording* recording() const { return recording_.get(); }

  /// Where it came from: the file as the caller named it (empty: from memory), and the format.
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& format() const { return format_; }
  /// The architecture whose forward() made it ("llama"); empty: none did.
  [[nodiscard]] const std::string& architecture() const { return architecture_; }
  /// The model type that its config.json names, or that its class has ("qwen3_moe"); empty: neither is known.
  [[nodiscard]] const std::string& model_type() const { return model_type_; }
  /// The class of the model itself where a table prints it in its first row; else empty: a tree's outermost scope has
  /// it.
  [[nodiscard]] const std::string& table_class() const { return table_class_; }
  [[nodiscard]] std::span<const Warning> warnings() const { return warnings_; }
  [[nodiscard]] std::span<const Doubt> doubts() const { return doubts_; }
  [[nodiscard]] bool doubts(Doubt::About about) const {
    return std::ranges::any_of(doubts_, [&](const Doubt& doubt) { return doubt.about == about; });
  }
  /// What was chosen where the source leaves it to the job, such as the size of images.
  [[nodiscard]] std::span<const std::string> remarks() const { return remarks_; }
  /// Width and height of the images that the model makes where the job does not say; empty: it makes none.
  [[nodiscard]] std::span<const std::int64_t> usual_image() const { return usual_image_; }
  /// How many of a sample's tokens its images take, in a model that reads text and images; 0: none.
  [[nodiscard]] std::int64_t picture_tokens() const { return picture_tokens_; }
  /// Modules that the config's checkpoint leaves whole though its linear layers are quantised, by names or parts of
  /// paths; empty: it names none.
  [[nodiscard]] std::span<const std::string> whole_modules() const { return whole_modules_; }
  /// Layers with parameters that the same model has where samples bring images, by their paths; none if they may.
  [[nodiscard]] std::span<const std::string> left_out() const { return left_out_; }
  /// The config.json that it was made of, if what it computes depends on a job's images; else empty.
  [[nodiscard]] const std::string& config() const { return config_; }
  /// The config.json of a model whose experts are modules here, which transformers 5 may make one tensor; else empty.
  [[nodiscard]] const std::string& experts_config() const { return experts_config_; }
  /// The batch size that the summary was printed at, which its shapes are scaled from; nothing if it prints none.
  [[nodiscard]] std::optional<std::int64_t> printed_batch_size() const { return printed_batch_size_; }
  [[nodiscard]] const std::optional<PrintedInput>& printed_input() const { return printed_input_; }
  /// Elements a sample of the outputs of all layers that hold parameters, shown or not, by the summary's foot
  /// ("Forward/backward pass size (MB)" of torchinfo); nothing if it has none.
  [[nodiscard]] std::optional<std::int64_t> printed_outputs() const { return printed_outputs_; }

 private:
  friend class GraphBuilder;

  [[nodiscard]] std::string_view text(Slice slice) const {
    return std::string_view(text_).substr(slice.first, slice.count);
  }
  template <typename T>
  [[nodiscard]] static std::span<const T> view(const std::vector<T>& all, Slice slice) {
    return std::span<const T>(all).subspan(slice.first, slice.count);
  }

  std::vector<Layer> layers_;
  std::vector<GraphInput> graph_inputs_;
  std::vector<Scope> scopes_;
  std::vector<BlockMark> block_marks_;
  std::vector<std::string> ops_;
  std::vector<const OpTraits*> op_traits_;  ///< one an op
  std::vector<std::string> class_names_;
  std::vector<core::Shape> shapes_;
  std::vector<LayerIndex> edges_;
  std::vector<Attribute> attributes_;
  std::string text_;
  std::shared_ptr<const StepRecording> recording_;
  std::vector<Warning> warnings_;
  std::vector<Doubt> doubts_;
  std::vector<std::string> remarks_;
  std::vector<std::int64_t> usual_image_;
  std::int64_t picture_tokens_ = 0;
  std::vector<std::string> whole_modules_;
  std::vector<std::string> left_out_;
  std::string config_;
  std::string experts_config_;
  std::string file_;
  std::string format_;
  std::string architecture_;
  std::string model_type_;
  std::string table_class_;
  std::optional<std::int64_t> printed_batch_size_;
  std::optional<PrintedInput> printed_input_;
  RunSettings run_settings_;
  std::optional<std::int64_t> printed_outputs_;
  std::int64_t parameters_ = 0;
  std::int64_t trainable_parameters_ = 0;
  std::int64_t unknown_layers_ = 0;
  bool edges_inferred_ = false;
};

}  // namespace gpumem::model
