"""Sums of exponentials in extended precision."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np


def slow_log_sum(values):
    """log Σ exp with 50 digits, −inf left out."""
    with localcontext() as context:
        context.prec = 50
        total = sum((Decimal(float(v)).exp() for v in values if v > -np.inf), Decimal(0))
        return float(total.ln()) if total else -np.inf
