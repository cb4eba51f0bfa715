"""How a posterior is shown: on a terminal, in a notebook, as a figure, as a report."""
