"""What `doctor` finds out about a machine."""

from __future__ import annotations

import importlib.util
import os
import platform
from pathlib import Path
from typing import Any

from gflowdag import __version__


def examine_machine() -> dict[str, str]:
    """Versions, devices, optional packages and the data folder."""
    import jax

    extras = {"baselines": "causallearn", "gadget": "sumu", "dask": "distributed", "notebook": "ipywidgets"}
    found = [
        f"{extra} {'yes' if importlib.util.find_spec(module) else 'no'}" for extra, module in extras.items()
    ]
    folder = os.environ.get("GFLOWDAG_DATA")
    return {
        "gflowdag": __version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "devices": ", ".join(_device(device) for device in jax.devices()),
        "cores": str(os.cpu_count()),
        "extras": ", ".join(found),
        "GFLOWDAG_DATA": folder if folder and Path(folder).is_dir() else "not set",
    }


def _device(device: Any) -> str:
    kind = device.device_kind
    return device.platform if kind == device.platform else f"{device.platform} ({kind})"
