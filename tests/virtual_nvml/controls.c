/* What only a test calls. Every control first brings the boards to now, so that the past stays as it was. */
#define _GNU_SOURCE
#include "virtual_nvml.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define STATE                                                                 \
    ensure_state();                                                           \
    int held_ __attribute__((cleanup(unlock_state), unused)) = 0;             \
    lock_state();                                                             \
    settle_all();
#define CONTROL(i)                                                            \
    STATE                                                                     \
    if ((i) >= S->boards) return INVALID_ARGUMENT;                            \
    struct board *b = &S->board[i];

static int64_t ns(double seconds) { return (int64_t)llround(seconds * SECOND); }

/* ---- the state and its clock ---- */

API ret_t nvmlVirtualOpen(const char *path, const char *models, int is_virtual) { return open_state(path, models, is_virtual); }

API ret_t nvmlVirtualAdvance(double seconds)
{
    STATE
    if (!S->is_virtual || seconds < 0) return INVALID_ARGUMENT;
    S->virtual_ns += ns(seconds);
    return OK;
}

/* Time since the state was created, and the wall clock. [ns] */
API ret_t nvmlVirtualNow(int64_t *at_ns, int64_t *wall_ns)
{
    STATE
    *at_ns = now_ns();
    *wall_ns = S->is_virtual ? S->epoch_ns + *at_ns : (int64_t)wall_us(*at_ns) * 1000;
    return OK;
}

/* Set the wall clock of virtual time: what it showed at time 0. */
API ret_t nvmlVirtualEpoch(int64_t epoch_ns)
{
    STATE
    S->epoch_ns = epoch_ns;
    return OK;
}

/* 1: setters are allowed, 0: they are not, -1: by the user of the process. */
API ret_t nvmlVirtualRoot(int root)
{
    STATE
    S->root = root;
    return OK;
}

API ret_t nvmlVirtualFail(int board, const char *function, int code, uint32_t from_call) { STATE return add_rule(board, function, code, from_call); }

API ret_t nvmlVirtualLog(uint32_t place, struct log_entry *entry)
{
    STATE
    uint32_t oldest = S->logged > MAX_LOG ? S->logged - MAX_LOG : 0;
    if (oldest + place >= S->logged) return NOT_FOUND;
    *entry = S->log[(oldest + place) % MAX_LOG];
    return OK;
}

/* ---- a board ---- */

static double *option(struct options *is, const char *name)
{
#define X(one) \
    if (!strcmp(name, #one)) return &is->one;
    BOARD_OPTIONS(X)
#undef X
    return NULL;
}

static bool is_sensible(const struct board *b, const double *place, double value)
{
    if (place == &b->is.tick_s) return value > 0;
    if (place == &b->is.mig_instances) return value >= 0 && value <= (b->is.has_mig ? MAX_MIGS : 0);
    if (place == &b->is.sensor_window_s || place == &b->is.instant_window_s) return value >= 0 && value <= 1; /* what the history holds */
    return value >= 0;
}

API ret_t nvmlVirtualSet(uint32_t i, const char *name, double value)
{
    CONTROL(i)
    double *place = option(&b->is, name);
    if (!place) return NOT_FOUND;
    if (!is_sensible(b, place, value)) return INVALID_ARGUMENT;
    *place = value;
    return OK;
}

API ret_t nvmlVirtualName(uint32_t i, const char *name, const char *uuid)
{
    CONTROL(i)
    if (name) snprintf(b->name, sizeof b->name, "%s", name);
    if (uuid) snprintf(b->uuid, sizeof b->uuid, "%s", uuid);
    return OK;
}

API ret_t nvmlVirtualConstant(uint32_t i, double watts)
{
    CONTROL(i)
    b->load = (struct load){.program = CONSTANT, .watts = watts};
    return OK;
}

/* High for `duty` of each period, low for the rest; the first high phase begins phase_s after now. */
API ret_t nvmlVirtualSquare(uint32_t i, double low_watts, double high_watts, double period_s, double duty, double phase_s)
{
    CONTROL(i)
    int64_t period_ns = ns(period_s);
    if (period_ns < SECOND / 1000 || duty < 0 || duty > 1) return INVALID_ARGUMENT; /* the history holds a second of 1 ms periods */
    b->load = (struct load){.program = SQUARE, .low_watts = low_watts, .high_watts = high_watts, .period_ns = period_ns,
                            .high_ns = (int64_t)llround(duty * (double)period_ns), .start_ns = b->at_ns + ns(phase_s)};
    return OK;
}

/* From times_s[k] after now on the board draws watts[k]; before the first it idles. */
API ret_t nvmlVirtualSteps(uint32_t i, uint32_t count, const double *times_s, const double *watts)
{
    CONTROL(i)
    if (count > MAX_STEPS) return INSUFFICIENT_SIZE;
    b->load = (struct load){.program = STEPS, .steps = count, .start_ns = b->at_ns};
    for (uint32_t k = 0; k < count; k++) {
        if (k && times_s[k] <= times_s[k - 1]) return INVALID_ARGUMENT;
        b->load.step_ns[k] = ns(times_s[k]), b->load.step_watts[k] = watts[k];
    }
    return OK;
}

API ret_t nvmlVirtualUtilisation(uint32_t i, double compute, double memory)
{
    CONTROL(i)
    if (compute < 0 || compute > 1 || memory < 0 || memory > 1) return INVALID_ARGUMENT;
    b->load = (struct load){.program = UTILISATION, .compute = compute, .memory = memory};
    return OK;
}

/* Speed and power of a busy board by its limit, limits rising; no points: by the physics again. */
API ret_t nvmlVirtualCurve(uint32_t i, uint32_t count, const double *limit_watts, const double *speed, const double *watts)
{
    CONTROL(i)
    if (count > MAX_CURVE) return INSUFFICIENT_SIZE;
    for (uint32_t k = 1; k < count; k++)
        if (limit_watts[k] <= limit_watts[k - 1]) return INVALID_ARGUMENT;
    b->curve.points = count;
    for (uint32_t k = 0; k < count; k++)
        b->curve.limit_watts[k] = limit_watts[k], b->curve.speed[k] = speed[k], b->curve.watts[k] = watts[k];
    return OK;
}

API ret_t nvmlVirtualProcesses(uint32_t i, uint32_t count, const struct process *processes)
{
    CONTROL(i)
    if (count > MAX_PROCESSES) return INSUFFICIENT_SIZE;
    if (count) memcpy(b->process, processes, count * sizeof *processes);
    b->processes = count;
    return OK;
}

API ret_t nvmlVirtualResetCounter(uint32_t i)
{
    CONTROL(i)
    b->counted_joules = b->ticked_joules = 0;
    return OK;
}

/* Unload and load the driver: settings are gone, the counter starts again. */
API ret_t nvmlVirtualReload(uint32_t i)
{
    CONTROL(i)
    drop_driver_settings(b);
    b->counted_joules = b->ticked_joules = 0;
    return OK;
}

/* Somebody else sets the limit: a service, an administrator. */
API ret_t nvmlVirtualSetLimit(uint32_t i, double watts)
{
    CONTROL(i)
    b->requested_watts = watts;
    set_knob(&b->limit, watts, 0);
    return OK;
}

/* ---- the truth ---- */

struct truth {
    double joules, watts, speed, work_s, requested_watts, enforced_watts, persistence;
    double core_lock_low_mhz, core_lock_high_mhz, memory_lock_low_mhz, memory_lock_high_mhz, core_mhz, memory_mhz;
};

API ret_t nvmlVirtualPeek(uint32_t i, struct truth *t)
{
    CONTROL(i)
    *t = (struct truth){b->joules, b->watts, b->speed, b->work_s, b->requested_watts, enforced_watts(b), b->persistence,
                        b->core_lock_mhz[0], b->core_lock_mhz[1], b->memory_lock_mhz[0], b->memory_lock_mhz[1], b->core_mhz, b->memory_now_mhz};
    return OK;
}

static double work_of(uint32_t i, double *speed)
{
    STATE
    *speed = S->board[i].reasons & REASON_IDLE ? 0 : S->board[i].speed;
    return S->board[i].work_s;
}

/* Do work that takes `work_s` at full clocks; time passes, more of it where the board is capped. A board that idles for a minute gives up. */
API ret_t nvmlVirtualWork(uint32_t i, double work_s)
{
    ensure_state();
    if (i >= S->boards) return INVALID_ARGUMENT;
    double speed, idle_s = 0, end = work_of(i, &speed) + work_s, left;
    while ((left = end - work_of(i, &speed)) > 1e-9) {
        double step_s = fmin(0.001, speed > 0 ? left / speed + 1e-9 : 0.00002);
        struct timespec real = {0, (long)ns(step_s)};
        idle_s = speed > 0 ? 0 : idle_s + step_s;
        if (idle_s > 60) return NOT_FOUND;
        if (S->is_virtual) nvmlVirtualAdvance(step_s);
        else nanosleep(&real, NULL);
    }
    return OK;
}
