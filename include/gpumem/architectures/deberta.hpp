// DeBERTa, v2 and v3: disentangled attention. Scores of content with content, of content with distances and of
// distances with content are written out, and gathered by how far tokens are from each other. Source:
// transformers 4.48, models/deberta_v2/modeling_deberta_v2.py; 4.57 and 5.16, models/deberta/modeling_deberta.py;
// arXiv:2006.03654.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace deberta {

struct Model {
  DecoderSizes sizes;
  bool first = false;  ///< DeBERTa v1: queries, keys and values are one projection, and norms are written out
  std::int64_t positions = 512;
  std::int64_t types = 0;
  std::int64_t embedding_width = 1;
  std::int64_t span = 256;  ///< distances that the table tells apart, to either side
  std::int64_t pooler_width = 1;
  std::int64_t labels = 2;
  std::int64_t convolution = 0;  ///< kernel size of a convolution parallel to the first layer; 0: there is none
  double dropout = 0.1;
  double pooler_dropout = 0.0;
  bool absolute = true;  ///< a table of absolute positions too
  bool relative = false;
  bool normed_distances = false;
  bool shares = false;  ///< the distances' queries and keys are projected as the content's
  bool content_to_place = false;
  bool place_to_content = false;

  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(first ? "Deberta" : "DebertaV2").append(part);
  }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.first = config.text({"model_type"}, "deberta-v2") == "deberta";
  model.sizes = decoder_sizes(config, {.activation = "gelu", .tied = true});
  const DecoderSizes& s = model.sizes;
  model.sizes.attention_dropout = config.number({"attention_probs_dropout_prob"}, 0.1);
  model.positions = config.size_or({"max_position_embeddings"}, 512);
  const core::JsonValue* types = config.find("type_vocab_size");
  model.types = types != nullptr && types->is(0) ? 0 : config.size_or({"type_vocab_size"}, 0);
  model.embedding_width = config.size_or({"embedding_size"}, s.width);
  model.pooler_width = config.size_or({"pooler_hidden_size"}, s.width);
  model.labels = labels_of(config);
  model.dropout = config.number({"hidden_dropout_prob"}, 0.1);
  model.pooler_dropout = config.number({"pooler_dropout"}, 0.0);
  model.absolute = config.flag("position_biased_input", true);
  model.relative = config.flag("relative_attention", false);
  const double most = config.number({"max_relative_positions"}, -1.0);
  const std::int64_t reach = most >= 1.0 ? static_cast<std::int64_t>(std::min(most, 1e6)) : model.positions;
  const double buckets = config.number({"position_buckets"}, -1.0);
  model.span = buckets >= 1.0 ? static_cast<std::int64_t>(std::min(buckets, 1e6)) : reach;
  model.normed_distances = config.text({"norm_rel_ebd"}, "none").find("layer_norm") != std::string_view::npos;
  model.shares = config.flag("share_att_key", false);
  const core::JsonValue* kinds = config.find("pos_att_type");
  const auto names = [&](std::string_view kind) {
    if (kinds == nullptr) return false;
    if (kinds->is(core::JsonValue::Kind::text)) return kinds->text().find(kind) != std::string_view::npos;
    bool any = false;
    for (const core::JsonValue& each : kinds->items())
      any = any || (each.is(core::JsonValue::Kind::text) && each.text() == kind);
    return any;
  };
  model.content_to_place = model.relative && names("c2p");
  model.place_to_content = model.relative && names("p2c");
  const core::JsonValue* kernel = config.find("conv_kernel_size");
  model.convolution = kernel == nullptr || kernel->is(0) ? 0 : config.size({"conv_kernel_size"});
  if (model.convolution % 2 == 0 && model.convolution > 0) config.fail("must be odd", "conv_kernel_size");
  if (config.flag("talking_head", false)) config.fail("heads that are mixed are not known", "talking_head");
  config.ignore({"pooler_hidden_act", "conv_act", "attention_head_size", "legacy", "summary_type"});
  return model;
}

/// DebertaLayerNorm of v1: in float32, one operation after the other.
inline Tensor written_norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  const InModule inside(f, name, "DebertaLayerNorm");
  const Tensor wide = f.to(input, "float32");
  const auto mean = [&](Tensor of) { return f.call("mean", {of}, {{"dim", std::int64_t{-1}}, {"keepdim", true}}); };
  const Tensor middle = mean(wide);
  const Tensor variance = mean(f.call("pow", {f.call("sub", {wide, middle})}));
  const Tensor spread = f.call("sqrt", {f.call("add", {variance})});
  const Tensor normed = f.as_type_of(f.call("div", {f.call("sub", {wide, middle}), spread}), input);
  return f.add(f.multiply(normed, f.parameter("weight", {width})), f.parameter("bias", {width}));
}

inline Tensor norm_of(Forward& f, const Model& model, std::string_view name, Tensor input) {
  const std::int64_t width = model.sizes.width;
  return model.first ? written_norm(f, name, input, width) : f.layer_norm(name, input, width);
}

inline Tensor embeddings(Forward& f, const Model& model, Tensor ids) {
  const InModule inside(f, "embeddings", model.named("Embeddings"));
  const std::int64_t width = model.embedding_width;
  const Tensor kinds = f.token_input("token_type_ids");
  const Tensor mask = f.token_input("attention_mask");
  Tensor sum = f.embedding("word_embeddings", ids, model.sizes.vocabulary, width);
  if (model.absolute) {
    const Tensor numbers = f.positions(ids, model.positions);
    sum = f.add(sum, f.embedding("position_embeddings", numbers, model.positions, width));
  }
  if (model.types > 0) sum = f.add(sum, f.embedding("token_type_embeddings", kinds, model.types, width));
  if (width != model.sizes.width) sum = f.linear("embed_proj", sum, width, model.sizes.width, {.bias = false});
  const Tensor normed = norm_of(f, model, "LayerNorm", sum);
  // The samples' padding is multiplied away.
  const Tensor rows = f.to(f.call("unsqueeze", {mask}, {{"dim", std::int64_t{2}}}), "float32");
  return f.dropout("dropout", f.multiply(normed, f.as_type_of(rows, normed)), model.dropout);
}

/// [N, heads, S, d], copied.
inline Tensor heads_of(Forward& f, const Model& model, std::string_view name, Tensor input) {
  const DecoderSizes& s = model.sizes;
  return f.contiguous(split_heads(f, f.linear(name, input, s.width, s.width), s.head_width));
}

/// Queries or keys of the distances, [N, heads, 2 span, d]: each sample's copy.
inline Tensor place_heads(Forward& f, const Model& model, std::string_view name, Tensor distances, bool again) {
  const DecoderSizes& s = model.sizes;
  f.repeat_parameters(again);
  const Tensor made = heads_of(f, model, name, distances);
  f.repeat_parameters(false);
  const std::vector<core::Dim> all = {core::Dim::batch(), core::Dim::fixed(s.heads), core::Dim::fixed(2 * model.span),
                                      core::Dim::fixed(s.head_width)};
  return f.contiguous(f.call("expand", {made}, {{"shape", all}}));
}

struct Places {
  Tensor ids = 0;        ///< for the number of tokens
  Tensor distances = 0;  ///< the table, [2 span, width]
  Tensor apart = 0;      ///< how far tokens are from each other, [S, S]
  Tensor mask = 0;       ///< [N, 1, S, S]
};

/// What is at each distance, of products with all distances.
inline Tensor gathered(Forward& f, Tensor rows, Tensor columns, Tensor apart) {
  const Tensor products = f.call("matmul", {rows, f.permute(columns, {0, 1, 3, 2})});
  return f.call("gather_distances", {products, apart});
}

/// The part of the scores that distances have, [N, heads, S, S].
inline std::optional<Tensor> place_scores(Forward& f, const Model& model, Tensor query, Tensor key,
                                          const Places& places) {
  const Tensor table =
      f.call("unsqueeze", {f.dropout("pos_dropout", places.distances, model.dropout)}, {{"dim", std::int64_t{0}}});
  std::optional<Tensor> places_query;
  std::optional<Tensor> places_key;
  if (model.shares || model.place_to_content) {
    places_query = place_heads(f, model, model.shares ? "query_proj" : "pos_query_proj", table, model.shares);
  }
  if (model.shares || model.content_to_place) {
    places_key = place_heads(f, model, model.shares ? "key_proj" : "pos_key_proj", table, model.shares);
  }
  std::optional<Tensor> sum;
  std::vector<Tensor> names;  // they end when the function returns
  if (model.content_to_place) {
    names.push_back(gathered(f, query, *places_key, places.apart));
    sum = f.call("add", {f.scale(names.back())});
  }
  if (model.place_to_content) {
    names.push_back(f.permute(gathered(f, key, *places_query, places.apart), {0, 1, 3, 2}));
    const Tensor scaled = f.scale(names.back());
    sum = sum ? f.call("add", {*sum, scaled}, {{"inplace", true}}) : scaled;
  }
  return sum ? std::optional(f.leave_function(*sum, {names.front(), names.back()})) : sum;
}

/// The same of v1: of as many distances as samples have tokens, with no bias where content meets them.
inline std::optional<Tensor> first_place_scores(Forward& f, const Model& model, Tensor query, Tensor key,
                                                const Places& places) {
  const DecoderSizes& s = model.sizes;
  const Tensor dropped = f.dropout("pos_dropout", places.distances, model.dropout);
  const Tensor near = f.call("slice", {dropped, places.ids}, {{"like_dim", std::int64_t{1}}, {"both_sides", true}});
  const Tensor rows = f.call("unsqueeze", {near}, {{"dim", std::int64_t{0}}});
  const auto made = [&](std::string_view name, bool bias) {
    return split_heads(f, f.linear(name, rows, s.width, s.width, {.bias = bias}), s.head_width);
  };
  std::optional<Tensor> sum;
  std::vector<Tensor> names;
  if (model.content_to_place) {
    names.push_back(gathered(f, query, made("pos_proj", false), places.apart));
    sum = f.call("add", {names.back()});
  }
  if (model.place_to_content) {
    const Tensor scaled = f.call("mul", {made("pos_q_proj", true)}, {{"inplace", true}});
    names.push_back(f.permute(gathered(f, key, scaled, places.apart), {0, 1, 3, 2}));
    sum = sum ? f.call("add", {*sum, names.back()}, {{"inplace", true}}) : f.call("add", {names.back()});
  }
  return sum ? std::optional(f.leave_function(*sum, {names.front(), names.back()})) : sum;
}

inline Heads projected(Forward& f, const Model& model, Tensor input) {
  const DecoderSizes& s = model.sizes;
  if (!model.first) {
    const Tensor query = heads_of(f, model, "query_proj", input);
    const Tensor key = heads_of(f, model, "key_proj", input);
    return {query, key, heads_of(f, model, "value_proj", input)};
  }
  const Tensor packed = f.linear("in_proj", input, s.width, 3 * s.width, {.bias = false});
  const std::vector<Tensor> parts = f.split(split_heads(f, packed, 3 * s.head_width), 3, Sizes(3, s.head_width));
  const auto biased = [&](std::string_view name, Tensor of) {
    const Tensor bias = f.unflatten(f.parameter(name, {s.width}), 0, {s.heads, s.head_width});
    return f.add(of, f.call("unsqueeze", {bias}, {{"dim", std::int64_t{1}}}));
  };
  const Tensor query = biased("q_bias", parts[0]);
  const Tensor value = biased("v_bias", parts[2]);
  return {f.scale(query), parts[1], value};
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Places& places) {
  const InModule inside(f, "self", "DisentangledSelfAttention");
  const DecoderSizes& s = model.sizes;
  const auto [query, key, value] = projected(f, model, input);
  const Tensor turned_key = f.permute(key, {0, 1, 3, 2});
  Tensor scores = f.call("matmul", {query, model.first ? turned_key : f.scale(turned_key)});
  std::optional<Tensor> more;
  if (model.relative) {
    more = model.first ? first_place_scores(f, model, query, key, places) : place_scores(f, model, query, key, places);
  }
  if (more) scores = f.add(scores, *more);
  // Each layer turns the mask round, [N, 1, S, S].
  const Tensor turned = f.call("causal_mask", {places.ids}, {{"padded", true}, {"dtype", std::string("bool")}});
  const Tensor mask = f.leave_function(turned, {places.mask});
  const Tensor masked = f.call("masked_fill", {scores, mask}, {{"mask_given", true}});
  const Tensor weights = f.dropout("dropout", f.call("softmax", {masked}), s.attention_dropout);
  const Tensor mixed = f.call("matmul", {weights, value});
  const Tensor merged = f.leave_function(merge_heads(f, mixed), {masked, weights, mixed, query, key, value, input});
  return more ? f.leave_function(merged, {*more}) : merged;
}

inline Tensor joined(Forward& f, const Model& model, Tensor input, std::int64_t in, Tensor residual,
                     std::string_view class_name) {
  const InModule inside(f, "output", class_name);
  const Tensor projected = f.dropout("dropout", f.linear("dense", input, in, model.sizes.width), model.dropout);
  const Tensor normed = norm_of(f, model, "LayerNorm", f.add(projected, residual));
  return f.leave_function(normed, {projected});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Places& places) {
  const DecoderSizes& s = model.sizes;
  Tensor attended = 0;
  {
    const InModule inside(f, "attention", model.named("Attention"));
    attended = joined(f, model, attention(f, model, input, places), s.width, input, model.named("SelfOutput"));
  }
  Tensor wide = 0;
  {
    const InModule inside(f, "intermediate", model.named("Intermediate"));
    wide = f.activation("intermediate_act_fn", f.linear("dense", attended, s.width, s.inner), s.activation);
  }
  return f.leave_function(joined(f, model, wide, s.inner, attended, model.named("Output")), {input, attended, wide});
}

/// ConvLayer of the xlarge models: parallel to the first layer, on the embeddings.
inline Tensor convolved(Forward& f, const Model& model, Tensor input, Tensor first) {
  const InModule inside(f, "conv", "ConvLayer");
  const std::int64_t width = model.sizes.width;
  const Tensor image = f.contiguous(f.permute(input, {0, 2, 1}));
  const Tensor made = f.layer("conv", "Conv1d", "conv1d", {image},
                              {{"in_channels", width},
                               {"out_channels", width},
                               {"kernel_size", Sizes(1, model.convolution)},
                               {"padding", Sizes(1, (model.convolution - 1) / 2)}});
  const Tensor rows = f.contiguous(f.permute(made, {0, 2, 1}));
  const Tensor active = f.activation("act", f.dropout("dropout", rows, model.dropout), "gelu");
  return f.layer_norm("LayerNorm", f.add(first, active), width);
}

inline Tensor encoder(Forward& f, const Model& model, Tensor embedded, Tensor ids) {
  const InModule inside(f, "encoder", model.named("Encoder"));
  const std::int64_t width = model.sizes.width;
  Places places = {.ids = ids};
  places.apart = f.call("relative_positions", {ids});
  if (model.relative) {
    places.distances = f.parameter("rel_embeddings.weight", {2 * model.span, width});
    if (model.normed_distances) places.distances = f.layer_norm("LayerNorm", places.distances, width);
  }
  // The product of the tokens' mask with itself, in its type.
  places.mask = f.call("causal_mask", {ids}, {{"padded", true}, {"dtype", std::string("int64")}});
  Tensor hidden =
      stack(f, "layer", model.named("Layer"), model.sizes.layers, embedded, [&](Tensor x, std::int64_t index) {
        const Tensor made = block(f, model, x, places);
        return index == 0 && model.convolution > 0 ? convolved(f, model, embedded, made) : made;
      });
  if (model.relative) hidden = f.leave_function(hidden, {places.distances});
  return f.leave_function(hidden, {places.mask, places.apart, embedded});
}

inline void masked_lm(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, "cls.predictions", model.named("LMPredictionHead"));
  const std::int64_t narrow = model.embedding_width;
  const Tensor dense = f.linear("transform.dense", hidden, model.sizes.width, narrow);
  const std::string_view active = model.first ? "transform.transform_act_fn" : "transform.act";
  const Tensor changed = f.activation(active, dense, model.sizes.activation);
  const Tensor normed = f.layer_norm("transform.LayerNorm", changed, narrow);
  const Linear tied = {.tied = model.sizes.tied, .returned = true};
  token_loss(f, f.linear("decoder", normed, narrow, model.sizes.vocabulary, tied));
}

inline void classifier(Forward& f, const Model& model, Tensor hidden) {
  const Tensor first = f.dropout("pooler.dropout", f.select(hidden, 1, 0), model.pooler_dropout);
  const Tensor dense = f.linear("pooler.dense", first, model.pooler_width, model.pooler_width);
  const Tensor pooled = f.dropout("dropout", f.activation("pooler.act", dense, "gelu"), model.dropout);
  f.linear("classifier", pooled, model.pooler_width, model.labels);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  Tensor hidden = 0;
  {
    const InModule inside(f, "deberta", model.named("Model"));
    const Tensor ids = f.token_input("input_ids");
    hidden = encoder(f, model, embeddings(f, model, ids), ids);
  }
  encoder_head(f, head, hidden,
               {.width = model.sizes.width,
                .labels = model.labels,
                .words = [&](Tensor x) { masked_lm(f, model, x); },
                .sample = [&](Tensor x) { classifier(f, model, x); },
                .token = [&](Tensor x) { return f.dropout("dropout", x, model.dropout); }});
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{"DebertaV2", "deberta-v2", "deberta", kAlwaysTied}, {"Deberta", "deberta", "deberta", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{384, 6}, {768, 12}, {1024, 16}, {1536, 24}});
/// Heads whose own bias is their decoder's bias.
inline constexpr auto kTiedBias =
    std::to_array<std::string_view>({"LegacyDebertaV2LMPredictionHead", "DebertaV2LMPredictionHead",
                                     "LegacyDebertaLMPredictionHead", "DebertaLMPredictionHead"});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.size("vocab_size", "embeddings.word_embeddings", "num_embeddings");
  t.size("embedding_size", "embeddings.word_embeddings", "embedding_dim");
  t.size("max_position_embeddings", "embeddings.position_embeddings", "num_embeddings");
  t.there("position_biased_input", "embeddings.position_embeddings");
  if (t.has("embeddings.token_type_embeddings")) {
    t.size("type_vocab_size", "embeddings.token_type_embeddings", "num_embeddings");
  } else {
    t.set("type_vocab_size", 0);
  }
  const std::string self = "encoder.layer.0.attention.self.";
  const bool first = t.has(self + "in_proj");
  const std::string query = self + (first ? "in_proj" : "query_proj");
  t.count("num_hidden_layers", "encoder.layer");
  t.size("hidden_size", query, "in_features");
  t.size("intermediate_size", "encoder.layer.0.intermediate.dense", "out_features");
  t.dropout("hidden_dropout_prob", "embeddings.dropout");
  t.dropout("attention_probs_dropout_prob", self + "dropout");
  t.there("relative_attention", "encoder.rel_embeddings");
  if (const auto rows = t.value("encoder.rel_embeddings", "num_embeddings"))
    t.set(first ? "max_relative_positions" : "position_buckets", *rows / 2);
  t.set_string("norm_rel_ebd", t.has("encoder.LayerNorm") ? "layer_norm" : "none");
  const std::string to_place = self + (first ? "pos_proj" : "pos_key_proj");
  const std::string to_content = self + (first ? "pos_q_proj" : "pos_query_proj");
  const bool own = first || t.has(to_place) || t.has(to_content);
  t.set_flag("share_att_key", !own);
  std::string kinds;
  if (!own || t.has(to_place)) kinds = "c2p";
  if (!own || t.has(to_content)) kinds += kinds.empty() ? "p2c" : "|p2c";
  t.set_string("pos_att_type", kinds);
  t.size("conv_kernel_size", "encoder.conv.conv", "kernel_size");
  t.dropout("pooler_dropout", "/pooler.dropout");
  t.size("pooler_hidden_size", "/pooler.dense", "out_features");
  t.size("num_labels", "/classifier", "out_features");
  t.heads_of_width({.published = kPublished}, t.value(query, "in_features").value_or(0));
}

inline constexpr Architecture kArchitecture = {.name = "deberta",
                                               .model_types = names<"deberta", "deberta-v2">,
                                               .usual_head = Head::masked_lm,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .tied_bias = kTiedBias};

}  // namespace deberta

}  // namespace gpumem::architectures
