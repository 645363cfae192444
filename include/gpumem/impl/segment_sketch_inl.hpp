#pragma once

#include "gpumem/ml/segment_sketch.hpp"

#include <algorithm>
#include <cstddef>

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
        graph_(*facts.job->graph),
        batch_(static_cast<double>(facts.job->batch_size)),
        activation_bytes_(facts.activation_bytes()),
        layers_(facts.layers.size()) {
    flows_.reserve(2 * layers_.size());
    temporaries_.reserve(layers_.size());
    pool_.reserve(8 * layers_.size());
    find_sizes();
    find_owners();
  }

  double reserved() {
    for (const std::size_t index : with_parameters_) static_cast<void>(take_parameters(index));
    for (int step = 0; step < 2; ++step) {
      const Tensor batch = pool_.take(input_bytes());
      let_gradients_go();
      forward(step == 0);
      backward(step == 0);
      optimizer(step == 0);
      pool_.give_back(batch);
    }
    return static_cast<double>(pool_.reserved());
  }

 private:
  struct Of {
    LayerIndex owner = -1;             ///< the layer whose output this one's is, through views; -1: the graph's input
    LayerIndex last_reader = -1;       ///< in forward
    LayerIndex keeper = -1;            ///< the first layer whose backward reads the output; -1: none
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
  Tensor take_parameters(std::size_t index) { return pool_.take(layers_[index].parameter_bytes); }
  void find_sizes() {
    const double parameter_bytes = facts_.parameter_bytes();
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      Of& of = layers_[index];
      of.output_bytes = request(exact_bytes(index));
      of.parameter_bytes = request(static_cast<double>(layer(index).parameters) * parameter_bytes);
      if (of.parameter_bytes > 0) with_parameters_.push_back(index);
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

  template <typename Visit>
  void for_each_input(std::size_t index, Visit visit) const {
    const auto inputs = graph_.inputs(graph_.layers()[index]);
    if (inputs.empty() && index > 0) visit(static_cast<LayerIndex>(index) - 1);
    for (const LayerIndex input : inputs) {
      if (input >= 0) visit(input);
    }
  }
  Of& of(LayerIndex index) { return layers_[static_cast<std::size_t>(index)]; }

  void find_owners() {
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      const auto self = static_cast<LayerIndex>(index);
      const bool view = layer(index).family == OpFamily::view;
      layers_[index].owner = view ? -1 : self;
      for_each_input(index, [&](LayerIndex input) {
        const LayerIndex owner = of(input).owner;
        if (view && layers_[index].owner < 0) layers_[index].owner = owner;
        if (owner < 0) return;
        of(owner).last_reader = self;
        if (layer(index).keeps == Keeps::input && of(owner).keeper < 0) of(owner).keeper = self;
      });
      if (layer(index).keeps == Keeps::output) keep_own(layers_[index], self);
    }
  }
  static void keep_own(Of& of, LayerIndex self) { of.keeper = self; }

  void forward(bool first) {
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      if (layer(index).family == OpFamily::view) continue;
      take_outputs(index, first);
      const auto self = static_cast<LayerIndex>(index);
      for_each_input(index, [&](LayerIndex input) {
        const LayerIndex owner = of(input).owner;
        if (owner >= 0 && of(owner).last_reader == self && of(owner).keeper < 0) release(of(owner).output);
      });
    }
    loss_ = pool_.take(layers_.empty() ? 0 : output_bytes(layers_.size() - 1));  // log softmax
  }

  void take_outputs(std::size_t index, bool first) {
    Of& of = layers_[index];
    const std::int64_t bytes = of.output_bytes;
    const LayerFacts& facts = layer(index);
    if (facts.family == OpFamily::dropout) of.extra = pool_.take(request(facts.outputs * batch_));
    if (facts.multihead) {
      const std::int64_t packed = request(3.0 * exact_bytes(index));
      const Tensor projected = pool_.take(packed);
      if (first) take_workspace(forward_workspace_);
      of.extra = pool_.take(packed);
      pool_.give_back(projected);
      of.attended = pool_.take(bytes);
    }
    of.output = pool_.take(bytes);
    if (first && multiplies(facts)) take_workspace(forward_workspace_);
  }

  static bool multiplies(const LayerFacts& facts) { return facts.family == OpFamily::linear || facts.multihead; }

  /// cuBLAS', one a thread that calls it: 4096 x 2 + 16 x 8 KiB, as CUDA's default is before Hopper.
  void take_workspace(bool& taken) {
    constexpr std::int64_t kWorkspace = (4096 * 2 + 16 * 8) << 10;
    if (!taken) static_cast<void>(pool_.take(kWorkspace));
    taken = true;
  }

  void backward(bool first) {
    if (layers_.empty()) return;
    flows_.clear();
    for (Of& of : layers_) of.flow = -1;
    layers_.back().flow = new_flow(output_bytes(layers_.size() - 1));
    pool_.give_back(loss_);
    for (std::size_t index = layers_.size(); index-- > 0;) {
      if (layers_[index].flow >= 0) run_backward(index, first);
      else if (layers_[index].parameter_bytes > 0) layers_[index].gradients = take_parameters(index);
      let_saved_go(index);
    }
    for (Of& of : layers_) release(of.output);
  }

  void run_backward(std::size_t index, bool first) {
    const LayerFacts& facts = layer(index);
    const std::int32_t own = layers_[index].flow;
    if (facts.multihead) through_attention(index);
    for_each_input(index, [&](LayerIndex input) {
      if (of(input).owner < 0 || facts.family == OpFamily::embedding) return;
      const bool passes = facts.family == OpFamily::view || facts.passes_gradient;
      std::int32_t flow = own;
      if (passes) ++flows_[static_cast<std::size_t>(own)].holders;
      else flow = new_flow(output_bytes(static_cast<std::size_t>(input)));
      accumulate(input, flow);
    });
    if (first && multiplies(facts)) take_workspace(backward_workspace_);
    if (layers_[index].parameter_bytes > 0) layers_[index].gradients = take_parameters(index);
    drop(own);
  }

  /// Gradients of Q, K and V, and of what they were parted from.
  void through_attention(std::size_t index) {
    const std::int64_t bytes = request(3.0 * exact_bytes(index));
    const Tensor parts = pool_.take(bytes);
    const Tensor packed = pool_.take(bytes);
    pool_.give_back(parts);
    pool_.give_back(packed);
  }

  void let_saved_go(std::size_t index) {
    release(layers_[index].extra);
    release(layers_[index].attended);
    const auto self = static_cast<LayerIndex>(index);
    if (of(self).keeper == self) release(of(self).output);
    for_each_input(index, [&](LayerIndex input) {
      const LayerIndex owner = of(input).owner;
      if (owner >= 0 && of(owner).keeper == self) release(of(owner).output);
    });
  }

  std::int32_t new_flow(std::int64_t bytes) {
    flows_.push_back({pool_.take(bytes), 1});
    return static_cast<std::int32_t>(flows_.size()) - 1;
  }
  void drop(std::int32_t flow) {
    Flow& at = flows_[static_cast<std::size_t>(flow)];
    if (--at.holders == 0) pool_.give_back(at.tensor);
  }
  /// Where gradients meet, their sum takes the place of one that nobody else holds.
  void accumulate(LayerIndex input, std::int32_t flow) {
    std::int32_t& old = of(input).flow;
    if (old < 0) {
      old = flow;
      return;
    }
    if (flows_[static_cast<std::size_t>(old)].holders > 1) {
      const std::int32_t sum = new_flow(output_bytes(static_cast<std::size_t>(input)));
      drop(old);
      old = sum;
    }
    drop(flow);
  }

  void release(Tensor& tensor) {
    if (tensor.bytes == 0) return;
    pool_.give_back(tensor);
    tensor = {};
  }
  void let_gradients_go() {
    for (const std::size_t index : with_parameters_) release(layers_[index].gradients);
  }

  void optimizer(bool first) {
    const auto states = static_cast<int>(facts_.optimizer_states());
    for (const std::size_t index : with_parameters_) {
      for (int state = 0; first && state < states; ++state) static_cast<void>(take_parameters(index));
    }
    if (states == 0 || !facts_.job->foreach || facts_.job->fused) return;
    temporaries_.clear();
    for (const std::size_t index : with_parameters_) temporaries_.push_back(take_parameters(index));
    for (const Tensor& temporary : temporaries_) pool_.give_back(temporary);
  }

  const JobFacts& facts_;
  const model::ModelGraph& graph_;
  double batch_;
  double activation_bytes_;
  std::vector<Of> layers_;
  std::vector<std::size_t> with_parameters_;
  std::vector<Flow> flows_;
  std::vector<Tensor> temporaries_;
  Tensor loss_;
  bool forward_workspace_ = false;
  bool backward_workspace_ = false;
  SegmentSketch pool_;
};

}  // namespace segment_sketch_detail

GPUMEM_INLINE SegmentSketch::Tensor SegmentSketch::take_large(std::int64_t size) {
  std::int32_t block = best_fit(size);
  if (block < 0) block = new_segment(size);
  is_free_[static_cast<std::size_t>(block)] = 0;
  if (blocks_[static_cast<std::size_t>(block)].size - size > kSmall) split(block, size);
  return {size, block};
}

GPUMEM_INLINE void SegmentSketch::give_back_large(std::int32_t block) {
  is_free_[static_cast<std::size_t>(block)] = 1;
  if (is_free(blocks_[static_cast<std::size_t>(block)].next)) {
    std::erase(free_, blocks_[static_cast<std::size_t>(block)].next);
    merge_next(block);
  }
  const std::int32_t previous = blocks_[static_cast<std::size_t>(block)].previous;
  if (is_free(previous)) {
    merge_next(previous);
    return;
  }
  free_.push_back(block);
}

GPUMEM_INLINE void SegmentSketch::reserve(std::size_t blocks) {
  blocks_.reserve(blocks);
  is_free_.reserve(blocks);
  free_.reserve(blocks);
}

GPUMEM_INLINE std::int64_t SegmentSketch::reserved() const {
  using namespace segment_sketch_detail;
  return large_ + rounded(small_peak_, kSmallSegment);
}

GPUMEM_INLINE bool SegmentSketch::is_free(std::int32_t block) const {
  return block >= 0 && is_free_[static_cast<std::size_t>(block)] != 0;
}

/// Takes it out of the free ones; -1: none is large enough.
GPUMEM_INLINE std::int32_t SegmentSketch::best_fit(std::int64_t bytes) {
  std::size_t best = free_.size();
  for (std::size_t at = 0; at < free_.size(); ++at) {
    const Block& block = blocks_[static_cast<std::size_t>(free_[at])];
    if (block.size < bytes) continue;
    if (best < free_.size()) {
      const Block& other = blocks_[static_cast<std::size_t>(free_[best])];
      if (block.size > other.size || (block.size == other.size && block.address > other.address)) continue;
    }
    best = at;
  }
  if (best == free_.size()) return -1;
  const std::int32_t block = free_[best];
  free_[best] = free_.back();
  free_.pop_back();
  return block;
}

GPUMEM_INLINE std::int32_t SegmentSketch::new_segment(std::int64_t bytes) {
  using namespace segment_sketch_detail;
  const std::int64_t size = bytes < kMedium ? kMediumSegment : rounded(bytes, kSmallSegment);
  blocks_.push_back({large_, size, -1, -1});
  is_free_.push_back(0);
  large_ += size;
  return static_cast<std::int32_t>(blocks_.size()) - 1;
}

GPUMEM_INLINE void SegmentSketch::split(std::int32_t block, std::int64_t bytes) {
  const auto rest = static_cast<std::int32_t>(blocks_.size());
  Block& first = blocks_[static_cast<std::size_t>(block)];
  const Block second = {first.address + bytes, first.size - bytes, block, first.next};
  first.size = bytes;
  if (first.next >= 0) blocks_[static_cast<std::size_t>(first.next)].previous = rest;
  first.next = rest;
  blocks_.push_back(second);
  is_free_.push_back(1);
  free_.push_back(rest);
}

/// The next block becomes part of this one; its name is not used again.
GPUMEM_INLINE void SegmentSketch::merge_next(std::int32_t block) {
  Block& first = blocks_[static_cast<std::size_t>(block)];
  Block& second = blocks_[static_cast<std::size_t>(first.next)];
  is_free_[static_cast<std::size_t>(first.next)] = 0;
  first.size += second.size;
  first.next = second.next;
  if (first.next >= 0) blocks_[static_cast<std::size_t>(first.next)].previous = block;
}

GPUMEM_INLINE double sketched_segments(const JobFacts& facts) { return segment_sketch_detail::Steps(facts).reserved(); }

}  // namespace gpumem::ml
