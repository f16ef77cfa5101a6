"""A small town whose trips lie in a file, and releases of it in folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from odkanon import InputSpec, Release, Rule, read_trips
from odkanon.evidence.attack import UNLIMITED, AttackResult
from odkanon.evidence.attack_context import open_context
from odkanon.evidence.attacks import ATTACKS
from odkanon.evidence.gather import run_attack
from odkanon.methods.method_registry import anonymize
from odkanon.read.od_matrix import build_od


def write_town(path: Path, *, trips: int = 1500, persons: int = 150, seed: int = 3) -> Path:
    """Write trips around a few centres; sexes differ in how many there are."""
    random = np.random.default_rng(seed)
    centres = random.normal(0, 0.02, size=(4, 2)) + np.array([48.8566, 2.3522])
    ends = centres[random.integers(0, 4, size=(2, trips))] + random.normal(0, 0.005, size=(2, trips, 2))
    who = random.integers(0, persons, trips)
    table = pa.table(
        {
            "person": [f"p{number}" for number in who.tolist()],
            "start_time": [f"2024-01-01 {at // 60 % 24:02}:{at % 60:02}:{at // 1440:02}" for at in range(trips)],
            "start_lat": ends[0, :, 0],
            "start_lon": ends[0, :, 1],
            "end_lat": ends[1, :, 0],
            "end_lon": ends[1, :, 1],
            "weight": (1.0 + who % 3).tolist(),
            "sex": np.where(who % 5 == 0, "Man", "Woman").tolist(),
        }
    )
    pyarrow.parquet.write_table(table, path)
    return path


def release(trips: Path, folder: Path, *, k: int = 10, where: str | None = None, **options: Any) -> Path:
    """Make and save a release of a town by trips."""
    return made(trips, k=k, where=where, **options).save(folder)


def made(trips: Path, *, k: int = 10, where: str | None = None, resolution: int = 10, **options: Any) -> Release:
    """Make a release of a town by trips."""
    return anonymize(build_od(read_trips(trips, where=where), resolution=resolution), Rule(trips=k), **options)


def attack(name: str, folder: Path, trips: Path, *earlier: Path, resolution: int = 10) -> AttackResult:
    """Run one attack without a time limit."""
    context = open_context(folder, InputSpec(trips, resolution=resolution), earlier=earlier)
    return run_attack(context, ATTACKS[name], seconds=UNLIMITED).result
