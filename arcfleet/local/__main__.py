"""`python -m arcfleet.local`: a broker until Ctrl-C; one line of JSON on stdout says where, once it is ready."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from arcfleet.local.broker import LocalBroker
from arcfleet.local.errors import BrokerError, LocalKafkaError

_EXIT_SYSTEM = 3
_LOOK_INTERVAL_S = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m arcfleet.local", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="of the plain listener (default: any free one)")
    parser.add_argument("--data-dir", type=Path, help="keeps its data there (default: a temporary folder)")
    arguments = parser.parse_args()
    for stop in (signal.SIGTERM, signal.SIGINT):  # a job in the background inherits SIGINT ignored
        signal.signal(stop, _interrupt)
    try:
        with LocalBroker(port=arguments.port, data_dir=arguments.data_dir) as broker:
            sys.stdout.write(json.dumps({"bootstrap": broker.bootstrap, "log": str(broker.log)}) + "\n")
            sys.stdout.flush()
            while broker.running:
                time.sleep(_LOOK_INTERVAL_S)
            raise BrokerError(f"The broker has died; its log: {broker.log}")
    except KeyboardInterrupt:
        return 0
    except LocalKafkaError as error:
        sys.stderr.write(f"error: {error}\n")
        return _EXIT_SYSTEM


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
