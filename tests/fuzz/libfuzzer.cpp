// The entry point that libFuzzer calls with every mutation.
#include <cstddef>
#include <cstdint>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gpumem::fuzz::fuzz_one({reinterpret_cast<const char*>(data), size});
  return 0;
}
