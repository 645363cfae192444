// gpumem: the program.
#include <cstdlib>  // says whether the C library is glibc

#include "command_line.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace {

/// An estimate makes and drops arrays of some MiB within some milliseconds. By itself glibc gives each of them back to
/// the kernel, and takes the next one page by page, which costs a large model's estimate time.
/// Commands that live long (run, server, mcp) keep up to 64 MiB of what they freed for the same reason.
void use_freed_memory_again() {
#ifdef __GLIBC__
  constexpr int kMib = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMib);  // the largest that 64-bit glibc takes
  mallopt(M_TRIM_THRESHOLD, 64 * kMib);
  mallopt(M_TOP_PAD, 4 * kMib);  // address space, not memory
#endif
}

}  // namespace

int main(int argc, char** argv) {
  use_freed_memory_again();
  return gpumem::cli::run_command_line(argc, argv);
}
