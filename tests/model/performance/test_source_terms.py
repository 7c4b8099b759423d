"""Terms of the sources, parsed into columns."""

import polars as pl
import pytest

import factorykit as fk
from factorykit.data.identifiers import accelerator_in
from factorykit.engine.providers import frameworks
from factorykit.model.performance import source_terms
from factorykit.model.performance.training_runs import prepared
from tests.model.validation.test_validate import RUN

HOME = RUN | {"tp": 1, "pp": 1, "accelerator_count": 64, "recompute": "full", "sharding": "ZeRO-3"}


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (0.0, "none; DDP; NO_SHARD; ZeRO-0; plain DP; none (plain data parallel)"),
        (1.0, "ZeRO stage 1; zero_1; Z1; distopt; use_distributed_optimizer; distributed optimizer (ZeRO-1), HSDP 4"),
        (2.0, "ZeRO stage 2; DeepSpeed stage 2; SHARD_GRAD_OP; FSDP SHARD_GRAD_OP; _HYBRID_SHARD_ZERO2; ZeRO-Offload"),
        (2.0, "FSDP2 (reshard_after_forward=False); FSDP grad+optimizer (ZeRO-2); optim_grads"),
        (
            3.0,
            "FULL_SHARD; zero3; ZeRO Stage-3; zero_stage=3; HSDP; HYBRID_SHARD; ZeRO++ (hpZ); ZeRO-Infinity; fsdp=64",
        ),
        (3.0, "optim_grads_params; Gemini; 12-way model x 256-way fully sharded data in each of 2 pods; MiCS"),
        (None, "sequence parallel; -; four stages"),
    ],
)
def test_sharding_is_read_in_the_words_of_each_library(stage, words):
    assert {word: source_terms.zero_stage(word) for word in words.split("; ")} == dict.fromkeys(
        words.split("; "), stage
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "bf16",
            "bfloat16; BF16-mixed; bf16 (fp8 off); NF4; mixed precision; AMP O2; bf16 (fp32 gradient accumulation)",
        ),
        ("fp16", "float16; 16-mixed; half; FP16 mixed"),
        ("fp8", "FP8 (E4M3); fp8-delayed; float8; HiF8; FP8-mixed; BF16 attention, fp8"),
        ("mxfp8", "mxfp8; MXFP8 (bf16 first and last layer); FP8-MX; FP8_MX"),
        ("nvfp4", "nvfp4; MXFP4; FP4; NVFP4 (fp8 dgrad)"),
        (None, "fp32; TF32; int4; posit"),
    ],
)
def test_number_formats_are_read_in_the_words_of_each_library(name, words):
    assert {word: source_terms.precision_of(word) for word in words.split("; ")} == dict.fromkeys(
        words.split("; "), name
    )


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (
            0.0,
            ["none", "no", "off", "False", "disabled", "SAC", "per-op selective", "mla_up_proj, moe_act", "core_attn"],
        ),
        (1.0, ["full", "yes", "uniform 1", "full activation checkpointing", "gradient checkpointing", "every layer"]),
        (0.0, ["w/o recompute", "save_qkv_proj", "--recompute-activations", "minimal_with_context"]),
        (1.0, ["--recompute-granularity full --recompute-method uniform", "nothing_saveable"]),
        (1.0, ["AC: full", "remat: full", "recompute_granularity=full", "activation checkpointing full"]),
        (0.25, ["full, 1 layer of 4", "20 of 80 layers", "block 5", "full (block, 5 layers)", "every 4th layer"]),
    ],
)
def test_partial_recomputation_is_the_stated_share_of_layers(share, words):
    rows = pl.DataFrame([RUN | {"recompute": word} for word in words])
    assert prepared(rows)[0]["recompute_share"].to_list() == [share] * len(words)


@pytest.mark.parametrize(
    "spelt",
    [
        {"hardware": "8xH100"},
        {"hardware": "p5.48xlarge"},
        {"hardware": "NVIDIA H100 80GB HBM3 x 8"},
        {"precision": "BF16-mixed"},
        {"sharding": "FSDP (FULL_SHARD)"},
        {"recompute": "on"},
        {"global_batch": None, "gradient_accumulation_steps": 2},
        {"network": None, "hardware": None, "accelerator": "h100_sxm"},
        {"sharding": None, "zero_stage": 3},
        {"model": "meta-llama/Meta-Llama-3.1-70B-Instruct", "kv_heads": None, "ffn": None, "vocab": None},
        {"model": "LLaMA V3.1 70B", "kv_heads": None, "ffn": None, "vocab": None},
        {"accelerator_count": None, "dp": 64},
        {"seq_len": "8K", "hidden": "8,192", "tp": "-"},
        {"framework": "PyTorch FSDP"},
        {"optimizer": "AdamW (fused)", "schedule": "1F1B", "fabric": "InfiniBand NDR"},
        {"accelerator_count": "8 nodes x 8 GPUs", "seq_len": "8192 tokens", "tp": "TP1"},
        {"mlp_gated": "SwiGLU", "recompute": "gradient_checkpointing=True"},
        {"global_batch": "1,048,576 tokens", "dp": float("nan")},
        {"global_batch": None, "global_batch_tokens": "1.05M"},
        {"accelerator_count": "8 nodes"},
        {"accelerator_count": None, "hardware": "64x H100 SXM5 80GB"},
        {"accelerator_count": None, "hardware": "8 nodes x 8 H100 80GB HBM3"},
    ],
)
def test_another_spelling_of_a_row_is_the_same_run(spelt):
    """Every rule of parsing, checked by its result."""
    plain = HOME | {"framework": "pytorch"}
    found = fk.validate(pl.DataFrame([plain, plain | spelt], infer_schema_length=None))
    assert found["reason"].to_list() == [None, None]
    assert found["step_s"][1] == pytest.approx(found["step_s"][0], rel=1e-12)
    assert found["memory_peak_bytes"][1] == found["memory_peak_bytes"][0]


def test_a_rate_without_a_batch_is_measured_with_the_batch_that_is_assumed():
    alone = HOME | {"accelerator_count": 8, "global_batch": None, "tokens_per_s_per_gpu": 1000.0}
    found = fk.validate(pl.DataFrame([alone])).row(0, named=True)
    assert "global_batch_size" in found["assumed"]
    assert found["measured_s"] == pytest.approx(8192.0 / 1000.0)
    waits = fk.validate(pl.DataFrame([alone | {"pp": 2}])).row(0, named=True)
    assert "global_batch_size" in waits["assumed"]
    assert waits["measured_s"] == pytest.approx(2**22 / 8000.0)


def test_a_shape_that_is_not_stated_is_that_of_a_plain_model_of_its_size():
    """96 layers of 12,288 in GPT-3 175B, 40 of 5,120 in LLaMA 13B; sequences of 2,048 in both."""
    shape = dict.fromkeys(("model", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq_len", "mlp_gated"))
    sizes = [{"total_params": 175e9}, {"total_params": 13e9}, {"model": "Unheard-13B"}]
    sizes.append(sizes[1] | dict.fromkeys(("tp", "pp", "sharding")))
    rows = [HOME | shape | {"year": 2022} | size for size in sizes]
    ready, reasons = prepared(pl.DataFrame(rows, infer_schema_length=None))
    assert reasons.is_empty()
    found = ready.select("row", "layers", "hidden_size").unique().sort("row")
    assert found.drop("row").rows() == [(96.0, 12288.0), *[(40.0, 5120.0)] * 3]
    assert ready["sequence_length"].unique().to_list() == [2048.0]


def test_a_framework_shards_as_its_recipes_do_where_nothing_is_stated():
    rows = [
        RUN | {"framework": name, "year": 2025, "sharding": None} for name in ("nanotron", "Megatron", "MindFormers")
    ]
    assert prepared(pl.DataFrame(rows))[0]["zero_stage"].to_list() == [0.0, 1.0, 2.0]


def test_experts_of_a_model_known_by_its_name_are_spread_where_no_layout_is_stated():
    run = {"model": "DeepSeek-V3", "hardware": "TPU7x", "accelerator_count": 256, "seq_len": 4096}
    ready, _ = prepared(pl.DataFrame([run | {"global_batch": 4096, "framework": "MaxText", "precision": "bf16"}]))
    assert ready["expert_parallel"].unique().sort().to_list() == [1.0, 8.0, 16.0, 32.0, 64.0]


def test_a_chip_of_two_devices_is_predicted_as_two_devices():
    """JAX sees two devices in each chip of Ironwood (Google Cloud, TPU7x)."""
    chips = HOME | {"hardware": "TPU7x", "accelerator_count": 64, "micro_batch": 4, "global_batch": 256}
    devices = chips | {"hardware": "TPU7x devices", "accelerator_count": 128, "micro_batch": 2}
    counted = devices | {"hardware": "TPU7x", "accelerator_count": "128 devices"}
    found = [fk.validate(pl.DataFrame([row])).row(0, named=True) for row in (chips, devices, counted)]
    assert len({row["step_s"] for row in found}) == 1
    assert [found[0]["memory_peak_bytes"] / row["memory_peak_bytes"] for row in found] == [1.0, 2.0, 2.0]


def test_trainium2_is_four_devices_and_frozen_weights_beside_nvfp4_have_8_bits():
    """Two of the eight cores of a chip are one device by default (AWS Neuron, logical NeuronCore configuration)."""
    rows = [HOME | {"hardware": "trn2", "accelerator_count": "4 nodes", "tp": 4}]
    rows.append(HOME | {"hardware": "B200", "precision": "nvfp4", "lora_rank": 16})
    found = prepared(pl.DataFrame(rows, infer_schema_length=None))[0].select("accelerators", "weight_bits")
    assert found.rows() == [(256.0, 16.0), (64.0, 8.0)]


def test_one_chip_leaves_no_layout_to_assume():
    alone = HOME | {"accelerator_count": 1, "tp": None, "pp": None, "sharding": None, "global_batch": 8}
    notes = ["QLoRA rank 64, all linear", "LoRA"]
    rows = pl.DataFrame([alone | {"framework": "Axolotl", "note": note} for note in notes], infer_schema_length=None)
    assert fk.validate(rows)["assumed"].to_list() == [
        "read from notes: lora, lora_rank, lora_matrices, weight_bits",
        "lora_rank, lora_matrices; read from notes: lora",
    ]


def test_a_note_and_columns_give_the_same_prediction():
    columns = {"lora_rank": 64.0, "lora_matrices": "all", "weight_bits": 4.0}
    noted, stated = (
        fk.validate(pl.DataFrame([HOME | row])) for row in ({"note": "QLoRA rank 64, all linear"}, columns)
    )
    numbers = ("step_s", "step_low_s", "step_high_s", "memory_peak_bytes")
    assert noted.select(numbers).equals(stated.select(numbers))


@pytest.mark.filterwarnings("ignore:row")
def test_notes_of_the_table_change_no_prediction():
    runs = fk.table("training_runs").collect().gather_every(3)
    words = [name for name in runs.columns if name.endswith("_stated")]
    changed = runs.with_columns(
        pl.lit("LoRA rank 8, DeepEP, no flash attention").alias(name) for name in ("note", *words)
    )
    assert fk.validate(changed).equals(fk.validate(runs))


def test_fine_tuning_fits_as_published():
    """Llama 3.1 8B, QLoRA of rank 32, one sequence: 5,789 tokens fill 24 GB and 28,454 fill 80 GB (Unsloth)."""
    model = {"model": "Llama 3.1 8B", "framework": "Hugging Face TRL + FA2", "note": "QLoRA rank 32", "year": 2024}
    model |= {"accelerator_count": 1, "micro_batch": 1, "global_batch": 1, "precision": "bf16", "recompute": "full"}
    sizes = [("RTX 4090", 5789), ("H100 SXM5 80GB", 28454), ("RTX 4090", 8700), ("H100 SXM5 80GB", 42700)]
    found = fk.validate(pl.DataFrame([model | {"hardware": chip, "seq_len": tokens} for chip, tokens in sizes]))
    assert found["fits"][:2].to_list() == [1.0, 1.0]
    assert (found["fits"][2:] < 1.0).all()


def test_frameworks_are_found_by_their_names():
    makers = {row["maker"] for row in frameworks.frameworks().values()} - {None, "own"}
    assert makers <= set(fk.table("accelerators").collect()["vendor"])
    spelt = {"Megatron Bridge": "megatron_bridge", "DeepSpeed-Megatron": "megatron_deepspeed", "axolotl": "hf_trainer"}
    spelt |= {"LLaMA-Factory": "hf_trainer", "Colossal-AI": "pytorch_fused", "NeuronX Distributed": "neuron"}
    spelt |= {"T5X": "maxtext", "unsloth": "unsloth", "torchtune": "torchtune", "Pai-Megatron-Patch": "megatron_lm"}
    assert {name: frameworks.find(name) for name in spelt} == spelt


@pytest.mark.filterwarnings("ignore:row")
def test_contradictory_and_missing_inputs_are_named():
    odd = {"micro_batch": 8, "dp": 4, "mlp_gated": None, "kv_heads": None, "vocab": None}
    found = fk.validate(pl.DataFrame([HOME, HOME | odd], infer_schema_length=None))
    named = set(found["assumed"][1].split(", ")) - set(found["assumed"][0].split(", "))
    assert named == {"micro_batch_size", "data_parallel", "gated_ffn", "kv_heads", "vocabulary_size"}
    spread = found["step_high_s"] / found["step_s"]
    assert spread[1] > spread[0]


def test_blocks_that_are_not_four_hidden_sizes_wide_have_a_gate():
    wide = HOME | {"mlp_gated": None, "ffn": 4 * 8192}
    ready = prepared(pl.DataFrame([HOME | {"mlp_gated": None}, wide]))[0]
    assert ready["gated_ffn"].to_list() == [1.0, 0.0]


def test_memory_of_fine_tuning_agrees_with_a_library_that_was_not_fitted():
    """Peaks of Llama 3.2 3B and 3.1 8B on one card and of 70B on eight A100, two sequences each (torchtune, README)."""
    one = {"accelerator_count": 1, "micro_batch": 2, "global_batch": 2, "precision": "bf16", "year": 2025}
    one |= {"framework": "torchtune + compile", "recompute": "full, activation offloading", "hardware": "A100 80GB"}
    three = one | {"model": "Llama 3.2 3B", "seq_len": 4096}
    eight = one | {"model": "Llama 3.1 8B", "seq_len": 2048, "hardware": "RTX 4090", "recompute": "full"}
    large = eight | {"model": "Llama 3.1 70B", "hardware": "A100 80GB", "accelerator_count": 8, "global_batch": 16}
    rows = [
        three | {"recompute": "none", "mem_gib_per_gpu": 42.9},
        three | {"note": "LoRA rank 64, all linear", "mem_gib_per_gpu": 8.5},
        three | {"note": "QLoRA rank 64, all linear", "mem_gib_per_gpu": 4.6},
        eight | {"note": "LoRA rank 8, all linear", "mem_gib_per_gpu": 16.2},
        eight | {"note": "QLoRA rank 8, all linear", "mem_gib_per_gpu": 7.4},
        large | {"note": "LoRA rank 16, all linear", "sharding": "FSDP2", "mem_gib_per_gpu": 27.6},
    ]
    missed = fk.validate(pl.DataFrame(rows, infer_schema_length=None))["memory_error"].abs()
    assert missed.max() < 0.1
    assert missed.median() < 0.05
    adam = prepared(pl.DataFrame([three, three | {"note": "8-bit AdamW"}], infer_schema_length=None))[0]
    assert adam["optimizer_bytes_per_parameter"].to_list() == [4.0, 2.0]


@pytest.mark.parametrize(("framework", "before", "after"), [("torchtitan", 12.0, 4.0), ("Megatron-LM", 16.0, 0.0)])
def test_fully_sharded_pytorch_keeps_weights_in_32_bits_alone(framework, before, after):
    """Weights and moments of 12 bytes before the backward, and a gradient of 4 after it (torch.distributed.fsdp)."""
    run = {"model": "Llama 3.1 8B", "hardware": "H100", "accelerator_count": 8, "seq_len": 4096, "micro_batch": 1}
    run |= {"global_batch": 8, "zero_stage": 3, "framework": framework, "precision": "bf16", "year": 2025}
    state = prepared(pl.DataFrame([run]))[0].row(0, named=True)
    assert 2.0 + state["optimizer_bytes_per_parameter"] + state["gradient_bytes_per_parameter"] == before
    assert state["update_bytes_per_parameter"] == after


@pytest.mark.parametrize(("framework", "held"), [("Hugging Face Trainer", 2.0), ("torchtitan", 0.0)])
def test_gradients_of_several_micro_batches_that_are_exchanged_once_stand_whole(framework, held):
    """Accelerate skips the exchange of all micro-batches but the last, so that FSDP sums whole gradients."""
    run = {"model": "Llama 3.1 8B", "hardware": "H100", "accelerator_count": 8, "seq_len": 4096, "micro_batch": 1}
    run |= {"zero_stage": 3, "framework": framework, "precision": "bf16", "year": 2025, "recompute": "full"}
    rows = pl.DataFrame([run | {"global_batch": batch} for batch in (8, 32)])
    once, summed = prepared(rows)[0]["accumulated_gradient_bytes"].to_list()
    assert (once, summed) == (0.0, held)


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (50e9, "400 Gb/s per GPU; 50 GB/s per GPU; 8x400G NDR; 8 x 400 Gbps; 3.2 Tb/s per node; 0.4 TB/s per node"),
        (None, "400 Gb/s; NVLink5 1.8 TB/s; Quantum-2"),
    ],
)
def test_a_capital_b_is_a_byte(rate, words):
    assert {word: source_terms.link_bytes_per_s(word) for word in words.split("; ")} == dict.fromkeys(
        words.split("; "), rate
    )


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (64.0, "64 H100 SXM; 64x H100-80GB; H100 x 64; 8 hosts x 8 GPUs; GB200 NVL72 (64 GPUs); v5p-128; TPU v6e 8x8"),
        (None, "H100 80GB; 8 GPUs per node; 80 GB A100; RTX 4090; p5.48xlarge; Ascend 910B; H100 x8, 700 W"),
    ],
)
def test_descriptions_of_hardware_count_accelerators(count, words):
    assert {word: source_terms.counted(word) for word in words.split("; ")} == dict.fromkeys(words.split("; "), count)


@pytest.mark.parametrize(
    ("chip", "words"),
    [
        ("tpu_v5e", "v5e-256; TPU v5 lite"),
        ("trainium2", "trn2; Trn2 UltraServer"),
        ("ascend_910b", "Atlas 800T A2; Ascend 910B3"),
        ("h200_sxm", "p5en.48xlarge; a3-ultragpu-8g"),
        ("gb200", "a4x-highgpu-4g; GB200 NVL72"),
        ("gh200", "Grace Hopper; GH200 120GB"),
    ],
)
def test_chips_are_known_by_the_names_of_their_servers(chip, words):
    assert {accelerator_in(word) for word in words.split("; ")} == {chip}


@pytest.mark.parametrize(
    ("name", "billions", "active"),
    [
        ("deepseek-ai/DeepSeek-V4-Flash", 284, 13),
        ("DeepSeek-V4-Pro", 1572, 49),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", 120.6, 12.7),
        ("Nemotron 3 Ultra", 550, 55),
        ("Qwen3.5-122B-A10B", 122, 10),
        ("Qwen/Qwen3.5-397B-A17B", 397, 17),
        ("MiniMax-M2.5", 229, 10),
    ],
)
def test_models_of_2026_are_predicted_by_name(name, billions, active):
    run = {"model": name, "hardware": "GB300", "accelerator_count": 64, "tp": 1, "pp": 1, "ep": 64, "seq_len": 4096}
    run |= {"global_batch": 512, "micro_batch": 1, "precision": "bf16", "year": 2026}
    rows = pl.DataFrame([run, run | {"pp": 8, "ep": 8}])
    counts = fk.evaluate(prepared(rows)[0], ["parameters", "active_parameters"])
    found = counts.select("parameters", "active_parameters").row(0, named=True)
    assert found["parameters"] / 1e9 == pytest.approx(billions, rel=0.02)
    assert found["active_parameters"] / 1e9 == pytest.approx(active, rel=0.11)
    assert fk.validate(rows)["step_s"].is_not_null().all()
