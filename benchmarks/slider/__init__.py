"""From a slider to the changed picture, in JupyterLab and on a static page, measured in a real browser.

A time is that from the key press to the animation frame in which the line has changed; on the page, to the moment it
changes. Every way draws 600 rows and is moved by arrow keys. What takes no formula of the project computes one and the
same, in the kernel or in Vega: the way is measured, not the work.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks import Missing, Row
from benchmarks.slider.lab import browser, chromium, jupyterlab, run_all, write

MOVES = 60
MANY = 240

SIGNALS = """import factorykit as fk
import factorykit.charts.live as live_module
live_module.GRID_POINTS = 600
explorer = fk.widgets.explore(fk.charts.checkpoint.goodput_by_interval())
explorer"""

ALTAIR = """import altair as alt, ipywidgets, polars as pl
from IPython.display import display
grid = pl.DataFrame({"accelerators": [64.0 * 1.05**n for n in range(200)]})
grid = grid.join(pl.DataFrame({"checkpoint_write_s": [10.0, 60.0, 300.0]}), how="cross")
def goodput(mtbf_s):
    lost = pl.col("accelerators") * pl.col("checkpoint_write_s") / mtbf_s
    frame = grid.with_columns(checkpoint_goodput=(-lost).exp())
    return frame.select("accelerators", "checkpoint_goodput", who=pl.col("checkpoint_write_s").cast(pl.String))
def base(data):
    return alt.Chart(data).mark_line().encode(
        x=alt.X("accelerators:Q", scale=alt.Scale(type="log")), y="checkpoint_goodput:Q", color="who:N"
    ).properties(width=500, height=300)
alt.JupyterChart.enable_offline(True)
k = alt.param("k", value=1.8e8)
formula = "exp(-datum.accelerators * datum.checkpoint_write_s / k)"
calculated = base(grid.with_columns(who=pl.col("checkpoint_write_s").cast(pl.String))).add_params(k)
calculated = calculated.transform_calculate(checkpoint_goodput=formula)
jupyter_chart = alt.JupyterChart(calculated, embed_options={"renderer": "svg"})
moved = ipywidgets.FloatLogSlider(value=1.8e8, min=7, max=9.5, step=0.0125)
moved.observe(lambda change: setattr(jupyter_chart.params, "k", change["new"]), "value")
ipywidgets.VBox([moved, jupyter_chart])"""

EMPTY = """import altair as alt, ipywidgets, polars as pl
alt.JupyterChart.enable_offline(True)
k = alt.param("k", value=1.0)
two = alt.Chart(pl.DataFrame({"x": [0.0, 1.0]})).mark_line().add_params(k).transform_calculate(y="datum.x * k")
two = two.encode(x="x:Q", y=alt.Y("y:Q", scale=alt.Scale(domain=[0, 9])))
empty = alt.JupyterChart(two, embed_options={"renderer": "svg"})
moves = ipywidgets.FloatSlider(value=1.0, min=0.5, max=8.0, step=0.05)
moves.observe(lambda change: setattr(empty.params, "k", change["new"]), "value")
ipywidgets.VBox([moves, empty])"""

OUTPUT = """from IPython.display import clear_output
out, again = ipywidgets.Output(), ipywidgets.FloatLogSlider(value=1.8e8, min=7, max=9.5, step=0.0125)
MIME = "application/vnd.vegalite.v5+json"
def show(change=None):
    with out:
        clear_output(wait=True)
        spec = base(goodput(again.value)).to_dict()
        spec.pop("$schema")
        display({MIME: spec}, raw=True, metadata={MIME: {"embed_options": {"renderer": "svg"}}})
again.observe(show, "value")
show()
ipywidgets.VBox([again, out])"""

STEP = """{'Llama 3 70B': {
    **fk.architecture('llama3_70b'), 'accelerator': 'h100_sxm', 'accelerators': 512.0, 'sequence_length': 8192.0,
    'global_batch_size': 512.0, 'micro_batch_size': 1.0, 'tensor_parallel': 8.0, 'pipeline_parallel': 4.0}}"""

WAYS = {"signals": SIGNALS, "JupyterChart": ALTAIR, "Output": OUTPUT}

WATCH = """(n) => {
    const cell = document.querySelectorAll('.jp-CodeCell')[n], next = document.querySelectorAll('.jp-CodeCell')[n + 1];
    const ours = cell.querySelector('.fk-view');
    const line = () => (ours ?? cell).querySelector('svg [class*="mark-line"] path')?.getAttribute('d');
    const place = () => next ? next.getBoundingClientRect().top - cell.getBoundingClientRect().top : 0;
    const seen = window.seen = { times: [], blank: 0, jump: 0, on: true };
    let last = line(), changed = false, at = place(), pressed = null;
    // Another output holds its slider, too: there a new line is what counts, here any change of the picture.
    const all = { subtree: true, childList: true, attributes: true };
    if (ours) new MutationObserver(() => { changed = true; }).observe(ours, all);
    cell.addEventListener('keydown', () => { pressed ??= performance.now(); }, true);
    const look = () => {
        if (!seen.on) return;
        const now = line();
        if (!now) seen.blank++;
        else if (ours ? changed : now !== last) {
            [last, changed] = [now, false];
            if (pressed !== null) seen.times.push(performance.now() - pressed);
            pressed = null;
        }
        seen.jump = Math.max(seen.jump, Math.abs(place() - at));
        requestAnimationFrame(look);
    };
    look();
}"""

FIRST = """
new MutationObserver((_, observer) => {
    if (!document.querySelector('.fk-view svg [class*="mark-line"] path')) return;
    observer.disconnect();
    window.first = performance.now();
}).observe(document, { childList: true, subtree: true });"""

PAGE = """async (moves) => {
    const chart = factorykit.charts[0], view = chart.body.querySelector('.fk-view');
    const line = view.querySelector('[class*="mark-line"] path');
    const input = chart.body.querySelector('input[type=range]'), times = [];
    for (let n = 0; n < moves; n++) {
        const changed = new Promise((go) => {
            const observer = new MutationObserver(() => (observer.disconnect(), go()));
            observer.observe(line, { attributeFilter: ['d'] });
        });
        const start = performance.now();
        input.value = Number(input.value) + (n % 40 < 20 ? 1 : -1);
        input.dispatchEvent(new Event('input', { bubbles: true }));
        await changed;
        times.push(performance.now() - start);
        await new Promise(requestAnimationFrame);
    }
    return times;
}"""

ANEW = """async (moves) => {
    const place = document.body.appendChild(document.createElement('div')), times = [];
    const payload = factorykit.charts[0].payload;
    for (let n = 0; n < moves; n++) {
        const start = performance.now();
        place.replaceChildren();
        await factorykit.draw(place, payload, { link: false });
        times.push(performance.now() - start);
    }
    place.remove();
    return times;
}"""


def rows() -> Iterator[Row]:
    """Yield one row a comparison; what no ratio can say is printed below it."""
    if not chromium():
        raise Missing("no Chromium on PATH (apt install chromium)")
    with tempfile.TemporaryDirectory() as name, browser() as running:
        folder = Path(name)
        yield from _page(running, folder)
        yield from _lab(running, folder)
        yield from _explorers(running, folder)


def _page(running: Any, folder: Path) -> Iterator[Row]:
    import factorykit.charts.live as live_module
    from factorykit.charts import checkpoint, page_script
    from factorykit.charts.embed import html

    script = page_script()
    points, live_module.GRID_POINTS = live_module.GRID_POINTS, 600
    (folder / "factorykit.js").write_text(script)
    body = html(checkpoint.goodput_by_interval().payload)
    live_module.GRID_POINTS = points
    head = '<!doctype html><html><head><meta charset="utf-8"><script defer src="factorykit.js"></script></head>'
    (folder / "index.html").write_text(f"{head}<body>{body}</body></html>")
    with served(folder) as address:
        page = running.new_page(viewport={"width": 1000, "height": 900})
        first = first_s(page, address, FIRST, "window.first && factorykit.charts.length")
        page.evaluate(PAGE, MOVES)
        times, anew = page.evaluate(PAGE, MOVES), page.evaluate(ANEW, MOVES)
        page.close()
    yield Row("page: slider to picture, 600 rows", "draw the chart anew", *_medians(times, anew), at_most_s=0.01)
    yield Row("page: first chart, from a local server", "", first, None, at_most_s=1.0)
    print(f"    p90 {_p90(times):.1f} ms; script {len(script.encode()) / 1e3:.0f} kB, at most 1,000")


def _lab(running: Any, folder: Path) -> Iterator[Row]:
    write(folder, "ways.ipynb", [*WAYS.values(), "'end'"])
    with jupyterlab(folder) as address:
        page = running.new_page(viewport={"width": 1200, "height": 1000})
        sent = _counted(page)
        run_all(page, address, "ways.ipynb")
        page.get_by_text("'end'").last.wait_for()
        page.wait_for_timeout(5000)
        found = {way: _moved(page, n, sent, MOVES) for n, way in enumerate(WAYS)}
        session = page.context.new_cdp_session(page)
        before, after = _heap(page, session, 0, sent)
        page.close()
    what, ours = "JupyterLab: slider to picture", found["signals"]
    for rival in ("JupyterChart", "Output"):
        theirs = found[rival]["times"]
        yield Row(what, rival, *_medians(ours["times"], theirs), at_most_ratio=1.0, at_most_s=0.04)
    yield Row(f"{what}, p90", "", _p90(ours["times"]) / 1e3, None, at_most_s=0.06)
    print(f"    {_said(ours)}; heap {before:.0f} MB, after {MANY} moves {after:.0f} MB")
    for rival in ("JupyterChart", "Output"):
        print(f"    {rival}: {_said(found[rival])}")


def _counted(page: Any) -> dict[str, int]:
    """Return a count of the bytes that the sockets of a page carry from now on."""
    sent = {"bytes": 0}

    def count(payload: str | bytes) -> None:
        sent["bytes"] += len(payload)

    def listen(socket: Any) -> None:
        socket.on("framereceived", count)
        socket.on("framesent", count)

    page.on("websocket", listen)
    return sent


def _explorers(running: Any, folder: Path) -> Iterator[Row]:
    """Yield what each ready-made explorer takes in JupyterLab, and with a pinned curve beside its own.

    On a machine that others use, too, the ratio is more reliable than the time: the rival is a chart of two points.
    """
    made = [(name, f"explorer = fk.explore(fk.charts.{name}({run}))\nexplorer") for name, run in ready_made()]
    first = "import factorykit as fk\nrun = {'Llama 3.1 405B': fk.preset('llama_3_1_405b')}"
    folder = folder / "explorers"  # a workspace of its own, that restores no notebook of the others before it
    folder.mkdir()
    write(folder, "explorers.ipynb", [first, *(cell for _, cell in made), EMPTY, "'end'"])
    with jupyterlab(folder) as address:
        page = running.new_page(viewport={"width": 1200, "height": 1000})
        sent = _counted(page)
        run_all(page, address, "explorers.ipynb")
        page.get_by_text("'end'").last.wait_for()
        empty = statistics.median(_moved(page, len(made) + 1, sent, MOVES)["times"]) / 1e3
        for n, (name, _) in enumerate(made, 1):
            alone = _moved(page, n, sent, MOVES, pause_ms=120)["times"]
            page.locator(".jp-CodeCell").nth(n).get_by_role("button", name="Pin").first.click()
            pinned = _moved(page, n, sent, MOVES, pause_ms=120)["times"]
            middle, what = statistics.median(alone) / 1e3, f"{name}: slider to picture"
            yield Row(what, "an empty JupyterChart", middle, empty, at_most_ratio=1.0, at_most_s=0.012)
            yield Row(f"{name}: p90", "", _p90(alone) / 1e3, None, at_most_s=0.03)
            more = statistics.median(pinned) - statistics.median(alone)
            yield Row(f"{name}: a pinned curve more", "", max(more, 0.0) / 1e3, None, at_most_s=0.003)
        page.close()


def ready_made() -> Iterator[tuple[str, str]]:
    """Yield every function of the charts that returns one with sliders, and what it is given."""
    from factorykit import charts
    from factorykit.charts import checkpoint, compute, cost, energy, operations, performance, reliability

    for topic in (checkpoint, compute, cost, energy, operations, performance, reliability):
        for name, function in vars(topic).items():
            if (
                getattr(function, "__annotations__", {}).get("return") == "Live"
                and function.__module__ == topic.__name__
            ):
                takes = "run" if function.__code__.co_argcount else ""
                short = topic.__name__.removeprefix(f"{charts.__name__}.")
                yield f"{short}.{name}", STEP if topic is performance else takes


def _moved(page: Any, n: int, sent: dict[str, int], moves: int, pause_ms: int = 250) -> dict[str, Any]:
    """Move the slider of cell ``n`` by arrow keys and return what was seen."""
    cell = page.locator(".jp-CodeCell").nth(n)
    cell.scroll_into_view_if_needed()
    handle = cell.locator("input[type=range], .noUi-handle").first
    handle.focus()
    before = -1
    while sent["bytes"] != before:  # frames of what ran before must not be counted
        before = sent["bytes"]
        page.wait_for_timeout(2000)
    page.evaluate(WATCH, n)
    sent["bytes"] = 0
    for move in range(moves):
        page.keyboard.press("ArrowRight" if move % 40 < 20 else "ArrowLeft")
        page.wait_for_timeout(pause_ms)
    page.wait_for_timeout(500)
    seen = page.evaluate("() => { seen.on = false; return seen }")
    return seen | {"bytes": sent["bytes"] / moves}


def _heap(page: Any, session: Any, n: int, sent: dict[str, int]) -> tuple[float, float]:
    """Return the megabytes in use before and after many moves, garbage collected."""

    def used() -> float:
        session.send("HeapProfiler.collectGarbage")
        return session.send("Runtime.getHeapUsage")["usedSize"] / 1e6

    before = used()
    _moved(page, n, sent, MANY, pause_ms=30)
    return before, used()


def _medians(ours: list[float], theirs: list[float]) -> tuple[float, float | None]:
    return statistics.median(ours) / 1e3, statistics.median(theirs) / 1e3 if theirs else None


def _p90(times: list[float]) -> float:
    return statistics.quantiles(times, n=10)[-1]


def _said(seen: dict[str, Any]) -> str:
    p90 = _p90(seen["times"]) if len(seen["times"]) > 1 else float("nan")
    kilobytes = seen["bytes"] / 1e3
    return f"p90 {p90:.0f} ms, {kilobytes:.1f} kB a move, {seen['blank']} blank frames, jump {seen['jump']:.0f} px"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def first_s(page: Any, address: str, script: str, shown: str = "window.first") -> float:
    """Return the median seconds until a page first answers, which a script of it notes."""
    page.add_init_script(script)
    found = []
    for _ in range(5):
        page.goto(address)
        page.wait_for_function(shown)
        found.append(page.evaluate("window.first"))
    return statistics.median(found) / 1e3


@contextmanager
def served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
