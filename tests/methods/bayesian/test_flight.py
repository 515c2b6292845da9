"""Balls in version space: explicit vectors, arcs, spherical polygons and rejection sampling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtr

from tests import brute
from transduce.methods.bayesian import balls
from transduce.methods.bayesian.balls import (
    Ball,
    EmptyVersionSpaceError,
    Game,
    Positions,
    Segment,
    VersionSpace,
    Voter,
    choose_reach,
    count_votes,
    fly,
    follow,
    probabilities,
    student_shares,
)

seeds = st.integers(0, 2**31 - 1)


def make_cone(seed, dimension, n_rows):
    """Unit rows with signs, such that some direction gets all right."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    signs = np.where(rows @ rng.normal(size=dimension) > 0, 1.0, -1.0)
    return rows, signs


def space_of(rows, signs):
    return VersionSpace.of(np.ascontiguousarray(rows @ rows.T), signs)


def drop(rows, signs, seed, n_bounces):
    """A ball whose segments have about so many bounces."""
    space = space_of(rows, signs)
    return Ball(space, seed, choose_reach(space, seed, n_bounces))


@pytest.fixture(params=["compiled", "python"])
def _either(request, monkeypatch):
    """Run with the compiled loops, and with the Python they were compiled from."""
    if request.param == "python":
        monkeypatch.setattr(balls, "_advance", balls._advance.py_func)
        monkeypatch.setattr(balls, "fly", balls.fly.py_func)
        monkeypatch.setattr(balls, "_turn", balls._turn.py_func)
        monkeypatch.setattr(balls, "follow", balls.follow.py_func)


# ------------------------------------------------------------------------------------------------ one ball


@pytest.mark.usefixtures("_either")
@pytest.mark.parametrize(("dimension", "n_rows"), [(3, 5), (5, 5), (6, 20)])
def test_the_flight_is_that_of_explicit_vectors(dimension, n_rows):
    """Walls, times and positions, bounce by bounce, while rounding has not yet grown."""
    rows, signs = make_cone(dimension, dimension, n_rows)
    segment = drop(rows, signs, 0, 12)._run_segment()
    w, v = segment.position @ rows, segment.velocity @ rows
    ends = np.concatenate([[0.0], np.cumsum(segment.times)])
    flights = list(brute.plain_billiard(signs[:, None] * rows, w, v, len(segment.walls)))
    at = segment.at(ends[:-1] + 1e-13) @ rows
    for k, (position, _, time, wall) in enumerate(flights):
        np.testing.assert_allclose(at[k], position, atol=1e-9)
        if k < len(flights) - 1:  # the last ends in the air
            assert (segment.walls[k], segment.times[k]) == (wall, pytest.approx(time, abs=1e-9))
    assert segment.times[-1] <= flights[-1][2] + 1e-9
    assert segment.kicks[-1] == 0.0


@given(seeds, st.integers(2, 8), st.integers(2, 30))
def test_every_bounce_stays_in_version_space(seed, dimension, n_rows):
    """And the ball stays a unit vector, at bounces and between them."""
    rows, signs = make_cone(seed, dimension, n_rows)
    flight = drop(rows, signs, seed, 400).run(3)
    for segment in flight:
        moments = np.sort(
            np.concatenate([np.cumsum(segment.times), np.linspace(0, segment.length, 50)])
        )
        positions = segment.at(moments) @ rows
        assert (positions @ rows.T * signs).min() > -1e-7
        np.testing.assert_allclose(np.linalg.norm(positions, axis=1), 1.0, atol=1e-7)


@pytest.mark.usefixtures("_either")
def test_following_a_flight_is_integrating_it():
    rows, signs = make_cone(3, 5, 8)
    unlabelled = np.random.default_rng(0).normal(size=(600, 5))  # more than a block
    segment = drop(rows, signs, 1, 15)._run_segment()
    positive, length = Voter(np.ascontiguousarray(rows @ unlabelled.T)).times([segment])
    some = np.concatenate(
        [np.arange(0, 600, 25), np.arange(505, 520)]
    )  # both blocks, and where they meet
    fine = (np.arange(100_000) + 0.5) * segment.length / 100_000
    share = (segment.at(fine) @ rows @ unlabelled[some].T > 0).mean(axis=0)
    np.testing.assert_allclose(positive[some] / length, share, atol=1e-4)
    assert length == pytest.approx(segment.length)


def test_positions_are_at_even_times():
    rows, signs = make_cone(3, 4, 6)
    flight = drop(rows, signs, 1, 50).run(5)
    taken = Positions.of(flight, count=40)
    ends = np.cumsum([segment.length for segment in flight])
    for k, moment in enumerate((np.arange(40) + 0.5) * ends[-1] / 40):
        which = int(np.searchsorted(ends, moment))
        inside = moment - (ends[which] - flight[which].length)
        np.testing.assert_allclose(taken.coefficients[k], flight[which].at(np.array([inside]))[0])
    assert taken.length == pytest.approx(ends[-1])


# -------------------------------------------------------------------------------------------- version space


def test_starts_are_inside_and_differ():
    rows, signs = make_cone(0, 6, 6)
    space = space_of(rows, signs)
    starts = [space.start(np.random.RandomState(seed)) for seed in range(20)]
    for start in starts:
        assert (signs * (space.G @ start)).min() > 0
        assert start @ space.G @ start == pytest.approx(1.0)
    assert np.std(starts, axis=0).min() > 0.01


@given(seeds, st.integers(2, 5))
def test_dependent_rows_have_a_smaller_span(seed, dimension):
    """More rows than dimensions, duplicates among them: a start by least squares or linear programming."""
    rows, signs = make_cone(seed, dimension, 25)
    rows, signs = np.concatenate([rows, rows[:3]]), np.concatenate([signs, signs[:3]])
    space = space_of(rows, signs)
    assert space.rank == dimension
    start = space.start(np.random.RandomState(0))
    assert (signs * (space.G @ start)).min() > 0
    assert np.abs(space.root.T @ (start - space.start(np.random.RandomState(1)))).max() > 1e-6
    velocity = space.velocity(start, np.random.RandomState(0))
    assert velocity @ space.G @ start == pytest.approx(0.0, abs=1e-8)
    assert velocity @ space.G @ velocity == pytest.approx(1.0)


def test_velocities_point_everywhere_alike():
    rows, signs = make_cone(1, 4, 4)
    space = space_of(rows, signs)
    start, random = space.start(np.random.RandomState(0)), np.random.RandomState(1)
    drawn = np.array([space.velocity(start, random) for _ in range(4000)]) @ rows
    w = start @ rows
    np.testing.assert_allclose(drawn.T @ drawn / 4000, (np.eye(4) - np.outer(w, w)) / 3, atol=0.03)


def test_an_empty_version_space_is_an_error():
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(EmptyVersionSpaceError):
        space_of(rows, np.ones(3)).start(np.random.RandomState(0))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        VersionSpace.of(np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2))


def test_a_single_direction_is_a_ball_at_rest():
    space = VersionSpace.of(np.ones((3, 3)), np.ones(3))
    assert space.rank == 1
    game = Game(space, [0, 1], soft=False)
    for record in game.play(10):
        positive, length = Voter(np.array([[1.0, -1.0]] * 3)).times(record)
        np.testing.assert_array_equal(positive / length, [1.0, 0.0])


# ----------------------------------------------------------------------------------------------- the votes


def vote(rows, signs, unlabelled, *, seed=0, n_balls=8, n_bounces=4000, refresh=None):
    """Return shares on the positive side and their standard errors."""
    game = Game(space_of(rows, signs), range(seed, seed + n_balls), soft=False, refresh=refresh)
    voter = Voter(np.ascontiguousarray(rows @ unlabelled.T))
    game.play(n_bounces // 3)
    flown = count_votes([[game.play(n_bounces)]], len(unlabelled), [(slice(None), voter)], None)
    return (part[:, 1] for part in probabilities(flown))


def exact_share(cone, unlabelled, rng):
    """Shares and the variance of what they are known by: nothing but sampling error above three dimensions."""
    dimension = cone.shape[1]
    if dimension == 2:
        return np.array([brute.arc_share(cone, row) for row in unlabelled]), 0.0
    if dimension == 3:
        return np.array([brute.polygon_share(cone, row) for row in unlabelled]), 0.0
    share, count = brute.sampled_share(cone, unlabelled, 2_000_000, rng)
    return share, share * (1 - share) / count


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("dimension", "n_rows"),
    [(2, 3), (3, 6), *(pytest.param(d, 6, marks=pytest.mark.slow) for d in (4, 6))],
)
def test_votes_are_the_shares_of_version_space(dimension, n_rows):
    """Arcs in the plane, spherical polygons in space, rejection sampling above; standard errors that are right."""
    z = []
    for seed in range({2: 4, 3: 6}.get(dimension, 12)):
        rng = np.random.default_rng(seed)
        rows, signs = make_cone(seed, dimension, n_rows)
        unlabelled = rng.normal(size=(15, dimension))
        many = {"n_bounces": 12_000, "refresh": 60} if dimension > 3 else {}
        found, known_to = vote(rows, signs, unlabelled, seed=100 * seed, **many)
        share, variance = exact_share(signs[:, None] * rows, unlabelled, rng)
        error, spread = found - share, np.sqrt(known_to**2 + variance)
        assert np.all(
            np.abs(error) < 0.02 + 5 * np.sqrt(variance)
        )  # narrow cones accept few of the random directions
        moving = known_to > 1e-5
        np.testing.assert_allclose(found[~moving], share[~moving], atol=2e-3)
        z.append((error / np.maximum(spread, 1e-9))[moving])
    z = np.concatenate(z)
    if (
        dimension == 2
    ):  # to and fro on one arc: exact but for the last flight, which standard errors cannot know
        return
    # Student's t with seven degrees of freedom: 65 % within one, 98 % within three; rows of one problem go together.
    assert 0.5 < np.mean(np.abs(z) < 1) < 0.8
    assert np.mean(np.abs(z) < 3) > 0.95


def test_polygons_are_what_sampling_says():
    """The reference itself: areas against random directions."""
    rng = np.random.default_rng(0)
    rows, signs = make_cone(5, 3, 5)
    unlabelled = rng.normal(size=(6, 3))
    share, count = brute.sampled_share(signs[:, None] * rows, unlabelled, 1_000_000, rng)
    exact = [brute.polygon_share(signs[:, None] * rows, row) for row in unlabelled]
    np.testing.assert_allclose(exact, share, atol=5 * np.sqrt(0.25 / count))


@settings(max_examples=20)
@given(seeds)
def test_a_flight_has_the_length_of_its_parts(seed):
    rows, signs = make_cone(seed, 3, 5)
    game = Game(space_of(rows, signs), [seed], soft=True)
    taken = game.play(600)[0]
    assert isinstance(taken, Positions)
    assert taken.coefficients.shape == (240, 5)  # one for every two and a half bounces
    assert 100 < game.n_bounces < 2400  # thirty segments of about twenty
    np.testing.assert_allclose(
        np.einsum("si,ij,sj->s", taken.coefficients, game.space.G, taken.coefficients),
        1.0,
        atol=1e-7,
    )


def test_tiny_loops_by_hand():
    """One flight of a quarter turn, once past a row and once before it."""
    positive, p, q = np.zeros(2), np.array([1.0, -1.0]), np.array([-1.0, 1.0])
    follow(
        np.zeros((1, 2)), p, q, np.zeros(1, np.int32), np.zeros(1), np.array([np.pi / 2]), positive
    )
    np.testing.assert_allclose(positive, [np.pi / 4, np.pi / 4])
    a, b = np.array([0.6, 0.8]), np.array([-0.8, 0.6])
    walls, kicks, times = np.empty(2, np.int32), np.empty(2), np.empty(2)
    fly(np.eye(2), np.ones(2), a, b, walls, kicks, times)
    np.testing.assert_array_equal(walls, [0, 1])
    assert times[1] == pytest.approx(np.pi / 2)
    assert Segment(np.ones(1), np.ones(1), walls, kicks, times).length == pytest.approx(times.sum())


def test_a_thin_version_space_takes_a_short_trial(monkeypatch):
    """Where a flight of length 1 would have hundreds of thousands of bounces, the trial begins with a shorter one."""
    wedge = np.array([[1.0, 0.0], [-np.cos(2e-5), np.sin(2e-5)]])
    space = space_of(np.kron(np.eye(10), wedge), np.ones(20))
    bounces = []
    one = balls.fly
    monkeypatch.setattr(balls, "fly", lambda *args: (bounces.append(len(args[-1])), one(*args)))
    reach = choose_reach(space, 0, 200)
    assert reach < 1e-3
    assert sum(bounces) < 50_000
    ball = Ball(space, 1, reach)
    assert 50 < np.mean([len(segment.walls) for segment in ball.run(20)]) < 800


@pytest.mark.parametrize("rank", [1, 2, 5, 40, 300, 5000])
def test_shares_of_students_distribution(rank):
    values = np.concatenate([np.linspace(-13.0, 13.0, 3001), [-1e6, -12.0, 0.0, 12.0, 1e6]])
    np.testing.assert_allclose(
        student_shares(values.copy(), rank), stdtr(rank, values), rtol=0, atol=1e-11
    )
