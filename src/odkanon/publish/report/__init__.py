"""The page of a release: one self-contained HTML file that needs neither a server nor a network.

It reads the files of saved release folders and nothing else, so it can only ever show what the release
already publishes. `model` packs, `base` adds the coastlines, `page` writes.
"""

from odkanon.publish.report.report_page import is_built, page_of, render, write_full_report, write_report

__all__ = ["is_built", "page_of", "render", "write_full_report", "write_report"]
