#pragma once

#include "gpumem/architectures/vision_language.hpp"

#include <array>

#include "gpumem/core/bytes.hpp"

namespace gpumem::architectures {

namespace vision_language_detail {

/// A model type of a "text_config": whose architecture writes it, and what its class has where fields are left out.
/// Source: transformers 4.57, models/*/configuration_*.py.
struct TextType {
  std::string_view type;
  std::string_view known;  ///< the model type that is written; empty: itself
  std::string_view usual;  ///< a JSON object
};
inline constexpr auto kTextTypes = std::to_array<TextType>({
    {"llama", "",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
         "num_attention_heads": 32, "tie_word_embeddings": false})"},
    {"mistral", "",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": false})"},
    {"ministral3", "",
     R"({"vocab_size": 131072, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 34,
         "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": false})"},
    {"qwen2", "",
     R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 32, "tie_word_embeddings": false})"},
    {"qwen3", "",
     R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "tie_word_embeddings": false})"},
    {"gemma", "",
     R"({"vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
         "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "tie_word_embeddings": true})"},
    {"gemma2", "",
     R"({"vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "tie_word_embeddings": true})"},
    {"gemma3_text", "",
     R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "tie_word_embeddings": true})"},
    {"qwen2_vl_text", "qwen2",
     R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80,
         "num_attention_heads": 64, "num_key_value_heads": 8, "tie_word_embeddings": false})"},
    {"qwen2_5_vl_text", "qwen2",
     R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80,
         "num_attention_heads": 64, "num_key_value_heads": 8, "tie_word_embeddings": false})"},
    {"qwen2_5_omni_text", "qwen2",
     R"({"vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
         "num_attention_heads": 28, "num_key_value_heads": 4, "tie_word_embeddings": false})"},
    {"qwen3_omni_moe_text", "qwen3_moe",
     R"({"vocab_size": 3584, "hidden_size": 2048, "intermediate_size": 18944, "num_hidden_layers": 28,
         "num_attention_heads": 28, "num_key_value_heads": 4, "moe_intermediate_size": 768, "num_experts": 128,
         "num_experts_per_tok": 8, "decoder_sparse_step": 1, "tie_word_embeddings": false})"},
    {"qwen3_vl_text", "qwen3",
     R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "tie_word_embeddings": false})"},
    {"qwen3_vl_moe_text", "qwen3_moe",
     R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
         "num_attention_heads": 16, "num_key_value_heads": 16, "moe_intermediate_size": 1408, "num_experts": 60,
         "num_experts_per_tok": 4, "decoder_sparse_step": 1, "tie_word_embeddings": false})"},
    {"llama4_text", "",
     R"({"vocab_size": 202048, "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
         "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
         "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1,
         "tie_word_embeddings": false})"},
    {"gemma4_unified_text", "gemma4_text",
     R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "global_head_dim": 512,
         "hidden_size_per_layer_input": 0, "tie_word_embeddings": true})"},
    {"gemma4_text", "",
     R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "tie_word_embeddings": true})"},
    {"glm4v_text", "glm4",
     R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
         "num_attention_heads": 32, "num_key_value_heads": 2, "attention_bias": true, "partial_rotary_factor": 0.5,
         "tie_word_embeddings": false})"},
    {"glm4v_moe_text", "glm4_moe",
     R"({"vocab_size": 151424, "hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 46,
         "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true, "moe_intermediate_size": 1408,
         "num_experts_per_tok": 8, "n_shared_experts": 1, "n_routed_experts": 128, "n_group": 1, "topk_group": 1,
         "first_k_dense_replace": 1, "partial_rotary_factor": 0.5, "tie_word_embeddings": false})"},
    {"paddleocr_vl_text", "llama",
     R"({"vocab_size": 103424, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18,
         "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "tie_word_embeddings": true})"},
    {"glm_ocr_text", "glm4",
     R"({"vocab_size": 59392, "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 16,
         "num_attention_heads": 16, "num_key_value_heads": 8, "attention_bias": false, "tie_word_embeddings": false})"},
    {"cohere2", "",
     R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
         "num_attention_heads": 64, "tie_word_embeddings": true})"},
    {"exaone4", "",
     R"({"vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 32, "tie_word_embeddings": false})"},
    {"exaone4_5_text", "exaone4", R"({"tie_word_embeddings": false})"},
    {"hunyuan_vl_text", "hunyuan_v1_dense",
     R"({"vocab_size": 290943, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
         "num_attention_heads": 32, "tie_word_embeddings": true})"},
    {"opt", "",
     R"({"vocab_size": 50272, "hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
         "max_position_embeddings": 2048, "tie_word_embeddings": true})"},
    {"molmo2_text", "", R"({"tie_word_embeddings": false})"},
    {"muse_glimmer_text", "",
     R"({"vocab_size": 202048, "hidden_size": 6656, "intermediate_size": 19968, "num_hidden_layers": 52,
         "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "tie_word_embeddings": false})"},
    {"minimax_m3_vl_text", "",
     R"({"vocab_size": 200064, "hidden_size": 6144, "intermediate_size": 3072, "dense_intermediate_size": 12288,
         "shared_intermediate_size": 3072, "num_hidden_layers": 60, "num_attention_heads": 64,
         "num_key_value_heads": 4, "head_dim": 128, "num_local_experts": 128, "num_experts_per_tok": 4,
         "rotary_dim": 64, "tie_word_embeddings": false})"},
    {"kimi_k2", "deepseek_v3", R"({"tie_word_embeddings": false})"},
    {"deepseek_v2", "", R"({"tie_word_embeddings": false})"},
    {"deepseek_ocr2_text", "",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
         "num_attention_heads": 32, "n_routed_experts": 64, "n_shared_experts": 2, "moe_intermediate_size": 1407,
         "tie_word_embeddings": false})"},
    {"gemma3n_text", "", R"({"vocab_size": 262400, "hidden_size": 2048, "num_hidden_layers": 35})"},
    {"kimi_linear", "", R"({"tie_word_embeddings": false})"},
});

GPUMEM_INLINE const TextType* row_of(std::string_view type) {
  for (const TextType& row : kTextTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

GPUMEM_INLINE std::string field(std::string_view name, std::string_view json) {
  return "{\"" + std::string(name) + "\": " + std::string(json) + "}";
}

}  // namespace vision_language_detail

GPUMEM_INLINE void hold(Forward& forward, const Tower& tower) {
  model::GraphBuilder apart("config_json");
  Forward dry(apart, forward.vocabulary());
  (void)tower(dry);
  const core::Result<model::ModelGraph> graph = std::move(apart).build();
  if (!graph) return forward.fail("has an image tower that cannot be counted: " + graph.error().message);
  (void)forward.parameter("images.unused", {graph->parameters()}, true);
}

GPUMEM_INLINE Pictures pictures_of(Forward& forward) {
  const model::Images& images = forward.images();
  Pictures pictures;
  pictures.said = images.said();
  if (images.size) pictures.size = *images.size;
  pictures.count = images.count.value_or(1);
  pictures.frames = images.frames.value_or(0);
  return pictures;
}

GPUMEM_INLINE void tell_pictures(Forward& forward, const Pictures& pictures, std::int64_t tokens) {
  if (pictures.count == 0) return forward.remark("samples bring no images; the image tower is held and not called");
  forward.picture_tokens(tokens);
  const bool one = pictures.count == 1;
  const std::string what = pictures.frames > 0
                               ? std::string(one ? " video" : " videos") + " of " + std::to_string(pictures.frames) +
                                     (pictures.frames == 1 ? " frame of " : " frames of ")
                               : std::string(one ? " image" : " images") + " of ";
  forward.remark("each sample brings " + std::to_string(pictures.count) + what + std::to_string(pictures.size.width) +
                 " x " + std::to_string(pictures.size.height) + " pixels" +
                 (pictures.said ? "" : ", as neither `image` nor `images` says otherwise") + ": " +
                 core::with_separators(tokens) + " of its tokens");
}

GPUMEM_INLINE ConfigFields* vision_fields(ConfigFields& config) { return config.part_or_usual("vision_config"); }

GPUMEM_INLINE void check_patches(ConfigFields& tower, std::int64_t side, std::int64_t merged, std::int64_t frames) {
  constexpr std::int64_t kLargestSide = 64;
  constexpr std::int64_t kMostOfOne = 8;
  if (side > kLargestSide || merged > kMostOfOne || frames > kMostOfOne)
    tower.fail("has patches larger than gpumem takes", "patch_size");
}

GPUMEM_INLINE ConfigFields* text_fields(ConfigFields& config, std::string_view usual_type, std::string_view field,
                                        std::string_view usual) {
  namespace detail = vision_language_detail;
  ConfigFields* inner = config.part(field, usual);
  ConfigFields* text = inner == nullptr ? &config : inner;
  std::string type(inner == nullptr ? usual_type : inner->text({"model_type"}, usual_type));
  // A model that was saved whole names its outer type in both places.
  if (type == config.text({"model_type"}, "")) type = usual_type;
  if (inner != nullptr) {
    config.ignore_those_of(*inner);
    const core::JsonValue* tied = config.find("tie_word_embeddings");
    if (tied != nullptr && tied->is(core::JsonValue::Kind::boolean) && !inner->has("tie_word_embeddings")) {
      inner->replace(detail::field("tie_word_embeddings", tied->boolean() ? "true" : "false"));
    }
  }
  const detail::TextType* row = detail::row_of(type);
  if (row != nullptr) text->complete(row->usual);
  const std::string_view known = row == nullptr || row->known.empty() ? std::string_view(type) : row->known;
  const Architecture* architecture = architecture_of(known);
  if (architecture == nullptr || architecture->holds_text_model || architecture->usual_head != Head::causal_lm) {
    config.fail("names the text model " + core::quoted(type) + ", which is not known",
                inner == nullptr ? "model_type" : field);
    return nullptr;
  }
  text->replace(detail::field("model_type", "\"" + std::string(known) + "\""));
  return text;
}

GPUMEM_INLINE void doubt_images(Forward& forward) {
  forward.doubt({model::Doubt::About::images,
                 "models that read images were measured on one kind of GPU, with images and without videos", false});
}

namespace vision_language_detail {

/// The class of the text model of this type ("LlamaModel"); empty: it is not known.
GPUMEM_INLINE std::string text_class(const Architecture& architecture, std::string_view type) {
  const auto row = std::ranges::find(architecture.classes, type, &ModelClass::model_type);
  return row == architecture.classes.end() ? std::string() : std::string(row->prefix) + "Model";
}

}  // namespace vision_language_detail

GPUMEM_INLINE void write_text(Forward& forward, ConfigFields& text, Head head, const TextPart& given) {
  const std::string_view type = text.text({"model_type"}, "");
  const Architecture* architecture = architecture_of(type);
  TextPart part = given;
  if (!part.modules.empty() && part.modules.back().second == kAnyText && architecture != nullptr) {
    part.modules.back().second = vision_language_detail::text_class(*architecture, type);
  }
  if (architecture == nullptr) return;
  doubt_images(forward);
  forward.begin_text(part);
  architecture->write(text, head, forward);
  forward.end_text();
}

GPUMEM_INLINE Tensor with_features(Forward& forward, const Pictures& pictures, Tensor embedded, const Tower& tower) {
  if (pictures.count == 0) {
    hold(forward, tower);
    return embedded;
  }
  return forward.call("masked_scatter", {embedded, tower(forward)});
}

GPUMEM_INLINE void write_text(Forward& forward, ConfigFields& text, Head head, TextPart part, const Pictures& pictures,
                              const Tower& tower) {
  part.embed = [&](Tensor, Tensor embedded) { return with_features(forward, pictures, embedded, tower); };
  write_text(forward, text, head, part);
}

namespace vision_language_detail {

/// The model type of a text model's class ("LlamaModel"); empty: it is none that is known.
GPUMEM_INLINE std::string_view text_type_of(std::string_view class_name) {
  for (const Architecture* each : architectures()) {
    if (each->holds_text_model || each->usual_head != Head::causal_lm) continue;
    for (const ModelClass& row : each->classes) {
      const bool is_its = class_name.starts_with(row.prefix);
      if (is_its && class_name.substr(row.prefix.size()) == "Model") return row.model_type;
    }
  }
  return {};
}

}  // namespace vision_language_detail

GPUMEM_INLINE void tree_text(TreeFields& tree, const TextOfTree& of) {
  namespace detail = vision_language_detail;
  const std::string_view printed = detail::text_type_of(tree.class_of(of.path));
  const std::string_view type = printed.empty() ? of.type : printed;
  const detail::TextType* row = detail::row_of(type);
  const std::string_view known = row == nullptr || row->known.empty() ? type : row->known;
  const Architecture* architecture = architecture_of(known);
  if (architecture == nullptr || architecture->read_tree == nullptr) return;
  const auto its = std::ranges::find(architecture->classes, known, &ModelClass::model_type);
  if (its == architecture->classes.end()) return;
  tree.open(of.field);
  tree.set_string("model_type", type);
  tree.within(of.path, std::string(its->prefix) + "Model", [&] { architecture->read_tree(tree); });
  tree.close();
}

GPUMEM_INLINE TextPart inner_text(std::string_view outer_class, std::string_view text_class) {
  TextPart part;
  part.modules = {{"model", std::string(outer_class)}, {"language_model", std::string(text_class)}};
  part.around = 1;
  part.plain_logits = true;
  return part;
}

GPUMEM_INLINE TextPart whole_text(std::string_view text_class) {
  TextPart part;
  part.modules = {{"language_model", std::string(text_class)}, {"model", std::string(text_class)}};
  part.head = "language_model.";
  return part;
}

}  // namespace gpumem::architectures
