// Input: a net as GPUMemNet's data sets list it.
// Output: its ModelGraph with exact edges and every shape. runs_tables.hpp says what the list means.
#pragma once

#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::datasets {

/// ('conv2d', 30276, 2744)
struct ListedLayer {
  std::string_view type;  ///< views the list's text
  std::int64_t activations = 0;
  std::int64_t parameters = 0;
};

/// A Python list of such triples. Errors (without a place): malformed_input.
[[nodiscard]] core::Result<std::vector<ListedLayer>> parse_layer_list(std::string_view text);

struct GpumemnetNet {
  std::vector<ListedLayer> layers;
  std::string_view architecture;  ///< "pyramid", "residual", "dense", ...
  std::int64_t channels = 0;      ///< of the input; an MLP's features
  std::int64_t side = 0;          ///< of the square input image; 0: an MLP
  double dropout = 0.0;           ///< the share that its dropout layers drop
};

/// Errors: malformed_input in this line of the file where the list's figures contradict each other, naming the layer.
[[nodiscard]] core::Result<model::ModelGraph> build_net(const GpumemnetNet& net, const model::Vocabulary& vocabulary,
                                                        std::string_view file, std::int64_t line);

}  // namespace gpumem::datasets
