// Input: the sizes of layers that carry a state along the tokens, and the kinds of layers that a config lists.
// Output: Mamba's and Mamba-2's mixers as transformers calls them in training, with the kernels of mamba-ssm and
// causal-conv1d: one function for all after the first projection, which keeps little and computes the rest again; the
// gated delta rule of Qwen3-Next and OLMo Hybrid.
// Source: transformers 4.57, models/mamba2/modeling_mamba2.py: Mamba2Mixer.cuda_kernels_forward; models/mamba,
// models/jamba; mamba-ssm 2.2 (see ops/scan.hpp).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

/// What a layer mixes tokens with, or that it only feeds forward.
enum class LayerKind : std::uint8_t { recurrent, attention, experts, feed_forward, both };

struct LayerKindName {
  std::string_view name;
  LayerKind kind;
};

/// The kinds that a list of names says ("layer_types"), each one of `names`; nothing if the field is not there. Another
/// name, or more layers than any model has, is a fault.
[[nodiscard]] std::vector<LayerKind> layer_kinds(ConfigFields& config, std::string_view field,
                                                 std::span<const LayerKindName> names);
/// The same of "mamba" or "linear_attention" and "attention" or "full_attention", one for each of the layers.
[[nodiscard]] std::vector<LayerKind> mixer_kinds(ConfigFields& config, std::string_view field, std::int64_t layers);

/// This kind where a layer is listed, and a recurrent one elsewhere.
[[nodiscard]] std::vector<LayerKind> kinds_of(const std::vector<bool>& listed, LayerKind kind);

/// That the packages with the fused kernels are installed: without them the same layers keep a multiple.
/// `more`: what else is taken as given of them.
void doubt_kernels(Forward& forward, std::string_view packages, std::string_view more = {});

/// Mamba-2's mixer.
struct Mamba2Mixer {
  std::string_view name = "mixer";
  std::string class_name = {};
  std::string norm_class = {};  ///< of the gated norm; empty: the gate alone
  std::int64_t width = 1;       ///< of the hidden states
  std::int64_t heads = 1;
  std::int64_t head_width = 1;
  std::int64_t groups = 1;  ///< that heads share B and C in
  std::int64_t state = 1;
  std::int64_t kernel = 4;  ///< of the convolution
  std::int64_t chunk = 256;
  bool convolution_bias = true;
  bool input_bias = false;
  bool output_bias = false;
  bool multiplies = false;  ///< what it reads and projects, by numbers
  bool shared = false;      ///< tensor parallel ranks share its heads, as Megatron's do
  /// The scan's function ends with the gate: what it makes is kept for the norm, and what that makes for the last
  /// projection. Else all three are one function, which computes both again. Source: Megatron-LM core 0.12 to August
  /// 2026, core/ssm/mamba_mixer.py: mamba_split_conv1d_scan_combined() without rmsnorm_weight and outproj_weight.
  bool norms_apart = false;

  [[nodiscard]] std::int64_t inner() const { return heads * head_width; }
  [[nodiscard]] std::int64_t convolved() const { return inner() + 2 * groups * state; }
};

/// The names that a config has for the sizes of Mamba-2's mixer, and what it may leave out.
struct Mamba2Fields {
  std::string_view heads, head_width, groups, state, kernel, chunk, bias, convolution_bias;
  Mamba2Mixer usual = {};
};
[[nodiscard]] Mamba2Mixer mamba2_sizes(ConfigFields& config, const Mamba2Fields& fields);
/// Mixers that are too wide, or whose groups do not divide the heads, are a fault of these fields.
void check_mamba2(ConfigFields& config, const Mamba2Mixer& mixer, std::string_view heads, std::string_view groups);
Tensor mamba2_mixer(Forward& forward, const Mamba2Mixer& mixer, Tensor input);
/// Its fields, of the mixer of this path ("layers.0.mixer"): a tree shows the heads and their sum of states; published
/// models have this many groups.
void tree_mamba2(TreeFields& tree, const std::string& mixer, const Mamba2Fields& fields, std::int64_t groups);

/// Mamba's mixer.
struct MambaMixer {
  std::string_view name = "mixer";
  std::string class_name = {};
  std::string norm_class = {};  ///< of the norms of steps, B and C; empty: it has none
  std::int64_t width = 1;
  std::int64_t inner = 1;
  std::int64_t state = 1;
  std::int64_t rank = 1;  ///< of the steps
  std::int64_t kernel = 4;
  bool convolution_bias = true;
  bool bias = false;
  bool fused = true;  ///< one function (mamba_inner_fn); else convolution and scan are functions of their own
};
Tensor mamba_mixer(Forward& forward, const MambaMixer& mixer, Tensor input);
/// The sizes that a tree shows of the mixer of this path, under these names.
void tree_mamba(TreeFields& tree, const std::string& mixer, std::string_view state, std::string_view rank,
                std::string_view kernel);

/// A gated delta net (Qwen3-Next, OLMo Hybrid).
struct DeltaNet {
  std::int64_t keys = 1;    ///< heads of queries and keys
  std::int64_t values = 1;  ///< heads of values, a multiple of them
  std::int64_t key_width = 1;
  std::int64_t value_width = 1;
  std::int64_t kernel = 4;  ///< of the convolution

  [[nodiscard]] std::int64_t key_size() const { return keys * key_width; }
  [[nodiscard]] std::int64_t value_size() const { return values * value_width; }
  [[nodiscard]] std::int64_t convolved() const { return 2 * key_size() + value_size(); }
  [[nodiscard]] std::int64_t times() const { return values / keys; }
};
/// linear_num_key_heads and its like; what the config leaves out is as `usual` has it.
[[nodiscard]] DeltaNet read_delta_net(ConfigFields& config, const DeltaNet& usual);
/// The first attention and the first delta net of a tree; empty: it has none.
struct MixerPlaces {
  std::string attention;
  std::string net;
};
/// Writes layer_types of a tree whose layers have the one or the other.
[[nodiscard]] MixerPlaces tree_layer_types(TreeFields& tree);

/// (x.float() / rms(x)) * (1 + weight.float()), in the type of x, in a module of this class.
Tensor offset_norm(Forward& forward, std::string_view name, Tensor input, std::int64_t width,
                   std::string_view class_name);

namespace mamba_mixers_detail {

/// A depthwise convolution that tells its sizes as torch.nn.Conv1d does.
inline Tensor convolution(Forward& f, Tensor input, std::int64_t channels, std::int64_t kernel, bool bias) {
  return f.layer("conv1d", "Conv1d", "causal_conv1d", {input},
                 {{"channels", channels}, {"kernel_size", kernel}, {"bias", bias}});
}

inline std::int64_t product(std::int64_t left, std::int64_t right) {
  return (core::Checked(left) * core::Checked(right)).value().value_or(INT64_MAX);
}

/// Each head of queries or keys for each head of values that shares it: repeat_interleave.
inline Tensor repeated(Forward& f, const DeltaNet& net, Tensor heads) {
  if (net.times() == 1) return heads;
  const Tensor view = f.call("unsqueeze", {heads}, {{"dim", std::int64_t{3}}});
  return f.flatten(f.call("expand", {view}, {{"shape", Sizes{-1, -1, -1, net.times(), -1}}}), 2, 3);
}

}  // namespace mamba_mixers_detail

/// What a delta net makes of its queries, keys and values, which `mixed` has side by side: [N, S, heads, width].
/// `rates()` says how much of each token its heads of values write, `steps()` what their decay is made of.
template <typename Rates, typename Steps>
Tensor gated_delta(Forward& f, const DeltaNet& n, Tensor mixed, Rates rates, Steps steps) {
  const Tensor convolved = mamba_mixers_detail::convolution(f, mixed, n.convolved(), n.kernel, false);
  const std::vector<Tensor> parts = f.split(convolved, 2, {n.key_size(), n.key_size(), n.value_size()});
  const Tensor values = f.unflatten(parts[2], 2, {-1, n.value_width});
  const Tensor rate = rates();
  const Tensor decays = f.call("neg", {f.call("exp", {f.to(f.parameter("A_log", {n.values}), "float32")})});
  const Tensor biased = f.add(f.to(steps(), "float32"), f.parameter("dt_bias", {n.values}));
  const Tensor step = f.multiply(f.call("softplus", {biased}), decays);
  const auto heads = [&](Tensor part) {
    return mamba_mixers_detail::repeated(f, n, f.unflatten(part, 2, {-1, n.key_width}));
  };
  const Tensor queries = heads(parts[0]);
  const Tensor keys = heads(parts[1]);
  return f.call("gated_delta_rule", {queries, keys, values, step, rate});
}

inline DeltaNet read_delta_net(ConfigFields& config, const DeltaNet& usual) {
  const DeltaNet net = {.keys = config.size_or({"linear_num_key_heads"}, usual.keys),
                        .values = config.size_or({"linear_num_value_heads"}, usual.values),
                        .key_width = config.size_or({"linear_key_head_dim"}, usual.key_width),
                        .value_width = config.size_or({"linear_value_head_dim"}, usual.value_width),
                        .kernel = config.size_or({"linear_conv_kernel_dim"}, usual.kernel)};
  using mamba_mixers_detail::product;
  constexpr std::int64_t kMost = ConfigFields::kLargestSize / 8;
  const bool wide = product(net.keys, net.key_width) > kMost || product(net.values, net.value_width) > kMost;
  if (wide || net.kernel > kMost) config.fail("makes the delta net too wide", "linear_num_value_heads");
  if (net.values % net.keys != 0) config.fail("does not divide linear_num_value_heads", "linear_num_key_heads");
  return net;
}

inline std::vector<LayerKind> layer_kinds(ConfigFields& config, std::string_view field,
                                          std::span<const LayerKindName> names) {
  std::vector<LayerKind> kinds;
  const core::JsonValue* list = config.find(field);
  if (list == nullptr) return kinds;
  if (!list->is(core::JsonValue::Kind::list) || list->size() > static_cast<std::size_t>(ConfigFields::kMostLayers)) {
    config.fail("must be a list of at most " + std::to_string(ConfigFields::kMostLayers) + " kinds of layers", field);
    return kinds;
  }
  for (const core::JsonValue& item : list->items()) {
    const auto found = std::ranges::find_if(names, [&](const LayerKindName& row) { return item.is(row.name); });
    if (found != names.end()) kinds.push_back(found->kind);
  }
  if (kinds.size() != list->size()) config.fail("names a kind of layer that is not known", field);
  return kinds;
}

inline std::vector<LayerKind> mixer_kinds(ConfigFields& config, std::string_view field, std::int64_t layers) {
  static constexpr auto kNames = std::to_array<LayerKindName>({{"mamba", LayerKind::recurrent},
                                                               {"linear_attention", LayerKind::recurrent},
                                                               {"conv", LayerKind::recurrent},
                                                               {"recurrent", LayerKind::recurrent},
                                                               {"attention", LayerKind::attention},
                                                               {"full_attention", LayerKind::attention},
                                                               {"hybrid", LayerKind::both}});
  std::vector<LayerKind> kinds = layer_kinds(config, field, kNames);
  if (!kinds.empty() && static_cast<std::int64_t>(kinds.size()) != layers) {
    config.fail("must name as many layers as the model has", field);
  }
  return kinds;
}

inline std::vector<LayerKind> kinds_of(const std::vector<bool>& listed, LayerKind kind) {
  std::vector<LayerKind> kinds;
  kinds.reserve(listed.size());
  for (const bool is_listed : listed) kinds.push_back(is_listed ? kind : LayerKind::recurrent);
  return kinds;
}

inline void doubt_kernels(Forward& forward, std::string_view packages, std::string_view more) {
  forward.doubt({model::Doubt::About::kernels,
                 "the kernels of " + std::string(packages) +
                     " are taken to be installed; without them transformers computes these layers in plain PyTorch, " +
                     "which keeps a multiple" + std::string(more),
                 false});
}

inline Mamba2Mixer mamba2_sizes(ConfigFields& config, const Mamba2Fields& fields) {
  Mamba2Mixer mixer = fields.usual;
  const auto read = [&](std::string_view field, std::int64_t usual) {
    return usual > 0 ? config.size_or({field}, usual) : config.size({field});
  };
  mixer.heads = read(fields.heads, mixer.heads);
  mixer.head_width = read(fields.head_width, mixer.head_width);
  mixer.groups = read(fields.groups, mixer.groups);
  mixer.state = read(fields.state, mixer.state);
  mixer.kernel = read(fields.kernel, mixer.kernel);
  mixer.chunk = read(fields.chunk, mixer.chunk);
  mixer.input_bias = config.flag(fields.bias, mixer.input_bias);
  mixer.output_bias = mixer.input_bias;
  mixer.convolution_bias = config.flag(fields.convolution_bias, mixer.convolution_bias);
  check_mamba2(config, mixer, fields.heads, fields.groups);
  return mixer;
}

inline void check_mamba2(ConfigFields& config, const Mamba2Mixer& m, std::string_view heads, std::string_view groups) {
  using mamba_mixers_detail::product;
  constexpr std::int64_t kMostChunk = 1 << 16;
  const std::int64_t most = ConfigFields::kLargestSize / 8;
  const bool wide = product(m.heads, m.head_width) > most || product(m.groups, m.state) > most;
  if (wide || m.kernel > kMostChunk || m.chunk > kMostChunk) config.fail("makes the mixer too wide", heads);
  if (m.heads % std::max<std::int64_t>(m.groups, 1) != 0) config.fail("does not divide the mixer's heads", groups);
}

namespace mamba_mixers_detail {

/// What is between the two projections: convolution, scan and gated norm.
inline Tensor scanned(Forward& f, const Mamba2Mixer& m, Tensor projected) {
  const std::vector<Tensor> parts = f.split(projected, 2, {m.inner(), m.convolved(), m.heads});
  const Tensor convolved = convolution(f, parts[1], m.convolved(), m.kernel, m.convolution_bias);
  const Tensor decays = f.parameter("A_log", {m.heads});
  const Tensor skips = f.parameter("D", {m.heads});
  const Tensor biases = f.parameter("dt_bias", {m.heads});
  const Tensor scanned = f.call("ssd_scan", {convolved, parts[2], decays, skips, biases},
                                {{"heads", m.heads},
                                 {"head_dim", m.head_width},
                                 {"groups", m.groups},
                                 {"state", m.state},
                                 {"chunk", m.chunk},
                                 {"recomputed", true}});
  const bool gates_alone = m.norm_class.empty() || m.norms_apart;
  if (gates_alone) {
    const Tensor gated = f.call("gated_norm", {scanned, parts[0]}, {{"normalizes", false}});
    if (m.norm_class.empty()) return gated;
    return f.layer("norm", m.norm_class, "rms_norm", {gated}, {{"normalized_shape", m.inner()}, {"fused", true}});
  }
  return f.layer("norm", m.norm_class, "gated_norm", {scanned, parts[0]},
                 {{"normalized_shape", m.inner()}, {"groups", m.groups}});
}

}  // namespace mamba_mixers_detail

inline Tensor mamba2_mixer(Forward& f, const Mamba2Mixer& m, Tensor input) {
  const InModule inside(f, m.name, m.class_name);
  if (m.multiplies) input = f.scale(input);
  Tensor projected = f.linear("in_proj", input, m.width, m.inner() + m.convolved() + m.heads,
                              {.bias = m.input_bias, .split = m.shared ? Split::columns : Split::whole});
  if (m.multiplies) projected = f.scale(projected);
  if (m.shared) f.share(Split::mixer);
  const Tensor gated = mamba_mixers_detail::scanned(f, m, projected);
  f.share(Split::whole);
  return f.linear(
      "out_proj", gated, m.inner(), m.width,
      {.bias = m.output_bias, .split = m.shared ? Split::rows : Split::whole, .recomputed = !m.norms_apart});
}

inline MixerPlaces tree_layer_types(TreeFields& t) {
  MixerPlaces first;
  std::string kinds;
  for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
    const std::string layer = "layers." + std::to_string(at);
    const bool attends = t.has(layer + ".self_attn.q_proj");
    if (attends && first.attention.empty()) first.attention = layer + ".self_attn";
    if (!attends && first.net.empty()) first.net = layer + ".linear_attn";
    kinds += std::string(kinds.empty() ? "" : ", ") + (attends ? R"("full_attention")" : R"("linear_attention")");
  }
  t.set_text("layer_types", "[" + kinds + "]");
  return first;
}

inline void tree_mamba2(TreeFields& t, const std::string& mixer, const Mamba2Fields& fields, std::int64_t groups) {
  const std::int64_t projected = t.value(mixer + ".in_proj", "out_features").value_or(0);
  const std::int64_t inner = t.value(mixer + ".out_proj", "in_features").value_or(0);
  const std::int64_t convolved = t.value(mixer + ".conv1d", "in_channels").value_or(0);
  const std::int64_t heads = projected - inner - convolved;
  const std::int64_t shared = (convolved - inner) / 2;
  t.flag(fields.bias, mixer + ".in_proj");
  t.flag(fields.convolution_bias, mixer + ".conv1d");
  t.size(fields.kernel, mixer + ".conv1d", "kernel_size");
  if (heads < 1 || inner < heads || inner % heads != 0 || shared < groups || shared % groups != 0) return;
  t.set(fields.heads, heads);
  t.set(fields.head_width, inner / heads);
  t.set(fields.groups, groups);
  t.set(fields.state, shared / groups);
  t.assume("states of " + std::to_string(shared / groups) + " in " + std::to_string(groups) +
           (groups == 1 ? " group" : " groups") + ", as published models have");
}

/// Rows [N, S, C] become planes [N, C, S] for the scan.
inline Tensor mamba_mixer(Forward& f, const MambaMixer& m, Tensor input) {
  const InModule inside(f, m.name, m.class_name);
  const auto turned = [&](Tensor tensor) { return f.permute(tensor, {0, 2, 1}); };
  const auto normed = [&](std::string_view name, Tensor tensor, std::int64_t width) {
    return m.norm_class.empty() ? tensor : f.rms_norm(name, tensor, width, m.norm_class);
  };
  Tensor projected = f.linear("in_proj", input, m.width, 2 * m.inner, {.bias = m.bias});
  // The one function copies what it reads into the order of the planes.
  if (m.fused) projected = turned(f.contiguous(turned(projected)));
  const std::vector<Tensor> parts = f.split(projected, 2, {m.inner, m.inner});
  const Tensor convolved = mamba_mixers_detail::convolution(f, parts[0], m.inner, m.kernel, m.convolution_bias);
  const Tensor made =
      f.linear("x_proj", convolved, m.inner, m.rank + 2 * m.state, {.bias = false, .recomputed = m.fused});
  const std::vector<Tensor> selected = f.split(made, 2, {m.rank, m.state, m.state});
  const Tensor rank = normed("dt_layernorm", selected[0], m.rank);
  const Tensor incoming = normed("b_layernorm", selected[1], m.state);
  const Tensor outgoing = normed("c_layernorm", selected[2], m.state);
  const Tensor steps = f.linear("dt_proj", rank, m.rank, m.inner);
  const Tensor decays = f.parameter("A_log", {m.inner, m.state});
  const Tensor skips = f.parameter("D", {m.inner});
  const Tensor scanned =
      f.call("selective_scan",
             {turned(convolved), turned(steps), turned(incoming), turned(outgoing), turned(parts[1]), decays, skips},
             {{"state", m.state}, {"recomputed", m.fused}});
  return f.linear("out_proj", turned(scanned), m.inner, m.width, {.bias = m.bias, .recomputed = m.fused});
}

inline void tree_mamba(TreeFields& t, const std::string& mixer, std::string_view state, std::string_view rank,
                       std::string_view kernel) {
  t.size(rank, mixer + ".dt_proj", "in_features");
  t.size(kernel, mixer + ".conv1d", "kernel_size");
  const std::int64_t made = t.value(mixer + ".x_proj", "out_features").value_or(0);
  const std::int64_t steps = t.value(mixer + ".dt_proj", "in_features").value_or(0);
  if (made - steps >= 2) t.set(state, (made - steps) / 2);
}

inline Tensor offset_norm(Forward& f, std::string_view name, Tensor input, std::int64_t width,
                          std::string_view class_name) {
  const InModule inside(f, name, class_name);
  const Tensor plain = f.layer("norm", {}, "rms_norm", {f.to(input, "float32")},
                               {{"normalized_shape", width}, {"elementwise_affine", false}});
  const Tensor weight = f.call("add", {f.to(f.parameter("weight", {width}), "float32")});
  return f.as_type_of(f.multiply(plain, weight), input);
}

}  // namespace gpumem::architectures
