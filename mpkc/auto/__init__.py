"""`auto`: the semaphores that an expert would choose, by simulated time (barrier-free, section 8.2, RQ3)."""

from mpkc.auto.choice import UNLIMITED, Budget, Choice
from mpkc.auto.search import PLAIN, choose

__all__ = ["PLAIN", "UNLIMITED", "Budget", "Choice", "choose"]
