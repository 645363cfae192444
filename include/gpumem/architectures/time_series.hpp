// TimeSeriesTransformer: BART's encoder and decoder on values of a series, their lags and what is known of each moment.
// The config says how long a series is (context_length, prediction_length); a job's sequence length changes nothing.
// Attention is written out. Layers are never dropped here (layerdrop).
// Source: transformers 5.17, models/time_series_transformer/modeling_time_series_transformer.py.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace time_series {

struct Model {
  std::string_view class_name;
  std::int64_t context = 1;
  std::int64_t future = 1;
  std::int64_t channels = 1;
  std::int64_t features = 0;  ///< of each moment: of its time, and further ones that change
  std::int64_t lags = 7;
  std::int64_t longest_lag = 7;
  std::int64_t numbers = 3;  ///< of the distribution that the head leaves
  std::int64_t static_numbers = 0;
  std::vector<std::int64_t> categories;  ///< how many values each has
  std::vector<std::int64_t> category_widths;
  std::int64_t width = 64;
  Side encoder;
  Side decoder;
  std::string_view activation = "gelu";
  double dropout = 0.1;
  double attention_dropout = 0.1;
  double activation_dropout = 0.1;

  /// Numbers of one moment.
  [[nodiscard]] std::int64_t inputs() const {
    std::int64_t sum = channels * lags + features + static_numbers + 2 * channels;
    for (const std::int64_t each : category_widths) sum += each;
    return sum;
  }
};

inline void read_categories(ConfigFields& config, Model& model) {
  constexpr std::int64_t kMostCategories = 256;
  const std::int64_t count = config.count_or("num_static_categorical_features", 0);
  if (count == 0) return config.ignore({"cardinality", "embedding_dimension"});
  const std::vector<std::int64_t> counts = config.sizes_or("cardinality", {});
  const std::vector<std::int64_t> widths = config.sizes_or("embedding_dimension", {});
  if (count > kMostCategories) return config.fail("is more than gpumem takes", "num_static_categorical_features");
  if (static_cast<std::int64_t>(counts.size()) != count) {
    return config.fail("must have num_static_categorical_features entries", "cardinality");
  }
  model.categories = counts;
  model.category_widths = widths;
  if (widths.size() == counts.size()) return;
  constexpr std::int64_t kWidest = 50;
  model.category_widths.clear();
  for (const std::int64_t values : counts) model.category_widths.push_back(std::min(kWidest, (values + 1) / 2));
}

inline void read_lengths(ConfigFields& config, Model& model) {
  model.future = config.size({"prediction_length"});
  model.context = config.size_or({"context_length"}, model.future);
  model.channels = config.size_or({"input_size"}, 1);
  constexpr std::int64_t kMost = 1 << 12;
  const std::int64_t times = config.count_or("num_time_features", 0);
  const std::int64_t moving = config.count_or("num_dynamic_real_features", 0);
  model.static_numbers = config.count_or("num_static_real_features", 0);
  model.features = times + moving;
  const std::vector<std::int64_t> lags = config.sizes_or("lags_sequence", {1, 2, 3, 4, 5, 6, 7});
  if (lags.empty()) return config.fail("must not be empty", "lags_sequence");
  model.lags = static_cast<std::int64_t>(lags.size());
  model.longest_lag = *std::max_element(lags.begin(), lags.end());
  check_length(config, model.context, "context_length");
  check_length(config, model.future, "prediction_length");
  check_length(config, model.longest_lag, "lags_sequence");
  if (model.lags > kMost) config.fail("is more than gpumem takes", "lags_sequence");
  if (model.channels > kMost) config.fail("is more than gpumem takes", "input_size");
  if (model.features > kMost) config.fail("is more than gpumem takes", "num_time_features");
  if (model.static_numbers > kMost) config.fail("is more than gpumem takes", "num_static_real_features");
}

inline Model read(ConfigFields& config) {
  Model model;
  model.class_name = config.class_name();
  config.complete(R"({"encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 32,
                      "decoder_layers": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": 32})");
  model.width = config.size_or({"d_model"}, 64);
  model.encoder = read_side(config, "encoder", model.width);
  model.decoder = read_side(config, "decoder", model.width);
  read_lengths(config, model);
  read_categories(config, model);
  model.numbers = distribution_numbers(config);
  model.activation = config.text({"activation_function"}, "gelu");
  model.dropout = config.number({"dropout"}, 0.1);
  model.attention_dropout = config.number({"attention_dropout"}, 0.1);
  model.activation_dropout = config.number({"activation_dropout"}, 0.1);
  config.ignore({"loss", "scaling", "encoder_layerdrop", "decoder_layerdrop", "num_parallel_samples", "init_std",
                 "num_hidden_layers", "hidden_size", "feature_size"});
  return model;
}

/// What encoder and decoder read of all moments, [N, context + future, numbers of a moment].
inline Tensor moments(Forward& f, const Model& model) {
  const std::int64_t past = model.context + model.longest_lag;
  const Sizes each = model.channels == 1 ? Sizes{} : Sizes{model.channels};
  const auto values = [&](std::string_view name, std::int64_t length) {
    Sizes sizes = {length};
    sizes.insert(sizes.end(), each.begin(), each.end());
    return f.sample_input(name, sizes);
  };
  const Tensor known = values("past_values", past);
  (void)values("past_observed_mask", past);
  const Tensor future = values("future_values", model.future);
  const std::int64_t all = model.context + model.future;
  if (model.features > 0) {
    (void)f.sample_input("past_time_features", {past, model.features});
    (void)f.sample_input("future_time_features", {model.future, model.features});
  }
  const Tensor scaled = f.call("div", {f.call("sub", {f.concatenate({known, future}, 1)})});
  // The parts are joined to one tensor, as large as this one.
  const Tensor one = f.slice(model.channels == 1 ? scaled : f.select(scaled, 2, 0), 1, 0, all);
  const std::vector<core::Dim> whole = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(model.inputs())};
  const Tensor column = f.call("unsqueeze", {one}, {{"dim", std::int64_t{2}}});
  const Tensor joined = f.contiguous(f.call("expand", {column}, {{"shape", whole}}));
  if (model.categories.empty()) return joined;
  const InModule inside(f, "embedder", "TimeSeriesFeatureEmbedder");
  const InModule list(f, "embedders", "ModuleList");
  std::vector<Tensor> parts;
  std::int64_t rest = model.inputs();
  for (std::size_t at = 0; at < model.categories.size(); ++at) {
    const Tensor ids = f.fixed_token_input("static_categorical_features", 1);
    const Tensor row = f.embedding(std::to_string(at), ids, model.categories[at], model.category_widths[at]);
    const std::vector<core::Dim> shape = {core::Dim::batch(), core::Dim::fixed(all),
                                          core::Dim::fixed(model.category_widths[at])};
    parts.push_back(f.call("expand", {row}, {{"shape", shape}}));
    rest -= model.category_widths[at];
  }
  parts.push_back(f.slice(joined, 2, 0, rest));
  return f.concatenate(parts, 2);
}

/// How one attention of a layer is called.
struct Looking {
  std::string_view name;
  std::int64_t heads = 1;
  std::optional<Tensor> mask = {};
};

inline Tensor attention(Forward& f, const Model& model, const Looking& at, Tensor input, Tensor source) {
  const InModule inside(f, at.name, "TimeSeriesTransformerAttention");
  const std::int64_t width = model.width;
  const auto parted = [&](std::string_view name, Tensor from) {
    return split_heads(f, f.linear(name, from, width, width), width / at.heads);
  };
  const Tensor query = parted("q_proj", input);
  const Tensor key = parted("k_proj", source);
  const Tensor value = parted("v_proj", source);
  Tensor scores = f.scale(f.call("matmul", {query, f.permute(key, {0, 1, 3, 2})}));
  if (at.mask) scores = f.add(scores, *at.mask);
  const Tensor weights = f.call("softmax", {scores});
  const Tensor dropped =
      model.attention_dropout > 0.0 ? f.call("dropout", {weights}, {{"p", model.attention_dropout}}) : weights;
  const Tensor merged = merge_heads(f, f.call("matmul", {dropped, value}));
  return f.leave_function(f.linear("out_proj", merged, width, width), {query, key, value, input, dropped});
}

inline Tensor joined(Forward& f, const Model& model, Tensor residual, Tensor part, std::string_view norm) {
  const Tensor dropped = model.dropout > 0.0 ? f.call("dropout", {part}, {{"p", model.dropout}}) : part;
  return f.leave_function(f.layer_norm(norm, f.add(residual, dropped), model.width), {residual});
}

inline Tensor fed(Forward& f, const Model& model, const Side& side, Tensor input) {
  const Tensor wide = f.activation("activation_fn", f.linear("fc1", input, model.width, side.inner), model.activation);
  const Tensor dropped =
      model.activation_dropout > 0.0 ? f.call("dropout", {wide}, {{"p", model.activation_dropout}}) : wide;
  return joined(f, model, input, f.linear("fc2", dropped, side.inner, model.width), "final_layer_norm");
}

inline Tensor embedded(Forward& f, const Model& model, Tensor input, std::int64_t start, std::int64_t count) {
  Tensor values = 0;
  {
    const InModule inside(f, "value_embedding", "TimeSeriesValueEmbedding");
    values = f.linear("value_projection", input, model.inputs(), model.width, {.bias = false});
  }
  const Tensor table = f.parameter("embed_positions.weight", {model.context + model.future, model.width}, true);
  const Tensor sum = f.add(values, f.slice(table, 0, start, count));
  const Tensor normed = f.layer_norm("layernorm_embedding", sum, model.width);
  return model.dropout > 0.0 ? f.call("dropout", {normed}, {{"p", model.dropout}}) : normed;
}

inline Tensor encoder(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "encoder", "TimeSeriesTransformerEncoder");
  const Side& side = model.encoder;
  const Tensor hidden = embedded(f, model, input, 0, model.context);
  const Looking at = {.name = "self_attn", .heads = side.heads};
  return stack(f, "layers", "TimeSeriesTransformerEncoderLayer", side.layers, hidden, [&](Tensor x, std::int64_t) {
    const Tensor mixed = joined(f, model, x, attention(f, model, at, x, x), "self_attn_layer_norm");
    return fed(f, model, side, mixed);
  });
}

inline Tensor decoder(Forward& f, const Model& model, Tensor input, Tensor encoded) {
  const InModule inside(f, "decoder", "TimeSeriesTransformerDecoder");
  const Side& side = model.decoder;
  const Tensor mask = f.call("window_mask", {input, input});
  const Tensor hidden = embedded(f, model, input, model.context, model.future);
  const Looking self = {.name = "self_attn", .heads = side.heads, .mask = mask};
  const Looking cross = {.name = "encoder_attn", .heads = side.heads};
  return stack(f, "layers", "TimeSeriesTransformerDecoderLayer", side.layers, hidden, [&](Tensor x, std::int64_t) {
    const Tensor mixed = joined(f, model, x, attention(f, model, self, x, x), "self_attn_layer_norm");
    const Tensor seen = attention(f, model, cross, mixed, encoded);
    return fed(f, model, side, joined(f, model, mixed, seen, "encoder_attn_layer_norm"));
  });
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const bool bare = model.class_name.ends_with("Model");
  Tensor decoded = 0;
  {
    const InModule inside(f, bare ? "" : "model", "TimeSeriesTransformerModel");
    const Tensor all = moments(f, model);
    const Tensor encoded = encoder(f, model, f.slice(all, 1, 0, model.context));
    f.hand_out(encoded);
    decoded = decoder(f, model, f.slice(all, 1, model.context, Forward::kRest), encoded);
  }
  if (bare) return;
  distribution_loss(f,
                    distribution_head(f, "parameter_projection", decoded, model.width, model.channels, model.numbers));
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"TimeSeriesTransformer", "time_series_transformer", "model"}});

/// What print(model) shows. Lengths are told by their sum alone.
inline void read_tree(TreeFields& t) {
  const auto moments = t.value("encoder.embed_positions", "num_embeddings").value_or(2);
  const std::int64_t future = std::max<std::int64_t>(moments / 2, 1);
  t.set("prediction_length", future);
  t.set("context_length", std::max<std::int64_t>(moments - future, 1));
  const std::string proj = "/parameter_projection.proj";
  const std::int64_t channels = t.value(proj + ".0", "out_features").value_or(1);
  t.set("input_size", channels);
  t.set_string("distribution_output", t.count_of(proj) == 2 ? "normal" : "student_t");
  const auto inputs = t.value("encoder.value_embedding.value_projection", "in_features").value_or(3);
  t.set_text("lags_sequence", "[1]");
  t.set("num_time_features", std::max<std::int64_t>(inputs - 3 * channels, 0));
  t.assume("half of the " + std::to_string(moments) + " moments to come, and no lags, which the tree does not print");
  const std::int64_t width = t.value("encoder.layers.0.fc1", "in_features").value_or(0);
  if (width > 0) t.set("d_model", width);
  for (const std::string side : {"encoder", "decoder"}) {
    t.count(side + "_layers", side + ".layers");
    t.size(side + "_ffn_dim", side + ".layers.0.fc1", "out_features");
    t.heads_of_width({.usual_width = std::max<std::int64_t>(width / 2, 1), .heads_field = side + "_attention_heads"},
                     width);
  }
}

inline constexpr Architecture kArchitecture = {
    .name = "time_series",
    .model_types = names<"time_series_transformer">,
    .usual_head = Head::own,
    .write = write,
    .classes = kClasses,
    .read_tree = read_tree,
    .blocks = names<"TimeSeriesTransformerEncoderLayer", "TimeSeriesTransformerDecoderLayer">};

}  // namespace time_series

}  // namespace gpumem::architectures
