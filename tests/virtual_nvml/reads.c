/* What a board reports: energy, power, samples, fields, limits, clocks. Here values leave in NVML's units. */
#include "virtual_nvml.h"

#include <math.h>
#include <stdio.h>

typedef unsigned long long ull_t;

static uint32_t milli(double value) { return (uint32_t)llround(value * 1000); }

/* ---- energy and power ---- */

static ull_t counted_mj(const struct board *b) { return (ull_t)llround(b->ticked_joules * 1000); }

NEWER ret_t nvmlDeviceGetTotalEnergyConsumption(void *handle, ull_t *mj)
{
    BOARD(handle)
    if (!b->is.has_counter) return NOT_SUPPORTED;
    *mj = counted_mj(b);
    return OK;
}

API ret_t nvmlDeviceGetPowerUsage(void *handle, uint32_t *mw)
{
    BOARD(handle)
    *mw = milli(b->is.usage_is_instant ? b->instant_watts : b->mean_watts);
    return OK;
}

union value {
    double as_double;
    uint32_t as_uint;
    ull_t as_ull;
};
enum { VALUE_UINT = 1, VALUE_ULL = 3 };

struct power_sample {
    ull_t stamp_us;
    union value mw;
};

/* The newest 119 or 120 samples, of those the ones after a stamp; without a buffer for them only their number. */
NEWER ret_t nvmlDeviceGetSamples(void *handle, int kind, ull_t since_us, uint32_t *value_type, uint32_t *count, struct power_sample *out)
{
    BOARD(handle)
    if (kind != 0) return NOT_SUPPORTED; /* 0: total power */
    uint64_t end = b->sampled;
#define SAMPLE(i) b->samples[(i) % SAMPLES_KEPT]
    while (end && SAMPLE(end - 1).stamp_ns > b->at_ns) end--;
    uint64_t kept = SAMPLES_KEPT - 1 + end % 2, oldest = b->sampled > SAMPLES_KEPT ? b->sampled - SAMPLES_KEPT : 0;
    uint64_t begin = end > oldest + kept ? end - kept : oldest;
    while (begin < end && SAMPLE(begin).stamp_us <= since_us) begin++;
    if (begin >= end) return NOT_FOUND;
    *value_type = VALUE_UINT;
    if (out && *count < end - begin) end = begin + *count;
    for (uint64_t i = begin; out && i < end; i++) out[i - begin] = (struct power_sample){SAMPLE(i).stamp_us, {.as_uint = milli(SAMPLE(i).watts)}};
    *count = (uint32_t)(end - begin);
#undef SAMPLE
    return OK;
}

/* ---- fields ---- */

struct field {
    uint32_t id, scope;
    int64_t stamp_us, latency_us;
    uint32_t value_type, code;
    union value value;
};

enum {
    FIELD_SW_POWER_CAP_NS = 74, FIELD_SYNC_BOOST_NS = 76, FIELD_ENERGY = 83,
    FIELD_POWER_MEAN = 185, FIELD_POWER_INSTANT, FIELD_LIMIT_MIN, FIELD_LIMIT_MAX, FIELD_LIMIT_DEFAULT, FIELD_LIMIT_ENFORCED,
    FIELD_SCOPED_ENERGY, FIELD_LIMIT_REQUESTED,
    FIELD_SW_THERMAL_NS = 269, FIELD_HW_THERMAL_NS, FIELD_POWER_BRAKE_NS
};

static uint32_t reason_place(uint32_t id)
{
    return id == FIELD_SW_POWER_CAP_NS ? 0 : id == FIELD_SYNC_BOOST_NS ? 1 : id - FIELD_SW_THERMAL_NS + 2;
}

static void answer(const struct board *b, struct field *f)
{
    const struct options *is = &b->is;
    f->code = OK, f->value_type = VALUE_UINT, f->value.as_ull = 0;
    f->stamp_us = (int64_t)wall_us(b->at_ns), f->latency_us = 5;
    switch (f->id) {
    case FIELD_POWER_INSTANT: f->value.as_uint = milli(b->instant_watts); break;
    case FIELD_LIMIT_MIN: f->value.as_uint = milli(is->min_limit_watts); break;
    case FIELD_LIMIT_MAX: f->value.as_uint = milli(is->max_limit_watts); break;
    case FIELD_LIMIT_DEFAULT: f->value.as_uint = milli(is->default_limit_watts); break;
    case FIELD_LIMIT_ENFORCED: f->value.as_uint = milli(enforced_watts(b)); break;
    case FIELD_LIMIT_REQUESTED: f->value.as_uint = milli(b->requested_watts); break;
    case FIELD_POWER_MEAN:
        if (is->usage_is_instant) f->code = NOT_SUPPORTED;
        else f->value.as_uint = milli(b->mean_watts);
        break;
    case FIELD_ENERGY:
    case FIELD_SCOPED_ENERGY:
        f->value_type = VALUE_ULL;
        if (is->has_counter) f->value.as_ull = counted_mj(b);
        else f->code = NOT_SUPPORTED;
        break;
    case FIELD_SW_POWER_CAP_NS:
    case FIELD_SYNC_BOOST_NS:
    case FIELD_SW_THERMAL_NS:
    case FIELD_HW_THERMAL_NS:
    case FIELD_POWER_BRAKE_NS: f->value_type = VALUE_ULL, f->value.as_ull = b->reason_ns[reason_place(f->id)]; break;
    default: f->code = NOT_SUPPORTED;
    }
    if (f->scope != 0 && f->id >= FIELD_POWER_MEAN && f->id <= FIELD_LIMIT_REQUESTED) f->code = NOT_SUPPORTED; /* 0: the board alone */
}

NEWER ret_t nvmlDeviceGetFieldValues(void *handle, int count, struct field *fields)
{
    BOARD(handle)
    if (!fields) return INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        char name[24];
        snprintf(name, sizeof name, "field:%u", fields[i].id);
        answer(b, &fields[i]);
        ret_t code = failure(name, (int)b->index);
        if (code) fields[i].code = code;
    }
    return OK;
}

/* ---- limits ---- */

API ret_t nvmlDeviceGetPowerManagementLimit(void *handle, uint32_t *mw)
{
    BOARD(handle)
    *mw = milli(b->requested_watts);
    return OK;
}

API ret_t nvmlDeviceGetEnforcedPowerLimit(void *handle, uint32_t *mw)
{
    BOARD(handle)
    *mw = milli(enforced_watts(b));
    return OK;
}

API ret_t nvmlDeviceGetPowerManagementDefaultLimit(void *handle, uint32_t *mw)
{
    BOARD(handle)
    *mw = milli(b->is.default_limit_watts);
    return OK;
}

API ret_t nvmlDeviceGetPowerManagementLimitConstraints(void *handle, uint32_t *min_mw, uint32_t *max_mw)
{
    BOARD(handle)
    *min_mw = milli(b->is.min_limit_watts), *max_mw = milli(b->is.max_limit_watts);
    return OK;
}

API ret_t nvmlDeviceGetPersistenceMode(void *handle, uint32_t *mode)
{
    BOARD(handle)
    *mode = b->persistence;
    return OK;
}

/* ---- clocks ---- */

enum { CLOCK_MEMORY = 2, CLOCK_VIDEO = 3 };

API ret_t nvmlDeviceGetClockInfo(void *handle, uint32_t kind, uint32_t *mhz)
{
    BOARD(handle)
    if (kind > CLOCK_VIDEO) return INVALID_ARGUMENT;
    *mhz = kind == CLOCK_MEMORY ? b->memory_now_mhz : b->core_mhz;
    return OK;
}

API ret_t nvmlDeviceGetMaxClockInfo(void *handle, uint32_t kind, uint32_t *mhz)
{
    BOARD(handle)
    if (kind > CLOCK_VIDEO) return INVALID_ARGUMENT;
    *mhz = kind == CLOCK_MEMORY ? b->memory_mhz[0] : b->core_top_mhz;
    return OK;
}

API ret_t nvmlDeviceGetSupportedMemoryClocks(void *handle, uint32_t *count, uint32_t *mhz)
{
    BOARD(handle)
    uint32_t room = mhz ? *count : 0;
    *count = b->memory_clocks;
    if (room < b->memory_clocks) return INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < b->memory_clocks; i++) mhz[i] = b->memory_mhz[i];
    return OK;
}

API ret_t nvmlDeviceGetSupportedGraphicsClocks(void *handle, uint32_t memory_mhz, uint32_t *count, uint32_t *mhz)
{
    BOARD(handle)
    bool is_known = false;
    for (uint32_t i = 0; i < b->memory_clocks; i++) is_known |= b->memory_mhz[i] == memory_mhz;
    if (!is_known) return NOT_FOUND;
    uint32_t room = mhz ? *count : 0, clocks = (b->core_top_mhz - b->core_low_mhz) / b->core_step_mhz + 1;
    *count = clocks;
    if (room < clocks) return INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < clocks; i++) mhz[i] = b->core_top_mhz - i * b->core_step_mhz;
    return OK;
}

static ret_t reasons_of(const struct board *b, ull_t *reasons)
{
    *reasons = b->reasons;
    return OK;
}

NEWER ret_t nvmlDeviceGetCurrentClocksEventReasons(void *handle, ull_t *reasons) { BOARD(handle) return reasons_of(b, reasons); }

/* The name of the same before driver 535. */
API ret_t nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, ull_t *reasons) { BOARD(handle) return reasons_of(b, reasons); }

API ret_t nvmlDeviceGetPerformanceState(void *handle, uint32_t *state)
{
    BOARD(handle)
    *state = b->reasons & REASON_IDLE ? 8 : 0;
    return OK;
}

API ret_t nvmlDeviceGetUtilizationRates(void *handle, uint32_t percent[2])
{
    BOARD(handle)
    bool is_idle = b->reasons & REASON_IDLE, is_told = b->load.program == UTILISATION;
    percent[0] = is_idle ? 0 : (uint32_t)lround(100 * (is_told ? b->load.compute : b->is.compute_use));
    percent[1] = is_idle ? 0 : (uint32_t)lround(100 * (is_told ? b->load.memory : b->is.memory_use));
    return OK;
}

API ret_t nvmlDeviceGetTemperature(void *handle, uint32_t sensor, uint32_t *celsius)
{
    BOARD(handle)
    if (sensor != 0) return INVALID_ARGUMENT;
    *celsius = (uint32_t)b->is.temperature_celsius;
    return OK;
}
