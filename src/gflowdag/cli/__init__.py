"""The command line."""

from gflowdag.cli.app import main as main
