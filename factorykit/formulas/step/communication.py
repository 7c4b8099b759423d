"""Communication within a step: tensor, context, expert and pipeline parallelism, and the gradient exchange."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import equal, floor, log, maximum, minimum, sqrt, where
from factorykit.formulas.network import LN2, two_tier_ring_s
from factorykit.formulas.validity import holds_while

BUCKET = 4e7
"""Least gradients of one bucket (Megatron's)."""
BUCKET_PER_RANK = 1e6
"""Gradients of one bucket for each rank, so that rings of many ranks wait less often (Megatron's)."""

ROUNDED = 1e-9
"""Tolerance for roots and ratios of logarithms that are whole numbers up to rounding."""


@holds_while(
    "link_flows >= 2 ln(switch_ports / 2)",
    lambda link_flows, switch_ports: link_flows >= 2.0 * log(switch_ports / 2.0),
)
def routing_share_ecmp(link_flows: Numeric, switch_ports: Numeric) -> Numeric:
    r"""Share of the link rate that flows keep where hashes spread them over the uplinks of a leaf.

    .. math:: \left(1 + \sqrt{\frac{2 \ln(k / 2)}{q}}\right)^{-1}

    Notes
    -----
    :math:`q` flows for each of :math:`k/2` uplinks fall on them by chance, and the fullest of them sets the pace of a
    collective. With 16 flows, as Llama 3's runs had, and 64 ports 60 % remain, as one vendor states for plain
    Ethernet at scale; 95 % with adaptive routing. Pauses and incast come on top.

    References
    ----------
    .. [raab1998] theorem 1: the fullest of many bins
    .. [llama3] section 3.3.1: 16 flows between two GPUs
    .. [spectrumx2024] 60 % and 95 % of data throughput

    Examples
    --------
    >>> round(routing_share_ecmp(16.0, 64.0), 2)
    0.6
    """
    return 1.0 / (1.0 + sqrt(2.0 * log(switch_ports / 2.0) / link_flows))


def sustained_out_share(scale_out_share: Numeric, routing_share: Numeric) -> Numeric:
    r"""Share of the scale-out link rate that large collectives reach on shared links.

    .. math:: \eta_{out}\, \eta_r

    Notes
    -----
    The first share includes the routing of the measured runs; the second is for other fabrics.

    Examples
    --------
    >>> sustained_out_share(0.8, 0.5)
    0.4
    """
    return scale_out_share * routing_share


def ring_out_share(
    sustained_out_share: Numeric,
    network_oversubscription: Numeric,
    pod_accelerators: Numeric,
    accelerators: Numeric,
    tensor_parallel: Numeric,
    pipeline_parallel: Numeric,
) -> Numeric:
    r"""Share of the scale-out link rate that data-parallel rings reach where an oversubscribed layer joins the pods.

    .. math:: \eta \left/ \max\left(1,\, [n > n_p]\, \sigma \min\left(1, \tfrac{t p}{n_p}\right)\right)\right.

    Notes
    -----
    Data parallelism is the outermost, so that the :math:`n_p / (t p)` members of a ring in one pod follow each other
    and each of the :math:`t p` rings of a pod leaves it once, over uplinks for :math:`n_p / \sigma` of its chips.

    References
    ----------
    .. [llama3] section 3.3.1: pods of 3,072, 1:7 above them, and a scheduler that minds them

    Examples
    --------
    Llama 3's rings do not feel 1:7; rings of members that each have their own pod would:

    >>> [round(ring_out_share(0.8, 7.0, pod, 16384.0, 8.0, 16.0), 3) for pod in (3072.0, 128.0)]
    [0.8, 0.114]
    """
    leaving = minimum(tensor_parallel * pipeline_parallel / pod_accelerators, 1.0)
    slowed = where(accelerators > pod_accelerators, network_oversubscription * leaving, 1.0)
    return sustained_out_share / maximum(slowed, 1.0)


def exchange_out_share(
    sustained_out_share: Numeric,
    incast_share: Numeric,
    network_oversubscription: Numeric,
    pod_accelerators: Numeric,
    expert_parallel: Numeric,
    expert_tensor_parallel: Numeric,
) -> Numeric:
    r"""Share of the scale-out link rate that routed tokens reach where an oversubscribed layer joins the pods.

    .. math:: \eta\, \eta_i \left/ \max\left(1,\, \sigma \left(1 - \tfrac{n_p}{e\, t_e}\right)\right)\right.

    Notes
    -----
    Tokens go to all ranks of the group equally, so that the share of ranks outside the pod is the share of traffic that
    leaves it. Groups within a pod are not affected. Incast leaves the share :math:`\eta_i` of the rate; 1 for the
    fabrics of the measured runs.

    Examples
    --------
    >>> exchange_out_share(0.8, 1.0, 4.0, 32.0, 64.0, 1.0), exchange_out_share(0.8, 1.0, 4.0, 64.0, 64.0, 1.0)
    (0.4, 0.8)
    """
    group = expert_parallel * expert_tensor_parallel
    leaving = maximum(1.0 - pod_accelerators / group, 0.0)
    return sustained_out_share * incast_share / maximum(network_oversubscription * leaving, 1.0)


def _slice(
    group: Numeric, accelerators: Numeric, scale_up_domain: Numeric, torus_axes: Numeric, torus_side: Numeric
) -> tuple[Numeric, Numeric, Numeric]:
    """Return the part of a torus' axes that a group spans, the side of its rings, and 1/2 where they have ends."""
    chips = minimum(accelerators, scale_up_domain)
    axes = maximum(torus_axes, 1.0)
    side = minimum(group, chips ** (1.0 / axes))
    spanned = floor(axes * log(maximum(group, 1.0)) / log(maximum(chips, 2.0)) + 0.5 + ROUNDED)
    joined = where(side >= torus_side * (1.0 - ROUNDED), 1.0, 0.5)
    return minimum(maximum(spanned, 1.0) / axes, 1.0), side, joined


def _ring_share(
    group: Numeric, accelerators: Numeric, scale_up_domain: Numeric, torus_axes: Numeric, torus_side: Numeric
) -> Numeric:
    spanned, _, joined = _slice(group, accelerators, scale_up_domain, torus_axes, torus_side)
    return where(torus_axes > 0.0, spanned * joined, 1.0)


def tensor_up_share(
    scale_up_share: Numeric,
    tensor_parallel: Numeric,
    accelerators: Numeric,
    scale_up_domain: Numeric,
    torus_axes: Numeric,
    torus_side: Numeric,
) -> Numeric:
    r"""Share of the scale-up link rate that tensor-parallel groups reach.

    .. math::
        \eta_{up} \frac{a}{d}\, \tfrac12^{[r < k_t]} \text{ on a torus}, \qquad
        a = \max\left(\left\lfloor d \frac{\ln t}{\ln n_s} + \tfrac12 \right\rfloor, 1\right), \quad
        r = \min(t, \sqrt[d]{n_s}), \quad n_s = \min(n, g)

    Notes
    -----
    Behind switches :math:`\eta_{up}`. A group on a torus has the links along the axes that it spans, at least one:
    slices are cut so that groups span whole axes. Rings of fewer than :math:`k_t` chips have ends, and half the rate.

    References
    ----------
    .. [austin2025] sharding: an all-gather over several axes has the bandwidth of all; TPUs: which axes wrap around

    Examples
    --------
    Sixteen and four of 256 TPU v5e, whose axes of sixteen are closed, and eight GPUs behind switches:

    >>> [tensor_up_share(1.0, ranks, 256.0, 256.0, 2.0, 16.0) for ranks in (16.0, 4.0)]
    [0.5, 0.25]
    >>> tensor_up_share(0.75, 8.0, 64.0, 8.0, 0.0, 4.0)
    0.75
    """
    return scale_up_share * _ring_share(tensor_parallel, accelerators, scale_up_domain, torus_axes, torus_side)


def context_up_share(
    scale_up_share: Numeric,
    context_parallel: Numeric,
    accelerators: Numeric,
    scale_up_domain: Numeric,
    torus_axes: Numeric,
    torus_side: Numeric,
) -> Numeric:
    r"""Share of the scale-up link rate that context-parallel rings reach.

    .. math:: \eta_{up} \frac{a}{d}\, \tfrac12^{[r < k_t]} \text{ on a torus}

    Notes
    -----
    As ``tensor_up_share``, of :math:`c` ranks.

    References
    ----------
    .. [austin2025] sharding

    Examples
    --------
    >>> context_up_share(1.0, 16.0, 256.0, 256.0, 2.0, 16.0)
    0.5
    """
    return scale_up_share * _ring_share(context_parallel, accelerators, scale_up_domain, torus_axes, torus_side)


def ring_up_share(
    scale_up_share: Numeric,
    data_parallel: Numeric,
    context_parallel: Numeric,
    accelerators: Numeric,
    scale_up_domain: Numeric,
    torus_axes: Numeric,
    torus_side: Numeric,
) -> Numeric:
    r"""Share of the scale-up link rate that data-parallel rings reach.

    .. math:: \eta_{up} \frac{a}{d}\, \tfrac12^{[r < k_t]} \text{ on a torus}

    Notes
    -----
    As ``tensor_up_share``, of the :math:`d c\, n_s / n` ranks that share a slice: the axes that tensor parallelism and
    stages leave, each with its part of the bytes.

    References
    ----------
    .. [austin2025] sharding

    Examples
    --------
    Sharded over all of 256 TPU v5e, over 64 whose slice has ends, and over 64 beside tensor parallelism in 512 TPU v5p:

    >>> [ring_up_share(1.0, ranks, 1.0, ranks, 256.0, 2.0, 16.0) for ranks in (256.0, 64.0)]
    [1.0, 0.5]
    >>> round(ring_up_share(1.0, 64.0, 1.0, 512.0, 8960.0, 3.0, 4.0), 3)
    0.667
    """
    within = data_parallel * context_parallel * minimum(scale_up_domain / accelerators, 1.0)
    return scale_up_share * _ring_share(within, accelerators, scale_up_domain, torus_axes, torus_side)


def exchange_up_share(
    scale_up_share: Numeric,
    expert_parallel: Numeric,
    accelerators: Numeric,
    scale_up_domain: Numeric,
    torus_axes: Numeric,
    torus_side: Numeric,
) -> Numeric:
    r"""Share of the scale-up link rate that routed tokens reach.

    .. math::
        \eta_{up} \frac{4 (1 - 1/e)}{d\, r}\, \tfrac12^{[r < k_t]} \text{ on a torus}, \qquad r = \min(e, \sqrt[d]{n_s})

    Notes
    -----
    Behind switches :math:`\eta_{up}`. Bytes for a far chip pass all between: on a ring of :math:`r` chips a byte takes
    :math:`r / 4` hops on average, both ways at once, over one of :math:`d` pairs of links. Rings with ends take twice
    as long.

    References
    ----------
    .. [austin2025] sharding: an all-to-all takes a quarter of an all-gather of the whole array

    Examples
    --------
    Sixteen TPU v5e: the whole array, 16 times the data of one chip, travels a quarter of the way over one of two axes:

    >>> exchange_up_share(1.0, 16.0, 256.0, 256.0, 2.0, 16.0) == (1 - 1 / 16) / (16 / 4 * 2)
    True
    """
    _, side, joined = _slice(expert_parallel, accelerators, scale_up_domain, torus_axes, torus_side)
    ways = 4.0 * (1.0 - 1.0 / maximum(expert_parallel, 2.0)) / (maximum(torus_axes, 1.0) * maximum(side, 1.0)) * joined
    return scale_up_share * where(torus_axes > 0.0, minimum(ways, 1.0), 1.0)


def tensor_parallel_s(
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    layer_blocks: Numeric,
    tensor_parallel: Numeric,
    recompute_share: Numeric,
    tensor_overlap: Numeric,
    tensor_exposed_plain: Numeric,
    tensor_exposed_overlapped: Numeric,
    torus_axes: Numeric,
    scale_up_domain: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    tensor_up_share: Numeric,
    sustained_out_share: Numeric,
    scale_up_latency_s: Numeric,
    scale_out_latency_s: Numeric,
) -> Numeric:
    r"""Exposed tensor-parallel communication of a mean layer and one micro-batch.

    .. math:: x\, n_b (2 + \rho) \cdot 2\, T_{rs}(2 T h, t)

    Notes
    -----
    Each block has an all-reduce forward, one backward and one more where the forward runs again, each a reduce-scatter
    and an all-gather. A group wider than the scale-up domain is held to the network links of its ranks, and its latency
    never hides. Overlapped, the exposed share :math:`x` is measured behind switches, where copies take cores from
    products; on a torus the exchange is cut into as many parts as ranks, and only the first has nothing beside it.

    References
    ----------
    .. [shoeybi2019] section 3
    .. [wang2023overlap] collectives decomposed into parts that run beside the products they feed

    Examples
    --------
    >>> links = (4.5e11, 5e10, 0.75, 0.8, 1e-5, 1.5e-5)
    >>> round(tensor_parallel_s(8192.0, 8192.0, 2.0, 8.0, 0.0, 1.0, 0.9, 0.5, 0.0, 8.0, *links), 4)
    0.0015
    """
    overlapped = where(torus_axes > 0.0, 1.0 / tensor_parallel, tensor_exposed_overlapped)
    exposed = tensor_exposed_plain - tensor_overlap * (tensor_exposed_plain - overlapped)
    one_way = two_tier_ring_s(
        2.0 * micro_batch_tokens * hidden_size,
        tensor_parallel,
        minimum(tensor_parallel, scale_up_domain),
        scale_up_bytes_per_s,
        scale_out_bytes_per_s,
        tensor_up_share,
        sustained_out_share,
        scale_up_latency_s,
        scale_out_latency_s,
    )
    return where(tensor_parallel > 1.0, exposed * layer_blocks * (2.0 + recompute_share) * 2.0 * one_way, 0.0)


def context_parallel_s(
    micro_batch_tokens: Numeric,
    kv_heads: Numeric,
    head_size: Numeric,
    layers: Numeric,
    attention_layers: Numeric,
    context_parallel: Numeric,
    tensor_parallel: Numeric,
    context_exposed_share: Numeric,
    scale_up_domain: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    context_up_share: Numeric,
    sustained_out_share: Numeric,
) -> Numeric:
    r"""Exposed context-parallel communication of a mean layer and one micro-batch.

    .. math:: 3 x (c - 1) \frac{L_a}{L} \frac{4 T a_{kv} d}{t B}

    Notes
    -----
    Keys and values go once around the ring forward, and with their gradients backward. States hand over far less.

    References
    ----------
    .. [liu2023] section 3

    Examples
    --------
    >>> context_parallel_s(4096.0, 8.0, 128.0, 80.0, 80.0, 2.0, 1.0, 0.5, 8.0, 4e11, 5e10, 1.0, 1.0)
    6.291456e-05
    """
    one_block = 4.0 * micro_batch_tokens * kv_heads * head_size / tensor_parallel
    crosses = tensor_parallel * context_parallel > scale_up_domain
    rate = where(crosses, scale_out_bytes_per_s * sustained_out_share, scale_up_bytes_per_s * context_up_share)
    attending = attention_layers / layers
    return 3.0 * context_exposed_share * (context_parallel - 1.0) * attending * one_block / rate


def expert_parallel_s(
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    experts_per_token: Numeric,
    expert_parallel: Numeric,
    expert_tensor_parallel: Numeric,
    expert_imbalance: Numeric,
    dispatched_once: Numeric,
    expert_overlap: Numeric,
    interleaved_overlap: Numeric,
    virtual_stages: Numeric,
    schedule: Numeric,
    tensor_parallel: Numeric,
    layers: Numeric,
    moe_layers: Numeric,
    expert_exposed_share: Numeric,
    expert_exposed_across: Numeric,
    expert_exposed_overlapped: Numeric,
    message_s: Numeric,
    scale_up_domain: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    tensor_up_share: Numeric,
    exchange_up_share: Numeric,
    exchange_out_share: Numeric,
    scale_up_latency_s: Numeric,
    scale_out_latency_s: Numeric,
) -> Numeric:
    r"""Exposed exchange of routed tokens of one micro-batch in a mean layer.

    .. math::
        4 \frac{L_e}{L} \left\{y\, \iota \frac{2 T h}{t}
        \left[x \frac{k (1 - 1/g)}{B_{up}} + x_o n_d \frac{1 - 1/D}{B_{out}}\right]
        + x_o\, \iota \frac{T}{t} n_d (1 - 1/D)\, o\, \tau
        + y x\, T_{rs}\!\left(\tfrac{2 T h k t_e}{t}, t_e\right)\right\},
        \quad y = 1 - u (1 - x_u), \quad n_d = o D \left(1 - (1 - 1/D)^k\right) + (1 - o) k, \qquad D = e / g

    Notes
    -----
    Dispatch and combine, forward and backward, 16 bits. An all-to-all sends a token to each of its experts; other
    dispatchers send it once to every domain it visits and copy it inside (:math:`o = 1`). :math:`g` ranks of the group
    share a domain; a message to each of the others takes its latency. Tokens that travel one by one take
    :math:`\tau` each where processors hand them to the network, and no overlap hides that. Where an expert is split
    :math:`t_e` ways, its ranks gather the routed tokens of each other and scatter the sums. Where the exchange runs
    beside the compute of another micro-batch (:math:`u = 1`), the share :math:`x_u` of it shows: always so in DualPipe,
    and in software that does so where stages interleave (:math:`v > 1`) and experts span more than a domain.

    References
    ----------
    .. [deepseekv3] section 3.2.2

    Examples
    --------
    >>> links, shape = (4.5e11, 5e10, 0.75, 0.75, 0.8, 1e-5, 1.5e-5), (4096.0, 7168.0, 8.0, 8.0, 1.0, 1.0)
    >>> layers = (1.0, 61.0, 61.0, 1.0, 1.0, 0.4)
    >>> round(expert_parallel_s(*shape, 0.0, 0.0, 0.0, 1.0, "1f1b", *layers, 0.0, 8.0, *links), 5)
    0.00487
    """
    split = expert_tensor_parallel
    local = maximum(minimum(expert_parallel, scale_up_domain / minimum(split, scale_up_domain)), 1.0)
    domains = maximum(expert_parallel / local, 1.0)
    each_domain = domains * (1.0 - (1.0 - 1.0 / domains) ** experts_per_token)
    visited = experts_per_token - dispatched_once * (experts_per_token - each_domain)
    token_bytes = 2.0 * micro_batch_tokens * hidden_size / tensor_parallel
    inside = token_bytes * experts_per_token * (1.0 - 1.0 / local) / (scale_up_bytes_per_s * exchange_up_share)
    sent = token_bytes * visited * (1.0 - 1.0 / domains) / (scale_out_bytes_per_s * exchange_out_share)
    messages = dispatched_once * micro_batch_tokens / tensor_parallel * visited * (1.0 - 1.0 / domains)
    in_turn = where(virtual_stages > 1.0, where(expert_parallel > scale_up_domain, interleaved_overlap, 0.0), 0.0)
    beside = maximum(maximum(expert_overlap, in_turn), where(equal(schedule, "dualpipe"), 1.0, 0.0))
    exposed = 1.0 - beside * (1.0 - expert_exposed_overlapped)
    across = exposed * (sent + (domains - 1.0) * scale_out_latency_s) + messages * message_s
    gathered = two_tier_ring_s(
        token_bytes * experts_per_token * split,
        split,
        minimum(split, scale_up_domain),
        scale_up_bytes_per_s,
        scale_out_bytes_per_s,
        tensor_up_share,
        exchange_out_share,
        scale_up_latency_s,
        scale_out_latency_s,
    )
    within = expert_exposed_share * (expert_imbalance * inside + gathered)
    return 4.0 * moe_layers / layers * (exposed * within + expert_exposed_across * expert_imbalance * across)


def gather_s(
    layers: Numeric,
    moe_layers: Numeric,
    layer_dense_parameters: Numeric,
    routed_parameters: Numeric,
    expert_parallel: Numeric,
    expert_tensor_parallel: Numeric,
    expert_data_parallel: Numeric,
    tensor_parallel: Numeric,
    data_parallel: Numeric,
    context_parallel: Numeric,
    optimizer_shards: Numeric,
    zero_stage: Numeric,
    weight_bytes_per_parameter: Numeric,
    trained_share: Numeric,
    offloaded_weights_share: Numeric,
    host_link_bytes_per_s: Numeric,
    reduced_bytes_per_parameter: Numeric,
    scale_up_domain: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    ring_up_share: Numeric,
    ring_out_share: Numeric,
    scale_up_latency_s: Numeric,
    scale_out_latency_s: Numeric,
) -> Numeric:
    r"""Communication of fully sharded weights in a mean layer and one micro-batch.

    .. math::
        [z \ge 3] \left(\min(b_w, 2) + \tau \tfrac{b_r}{2}\right)
        \left\{T_{rs}\!\left(\tfrac{2}{t} N_d,\, n_z\right)
        + \frac{L_e}{L} T_{rs}\!\left(\frac{2 N_{re}}{e t_e},\, n_x\right)\right\}
        + \omega_w \frac{2 \min(b_w, 2)}{B_h} \left(\frac{N_d}{t\, [n_z]_{z \ge 3}}
        + \frac{L_e N_{re}}{L e t_e [n_x]_{z \ge 3}}\right), \qquad n_x = \frac{d_e n_z}{d c}

    Notes
    -----
    Weights are gathered forward and backward in 16 bits, or fewer where they are stored so, gradients of trained ones
    scattered in :math:`b_r` bytes. Experts are gathered over their own copies, of which those beyond a domain have one
    link each where a domain holds all experts. Weights on the host come over its link, each rank its part.

    References
    ----------
    .. [rajbhandari2020] section 7.2.2
    .. [zeroinfinity] section 5.2

    Examples
    --------
    >>> links = (4.5e11, 5e10, 0.75, 0.8, 1e-5, 1.5e-5)
    >>> layer = (80.0, 0.0, 8.55e8, 0.0, 1.0, 1.0, 64.0)
    >>> round(gather_s(*layer, 1.0, 64.0, 1.0, 64.0, 3.0, 2.0, 1.0, 0.0, 2.5e10, 2.0, 8.0, *links), 4)
    0.0162
    """
    moe = moe_layers / layers
    routed_shards = maximum(expert_data_parallel * optimizer_shards / (data_parallel * context_parallel), 1.0)

    def gathered(parameters: Numeric, copies: Numeric, beside: Numeric) -> Numeric:
        return two_tier_ring_s(
            2.0 * parameters,
            copies,
            maximum(minimum(copies, scale_up_domain / minimum(beside, scale_up_domain)), 1.0),
            scale_up_bytes_per_s,
            scale_out_bytes_per_s,
            ring_up_share,
            ring_out_share,
            scale_up_latency_s,
            scale_out_latency_s,
        )

    split = expert_parallel * expert_tensor_parallel
    routed = gathered(routed_parameters / split, routed_shards, split)
    dense = gathered(layer_dense_parameters / tensor_parallel, optimizer_shards, tensor_parallel)
    whole = dense + where(moe > 0.0, moe * routed, 0.0)
    stored = minimum(weight_bytes_per_parameter, 2.0)
    sharded = where(zero_stage >= 3.0, (stored + 0.5 * trained_share * reduced_bytes_per_parameter) * whole, 0.0)
    shares = where(zero_stage >= 3.0, optimizer_shards, 1.0), where(zero_stage >= 3.0, routed_shards, 1.0)
    held = layer_dense_parameters / (tensor_parallel * shares[0]) + moe * routed_parameters / (split * shares[1])
    return sharded + offloaded_weights_share * 2.0 * stored * held / host_link_bytes_per_s


def stage_transfer_s(
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    tensor_parallel: Numeric,
    pipeline_parallel: Numeric,
    virtual_stages: Numeric,
    schedule: Numeric,
    scale_out_bytes_per_s: Numeric,
    sustained_out_share: Numeric,
    scale_out_latency_s: Numeric,
) -> Numeric:
    r"""Time in which one micro-batch crosses between stages, forward and backward.

    .. math:: [p > 1]\; 4 v \left(\frac{2 T h}{t B_{out}} + \alpha\right) \cdot \tfrac12^{[v > 1]}, \qquad
        0 \quad \text{DualPipe}

    Notes
    -----
    Sent and received, each way; interleaved schedules hide half. DualPipe sends beside the work of another micro-batch.

    References
    ----------
    .. [narayanan2021] section 4.1: scatter and gather over tensor-parallel ranks
    .. [deepseekv3] section 3.2.1: transfers between stages are hidden

    Examples
    --------
    >>> round(stage_transfer_s(2048.0, 12288.0, 8.0, 8.0, 1.0, "1f1b", 2.5e10, 1.0, 0.0), 5)
    0.00101
    """
    message_s = 2.0 * micro_batch_tokens * hidden_size / (tensor_parallel * scale_out_bytes_per_s * sustained_out_share)
    exposed = where(equal(schedule, "dualpipe"), 0.0, where(virtual_stages > 1.0, 0.5, 1.0))
    sending = 4.0 * virtual_stages * (message_s + scale_out_latency_s) * exposed
    return where(pipeline_parallel > 1.0, sending, 0.0)


def gradient_s(
    stage_sharded_parameters: Numeric,
    stage_replicated_parameters: Numeric,
    stage_expert_parameters: Numeric,
    trained_share: Numeric,
    gradient_bytes_per_parameter: Numeric,
    gradient_overlap: Numeric,
    micro_batches: Numeric,
    zero_stage: Numeric,
    data_parallel: Numeric,
    context_parallel: Numeric,
    optimizer_shards: Numeric,
    expert_data_parallel: Numeric,
    expert_parallel: Numeric,
    expert_tensor_parallel: Numeric,
    tensor_parallel: Numeric,
    scale_up_domain: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    ring_up_share: Numeric,
    ring_out_share: Numeric,
    scale_up_latency_s: Numeric,
    scale_out_latency_s: Numeric,
    in_network_reduction: Numeric,
    collective_sum_share: Numeric,
    collective_out_share: Numeric,
) -> Numeric:
    r"""Time in which a step reduces gradients and gathers new weights over the data-parallel ranks.

    .. math::
        T_{rs}\!\left(\tau (N_s + N_r)\, \beta,\, d c\right) + T_{rs}\!\left(\tau N_x \beta,\, d_e\right), \qquad
        \beta = 2 b_g \quad (z = 0), \qquad b_g + 2 \quad (z = 1), \qquad m b_g + 2 \quad (z = 2), \qquad
        \frac{2 m b_g}{n_z} \quad (z = 3)

    Notes
    -----
    At most four bytes of a gradient travel, once per step, with ZeRO 2 once per micro-batch, since no rank keeps the
    whole. ZeRO 3 moves its weights in every layer instead; if :math:`n_z` of the ranks hold a copy, the parts of their
    gradients are summed over the copies. Gradients that overlap travel in buckets of 40 million, or of a million for
    each rank where those are larger; each bucket waits for the ring of domains, there and back, or for a tree where
    gradients are not sharded. Switches that add get each byte of such gradients once, at the share of the rate that
    sums alone reach over that of rings alone.

    References
    ----------
    .. [rajbhandari2020] section 7
    .. [zhao2023] section 3.2.2: hybrid sharding

    Examples
    --------
    >>> links = (4.5e11, 5e10, 0.75, 0.8, 1e-5, 1.5e-5)
    >>> sums = (0.0, 0.765, 0.92)
    >>> ranks = (8.0, 1.0, 8.0, 8.0, 1.0, 1.0, 8.0, 8.0)
    >>> round(gradient_s(1e9, 0.0, 0.0, 1.0, 4.0, 1.0, 4.0, 1.0, *ranks, *links, *sums), 3)
    0.137
    """
    sent = minimum(gradient_bytes_per_parameter, 4.0)
    rounds = where(zero_stage >= 2.0, micro_batches, 1.0)
    after = where(zero_stage >= 3.0, rounds * sent, where(zero_stage >= 1.0, 2.0, sent))
    per_parameter = rounds * sent + after
    ranks = data_parallel * context_parallel
    per_domain = scale_up_domain / minimum(tensor_parallel, scale_up_domain)
    summed = in_network_reduction * where(zero_stage >= 1.0, 0.0, 1.0)
    faster = 1.0 + summed * (2.0 * collective_sum_share / collective_out_share - 1.0)

    def exchanged(whole: Numeric, holders: Numeric, together: Numeric) -> Numeric:
        shards = where(zero_stage >= 3.0, maximum(holders * optimizer_shards / ranks, 1.0), 1.0)
        parameters, copies = trained_share * whole / shards, holders / shards
        local = maximum(minimum(holders, together) / shards, 1.0)
        buckets = 2.0 * maximum(parameters / maximum(copies * BUCKET_PER_RANK, BUCKET), 1.0)
        crosses = where(copies > local, 1.0, 0.0)
        hops = where(zero_stage >= 1.0, copies / local - 1.0, log(maximum(copies / local, 1.0)) / LN2)
        waiting = gradient_overlap * (buckets - 1.0) * crosses * hops * scale_out_latency_s
        waiting -= summed * crosses * (copies / local - 1.0 - hops) * scale_out_latency_s
        return waiting + two_tier_ring_s(
            parameters * per_parameter,
            copies,
            local,
            scale_up_bytes_per_s,
            scale_out_bytes_per_s,
            ring_up_share,
            ring_out_share * faster,
            scale_up_latency_s,
            scale_out_latency_s,
        )

    dense = stage_sharded_parameters + stage_replicated_parameters
    beside = scale_up_domain / minimum(expert_parallel * expert_tensor_parallel, scale_up_domain)
    routed = exchanged(stage_expert_parameters, maximum(expert_data_parallel, 1.0), beside)
    return exchanged(dense, ranks, per_domain) + where(stage_expert_parameters > 0.0, routed, 0.0)


def gradient_exposed_s(
    gradient_s: Numeric,
    stage_s: Numeric,
    micro_batches: Numeric,
    zero_stage: Numeric,
    pipeline_parallel: Numeric,
    virtual_stages: Numeric,
    gradient_overlap_share: Numeric,
    gradient_overlap: Numeric,
    tensorwise_shards: Numeric,
    optimizer_shards: Numeric,
    stage_layers: Numeric,
    shard_part_s: Numeric,
) -> Numeric:
    r"""Part of the gradient exchange that no compute hides.

    .. math::
        \max\left(T_{grad} - o\, \eta_o T_s \left(m^{[z = 2]} + (p - 1) \frac{v - 1}{v}\right),\, 0.1\, T_{grad}\right)
        + [1 \le z < 3]\, s\, L_s n_z T_z

    Notes
    -----
    Gradients travel during the last micro-batch's backward, with ZeRO 2 during every one's, new weights during the
    first one's forward; the first and last bucket never hide. With interleaved stages a chunk is done :math:`p`
    micro-batches of the next chunk before the end, so all chunks but the last hide behind those. Software that shards
    one tensor after the other (:math:`s = 1`) cuts and sends a part of each for every one of :math:`n_z` ranks.

    References
    ----------
    .. [li2020] section 3.2
    .. [narayanan2021] section 2.2.2: order of chunks

    Examples
    --------
    >>> round(gradient_exposed_s(0.3, 0.2, 8.0, 1.0, 1.0, 1.0, 0.5, 1.0, 0.0, 64.0, 32.0, 5e-5), 2)
    0.2
    """
    later_chunks = (pipeline_parallel - 1.0) * (virtual_stages - 1.0) / virtual_stages
    rounds = where(zero_stage >= 2.0, micro_batches, 1.0)
    hidden = gradient_overlap * gradient_overlap_share * stage_s * (rounds + later_chunks)
    parts = where(zero_stage >= 1.0, where(zero_stage < 3.0, stage_layers * optimizer_shards, 0.0), 0.0)
    return maximum(gradient_s - hidden, 0.1 * gradient_s) + tensorwise_shards * parts * shard_part_s
