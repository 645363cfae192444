/* What the libstdc++.a of GCC 12 uses of glibcs newer than the one that a wheel is linked with (old_glibc.sh). */
#include <stdlib.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* glibc 2.32. 0: there may be several threads, so that counts of shared pointers are always atomic. */
HIDDEN char __libc_single_threaded = 0;

/* glibc 2.36; for std::random_device. */
HIDDEN unsigned int arc4random(void) {
  unsigned int number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) abort();
  return number;
}
