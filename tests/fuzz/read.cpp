// A text of any format, as a file given to the command line.
#include "gpumem/summary/read.hpp"

#include "fuzz.hpp"

bool gpumem::fuzz::fuzz_one(std::string_view input) {
  const bool strict = require_sound(parse_summary(input), input);
  const bool lenient = require_sound(parse_summary(input, true), input);
  require(lenient || !strict, "what reads strictly reads leniently");
  return lenient;
}
