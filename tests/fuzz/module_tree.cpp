// What print(model) prints in PyTorch.
#include "gpumem/summary/module_tree.hpp"

#include "fuzz.hpp"

GPUMEM_FUZZ_TARGET(module_tree) { return read_as(summary::module_tree(), input); }
