// Input: the wired graph of a decoder as transformers' code builds it, and a job that litgpt trains.
// Output: a copy of the graph in which the layers that litgpt computes differently are replaced.
// Units: features.
//
// Source: litgpt 0.4, model.py (CausalSelfAttention, GptNeoxMLP) and lora.py (LoRALinear, LoRAQKVLinear): queries, keys
// and values leave one projection and are read in place; those with adapters are written into zeros as wide as
// all three. It has no dropout but the adapters', one kernel for each GELU, and a head of its own where transformers
// ties it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/adapt/base_linears.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::adapt {

/// Whether the job runs litgpt's code of this model: a config.json names an architecture, of which litgpt has a model
/// of its own; other summaries show the model that runs.
[[nodiscard]] bool is_litgpt_model(const model::ModelGraph& graph, const model::TrainingJob& job);

/// The names of targets, where a model has no layers q_proj, k_proj and v_proj but one for all three: its name.
[[nodiscard]] std::string litgpt_targets(const std::vector<BaseLinear>& linears, std::string_view targets);

class LitgptModel {
 public:
  /// `adapted`: by place in `linears`. All must outlive it.
  LitgptModel(const connect::WiredGraph& wired, const std::vector<BaseLinear>& linears,
              const std::vector<model::WeightStorage>& storage, const std::vector<bool>& adapted,
              const model::TrainingJob& job);

  /// Copies this layer, the next one, as litgpt computes it; false: litgpt computes it in the same way.
  [[nodiscard]] bool take(connect::GraphCopy& copy, std::uint32_t layer);
  /// The layer whose adapter is not counted, because the loss calls it; empty: there is none.
  [[nodiscard]] const std::string& leaves_out() const { return leaves_out_; }

 private:
  /// Queries, keys and values.
  struct Projection {
    std::array<std::uint32_t, 3> layers = {};  ///< the same three times, where the model has one layer for all
    std::int64_t in = 0;
    std::array<std::int64_t, 3> widths = {};
    std::array<bool, 3> adapted = {};
    std::string name = {};
    std::array<model::LayerIndex, 3> parts = {};  ///< of the copy: the place of each layer, if there are three

    [[nodiscard]] bool in_one() const { return layers[0] == layers[1]; }
    [[nodiscard]] std::int64_t width() const { return widths[0] + widths[1] + widths[2]; }
  };

  void find_projections(const std::vector<bool>& adapted);
  [[nodiscard]] std::optional<Projection> in_one_layer(std::size_t linear, bool adapted) const;
  [[nodiscard]] bool asks_for(std::string_view name) const;
  [[nodiscard]] bool read_in_place(std::uint32_t layer) const;
  void project(connect::GraphCopy& copy, Projection& of) const;
  void part(connect::GraphCopy& copy, Projection& of, model::LayerIndex whole) const;
  [[nodiscard]] model::LayerIndex adapted_projection(connect::GraphCopy& copy, const Projection& of,
                                                     model::LayerIndex input, model::LayerIndex base) const;
  void adapt_linear(connect::GraphCopy& copy, const BaseLinear& linear) const;

  const connect::WiredGraph& wired_;
  const std::vector<BaseLinear>& linears_;
  const std::vector<model::WeightStorage>& storage_;
  const model::TrainingJob& job_;
  std::vector<Projection> projections_;
  std::vector<int> projection_at_;  ///< by layer: the projection that it is a part of; -1: of none
  std::string leaves_out_;
  std::vector<int> adapted_at_;  ///< by layer: the linear layer with an adapter of its own; -1: none
};

}  // namespace gpumem::adapt
