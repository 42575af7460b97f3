"""Numbers in messages."""

from mpkc.dialects.wording import counted, ordinal


def test_one_and_many() -> None:
    assert [counted(n, "value") for n in (0, 1, 2, 1000)] == ["0 values", "1 value", "2 values", "1,000 values"]
    assert counted(2, "queue entry", "queue entries") == "2 queue entries"


def test_ordinals() -> None:
    numbers = (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)
    assert " ".join(map(ordinal, numbers)) == "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th"
