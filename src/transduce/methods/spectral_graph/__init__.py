"""Spectral graph transducer (Joachims 2003)."""

from transduce.methods.spectral_graph.classifier import SpectralGraphTransducer
from transduce.methods.spectral_graph.graph import NeighborGraph, neighbor_graph
from transduce.methods.spectral_graph.n_neighbors import NeighborChoice, choose_n_neighbors
from transduce.methods.spectral_graph.spectrum import Spectrum, graph_spectrum

__all__ = [
    "NeighborChoice",
    "NeighborGraph",
    "SpectralGraphTransducer",
    "Spectrum",
    "choose_n_neighbors",
    "graph_spectrum",
    "neighbor_graph",
]
