/*
 * What is called of glibcs newer than the one that a wheel is to run with (old_glibc.sh): by the libstdc++.a of GCC 12,
 * and of the mathematical functions that have a newer version.
 */
#include <stdlib.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

#ifdef OF_LIBM

/* Their versions of glibc 2.29 leave out the handling of errors by SVID. The values are the same. */
/* OLDEST is the version of the first glibc of the machine, such as "GLIBC_2.2.5". */
#define OLD(name) __asm__(".symver old_" #name ", " #name "@" OLDEST)
OLD(exp);
OLD(exp2);
OLD(log);
OLD(log2);
OLD(pow);
double old_exp(double x);
double old_exp2(double x);
double old_log(double x);
double old_log2(double x);
double old_pow(double x, double y);
HIDDEN double exp(double x) { return old_exp(x); }
HIDDEN double exp2(double x) { return old_exp2(x); }
HIDDEN double log(double x) { return old_log(x); }
HIDDEN double log2(double x) { return old_log2(x); }
HIDDEN double pow(double x, double y) { return old_pow(x, y); }

#else

/* glibc 2.32. 0: there may be several threads, so that counts of shared pointers are always atomic. */
HIDDEN char __libc_single_threaded = 0;

/* glibc 2.36; for std::random_device. */
HIDDEN unsigned int arc4random(void) {
  unsigned int number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) abort();
  return number;
}

#endif
