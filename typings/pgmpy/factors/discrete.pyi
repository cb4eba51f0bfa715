from typing import Any

class TabularCPD:
    def __init__(self, variable: str, variable_card: int, values: Any, **others: Any) -> None: ...
