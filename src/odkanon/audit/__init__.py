"""An independent second look at releases: from the written files, with SQL of its own.

Nothing here calls what methods use for their bookkeeping (merging of flows, assembling of releases), nor what reads
their input: trips are counted from the raw columns of a file. What is shared are the names of columns, areas and the
arithmetic of H3 cells.
"""

from odkanon.audit.auditor import audit_releases
from odkanon.audit.counting.scan import TripsSource
from odkanon.audit.findings import Comparison, Finding, Report

__all__ = ["Comparison", "Finding", "Report", "TripsSource", "audit_releases"]
