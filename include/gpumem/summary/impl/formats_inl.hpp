#pragma once

#include "gpumem/summary/formats.hpp"

#include "gpumem/summary/config_json.hpp"
#include "gpumem/summary/graph_json.hpp"
#include "gpumem/summary/keras.hpp"
#include "gpumem/summary/module_tree.hpp"
#include "gpumem/summary/recording.hpp"
#include "gpumem/summary/torchinfo.hpp"
#include "gpumem/summary/torchsummary.hpp"

namespace gpumem::summary {

GPUMEM_INLINE const Formats& formats() {
  static const Formats kAll = {
      &torchsummary(), &torchinfo(), &module_tree(), &keras(), &graph_json(), &config_json(), &recording(),
  };
  return kAll;
}

}  // namespace gpumem::summary
