/*
 * gpumem in Slurm, the part that runs with the user: a SPANK plugin that gives sbatch, srun and salloc the options
 * --gpumem-model=FILE --gpumem-batch=N and more, estimates in the client, with the user's rights, what the job takes on
 * one GPU, and sends it along for job_submit.lua:
 *
 *   $ sbatch --gpumem-model=vgg16.txt --gpumem-batch=64 job.sh
 *   sbatch: gpumem: vgg16 at batch 64 needs 12.0 GiB on a100-40gb, asking for 15,059 MiB
 *
 * Input: the options, and the arguments of its line in plugstack.conf (README.md).
 * Output: GPUMEM_MIB in the job's control environment, MiB on one GPU, and GPUMEM_GPUS, how many GPUs a layout of
 * several takes; for tasks, if the site wants it, MPS' limit of their memory. A job that does not ask is not touched,
 * whatever is wrong. One that asks and cannot be estimated is refused (with `required`; with `optional` job_submit.lua
 * refuses it, because there is no figure).
 *
 * Source: spank(8) and <slurm/spank.h> of Slurm 22.05; build the plugin again for another release of Slurm.
 */
#include <ctype.h>
#include <errno.h>
#include <gpumem/gpumem.h>
#include <inttypes.h>
#include <limits.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SPANK_PLUGIN(gpumem, 1)

/* Slurm acts on what is below 0: ESPANK_ERROR is not. */
enum { kFine = 0, kFailed = -1 };

/* ---- What users say: one text for each option, as given last --------------------------------------------------- */

/* The plugin's own options; those of a job, as the library lists them, follow. */
enum { kModel, kMargin, kOwnOptions, kMostOptions = 128, kLongestName = 64 };

static struct spank_option options[kMostOptions];
static char option_names[kMostOptions][kLongestName];
static int option_count = 0;
static char* given[kMostOptions];

static int take_option(int which, const char* text, int remote) {
  char* copy = NULL;
  /* On a node the options come along, too; nothing is estimated there. */
  if (remote || which < 0 || which >= option_count) return kFine;
  copy = strdup(text != NULL ? text : "yes");
  if (copy == NULL) return kFailed;
  free(given[which]);
  given[which] = copy;
  return kFine;
}

/* SPANK wants texts that it could change, and does not. */
static void add_option(const char* begin, const char* name, const char* value, const char* usage) {
  const struct spank_option option = {
      option_names[option_count], (char*)value, (char*)usage, value != NULL, option_count, take_option};
  (void)snprintf(option_names[option_count], kLongestName, "gpumem-%s%s", begin, name);
  options[option_count++] = option;
}

/* A lower bound is nothing to ask for. */
static int is_offered(const gpumem_job_option* option) { return strcmp(option->name, "lenient") != 0; }

/* A flag that is on by default is given to switch it off. */
static int is_on(const gpumem_job_option* option) {
  return option->value == NULL && option->usual != NULL && strcmp(option->usual, "true") == 0;
}

/* What users call --gpumem-model is the summary, so the weights of a learned estimator have another name. */
static void add_job_option(const gpumem_job_option* option) {
  const char* begin = strcmp(option->name, "model") == 0 ? "trained-" : is_on(option) ? "no-" : "";
  add_option(begin, option->flag, option->value, option->help);
}

static void list_options(void) {
  const gpumem_job_option* option = NULL;
  size_t index = 0;
  option_count = 0;
  add_option("", "model", "FILE", "ask for the GPU memory that training this model takes; FILE: its summary");
  add_option("", "margin", "SIZE", "what to ask for beyond what is expected: upper (default), 2GiB, 512MiB");
  for (index = 0; (option = gpumem_job_option_at(index)) != NULL && option_count < kMostOptions; ++index) {
    if (is_offered(option)) add_job_option(option);
  }
}

/* What was given for the option at `which`, and belongs to `option`; NULL: nothing, or an empty text. */
static const char* word_of(int which, const gpumem_job_option* option) {
  if (given[which] == NULL || (given[which][0] == '\0' && strcmp(option->name, "batch_size") != 0)) return NULL;
  if (option->value != NULL) return given[which];
  return is_on(option) ? "false" : "true";
}

static void forget_options(void) {
  int which = 0;
  for (which = 0; which < kMostOptions; ++which) {
    free(given[which]);
    given[which] = NULL;
  }
}

static int asked(void) {
  int which = 0;
  for (which = 0; which < option_count; ++which) {
    if (given[which] != NULL) return 1;
  }
  return 0;
}

/* ---- What the site says: arguments in plugstack.conf ----------------------------------------------------------- */

typedef struct {
  const char* gpu;
  const char* estimator;
  const char* margin;
  int64_t deadline_ms; /* of reading the summary, and again of the estimate */
  int64_t largest_mib; /* of a summary */
  int mps_limit;
} site_settings;

static const int64_t kLongestDeadline = 600000;
static const int64_t kLargestSummary = 1024;

/* A whole number of `least` to `most`, and nothing else. */
static int parse_number(const char* text, int64_t least, int64_t most, int64_t* number) {
  char* end = NULL;
  intmax_t value = 0;
  if (!isdigit((unsigned char)text[0])) return 0;
  errno = 0;
  value = strtoimax(text, &end, 10);
  if (errno != 0 || *end != '\0' || value < least || value > most) return 0;
  *number = (int64_t)value;
  return 1;
}

/* What follows "name="; NULL if this is another argument. */
static const char* value_of(const char* argument, const char* name) {
  const size_t length = strlen(name);
  return strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

static int take_text(const char* value, const char** text) {
  *text = value;
  return value[0] != '\0';
}

static int read_setting(const char* argument, site_settings* site) {
  const char* value = NULL;
  if (strcmp(argument, "mps_limit") == 0) return site->mps_limit = 1;
  if ((value = value_of(argument, "gpu")) != NULL) return take_text(value, &site->gpu);
  if ((value = value_of(argument, "estimator")) != NULL) return take_text(value, &site->estimator);
  if ((value = value_of(argument, "margin")) != NULL) return take_text(value, &site->margin);
  if ((value = value_of(argument, "deadline_ms")) != NULL) {
    return parse_number(value, 1, kLongestDeadline, &site->deadline_ms);
  }
  if ((value = value_of(argument, "largest_mib")) != NULL) {
    return parse_number(value, 1, kLargestSummary, &site->largest_mib);
  }
  return 0;
}

/* The first argument that is wrong; NULL if none is. */
static const char* read_settings(int count, char** arguments, site_settings* site) {
  const site_settings usual = {"a100-40gb", "replay", "upper", 2000, 16, 0};
  int index = 0;
  *site = usual;
  for (index = 0; index < count; ++index) {
    if (!read_setting(arguments[index], site)) return arguments[index];
  }
  return NULL;
}

/* ---- The estimate ---------------------------------------------------------------------------------------------- */

/* Why a job is refused, in words for its user. */
typedef struct {
  char text[PATH_MAX + 1024];
} refusal;

__attribute__((format(printf, 2, 3))) static int refuse(refusal* why, const char* format, ...) {
  va_list values;
  va_start(values, format);
  (void)vsnprintf(why->text, sizeof why->text, format, values);
  va_end(values);
  return 0;
}

/* "2GiB" and the like in bytes, as for `gpumem request --margin`, without fractions; -1: upper. */
static int parse_margin(const char* text, int64_t* bytes, refusal* why) {
  static const struct {
    const char* name;
    int shift;
  } units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  const size_t digits = strspn(text, "0123456789");
  char number[20];
  size_t index = 0;
  *bytes = -1;
  if (strcmp(text, "upper") == 0) return 1;
  if (digits > 0 && digits < sizeof number) {
    memcpy(number, text, digits);
    number[digits] = '\0';
    for (index = 0; index < sizeof units / sizeof units[0]; ++index) {
      if (strcmp(text + digits, units[index].name) != 0) continue;
      if (!parse_number(number, 0, INT64_MAX >> units[index].shift, bytes)) break;
      *bytes *= INT64_C(1) << units[index].shift;
      return 1;
    }
    if (strcmp(text, "0") == 0) return parse_number(text, 0, 0, bytes);
  }
  return refuse(why, "there is no margin '%.80s'; say upper, or a size such as 2GiB or 512MiB", text);
}

/* What the user says, or else the site. */
static const char* chosen(int which, const char* usual) {
  return given[which] != NULL && given[which][0] != '\0' ? given[which] : usual;
}

/* What the site says of an option that the user leaves out. */
static const char* usual_word(const site_settings* site, const gpumem_job_option* option) {
  if (strcmp(option->name, "gpu") == 0) return site->gpu;
  if (strcmp(option->name, "estimator") == 0) return site->estimator;
  return NULL;
}

/* The job that the options describe, which is the caller's to free. */
static int describe_job(const site_settings* site, gpumem_job** job, refusal* why) {
  const char* names[kMostOptions];
  const char* words[kMostOptions];
  const gpumem_job_option* option = NULL;
  char message[512];
  size_t count = 0;
  size_t index = 0;
  int batch = 0;
  int which = kOwnOptions;
  for (index = 0; (option = gpumem_job_option_at(index)) != NULL && which < option_count; ++index) {
    const char* word = NULL;
    if (!is_offered(option)) continue;
    word = word_of(which++, option);
    if (word == NULL) word = usual_word(site, option);
    if (word == NULL) continue;
    if (strcmp(option->name, "batch_size") == 0) batch = 1;
    names[count] = option->flag;
    words[count++] = word;
  }
  if (given[kModel] == NULL || !batch) {
    return refuse(why, "--gpumem-model=FILE and --gpumem-batch=N go together, and all else needs both");
  }
  if (strlen(given[kModel]) >= PATH_MAX) return refuse(why, "--gpumem-model: the path is too long for a file");
  if (gpumem_job_from_words(names, words, count, job, message, sizeof message) != GPUMEM_OK) {
    return refuse(why, "--gpumem-%s", message);
  }
  (*job)->deadline_ms = site->deadline_ms;
  return 1;
}

static int estimate_job(const site_settings* site, const gpumem_job* job, gpumem_estimate_result* need, refusal* why) {
  gpumem_read_options read = GPUMEM_READ_OPTIONS_INIT;
  gpumem_summary* summary = NULL;
  gpumem_status status = GPUMEM_OK;
  read.deadline_ms = site->deadline_ms;
  read.largest_bytes = site->largest_mib * (INT64_C(1) << 20);
  status = gpumem_summary_from_file(given[kModel], &read, &summary, why->text, sizeof why->text);
  if (status != GPUMEM_OK) return 0;
  status = gpumem_estimate(summary, job, need, why->text, sizeof why->text);
  gpumem_summary_free(summary);
  return status == GPUMEM_OK;
}

/* What to ask for, in MiB. The margin ends where the GPU does: with the GPU to itself, the job needs no more than is
 * expected. */
static int64_t mebibytes_to_ask(const gpumem_estimate_result* need, int64_t margin) {
  const int64_t mebibyte = INT64_C(1) << 20;
  const int64_t expected = need->expected_bytes;
  int64_t bytes = margin < 0 ? need->upper_bytes : INT64_MAX - expected < margin ? INT64_MAX : expected + margin;
  if (bytes > need->capacity_bytes && expected <= need->capacity_bytes && need->fits) {
    return need->capacity_bytes / mebibyte;
  }
  bytes = bytes / mebibyte + (bytes % mebibyte != 0);
  return bytes > 0 ? bytes : 1;
}

/* ---- The line for the user ------------------------------------------------------------------------------------- */

/* "vgg16" of "models/vgg16.torchinfo.txt", with nothing in it that a terminal would take for a command. */
static void name_model(const char* path, char* name, size_t size) {
  const char* slash = strrchr(path, '/');
  const char* base = slash != NULL && slash[1] != '\0' ? slash + 1 : path;
  size_t index = 0;
  for (index = 0; index + 1 < size && base[index] != '\0' && (base[index] != '.' || index == 0); ++index) {
    name[index] = base[index];
    if (iscntrl((unsigned char)base[index])) name[index] = '?';
  }
  name[index] = '\0';
}

/* "15,059" */
static void with_separators(int64_t number, char* text, size_t size) {
  char digits[24];
  size_t index = 0;
  size_t at = 0;
  const int count = snprintf(digits, sizeof digits, "%" PRId64, number);
  for (index = 0; digits[index] != '\0' && at + 2 < size; ++index) {
    if (index > 0 && ((size_t)count - index) % 3 == 0) text[at++] = ',';
    text[at++] = digits[index];
  }
  text[at] = '\0';
}

static void tell(const gpumem_job* job, const gpumem_estimate_result* need, int64_t mebibytes) {
  const double gib = (double)need->expected_bytes / (1024.0 * 1024.0 * 1024.0);
  char model[64];
  char size[32];
  char gpus[64] = "";
  name_model(given[kModel], model, sizeof model);
  with_separators(mebibytes, size, sizeof size);
  if (need->gpus > 1) (void)snprintf(gpus, sizeof gpus, " on each of %" PRId64 " GPUs", need->gpus);
  slurm_spank_log("gpumem: %s at batch %" PRId64 " needs %.*f GiB on %.60s, asking for %s MiB%s%s", model,
                  job->batch_size, gib < 10.0 ? 2 : 1, gib, job->gpu, size, gpus,
                  need->out_of_domain != 0 ? "; the estimator was not trained on jobs like it" : "");
}

/* ---- What Slurm calls ------------------------------------------------------------------------------------------ */

/* One figure, for job_submit.lua. */
static int send_figure(spank_t spank, const char* name, int64_t number) {
  char text[32];
  (void)snprintf(text, sizeof text, "%" PRId64, number);
  return spank_job_control_setenv(spank, name, text, 1) == ESPANK_SUCCESS;
}

/* With a job, which is estimated and sent along. */
static int send(spank_t spank, const site_settings* site, const gpumem_job* job, int64_t margin, refusal* why) {
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  int64_t mebibytes = 0;
  if (!estimate_job(site, job, &need, why)) return 0;
  mebibytes = mebibytes_to_ask(&need, margin);
  if (!send_figure(spank, "GPUMEM_MIB", mebibytes) ||
      (need.gpus > 1 && !send_figure(spank, "GPUMEM_GPUS", need.gpus))) {
    return refuse(why, "Slurm does not take the figure along");
  }
  tell(job, &need, mebibytes);
  return 1;
}

static int ask(spank_t spank, int argc, char** argv, refusal* why) {
  site_settings site;
  gpumem_job* job = NULL;
  int64_t margin = -1;
  int sent = 0;
  const char* wrong = read_settings(argc, argv, &site);
  if (wrong != NULL)
    return refuse(why, "the administrator's plugstack.conf says '%.80s', which is not a setting", wrong);
  if (!describe_job(&site, &job, why)) return 0;
  sent = parse_margin(chosen(kMargin, site.margin), &margin, why) && send(spank, &site, job, margin, why);
  gpumem_job_free(job);
  return sent;
}

/* Slurm hands a job's options down to what is submitted from within it, which has not asked. */
static void disown_inherited(const char* option) {
  static const char* const prefixes[] = {"SLURM_SPANK__SLURM_SPANK_OPTION_gpumem_", "_SLURM_SPANK_OPTION_gpumem_"};
  char variable[128];
  size_t prefix = 0;
  char* at = NULL;
  for (prefix = 0; prefix < sizeof prefixes / sizeof prefixes[0]; ++prefix) {
    (void)snprintf(variable, sizeof variable, "%s%s", prefixes[prefix], option);
    for (at = variable; *at != '\0'; ++at) {
      if (*at == '-') *at = '_';
    }
    (void)unsetenv(variable);
  }
}

/* In every context: what one does not know of an option that another sends is an error. */
int slurm_spank_init(spank_t spank, int argc, char** argv) {
  const spank_context_t context = spank_context();
  int index = 0;
  (void)argc;
  (void)argv;
  if (context == S_CTX_SLURMD || context == S_CTX_JOB_SCRIPT) return kFine;
  list_options();
  for (index = 0; index < option_count; ++index) {
    if (spank_option_register(spank, &options[index]) != ESPANK_SUCCESS) {
      slurm_error("gpumem: Slurm does not take the option --%s", options[index].name);
      return kFailed;
    }
    if (context == S_CTX_ALLOCATOR || context == S_CTX_LOCAL) disown_inherited(options[index].name);
  }
  return kFine;
}

/* In sbatch, salloc and srun before the job is submitted. An srun within a job starts a step of what that job was
   granted, and has inherited its options. */
int slurm_spank_init_post_opt(spank_t spank, int argc, char** argv) {
  const spank_context_t context = spank_context();
  refusal why = {""};
  refusal spelled = {""};
  if (context != S_CTX_ALLOCATOR && context != S_CTX_LOCAL) return kFine;
  if (!asked() || (context == S_CTX_LOCAL && getenv("SLURM_JOB_ID") != NULL)) return kFine;
  if (ask(spank, argc, argv, &why)) return kFine;
  gpumem_spell_options(why.text, "--gpumem-", "=", spelled.text, sizeof spelled.text);
  slurm_error("gpumem: %s", spelled.text);
  return kFailed;
}

/* On a node, in each task: what CUDA's MPS is to let it allocate. The GPU of a job with shards is its device 0. */
int slurm_spank_task_init(spank_t spank, int argc, char** argv) {
  site_settings site;
  char shards[32];
  char limit[48];
  int64_t mebibytes = 0;
  (void)read_settings(argc, argv, &site);
  if (!site.mps_limit) return kFine;
  if (spank_getenv(spank, "SLURM_SHARDS_ON_NODE", shards, (int)sizeof shards) != ESPANK_SUCCESS) return kFine;
  if (!parse_number(shards, 1, INT64_MAX, &mebibytes)) return kFine;
  (void)snprintf(limit, sizeof limit, "0=%" PRId64 "M", mebibytes);
  if (spank_setenv(spank, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limit, 1) != ESPANK_SUCCESS) {
    slurm_error("gpumem: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT could not be set to %s", limit);
    return kFailed;
  }
  return kFine;
}

int slurm_spank_exit(spank_t spank, int argc, char** argv) {
  (void)spank;
  (void)argc;
  (void)argv;
  forget_options();
  return kFine;
}
