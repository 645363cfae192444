/* What the tests in C share: checks that say where they failed and go on, and small files and texts. */
#ifndef GPUMEM_TESTS_CAPI_CHECK_H
#define GPUMEM_TESTS_CAPI_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpumem/gpumem.h"

static int failures = 0;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                                    \
    }                                                                                \
  } while (0)

#define CHECK_STATUS(call, expected)                                                                   \
  do {                                                                                                 \
    const gpumem_status got = (call);                                                                  \
    if (got != (expected)) {                                                                           \
      fprintf(stderr, "%s:%d: %s is %s, not %s\n", __FILE__, __LINE__, #call, gpumem_status_name(got), \
              gpumem_status_name(expected));                                                           \
      ++failures;                                                                                      \
    }                                                                                                  \
  } while (0)

/* A perceptron of one hidden layer, as PyTorch prints it. */
static const char kSmallModel[] =
    "Sequential(\n"
    "  (0): Linear(in_features=64, out_features=32, bias=True)\n"
    "  (1): ReLU()\n"
    "  (2): Linear(in_features=32, out_features=10, bias=True)\n"
    ")\n";

static inline gpumem_summary* small_model(void) {
  gpumem_summary* summary = NULL;
  CHECK_STATUS(gpumem_summary_from_memory(kSmallModel, sizeof kSmallModel - 1, NULL, &summary, NULL, 0), GPUMEM_OK);
  return summary;
}

/* `head`, then `count` times `part`, then `tail`; the caller frees it. */
static inline char* repeated(const char* head, const char* part, size_t count, const char* tail, size_t* length) {
  const size_t each = strlen(part);
  char* text = malloc(strlen(head) + each * count + strlen(tail) + 1);
  char* at = text;
  size_t index;
  if (text == NULL) abort();
  at += strlen(strcpy(at, head));
  for (index = 0; index < count; ++index, at += each) memcpy(at, part, each);
  strcpy(at, tail);
  *length = strlen(head) + each * count + strlen(tail);
  return text;
}

#endif
