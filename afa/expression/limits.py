"""What an expression may cost. Each limit is refused at publication, with its name in the message."""

from typing import Final

MAX_EXPRESSION_CHARACTERS: Final = 4_096
MAX_EXPRESSION_DEPTH: Final = 64
MAX_EXPRESSION_NODES: Final = 1_000
