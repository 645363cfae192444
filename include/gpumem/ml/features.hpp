// Input: a training job, its layers, its replay on a GPU and its roofline.
// Output: the figures that a trained model reads: facts of the job, the catalogue of features, and what the replay and
// the roofline say.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::ml {

// Input: a training job and the shapes of its layers.
// Output: JobFacts, from which a job's features are computed: one pass over the layers, a few nanoseconds each, no
// replay.
// Units: elements a sample, unless said otherwise.
//
// What backward keeps is told by the ops' rows, roughly, enough for a learned model: their record rules (ops/) decide
// the replay. A layer of an unknown op, which only lenient reading takes, is of the family `other` and keeps its input.

using model::ActivationFunction;
using model::Keeps;
using model::OpFamily;

inline constexpr std::size_t kOpFamilies = static_cast<std::size_t>(OpFamily::other) + 1;

struct LayerFacts {
  OpFamily family = OpFamily::other;
  ActivationFunction function = ActivationFunction::none;
  bool layer_norm = false;
  bool conv1d_class = false;     ///< GPT-2's Conv1D, a linear layer that GPUMemNet does not count as one
  bool not_quantizable = false;  ///< NonDynamicallyQuantizableLinear, the output of nn.MultiheadAttention
  std::int64_t parameters = 0;   ///< elements, tied ones included
  double outputs = 0.0;          ///< of all tensors that leave it
  double positions = 0.0;        ///< the same without channels: height x width of an image, else `outputs`
};

/// Figures of a step's time on the GPU; kRooflineFigureNames says which.
inline constexpr std::size_t kRooflineFigures = 16;

/// Figures of replays of the job; kReplayFigureNames says which.
inline constexpr std::size_t kReplayFigures = 32;

struct JobFacts {
  const model::TrainingJob* job = nullptr;
  const model::ModelGraph* graph = nullptr;  ///< whose layers these are: the summary's, or the wired one
  NetKind kind = NetKind::mlp;
  std::vector<LayerFacts> layers;

  std::array<std::int64_t, kOpFamilies> count{};  ///< layers by family
  std::array<double, kOpFamilies> outputs{};      ///< by family
  std::array<double, kOpFamilies> parameters{};   ///< by family
  double kept = 0.0;                              ///< outputs that backward reads again, each once
  double largest_output = 0.0;
  double largest_parameters = 0.0;
  double convolution_operands = 0.0;  ///< of the largest convolution after the first: input and output
  ActivationFunction function = ActivationFunction::none;  ///< the most frequent

  std::optional<std::array<double, kReplayFigures>> replay;      ///< where a model asks for them
  std::optional<std::array<double, kRooflineFigures>> roofline;  ///< likewise

  /// Bytes of a parameter, and of most activations: half of float32's under autocast.
  [[nodiscard]] double parameter_bytes() const;
  [[nodiscard]] double activation_bytes() const;
  /// Tensors as large as the parameters that the optimizer keeps.
  [[nodiscard]] double optimizer_states() const;

  [[nodiscard]] std::int64_t layers_of(OpFamily family) const { return count[static_cast<std::size_t>(family)]; }
  [[nodiscard]] double outputs_of(OpFamily family) const { return outputs[static_cast<std::size_t>(family)]; }
};

/// The shapes of the tensors that leave a layer.
using OutputsOf = std::function<std::span<const core::Shape>(std::size_t layer)>;

/// Views the job and the graph, which must outlive the facts. Errors: missing_information for a dimension that is not
/// known, naming the layer; overflow.
[[nodiscard]] core::Result<JobFacts> facts_of(const model::TrainingJob& job, const model::ModelGraph& graph,
                                              const OutputsOf& outputs_of);

/// The same of a job's Analysis, until that is moved to another job. The facts of a table are those of its printed
/// rows, which need no edges; other graphs are wired. Errors: also those of connecting.
[[nodiscard]] core::Result<JobFacts> facts_of(analysis::Analysis& analysis);

// Input: facts of a job, and the features that a model's config names.
// Output: the figures that go into its network, and whether they lie within what it was trained on.
//
// The catalogue below is the one place that says what a feature means; which of them a model reads, in which order and
// scaled how, is data in its config.json. Names that begin with "gpumemnet." are those of the published models with
// their quirks (itu-rad/GPUMemNet): raw counts, activations of a CNN without their channels, parameters without the
// slopes of PReLU.

/// What a feature reads of a job.
enum class Needs : std::uint8_t {
  layers,    ///< JobFacts as facts_of() makes it
  replay,    ///< JobFacts::replay
  variants,  ///< its figures of other workspaces, too
  roofline,  ///< JobFacts::roofline
};

/// A figure of a whole job.
struct Feature {
  std::string_view name;
  std::string_view description;  ///< with the unit, for people
  double (*value)(const JobFacts& facts);
  Needs needs = Needs::layers;
};

/// A figure of one layer: a column of the sequence.
struct LayerFeature {
  std::string_view name;
  std::string_view description;
  double (*value)(const JobFacts& facts, const LayerFacts& layer);
};

/// Every feature that gpumem can compute.
[[nodiscard]] std::span<const Feature> features();
[[nodiscard]] std::span<const LayerFeature> layer_features();

/// Done if every feature and column of the config is in the catalogue. Errors: malformed_input with a JSON pointer.
[[nodiscard]] core::Status check_features(const ModelConfig& config);

/// The features of one model, looked up once.
/// Thread safety: immutable; any number of threads may read with one.
class FeatureReader {
 public:
  /// Errors: those of check_features().
  [[nodiscard]] static core::Result<FeatureReader> create(const ModelConfig& config);

  /// Whether a feature of the model reads this; `replay` also where one reads its variants.
  [[nodiscard]] bool needs(Needs what) const;

  /// Raw figures, as they are in tables and test vectors.
  [[nodiscard]] std::vector<double> raw_features(const JobFacts& facts) const;
  [[nodiscard]] std::vector<std::vector<double>> raw_sequence(const JobFacts& facts) const;

  /// The same as they enter the network: `features` has room for all; `sequence` is given its size, up to the model's
  /// length. `outside` gets the names of features outside their training range.
  void read(const JobFacts& facts, std::span<float> features, std::vector<float>& sequence,
            std::vector<std::string>& outside) const;

 private:
  [[nodiscard]] bool is_row(const JobFacts& facts, const LayerFacts& layer) const;

  std::vector<const Feature*> features_;
  std::vector<const LayerFeature*> columns_;
  std::vector<FeatureSpec> specs_;
  std::vector<FeatureSpec> column_specs_;
  std::size_t length_ = 0;
  bool published_rows_ = false;  ///< the rows that GPUMemNet lists, not ours
};

// Input: a job's Analysis and a GPU.
// Output: the figures that a learned model reads from the allocator's runs of the job on that GPU, and their names, in
// the order of JobFacts::replay.
// Units: MiB, unless said otherwise.

/// A job replayed once, on the GPU and within its memory.
enum class ReplayFigure : std::uint8_t {
  device,         ///< context + reserved: what nvidia-smi shows
  reserved,       ///< at its peak; of a job that does not fit, on a GPU that is large enough
  allocated,      ///< at its peak
  workspace,      ///< when most is allocated
  fragmentation,  ///< peak reserved less peak allocated
  context,
  fits,     ///< 1 or 0
  retries,  ///< how often the allocator gave back its cache
};

inline constexpr std::array<model::Named<ReplayFigure>, 8> kReplayFigureNames = {
    {{ReplayFigure::device, "replay.device"},
     {ReplayFigure::reserved, "replay.reserved"},
     {ReplayFigure::allocated, "replay.allocated"},
     {ReplayFigure::workspace, "replay.workspace"},
     {ReplayFigure::fragmentation, "replay.fragmentation"},
     {ReplayFigure::context, "replay.context"},
     {ReplayFigure::fits, "replay.fits"},
     {ReplayFigure::retries, "replay.retries"}}};

/// After these: of replays under each of device::workspace_variants(), in this order, ln(reserved / the rule's
/// reserved). Names as the device room has them.
inline constexpr std::size_t kFirstVariantFigure = kReplayFigureNames.size();
inline constexpr std::array<std::string_view, 21> kVariantNames = {
    "slices-1",       "slices-2",     "slices-4",         "slices-8",       "slices-16",           "split-5mib",
    "split-10mib",    "split-20mib",  "split-40mib",      "forward-always", "forward-unaligned",   "forward-never",
    "data-unaligned", "data-never",   "weight-unaligned", "weight-never",   "gradients-unaligned", "none",
    "multiple-8",     "first-always", "first-never"};
static_assert(kFirstVariantFigure + kVariantNames.size() <= kReplayFigures);

/// For one run by the rule; with Needs::variants also of one more for each way in which convolutions may take other
/// workspaces (without convolutions, and without Needs::variants, their figures are 0). Errors: those of the runs.
[[nodiscard]] core::Result<std::array<double, kReplayFigures>> replay_figures(
    analysis::Analysis& analysis, const device::GpuProfile& gpu, Needs needs,
    const device::AllocatorOptions& options = {});

/// Sets JobFacts::replay as far as the reader needs it. Errors: those of the runs; the facts then stay as they were.
[[nodiscard]] core::Status add_replay(JobFacts& facts, const FeatureReader& reader, analysis::Analysis& analysis,
                                      const device::GpuProfile& gpu, const device::AllocatorOptions& options = {});

// The names of the figures that a learned model reads from the roofline's time of a training step, in the order of
// JobFacts::roofline. utilisation/step_time.hpp computes the figures.
// Units: named with each feature.

enum class RooflineFigure : std::uint8_t {
  gract,              ///< share of a step with a kernel running
  smact,              ///< the same, times the share of SMs that kernels fill
  smocc,              ///< the same, times the share of warps
  fp32,               ///< share of a step in which the FP32 pipe is busy
  kernel_us,          ///< time of a step's kernels, microseconds
  host_us,            ///< time that the host takes to launch them, microseconds
  data_us,            ///< time that the host takes for the batch, microseconds
  step_us,            ///< a step, microseconds
  filled,             ///< share of the SMs that kernels fill, weighted by their time
  product_share,      ///< share of the kernels' time in matrix products
  convolution_share,  ///< the same in convolutions
  optimizer_share,    ///< the same in the optimizer
  launches,           ///< kernels of a step
  multiply_adds,      ///< of a step, 10^9
  bytes,              ///< moved in a step, 10^9
  floored_share,      ///< share of the kernels' time that is the least time a kernel takes
};

inline constexpr std::array<model::Named<RooflineFigure>, kRooflineFigures> kRooflineFigureNames = {{
    {RooflineFigure::gract, "roofline.gract"},
    {RooflineFigure::smact, "roofline.smact"},
    {RooflineFigure::smocc, "roofline.smocc"},
    {RooflineFigure::fp32, "roofline.fp32"},
    {RooflineFigure::kernel_us, "roofline.kernel_us"},
    {RooflineFigure::host_us, "roofline.host_us"},
    {RooflineFigure::data_us, "roofline.data_us"},
    {RooflineFigure::step_us, "roofline.step_us"},
    {RooflineFigure::filled, "roofline.filled"},
    {RooflineFigure::product_share, "roofline.product_share"},
    {RooflineFigure::convolution_share, "roofline.convolution_share"},
    {RooflineFigure::optimizer_share, "roofline.optimizer_share"},
    {RooflineFigure::launches, "roofline.launches"},
    {RooflineFigure::multiply_adds, "roofline.multiply_adds"},
    {RooflineFigure::bytes, "roofline.bytes"},
    {RooflineFigure::floored_share, "roofline.floored_share"},
}};

}  // namespace gpumem::ml
