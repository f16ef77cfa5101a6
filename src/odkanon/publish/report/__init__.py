"""The page of a release: one self-contained HTML file that needs neither a server nor a network.

It reads only the files of release folders, so it can show only what the releases publish.
"""

from odkanon.publish.report.page_model import PageTexts
from odkanon.publish.report.report_page import is_built, make_page, render, write_full_report, write_report

__all__ = ["PageTexts", "is_built", "make_page", "render", "write_full_report", "write_report"]
