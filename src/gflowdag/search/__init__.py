"""Greedy searches for one good graph: hill climbing over DAGs, and GES over equivalence classes."""
