// Input: a model that was read.
// Output: what a gpumem_summary is.
#pragma once

#include <memory>
#include <utility>

#include "gpumem/gpumem.h"
#include "gpumem/gpumem.hpp"

/// A model, with analyses of its own: they go when it is freed.
struct gpumem_summary {
  explicit gpumem_summary(gpumem::ModelGraph read)
      : graph(std::make_shared<const gpumem::ModelGraph>(std::move(read))),
        model(std::make_shared<const gpumem::Model>(graph)) {}

  std::shared_ptr<const gpumem::ModelGraph> graph;
  std::shared_ptr<const gpumem::Model> model;
};
