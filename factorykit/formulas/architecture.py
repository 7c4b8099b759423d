"""Parameters of transformer models and the work of one token."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import maximum, minimum, where


def kv_heads(attention_heads: Numeric) -> Numeric:
    """Default number of key-value heads: one for each query head.

    .. math:: a_{kv} = a

    Notes
    -----
    A grouped-query model gives ``kv_heads``.

    References
    ----------
    .. [vaswani2017] section 3.2.2

    Examples
    --------
    >>> kv_heads(96.0)
    96.0
    """
    return attention_heads


def head_size(hidden_size: Numeric, attention_heads: Numeric) -> Numeric:
    """Default width of one attention head.

    .. math:: d = h / a

    Notes
    -----
    Some models choose it freely (Qwen3-32B: 128 with h / a = 80) and give ``head_size``. Under multi-head latent
    attention it is the part of query and key without position.

    References
    ----------
    .. [vaswani2017] section 3.2.2

    Examples
    --------
    >>> head_size(12288.0, 96.0)
    128.0
    """
    return hidden_size / attention_heads


def value_head_size(head_size: Numeric) -> Numeric:
    """Default width of one head's value.

    .. math:: d_v = d

    References
    ----------
    .. [vaswani2017] section 3.2.2

    Examples
    --------
    >>> value_head_size(128.0)
    128.0
    """
    return head_size


def expert_ffn_size(ffn_size: Numeric) -> Numeric:
    """Default width of a routed expert: that of the feed-forward block.

    .. math:: f_e = f

    Examples
    --------
    >>> expert_ffn_size(14336.0)
    14336.0
    """
    return ffn_size


def norm_vectors(gated_ffn: Numeric) -> Numeric:
    """Default number of vectors of one norm.

    .. math:: n_v = 2 - g

    Notes
    -----
    Models with a gated feed-forward use RMSNorm (one vector), the others LayerNorm (two); no exception among the models
    of the golden cases.

    References
    ----------
    .. [touvron2023] section 2.2

    Examples
    --------
    >>> norm_vectors(1.0)
    1.0
    """
    return 2.0 - gated_ffn


def moe_layers(ffn_layers: Numeric, dense_layers: Numeric, experts: Numeric) -> Numeric:
    r"""Layers whose feed-forward block is a set of routed experts.

    .. math:: L_e = L_f - L_{dense} \quad (E > 1), \qquad 0 \quad \text{otherwise}

    Examples
    --------
    >>> moe_layers(61.0, 3.0, 256.0)
    58.0
    """
    return where(experts > 1.0, ffn_layers - dense_layers, 0.0)


def attention_parameters(
    hidden_size: Numeric,
    attention_heads: Numeric,
    kv_heads: Numeric,
    head_size: Numeric,
    q_lora_rank: Numeric,
    kv_lora_rank: Numeric,
    rope_head_size: Numeric,
    value_head_size: Numeric,
    norm_vectors: Numeric,
    gated_attention: Numeric,
) -> Numeric:
    r"""Weights of one attention block.

    .. math::
        N_{attn} = h (d + d_v) (a + a_{kv}) + g_a a d_v h \quad (r_{kv} = 0)
        N_{attn} = r_q (h + a (d + d_r) + n_v) + r_{kv} (h + a (d + d_v) + n_v) + h d_r + (1 + g_a) a d_v h
        \quad (r_{kv} > 0)

    Notes
    -----
    Biases are left out, as the reference does. The second line is multi-head latent attention; without a query rank its
    first term is :math:`h a (d + d_r)`.

    References
    ----------
    .. [megatronlm] megatron/training/theoretical_memory_usage.py
    .. [deepseekv2] section 2.1

    Examples
    --------
    >>> attention_parameters(16384.0, 128.0, 8.0, 128.0, 0.0, 0.0, 0.0, 128.0, 1.0, 0.0)
    570425344.0
    """
    full_query = hidden_size * attention_heads * (head_size + rope_head_size)
    low_query = q_lora_rank * (hidden_size + attention_heads * (head_size + rope_head_size) + norm_vectors)
    low_keys = kv_lora_rank * (hidden_size + attention_heads * (head_size + value_head_size) + norm_vectors)
    output = attention_heads * value_head_size * hidden_size
    latent = where(q_lora_rank > 0.0, low_query, full_query) + low_keys + hidden_size * rope_head_size + output
    grouped = hidden_size * (head_size + value_head_size) * (attention_heads + kv_heads)
    return where(kv_lora_rank > 0.0, latent, grouped) + gated_attention * output


def ffn_parameters(hidden_size: Numeric, ffn_size: Numeric, gated_ffn: Numeric) -> Numeric:
    """Weights of one dense feed-forward block.

    .. math:: N_{ffn} = (2 + g) h f

    Notes
    -----
    Three matrices with a gate (SwiGLU), two without.

    References
    ----------
    .. [shazeer2020] section 2

    Examples
    --------
    >>> ffn_parameters(12288.0, 49152.0, 0.0)
    1207959552.0
    """
    return (2.0 + gated_ffn) * hidden_size * ffn_size


def shared_parameters(
    hidden_size: Numeric, expert_ffn_size: Numeric, gated_ffn: Numeric, shared_experts: Numeric
) -> Numeric:
    """Weights of the experts of one layer that every token visits.

    .. math:: N_{sh} = (2 + g) h f_e E_s

    Examples
    --------
    >>> shared_parameters(7168.0, 2048.0, 1.0, 1.0)
    44040192.0
    """
    return (2.0 + gated_ffn) * hidden_size * expert_ffn_size * shared_experts


def routed_parameters(hidden_size: Numeric, expert_ffn_size: Numeric, gated_ffn: Numeric, experts: Numeric) -> Numeric:
    """Weights of all routed experts of one layer.

    .. math:: N_{re} = (2 + g) h f_e E

    Examples
    --------
    >>> routed_parameters(4096.0, 14336.0, 1.0, 8.0)
    1409286144.0
    """
    return (2.0 + gated_ffn) * hidden_size * expert_ffn_size * experts


def replicated_parameters(hidden_size: Numeric, norm_vectors: Numeric) -> Numeric:
    """Weights of one layer that every tensor-parallel rank holds: its two norms.

    .. math:: N_{rep} = 2 n_v h

    Examples
    --------
    >>> replicated_parameters(12288.0, 2.0)
    49152.0
    """
    return 2.0 * norm_vectors * hidden_size


def router_parameters(hidden_size: Numeric, experts: Numeric) -> Numeric:
    """Weights of one router.

    .. math:: N_{ro} = h E

    Examples
    --------
    >>> router_parameters(7168.0, 256.0)
    1835008.0
    """
    return hidden_size * experts


def embedding_parameters(hidden_size: Numeric, vocabulary_size: Numeric) -> Numeric:
    """Weights of one embedding.

    .. math:: N_{emb} = h V

    Notes
    -----
    Learned positions are left out, as the reference does (25 million of 175 billion in GPT-3).

    Examples
    --------
    >>> embedding_parameters(12288.0, 51200.0)
    629145600.0
    """
    return hidden_size * vocabulary_size


def index_parameters(
    hidden_size: Numeric, q_lora_rank: Numeric, index_heads: Numeric, index_head_size: Numeric
) -> Numeric:
    r"""Weights of the indexer that selects the tokens one block of sparse attention attends to.

    .. math:: N_{idx} = r_q a_i d_i + h (d_i + a_i)

    Notes
    -----
    Queries from the low rank, one key for all heads, and a weight for each head. The norm of the key is left out.

    References
    ----------
    .. [deepseekv32] equation 1

    Examples
    --------
    >>> index_parameters(7168.0, 1536.0, 64.0, 128.0)
    13959168.0
    """
    return q_lora_rank * index_heads * index_head_size + hidden_size * (index_head_size + index_heads)


def parameters(
    attention_layers: Numeric,
    linear_attention_layers: Numeric,
    ffn_layers: Numeric,
    moe_layers: Numeric,
    hidden_size: Numeric,
    norm_vectors: Numeric,
    attention_parameters: Numeric,
    index_parameters: Numeric,
    linear_attention_parameters: Numeric,
    ffn_parameters: Numeric,
    shared_parameters: Numeric,
    routed_parameters: Numeric,
    router_parameters: Numeric,
    replicated_parameters: Numeric,
    embedding_parameters: Numeric,
    tied_embeddings: Numeric,
) -> Numeric:
    r"""Weights of a model whose architecture is known.

    .. math::
        N = L_a (N_{attn} + N_{idx}) + L_r N_{lin} + (L_f - L_e) N_{ffn} + L_e (N_{re} + N_{ro} + N_{sh})
        + \tfrac{1}{2} (L_a + L_r + L_f) N_{rep} + n_v h + (2 - \mathrm{tied}) N_{emb}

    Notes
    -----
    Counted as publishers count: no biases, no learned positions and no prediction layers (see ``mtp_parameters``).
    One norm precedes each block. Exact to the integer where doubles are (below 9e15).

    References
    ----------
    .. [megatronlm] megatron/training/theoretical_memory_usage.py

    Examples
    --------
    >>> shape = (96.0, 0.0, 96.0, 0.0, 12288.0, 2.0, 603979776.0, 0.0, 0.0, 1207959552.0, 0.0, 0.0, 0.0, 49152.0)
    >>> parameters(*shape, 629145600.0, 1.0)
    174580064256.0
    """
    attending = attention_layers * (attention_parameters + index_parameters)
    mixing = attending + linear_attention_layers * linear_attention_parameters
    norms = 0.5 * (attention_layers + linear_attention_layers + ffn_layers) * replicated_parameters
    sparse = moe_layers * (routed_parameters + router_parameters + shared_parameters)
    blocks = mixing + (ffn_layers - moe_layers) * ffn_parameters + sparse + norms
    return blocks + norm_vectors * hidden_size + (2.0 - tied_embeddings) * embedding_parameters


def active_parameters(
    parameters: Numeric,
    moe_layers: Numeric,
    routed_parameters: Numeric,
    experts: Numeric,
    experts_per_token: Numeric,
) -> Numeric:
    r"""Weights used for one token: all of them except the routed experts that it does not visit.

    .. math:: N_a = N - L_e N_{re} (1 - k / E)

    Notes
    -----
    Embeddings count in full, shared experts and routers too; some publishers leave the input embedding away (OpenAI),
    some both. Prediction layers do not count.

    References
    ----------
    .. [megatronlm] megatron/training/theoretical_memory_usage.py

    Examples
    --------
    >>> active_parameters(46.7e9, 32.0, 1409286144.0, 8.0, 2.0) / 1e9
    12.877...
    """
    idle_share = where(experts > 1.0, 1.0 - experts_per_token / maximum(experts, 1.0), 0.0)
    return parameters - moe_layers * routed_parameters * idle_share


def layer_blocks(
    layers: Numeric, attention_layers: Numeric, linear_attention_layers: Numeric, ffn_layers: Numeric
) -> Numeric:
    r"""Blocks of a mean layer: two where each layer mixes tokens once and has a feed-forward block.

    .. math:: n_b = (L_a + L_r + L_f) / L

    Notes
    -----
    One where every block is a layer of its own (Nemotron-H), three where a layer attends and keeps a state (Falcon-H1).

    Examples
    --------
    >>> layer_blocks(48.0, 12.0, 36.0, 48.0), layer_blocks(118.0, 10.0, 54.0, 54.0)
    (2.0, 1.0)
    """
    return (attention_layers + linear_attention_layers + ffn_layers) / layers


def mixing_parameters(
    layers: Numeric,
    attention_layers: Numeric,
    linear_attention_layers: Numeric,
    attention_parameters: Numeric,
    index_parameters: Numeric,
    linear_attention_parameters: Numeric,
) -> Numeric:
    r"""Weights with which a mean layer mixes tokens, by attention or by a state.

    .. math:: N_{mix} = \left[L_a (N_{attn} + N_{idx}) + L_r N_{lin}\right] / L

    Examples
    --------
    >>> mixing_parameters(48.0, 12.0, 36.0, 27262976.0, 0.0, 33718272.0)
    32104448.0
    """
    attending = attention_layers * (attention_parameters + index_parameters)
    return (attending + linear_attention_layers * linear_attention_parameters) / layers


def layer_dense_parameters(
    layers: Numeric,
    ffn_layers: Numeric,
    moe_layers: Numeric,
    mixing_parameters: Numeric,
    ffn_parameters: Numeric,
    shared_parameters: Numeric,
) -> Numeric:
    r"""Weights of a mean layer used for every token: all but norms, routers and routed experts.

    .. math:: N_d = N_{mix} + \left[(L_f - L_e) N_{ffn} + L_e N_{sh}\right] / L

    Examples
    --------
    >>> layer_dense_parameters(80.0, 80.0, 0.0, 1.5e8, 7.05e8, 0.0)
    855000000.0
    """
    return mixing_parameters + ((ffn_layers - moe_layers) * ffn_parameters + moe_layers * shared_parameters) / layers


def mtp_parameters(
    mtp_layers: Numeric,
    moe_layers: Numeric,
    hidden_size: Numeric,
    norm_vectors: Numeric,
    attention_parameters: Numeric,
    index_parameters: Numeric,
    ffn_parameters: Numeric,
    shared_parameters: Numeric,
    routed_parameters: Numeric,
    router_parameters: Numeric,
    replicated_parameters: Numeric,
) -> Numeric:
    r"""Weights of the prediction layers, beyond those of the model.

    .. math::
        N_m = L_m (N_{attn} + N_{idx} + N_{rep} + N_{re} + N_{ro} + N_{sh} + 2 h^2 + 3 n_v h), \qquad
        N_{ffn} \quad \text{for experts in a dense model}

    Notes
    -----
    Each is like the last layer and joins two streams of width :math:`h`; embeddings are shared with the model.
    DeepSeek-V3 has 671.0 billion weights, 682.6 with these; its files repeat both embeddings and hold 684.5.

    References
    ----------
    .. [deepseekv3] section 2.2

    Examples
    --------
    >>> sizes = (187107328.0, 0.0, 396361728.0, 44040192.0, 11274289152.0, 1835008.0, 14336.0)
    >>> mtp_parameters(1.0, 58.0, 7168.0, 1.0, *sizes) / 1e9
    11.61...
    """
    sparse = routed_parameters + router_parameters + shared_parameters
    joining = 2.0 * hidden_size * hidden_size + 3.0 * norm_vectors * hidden_size
    attending = attention_parameters + index_parameters + replicated_parameters
    return mtp_layers * (attending + where(moe_layers > 0.0, sparse, ffn_parameters) + joining)


def linear_flop_per_token(
    attention_layers: Numeric,
    linear_attention_layers: Numeric,
    ffn_layers: Numeric,
    moe_layers: Numeric,
    mtp_layers: Numeric,
    hidden_size: Numeric,
    attention_parameters: Numeric,
    index_parameters: Numeric,
    linear_attention_parameters: Numeric,
    q_lora_rank: Numeric,
    kv_lora_rank: Numeric,
    norm_vectors: Numeric,
    ffn_parameters: Numeric,
    shared_parameters: Numeric,
    routed_parameters: Numeric,
    experts: Numeric,
    experts_per_token: Numeric,
    embedding_parameters: Numeric,
) -> Numeric:
    r"""Work of all products with a weight matrix, forward and backward.

    .. math::
        C_l = 6 \left[(L_a + L_m)(N_{attn} + N_{idx}) + L_r N_{lin} + L_d N_{ffn}
        + (L_e + L_{m,e})\left(\tfrac{k}{E} N_{re} + N_{sh}\right)
        + (1 + L_m) N_{emb} + L_m (3 h + 2 h^2)\right]

    Notes
    -----
    The reference's count: logits included, embedding look-up and router not; the norms of low-rank projections count as
    one vector each.

    References
    ----------
    .. [megatronlm] megatron/training/training.py, num_floating_point_operations
    .. [chowdhery2022] appendix B

    Examples
    --------
    >>> blocks = (96.0, 0.0, 96.0, 0.0, 0.0, 12288.0, 603979776.0, 0.0, 0.0, 0.0, 0.0, 2.0, 1207959552.0)
    >>> linear_flop_per_token(*blocks, 0.0, 0.0, 0.0, 0.0, 629145600.0)
    1047451926528.0
    """
    expert_layers = moe_layers + where(moe_layers > 0.0, mtp_layers, 0.0)
    low_rank_norms = where(kv_lora_rank > 0.0, (norm_vectors - 1.0) * (q_lora_rank + kv_lora_rank), 0.0)
    visited = where(experts > 1.0, experts_per_token / maximum(experts, 1.0), 0.0) * routed_parameters
    attending = (attention_layers + mtp_layers) * (attention_parameters - low_rank_norms + index_parameters)
    mixing = attending + linear_attention_layers * linear_attention_parameters
    dense = (ffn_layers + mtp_layers - expert_layers) * ffn_parameters
    blocks = mixing + dense + expert_layers * (visited + shared_parameters)
    joining = mtp_layers * (3.0 * hidden_size + 2.0 * hidden_size * hidden_size)
    return 6.0 * (blocks + joining + (1.0 + mtp_layers) * embedding_parameters)


def attended_tokens(sequence_length: Numeric, attention_window: Numeric, windowed_layers_share: Numeric) -> Numeric:
    r"""Tokens that a query scores before the causal mask halves them, mean of all queries and layers.

    .. math:: (1 - \phi) s + \phi\, w \left(2 - \frac{w}{s}\right), \qquad w \le s

    Notes
    -----
    The window's band mirrored at the diagonal: the causal half of it has :math:`s w - w^2 / 2` pairs. A window as long
    as the sequence has no effect.

    References
    ----------
    .. [mistral7b] section 2

    Examples
    --------
    >>> attended_tokens(8192.0, 0.0, 1.0), attended_tokens(8192.0, 8192.0, 1.0), attended_tokens(8192.0, 4096.0, 0.5)
    (8192.0, 8192.0, 7168.0)
    """
    window = where(attention_window > 0.0, minimum(attention_window, sequence_length), sequence_length)
    band = window * (2.0 - window / sequence_length)
    return (1.0 - windowed_layers_share) * sequence_length + windowed_layers_share * band


def attention_flop_per_token(
    attention_layers: Numeric,
    mtp_layers: Numeric,
    attention_heads: Numeric,
    head_size: Numeric,
    rope_head_size: Numeric,
    value_head_size: Numeric,
    attended_tokens: Numeric,
    index_heads: Numeric,
    index_head_size: Numeric,
    sequence_length: Numeric,
) -> Numeric:
    """Work of query-key and score-value products over the whole square, forward and backward.

    .. math:: C_s = 6 (L_a + L_m) (a (d + d_r + d_v) s_a + a_i d_i s)

    Notes
    -----
    All query heads score, grouped or not. A causal kernel does half of it. With a window the square is a band. The
    indexer of sparse attention scores all tokens.

    References
    ----------
    .. [megatronlm] megatron/training/training.py, num_floating_point_operations

    Examples
    --------
    >>> attention_flop_per_token(96.0, 0.0, 96.0, 128.0, 0.0, 128.0, 2048.0, 0.0, 0.0, 2048.0)
    28991029248.0
    """
    width = attention_heads * (head_size + rope_head_size + value_head_size)
    picking = index_heads * index_head_size * sequence_length
    return 6.0 * (attention_layers + mtp_layers) * (width * attended_tokens + picking)


def model_flop_per_token(
    linear_flop_per_token: Numeric, attention_flop_per_token: Numeric, state_flop_per_token: Numeric
) -> Numeric:
    """Work of one training token, causal attention counted half.

    .. math:: C_t = C_l + C_s / 2 + C_r

    Notes
    -----
    The convention of Megatron-LM since 2024 and of most recent reports. No recomputation.

    References
    ----------
    .. [megatronlm] megatron/training/training.py, num_floating_point_operations

    Examples
    --------
    >>> model_flop_per_token(1047451926528.0, 28991029248.0, 0.0)
    1061947441152.0
    """
    return linear_flop_per_token + 0.5 * attention_flop_per_token + state_flop_per_token


def model_flop_per_token_full_attention(
    linear_flop_per_token: Numeric, attention_flop_per_token: Numeric, state_flop_per_token: Numeric
) -> Numeric:
    """Work of one training token, the attention square counted in full.

    .. math:: C_{t,full} = C_l + C_s + C_r

    Notes
    -----
    The convention of Narayanan et al. and PaLM.

    References
    ----------
    .. [narayanan2021] equation 3 without recomputation

    Examples
    --------
    >>> model_flop_per_token_full_attention(1047451926528.0, 28991029248.0, 0.0)
    1076442955776.0
    """
    return linear_flop_per_token + attention_flop_per_token + state_flop_per_token
