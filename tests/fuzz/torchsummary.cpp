// The table of torchsummary.
#include "gpumem/summary/torchsummary.hpp"

#include "fuzz.hpp"

bool gpumem::fuzz::fuzz_one(std::string_view input) { return read_as(summary::torchsummary(), input); }
