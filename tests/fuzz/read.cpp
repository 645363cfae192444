// A text of any format, as a file given to the command line.
#include "gpumem/summary/formats.hpp"

#include "fuzz.hpp"

GPUMEM_FUZZ_TARGET(read) {
  const bool strict = require_sound(parse_summary(input), input);
  const bool lenient = require_sound(parse_summary(input, true), input);
  require(lenient || !strict, "what reads strictly reads leniently");
  return lenient;
}
