// A Transformer encoder over sequences of layers.
#pragma once

#include <cmath>

#include "gpumem/ml/model_config.hpp"
#include "layers.hpp"

namespace gpumem::train::torch_network {

using ml::Attention;
using ml::Embedding;
using ml::Pooling;

/// Sinusoidal positions (Vaswani et al. 2017), [length, width].
inline Tensor positions(std::int64_t length, std::int64_t width) {
  constexpr double kBase = 10000.0;
  Tensor all = torch::zeros({length, width});
  auto figures = all.accessor<float, 2>();
  for (std::int64_t row = 0; row < length; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      const double rate = std::pow(kBase, -static_cast<double>(column / 2 * 2) / static_cast<double>(width));
      const double angle = static_cast<double>(row) * rate;
      figures[row][column] = static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return all;
}

struct EncoderLayer {
  Linear in_proj, out_proj;
  LayerNorm norm1;
  Linear linear1, linear2;
  LayerNorm norm2;

  EncoderLayer(Layouts& layouts, const std::string& prefix, const ml::EncoderShape& shape)
      : in_proj(layouts, {prefix + "attention.in_proj."}, shape.width, 3 * shape.width),
        out_proj(layouts, {prefix + "attention.out_proj."}, shape.width, shape.width),
        norm1(layouts, prefix + "norm1.", shape.width),
        linear1(layouts, {prefix + "linear1."}, shape.width, shape.feed_forward),
        linear2(layouts, {prefix + "linear2."}, shape.feed_forward, shape.width),
        norm2(layouts, prefix + "norm2.", shape.width) {}

  /// [N, S, width]; `padding` is [N, 1, 1, S].
  [[nodiscard]] Tensor operator()(const Pass& pass, const Tensor& input, const Tensor& padding,
                                  const ml::EncoderShape& shape) const {
    const Tensor attended = out_proj(pass, attend(in_proj(pass, input), padding, shape));
    const Tensor middle = norm1(pass, input + pass.drop_in_encoder(attended));
    const Tensor forward = linear2(pass, pass.drop_in_encoder(torch::relu(linear1(pass, middle))));
    return norm2(pass, middle + pass.drop_in_encoder(forward));
  }

 private:
  static Tensor attend(const Tensor& projected, const Tensor& padding, const ml::EncoderShape& shape) {
    const std::int64_t examples = projected.size(0);
    const std::int64_t rows = projected.size(1);
    if (shape.attention == Attention::self) return projected.narrow(2, 2 * shape.width, shape.width);
    const std::int64_t each = shape.width / shape.heads;
    const Tensor parts = projected.view({examples, rows, 3, shape.heads, each}).permute({2, 0, 3, 1, 4});
    const Tensor scores = torch::matmul(parts[0] / std::sqrt(static_cast<double>(each)), parts[1].transpose(2, 3));
    // Not infinity: where all is padding, that would give no numbers. Such a sequence attends to zeros.
    constexpr double kNever = -1e30;
    const Tensor weights = torch::softmax(scores.masked_fill(padding, kNever), -1).masked_fill(padding, 0.0);
    return torch::matmul(weights, parts[2]).transpose(1, 2).reshape({examples, rows, shape.width});
  }
};

/// In parts: where padding may be cut, of sequences of like length, each padded only as far as it needs.
struct Sequences {
  struct Part {
    Tensor figures;  ///< [examples, S, columns]
    Tensor valid;    ///< [examples, S]
  };
  std::vector<Part> parts;
  Tensor places;  ///< where each example is in the parts
};

class Encoder {
 public:
  Encoder(Layouts& layouts, const std::string& branch, const ml::EncoderShape& shape, std::int64_t length,
          std::int64_t columns)
      : shape_(shape), positions_(positions(length, shape.width)) {
    const std::string prefix = branch + "encoder.";
    const int embeddings = shape.embedding == Embedding::linear ? 1 : 2;
    for (int index = 0; index < embeddings; ++index) {
      const std::string embedding = prefix + "embedding." + std::to_string(index) + ".";
      embeddings_.emplace_back(layouts, std::vector{embedding + "linear."}, index == 0 ? columns : shape.width,
                               shape.width);
      if (embeddings == 2) norms_.emplace_back(layouts, std::vector{embedding + "norm."}, length);
    }
    for (std::int64_t index = 0; index < shape.layers; ++index) {
      layers_.emplace_back(layouts, prefix + "layers." + std::to_string(index) + ".", shape);
    }
  }

  /// Whether padding changes nothing, so that it may be cut.
  [[nodiscard]] bool ignores_padding() const { return norms_.empty() && shape_.pooling == Pooling::mean; }

  /// All examples' pooled figures, [N, width].
  [[nodiscard]] Tensor operator()(const Pass& pass, const Sequences& sequences) const {
    std::vector<Tensor> pooled;
    for (const Sequences::Part& part : sequences.parts) pooled.push_back((*this)(pass, part.figures, part.valid));
    return pass.drop_in_encoder(torch::cat(pooled).index_select(0, sequences.places));
  }

 private:
  /// [N, S, columns] to [N, width]; `valid` is [N, S], 1 for what is not padding.
  [[nodiscard]] Tensor operator()(const Pass& pass, const Tensor& sequences, const Tensor& valid) const {
    Tensor figures = embed(pass, sequences) + positions_.narrow(0, 0, sequences.size(1));
    const Tensor padding = valid.eq(0).unsqueeze(1).unsqueeze(2);
    for (const EncoderLayer& layer : layers_) figures = layer(pass, figures, padding, shape_);
    if (shape_.pooling == Pooling::sum) return figures.sum(1);
    return (figures * valid.unsqueeze(2)).sum(1) / valid.sum(1, true).clamp_min(1.0);
  }

  [[nodiscard]] Tensor embed(const Pass& pass, const Tensor& sequences) const {
    Tensor figures = sequences;
    for (std::size_t index = 0; index < embeddings_.size(); ++index) {
      figures = embeddings_[index](pass, figures);
      if (!norms_.empty()) figures = torch::relu(norms_[index](pass, figures));
    }
    return figures;
  }

  ml::EncoderShape shape_;
  Tensor positions_;
  std::vector<Linear> embeddings_;
  std::vector<BatchNorm> norms_;
  std::vector<EncoderLayer> layers_;
};

}  // namespace gpumem::train::torch_network
