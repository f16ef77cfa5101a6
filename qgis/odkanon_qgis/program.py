"""The installed program `odkanon`: found, started with ``--json``, watched and stopped."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from processing.core.ProcessingConfig import ProcessingConfig
from qgis.core import QgsProcessingException

SETTING = "ODKANON_COMMAND"
VARIABLE = "ODKANON_COMMAND"
"""The environment variable that names the program, before the setting."""
MISSING = (
    "The program odkanon was not found. Install it with\n\n    pipx install 'odkanon[geo]'\n\n"
    "(or pip install 'odkanon[geo]' into any Python 3.11 or newer), and restart QGIS. If it is installed but not on "
    "the search path, give its path in Settings > Options > Processing > Providers > ODkAnon."
)
_POLL = 0.1
_PATIENCE = 10
"""Seconds to wait for the program to end by itself after it was stopped."""
_OF_QGIS = ("PYTHONHOME", "PYTHONPATH", "PYTHONEXECUTABLE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables by which the Python of QGIS would be used instead of the program's own."""


def find_program():
    """Return the path of the program; raises with instructions if there is none."""
    places = [os.environ.get(VARIABLE), ProcessingConfig.getSetting(SETTING), shutil.which("odkanon")]
    local = Path.home() / ".local" / "bin" / "odkanon"
    places += [str(local), str(Path(sys.prefix) / "Scripts" / "odkanon.exe")]
    for place in places:
        if place and Path(place).is_file():
            return str(place)
    raise QgsProcessingException(MISSING)


def run(arguments, feedback):
    """Run the program and return the document that ``--json`` prints; refusals and errors raise.

    Parameters
    ----------
    arguments : list of str
        Command and options.
    feedback : QgsProcessingFeedback
        Receives stages and progress, and may cancel.
    """
    command = [find_program(), *arguments, "--json"]
    feedback.pushCommandInfo(" ".join(f'"{part}"' if " " in part else part for part in command))
    environment = {name: value for name, value in os.environ.items() if name not in _OF_QGIS}
    hidden = {"creationflags": subprocess.CREATE_NO_WINDOW} if os.name == "nt" else {}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, env=environment, **hidden
        )
        errors = []
        reader = threading.Thread(target=_follow, args=(process.stderr, feedback, errors), daemon=True)
        reader.start()
        while process.poll() is None:
            if feedback.isCanceled():
                _stop(process)
                raise QgsProcessingException("Cancelled; nothing was written.")
            time.sleep(_POLL)
        reader.join(_PATIENCE)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    return _document(text, process.returncode, errors, feedback)


def _follow(stream, feedback, errors):
    """Pass on the stages that the program reports, one JSON object a line; keep other lines for an error."""
    for raw in stream:
        line = raw.decode("utf-8", "replace").strip()
        try:
            report = json.loads(line)
            stage, share = report["stage"], report["share"]
        except (ValueError, KeyError, TypeError):
            errors.append(line)
            continue
        feedback.setProgressText(stage)
        if share is not None:
            feedback.setProgress(100 * share)


def _stop(process):
    """Interrupt the program as Ctrl-C does, so that it tidies up; end it if it does not stop."""
    with contextlib.suppress(OSError):
        process.send_signal(signal.SIGTERM if os.name == "nt" else signal.SIGINT)
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()


def _document(text, code, errors, feedback):
    """Return the printed document; raise the error in it."""
    try:
        document = json.loads(text)
    except ValueError:
        raise QgsProcessingException("\n".join(errors[-20:]) or f"odkanon ended with exit code {code}") from None
    for warning in document.get("warnings", []):
        feedback.pushWarning(str(warning))
    if document.get("error"):
        error = document["error"]
        raise QgsProcessingException(error["message"] if isinstance(error, dict) else str(error))
    for message in document.get("messages", []):
        feedback.pushInfo(str(message))
    return document | {"exit_code": code}
