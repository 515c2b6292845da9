"""The same answers on a Dask cluster, whatever its partitions and workers; one that dies costs time only.

Clusters are worker processes: every test has a time limit of its own.
"""

import os
import signal
import time

import numpy as np
import pandas as pd
import pytest

from transduce import fill
from transduce.app.filling import LocalRunner, cluster_runner, fill_folder
from transduce.core import computing

dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
pytest.importorskip("distributed", reason="distributed is not installed")

SETTINGS = {"method": "ridge", "sample": 200, "random_state": 1, "ignore": ["number"]}
NEW = ["y_filled", "y_lower", "y_upper", "y_width_reduction"]


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    X = random.normal(size=(900, 3))
    y = X[:, 0] * 2 + np.sin(X[:, 1]) + 0.3 * random.normal(size=900)
    table = pd.DataFrame(X, columns=["u", "v", "w"]).assign(
        number=np.arange(900), word=random.choice(["a", "b"], 900)
    )
    return table.assign(y=np.where(random.uniform(size=900) < 0.3, y, np.nan))


@pytest.fixture(scope="module")
def whole(frame):
    return fill(frame, "y", **SETTINGS)


@pytest.mark.parametrize(
    "partitions", [4, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 9))]
)
@pytest.mark.timeout(400)
def test_partitions_and_order_change_nothing(frame, whole, partitions):
    mixed = frame.sample(frac=1.0, random_state=partitions).reset_index(drop=True)
    found = fill(dd.from_pandas(mixed, npartitions=partitions), "y", **SETTINGS)
    back = found.frame.compute(scheduler="synchronous").sort_values("number")
    assert np.array_equal(back[NEW].to_numpy(), whole.frame[NEW].to_numpy(), equal_nan=True)
    assert found.guarantee.outside == whole.guarantee.outside


@pytest.mark.timeout(400)
def test_fill_returns_a_lazy_frame(frame):
    result = fill(dd.from_pandas(frame, npartitions=3), "y", **SETTINGS)
    lazy = result.frame
    assert list(lazy.columns) == [*frame.columns, *NEW[:3], "y_width_reduction", "y_status"]
    assert lazy.npartitions == 3
    assert lazy.dtypes["y_filled"].kind == "f"
    assert result.counts.rows == 900
    assert result.counts.labelled == frame["y"].count()
    assert result.counts.unlabelled == frame["y"].isna().sum()
    assert result.counts.is_lazy
    assert "The rows that are shown belong to the sample." in result.report()
    cut = result.table(minimum=frame["y"].min()).compute(scheduler="synchronous")
    assert (
        cut["y_lower"].min()
        == frame["y"].min()
        > lazy["y_lower"].min().compute(scheduler="synchronous")
    )


def check_workers(runner, frame, whole, folder):
    """Compare a folder of six files that is filled by a cluster with the same table in memory."""
    for k in range(6):
        frame.iloc[150 * k : 150 * (k + 1)].to_parquet(folder / f"{k}.parquet", index=False)
    found = fill_folder(f"{folder}/*.parquet", "y", folder / "out", runner=runner, **SETTINGS)
    back = pd.concat(
        [pd.read_parquet(folder / "out" / part) for part in found.frame.parts], ignore_index=True
    )
    assert np.array_equal(back[NEW].to_numpy(), whole.frame[NEW].to_numpy(), equal_nan=True)


def slow_double(marker, item):
    """Kill the worker that comes first; be slow enough for that to be in the middle."""
    time.sleep(0.1)
    if item == 2 and not os.path.exists(marker):
        with open(marker, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * item


@pytest.mark.timeout(400)
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2])
def test_workers_change_nothing_and_one_may_die(frame, whole, tmp_path, n_workers):
    with cluster_runner("local", n_workers=n_workers) as runner:
        assert runner.n_here == n_workers
        check_workers(runner, frame, whole, tmp_path)
        found = sorted(runner.map(slow_double, str(tmp_path / "killed"), list(range(8))))
    assert found == [2 * item for item in range(8)]
    assert (tmp_path / "killed").exists()


@pytest.mark.timeout(400)
def test_no_scheduler_answers():
    with (
        pytest.raises(ConnectionError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        cluster_runner("tcp://127.0.0.1:9", timeout=1.0),
    ):
        pass


def nap(_, seconds):
    """Return the process that slept."""
    time.sleep(seconds)
    return os.getpid()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seconds", [[0.0, 0.4, 0.4, 0.4, 0.4], [0.0, 0.0]])
def test_processes_start_also_if_the_first_piece_is_short(monkeypatch, seconds):
    """The slowest so far counts; as many pieces as processes are begun at once."""
    monkeypatch.setattr(computing, "PAYING", 0.3)
    assert list(LocalRunner(n_jobs=2).map(nap, None, seconds))[-1] != os.getpid()


def powers(base, exponent):
    """Return a power, and the process that computed it."""
    return base**exponent, os.getpid()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("paying", [0.0, 1e6])
def test_processes_of_this_machine(monkeypatch, paying):
    """Others start once the work so far shows that they pay; else this process does it all."""
    monkeypatch.setattr(computing, "PAYING", paying)
    numbers, processes = zip(*LocalRunner(n_jobs=2).map(powers, 2, list(range(5))), strict=True)
    assert sorted(numbers) == [1, 2, 4, 8, 16]
    assert processes[0] == os.getpid()
    assert (set(processes) == {os.getpid()}) == (paying > 0.0)
    assert list(LocalRunner(n_jobs=2).map(powers, 2, [])) == []
    assert list(LocalRunner(n_jobs=2).map(powers, 2, [3])) == [(8, os.getpid())]
    assert [LocalRunner(n_jobs=n).n_here for n in (None, 2)] == [1, 2]


@pytest.mark.timeout(400)
def test_sentences_of_a_lazy_frame_are_about_the_sample(frame):
    """Only the rows that the fit saw are known: nothing is said of all."""
    result = fill(dd.from_pandas(frame, npartitions=3), "y", **SETTINGS)
    summary = result.summary()
    assert summary["counts"]["sampled"] == summary["counts"]["answered"] == 200
    assert summary["counts"]["unlabelled"] == frame["y"].isna().sum()
    words = " ".join(summary["reply"])
    assert "are predicted when the frame is computed" in words
    assert "200 of them were drawn at random for the fit" in words
    assert "have a prediction." not in words
    places = [row["row"] for row in summary["rows"]]
    assert all(place.startswith("partition ") for place in places)
    lazy = result.frame.compute(scheduler="synchronous")
    part, row = places[0].removeprefix("partition ").split(", row ")
    divisions = result.source.given.divisions
    line = lazy.iloc[divisions[int(part) - 1] + int(row) - 1]
    assert line["y_filled"] == summary["rows"][0]["value"]


@pytest.mark.timeout(400)
@pytest.mark.slow
def test_workers_elsewhere_and_none(frame, whole, tmp_path, monkeypatch):
    """A worker may have another working directory; a scheduler without workers is said to have none."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        with (
            pytest.raises(ConnectionError, match="has no workers"),
            cluster_runner(address, timeout=1.0),
        ):
            pass
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "in").mkdir()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        monkeypatch.chdir(tmp_path / "elsewhere")
        cluster.scale(2)
        with cluster_runner(cluster.scheduler_address) as runner:
            assert runner.n_here == 2
            runner.client.run(os.chdir, tmp_path / "elsewhere")
            monkeypatch.chdir(tmp_path)
            for k in range(2):
                frame.iloc[450 * k : 450 * (k + 1)].to_parquet(f"in/{k}.parquet", index=False)
            found = fill_folder("in", "y", "out", runner=runner, **SETTINGS)
    assert [path.exists() for path in found.frame.paths] == [True, True]
