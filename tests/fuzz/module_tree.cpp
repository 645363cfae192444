// What print(model) prints in PyTorch.
#include "gpumem/summary/module_tree.hpp"

#include "fuzz.hpp"

bool gpumem::fuzz::fuzz_one(std::string_view input) { return read_as(summary::module_tree(), input); }
