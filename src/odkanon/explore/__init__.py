"""The explorer: a local web page that anonymizes again whenever a control moves.

`data` holds the matrices and defines what the page may ask for, `session` makes releases and packs them,
`worker_process` runs slow tasks in a separate process, and `server` talks to the browser. The browser receives the page
model of a `Release`, which cannot hold a class below its rule; trips and OD pairs never leave `data`.
"""

from odkanon.explore.data import ExplorerData, read_explorer_data
from odkanon.explore.server import ExploreServer, open_in_browser
from odkanon.explore.session import Session

__all__ = ["ExploreServer", "ExplorerData", "Session", "open_in_browser", "read_explorer_data"]
