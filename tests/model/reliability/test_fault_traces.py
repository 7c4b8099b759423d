"""Readers of published records: synthetic files in the publishers' formats give the expected durations."""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk

LANL = """System,machine type,nodes,procstot,procsinnode,nodenum,nodenumz,node install,node prod,node decom,fru type,\
mem,cputype,memtype,num intercon,purpose,Prob Started,Prob Fixed,Down Time,Facilities,Hardware,Human Error,Network,\
Undetermined,Software,Same Event
9,cluster,4,16,4,2,1,1-Jan,1-Feb,current,part,80,1,1,0,compute,3/2/2004 10:30,3/2/2004 11:00,30,,Memory,,,,,No
9,cluster,4,16,4,1,0,1-Jan,1-Feb,current,part,80,1,1,0,compute,3/1/2004 10:30,3/1/2004 10:36,6,,,,,,OS,No
5,cluster,4,16,4,1,0,1-Jan,1-Feb,current,part,80,1,1,0,compute,3/1/2004 9:00,3/1/2004 9:06,6,,,,,,,No
9,cluster,4,16,4,3,2,1-Jan,1-Feb,current,part,80,1,1,0,compute,3/2/2004 10:30,3/2/2004 11:30,60,Power,,,,,,No
"""
TITAN = """SN,time,nlife,nloc,last,col,row,cage,slot,node,max_loc_events,time_max_loc,dbe,dbe_loc,otb,otb_loc,out,\
batch,days,years,dead,dead_otb,dead_dbe
0320117100060,31536000,1,1,2019-08-01 20:07:33,11,2,1,4,1,0,1,0,,0,,FALSE,new,365,1,FALSE,FALSE,FALSE
0320117100061,63072000,1,1,2019-08-01 20:07:33,9,3,1,2,1,0,1,1,,1,,FALSE,new,730,2,TRUE,TRUE,TRUE
0320117100063,15768000,1,1,2016-08-01 20:07:33,6,2,1,2,0,0,1,0,,0,,FALSE,old,182.5,0.5,TRUE,FALSE,TRUE
"""
STEPFUN = """node,start_day,end_day,repair_hours,fault_level,fault_class,fault_description
n2,1.5,3.0,36.0,Hardware,Fan,x
n1,0.0,0.25,6.0,Hardware,GPU,x
"""


def test_gaps_at_los_alamos_are_those_within_a_system(tmp_path: Path) -> None:
    (tmp_path / "lanl.csv.xz").write_bytes(lzma.compress(LANL.encode()))
    faults = fk.fault_traces.lanl(str(tmp_path / "lanl.csv.xz"))
    assert faults.select("system", "node", "cause", "gap_s", "repair_s").rows() == [
        (5.0, 0.0, None, None, 360.0),
        (9.0, 0.0, "Software", None, 360.0),
        (9.0, 1.0, "Hardware", 86400.0, 1800.0),
        (9.0, 2.0, "Facilities", 0.0, 3600.0),
    ]


def test_lives_on_titan_end_with_death_or_with_the_record(tmp_path: Path) -> None:
    (tmp_path / "titan.csv").write_text(TITAN)
    lives = fk.fault_traces.titan(str(tmp_path / "titan.csv"))
    assert lives["gpu"][0] == "0320117100060"
    new = lives.filter(batch="new")
    years = new["life_s"].sum() / (365 * 86400)
    assert (years, new["dead"].sum(), new["dead_memory"].sum(), new["dead_bus"].sum()) == (3.0, 1, 1, 1)
    assert fk.reliability.rate_interval(1.0, years).low == pytest.approx(0.02532 / 3, rel=1e-3)


def test_a_trace_ends_with_the_time_since_its_last_fault(tmp_path: Path) -> None:
    (tmp_path / "stepfun.csv").write_text(STEPFUN)
    faults = fk.fault_traces.stepfun(str(tmp_path / "stepfun.csv"))
    assert faults["cause"].to_list() == ["GPU", "Fan", None]
    assert faults["gap_s"].to_list() == [None, 1.5 * 86400, 1.5 * 86400]
    assert faults["gap_observed"].to_list() == [False, True, False]
    assert faults["repair_observed"].to_list() == [True, False, None]


READERS: dict[str, tuple[Callable[[str], pl.DataFrame], str]] = {
    "stepfun": (fk.fault_traces.stepfun, "repair_hours"),
    "lanl": (fk.fault_traces.lanl, "Down Time"),
    "titan": (fk.fault_traces.titan, "dead_dbe"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_another_content_is_refused(name: str, tmp_path: Path) -> None:
    read, column = READERS[name]
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(fk.FactorykitError, match=f"no column .*{column}"):
        read(str(tmp_path / "x.csv"))
    with pytest.raises(fk.FactorykitError, match="cannot be read"):
        read(str(tmp_path / "absent.csv"))


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "message"),
    [
        ("lanl", LANL, "3/1/2004 9:00", "soon", "'soon' in row 3 must be a moment"),
        ("lanl", LANL, ",30,,Memory", ",long,,Memory", "Down Time = 'long' in row 1 must be a number"),
        ("lanl", LANL, ",30,,Memory", ",1_000,,Memory", "Down Time = '1_000' in row 1 must be a number"),
        ("titan", TITAN, "31536000", "-1", "time = '-1' in row 1 must be a number from 0 on"),
        ("titan", TITAN, "FALSE,FALSE,FALSE", "FALSE,FALSE", "22 cells in line 2 and 23 in its header"),
        ("stepfun", STEPFUN, "1.5,3.0,36.0", "nan,3.0,36.0", "start_day = 'nan' in row 1 must be a number"),
        ("stepfun", STEPFUN, "1.5,3.0,36.0", "1.5,3.0,-5", "repair_hours = '-5' in row 1 must be a number from 0 on"),
        (
            "stepfun",
            STEPFUN,
            "1.5,3.0,36.0",
            "1.5,3.0,37.0",
            "repair_hours = 37 in row 1 is not the time from start_day",
        ),
        ("stepfun", STEPFUN, STEPFUN.partition("\n")[2], "", "a header and no rows"),
        ("stepfun", STEPFUN, "end_day", "node", "has the column 'node' twice"),
    ],
)
def test_an_invalid_record_is_refused_with_its_row(
    name: str, text: str, old: str, new: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text(text.replace(old, new, 1))
    with pytest.raises(fk.FactorykitError, match=re.escape(message)):
        READERS[name][0](str(tmp_path / "x.csv"))


def test_a_record_that_unpacks_to_more_than_is_read_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    zeros = bytes(10_000_000)
    for name, packed in (("x", lzma.compress(zeros, preset=1) * 12), ("g", gzip.compress(zeros, 1) * 12)):
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(fk.FactorykitError, match="larger than 100 MB"):
            fk.fault_traces.lanl(str(tmp_path / name))
