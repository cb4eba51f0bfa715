"""Canonical orders: weights, windows, labels, draws and potentials, shared by chains and policies."""
