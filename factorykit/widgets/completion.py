"""Names completed in IPython and JupyterLab: quantities, presets, tables, chips and models, where a call takes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, Final, NamedTuple

from factorykit.core.vocabulary import vocabulary

OPENING: Final = "([{"
CLOSING: Final = ")]}"
QUOTES: Final = "\"'"
CALLEE: Final = re.compile(r"([A-Za-z_][\w.]*)$")
SCENARIO: Final = re.compile(r"\b(?:Scenario|preset|architecture|accelerator|replace)\([^()]*\)\.replace$")
KEY: Final = re.compile(r"""(?:(\w+)\s*=|["'](\w+)["']\s*:)\s*\[?\s*$""")
ENTITIES: Final = {"accelerator": "accelerator", "like": "accelerator", "architecture": "architecture"}
OF_CALL: Final = {
    "preset": "preset",
    "table": "table",
    "sources": "table",
    "search": "architecture",
    "plan": "architecture",
} | {name: name for name in ("accelerator", "architecture")}
KEYWORDS: Final = ("Scenario", "replace", "accelerator", "plan")
"""Calls that take quantities as keywords."""
VERBS: Final = (
    *("evaluate", "explain", "assumed", "out_of_range", "compare", "decompose", "sweep", "sample", "sensitivity"),
    *("search", "simulate", "timeline", "rent", "build_or_rent", "check_recipe", "bands", "exceedance", "quantity"),
)
"""Calls that take quantities by name."""
BY_NAME: Final = ("", "inputs", "outputs", "output", "objective", "by", "grid", "distributions", "using", "choices")
"""Arguments that hold names of quantities; others, such as a path, are not completed."""


class Place(NamedTuple):
    """Context of the cursor: the innermost call, the keyword or key before it, and the text typed so far."""

    call: str
    key: str
    typed: str
    quote: str


def place(text: str) -> Place | None:
    """Return where the end of ``text`` stands, or None outside every call.

    >>> place('fk.evaluate(run, ["tok')
    Place(call='fk.evaluate', key='', typed='tok', quote='"')
    >>> place('run.replace(precision="fp')
    Place(call='run.replace', key='precision', typed='fp', quote='"')
    """
    calls: list[str] = []
    quote, start = "", 0
    for i, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and text[i - 1] != "\\" else quote
        elif letter in QUOTES:
            quote, start = letter, i + 1
        elif letter in OPENING:
            calls.append(_callee(text[:i]) if letter == "(" else "")
        elif letter in CLOSING and calls:
            calls.pop()
    call = next(filter(None, reversed(calls)), "")
    if not call:
        return None
    typed = text[start:] if quote else (re.search(r"\w*$", text) or [""])[0]
    key = KEY.search(text[: start - 1 if quote else len(text) - len(typed)])
    return Place(call, (key[1] or key[2]) if key else "", typed, quote)


def _callee(before: str) -> str:
    if SCENARIO.search(before):
        return "Scenario().replace"
    match = CALLEE.search(before)
    return match[1] if match else ""


def names(text: str, namespace: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the word at the end of ``text``, and its possible completions.

    >>> import factorykit as fk
    >>> names('fk.preset("palm', {"fk": fk})
    ('palm', ['palm_540b'])
    >>> names('fk.Scenario(mf', {"fk": fk})
    ('mf', ['mfu='])
    """
    at = place(text)
    if at is None or not _is_ours(at.call, namespace):
        return "", []
    verb = at.call.rpartition(".")[2]
    if at.quote:
        offered: Iterable[str] = _words(verb, at.key)
    elif verb in KEYWORDS and not at.key:
        offered = [f"{name}=" for name in vocabulary()]
    else:
        offered = ()
    return at.typed, [name for name in offered if name.startswith(at.typed)]


def _words(verb: str, key: str) -> Iterable[str]:
    """Return the possible strings: options or alternatives of a quantity, else the values that the call accepts."""
    from factorykit.data.tables import table, tables

    kind = ENTITIES.get(key) or ("" if key else OF_CALL.get(verb, ""))
    if kind == "table":
        return tables()["table"]
    if kind:
        return table(f"{kind}s").collect()[kind].unique(maintain_order=True)
    if row := vocabulary().get(key):
        return row.choices or row.alternatives
    return vocabulary() if verb in VERBS and key in BY_NAME else ()


def _is_ours(call: str, namespace: Mapping[str, Any]) -> bool:
    """Return whether a call is one of factorykit's; names are looked up, nothing is run."""
    if call == "Scenario().replace":
        return True
    first, *rest = call.split(".")
    target = namespace.get(first)
    for part in rest:
        holder = target if isinstance(target, (ModuleType, type)) else type(target)
        if holder is not target and not _of_factorykit(holder):
            return False
        target = getattr(holder, part, None)
    return _of_factorykit(target)


def _of_factorykit(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] == "factorykit"


def register() -> None:
    """Register the completions in the running IPython shell, if any; versions before 8.6 are left unchanged."""
    try:
        from IPython import get_ipython
        from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
    except ImportError:
        return
    shell = get_ipython()
    if shell is None:
        return

    @context_matcher(identifier="factorykit")
    def matcher(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.split("\n")[: context.cursor_line + 1]
        typed, matches = names("\n".join([*lines[:-1], lines[-1][: context.cursor_position]]), shell.user_ns)
        completions = [
            SimpleCompletion(text=name, type="quantity" if name in vocabulary() else "name") for name in matches
        ]
        return SimpleMatcherResult(completions=completions, matched_fragment=typed, suppress=bool(matches))

    shell.Completer.custom_matchers.append(matcher)
