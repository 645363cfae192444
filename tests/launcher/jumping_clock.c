/* Loaded into a program, it lets the clock that people set jump by up to a day, at every look. What counts on it to go
 * forward is wrong then; what a launcher measures, it measures with a clock that nobody sets. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long jump(void) {
  static unsigned state = 12345;
  state = state * 1103515245U + 12345U;
  return (long)(state % 172800U) - 86400L;
}

int clock_gettime(clockid_t clock, struct timespec* to) {
  const long done = syscall(SYS_clock_gettime, clock, to);
  if (done == 0 && clock == CLOCK_REALTIME) to->tv_sec += jump();
  return (int)done;
}

time_t time(time_t* to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != NULL) *to = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* restrict to, void* restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  to->tv_sec = now.tv_sec;
  to->tv_usec = (suseconds_t)(now.tv_nsec / 1000);
  return 0;
}
