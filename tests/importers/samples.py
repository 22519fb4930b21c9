"""One small log of each format, written for these tests, with its energy worked out by hand."""

import json
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sample:
    """A log, what it must give, and what its reader must be told."""

    format: str
    file: str
    text: str
    it_joules: float
    method: str
    runs: int = 1
    options: dict = field(default_factory=dict)
    is_dated: bool = True


def jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


CODECARBON = (
    "timestamp,project_name,run_id,experiment_id,duration,emissions,emissions_rate,cpu_power,gpu_power,ram_power,cpu_energy,gpu_energy,ram_energy,"
    "energy_consumed,water_consumed,country_name,country_iso_code,region,cloud_provider,cloud_region,os,python_version,codecarbon_version,cpu_count,"
    "cpu_model,gpu_count,gpu_model,longitude,latitude,ram_total_size,tracking_mode,cpu_utilization_percent,gpu_utilization_percent,"
    "ram_utilization_percent,ram_used_gb,on_cloud,pue,wue\n"
    "2026-03-02T10:00:30,p,r-1,e,30,1,1,40,300,20,0.0004,0.003,0.0002,0.0036,0,Spain,ESP,madrid,,,Linux,3.11,3.3.2,8,Some CPU,1,1 x NVIDIA L4,1,2,64,machine,1,1,1,1,N,1.2,0\n"
    "2026-03-02T10:01:00,p,r-1,e,60,1,1,40,300,20,0.0008,0.006,0.0004,0.0072,0,Spain,ESP,madrid,,,Linux,3.11,3.3.2,8,Some CPU,1,1 x NVIDIA L4,1,2,64,machine,1,1,1,1,N,1.2,0\n"
    "2026-03-02T11:00:00,p,r-2,e,60,1,1,40,300,20,0.0008,0.006,0.0004,0.0072,0,Spain,ESP,madrid,,,Linux,3.11,3.3.2,8,Some CPU,1,1 x NVIDIA L4,1,2,64,machine,1,1,1,1,N,1.2,0\n"
)

CODECARBON_TASKS = (
    "task_name,timestamp,project_name,run_id,duration,emissions,emissions_rate,cpu_power,gpu_power,ram_power,cpu_energy,gpu_energy,ram_energy,energy_consumed,country_name,country_iso_code,os,codecarbon_version,cpu_model,tracking_mode,on_cloud\n"
    "load,2026-03-02T10:00:10,p,r-9,10,1,1,40,0,20,0.0001,0,0.0001,0.0002,Spain,ESP,Linux,3.2.3,Some CPU,machine,N\n"
    "train,2026-03-02T10:00:40,p,r-9,30,1,1,40,0,20,0.0004,0,0.0002,0.0006,Spain,ESP,Linux,3.2.3,Some CPU,machine,N\n"
)

CARBONTRACKER = """2026-03-02 10:00:00 - carbontracker version 2.4.7
2026-03-02 10:00:00 - Only predicted and actual consumptions are multiplied by a PUE coefficient of 1.58 (Somebody, 2023, A Survey).
2026-03-02 10:00:00 - The following components were found: GPU with device(s) Some GPU, Some GPU, Some GPU. CPU with device(s) cpu:0.
2026-03-02 10:00:00 - Monitoring thread started.
2026-03-02 10:00:10 - Epoch 1:
2026-03-02 10:00:10 - Duration: 0:00:10.00
2026-03-02 10:00:10 - Average power usage (W) for gpu: 100.0
2026-03-02 10:00:10 - Average power usage (W) for cpu: 50.0
2026-03-02 10:00:20 - Epoch 2:
2026-03-02 10:00:20 - Duration: 0:00:10.00
2026-03-02 10:00:20 - Average power usage (W) for gpu: 120.0
2026-03-02 10:00:20 - Average power usage (W) for cpu: 50.0
2026-03-02 10:00:20 - Monitoring thread ended.
"""

CARBONTRACKER_OUTPUT = """2026-03-02 10:00:00 - CarbonTracker: The following components were found: CPU with device(s) cpu:0.
2026-03-02 10:00:10 - CarbonTracker: Defaulted to average carbon intensity for world in 2019 of 475.00 gCO2/kWh.
2026-03-02 10:00:10 - CarbonTracker:
Predicted consumption for 9 epoch(s):
	Time:	0:01:30
	Energy:	0.013950000000 kWh
	CO2eq:	1.0 g
2026-03-02 10:00:20 - CarbonTracker:
Actual consumption for 2 epoch(s):
	Time:	0:00:20
	Energy:	0.003100000000 kWh
	CO2eq:	1.0 g
2026-03-02 10:00:20 - CarbonTracker: Finished monitoring.
"""

ZEUS = """start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy
1772445600.0,step0,1.0,100.0,200.0
1772445601.0,step1,1.0,110.0,210.0
1772445600.0,epoch,2.0,215.0,415.0
1772445610.0,epoch,2.0,220.0,420.0
"""

ECO2AI = (
    "id,project_name,experiment_description,epoch,start_time,duration(s),power_consumption(kWh),CO2_emissions(kg),CPU_name,GPU_name,OS,region/country,cost\n"
    'a-1,p,e,N/A,2026-03-02 10:00:00,3600,0.25,0.1,"Some CPU/1 device(s), TDP:45.0",NVIDIA L4 1 device(s),Linux,ES,0\n'
    'a-2,p,e,N/A,2026-03-02 12:00:00,1800,0.1,0.1,"Some CPU/1 device(s), TDP:45.0", 0 device(s),Linux,ES,0\n'
)

IMPACT_TRACKER = jsonl(
    {
        "timestamp": 1772445600.25 + 10 * i,
        "rapl_power_draw_absolute": 90.0,
        "rapl_estimated_attributable_power_draw": 20.0,
        "nvidia_draw_absolute": 100.0,
        "nvidia_estimated_attributable_power_draw": 80.0,
        "process_ids": [1],
    }
    for i in range(4)
)

AIPOWERMETER = jsonl(
    {"date": f"2026-03-02 10:00:{10 * i:02d}.5", "metrics": {"cpu": {"intel_power": 30.0, "psys_power": 50.0}}} for i in range(4)
)

JOULES = json.dumps(
    {
        "schema": "joules/1",
        "tool": "joules 0.8.0",
        "kind": "run",
        "started_at": "2026-03-02T10:00:00+01:00",
        "duration_s": 10.0,
        "simulated": False,
        "devices": [
            {"name": "NVIDIA L4", "kind": "gpu", "method": "counter", "energy_j": 500.0},
            {"name": "CPU time", "kind": "est", "method": "ESTIMATE (CPU time)", "energy_j": 1.0},
        ],
        "totals": {"devices_j": 501.0, "pue": 1.4, "facility_j": 701.4},
        "notes": [],
    },
    indent=2,
)

BOAMPS = json.dumps(
    {
        "header": {"formatVersion": "0.1", "reportId": "b-1"},
        "task": {"taskStage": "inference", "taskFamily": "chatbot"},
        "measures": [
            {
                "measurementMethod": "codecarbon",
                "powerConsumption": 0.002,
                "measurementDuration": 60.0,
                "measurementDateTime": "2026-03-02 10:01:00",
            }
        ],
    },
    indent=1,
)

NVIDIA_SMI = "timestamp, index, uuid, name, power.draw [W], utilization.gpu [%]\n" + "".join(
    f"2026/03/02 10:00:{second:02d}.250, {gpu}, GPU-{gpu}a, NVIDIA L4, {40 + 20 * gpu + second % 2}.50 W, 90 %\n"
    for second in range(11)
    for gpu in range(2)
)

DMON = "# gpu    pwr  gtemp     sm \n# Idx      W      C      % \n" + "".join(
    f"    {gpu}     {50 + 10 * gpu}     40      - \n" for _ in range(5) for gpu in range(2)
)

DMON_DATED = "#Date       Time        gpu    pwr  gtemp\n#YYYYMMDD   HH:MM:SS    Idx      W      C\n" + "".join(
    f" 20260302   10:00:{second:02d}      0     50     40\n" for second in range(11)
)

_LABELS = 'gpu="0",UUID="GPU-a",modelName="NVIDIA A100-SXM4-80GB",Hostname="n1"'
DCGM = "# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Total energy (in mJ).\n# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n" + "".join(
    f'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{_LABELS},GPU_I_PROFILE="{profile}"}} {5_000_000 + 3_000_000 * scrape} {1772445600000 + 15_000 * scrape}\n'
    for scrape in range(5)
    for profile in ("1g.10gb", "2g.20gb")
)

DCGMI = "#Entity   POWER     TOTEC\nID        W         mJ\n" + "".join(
    f"GPU {gpu}     60.0      {1_000_000 + 60_000 * i}\n" for i in range(5) for gpu in range(2)
)


def prometheus(series, *, kind="matrix", **more):
    """A saved answer: series of (labels, [(second, value text)])."""
    result = [
        {"metric": labels, "values" if kind == "matrix" else "value": values if kind == "matrix" else values[0]}
        for labels, values in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}, **more})


def power_of(uuid, pod, watts, *, metric="DCGM_FI_DEV_POWER_USAGE", count=5, step=60):
    labels = {"__name__": metric, "UUID": uuid, "gpu": uuid[-1], "modelName": "NVIDIA H100 80GB HBM3", "pod": pod}
    return labels, [[1772445600 + step * i, str(watts)] for i in range(count)]


PROMETHEUS = prometheus([power_of("GPU-0", "train-abc", 400), power_of("GPU-1", "nvidia-dcgm-exporter-x", 70)])

WANDB = jsonl(
    {
        "system.gpu.0.powerWatts": 100.0,
        "system.gpu.process.0.powerWatts": 100.0,
        "system.cpu": 5.0,
        "_timestamp": 1772445600 + 15 * i,
        "_runtime": 15 * (i + 1),
    }
    for i in range(5)
)

SLURM = (
    "JobIDRaw|JobID|Cluster|Partition|Account|User|Submit|Start|End|ElapsedRaw|State|NNodes|AllocTRES|ConsumedEnergyRaw|JobName\n"
    "100|100|c|gpu|lab|ann|2026-03-02T09:00:00|2026-03-02T10:00:00|2026-03-02T11:00:00|3600|COMPLETED|2|billing=8,cpu=8,energy=3600000,gres/gpu:a100=8,node=2|3600000|a|b\n"
    "100.batch|100.batch|c|||||2026-03-02T10:00:00|2026-03-02T11:00:00|3600|COMPLETED|1||1800000|batch\n"
    "100.0|100.0|c|||||2026-03-02T10:00:00|2026-03-02T11:00:00|3600|COMPLETED|2||3590000|srun\n"
    "101|101|c|gpu|lab|bob|2026-03-02T09:00:00|2026-03-02T10:00:00|2026-03-02T10:30:00|1800|CANCELLED by 1000|1|cpu=8,gres/gpu=4,gres/gpu:a100=4,node=1|900000|x\n"
    "102|102|c|gpu|lab|bob|2026-03-02T09:00:00|2026-03-02T10:00:00|2026-03-02T10:30:00|1800|COMPLETED|1|cpu=8,node=1|18446744073709551614|y\n"
)

SLURM_JSON = json.dumps(
    {
        "meta": {"slurm": {"version": {"major": "24"}}},
        "jobs": [
            {
                "job_id": 7,
                "cluster": "c",
                "account": "lab",
                "partition": "gpu",
                "state": {"current": ["COMPLETED"]},
                "time": {"submission": 1772445000, "start": 1772445600, "end": 1772449200, "elapsed": 3600},
                "allocation_nodes": 1,
                "tres": {
                    "allocated": [
                        {"type": "energy", "name": "", "id": 3, "count": 1800000},
                        {"type": "gres", "name": "gpu:h100", "count": 4},
                    ]
                },
                "steps": [{"statistics": {"energy": {"consumed": {"set": True, "infinite": False, "number": 1790000}}}}],
            }
        ],
    }
)

WIDE = "timestamp,GPU0,GPU1\n" + "".join(f"{1772445600 + 0.5 * i},{200 + i},{300 + i}\n" for i in range(5))

MILLIWATTS = "Timestamp (s);Power (mW)\n" + "".join(f"2026-03-02 10:00:0{i};{5000 + 0}\n" for i in range(5))

LOCAL = {"time_zone": "Europe/Madrid"}
SAMPLES = (
    Sample("codecarbon", "emissions.csv", CODECARBON, 2 * 0.0072 * 3.6e6 / 1.2, "reported", 2, LOCAL),
    Sample("codecarbon", "emissions_base_r-9.csv", CODECARBON_TASKS, 0.0008 * 3.6e6, "reported", 2, LOCAL),
    Sample("carbontracker", "1_carbontracker.log", CARBONTRACKER, 3 * (1000 + 1200) + 1000, "reported", 1, LOCAL),
    Sample("carbontracker", "1_carbontracker_output.log", CARBONTRACKER_OUTPUT, 0.002 * 3.6e6, "reported", 1, LOCAL),
    Sample("zeus", "zeus.csv", ZEUS, 215 + 415 + 220 + 420, "counter", 2),
    Sample("eco2ai", "emission.csv", ECO2AI, 0.35 * 3.6e6, "reported", 2, LOCAL),
    Sample("experiment-impact-tracker", "data.json", IMPACT_TRACKER, 30 * 100, "reported"),
    Sample("aipowermeter", "power_metrics.json", AIPOWERMETER, 30 * 30, "reported", 1, LOCAL),
    Sample("joules", "run.json", JOULES, 501.0, "reported"),
    Sample("boamps", "report.json", BOAMPS, 0.002 * 3.6e6, "reported", 1, LOCAL),
    Sample("nvidia-smi", "log.csv", NVIDIA_SMI, 10 * (41 + 61), "averaged", 1, LOCAL),
    Sample("nvidia-smi-dmon", "dmon.log", DMON, 5 * (50 + 60), "averaged", 1, {"period_s": "1"}, is_dated=False),
    Sample("nvidia-smi-dmon", "dmon_dt.log", DMON_DATED, 10 * 50, "averaged", 1, LOCAL),
    Sample("dcgm", "metrics.prom", DCGM, 12_000.0, "counter"),
    Sample("dcgmi-dmon", "dcgmi.txt", DCGMI, 2 * 240.0, "counter", is_dated=False),
    Sample("prometheus", "range.json", PROMETHEUS, 240 * (400 + 70), "averaged", 2),
    Sample("wandb", "events.jsonl", WANDB, 60 * 100, "averaged"),
    Sample("slurm", "sacct.txt", SLURM, 4_500_000, "reported", 2, LOCAL),
    Sample("slurm", "sacct.json", SLURM_JSON, 1_800_000, "reported"),
    Sample("csv", "wide.csv", WIDE, 2 * (202 + 302), "reported"),
    Sample("csv", "milliwatts.csv", MILLIWATTS, 4 * 5, "reported", 1, LOCAL),
)
