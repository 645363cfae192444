// gpumem: the program.
#include <cstdlib>  // says whether the C library is glibc

#include "command_line.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>

#include <memory>
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

/// The heap's next 30 MiB come in huge pages, where the kernel grants them: they are address space until they are used.
/// In a virtual machine a fifth of the time of a large model's estimate was the kernel's, for page after page.
void ask_for_huge_pages() {
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t kPage = std::size_t{2} << 20;
  constexpr std::size_t kHeap = 15 * kPage;  // more would not be of the heap (M_MMAP_THRESHOLD)
  void* const heap = std::malloc(kHeap);
  void* first = heap;
  std::size_t left = kHeap;
  if (heap != nullptr && std::align(kPage, kPage, first, left) != nullptr) (void)madvise(first, left, MADV_HUGEPAGE);
  std::free(heap);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  use_freed_memory_again();
  ask_for_huge_pages();
  return gpumem::cli::run_command_line(argc, argv);
}
