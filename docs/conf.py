"""Sphinx configuration."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import command_line

from gflowdag import __version__

command_line.PAGE.write_text(command_line.page(), "utf-8")  # the command line documents itself

project = "gflowdag"
author = "The gflowdag developers"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_title = f"gflowdag {version}"
exclude_patterns = ["_build"]
autodoc_typehints = "both"
autodoc_member_order = "bysource"
