"""`python -m arcfleet` is the `arcfleet` command."""

from arcfleet.cli import main

if __name__ == "__main__":
    main()
