"""Messages of common mistakes, compared with ``golden/messages.txt``, which a person reads.

``python tests/test_messages.py`` writes the file again.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.vocabulary import synonyms, vocabulary

GOLDEN = Path(__file__).parent / "golden" / "messages.txt"
RUN = {"active_parameters": 70e9, "tokens": 15e12, "accelerators": 4096, "accelerator": "h100_sxm", "mfu": 0.4}
CHIPS = {"accelerators": 2048, "accelerator": "h100_sxm"}
NAMES = (
    *("gpus", "chips", "num_gpus", "GPU type", "cluster", "params", "model_size", "flops", "training_time", "days"),
    *("tp", "pp", "dp", "ep", "batch", "batch_size", "seq_len", "context_length", "num_layers", "vocab", "top_k"),
    *("cost", "price", "electricity_price", "power", "energy", "carbon", "MTBF", "checkpoint_interval", "memory"),
    *("bandwidth", "optimizer", "dtype", "hfu", "token", "acelerators", "learning_rate"),
)
CALLS = (
    "fk.evaluate({**RUN, 'mfu': 40}, 'training_s')",
    "fk.evaluate({**RUN, 'mfu': [0.3, 0.4]}, 'training_s')",
    "fk.evaluate({**RUN, 'mfu': None}, 'training_s')",
    "fk.evaluate({**RUN, 'mfu': '40 GB'}, 'training_s')",
    "fk.evaluate({**RUN, 'accelerators': -8}, 'training_s')",
    "fk.evaluate({**RUN, 'accelerators': 'many'}, 'training_s')",
    "fk.evaluate({**RUN, 'pue': 0.9}, 'facility_power_w')",
    "fk.evaluate({**RUN, 'availability': 1.2}, 'training_s')",
    "fk.evaluate({**RUN, 'accelerator': 'H1000'}, 'training_s')",
    "fk.evaluate({**RUN, 'precision': 'fp12'}, 'training_s')",
    "fk.evaluate({**RUN, 'precision': 'nvfp4'}, 'training_s')",
    "fk.evaluate({'active_parameters': 70e9, 'tokens': 15e12}, 'wall_days')",
    "fk.evaluate({'active_parameters': 70e9, 'tokens': 15e12}, 'training_s')",
    "fk.evaluate({'parameters': 70e9, 'tokens': 15e12, 'accelerator': 'h100_sxm'}, 'wall_days', assume=True)",
    "fk.evaluate({'tokens': 15e12}, 'training_days', assume=True)",
    "fk.evaluate({'parameters': 70e9, **CHIPS}, 'memory_peak_bytes', assume=True)",
    "fk.evaluate({'accelerator': 'h100_sxm', 'accelerators': 8}, 'cluster_usd_per_h')",
    "fk.evaluate(RUN, 'cost')",
    "fk.evaluate('h100', 'training_s')",
    "fk.preset('llama3')",
    "fk.architecture('Llama 3 71B')",
    "fk.accelerator('mine', like='H1000')",
    "fk.accelerator(' ', like='b200')",
    "fk.plan('llama3_8b', tokens='1T', chips=[fk.accelerator('mine', like='b200', pue=2), 'h100_sxm'], pue=1.1)",
    "fk.accelerator('h100_sxm', tdp=700)",
    "fk.accelerator('mine', like='b200', peak_16bit_flop_per_s='5 PFLOP/s')",
    "fk.Scenario(mfu=38.0)",
    "fk.table('cluster')",
    "fk.sources('clusters', 'meta_24')",
    "fk.audit(verdict='wrong')",
    "fk.published_practices('goodputs')",
    "fk.compare({'one': RUN}, 'training_s')",
    "fk.validate(pl.DataFrame({'model': ['Llama 3 70B'], 'accelerators': [64]}))",
    "fk.validate_energy(pl.DataFrame({'energymwh': [1.0]}))",
    "fk.calibrate(pl.DataFrame({'hardware': ['H100'], 'step_time_s': [9.0]}))",
    "fk.LogNormal(2.5, 0.5)",
    "fk.evaluate({**RUN, 'checkpoint_block_s': 30}, 'wall_days', assume=True)",
    "fk.evaluate({**RUN, 'parameters': 60e9}, 'training_days')",
    "fk.search('llama3_8b', {'accelerators': 64, 'accelerator': 'h100_sxm', 'nodes': 9}, global_batch_size=256)",
    "fk.plan('70 GB', tokens='1T')",
    "fk.evaluate({**RUN, 'nodes': 100}, 'wall_days', assume=True)",
    "fk.evaluate({'parameters': 70e9, 'layers': 80, 'tokens': 15e12, **CHIPS}, 'training_days', assume=True)",
    "fk.explain({'parameters': 70e9, 'tensor_parallel': 8, 'tokens': 15e12, **CHIPS}, 'training_days', assume=True)",
    "fk.sweep({'parameters': 70e9, 'tokens': 15e12, **CHIPS}, {'checkpoint_lag_s': [5, 10]}, 'wall_days', assume=True)",
    "fk.plan('llama3_8b', tokens='1T', deadline=60)",
    "fk.plan('llama3_8b', tokens='1T', nodes=256)",
    "fk.plan('llama3_8b', tokens='1T', counts=1024, accelerators=2048)",
    "fk.plan('llama3_8b', tokens='1T', wall_days=30)",
    "fk.plan('llama3_8b', tokens='1T', run_cost_usd=1e6)",
    "fk.plan('llama3_8b', tokens='1T', parameters='70B')",
    "fk.plan('llama3_8b', tokens='1T', step_s=5)",
    "fk.plan('llama3_8b', tokens='1T', chips='h100_sxm', counts=64, micro_batch_size=3, global_batch_size=64)",
    "fk.search('llama3_8b', {**CHIPS, 'data_parallel': 8}, global_batch_size=1024)",
)


def messages() -> Iterator[str]:
    """Yield each mistake with its error, two lines each."""
    calls = [f"fk.evaluate({{**RUN, {name!r}: 8}}, 'training_s')" for name in NAMES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in (*calls, *CALLS):
            with pytest.raises(fk.FactorykitError) as caught:
                eval(call, {"fk": fk, "pl": pl, "RUN": RUN, "CHIPS": CHIPS})
            yield f">>> {call}"
            yield from f"{caught.typename}: {caught.value}".splitlines()


def test_messages_of_common_mistakes_are_those_of_the_golden_file():
    assert list(messages()) == GOLDEN.read_text(encoding="utf-8").splitlines(), "run python tests/test_messages.py"


@pytest.mark.parametrize("synonym", synonyms())
def test_a_synonym_leads_to_quantities(synonym):
    assert synonym not in vocabulary()
    assert set(synonyms()[synonym]) <= set(vocabulary())


def test_no_synonym_is_listed_twice():
    lines = (Path(fk.__file__).parent / "core" / "synonyms.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len({line.partition(",")[0] for line in lines})


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(messages()) + "\n", encoding="utf-8")
    sys.stdout.write(f"{GOLDEN}\n")
