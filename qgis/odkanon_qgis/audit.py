"""A release is checked, with or without the trips behind it."""

import json
import tempfile
from pathlib import Path

from qgis.core import (
    QgsProcessingOutputBoolean,
    QgsProcessingOutputNumber,
    QgsProcessingParameterFile,
    QgsProcessingParameterFileDestination,
    QgsProcessingParameterString,
)

from .common import OdkanonAlgorithm
from .program import run


class AuditAlgorithm(OdkanonAlgorithm):
    """Runs ``odkanon audit``."""

    NAME, TITLE = "audit", "Audit a release"
    HELP = (
        "Checks a release folder with code that shares nothing with what made it: the rule, totals, zones and persons, "
        "and what a comparison of several releases would disclose. With the trips every flow is counted again."
    )

    def initAlgorithm(self, config=None):  # noqa: N802
        """Define parameters and outputs."""
        folder = QgsProcessingParameterFile.Folder
        self.addParameter(QgsProcessingParameterFile("RELEASE", "Release folder", behavior=folder))
        other = QgsProcessingParameterFile("OTHER", "Another release to compare with", behavior=folder, optional=True)
        self.addParameter(other)
        self.addParameter(QgsProcessingParameterFile("TRIPS", "File with the trips", optional=True))
        self.add_advanced(QgsProcessingParameterString("EXTRA", "Further options of the command line", optional=True))
        self.addParameter(
            QgsProcessingParameterFileDestination("OUTPUT", "Findings", "JSON files (*.json)", optional=True)
        )
        self.addOutput(QgsProcessingOutputBoolean("CLEAN", "Nothing was found"))
        self.addOutput(QgsProcessingOutputNumber("FINDINGS", "Number of findings"))

    def processAlgorithm(self, parameters, context, feedback):  # noqa: N802
        """Run the audit and list its findings."""
        releases = [self.parameterAsFile(parameters, name, context) for name in ("RELEASE", "OTHER")]
        trips = self.parameterAsFile(parameters, "TRIPS", context)
        output = self.parameterAsFileOutput(parameters, "OUTPUT", context)
        with tempfile.TemporaryDirectory() as folder:
            report = Path(output or Path(folder) / "findings.json")
            options = ["-o", str(report), "--force", *(["--trips", trips] if trips else [])]
            arguments = ["audit", *filter(None, releases), *options]
            document = run(arguments + self.extra_options(parameters, "EXTRA", context), feedback)
            listed = json.loads(report.read_text(encoding="utf-8"))["findings"]
        findings = [each for each in listed if each["severity"] == "finding"]
        for each in findings:
            feedback.reportError(each["message"])
        clean = document["exit_code"] == 0
        feedback.pushInfo("Nothing was found." if clean else f"Findings: {len(findings):,}. Do not publish.")
        return {"OUTPUT": output, "CLEAN": clean, "FINDINGS": len(findings)}
