// The entry points that libFuzzer calls: once, to choose the target that GPUMEM_FUZZ_TARGET names, and with every
// mutation.
#include <cstddef>
#include <cstdint>

#include "fuzz.hpp"

namespace {

gpumem::fuzz::Target chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  chosen = gpumem::fuzz::target_named(std::getenv("GPUMEM_FUZZ_TARGET"));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen({reinterpret_cast<const char*>(data), size});
  return 0;
}
