"""Structured logs on stderr: readable on a terminal, JSON lines elsewhere."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Final

import structlog

# Of all that a worker says: what it got over by itself is a warning, what somebody has to see to is an error.
LEVELS: Final = {
    "bad arc record": logging.ERROR,
    "fencing": logging.WARNING,
    "hung": logging.ERROR,
    "joining again": logging.WARNING,
    "patterns": logging.INFO,
    "reset": logging.WARNING,
    "source added": logging.WARNING,
    "source removed": logging.WARNING,
    "source unread": logging.WARNING,
    "starting again": logging.WARNING,
    "state given up": logging.ERROR,
    "stopped consuming": logging.ERROR,
    "topics": logging.WARNING,
}


def sayer(instance: str) -> Callable[..., None]:
    """What a worker says things with: `say("reset", why=...)`."""
    is_terminal = sys.stderr.isatty()
    shown = structlog.dev.ConsoleRenderer() if is_terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            shown,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=True,
    )
    logger = structlog.get_logger(instance=instance)

    def say(event: str, **about: object) -> None:
        logger.log(LEVELS.get(event, logging.WARNING), event, **about)

    return say
