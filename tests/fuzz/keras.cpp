// What model.summary() prints in Keras.
#include "gpumem/summary/keras.hpp"

#include "fuzz.hpp"

GPUMEM_FUZZ_TARGET(keras) { return read_as(summary::keras(), input); }
