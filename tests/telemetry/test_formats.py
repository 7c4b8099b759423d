"""An excerpt of every format, after its documentation, and one of its rows."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import factorykit as fk
from factorykit.telemetry import log_file
from factorykit.telemetry.formats import formats

AT = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
PROMETHEUS = """{"status":"success","data":{"resultType":"matrix","result":[
{"metric":{"__name__":"%s","Hostname":"n1","gpu":"3","hpc_job":"7"},"values":[[1772366400,"%s"]]},
{"metric":{"__name__":"DCGM_FI_DEV_SM_CLOCK","Hostname":"n1","gpu":"3"},"values":[[1772366400,"1980"]]}]}}"""
EXCERPTS: dict[str, tuple[str, dict[str, Any]]] = {
    "slurm_sacct": (
        "JobID|JobIDRaw|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
        "4_1|11|ann|OUT_OF_MEMORY|2026-03-01T11:00:00|2026-03-01T12:00:00|2026-03-01T13:00:00|2|gres/gpu=16|n[1-2]\n",
        {"job": "11", "state": "out of memory", "started": AT, "nodes": 2.0, "accelerators": 16.0},
    ),
    "gcm_sacct": (
        '{"time": 1772366400, "cluster": "c", "sacct": {"JobID": "7", "User": "ann", "State": "NODE_FAIL", '
        '"Start": "2026-03-01T12:00:00", "End": "2026-03-01T13:00:00", "AllocNodes": "1", "AllocTRES": "gres/gpu=8", '
        '"NodeList": "n1"}}\n',
        {"job": "7", "state": "node failure", "started": AT, "accelerators": 8.0, "node_list": "n1"},
    ),
    "slurm_json": (
        '{"jobs": [{"job_id": 7, "name": "pretrain", "user": "ann", "nodes": "n[1-2]", "allocation_nodes": 2, "state": '
        '{"current": ["NODE_FAIL"], "reason": "None"}, "time": {"submission": 1772366300, "start": 1772366400, '
        '"end": 0}, "tres": {"allocated": [{"type": "cpu", "name": "", "id": 1, "count": 192}, {"type": "gres", '
        '"name": "gpu", "id": 1001, "count": 16}, {"type": "gres", "name": "gpu:h100", "id": 1002, "count": 16}]}}]}',
        {"job": "7", "name": "pretrain", "state": "node failure", "started": AT, "ended": None, "accelerators": 16.0},
    ),
    "slurm_events": (
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
        "c|n1|2026-03-01T12:00:00|2026-03-01T15:00:00|DOWN|Not responding|slurm\n",
        {"node": "n1", "at": AT, "until": AT.replace(hour=15), "kind": "down", "cause": "host"},
    ),
    "slurm_nodes": (
        "NodeName=n1 Arch=x86_64 CoresPerSocket=48\n   State=DOWN+DRAIN ThreadsPerCore=2\n"
        "   Reason=GPU 3 has fallen off the bus [root@2026-03-01T12:00:00]\n\n"
        "NodeName=n2 Arch=x86_64\n   State=IDLE ThreadsPerCore=2\n",
        {"node": "n1", "at": AT, "kind": "down", "cause": "accelerator"},
    ),
    "kubernetes_events": (
        '{"kind": "List", "items": [\n{"reason": "NodeNotReady", "lastTimestamp": "2026-03-01T12:00:00Z", '
        '"involvedObject": {"kind": "Node", "name": "n1"}, "message": "password: hunter2"},\n{"reason": "Preempted", '
        '"eventTime": "2026-03-01T13:00:00.000000Z", "lastTimestamp": null, "involvedObject": '
        '{"kind": "Workload", "name": "train-7"}}]}',
        {"node": "n1", "at": AT, "kind": "down", "job": None, "code": "NodeNotReady"},
    ),
    "kubernetes_events_v1": (
        '{"kind": "List", "items": [{"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"uid": "a"}, '
        '"regarding": {"kind": "Node", "name": "n1"}, "reason": "NodeNotReady", "type": "Normal", "note": "m", '
        '"eventTime": "2026-03-01T12:00:00.000000Z", "deprecatedSource": {"component": "node-controller"}}]}',
        {"node": "n1", "at": AT, "kind": "down", "job": None, "code": "NodeNotReady"},
    ),
    "kubernetes_jobs": (
        '{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "train-0-x", "namespace": "ann", '
        '"creationTimestamp": "2026-03-01T11:59:00Z", "labels": {"job-name": "train"}}, "spec": {"nodeName": "n1", '
        '"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]}, "status": {"phase": "Failed", '
        '"containerStatuses": [{"restartCount": 0, "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137, '
        '"startedAt": "2026-03-01T12:00:00Z", "finishedAt": "2026-03-01T13:00:00Z"}}}]}}]}',
        {"job": "train", "state": "out of memory", "started": AT, "node_list": "n1", "accelerators": 8.0},
    ),
    "gcm_health": (
        '{"node": "n1", "health_check": "check_nvidia_smi gpu_num", "result": 2, "job_id": 7, '
        '"start_time": 1772366400.0, "end_time": 1772366401.5}\n',
        {"node": "n1", "at": AT, "kind": "failure", "cause": "accelerator", "job": "7"},
    ),
    "xid": (
        "2026-03-01T12:00:00,000000+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off.\n"
        "2026-03-01T12:00:01,000000+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=1, MMU fault\n"
        "2026-03-01T12:00:02,000000+00:00 n1 kernel: usb 1-1: new device\n",
        {"node": "n1", "at": AT, "kind": "failure", "cause": "accelerator", "code": "79"},
    ),
    "amdgpu": (
        "[Sun Mar  1 12:00:00 2026] amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!\n"
        "[Sun Mar  1 12:00:01 2026] usb 1-1: new device\n",
        {"node": "a", "at": AT, "kind": "failure", "cause": "accelerator", "code": "GPU reset begin"},
    ),
    "prometheus_xid": (PROMETHEUS % ("DCGM_FI_DEV_XID_ERRORS", "94"), {"at": AT, "node": "n1", "code": "94"}),
    "prometheus_power": (
        PROMETHEUS % ("DCGM_FI_DEV_POWER_USAGE", "612.5"),
        {"at": AT, "node": "n1", "accelerator": "3", "job": "7", "accelerator_power_w": 612.5},
    ),
    "openmetrics_xid": (
        'DCGM_FI_DEV_XID_ERRORS{gpu="3",Hostname="n1"} 48 1772366400\n# EOF\n',
        {"at": AT, "node": "n1", "kind": "failure", "cause": "accelerator memory"},
    ),
    "openmetrics_power": (
        '# TYPE DCGM_FI_DEV_POWER_USAGE gauge\nDCGM_FI_DEV_POWER_USAGE{gpu="3",UUID="GPU-1",Hostname="n1"} 612.5 '
        "1772366400.000\n# EOF\n",
        {"at": AT, "node": "n1", "accelerator": "3", "accelerator_power_w": 612.5},
    ),
    "nvidia_smi": (
        "timestamp, index, power.draw [W], utilization.gpu [%]\n2026/03/01 12:00:00.000, 3, 612.50 W, 98 %\n",
        {"at": AT, "node": "a", "accelerator": "3", "accelerator_power_w": 612.5, "utilization": 0.98},
    ),
    "dcgm": (
        "timestamp,Hostname,gpu,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_DEV_GPU_UTIL\n2026-03-01T12:00:00Z,n1,3,612.5,98\n",
        {"at": AT, "node": "n1", "accelerator_power_w": 612.5, "utilization": 0.98},
    ),
    "gcm_nvml": (
        '{"time": 1772366400, "gpu_id": 3, "hostname": "n1", "gpu_util": 98, "power_draw": 612.5, "job_id": "7"}\n',
        {"at": AT, "node": "n1", "accelerator": "3", "job": "7", "accelerator_power_w": 612.5},
    ),
    "megatron": (
        " [2026-03-01 12:00:00.000000] iteration       10/  500000 | consumed samples:        20480 | elapsed time per "
        "iteration (ms): 4321.5 | throughput per GPU (TFLOP/s/GPU): 402.1 | learning rate: 1.0E-05 |\n",
        {"at": AT, "job": "a", "step": 10.0, "step_s": 4.3215},
    ),
    "nemo": (
        "Training epoch 0, iteration 45/99 | lr: 6.9e-06 | global_batch_size: 128 | global_step: 45 | "
        "reduced_train_loss: 11.9 | train_step_timing in s: 6.08 | consumed_samples: 5888\n",
        {"at": None, "step": 45.0, "step_s": 6.08},
    ),
    "torchtitan": (
        "".join(
            f"[titan] 2026-03-01 12:00:{at},000 - root - INFO - step: {step}  loss:  7.1  memory: 40GiB(50.00%)  "
            "tps: 5,210  tflops: 301.5  mfu: 30.1%\n"
            for at, step in (("00", 10), ("25", 20))
        ),
        {"at": AT, "step": 10.0, "step_s": None},
    ),
    "deepspeed": (
        "steps: 10 loss: 5.55 iter time (s): 0.936 samples/sec: 136.706\n",
        {"step": 10.0, "step_s": 0.936},
    ),
    "nanotron": (
        "03/01/2026 12:00:00 [INFO|DP=0|PP=0|TP=0|n1]: iteration: 5 / 100 | consumed_tokens: 5.24M | "
        "elapsed_time_per_iteration_ms: 15.6K | tokens_per_sec: 67.2K | tokens_per_sec_per_gpu: 4.2K\n",
        {"at": AT, "step": 5.0, "step_s": 15.6},
    ),
    "hf_trainer": (
        "  1%|          | 1/200 [00:02<07:13,  2.00s/it]\r  5%|5   | 10/200 [00:21<06:54,  2.18s/it]\r          \r"
        "{'loss': 0.8853, 'grad_norm': 1.5, 'learning_rate': 4.4e-05, 'epoch': 0.12}\n",
        {"at": None, "job": "a", "step": 10.0, "step_s": 2.18},
    ),
    "hf_trainer_state": (
        '{\n  "log_history": [\n    {\n      "epoch": 0.5,\n      "loss": 1.2,\n      "step": 10\n'
        '    },\n    {"epoch": 1.0, "loss": 1.1, "step": 20}\n  ]\n}',
        {"at": None, "step": 10.0, "step_s": None},
    ),
    "maxtext": (
        "completed step: 9, seconds: 5.667, TFLOP/s/device: 134.9, Tokens/s/device: 8672.7, total_weights: 196608\n",
        {"step": 9.0, "step_s": 5.667},
    ),
    "verl": (
        "(TaskRunner pid=1234) step:10 - global_seqlen/min:1000.000 - training/global_step:10 - timing_s/gen:20.1 - "
        "timing_s/step:np.float64(55.25) - perf/time_per_step:55.25 - perf/throughput:1234.5\n",
        {"at": None, "step": 10.0, "step_s": 55.25},
    ),
    "slime": (
        "(MegatronTrainRayActor pid=1) [2026-03-01 12:00:00] train_metric_utils.py:50 - perf 10: "
        "{'perf/train_wait_time': 9.5, 'perf/step_time': 55.25, 'perf/wait_time_ratio': 0.1}\n",
        {"at": AT, "step": 10.0, "step_s": 55.25},
    ),
    "llama_factory": (
        '{"current_steps": 10, "total_steps": 100, "loss": 1.2, "epoch": 0.05, "elapsed_time": "0:00:50"}\n',
        {"at": None, "step": 10.0, "step_s": None},
    ),
    "wandb": ("_step,_timestamp,iteration-time\n10,1772366400.0,4.25\n", {"at": AT, "step": 10.0, "step_s": 4.25}),
    "wandb_history": (
        '{"_step": 10, "_timestamp": 1772366400.0, "step_time": 4.25, "loss": 1.5}\n',
        {"at": AT, "step": 10.0, "step_s": 4.25},
    ),
    "wandb_chart": (
        '"Step","run-7 - iteration-time","run-7 - iteration-time__MIN","run-7 - iteration-time__MAX"\n'
        '"10","4.25","4.25","4.25"\n"20","","",""\n',
        {"at": None, "job": "run-7", "step": 10.0, "step_s": 4.25},
    ),
    "tensorboard_events": (
        '{"wall_time": 1772366400.0, "step": 3, "values": {"lm loss": 2.5, "iteration-time": 1.5}}\n',
        {"at": AT, "step": 3.0, "step_s": 1.5},
    ),
    "tensorboard": (
        "Wall time,Step,Value\n1772366400.0,10,1.5\n1772366440.0,20,1.4\n",
        {"at": AT, "step": 10.0, "step_s": None},
    ),
    "events": ("at,node,kind,cause\n2026-03-01 12:00,n1,down,network\n", {"at": AT, "kind": "down"}),
    "jobs": ("job,state,started,ended,nodes\n7,failed,2026-03-01 12:00,,2\n", {"state": "failed", "ended": None}),
    "steps": ("step,step_s,node\n1,4.25,n1\n", {"step_s": 4.25, "node": "n1"}),
    "power": ("at,accelerator_power_w\n2026-03-01T12:00:00Z,612.5\n", {"at": AT, "node": "a"}),
}


def test_every_format_has_an_excerpt() -> None:
    assert set(EXCERPTS) == set(formats())


@pytest.mark.parametrize("name", EXCERPTS)
def test_an_excerpt_is_recognised_and_read(name: str, tmp_path: Path) -> None:
    text, expected = EXCERPTS[name]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text(text)
    log = fk.read_log(tmp_path)
    rows = getattr(log, formats()[name].table)
    of_kernel = {"xid"} if name == "amdgpu" else set()
    assert set(log.notes["format"]) - {""} == {name} | of_kernel
    assert {key: rows.row(0, named=True)[key] for key in expected} == expected
    assert log.skipped == 0


STAMP = "2026-03-01T12:00:00.250000Z "
LINES = {
    "xid": ("[Sun Mar  1 12:00:00 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off\n", 79.0),
    "megatron": (
        f"{STAMP} iteration   10/ 500000 | elapsed time per iteration (ms): 4321.5/4330.1 | loss: 7 |\n",
        10.0,
    ),
    "a coloured megatron of Primus": (
        "[\x1b[32m20260301 12:00:00\x1b[0m][\x1b[36mrank-7/8\x1b[0m]\x1b[1m[INFO]     \x1b[0m[----trainer.py:1480] :  "
        "iteration       10/      50 | elapsed time per iteration (ms): 4321.5/4330.1 | mem usages: 0.79 |\n",
        10.0,
    ),
    "a xid of RFC 5424": (
        '<4>1 2026-03-01T12:00:00.250Z n7 kernel - - [timeQuality tzKnown="1"] NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n',
        79.0,
    ),
    "a xid with its priority": ("<4>Mar  1 12:00:00 n7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n", 79.0),
    "nemo": (
        f"{STAMP}Epoch 0: : 10%|# | 10/99 [00:51<10:00, global_step=10.00, train_step_timing in s=3.120]\n",
        10.0,
    ),
    "deepspeed": (f"{STAMP}[Rank 0] step=40, skipped=0, lr=[5e-05], mom=[0.9], SamplesPerSec=136.7\n", 40.0),
}


@pytest.mark.parametrize("name", LINES)
def test_lines_are_read_as_they_are_printed_with_times_before_them(name: str, tmp_path: Path) -> None:
    text, value = LINES[name]
    (tmp_path / "n7.log").write_text(text)
    os.utime(tmp_path / "n7.log", (AT.timestamp(), AT.timestamp()))
    log = fk.read_log(tmp_path)
    row = (log.steps if log.steps.height else log.events).row(0, named=True)
    assert float(row.get("step") or row.get("code")) == value
    assert row["at"].replace(microsecond=0) == AT
    assert row.get("node") in (None, "n7")
    assert row.get("step_s") in (None, 3.12, 4.3215)
    assert log.skipped == 0


def scrape(*watts: float) -> str:
    """The text that DCGM exporter answers: it has no times."""
    lines = (f'DCGM_FI_DEV_POWER_USAGE{{gpu="{n}",UUID="GPU-{n}",Hostname="n1"}} {w:f}\n' for n, w in enumerate(watts))
    return "# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n" + "".join(lines)


def test_a_scrape_has_the_time_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "metrics.prom").write_text(scrape(612.5, 96.25))
    os.utime(tmp_path / "metrics.prom", (AT.timestamp(), AT.timestamp()))
    log = fk.read_log(tmp_path)
    assert log.power.select("at", "accelerator", "accelerator_power_w").rows() == [(AT, "0", 612.5), (AT, "1", 96.25)]
    assert dict(log.counts.iter_rows())["rows without a time, which have that of the file"] == 2


def test_a_sample_has_its_time_in_seconds_or_milliseconds(tmp_path: Path) -> None:
    """OpenMetrics writes seconds, the older text format of Prometheus milliseconds."""
    line = 'DCGM_FI_DEV_POWER_USAGE{{gpu="{}",Hostname="n1"}} 612.5 {}\n'
    (tmp_path / "a.prom").write_text(line.format(0, 1772366400) + line.format(1, 1772366400000))
    assert fk.read_log(tmp_path).power["at"].to_list() == [AT, AT]


def test_several_scrapes_without_times_in_one_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "metrics.prom").write_text(scrape(612.5) + scrape(96.25))
    with pytest.raises(fk.FactorykitError, match="several scrapes without times; give one file per scrape"):
        fk.read_log(tmp_path)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("#Entity   POWER      GPUTL\nID        W\nGPU 0     67.012     0\n", "nvidia-smi"),
        ("timestamp, index, utilization.gpu [%]\n2026/03/01 12:00:00.000, 3, 98 %\n", "power.draw"),
        ("timestamp, power.draw [W], utilization.gpu [%]\n2026/03/01 12:00:00.000, [N/A], 98 %\n", "state no power"),
        ("     JobID      State \n---------- ---------- \n7            RUNNING \n", "sacct --parsable2"),
        ("7|ann|COMPLETED|2026-03-01T12:00:00|2026-03-01T13:00:00|2|gres/gpu=16|n[1-2]\n", "without --noheader"),
        ("JobIDRaw|State|Start|End\n7|RUNNING|2026-03-01|Unknown\n", "sacct --parsable2"),
        ("kern  :err   : [Sun Mar  1 12:00:00 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n", "without -x"),
        ("Sun 2026-03-01 12:00:00 UTC [s=a;i=1]\n    MESSAGE=NVRM: Xid (PCI:0000:3b:00): 79\n", "short-iso"),
        ('{\n\t"__REALTIME_TIMESTAMP" : "1",\n\t"MESSAGE" : "NVRM: Xid (PCI:0000:3b:00): 79"\n}\n', "short-iso"),
        ("#Date       Time        gpu    pwr\n#YYYYMMDD   HH:MM:SS    Idx      W\n", "nvidia-smi --query-gpu"),
        ("timestamp, index, power.draw.average [W]\n2026/03/01 12:00:00.000, 3, 300 W\n", 'kind="power", columns='),
        (
            "LAST SEEN   TYPE     REASON         OBJECT    MESSAGE\n5m    Normal   NodeNotReady   node/n1   m\n",
            "-o json",
        ),
        ("apiVersion: v1\nitems:\n- apiVersion: v1\n  count: 1\n  kind: Event\n  reason: Rebooted\n", "get events -o"),
        ("[  123.456789] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n", "dmesg -T"),
        ("{'loss': 0.8853, 'learning_rate': 4.4e-05, 'epoch': 0.12}\n", "trainer_state.json"),
        ("apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n", "yq -o json"),
        ('{"jobs": [{"account": "a", "accrue_time": 1, "job_id": 7, "job_state": ["RUNNING"]}]}', "sacct --json"),
        ("     JOBID PARTITION     NAME     USER ST    TIME  NODES NODELIST(REASON)\n", "sacct --parsable2"),
        ("REASON               USER      TIMESTAMP           NODELIST\nbad     root     Unknown     n1\n", "scontrol"),
        ('{"nodes": [{"name": "n1", "reason_changed_at": {"number": 1772366400}}]}', "scontrol show node,"),
        ('{"type": "ADDED", "object": {"kind": "Event", "reason": "Rebooted"}}\n', "jq -c .object"),
        ("timestamp,gpu,power_usage,gfx\n1772366400,0,600,98\n", "accelerator_power_w.: .power_usage"),
        ("device,Average Graphics Package Power (W)\ncard0,560.0\n", "amd-smi monitor"),
    ],
)
def test_a_file_without_times_or_power_is_refused_with_a_fix(text: str, fix: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(text)
    with pytest.raises(fk.FactorykitError, match=fix):
        fk.read_log(tmp_path)


@pytest.mark.parametrize("cut", [0, 9])
@pytest.mark.parametrize("form", ["[\n{}\n]\n", "{}\n"])
def test_records_in_documents_of_json_are_all_read(tmp_path: Path, form: str, cut: int) -> None:
    """A list, whose last record stands alone in its line; or one document behind the other, the last one cut."""
    rows = [f'{{"_step": {step},\n "_timestamp": 1772366400.0,\n "step_time": 4.25}}' for step in range(3)]
    text = form.format((",\n" if "[" in form else "\n").join(rows))
    (tmp_path / "a.json").write_text(text[: len(text) - cut])
    if cut and "[" in form:
        with pytest.raises(fk.FactorykitError, match="no document of JSON"):
            fk.read_log(tmp_path / "a.json")
        return
    log = fk.read_log(tmp_path)
    assert (log.steps["step"].to_list(), log.skipped) == ([0.0, 1.0, 2.0][: 2 if cut else 3], int(cut > 0))


def test_an_inverse_pace_is_a_time(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("  5%|5  | 10/200 [00:21<06:54,  4.00it/s]\r  \r{'loss': 0.8, 'epoch': 0.12}\n")
    assert fk.read_log(tmp_path).steps["step_s"].item() == 0.25


@pytest.mark.parametrize("end", ["\n", ""], ids=["finished", "killed"])
def test_all_refreshes_of_a_progress_bar_in_one_line_are_read(tmp_path: Path, end: str) -> None:
    bar = "Epoch 0: : 10%|# | {0}/99 [00:48<10:00, global_step={0}.0, train_step_timing in s=3.{0}00]".format
    (tmp_path / "a.log").write_text("starting\n" + "\r".join(map(bar, (7, 8, 8, 9, 9))) + end)
    assert fk.read_log(tmp_path).steps["step"].to_list() == [7.0, 8.0, 9.0]


@pytest.mark.parametrize("name", ["step_time", "train/step_time", "perf/step_time", "iteration-time"])
def test_a_history_of_wandb_has_the_step_time_of_its_framework(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"_step": 10, "_timestamp": 1772366400.0, name: 4.25}) + "\n")
    assert fk.read_log(tmp_path).steps["step_s"].item() == 4.25


def test_deepspeed_prints_steps_without_their_time(tmp_path: Path) -> None:
    line = "[2026-03-01 12:00:{:02},250] [INFO] [logging.py:96:log_dist] [Rank 0] step={}, skipped=0, lr=[5e-05]\n"
    file = tmp_path / "job-7.out"
    file.write_text("".join(line.format(n, 10 * n) for n in range(1, 6)))
    steps = fk.read_log(file).steps
    assert steps["step"].to_list() == [10.0, 20.0, 30.0, 40.0, 50.0]
    assert steps["at"][0] == AT.replace(second=1, microsecond=250_000)


def test_glog_of_maxtext_has_the_year_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "job-7.log"
    line = "I{} 12:34:56.500000 140 max_utils.py:10] completed step: {}, seconds: 2.1, TFLOP/s/device: 134.9\n"
    file.write_text(line.format("1231", 5) + line.format("0101", 6))
    os.utime(file, (AT.timestamp(), AT.timestamp()))
    assert fk.read_log(file).steps["at"].dt.year().to_list() == [2025, 2026]


def test_a_gauge_of_the_last_xid_is_an_event_when_it_changes(tmp_path: Path) -> None:
    """DCGM reports the last Xid until the driver is loaded again; other accelerators have none."""
    codes = [0, 0, 79, 79, 79, 0, 0, 79, 94]
    at = [1772366400 + 3600 * hour for hour in range(len(codes))]
    lines = [
        f'DCGM_FI_DEV_XID_ERRORS{{gpu="{g}",Hostname="n1"}} {c * g} {t}'
        for t, c in zip(at, codes, strict=True)
        for g in (1, 0)
    ]
    (tmp_path / "a.prom").write_text("\n".join([*lines, ""]))
    metric = '{{"metric":{{"__name__":"DCGM_FI_DEV_XID_ERRORS","Hostname":"n2","gpu":"{}"}},"values":[{}]}}'
    series = [metric.format(g, ",".join(f'[{t},"{c * g}"]' for t, c in zip(at, codes, strict=True))) for g in (1, 0)]
    (tmp_path / "b.json").write_text('{{"data":{{"resultType":"matrix","result":[{}]}}}}'.format(",".join(series)))
    log = fk.read_log(tmp_path)
    failed = log.events.filter(kind="failure").sort("node", "at").select("node", pl.col("at").dt.epoch("s"), "code")
    expected = [(at[2], "79"), (at[7], "79"), (at[8], "94")]
    assert failed.rows() == [(node, *row) for node in ("n1", "n2") for row in expected]
    assert {(since.timestamp(), until.timestamp()) for _, since, until, _ in log.watched.rows()} == {(at[0], at[-1])}


def test_a_health_check_that_fails_again_and_again_is_one_failure(tmp_path: Path) -> None:
    """GCM runs each check in turn, here every hour; one check fails from the third to the fifth hour, one at last."""
    results = {"check_nvidia_smi": [0, 0, 2, 2, 2, 0, 0], "check_ib": [0, 0, 0, 0, 0, 0, 2]}
    for name, values in results.items():
        record = {"node": "n1", "health_check": name}
        rows = (record | {"result": v, "start_time": 1772366400 + 3600 * hour} for hour, v in enumerate(values))
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = fk.read_log(tmp_path)
    failed = log.events.filter(kind="failure").select(pl.col("at").dt.hour(), "accelerator", "cause")
    assert failed.rows() == [(14, "check_nvidia_smi", "accelerator"), (18, "check_ib", "network")]
    assert fk.fleet.mtbf(log)["failures"].item() == 2.0


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("is_study", [False, True])
def test_a_gauge_is_held_from_file_to_file(tmp_path: Path, in_pieces: bool, is_study: bool) -> None:
    """A file of OpenMetrics that grows, or a file per scrape: the Xid of the first samples is the last one's still."""
    samples = [(79, 0), (79, 1), (79, 2), (0, 3), (79, 4)]
    logs, study = tmp_path / "logs", None
    logs.mkdir()
    for code, hour in samples:
        with (logs / f"{hour if in_pieces else 0}.prom").open("a") as file:
            file.write(f'DCGM_FI_DEV_XID_ERRORS{{gpu="3",Hostname="n1"}} {code} {1772366400 + 3600 * hour}\n')
        study = fk.read_log(logs, out=tmp_path / "study")
    failed = pl.col("kind") == "failure"
    log = study.log() if is_study else fk.read_log(logs)
    assert log.events.filter(failed)["at"].dt.hour().to_list() == [12, 16]
    assert study.sql("select moment from events where kind = 'failure' order by 1")["moment"].dt.hour().to_list() == [
        12,
        16,
    ]


def kubernetes_event(count: int, last: str, **fields: Any) -> dict[str, Any]:
    node = {"kind": "Node", "name": "n1"}
    event = {"metadata": {"uid": "a"}, "reason": "KernelOops", "firstTimestamp": "2026-03-01T12:00:00Z"}
    return {**event, "involvedObject": node, "count": count, "lastTimestamp": f"2026-03-01T{last}Z", **fields}


SERIES = {"firstTimestamp": None, "lastTimestamp": None, "eventTime": "2026-03-01T12:00:00.000000Z"}
COUNTED = {
    "a count": ([kubernetes_event(4, "15:00:00")], [12, 13, 14, 15], 3),
    "once": ([kubernetes_event(1, "15:00:00")], [15], 0),
    "two reports of one event": (
        [kubernetes_event(1, "12:00:00"), kubernetes_event(4, "18:00:00")],
        [12, 14, 16, 18],
        2,
    ),
    "two reports in another order": ([kubernetes_event(2, "15:00:00"), kubernetes_event(1, "12:00:00")], [12, 15], 0),
    "a report that is repeated": ([kubernetes_event(2, "15:00:00"), kubernetes_event(2, "15:00:00")], [12, 15], 1),
    "other events": ([kubernetes_event(2, "15:00:00"), kubernetes_event(2, "15:00:00", metadata={})], [12, 15], 2),
    "a series": (
        [kubernetes_event(0, "", **SERIES, series={"count": 3, "lastObservedTime": "2026-03-01T16:00:00.000000Z"})],
        [12, 14, 16],
        2,
    ),
}


@pytest.mark.parametrize("names", [("a.json", "b.json"), ("events.json.1", "events.json")])
def test_an_event_is_not_counted_again_in_another_file(tmp_path: Path, names: tuple[str, str]) -> None:
    for name, hours in zip(names, ((12, 13), (17, 18)), strict=True):
        reports = [kubernetes_event(hours.index(h) + (3 if h > 13 else 1), f"{h}:00:00") for h in hours]
        (tmp_path / name).write_text("".join(json.dumps(report) + "\n" for report in reports))
    assert fk.read_log(tmp_path).events["at"].dt.hour().to_list() == [12, 13, 17, 18]


@pytest.mark.parametrize("name", COUNTED)
def test_events_that_were_counted_together_are_all_counted(tmp_path: Path, name: str) -> None:
    reports, hours, estimated = COUNTED[name]
    (tmp_path / "a.json").write_text("".join(json.dumps(report) + "\n" for report in reports))
    log = fk.read_log(tmp_path)
    assert log.events["at"].dt.hour().to_list() == hours
    assert dict(log.counts.iter_rows()).get(log_file.SPREAD, 0) == estimated


def test_a_large_count_of_an_event_is_limited(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(kubernetes_event(10**9, "15:00:00")) + "\n")
    assert fk.read_log(tmp_path).events.height == log_file.MAX_TIMES


def test_an_event_is_not_counted_again_where_a_log_goes_on(tmp_path: Path) -> None:
    file, hours = tmp_path / "events.jsonl", [0, 1, 5, 6, 11]
    for count, hour in enumerate(hours, 1):
        with file.open("a") as log:
            log.write(json.dumps(kubernetes_event(count, f"{12 + hour}:00:00")) + "\n")
        study = fk.read_log(file, out=tmp_path / "study")
    assert study.log().events["at"].dt.hour().to_list() == [12 + hour for hour in hours]
    assert study.sql("select count(*) as events from events")["events"].item() == len(hours)


KERNEL_ERRORS = {
    "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up": ("failure", "20034"),
    "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress": ("notice", "12028"),
    "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x004505c6)": ("failure", "149"),
    "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Nonfatal XC0 i0 Link 01 (0x004505c6)": ("notice", "149"),
}


@pytest.mark.parametrize("message", KERNEL_ERRORS)
def test_a_fatal_error_of_a_link_is_a_failure(tmp_path: Path, message: str) -> None:
    (tmp_path / "a.log").write_text(f"2026-03-01T12:00:00+00:00 n1 kernel: {message}\n")
    row = fk.read_log(tmp_path).events.row(0, named=True)
    assert ((row["kind"], row["code"]), row["cause"]) == (KERNEL_ERRORS[message], "accelerator link")


@pytest.mark.parametrize(
    "at",
    [
        "Mar 01 12:00:00",
        "Mar 01 12:00:00.250000",
        "2026-03-01T12:00:00+0000",
        "Sun 2026-03-01 12:00:00 UTC",
        "1772366400.000000",
    ],
)
def test_a_line_of_a_journal_names_its_node(tmp_path: Path, at: str) -> None:
    (tmp_path / "a.log").write_text(f"{at} n9 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n")
    os.utime(tmp_path / "a.log", (AT.timestamp(), AT.timestamp()))
    log = fk.read_log(tmp_path)
    assert [(row["node"], row["at"].replace(microsecond=0)) for row in log.events.iter_rows(named=True)] == [("n9", AT)]
    assert log.watched["node"].to_list() == ["n9"]


def test_torchtitan_prints_in_colours(tmp_path: Path) -> None:
    line = "[titan] 2026-03-01 12:00:00,000 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss: 7.1  \x1b[34mtps: 5,210  \n"
    (tmp_path / "a.log").write_text(line)
    assert fk.read_log(tmp_path).steps.select("at", "step").rows() == [(AT, 10.0)]


def test_series_without_a_name_are_refused(tmp_path: Path) -> None:
    text = '{"data":{"resultType":"matrix","result":[{"metric":{"Hostname":"n1"},"values":[[1772366400,"4800"]]}]}}'
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(fk.FactorykitError, match="no rows"):
        fk.read_log(tmp_path, kind="prometheus_power")
