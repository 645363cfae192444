// Input: a graph without edges, part by part in the order of the calls, and for each part the tensor that it reads.
// Output: the same layers with edges and shapes, and the operations between them that no row shows.
//
// A layer in a table is completed from its shapes; one in a tree gets its shape from its op's rule. Where a row of
// one axis per sample follows images, the pooling and flattening between them are added, which models do in
// forward(). An activation overwrites what it reads (inplace=True, as torchvision's models have it) where a table does
// not say: if it reads a convolution, a batch norm or a sum, and nothing else has read that before.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/architectures/printed_module.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::connect {

// Bounds of what the layers of a row of an unknown class keep for backward in addition to its output, by the shapes
// that it reads and returns and its parameters, in elements a sample.
//
// No rule can know them; these are by judgement. Parameters tell how much is behind the row: with C channels in its
// output, a bottleneck block of ResNet holds 1.1 C^2 and keeps 4 tensors of its output's size, a basic block 18 C^2 and
// 4, a transformer's layer 12 C^2 and 17, an inverted residual 12 C^2 and 27. So 1.4 tensors for each C^2 are expected,
// 2 at least and 64 at most. The row may keep nothing. What it keeps at most nothing bounds: neither what it reads nor
// what it returns, between which it may enlarge, copy and join. A row of a table may hide any number of layers: 64
// tensors as large as the larger of its input and output or 3 times the expected ones, whichever is more, so that such
// an answer is open above. A module of a tree without modules of its own gets 3 times the expected ones.
//
// The foot of a torchinfo table tells more: "Forward/backward pass size (MB)" is twice the outputs of all layers that
// hold parameters, shown or not (torchinfo 1.8.0, model_statistics.py). What the shown rows leave of it is divided
// among the rows that hide layers, by the figures above. Activations, copies and what a decoder joins come on top.
// 1.2 times is expected of images. It is 1.7 where such a row enlarges them, because a decoder reads what it enlarged
// and joined, and where an output takes few multiplications: such layers are depthwise, and their activations (ReLU6,
// SiLU, Hardswish) keep what they read. Of tokens it is 2.25: 18 tensors of a transformer's layer, of which the foot
// counts 8. The bounds are 0.75 and 3.0 times, 4.0 where 1.7 is expected, and of tokens 1.0 and 4.0.

struct OpaqueRow {
  core::Shape input;
  core::Shape output;
  std::int64_t parameters = 0;
  bool hides = true;  ///< it may hold modules; false: a module of a tree without any
};

struct KeptElements {
  std::int64_t least = 0;
  std::int64_t expected = 0;
  std::int64_t most = 0;
};

/// What the foot tells of the rows that hide layers.
struct ToldByFoot {
  double share = 1.0;   ///< of the outputs of hidden layers, by what the rows' parameters say
  bool copies = false;  ///< more is kept besides: a row enlarges images, or an output takes few multiplications
};

/// Nothing without such a foot, or where the shown rows leave as much as it tells.
[[nodiscard]] std::optional<ToldByFoot> told_by_foot(const model::ModelGraph& graph);

/// `told` is told_by_foot() of the row's graph.
[[nodiscard]] KeptElements kept_by(const OpaqueRow& row, const std::optional<ToldByFoot>& told);

/// The elements of one sample; 0 where a size is not known.
[[nodiscard]] std::int64_t elements_of(const core::Shape& shape);

/// The shape of a layer's first output as the table prints it.
[[nodiscard]] core::Shape printed_shape(const model::ModelGraph& graph, const model::Layer& layer);

/// Whether the first layer of a part, as a table prints it, can read this shape, in the usual way (see complete.hpp).
[[nodiscard]] bool readable(const model::ModelGraph& graph, const Containers& containers, Part part,
                            const core::Shape& shape);

/// A container that is being called: what it reads, and what its parts have left so far.
struct Frame {
  Tensor input = 0;
  std::vector<Tensor> results;
  std::vector<Tensor> left_over;  ///< what no part read so far, as a part read something else
};

/// What a layer of a tree must read, as its attributes tell.
struct Wanted {
  ops::ExpectedWidth::Axis axis = ops::ExpectedWidth::Axis::none;
  std::optional<std::int64_t> width;  ///< nothing: any
  bool image = false;                 ///< it needs channels and two axes of pixels
  bool optional = false;              ///< a layer that went unlooked at where guesses are not wanted
};

/// Calls the parts of a container, which is called with this input; returns what it returns.
using CallContainer = Tensor (*)(architectures::Forward& forward, const architectures::Module& module, Tensor input);
/// What calls the rows of a table that are a container of this class; null: they follow each other.
using RowRules = CallContainer (*)(std::string_view class_name);

/// Remembers the first error and does nothing after it, so that rules need not look.
class Wiring final : public architectures::ModuleCalls {
 public:
  Wiring(const model::TrainingJob& job, const ops::Catalogue& ops, const Containers& containers, RowRules rules,
         model::GraphInput input);

  /// Calls a layer, or a container as its class does.
  Tensor call(Part part, Tensor input) override;
  /// Calls parts one after the other.
  Tensor chain(std::span<const Part> parts, Tensor input);
  /// An operation that no row shows; its shape follows from its inputs.
  Tensor operation(std::string_view op, std::span<const Tensor> inputs,
                   std::vector<model::Attribute> attributes = {}) override;
  /// `in_place`: left += right.
  Tensor add(Tensor left, Tensor right, bool in_place);
  Tensor multiply(Tensor left, Tensor right);
  Tensor concatenate(std::span<const Tensor> tensors);

  /// Images [N, D, h, w] as a sequence of this many tokens, [N, T, D]: h w of them, and one more in front where T
  /// counts it, which a vision transformer learns (its parameters are counted where the table has them). Else the
  /// input.
  Tensor as_sequence(Tensor images, std::int64_t tokens, std::int64_t width);

  /// What is inferred and may be wrong: a warning that names the line; an error where guesses are not wanted.
  void guess(Part where, std::string message) override;
  /// The guess at what the current layer reads contradicts the tree: images change their axes, or what enlarged them is
  /// for nothing.
  void contradict();
  /// An error where more than a little of the memory comes after the first of these.
  [[nodiscard]] std::optional<core::Error> contradicted() const;
  /// One of these was a tensor that nothing in the tree makes.
  void stand_in() { ++stand_ins_; }
  [[nodiscard]] std::int64_t stand_ins() const { return stand_ins_; }
  /// Containers of a tree whose class is in no list.
  [[nodiscard]] std::int64_t unknown_containers() const { return unknown_containers_; }
  /// How often that was so.
  [[nodiscard]] std::int64_t guesses() const { return guesses_; }
  /// The line of the first one; 0 if there is none.
  [[nodiscard]] std::int64_t first_guess() const { return first_guess_; }

  /// Whether the rows are in the order of their calls, one a call (tables); a tree has one a module.
  [[nodiscard]] bool called() const { return graph_.shapes_printed(); }
  [[nodiscard]] bool rows_are_calls() const override { return called(); }
  [[nodiscard]] const core::Shape& shape(Tensor tensor) const override;
  /// Whether the tensor's channels lie after its pixels, as linear layers and layer norms leave them.
  [[nodiscard]] bool channels_last(Tensor tensor) const override {
    return shape(tensor).rank() != 4 || made(tensor).last;
  }
  /// The size of its channels' axis; 0 if it has none of fixed size.
  [[nodiscard]] std::int64_t channels(Tensor tensor) const;
  /// Whether a container of this class is being called.
  [[nodiscard]] bool stands_in(std::string_view class_name) const override;
  /// The containers that are being called, the innermost last.
  [[nodiscard]] std::span<Frame> frames() { return frames_; }
  /// The size of a tensor on the axis that a layer looks at.
  [[nodiscard]] std::optional<std::int64_t> width_of(Tensor tensor, const Wanted& wanted) const;
  [[nodiscard]] const Container& container(Part part) const { return containers_[part.index]; }
  [[nodiscard]] std::span<const Part> parts(Part part) const override {
    return part.container ? std::span<const Part>(containers_[part.index].parts) : std::span<const Part>();
  }
  [[nodiscard]] std::string_view name(Part part) const override;
  /// The op of a layer; empty for a container or an unknown layer.
  [[nodiscard]] std::string_view op(Part part) const;
  /// The last of the sizes that a normalisation prints; nothing for another part.
  [[nodiscard]] std::optional<std::int64_t> printed_width(Part part) const override;
  /// An integer that a layer prints.
  [[nodiscard]] std::optional<std::int64_t> integer(Part part, std::string_view attribute) const {
    return part.container ? std::nullopt : graph_.attributes(graph_.layers()[part.index]).integer(attribute);
  }
  /// The same of the first layer in a part that prints one of two attributes.
  [[nodiscard]] std::optional<std::int64_t> first_width(Part part, std::string_view attribute,
                                                        std::string_view other) const override;
  /// The op of the first layer in a container.
  [[nodiscard]] std::string_view first_op(Part part) const override { return op(first_layer(part)); }
  /// The printed class of a layer or container.
  [[nodiscard]] std::string_view class_name(Part part) const override {
    return part.container ? containers_[part.index].class_name : graph_.class_name(graph_.layers()[part.index]);
  }
  [[nodiscard]] bool can_read(Part part, Tensor tensor) const override {
    return readable(graph_, containers_, part, shape(tensor));
  }
  [[nodiscard]] std::vector<Tensor> left_around() const override;

  void fail(core::Error error);
  /// The place of a layer in the summary.
  [[nodiscard]] core::Place place_of(Part layer) const {
    const model::Layer& of = graph_.layers()[layer.index];
    return {graph_.file(), of.line, graph_.path(of)};
  }
  [[nodiscard]] bool failed() const { return builder_.failed(); }
  /// Sums, products and concatenations that no row shows.
  [[nodiscard]] std::int64_t joins() const { return joins_; }
  /// Layers whose printed shape does not follow from what they were chained to.
  [[nodiscard]] std::int64_t misfits() const { return misfits_; }
  /// A row that hides layers which nothing tells: bounded, as one of an unknown class is.
  Tensor call_hidden(Part row, Tensor input);
  /// A part that may keep this many elements a sample less or more than it is wired with: a warning that names the
  /// line; an error where guesses are not wanted.
  void bounded(Part where, std::string message, std::int64_t fewer, std::int64_t more) override;
  /// How many such parts there are, and how far off what they keep may be.
  [[nodiscard]] const Guesses& bounds() const { return bounds_; }
  /// An error where such layers keep more than half of what a model takes at batch 32, and nothing tells how much.
  [[nodiscard]] std::optional<core::Error> mostly_opaque() const;
  [[nodiscard]] core::Result<model::ModelGraph> build() && { return std::move(builder_).build(); }

 private:
  struct Made {
    core::Shape shape;
    const model::OpTraits* op = nullptr;  ///< of the layer whose memory it is
    Tensor memory = 0;                    ///< the tensor whose memory it is: itself, or what an identity looks at
    std::int64_t reads = 0;
    std::optional<std::uint32_t> gate;  ///< made of a pooling to one pixel in this scope of the source
    bool last = false;                  ///< its channels lie after its pixels
  };

  /// By the forward() of its class or, of a table, by a rule for it; else part by part.
  Tensor call_container(Part part, const Container& container, Tensor input);
  Tensor call_layer(std::uint32_t index, Tensor input);
  Tensor call_printed(const model::Layer& layer, const ops::Op& op, Tensor input);
  Tensor call_declared(const model::Layer& layer, const ops::Op& op, Tensor input);
  /// LayerNorm2d: a layer norm with the channels after the pixels, and back.
  Tensor call_channels_last(const model::Layer& layer, const ops::Op& op, Tensor input);
  /// A layer of a class that is not known.
  Tensor call_opaque(const model::Layer& layer, const ops::Op& op, Tensor input);
  /// Warns of its class once.
  void name_opaque(const model::Layer& layer);
  void hold_parameters(const model::Layer& layer);
  /// What the layer holds: as printed, or by the channels that it reads.
  [[nodiscard]] std::int64_t parameters_of(const model::Layer& layer, const ops::Op& op, Tensor input) const;
  /// A layer of a tree that becomes several operations, or whose attributes follow from its class.
  [[nodiscard]] Tensor prepared(const model::Layer& layer, const ops::Op& op, Tensor input,
                                std::vector<model::Attribute>& attributes);
  /// Whether the channels of what an operation on this input leaves lie last.
  [[nodiscard]] bool leaves_last(const model::OpTraits& op, std::span<const Tensor> inputs,
                                 const model::Attributes& attributes) const;
  /// The input with what must be between it and a layer that reads a row of these many features a sample: pooling and
  /// flattening of images, the first token of a sequence. `biased`: one feature less does too.
  Tensor bridged(Tensor input, std::int64_t features, bool biased = false);
  /// The features that a layer of a tree, or what follows the dropouts from it on, reads of each row.
  [[nodiscard]] std::optional<std::int64_t> declared_features(const model::Layer& layer) const;
  Tensor emit(const model::Layer& layer, const ops::Op& op, std::span<const Tensor> inputs,
              std::span<const core::Shape> outputs, std::vector<model::Attribute> attributes);
  [[nodiscard]] bool overwrites(const model::Layer& layer, const ops::Op& op, Tensor input) const;
  void fail_at(const model::Layer& layer, core::Error error);
  /// Notes that nothing is known about the container's class: once a class with its line.
  void count_unknown(Part part);
  [[nodiscard]] Wanted wanted_by(const model::Layer& layer, const ops::Op& op) const;
  /// What a layer reads that cannot read what precedes it: a guess, or an error.
  Tensor resolved(const model::Layer& layer, const Wanted& wanted, Tensor input, bool leaves_gate);
  [[nodiscard]] Part part_of(const model::Layer& layer) const {
    return {static_cast<std::uint32_t>(&layer - graph_.layers().data()), false};
  }
  [[nodiscard]] Part first_layer(Part part) const;
  Made& made(Tensor tensor) { return tensor < 0 ? input_ : made_[static_cast<std::size_t>(tensor)]; }
  [[nodiscard]] const Made& made(Tensor tensor) const {
    return tensor < 0 ? input_ : made_[static_cast<std::size_t>(tensor)];
  }

  const model::ModelGraph& graph_;
  const ops::Catalogue& ops_;
  const Containers& containers_;
  RowRules row_rules_;
  bool strict_ = false;                ///< errors in place of guesses
  std::vector<const ops::Op*> rules_;  ///< by the graph's op index
  model::GraphBuilder builder_;
  architectures::Forward forward_;  ///< of classes that an architecture knows
  Made input_;
  std::vector<Made> made_;  ///< one a layer of the wired graph
  std::int64_t joins_ = 0;
  std::int64_t misfits_ = 0;
  std::int64_t guesses_ = 0;
  std::int64_t first_guess_ = 0;
  std::vector<Tensor> read_by_convolutions_;  ///< of a table, in their order
  std::uint32_t latest_ = 0;                  ///< the layer that was called last
  std::int64_t stand_ins_ = 0;
  std::int64_t unknown_containers_ = 0;
  std::vector<std::string_view> named_;  ///< classes of these that a warning has named
  Guesses bounds_;                       ///< the figures of the bounded parts among them
  std::vector<std::string_view> opaque_classes_;
  std::optional<ToldByFoot> told_;     ///< told_by_foot() of the graph
  std::int64_t guessed_elements_ = 0;  ///< what opaque layers keep, where no foot tells
  std::vector<Frame> frames_;
  std::optional<std::size_t> contradicted_;  ///< layers of the wired graph before the first guess that contradicts
  std::uint32_t contradicting_ = 0;          ///< the layer that it is about
  bool begun_ = false;                       ///< a layer has read something
  std::vector<bool> emitted_;                ///< by layer of the source: it was called
};

}  // namespace gpumem::connect
