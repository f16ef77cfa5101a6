"""What sampling adds: of how many one was asked, as the weights tell, and what that means in plain words."""

from __future__ import annotations

from dataclasses import dataclass

from odkanon.evidence.attack_context import Case


@dataclass(frozen=True)
class Sampling:
    """How a survey stands for a population.

    Attributes
    ----------
    trips, weight : float
        Trips of the input, and what they stand for.
    rate : float
        Trips asked about for each that was made.
    most : float
        The rate where the sample is densest: one over the smallest weight, 1 at most.
    words : str
        What that means.
    """

    trips: int
    weight: float
    rate: float
    most: float
    words: str


def sampling_of(case: Case) -> Sampling | None:
    """Return what the weights say about the sample; None where there are none, or where they expand nothing."""
    if case.opened.records is None or "weight" not in case.opened.records.measures:
        return None
    trips, weight, least = case.opened.connection.execute(
        "SELECT sum(trips)::BIGINT, CAST(sum(weight) AS DOUBLE), CAST(min(weight / trips) AS DOUBLE) "
        f"FROM scope{case.release.number}"
    ).fetchall()[0]
    if not weight or weight <= trips:
        return None
    rate, most = trips / weight, min(1.0, 1 / least)
    words = (
        f"By the weights, the {trips:,} trips stand for {weight:,.0f}: about one in {1 / rate:,.0f} was asked about, "
        f"at most one in {1 / most:,.0f}. Somebody who only knows that a neighbour makes such a trip does not know "
        "whether the neighbour was asked, and a row of the table is most likely about others. This helps against "
        "strangers, not against those who know who took part: the household, the interviewer, the person. It is no "
        "part of the promise, and nothing on this sheet counts on it."
    )
    return Sampling(trips, weight, rate, most, words)
