// The table of torchsummary.
#include "gpumem/summary/torchsummary.hpp"

#include "fuzz.hpp"

GPUMEM_FUZZ_TARGET(torchsummary) { return read_as(summary::torchsummary(), input); }
