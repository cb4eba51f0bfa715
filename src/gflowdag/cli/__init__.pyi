from gflowdag.cli.app import main as main
from gflowdag.cli.options import Quiet as Quiet
from gflowdag.cli.options import Seed as Seed
from gflowdag.cli.options import make_console as make_console
