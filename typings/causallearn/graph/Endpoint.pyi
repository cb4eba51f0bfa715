from enum import Enum

class Endpoint(Enum):
    TAIL = -1
    ARROW = 1
