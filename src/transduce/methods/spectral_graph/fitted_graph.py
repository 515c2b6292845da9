"""Graph and spectrum of all rows: what no labelling changes."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transduce.core import arrays
from transduce.core.computing import once
from transduce.device import graph as device_graph
from transduce.device.graph import DeviceGraph, device_spectrum
from transduce.methods.spectral_graph.graph import (
    GraphSettings,
    NeighborGraph,
    build_graph,
    row_order,
    unit_rows,
)
from transduce.methods.spectral_graph.spectrum import Spectrum, check_graph, graph_spectrum

MOST_KEPT = 100_000  # rows of a graph that is kept for the next fit


@dataclass(frozen=True, eq=False)
class FittedGraph:
    """What no labelling changes: the graph of all rows, its spectrum, and what new rows are compared with.

    `rows` have norm 1 if the metric is the cosine; None if the graph was given.
    """

    settings: GraphSettings
    n_components: int
    index: Any
    rows: Any
    scale: float | None
    graph: NeighborGraph | DeviceGraph | None
    spectrum: Spectrum


def fit_graph(
    X: Any, rows: Any, settings: GraphSettings, n_components: int, random: np.random.RandomState
) -> FittedGraph:
    """Return graph and spectrum of rows that have been read, or what was given instead of them."""
    settings = replace(settings, n_neighbors=min(int(settings.n_neighbors), rows.shape[0] - 1))
    known, scale, graph, spectrum = None, None, None, X
    if arrays.is_foreign(rows):
        return fit_device_graph(rows, settings, n_components, random)
    if settings.precomputed and not isinstance(X, Spectrum):
        graph = NeighborGraph(check_graph(rows))
        graph.diagnostics = dict(getattr(X, "diagnostics", {}))
    elif not settings.precomputed:
        graph, spectrum = graph_with_spectrum(rows, settings, n_components, random)
        known = unit_rows(rows) if settings.metric == "cosine" else rows
        scale = graph.diagnostics["scale"]
    if graph is not None and settings.precomputed:
        spectrum = graph_spectrum(
            graph, n_components=n_components, random_state=random, n_jobs=settings.n_jobs
        )
    return FittedGraph(settings, n_components, getattr(X, "index", None), known, scale, graph, spectrum)


def graph_with_spectrum(
    rows: Any, settings: GraphSettings, n_components: int, random: np.random.RandomState
) -> tuple[NeighborGraph, Spectrum]:
    """Return graph and spectrum of features.

    They are computed in an order that is the rows' own, and put back: so fits that share their work
    (`transduce.core.computing`) need not have the rows in the same order, and those that do not have the same answers.
    """

    def compute(rows: Any) -> tuple[NeighborGraph, Spectrum]:
        graph = build_graph(rows, settings, random)
        return graph, graph_spectrum(
            graph, n_components=n_components, random_state=random, n_jobs=settings.n_jobs
        )

    order = row_order(rows)
    ordered, seed = rows[order], pickle.dumps(random.get_state())
    if callable(settings.metric) or rows.shape[0] > MOST_KEPT:
        graph, spectrum = compute(ordered)
    else:
        graph, spectrum = once("graph", ordered, (settings, n_components, seed), lambda: compute(ordered))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    found = NeighborGraph(graph[back][:, back])
    found.sort_indices()
    found.diagnostics = dict(graph.diagnostics)
    return found, spectrum.take(back)


def fit_device_graph(
    rows: Any, settings: GraphSettings, n_components: int, random: np.random.RandomState
) -> FittedGraph:
    """Return graph and spectrum of rows on a device."""
    if settings.precomputed:
        raise ValueError("metric='precomputed' needs a graph of numpy arrays, or its spectrum.")
    graph = device_graph.build_device_graph(rows, settings, random)
    spectrum = Spectrum(*device_spectrum(graph, n_components, random))
    known = device_graph.unit_rows(rows) if settings.metric == "cosine" else rows
    return FittedGraph(settings, n_components, None, known, graph.diagnostics["scale"], graph, spectrum)
