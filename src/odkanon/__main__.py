"""``python -m odkanon`` is the same as ``odkanon``: nothing is imported from the folder in which it is called."""

import sys

from odkanon.core.system import safe_path

sys.path[:] = safe_path()

from odkanon.cli import program  # noqa: E402 - what it imports must not come from the data's folder

program()
