/* The driver itself: start and stop, boards by handle, MIG instances, processes. */
#include "virtual_nvml.h"

#include <stdio.h>
#include <string.h>

static int users; /* of this process */

static void *handle_of(uint32_t board, int instance) { return (void *)(uintptr_t)(0x10000 + board * 0x100 + (uint32_t)(instance + 1)); }

static bool is_setter(const char *function)
{
    return !strncmp(function, "nvmlDeviceSet", 13) || !strncmp(function, "nvmlDeviceReset", 15);
}

/* Lock the state, find the board, bring it to now. The caller unlocks, whatever comes back. */
ret_t enter(const char *function, void *handle, struct board **board, int *instance)
{
    ensure_state();
    lock_state();
    if (!users) return UNINITIALIZED;
    if (!board) return failure(function, -1);

    uint64_t place = (uint64_t)(uintptr_t)handle - 0x10000;
    if (place / 0x100 >= S->boards) return INVALID_ARGUMENT;
    *board = &S->board[place / 0x100];
    *instance = (int)(place % 0x100) - 1;
    if (*instance >= (int)(*board)->is.mig_instances) return INVALID_ARGUMENT;
    ret_t code = failure(function, (int)(*board)->index);
    if (code && is_setter(function)) log_setter(function, (int)(*board)->index, 0, 0, code);
    settle(*board, now_ns());
    return code;
}

/* What is lost when the driver is unloaded: limit, locks, persistence. */
void drop_driver_settings(struct board *b)
{
    b->persistence = 0;
    b->requested_watts = b->is.default_limit_watts;
    b->core_lock_mhz[0] = b->core_lock_mhz[1] = b->memory_lock_mhz[0] = b->memory_lock_mhz[1] = 0;
    set_knob(&b->limit, b->requested_watts, 0);
    set_knob(&b->core_floor, b->core_low_mhz, 0);
    set_knob(&b->core_ceiling, b->core_top_mhz, 0);
    set_knob(&b->memory_ceiling, b->memory_mhz[0], 0);
}

static ret_t put(char *buffer, uint32_t size, const char *text)
{
    if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return OK;
}

/* ---- the driver ---- */

API ret_t nvmlInitWithFlags(uint32_t flags)
{
    (void)flags;
    ensure_state();
    int held __attribute__((cleanup(unlock_state), unused)) = 0;
    lock_state();
    ret_t code = failure(__func__, -1);
    if (code == OK) users++;
    return code;
}

API ret_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

API ret_t nvmlShutdown(void)
{
    DRIVER
    users--;
    return OK;
}

API const char *nvmlErrorString(ret_t code)
{
    static char text[32];
    snprintf(text, sizeof text, "virtual NVML error %d", (int)code);
    return text;
}

API ret_t nvmlSystemGetDriverVersion(char *buffer, uint32_t size) { DRIVER return put(buffer, size, S->driver); }

API ret_t nvmlSystemGetNVMLVersion(char *buffer, uint32_t size) { DRIVER return put(buffer, size, "13.580.159.04"); }

API ret_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    DRIVER
    *version = 13000;
    return OK;
}

/* ---- boards ---- */

API ret_t nvmlDeviceGetCount_v2(uint32_t *count)
{
    DRIVER
    *count = S->boards;
    return OK;
}

API ret_t nvmlDeviceGetHandleByIndex_v2(uint32_t index, void **handle)
{
    DRIVER
    if (index >= S->boards) return INVALID_ARGUMENT;
    *handle = handle_of(index, -1);
    return failure(__func__, (int)index);
}

static void uuid_of(const struct board *b, int instance, char *uuid, size_t size)
{
    if (instance < 0) snprintf(uuid, size, "%s", b->uuid);
    else snprintf(uuid, size, "MIG-57ab0000-0000-5000-8000-%06x%06x", b->index, (uint32_t)instance);
}

API ret_t nvmlDeviceGetHandleByUUID(const char *uuid, void **handle)
{
    DRIVER
    for (uint32_t i = 0; i < S->boards; i++)
        for (int instance = -1; instance < (int)S->board[i].is.mig_instances; instance++) {
            char own[80];
            uuid_of(&S->board[i], instance, own, sizeof own);
            if (strcmp(own, uuid)) continue;
            *handle = handle_of(i, instance);
            return OK;
        }
    return NOT_FOUND;
}

API ret_t nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **handle)
{
    DRIVER
    for (uint32_t i = 0; i < S->boards; i++)
        if (!strcmp(S->board[i].pci, pci)) {
            *handle = handle_of(i, -1);
            return OK;
        }
    return NOT_FOUND;
}

API ret_t nvmlDeviceGetIndex(void *handle, uint32_t *index)
{
    BOARD_OR_INSTANCE(handle)
    *index = instance < 0 ? b->index : (uint32_t)instance;
    return OK;
}

API ret_t nvmlDeviceGetMinorNumber(void *handle, uint32_t *number)
{
    BOARD(handle)
    *number = b->index;
    return OK;
}

API ret_t nvmlDeviceGetUUID(void *handle, char *buffer, uint32_t size)
{
    BOARD_OR_INSTANCE(handle)
    char uuid[80];
    uuid_of(b, instance, uuid, sizeof uuid);
    return put(buffer, size, uuid);
}

API ret_t nvmlDeviceGetName(void *handle, char *buffer, uint32_t size)
{
    BOARD_OR_INSTANCE(handle)
    char name[128];
    snprintf(name, sizeof name, instance < 0 ? "%s" : "%s MIG 1g", b->name);
    return put(buffer, size, name);
}

struct pci_info {
    char legacy_id[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char id[32];
};

API ret_t nvmlDeviceGetPciInfo_v3(void *handle, struct pci_info *info)
{
    BOARD_OR_INSTANCE(handle)
    *info = (struct pci_info){.device_id = 0x233510de};
    if (sscanf(b->pci, "%x:%x:%x", &info->domain, &info->bus, &info->device) != 3) return NOT_SUPPORTED;
    snprintf(info->legacy_id, sizeof info->legacy_id, "%04x:%02X:%02X.0", info->domain & 0xffff, info->bus & 0xff, info->device & 0xff);
    memcpy(info->id, b->pci, sizeof info->id);
    return OK;
}

NEWER ret_t nvmlDeviceGetArchitecture(void *handle, uint32_t *architecture)
{
    BOARD_OR_INSTANCE(handle)
    *architecture = (uint32_t)b->is.architecture;
    return OK;
}

/* ---- MIG ---- */

NEWER ret_t nvmlDeviceGetMigMode(void *handle, uint32_t *current, uint32_t *pending)
{
    BOARD(handle)
    if (!b->is.has_mig) return NOT_SUPPORTED;
    *current = *pending = b->is.mig_instances > 0;
    return OK;
}

NEWER ret_t nvmlDeviceGetMaxMigDeviceCount(void *handle, uint32_t *count)
{
    BOARD(handle)
    *count = b->is.has_mig ? MAX_MIGS : 0;
    return OK;
}

NEWER ret_t nvmlDeviceGetMigDeviceHandleByIndex(void *handle, uint32_t index, void **instance_handle)
{
    BOARD(handle)
    if (!b->is.has_mig) return NOT_SUPPORTED;
    if (index >= MAX_MIGS) return INVALID_ARGUMENT;
    if (index >= b->is.mig_instances) return NOT_FOUND;
    *instance_handle = handle_of(b->index, (int)index);
    return OK;
}

NEWER ret_t nvmlDeviceIsMigDeviceHandle(void *handle, uint32_t *is_instance)
{
    BOARD_OR_INSTANCE(handle)
    *is_instance = instance >= 0;
    return OK;
}

NEWER ret_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *handle, void **parent)
{
    BOARD_OR_INSTANCE(handle)
    if (instance < 0) return INVALID_ARGUMENT;
    *parent = handle_of(b->index, -1);
    return OK;
}

NEWER ret_t nvmlDeviceGetGpuInstanceId(void *handle, uint32_t *id)
{
    BOARD_OR_INSTANCE(handle)
    if (instance < 0) return INVALID_ARGUMENT;
    *id = (uint32_t)instance + 1;
    return OK;
}

/* ---- processes ---- */

struct process_info {
    uint32_t pid;
    unsigned long long memory_bytes;
    uint32_t gpu_instance, compute_instance;
};

NEWER ret_t nvmlDeviceGetComputeRunningProcesses_v3(void *handle, uint32_t *count, struct process_info *out)
{
    BOARD_OR_INSTANCE(handle)
    uint32_t room = out ? *count : 0, none = UINT32_MAX;
    *count = b->processes;
    if (!b->processes) return OK;
    if (room < b->processes) return INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < b->processes; i++) out[i] = (struct process_info){b->process[i].pid, b->process[i].memory_bytes, none, none};
    return OK;
}

struct process_use {
    uint32_t pid;
    unsigned long long stamp_us;
    uint32_t sm_percent, memory_percent, encoder_percent, decoder_percent;
};

API ret_t nvmlDeviceGetProcessUtilization(void *handle, struct process_use *out, uint32_t *count, unsigned long long since_us)
{
    BOARD(handle)
    if (b->is.mig_instances > 0) return NOT_SUPPORTED;
    int64_t at_ns = b->at_ns - b->at_ns % SECOND; /* use is told once a second */
    uint64_t stamp_us = wall_us(at_ns);
    uint32_t room = out ? *count : 0;
    *count = stamp_us > since_us ? b->processes : 0;
    if (!*count) return NOT_FOUND;
    if (room < *count) return INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < *count; i++)
        out[i] = (struct process_use){b->process[i].pid, stamp_us, b->process[i].sm_percent, b->process[i].memory_percent, 0, 0};
    return OK;
}
