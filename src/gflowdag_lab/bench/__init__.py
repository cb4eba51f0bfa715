"""Benchmarks that stay: how soon each method is right, how fast the engines are, each beside a baseline.

    task ──► measurement, in a process of its own ──► row in a file ──► ratios · summary · speed plot

A measurement is one `Task`; a new one is one line in `tasks.plan` and, for a new kind, one function in
`measure.MEASUREMENTS`. Rows are kept one by one, so that a benchmark can be stopped and gone on with.
"""
