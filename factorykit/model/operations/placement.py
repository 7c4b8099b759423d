"""Placement of jobs on the free accelerators of a cluster."""

from __future__ import annotations

import random


class Nodes:
    """Free accelerators. Small jobs share nodes, larger ones take whole nodes."""

    def __init__(self, nodes: int, size: int, per_pod: int, packed: bool, draw: random.Random) -> None:
        self.size, self.per_pod = size, per_pod
        self.pods_of = [node // per_pod for node in range(nodes)]
        self.free = [size] * nodes
        self.up = [True] * nodes
        self.whole: list[set[int]] = [set() for _ in range(self.pods_of[-1] + 1)]
        for node, pod in enumerate(self.pods_of):
            self.whole[pod].add(node)
        self.partly: list[set[int]] = [set() for _ in range(self.size)]
        self.whole_nodes = nodes
        self.free_total = nodes * size
        self.packed, self.draw = packed, draw

    def take(self, accelerators: int) -> list[tuple[int, int]] | None:
        """Return nodes and accelerators for a job, or None if it does not fit now."""
        if accelerators > self.free_total:
            return None
        if accelerators < self.size:
            return self._share(accelerators)
        nodes = -(-accelerators // self.size)
        if nodes > self.whole_nodes:
            return None
        chosen = self._pack(nodes) if self.packed else self._scatter(nodes)
        for node in chosen:
            self.whole[self.pods_of[node]].discard(node)
            self.free[node] = 0
        self.whole_nodes -= nodes
        self.free_total -= nodes * self.size
        return [(node, self.size) for node in chosen]

    def _share(self, accelerators: int) -> list[tuple[int, int]] | None:
        for left in range(accelerators, self.size):
            if self.partly[left]:
                node = self.partly[left].pop()
                break
        else:
            if not self.whole_nodes:
                return None
            pod = min((pod for pod in range(len(self.whole)) if self.whole[pod]), key=lambda pod: len(self.whole[pod]))
            node = self.whole[pod].pop()
            self.whole_nodes -= 1
        self.free[node] -= accelerators
        self.free_total -= accelerators
        if self.free[node]:
            self.partly[self.free[node]].add(node)
        return [(node, accelerators)]

    def _pack(self, nodes: int) -> list[int]:
        """Fill the pod that is just large enough, or else as few pods as possible."""
        sizes = [len(pod) for pod in self.whole]
        fitting = [pod for pod, size in enumerate(sizes) if size >= nodes]
        if fitting:
            pod = min(fitting, key=sizes.__getitem__)
            return self._first(pod, nodes)
        chosen: list[int] = []
        for pod in sorted(range(len(sizes)), key=lambda pod: -sizes[pod]):
            chosen += self._first(pod, min(nodes - len(chosen), sizes[pod]))
            if len(chosen) == nodes:
                break
        return chosen

    def _first(self, pod: int, nodes: int) -> list[int]:
        members = iter(self.whole[pod])
        return [next(members) for _ in range(nodes)]

    def _scatter(self, nodes: int) -> list[int]:
        return self.draw.sample([node for pod in self.whole for node in pod], nodes)

    def give(self, held: list[tuple[int, int]]) -> None:
        """Release the accelerators of a job; nodes that are down stay unavailable."""
        for node, accelerators in held:
            if not self.up[node]:
                self.free[node] += accelerators
                continue
            before = self.free[node]
            if before:
                self.partly[before].discard(node)
            self.free[node] = now = before + accelerators
            self.free_total += accelerators
            self._offer(node, now)

    def _offer(self, node: int, free: int) -> None:
        if free == self.size:
            self.whole[self.pods_of[node]].add(node)
            self.whole_nodes += 1
        elif free:
            self.partly[free].add(node)

    def fail(self, node: int) -> None:
        """Take a node out."""
        self.up[node] = False
        free = self.free[node]
        self.free_total -= free
        if free == self.size:
            self.whole[self.pods_of[node]].discard(node)
            self.whole_nodes -= 1
        elif free:
            self.partly[free].discard(node)

    def repair(self, node: int) -> None:
        """Put a node back."""
        self.up[node] = True
        self.free_total += self.free[node]
        self._offer(node, self.free[node])

    def spread(self, held: list[tuple[int, int]]) -> tuple[int, bool]:
        """Return how many pods a job spans and whether it could do with fewer."""
        pods = len({self.pods_of[node] for node, _ in held})
        return pods, pods > -(-len(held) // self.per_pod)
