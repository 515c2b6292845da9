"""The slow, obvious definitions that the fast forms are held against."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.integrate import quad
from scipy.optimize import least_squares, minimize
from scipy.special import ndtr
from scipy.stats import hypergeom, multivariate_normal, norm
from scipy.stats import t as student_t
from sklearn.base import clone


def every_sample(n_rows, n_labels):
    """Yield every set of labelled rows that chance can choose, as a mask."""
    for chosen in itertools.combinations(range(n_rows), n_labels):
        mask = np.zeros(n_rows, dtype=bool)
        mask[list(chosen)] = True
        yield mask


def corrected_predictions(estimator, X, y, predictions):
    """Labels completed, and answers at all rows, by a fit to labels minus predictions, written out."""
    missing = np.isnan(y)
    residuals = y - predictions
    model = clone(estimator)
    completed = y.copy()
    if hasattr(model, "missing_label"):  # it takes all rows at once
        model.fit(X, residuals)
        answers = model.predict(X) + predictions
        completed[missing] = model.transduction_[missing] + predictions[missing]
    else:
        model.fit(X[~missing], residuals[~missing])
        answers = model.predict(X) + predictions
        completed[missing] = answers[missing]
    return completed, answers


def difference_estimate(y, f, labelled):
    """Mean of a column by its definition: each label in turn corrects what the others made of f."""
    f = f - f.mean()
    labels, unknown = np.flatnonzero(labelled), np.flatnonzero(~labelled)
    totals = []
    for i in labels:
        others = [j for j in labels if j != i]
        factor = 0.0
        if len(others) > 1 and np.ptp(f[others]) > 0:
            slope = np.polyfit(f[others], y[others], 1)[0]
            factor = min(max(slope, 0.0), 1.0)
        guessed = factor * f[unknown].sum()
        totals.append(guessed + len(unknown) * (y[i] - factor * f[i]))
    return (y[labels].sum() + np.mean(totals)) / len(y)


def ratios_of_l_moments(numbers):
    """Third and fourth L-moment over the second: means over all sets of two, three and four."""
    combinations = itertools.combinations
    second = np.mean([b - a for a, b in combinations(sorted(numbers), 2)]) / 2.0
    third = np.mean([c - 2 * b + a for a, b, c in combinations(sorted(numbers), 3)]) / 3.0
    fours = combinations(sorted(numbers), 4)
    fourth = np.mean([d - 3 * c + 3 * b - a for a, b, c, d in fours]) / 4.0
    return third / second, fourth / second


def log_normal_ratios(sigma):
    """The same of all log-normal numbers, by integrals of their quantiles (Hosking 1990)."""

    def moment(polynomial):
        return quad(lambda z: np.exp(sigma * z) * polynomial(ndtr(z)) * norm.pdf(z), -12, 12)[0]

    second = moment(lambda p: 2 * p - 1)
    third = moment(lambda p: 6 * p**2 - 6 * p + 1)
    fourth = moment(lambda p: 20 * p**3 - 30 * p**2 + 12 * p - 1)
    return third / second, fourth / second


def ridge_fit(K, z, ridge, fit_intercept):
    """Coefficients and intercept of kernel ridge regression, by solving its optimality conditions.

    Minimise ``|z - K c - b|^2 + ridge c'K c`` over c and, if wanted, an unpenalised b: at the optimum
    ``(K + ridge I) c + b = z`` and ``1'c = 0``. Heavy tails make these systems ill-conditioned, and a
    reference must be better than what it judges: the solution is refined in extended precision. Labels may have
    several columns, one for each problem.
    """
    n = len(K)
    A = np.zeros((n + 1, n + 1), dtype=np.longdouble)
    A[:n, :n] = K
    A[:n, :n] += ridge * np.eye(n)
    A[n, n] = 0.0 if fit_intercept else 1.0
    if fit_intercept:
        A[:n, n] = A[n, :n] = 1.0
    right = np.concatenate([z, np.zeros((1, *z.shape[1:]))]).astype(np.longdouble)
    inverse = np.linalg.inv(A.astype(float))
    solution = np.zeros(right.shape, dtype=np.longdouble)
    for _ in range(5):
        solution += inverse @ np.asarray(right - A @ solution, dtype=float)
    return solution[:n], solution[n]


def ridge_residuals(K, z, ridge, fit_intercept):
    """Labels less the predictions of ridge regression on all rows."""
    c, b = ridge_fit(K, z, ridge, fit_intercept)
    return np.asarray(z - K @ c - b, dtype=float)


def deleted_residual(K, z, i, ridge, fit_intercept):
    """Label of row i less the prediction of ridge regression on the other rows."""
    others = np.arange(len(K)) != i
    c, b = ridge_fit(K[np.ix_(others, others)], z[others], ridge, fit_intercept)
    return np.asarray(z[i] - (K[i, others] @ c + b), dtype=float)


def nonconformity(K, z, ridge, fit_intercept, residual):
    """Residuals of the completed sample, of the kind asked for, by refitting."""
    plain = ridge_residuals(K, z, ridge, fit_intercept)
    if residual == "plain":
        return plain
    deleted = np.array([deleted_residual(K, z, i, ridge, fit_intercept) for i in range(len(K))])
    if residual == "deleted":
        return deleted
    # Studentized: the geometric mean of the two, which is the residual over sqrt(1 - leverage).
    return np.sign(plain) * np.sqrt(np.abs(plain * deleted))


def p_value(alpha, side="two", slack=1e-9):
    """p-value of the last row from the residuals of the sample completed with it; those within slack tie."""
    alpha = {"two": np.abs(alpha), "upper": alpha, "lower": -alpha}[side]
    return np.mean(alpha >= alpha[-1] - slack * np.max(np.abs(alpha)))


def class_p_value(
    K,
    codes,
    candidate,
    n_classes,
    ridge,
    fit_intercept,
    residual="plain",
    label_conditional=False,
    slack=1e-9,
):
    """p-value of a class at the last row of K, by refitting every one-vs-rest column with it.

    A row that is the only one of its class in the completed sample is infinitely nonconforming. The candidate
    ``n_classes`` is a class that no label shows.
    """
    codes = np.append(codes, candidate)
    columns = [
        nonconformity(K, np.where(codes == c, 1.0, -1.0), ridge, fit_intercept, residual)
        for c in range(max(n_classes, candidate + 1))
    ]
    alpha = np.abs(np.array(columns)[codes, np.arange(len(codes))])
    alpha[[np.sum(codes == code) == 1 for code in codes]] = np.inf
    compared = codes == candidate if label_conditional else np.ones(len(codes), dtype=bool)
    return np.mean(alpha[compared] >= alpha[-1] - slack)


def breakpoints(K, y_l, ridge, fit_intercept, residual):
    """Labels at which the last row's residual equals another's: two refits give every line."""
    at = [
        nonconformity(K, np.append(y_l, label), ridge, fit_intercept, residual)
        for label in (0.0, 1.0)
    ]
    if residual == "studentized":
        # The sign of the geometric mean is lost where a residual is 0; scale the plain lines instead.
        plain = [
            nonconformity(K, np.append(y_l, label), ridge, fit_intercept, "plain")
            for label in (0.0, 1.0)
        ]
        scale = np.max(np.abs(at), axis=0) / np.max(np.abs(plain), axis=0)
        at = [line * scale for line in plain]
    start, slope = at[0], at[1] - at[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        same = -(start[:-1] - start[-1]) / (slope[:-1] - slope[-1])
        opposite = -(start[:-1] + start[-1]) / (slope[:-1] + slope[-1])
    crossings = np.concatenate([same, opposite])
    return np.sort(crossings[np.isfinite(crossings)])


def completed_errors(settings, z, fit_intercept):
    """Summed squared leave-one-out error of a completed sample for each setting (K, ridge): one refit a row."""
    return np.array(
        [
            sum(deleted_residual(K, z, i, ridge, fit_intercept) ** 2 for i in range(len(z)))
            for K, ridge in settings
        ]
    )


def chosen_settings(errors):
    """Places of the smallest error, and of those that equal it up to rounding."""
    return np.flatnonzero(errors <= errors.min() * (1 + 1e-9) + 1e-24)


def tuned_p_value(settings, z, fit_intercept, residual, side="two"):
    """p-value of the last row of a completed sample, by the setting that the completed sample chooses."""
    chosen = chosen_settings(completed_errors(settings, z, fit_intercept))
    return max(
        p_value(nonconformity(K, z, ridge, fit_intercept, residual), side)
        for K, ridge in (settings[s] for s in chosen)
    )


def tuned_class_p_value(
    settings, codes, candidate, n_classes, fit_intercept, residual, label_conditional=False
):
    """p-value of a class at the last row, by the setting that the sample completed with it chooses over all columns."""
    completed = np.append(codes, candidate)
    errors = sum(
        completed_errors(settings, np.where(completed == c, 1.0, -1.0), fit_intercept)
        for c in range(max(n_classes, candidate + 1))
    )
    return max(
        class_p_value(
            settings[s][0],
            codes,
            candidate,
            n_classes,
            settings[s][1],
            fit_intercept,
            residual,
            label_conditional,
        )
        for s in chosen_settings(errors)
    )


def design_fit(K, z, ridge):
    """Coefficients of ridge regression on a design matrix: minimise |z - K c|^2 + ridge |c|^2."""
    p = K.shape[1]
    stacked = np.vstack([K, np.sqrt(ridge) * np.eye(p)])
    return np.linalg.lstsq(stacked, np.concatenate([z, np.zeros((p, *z.shape[1:]))]), rcond=None)[0]


def refit_leave_one_out(K, z, ridge):
    """Leave-one-out residuals by refitting without each row in turn; the basis functions stay."""
    others = ~np.eye(len(K), dtype=bool)
    return np.array(
        [z[t] - K[t] @ design_fit(K[others[t]], z[others[t]], ridge) for t in range(len(K))]
    )


def complete_by_optimiser(K, y_l, unlabelled, start, ridge, tether):
    """The missing labels that minimise the leave-one-out error of n refits plus the tether, by a general optimiser."""
    refits = np.array([refit_leave_one_out(K, unit, ridge) for unit in np.eye(len(K))]).T

    def terms(x):
        z = np.empty(len(K))
        z[~unlabelled], z[unlabelled] = y_l, x
        return np.concatenate([refits @ z, np.sqrt(tether) * (x - start)])

    slopes = np.vstack([refits[:, unlabelled], np.sqrt(tether) * np.eye(len(start))])
    tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    found = least_squares(
        terms, np.array(start, dtype=float), jac=lambda x: slopes, method="lm", **tight
    )
    return found.x, 2 * found.cost


def complete_in_ball(K, y_l, unlabelled, start, ridge, radius):
    """The missing labels that minimise the leave-one-out error of n refits within a ball around the start.

    By a general optimiser with a constraint.
    """
    refits = np.array([refit_leave_one_out(K, unit, ridge) for unit in np.eye(len(K))]).T
    fixed = refits[:, ~unlabelled] @ y_l
    slopes = refits[:, unlabelled]
    found = minimize(
        lambda x: np.sum((fixed + slopes @ x) ** 2),
        start,
        jac=lambda x: 2.0 * slopes.T @ (fixed + slopes @ x),
        constraints={
            "type": "ineq",
            "fun": lambda x: radius**2 - np.sum((x - start) ** 2),
            "jac": lambda x: -2.0 * (x - start),
        },
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    return found.x


def process_covariance(X, relevance, noise):
    """Covariance of the labels of a Gaussian process, entry by entry."""
    n = len(X)
    C = np.array(
        [[np.exp(-np.sum((relevance * (X[i] - X[j])) ** 2)) for j in range(n)] for i in range(n)]
    )
    return C + noise * np.eye(n)


def predictive(X, y_l, relevance, noise):
    """Mean and covariance of the missing labels given the others, from the textbook's formula."""
    known, C = len(y_l), process_covariance(X, relevance, noise)
    weights = np.linalg.solve(C[:known, :known], C[:known, known:])
    return weights.T @ y_l, C[known:, known:] - C[known:, :known] @ weights


def divergence(mean_q, covariance_q, mean_p, covariance_p):
    """Kullback-Leibler divergence of two normal distributions."""
    inverse, difference = np.linalg.inv(covariance_p), mean_q - mean_p
    log_ratio = np.linalg.slogdet(covariance_p)[1] - np.linalg.slogdet(covariance_q)[1]
    quadratic = difference @ inverse @ difference
    return 0.5 * (np.trace(inverse @ covariance_q) + quadratic - len(mean_q) + log_ratio)


def match_primal(mean_p, covariance_p, target, slack):
    """The normal q of least divergence plus penalty, over mean and Cholesky factor, by a general optimiser."""
    m = len(mean_p)
    lower = np.tril_indices(m)

    def unpack(x):
        factor = np.zeros((m, m))
        factor[lower] = x[m:]
        return x[:m], factor @ factor.T

    def objective(x):
        mean, covariance = unpack(x)
        if np.linalg.slogdet(covariance)[1] < -50:
            return 1e10
        moments = np.array([mean.mean(), -0.5 * np.mean(mean**2 + np.diag(covariance))])
        return divergence(mean, covariance, mean_p, covariance_p) + np.sum(
            (moments - target) ** 2
        ) / (2 * slack)

    x = np.concatenate([mean_p, np.linalg.cholesky(covariance_p)[lower]])
    for _ in range(4):
        x = minimize(objective, x, method="BFGS", options={"gtol": 1e-9}).x
    return *unpack(x), objective(x)


def match_within(mean_p, covariance_p, target, epsilon):
    """The least divergence from p of a normal q whose moments are within epsilon of the target.

    Over mean and Cholesky factor, by a general optimiser with a constraint.
    """
    m = len(mean_p)
    lower = np.tril_indices(m)

    def unpack(x):
        factor = np.zeros((m, m))
        factor[lower] = x[m:]
        return x[:m], factor @ factor.T

    def lowest(x):
        mean, covariance = unpack(x)
        if np.linalg.slogdet(covariance)[1] < -50:
            return 1e10
        return divergence(mean, covariance, mean_p, covariance_p)

    def within(x):
        mean, covariance = unpack(x)
        moments = np.array([mean.mean(), -0.5 * np.mean(mean**2 + np.diag(covariance))])
        return moments - target

    ball = {"type": "ineq", "fun": lambda x: epsilon**2 - np.sum(within(x) ** 2)}
    if epsilon == 0.0:
        ball = {"type": "eq", "fun": within}
    x = np.concatenate([mean_p, np.linalg.cholesky(covariance_p)[lower]])
    tight = {"ftol": 1e-12, "maxiter": 500}
    return minimize(lowest, x, constraints=ball, method="SLSQP", options=tight).fun


def matched_objective(X, y_l, relevance, noise, prior, matching, q_mean, q_covariance, slack):
    """Negative log posterior plus the weighted distance to q, from densities and the definition."""
    known = len(y_l)
    likelihood = multivariate_normal(
        np.zeros(known), process_covariance(X[:known], relevance, noise)
    ).logpdf(y_l)
    parameters = np.append(relevance, noise)
    value = (
        -likelihood
        - 0.5 * known * np.log(2 * np.pi)
        + np.sum(prior[1] * parameters - prior[0] * np.log(parameters))
    )
    if matching == 0.0:
        return value
    moments = np.array([q_mean.mean(), -0.5 * np.mean(q_mean**2 + np.diag(q_covariance))])
    target = np.array([y_l.mean(), -0.5 * np.mean(y_l**2)])
    penalty = 0.0 if slack == 0.0 else np.sum((moments - target) ** 2) / (2 * slack)
    return value + matching * (
        divergence(q_mean, q_covariance, *predictive(X, y_l, relevance, noise)) + penalty
    )


def arc_share(normals, row):
    """Share of the directions in the plane with <w, normals_i> > 0 for all i that have <w, row> > 0: arcs, exactly."""
    walls = np.concatenate([normals, row[None]])
    angles = np.arctan2(walls[:, 1], walls[:, 0])
    ends = np.sort(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]) % (2 * np.pi))
    ends = np.append(ends, ends[0] + 2 * np.pi)
    middles, lengths = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    w = np.column_stack([np.cos(middles), np.sin(middles)])
    inside = np.all(w @ normals.T > 0, axis=1)
    return float(lengths[inside & (w @ row > 0)].sum() / lengths[inside].sum())


def polygon_area(normals):
    """Area of the spherical polygon {w in R^3: |w| = 1, <w, normals_i> > 0}, a fan of triangles from its corners."""
    corners = []
    for i in range(len(normals)):
        for j in range(len(normals)):
            corner = np.cross(normals[i], normals[j])
            if i != j and np.linalg.norm(corner) > 1e-12:
                corner = corner / np.linalg.norm(corner)
                if np.all(np.delete(normals, [i, j], axis=0) @ corner > -1e-12):
                    corners.append(corner)
    if len(corners) < 3:
        return 0.0
    corners = np.array(corners)
    centre = corners.mean(axis=0) / np.linalg.norm(corners.mean(axis=0))
    first = np.cross(centre, corners[0])
    around = np.arctan2(corners @ first, corners @ np.cross(first, centre))
    corners = corners[np.argsort(around)]
    area = 0.0
    for one, two in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        # Solid angle of a triangle (van Oosterom and Strackee).
        triple = abs(np.dot(centre, np.cross(one, two)))
        area += 2 * np.arctan2(triple, 1 + centre @ one + one @ two + two @ centre)
    return float(area)


def polygon_share(normals, row):
    """Share of a spherical polygon on the positive side of a row, exactly."""
    unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    sides = [
        polygon_area(np.concatenate([unit, sign * row[None] / np.linalg.norm(row)]))
        for sign in (1, -1)
    ]
    return sides[0] / sum(sides)


def sampled_share(normals, rows, n_draws, rng):
    """Share of random directions inside version space on the positive side of each row, by rejection; and how many."""
    w = rng.normal(size=(n_draws, normals.shape[1]))
    w = w[np.all(w @ normals.T > 0, axis=1)]
    return (w @ rows.T > 0).mean(axis=0), len(w)


def sampled_cells(normals, rows, n_draws, rng):
    """Share of random directions inside version space by their signs at several rows, and their mean.

    By rejection: a dict of shares by tuples of 0 and 1, the mean unit vector, and how many.
    """
    w = rng.normal(size=(n_draws, normals.shape[1]))
    w = w[np.all(w @ normals.T > 0, axis=1)]
    patterns, counts = np.unique((w @ rows.T > 0).astype(int), axis=0, return_counts=True)
    shares = {tuple(map(int, p)): count / len(w) for p, count in zip(patterns, counts, strict=True)}
    unit = w / np.linalg.norm(w, axis=1, keepdims=True)
    return shares, unit.mean(axis=0), len(w)


def soft_cells(K, K_la, K_aa, signs, softness, n_draws, rng):
    """Shares of the joint labels with slack of several rows, by rejection from the joint normal."""
    joint = np.block([[K, K_la], [K_la.T, K_aa]])
    joint = joint + softness * np.eye(len(joint))
    draws = rng.normal(size=(n_draws, len(joint))) @ np.linalg.cholesky(joint).T
    n_labelled = len(K)
    kept = draws[np.all(draws[:, :n_labelled] * signs > 0, axis=1)][:, n_labelled:]
    patterns, counts = np.unique((kept > 0).astype(int), axis=0, return_counts=True)
    shares = {tuple(map(int, p)): c / len(kept) for p, c in zip(patterns, counts, strict=True)}
    return shares, len(kept)


def plain_billiard(normals, w, v, n_bounces):
    """The billiard with explicit vectors: great circles, reflected at the nearest wall. Yields each flight."""
    for _ in range(n_bounces):
        a, b = normals @ w, normals @ v
        # a cos t + b sin t is 0 at t = arctan2(a, -b), in (0, pi) for a > 0; the wall just left does not count.
        times = np.where(a > 1e-12, np.arctan2(np.maximum(a, 0), -b), np.pi)
        wall = int(np.argmin(times))
        time = times[wall]
        yield w, v, time, wall
        w, v = np.cos(time) * w + np.sin(time) * v, np.cos(time) * v - np.sin(time) * w
        v = v - 2 * (normals[wall] @ v) * normals[wall]
        w, v = w / np.linalg.norm(w), v - (v @ w) * w
        v = v / np.linalg.norm(v)


def soft_label_share(K, signs, k_a, k_aa, softness, n_draws, rng):
    """Probability of a positive label with slack, given the signs of the others, by rejection from the joint normal."""
    joint = np.block([[K, k_a[:, None]], [k_a[None], np.array([[k_aa]])]]) + softness * np.eye(
        len(K) + 1
    )
    draws = rng.normal(size=(n_draws, len(joint))) @ np.linalg.cholesky(joint).T
    kept = draws[np.all(draws[:, :-1] * signs > 0, axis=1)]
    return float((kept[:, -1] > 0).mean()), len(kept)


def refit_softness_loss(K, codes, softness):
    """Leave-one-out log-loss of labels -1 and 1 taken for latent values, by a refit without every row in turn."""
    n, n_classes = len(K), codes.max() + 1
    total = 0.0
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        A = K[np.ix_(rest, rest)] + softness * np.eye(n - 1)
        shares = []
        for c in [1] if n_classes == 2 else range(n_classes):
            signs = np.where(codes[rest] == c, 1.0, -1.0)
            mean = K[i, rest] @ np.linalg.solve(A, signs)
            spread = K[i, i] + softness - K[i, rest] @ np.linalg.solve(A, K[rest, i])
            scale = signs @ np.linalg.solve(A, signs) / (n - 1)
            shares.append(student_t(n - 1).cdf(mean / np.sqrt(scale * spread)))
        shares = np.array([1.0 - shares[0], shares[0]] if n_classes == 2 else shares)
        total -= np.log(max(shares[codes[i]] / shares.sum(), 1e-3))
    return total / n


# ------------------------------------------------------------------------------------- spectral graph transducer


def cosine_graph(X, k):
    """The paper's graph by its definition: row by row, sorted similarities, no row without any."""
    directed = directed_cosine_graph(X, k)
    return directed + directed.T


def graph_eigenpairs(A, d, laplacian="normalized"):
    """Eigenvalues and -vectors 2 to d + 1 of a connected graph's Laplacian, by a dense solver."""
    B = A.sum(axis=1)
    L = np.diag(B) - A
    if laplacian == "normalized":
        L = L / np.sqrt(np.outer(B, B))
    values, vectors = np.linalg.eigh(L)
    return values[1 : d + 1], vectors[:, 1 : d + 1]


def graph_eigenvectors(A, d):
    """Eigenvectors 2 to d + 1 of the normalised Laplacian of a connected graph."""
    return graph_eigenpairs(A, d)[1]


def spectral_scores(A, labelled, positive, label_weight, d, laplacian="normalized", penalties=None):
    """Scores of the spectral graph transducer by the 2d x 2d eigenproblem; the graph must be connected.

    Penalties (d,) stand for the eigenvalues; by default the squares of their ranks.
    """
    n = len(A)
    V = graph_eigenpairs(A, d, laplacian)[1]
    d = V.shape[1]
    if penalties is None:
        penalties = np.arange(1.0, d + 1) ** 2
    n_positive, count = positive.sum(), len(positive)
    n_negative = count - n_positive
    goal, cost = np.zeros(n), np.zeros(n)
    goal[labelled] = np.where(
        positive, np.sqrt(n_negative / n_positive), -np.sqrt(n_positive / n_negative)
    )
    cost[labelled] = np.where(positive, count / (2 * n_positive), count / (2 * n_negative))
    G = np.diag(penalties) + label_weight * V.T @ (cost[:, None] * V)
    b = label_weight * V.T @ (cost * goal)
    M = np.block([[G, -np.eye(d)], [-np.outer(b, b) / n, G]])
    eigenvalues = np.linalg.eigvals(M)
    smallest = eigenvalues[np.abs(eigenvalues.imag) < 1e-7 * np.abs(eigenvalues).max()].real.min()
    w = np.linalg.solve(G - smallest * np.eye(d), b)
    for _ in range(
        5
    ):  # an eigenvalue that is nearly a double one has half of its digits only: Newton finds the others
        slope = w @ np.linalg.solve(G - smallest * np.eye(d), w)
        better = smallest + (w @ w) * (1.0 - np.sqrt((w @ w) / n)) / slope
        new = np.linalg.solve(G - better * np.eye(d), b)
        if not abs(new @ new - n) < abs(w @ w - n):
            break
        smallest, w = better, new
    objective = w @ G @ w - 2 * b @ w + label_weight * goal @ (cost * goal)
    return V @ w, objective


def directed_cosine_graph(X, k):
    """The paper's A': the similarities of each row with its nearest others over their sum."""
    n = len(X)
    directed = np.zeros((n, n))
    for i in range(n):
        sims = np.array([X[i] @ X[j] / np.sqrt((X[i] @ X[i]) * (X[j] @ X[j])) for j in range(n)])
        sims[i] = -np.inf
        nearest = np.argsort(-sims, kind="stable")[:k]
        weights = np.maximum(sims[nearest], 0.0)
        directed[i, nearest] = weights / weights.sum()
    return directed


def knn_margins(X, k, signs):
    """The paper's delta_i: own sign times the weighted mean sign of the neighbours, row by row."""
    directed = directed_cosine_graph(X, k)
    n = len(X)
    margins = np.zeros(n)
    for i in range(n):
        for j in range(n):
            margins[i] += signs[i] * signs[j] * directed[i, j]
    return margins


def cut_of(A, signs):
    """The sum of the weights between the two sides, pair by pair."""
    total = 0.0
    for i in range(len(A)):
        for j in range(i):
            if signs[i] != signs[j]:
                total += A[i, j]
    return total


def least_cuts(A, signs):
    """All labellings (signs, 0 where it is open) whose cut is smallest, by trying every one."""
    unlabelled = np.flatnonzero(signs == 0)
    cuts = []
    for choice in itertools.product((-1, 1), repeat=len(unlabelled)):
        labelling = signs.copy()
        labelling[unlabelled] = choice
        cuts.append((cut_of(A, labelling), labelling))
    least = min(value for value, _ in cuts)
    return least, np.array([labelling for value, labelling in cuts if value < least + 1e-9])


def minimum_on_sphere(G, b, n, n_starts=20, seed=0):
    """The smallest w'Gw - 2b'w with w'w = n that a general optimiser finds from random starts."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    best = np.inf
    for _ in range(n_starts):
        start = rng.normal(size=len(b))
        start *= np.sqrt(n) / np.linalg.norm(start)
        found = minimize(
            lambda w: w @ G @ w - 2 * b @ w,
            start,
            jac=lambda w: 2 * G @ w - 2 * b,
            method="SLSQP",
            constraints={"type": "eq", "fun": lambda w: w @ w - n, "jac": lambda w: 2 * w},
            options={"maxiter": 500, "ftol": 1e-14},
        )
        if abs(found.x @ found.x - n) < 1e-6 * n:
            best = min(best, found.fun)
    return best


def break_even(truth, score):
    """Precision where it equals recall: over all cut-offs of a ranking without ties."""
    order = np.argsort(-np.asarray(score))
    hits = np.cumsum(np.asarray(truth)[order])
    for cut in range(1, len(order) + 1):
        precision, recall = hits[cut - 1] / cut, hits[cut - 1] / hits[-1]
        if cut == hits[-1]:
            assert precision == recall
            return precision
    raise AssertionError


def convex_weights(errors, pull, centre=None):
    """Weights on the simplex that minimise ``|errors w|^2 + pull |w - c|^2``, by a general constrained optimiser."""
    k = errors.shape[1]
    centre = np.full(k, 1 / k) if centre is None else centre
    scale = np.sum(errors**2) + pull + 1e-300

    def objective(w):
        return (np.sum((errors @ w) ** 2) + pull * np.sum((w - centre) ** 2)) / scale

    found = [
        minimize(
            objective,
            start,
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        for start in (np.full(k, 1 / k), *np.eye(k))
    ]
    return min(found, key=lambda result: result.fun).x


def hidden_answers(estimator, X, y, fold, unlabelled):
    """Out-of-fold answers of a transducer by hand: a fold's labels become missing, all rows stay."""
    labelled = np.flatnonzero(~unlabelled)
    answers = np.empty(len(labelled), dtype=y.dtype)
    for k in np.unique(fold):
        hidden = labelled[fold == k]
        labels = y.astype(object)
        labels[unlabelled] = None
        labels[hidden] = None
        answers[fold == k] = estimator.fit(X, labels).transduction_[hidden]
    return answers


def urn_orders(n_calibration, n_unlabelled):
    """Every order of all scores, equally likely: unlabelled scores above each calibration score, ascending."""
    orders = []
    for places in itertools.combinations(range(n_calibration + n_unlabelled), n_calibration):
        orders.append([n_unlabelled - (place - number) for number, place in enumerate(places)])
    return np.array(orders).reshape(-1, n_calibration)


def conformal_p_value(hidden, score):
    """Share of the hidden scores and the row's own that are at least as large as the row's own."""
    return np.mean([*(h >= score for h in hidden), True])


def worst_p_value(hidden, n_empty, score, by_class=False):
    """Largest p-value over whatever rows without a score may have: a small or a large one, or be of another class."""
    kinds = [-np.inf, np.inf] + [None] * by_class
    found = []
    for unknown in itertools.product(kinds, repeat=n_empty):
        found.append(conformal_p_value([*hidden, *(u for u in unknown if u is not None)], score))
    return max(found)


def possible_beyond_limits(pieces, y, below, above):
    """Whether y is possible: it, or some limit of its row that hides it, is in a union of intervals."""
    limits = [end for piece in pieces for end in piece] + [below, above, y]
    lows = [limit for limit in limits if limit <= below] + [-np.inf]
    highs = [limit for limit in limits if limit >= above] + [np.inf]
    written = {min(max(y, low), high) for low in lows for high in highs}
    return any(low <= one <= high for one in written for low, high in pieces)


def benjamini_hochberg(p, level):
    """Rows picked: the r smallest p-values for the largest r such that the r-th is at most level r / m."""
    order, m = np.argsort(p, kind="stable"), len(p)
    largest = max(
        (r for r in range(1, m + 1) if p[order[r - 1]] <= level * r / m + 1e-12), default=0
    )
    cut = p[order[largest - 1]] if largest else -1.0
    return np.asarray(p) <= cut


def urn_bound(n_wrong, n_calibration, n_unlabelled, certainty):
    """The largest number wrong among the rest for which so few, or fewer, are drawn often enough; by enumeration."""
    from itertools import combinations

    total, most = n_calibration + n_unlabelled, 0
    for wrong in range(n_wrong, n_wrong + n_unlabelled + 1):
        draws = [
            sum(row < wrong for row in drawn) for drawn in combinations(range(total), n_calibration)
        ]
        if np.mean(np.array(draws) <= n_wrong) > 1 - certainty + 1e-12:
            most = wrong - n_wrong
    return most


def urn_p_value(n_marked, n_calibration, n_unlabelled, n_more):
    """How often so few calibration rows, or fewer, are marked if n_more of the others are; by enumeration."""
    total = n_calibration + n_unlabelled
    draws = itertools.combinations(range(total), n_calibration)
    few = [sum(row < n_marked + n_more for row in drawn) <= n_marked for drawn in draws]
    return Fraction(sum(few), len(few))


def chance_of_marked(found, size, marked, drawn):
    """How often so many of the rows drawn from an urn are marked, by counting draws."""
    if not 0 <= found <= drawn:
        return 0.0
    ways = math.comb(marked, found) * math.comb(size - marked, drawn - found)
    return ways / math.comb(size, drawn)


def split_outcomes(sizes, drawn, marked):
    """Every number of marked rows that may be drawn from each stratum, with its probability."""
    for found in itertools.product(*[range(n + 1) for n in drawn]):
        probability = math.prod(map(chance_of_marked, found, sizes, marked, drawn))
        if probability > 0.0:
            yield found, probability


def coverage_of_splits(sizes, drawn, interval):
    """How often `interval(found)` holds the total, for every split of every total of strata."""
    for marked in itertools.product(*[range(size + 1) for size in sizes]):
        outcomes = split_outcomes(sizes, drawn, marked)
        held = [p for found, p in outcomes if within(sum(marked), interval(drawn, found))]
        yield marked, sum(held)


def coverage_of_divided_samples(sizes, n_drawn, interval):
    """The same of one simple random sample, divided by stratum after it was drawn."""
    n_rows = sum(sizes)
    for marked in itertools.product(*[range(size + 1) for size in sizes]):
        held = 0.0
        for n_first in range(n_drawn + 1):
            drawn = (n_first, n_drawn - n_first)
            division = chance_of_marked(n_first, n_rows, sizes[0], n_drawn)
            if division == 0.0:
                continue
            for found, p in split_outcomes(sizes, drawn, marked):
                held += division * p * within(sum(marked), interval(drawn, found))
        yield marked, held


def within(total, ends):
    return ends[0] <= total <= ends[1]


def two_urns_bound(one, other, certainty):
    """The largest sum of two numbers whose p-values, combined by their weighted logarithms, do not rule them out."""
    from scipy.integrate import quad
    from scipy.optimize import brentq

    sizes = [n_unlabelled / n_calibration**0.5 for _, n_calibration, n_unlabelled in (one, other)]
    first, second = (size / max(sizes) for size in sizes)

    def exceeded(limit):
        # One exponential variable exceeds what the other leaves.
        left = quad(lambda u: np.exp(-u / first) / first * np.exp(-(limit - u) / second), 0, limit)
        return np.exp(-limit / first) + left[0]

    limit = brentq(lambda amount: exceeded(amount) - (1 - certainty), 1e-9, 100)
    most = 0
    for a in range(one[2] + 1):
        for b in range(other[2] + 1):
            p_values = urn_p_value(*one, a), urn_p_value(*other, b)
            if 0 not in p_values:
                sum_of_logs = -first * np.log(float(p_values[0])) - second * np.log(
                    float(p_values[1])
                )
                most = max(most, a + b) if sum_of_logs < limit - 1e-9 else most
    return most


# ------------------------------------------------------------------------------------- audits of a finite table


def audit_martingale(draws, total):
    """The martingale of a candidate total after draws of (unlabelled, known hits, hit), as exact fractions.

    None where the draws are impossible with this total.
    """
    bets = [Fraction(*pair) for pair in ((0, 1), (1, 20), (1, 10), (1, 5), (2, 5), (3, 5), (4, 5))]
    weights = [
        Fraction(*pair) for pair in ((1, 2), (1, 10), (1, 10), (1, 10), (2, 25), (7, 100), (1, 20))
    ]
    assert sum(weights) == 1
    products = [Fraction(1)] * len(bets)
    for unlabelled, known, hit in draws:
        share = Fraction(total - known, unlabelled)
        if (not hit and share >= 1) or (hit and share <= 0):
            return None
        factors = [bet if hit else (1 - bet * share) / (1 - share) for bet in bets]
        products = [product * factor for product, factor in zip(products, factors, strict=True)]
    return sum(weight * product for weight, product in zip(weights, products, strict=True))


def repeated_hypergeometric(rows, known, total, recall, level):
    """Probability that the usual test, looked at after every draw, ever stops before `recall` of the hits are found.

    `known` of `total` hits were found by searching; the others are among `rows` rows, which are drawn one by one. After
    k draws with x hits the test asks: if so many hits were left that recall is not reached, would x or fewer of them
    among k draws be less likely than the level?
    """
    left = total - known
    alive, wrong = {0: 1.0}, 0.0  # probability of each number of hits, not stopped yet
    for k in range(1, rows + 1):
        after = {}
        for x, chance in alive.items():
            hit = (left - x) / (rows - k + 1)
            for y, share in ((x + 1, hit), (x, 1.0 - hit)):
                if share > 0.0:
                    after[y] = after.get(y, 0.0) + chance * share
        alive = {}
        for x, chance in after.items():
            supposed = int((known + x) / recall + 1e-9) + 1 - known
            if supposed > rows or hypergeom.cdf(x, rows, supposed, k) <= level:
                wrong += chance * (known + x < recall * total - 1e-9)
            else:
                alive[x] = chance
    return wrong


def worst_wrong_stop(n, total, recall, stops, may_search=True):
    """Largest probability, over everything a person could do, of stopping before `recall` of the hits are found.

    A table of n rows with `total` hits. At every step the person, who knows everything except the draws to come, labels
    a hit on purpose, labels another row on purpose, or has a row drawn. The rule: ``stops(draws, found, unlabelled)``.
    """

    def value(draws, hits_left, others_left):
        found, unlabelled = total - hits_left, hits_left + others_left
        if stops(draws, found, unlabelled) and found < recall * total - 1e-12:
            return Fraction(1)
        if unlabelled == 0:
            return Fraction(0)
        options = []
        if may_search:
            options += [value(draws, hits_left - 1, others_left)] if hits_left else []
            options += [value(draws, hits_left, others_left - 1)] if others_left else []
        drawn = Fraction(0)
        for left, hit in ((hits_left, True), (others_left, False)):
            if left:
                after = (*draws, (unlabelled, found, hit))
                drawn += Fraction(left, unlabelled) * value(
                    after, hits_left - hit, others_left - (not hit)
                )
        return max([*options, drawn])

    return value((), total, n - total)


# ------------------------------------------------------------------------------------- what a label would teach


def posterior_covariance(features, prior, labelled, noise):
    """Covariance of all rows of a Gaussian process, given labels at some, by the textbook formula."""
    K = features @ np.diag(prior) @ features.T
    if not labelled:
        return K
    rows = sorted(labelled)
    G = np.linalg.inv(K[np.ix_(rows, rows)] + noise * np.eye(len(rows)))
    return K - K[:, rows] @ G @ K[rows]


def teaching(features, prior, labelled, noise):
    """By how much one more label at each row would lower the mean variance of all rows: by adding it."""
    before = np.trace(posterior_covariance(features, prior, labelled, noise))
    n = len(features)
    gains = np.empty(n)
    for row in range(n):
        K = posterior_covariance(features, prior, labelled, noise)
        gains[row] = (before - np.trace(K - np.outer(K[row], K[row]) / (noise + K[row, row]))) / n
    return gains


def weighted_p_value(scores, weights, score, own, factor=1.0):
    """Largest p-value over all odds within a factor of the weights, by trying every corner of the box of odds."""
    corners = itertools.product([1 / factor, factor], repeat=len(scores) + 1)
    found = []
    for corner in corners:
        w = np.append(weights, own) * corner
        found.append((w[:-1][np.asarray(scores) >= score].sum() + w[-1]) / w.sum())
    return max(found)


def error_sizes(values, spreads, errors, at_values, at_spreads):
    """Standard errors of a blend by its value and its members' spread, with the likelihood written out row by row."""
    typical = np.sqrt(np.mean(np.square(spreads)))
    logs = [np.log(s + 0.1 * typical) if typical > 0 else 0.0 for s in spreads]
    moments = [(np.mean(signal), np.std(signal)) for signal in (values, logs)]

    def size(value, spread, c):
        signals = value, np.log(spread + 0.1 * typical) if typical > 0 else 0.0
        z = [
            min(max((s - m) / sd, -3.0), 3.0) if sd > 0 else 0.0
            for s, (m, sd) in zip(signals, moments, strict=True)
        ]
        return np.exp(c[0] + c[1] * z[0] + c[2] * z[1])

    def loss(c):
        sizes = [size(value, spread, c) for value, spread in zip(values, spreads, strict=True)]
        fit = sum(np.log(s) + abs(e) / s for s, e in zip(sizes, errors, strict=True))
        return fit + 30.0 * (c[1] ** 2 + c[2] ** 2)

    options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 5000, "maxfev": 5000}
    c = minimize(
        loss, [np.log(np.mean(np.abs(errors))), 0.0, 0.0], method="Nelder-Mead", options=options
    ).x
    units = [
        e / size(value, spread, c) for value, spread, e in zip(values, spreads, errors, strict=True)
    ]
    factor = np.sqrt(np.mean(np.square(units)))
    return np.array(
        [
            factor * size(value, spread, c)
            for value, spread in zip(at_values, at_spreads, strict=True)
        ]
    )


def threshold(scores, rank):
    """The `rank`-th smallest score; infinity if there are not so many."""
    return (
        float(np.sort(np.asarray(scores, dtype=float))[rank - 1]) if rank <= len(scores) else np.inf
    )


def null_vectors(spectrum):
    """Eigenvectors of eigenvalue 0 of a graph's normalised Laplacian, one for each component, (n, count)."""
    components, degrees = (np.asarray(part) for part in (spectrum.components, spectrum.degrees))
    inside = components[:, None] == np.arange(spectrum.count)
    sizes = degrees @ inside
    return (
        np.sqrt(np.where(sizes > 0.0, degrees[:, None] / np.where(sizes > 0.0, sizes, 1.0), 1.0))
        * inside
    )


def mixture(mean, of_class):
    """Shares on the simplex whose mixture of the rows of `of_class` is nearest to `mean`, by a general optimiser."""
    k = len(of_class)
    total = {"type": "eq", "fun": lambda q: q.sum() - 1.0}
    settings = {"ftol": 1e-15, "maxiter": 1000}
    return minimize(
        lambda q: np.sum((q @ of_class - mean) ** 2),
        np.full(k, 1.0 / k),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * k,
        constraints=[total],
        options=settings,
    ).x


def held_out_p_values(scores, codes, *, by_class=False, shares=None):
    """p-value of each calibration row at its own label, the other calibration rows being those that calibrate.

    Among the others of its class, or by given shares of the classes, or among all others.
    """
    p_values = []
    for row, score in enumerate(scores):
        others = [other for other in range(len(scores)) if other != row]
        if by_class:
            others = [other for other in others if codes[other] == codes[row]]
        if shares is None:
            larger = sum(scores[other] >= score for other in others)
            p_values.append((1 + larger) / (len(others) + 1))
            continue
        total = 0.0
        for code, share in enumerate(shares):
            of_class = [other for other in others if codes[other] == code]
            larger = sum(scores[other] >= score for other in of_class)
            total += share * (1 + larger) / (len(of_class) + 1)
        p_values.append(total)
    return np.array(p_values)


def permutation_test(here, there):
    """p-value of the largest standardised difference of means of a column, over all ways to split the rows.

    Returns the share of all splits whose statistic is at least the observed one, and the difference of each column.
    """
    both = np.vstack([here, there])
    spread = both.std(axis=0)

    def differences(first):
        rest = [row for row in range(len(both)) if row not in first]
        return np.abs(both[list(first)].mean(axis=0) - both[rest].mean(axis=0)) / spread

    observed = differences(tuple(range(len(here))))
    splits = list(itertools.combinations(range(len(both)), len(here)))
    larger = [differences(split).max() >= observed.max() - 1e-9 for split in splits]
    return np.mean(larger), observed


def class_shares(probabilities, p, prior):
    """Shares on the simplex that maximise ``sum_j log sum_c q_c P_jc / p_c + sum_c prior_c log q_c``.

    By a general optimiser over q = softmax(z), polished over the simplex itself.
    """
    ratio = probabilities / p

    def loss(q):
        return -np.sum(np.log(ratio @ q)) - np.sum(prior * np.log(q))

    def of_logits(z):
        q = np.exp(z - z.max())
        return loss(q / q.sum())

    first = minimize(
        of_logits, np.log(p), method="Nelder-Mead", options={"xatol": 1e-10, "maxfev": 20_000}
    ).x
    q = np.exp(first - first.max())
    total = {"type": "eq", "fun": lambda q: q.sum() - 1.0}
    settings = {"ftol": 1e-15, "maxiter": 1000}
    bounds = [(1e-12, 1.0)] * len(p)
    return minimize(
        loss, q / q.sum(), method="SLSQP", bounds=bounds, constraints=[total], options=settings
    ).x


class Chance:
    """Random numbers below n: splitmix64, as its authors wrote it down."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        """Return the next number, 53 bits of it times n."""
        word = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & word
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & word
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & word
        return int(((z ^ (z >> 31)) >> 11) * 2.0**-53 * n)


def best_split(
    bins, rows, values, mass, fewest, tried, penalty, random_cuts, any_gain, chance, features
):
    """Gain, feature and cut of the best split of a node among features drawn until enough of them vary."""

    def score(some):
        total = np.sum(mass[some][:, None] * values[some], axis=0)
        return np.sum(total**2) / (np.sum(mass[some]) + penalty)

    if len(rows) < 2 * fewest or np.ptp(values[rows], axis=0).max() == 0.0:
        return None
    floor, found, left = -1.0 if any_gain else score(rows), None, len(features)
    best = floor
    while left and tried:
        place, left = chance.below(left), left - 1
        features[place], features[left] = features[left], features[place]
        own = bins[rows, features[left]]
        present = np.unique(own)
        if len(present) == 1:
            continue
        tried -= 1
        cuts = [(int(low) + int(high)) // 2 for low, high in itertools.pairwise(present)]
        if random_cuts:
            cuts = [int(present[0]) + chance.below(int(present[-1]) - int(present[0]))]
        for cut in cuts:
            low, high = rows[own <= cut], rows[own > cut]
            both = score(low) + score(high)
            if (
                min(len(low), len(high)) >= fewest and (1.0 - 1e-12) * both > best
            ):  # of equal ones the first
                best, found = both, (both - floor, features[left], cut)
    return found


def grow_tree(bins, rows, values, mass, most_leaves, chance, **settings):
    """Splits (leaf, feature, cut) in their order, and the rows of the leaves: the leaf with the largest gain is next.

    Without a limit that binds the order does not matter, and the first leaf that can be split is next.
    """
    features = list(range(bins.shape[1]))

    def search(own):
        return best_split(bins, own, values, mass, chance=chance, features=features, **settings)

    leaves, splits = [rows], []
    found = [search(rows)]
    most = max(min(most_leaves, len(rows) // settings["fewest"]), 1)
    while len(leaves) < most and any(found):
        gains = [one[0] if one else -1.0 for one in found]
        leaf = (
            int(np.argmax(gains))
            if most_leaves < len(rows)
            else next(i for i, one in enumerate(found) if one)
        )
        _, feature, cut = found[leaf]
        splits.append((leaf, feature, cut))
        own = bins[leaves[leaf], feature]
        leaves.append(leaves[leaf][own > cut])
        leaves[leaf] = leaves[leaf][own <= cut]
        found[leaf] = search(leaves[leaf])
        found.append(search(leaves[-1]))
    return splits, leaves


def leaf_of(splits, row):
    """The leaf that a row with these bins ends in."""
    leaf = 0
    for number, (own, feature, cut) in enumerate(splits):
        if leaf == own and row[feature] > cut:
            leaf = number + 1
    return leaf


# ------------------------------------------------------------------------------------------- scale of features


def far_numbers(column):
    """Return which numbers are far from the others, by the definition, one after the other."""
    n = len(column)
    middle = np.median(column)
    apart = sorted(abs(x - middle) for x in column if abs(x - middle) > 1e-12 * abs(middle))
    if len(apart) < 2:
        return np.zeros(n, dtype=bool)
    lower_median = apart[(len(apart) - 1) // 2]
    for count in range(max(1, min(3, n // 20), n // 100), 0, -1):
        if count >= len(apart):
            continue
        nearest_far, farthest_other = apart[-count], apart[-count - 1]
        if nearest_far > 20 * 1.4826 * lower_median and nearest_far / 5 > farthest_other:
            return np.array([abs(x - middle) >= nearest_far for x in column])
    return np.zeros(n, dtype=bool)


def residuals_of_columns(columns, ridge):
    """Residuals (n, d) of each standardised column, regressed on all others with the penalty ``n ridge |w|^2``."""
    Z = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    n, d = Z.shape
    residuals = np.empty((n, d))
    for j in range(d):
        others = np.delete(Z, j, axis=1)
        stacked = np.vstack([others, np.sqrt(n * ridge) * np.eye(d - 1)])
        right = np.append(Z[:, j], np.zeros(d - 1))
        weights = np.linalg.lstsq(stacked, right, rcond=None)[0]
        residuals[:, j] = Z[:, j] - others @ weights
    return residuals


def pairs_apart(sizes, unlabelled):
    """How well sizes (n,) tell unlabelled from labelled rows: how far the share of pairs won is from one half."""
    won = [
        1.0 if own > other else 0.5 if own == other else 0.0
        for own in sizes[unlabelled]
        for other in sizes[~unlabelled]
    ]
    return abs(2.0 * np.mean(won) - 1.0)


def chance_of_labels(n_rows, n_labelled, known, at_least):
    """Chance that at least so many of some known rows are labelled, by going through all ways to label rows."""
    ways = list(itertools.combinations(range(n_rows), n_labelled))
    hits = [len(set(way) & set(known)) >= at_least for way in ways]
    return Fraction(sum(hits), len(ways))


def bayesian_ridge(X, y, asked):
    """Return ridge regression, averaged over penalties by the density of the labels under each.

    Under a penalty the labels are normal with the covariance ``s (I + X X' / penalty)`` around a
    mean about which nothing is known; ``log s`` has a flat prior. Projected on contrasts that do not
    depend on the mean, what is left of the density is ``|C|^-1/2 (z' C^-1 z)^-(l - 1)/2``.
    """
    n_labels, n_features = X.shape
    contrasts = np.linalg.svd(np.eye(n_labels) - 1.0 / n_labels)[0][:, : n_labels - 1].T
    Z = contrasts @ X
    z = contrasts @ y
    rank = min(n_labels, n_features)
    typical = np.sum((X - X.mean(axis=0)) ** 2) / rank
    logs, predictions = [], []
    for penalty in typical * np.geomspace(1e-5, 1e4, 46):
        covariance = np.eye(n_labels - 1) + Z @ Z.T / penalty
        sign, log_determinant = np.linalg.slogdet(covariance)
        square = z @ np.linalg.solve(covariance, z)
        logs.append(-0.5 * sign * log_determinant - 0.5 * (n_labels - 1) * np.log(square))
        slopes = np.linalg.solve(Z.T @ Z + penalty * np.eye(n_features), Z.T @ z)
        predictions.append(y.mean() + (asked - X.mean(axis=0)) @ slopes)
    shares = np.exp(np.array(logs) - max(logs))
    return shares / shares.sum() @ np.array(predictions)


# ------------------------------------------------------------------- categories of several columns


def is_inside_within_columns(score, scores, features, row, confidence):
    """Return whether a test row's score is inside, by quantile regression on the completed sample.

    `features` (c, d) and `row` (d,) are indicators of categories. The row is inside if its score is
    at most its fitted quantile in every solution: the least of them is a linear program of its own.
    """
    from scipy.optimize import linprog

    A = np.vstack([features, row])
    n, d = A.shape
    # Variables: coefficients, and how far each score is above and below its quantile.
    loss = np.concatenate([np.zeros(d), np.full(n, confidence), np.full(n, 1.0 - confidence)])
    problem = {
        "A_eq": np.hstack([A, np.eye(n), -np.eye(n)]),
        "b_eq": np.append(scores, score),
        "bounds": [(None, None)] * d + [(0.0, None)] * (2 * n),
    }
    best = linprog(loss, **problem).fun
    quantile = np.concatenate([row, np.zeros(2 * n)])
    least = linprog(quantile, A_ub=loss[None], b_ub=[best + 1e-9], **problem)
    if least.status == 3:  # quantiles as low as one likes are as good
        return False
    return bool(score <= least.fun + 1e-6)


def times_usual_error(errors, answered):
    """Return each error over the median of those at the most similar predictions, in their order."""
    n = len(errors)
    n_near = min(max(int(0.2 * n), 10), n)
    order = sorted(range(n), key=lambda place: (answered[place], place))
    least = max(np.median(errors) / 4, 1e-9 * (max(answered) - min(answered)))
    times = np.empty(n)
    for place, row in enumerate(order):
        first = min(max(place - n_near // 2, 0), n - n_near)
        near = [errors[other] for other in order[first : first + n_near]]
        times[row] = errors[row] / max(np.median(near), least)
    return times


def nearest_labelled(row, labelled, n_near):
    """Return the nearest labelled rows, and weights by a Gaussian kernel as wide as the last is far."""
    distances = [float(np.sum((row - other) ** 2)) for other in labelled]
    nearest = sorted(range(len(labelled)), key=lambda place: (distances[place], place))[:n_near]
    kernel = [np.exp(-distances[place] / distances[nearest[-1]]) for place in nearest]
    return nearest, np.array(kernel) / sum(kernel)
