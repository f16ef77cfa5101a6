"""Ways to change a written release: carelessly, or with everything else made to match."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from odkanon.estimate.flat_matrix import write_matrix
from odkanon.release_format.folder import open_release
from odkanon.release_format.recipe import recipe_path

Rows = list[dict[str, Any]]


def read_rows(folder: Path) -> Rows:
    return list(pyarrow.parquet.read_table(folder / "classes.parquet").to_pylist())


def write_rows(folder: Path, rows: Rows) -> None:
    table = pa.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table, folder / "classes.parquet")
    lines = [",".join(table.column_names), *(",".join(map(str, row.values())) for row in rows)]
    (folder / "classes.csv").write_text("\n".join(lines) + "\n")


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def sign_again(folder: Path) -> None:
    """Make digests match the files, as a careful forger would."""
    digests = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("classes.csv", "classes.parquet", "zones.geojson", "matrix.csv", "matrix.parquet")
        if (folder / name).exists()  # a table by one place has no matrix
    }
    edit_json(folder / "release.json", lambda content: content.update(files=digests))
    if recipe_path(folder).is_file():
        own = hashlib.sha256((folder / "release.json").read_bytes()).hexdigest()
        edit_json(recipe_path(folder), lambda content: content.update(public_sha256=own))


def settle_accounts(folder: Path) -> None:
    """Make sums, zones and claims match the flows, in the folder and in the recipe, as a very careful forger would."""
    rows = read_rows(folder)

    def of_zones(content: Any) -> None:
        for feature in content["features"]:
            about = feature["properties"]
            own = [row for row in rows if row[about["axis"]] == about["id"]]
            about["trips"] = sum(row["trips"] for row in own)
            about["weight"] = sum(row["weight"] for row in own)

    def of_release(content: Any) -> None:
        published = content["published"]
        published["classes"] = len(rows)
        for name in ("trips", "weight"):
            now = sum(row[name] for row in rows)
            if "suppressed" in content:
                content["suppressed"][name] += published[name] - now
            published[name] = now
        for measure, claim in content.get("privacy", {}).items():
            claim["min"] = min(row[measure] for row in rows)
            claim["below"] = sum(row[measure] < claim["threshold"] for row in rows)

    edit_json(folder / "zones.geojson", of_zones)
    edit_json(folder / "release.json", of_release)
    edit_json(recipe_path(folder), lambda content: of_release(content["about"]))
    matrix = write_matrix(open_release(folder), folder)
    edit_json(folder / "release.json", lambda content: content.update(matrix=matrix))
    sign_again(folder)


def copy_release(folder: Path, target: Path) -> Path:
    """Copy a release with its recipe."""
    shutil.copytree(folder, target)
    shutil.copy(recipe_path(folder), recipe_path(target))
    return target
