"""``python -m odkanon`` is the same as ``odkanon``."""

from odkanon.cli import main

main()
