/* What happens on a board between two moments: piecewise constant power, so energy and the low pass are exact. */
#include "virtual_nvml.h"

#include <math.h>

#define WARM_UP (3 * SECOND) /* history before time 0: the buffer and the one-second mean are full from the start */

static int64_t ns(double seconds) { return (int64_t)llround(seconds * SECOND); }
static double seconds(int64_t ns) { return (double)ns / SECOND; }

static int64_t into_period(int64_t t, int64_t period)
{
    int64_t rest = t % period;
    return rest < 0 ? rest + period : rest;
}

/* The first point of a lattice after a moment. */
static int64_t lattice_after(int64_t t, int64_t period, int64_t phase) { return t + period - into_period(t - phase, period); }

static bool is_on_lattice(int64_t t, int64_t period, int64_t phase) { return into_period(t - phase, period) == 0; }

/* ---- load ---- */

/* What the load asks for at full clocks. [W], utilisations 0 to 1. In programs of watts all that is above idle is work. */
struct demand {
    double still_watts, core_watts, memory_watts, compute, memory;
};

static double programmed_watts(struct board *b)
{
    struct load *load = &b->load;
    if (load->program == CONSTANT) return load->watts;
    if (load->program == SQUARE)
        return into_period(b->at_ns - load->start_ns, load->period_ns) < load->high_ns ? load->high_watts : load->low_watts;
    while (load->step < load->steps && load->start_ns + load->step_ns[load->step] <= b->at_ns) load->step++;
    return load->step ? load->step_watts[load->step - 1] : b->is.idle_watts;
}

static struct demand demand_now(struct board *b)
{
    const struct options *is = &b->is;
    if (b->load.program == UTILISATION) {
        double compute = b->load.compute, memory = b->load.memory;
        return (struct demand){is->idle_watts, compute * is->compute_watts, memory * is->memory_watts, compute, memory};
    }
    double watts = programmed_watts(b), above = watts - is->idle_watts;
    if (above <= 0) return (struct demand){watts, 0, 0, 0, 0};
    return (struct demand){is->idle_watts, is->core_share * above, (1 - is->core_share) * above, is->compute_use, is->memory_use};
}

static int64_t next_edge(const struct board *b)
{
    const struct load *load = &b->load;
    if (load->program == SQUARE) {
        int64_t into = into_period(b->at_ns - load->start_ns, load->period_ns);
        return b->at_ns + (into < load->high_ns ? load->high_ns : load->period_ns) - into;
    }
    if (load->program == STEPS && load->step < load->steps) return load->start_ns + load->step_ns[load->step];
    return NEVER;
}

/* ---- clocks and limiter ---- */

void set_knob(struct knob *k, double value, double latency_s)
{
    *k = (struct knob){k->in_force, value, now_ns() + ns(latency_s)};
    if (latency_s <= 0) *k = (struct knob){value, value, NEVER};
}

static void turn(struct knob *k, int64_t at_ns)
{
    if (k->due_ns <= at_ns) *k = (struct knob){k->next, k->next, NEVER};
}

double enforced_watts(const struct board *b)
{
    double other = b->is.out_of_band_watts;
    return other > 0 && other < b->requested_watts ? other : b->requested_watts;
}

static double limit_in_force(const struct board *b)
{
    double other = b->is.out_of_band_watts;
    return other > 0 && other < b->limit.in_force ? other : b->limit.in_force;
}

/* Dynamic power of the cores at a clock, as a share of that at the top: f V^2, with V flat below 55 % of the top clock. */
static double core_power_share(const struct board *b, double mhz)
{
    double f = mhz / b->core_top_mhz, volts = f < 0.55 ? 0.72 : 0.72 + 0.38 * (f - 0.55) / 0.45;
    return f * (volts / 1.10) * (volts / 1.10);
}

/* Speed relative to full clocks: the busier of cores and memory sets the pace. */
static double speed_at(const struct board *b, const struct demand *d, double core_mhz, double memory_mhz)
{
    double pace = fmax(d->compute * b->core_top_mhz / core_mhz, d->memory * b->memory_mhz[0] / memory_mhz);
    return 1 / fmax(1.0, pace);
}

static double watts_at(const struct board *b, const struct demand *d, double core_mhz, double memory_mhz)
{
    double traffic = speed_at(b, d, core_mhz, memory_mhz) * memory_mhz / b->memory_mhz[0];
    return d->still_watts + d->core_watts * core_power_share(b, core_mhz) + d->memory_watts * traffic;
}

static double between(double x, const double *xs, const double *ys, uint32_t n)
{
    if (x <= xs[0]) return ys[0];
    for (uint32_t i = 1; i < n; i++)
        if (x <= xs[i]) return ys[i - 1] + (ys[i] - ys[i - 1]) * (x - xs[i - 1]) / (xs[i] - xs[i - 1]);
    return ys[n - 1];
}

static void run_by_curve(struct board *b, const struct demand *d, bool is_busy)
{
    const struct curve *c = &b->curve;
    double limit = limit_in_force(b), top = c->speed[c->points - 1];
    b->speed = is_busy ? between(limit, c->limit_watts, c->speed, c->points) : 1;
    b->watts = is_busy ? between(limit, c->limit_watts, c->watts, c->points) : d->still_watts;
    b->core_mhz = is_busy ? (uint32_t)(b->core_top_mhz * fmin(1.0, b->speed / top)) : b->core_low_mhz;
    b->reasons |= is_busy && b->speed < top ? REASON_SW_POWER_CAP : 0;
}

static uint32_t mhz_of(const struct board *b, uint32_t place) { return b->core_low_mhz + place * b->core_step_mhz; }

/* The highest clock of the menu under the lock whose power the limit allows; the lowest one where none does. */
static void run_by_physics(struct board *b, const struct demand *d)
{
    double limit = limit_in_force(b) + 1e-9, memory_mhz = b->memory_now_mhz;
    uint32_t top = ((uint32_t)b->core_ceiling.in_force - b->core_low_mhz) / b->core_step_mhz;
    uint32_t high = top, low = watts_at(b, d, mhz_of(b, top), memory_mhz) <= limit ? top : 0;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (watts_at(b, d, mhz_of(b, middle), memory_mhz) <= limit) low = middle;
        else high = middle - 1;
    }
    b->core_mhz = mhz_of(b, low);
    b->speed = speed_at(b, d, b->core_mhz, memory_mhz);
    b->watts = watts_at(b, d, b->core_mhz, memory_mhz);
    b->reasons |= low < top ? REASON_SW_POWER_CAP : 0;
}

static bool waits_for_clocks(const struct board *b)
{
    return b->is.switch_stalls && (b->core_ceiling.due_ns != NEVER || b->memory_ceiling.due_ns != NEVER);
}

/* Power, speed and clocks until the next event. */
static void run(struct board *b)
{
    turn(&b->limit, b->at_ns), turn(&b->core_floor, b->at_ns), turn(&b->core_ceiling, b->at_ns), turn(&b->memory_ceiling, b->at_ns);
    struct demand d = demand_now(b);
    bool is_busy = d.compute > 0 || d.memory > 0;
    b->reasons = (uint32_t)b->is.forced_reasons | (is_busy ? 0 : REASON_IDLE);
    b->memory_now_mhz = (uint32_t)b->memory_ceiling.in_force;
    if (b->curve.points) {
        run_by_curve(b, &d, is_busy);
    } else if (is_busy) {
        run_by_physics(b, &d);
        if (waits_for_clocks(b)) b->speed = 0, b->watts = b->is.stall_watts;
    } else {
        b->core_mhz = (uint32_t)b->core_floor.in_force, b->speed = 1, b->watts = d.still_watts;
    }
}

/* ---- energy and sensors ---- */

static const uint32_t TIMED_REASONS[REASONS_TIMED] = {REASON_SW_POWER_CAP, 0x10, 0x20, 0x40, 0x80};

static void keep(struct board *b)
{
    uint64_t i = b->breakpoints++ % HISTORY_KEPT;
    b->history[i].at_ns = b->at_ns, b->history[i].joules = b->joules;
}

static void pass(struct board *b, int64_t to_ns)
{
    double dt = seconds(to_ns - b->at_ns), joules = b->watts * dt;
    b->joules += joules;
    b->counted_joules += b->is.counter_gain * joules;
    b->work_s += b->reasons & REASON_IDLE ? 0 : b->speed * dt;
    double left = b->is.sensor_tau_s > 0 ? exp(-dt / b->is.sensor_tau_s) : 0;
    b->filtered_watts = b->watts + (b->filtered_watts - b->watts) * left;
    for (int i = 0; i < REASONS_TIMED; i++)
        if (b->reasons & TIMED_REASONS[i]) b->reason_ns[i] += (uint64_t)(to_ns - b->at_ns);
    b->at_ns = to_ns;
    keep(b);
}

/* Energy at an earlier moment, exact between breakpoints. [J] */
static double joules_at(const struct board *b, int64_t at_ns)
{
#define POINT(i) b->history[(i) % HISTORY_KEPT]
    uint64_t low = b->breakpoints > HISTORY_KEPT ? b->breakpoints - HISTORY_KEPT : 0, high = b->breakpoints - 1;
    if (at_ns <= POINT(low).at_ns) return POINT(low).joules;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        if (POINT(middle).at_ns <= at_ns) low = middle;
        else high = middle;
    }
    double share = (double)(at_ns - POINT(low).at_ns) / (double)(POINT(high).at_ns - POINT(low).at_ns);
    return POINT(low).joules + share * (POINT(high).joules - POINT(low).joules);
#undef POINT
}

static double mean_watts(const struct board *b, double window_s)
{
    return (b->joules - joules_at(b, b->at_ns - ns(window_s))) / window_s;
}

/* 0 to 1, the same for the same slot of the same board (splitmix64). */
static double chance(const struct board *b, int64_t slot, uint64_t salt)
{
    uint64_t z = (uint64_t)slot * 0x9e3779b97f4a7c15ULL + ((uint64_t)b->index << 32) + (salt << 48);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (double)((z ^ (z >> 31)) >> 11) / (double)(1ULL << 53);
}

/* The sensor was read now; the driver gives the sample the stamp of the lattice point one delay later. */
static void sample(struct board *b)
{
    int64_t lattice_ns = b->at_ns + ns(b->is.sensor_delay_s), slot = lattice_ns / SAMPLE_PERIOD;
    if (b->is.is_buffer_frozen || chance(b, slot, 1) < b->is.missing_share) return;
    int64_t stamp_ns = lattice_ns;
    if (chance(b, slot, 2) < b->is.late_share) stamp_ns += ns(0.001 + 0.023 * chance(b, slot, 3));
    int64_t before_ns = b->sampled ? b->samples[(b->sampled - 1) % SAMPLES_KEPT].stamp_ns : stamp_ns - SECOND;
    if (stamp_ns <= before_ns) stamp_ns = before_ns + 100000; /* behind a very late one: stamps rise */
    double watts = b->is.sensor_window_s > 0 ? mean_watts(b, b->is.sensor_window_s) : b->filtered_watts;
    b->samples[b->sampled++ % SAMPLES_KEPT] = (struct sample){stamp_ns, wall_us(stamp_ns), watts};
}

/* Bring a board to a moment, from event to event: an edge of the load, a knob that turns, a read of a sensor. */
void settle(struct board *b, int64_t to_ns)
{
    const struct options *is = &b->is;
    int64_t tick = ns(is->tick_s), tick_phase = ns(is->tick_phase_s), sample_phase = ns(is->sample_phase_s - is->sensor_delay_s);
    while (b->at_ns < to_ns) {
        run(b);
        int64_t next = to_ns;
        const int64_t events[] = {
            next_edge(b), b->limit.due_ns, b->core_floor.due_ns, b->core_ceiling.due_ns, b->memory_ceiling.due_ns,
            lattice_after(b->at_ns, tick, tick_phase),
            lattice_after(b->at_ns, INSTANT_PERIOD, 0),
            lattice_after(b->at_ns, SAMPLE_PERIOD, sample_phase),
        };
        for (size_t i = 0; i < sizeof events / sizeof *events; i++)
            if (events[i] < next) next = events[i];
        pass(b, next);
        if (is_on_lattice(next, SAMPLE_PERIOD, sample_phase)) sample(b);
        if (is_on_lattice(next, tick, tick_phase)) b->ticked_joules = b->counted_joules;
        if (is_on_lattice(next, INSTANT_PERIOD, 0)) {
            b->instant_watts = is->instant_window_s > 0 ? mean_watts(b, is->instant_window_s) : b->filtered_watts;
            b->mean_watts = mean_watts(b, 1.0);
        }
    }
    run(b);
}

void settle_all(void)
{
    for (uint32_t i = 0; i < S->boards; i++) settle(&S->board[i], now_ns());
}

/* Let a new board run up to time 0, where its true energy is zero. */
void warm_up(struct board *b)
{
    b->at_ns = -WARM_UP;
    drop_driver_settings(b);
    run(b);
    b->filtered_watts = b->watts;
    b->joules = -b->watts * seconds(WARM_UP);
    b->counted_joules = 123456.789 + b->index; /* since the driver was loaded */
    keep(b);
    settle(b, 0);
    b->work_s = 0;
}
