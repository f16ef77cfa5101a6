"""Trips of a layer or a file become a release, shown as flows and zones."""

import tempfile
from pathlib import Path

from qgis.core import (
    QgsProcessing,
    QgsProcessingException,
    QgsProcessingOutputFile,
    QgsProcessingOutputHtml,
    QgsProcessingOutputNumber,
    QgsProcessingOutputVectorLayer,
    QgsProcessingParameterEnum,
    QgsProcessingParameterFile,
    QgsProcessingParameterFolderDestination,
    QgsProcessingParameterNumber,
    QgsProcessingParameterString,
    QgsProcessingParameterVectorLayer,
)

from .common import OdkanonAlgorithm
from .layer_styles import style_flows, style_zones
from .program import run

PROTECT = ("participants", "population", "persons", "households")
METHODS = ("", "cascade", "odkanon", "oigh", "atg-soft", "treecut", "freezones")


class AnonymizeAlgorithm(OdkanonAlgorithm):
    """Runs ``odkanon anonymize`` and ``odkanon export --to gpkg``."""

    NAME, TITLE = "anonymize", "Anonymise trips"
    HELP = (
        "Turns trips into flows between zones, each shared by at least k trips or persons.\n\n"
        "The trips are a layer (lines from origin to destination, or a table with coordinates) or a file (CSV, "
        "Parquet, spreadsheet, GIS formats). The release folder may be published. The recipe beside it contains "
        "private figures and must stay with you.\n\n"
        "Columns are recognised by their names; give others as 'person=ID, weight=FACTOR'. Names of attributes, such "
        "as 'mode; hour:7-9,9-17', make one table by place and attributes."
    )

    def initAlgorithm(self, config=None):  # noqa: N802
        """Define parameters and outputs."""
        any_layer = [QgsProcessing.TypeVector]
        self.addParameter(QgsProcessingParameterVectorLayer("LAYER", "Layer of trips", any_layer, optional=True))
        self.addParameter(QgsProcessingParameterFile("FILE", "or file of trips", optional=True))
        number = QgsProcessingParameterNumber(
            "K", "k: how many share every published flow", defaultValue=10, minValue=1
        )
        self.addParameter(number)
        who = "Who is counted (none: what the program recommends for this data)"
        self.addParameter(QgsProcessingParameterEnum("PROTECT", who, PROTECT, allowMultiple=True, optional=True))
        methods = ["recommended", *METHODS[1:]]
        self.addParameter(QgsProcessingParameterEnum("METHOD", "Method", methods, defaultValue=0))
        self.addParameter(QgsProcessingParameterString("BY", "Attributes to publish by", optional=True))
        self.addParameter(QgsProcessingParameterString("COLUMNS", "Columns, as person=ID, weight=W", optional=True))
        self.add_advanced(QgsProcessingParameterString("EXTRA", "Further options of the command line", optional=True))
        self.addParameter(QgsProcessingParameterFolderDestination("OUTPUT", "Release folder"))
        self.addOutput(QgsProcessingOutputVectorLayer("FLOWS", "Flows"))
        self.addOutput(QgsProcessingOutputVectorLayer("ZONES", "Zones"))
        self.addOutput(QgsProcessingOutputHtml("REPORT", "Report"))
        self.addOutput(QgsProcessingOutputFile("RECIPE", "Recipe (private)"))
        self.addOutput(QgsProcessingOutputNumber("CLASSES", "Published flows"))

    def processAlgorithm(self, parameters, context, feedback):  # noqa: N802
        """Protect the trips, and load flows and zones."""
        release = Path(self.parameterAsString(parameters, "OUTPUT", context))
        with tempfile.TemporaryDirectory() as folder:
            source = self.layer_to_file(parameters, "LAYER", folder, context, feedback)
            source = source or self.parameterAsFile(parameters, "FILE", context)
            if not source:
                raise QgsProcessingException("Choose a layer or a file of trips.")
            options = ["-o", str(release), *self._options(parameters, context)]
            result = run(["anonymize", source, *options], feedback)["result"]
        package = release.with_name(f"{release.name}.gpkg")
        run(["export", str(release), "--to", "gpkg", "-o", str(package), "--force"], feedback)
        zones, flows = f"{package}|layername=zones", f"{package}|layername=flows"
        return {
            "OUTPUT": str(release),
            "ZONES": self.show(zones, "Areas of the release", style_zones('"trips" / "area_km2"'), context),
            "FLOWS": self.show(flows, "Flows of the release", style_flows("trips"), context),
            "REPORT": str(release / "report.html"),
            "RECIPE": str(release.with_name(f"{release.name}.recipe.json")),
            "CLASSES": result["about"]["published"]["classes"],
        }

    def _options(self, parameters, context):
        options = ["--k", str(self.parameterAsInt(parameters, "K", context))]
        if parameters.get("PROTECT") is not None:  # else the first would be read as chosen
            for who in self.parameterAsEnums(parameters, "PROTECT", context):
                options += ["--protect", PROTECT[who]]
        method = METHODS[self.parameterAsEnum(parameters, "METHOD", context)]
        options += ["--method", method] if method else []
        for name, option, separator in (("BY", "--by", ";"), ("COLUMNS", "--column", ",")):
            for part in self.parameterAsString(parameters, name, context).split(separator):
                options += [option, part.strip()] if part.strip() else []
        return options + self.extra_options(parameters, "EXTRA", context)
