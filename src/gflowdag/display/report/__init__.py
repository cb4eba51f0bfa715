"""The self-contained HTML report of a posterior."""

from __future__ import annotations

from gflowdag.display.report.page import write_report

__all__ = ["write_report"]
