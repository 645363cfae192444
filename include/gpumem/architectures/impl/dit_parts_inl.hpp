#pragma once

#include "gpumem/architectures/dit_parts.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "gpumem/architectures/denoiser.hpp"

namespace gpumem::architectures {

namespace dit_parts_detail {

inline constexpr std::int64_t kWidest = 1 << 20;

GPUMEM_INLINE std::int64_t bounded(ConfigFields& config, std::string_view name, std::int64_t size) {
  if (size <= kWidest) return size;
  config.fail("is wider than gpumem takes", name);
  return 1;
}

}  // namespace dit_parts_detail

GPUMEM_INLINE DitCode dit_code(ConfigFields& config) {
  const std::string_view code = config.text({"_code"}, "diffusers");
  if (code == "simpletuner") return DitCode::simpletuner;
  if (code != "diffusers") config.fail("must be diffusers or simpletuner", "_code");
  return DitCode::diffusers;
}

GPUMEM_INLINE std::int64_t dit_width(ConfigFields& config, std::string_view name, std::int64_t usual) {
  return dit_parts_detail::bounded(config, name, config.size_or({name}, usual));
}

GPUMEM_INLINE std::int64_t dit_patch(ConfigFields& config) {
  constexpr std::int64_t kLargest = 16;
  const std::int64_t patch = dit_width(config, "patch_size", 2);
  if (patch > kLargest) config.fail("is larger than gpumem takes", "patch_size");
  return patch;
}

GPUMEM_INLINE DitSizes dit_sizes(ConfigFields& config, const DitDefaults& defaults) {
  DitSizes sizes;
  sizes.heads = dit_width(config, "num_attention_heads", defaults.heads);
  sizes.head_width = dit_width(config, "attention_head_dim", defaults.head_width);
  sizes.width = dit_parts_detail::bounded(config, "num_attention_heads", sizes.heads * sizes.head_width);
  sizes.channels = dit_width(config, "in_channels", defaults.channels);
  sizes.out_channels = dit_width(config, "out_channels", sizes.channels);
  sizes.text_width = dit_width(config, defaults.text_field, defaults.text_width);
  return sizes;
}

GPUMEM_INLINE std::int64_t dit_inner(ConfigFields& config, std::string_view name, std::int64_t width, double usual) {
  constexpr double kLargestRatio = 64.0;
  const double ratio = config.number({name}, usual);
  const bool sound = ratio > 0.0 && ratio <= kLargestRatio;
  if (!sound) config.fail("must be between 0 and 64", name);
  return std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(width) * (sound ? ratio : usual)), 1);
}

GPUMEM_INLINE Sizes dit_list(ConfigFields& config, std::string_view name, const Sizes& usual) {
  const core::JsonValue* field = config.find(name);
  if (field == nullptr) return usual;
  const auto size = [&](const core::JsonValue& value) -> std::int64_t {
    const bool sound =
        value.is(core::JsonValue::Kind::integer) && value.integer() > 0 && value.integer() <= dit_parts_detail::kWidest;
    if (!sound) config.fail("must have positive sizes that gpumem takes", name);
    return sound ? value.integer() : 1;
  };
  if (!field->is(core::JsonValue::Kind::list)) return Sizes(usual.size(), size(*field));
  Sizes sizes;
  for (const core::JsonValue& value : field->items()) sizes.push_back(size(value));
  if (sizes.size() == usual.size()) return sizes;
  config.fail("must have " + std::to_string(usual.size()) + " sizes", name);
  return usual;
}

GPUMEM_INLINE std::int64_t dit_layers(ConfigFields& config, std::string_view name, std::int64_t usual) {
  const std::int64_t layers = config.count_or(name, usual);
  if (layers <= ConfigFields::kMostLayers) return layers;
  config.fail("is more layers than gpumem takes", name);
  return 1;
}

GPUMEM_INLINE std::vector<Tensor> chunks(Forward& f, Tensor tensor, std::int64_t dim, std::int64_t count,
                                         std::int64_t size) {
  return f.split(tensor, dim, Sizes(static_cast<std::size_t>(count), size));
}

GPUMEM_INLINE Tensor unsqueezed(Forward& f, Tensor tensor, std::int64_t dim) {
  return f.call("unsqueeze", {tensor}, {{"dim", dim}});
}

GPUMEM_INLINE std::vector<Tensor> row_chunks(Forward& f, Tensor rows, std::int64_t count, std::int64_t width) {
  std::vector<Tensor> parts = chunks(f, rows, 1, count, width);
  for (Tensor& part : parts) part = unsqueezed(f, part, 1);
  return parts;
}

GPUMEM_INLINE Tensor modulated(Forward& f, Tensor normed, Tensor scale, Tensor shift) {
  return f.add(f.multiply(normed, f.call("add", {scale})), shift);
}

GPUMEM_INLINE Tensor gated_sum(Forward& f, Tensor residual, Tensor gate, Tensor branch) {
  return f.add(residual, f.multiply(gate, branch));
}

GPUMEM_INLINE Tensor affine_norm(Forward& f, std::string_view name, Tensor input, std::int64_t width, bool affine) {
  return f.layer(name, "LayerNorm", "layer_norm", {input},
                 {{"normalized_shape", width}, {"elementwise_affine", affine}});
}

GPUMEM_INLINE Tensor bare_norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  return affine_norm(f, name, input, width, false);
}

GPUMEM_INLINE Tensor wide_norm(Forward& f, std::string_view name, Tensor input, std::int64_t width, bool affine) {
  const Tensor wide = f.to(input, "float32");
  const Tensor normed = f.layer(name, "FP32LayerNorm", "layer_norm", {wide},
                                {{"normalized_shape", width}, {"elementwise_affine", affine}});
  return f.as_type_of(normed, input);
}

GPUMEM_INLINE Tensor torch_rms_norm(Forward& f, std::string_view name, Tensor input, std::int64_t width, bool affine) {
  return f.layer(name, "RMSNorm", "rms_norm", {input},
                 {{"normalized_shape", width}, {"elementwise_affine", affine}, {"fused", true}});
}

GPUMEM_INLINE Tensor own_rms_norm(Forward& f, std::string_view name, Tensor input, std::int64_t width, bool affine) {
  const InModule inside(f, name, "RMSNorm");
  const Tensor squares = f.call("pow", {f.to(input, "float32")});
  const Tensor mean = f.call("mean", {squares}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  const Tensor scaled = f.multiply(input, f.call("rsqrt", {f.call("add", {mean})}));
  const Tensor back = f.as_type_of(scaled, input);
  return affine ? f.multiply(back, f.parameter("weight", {width})) : back;
}

GPUMEM_INLINE Tensor text_projection(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out,
                                     std::string_view activation) {
  const InModule inside(f, name, "PixArtAlphaTextProjection");
  const Tensor active = f.activation("act_1", f.linear("linear_1", input, in, out), activation);
  return f.linear("linear_2", active, out, out);
}

GPUMEM_INLINE Tensor patch_embedding(Forward& f, std::string_view name, Tensor latents, std::int64_t channels,
                                     std::int64_t width, std::int64_t patch, std::int64_t tokens, std::int64_t places) {
  const InModule inside(f, name, "PatchEmbed");
  const Tensor cut = f.layer("proj", "Conv2d", "conv2d", {latents},
                             {{"in_channels", channels},
                              {"out_channels", width},
                              {"kernel_size", Sizes(2, patch)},
                              {"stride", Sizes(2, patch)}});
  const Tensor rows = f.permute(f.flatten(cut, 2, 3), {0, 2, 1});
  if (places == 0) return rows;
  const Tensor held = f.constant("pos_embed", {1, places, width}, "parameters");
  const Tensor own = places < tokens ? f.constant("larger", {1, tokens, width}, "parameters")
                                     : f.call("clone", {f.slice(held, 1, 0, tokens)});
  return f.add(rows, own);
}

GPUMEM_INLINE void loss_of_patches(Forward& forward, std::string_view last, Tensor hidden, const DitSizes& sizes,
                                   std::int64_t patch, std::int64_t tokens) {
  const std::int64_t out = patch * patch * sizes.out_channels;
  const Tensor output = forward.call("clone", {forward.linear(last, hidden, sizes.width, out)});
  const bool twice = sizes.out_channels == 2 * sizes.channels;
  const Tensor read = twice ? forward.slice(output, 2, 0, out / 2) : output;
  denoiser_loss(forward, read, {tokens, twice ? out / 2 : out});
}

GPUMEM_INLINE std::vector<Tensor> modulation(Forward& f, std::string_view linear, Tensor conditions, std::int64_t in,
                                             std::int64_t width, std::int64_t count, bool bias) {
  const Tensor open = f.activation("silu", conditions, "silu");
  return row_chunks(f, f.linear(linear, open, in, count * width, {.bias = bias}), count, width);
}

GPUMEM_INLINE Tensor continuous_norm(Forward& f, std::string_view name, Tensor input, Tensor conditions,
                                     std::int64_t in, std::int64_t width, bool bias) {
  const InModule inside(f, name, "AdaLayerNormContinuous");
  const std::vector<Tensor> parts = modulation(f, "linear", conditions, in, width, 2, bias);
  return modulated(f, bare_norm(f, "norm", input, width), parts[0], parts[1]);
}

namespace dit_parts_detail {

/// The first part of FeedForward's net: a projection and its activation.
GPUMEM_INLINE Tensor activated(Forward& f, Tensor input, std::int64_t width, std::int64_t inner,
                               DitActivation activation, bool bias) {
  const bool gates = activation == DitActivation::geglu || activation == DitActivation::swiglu;
  const std::string_view class_name = activation == DitActivation::geglu         ? "GEGLU"
                                      : activation == DitActivation::swiglu      ? "SwiGLU"
                                      : activation == DitActivation::linear_silu ? "LinearActivation"
                                                                                 : "GELU";
  const InModule inside(f, "0", class_name);
  const Tensor wide = f.linear("proj", input, width, gates ? 2 * inner : inner, {.bias = bias});
  switch (activation) {
    case DitActivation::gelu: return f.call("gelu", {wide});
    case DitActivation::gelu_tanh: return f.call("gelu", {wide}, {{"approximate", std::string("tanh")}});
    case DitActivation::linear_silu: return f.activation("activation", wide, "silu");
    case DitActivation::geglu:
    case DitActivation::swiglu: break;
  }
  const std::vector<Tensor> parts = chunks(f, wide, 2, 2, inner);
  const Tensor open =
      activation == DitActivation::geglu ? f.call("gelu", {parts[1]}) : f.activation("activation", parts[1], "silu");
  return f.multiply(parts[0], open);
}

}  // namespace dit_parts_detail

GPUMEM_INLINE Tensor dit_feed_forward(Forward& f, std::string_view name, Tensor input, std::int64_t width,
                                      std::int64_t inner, DitActivation activation, bool bias) {
  const InModule inside(f, name, "FeedForward");
  const InModule net(f, "net", "ModuleList");
  const Tensor active = dit_parts_detail::activated(f, input, width, inner, activation, bias);
  return f.linear("2", active, inner, width, {.bias = bias});
}

GPUMEM_INLINE Tensor three_layers(Forward& f, std::string_view name, std::string_view class_name, Tensor input,
                                  std::int64_t width, std::int64_t inner) {
  const InModule inside(f, name, class_name);
  const Tensor open = f.call("silu", {f.linear("w1", input, width, inner, {.bias = false})});
  const Tensor up = f.linear("w3", input, width, inner, {.bias = false, .out_of_order = true});
  return f.linear("w2", f.multiply(open, up), inner, width, {.bias = false});
}

GPUMEM_INLINE Tensor turn_halves(Forward& f, Tensor heads, const PairTables& tables, std::int64_t width) {
  const Tensor straight = f.multiply(heads, tables.cosines);
  const std::vector<Tensor> halves = chunks(f, heads, 3, 2, width / 2);
  const Tensor rotated = f.concatenate({f.call("neg", {halves[1]}), halves[0]}, 3);
  return f.add(straight, f.multiply(rotated, tables.sines));
}

GPUMEM_INLINE PairTables pair_tables(Forward& f, std::initializer_list<Tensor> tokens, std::int64_t width,
                                     std::string_view dtype) {
  const InModule inside(f, "pos_embed", "PosEmbed");
  const auto joined = [&]() {
    std::vector<Tensor> tables;
    for (const Tensor part : tokens) {
      tables.push_back(f.call("rotary_table", {part}, {{"width", width}, {"dtype", std::string(dtype)}}));
    }
    const Tensor all = tables.size() == 1 ? tables[0] : f.concatenate(tables, 2);
    return f.permute(all, {0, 2, 1, 3});
  };
  const Tensor cosines = joined();
  return {cosines, joined()};
}

GPUMEM_INLINE Tensor turn_pairs(Forward& f, Tensor heads, const PairTables& tables, bool halves) {
  const std::int64_t axis = halves ? 3 : 4;
  const Tensor paired = f.unflatten(heads, 3, halves ? Sizes{2, -1} : Sizes{-1, 2});
  const std::vector<Tensor> parts = chunks(f, paired, axis, 2, 1);
  const Tensor turned = f.flatten(f.concatenate({f.call("neg", {parts[1]}), parts[0]}, axis), 3, 4);
  const Tensor straight = f.multiply(f.to(heads, "float32"), tables.cosines);
  const Tensor across = f.multiply(f.to(turned, "float32"), tables.sines);
  return f.as_type_of(f.add(straight, across), heads);
}

GPUMEM_INLINE Tensor write_pairs(Forward& f, Tensor heads, const PairTables& tables, std::int64_t width) {
  const std::vector<Tensor> pairs = chunks(f, f.unflatten(heads, 3, {-1, 2}), 4, 2, 1);
  const auto half = [&](Tensor table) { return f.slice(f.unflatten(table, 3, {width / 2, 2}), 4, 0, 1); };
  const Tensor cosines = half(tables.cosines);
  const Tensor sines = half(tables.sines);
  const auto part = [&](Tensor first, Tensor second, std::string_view op) {
    return f.as_type_of(f.call(op, {f.multiply(pairs[0], first), f.multiply(pairs[1], second)}), heads);
  };
  const Tensor even = part(cosines, sines, "sub");
  return f.flatten(f.concatenate({even, part(sines, cosines, "add")}, 4), 3, 4);
}

GPUMEM_INLINE Tensor turn_complex(Forward& f, Tensor heads, const PairTables& tables, std::string_view type) {
  return f.as_type_of(f.multiply(f.to(heads, type), tables.cosines), heads);
}

GPUMEM_INLINE Tensor as_heads(Forward& f, Tensor tensor, std::int64_t head_width) {
  return f.unflatten(tensor, 2, {-1, head_width});
}

namespace dit_parts_detail {

/// `mix` calls attention's kernel on queries, keys and values whose heads come before their tokens.
template <typename Mix>
Tensor with_heads_first(Forward& f, const std::array<Tensor, 3>& heads, const Mix& mix) {
  const auto first = [&](Tensor of) { return f.permute(of, {0, 2, 1, 3}); };
  const Tensor query = first(heads[0]);
  const Tensor key = first(heads[1]);
  return f.flatten(first(mix(query, key, first(heads[2]))), 2, 3);
}

}  // namespace dit_parts_detail

GPUMEM_INLINE Tensor attend_heads(Forward& f, Tensor query, Tensor key, Tensor value, std::optional<Tensor> mask) {
  return dit_parts_detail::with_heads_first(f, {query, key, value}, [&](Tensor q, Tensor k, Tensor v) {
    return mask ? f.call("scaled_dot_product_attention", {q, k, v, *mask})
                : f.call("scaled_dot_product_attention", {q, k, v});
  });
}

GPUMEM_INLINE Tensor attend_fewer_heads(Forward& f, Tensor query, Tensor key, Tensor value, bool causal) {
  return dit_parts_detail::with_heads_first(f, {query, key, value}, [&](Tensor q, Tensor k, Tensor v) {
    return f.call("scaled_dot_product_attention", {q, k, v}, {{"is_causal", causal}, {"enable_gqa", true}});
  });
}

GPUMEM_INLINE Tensor plain_attention(Forward& f, const PlainAttention& options, Tensor input, Tensor source) {
  const InModule inside(f, options.name, "Attention");
  const Linear linear = {.bias = options.bias};
  Tensor query = f.linear("to_q", input, options.width, options.inner, linear);
  Tensor key = f.linear("to_k", source, options.source_width, options.inner, linear);
  const Tensor value = f.linear("to_v", source, options.source_width, options.inner, linear);
  if (options.norms) {
    query = own_rms_norm(f, "norm_q", query, options.inner);
    key = own_rms_norm(f, "norm_k", key, options.inner);
  }
  const std::int64_t each = options.head_width;
  const Tensor mixed =
      attend_heads(f, as_heads(f, query, each), as_heads(f, key, each), as_heads(f, value, each), options.mask);
  Tensor left = 0;
  {
    const InModule out(f, "to_out", "ModuleList");
    left = f.linear("0", mixed, options.inner, options.width, {.bias = options.out_bias});
  }
  return options.divides ? f.call("div", {left}) : left;
}

GPUMEM_INLINE Tensor prompt_mask(Forward& f, Tensor prompt) {
  const Tensor rows = f.call("rotary_table", {prompt}, {{"width", std::int64_t{1}}, {"padded", true}});
  return f.permute(rows, {0, 1, 3, 2});
}

GPUMEM_INLINE Tensor seen_tokens(Forward& f, Tensor tokens) {
  const Tensor rows =
      f.call("rotary_table", {tokens}, {{"width", std::int64_t{1}}, {"padded", true}, {"dtype", std::string("bool")}});
  return f.permute(rows, {0, 1, 3, 2});
}

GPUMEM_INLINE SingleRows single_rows(Forward& f, std::int64_t width, const SingleOptions& options) {
  constexpr std::int64_t kSinusoids = 256;
  const InModule inside(f, options.name,
                        options.guided ? "SanaCombinedTimestepGuidanceEmbeddings" : "AdaLayerNormSingle");
  SingleRows made;
  const std::string before = options.guided ? "" : "emb.";
  const auto embedded = [&](std::string_view input, const std::string& name, std::int64_t wide) {
    return timestep_embedding(f, before + name, timestep_input(f, input, kSinusoids), kSinusoids, wide);
  };
  made.time = embedded("timestep", "timestep_embedder", width);
  if (options.guided) made.time = f.add(made.time, embedded("guidance", "guidance_embedder", width));
  if (options.sized) {
    const std::int64_t third = width / 3;
    const auto pair = [&](std::string_view input, const std::string& name) {
      const Tensor sinusoids = f.rows_input(input, 2, {kSinusoids});
      return f.flatten(f.unflatten(timestep_embedding(f, before + name, sinusoids, kSinusoids, third), 0, {-1, 2}), 1,
                       2);
    };
    const Tensor size = pair("resolution", "resolution_embedder");
    const Tensor shape = timestep_embedding(f, before + "aspect_ratio_embedder",
                                            timestep_input(f, "aspect_ratio", kSinusoids), kSinusoids, third);
    made.time = f.add(made.time, f.concatenate({size, shape}, 1));
  }
  const Tensor open = f.activation("silu", made.time, "silu");
  made.rows = f.unflatten(f.linear("linear", open, width, 6 * width), 1, {6, width});
  return made;
}

GPUMEM_INLINE std::vector<Tensor> table_rows(Forward& f, Tensor rows, std::int64_t count, std::int64_t width) {
  const Tensor table = unsqueezed(f, f.parameter("scale_shift_table", {count, width}), 0);
  return chunks(f, f.add(table, rows), 1, count, 1);
}

GPUMEM_INLINE Tensor dit_head_norm(Forward& f, std::string_view name, Tensor heads, std::int64_t width,
                                   DitHeadNorm norm) {
  switch (norm) {
    case DitHeadNorm::none: break;
    case DitHeadNorm::torch_rms: return torch_rms_norm(f, name, heads, width);
    case DitHeadNorm::own_rms: return own_rms_norm(f, name, heads, width);
    case DitHeadNorm::wide_layer: return wide_norm(f, name, heads, width, false);
  }
  return heads;
}

namespace dit_parts_detail {

/// Names of the layers of one stream.
struct StreamNames {
  std::string_view query, key, value, query_norm, key_norm;
};
inline constexpr StreamNames kImage = {"to_q", "to_k", "to_v", "norm_q", "norm_k"};
inline constexpr StreamNames kText = {"add_q_proj", "add_k_proj", "add_v_proj", "norm_added_q", "norm_added_k"};

GPUMEM_INLINE std::array<Tensor, 3> stream_heads(Forward& f, const JointAttention& options, Tensor hidden,
                                                 const StreamNames& names) {
  const auto projected = [&](std::string_view name) {
    return f.linear(name, hidden, options.width, options.width, {.bias = options.bias});
  };
  std::array<Tensor, 3> heads = {projected(names.query), projected(names.key), projected(names.value)};
  for (Tensor& tensor : heads) tensor = as_heads(f, tensor, options.head_width);
  heads[0] = dit_head_norm(f, names.query_norm, heads[0], options.head_width, options.norm);
  heads[1] = dit_head_norm(f, names.key_norm, heads[1], options.head_width, options.norm);
  return heads;
}

GPUMEM_INLINE Tensor attend_turned(Forward& f, const JointAttention& options, std::array<Tensor, 3> heads) {
  if (options.tables != nullptr && options.text_tables == nullptr && !options.packed) {
    heads[0] = turn_pairs(f, heads[0], *options.tables);
    heads[1] = turn_pairs(f, heads[1], *options.tables);
  }
  return attend_heads(f, heads[0], heads[1], heads[2]);
}

/// One stream behind the other, as [N, S, heads, width]; with `heads_first` they lie as [N, heads, S, width].
GPUMEM_INLINE Tensor joined_heads(Forward& f, const JointAttention& options, Tensor image, Tensor text) {
  if (!options.heads_first) {
    return options.text_first ? f.concatenate({text, image}, 1) : f.concatenate({image, text}, 1);
  }
  const auto first = [&](Tensor heads) { return f.permute(heads, {0, 2, 1, 3}); };
  const Tensor front = first(options.text_first ? text : image);
  return first(f.concatenate({front, first(options.text_first ? image : text)}, 2));
}

GPUMEM_INLINE Tensor first_of_list(Forward& f, std::string_view name, Tensor input, std::int64_t width, bool bias) {
  const InModule list(f, name, "ModuleList");
  return f.linear("0", input, width, width, {.bias = bias});
}

}  // namespace dit_parts_detail

GPUMEM_INLINE TwoStreams joint_attention(Forward& f, const JointAttention& options, const TwoStreams& streams,
                                         const StreamLengths& lengths) {
  namespace detail = dit_parts_detail;
  const InModule inside(f, "attn", options.class_name);
  const std::array<Tensor, 3> image = detail::stream_heads(f, options, streams.image, detail::kImage);
  const std::array<Tensor, 3> text = detail::stream_heads(f, options, streams.text, detail::kText);
  std::array<Tensor, 3> heads{};
  for (std::size_t at = 0; at < heads.size(); ++at) {
    const bool turns = (options.packed || options.text_tables != nullptr) && at < 2;
    const bool both = turns && options.text_tables != nullptr;
    const Tensor image_part = turns ? turn_complex(f, image[at], *options.tables) : image[at];
    const Tensor text_part = both ? turn_complex(f, text[at], *options.text_tables) : text[at];
    heads[at] = detail::joined_heads(f, options, image_part, text_part);
  }
  const Tensor mixed = detail::attend_turned(f, options, heads);
  const Sizes sizes = options.text_first ? Sizes{lengths.text, lengths.image} : Sizes{lengths.image, lengths.text};
  std::vector<Tensor> parts = f.split(mixed, 1, sizes);
  for (Tensor& part : parts) part = options.packed ? f.call("clone", {part}) : part;
  const std::size_t at = options.text_first ? 1 : 0;
  TwoStreams left = {detail::first_of_list(f, "to_out", parts[at], options.width, options.bias), parts[1 - at]};
  if (options.text_leaves) {
    left.text = f.linear("to_add_out", parts[1 - at], options.width, options.width, {.bias = options.bias});
  }
  return left;
}

GPUMEM_INLINE Tensor single_attention(Forward& f, const JointAttention& options, Tensor hidden, bool projects) {
  namespace detail = dit_parts_detail;
  const InModule inside(f, "attn", options.class_name);
  const Tensor mixed = detail::attend_turned(f, options, detail::stream_heads(f, options, hidden, detail::kImage));
  return projects ? detail::first_of_list(f, "to_out", mixed, options.width, options.bias) : mixed;
}

GPUMEM_INLINE std::int64_t denoiser_tree(TreeFields& t, std::string_view first, std::string_view last,
                                         std::int64_t area) {
  const bool linear = t.value(first, "in_features").has_value();
  if (linear) t.part("in_channels", first, "in_features", area);
  else t.size("in_channels", first, "in_channels");
  t.part("out_channels", last, "out_features", area);
  return t.value(first, linear ? "out_features" : "out_channels").value_or(0);
}

GPUMEM_INLINE void denoiser_heads_tree(TreeFields& t, std::int64_t width, std::int64_t usual,
                                       std::string_view published, std::string_view norm) {
  const auto printed = norm.empty() ? std::nullopt : t.value(norm, "normalized_shape");
  const std::int64_t each = printed.value_or(usual);
  t.set("attention_head_dim", each);
  t.set("num_attention_heads", std::max<std::int64_t>(width / each, 1));
  if (!printed) t.assume("heads of width " + std::to_string(each) + ", as " + std::string(published) + " has");
}

}  // namespace gpumem::architectures
