// Input: the config.json of a model that reads text and images: its own fields, those of its text model (text_config)
// and of its image tower (vision_config); and the images that samples bring.
// Output: what all such models share: the text model as its own architecture writes it, under the names that it has in
// the outer model; image features among the embeddings of its tokens; what samples bring, for the user.
// Tokens of images are part of a sample's sequence length.
// Source: transformers 4.57, models/llava/modeling_llava.py: LlavaModel.forward() and what others have alike.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/image_rules.hpp"

namespace gpumem::architectures {

/// What each sample brings. Where the job does not say: one image of 1024 x 768 pixels.
struct Pictures {
  PictureSize size = {1024, 768};
  std::int64_t count = 1;   ///< images or videos; 0: none
  std::int64_t frames = 0;  ///< of a video; 0: images
  bool said = false;

  /// Images that a model sees which takes the frames of a video one by one; at least 1, so that its tower can be
  /// counted.
  [[nodiscard]] std::int64_t seen() const {
    return std::max<std::int64_t>(count, 1) * std::max<std::int64_t>(frames, 1);
  }
};
[[nodiscard]] Pictures pictures_of(Forward& forward);
/// Says what samples bring, and how many of their tokens all of it takes.
void tell_pictures(Forward& forward, const Pictures& pictures, std::int64_t tokens);

/// The fields of a config's text model: those under `field` with what its class has where that leaves fields out, or
/// the config itself where it has none. A model type that is another one's inside a wrapper is that one
/// ("qwen2_vl_text" is "qwen2"). `usual`: fields that the outer class completes, before those of the text model's own.
/// Null: faults were remembered.
[[nodiscard]] ConfigFields* text_fields(ConfigFields& config, std::string_view usual_type,
                                        std::string_view field = "text_config", std::string_view usual = {});
/// The fields of "vision_config"; where it is null or not there, those of its class. Null: it is no object.
[[nodiscard]] ConfigFields* vision_fields(ConfigFields& config);
/// That gpumem takes a tower's patches: pixels of a side, patches of a side that become one token, frames of a patch.
/// Larger ones fail at "patch_size".
void check_patches(ConfigFields& tower, std::int64_t side, std::int64_t merged, std::int64_t frames = 1);

/// That models that read images were measured on one kind of GPU alone.
void doubt_images(Forward& forward);

/// The class of a part's module whose own text model says which it is.
inline constexpr std::string_view kAnyText = "TextModel";
/// The text model of these fields as `part` of the model that is being written. An unknown model type is a fault.
void write_text(Forward& forward, ConfigFields& text, Head head, const TextPart& part);

/// A tower and all up to the text model's width: [N images, .., tokens, width].
using Tower = std::function<Tensor(Forward&)>;
/// What the text model reads: embeddings with the tower's features among them. Without pictures the tower is not
/// called, and only its parameters are there.
[[nodiscard]] Tensor with_features(Forward& forward, const Pictures& pictures, Tensor embedded, const Tower& tower);
/// A tower that is held and not called: none of its parameters gets a gradient.
void hold(Forward& forward, const Tower& tower);

/// The text model as `part`, which reads the tower's features among its embeddings.
void write_text(Forward& forward, ConfigFields& text, Head head, TextPart part, const Pictures& pictures,
                const Tower& tower);

/// Where a tree has the text model's body, and its model type where the class of that body does not tell it.
struct TextOfTree {
  std::string_view path = "language_model";
  std::string_view type = {};
  std::string_view field = "text_config";
};
/// The fields of a text model, as its own architecture reads them of a tree.
void tree_text(TreeFields& tree, const TextOfTree& of);

/// "model.language_model.layers...", "lm_head": as transformers 4.52 and later name a text model.
[[nodiscard]] TextPart inner_text(std::string_view outer_class, std::string_view text_class);
/// "language_model.model.layers...", "language_model.lm_head".
[[nodiscard]] TextPart whole_text(std::string_view text_class);

}  // namespace gpumem::architectures
