"""Jobs and pods as ``kubectl get jobs,pods -o json`` tells them: attempts of a job, each with when and where it ran.

A pod tells its present start and the one before it (``state`` and ``lastState``); earlier ones it counts. Pods of a
job that stand at the same place follow one another as attempts; all places together are one attempt. A job whose pods
are gone is one attempt, and the attempts that failed before are counted alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

JOB_LABELS: Final = (
    *("batch.kubernetes.io/job-name", "job-name", "training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name"),
    *("ray.io/cluster", "volcano.sh/job-name"),
)
"""Labels by which controllers mark the pods of a job, the first told one counts."""
PLACE_LABELS: Final = (
    *("batch.kubernetes.io/job-completion-index", "training.kubeflow.org/replica-index"),
    *("jobset.sigs.k8s.io/job-index", "volcano.sh/task-index"),
)
"""Labels that say at which place of a job a pod stands."""
ACCELERATORS: Final = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "aws.amazon.com/neuron", "habana.ai/gaudi")
"""Resources that are accelerators."""
MOST_DIGITS: Final = 9
"""Of a count of them."""
OUTCOMES: Final = ("node failure", "out of memory", "preempted", "timeout", "failed", "running", "completed")
"""States of an attempt, of which the first that one of its pods has is that of all."""
WORDS: Final = {
    **dict.fromkeys(
        ("NodeLost", "NodeShutdown", "NodeAffinity", "Shutdown", "UnexpectedAdmissionError"), "node failure"
    ),
    **dict.fromkeys(("DeletionByTaintManager", "TerminationByKubelet", "DeletionByPodGC"), "node failure"),
    **dict.fromkeys(
        ("Preempting", "PreemptionByScheduler", "Preempted", "Evicted", "EvictionByEvictionAPI"), "preempted"
    ),
    "OOMKilled": "out of memory",
    "DeadlineExceeded": "timeout",
    "Completed": "completed",
}
"""Reasons of pods and of conditions, by what they mean of an attempt."""


@dataclass(frozen=True)
class _Start:
    """One start of a pod."""

    place: str
    submitted: str | None
    started: str
    ended: str | None
    state: str
    node: str
    user: str
    accelerators: float


def attempts(items: Sequence[Any]) -> tuple[list[str], int]:
    """Return the attempts of all jobs among some objects as lines of JSON, and how many more are counted alone."""
    jobs: dict[str, list[_Start]] = {}
    lines, untold = [], 0
    for pod in _of_kind(items, "Pod"):
        starts = list(_starts(pod))
        if starts:
            jobs.setdefault(_job(pod), []).extend(starts)
        untold += max(_restarts(pod) + 1 - len(starts), 0) if starts else 0
    for name, starts in jobs.items():
        lines += [_line(name, attempt) for attempt in _together(starts)]
    for job in _of_kind(items, "Job"):
        name = _meta(job).get("name")
        if name in jobs:
            continue
        line, failed = _alone(job)
        lines += [line] if line else []
        untold += failed
    return lines, untold


def is_told(items: Iterable[Any]) -> bool:
    """Return whether there are jobs or pods among some objects."""
    return any(isinstance(each, dict) and each.get("kind") in ("Pod", "Job") and "status" in each for each in items)


def _of_kind(items: Iterable[Any], kind: str) -> Iterator[Mapping[str, Any]]:
    return (each for each in items if isinstance(each, dict) and each.get("kind") == kind)


def _meta(thing: Mapping[str, Any]) -> Mapping[str, Any]:
    return _object(thing.get("metadata"))


def _object(told: Any) -> Mapping[str, Any]:
    return told if isinstance(told, dict) else {}


def _listed(told: Any) -> list[Mapping[str, Any]]:
    return [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []


def _job(pod: Mapping[str, Any]) -> str:
    meta = _meta(pod)
    labels = _object(meta.get("labels"))
    owners = [each.get("name") for each in _listed(meta.get("ownerReferences"))]
    named = [labels.get(name) for name in JOB_LABELS]
    return str(next(filter(None, [*named, *owners, meta.get("name")]), ""))


def _accelerators(template: Mapping[str, Any]) -> float:
    limits = (
        _object(_object(each.get("resources")).get("limits")).get(name)
        for each in _listed(_object(template.get("spec")).get("containers"))
        for name in ACCELERATORS
    )
    told = (str(each) for each in limits)
    return float(sum(int(each) for each in told if each.isdecimal() and len(each) <= MOST_DIGITS))


def _restarts(pod: Mapping[str, Any]) -> int:
    told = [each.get("restartCount") for each in _listed(_object(pod.get("status")).get("containerStatuses"))]
    return max((each for each in told if isinstance(each, int)), default=0)


def _starts(pod: Mapping[str, Any]) -> Iterator[_Start]:
    """Yield the starts of a pod that it tells: the one before the present one, and the present one."""
    meta, spec, status = _meta(pod), _object(pod.get("spec")), _object(pod.get("status"))
    labels = _object(meta.get("labels"))
    place = str(next((labels[name] for name in PLACE_LABELS if name in labels), ""))
    who, node, count = str(meta.get("namespace") or ""), str(spec.get("nodeName") or ""), _accelerators(pod)
    said = [str(status.get("reason") or "")]
    said += [str(each.get("reason") or "") for each in _listed(status.get("conditions")) if _fails(each)]
    above = next((WORDS[each] for each in said if each in WORDS), None)
    for container in _listed(status.get("containerStatuses"))[:1]:
        before, now = (_object(container.get(name)) for name in ("lastState", "state"))
        for told, is_last in ((before, False), (now, True)):
            ended = _object(told.get("terminated"))
            begun = ended or _object(told.get("running"))
            if not begun.get("startedAt"):
                continue
            state = _state(ended, str(status.get("phase") or "")) if ended else "running"
            if is_last and above and state != "completed":
                state = above
            moments = str(meta.get("creationTimestamp") or "") or None, str(begun["startedAt"]), ended.get("finishedAt")
            yield _Start(place, *moments, state, node, who, count)


def _fails(condition: Mapping[str, Any]) -> bool:
    return condition.get("type") in ("DisruptionTarget", "Failed") and condition.get("status") == "True"


def _state(ended: Mapping[str, Any], phase: str) -> str:
    reason = str(ended.get("reason") or "")
    if ended.get("exitCode") == 0 or (reason == "Completed" and phase != "Failed"):
        return "completed"
    return WORDS.get(reason, "failed") if reason != "Completed" else "failed"


def _together(starts: Sequence[_Start]) -> list[list[_Start]]:
    """Return starts by attempt: the n-th at each place; without places, what begins after all before has ended."""
    ordered = sorted(starts, key=lambda each: each.started)
    if all(each.place for each in ordered):
        number: dict[str, int] = {}
        found: list[list[_Start]] = []
        for each in ordered:
            nth = number[each.place] = number.get(each.place, -1) + 1
            if nth == len(found):
                found.append([])
            found[nth].append(each)
        return found
    found = []
    end: str | None = None
    for each in ordered:
        if not found or (end is not None and each.started >= end):
            found.append([])
            end = ""
        found[-1].append(each)
        end = None if end is None or each.ended is None else max(end, each.ended)
    return found


def _line(job: str, attempt: Sequence[_Start]) -> str:
    nodes = list(dict.fromkeys(each.node for each in attempt if each.node))
    ends = [each.ended for each in attempt]
    states = {each.state for each in attempt}
    submitted = [each.submitted for each in attempt if each.submitted]
    return json.dumps(
        {
            "attempt": job,
            "user": attempt[0].user or None,
            "state": next((each for each in OUTCOMES if each in states), attempt[0].state),
            "submitted": min(submitted) if submitted else None,
            "started": min(each.started for each in attempt),
            "ended": None if None in ends else max(filter(None, ends), default=None),
            "nodes": len(nodes) or None,
            "accelerators": sum(each.accelerators for each in attempt),
            "on": ",".join(nodes) or None,
        }
    )


def _alone(job: Mapping[str, Any]) -> tuple[str, int]:
    """Return a job whose pods are gone as one attempt, nothing where it never started; and its failed pods."""
    meta, spec, status = _meta(job), _object(job.get("spec")), _object(job.get("status"))
    failed = status.get("failed")
    count = failed if isinstance(failed, int) else 0
    if not status.get("startTime"):
        return "", count
    is_over = [each for each in _listed(status.get("conditions")) if each.get("status") == "True"]
    fault = next((each for each in is_over if each.get("type") == "Failed"), None)
    state = "completed" if status.get("completionTime") else "running"
    if fault:
        state = WORDS.get(str(fault.get("reason") or ""), "failed")
        count -= min(count, 1)
    template, pods = _object(spec.get("template")), spec.get("parallelism", 1)
    line = {
        "attempt": str(meta.get("name") or ""),
        "user": meta.get("namespace"),
        "state": state,
        "submitted": meta.get("creationTimestamp"),
        "started": status["startTime"],
        "ended": status.get("completionTime") or (fault or {}).get("lastTransitionTime"),
        "accelerators": pods * _accelerators(template) if isinstance(pods, int) else None,
    }
    return json.dumps(line), count
