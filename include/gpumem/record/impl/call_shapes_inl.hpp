#pragma once

#include "gpumem/record/call_shapes.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "gpumem/core/bytes.hpp"

namespace gpumem::record {

GPUMEM_INLINE double CallTensor::elements() const {
  double product = 1.0;
  for (const std::int64_t size : shape) product *= static_cast<double>(size);
  return product;
}

GPUMEM_INLINE std::int64_t CallTensor::bytes() const {
  core::Checked product = element_bytes;
  for (const std::int64_t size : shape) product *= size;
  return std::min(product.value().value_or(core::kMostBytes), core::kMostBytes);
}

GPUMEM_INLINE std::int64_t CallTensor::stride(std::size_t axis) const {
  if (!strides.empty()) return strides[axis];
  core::Checked product = 1;
  if (order.empty()) {
    for (std::size_t inner = axis + 1; inner < shape.size(); ++inner) product *= shape[inner];
  } else {
    const auto at = std::find(order.begin(), order.end(), static_cast<std::int64_t>(axis));
    for (auto inner = at + 1; inner != order.end(); ++inner) product *= shape[static_cast<std::size_t>(*inner)];
  }
  return product.value().value_or(INT64_MAX);
}

GPUMEM_INLINE bool CallTensor::is_dense_in(std::span<const std::size_t> axes) const {
  core::Checked expected = 1;
  for (std::size_t at = axes.size(); at-- > 0;) {
    if (shape[axes[at]] == 1) continue;
    if (expected.value() != stride(axes[at])) return false;
    expected *= shape[axes[at]];
  }
  return true;
}

GPUMEM_INLINE bool CallTensor::is_contiguous() const {
  if (order.empty() && strides.empty()) return true;
  std::vector<std::size_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  return is_dense_in(axes);
}

GPUMEM_INLINE bool CallTensor::is_channels_last() const {
  constexpr std::array<std::size_t, 4> kChannelsLast = {0, 2, 3, 1};
  return shape.size() == 4 && !is_contiguous() && is_dense_in(kChannelsLast);
}

GPUMEM_INLINE bool CallTensor::is_matrix_as_is() const {
  if (shape.size() < 2) return true;
  const std::size_t columns = shape.size() - 1;
  const std::size_t rows = columns - 1;
  if (shape[rows] == 1 || shape[columns] == 1) return true;
  const auto leads = [&](std::size_t outer, std::size_t inner) {
    return stride(inner) == 1 && stride(outer) >= std::max<std::int64_t>(1, shape[inner]);
  };
  return leads(rows, columns) || leads(columns, rows);
}

GPUMEM_INLINE core::Result<CallShapes> CallShapes::at(const model::ModelGraph& graph, std::int64_t batch,
                                                      std::int64_t sequence) {
  CallShapes shapes(*graph.recording());
  shapes.values_.reserve(graph.recording()->expressions.size());
  for (const model::AxisExpression& expression : graph.recording()->expressions) {
    const auto value = expression.at(batch, sequence);
    if (!value) {
      return core::Error{
          core::ErrorCode::invalid_argument,
          "a size of the recording is below zero or too large at batch " + std::to_string(batch) +
              (graph.recording()->follows_sequence() ? " and sequence " + std::to_string(sequence) : "") +
              "; record at sizes near those",
          {graph.file(), 0, {}}};
    }
    shapes.values_.push_back(*value);
  }
  return shapes;
}

GPUMEM_INLINE std::optional<std::int64_t> CallShapes::size(std::uint32_t index) const {
  const model::RecordedSize& size = recording_->sizes[index];
  core::Checked product = size.item;
  for (const std::int64_t dim : recording_->list(size.dims)) product *= values_[static_cast<std::size_t>(dim)];
  return product.value();
}

GPUMEM_INLINE CallTensor CallShapes::tensor(std::uint32_t index) const {
  const model::RecordedTensor& recorded = recording_->tensors[index];
  CallTensor tensor;
  tensor.dtype = recorded.dtype;
  tensor.element_bytes = recorded.element_bytes;
  for (const std::int64_t dim : recording_->list(recorded.dims)) {
    tensor.shape.push_back(values_[static_cast<std::size_t>(dim)]);
  }
  const auto order = recording_->list(recorded.order);
  if (recorded.layout == model::RecordedTensor::Layout::dense) tensor.order.assign(order.begin(), order.end());
  if (recorded.layout == model::RecordedTensor::Layout::strided) {
    for (const std::int64_t stride : order) tensor.strides.push_back(values_[static_cast<std::size_t>(stride)]);
  }
  return tensor;
}

GPUMEM_INLINE std::vector<CallTensor> CallShapes::tensors(model::Slice slice) const {
  std::vector<CallTensor> all;
  all.reserve(slice.count);
  for (const std::int64_t index : recording_->list(slice)) all.push_back(tensor(static_cast<std::uint32_t>(index)));
  return all;
}

GPUMEM_INLINE std::array<std::int64_t, 2> axes_of(const model::TrainingJob& job) {
  const model::StepRecording& recording = *job.graph->recording();
  const std::int64_t sequence =
      recording.follows_sequence() ? job.sequence_length.value_or(recording.recorded(1).value_or(1)) : 1;
  return {recording.follows_batch() ? job.batch_size : 1, sequence};
}

}  // namespace gpumem::record
