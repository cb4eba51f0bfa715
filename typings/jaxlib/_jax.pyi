# What JAX's own annotations refer to; the wheel has no stubs for its compiled module.
from typing import Any

class Device:
    platform: str
    device_kind: str

def __getattr__(name: str) -> Any: ...
