/* What root may change. Every attempt is logged, also those that are refused. */
#include "virtual_nvml.h"

static ret_t logged(const char *function, const struct board *b, double first, double second, ret_t code)
{
    log_setter(function, (int)b->index, first, second, code);
    return code;
}

#define SETTER(handle, first, second)                                                  \
    BOARD(handle)                                                                      \
    if (!may_set()) return logged(__func__, b, first, second, NO_PERMISSION);
#define DONE(first, second, code) return logged(__func__, b, first, second, code)

API ret_t nvmlDeviceSetPowerManagementLimit(void *handle, uint32_t mw)
{
    double watts = mw / 1000.0;
    SETTER(handle, watts, 0)
    if (watts < b->is.min_limit_watts || watts > b->is.max_limit_watts) DONE(watts, 0, INVALID_ARGUMENT);
    if (!b->is.ignores_limit) {
        b->requested_watts = watts;
        set_knob(&b->limit, watts, b->is.limit_latency_s);
    }
    DONE(watts, 0, OK);
}

struct power_value {
    uint32_t version;
    uint8_t scope;
    uint32_t mw;
};

NEWER ret_t nvmlDeviceSetPowerManagementLimit_v2(void *handle, const struct power_value *value)
{
    if (!value) return INVALID_ARGUMENT;
    return value->scope ? NOT_SUPPORTED : nvmlDeviceSetPowerManagementLimit(handle, value->mw);
}

API ret_t nvmlDeviceSetPersistenceMode(void *handle, uint32_t mode)
{
    SETTER(handle, mode, 0)
    b->persistence = mode != 0;
    DONE(mode, 0, OK);
}

/* The highest clock of the menu that is not above. */
static uint32_t on_menu(const struct board *b, uint32_t mhz)
{
    uint32_t within = mhz > b->core_top_mhz ? b->core_top_mhz : mhz < b->core_low_mhz ? b->core_low_mhz : mhz;
    return within - (within - b->core_low_mhz) % b->core_step_mhz;
}

NEWER ret_t nvmlDeviceSetGpuLockedClocks(void *handle, uint32_t low_mhz, uint32_t high_mhz)
{
    SETTER(handle, low_mhz, high_mhz)
    if (low_mhz > high_mhz || high_mhz < b->core_low_mhz) DONE(low_mhz, high_mhz, INVALID_ARGUMENT);
    b->core_lock_mhz[0] = low_mhz, b->core_lock_mhz[1] = high_mhz;
    set_knob(&b->core_floor, on_menu(b, low_mhz), b->is.clock_latency_s);
    set_knob(&b->core_ceiling, on_menu(b, high_mhz), b->is.clock_latency_s);
    DONE(low_mhz, high_mhz, OK);
}

NEWER ret_t nvmlDeviceResetGpuLockedClocks(void *handle)
{
    SETTER(handle, 0, 0)
    b->core_lock_mhz[0] = b->core_lock_mhz[1] = 0;
    set_knob(&b->core_floor, b->core_low_mhz, b->is.clock_latency_s);
    set_knob(&b->core_ceiling, b->core_top_mhz, b->is.clock_latency_s);
    DONE(0, 0, OK);
}

NEWER ret_t nvmlDeviceSetMemoryLockedClocks(void *handle, uint32_t low_mhz, uint32_t high_mhz)
{
    SETTER(handle, low_mhz, high_mhz)
    if (!b->is.has_memory_locks) DONE(low_mhz, high_mhz, NOT_SUPPORTED);
    uint32_t ceiling = 0;
    for (uint32_t i = 0; i < b->memory_clocks && !ceiling; i++)
        if (b->memory_mhz[i] <= high_mhz) ceiling = b->memory_mhz[i];
    if (low_mhz > high_mhz || !ceiling) DONE(low_mhz, high_mhz, INVALID_ARGUMENT);
    b->memory_lock_mhz[0] = low_mhz, b->memory_lock_mhz[1] = high_mhz;
    set_knob(&b->memory_ceiling, ceiling, b->is.clock_latency_s);
    DONE(low_mhz, high_mhz, OK);
}

NEWER ret_t nvmlDeviceResetMemoryLockedClocks(void *handle)
{
    SETTER(handle, 0, 0)
    if (!b->is.has_memory_locks) DONE(0, 0, NOT_SUPPORTED);
    b->memory_lock_mhz[0] = b->memory_lock_mhz[1] = 0;
    set_knob(&b->memory_ceiling, b->memory_mhz[0], b->is.clock_latency_s);
    DONE(0, 0, OK);
}
