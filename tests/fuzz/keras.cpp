// What model.summary() prints in Keras.
#include "gpumem/summary/keras.hpp"

#include "fuzz.hpp"

bool gpumem::fuzz::fuzz_one(std::string_view input) { return read_as(summary::keras(), input); }
