"""The page of the planner gives the results of Python: formulas, layouts and draws."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.vocabulary import quantity
from factorykit.engine.question import Question
from factorykit.model.performance.layouts import PARTS, SHARE
from factorykit.model.planning.candidates import alternative_models, outputs
from factorykit.model.planning.constraints import TIERS
from factorykit.model.planning.summary import LINK_INPUTS, address
from factorykit.model.scenario.models import model_of
from factorykit.site.planner import launch_script, script
from factorykit.site.planner.controls import PRESETS, formulas, page_data, words
from factorykit.site.planner.model import architectures, draws, model_script, shape, unplanned

ASK = Path(__file__).with_name("ask.mjs")
CHIPS = ("h100_sxm", "b200", "a100_sxm_80gb", "h200_sxm", "mi300x")
MOVED = {
    "accelerator_mtbf_s": (1e7, 1e9),
    "restart_s": (10.0, 3600.0),
    "pue": (1.02, 1.6),
    "checkpoint_interval_s": (60.0, 7200.0),
    "storage_write_bytes_per_s": (1e9, 1e13),
    "rental_usd_per_accelerator_h": (0.5, 12.0),
    "spare_nodes": (0.0, 64.0),
    "scale_out_bytes_per_s": (1e10, 4e11),
    "recompute_share": (0.0, 1.0),
    "electricity_usd_per_kwh": (0.01, 0.3),
    "utilization": (0.3, 1.0),
    "training_sites": (1.0, 8.0),
    "inner_steps": (1.0, 500.0),
    "wan_bytes_per_s": (1e8, 1e12),
}

TOGETHER = ((), tuple(MOVED), *(tuple(MOVED)[start::3] for start in range(3)))
"""Sets of quantities that are given together; few, so that Python resolves few questions."""


@pytest.fixture(scope="module")
def page(node: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, list[Any]], list[Any]]:
    """Answers of the engine of the page to questions."""
    folder = tmp_path_factory.mktemp("planner")
    (folder / "model.js").write_text(model_script(), encoding="utf-8")
    (folder / "launch.js").write_text(launch_script(), encoding="utf-8")
    (folder / "page.json").write_text(json.dumps({**formulas(), **page_data()}), encoding="utf-8")

    def answers(verb: str, questions: list[Any]) -> list[Any]:
        file = folder / "questions.json"
        file.write_text(json.dumps([{"verb": verb, "question": each} for each in questions]), encoding="utf-8")
        command = [node, str(ASK), str(folder / "model.js"), str(file), str(folder / "page.json")]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr[-2000:]
        return json.loads(ran.stdout)

    return answers


def _random_scenario(chance: random.Random) -> dict[str, Any]:
    model = chance.choice(sorted(architectures()))
    power = chance.randint
    given: dict[str, Any] = dict(zip(shape(), architectures()[model], strict=True))
    given |= {
        "accelerator": chance.choice(CHIPS),
        "precision": chance.choice(("bf16", "fp8") if chance.random() < 0.5 else ("bf16",)),
        "accelerators": 8.0 * chance.randint(16, 4096),
        "tokens": 10.0 ** chance.uniform(10.0, 14.0),
        "global_batch_size": 2.0 ** power(6, 13),
        "sequence_length": 2.0 ** power(10, 15),
        "tensor_parallel": 2.0 ** power(0, 3),
        "pipeline_parallel": 2.0 ** power(0, 4),
        "context_parallel": 2.0 ** power(0, 1),
        "virtual_stages": 2.0 ** power(0, 2),
        "expert_parallel": 2.0 ** power(0, 3) if given["experts"] else 1.0,
        "micro_batch_size": 2.0 ** power(0, 3),
        "zero_stage": float(power(1, 3)),
        "recompute": chance.choice(("none", "selective", "full")),
        "schedule": chance.choice(("1f1b", "dualpipe", "zb1p")),
    }
    moved = chance.choice(TOGETHER)
    given |= {name: chance.uniform(*MOVED[name]) for name in moved}
    if given["accelerator"].startswith("a100"):
        given["precision"] = "bf16"
    return given | {"server_usd": chance.uniform(1e5, 1e6)}


@pytest.mark.parametrize("count", [240, pytest.param(10_000, marks=pytest.mark.long)])
def test_random_scenarios_equal_python(page: Callable[..., list[Any]], count: int) -> None:
    chance = random.Random(12)
    scenarios = [_random_scenario(chance) for _ in range(count)]
    kinds = [(("rent", "one"), ("own", "two"), ("rent", "two"))[n % 3] for n in range(count)]
    questions = [{"given": each, "tiers": tiers} for each, (_, tiers) in zip(scenarios, kinds, strict=True)]
    for given, (way, tiers), found in zip(scenarios, kinds, page("chain", questions), strict=True):
        wanted = [*outputs(way), "step_spread"]
        models = alternative_models(way, given, TIERS[tiers])
        values = Question(given, models, tuple(wanted), assume=True).resolve().known
        if way == "own":
            found["run_cost_usd"] = found["run_cost_owned_usd"]
        for name in wanted:
            assert found[name] == pytest.approx(values[name], rel=1e-9), (name, given)


QUESTIONS: tuple[tuple[str, dict[str, Any], str, str], ...] = (
    ("llama3_405b", {"tokens": 15.6e12, "accelerators": 16384.0, "accelerator": "h100_sxm"}, "rent", "best"),
    (
        "llama3_70b",
        {"tokens": 15e12, "accelerators": 1536.0, "accelerator": "b200", "precision": "fp8", "level_one_share": 0.6},
        "own",
        "two",
    ),
    ("deepseek_v3", {"tokens": 14.8e12, "accelerators": 2048.0, "accelerator": "h200_sxm"}, "rent", "two"),
    (
        "1T mixture",
        {"tokens": 20e12, "accelerators": 16384.0, "accelerator": "b200", "accelerator_mtbf_s": 1e8},
        "rent",
        "one",
    ),
    (
        "llama3_8b",
        {"tokens": 1e12, "accelerators": 96.0, "accelerator": "a100_sxm_40gb", "global_batch_size": 480.0},
        "rent",
        "one",
    ),
    (
        "llama3_8b",
        {"tokens": 1e12, "accelerators": 1000.0, "accelerator": "h100_sxm", "global_batch_size": 1000.0},
        "rent",
        "one",
    ),
    (
        "llama3_70b",
        {"tokens": 15e12, "accelerators": 4096.0, "accelerator": "h100_sxm", "network_topology": "rail_only"}
        | {"training_sites": 4.0, "inner_steps": 100.0, "outer_fragments": 20.0, "wan_bytes_per_s": 1e9},
        "own",
        "one",
    ),
    (
        "30B dense",
        {"tokens": 6e11, "accelerators": 512.0, "accelerator": "mi300x", "tensor_parallel": 4.0, "pue": 1.3},
        "rent",
        "one",
    ),
)


@pytest.fixture(scope="module")
def answers(page: Callable[..., list[Any]]) -> list[Any]:
    """Answers of the page to the questions."""
    usual = {"precision": "bf16", "sequence_length": 8192.0}
    return page(
        "answer", [{"model": m, **usual, **given, "way": way, "tiers": tiers} for m, given, way, tiers in QUESTIONS]
    )


@pytest.mark.parametrize("n", range(len(QUESTIONS)), ids=[model for model, *_ in QUESTIONS])
def test_the_best_plan_of_the_page_equals_python(answers: list[Any], n: int) -> None:
    (model, given, way, tiers), found = QUESTIONS[n], answers[n]
    given = dict(given)
    asked = {"chips": given.pop("accelerator"), "counts": [given.pop("accelerators")], "acquire": way}
    asked["tiers"] = ("one", "two") if tiers == "best" else tiers
    plan = fk.plan(model, **asked, **given)
    best = plan.best.row(0, named=True)
    for framework, text in found["scripts"]:
        assert text == fk.launch(plan.scenario, framework)
    for name in (*PARTS, SHARE, "global_batch_size", *outputs(way)):
        if name in best:
            exact = quantity(name).is_text
            wanted = best[name] if exact else pytest.approx(best[name], rel=1e-9, abs=1e-12)
            assert found["values"][name] == wanted, name
    for name, (low, high) in found["intervals"].items():
        assert (low, high) == pytest.approx((best[f"{name}_low"], best[f"{name}_high"]), rel=1e-9), name
    assert (found["layouts"], found["tier"]) == (best["layouts"], best["tiers"])


LIMITS = (
    {"deadline_s": 30.0},
    {"deadline_s": 90.0},
    {"budget_usd": 2e6},
    {"facility_power_w": 3e6, "deadline_s": 60.0},
)
"""Limits of the questions: days, dollars and watts."""


def _question(n: int) -> dict[str, Any]:
    """Return the n-th question of a deadline, a budget or a power, as the state of a page."""
    chance = random.Random(n)
    sizes = ("7B", "13B", "30B", "70B", "llama3_8b", "llama3_70b", "40B MoE", "mixtral_8x7b", "120b A8B")
    chips = chance.sample(CHIPS, chance.choice((1, 2, 3)))
    state = {"model": sizes[n % len(sizes)], "tokens": 10.0 ** chance.uniform(11.0, 12.5), **LIMITS[n % len(LIMITS)]}
    if chance.random() < 0.3:
        state["counts"] = ",".join(str(64 * chance.randint(1, 64)) for _ in range(3))
    if chance.random() < 0.2:
        state["objective"] = chance.choice(("accelerators", "wall_days", "goodput", "training_carbon_kg"))
    if chance.random() < 0.2:
        state["sites"] = "fra,usa"
    if "deadline_s" in state:
        state["deadline_s"] *= SECONDS_PER_DAY
    usual = {
        "precision": "bf16",
        "sequence_length": 8192.0,
        "way": chance.choice(("rent", "rent", "either")),
        "tiers": "one",
    }
    return {**state, **usual, "accelerator": chips[0], "chips": ",".join(chips[1:])}


@pytest.mark.parametrize("model", ["llama3_405b", "bloom_176b"])
def test_a_run_as_it_was_is_planned_as_python_plans_it(page: Callable[..., list[Any]], model: str) -> None:
    run = page_data()["asRun"][model]
    usual = {"precision": "bf16", "sequence_length": 8192.0, "way": "rent", "tiers": "one"}
    (found,) = page("answer", [{"model": model, **usual, **run}])
    best = fk.plan(model, as_run=True, precision=run.get("precision", "bf16")).best.row(0, named=True)
    for name in ("accelerators", "wall_days", "run_cost_usd", *PARTS):
        wanted = best[name]
        assert found["values"][name] == (wanted if isinstance(wanted, str) else pytest.approx(wanted, rel=1e-9)), name


@pytest.mark.parametrize("n", [*range(6), *(pytest.param(n, marks=pytest.mark.long) for n in range(6, 50))])
def test_a_deadline_or_a_budget_gives_the_plan_of_python(page: Callable[..., list[Any]], n: int) -> None:
    state = _question(n)
    (found,) = page("answer", [state])
    chips = [state["accelerator"], *filter(None, state["chips"].split(","))]
    arguments = {name: state[name] for name in ("tokens", "objective", "precision", "sequence_length") if name in state}
    arguments |= {name: state[name] for name in LIMITS[n % len(LIMITS)]}
    arguments |= {"counts": state["counts"].split(",")} if "counts" in state else {}
    arguments |= {"sites": state["sites"].split(",")} if "sites" in state else {}
    ways = ("rent", "own") if state["way"] == "either" else state["way"]
    plan = fk.plan(state["model"], chips=chips, acquire=ways, **arguments)
    best = plan.best.row(0, named=True)
    assert (found["given"]["accelerator"], found["way"]) == (best["accelerator"], best["acquire"])
    for name in ("accelerators", "wall_days", "run_cost_usd", "facility_power_w", *PARTS):
        wanted = best[name]
        assert found["values"][name] == (wanted if isinstance(wanted, str) else pytest.approx(wanted, rel=1e-9)), name
    assert (found["breaks"] is None) == (best["breaks"] is None)
    rows = plan.plans.select("accelerator", "accelerators", "wall_days", "run_cost_usd").rows()
    assert found["front"] == [[*row[:2], *(pytest.approx(value, rel=1e-9) for value in row[2:])] for row in rows]
    if found["judged"]:
        limits = plan.bottlenecks.filter(binds=True)["limit"].to_list()
        assert sorted(found["judged"]["limits"]) == sorted(limits)
        (chance,) = plan.bottlenecks.filter(limit="deadline")["chance"]
        assert found["judged"]["chances"]["deadline"] == pytest.approx(chance)
        ties = plan.alternatives.filter(pl.col("breaks").is_null(), pl.col("tie") != "").select("accelerator", "tie")
        names = {"wall_days": "days", "run_cost_usd": "dollars"}
        tied = [
            (each["accelerator"], ", ".join(names[name] for name in each["tied"])) for each in found["judged"]["ties"]
        ]
        assert tied == ([] if best["breaks"] else ties.rows())


def test_ranges_and_a_calibration_are_those_of_python(page: Callable[..., list[Any]], tmp_path: Path) -> None:
    constants = {"layer_fixed_s": 2e-4, "scale_out_share": 0.6}
    asked: dict[str, Any] = {"tokens": 1e12, "precision": "bf16", "sequence_length": 8192.0}
    run = asked | {"model": "llama3_8b", "accelerator": "h100_sxm", "accelerators": 512.0, "way": "own", "tiers": "one"}
    ranges = {"utilization": (0.5, 0.9), "accelerator_mtbf_s": (5e7, 5e8), "server_usd": (2e5, 4e5)}
    (found,) = page("answer", [run | constants | {name: f"{low}..{high}" for name, (low, high) in ranges.items()}])
    drawn = {name: fk.Uniform(low, high) for name, (low, high) in ranges.items()}
    fk.Calibration(constants).save(tmp_path / "calibration.json")
    calibration = fk.Calibration.load(tmp_path / "calibration.json")
    options = {"chips": "h100_sxm", "counts": 512, "acquire": "own", "calibration": calibration}
    best = fk.plan("llama3_8b", **asked, **options, **drawn).best.row(0, named=True)
    assert found["values"]["wall_days"] == pytest.approx(best["wall_days"], rel=1e-9)
    for name, (low, high) in found["intervals"].items():
        assert (low, high) == pytest.approx((best[f"{name}_low"], best[f"{name}_high"]), rel=1e-9), name
    assert page_data()["constants"].keys() >= constants.keys()


def test_every_drawn_quantity_has_a_description(page: Callable[..., list[Any]]) -> None:
    assert {*draws()["ranges"]} <= {*page_data()["quantities"]}


def test_a_stored_address_starts_from_the_same_run() -> None:
    llama = {"model": "llama3_405b", "accelerator": "h100_sxm", "accelerators": 16384.0, "precision": "bf16"}
    llama |= {"tokens": 15.6e12, "sequence_length": 8192.0, "way": "rent", "tiers": "one"}
    assert PRESETS[1] == llama
    del llama["accelerators"]
    assert PRESETS[2] == llama | {"chips": "h200_sxm,b200", "deadline_s": 60.0 * SECONDS_PER_DAY}


def test_a_model_is_planned_or_the_page_gives_the_reason() -> None:
    every = fk.table("architectures").collect()["architecture"]
    assert {*architectures(), *unplanned()} == {*every}
    assert "qwen3_next_80b" in architectures()
    name, why = unplanned()["nemotron_3_nano_30b"]
    assert (name, why[-16:]) == ("Nemotron 3 Nano 30B-A3B", "fk.plan plans it")


def test_a_size_has_the_shape_that_python_gives_it(page: Callable[..., list[Any]]) -> None:
    sizes = ["0.5B", "7B", "70B dense", "1T", "1T mixture", "200B MoE", "40b mixture", "1T A20B", "70b", "1.2t moe"]
    for size, found in zip(sizes, page("shape", sizes), strict=True):
        expected = model_of(size)
        assert found == {name: expected[name] for name in shape()}, size


GOLDEN = Path(__file__).parents[2] / "golden" / "configurations.csv"


def test_a_pasted_configuration_is_read_as_python_reads_it_or_refused(
    page: Callable[..., list[Any]], tmp_path: Path
) -> None:
    with GOLDEN.open(encoding="utf-8") as stream:
        texts = [row["config"] for row in csv.DictReader(stream)]
    read = 0
    for text, found in zip(texts, page("config", texts), strict=True):
        if "refused" in found:
            continue
        (tmp_path / "config.json").write_text(text, encoding="utf-8")
        with warnings.catch_warnings(action="ignore"):
            expected = {**fk.read_hf_config(tmp_path)}
        missing = [name for name in shape() if name not in expected]
        expected |= fk.evaluate(expected, missing, assume=True)
        assert found == {name: expected[name] for name in shape()}, expected
        read += 1
    assert read > len(texts) / 2


def test_a_typed_text_is_parsed_as_in_python(page: Callable[..., list[Any]]) -> None:
    texts = {
        "accelerators": ["24k", "16,384", "24576", "8 GPUs", "-5", "1e4", "many", "0", "3 kg"],
        "tokens": ["15T", "15.6T tokens", "2 trillion", "1.5e13", "15 B"],
        "wan_bytes_per_s": ["100 Gbit/s", "12.5 GB/s", "1.5 Tbit/s"],
        "restart_s": ["30 min", "600", "0.5 h", "10 minutes", "2 kg", "-1"],
        "rental_usd_per_accelerator_h": ["2.5 $/h", "$2.5/h", "$2.5", "2.5", "2.5 USD/h", "€2/h"],
        "storage_write_bytes_per_s": ["500 GB/s", "400 Gb/s", "2 TB/s", "1e11", "7 parsec"],
        "pue": ["1.2", "0.9", "120 %"],
        "utilization": ["85 %", "0.85", "85"],
        "server_usd": ["400 kUSD", "$400k", "0.4 million USD"],
        "electricity_usd_per_kwh": ["6 ct/kWh", "0.06", "60 USD/MWh"],
    }
    asked = [(name, text) for name, several in texts.items() for text in several]
    for (name, text), found in zip(asked, page("read", asked), strict=True):
        if name.startswith("rental") and text == "$2.5":
            continue
        try:
            expected = float(quantity(name).check(text))
        except fk.FactorykitError:
            assert isinstance(found, dict), (name, text, found)
        else:
            assert found == pytest.approx(expected, rel=1e-12), (name, text)


TYPED = (
    ("tokens", "15t", 15e12),
    ("tokens", "15 t tokens", 15e12),
    ("budget_usd", "10m", 10e6),
    ("budget_usd", "$10M", 10e6),
    ("restart_s", "10m", 600.0),
    ("deadline_s", "60", "has no unit; give '60 d'"),
    ("deadline_s", "3 months", 3 * 86400 * 365.25 / 12),
    ("accelerator_mtbf_s", "5 years", 5 * 86400 * 365.25),
    ("rental_usd_per_accelerator_h", "$2.5", 2.5),
    ("accelerators", "100_000", 100_000.0),
    ("accelerators", "100 thousand", 100_000.0),
    ("peak_flop_per_s", "3 PFLOP/s", 3e15),
    ("peak_flop_per_s", "2500 TFLOPS", 2.5e15),
    ("accelerator_memory_bytes", "400 GB", 4e11),
    ("site_distance_m", "500 km", 5e5),
    ("deadline_s", "2 yr", 2 * 86400 * 365.0),
    ("facility_power_w", "20 mw", 20e6),
    ("tokens", "lots", "is no number"),
    ("restart_s", "5 to 20 min", "300..1200"),
    ("restart_s", "20 to 5 min", "is not a range"),
    ("deadline_s", "30 d to 60 d", "is not one of its units"),
    ("pue", "1.2 kg", "is not one of its units (%"),
    ("deadline_s", "2mo", 2 * 86400 * 365 / 12),
    ("deadline_s", "2027-06-01", "is a date; give a number with a unit, such as 60 d"),
    ("deadline_s", "60,5 d", "write decimals with a point"),
    ("budget_usd", "30.000.000", "write decimals with a point"),
    ("budget_usd", "30 mn", "give a number with a unit, such as 30M USD"),
    ("facility_power_w", "20 MVA", "such as 60 MW"),
)


def test_entries_are_read_in_common_notations(page: Callable[..., list[Any]]) -> None:
    for (name, text, expected), found in zip(TYPED, page("read", [each[:2] for each in TYPED]), strict=True):
        if isinstance(expected, str) and ".." in expected:
            assert found == expected
        elif isinstance(expected, str):
            assert expected in found["refused"]
            assert "no unit of it" not in found["refused"]
        else:
            assert found == pytest.approx(expected, rel=1e-3), (name, text, found)


def test_the_page_prints_a_value_as_the_vocabulary_does_and_a_field_without_needless_digits(page) -> None:
    asked = [("training_energy_kwh", 3.357), ("training_energy_kwh", 33_400.0), ("training_energy_kwh", 26.4e6)]
    asked += [("training_flop", 2.67e20), ("step_s", 0.0123), ("accelerators", 24_576.0)]
    asked += [("deadline_s", 2 * 365 / 12 * 86400), ("deadline_s", 3600.0), ("restart_s", 5e-6)]
    printed = page("shown", [(words(quantity(name)), value) for name, value in asked])
    assert [shown for shown, _ in printed] == [quantity(name).text(value) for name, value in asked]
    assert [field for _, field in printed[-3:]] == ["60.8333 d", "1 h", "5 us"]


def test_every_field_reads_the_text_that_it_shows(page: Callable[..., list[Any]]) -> None:
    controls = {name: control for name, control in page_data()["controls"].items() if "max" in control}
    shown = [(name, quantity(name).text(control["max"])) for name, control in controls.items()]
    for (name, text), value in zip(shown, page("read", shown), strict=True):
        assert value == pytest.approx(controls[name]["max"], rel=6e-3), (name, text)


def test_the_page_reads_every_address_that_an_explorer_writes(page) -> None:
    runs = [fk.preset(name) for name in fk.presets()["preset"]]
    addresses = [found for run in runs if (found := address(run))]
    assert len(addresses) > 10
    for found, run in zip(
        page("recalled", [a.partition("?")[2] for a in addresses]), [r for r in runs if address(r)], strict=True
    ):
        assert found["refused"] == []
        for name in {*LINK_INPUTS} & {*run}:
            assert found["state"][name] == (
                run[name] if isinstance(run[name], str) else pytest.approx(run[name], rel=1e-11)
            )


def test_the_modules_pass_their_own_tests(node: str) -> None:
    file = Path(__file__).with_name("link.test.mjs")
    ran = subprocess.run(
        [node, "--test", "--test-reporter=tap", str(file)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
    assert "# pass 9" in ran.stdout


def test_the_page_without_the_site_is_smaller_than_250_kilobytes() -> None:
    assert len(gzip.compress(script().encode())) < 250_000


QUERIES = (
    "?v=1&accelerator=b200&tokens=2e13&wan_bytes_per_s=1e10",
    "?v=1&model=llama3_8b&way=own&tiers=two&utilization=0.9&pue=1.1",
    "?v=1&accelerator=h100_sxm&accelerators=16384&precision=fp8&restart_s=300&training_sites=2",
)
HASHES = (
    "#run:mfu=0.4&tokens=1.5e13",
    "#run:mfu=0.35&pue=1.2;build:pue=1.3",
    "#build:pue=1.1;run:chip=b200&tokens=2e12",
)
INPUTS = {
    "mfu": {"label": "MFU", "bounds": "(0, 1]"},
    "tokens": {"label": "Tokens", "bounds": "(0, inf)"},
    "pue": {"label": "PUE", "bounds": "[1, inf)"},
    "chip": {"label": "Chip", "bounds": ["h100_sxm", "b200"]},
}
SIGNS = (
    "%",
    "%E0%A4%A",
    "&",
    "=",
    ";",
    ":",
    "#",
    "?",
    "+",
    "\0",
    "<svg onload=hit()>",
    "__proto__",
    "constructor",
    "1e999",
)
SIGNS = (*SIGNS, "-1", "NaN", "Infinity", "0x10", "ü", "\ud83d", "v=constructor&", "tokens=1&tokens=2", "9" * 4000, "")


def _mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at, end = sorted(chance.choices(range(len(text) + 1), k=2))
        middle = chance.choice(
            (chance.choice(SIGNS), text[at:end] * 2, text[at:end].upper(), chr(chance.randrange(32, 300)))
        )
        text = text[:at] + middle + text[chance.choice((at, at + 1, end)) :]
    return text


def _number(word: str) -> float | None:
    try:
        return float(int(word, 0)) if word[:2].lower() in ("0x", "0b", "0o") else float(word)
    except ValueError:
        return None


@pytest.mark.parametrize("tried", [1000, pytest.param(10_000, marks=pytest.mark.long)])
def test_mutated_addresses_are_used_unchanged_or_refused_with_a_message(page, tried: int) -> None:
    chance = random.Random(tried)
    queries = [_mutated(chance.choice(QUERIES), chance) for _ in range(tried)]
    silent = 0
    for query, found in zip(queries, page("recalled", queries), strict=True):
        assert all(len(sentence) < 300 for sentence in found["refused"])
        if found["refused"]:
            continue
        silent += 1
        preset = PRESETS[found["version"]]
        state = found["state"] | (found["state"].get("shape") or {})
        entries = {name: word for name, word in parse_qsl(query.lstrip("?"), keep_blank_values=True) if name != "v"}
        assert all(state.get(name, "none") in (word, _number(word)) for name, word in entries.items()), query
        assert {name for name in found["state"] if found["state"][name] != preset.get(name)} <= {
            *entries,
            "shape",
        }
    assert silent > tried / 100
    hashes = [_mutated(chance.choice(HASHES), chance) for _ in range(tried)]
    asked = [{"hash": each, "key": "run", "inputs": INPUTS} for each in hashes]
    for each, found in zip(hashes, page("hash", asked), strict=True):
        for value in found["taken"].values():
            words = [word for _, word in parse_qsl(re.sub("[#:;]", "&", unquote(each)))]
            assert any(value in (word, _number(word)) for word in words), each
