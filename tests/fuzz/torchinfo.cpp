// The table of torchinfo.
#include "gpumem/summary/torchinfo.hpp"

#include "fuzz.hpp"

GPUMEM_FUZZ_TARGET(torchinfo) { return read_as(summary::torchinfo(), input); }
