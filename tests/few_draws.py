"""Fewer trees and permutations than the program takes; tests/slow has them all."""

from transduce.conformal import exchangeability_test


def take_few_draws(patch):
    """Let the program take a fifth to two fifths of its trees and permutations.

    Each row is still out of some tree, and a p-value of 1 % can still be reached.
    """
    patch.setitem(exchangeability_test.__kwdefaults__, "n_permutations", 99)
    patch.setattr("transduce.model_selection.methods.TREES", 40)
    patch.setattr("transduce.methods.confidence_machine.setting_grid.N_TREES", 30)
    patch.setattr("transduce.conformal.exchangeability.N_TREES", 20)
    patch.setattr("transduce.conformal.seen_labels.N_TREES", 50)
    patch.setattr("transduce.app.auditing.suspects.N_TREES", 50)
    patch.setattr("transduce.app.filling.next_labels.REPEATS", 1)
    patch.setattr("transduce.conformal.designs.propensity.N_TREES", 20)
