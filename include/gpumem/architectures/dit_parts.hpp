// Input: tensors within the forward() of a denoising transformer.
// Output: what many of diffusers' transformers have alike: norms whose scale and shift come from the timestep, gated
// sums, feed-forward layers, rotary positions of pairs, attention over heads.
// Source: diffusers 0.38, models/normalization.py, attention.py, activations.py, embeddings.py (apply_rotary_emb),
// attention_dispatch.py (_native_attention).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

/// Whose forward() runs. Trainers bring copies of diffusers' classes that keep other tensors; a config.json says so
/// with a field of gpumem's own, `_code`.
enum class DitCode : std::uint8_t { diffusers, simpletuner };
[[nodiscard]] DitCode dit_code(ConfigFields& config);

/// Sizes that all such models have. Products of their widths fit 64 bits.
struct DitSizes {
  std::int64_t heads = 1;
  std::int64_t head_width = 1;
  std::int64_t width = 1;  ///< of all heads
  std::int64_t channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t text_width = 1;  ///< of the text encoder's embeddings
};

/// What the class has where the config leaves a field out.
struct DitDefaults {
  std::int64_t heads = 24;
  std::int64_t head_width = 128;
  std::int64_t channels = 16;
  std::int64_t text_width = 4096;
  std::string_view text_field = "joint_attention_dim";
};

/// num_attention_heads, attention_head_dim, in_channels, out_channels. Widths that are too large are a fault.
[[nodiscard]] DitSizes dit_sizes(ConfigFields& config, const DitDefaults& defaults);
/// A width times a ratio, cut to a whole number: int(width * mlp_ratio).
[[nodiscard]] std::int64_t dit_inner(ConfigFields& config, std::string_view name, std::int64_t width, double usual);
/// A list of positive sizes, or one size for all; `usual` says how many.
[[nodiscard]] Sizes dit_list(ConfigFields& config, std::string_view name, const Sizes& usual);
/// A number of layers, which the class has where the config says none. None at all is a number, too.
[[nodiscard]] std::int64_t dit_layers(ConfigFields& config, std::string_view name, std::int64_t usual);
/// A width that must be at most a million, so that products of widths fit.
[[nodiscard]] std::int64_t dit_width(ConfigFields& config, std::string_view name, std::int64_t usual);

/// The pixels of latents that a token has of each side, at most 16; 2 where the config says none.
[[nodiscard]] std::int64_t dit_patch(ConfigFields& config);

/// Tensor.chunk on this axis, each of this size.
[[nodiscard]] std::vector<Tensor> chunks(Forward& forward, Tensor tensor, std::int64_t dim, std::int64_t count,
                                         std::int64_t size);
/// The same of [N, count width], each as [N, 1, width].
[[nodiscard]] std::vector<Tensor> row_chunks(Forward& forward, Tensor rows, std::int64_t count, std::int64_t width);
[[nodiscard]] Tensor unsqueezed(Forward& forward, Tensor tensor, std::int64_t dim);
/// normed (1 + scale) + shift
Tensor modulated(Forward& forward, Tensor normed, Tensor scale, Tensor shift);
/// residual + gate branch
Tensor gated_sum(Forward& forward, Tensor residual, Tensor gate, Tensor branch);

/// torch.nn.LayerNorm without weight and bias.
Tensor bare_norm(Forward& forward, std::string_view name, Tensor input, std::int64_t width);
/// torch.nn.LayerNorm; with weight and bias if `affine`.
Tensor affine_norm(Forward& forward, std::string_view name, Tensor input, std::int64_t width, bool affine);
/// FP32LayerNorm: of a float32 copy, and back.
Tensor wide_norm(Forward& forward, std::string_view name, Tensor input, std::int64_t width, bool affine);
/// torch.nn.RMSNorm: one kernel in PyTorch 2.9 and later.
Tensor torch_rms_norm(Forward& forward, std::string_view name, Tensor input, std::int64_t width, bool affine = true);
/// diffusers' own RMSNorm, written out: also what its Attention class takes for rms_norm_across_heads.
Tensor own_rms_norm(Forward& forward, std::string_view name, Tensor input, std::int64_t width, bool affine = true);

/// PixArtAlphaTextProjection: linear_1, the activation, linear_2.
Tensor text_projection(Forward& forward, std::string_view name, Tensor input, std::int64_t in, std::int64_t out,
                       std::string_view activation);
/// PatchEmbed: a convolution whose steps are as long as its kernel; what it leaves is [N, tokens, width], seen through
/// the convolution's [N, width, ..]. Positions of `places` tokens are held and added where there are any.
Tensor patch_embedding(Forward& forward, std::string_view name, Tensor latents, std::int64_t channels,
                       std::int64_t width, std::int64_t patch, std::int64_t tokens, std::int64_t places);
/// The last layer, whose rows are squares of patches, and the loss. Where the model predicts a variance too, the loss
/// reads the first half.
void loss_of_patches(Forward& forward, std::string_view last, Tensor hidden, const DitSizes& sizes, std::int64_t patch,
                     std::int64_t tokens);
/// AdaLayerNormZero's first half: [N, width] -> silu -> linear -> chunks [N, 1, width].
std::vector<Tensor> modulation(Forward& forward, std::string_view linear, Tensor conditions, std::int64_t in,
                               std::int64_t width, std::int64_t count, bool bias = true);
/// AdaLayerNormContinuous. `shift_first`: the order of its chunks.
Tensor continuous_norm(Forward& forward, std::string_view name, Tensor input, Tensor conditions, std::int64_t in,
                       std::int64_t width, bool bias = true);

/// FeedForward's net.
enum class DitActivation : std::uint8_t { gelu, gelu_tanh, geglu, swiglu, linear_silu };
Tensor dit_feed_forward(Forward& forward, std::string_view name, Tensor input, std::int64_t width, std::int64_t inner,
                        DitActivation activation, bool bias = true);

/// w2(silu(w1 x) * w3 x), without biases.
Tensor three_layers(Forward& forward, std::string_view name, std::string_view class_name, Tensor input,
                    std::int64_t width, std::int64_t inner);

/// Tables of cosines and sines of the tokens of these tensors one after the other: [1, S, 1, width].
struct PairTables {
  Tensor cosines = 0;
  Tensor sines = 0;
};
[[nodiscard]] PairTables pair_tables(Forward& forward, std::initializer_list<Tensor> tokens, std::int64_t width,
                                     std::string_view dtype = "float32");
/// Of tables in the type of the model's activations.
inline constexpr std::string_view kOwnType;
/// apply_rotary_emb: pairs side by side are turned, in float32. `heads` [N, S, heads, width]; `halves`: the pairs are
/// half a head apart.
Tensor turn_pairs(Forward& forward, Tensor heads, const PairTables& tables, bool halves = false);

/// (x1 cos - x2 sin, x1 sin + x2 cos) of pairs, each in a type as wide as the tables', then in the heads' type. The
/// model writes them into their places of a new tensor; here they are joined.
Tensor write_pairs(Forward& forward, Tensor heads, const PairTables& tables, std::int64_t width);
/// The same as products of complex numbers in this type; the table of cosines stands for both.
Tensor turn_complex(Forward& forward, Tensor heads, const PairTables& tables, std::string_view type = "float32");

/// [N, S, heads width] -> [N, S, heads, width]
[[nodiscard]] Tensor as_heads(Forward& forward, Tensor tensor, std::int64_t head_width);
/// Attention over heads [N, S, heads, width]; what it leaves is [N, S, heads width].
Tensor attend_heads(Forward& forward, Tensor query, Tensor key, Tensor value, std::optional<Tensor> mask = {});

/// The same where keys and values may have fewer heads, which the kernel repeats (enable_gqa).
Tensor attend_fewer_heads(Forward& forward, Tensor query, Tensor key, Tensor value, bool causal = false);

/// x cos + rotate_half(x) sin in the type of the heads [N, S, heads, width], with tables of that type.
Tensor turn_halves(Forward& forward, Tensor heads, const PairTables& tables, std::int64_t width);

/// Attention (models/attention_processor.py: AttnProcessor2_0) of one sequence to another one or itself.
struct PlainAttention {
  std::string_view name = "attn1";
  std::int64_t width = 1;  ///< of the input, and of what leaves it
  std::int64_t inner = 1;  ///< of all heads
  std::int64_t head_width = 1;
  std::int64_t source_width = 1;  ///< of what keys and values are made of
  bool bias = true;
  bool out_bias = true;
  bool norms = false;   ///< diffusers' RMSNorm on queries and keys of all heads
  bool divides = true;  ///< by rescale_output_factor, a number
  std::optional<Tensor> mask = {};
};
Tensor plain_attention(Forward& forward, const PlainAttention& options, Tensor input, Tensor source);
/// A prompt's mask as an additive one, [N, 1, 1, S], in the model's type.
[[nodiscard]] Tensor prompt_mask(Forward& forward, Tensor prompt);

/// Which tokens of these are seen, as booleans [N, 1, 1, S]. PyTorch makes numbers of them in each call of attention.
[[nodiscard]] Tensor seen_tokens(Forward& forward, Tensor tokens);

/// AdaLayerNormSingle: the timestep's embedding, and six scales, shifts and gates of it, [N, 6, width].
struct SingleRows {
  Tensor time = 0;  ///< [N, width]
  Tensor rows = 0;
};
struct SingleOptions {
  std::string_view name = "adaln_single";
  bool sized = false;   ///< with the image's size and shape (PixArt)
  bool guided = false;  ///< with a guidance scale, by a class of its own (Sana)
};
[[nodiscard]] SingleRows single_rows(Forward& forward, std::int64_t width, const SingleOptions& options);
/// A block's own table [count, width] and rows of the timestep, [N, 1, width] each.
[[nodiscard]] std::vector<Tensor> table_rows(Forward& forward, Tensor rows, std::int64_t count, std::int64_t width);

/// How queries and keys are normed, head by head.
enum class DitHeadNorm : std::uint8_t {
  none,
  torch_rms,
  own_rms,
  wide_layer,  ///< FP32LayerNorm without weight
};
Tensor dit_head_norm(Forward& forward, std::string_view name, Tensor heads, std::int64_t width, DitHeadNorm norm);

/// A sequence of image tokens and one of text tokens.
struct TwoStreams {
  Tensor image = 0;
  Tensor text = 0;
};
struct StreamLengths {
  std::int64_t image = 1;
  std::int64_t text = 1;
};

/// Attention of two streams, each with projections of its own, over all their tokens.
struct JointAttention {
  std::string_view class_name = "Attention";
  std::int64_t width = 1;
  std::int64_t head_width = 1;
  bool bias = true;
  DitHeadNorm norm = DitHeadNorm::torch_rms;
  const PairTables* tables = nullptr;
  bool text_first = true;
  bool text_leaves = true;   ///< the text's part has an output projection
  bool heads_first = false;  ///< streams are joined as [N, heads, S, width]
  /// Each stream is turned by itself, as complex numbers, before they are joined: `tables` are the image's.
  const PairTables* text_tables = nullptr;
  /// Samples of a batch lie one behind the other: streams are written into a tensor of all, and gathered from what
  /// attention leaves. The image alone is turned, as complex numbers.
  bool packed = false;
};
[[nodiscard]] TwoStreams joint_attention(Forward& forward, const JointAttention& options, const TwoStreams& streams,
                                         const StreamLengths& lengths);
/// The same over one stream that holds all tokens; without an output projection unless `projects`.
Tensor single_attention(Forward& forward, const JointAttention& options, Tensor hidden, bool projects);

/// in_channels and out_channels of a printed denoiser, by its first layer and its last one. Returns its width; 0: the
/// first layer does not show it. `area`: how many latents a patch is; a convolution shows its channels alone.
std::int64_t denoiser_tree(TreeFields& t, std::string_view first, std::string_view last, std::int64_t area = 1);
/// The heads of a printed denoiser of this width, by a norm of one head where it prints that; else each is `usual`
/// wide, as `published` models have.
void denoiser_heads_tree(TreeFields& t, std::int64_t width, std::int64_t usual, std::string_view published,
                         std::string_view norm = {});

}  // namespace gpumem::architectures
