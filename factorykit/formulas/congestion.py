"""Incast on lossless Ethernet: buffers, pauses and the remaining rate."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import maximum, sqrt

PAUSE_S = 301.0 * 8e-9
"""Time that a pause takes to be sent, read and obeyed, at any rate (Mellanox)."""
PAUSE_S_PER_M = 2.16 * 8e-9
"""The same for each metre of cable, there and back, with bytes that fill a buffer's cells in part."""
PAUSE_FRAMES = 2.72
"""Frames that neither end may interrupt, and the pause frame itself."""


def pause_headroom_bytes(port_bytes_per_s: Numeric, cable_m: Numeric, frame_bytes: Numeric) -> Numeric:
    r"""Bytes that still arrive at one port and class after it has asked for a pause.

    .. math:: h = (\tau_0 + \tau_1 \ell) B_p + 2.72\, S_f

    Notes
    -----
    A lossless port keeps this much free; with less, frames are lost.

    References
    ----------
    .. [mlx5] xoff = (301 + 2.16 cable length [m]) speed [Gbit/s] + 2.72 MTU

    Examples
    --------
    40 Gbit/s and frames of 1,500 bytes over 100 m; Microsoft computed 22.4 kB for its switches:

    >>> round(pause_headroom_bytes(5e9, 100.0, 1500.0))
    24760
    """
    return (PAUSE_S + PAUSE_S_PER_M * cable_m) * port_bytes_per_s + PAUSE_FRAMES * frame_bytes


def pause_threshold_bytes(
    switch_buffer_bytes: Numeric, pause_headroom_bytes: Numeric, switch_ports: Numeric, lossless_classes: Numeric
) -> Numeric:
    r"""Bytes of one port and class that a switch can hold before it has to ask for a pause.

    .. math:: t_p = \frac{\max(S_b - c\, k\, h,\, 0)}{c\, k}

    Notes
    -----
    Worst case of a buffer shared equally by all ports and classes. Zero where headroom alone fills it: such a switch
    is not lossless on all ports.

    References
    ----------
    .. [zhu2015] section 4: 24.47 kB of 12 MB with 32 ports of 22.4 kB and eight classes

    Examples
    --------
    >>> round(pause_threshold_bytes(12e6, 22_400.0, 32.0, 8.0))
    24475
    """
    queues = lossless_classes * switch_ports
    return maximum(switch_buffer_bytes - queues * pause_headroom_bytes, 0.0) / queues


def mark_threshold_bytes(pause_threshold_bytes: Numeric, buffer_sharing: Numeric) -> Numeric:
    r"""Bytes of a queue up to which marks reach the senders before any pause does.

    .. math:: t_e = \frac{\beta}{\beta + 1}\, t_p

    Notes
    -----
    Pauses begin at :math:`\beta` times the free buffer, and all queues that send may hold bytes of one that receives.
    Below a frame or two of room congestion control cannot act first: incast ends in pauses.

    References
    ----------
    .. [zhu2015] section 4: 21.75 kB with a factor of eight

    Examples
    --------
    >>> round(mark_threshold_bytes(24_475.0, 8.0))
    21756
    """
    return buffer_sharing / (buffer_sharing + 1.0) * pause_threshold_bytes


def incast_share_paused(expert_parallel: Numeric, expert_tensor_parallel: Numeric, scale_up_domain: Numeric) -> Numeric:
    r"""Share of the link rate that routed tokens keep where receivers pause all that queues behind.

    .. math::
        \rho^2 - \left(4 - \tfrac1F\right) \rho + 2 = 0, \quad \rho \le 1, \qquad
        F = \max\left(\frac{e\, t_e}{g},\, 1\right)

    Notes
    -----
    Each of :math:`F` domains sends to one other at a time, chosen by chance. Where several choose one, all but one
    wait, and a pause stops the whole link, traffic to other receivers included, as in a switch that queues at its
    inputs. Its throughput falls to :math:`2 - \sqrt 2`; up to 4 % too low for few domains. Credits, or a queue for each
    receiver, keep the whole rate.

    References
    ----------
    .. [karol1987] throughput from the mean of a queue with unit service
    .. [mckeown1999] about 58.6 % with queues at the inputs, 100 % with one for each output

    Examples
    --------
    A pair of domains, eight, and very many:

    >>> [round(incast_share_paused(ranks, 1.0, 8.0), 3) for ranks in (16.0, 64.0, 8e9)]
    [0.719, 0.613, 0.586]
    """
    senders = maximum(expert_parallel * expert_tensor_parallel / scale_up_domain, 1.0)
    middle = 2.0 - 0.5 / senders
    return middle - sqrt(middle * middle - 2.0)
