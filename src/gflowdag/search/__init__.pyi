from gflowdag.search import ges as ges
