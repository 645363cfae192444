#pragma once

#include "gpumem/ml/segment_sketch.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace gpumem::ml {

namespace segment_sketch_detail {

using model::LayerIndex;
using Tensor = SegmentSketch::Tensor;

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;
inline constexpr std::int64_t kUnit = 512;
inline constexpr std::int64_t kSmallSegment = 2 * kMiB;
inline constexpr std::int64_t kMediumSegment = 20 * kMiB;
inline constexpr std::int64_t kMedium = 10 * kMiB;

constexpr std::int64_t rounded(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

/// What the allocator is asked for: rounded up, and nothing where there is nothing.
inline std::int64_t request(double bytes) {
  constexpr double kMost = 1e16;  // far beyond any machine, and no sum of these overflows
  if (!(bytes > 0.0)) return 0;
  return rounded(static_cast<std::int64_t>(std::min(bytes, kMost)), kUnit);
}

/// Two training steps, as the tensors of a job's layers come and go.
class Steps {
 public:
  explicit Steps(const JobFacts& facts)
      : facts_(facts),
        graph_(*facts.graph),
        batch_(static_cast<double>(facts.job->batch_size)),
        activation_bytes_(facts.activation_bytes()),
        layers_(facts.layers.size()) {
    inputs_.reserve(2 * layers_.size());
    with_parameters_.reserve(layers_.size());
    flows_.reserve(2 * layers_.size());
    temporaries_.reserve(layers_.size());
    blocks_.reserve(8 * layers_.size());
    find_sizes();
    find_owners();
    find_releases();
  }

  double reserved() {
    SegmentSketch pool(blocks_);
    for (const std::size_t index : with_parameters_) static_cast<void>(take_parameters(index, pool));
    for (int step = 0; step < 2; ++step) {
      const Tensor batch = pool.take(input_bytes());
      let_gradients_go(pool);
      forward(step == 0, pool);
      backward(step == 0, pool);
      optimizer(step == 0, pool);
      pool.give_back(batch);
    }
    return static_cast<double>(pool.reserved());
  }

 private:
  struct Of {
    Of() {}  // NOLINT(modernize-use-equals-default): that would zero all of it before, a third of Steps()
    LayerIndex owner = -1;          ///< the layer whose output this one's is, through views; -1: the graph's input
    LayerIndex last_reader = -1;    ///< in forward
    LayerIndex keeper = -1;         ///< the first layer whose backward reads the output; -1: none
    LayerIndex releases = -1;       ///< the first output that goes with this layer, or none
    LayerIndex released_too = -1;   ///< the next that goes with the same layer as this one
    std::uint32_t first_input = 0;  ///< in inputs_
    std::uint32_t end_input = 0;
    std::int64_t output_bytes = 0;     ///< as the allocator rounds them
    std::int64_t parameter_bytes = 0;  ///< likewise
    Tensor gradients;                  ///< of the parameters
    Tensor output;
    Tensor extra;  ///< what the layer keeps besides: a mask, Q K V
    Tensor attended;
    std::int32_t flow = -1;  ///< the output's gradient
  };
  /// A gradient on its way, which several may hold.
  struct Flow {
    Tensor tensor;
    std::int32_t holders = 0;
  };

  [[nodiscard]] const LayerFacts& layer(std::size_t index) const { return facts_.layers[index]; }
  [[nodiscard]] double exact_bytes(std::size_t index) const {
    return layer(index).outputs * batch_ * activation_bytes_;
  }
  [[nodiscard]] std::int64_t output_bytes(std::size_t index) const { return layers_[index].output_bytes; }
  Tensor take_parameters(std::size_t index, SegmentSketch& pool) { return pool.take(layers_[index].parameter_bytes); }
  void find_sizes() {
    const double parameter_bytes = facts_.parameter_bytes();
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      Of& of = layers_[index];
      of.output_bytes = request(exact_bytes(index));
      if (layer(index).parameters <= 0) continue;
      of.parameter_bytes = request(static_cast<double>(layer(index).parameters) * parameter_bytes);
      with_parameters_.push_back(index);
    }
  }
  [[nodiscard]] std::int64_t input_bytes() const {
    double bytes = 0.0;
    for (const model::GraphInput& input : graph_.graph_inputs()) {
      const auto elements = input.shape.elements(1);
      const auto count = elements ? elements->value() : std::nullopt;
      if (count) bytes += static_cast<double>(*count * core::element_size(input.dtype)) * batch_;
    }
    return request(bytes);
  }

  Of& of(LayerIndex index) { return layers_[static_cast<std::size_t>(index)]; }

  /// The layers that it reads: without edges its predecessor.
  [[nodiscard]] std::span<const LayerIndex> inputs(const Of& of) const {
    return std::span(inputs_).subspan(of.first_input, of.end_input - of.first_input);
  }
  void find_inputs(std::size_t index) {
    const auto edges = graph_.inputs(graph_.layers()[index]);
    layers_[index].first_input = static_cast<std::uint32_t>(inputs_.size());
    if (edges.empty() && index > 0) inputs_.push_back(static_cast<LayerIndex>(index) - 1);
    for (const LayerIndex input : edges) {
      if (input >= 0) inputs_.push_back(input);
    }
    layers_[index].end_input = static_cast<std::uint32_t>(inputs_.size());
  }

  void find_owners() {
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      const auto self = static_cast<LayerIndex>(index);
      const bool view = layer(index).family == OpFamily::view;
      Of& own = layers_[index];
      own.owner = view ? -1 : self;
      find_inputs(index);
      for (const LayerIndex input : inputs(own)) {
        const LayerIndex owner = of(input).owner;
        if (view && own.owner < 0) own.owner = owner;
        if (owner < 0) continue;
        of(owner).last_reader = self;
        if (layer(index).keeps == Keeps::input && of(owner).keeper < 0) of(owner).keeper = self;
      }
      if (layer(index).keeps == Keeps::output) own.keeper = self;
    }
  }

  /// An output goes in the backward of the layer that keeps it; what none keeps, behind the forward of its last reader.
  void find_releases() {
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      Of& own = layers_[index];
      const LayerIndex with = own.keeper >= 0 ? own.keeper : own.last_reader;
      const bool never = with < 0 || (own.keeper < 0 && layer(static_cast<std::size_t>(with)).family == OpFamily::view);
      if (never) left_over_.push_back(static_cast<LayerIndex>(index));
      if (with < 0) continue;
      own.released_too = of(with).releases;
      of(with).releases = static_cast<LayerIndex>(index);
    }
  }

  void forward(bool first, SegmentSketch& pool) {
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      if (layer(index).family == OpFamily::view) continue;
      take_outputs(index, first, pool);
      for (LayerIndex gone = layers_[index].releases; gone >= 0; gone = of(gone).released_too) {
        if (of(gone).keeper < 0) release(of(gone).output, pool);
      }
    }
    loss_ = pool.take(layers_.empty() ? 0 : output_bytes(layers_.size() - 1));  // log softmax
  }

  void take_outputs(std::size_t index, bool first, SegmentSketch& pool) {
    Of& of = layers_[index];
    const std::int64_t bytes = of.output_bytes;
    const LayerFacts& facts = layer(index);
    if (facts.family == OpFamily::dropout) of.extra = pool.take(request(facts.outputs * batch_));
    if (facts.multihead) {
      const std::int64_t packed = request(3.0 * exact_bytes(index));
      const Tensor projected = pool.take(packed);
      if (first) take_workspace(forward_workspace_, pool);
      of.extra = pool.take(packed);
      pool.give_back(projected);
      of.attended = pool.take(bytes);
    }
    of.output = pool.take(bytes);
    if (first && multiplies(facts)) take_workspace(forward_workspace_, pool);
  }

  static bool multiplies(const LayerFacts& facts) { return facts.family == OpFamily::linear || facts.multihead; }

  /// cuBLAS', one a thread that calls it: 4096 x 2 + 16 x 8 KiB, as CUDA's default is before Hopper.
  static void take_workspace(bool& taken, SegmentSketch& pool) {
    constexpr std::int64_t kWorkspace = (4096 * 2 + 16 * 8) << 10;
    if (!taken) static_cast<void>(pool.take(kWorkspace));
    taken = true;
  }

  void backward(bool first, SegmentSketch& pool) {
    if (layers_.empty()) return;
    flows_.clear();
    layers_.back().flow = new_flow(output_bytes(layers_.size() - 1), pool);
    pool.give_back(loss_);
    for (std::size_t index = layers_.size(); index-- > 0;) {
      if (layers_[index].flow >= 0) run_backward(index, first, pool);
      else if (layers_[index].parameter_bytes > 0) layers_[index].gradients = take_parameters(index, pool);
      let_saved_go(index, pool);
    }
    for (const LayerIndex index : left_over_) release(of(index).output, pool);
  }

  void run_backward(std::size_t index, bool first, SegmentSketch& pool) {
    const LayerFacts& facts = layer(index);
    const std::int32_t own = layers_[index].flow;
    if (facts.multihead) through_attention(index, pool);
    const bool passes = facts.family == OpFamily::view || facts.passes_gradient;
    for (const LayerIndex input : inputs(layers_[index])) {
      if (of(input).owner < 0 || facts.family == OpFamily::embedding) continue;
      std::int32_t flow = own;
      if (passes) ++flows_[static_cast<std::size_t>(own)].holders;
      else flow = new_flow(output_bytes(static_cast<std::size_t>(input)), pool);
      accumulate(input, flow, pool);
    }
    if (first && multiplies(facts)) take_workspace(backward_workspace_, pool);
    if (layers_[index].parameter_bytes > 0) layers_[index].gradients = take_parameters(index, pool);
    drop(own, pool);
    layers_[index].flow = -1;  // inputs stand before their readers (GraphBuilder): nobody adds to it any more
  }

  /// Gradients of Q, K and V, and of what they were parted from.
  void through_attention(std::size_t index, SegmentSketch& pool) {
    const std::int64_t bytes = request(3.0 * exact_bytes(index));
    const Tensor parts = pool.take(bytes);
    const Tensor packed = pool.take(bytes);
    pool.give_back(parts);
    pool.give_back(packed);
  }

  void let_saved_go(std::size_t index, SegmentSketch& pool) {
    release(layers_[index].extra, pool);
    release(layers_[index].attended, pool);
    for (LayerIndex gone = layers_[index].releases; gone >= 0; gone = of(gone).released_too) {
      if (of(gone).keeper >= 0) release(of(gone).output, pool);
    }
  }

  std::int32_t new_flow(std::int64_t bytes, SegmentSketch& pool) {
    flows_.push_back({pool.take(bytes), 1});
    return static_cast<std::int32_t>(flows_.size()) - 1;
  }
  void drop(std::int32_t flow, SegmentSketch& pool) {
    Flow& at = flows_[static_cast<std::size_t>(flow)];
    if (--at.holders == 0) pool.give_back(at.tensor);
  }
  /// Where gradients meet, their sum takes the place of one that nobody else holds.
  void accumulate(LayerIndex input, std::int32_t flow, SegmentSketch& pool) {
    std::int32_t& old = of(input).flow;
    if (old < 0) {
      old = flow;
      return;
    }
    if (flows_[static_cast<std::size_t>(old)].holders > 1) {
      const std::int32_t sum = new_flow(output_bytes(static_cast<std::size_t>(input)), pool);
      drop(old, pool);
      old = sum;
    }
    drop(flow, pool);
  }

  static void release(Tensor& tensor, SegmentSketch& pool) {
    if (tensor.bytes == 0) return;
    pool.give_back(tensor);
    tensor = {};
  }
  void let_gradients_go(SegmentSketch& pool) {
    for (const std::size_t index : with_parameters_) release(layers_[index].gradients, pool);
  }

  void optimizer(bool first, SegmentSketch& pool) {
    const auto states = static_cast<int>(facts_.optimizer_states());
    for (const std::size_t index : with_parameters_) {
      for (int state = 0; first && state < states; ++state) static_cast<void>(take_parameters(index, pool));
    }
    if (states == 0 || !facts_.job->foreach || facts_.job->fused) return;
    temporaries_.clear();
    for (const std::size_t index : with_parameters_) temporaries_.push_back(take_parameters(index, pool));
    for (const Tensor& temporary : temporaries_) pool.give_back(temporary);
  }

  const JobFacts& facts_;
  const model::ModelGraph& graph_;
  double batch_;
  double activation_bytes_;
  std::vector<Of> layers_;
  std::vector<LayerIndex> inputs_;     ///< of all layers, one behind the other
  std::vector<LayerIndex> left_over_;  ///< outputs that stay until backward ends
  std::vector<std::size_t> with_parameters_;
  std::vector<Flow> flows_;
  std::vector<Tensor> temporaries_;
  Tensor loss_;
  bool forward_workspace_ = false;
  bool backward_workspace_ = false;
  LargeBlocks blocks_;
};

}  // namespace segment_sketch_detail

GPUMEM_INLINE std::int32_t LargeBlocks::take(std::int64_t size) {
  std::int32_t block = best_fit(size);
  if (block < 0) block = new_segment(size);
  is_free_[static_cast<std::size_t>(block)] = 0;
  if (blocks_[static_cast<std::size_t>(block)].size - size > kLeast) split(block, size);
  return block;
}

GPUMEM_INLINE void LargeBlocks::give_back(std::int32_t block) {
  is_free_[static_cast<std::size_t>(block)] = 1;
  if (is_free(blocks_[static_cast<std::size_t>(block)].next)) {
    forget(blocks_[static_cast<std::size_t>(block)].next);
    merge_next(block);
  }
  const std::int32_t previous = blocks_[static_cast<std::size_t>(block)].previous;
  if (is_free(previous)) {
    forget(previous);
    merge_next(previous);
    block = previous;
  }
  const Block& freed = blocks_[static_cast<std::size_t>(block)];
  free_.push_back({freed.size, freed.address, block});
}

GPUMEM_INLINE void LargeBlocks::forget(std::int32_t block) {
  const auto found = std::find_if(free_.begin(), free_.end(), [&](const Free& free) { return free.block == block; });
  *found = free_.back();
  free_.pop_back();
}

GPUMEM_INLINE void LargeBlocks::reserve(std::size_t blocks) {
  blocks_.reserve(blocks);
  is_free_.reserve(blocks);
  free_.reserve(blocks);
}

GPUMEM_INLINE std::int64_t SegmentSketch::reserved() const {
  using namespace segment_sketch_detail;
  return large_.reserved() + rounded(small_peak_, kSmallSegment);
}

GPUMEM_INLINE bool LargeBlocks::is_free(std::int32_t block) const {
  return block >= 0 && is_free_[static_cast<std::size_t>(block)] != 0;
}

/// Takes it out of the free ones; -1: none is large enough.
GPUMEM_INLINE std::int32_t LargeBlocks::best_fit(std::int64_t bytes) {
  auto best = free_.end();
  for (auto free = free_.begin(); free != free_.end(); ++free) {
    if (free->size < bytes) continue;
    if (best == free_.end() || std::tie(free->size, free->address) < std::tie(best->size, best->address)) best = free;
  }
  if (best == free_.end()) return -1;
  const std::int32_t block = best->block;
  *best = free_.back();
  free_.pop_back();
  return block;
}

GPUMEM_INLINE std::int32_t LargeBlocks::new_segment(std::int64_t bytes) {
  using namespace segment_sketch_detail;
  const std::int64_t size = bytes < kMedium ? kMediumSegment : rounded(bytes, kSmallSegment);
  blocks_.push_back({reserved_, size, -1, -1});
  is_free_.push_back(0);
  reserved_ += size;
  return static_cast<std::int32_t>(blocks_.size()) - 1;
}

GPUMEM_INLINE void LargeBlocks::split(std::int32_t block, std::int64_t bytes) {
  const auto rest = static_cast<std::int32_t>(blocks_.size());
  Block& first = blocks_[static_cast<std::size_t>(block)];
  const Block second = {first.address + bytes, first.size - bytes, block, first.next};
  first.size = bytes;
  if (first.next >= 0) blocks_[static_cast<std::size_t>(first.next)].previous = rest;
  first.next = rest;
  blocks_.push_back(second);
  is_free_.push_back(1);
  free_.push_back({second.size, second.address, rest});
}

/// The next block becomes part of this one; its name is not used again.
GPUMEM_INLINE void LargeBlocks::merge_next(std::int32_t block) {
  Block& first = blocks_[static_cast<std::size_t>(block)];
  Block& second = blocks_[static_cast<std::size_t>(first.next)];
  is_free_[static_cast<std::size_t>(first.next)] = 0;
  first.size += second.size;
  first.next = second.next;
  if (first.next >= 0) blocks_[static_cast<std::size_t>(first.next)].previous = block;
}

GPUMEM_INLINE double sketched_segments(const JobFacts& facts) { return segment_sketch_detail::Steps(facts).reserved(); }

}  // namespace gpumem::ml
