// Input: the calls of a model's forward(), as an architecture makes them: one line a call, in the order of the original
// code; and the model's printed module tree, if that is where its sizes come from.
// Output: a ModelGraph with every edge. Each layer has the name and the container that it has in the model's module
// tree. Shapes have no batch dimension. Nothing depends on the number of tokens, which the job gives.
//
// An architecture says only names, sizes and order. Of a printed tree each call looks up its layer: the activation, the
// dropout and the line are the printed ones, and the parameters must be as many as are printed.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/architectures/module_tree.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/model/named.hpp"
#include "gpumem/model/op_traits.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::architectures {

class ModuleCalls;  // printed_module.hpp

/// What a layer or operation leaves, or a graph input.
using Tensor = model::LayerIndex;
using Sizes = std::vector<std::int64_t>;
using Split = model::TensorSplit;
using model::names;

/// A linear layer's options.
struct Linear {
  bool bias = true;
  bool tied = false;      ///< its weight is an embedding's, which an earlier layer holds
  bool returned = false;  ///< the model hands its output out
  std::string_view class_name = "Linear";
  Split split = Split::whole;  ///< over tensor parallel ranks
  /// Backward adds the weight's gradient to a main gradient itself (Megatron's gradient accumulation fusion).
  bool fused_gradient = false;
  bool grouped = false;           ///< one of the products of a grouped one (TransformerEngine's GroupedLinear)
  std::int64_t tensor_ranks = 0;  ///< tensor parallel ranks that share it; 0: all
  bool recomputed = false;        ///< part of a function that makes its input again in backward
  bool outlives_loss = false;     ///< its output is held until backward has run, in programs that keep no outputs too
  bool out_of_order = false;      ///< its module is registered right behind one that runs after it
};

/// How a language model is called as the part of another model that reads text: its own architecture writes it, and
/// this is what the model around it changes (vision_language.hpp).
struct TextPart {
  /// Names and classes of the modules that stand in place of the text model's own outermost one ("model").
  std::vector<std::pair<std::string, std::string>> modules = {};
  std::size_t around = 0;  ///< how many of them are the outer model's: open while `embed` runs
  std::string head = {};   ///< before the names of layers outside of that module: "language_model."
  /// Called with the token ids and their embeddings, before the blocks; what the text model reads in their place.
  std::function<Tensor(Tensor ids, Tensor embedded)> embed = {};
  /// Called with what each block leaves.
  std::function<Tensor(Tensor hidden, std::int64_t block)> after_block = {};
  /// Rotary positions: one table for all samples; one a sample; or three a sample, of which each layer joins sections.
  enum class Positions : std::uint8_t { shared, by_sample, by_section };
  Positions positions = Positions::shared;
  bool masks = false;  ///< attention gets a mask, by which an image's tokens see each other
  /// The outer class calls the head itself: it neither scales nor caps the logits as the text model's own class does.
  bool plain_logits = false;
};

/// In which jobs a call is made that leaves what it reads as it is, or only copies it: the code of a class differs by
/// transformers' release, and some calls depend on the job.
enum class When : std::uint8_t {
  until_4_51,
  since_4_52,          ///< and in all later releases
  before_4_56,         ///< sdpa_attention_forward copied queries, keys and values until then (transformers#40315)
  in_4_52,             ///< copies of classes that came to that function in 4.52, and no later
  in_4_52_masked,      ///< the same, where attention has a mask
  heads_are_repeated,  ///< by copies, and not by the kernel (transformers' use_gqa_in_sdpa, since 4.54)
  masked,
  before_5_0,
  before_5_5,
  masked_or_before_5_0,  ///< masks of encoders that are added to scores, since then only where a batch has padding
  cached,                ///< by transformers 4.56 and later
  checkpointed
};
/// The attribute of such a call, and its values.
inline constexpr std::string_view kWhen = "when";
inline constexpr std::array<model::Named<When>, 12> kWhens = {
    {{When::until_4_51, "until 4.51"},
     {When::since_4_52, "since 4.52"},
     {When::before_4_56, "before 4.56"},
     {When::in_4_52, "in 4.52"},
     {When::in_4_52_masked, "in 4.52, with a mask"},
     {When::heads_are_repeated, "heads are repeated"},
     {When::masked, "with a mask"},
     {When::before_5_0, "before 5.0"},
     {When::before_5_5, "before 5.5"},
     {When::masked_or_before_5_0, "before 5.0, or with a mask"},
     {When::cached, "cached, since 4.56"},
     {When::checkpointed, "checkpointed"}}};

/// When a model makes a cache of keys and values: in every job, in training where blocks are not checkpointed, or where
/// it serves alone.
enum class Caches : std::uint8_t { always, unless_checkpointed, serving };

class Forward {
 public:
  /// `vocabulary` must hold gpumem's ops, and outlive this.
  Forward(model::GraphBuilder& builder, const model::Vocabulary& vocabulary)
      : builder_(builder), vocabulary_(vocabulary) {}
  /// `tree`: what the model prints. `body`: the module that is the tree itself, where the tree is only the body of what
  /// forward() writes ("model" of a LlamaModel); else empty.
  Forward(model::GraphBuilder& builder, const model::Vocabulary& vocabulary, const ModuleTree& tree,
          std::string_view body);
  /// Operations between the modules of a tree that `modules` wires, which has all layers.
  Forward(model::GraphBuilder& builder, const model::Vocabulary& vocabulary, ModuleCalls& modules)
      : builder_(builder), vocabulary_(vocabulary), calls_(&modules) {}

  /// Of a tensor, with the batch's axis; only where modules are wired, since a config's tensors have tokens.
  [[nodiscard]] const core::Shape& shape(Tensor tensor) const;
  [[nodiscard]] std::size_t rank(Tensor tensor) const { return shape(tensor).rank(); }
  /// Of an axis; 0 if it has no fixed size.
  [[nodiscard]] std::int64_t size(Tensor tensor, std::size_t axis) const;
  /// Whether channels lie after the pixels.
  [[nodiscard]] bool channels_last(Tensor tensor) const;
  [[nodiscard]] std::int64_t channels(Tensor tensor) const {
    return size(tensor, channels_last(tensor) && rank(tensor) > 0 ? rank(tensor) - 1 : 1);
  }

  /// Whether attention layers from now on turn queries and keys by rotary positions, which the model makes.
  void turns(bool turns) { turns_ = turns; }
  [[nodiscard]] bool turns() const { return turns_; }

  /// Calls from now on are in this module, until leave().
  void enter(std::string_view name, std::string_view class_name);
  void leave();
  /// From now on a text model is written as this part of a model, until end_text(). `part` must live as long.
  void begin_text(const TextPart& part);
  void end_text();
  /// The part that is being written; null: none is, or its `embed` runs.
  [[nodiscard]] const TextPart* text_part() const { return text_hidden_ ? nullptr : text_; }
  /// What the model around the part makes of what a block of it leaves.
  [[nodiscard]] Tensor after_block(Tensor hidden, std::int64_t block);
  /// The mask of the part's attention, where it has one.
  [[nodiscard]] std::optional<Tensor> text_mask() const;

  /// The images that samples bring, as far as the job says. What it computes depends on them.
  [[nodiscard]] const model::Images& images();
  void images(const model::Images& images) { images_ = images; }
  [[nodiscard]] bool reads_images() const { return reads_images_; }
  /// The same of the sounds that it makes.
  [[nodiscard]] const model::Images& sounds();
  [[nodiscard]] bool makes_sounds() const { return makes_sounds_; }
  /// The configs of the other parts of the model's pipeline, by their names; null: it comes alone.
  [[nodiscard]] const core::JsonValue* pipeline_parts() const { return pipeline_parts_; }
  void pipeline_parts(const core::JsonValue* parts) { pipeline_parts_ = parts; }
  /// Those of the published pipeline, where the config has none of its own.
  [[nodiscard]] const core::JsonValue* usual_parts() const { return usual_parts_; }
  void usual_parts(const core::JsonValue* parts) { usual_parts_ = parts; }
  /// Something that was chosen, for the user.
  void remark(std::string text) { builder_.remark(std::move(text)); }
  /// Width and height of the images that the model makes in this job.
  void usual_image(std::vector<std::int64_t> sides) { builder_.usual_image(std::move(sides)); }
  void picture_tokens(std::int64_t tokens) { builder_.picture_tokens(tokens); }
  [[nodiscard]] const model::Vocabulary& vocabulary() const { return vocabulary_; }

  /// Fails the graph if a printed layer with parameters of its own was not called: the model is not what its class
  /// says.
  void check_all_called();

  /// What the config says about a run besides its model.
  void run_settings(const model::RunSettings& settings) { builder_.run_settings(settings); }

  /// How many tokens a sample has where the job does not say.
  void tokens(std::int64_t usual) { usual_tokens_ = usual; }

  /// Integers [N, tokens], one of the batch's tensors.
  Tensor token_input(std::string_view name);
  /// The same of this many tokens, whatever the job says.
  Tensor fixed_token_input(std::string_view name, std::int64_t tokens);
  /// Numbers [N rows, ...], one of the batch's tensors.
  Tensor rows_input(std::string_view name, std::int64_t rows, const Sizes& sizes);
  /// Numbers [N, ...], one of the batch's tensors.
  Tensor sample_input(std::string_view name, const Sizes& sample);

  // Modules with parameters.
  Tensor linear(std::string_view name, Tensor input, std::int64_t in, std::int64_t out, const Linear& options = {});
  Tensor embedding(std::string_view name, Tensor ids, std::int64_t rows, std::int64_t width,
                   std::string_view class_name = "Embedding", Split split = Split::whole);
  /// The same table as an earlier layer's.
  Tensor tied_embedding(std::string_view name, Tensor ids, std::int64_t rows, std::int64_t width);
  Tensor layer_norm(std::string_view name, Tensor input, std::int64_t width, bool bias = true);
  Tensor rms_norm(std::string_view name, Tensor input, std::int64_t width, std::string_view class_name);
  /// A bare parameter of the module; a frozen one is never trained.
  Tensor parameter(std::string_view name, const Sizes& shape, bool frozen = false);
  /// Whether layers from now on hold the parameters of earlier ones: a module that is called again.
  void repeat_parameters(bool again) { repeats_ = again; }
  /// How tensor parallel ranks share layers from now on that do not say so themselves.
  void share(Split split) { shared_ = split; }
  /// Layers from now on are never trained.
  void freeze(bool frozen) { freezes_ = frozen; }
  /// They run under torch.no_grad(): what they read is `detached()` first, and adapters of theirs are never trained.
  void without_gradients(bool off) { freezes_ = no_grad_ = off; }
  [[nodiscard]] Tensor detached(Tensor tensor) { return call("detached", {tensor}); }
  /// Norms from now on run outside of autocast, in their input's type: a model that only helps to train another one, as
  /// accelerate's prepare() never wraps it.
  void outside_autocast(bool outside) { outside_autocast_ = outside; }
  /// Layers from now on run under torch.autocast(dtype=float32): PyTorch takes that type on a GPU as any other.
  void wide_autocast(bool wide) { wide_autocast_ = wide; }
  /// Layers from now on are part of this expert, counted from 1; 0: of none.
  void part_of_expert(std::uint32_t expert) { expert_ = expert; }
  /// What the tree shows of this module is held and not called: a bare parameter has its elements.
  void hold_printed(std::string_view name);
  [[nodiscard]] bool reads_tree() const { return tree_ != nullptr; }
  /// Whether it has this module in the one that is open.
  [[nodiscard]] bool prints_here(std::string_view name) const { return tree_ != nullptr && tree_->has(path_of(name)); }
  /// Whether the tree that is read has this module; false where sizes come from a config.
  [[nodiscard]] bool prints(std::string_view path) const { return tree_ != nullptr && tree_->has(path); }
  /// The config says that the model returns no keys and values (use_cache false).
  void make_no_cache() { caches_ = false; }
  /// One of the experts that are modules of their own is called; Layer::expert says for how many. For counts alone.
  void call_one_expert() { one_expert_ = true; }
  [[nodiscard]] bool calls_one_expert() const { return one_expert_; }
  /// Any layer whose attributes give its parameters.
  Tensor layer(std::string_view name, std::string_view class_name, std::string_view op,
               std::initializer_list<Tensor> inputs, std::vector<model::Attribute> attributes);

  /// The activation of this name in a config ("silu", "gelu_new"). An unknown one is a fault.
  Tensor activation(std::string_view name, Tensor input, std::string_view function);
  Tensor dropout(std::string_view name, Tensor input, double probability);

  /// A buffer, which nothing trains.
  Tensor constant(std::string_view name, const Sizes& shape, std::string_view dtype);
  /// The numbers 0 to S - 1, [1, S], of as many tokens as the ids have; more than `most` are an error.
  Tensor positions(Tensor ids, std::int64_t most);

  // Operations that no module shows.
  Tensor call(std::string_view op, std::initializer_list<Tensor> inputs,
              std::initializer_list<model::Attribute> attributes = {});
  /// The same, made in some jobs only; nullopt: in all.
  Tensor call(std::string_view op, std::initializer_list<Tensor> inputs,
              std::initializer_list<model::Attribute> attributes, std::optional<When> when);
  Tensor add(Tensor left, Tensor right) { return call("add", {left, right}); }
  Tensor multiply(Tensor left, Tensor right) { return call("mul", {left, right}); }
  /// By a number: mul, div.
  Tensor scale(Tensor tensor) { return call("mul", {tensor}); }
  Tensor to(Tensor tensor, std::string_view dtype);
  /// In the type of another tensor (Tensor.type_as).
  Tensor as_type_of(Tensor tensor, Tensor other) { return call("cast", {tensor, other}); }
  Tensor contiguous(Tensor tensor) { return call("contiguous", {tensor}); }
  /// The same calls, made in some jobs only (connect/graph_copy.hpp leaves them out of others).
  Tensor contiguous(Tensor tensor, When when) { return call("contiguous", {tensor}, {condition(when)}); }
  Tensor as_type_of(Tensor tensor, Tensor other, When when) { return call("cast", {tensor, other}, {condition(when)}); }
  /// The tensor plus something of its size that is no tensor of the graph.
  Tensor add(Tensor tensor, When when) { return call("add", {tensor}, {condition(when)}); }
  /// Tensor.requires_grad_().
  Tensor require_grad(Tensor tensor, When when) { return call("requires_grad", {tensor}, {condition(when)}); }
  Tensor permute(Tensor tensor, Sizes dims);
  /// Axes start to end made one.
  Tensor flatten(Tensor tensor, std::int64_t start, std::int64_t end);
  Tensor unflatten(Tensor tensor, std::int64_t dim, Sizes sizes);
  /// The same, where the first of the sizes is a number of heads.
  Tensor unflatten_heads(Tensor tensor, std::int64_t dim, Sizes sizes);
  /// Tensor.expand to these sizes, of which the second is a number of heads.
  Tensor expand_heads(Tensor tensor, Sizes shape);
  /// A copy (Tensor.clone), from which on sequence parallel ranks have some of the tokens each.
  Tensor enter_sequence(Tensor tensor);
  /// The features that columns made, of all ranks; then as enter_sequence(), but no copy.
  Tensor join_features(Tensor tensor);
  /// [N, S, ...] with an axis of one at `dim`, of all tokens.
  Tensor unsqueeze_all_tokens(Tensor tensor, std::int64_t dim);
  /// `length` kRest: all from the start on; below 0: all but this many of the last.
  Tensor slice(Tensor tensor, std::int64_t dim, std::int64_t start, std::int64_t length);
  static constexpr std::int64_t kRest = 0;
  /// A copy of part of the tokens, for a causal loss, where the job's transformers makes one (connect/graph_copy.hpp).
  Tensor shift(Tensor tensor, std::int64_t start, std::int64_t length);
  Tensor select(Tensor tensor, std::int64_t dim, std::int64_t index);
  Tensor concatenate(std::span<const Tensor> tensors, std::int64_t dim);
  Tensor concatenate(std::initializer_list<Tensor> tensors, std::int64_t dim) {
    return concatenate(std::span(tensors.begin(), tensors.size()), dim);
  }
  /// Tensor.split or chunk: parts of these sizes, all views.
  std::vector<Tensor> split(Tensor tensor, std::int64_t dim, const Sizes& sizes);
  /// The model returns the tensor in addition to what the loss reads.
  void hand_out(Tensor tensor);
  /// A key or value of the model's cache, and when the model returns that.
  void cache(Tensor tensor, Caches when = Caches::unless_checkpointed);
  /// The same of both. Returns the values as attention reads them: since transformers 4.56 a cache has one type, that
  /// of its first keys (cache_utils.py: DynamicLayer, which joins both to empty tensors of it), and under autocast keys
  /// that tables of float32 turned are wider than values.
  Tensor cache(Tensor key, Tensor value, Caches when = Caches::unless_checkpointed);
  /// `result` leaves a function whose names for these other tensors end only now.
  Tensor leave_function(Tensor result, std::initializer_list<Tensor> names, std::optional<When> when = {});

  /// The model cannot be built so.
  void fail(std::string message);
  void warn(std::string message) { builder_.warn(std::move(message), 0); }
  /// Something that the source does not settle; named in every estimate.
  void doubt(model::Doubt doubt) { builder_.doubt(std::move(doubt)); }
  [[nodiscard]] bool failed() const { return builder_.failed(); }

 private:
  [[nodiscard]] static model::Attribute condition(When when) {
    return {std::string(kWhen), std::string(model::name_of(kWhens, when))};
  }
  /// What a layer is in addition to its op.
  struct Kind {
    std::int64_t tied = 0;
    bool returned = false;
    bool frozen = false;
    Split split = Split::whole;
  };
  Tensor add_layer(std::string_view name, std::string_view class_name, std::string_view op,
                   std::span<const Tensor> inputs, std::span<const model::Attribute> attributes,
                   const Kind& kind = {0, false, false, Split::whole});

  void open(std::string_view name, std::string_view class_name);
  void close();
  Tensor embed_text(Tensor ids, Tensor embedded);

  /// What the tree prints of the layer that is called; null without a tree, and for what it does not show.
  const model::Layer* printed(std::string_view name);
  [[nodiscard]] std::string path_of(std::string_view name) const;
  void call_parameter(std::string_view name);
  /// Whether the tree prints a layer that this one is a part of (torch.nn.MultiheadAttention), which is called then.
  bool call_around(std::string_view name);
  void check_printed(const model::Layer* layer, std::string_view name, const model::OpTraits& op,
                     std::span<const model::Attribute> attributes);

  model::GraphBuilder& builder_;
  const model::Vocabulary& vocabulary_;
  const ModuleTree* tree_ = nullptr;
  ModuleCalls* calls_ = nullptr;
  std::string body_;
  std::vector<std::string> modules_;  ///< that are open; kept only with a tree
  std::vector<bool> called_;          ///< by layer of the tree's graph
  Tensor next_input_ = model::kFirstGraphInput;
  const TextPart* text_ = nullptr;
  std::vector<std::pair<std::string, std::string>> in_text_;  ///< modules of the part that are open
  bool text_hidden_ = false;
  bool embedded_ = false;
  std::optional<Tensor> text_mask_;
  model::Images images_;
  bool reads_images_ = false;
  bool makes_sounds_ = false;
  std::int64_t usual_tokens_ = 0;  ///< 0: the job must say
  const core::JsonValue* pipeline_parts_ = nullptr;
  const core::JsonValue* usual_parts_ = nullptr;
  bool repeats_ = false;
  bool freezes_ = false;
  bool no_grad_ = false;
  bool outside_autocast_ = false;
  bool wide_autocast_ = false;
  Split shared_ = Split::whole;
  bool turns_ = false;
  std::uint32_t expert_ = 0;
  bool caches_ = true;
  bool one_expert_ = false;
};

/// Calls are in the module while this lives.
class InModule {
 public:
  InModule(Forward& forward, std::string_view name, std::string_view class_name) : forward_(forward) {
    forward_.enter(name, class_name);
  }
  ~InModule() { forward_.leave(); }
  InModule(const InModule&) = delete;
  InModule& operator=(const InModule&) = delete;

 private:
  Forward& forward_;
};

}  // namespace gpumem::architectures
