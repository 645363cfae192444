/* What the tests of single calls share: room for a message, and a job for the small model. */
#ifndef GPUMEM_TESTS_CAPI_CALLS_H
#define GPUMEM_TESTS_CAPI_CALLS_H

#include "check.h"

static char message[512];
#define MESSAGE message, sizeof message

static inline gpumem_job usual_job(void) {
  gpumem_job job = GPUMEM_JOB_INIT;
  job.batch_size = 32;
  job.input = "64";
  return job;
}

#endif
