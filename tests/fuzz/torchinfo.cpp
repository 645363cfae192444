// The table of torchinfo.
#include "gpumem/summary/torchinfo.hpp"

#include "fuzz.hpp"

bool gpumem::fuzz::fuzz_one(std::string_view input) { return read_as(summary::torchinfo(), input); }
