// Input: a GPU's profile as JSON (models/gpus/*.json, or a user's own).
// Output: GpuProfile, plain data. A figure that nobody published is absent, never guessed. Each figure names its
// source.
// Units: in the names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::device {

struct Figure {
  std::int64_t value = 0;
  std::string source;
};

/// What CUDA takes before the first tensor (context, driver, loaded libraries), on one software stack, and what the
/// kernels of cuDNN add once they are loaded.
struct ContextFigure {
  std::string name;  ///< "lazy-loading": what a job calls the stack
  std::string software;
  std::int64_t bytes = 0;
  std::int64_t lower_bytes = 0;        ///< what was seen on such GPUs, at least; 0: as `bytes`
  std::int64_t upper_bytes = 0;        ///< and at most; 0: as `bytes`
  std::int64_t convolution_bytes = 0;  ///< more, once a convolution has run
  std::int64_t batch_norm_bytes = 0;   ///< more, once a batch normalisation has run in addition to convolutions
  std::string source;
};

/// For which layouts a workspace holds channels-last copies of a convolution's tensors.
enum class Copies : std::uint8_t { by_rule, always, unaligned, never };

/// A way in which cuDNN may decide otherwise than the rule says, for all convolutions of a model alike. The rule is a
/// rule of thumb; a set of such ways spans what can come of it.
struct WorkspaceVariant {
  std::string_view name = {};
  Copies forward = Copies::by_rule;
  Copies data_gradient = Copies::by_rule;
  Copies weight_gradient = Copies::by_rule;
  Copies first_layer = Copies::by_rule;  ///< unaligned: as by the rule
  std::int64_t slices = 0;               ///< of every weight gradient; 0: by the rule
  std::int64_t split_bytes = 0;          ///< of every weight gradient's slices together; 0: by the rule
  std::int64_t channel_multiple = 0;     ///< 0: by the rule

  friend bool operator==(const WorkspaceVariant&, const WorkspaceVariant&) = default;
};

/// How much workspace cuDNN takes for a convolution on channels-first tensors (workspace.hpp has the rule).
struct ConvolutionWorkspaceRule {
  std::int64_t channel_multiple = 4;              ///< of the kernels, in float32; twice that in half precision
  std::int64_t first_layer_channels = 112;        ///< an image's first layer with more output channels takes copies
  std::int64_t narrow_channels = 200;             ///< layers up to here are narrow
  std::int64_t narrow_least_inputs = 40;          ///< narrow layers with more input channels split the weight gradient
  std::int64_t narrow_split_bytes = 5 << 20;      ///< in slices of about this many bytes together
  std::int64_t wide_slices = 4;                   ///< the number of slices in wider layers
  std::int64_t wide_split_most_bytes = 12 << 20;  ///< whose weight has at most this many bytes
  std::int64_t whole_multiple = 32;               ///< wider layers whose channels are multiples of this are not split
  std::string source = "assumed: as fitted for the A100";
  bool fitted = false;  ///< to runs on this GPU
  WorkspaceVariant variant =
      {};  ///< one of workspace_variants(): a deviation that a site's runs show, or that is tried

  friend bool operator==(const ConvolutionWorkspaceRule&, const ConvolutionWorkspaceRule&) = default;
};

struct GpuProfile {
  std::string name;   ///< "a100-40gb"
  std::string title;  ///< "NVIDIA A100 40GB"
  std::vector<std::string> aliases;
  std::string architecture;            ///< "ampere"
  std::string compute_capability;      ///< "8.0"
  std::string parent;                  ///< of a MIG slice: the whole GPU's name
  Figure memory_bytes;                 ///< nominal capacity
  std::optional<Figure> usable_bytes;  ///< what PyTorch reports as total_memory
  std::optional<Figure> sm_count;
  std::optional<Figure> memory_bandwidth_bytes_per_second;
  std::optional<Figure> peak_fp32_flops;  ///< without tensor cores, a second
  std::optional<Figure> cublas_workspace_bytes;
  std::optional<Figure> link_bandwidth_bytes_per_second;     ///< to the other GPUs of a node, in one direction
  std::optional<Figure> network_bandwidth_bytes_per_second;  ///< of one GPU to those of other nodes, in one direction
  std::optional<Figure> gpus_per_node;                       ///< of the system that the two figures are of
  ConvolutionWorkspaceRule convolution_workspace;
  std::vector<ContextFigure> contexts;  ///< the first is the default

  /// The memory that jobs can have: usable_bytes where it is known, else the nominal capacity.
  [[nodiscard]] core::Bytes capacity() const {
    return core::Bytes(usable_bytes ? usable_bytes->value : memory_bytes.value);
  }
};

/// Whether scaled_dot_product_attention asks cuDNN's kernel first: on Hopper and on Blackwell's servers. Source:
/// PyTorch 2.11, ATen/native/transformers/cuda/sdp_utils.cpp: check_prefer_cudnn_attention (with cuDNN 9.15 and later).
[[nodiscard]] inline bool prefers_cudnn_attention(const GpuProfile& gpu) {
  return gpu.compute_capability == "9.0" || gpu.compute_capability == "10.0";
}

/// A profile out of its JSON; strict: unknown fields are errors. Errors: malformed_input, naming the field;
/// `file` is for messages.
[[nodiscard]] core::Result<GpuProfile> parse_profile(std::string_view json, std::string_view file = {});

/// A user's own profile. Errors: also unreadable_file.
[[nodiscard]] core::Result<GpuProfile> load_profile(const std::string& path);

/// The built-in profile of this name, alias or title ("NVIDIA A100 40GB"), however its words are parted or capitalised;
/// a part of a name that only one GPU has is enough ("4090"). A path (anything with a '/' or ending in .json) is
/// loaded. Errors: unknown_gpu, with the profiles that the name may mean or the nearest name; those of load_profile.
[[nodiscard]] core::Result<GpuProfile> find_profile(std::string_view name);

/// A built-in profile as the library carries it.
struct BuiltinProfile {
  std::string_view name;
  std::string_view json;
};

/// All built-in profiles, by name. Empty if the headers are used without the generated
/// gpumem/device/impl/builtin_gpus.hpp, which CMake writes from models/gpus/.
[[nodiscard]] std::span<const BuiltinProfile> builtin_profiles();

/// The same, read when they are first asked for. Errors: those of parse_profile(); none of the profiles that the
/// library comes with has one.
[[nodiscard]] const core::Result<std::vector<GpuProfile>>& known_profiles();

}  // namespace gpumem::device
