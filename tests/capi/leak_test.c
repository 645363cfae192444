/* Calls of every kind, successes and errors: 100,000, after which the heap is asked what it holds. LeakSanitizer sees a
   single block that is left, so that 2,000 slow calls are enough for it. */
#if defined(__GLIBC__) || defined(__linux__)
#include <malloc.h>
#endif

#include "check.h"

static void call_all(void) {
  gpumem_summary* summary = small_model();
  gpumem_summary* none = NULL;
  gpumem_job* parsed = NULL;
  gpumem_job job = GPUMEM_JOB_INIT;
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  gpumem_server_gpu gpu = GPUMEM_SERVER_GPU_INIT;
  gpumem_request request = GPUMEM_REQUEST_INIT;
  gpumem_decision decision = GPUMEM_DECISION_INIT;
  size_t chosen = 0;
  char message[100];
  const char json[] = "{\"batch\": 32, \"input\": \"64\", \"gpu\": \"a100-40gb\"}";
  job.batch_size = 32;
  job.input = "64";
  CHECK(gpumem_summary_from_memory("nothing", 7, NULL, &none, message, sizeof message) != GPUMEM_OK);
  CHECK(gpumem_summary_from_file("/nowhere", NULL, &none, message, sizeof message) != GPUMEM_OK);
  CHECK(gpumem_job_from_json(json, sizeof json - 1, &parsed, message, sizeof message) == GPUMEM_OK);
  CHECK(gpumem_job_from_json("{\"batch\": \"x\"}", 14, &parsed, message, sizeof message) != GPUMEM_OK);
  CHECK(gpumem_estimate(summary, parsed, &need, message, sizeof message) == GPUMEM_OK);
  job.alloc_conf = "expandable_segments:True";
  CHECK(gpumem_estimate(summary, &job, &need, message, sizeof message) == GPUMEM_OK);
  job.gpu = "abacus";
  CHECK(gpumem_estimate(summary, &job, &need, message, sizeof message) != GPUMEM_OK);
  gpu.total_bytes = need.capacity_bytes;
  request.memory_bytes = need.upper_bytes;
  decision.gpus = &chosen;
  decision.gpus_capacity = 1;
  CHECK(gpumem_place(&request, &gpu, 1, NULL, NULL, &decision, message, sizeof message) == GPUMEM_OK);
  gpumem_job_free(parsed);
  gpumem_summary_free(summary);
}

static size_t in_use(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  return mallinfo2().uordblks;
#else
  return 0;
#endif
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GPUMEM_HAS_LEAK_SANITIZER 1
#endif
#endif
#if defined(GPUMEM_HAS_LEAK_SANITIZER) || defined(__SANITIZE_ADDRESS__)
#define GPUMEM_CALLS 2000
#else
#define GPUMEM_CALLS 100000
#endif

int main(void) {
  const int calls_each = 10;
  const int settled = GPUMEM_CALLS / 5; /* until then the heap fills its own caches */
  int calls;
  size_t before;
  for (calls = 0; calls < settled; calls += calls_each) call_all();
  before = in_use();
  for (calls = 0; calls < GPUMEM_CALLS; calls += calls_each) call_all();
  /* The heap keeps some of what is freed in caches of its own; a byte a call would be 100,000. */
  CHECK(in_use() <= before + 16384);
  return failures == 0 ? 0 : 1;
}
