// The parameters and the running figures of a network, each laid out in one flat tensor, and one pass that reads them.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/ml/network.hpp"

namespace gpumem::train::torch_network {

using torch::Tensor;
using Sizes = std::vector<std::int64_t>;

/// Tensors of one kind (the trained parameters, the running figures) laid out in one flat tensor, so that an
/// optimizer's step is a handful of calls. An entry holds tensors of one shape that are computed with at once, one
/// after the other.
class Layout {
 public:
  std::size_t add(std::vector<std::string> names, Sizes shape) {
    const std::int64_t each = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    lengths_.push_back(each * static_cast<std::int64_t>(names.size()));
    entries_.push_back({std::move(names), std::move(shape), each});
    return entries_.size() - 1;
  }

  [[nodiscard]] std::int64_t size() const { return std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0}); }

  /// Each entry as a view [tensors, shape...].
  [[nodiscard]] std::vector<Tensor> views(const Tensor& flat) const {
    std::vector<Tensor> all = flat.split_with_sizes(lengths_);
    for (std::size_t index = 0; index < all.size(); ++index) {
      Sizes shape = {static_cast<std::int64_t>(entries_[index].names.size())};
      shape.insert(shape.end(), entries_[index].shape.begin(), entries_[index].shape.end());
      all[index] = all[index].view(shape);
    }
    return all;
  }

  void read(const Tensor& flat, const ml::TensorFile& file) const {
    float* at = flat.data_ptr<float>();
    for (const Entry& entry : entries_) {
      for (const std::string& name : entry.names) {
        const ml::Tensor* tensor = file.find(name);
        TORCH_CHECK(tensor != nullptr && tensor->shape == entry.shape, "no weights of the shape of ", name);
        at = std::copy(tensor->values.begin(), tensor->values.end(), at);
      }
    }
  }

  void write(const Tensor& flat, ml::TensorFile& file) const {
    const float* at = flat.data_ptr<float>();
    for (const Entry& entry : entries_) {
      for (const std::string& name : entry.names) {
        file.tensors.push_back({name, entry.shape, std::vector<float>(at, at + entry.each)});
        at += entry.each;
      }
    }
  }

  /// 1 for the figures of matrices, 0 for others.
  [[nodiscard]] Tensor matrices() const {
    Tensor mask = torch::zeros({size()});
    const std::vector<Tensor> parts = mask.split_with_sizes(lengths_);
    for (std::size_t index = 0; index < parts.size(); ++index) {
      if (entries_[index].shape.size() == 2) parts[index].fill_(1.0);
    }
    return mask;
  }

 private:
  struct Entry {
    std::vector<std::string> names;
    Sizes shape;
    std::int64_t each = 0;
  };
  std::vector<Entry> entries_;
  Sizes lengths_;
};

/// Where the parts of a network note their parameters and running figures.
struct Layouts {
  Layout parameters;
  Layout running;
};

/// One pass through the network: the views of its parameters, and whether it trains.
struct Pass {
  std::vector<Tensor> parameters;
  std::vector<Tensor> running;
  bool training = false;
  double dropout = 0.0;
  double encoder_dropout = 0.0;
  mutable at::Generator generator;

  [[nodiscard]] Tensor drop(const Tensor& input) const { return drop(input, dropout); }
  [[nodiscard]] Tensor drop_in_encoder(const Tensor& input) const { return drop(input, encoder_dropout); }

 private:
  [[nodiscard]] Tensor drop(const Tensor& input, double share) const {
    if (!training || share <= 0.0) return input;
    const Tensor kept = torch::empty_like(input).bernoulli_(1.0 - share, generator).div_(1.0 - share);
    return input * kept;
  }
};

/// The names of one tensor of several members.
inline std::vector<std::string> named(const std::vector<std::string>& prefixes, const std::string& name) {
  std::vector<std::string> all;
  for (const std::string& prefix : prefixes) all.push_back(prefix + name);
  return all;
}

}  // namespace gpumem::train::torch_network
