// Graph JSON.
#include "gpumem/summary/graph_json.hpp"

#include "fuzz.hpp"

GPUMEM_FUZZ_TARGET(graph_json) { return read_as(summary::graph_json(), input); }
