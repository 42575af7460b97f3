"""How long the queues of a mega-kernel are, and how long they must be (docs/verify.md)."""

from dataclasses import dataclass

from mpkc.dialects.tgraph_table import Table

LEAST = 2  # with one slot, "free for the next position" and "holds this one" would be the same number


@dataclass(frozen=True)
class QueueCapacities:
    """Slots of each queue, powers of two, so that positions may wrap.

    Attributes:
        task: of a worker's queue.
        event: of a scheduler's queue.
    """

    task: int
    event: int


def queue_capacities(table: Table, workers: int, schedulers: int) -> QueueCapacities:
    """The capacities that the runtime gives its queues: events never wait for a slot, tasks rarely do."""
    share = -(-table.task_count // workers)
    return QueueCapacities(
        power_of_two(max(LEAST, share + 1)), power_of_two(max(LEAST, events_at_once(table.event_count, schedulers)))
    )


def events_at_once(events: int, schedulers: int) -> int:
    """The most events that a scheduler's queue ever holds.

    Event e goes to scheduler e mod `schedulers`, once an iteration, and so does event number `events`, which ends the
    iteration. When that one fires, all others have left their queues.
    """
    return events // schedulers + 1


def power_of_two(least: int) -> int:
    """The smallest power of two that is at least `least`."""
    return 1 << max(0, least - 1).bit_length()
