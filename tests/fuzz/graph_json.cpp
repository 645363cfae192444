// Graph JSON.
#include "gpumem/summary/graph_json.hpp"

#include "fuzz.hpp"

bool gpumem::fuzz::fuzz_one(std::string_view input) { return read_as(summary::graph_json(), input); }
