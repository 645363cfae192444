// Language models that hear: Voxtral (a Llama or Mistral) and Qwen2-Audio (a Qwen2), each with Whisper's encoder as its
// tower. A processor pads each sound to 30 seconds, or cuts it into pieces of 30 seconds, which is what the tower
// takes; a job's `images` says how many a sample has. Source: transformers 5.16, models/voxtral/modeling_voxtral.py,
// qwen2_audio/modeling_qwen2_audio.py.
#pragma once

#include <string>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/bart.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace sound_language {

/// How many frames of its tower Voxtral puts into one token.
inline constexpr std::int64_t kJoined = 4;

struct Model {
  whisper::Model tower;
  bool voxtral = false;
  std::string_view activation = "gelu";
  std::int64_t width = 1;  ///< of the text model

  [[nodiscard]] std::int64_t tokens() const { return voxtral ? tower.frames / kJoined : tower.frames / 2; }
  [[nodiscard]] std::string_view named(std::string_view of_voxtral, std::string_view of_qwen) const {
    return voxtral ? of_voxtral : of_qwen;
  }
};

inline whisper::Model read_tower(ConfigFields& audio) {
  whisper::Model tower = whisper::usual();
  tower.width = audio.size_or({"d_model", "hidden_size"}, 1280);
  tower.bands = audio.size_or({"num_mel_bins"}, 128);
  tower.frames = audio.size_or({"max_source_positions"}, 1500);
  tower.encoder.layers = audio.layers_or("encoder_layers", audio.layers_or("num_hidden_layers", 32));
  tower.encoder.heads = audio.size_or({"encoder_attention_heads", "num_attention_heads"}, 20);
  tower.encoder.inner = audio.size_or({"encoder_ffn_dim", "intermediate_size"}, 5120);
  tower.dropout = audio.number({"dropout"}, 0.0);
  tower.attention_dropout = audio.number({"attention_dropout"}, 0.0);
  tower.activation_dropout = audio.number({"activation_dropout"}, 0.0);
  tower.activation = audio.text({"activation_function"}, "gelu");
  if (tower.width % tower.encoder.heads != 0) audio.fail("does not divide d_model", "encoder_attention_heads");
  if (tower.frames > ConfigFields::kLargestSize / 2) audio.fail("is too large", "max_source_positions");
  audio.ignore({"encoder_layerdrop", "layerdrop", "scale_embedding", "vocab_size", "init_std", "head_dim",
                "num_key_value_heads", "num_hidden_layers"});
  return tower;
}

/// VoxtralConfig._default_text_config_kwargs, and the heads of a LlamaConfig.
inline constexpr std::string_view kVoxtralText =
    R"({"vocab_size": 131072, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 30,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128})";

inline Model read(ConfigFields& config) {
  Model model;
  model.voxtral = config.text({"model_type"}, "voxtral") == "voxtral";
  // The classes have parts of their own where the config has none.
  if (!config.has("audio_config")) config.replace(R"({"audio_config": {}})");
  if (!config.has("text_config")) config.replace(R"({"text_config": {}})");
  if (ConfigFields* audio = config.part("audio_config", "{}")) model.tower = read_tower(*audio);
  model.activation = config.text({"projector_hidden_act"}, "gelu");
  config.ignore({"audio_token_id", "audio_token_index", "ignore_index", "hidden_size"});
  const bool whole = !model.voxtral || (model.tower.frames * model.tower.width) % model.tower.encoder.inner == 0;
  if (!whole || (model.voxtral && model.tower.encoder.inner != kJoined * model.tower.width)) {
    config.fail("must be four times the tower's width, as the projector reads four frames at once", "audio_config");
  }
  return model;
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t sounds) {
  const Tensor heard = whisper::encoder(f, m.tower,
                                        {.name = "audio_tower",
                                         .class_name = m.named("VoxtralEncoder", "Qwen2AudioEncoder"),
                                         .sounds = sounds,
                                         .pools = !m.voxtral});
  const InModule inside(f, "multi_modal_projector",
                        m.named("VoxtralMultiModalProjector", "Qwen2AudioMultiModalProjector"));
  if (!m.voxtral) return f.call("clone", {f.linear("linear", heard, m.tower.width, m.width)});  // without padding
  const std::int64_t wide = m.tower.encoder.inner;
  const Tensor joined = f.unflatten(f.flatten(heard, 1, 2), 1, {-1, wide});
  const Tensor open = f.activation("act", f.linear("linear_1", joined, wide, m.width, {.bias = false}), m.activation);
  return f.linear("linear_2", open, m.width, m.width, {.bias = false});
}

inline void tell_sounds(Forward& f, const Model& model, std::int64_t sounds, bool said) {
  if (sounds == 0) return f.remark("samples bring no sound; the tower for it is held and not called");
  f.remark("each sample brings " + std::to_string(sounds) + (sounds == 1 ? " sound" : " sounds") + " of 30 seconds" +
           (said ? ", as `images` says" : ", as `images` does not say otherwise") + ": " +
           std::to_string(sounds * model.tokens()) + " of its tokens");
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures sounds = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, model.voxtral ? "llama" : "qwen2", "text_config",
                                   model.voxtral ? kVoxtralText : std::string_view());
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  if (sounds.frames > 0) return f.fail("reads no videos; leave `frames` out");
  tell_sounds(f, model, sounds.count, f.images().count.has_value());
  const TextPart part = inner_text(model.named("VoxtralModel", "Qwen2AudioModel"), "TextModel");
  write_text(f, *text, head, part, sounds, [&](Forward& to) { return features_of(to, model, sounds.seen()); });
}

inline constexpr Architecture kArchitecture = {
    .name = "sound_language", .model_types = names<"voxtral", "qwen2_audio">, .write = write, .holds_text_model = true};

}  // namespace sound_language

}  // namespace gpumem::architectures
