"""Tasks in processes of this machine, launched by datatrove's local executor.

The executor hands ranks to a pool of processes. Two things it leaves to us: a pool whose process
was killed waits for ever, so this side watches the processes; and its log belongs in the work
folder, not on the terminal.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import multiprocess
from datatrove.executor.local import LocalPipelineExecutor
from loguru import logger

from trajcurate.curate.engines.task import Tasks, lost_task
from trajcurate.curate.errors import WorkerDied

_POLL_SECONDS = 0.2
# Loaded once by the server that forks the workers, and not once by each worker of each phase.
_PRELOADED = [
    "trajcurate.curate.engines.local",
    "trajcurate.curate.map_unit",
    "trajcurate.curate.write_output",
]


class _Rank:
    """What datatrove calls for each rank, that is, for each worker.

    Workers take tasks one by one, so that a long one holds up nobody; a rank a task would cost
    datatrove some 50 ms each.
    """

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks

    def __call__(self, data: Any, rank: int, world_size: int) -> None:
        self.tasks.run_unclaimed()


class _QuietExecutor(LocalPipelineExecutor):  # type: ignore[misc]
    def _run_for_rank(self, rank: int, local_rank: int = 0, node_rank: int = -1) -> Any:
        logger.disable("datatrove")
        return super()._run_for_rank(rank, 1, node_rank)


def run_local(
    tasks: Tasks, workers: int, is_done: Callable[[int], bool], on_progress: Callable[[], None]
) -> None:
    """Do the tasks in `workers` processes.

    Raises:
        WorkerDied: a process was killed while it worked on a task.
    """
    logger.disable("datatrove")
    multiprocess.get_context("forkserver").set_forkserver_preload(_PRELOADED)
    workers = min(workers, len(tasks.numbers))
    executor = _QuietExecutor(
        pipeline=[_Rank(tasks)],
        tasks=workers,
        workers=workers,
        logging_dir=f"{tasks.work}/logs/{tasks.phase}",
        skip_completed=False,
    )
    failure: list[BaseException] = []
    thread = threading.Thread(target=_run, args=(executor, failure), daemon=True)
    with _without_main_module():
        thread.start()
        _wait(thread, tasks, is_done, on_progress)
    if failure:
        raise failure[0]


@contextmanager
def _without_main_module() -> Iterator[None]:
    """Keep workers from running the user's script again: they need nothing of it.

    A script without a main guard, or one read from a pipe, would otherwise fail in each worker as
    it starts, and the pool would start workers for ever.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _wait(
    thread: threading.Thread,
    tasks: Tasks,
    is_done: Callable[[int], bool],
    on_progress: Callable[[], None],
) -> None:
    try:
        while thread.is_alive():
            thread.join(_POLL_SECONDS)
            on_progress()
            _stop_if_worker_died(tasks, is_done, thread)
    finally:
        if thread.is_alive():
            _end_processes()


def _run(executor: LocalPipelineExecutor, failure: list[BaseException]) -> None:
    try:
        executor.run()
    except BaseException as error:
        failure.append(error)


def _stop_if_worker_died(
    tasks: Tasks, is_done: Callable[[int], bool], thread: threading.Thread
) -> None:
    pending = [number for number in tasks.numbers if not is_done(number)]
    lost = lost_task(tasks.work, tasks.phase, pending)
    if lost is None:
        return
    # The process may have ended in good order between the two looks.
    time.sleep(_POLL_SECONDS)
    number, process = lost
    if thread.is_alive() and not is_done(number):
        raise WorkerDied(tasks.phase, number, process)


def _end_processes() -> None:
    for child in multiprocess.active_children():
        child.kill()
