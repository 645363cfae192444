// Lumina-Image 2: blocks over the prompt's tokens, blocks over the image's, then blocks over both in one sequence;
// heads share keys. Each branch has a norm before and one behind it. Source: diffusers 0.38,
// models/transformers/transformer_lumina2.py, models/attention.py (LuminaFeedForward).
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace lumina2 {

inline constexpr std::array<std::string_view, 1> kBlocks = {"Lumina2TransformerBlock"};

struct Model {
  std::int64_t width = 2304;
  std::int64_t heads = 24;
  std::int64_t key_heads = 8;
  std::int64_t layers = 26;
  std::int64_t refiners = 2;
  std::int64_t inner = 9216;
  std::int64_t channels = 16;
  std::int64_t out = 16;
  std::int64_t captions = 1024;
  std::int64_t patch = 2;
  bool boogu = false;  ///< Boogu-Image's copy: torch.nn.RMSNorm outside of attention, pairs turned as real numbers

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
  [[nodiscard]] std::int64_t conditions() const { return std::min<std::int64_t>(width, 1024); }
};

/// The fields that Boogu-Image's class has, too.
inline Model read_sizes(ConfigFields& config) {
  Model model;
  model.width = dit_width(config, "hidden_size", 2304);
  model.heads = dit_width(config, "num_attention_heads", 24);
  model.key_heads = dit_width(config, "num_kv_heads", 8);
  model.layers = config.layers_or("num_layers", 26);
  model.refiners = dit_layers(config, "num_refiner_layers", 2);
  model.channels = dit_width(config, "in_channels", 16);
  model.out = dit_width(config, "out_channels", model.channels);
  model.patch = dit_patch(config);
  const std::int64_t multiple = dit_width(config, "multiple_of", 256);
  const std::int64_t inner = dit_inner(config, "ffn_dim_multiplier", 4 * model.width, 1.0);
  model.inner = (inner + multiple - 1) / multiple * multiple;
  if (model.width % (2 * model.heads) != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  if (model.heads % model.key_heads != 0) config.fail("does not divide num_attention_heads", "num_kv_heads");
  config.ignore({"norm_eps", "axes_dim_rope", "axes_lens"});
  return model;
}

inline Model read(ConfigFields& config) {
  Model model = read_sizes(config);
  model.captions = dit_width(config, "cap_feat_dim", 1024);
  config.ignore({"sample_size", "scaling_factor"});
  return model;
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return model.boogu ? torch_rms_norm(f, name, input, model.width) : own_rms_norm(f, name, input, model.width);
}

/// Boogu-Image's tables are float64, and each call casts them.
inline Tensor turn(Forward& f, const Model& model, Tensor heads, const PairTables& tables) {
  if (!model.boogu) return turn_complex(f, heads, tables);
  return turn_pairs(f, heads, {f.to(tables.cosines, "float32"), f.to(tables.sines, "float32")});
}

/// Attention over queries, keys and values of [N, S, heads, width], of which keys and values have fewer heads.
inline Tensor attend_grouped(Forward& f, const Model& model, Tensor query, Tensor key, Tensor value,
                             const PairTables& tables, Tensor mask) {
  const std::int64_t each = model.head_width();
  const std::int64_t times = model.heads / model.key_heads;
  const Tensor turned = turn(f, model, own_rms_norm(f, "norm_q", query, each), tables);
  const auto repeated = [&](Tensor tensor) {
    const Tensor view = f.call("expand", {unsqueezed(f, tensor, 3)}, {{"shape", Sizes{-1, -1, -1, times, -1}}});
    return f.flatten(f.call("clone", {view}), 2, 3);
  };
  const Tensor keys = repeated(turn(f, model, own_rms_norm(f, "norm_k", key, each), tables));
  return attend_heads(f, turned, keys, repeated(value), f.as_type_of(mask, query));
}

inline Tensor attention(Forward& f, const Model& model, std::string_view name, Tensor input, const PairTables& tables,
                        Tensor mask) {
  const InModule inside(f, name, "Attention");
  const auto heads = [&](std::string_view layer, std::int64_t count) {
    const std::int64_t each = model.head_width();
    return as_heads(f, f.linear(layer, input, model.width, count * each, {.bias = false}), each);
  };
  const Tensor query = heads("to_q", model.heads);
  const Tensor key = heads("to_k", model.key_heads);
  const Tensor mixed = attend_grouped(f, model, query, key, heads("to_v", model.key_heads), tables, mask);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, model.width, model.width, {.bias = false});
}

/// LuminaFeedForward, whose silu is computed in float32.
inline Tensor feed_forward(Forward& f, const Model& model, std::string_view name, Tensor input) {
  const InModule inside(f, name, "LuminaFeedForward");
  const Tensor gate = f.linear("linear_1", input, model.width, model.inner, {.bias = false});
  const Tensor open = f.as_type_of(f.call("silu", {f.to(gate, "float32")}), gate);
  const Tensor up = f.linear("linear_3", input, model.width, model.inner, {.bias = false});
  return f.linear("linear_2", f.multiply(open, up), model.inner, model.width, {.bias = false});
}

/// LuminaRMSNormZero: what it leaves; and a scale of that, a gate, a scale and a gate, [N, 1, width] each.
inline Tensor zero_norm(Forward& f, const Model& model, std::string_view name, Tensor hidden, Tensor time,
                        std::vector<Tensor>& rows) {
  const InModule inside(f, name, "LuminaRMSNormZero");
  rows = modulation(f, "linear", time, model.conditions(), model.width, 4);
  return f.multiply(norm(f, model, "norm", hidden), f.call("add", {rows[0]}));
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, const PairTables& tables, Tensor mask,
                    std::optional<Tensor> time) {
  std::vector<Tensor> rows;
  Tensor normed = 0;
  if (time) {
    normed = zero_norm(f, model, "norm1", hidden, *time, rows);
  } else {
    normed = norm(f, model, "norm1", hidden);
  }
  const auto joined = [&](Tensor residual, Tensor branch, std::size_t row) {
    return f.add(residual, time ? f.multiply(f.call("tanh", {rows[row]}), branch) : branch);
  };
  const Tensor mixed = norm(f, model, "norm2", attention(f, model, "attn", normed, tables, mask));
  const Tensor attended = joined(hidden, mixed, 1);
  Tensor again = norm(f, model, "ffn_norm1", attended);
  if (time) again = f.multiply(again, f.call("add", {rows[2]}));
  return joined(attended, norm(f, model, "ffn_norm2", feed_forward(f, model, "feed_forward", again)), 3);
}

inline Tensor last(Forward& f, const Model& model, Tensor hidden, Tensor time, std::int64_t out) {
  const InModule inside(f, "norm_out", "LuminaLayerNormContinuous");
  const Tensor made = f.linear("linear_1", f.activation("silu", time, "silu"), model.conditions(), model.width);
  const Tensor scale = unsqueezed(f, f.call("add", {made}), 1);
  return f.linear("linear_2", f.multiply(bare_norm(f, "norm", hidden, model.width), scale), model.width, out);
}

/// Lumina2CombinedTimestepCaptionEmbedding: the prompt's tokens, and the timestep.
inline std::pair<Tensor, Tensor> conditions(Forward& f, const Model& model, const DenoiserSample& sample) {
  constexpr std::int64_t kSinusoids = 256;
  const Tensor prompt = text_input(f, sample, model.captions);
  const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
  const InModule inside(f, "time_caption_embed", "Lumina2CombinedTimestepCaptionEmbedding");
  const Tensor time = timestep_embedding(f, "timestep_embedder", sinusoids, kSinusoids, model.conditions());
  const Tensor normed = model.boogu ? torch_rms_norm(f, "caption_embedder.0", prompt, model.captions)
                                    : own_rms_norm(f, "caption_embedder.0", prompt, model.captions);
  return {f.linear("caption_embedder.1", normed, model.captions, model.width), time};
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_text = 256});
  const std::int64_t tokens = sample.height * sample.width / (model.patch * model.patch);
  const std::int64_t area = model.patch * model.patch * model.channels;
  auto [text, time] = conditions(f, model, sample);
  const Tensor latents = f.call("clone", {token_latents(f, tokens, area)});
  Tensor image = f.linear("x_embedder", latents, area, model.width);
  const PairTables text_tables = pair_tables(f, {text}, model.head_width());
  const PairTables image_tables = pair_tables(f, {image}, model.head_width());
  const Tensor text_mask = seen_tokens(f, text);
  text = stack(f, "context_refiner", kBlocks[0], model.refiners, text,
               [&](Tensor x, std::int64_t) { return block(f, model, x, text_tables, text_mask, {}); });
  const Tensor image_mask = seen_tokens(f, image);
  image = stack(f, "noise_refiner", kBlocks[0], model.refiners, image, [&, time = time](Tensor x, std::int64_t) {
    return block(f, model, x, image_tables, image_mask, time);
  });
  Tensor hidden = f.concatenate({text, image}, 1);
  const PairTables tables = pair_tables(f, {hidden}, model.head_width());
  const Tensor mask = seen_tokens(f, hidden);
  hidden = stack(f, "layers", kBlocks[0], model.layers, hidden,
                 [&, time = time](Tensor x, std::int64_t) { return block(f, model, x, tables, mask, time); });
  const std::int64_t out = model.patch * model.patch * model.out;
  const Tensor output = f.slice(last(f, model, hidden, time, out), 1, sample.text, Forward::kRest);
  denoiser_loss(f, f.call("clone", {output}), {tokens, out});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Lumina2Transformer2D", "Lumina2Transformer2DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 96;
  constexpr std::int64_t kPatch = 4;
  const std::int64_t width = t.value("x_embedder", "out_features").value_or(kHead);
  t.part("in_channels", "x_embedder", "in_features", kPatch);
  t.part("out_channels", "norm_out.linear_2", "out_features", kPatch);
  t.set("hidden_size", width);
  t.set("num_attention_heads", std::max<std::int64_t>(width / kHead, 1));
  t.part("num_kv_heads", "layers.0.attn.to_k", "out_features", kHead);
  t.count("num_layers", "layers");
  t.count("num_refiner_layers", "noise_refiner");
  t.size("cap_feat_dim", "time_caption_embed.caption_embedder.1", "in_features");
  t.set("multiple_of", 1);
  t.ratio("ffn_dim_multiplier", "layers.0.feed_forward.linear_1", "out_features", 4 * width);
  t.assume("heads of width 96 and patches of 2 x 2, as Lumina 2 has");
}

inline constexpr Architecture kArchitecture = {.name = "lumina2",
                                               .model_types = names<"Lumina2Transformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace lumina2

// Boogu-Image: Lumina's blocks over the prompt's tokens and over the image's; then blocks in which the image attends to
// both sequences and once more to itself, and its feed-forward layer reads what the block was given; then blocks over
// both in one sequence. Refiners are never checkpointed.
// Source: SimpleTuner 2026-08, helpers/models/boogu_image/transformer.py, attention_processor.py, block_lumina2.py,
// with PyTorch's own attention, as flash-attn is not among its requirements.

namespace boogu_image {

using lumina2::Model;

inline constexpr std::array<std::string_view, 2> kBlocks = {"BooguImageDoubleStreamTransformerBlock",
                                                            "BooguImageSingleStreamTransformerBlock"};
inline constexpr std::string_view kRefiner = "BooguImageTransformerBlock";

struct Layers {
  std::int64_t doubles = 2;
  std::int64_t singles = 24;
};

inline Model read(ConfigFields& config, Layers& layers) {
  Model model = lumina2::read_sizes(config);
  model.boogu = true;
  layers.doubles = dit_layers(config, "num_double_stream_layers", 2);
  if (layers.doubles > model.layers) config.fail("is more than num_layers", "num_double_stream_layers");
  layers.singles = model.layers - layers.doubles;
  ConfigFields* const prompt = config.part("instruction_feature_configs", R"({"instruction_feat_dim": 4096,
    "reduce_type": "concat", "num_instruction_feat_layers": 1})");
  if (prompt != nullptr) {
    const std::string_view reduced = prompt->text({"reduce_type"}, "concat");
    const std::int64_t each = dit_width(*prompt, "instruction_feat_dim", 4096);
    const std::int64_t count = prompt->layers_or("num_instruction_feat_layers", 1);
    model.captions = reduced.find("cat") != std::string_view::npos ? count * each : each;
  }
  ConfigFields* const tuning = config.part("prompt_tuning_configs");
  if (tuning != nullptr && tuning->flag("use_prompt_tuning", false)) {
    tuning->fail("asks for tokens that gpumem does not know", "use_prompt_tuning");
  }
  config.ignore({"timestep_scale"});
  return model;
}

inline PairTables tables_of(Forward& f, const Model& model, std::initializer_list<Tensor> tokens) {
  return pair_tables(f, tokens, model.head_width(), "float64");
}

/// What the blocks share.
struct Sequences {
  PairTables image;
  PairTables both;
  Tensor image_mask = 0;
  Tensor mask = 0;
  StreamLengths lengths;
};

/// A copy of the tokens of one sequence: the model writes them into their places of a new tensor.
inline Tensor part_of(Forward& f, Tensor both, const StreamLengths& lengths, bool image) {
  return f.call("clone", {image ? f.slice(both, 1, lengths.text, Forward::kRest) : f.slice(both, 1, 0, lengths.text)});
}

/// BooguImageDoubleStreamSelfAttnProcessor: projections of each sequence by itself, then one more of both.
inline Tensor joint(Forward& f, const Model& model, Tensor image, Tensor text, const Sequences& s) {
  const InModule inside(f, "img_instruct_attn", "Attention");
  Tensor mixed = 0;
  std::array<Tensor, 3> heads = {};
  constexpr std::array<std::string_view, 3> kNames = {"to_q", "to_k", "to_v"};
  {
    const InModule processor(f, "processor", "BooguImageDoubleStreamSelfAttnProcessor");
    const std::int64_t each = model.head_width();
    const auto projected = [&](std::string_view stream, std::size_t at, Tensor tokens) {
      const std::int64_t out = (at == 0 ? model.heads : model.key_heads) * each;
      return f.linear(std::string(stream) + std::string(kNames[at]), tokens, model.width, out, {.bias = false});
    };
    std::array<Tensor, 3> of_image = {};
    for (std::size_t at = 0; at < 3; ++at) of_image[at] = projected("img_", at, image);
    for (std::size_t at = 0; at < 3; ++at) heads[at] = projected("instruct_", at, text);
    for (std::size_t at = 0; at < 3; ++at) {
      heads[at] = as_heads(f, f.concatenate({heads[at], of_image[at]}, 1), each);
    }
  }
  mixed = lumina2::attend_grouped(f, model, heads[0], heads[1], heads[2], s.both, s.mask);
  {
    const InModule processor(f, "processor", "BooguImageDoubleStreamSelfAttnProcessor");
    const Tensor text_part = part_of(f, mixed, s.lengths, false);
    const Tensor image_part = part_of(f, mixed, s.lengths, true);
    const Tensor text_out = f.linear("instruct_out", text_part, model.width, model.width, {.bias = false});
    const Tensor image_out = f.linear("img_out", image_part, model.width, model.width, {.bias = false});
    mixed = f.concatenate({text_out, image_out}, 1);
  }
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, model.width, model.width, {.bias = false});
}

inline TwoStreams double_block(Forward& f, const Model& model, const TwoStreams& hidden, Tensor time,
                               const Sequences& s) {
  std::array<std::vector<Tensor>, 5> rows;
  const auto zero = [&](std::string_view name, Tensor tokens, std::size_t at) {
    return lumina2::zero_norm(f, model, name, tokens, time, rows[at]);
  };
  const auto added = [&](Tensor residual, Tensor gate, std::string_view name, Tensor branch) {
    const Tensor normed = lumina2::norm(f, model, name, branch);
    return f.add(residual, f.multiply(f.call("tanh", {gate}), normed));
  };
  const auto fed = [&](const std::string& stream, Tensor residual, Tensor normed, std::size_t first) {
    const Tensor input = modulated(f, normed, rows[first][2], rows[first + 1][1]);
    const Tensor again = lumina2::norm(f, model, stream + "ffn_norm1", input);
    const Tensor left = lumina2::feed_forward(f, model, stream + "feed_forward", again);
    return added(residual, rows[first][3], stream + "ffn_norm2", left);
  };
  const Tensor image1 = zero("img_norm1", hidden.image, 0);
  const Tensor image2 = zero("img_norm2", hidden.image, 1);
  const Tensor image3 = zero("img_norm3", hidden.image, 2);
  const Tensor text1 = zero("instruct_norm1", hidden.text, 3);
  const Tensor text2 = zero("instruct_norm2", hidden.text, 4);
  const Tensor mixed = joint(f, model, image1, text1, s);
  const Tensor text_mixed = part_of(f, mixed, s.lengths, false);
  const Tensor image_mixed = part_of(f, mixed, s.lengths, true);
  const Tensor alone = lumina2::attention(f, model, "img_self_attn", image3, s.image, s.image_mask);
  Tensor image = added(hidden.image, rows[0][1], "img_attn_norm", image_mixed);
  image = added(image, rows[2][1], "img_self_attn_norm", alone);
  image = fed("img_", image, image2, 0);
  const Tensor text = added(hidden.text, rows[3][1], "instruct_attn_norm", text_mixed);
  return {image, fed("instruct_", text, text2, 3)};
}

/// The refined image behind its references. An image without any still runs their refiner, on no tokens: on one, here.
inline Tensor refined_image(Forward& f, const Model& model, Tensor latents, Tensor time, std::int64_t area) {
  const Tensor image = f.linear("x_embedder", latents, area, model.width);
  const Tensor none = token_latents(f, 1, area);
  Tensor references = f.linear("ref_image_patch_embedder", none, area, model.width);
  f.parameter("image_index_embedding", {5, model.width});
  const auto refined = [&](std::string_view name, Tensor tokens) {
    const PairTables tables = tables_of(f, model, {tokens});
    const Tensor mask = seen_tokens(f, tokens);
    return stack(f, name, kRefiner, model.refiners, tokens,
                 [&](Tensor x, std::int64_t) { return lumina2::block(f, model, x, tables, mask, time); });
  };
  const Tensor noise = refined("noise_refiner", image);
  return f.concatenate({refined("ref_image_refiner", references), noise}, 1);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  Layers layers;
  const Model model = read(config, layers);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_text = 256});
  const std::int64_t tokens = sample.height * sample.width / (model.patch * model.patch);
  const std::int64_t area = model.patch * model.patch * model.channels;
  auto [text, time_of] = lumina2::conditions(f, model, sample);
  const Tensor time = time_of;
  const Tensor latents = f.call("clone", {token_latents(f, tokens, area)});
  const PairTables text_tables = tables_of(f, model, {text});
  const Tensor text_mask = seen_tokens(f, text);
  text = stack(f, "context_refiner", kRefiner, model.refiners, text,
               [&](Tensor x, std::int64_t) { return lumina2::block(f, model, x, text_tables, text_mask, {}); });
  const Tensor image = refined_image(f, model, latents, time, area);
  Sequences s;
  s.lengths = {tokens + 1, sample.text};
  s.image = tables_of(f, model, {image});
  s.both = tables_of(f, model, {text, image});
  s.image_mask = seen_tokens(f, image);
  s.mask = f.concatenate({text_mask, s.image_mask}, 3);
  const TwoStreams streams =
      stack(f, "double_stream_layers", kBlocks[0], layers.doubles, TwoStreams{image, text},
            [&](const TwoStreams& x, std::int64_t) { return double_block(f, model, x, time, s); });
  Tensor hidden = f.concatenate({streams.text, streams.image}, 1);
  hidden = stack(f, "single_stream_layers", kBlocks[1], layers.singles, hidden,
                 [&](Tensor x, std::int64_t) { return lumina2::block(f, model, x, s.both, s.mask, time); });
  const std::int64_t out = model.patch * model.patch * model.out;
  const Tensor output = f.slice(lumina2::last(f, model, hidden, time, out), 1, sample.text + 1, Forward::kRest);
  denoiser_loss(f, f.call("clone", {output}), {tokens, out});
}

inline constexpr Architecture kArchitecture = {.name = "boogu_image",
                                               .model_types = names<"BooguImageTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace boogu_image

}  // namespace gpumem::architectures
