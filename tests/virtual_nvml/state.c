/* The state file and its lock, the clock, failures on demand, the log of setters. */
#define _GNU_SOURCE
#include "virtual_nvml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAGIC = 0x564e4d4c };
#define EPOCH (1767225600LL * SECOND) /* 2026-01-01: the wall clock at virtual time 0 */

struct state *S;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static const char *environment(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

/* ---- clock ---- */

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

int64_t now_ns(void) { return S->is_virtual ? S->virtual_ns : clock_ns(CLOCK_BOOTTIME) - S->zero_ns; }

/* The wall clock at a moment of the state's clock, by the wall clock as it is set now. */
uint64_t wall_us(int64_t at_ns)
{
    int64_t wall_ns = S->is_virtual ? S->epoch_ns + at_ns : clock_ns(CLOCK_REALTIME) - (now_ns() - at_ns);
    return (uint64_t)(wall_ns / 1000);
}

/* ---- state file ---- */

static ret_t read_rules(const char *text)
{
    char rules[1024];
    snprintf(rules, sizeof rules, "%s", text);
    for (char *rest = NULL, *rule = strtok_r(rules, ";", &rest); rule; rule = strtok_r(NULL, ";", &rest)) {
        int board = -1, code = 0, from_call = 1, start = 0;
        char function[64];
        if (sscanf(rule, "%d:%n", &board, &start) < 1 || !start) board = -1, start = 0;
        if (sscanf(rule + start, "%63[^=]=%d@%d", function, &code, &from_call) < 2) return INVALID_ARGUMENT;
        add_rule(board, function, code, (uint32_t)from_call);
    }
    return OK;
}

static ret_t create_state(const char *models, bool is_virtual)
{
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&S->mutex, &shared);
    S->is_virtual = is_virtual, S->root = -1, S->epoch_ns = EPOCH, S->zero_ns = clock_ns(CLOCK_BOOTTIME);
    snprintf(S->driver, sizeof S->driver, "580.159.04");

    char list[256];
    snprintf(list, sizeof list, "%s", models);
    const char *watts = getenv("VIRTUAL_NVML_WATTS");
    for (char *rest = NULL, *model = strtok_r(list, ",", &rest); model; model = strtok_r(NULL, ",", &rest)) {
        struct board *b = &S->board[S->boards];
        if (S->boards == MAX_BOARDS || !model_board(b, S->boards, model)) return INVALID_ARGUMENT;
        if (watts) b->load.watts = atof(watts);
        warm_up(b);
        S->boards++;
    }
    return read_rules(environment("VIRTUAL_NVML_FAIL", ""));
}

static struct state *mapped(const char *path, int *file)
{
    if (path) {
        *file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (*file < 0 || flock(*file, LOCK_EX) || ftruncate(*file, sizeof(struct state))) return MAP_FAILED;
    }
    return mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, path ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, *file, 0);
}

/* Use the state in a file, created with these boards where it is new; NULL for one that dies with the process. */
ret_t open_state(const char *path, const char *models, bool is_virtual)
{
    pthread_mutex_lock(&opening);
    int file = -1;
    struct state *state = mapped(path, &file);
    ret_t code = state == MAP_FAILED ? INVALID_ARGUMENT : OK;
    if (code == OK) {
        if (S) munmap(S, sizeof *S);
        S = state;
        if (S->magic != MAGIC) code = create_state(models, is_virtual);
        if (code == OK) S->magic = MAGIC;
    }
    if (file >= 0) {
        flock(file, LOCK_UN); /* by name: the mapping keeps the file open */
        close(file);
    }
    pthread_mutex_unlock(&opening);
    return code;
}

void ensure_state(void)
{
    if (S) return;
    bool is_virtual = !strcmp(environment("VIRTUAL_NVML_CLOCK", "real"), "virtual");
    if (open_state(environment("VIRTUAL_NVML_STATE", NULL), environment("VIRTUAL_NVML_BOARDS", "h200"), is_virtual)) {
        fprintf(stderr, "virtual NVML: VIRTUAL_NVML_STATE, _BOARDS or _FAIL is wrong\n");
        abort();
    }
}

__attribute__((destructor)) static void leave_state(void)
{
    if (S) munmap(S, sizeof *S);
    S = NULL;
}

void lock_state(void)
{
    if (pthread_mutex_lock(&S->mutex) == EOWNERDEAD) pthread_mutex_consistent(&S->mutex); /* its holder was killed */
}

void unlock_state(int *unused)
{
    (void)unused;
    pthread_mutex_unlock(&S->mutex);
}

bool may_set(void)
{
    const char *own = environment("VIRTUAL_NVML_ROOT", NULL);
    if (own) return atoi(own);
    return S->root >= 0 ? S->root : geteuid() == 0;
}

/* ---- failures ---- */

ret_t add_rule(int board, const char *function, int code, uint32_t from_call)
{
    if (S->rules == MAX_RULES) return INSUFFICIENT_SIZE;
    struct rule *rule = &S->rule[S->rules++];
    *rule = (struct rule){.board = board, .code = code, .from_call = from_call};
    snprintf(rule->function, sizeof rule->function, "%s", function);
    return OK;
}

static bool is_named(const char *function, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(function, name, length)) return false;
    const char *rest = function + length;
    return !*rest || (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '0' && rest[2] <= '9' && !rest[3]);
}

/* What a test wants this call to answer; OK for nothing special. Code 0 in a newer rule lifts an older one. */
ret_t failure(const char *function, int board)
{
    ret_t code = OK;
    bool is_field = !strncmp(function, "field:", 6);
    for (uint32_t i = 0; i < S->rules; i++) {
        struct rule *rule = &S->rule[i];
        bool is_any = !strcmp(rule->function, "*") && board >= 0 && !is_field;
        if ((rule->board >= 0 && rule->board != board) || !(is_any || is_named(function, rule->function))) continue;
        if (++rule->calls >= rule->from_call) code = (ret_t)rule->code;
    }
    return code;
}

/* ---- log ---- */

void log_setter(const char *function, int board, double first, double second, ret_t code)
{
    struct log_entry *entry = &S->log[S->logged++ % MAX_LOG];
    *entry = (struct log_entry){
        .pid = getpid(), .board = board, .code = (int32_t)code, .first = first, .second = second, .at_ns = now_ns()};
    snprintf(entry->function, sizeof entry->function, "%s", function);
}
