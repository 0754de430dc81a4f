"""How long a step takes, for the sides that make theirs in Python."""
import time


def least_ms(step, seconds):
    """The least time of one step in milliseconds, of all that fit the seconds and at least one; four
    before them are not timed."""
    for _ in range(4):
        step()
    least, end = float("inf"), time.perf_counter() + seconds
    while least == float("inf") or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        least = min(least, time.perf_counter() - start)
    return 1e3 * least
