"""Entry point of `python -m hookedu`, the same as the command `hookedu`."""

from hookedu.cli import main

main()
