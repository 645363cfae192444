// Input: the fields of a config.json of a model of series, whose channels are cut into patches.
// Output: what PatchTST and PatchTSMixer have in common: sizes, the patches of a scaled series, norms over a batch, and
// the losses of values to come and of patches.
// Source: transformers 5.17, models/patchtst/modeling_patchtst.py (PatchTSTStdScaler, PatchTSTPatchify).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace series_parts_detail {

struct Model {
  std::string_view class_name;
  std::int64_t channels = 1;
  std::int64_t context = 32;
  std::int64_t future = 24;
  std::int64_t targets = 1;
  std::int64_t patch = 1;
  std::int64_t step = 1;
  std::int64_t width = 128;
  std::int64_t layers = 3;
  std::int64_t heads = 4;
  std::int64_t inner = 512;
  std::int64_t numbers = 0;   ///< of a distribution that the head leaves; 0: it leaves values
  bool norms_batches = true;  ///< over samples; else each token
  bool norms_before = true;
  bool bias = true;  ///< of the feed-forward layers
  bool shares_embedding = true;
  bool shares_head = true;
  bool attends_channels = false;
  bool summarises = false;  ///< a token of its own before the patches
  bool learns_positions = false;
  std::string_view pooling = "mean";  ///< empty: the head reads all patches
  std::string_view activation = "gelu";
  double attention_dropout = 0.0;
  double position_dropout = 0.0;
  double path_dropout = 0.0;
  double inner_dropout = 0.0;
  double head_dropout = 0.0;

  [[nodiscard]] bool is(std::string_view task) const { return class_name.ends_with(task); }
  [[nodiscard]] std::int64_t patches() const { return (std::max(context, patch) - patch) / step + 1; }
  [[nodiscard]] std::int64_t tokens() const { return patches() + (summarises ? 1 : 0); }
};

inline void read_sizes(ConfigFields& config, Model& model) {
  model.channels = config.size_or({"num_input_channels"}, 1);
  model.context = config.size_or({"context_length"}, 32);
  model.future = config.size_or({"prediction_length"}, 24);
  model.targets = config.size_or({"num_targets"}, 1);
  model.patch = config.size_or({"patch_length"}, 1);
  model.step = config.size_or({"patch_stride", "stride"}, 1);
  model.width = config.size_or({"d_model"}, 128);
  model.layers = config.layers_or("num_hidden_layers", 3);
  model.inner = config.size_or({"ffn_dim"}, 512);
  check_length(config, model.context, "context_length");
  check_length(config, model.future, "prediction_length");
  check_length(config, model.channels, "num_input_channels");
  if (model.context <= model.patch) config.fail("must be above patch_length", "context_length");
  const bool apart = !config.flag("share_embedding", true) || !config.flag("share_projection", true);
  constexpr std::int64_t kMostApart = 4096;
  if (apart && model.channels > kMostApart) config.fail("is more than gpumem takes", "num_input_channels");
}

inline Tensor normed(Forward& f, const Model& model, std::string_view name, Tensor input) {
  if (!model.norms_batches) return f.layer_norm(name, input, model.width);
  const InModule inside(f, name, "PatchTSTBatchNorm");
  const Tensor made =
      f.layer("batchnorm", "BatchNorm1d", "batch_norm", {f.permute(input, {0, 2, 1})}, {{"num_features", model.width}});
  return f.permute(made, {0, 2, 1});
}

/// A series, scaled and cut: [N, channels, patches, length of a patch].
inline Tensor cut_series(Forward& f, const Model& model) {
  const Tensor past = f.sample_input("past_values", {model.context, model.channels});
  const Tensor scaled = f.call("div", {f.call("sub", {past})});
  const std::int64_t used = model.patch + model.step * (model.patches() - 1);
  const Tensor last = f.slice(scaled, 1, model.context - used, Forward::kRest);
  const Tensor windows =
      f.call("sliding_window", {last}, {{"dim", std::int64_t{1}}, {"size", model.patch}, {"step", model.step}});
  const Tensor patches = f.contiguous(f.permute(windows, {0, 2, 1, 3}));
  f.hand_out(patches);
  return patches;
}

inline std::vector<Tensor> projected(Forward& f, const Model& model, std::string_view name, Tensor input,
                                     std::int64_t in, std::int64_t out) {
  if (model.numbers == 0) return {f.linear(name, input, in, out)};
  return distribution_head(f, name, input, in, out, model.numbers);
}

/// The loss of values to come, or of the numbers of their distribution.
inline void future_loss(Forward& f, const Model& model, const std::vector<Tensor>& made) {
  const Tensor future = f.sample_input("future_values", {model.future, model.channels});
  if (model.numbers > 0) return distribution_loss(f, made);
  const Tensor values = f.call("add", {f.scale(made.front())});
  f.hand_out(values);
  (void)f.call("mse_loss", {values, future});
}

inline void patch_loss(Forward& f, Tensor made, Tensor patches) {
  const Tensor apart = f.call("square", {f.call("sub", {made, patches})});
  (void)f.call("mean", {f.call("mean", {apart}, {{"dim", std::int64_t{3}}})});
}

}  // namespace series_parts_detail

}  // namespace gpumem::architectures
