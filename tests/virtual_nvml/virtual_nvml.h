/* A virtual NVIDIA driver: the calls of libnvidia-ml.so.1 that the package uses, answered by simulated boards.
 *
 * models.c   what a board of each model can do
 * state.c    the shared state file, the clock, failures, the log of setters
 * physics.c  load, clocks, limiter, energy and sensors between two moments
 * system.c   the driver itself, boards by handle, MIG instances, processes
 * reads.c    what a board reports
 * setters.c  what root may change
 * controls.c what only a test may call: nvmlVirtual...
 *
 * Inside: times in ns (int64, 0 = creation of the state), power in W, energy in J, clocks in MHz. NVML's own units
 * (mW, mJ, us since 1970) exist only in the answers of its functions.
 *
 * Environment, read when a state is created:
 *   VIRTUAL_NVML_BOARDS  models in PCI order, "h200,a100" (default "h200"; see models.c)
 *   VIRTUAL_NVML_CLOCK   "real" (default) or "virtual": moves only by nvmlVirtualAdvance
 *   VIRTUAL_NVML_WATTS   constant power of every board (default: idle) [W]
 *   VIRTUAL_NVML_FAIL    failures, "nvmlDeviceGetSamples=3;0:nvmlDeviceGetUUID=15@2": [board:]function=code[@from call]
 * and by each process when it first calls:
 *   VIRTUAL_NVML_STATE   path of the state file, shared and kept; without it the state dies with the process
 *   VIRTUAL_NVML_ROOT    1: this process may set, 0: it may not (default: what the state says, else whether it is root)
 */
#ifndef VIRTUAL_NVML_H
#define VIRTUAL_NVML_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))
#ifdef OLD_DRIVER /* a driver of before these functions: the symbols are not there */
#define NEWER __attribute__((visibility("hidden")))
#else
#define NEWER API
#endif

enum { MAX_BOARDS = 8, MAX_MIGS = 7, MAX_PROCESSES = 64, MAX_STEPS = 512, MAX_CURVE = 32, MAX_RULES = 32, MAX_LOG = 256 };
enum { SAMPLES_KEPT = 120, HISTORY_KEPT = 4096, REASONS_TIMED = 5 };
#define SECOND 1000000000LL
#define SAMPLE_PERIOD (SECOND / 50)  /* H200: 119 or 120 samples, one each 20 ms */
#define INSTANT_PERIOD (SECOND / 10) /* H200: instant power changes every 100 ms */
#define NEVER INT64_MAX

typedef enum {
    OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7
} ret_t;

enum { REASON_IDLE = 0x1, REASON_SW_POWER_CAP = 0x4 };

/* What a test may set of a board, all as double; the name is the option's name. _s seconds, has_/is_ 0 or 1. */
#define BOARD_OPTIONS(X)                                                                                       \
    X(architecture)         /* NVML's number: 4 Pascal, 5 Volta, 7 Ampere, 9 Hopper */                         \
    X(usage_is_instant)     /* power usage is momentary, as before Ampere and on GA100, else a mean over 1 s */ \
    X(has_counter)                                                                                             \
    X(has_memory_locks)                                                                                        \
    X(has_mig)              /* the model knows MIG at all */                                                   \
    X(mig_instances)        /* MIG is on where above 0 */                                                      \
    X(min_limit_watts)                                                                                         \
    X(max_limit_watts)                                                                                         \
    X(default_limit_watts)                                                                                     \
    X(out_of_band_watts)    /* a limit set by the board's management controller; 0: none */                    \
    X(ignores_limit)        /* the limit setter succeeds and does nothing */                                   \
    X(limit_latency_s)      /* from a set limit to its effect on power */                                      \
    X(clock_latency_s)      /* from a set lock to its effect on clocks */                                      \
    X(switch_stalls)        /* nothing runs while a set lock is not in force, else work goes on at the clocks before */ \
    X(stall_watts)          /* power meanwhile */                                                              \
    X(idle_watts)                                                                                              \
    X(core_share)           /* of the power above idle that follows the core clock, in programs of watts */    \
    X(compute_use)          /* how busy cores are in programs of watts: 1 is bound by them */                  \
    X(memory_use)           /* how busy memory is in programs of watts */                                      \
    X(compute_watts)        /* power of fully busy cores at the top clock */                                   \
    X(memory_watts)         /* power of fully busy memory at the top clock */                                  \
    X(tick_s)               /* period of the energy counter */                                                 \
    X(tick_phase_s)                                                                                            \
    X(counter_gain)         /* what the counter counts of each true joule */                                   \
    X(sample_phase_s)       /* of the sample lattice */                                                        \
    X(sensor_tau_s)         /* time constant of the first-order low pass; 0: none */                           \
    X(sensor_delay_s)                                                                                          \
    X(sensor_window_s)      /* samples are means over this instead of the low pass; 0: low pass */             \
    X(instant_window_s)     /* the same for instant power */                                                   \
    X(late_share)           /* of samples with a stamp 1 to 24 ms late */                                      \
    X(missing_share)        /* of samples that are not there */                                                \
    X(is_buffer_frozen)     /* no new samples */                                                               \
    X(forced_reasons)       /* clock event reasons beside idle and the power cap: 0x20 SW thermal, ... */      \
    X(temperature_celsius)

struct options {
#define X(name) double name;
    BOARD_OPTIONS(X)
#undef X
};

/* A set value that takes effect at due_ns. */
struct knob {
    double in_force, next;
    int64_t due_ns;
};

enum program { CONSTANT, SQUARE, STEPS, UTILISATION };

struct load {
    enum program program;
    double watts;                                /* constant */
    double low_watts, high_watts;                /* square wave: high first */
    int64_t period_ns, high_ns, start_ns;        /* start_ns: of the wave, and zero of the steps */
    double compute, memory;                      /* utilisation, 0 to 1 */
    uint32_t steps, step;                        /* number of steps, and how many have begun */
    int64_t step_ns[MAX_STEPS];
    double step_watts[MAX_STEPS];
};

/* Measured speed and power under each limit, instead of the physics; limits rise. */
struct curve {
    uint32_t points;
    double limit_watts[MAX_CURVE], speed[MAX_CURVE], watts[MAX_CURVE];
};

struct sample {
    int64_t stamp_ns;  /* on the state's clock: not seen before */
    uint64_t stamp_us; /* since 1970, as the driver tells it */
    double watts;
};

struct process {
    uint32_t pid;
    uint64_t memory_bytes;
    uint32_t sm_percent, memory_percent;
};

struct board {
    uint32_t index, is_ga100;
    char name[96], uuid[80], pci[32];
    uint32_t core_top_mhz, core_low_mhz, core_step_mhz, memory_clocks;
    uint32_t memory_mhz[8]; /* highest first */
    struct options is;
    struct load load;
    struct curve curve;

    /* set by root */
    double requested_watts;
    uint32_t persistence, core_lock_mhz[2], memory_lock_mhz[2]; /* 0, 0: no lock */
    struct knob limit, core_floor, core_ceiling, memory_ceiling;

    /* followed through time */
    int64_t at_ns;
    double watts, speed, joules, work_s, counted_joules, ticked_joules, filtered_watts, instant_watts, mean_watts;
    uint32_t core_mhz, memory_now_mhz, reasons;
    uint64_t reason_ns[REASONS_TIMED];
    uint64_t breakpoints; /* in history, ever */
    struct { int64_t at_ns; double joules; } history[HISTORY_KEPT];
    uint64_t sampled;     /* samples ever */
    struct sample samples[SAMPLES_KEPT];

    uint32_t processes;
    struct process process[MAX_PROCESSES];
};

struct rule {
    char function[64]; /* without _v2, "*" for every function of a board, or "field:186" */
    int board, code;   /* board -1: any */
    uint32_t from_call, calls;
};

struct log_entry {
    char function[64];
    int32_t pid, board, code, unused;
    double first, second; /* arguments in house units: W, MHz, 0 or 1 */
    int64_t at_ns;
};

struct state {
    uint32_t magic, boards, is_virtual;
    int root; /* 1, 0, or -1: as the process */
    int64_t virtual_ns, epoch_ns, zero_ns;
    char driver[80];
    pthread_mutex_t mutex;
    uint32_t rules, logged;
    struct rule rule[MAX_RULES];
    struct log_entry log[MAX_LOG];
    struct board board[MAX_BOARDS];
};

extern struct state *S;

/* models.c */
bool model_board(struct board *b, uint32_t index, const char *model);

/* state.c */
ret_t open_state(const char *path, const char *models, bool is_virtual);
void ensure_state(void);
void lock_state(void);
void unlock_state(int *unused);
int64_t now_ns(void);
uint64_t wall_us(int64_t at_ns);
bool may_set(void);
ret_t add_rule(int board, const char *function, int code, uint32_t from_call);
ret_t failure(const char *function, int board);
void log_setter(const char *function, int board, double first, double second, ret_t code);

/* physics.c */
void warm_up(struct board *b);
void settle(struct board *b, int64_t to_ns);
void settle_all(void);
double enforced_watts(const struct board *b);
void set_knob(struct knob *k, double value, double latency_s);

/* system.c: every call on a board begins with BOARD, which ends the call where it is refused, and locks the state. */
ret_t enter(const char *function, void *handle, struct board **board, int *instance);
void drop_driver_settings(struct board *b);
#define DRIVER                                                                \
    ret_t refused_ = enter(__func__, NULL, NULL, NULL);                       \
    int held_ __attribute__((cleanup(unlock_state), unused)) = 0;             \
    if (refused_) return refused_;
#define BOARD_OR_INSTANCE(handle)                                             \
    struct board *b = NULL;                                                   \
    int instance = -1;                                                        \
    ret_t refused_ = enter(__func__, handle, &b, &instance);                  \
    int held_ __attribute__((cleanup(unlock_state), unused)) = 0;             \
    if (refused_) return refused_;
#define BOARD(handle)                                                         \
    BOARD_OR_INSTANCE(handle)                                                 \
    if (instance >= 0) return NOT_SUPPORTED;

#endif
