/* Models: limits, clock menus and sensors about as published; powers of parts by hand, so that full load meets the default limit. */
#include "virtual_nvml.h"

#include <stdio.h>
#include <string.h>

static const struct model {
    const char *key, *name;
    double architecture;
    bool is_ga100, has_counter, has_memory_locks, has_mig;
    double idle_watts, min_watts, default_watts, max_watts, instant_window_s;
    uint32_t core_low_mhz, core_top_mhz, core_step_mhz, memory_mhz[8];
} MODELS[] = {
    {"h200", "NVIDIA H200", 9, false, true, true, true, 75, 200, 700, 700, 0, 345, 1980, 15, {3201, 2201}},
    {"h100", "NVIDIA H100 80GB HBM3", 9, false, true, true, true, 70, 200, 700, 700, 0, 210, 1980, 15, {2619, 1593}},
    {"a100", "NVIDIA A100-SXM4-80GB", 7, true, true, true, true, 55, 100, 400, 400, 0.025, 210, 1410, 15, {1593}},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 7, false, true, true, false, 30, 100, 350, 385, 0, 210, 2100, 15, {9751, 9501, 5001, 810, 405}},
    {"t4", "Tesla T4", 6, false, true, false, false, 10, 60, 70, 70, 0, 300, 1590, 15, {5001, 405}},
    {"v100", "Tesla V100-SXM2-16GB", 5, false, true, false, false, 40, 150, 300, 300, 0.025, 135, 1530, 15, {877}},
    {"p100", "Tesla P100-PCIE-16GB", 4, false, false, false, false, 30, 125, 250, 250, 0, 544, 1328, 14, {715}},
};
enum { MODEL_COUNT = sizeof MODELS / sizeof *MODELS };

bool model_board(struct board *b, uint32_t index, const char *model)
{
    const struct model *m = MODELS;
    while (m < MODELS + MODEL_COUNT && strcmp(m->key, model)) m++;
    if (m == MODELS + MODEL_COUNT) return false;

    memset(b, 0, sizeof *b);
    b->index = index;
    b->is_ga100 = m->is_ga100;
    snprintf(b->name, sizeof b->name, "%s", m->name);
    snprintf(b->uuid, sizeof b->uuid, "GPU-57ab0000-0000-4000-8000-%012x", index);
    snprintf(b->pci, sizeof b->pci, "00000000:%02X:00.0", 0x17 + 0x10 * index);
    b->core_low_mhz = m->core_low_mhz, b->core_top_mhz = m->core_top_mhz, b->core_step_mhz = m->core_step_mhz;
    memcpy(b->memory_mhz, m->memory_mhz, sizeof b->memory_mhz);
    while (b->memory_clocks < 8 && b->memory_mhz[b->memory_clocks]) b->memory_clocks++;

    double above_idle = m->default_watts - m->idle_watts;
    b->is = (struct options){
        .architecture = m->architecture,
        .usage_is_instant = m->is_ga100 || m->architecture < 7,
        .has_counter = m->has_counter,
        .has_memory_locks = m->has_memory_locks,
        .has_mig = m->has_mig,
        .min_limit_watts = m->min_watts,
        .max_limit_watts = m->max_watts,
        .default_limit_watts = m->default_watts,
        .clock_latency_s = 0.01,
        .idle_watts = m->idle_watts,
        .core_share = 0.75,
        .compute_use = 1.0,
        .memory_use = 0.5,
        .compute_watts = 0.75 * above_idle,
        .memory_watts = 0.35 * above_idle, /* both busy: a tenth over the limit */
        .tick_s = 0.1,
        .counter_gain = 1.0,
        .sensor_tau_s = 0.0127, /* measured on one H200, as is the delay */
        .sensor_delay_s = 0.00335,
        .instant_window_s = m->instant_window_s, /* A100, V100: a quarter of the time (arXiv 2312.02741) */
        .temperature_celsius = 45,
    };
    b->load = (struct load){.program = CONSTANT, .watts = m->idle_watts};
    return true;
}
