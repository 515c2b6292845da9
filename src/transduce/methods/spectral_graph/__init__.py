"""Spectral graph transducer (Joachims 2003).

The paper's optimisation problem is solved in `cut`, on the eigenvectors from `spectrum` of the
graph that `graph` builds from the neighbours found in `neighbors`.
"""

from transduce.methods.spectral_graph.classifier import SpectralGraphTransducer
from transduce.methods.spectral_graph.graph import NeighborGraph, neighbor_graph
from transduce.methods.spectral_graph.labellings import (
    MinimumCut,
    NeighborMargins,
    average_cut,
    cut_value,
    minimum_cut,
    neighbor_margins,
)
from transduce.methods.spectral_graph.spectrum import Spectrum, graph_spectrum

__all__ = [
    "MinimumCut",
    "NeighborGraph",
    "NeighborMargins",
    "SpectralGraphTransducer",
    "Spectrum",
    "average_cut",
    "cut_value",
    "graph_spectrum",
    "minimum_cut",
    "neighbor_graph",
    "neighbor_margins",
]
