"""Spectral graph transducer (Joachims 2003)."""

from transduce.methods.spectral_graph.classifier import SpectralGraphTransducer
from transduce.methods.spectral_graph.graph import NeighborGraph, neighbor_graph
from transduce.methods.spectral_graph.spectrum import Spectrum, graph_spectrum

__all__ = [
    "NeighborGraph",
    "SpectralGraphTransducer",
    "Spectrum",
    "graph_spectrum",
    "neighbor_graph",
]
