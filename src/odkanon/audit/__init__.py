"""An independent second look at releases: from the written files, with SQL of its own.

Nothing here calls what methods use for their bookkeeping (merging of flows, assembling of releases); what is shared
is the reading of trips and the arithmetic of H3 cells.
"""

from odkanon.audit.report import Finding, Report
from odkanon.audit.run import audit
from odkanon.audit.trips import TripsSource

__all__ = ["Finding", "Report", "TripsSource", "audit"]
