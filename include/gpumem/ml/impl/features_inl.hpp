#pragma once

#include "gpumem/ml/features.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "gpumem/ml/trained_model.hpp"

namespace gpumem::ml {

namespace features_detail {

inline constexpr double kMiB = 1048576.0;

GPUMEM_INLINE double batch_size(const JobFacts& facts) { return static_cast<double>(facts.job->batch_size); }
GPUMEM_INLINE double samples_mib(const JobFacts& facts, double elements, double bytes) {
  return elements * batch_size(facts) * bytes / kMiB;
}

GPUMEM_INLINE double parameter_bytes(const JobFacts& facts) { return facts.parameter_bytes(); }
GPUMEM_INLINE double activation_bytes(const JobFacts& facts) { return facts.activation_bytes(); }
GPUMEM_INLINE double optimizer_states(const JobFacts& facts) { return facts.optimizer_states(); }

GPUMEM_INLINE double parameters_mib(const JobFacts& facts) {
  return static_cast<double>(facts.graph->parameters()) * parameter_bytes(facts) / kMiB;
}
/// Parameters, their gradients, and what the optimizer keeps of each.
GPUMEM_INLINE double static_mib(const JobFacts& facts) {
  constexpr double kParametersAndGradients = 2.0;
  return parameters_mib(facts) * (kParametersAndGradients + optimizer_states(facts));
}
GPUMEM_INLINE double outputs_mib(const JobFacts& facts) {
  double outputs = 0.0;
  for (const double of_family : facts.outputs) outputs += of_family;
  return samples_mib(facts, outputs - facts.outputs_of(OpFamily::view), activation_bytes(facts));
}
GPUMEM_INLINE double dropout_masks_mib(const JobFacts& facts) {
  constexpr double kMaskBytes = 1.0;
  return samples_mib(facts, facts.outputs_of(OpFamily::dropout), kMaskBytes);
}
GPUMEM_INLINE double kept_mib(const JobFacts& facts) {
  return samples_mib(facts, facts.kept, activation_bytes(facts)) + dropout_masks_mib(facts);
}
GPUMEM_INLINE double largest_output_mib(const JobFacts& facts) {
  return samples_mib(facts, facts.largest_output, activation_bytes(facts));
}
/// What is held when backward begins, plus the gradients of the largest layer.
GPUMEM_INLINE double live_mib(const JobFacts& facts) {
  constexpr double kInFlight = 2.0;
  return static_mib(facts) + kept_mib(facts) + kInFlight * largest_output_mib(facts);
}

template <OpFamily Family>
double layers_of(const JobFacts& facts) {
  return static_cast<double>(facts.layers_of(Family));
}

template <ReplayFigure Figure>
double replay_figure(const JobFacts& facts) {
  return facts.replay ? (*facts.replay)[static_cast<std::size_t>(Figure)] : 0.0;
}

template <RooflineFigure Figure>
double roofline_figure(const JobFacts& facts) {
  return facts.roofline ? (*facts.roofline)[static_cast<std::size_t>(Figure)] : 0.0;
}

template <std::size_t Variant>
double variant_figure(const JobFacts& facts) {
  return facts.replay ? (*facts.replay)[kFirstVariantFigure + Variant] : 0.0;
}
inline constexpr std::string_view kVariantText = "ln(reserved with other convolution workspaces / replay.reserved)";

// GPUMemNet's.

/// Layers that its data sets list: what has a class of its own in a sequential model.
GPUMEM_INLINE bool is_listed(const LayerFacts& layer) {
  switch (layer.family) {
    case OpFamily::view: return layer.function == ActivationFunction::identity;
    case OpFamily::attention:
    case OpFamily::recurrent:
    case OpFamily::other: return false;
    default: return true;
  }
}

/// Of a CNN without channels; of others all outputs.
GPUMEM_INLINE double published_activations(const JobFacts& facts, const LayerFacts& layer) {
  return facts.kind == NetKind::cnn ? layer.positions : layer.outputs;
}
GPUMEM_INLINE double total_activations(const JobFacts& facts) {
  double total = 0.0;
  for (const LayerFacts& layer : facts.layers) {
    const bool left_out = facts.kind == NetKind::cnn && layer.family == OpFamily::softmax;
    if (is_listed(layer) && !left_out) total += published_activations(facts, layer);
  }
  return total;
}
GPUMEM_INLINE double published_parameters(const JobFacts& facts) {
  const double slopes = facts.parameters[static_cast<std::size_t>(OpFamily::activation)];
  return static_cast<double>(facts.graph->parameters()) - slopes;
}
GPUMEM_INLINE double not_quantizable_layers(const JobFacts& facts) {
  return static_cast<double>(std::count_if(facts.layers.begin(), facts.layers.end(),
                                           [](const LayerFacts& layer) { return layer.not_quantizable; }));
}
/// Only torch.nn.Linear: without its derived class, and without GPT-2's Conv1D.
GPUMEM_INLINE double published_linear_layers(const JobFacts& facts) {
  return static_cast<double>(std::count_if(facts.layers.begin(), facts.layers.end(), [](const LayerFacts& layer) {
    return layer.family == OpFamily::linear && !layer.conv1d_class && !layer.not_quantizable;
  }));
}
GPUMEM_INLINE double layer_norm_layers(const JobFacts& facts) {
  return static_cast<double>(std::count_if(facts.layers.begin(), facts.layers.end(),
                                           [](const LayerFacts& layer) { return layer.layer_norm; }));
}
GPUMEM_INLINE double depth(const JobFacts& facts) {
  return facts.kind == NetKind::cnn ? layers_of<OpFamily::conv>(facts) : layers_of<OpFamily::linear>(facts);
}

/// The activation functions of GPUMemNet's data sets, in the order in which it numbers them.
inline constexpr std::array kNumberedFunctions = {
    ActivationFunction::elu,        ActivationFunction::gelu, ActivationFunction::identity,
    ActivationFunction::leaky_relu, ActivationFunction::mish, ActivationFunction::prelu,
    ActivationFunction::relu,       ActivationFunction::selu, ActivationFunction::silu,
    ActivationFunction::softplus,   ActivationFunction::tanh};

/// The angle i pi / n of activation function i of n; GPUMemNet's CNNs have no Identity.
GPUMEM_INLINE double function_angle(const JobFacts& facts) {
  const ActivationFunction function =
      facts.function == ActivationFunction::none ? ActivationFunction::identity : facts.function;
  const auto number_of = [](ActivationFunction one) {
    return std::find(kNumberedFunctions.begin(), kNumberedFunctions.end(), one) - kNumberedFunctions.begin();
  };
  auto index = static_cast<double>(number_of(function));
  auto functions = static_cast<double>(kNumberedFunctions.size());
  if (facts.kind == NetKind::cnn) {
    functions -= 1.0;
    if (number_of(function) > number_of(ActivationFunction::identity)) index -= 1.0;
  }
  return index * std::numbers::pi / functions;
}

GPUMEM_INLINE double takes_exponentials(const JobFacts& facts) {
  switch (facts.function) {
    case ActivationFunction::identity:
    case ActivationFunction::leaky_relu:
    case ActivationFunction::prelu:
    case ActivationFunction::relu:
    case ActivationFunction::none: return 0.0;
    default: return 1.0;
  }
}
GPUMEM_INLINE double steps_per_epoch(const JobFacts& facts) {
  const double samples = static_cast<double>(facts.job->samples_per_epoch.value_or(0));
  return std::ceil(samples / std::max(batch_size(facts), 1.0));
}

inline constexpr std::array<Feature, 90> kFeatures = {{
    {"batch_size", "samples", batch_size},
    {"layers", "layers of the graph", [](const JobFacts& facts) { return static_cast<double>(facts.layers.size()); }},
    {"linear_layers", "linear layers", layers_of<OpFamily::linear>},
    {"conv_layers", "convolutions, transposed ones too", layers_of<OpFamily::conv>},
    {"norm_layers", "batch, layer, group, instance and RMS norms", layers_of<OpFamily::norm>},
    {"activation_layers", "activation functions but softmax", layers_of<OpFamily::activation>},
    {"softmax_layers", "softmax and log softmax", layers_of<OpFamily::softmax>},
    {"dropout_layers", "dropouts", layers_of<OpFamily::dropout>},
    {"pool_layers", "poolings", layers_of<OpFamily::pool>},
    {"embedding_layers", "embeddings", layers_of<OpFamily::embedding>},
    {"attention_layers", "attentions", layers_of<OpFamily::attention>},
    {"recurrent_layers", "LSTM, GRU, RNN", layers_of<OpFamily::recurrent>},
    {"view_layers", "layers without memory of their own", layers_of<OpFamily::view>},
    {"other_layers", "layers of no family above", layers_of<OpFamily::other>},
    {"optimizer_states", "tensors as large as the parameters that the optimizer keeps", optimizer_states},
    {"parameter_bytes", "bytes of a parameter", parameter_bytes},
    {"activation_bytes", "bytes of an activation", activation_bytes},
    {"parameters_mib", "parameters, MiB", parameters_mib},
    {"largest_parameters_mib", "parameters of the largest layer, MiB",
     [](const JobFacts& facts) { return facts.largest_parameters * parameter_bytes(facts) / kMiB; }},
    {"static_mib", "parameters, gradients and the optimizer's state, MiB", static_mib},
    {"outputs_mib", "outputs of all layers at this batch size, MiB", outputs_mib},
    {"kept_mib", "outputs and dropout masks that backward reads again, MiB, by rough rules", kept_mib},
    {"dropout_masks_mib", "dropout masks, MiB", dropout_masks_mib},
    {"largest_output_mib", "the largest output, MiB", largest_output_mib},
    {"convolution_operands_mib", "input and output of the largest convolution behind the first, MiB",
     [](const JobFacts& facts) { return samples_mib(facts, facts.convolution_operands, activation_bytes(facts)); }},
    {"live_mib", "static_mib + kept_mib + twice largest_output_mib", live_mib},
    {"replay.device", "what the replay expects on the device, MiB", replay_figure<ReplayFigure::device>, Needs::replay},
    {"replay.reserved", "what the replay expects the allocator to reserve, MiB", replay_figure<ReplayFigure::reserved>,
     Needs::replay},
    {"replay.allocated", "the replay's peak of allocated memory, MiB", replay_figure<ReplayFigure::allocated>,
     Needs::replay},
    {"replay.workspace", "workspaces at that peak, MiB", replay_figure<ReplayFigure::workspace>, Needs::replay},
    {"replay.fragmentation", "reserved beyond that peak, MiB", replay_figure<ReplayFigure::fragmentation>,
     Needs::replay},
    {"replay.context", "the CUDA context, MiB", replay_figure<ReplayFigure::context>, Needs::replay},
    {"replay.fits", "1 if the replay found room for the job on the GPU, else 0", replay_figure<ReplayFigure::fits>,
     Needs::replay},
    {"replay.retries", "how often it gave back its cache for that", replay_figure<ReplayFigure::retries>,
     Needs::replay},
    {"replay.slices-1", kVariantText, variant_figure<0>, Needs::variants},
    {"replay.slices-2", kVariantText, variant_figure<1>, Needs::variants},
    {"replay.slices-4", kVariantText, variant_figure<2>, Needs::variants},
    {"replay.slices-8", kVariantText, variant_figure<3>, Needs::variants},
    {"replay.slices-16", kVariantText, variant_figure<4>, Needs::variants},
    {"replay.split-5mib", kVariantText, variant_figure<5>, Needs::variants},
    {"replay.split-10mib", kVariantText, variant_figure<6>, Needs::variants},
    {"replay.split-20mib", kVariantText, variant_figure<7>, Needs::variants},
    {"replay.split-40mib", kVariantText, variant_figure<8>, Needs::variants},
    {"replay.forward-always", kVariantText, variant_figure<9>, Needs::variants},
    {"replay.forward-unaligned", kVariantText, variant_figure<10>, Needs::variants},
    {"replay.forward-never", kVariantText, variant_figure<11>, Needs::variants},
    {"replay.data-unaligned", kVariantText, variant_figure<12>, Needs::variants},
    {"replay.data-never", kVariantText, variant_figure<13>, Needs::variants},
    {"replay.weight-unaligned", kVariantText, variant_figure<14>, Needs::variants},
    {"replay.weight-never", kVariantText, variant_figure<15>, Needs::variants},
    {"replay.gradients-unaligned", kVariantText, variant_figure<16>, Needs::variants},
    {"replay.none", kVariantText, variant_figure<17>, Needs::variants},
    {"replay.multiple-8", kVariantText, variant_figure<18>, Needs::variants},
    {"replay.first-always", kVariantText, variant_figure<19>, Needs::variants},
    {"replay.first-never", kVariantText, variant_figure<20>, Needs::variants},
    {"roofline.gract", "share of a step with a kernel running", roofline_figure<RooflineFigure::gract>,
     Needs::roofline},
    {"roofline.smact", "the same, times the share of SMs that kernels fill", roofline_figure<RooflineFigure::smact>,
     Needs::roofline},
    {"roofline.smocc", "the same, times the share of warps", roofline_figure<RooflineFigure::smocc>, Needs::roofline},
    {"roofline.fp32", "share of a step in which the FP32 pipe is busy", roofline_figure<RooflineFigure::fp32>,
     Needs::roofline},
    {"roofline.kernel_us", "time of a step's kernels, microseconds", roofline_figure<RooflineFigure::kernel_us>,
     Needs::roofline},
    {"roofline.host_us", "time that the host takes to launch them, microseconds",
     roofline_figure<RooflineFigure::host_us>, Needs::roofline},
    {"roofline.data_us", "time that the host takes for the batch, microseconds",
     roofline_figure<RooflineFigure::data_us>, Needs::roofline},
    {"roofline.step_us", "a step, microseconds", roofline_figure<RooflineFigure::step_us>, Needs::roofline},
    {"roofline.filled", "share of the SMs that kernels fill, weighted by their time",
     roofline_figure<RooflineFigure::filled>, Needs::roofline},
    {"roofline.product_share", "share of the kernels' time in matrix products",
     roofline_figure<RooflineFigure::product_share>, Needs::roofline},
    {"roofline.convolution_share", "the same in convolutions", roofline_figure<RooflineFigure::convolution_share>,
     Needs::roofline},
    {"roofline.optimizer_share", "the same in the optimizer", roofline_figure<RooflineFigure::optimizer_share>,
     Needs::roofline},
    {"roofline.launches", "kernels of a step", roofline_figure<RooflineFigure::launches>, Needs::roofline},
    {"roofline.multiply_adds", "of a step, 10^9", roofline_figure<RooflineFigure::multiply_adds>, Needs::roofline},
    {"roofline.bytes", "moved in a step, 10^9", roofline_figure<RooflineFigure::bytes>, Needs::roofline},
    {"roofline.floored_share", "share of the kernels' time that is the least time a kernel takes",
     roofline_figure<RooflineFigure::floored_share>, Needs::roofline},
    {"activation_sin", "sin of i pi / 11, i being the most frequent activation function's place in GPUMemNet's list",
     [](const JobFacts& facts) { return std::sin(function_angle(facts)); }},
    {"takes_exponentials", "1 if the most frequent activation function takes exponentials, else 0", takes_exponentials},
    {"steps_per_epoch", "batches in an epoch; 0 if it is not known", steps_per_epoch},
    {"activation_cos", "its cos", [](const JobFacts& facts) { return std::cos(function_angle(facts)); }},
    {"gpumemnet.depth", "linear layers; of a CNN its convolutions", depth},
    {"gpumemnet.batch_size", "samples", batch_size},
    {"gpumemnet.parameters", "parameters without the slopes of PReLU", published_parameters},
    {"gpumemnet.activations", "outputs of the layers that GPUMemNet lists, a sample; a CNN's without channels",
     total_activations},
    {"gpumemnet.activations_times_batch", "gpumemnet.activations times the batch size",
     [](const JobFacts& facts) { return total_activations(facts) * batch_size(facts); }},
    {"gpumemnet.conv2d_layers", "convolutions", layers_of<OpFamily::conv>},
    {"gpumemnet.batch_norm_layers", "batch norms", layers_of<OpFamily::norm>},
    {"gpumemnet.dropout_layers", "dropouts", layers_of<OpFamily::dropout>},
    {"gpumemnet.linear_layers", "layers of the class Linear", published_linear_layers},
    {"gpumemnet.ndq_linear_layers", "layers of the class NonDynamicallyQuantizableLinear", not_quantizable_layers},
    {"gpumemnet.layer_norm_layers", "layer norms", layer_norm_layers},
    {"gpumemnet.activation_sin", "sin of i pi / n for activation function i of n",
     [](const JobFacts& facts) { return std::sin(function_angle(facts)); }},
    {"gpumemnet.activation_sin_truncated", "gpumemnet.activation_sin without its decimals",
     [](const JobFacts& facts) { return std::trunc(std::sin(function_angle(facts))); }},
    {"gpumemnet.activation_cos_truncated", "gpumemnet.activation_cos without its decimals",
     [](const JobFacts& facts) { return std::trunc(std::cos(function_angle(facts))); }},
    {"gpumemnet.activation_cos", "cos of the same",
     [](const JobFacts& facts) { return std::cos(function_angle(facts)); }},
}};

template <OpFamily Family>
double is_of(const JobFacts& /*facts*/, const LayerFacts& layer) {
  return layer.family == Family ? 1.0 : 0.0;
}

// GPUMemNet's code of a layer: bits by kind of net.

GPUMEM_INLINE bool published_code(const JobFacts& facts, const LayerFacts& layer, std::size_t bit) {
  const bool linear = layer.family == OpFamily::linear;
  if (facts.kind == NetKind::transformer) {
    const std::array<bool, 4> bits = {layer.layer_norm, layer.family == OpFamily::embedding, linear,
                                      layer.family == OpFamily::dropout};
    return bits[bit];
  }
  if (facts.kind == NetKind::mlp) return linear == (bit == 1);
  const bool conv = layer.family == OpFamily::conv;
  const bool zero = layer.family == OpFamily::dropout || layer.family == OpFamily::norm;
  if (bit == 1) return conv || linear;
  return !conv && !zero;
}

template <std::size_t Bit>
double code(const JobFacts& facts, const LayerFacts& layer) {
  return published_code(facts, layer, Bit) ? 1.0 : 0.0;
}

inline constexpr std::array<LayerFeature, 19> kLayerFeatures = {{
    {"is_linear", "1 for a linear layer", is_of<OpFamily::linear>},
    {"is_conv", "1 for a convolution", is_of<OpFamily::conv>},
    {"is_norm", "1 for a norm", is_of<OpFamily::norm>},
    {"is_activation", "1 for an activation function", is_of<OpFamily::activation>},
    {"is_softmax", "1 for a softmax", is_of<OpFamily::softmax>},
    {"is_dropout", "1 for a dropout", is_of<OpFamily::dropout>},
    {"is_pool", "1 for a pooling", is_of<OpFamily::pool>},
    {"is_embedding", "1 for an embedding", is_of<OpFamily::embedding>},
    {"is_attention", "1 for an attention", is_of<OpFamily::attention>},
    {"is_recurrent", "1 for an LSTM, GRU or RNN", is_of<OpFamily::recurrent>},
    {"is_other", "1 for a layer of no family above", is_of<OpFamily::other>},
    {"layer_outputs_mib", "outputs at this batch size, MiB",
     [](const JobFacts& facts, const LayerFacts& layer) {
       return samples_mib(facts, layer.outputs, activation_bytes(facts));
     }},
    {"layer_parameters_mib", "parameters, MiB",
     [](const JobFacts& facts, const LayerFacts& layer) {
       return static_cast<double>(layer.parameters) * parameter_bytes(facts) / kMiB;
     }},
    {"gpumemnet.code_0", "first bit of GPUMemNet's code of the layer's type", code<0>},
    {"gpumemnet.code_1", "second bit", code<1>},
    {"gpumemnet.code_2", "third bit, of Transformers", code<2>},
    {"gpumemnet.code_3", "fourth bit, of Transformers", code<3>},
    {"gpumemnet.layer_activations", "outputs a sample; a CNN's without channels", published_activations},
    {"gpumemnet.layer_parameters", "parameters; none of PReLU",
     [](const JobFacts& /*facts*/, const LayerFacts& layer) {
       return layer.family == OpFamily::activation ? 0.0 : static_cast<double>(layer.parameters);
     }},
}};

template <typename Row, std::size_t Count>
const Row* find(const std::array<Row, Count>& rows, std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

template <typename Row, std::size_t Count>
core::Status check(const std::vector<FeatureSpec>& specs, const std::array<Row, Count>& rows, std::string_view field) {
  for (std::size_t index = 0; index < specs.size(); ++index) {
    if (find(rows, specs[index].name) != nullptr) continue;
    core::Place place;
    place.element = "/" + std::string(field) + "/" + std::to_string(index) + "/name";
    return core::Error{core::ErrorCode::malformed_input,
                       "there is no feature " + core::quoted(specs[index].name) +
                           "; the model is for another version of gpumem, or its config is damaged",
                       place};
  }
  return core::Done{};
}

GPUMEM_INLINE bool is_outside(const FeatureSpec& spec, double raw) {
  // Figures of the training jobs are in decimal, so their own extremes may come out a rounding beyond them.
  constexpr double kRounding = 1e-9;
  const double slack = kRounding * std::max(1.0, std::abs(raw));
  return (spec.min && raw < *spec.min - slack) || (spec.max && raw > *spec.max + slack);
}

}  // namespace features_detail

GPUMEM_INLINE std::span<const Feature> features() { return features_detail::kFeatures; }
GPUMEM_INLINE std::span<const LayerFeature> layer_features() { return features_detail::kLayerFeatures; }

GPUMEM_INLINE core::Status check_features(const ModelConfig& config) {
  core::Status jobs = features_detail::check(config.features, features_detail::kFeatures, "features");
  if (!jobs) return jobs;
  return features_detail::check(config.sequence, features_detail::kLayerFeatures, "sequence");
}

GPUMEM_INLINE core::Result<FeatureReader> FeatureReader::create(const ModelConfig& config) {
  const core::Status known = check_features(config);
  if (!known) return known.error();
  FeatureReader reader;
  reader.specs_ = config.features;
  reader.column_specs_ = config.sequence;
  reader.length_ = static_cast<std::size_t>(config.network.sequence_length);
  for (const FeatureSpec& spec : config.features) {
    reader.features_.push_back(features_detail::find(features_detail::kFeatures, spec.name));
  }
  for (const FeatureSpec& spec : config.sequence) {
    reader.columns_.push_back(features_detail::find(features_detail::kLayerFeatures, spec.name));
    reader.published_rows_ = reader.published_rows_ || spec.name.starts_with("gpumemnet.");
  }
  return reader;
}

GPUMEM_INLINE bool FeatureReader::needs(Needs what) const {
  return std::any_of(features_.begin(), features_.end(), [&](const Feature* feature) {
    return feature->needs == what || (what == Needs::replay && feature->needs == Needs::variants);
  });
}

GPUMEM_INLINE bool FeatureReader::is_row(const JobFacts& facts, const LayerFacts& layer) const {
  if (!published_rows_) return layer.family != OpFamily::view;
  if (facts.kind != NetKind::transformer) return features_detail::is_listed(layer);
  return layer.layer_norm || layer.family == OpFamily::embedding || layer.family == OpFamily::linear ||
         layer.family == OpFamily::dropout;
}

GPUMEM_INLINE std::vector<double> FeatureReader::raw_features(const JobFacts& facts) const {
  std::vector<double> raw;
  raw.reserve(features_.size());
  for (const Feature* feature : features_) raw.push_back(feature->value(facts));
  return raw;
}

GPUMEM_INLINE std::vector<std::vector<double>> FeatureReader::raw_sequence(const JobFacts& facts) const {
  std::vector<std::vector<double>> rows;
  if (columns_.empty()) return rows;
  for (const LayerFacts& layer : facts.layers) {
    if (rows.size() == length_) break;
    if (!is_row(facts, layer)) continue;
    std::vector<double>& row = rows.emplace_back();
    row.reserve(columns_.size());
    for (const LayerFeature* column : columns_) row.push_back(column->value(facts, layer));
  }
  return rows;
}

GPUMEM_INLINE void FeatureReader::read(const JobFacts& facts, std::span<float> features, std::vector<float>& sequence,
                                       std::vector<std::string>& outside) const {
  for (std::size_t index = 0; index < features_.size(); ++index) {
    const double raw = features_[index]->value(facts);
    features[index] = transformed(specs_[index], raw);
    if (features_detail::is_outside(specs_[index], raw)) outside.push_back(specs_[index].name);
  }
  sequence.clear();
  if (columns_.empty()) return;
  for (const LayerFacts& layer : facts.layers) {
    if (sequence.size() == length_ * columns_.size()) break;
    if (!is_row(facts, layer)) continue;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      sequence.push_back(transformed(column_specs_[column], columns_[column]->value(facts, layer)));
    }
  }
}

}  // namespace gpumem::ml
