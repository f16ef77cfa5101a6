"""The explorer: a page on this machine that anonymises again whenever a slider moves.

`request` says what may be asked, `data` keeps the matrices, `session` makes releases and packs them, `worker` runs
what takes long in a process of its own, `server` talks to the browser, and `browser` opens one. What reaches it is
the model of a `Release`, which cannot hold a class below its rule; trips and OD pairs never leave `data`.
"""

from odkanon.explore.browser import opened_in_browser
from odkanon.explore.data import Data, data_of_input
from odkanon.explore.server import ExploreServer
from odkanon.explore.session import Session

__all__ = ["Data", "ExploreServer", "Session", "data_of_input", "opened_in_browser"]
