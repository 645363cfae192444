#pragma once

#include "gpumem/architectures/decoder.hpp"

#include <algorithm>

namespace gpumem::architectures {

namespace decoder_detail {

/// ForCausalLMLoss. Its names for the float32 logits and for the copy end when the model returns, as the one for the
/// body's hidden states does.
GPUMEM_INLINE void causal_loss(Forward& forward, Tensor logits, Tensor hidden, bool upcasts) {
  const Tensor labels = forward.token_input("labels");
  const Tensor wide = upcasts ? forward.to(logits, "float32") : logits;
  const Tensor shifted = forward.shift(wide, 0, -1);
  const Tensor truth = forward.shift(labels, 1, Forward::kRest);
  const Tensor rows = forward.flatten(shifted, 0, 1);
  const Tensor loss = forward.call("cross_entropy", {rows, truth}, {{"keeps_type", true}});
  forward.leave_function(loss, {wide, shifted, hidden});
}

GPUMEM_INLINE Tensor capped(Forward& forward, Tensor logits, const LanguageHead& options) {
  if (options.scales) logits = forward.scale(logits);
  if (options.softcap > 0.0) logits = forward.scale(forward.call("tanh", {forward.scale(logits)}));
  return options.floats || options.retyped ? forward.to(logits, "float32") : logits;
}

/// F.linear of a weight that F.normalize makes anew.
GPUMEM_INLINE Tensor normed_head(Forward& forward, const DecoderSizes& sizes, Tensor hidden,
                                 const LanguageHead& options) {
  const InModule inside(forward, options.name, "NormHead");
  forward.repeat_parameters(sizes.tied);
  const Tensor weight = forward.parameter("weight", {sizes.vocabulary, sizes.width});
  forward.repeat_parameters(false);
  const Tensor normed = forward.call("lp_normalize", {weight}, {{"dim", std::int64_t{1}}});
  return forward.call("linear_function", {hidden, normed});
}

GPUMEM_INLINE void language_head(Forward& forward, const DecoderSizes& sizes, Tensor hidden, LanguageHead options) {
  const TextPart* part = forward.text_part();
  const bool plain = part != nullptr && part->plain_logits;
  options.scales = options.scales && !plain;
  if (plain) options.softcap = 0.0;
  const bool changed =
      options.scales || options.softcap > 0.0 || options.floats || options.retyped || options.norms_weight;
  const Tensor logits = options.norms_weight ? normed_head(forward, sizes, hidden, options)
                                             : forward.linear(options.name, options.narrowed.value_or(hidden),
                                                              sizes.width, sizes.vocabulary,
                                                              {.bias = options.bias,
                                                               .tied = sizes.tied,
                                                               .returned = !changed,
                                                               .outlives_loss = options.outlives_loss});
  const Tensor handed_out = capped(forward, logits, options);
  if (changed && !options.retyped) forward.hand_out(handed_out);
  causal_loss(forward, handed_out, hidden, options.upcasts);
  if (options.retyped) forward.hand_out(forward.as_type_of(handed_out, hidden));
}

}  // namespace decoder_detail

GPUMEM_INLINE DecoderSizes decoder_sizes(ConfigFields& config, const DecoderDefaults& defaults) {
  DecoderSizes sizes;
  sizes.vocabulary = config.size({"vocab_size"});
  sizes.width = config.size({"hidden_size", "n_embd", "d_model"});
  sizes.layers = config.layers({"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
  sizes.heads = config.size({"num_attention_heads", "n_head", "n_heads", "num_heads"});
  sizes.kv_heads = config.size_or({"num_key_value_heads"}, sizes.heads);
  sizes.head_width = config.size_or({"head_dim"}, std::max<std::int64_t>(sizes.width / sizes.heads, 1));
  const std::int64_t usual_inner = std::min(defaults.inner_factor * sizes.width, ConfigFields::kLargestSize);
  sizes.inner = defaults.inner_factor == 0 ? config.size({"intermediate_size", "n_inner", "ffn_dim"})
                                           : config.size_or({"intermediate_size", "n_inner", "ffn_dim"}, usual_inner);
  sizes.attention_dropout = config.number({"attention_dropout", "attn_pdrop"}, 0.0);
  sizes.activation = config.text({"hidden_act", "hidden_activation", "activation_function"}, defaults.activation);
  sizes.tied = config.flag("tie_word_embeddings", defaults.tied);
  // Latent attention has widths of its own: GLM-4.7-Flash's 20 heads do not divide its 2,048.
  const bool whole = config.has("head_dim") || config.has("kv_lora_rank") || sizes.width % sizes.heads == 0;
  if (!whole) config.fail("does not divide hidden_size, and no head_dim is given", "num_attention_heads");
  if (sizes.heads % sizes.kv_heads != 0) config.fail("does not divide num_attention_heads", "num_key_value_heads");
  if (sizes.heads * sizes.head_width > ConfigFields::kLargestSize) config.fail("makes heads too wide", "head_dim");
  return sizes;
}

GPUMEM_INLINE DecoderSizes encoder_sizes(ConfigFields& config, const EncoderDefaults& defaults) {
  DecoderSizes sizes;
  sizes.width = config.size_or({"hidden_size"}, defaults.width);
  sizes.inner = config.size_or({"intermediate_size"}, defaults.inner);
  sizes.layers = config.layers_or("num_hidden_layers", defaults.layers);
  sizes.heads = config.size_or({"num_attention_heads"}, defaults.heads);
  sizes.activation = config.text({"hidden_act"}, defaults.activation);
  sizes.attention_dropout = config.number({"attention_dropout"}, 0.0);
  if (sizes.width % sizes.heads != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  return sizes;
}

GPUMEM_INLINE Tensor split_heads(Forward& forward, Tensor tensor, std::int64_t width) {
  return forward.permute(forward.unflatten(tensor, 2, {-1, width}), {0, 2, 1, 3});
}

GPUMEM_INLINE Tensor merge_heads(Forward& forward, Tensor tensor) {
  return forward.flatten(forward.contiguous(forward.permute(tensor, {0, 2, 1, 3})), 2, 3);
}

GPUMEM_INLINE Tensor repeat_heads(Forward& forward, Tensor tensor, std::int64_t times, bool in_kernel) {
  if (times == 1) return tensor;
  const std::optional<When> when = in_kernel ? std::optional(When::heads_are_repeated) : std::nullopt;
  const Tensor view = forward.call("unsqueeze", {tensor}, {{"dim", std::int64_t{2}}}, when);
  const Tensor expanded = forward.call("expand", {view}, {{"shape", Sizes{-1, -1, times, -1, -1}}}, when);
  return forward.call("flatten", {expanded}, {{"start_dim", std::int64_t{1}}, {"end_dim", std::int64_t{2}}}, when);
}

GPUMEM_INLINE Rotary rotary_tables(Forward& forward, Tensor ids, std::int64_t width) {
  const InModule inside(forward, "rotary_emb", "RotaryEmbedding");
  const TextPart* part = forward.text_part();
  const auto positions = part == nullptr ? TextPart::Positions::shared : part->positions;
  const bool by_sample = positions != TextPart::Positions::shared;
  const bool by_section = positions == TextPart::Positions::by_section;
  const auto table = [&]() {
    return forward.call("rotary_table", {ids}, {{"width", by_section ? 3 * width : width}, {"padded", by_sample}});
  };
  const Tensor cosines = table();
  return {cosines, table(), width, by_section};
}

GPUMEM_INLINE Rotary layer_tables(Forward& forward, const Rotary& rotary) {
  if (!rotary.by_section) return rotary;
  const auto joined = [&](Tensor tables) { return forward.contiguous(forward.slice(tables, 3, 0, rotary.width)); };
  const Tensor cosines = joined(rotary.cosines);
  return {cosines, joined(rotary.sines), rotary.width, false};
}

GPUMEM_INLINE Tensor wide_norm(Forward& forward, std::string_view name, std::string_view class_name, Tensor input,
                               std::int64_t width, bool adds_one) {
  const InModule inside(forward, name, class_name);
  const Tensor normed = forward.layer("norm", {}, "rms_norm", {forward.to(input, "float32")},
                                      {{"normalized_shape", width}, {"elementwise_affine", false}});
  const Tensor weight = forward.to(forward.parameter("weight", {width}), "float32");
  return forward.as_type_of(forward.multiply(normed, adds_one ? forward.call("add", {weight}) : weight), input);
}

GPUMEM_INLINE Tensor plain_norm(Forward& forward, std::string_view name, std::string_view class_name, Tensor input,
                                std::int64_t width) {
  const Tensor normed = forward.layer(name, class_name, "rms_norm", {forward.to(input, "float32")},
                                      {{"normalized_shape", width}, {"elementwise_affine", false}});
  return forward.as_type_of(normed, input);
}

GPUMEM_INLINE Tensor clamped_gate(Forward& forward, Tensor gate, Tensor up) {
  const Tensor held = forward.call("clamp", {gate});
  const Tensor other = forward.call("clamp", {up});
  const Tensor open = forward.multiply(held, forward.call("sigmoid", {forward.scale(held)}));
  const Tensor made = forward.multiply(forward.call("add", {other}), open);
  return forward.leave_function(made, {held, other, open});
}

GPUMEM_INLINE Tensor rotate(Forward& forward, Tensor heads, const Rotary& rotary, std::int64_t width) {
  if (rotary.width < width) {
    const Tensor turned = forward.slice(heads, 3, 0, rotary.width);
    const Tensor kept = forward.slice(heads, 3, rotary.width, Forward::kRest);
    return forward.concatenate({rotate(forward, turned, rotary, rotary.width), kept}, 3);
  }
  const std::int64_t half = std::max<std::int64_t>(rotary.width / 2, 1);
  const Tensor straight = forward.multiply(heads, rotary.cosines);
  const Tensor first = forward.slice(heads, 3, 0, half);
  const Tensor second = forward.slice(heads, 3, half, Forward::kRest);
  const Tensor turned = forward.concatenate({forward.call("neg", {second}), first}, 3);
  return forward.add(straight, forward.multiply(turned, rotary.sines));
}

GPUMEM_INLINE Tensor attend(Forward& forward, const Heads& heads, const Attention& options) {
  const auto mask = options.mask ? options.mask : forward.text_mask();
  const auto repeated = [&](Tensor tensor) { return repeat_heads(forward, tensor, options.groups, !mask); };
  Heads from = {heads.query, repeated(heads.key), repeated(heads.value)};
  if (options.copies) {
    const auto copied = [&](Tensor tensor) { return forward.contiguous(tensor, When::before_4_56); };
    from = {copied(from.query), copied(from.key), copied(from.value)};
  }
  if (mask) {
    // PyTorch makes numbers of a mask of booleans in each call (convert_boolean_attn_mask).
    const Tensor added = forward.as_type_of(*mask, from.query);
    return merge_heads(forward, forward.call("scaled_dot_product_attention", {from.query, from.key, from.value, added},
                                             {{"dropout_p", options.dropout}}));
  }
  const Tensor attended = forward.call("scaled_dot_product_attention", {from.query, from.key, from.value},
                                       {{"dropout_p", options.dropout},
                                        {"is_causal", options.causal},
                                        {"enable_gqa", options.groups > 1 || options.in_kernel}});
  return merge_heads(forward, attended);
}

GPUMEM_INLINE Heads project_heads(Forward& forward, const DecoderSizes& sizes, Tensor input, const Linear& linear) {
  const auto heads = [&](std::string_view name, std::int64_t count) {
    return split_heads(forward, forward.linear(name, input, sizes.width, count * sizes.head_width, linear),
                       sizes.head_width);
  };
  const Tensor query = heads("q_proj", sizes.heads);
  const Tensor key = heads("k_proj", sizes.kv_heads);
  return {query, key, heads("v_proj", sizes.kv_heads)};
}

GPUMEM_INLINE Tensor attend_cached(Forward& forward, const DecoderSizes& sizes, const Heads& heads, Attention options) {
  const Tensor value = forward.cache(heads.key, heads.value);
  options.groups = sizes.heads / sizes.kv_heads;
  options.dropout = sizes.attention_dropout;
  return attend(forward, {heads.query, heads.key, value}, options);
}

GPUMEM_INLINE Tensor sink_attention(Forward& forward, const Heads& heads, std::optional<Tensor> sinks, Tensor mask,
                                    const Attention& options) {
  const Tensor key = repeat_heads(forward, heads.key, options.groups);
  const Tensor value = repeat_heads(forward, heads.value, options.groups);
  const model::Attribute dropout = {"dropout_p", options.dropout};
  const model::Attribute causal = {"is_causal", options.causal};
  const Tensor attended =
      sinks ? forward.call("sink_attention", {heads.query, key, value, mask, *sinks}, {dropout, causal})
            : forward.call("sink_attention", {heads.query, key, value, mask}, {dropout, causal});
  return merge_heads(forward, attended);
}

GPUMEM_INLINE Side read_side(ConfigFields& config, std::string_view name, std::int64_t width) {
  const bool encoder = name == "encoder";
  const std::string_view heads = encoder ? "encoder_attention_heads" : "decoder_attention_heads";
  const Side side = {config.layers({encoder ? "encoder_layers" : "decoder_layers"}), config.size({heads}),
                     config.size({encoder ? "encoder_ffn_dim" : "decoder_ffn_dim"})};
  if (width % side.heads != 0) config.fail("does not divide d_model", heads);
  return side;
}

GPUMEM_INLINE void tree_sides(TreeFields& tree, std::span<const PublishedHeads> published, std::int64_t width) {
  for (const std::string side : {"encoder", "decoder"}) {
    tree.count(side + "_layers", side + ".layers");
    tree.size(side + "_ffn_dim", side + ".layers.0.fc1", "out_features");
    const std::string heads = side + "_attention_heads";
    tree.heads_of_width({.published = published, .heads_field = heads}, width);
  }
}

GPUMEM_INLINE Tensor stream_attention(Forward& forward, const StreamAttention& options, Tensor input, Tensor source) {
  const InModule inside(forward, options.name, options.class_name);
  const std::int64_t width = options.width;
  const auto parted = [&](Tensor tensor) {
    Tensor heads = split_heads(forward, tensor, width / options.heads);
    if (options.copies) return forward.contiguous(heads);
    for (const std::optional<When>& when : options.copies_when) {
      if (when) heads = forward.contiguous(heads, *when);
    }
    return heads;
  };
  const Tensor projected = forward.linear("q_proj", input, width, width);
  const Tensor key = parted(forward.linear("k_proj", source, width, width, {.bias = options.key_bias}));
  const Tensor value = parted(forward.linear("v_proj", source, width, width));
  const Tensor query = parted(projected);
  if (options.caches) {
    forward.cache(key);
    forward.cache(value);
  }
  Tensor attended = 0;
  if (options.mask) {
    const Tensor mask = options.adds_masks ? forward.add(*options.mask, When::masked) : *options.mask;
    attended = merge_heads(forward, forward.call("scaled_dot_product_attention", {query, key, value, mask},
                                                 {{"dropout_p", options.dropout}}));
  } else {
    attended =
        attend(forward, {query, key, value}, {.dropout = options.dropout, .copies = false, .causal = options.causal});
  }
  return forward.leave_function(forward.linear("out_proj", attended, width, width), {query, key, value, input});
}

namespace decoder_detail {

/// Tables in which the two elements of a pair are side by side.
GPUMEM_INLINE Rotary paired_tables(Forward& forward, const Rotary& rotary, bool wide) {
  const auto doubled = [&](Tensor table) {
    const Tensor half = forward.slice(table, 3, 0, std::max<std::int64_t>(rotary.width / 2, 1));
    const Tensor both = forward.concatenate({half, half}, 3);
    return wide ? forward.to(both, "float32") : both;
  };
  const Tensor cosines = doubled(rotary.cosines);
  return {cosines, doubled(rotary.sines), rotary.width};
}

/// q.float() cos + rotate_half(q).float() sin, in the type of q (ERNIE 4.5).
GPUMEM_INLINE Tensor rotate_wide(Forward& forward, Tensor heads, const Rotary& rotary) {
  const std::int64_t half = std::max<std::int64_t>(rotary.width / 2, 1);
  const Tensor straight = forward.multiply(forward.to(heads, "float32"), rotary.cosines);
  const Tensor second = forward.slice(heads, 3, half, Forward::kRest);
  const Tensor turned = forward.concatenate({forward.call("neg", {second}), forward.slice(heads, 3, 0, half)}, 3);
  const Tensor across = forward.multiply(forward.to(turned, "float32"), rotary.sines);
  return forward.as_type_of(forward.add(straight, across), heads);
}

/// A projection of a rotary attention, as heads, normed where the norm has a name.
GPUMEM_INLINE Tensor projected_heads(Forward& f, const DecoderSizes& sizes, const RotaryAttention& options,
                                     Tensor input, std::string_view name, std::string_view norm, std::int64_t count) {
  const std::int64_t each = sizes.head_width;
  // A norm over all heads needs all of them, so ranks do not share these projections.
  const bool whole = options.norm_place == HeadNorm::all || !options.sub_norm.empty();
  const Split split = whole ? Split::whole : Split::columns;
  Tensor flat = f.linear(name, input, sizes.width, count * each, {.bias = options.input_bias, .split = split});
  const bool normed = !norm.empty() && !options.head_norm.empty();
  if (normed && options.norm_place == HeadNorm::all) flat = f.rms_norm(norm, flat, count * each, options.head_norm);
  if (options.clips) flat = f.call("hardtanh", {flat}, {{"inplace", true}});  // clamp_
  if (!normed || options.norm_place != HeadNorm::each) return split_heads(f, flat, each);
  const Tensor parted = f.unflatten(flat, 2, {-1, each});
  return f.permute(f.rms_norm(norm, parted, each, options.head_norm), {0, 2, 1, 3});
}

}  // namespace decoder_detail

GPUMEM_INLINE std::array<Tensor, 2> turn_heads(Forward& forward, Tensor query, Tensor key, const Rotary& rotary,
                                               std::int64_t width, Turning turning) {
  if (turning == Turning::halves) {
    const Tensor turned = rotate(forward, query, rotary, width);
    return {turned, forward.leave_function(rotate(forward, key, rotary, width), {query, key})};
  }
  const bool wide = turning != Turning::pairs;
  const bool made = turning == Turning::made_pairs;
  const Rotary tables = made ? rotary : decoder_detail::paired_tables(forward, rotary, wide);
  if (!wide) return {rotate(forward, query, tables, width), rotate(forward, key, tables, width)};
  const Tensor turned = decoder_detail::rotate_wide(forward, query, tables);
  return {turned, decoder_detail::rotate_wide(forward, key, tables)};
}

GPUMEM_INLINE Tensor rotary_attention(Forward& forward, const DecoderSizes& sizes, Tensor input, const Rotary& rotary,
                                      const RotaryAttention& options) {
  const InModule inside(forward, "self_attn", options.class_name);
  const std::int64_t each = sizes.head_width;
  const auto heads = [&](std::string_view name, std::string_view norm, std::int64_t count) {
    return decoder_detail::projected_heads(forward, sizes, options, input, name, norm, count);
  };
  const Tensor query = heads("q_proj", options.query_norm, sizes.heads);
  const Tensor key = heads("k_proj", options.key_norm, sizes.kv_heads);
  Tensor value = heads("v_proj", "", sizes.kv_heads);
  std::array<Tensor, 2> turned = {query, key};
  if (options.turns) turned = turn_heads(forward, query, key, layer_tables(forward, rotary), each, options.turning);
  if (options.scales_queries) turned[0] = forward.scale(turned[0]);
  if (!options.head_norm.empty() && options.norm_place == HeadNorm::turned) {
    const auto normed = [&](std::string_view name, Tensor of) {
      return options.plain_norms ? plain_norm(forward, name, options.head_norm, of, each)
                                 : forward.rms_norm(name, of, each, options.head_norm);
    };
    turned[0] = normed(options.query_norm, turned[0]);
    turned[1] = normed(options.key_norm, turned[1]);
  }
  value = forward.cache(turned[1], value);
  Tensor attended = attend(forward, {turned[0], turned[1], value},
                           {.groups = sizes.heads / sizes.kv_heads, .dropout = sizes.attention_dropout});
  const bool sub = !options.sub_norm.empty();
  if (sub) attended = forward.rms_norm("attn_sub_norm", attended, sizes.heads * each, options.sub_norm);
  const bool whole = sub || options.norm_place == HeadNorm::all;
  Tensor output = forward.linear("o_proj", attended, sizes.heads * each, sizes.width,
                                 {.bias = options.output_bias, .split = whole ? Split::whole : Split::rows});
  if (options.output_dropout > 0.0) output = forward.call("dropout", {output}, {{"p", options.output_dropout}});
  return forward.leave_function(output, {turned[0], turned[1], value, input});
}

GPUMEM_INLINE std::int64_t rotary_width(ConfigFields& config, const DecoderSizes& sizes,
                                        std::initializer_list<std::string_view> names, double usual_share) {
  const double share = config.number(names, usual_share);
  const auto width = static_cast<std::int64_t>(static_cast<double>(sizes.head_width) * std::clamp(share, 0.0, 1.0));
  if (width >= 2 && width % 2 == 0) return width;
  config.fail("leaves an odd number of elements of a head for rotary positions", *names.begin());
  return 2;
}

GPUMEM_INLINE Tensor feed_forward(Forward& forward, const DecoderSizes& sizes, Tensor input,
                                  const PlainFeedForward& options) {
  const InModule inside(forward, options.module, options.class_name);
  const auto linear = [&](Split split) {
    return Linear{
        .bias = options.bias, .class_name = options.linear_class, .split = options.split ? split : Split::whole};
  };
  const Tensor wide = forward.linear(options.widen, input, sizes.width, sizes.inner, linear(Split::columns));
  const Tensor active = forward.activation(options.activation, wide, sizes.activation);
  const Tensor narrow = forward.linear(options.narrow, active, sizes.inner, sizes.width, linear(Split::rows));
  return forward.leave_function(forward.dropout("dropout", narrow, options.dropout), {input});
}

GPUMEM_INLINE Tensor gated_feed_forward(Forward& forward, const DecoderSizes& sizes, Tensor input,
                                        std::string_view class_name, bool bias, std::string_view sub_norm) {
  const InModule inside(forward, "mlp", class_name);
  const bool whole = !sub_norm.empty();  // such a norm needs all columns
  const Linear wide = {.bias = bias, .split = whole ? Split::whole : Split::columns};
  const Tensor gate = forward.linear("gate_proj", input, sizes.width, sizes.inner, wide);
  const Tensor open = forward.activation("act_fn", gate, sizes.activation);
  const Tensor up = forward.linear("up_proj", input, sizes.width, sizes.inner, wide);
  const Linear rows = {.bias = bias, .split = whole ? Split::whole : Split::rows};
  Tensor gated = forward.multiply(open, up);
  if (whole) gated = forward.rms_norm("ffn_sub_norm", gated, sizes.inner, sub_norm);
  const Tensor down = forward.linear("down_proj", gated, sizes.inner, sizes.width, rows);
  return forward.leave_function(down, {input});
}

GPUMEM_INLINE Tensor packed_feed_forward(Forward& forward, const DecoderSizes& sizes, Tensor input,
                                         std::string_view class_name) {
  const InModule inside(forward, "mlp", class_name);
  const Tensor packed = forward.linear("gate_up_proj", input, sizes.width, 2 * sizes.inner, {.bias = false});
  const std::vector<Tensor> parts = forward.split(packed, 2, {sizes.inner, sizes.inner});
  const Tensor gated = forward.multiply(parts[1], forward.activation("activation_fn", parts[0], sizes.activation));
  const Tensor down = forward.linear("down_proj", gated, sizes.inner, sizes.width, {.bias = false});
  return forward.leave_function(down, {input, packed});
}

GPUMEM_INLINE void decoder_head(Forward& forward, ConfigFields& config, const DecoderSizes& sizes, Head head,
                                Tensor hidden, const LanguageHead& options) {
  const std::int64_t labels = labels_of(config);
  switch (head) {
    case Head::none:
    case Head::encoder: return;
    case Head::causal_lm: return decoder_detail::language_head(forward, sizes, hidden, options);
    case Head::sequence_classification: {
      const Tensor scores = forward.linear("score", hidden, sizes.width, labels, {.bias = false});
      forward.select(scores, 1, -1);  // the last token's
      return;
    }
    case Head::token_classification: (void)forward.linear("score", hidden, sizes.width, labels); return;
    case Head::question_answering: (void)forward.linear("qa_outputs", hidden, sizes.width, 2); return;
    case Head::own:
    case Head::masked_lm: forward.fail("a decoder has no such head"); return;
  }
}

GPUMEM_INLINE void encoder_head(Forward& forward, Head head, Tensor hidden, const EncoderHeads& heads) {
  const auto read = [&](const std::function<Tensor(Tensor)>& before) { return before ? before(hidden) : hidden; };
  switch (head) {
    case Head::none:
    case Head::own:
    case Head::encoder: return;
    case Head::causal_lm:
    case Head::masked_lm: return heads.words(hidden);
    case Head::sequence_classification: return heads.sample(hidden);
    case Head::token_classification:
      (void)forward.linear("classifier", read(heads.token), heads.width, heads.labels);
      return;
    case Head::question_answering: (void)forward.linear("qa_outputs", read(heads.span), heads.width, 2); return;
  }
}

GPUMEM_INLINE Tensor row_mask(Forward& forward, Tensor attention_mask) {
  const Tensor row = forward.call("unsqueeze", {attention_mask}, {{"dim", std::int64_t{1}}});
  return forward.call("masked_fill", {forward.call("unsqueeze", {row}, {{"dim", std::int64_t{1}}})});
}

GPUMEM_INLINE std::int64_t distribution_numbers(ConfigFields& config) {
  const std::string_view name = config.text({"distribution_output"}, "student_t");
  if (name == "student_t") return 3;
  if (name == "normal" || name == "negative_binomial") return 2;
  config.fail("is not known: one of student_t, normal, negative_binomial", "distribution_output");
  return 1;
}

GPUMEM_INLINE std::vector<Tensor> distribution_head(Forward& forward, std::string_view name, Tensor input,
                                                    std::int64_t in, std::int64_t out, std::int64_t numbers) {
  const InModule inside(forward, name, "ParameterProjection");
  const InModule list(forward, "proj", "ModuleList");
  std::vector<Tensor> made;
  for (std::int64_t at = 0; at < numbers; ++at) made.push_back(forward.linear(std::to_string(at), input, in, out));
  return made;
}

GPUMEM_INLINE void distribution_loss(Forward& forward, const std::vector<Tensor>& numbers) {
  Tensor sum = forward.call("square", {numbers.front()});
  for (std::size_t at = 1; at < numbers.size(); ++at) {
    sum = forward.add(sum, forward.call("square", {numbers[at]}));
  }
  (void)forward.call("mean", {sum});
}

GPUMEM_INLINE void check_length(ConfigFields& config, std::int64_t length, std::string_view field) {
  constexpr std::int64_t kMost = 1 << 20;
  if (length > kMost) config.fail("is more than gpumem takes", field);
}

GPUMEM_INLINE void token_loss(Forward& forward, Tensor logits, std::optional<Tensor> hidden) {
  const Tensor labels = forward.token_input("labels");
  const Tensor rows = forward.flatten(logits, 0, 1);
  const Tensor loss = forward.call("cross_entropy", {rows, labels}, {{"keeps_type", true}});
  if (hidden) forward.leave_function(loss, {*hidden});
}

GPUMEM_INLINE Tensor vocabulary_parallel_loss(Forward& forward, Tensor logits) {
  const Tensor labels = forward.token_input("labels");
  const Tensor rows = forward.flatten(logits, 0, 1);
  return forward.call("cross_entropy", {rows, labels}, {{"vocabulary_parallel", true}});
}

GPUMEM_INLINE std::int64_t labels_of(ConfigFields& config) {
  constexpr std::size_t kUsual = 2;
  const core::JsonValue* names = config.find("id2label");
  const bool named = names != nullptr && names->is(core::JsonValue::Kind::object) && names->size() > 0;
  return config.size_or({"num_labels"}, static_cast<std::int64_t>(named ? names->size() : kUsual));
}

GPUMEM_INLINE Tensor token_ids(Forward& forward) {
  const Tensor ids = forward.token_input("input_ids");
  (void)forward.token_input("attention_mask");
  return ids;
}

}  // namespace gpumem::architectures
