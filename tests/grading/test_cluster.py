"""Grading on a real Dask cluster of two worker processes: the same gradebook, even if a worker is killed."""

import io
import os
import signal
import socket
import threading

import pytest
from rich.console import Console

from hookedu.catalog import CourseError
from hookedu.grading.batch import grade
from tests.grading.classroom import SEED, make_class, stored

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.xdist_group("grading-scale"), pytest.mark.isolated]
STUDENTS = 40


@pytest.fixture
def cluster(monkeypatch):
    """Start a scheduler and two workers, each a process with one thread."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


def run(folder, out, **options):
    return grade(folder, out, seed=SEED, console=Console(file=io.StringIO()), **options)


def test_a_cluster_gives_the_same_rows_also_when_a_worker_is_killed_half_way(cluster, tmp_path):
    make_class(tmp_path / "class", STUDENTS)
    run(tmp_path / "class", tmp_path / "here", jobs=2)
    killed, over = [], threading.Event()

    def kill_one():
        while not over.wait(0.02):
            if (tmp_path / "there" / "grades.db").exists():
                done = len({source for source, *_ in rows_of(tmp_path / "there")})
                if STUDENTS // 4 < done < STUDENTS // 2:
                    pid = cluster.workers[0].pid
                    os.kill(pid, signal.SIGKILL)
                    killed.append(done)
                    return

    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        run(tmp_path / "class", tmp_path / "there", dask=cluster.scheduler_address)
    finally:
        over.set()
        killer.join()
    assert killed, "no worker was killed half way"
    assert stored(tmp_path / "there") == stored(tmp_path / "here")


def rows_of(out):
    try:
        return stored(out)
    except Exception:  # its tables are just being created
        return []


def test_a_scheduler_that_does_not_answer_is_reported(tmp_path, monkeypatch):
    make_class(tmp_path / "class", 2)
    monkeypatch.setattr("hookedu.grading.run.cluster._PATIENCE", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = server.getsockname()[1]
    with pytest.raises(CourseError) as caught:
        run(tmp_path / "class", tmp_path / "out", dask=f"tcp://127.0.0.1:{nobody}")
    assert f"`tcp://127.0.0.1:{nobody}` cannot be reached" in caught.value.says[0].en
    assert "连不上" in caught.value.says[0].zh and "\n" not in caught.value.says[0].en


def test_a_cluster_without_workers_is_reported(tmp_path, monkeypatch):
    make_class(tmp_path / "class", 2)
    monkeypatch.setattr("hookedu.grading.run.cluster._PATIENCE", 1.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None, processes=True) as empty,
        pytest.raises(CourseError, match="has no workers"),
    ):
        run(tmp_path / "class", tmp_path / "out", dask=empty.scheduler_address)
