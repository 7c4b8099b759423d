"""Attempts of Kubernetes jobs from the output of ``kubectl get jobs,pods -o json``.

A pod has its current and its previous start (``state`` and ``lastState``) and the number of earlier ones. Pods with the
same index in a job are successive attempts; the pods of all indices together are one attempt. A job without pods is one
attempt, and its earlier failed attempts are only counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from factorykit.telemetry.parsing import words

MAX_COUNT_DIGITS: Final = 9
"""Digits of a number of accelerators."""
MAX_RESTARTS: Final = 2**31 - 1
"""Largest ``restartCount`` of the Kubernetes API, an int32."""
STATE_PRECEDENCE: Final = ("node failure", "out of memory", "preempted", "timeout", "failed", "running", "completed")
"""States of an attempt: it has the first one that any of its pods has."""


@dataclass(frozen=True)
class _Start:
    """One start of a pod."""

    index: str
    submitted: str | None
    started: str
    ended: str | None
    state: str
    node: str
    user: str
    accelerators: float


def attempts(items: Sequence[Any]) -> tuple[list[str], int]:
    """Return the attempts of all jobs as lines of JSON, and the number of attempts without details."""
    jobs: dict[str, list[_Start]] = {}
    lines, without_details = [], 0
    for pod in _of_kind(items, "Pod"):
        starts = list(_starts(pod))
        if starts:
            jobs.setdefault(_job(pod), []).extend(starts)
        without_details += max(_restarts(pod) + 1 - len(starts), 0) if starts else 0
    for name, starts in jobs.items():
        lines += [_line(name, attempt) for attempt in _group(starts)]
    for job in _of_kind(items, "Job"):
        name = _meta(job).get("name")
        if name in jobs:
            continue
        line, failed = _without_pods(job)
        lines += [line] if line else []
        without_details += failed
    return lines, without_details


def has_workloads(items: Iterable[Any]) -> bool:
    """Return whether there are jobs or pods among objects."""
    return any(isinstance(item, dict) and item.get("kind") in ("Pod", "Job") and "status" in item for item in items)


def _of_kind(items: Iterable[Any], kind: str) -> Iterator[Mapping[str, Any]]:
    return (item for item in items if isinstance(item, dict) and item.get("kind") == kind)


def _meta(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return _object(item.get("metadata"))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _job(pod: Mapping[str, Any]) -> str:
    meta = _meta(pod)
    labels = _object(meta.get("labels"))
    owners = [owner.get("name") for owner in _objects(meta.get("ownerReferences"))]
    by_label = [labels.get(name) for name in words("job_label")]
    return str(next(filter(None, [*by_label, *owners, meta.get("name")]), ""))


def _accelerators(template: Mapping[str, Any]) -> float:
    limits = (
        _object(_object(container.get("resources")).get("limits")).get(name)
        for container in _objects(_object(template.get("spec")).get("containers"))
        for name in words("resource")
    )
    counts = (str(limit) for limit in limits)
    return float(sum(int(count) for count in counts if count.isdecimal() and len(count) <= MAX_COUNT_DIGITS))


def _statuses(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the statuses of the containers with accelerators, or of all if none has any: others are sidecars."""
    containers = _objects(_object(pod.get("spec")).get("containers"))
    names = [item.get("name") for item in containers if _accelerators({"spec": {"containers": [item]}})]
    statuses = _objects(_object(pod.get("status")).get("containerStatuses"))
    return [status for status in statuses if status.get("name") in names] or statuses


def _restarts(pod: Mapping[str, Any]) -> int:
    counts = (status.get("restartCount") for status in _statuses(pod))
    return max((count for count in counts if isinstance(count, int) and 0 <= count <= MAX_RESTARTS), default=0)


def _starts(pod: Mapping[str, Any]) -> Iterator[_Start]:
    """Yield the previous and the current start of a pod."""
    meta, spec, status = _meta(pod), _object(pod.get("spec")), _object(pod.get("status"))
    labels = _object(meta.get("labels"))
    index = str(next((labels[name] for name in words("index_label") if name in labels), ""))
    user, node, count = str(meta.get("namespace") or ""), str(spec.get("nodeName") or ""), _accelerators(pod)
    reasons = [str(status.get("reason") or "")]
    met = [item for item in _objects(status.get("conditions")) if item.get("status") == "True"]
    reasons += [str(item.get("reason") or "") for item in met if item.get("type") in ("DisruptionTarget", "Failed")]
    pod_state = next(filter(None, map(words("pod_state").get, reasons)), None)
    for container in _statuses(pod)[:1]:
        previous, current = (_object(container.get(name)) for name in ("lastState", "state"))
        for state_of, is_last in ((previous, False), (current, True)):
            ended = _object(state_of.get("terminated"))
            started = ended or _object(state_of.get("running"))
            if not started.get("startedAt"):
                continue
            state = _state(ended, str(status.get("phase") or "")) if ended else "running"
            if is_last and pod_state and state != "completed":
                state = pod_state
            submitted = str(meta.get("creationTimestamp") or "") or None
            yield _Start(index, submitted, str(started["startedAt"]), ended.get("finishedAt"), state, node, user, count)


def _state(ended: Mapping[str, Any], phase: str) -> str:
    reason = str(ended.get("reason") or "")
    if ended.get("exitCode") == 0 or (reason == "Completed" and phase != "Failed"):
        return "completed"
    return words("pod_state").get(reason, "failed") if reason != "Completed" else "failed"


def _group(starts: Sequence[_Start]) -> list[list[_Start]]:
    """Return starts by attempt: the n-th of each index; without indices, starts after the end of all earlier ones."""
    ordered = sorted(starts, key=lambda start: start.started)
    groups: list[list[_Start]] = []
    if all(start.index for start in ordered):
        numbers: dict[str, int] = {}
        for start in ordered:
            number = numbers[start.index] = numbers.get(start.index, -1) + 1
            if number == len(groups):
                groups.append([])
            groups[number].append(start)
        return groups
    end: str | None = None
    for start in ordered:
        if not groups or (end is not None and start.started >= end):
            groups.append([])
            end = ""
        groups[-1].append(start)
        end = None if end is None or start.ended is None else max(end, start.ended)
    return groups


def _line(job: str, attempt: Sequence[_Start]) -> str:
    nodes = list(dict.fromkeys(start.node for start in attempt if start.node))
    ends = [start.ended for start in attempt]
    states = {start.state for start in attempt}
    submitted = [start.submitted for start in attempt if start.submitted]
    return json.dumps(
        {
            "attempt": job,
            "user": attempt[0].user or None,
            "state": next((state for state in STATE_PRECEDENCE if state in states), attempt[0].state),
            "submitted": min(submitted) if submitted else None,
            "started": min(start.started for start in attempt),
            "ended": None if None in ends else max(filter(None, ends), default=None),
            "nodes": len(nodes) or None,
            "accelerators": sum(start.accelerators for start in attempt),
            "node_list": ",".join(nodes) or None,
        }
    )


def _without_pods(job: Mapping[str, Any]) -> tuple[str, int]:
    """Return a job without pods as one attempt (empty if it never started), and the number of its failed pods."""
    meta, spec, status = _meta(job), _object(job.get("spec")), _object(job.get("status"))
    failed = status.get("failed")
    count = failed if isinstance(failed, int) else 0
    if not status.get("startTime"):
        return "", count
    conditions = [item for item in _objects(status.get("conditions")) if item.get("status") == "True"]
    failure = next((item for item in conditions if item.get("type") == "Failed"), None)
    state = "completed" if status.get("completionTime") else "running"
    if failure:
        state = words("pod_state").get(str(failure.get("reason") or ""), "failed")
        count -= min(count, 1)
    template, pods = _object(spec.get("template")), spec.get("parallelism", 1)
    line = {
        "attempt": str(meta.get("name") or ""),
        "user": meta.get("namespace"),
        "state": state,
        "submitted": meta.get("creationTimestamp"),
        "started": status["startTime"],
        "ended": status.get("completionTime") or (failure or {}).get("lastTransitionTime"),
        "accelerators": pods * _accelerators(template) if isinstance(pods, int) else None,
    }
    return json.dumps(line), count
