// Models with an encoder and a decoder of BART's kind: BART, mBART, Marian (opus-mt), M2M100 (NLLB), Pegasus, PLBart,
// Blenderbot. They differ in where norms stand, and in how they tell positions. The decoder gets as many tokens as the
// encoder. Source: transformers 4.48, models/bart/modeling_bart.py (BartSdpaAttention); 5.16, modeling_*.py of mbart,
// marian, m2m_100, pegasus, plbart, blenderbot and blenderbot_small.
#pragma once

#include <array>
#include <optional>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/bart_parts.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace bart {

inline Tensor decoder(Forward& f, const Model& model, Tensor ids, Tensor encoded) {
  const InModule inside(f, "decoder", model.form.prefix);
  const Tensor words = model.decoder_vocabulary > 0
                           ? f.embedding("embed_tokens", ids, model.decoder_vocabulary, model.width)
                           : f.tied_embedding("embed_tokens", ids, model.vocabulary, model.width);
  return blocks(f, model, model.decoder, embedded(f, model, ids, words, true), encoded);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  if ((head != Head::none && head != Head::causal_lm) || config.class_name().ends_with("ForCausalLM"))
    config.fail("only the class of both sides that writes text, and the model without a head, are known");
  Tensor decoded = 0;
  {
    const InModule inside(f, "model", model.form.prefix);
    const Tensor ids = token_ids(f);
    const bool shares = model.decoder_vocabulary == 0;
    Tensor words = shares ? f.embedding("shared", ids, model.vocabulary, model.width) : 0;
    Tensor encoded = 0;
    {
      const InModule side(f, "encoder", model.form.prefix);
      if (!shares) words = f.embedding("embed_tokens", ids, model.vocabulary, model.width);
      encoded = blocks(f, model, model.encoder, embedded(f, model, ids, words, false));
    }
    f.hand_out(encoded);
    decoded = decoder(f, model, f.token_input("decoder_input_ids"), encoded);
  }
  if (head == Head::none) return;
  const std::int64_t answers = model.decoder_vocabulary > 0 ? model.decoder_vocabulary : model.vocabulary;
  const bool biased = model.form.logits_bias;
  Tensor logits =
      f.linear("lm_head", decoded, model.width, answers, {.bias = false, .tied = true, .returned = !biased});
  if (biased) {
    logits = f.add(logits, f.constant("final_logits_bias", {1, answers}, "parameters"));
    f.hand_out(logits);
  }
  token_loss(f, logits, decoded);
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Bart", "bart", "model", kAlwaysTied},
                               {"MBart", "mbart", "model", kAlwaysTied},
                               {"Marian", "marian", "model", kAlwaysTied},
                               {"M2M100", "m2m_100", "model", kAlwaysTied},
                               {"Pegasus", "pegasus", "model", kAlwaysTied},
                               {"PLBart", "plbart", "model", kAlwaysTied},
                               {"BlenderbotSmall", "blenderbot-small", "model", kAlwaysTied},
                               {"Blenderbot", "blenderbot", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished =
    std::to_array<PublishedHeads>({{512, 8}, {768, 12}, {1024, 16}, {1280, 32}, {2560, 32}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const bool shares = t.has("shared");
  t.size("vocab_size", shares ? "shared" : "encoder.embed_tokens", "num_embeddings");
  t.size("d_model", shares ? "shared" : "encoder.embed_tokens", "embedding_dim");
  if (!shares) {
    t.set("share_encoder_decoder_embeddings", 0);
    t.size("decoder_vocab_size", "decoder.embed_tokens", "num_embeddings");
  }
  const bool own =
      t.class_name().starts_with("Bart") || t.class_name().starts_with("MBart") || t.class_name().starts_with("PLBart");
  if (const auto rows = t.value("encoder.embed_positions", "num_embeddings")) {
    t.set("max_position_embeddings", own ? *rows - 2 : *rows);
  } else {
    t.set("max_position_embeddings", 1024);
    t.assume("1,024 positions, as M2M100 and NLLB have them");
  }
  tree_sides(t, kPublished, t.value(shares ? "shared" : "encoder.embed_tokens", "embedding_dim").value_or(0));
}

inline constexpr Architecture kArchitecture = {
    .name = "bart", .model_types = kModelTypes, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace bart

}  // namespace gpumem::architectures
