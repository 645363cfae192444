// Input: the fields of a config.json or the module tree that a model prints, and what will be computed with the model.
// Output: the type Architecture: the model types and classes that it covers, how a tree tells its sizes, and its
// forward().
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/architectures/forward.hpp"
#include "gpumem/architectures/module_tree.hpp"
#include "gpumem/model/training_loop.hpp"

namespace gpumem::architectures {

/// The head on a model's body, as the class in "architectures" says.
enum class Head : std::uint8_t {
  none,                     ///< LlamaModel: hidden states leave it
  encoder,                  ///< T5EncoderModel: without the decoder
  causal_lm,                ///< LlamaForCausalLM, GPT2LMHeadModel, T5ForConditionalGeneration
  masked_lm,                ///< BertForMaskedLM
  sequence_classification,  ///< one answer a sample, images too
  token_classification,     ///< one answer a token
  question_answering,       ///< two answers a token
  own,                      ///< one that this architecture alone has: its class says which (PatchTSTForPrediction)
};

namespace architectures_detail {

/// How the last part of a class name tells the head.
struct NamedHead {
  std::string_view ending;
  Head head;
};
inline constexpr std::array<NamedHead, 25> kHeads = {
    {{"ForCausalLM", Head::causal_lm},
     {"ForCTC", Head::causal_lm},
     {"LMHeadModel", Head::causal_lm},
     {"ForConditionalGeneration", Head::causal_lm},
     {"ForMaskedLM", Head::masked_lm},
     {"ForPreTraining", Head::masked_lm},
     {"ForSequenceClassification", Head::sequence_classification},
     {"ForImageClassification", Head::sequence_classification},
     {"ForImageClassificationWithTeacher", Head::sequence_classification},
     {"ForAudioClassification", Head::sequence_classification},
     {"ForAudioFrameClassification", Head::token_classification},
     {"ForTokenClassification", Head::token_classification},
     {"ForQuestionAnsweringSimple", Head::question_answering},
     {"ForQuestionAnswering", Head::question_answering},
     {"ForTextToSpeech", Head::own},
     {"ForSpeechToText", Head::own},
     {"ForPrediction", Head::own},
     {"ForPretraining", Head::own},
     {"ForClassification", Head::own},
     {"ForRegression", Head::own},
     {"ForSemanticSegmentation", Head::own},
     {"EncoderModel", Head::encoder},
     {"MarianMTModel", Head::causal_lm},
     {"ModelLM", Head::masked_lm},
     {"Model", Head::none}}};

/// Endings of transformers' classes whose heads no architecture has: one must not be taken for the usual head.
inline constexpr std::array<std::string_view, 6> kOtherHeads = {
    "ForImageTextRetrieval",     "ForMaskedImageModeling",      "ForMultipleChoice",
    "ForNextSentencePrediction", "ForTimeSeriesClassification", "ForXVector"};

}  // namespace architectures_detail

/// The classes of a model type: its prefix and what they do ("LlamaForCausalLM", "LlamaModel").
struct ModelClass {
  std::string_view prefix;
  std::string_view model_type;
  std::string_view body = {};  ///< the module that holds the body in a model with a head: "model"; empty: none does
  /// Whether the output layer's weight is the embedding's where nothing says so: in models up to this width, and with
  /// so many tokens (0: any).
  std::int64_t tied_up_to = 0;
  std::int64_t tied_tokens = 0;
  std::string_view untied_with = {};  ///< a class that models of this type which do not tie have within them
  /// The ending of the one class that is meant, where a model of text alone has the same prefix; empty: all.
  std::string_view ending = {};
};
/// ModelClass::tied_up_to of classes that always tie.
inline constexpr std::int64_t kAlwaysTied = INT64_MAX;

/// What an autoencoder makes latents of.
struct Encoded {
  std::int64_t height = 1;  ///< pixels
  std::int64_t width = 1;
  std::int64_t frames = 1;
  bool by_sample = false;  ///< one sample after the other (enable_slicing())
  bool by_tile = false;    ///< of each one tile after the other, if it is larger than a tile (enable_tiling())

  /// Of these pixels, what is read at once where tiles have this side.
  [[nodiscard]] Encoded tile(std::int64_t side) const {
    Encoded part = *this;
    if (!by_tile) return part;
    part.height = std::min(height, side);
    part.width = std::min(width, side);
    return part;
  }
};

/// The model types of a table of variants.
template <typename Variant, std::size_t Count>
consteval std::array<std::string_view, Count> model_types_of(const std::array<Variant, Count>& variants) {
  std::array<std::string_view, Count> types;
  for (std::size_t at = 0; at < Count; ++at) types[at] = variants[at].model_type;
  return types;
}

struct Architecture {
  std::string_view name;
  std::span<const std::string_view> model_types;  ///< as config.json has them; of diffusers' models `_class_name`
  /// What the model is where "architectures" does not say.
  Head usual_head = Head::causal_lm;
  /// Reads the fields and makes the calls of forward(). Faults are remembered by both.
  void (*write)(ConfigFields&, Head, Forward&) = nullptr;
  std::span<const ModelClass> classes = {};  ///< that are read from a printed tree
  /// Writes the fields that the tree shows, and those that it implies.
  void (*read_tree)(TreeFields&) = nullptr;
  /// It writes another architecture's text model inside of its own, so it can be none itself.
  bool holds_text_model = false;
  /// What it computes depends on a job's images, or its sounds: a tree of it is read as the config that it tells.
  bool depends_on_images = holds_text_model;
  /// Containers whose own bias is their output layer's, and is printed twice.
  std::span<const std::string_view> tied_bias = {};
  /// The classes that are checkpointed and sharded one by one, where these are not the class with the most siblings
  /// (_no_split_modules of transformers and diffusers); empty: the repeated blocks.
  std::span<const std::string_view> blocks = {};
  /// Of what is known as a part of a pipeline alone: its parameters, and no forward().
  bool parameters_only = false;
  /// Its class has one tensor for all experts of a layer, and it writes them as modules too (Experts::listed).
  bool lists_experts = false;
  /// Of an autoencoder: makes latents of the image or video that a sample brings, as a frozen part of another model's
  /// step. Its decoder is held and not called.
  void (*encode)(ConfigFields&, const Encoded&, Forward&) = nullptr;
};

/// The architecture of a model type; null: none is known (architectures.hpp has the list).
[[nodiscard]] const Architecture* architecture_of(std::string_view model_type);

/// The parameters of the model that a config describes. Errors: those of read_config() (architectures.hpp).
[[nodiscard]] core::Result<std::int64_t> parameters_of(const core::JsonValue& config,
                                                       const model::Vocabulary& vocabulary);

// Output: every architecture that gpumem knows. To add one: a namespace that ends with its kArchitecture, in a file of
// this folder, and a row in impl/architecture_list_inl.hpp.

using Architectures = std::vector<const Architecture*>;

[[nodiscard]] const Architectures& architectures();

/// The oldest release of transformers that has models of this type; nothing of those that 4.48 has.
[[nodiscard]] std::optional<model::Transformers> first_release(std::string_view model_type);

}  // namespace gpumem::architectures
