"""An independent audit of releases, from the written files, with SQL of its own.

Nothing here calls the bookkeeping of methods (merging of flows, assembly of releases) or the readers of their input:
trips are counted from the raw columns of a file. Shared are only the names of columns, areas and H3 cell arithmetic.
"""

from odkanon.audit.auditor import audit_releases
from odkanon.audit.counting.scan import TripsSource
from odkanon.audit.findings import Finding, ReleaseComparison, Report

__all__ = ["Finding", "ReleaseComparison", "Report", "TripsSource", "audit_releases"]
