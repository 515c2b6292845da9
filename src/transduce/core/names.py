"""Names that users write: tasks and methods. This module imports nothing heavy, so that help is quick."""

from __future__ import annotations

from dataclasses import dataclass

TASKS = ("auto", "regression", "classification")
GUARANTEES = ("auto", "row", "column")


@dataclass(frozen=True)
class Method:
    """A method as the command line names it."""

    name: str
    says: str  # what it does, in a line
    paper: str  # where it comes from
    member: str = ""  # its name among the members of a comparison; "" if it is not one of them
    tasks: tuple[str, ...] = ("regression", "classification")  # what it can fill


SYSTEMS = (
    Method(
        "ridge",
        "Transductive ridge: the missing labels that minimise the leave-one-out error.",
        "Chapelle, Vapnik, Weston 1999",
        "transductive_ridge",
    ),
    Method(
        "gaussian-process",
        "Gaussian process: numbers with standard errors and the relevance of every feature.",
        "Le, Smola, Gartner, Altun 2006",
        "gaussian_process",
        ("regression",),
    ),
    Method(
        "spectral-graph",
        "Spectral graph transducer: a few labels spread over the neighbour graph of all rows.",
        "Joachims 2003",
        "spectral_graph",
        ("classification",),
    ),
    Method(
        "bayesian",
        "Bayesian transduction: the vote of every separator that gets the labels right.",
        "Graepel, Herbrich, Obermayer 1999",
        "bayesian_transduction",
        ("classification",),
    ),
    Method(
        "confidence-machine",
        "Ridge confidence machine: an exact interval at every row, with no label held out.",
        "Nouretdinov, Melluish, Vovk 2001",
    ),
)
OTHERS = (
    Method(
        "auto", "The blend; with few labels its intervals come from the confidence machine.", "this project"
    ),
    Method("blend", "Weighted mean of the methods that suit the table.", "this project"),
    Method("forest", "Random forest, for comparison.", "Breiman 2001", "random_forest"),
)
METHODS = {method.name: method for method in (OTHERS[0], *SYSTEMS, *OTHERS[1:])}
SHIFTS = ("auto", "estimate", "ignore")  # what to do where labelled and unlabelled rows differ
