"""The command line: printed results, and one line with status 2 for an invalid call."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk
from factorykit.cli import main


def test_evaluate_prints_numbers_with_units_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    chain = ["evaluate", "active_parameters=405e9", "tokens=15.6e12", "-o", "training_flop"]
    assert main(chain) == 0
    assert capsys.readouterr().out == "training_flop  3.79 × 10²⁵ FLOP\n"
    assert main([*chain, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"training_flop": 6 * 405e9 * 15.6e12}


def test_evaluate_reads_and_writes_rows(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("active_parameters,tokens\n405e9,15.6e12\n37e9,14.8e12\n")
    rows, out = str(tmp_path / "runs.csv"), tmp_path / "wider.parquet"
    assert main(["evaluate", "--rows", rows, "-o", "training_flop", "--out", str(out)]) == 0
    assert pl.read_parquet(out)["training_flop"].to_list() == pytest.approx([3.7908e25, 3.2856e24])
    one = ["evaluate", "active_parameters=405e9", "tokens=15.6e12", "-o", "training_flop", "--out"]
    assert main([*one, str(out)]) == 0
    assert pl.read_parquet(out)["training_flop"].to_list() == pytest.approx([3.7908e25])
    assert main([*one, str(tmp_path / "absent" / "one.csv")]) == 2


def test_explain_ends_with_the_requested_quantity(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "failures_per_day", "accelerators=16384", "accelerator_mtbf_s=1.824e8"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("failures_per_day = 7.76 per day = 86400 /")


def test_connectors_are_listed_and_connected(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("FACTORYKIT_CACHE", str(tmp_path))
    monkeypatch.setattr("factorykit.data.tables._CONNECTED", {})
    assert main(["data", "connect", "--json"]) == 0
    assert "gpu_rental_prices" in {row["connector"] for row in json.loads(capsys.readouterr().out)}
    file = tmp_path / "prices.csv"
    file.write_text(
        "year,state,commercial_cents_per_kwh,industrial_cents_per_kwh,all_sectors_cents_per_kwh\n2019,US,11,7,10\n"
    )
    ask = ["--query", "select industrial_usd_per_kwh from eia_state_electricity_price", "--json"]
    assert main(["data", "connect", "eia_state_electricity_price", str(file), *ask]) == 0
    assert json.loads(capsys.readouterr().out) == [{"industrial_usd_per_kwh": 0.07}]


BAD = [
    ["data", "connect", "gpu_rental"],
    ["data", "connect", "gpu_rental_prices", "absent.csv"],
    ["evaluate", "token=1e12", "-o", "training_flop"],
    ["evaluate", "tokens=1e12", "-o", "training_flop"],
    ["evaluate", "mfu=38", "-o", "mfu"],
    ["evaluate", "mfu", "-o", "mfu"],
    ["evaluate", "mfu=nan", "-o", "mfu"],
    ["evaluate", "--preset", "llama", "-o", "mfu"],
    ["evaluate", "--rows", "absent.csv", "-o", "mfu"],
    ["evaluate", "--rows", "pyproject.toml", "-o", "mfu"],
    ["explain", "mfu"],
    ["data", "show", "cluster"],
    ["data", "sql", "select * from nowhere"],
    ["data", "sql", "select 1; select 2"],
    ["data", "sources", "cluster"],
    ["plan", "llama3_8b", "--counts", "1,024"],
]


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_misuse_is_one_line_and_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert ": " in captured.err


def test_a_corrupt_parquet_is_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not really PAR1")
    assert main(["evaluate", "--rows", str(tmp_path / "broken.parquet")]) == 2
    assert "broken.parquet" in capsys.readouterr().err


def test_the_installed_command_answers_help_and_unknown_verbs() -> None:
    command = [sys.executable, "-m", "factorykit.cli"]
    assert "VERB" in subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    wrong = subprocess.run([*command, "evalute"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr


def test_sweep_prints_every_combination(capsys):
    run = ["active_parameters=405e9", "tokens=15.6e12", "accelerators=16384", "peak_flop_per_s=989e12"]
    assert main(["sweep", *run, "-g", "mfu=0.3,0.4", "-g", "goodput=0.8:0.9:3", "-o", "wall_days", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["mfu"], round(row["goodput"], 2)) for row in rows] == [
        (m, g) for m in (0.3, 0.4) for g in (0.8, 0.85, 0.9)
    ]


def test_sweep_streams_to_a_file(tmp_path, capsys):
    out = tmp_path / "sweep.parquet"
    assert main(["sweep", "peak_flop_per_s=989e12", "-g", "accelerators=8:8192:4", "--out", str(out)]) == 0
    assert "4 rows" in capsys.readouterr().err
    assert out.stat().st_size > 0


def test_sweep_makes_a_study_of_a_folder(tmp_path, capsys):
    out = tmp_path / "study"
    for _ in range(2):
        assert main(["sweep", "peak_flop_per_s=989e12", "-g", "accelerators=8:8192:4", "--out", str(out)]) == 0
        assert "4 rows" in capsys.readouterr().err
    assert fk.study(out).rows.collect().height == 4


@pytest.mark.parametrize("axis", ["mfu", "mfu=", "mfu=0.3:0.4", "mfu=0.3:0.4:1", "accelerators=0:8:3", "mfuu=0.3"])
def test_a_bad_axis_is_one_line_and_status_two(axis, capsys):
    assert main(["sweep", "-g", axis, "-o", "training_s"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


RUN = [
    "training_s=4182200",
    "checkpoint_interval_s=1100",
    "checkpoint_write_s=60",
    "cluster_mtbf_s=11135",
    "downtime_s=0",
]


def test_simulate_prints_means_and_quantiles_and_writes_rows(tmp_path, capsys):
    out = tmp_path / "runs.csv"
    assert main(["simulate", *RUN, "restart_s=600", "--runs", "200", "--seed", "3", "--out", str(out), "--json"]) == 0
    rows = {row["quantity"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["wall_s"]["p05"] < rows["wall_s"]["mean"] < rows["wall_s"]["p95"]
    assert rows["wall_s"]["mean"] == pytest.approx(56.78 * 86400, rel=0.002)
    assert len(out.read_text().splitlines()) == 201


def test_simulate_names_its_missing_inputs_in_one_line(capsys):
    assert main(["simulate", *RUN, "--runs", "10"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "restart_s" in line


def test_a_search_without_results_gives_the_reason(capsys):
    assert main(["search", "gpt3_175b", "accelerators=8,accelerator=l40s", "512", "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out) == []
    assert "memory" in captured.err


def test_a_preset_and_its_chip_are_a_cluster(capsys):
    assert main(["search", "llama3_8b", "dgx_h100,accelerator=h100_sxm", "64", "--rows", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["fits"] > 0.0


def test_a_sweep_is_written_as_parquet_alone(capsys, tmp_path):
    inputs = ["active_parameters=1e9", "tokens=1e12", "accelerators=8", "peak_flop_per_s=1e15"]
    assert main(["sweep", *inputs, "-g", "mfu=0.3,0.4", "-o", "training_s", "--out", str(tmp_path / "s.csv")]) == 2
    assert not (tmp_path / "s.csv").exists()


def test_a_missing_extra_is_one_line_and_status_2(capsys, monkeypatch, tmp_path):
    def build(_out):
        raise ModuleNotFoundError("No module named 'dataframely'", name="dataframely")

    monkeypatch.setattr("factorykit.data.build.build", build)
    assert main(["data", "build", "--out", str(tmp_path)]) == 2
    assert "factorykit[site]" in capsys.readouterr().err

    monkeypatch.setitem(sys.modules, "jupyterlab", None)
    assert main(["lab"]) == 2
    assert "factorykit[notebook]" in capsys.readouterr().err


SHORT = ["parameters=70B", "tokens=15T", "accelerators=2048", "accelerator=h100_sxm"]
WITH_DEFAULTS = [
    ["evaluate", *SHORT, "-o", "wall_days"],
    ["explain", "wall_days", *SHORT],
    ["sweep", *SHORT, "-g", "mfu=0.3,0.4", "-o", "wall_days"],
    ["simulate", *SHORT, "--runs", "5"],
    ["search", "llama3_70b", "accelerators=64,accelerator=h100_sxm", "256", "--objective", "rental_cost_usd"],
]


@pytest.mark.parametrize("arguments", WITH_DEFAULTS, ids=lambda arguments: arguments[0])
def test_defaults_are_used_only_on_request(arguments, capsys):
    assert main([*arguments, "--json"]) == 2
    assert "MissingQuantity" in capsys.readouterr().err
    assert main([*arguments, "--assume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_assumed_values_are_listed(capsys):
    assert main(["assumed", *SHORT, "-o", "training_days", "--json"]) == 0
    rows = {row["quantity"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows["mfu"]["value"], rows["mfu"]["basis"]) == (0.4, "chosen")
    assert rows["active_parameters"]["formula"] == "1 * parameters"
    assert main(["assumed", *SHORT, "-o", "training_days"]) == 0
    assert "llama3_paper, section 3.3.2, Table 4" in capsys.readouterr().out


def test_an_axis_of_a_sweep_can_hold_words(capsys):
    sweep = ["sweep", "-g", "accelerator=h100_sxm,b200", "accelerators=8", "-o", "cluster_peak_flop_per_s", "--json"]
    assert main(sweep) == 0
    assert [row["accelerator"] for row in json.loads(capsys.readouterr().out)] == ["h100_sxm", "b200"]


def test_several_outputs_are_aligned_in_columns(capsys):
    asked = ["active_parameters=405e9", "tokens=15.6T", "mfu=0.4", "-o", "training_flop", "-o", "mfu"]
    assert main(["evaluate", *asked]) == 0
    assert capsys.readouterr().out == "training_flop  3.79 × 10²⁵ FLOP\nmfu            40 %\n"


@pytest.mark.filterwarnings("always")
def test_an_infinite_result_is_null_in_json_with_one_line_on_stderr(capsys):
    run = ["checkpoint_interval_s=6e5", "checkpoint_write_s=60", "cluster_mtbf_s=600", "restart_s=60", "downtime_s=0"]
    assert main(["evaluate", *run, "training_s=1e6", "-o", "wall_s", "-o", "training_s", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"wall_s": None, "training_s": 1e6}
    (line,) = captured.err.splitlines()
    assert line.startswith("FactorykitWarning: wall_s is infinite")


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ("accelerators=8:800:3", [8.0, 80.0, 800.0]),
        ("accelerators=1k,2k", [1000.0, 2000.0]),
        ("accelerators=2:2048:6", [2.0, 8.0, 32.0, 128.0, 512.0, 2048.0]),
    ],
)
def test_an_axis_is_logarithmic_where_its_slider_is(capsys, axis, values):
    assert main(["sweep", "peak_flop_per_s=989e12", "-g", axis, "-o", "cluster_peak_flop_per_s", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["accelerators"] for row in rows] == pytest.approx(values, rel=1e-12)
    assert [row["cluster_peak_flop_per_s"] for row in rows] == pytest.approx([989e12 * v for v in values], rel=1e-12)


@pytest.mark.parametrize("axis", ["mfu=0.1:0.2:0", "accelerators=800:8:3", "accelerators=8:8:3", "mfu=a:b:3"])
def test_an_axis_with_an_invalid_range_is_refused(capsys, axis):
    assert main(["sweep", "-g", axis, "-o", "training_s"]) == 2
    assert "LOW:HIGH:COUNT" in capsys.readouterr().err


@pytest.mark.parametrize(("rows", "status"), [("0", 2), ("-1", 2), ("ten", 2)])
def test_a_number_of_rows_is_a_count(capsys, rows, status):
    with pytest.raises(SystemExit) as ended:
        main(["search", "llama3_8b", "dgx_h100,accelerator=h100_sxm", "64", "--rows", rows])
    assert ended.value.code == status
    assert "is not a count" in capsys.readouterr().err


def test_a_search_prints_values_shared_by_all_layouts_once(capsys):
    asked = ["search", "llama3_8b", "dgx_h100,accelerator=h100_sxm", "64", "--rows", "5"]
    assert main([*asked, "--json"]) == 0
    layouts = json.loads(capsys.readouterr().out)
    assert len(layouts) == 5
    assert main(asked) == 0
    shared, *table = capsys.readouterr().out.splitlines()
    alike = {name for name in layouts[0] if len({row[name] for row in layouts}) == 1}
    assert {part.split()[0] for part in shared.removeprefix("all: ").split(", ")} == alike
    assert not alike & set(table[1].replace("│", " ").split())
    assert main([*asked[:-1], "1"]) == 0
    assert not capsys.readouterr().out.startswith("all:")


@pytest.mark.parametrize("arguments", [["evaluate", "mfu=0.4", "--bogus"], ["nope"], ["data"], []], ids=" ".join)
def test_an_argument_that_no_verb_accepts_is_misuse(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""


def test_an_argument_that_has_no_name_is_said_to_have_none(capsys):
    with pytest.raises(SystemExit):
        main(["serve", "llama3_70b", "--load", "10"])
    assert "--load; give its value without the name" in capsys.readouterr().err


def test_an_audit_counts_its_verdicts_and_shows_as_many_rows(capsys):
    asked = ["audit", "--document", "seed_000", "--verdict", "rounding"]
    assert main([*asked, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["verdict"] for row in rows} == {"rounding"}
    assert main(asked) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{len(rows)} claims: {len(rows)} rounding"
    assert main(["audit", "--claim", rows[0]["claim"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) != rows


def test_a_page_that_fails_its_check_is_status_1(capsys, tmp_path):
    assert main(["site", "check", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("SiteError: ")


def test_a_fleet_and_a_trace_are_served(capsys, tmp_path):
    known = ["llama3_8b", "prefill_separate=0", "--chips", "h100_sxm", "--json"]
    assert main(["serve", *known, "--fleet", "16"]) == 0
    assert json.loads(capsys.readouterr().out)["best"]["accelerators"] == 16.0
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "arrival_s,input_tokens,output_tokens\n" + "".join(f"{n / 4},500,{99 + n % 3}\n" for n in range(9))
    )
    assert main(["serve", *known, "--trace", str(trace)]) == 0
    out, err = capsys.readouterr()
    assert "9 requests: requests per second 4, mean" in err.replace("input", "mean")
    assert json.loads(out)["best"]["requests_per_s"] == 4.0


def test_a_plan_and_an_engine_print_the_script_that_starts_them(capsys):
    small = ["llama3_8b", "--chips", "h100_sxm", "--tokens", "1T", "--counts", "64"]
    assert main(["plan", *small, "--launch", "megatron_lm"]) == 0
    assert "#SBATCH --nodes=8 " in capsys.readouterr().out
    assert main(["serve", "llama3_8b", "5", "--launch", "sglang", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["best"]["engine"] == "sglang"
    assert "exec python3 -m sglang.launch_server" in answer["script"]


def test_an_interrupted_command_is_status_130(monkeypatch):
    def interrupted(*_args, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr("factorykit.evaluate", interrupted)
    assert main(["evaluate", "mfu=0.4", "-o", "mfu"]) == 130


def test_the_suffix_of_the_file_selects_the_output_format(tmp_path):
    rows = tmp_path / "runs.csv"
    rows.write_text("active_parameters,tokens\n405e9,15.6e12\n")
    for name, read in (("wide.csv", pl.read_csv), ("wide.parquet", pl.read_parquet)):
        assert (
            main(["evaluate", "--rows", str(rows), "mfu=0.4", "-o", "training_flop", "--out", str(tmp_path / name)])
            == 0
        )
        assert read(tmp_path / name).columns == ["active_parameters", "tokens", "mfu", "training_flop"]


def test_options_of_a_preset_can_be_changed(capsys):
    assert main(["evaluate", "--preset", "llama_3_1_405b", "accelerators=8192", "-o", "accelerators", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"accelerators": 8192.0}


def test_tables_are_listed_shown_and_queried(capsys):
    assert main(["data", "list", "--json"]) == 0
    listed = {row["table"]: row for row in json.loads(capsys.readouterr().out)}
    assert main(["data", "sql", "select count(*) as n from accelerators", "--json"]) == 0
    (counted,) = json.loads(capsys.readouterr().out)
    assert main(["data", "show", "accelerators", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == counted["n"] == listed["accelerators"]["rows"]
    assert main(["data", "show", "accelerators"]) == 0
    assert "h100_sxm" in capsys.readouterr().out


def test_measured_rows_calibrate_every_verb_that_predicts_a_step(capsys, tmp_path):
    rows, mine = tmp_path / "rows.csv", tmp_path / "mine.json"
    fk.table("training_runs").filter(group="perlmutter-gpt1t").collect().write_csv(rows)
    assert main(["calibrate", str(rows), "--design", "5", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 5
    assert main(["calibrate", str(rows), "--out", str(mine)]) == 0
    assert capsys.readouterr().out.startswith(f"22 rows used, written to {mine}\nsteps take 1.")
    layout = (
        "llama3_8b accelerators=64,accelerator=a100_sxm_80gb,tensor_parallel=8,pipeline_parallel=2 64 --rows 1 --json"
    )
    assert main(["search", *layout.split()]) == 0
    plain = json.loads(capsys.readouterr().out)[0]
    assert main(["search", *layout.split(), "--calibration", str(mine)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["step_s"] > plain["step_s"]
    assert main(["validate", str(rows), "--by", "family", "--calibration", str(mine), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["median_absolute_error"] < 0.1


def test_a_terminal_shows_the_columns_that_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["data", "sql", "from clusters limit 3"]) == 0
    printed = capsys.readouterr()
    assert max(map(len, printed.out.splitlines())) <= 100
    assert "Meta 24K RoCE cluster" in printed.out
    assert ", accelerators_low, " in printed.err
    monkeypatch.setenv("COLUMNS", "80")
    fk.table("training_runs").filter(id="mosaicml-125m-002").collect().write_csv(tmp_path / "runs.csv")
    assert main(["validate", str(tmp_path / "runs.csv")]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert all(f" {name} " in printed for name in ("id", "error", "reason"))


def test_a_plan_takes_alternatives_and_names_its_country(capsys):
    asked = ["plan", "llama3_8b", "--tokens", "1T", "--chips", "h100_sxm", "--counts", "64, 128", "--sites", "de,FR"]
    assert main([*asked, "precision=bf16,fp8", "--objective", "training_carbon_kg"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^Site +fra$", printed, re.MULTILINE)
    assert re.search(r"^Precision +fp8$", printed, re.MULTILINE)
