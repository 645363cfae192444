// Input: a wired graph, layer by layer, with the changes to it and the layers to insert.
// Output: the changed wired graph: the same containers, names, edges and shapes. An inserted layer can be read in place
// of another.
// Units: elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::connect {

/// A layer that the source does not have.
struct NewLayer {
  std::string name;
  std::string_view op;
  std::vector<model::LayerIndex> inputs;  ///< of the copy
  core::Shape output;
  std::vector<model::Attribute> attributes = {};
  model::WeightStorage weights = {};
  bool frozen = false;
};

/// What a copy of a layer has in place of the source's. Sizes among the attributes give its parameters.
struct ChangedLayer {
  std::vector<model::Attribute> attributes;
  std::int64_t tied_parameters = 0;
};

class GraphCopy {
 public:
  /// Both must outlive it.
  GraphCopy(const WiredGraph& source, const ops::Catalogue& ops);

  /// Adds an input of the graph. Returns its place in the copy.
  model::LayerIndex add_input(model::GraphInput input);

  /// Copies the next layer of the source, in their order. Returns its index in the copy. `tied`: it shares the weights
  /// that it shares in the source, or as many as the change says.
  model::LayerIndex copy(const model::WeightStorage& weights, bool frozen,
                         const std::optional<ChangedLayer>& change = {}, bool tied = true);
  /// Puts this one in the next layer's place. Returns its index.
  model::LayerIndex put(NewLayer layer);
  /// Leaves the next layer of the source out; whoever reads it reads this one of the copy.
  void omit(model::LayerIndex by) { now_.push_back(by); }
  /// Puts a layer after the one copied last, in its container. Returns its index.
  model::LayerIndex insert(NewLayer layer);
  /// Layers of the source that read `layer` and are still to be copied read this one of the copy.
  void replace(std::size_t layer, model::LayerIndex by) { now_[layer] = by; }
  /// The copy of a layer of the source, or of an input of the graph.
  [[nodiscard]] model::LayerIndex now(model::LayerIndex source) const {
    return source < 0 ? source : now_[static_cast<std::size_t>(source)];
  }

  /// A pipeline stage begins with the next layer.
  void begin_stage() { stages_.push_back(static_cast<std::uint32_t>(weights_.size())); }

  /// What the reader of an estimate should know about the copy.
  void remark(std::string text) { remarks_.push_back(std::move(text)); }

  /// Errors: those of GraphBuilder::build().
  [[nodiscard]] core::Result<WiredGraph> finish() &&;
  /// The same where layers have changed: every shape is inferred again, as this job feeds the graph. The source prints
  /// no shapes. Errors: those of infer_shapes(), too.
  [[nodiscard]] core::Result<WiredGraph> finish(const model::TrainingJob& job) &&;

 private:
  void open_next();
  void leave();
  void enter(std::uint32_t scope);
  void mark_blocks();
  void note_unknown(std::size_t layer);
  [[nodiscard]] core::Result<model::ModelGraph> build();
  [[nodiscard]] core::Result<WiredGraph> wired(model::ModelGraph graph, std::vector<const ops::Op*> rules);
  [[nodiscard]] std::vector<const ops::Op*> rules_of(const model::ModelGraph& graph) const;

  const WiredGraph& source_;
  const ops::Catalogue& ops_;
  model::GraphBuilder builder_;
  LayerShapes shapes_;
  std::vector<model::WeightStorage> weights_;
  std::vector<std::string> remarks_;
  std::vector<std::uint32_t> stages_;
  std::vector<model::LayerIndex> now_;  ///< by layer of the source
  std::uint32_t opened_ = 0;            ///< the last scope that was opened
  std::size_t marked_ = 0;              ///< block marks that are in the copy
};

}  // namespace gpumem::connect
