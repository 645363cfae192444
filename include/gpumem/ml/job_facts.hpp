// Input: a training job and the shapes of its layers.
// Output: JobFacts, from which a job's features are computed: one pass over the layers, a few nanoseconds each, no
// replay.
// Units: elements a sample, unless said otherwise.
//
// What backward keeps is told by the ops' rows, roughly, enough for a learned model: their record rules (ops/) decide
// the replay. A layer of an unknown op, which only lenient reading takes, is of the family `other` and keeps its input.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::ml {

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

/// Figures of a step's time on the GPU; see roofline_figures.hpp for which.
inline constexpr std::size_t kRooflineFigures = 16;

/// Figures of replays of the job; see replay_figures.hpp for which.
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

}  // namespace gpumem::ml
