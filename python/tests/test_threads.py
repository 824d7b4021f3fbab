"""Contexts: one for each thread, options, objects that change threads, fork."""

import gc
import os
import threading
import warnings

import numpy as np
import pytest

import lowbit


def run_in_threads(n, work):
    failed = []

    def guarded(k):
        try:
            work(k)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]


def test_threads_compute_the_same():
    w = lowbit.quantize(lowbit.random_normal(1, (256, 128)))
    x = lowbit.random_normal(2, (16, 256))
    want = (x @ w).tobytes()

    def work(k):
        for i in range(20):
            assert (x @ w).tobytes() == want
            y = lowbit.random_normal(k, (50, 50))
            assert lowbit.grad(lambda y: lowbit.sum(y * y))(y)[0, 0] == 2 * y[0, 0]
            with pytest.raises(lowbit.ShapeError, match=f"{k + 2}"):
                y @ lowbit.zeros((k + 2, 3))

    run_in_threads(8, work)


def test_arrays_outlive_threads():
    made = []
    run_in_threads(4, lambda k: made.append(lowbit.full((1000,), k) + 1))
    assert sorted(x[0].item() for x in made) == [1, 2, 3, 4]


def test_objects_change_threads():
    x = lowbit.array([1.0, 2.0])
    f = lowbit.compile(lambda x: x + 1)
    o = lowbit.SGD([x], rate=1.0)
    f(x)

    def work(k):
        for _ in range(50):
            assert f(x).tolist() == [2, 3]
            o.step([x], [x])

    run_in_threads(4, work)
    assert o.steps == 200
    made = []
    run_in_threads(1, lambda k: made.append(lowbit.SGD([x], rate=1.0)))
    assert made.pop().step([x], [x])[0].tolist() == [0, 0]
    gc.collect()


def test_config():
    assert lowbit.context_info()["threads"] >= 1
    with lowbit.config(threads=3, isa="ref"):
        info = lowbit.context_info()
        assert (info["threads"], info["isa"]) == (3, "ref")
        with lowbit.config(threads=2):
            assert lowbit.context_info()["threads"] == 2
            kept = lowbit.ones(3) + 1
        assert lowbit.context_info()["threads"] == 3
    assert kept.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError), lowbit.config(threads=1):
        raise RuntimeError
    for bad in ({"threads": -1}, {"precision": "best"}, {"isa": "sse"}):
        with pytest.raises(lowbit.ArgumentError):
            lowbit.config(**bad).__enter__()


def test_dense_policy():
    q = lowbit.quantize(lowbit.ones((4, 64)))
    with lowbit.config(dense="deny"):
        with pytest.raises(lowbit.DeniedError, match="reshape"):
            q.T.reshape(4, 64)
        assert np.asarray(q).shape == (4, 64)
    with lowbit.config(dense="log"), pytest.warns(UserWarning, match="nf4"):
        assert q.T.reshape(4, 64).format == "dense"
    with lowbit.config(dense="log"), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            q.T.reshape(4, 64)
    with lowbit.config():
        lowbit.set_dense("nf4", "deny")
        with pytest.raises(lowbit.DeniedError):
            q.T.reshape(4, 64)


def test_leaving_in_another_thread():
    c = lowbit.config(threads=1)
    with pytest.raises(lowbit.ArgumentError):
        run_in_threads(1, lambda k: c.__exit__())


def test_memory_is_returned():
    def work(k):
        for i in range(10):
            lowbit.sum(lowbit.random_normal(i, (1000, 1000)) + lowbit.ones((1000, 1000)))

    run_in_threads(4, work)
    size = int(open("/proc/self/statm").read().split()[1])
    for _ in range(5):
        run_in_threads(4, work)
    assert int(open("/proc/self/statm").read().split()[1]) < size + 20000


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork():
    x = lowbit.random_normal(1, (512, 512))
    want = (x @ x).tobytes()
    o = lowbit.SGD([x])
    pid = os.fork()
    if pid == 0:
        ok = (x @ x).tobytes() == want
        try:
            o.step([x], [x])
            ok = False
        except lowbit.ArgumentError:
            pass
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert (x @ x).tobytes() == want
