// ERNIE-Image: one sequence of image and text tokens. All blocks share scales, shifts and gates, which are copied out
// to every token first and applied in float32. Source: diffusers 0.40, models/transformers/transformer_ernie_image.py.
// Tokens are the first axis there; here samples are, which takes as much.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace ernie_image {

inline constexpr std::array<std::string_view, 1> kBlocks = {"ErnieImageSharedAdaLNBlock"};

struct Model {
  std::int64_t width = 3072;
  std::int64_t heads = 24;
  std::int64_t layers = 24;
  std::int64_t inner = 8192;
  std::int64_t channels = 128;
  std::int64_t out = 128;
  std::int64_t patch = 1;
  std::int64_t text = 2560;
  bool head_norm = true;

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.width = dit_width(config, "hidden_size", 3072);
  model.heads = dit_width(config, "num_attention_heads", 24);
  model.layers = config.layers_or("num_layers", 24);
  model.inner = dit_width(config, "ffn_hidden_size", 8192);
  model.channels = dit_width(config, "in_channels", 128);
  model.out = dit_width(config, "out_channels", 128);
  model.patch = dit_width(config, "patch_size", 1);
  model.text = dit_width(config, "text_in_dim", 2560);
  model.head_norm = config.flag("qk_layernorm", true);
  if (model.width % (2 * model.heads) != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  if (model.patch > 16) config.fail("is larger than gpumem takes", "patch_size");
  config.ignore({"rope_axes_dim", "rope_theta", "eps"});
  return model;
}

/// x cos + rotate_half(x) sin in the model's type, with cosines and sines made of the angles each time.
inline Tensor turned(Forward& f, Tensor heads, const PairTables& angles, std::int64_t width) {
  const Tensor cosines = f.as_type_of(f.call("cos", {angles.cosines}), heads);
  const Tensor sines = f.as_type_of(f.call("sin", {angles.cosines}), heads);
  const std::vector<Tensor> halves = chunks(f, heads, 3, 2, width / 2);
  const Tensor rotated = f.concatenate({f.call("neg", {halves[1]}), halves[0]}, 3);
  const Tensor made = f.add(f.multiply(heads, cosines), f.multiply(rotated, sines));
  return f.call("clone", {made});  // torch.cat with what is not turned: nothing
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const PairTables& angles, Tensor mask) {
  const InModule inside(f, "self_attention", "ErnieImageAttention");
  const std::int64_t each = model.head_width();
  const auto heads = [&](std::string_view name) {
    return as_heads(f, f.linear(name, input, model.width, model.width, {.bias = false}), each);
  };
  Tensor query = heads("to_q");
  Tensor key = heads("to_k");
  const Tensor value = heads("to_v");
  if (model.head_norm) {
    query = torch_rms_norm(f, "norm_q", query, each);
    key = torch_rms_norm(f, "norm_k", key, each);
  }
  query = turned(f, query, angles, each);
  key = turned(f, key, angles, each);
  const Tensor mixed = attend_heads(f, query, key, value, mask);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, model.width, model.width, {.bias = false});
}

/// (x.float() (1 + scale.float()) + shift.float()), in the type of x.
inline Tensor scaled(Forward& f, Tensor hidden, Tensor scale, Tensor shift) {
  const Tensor grown = f.multiply(f.to(hidden, "float32"), f.call("add", {f.to(scale, "float32")}));
  return f.as_type_of(f.add(grown, f.to(shift, "float32")), hidden);
}

inline Tensor joined(Forward& f, Tensor residual, Tensor branch, Tensor gate) {
  const Tensor gated = f.multiply(f.to(gate, "float32"), f.to(branch, "float32"));
  return f.add(residual, f.as_type_of(gated, residual));
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, const std::vector<Tensor>& rows,
                    const PairTables& angles, Tensor mask) {
  const Tensor normed = scaled(f, own_rms_norm(f, "adaLN_sa_ln", hidden, model.width), rows[1], rows[0]);
  const Tensor attended = joined(f, hidden, attention(f, model, normed, angles, mask), rows[2]);
  const Tensor again = scaled(f, own_rms_norm(f, "adaLN_mlp_ln", attended, model.width), rows[4], rows[3]);
  Tensor fed = 0;
  {
    const InModule inside(f, "mlp", "ErnieImageFeedForward");
    const Tensor up = f.linear("up_proj", again, model.width, model.inner, {.bias = false, .out_of_order = true});
    const Tensor open = f.call("gelu", {f.linear("gate_proj", again, model.width, model.inner, {.bias = false})});
    fed = f.linear("linear_fc2", f.multiply(up, open), model.inner, model.width, {.bias = false});
  }
  return joined(f, attended, fed, rows[5]);
}

/// Scales, shifts and gates of a sample, each copied out to all its tokens.
inline std::vector<Tensor> spread_rows(Forward& f, const Model& model, Tensor time, std::int64_t tokens) {
  std::vector<Tensor> rows;
  {
    const InModule inside(f, "adaLN_modulation", "Sequential");
    const Tensor open = f.activation("0", time, "silu");
    rows = row_chunks(f, f.linear("1", open, model.width, 6 * model.width), 6, model.width);
  }
  for (Tensor& row : rows) {
    row = f.contiguous(f.call("expand", {row}, {{"shape", Sizes{-1, tokens, -1}}}));
  }
  return rows;
}

inline Tensor image_tokens(Forward& f, const Model& model, const DenoiserSample& sample) {
  const Tensor latents = latent_input(f, sample, model.channels);
  const InModule inside(f, "x_embedder", "ErnieImagePatchEmbedDynamic");
  const Tensor cut = f.layer("proj", "Conv2d", "conv2d", {latents},
                             {{"in_channels", model.channels},
                              {"out_channels", model.width},
                              {"kernel_size", Sizes(2, model.patch)},
                              {"stride", Sizes(2, model.patch)}});
  return f.contiguous(f.permute(f.flatten(cut, 2, 3), {0, 2, 1}));
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 16, .patch = model.patch, .usual_text = 256});
  const Tensor image = image_tokens(f, model, sample);
  const Tensor prompt = text_input(f, sample, model.text);
  const bool same = model.text == model.width;
  const Tensor text =
      f.contiguous(same ? prompt : f.linear("text_proj", prompt, model.text, model.width, {.bias = false}));
  Tensor hidden = f.concatenate({image, text}, 1);
  const std::int64_t pictured = sample.height * sample.width / (model.patch * model.patch);
  const std::int64_t tokens = pictured + sample.text;
  const Tensor angles =
      f.permute(f.call("rotary_table", {hidden},
                       {{"width", model.head_width()}, {"padded", true}, {"dtype", std::string("float32")}}),
                {0, 2, 1, 3});
  const Tensor mask = seen_tokens(f, hidden);
  const Tensor sinusoids = timestep_input(f, "timestep", model.width);
  const Tensor time = timestep_embedding(f, "time_embedding", sinusoids, model.width, model.width);
  const std::vector<Tensor> rows = spread_rows(f, model, time, tokens);
  hidden = stack(f, "layers", kBlocks[0], model.layers, hidden, [&](Tensor x, std::int64_t) {
    return block(f, model, x, rows, {angles, angles}, f.as_type_of(mask, x));
  });
  Tensor normed = 0;
  {
    const InModule inside(f, "final_norm", "ErnieImageAdaLNContinuous");
    const std::vector<Tensor> last =
        row_chunks(f, f.linear("linear", time, model.width, 2 * model.width), 2, model.width);
    normed = modulated(f, bare_norm(f, "norm", hidden, model.width), last[0], last[1]);
  }
  const std::int64_t out = model.patch * model.patch * model.out;
  const Tensor output = f.slice(f.linear("final_linear", normed, model.width, out), 1, 0, pictured);
  denoiser_loss(f, f.call("clone", {output}), {pictured, out});
}

inline constexpr Architecture kArchitecture = {.name = "ernie_image",
                                               .model_types = names<"ErnieImageTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace ernie_image

}  // namespace gpumem::architectures
