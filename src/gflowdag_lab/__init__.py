"""The laboratory of gflowdag: the paper's experiments, the benchmark, the measured cases."""
