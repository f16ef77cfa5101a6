"""A release read onto the zones of a layer: districts with totals, and lines between them."""

import csv
import tempfile
from pathlib import Path

from qgis.core import (
    QgsFeature,
    QgsField,
    QgsFields,
    QgsGeometry,
    QgsProcessing,
    QgsProcessingException,
    QgsProcessingParameterFeatureSink,
    QgsProcessingParameterField,
    QgsProcessingParameterFile,
    QgsProcessingParameterString,
    QgsProcessingParameterVectorLayer,
    QgsWkbTypes,
)
from qgis.PyQt.QtCore import QVariant

from .common import OdkanonAlgorithm
from .layer_styles import style_flows, style_zones
from .program import run


class OntoZonesAlgorithm(OdkanonAlgorithm):
    """Runs ``odkanon export --onto``."""

    NAME, TITLE = "onto", "Read a release onto zones"
    HELP = (
        "Turns a release into a matrix between the zones of a polygon layer.\n\n"
        "Where the zones of the release do not match, flows are estimated from the published rows. Only published "
        "numbers are used, so the result is as safe as the release."
    )

    def initAlgorithm(self, config=None):  # noqa: N802
        """Define parameters and outputs."""
        self.addParameter(
            QgsProcessingParameterFile("RELEASE", "Release folder", behavior=QgsProcessingParameterFile.Folder)
        )
        polygons = [QgsProcessing.TypeVectorPolygon]
        self.addParameter(QgsProcessingParameterVectorLayer("ZONES", "Zones", polygons))
        self.addParameter(QgsProcessingParameterField("CODE", "Field with the codes of the zones", None, "ZONES"))
        self.addParameter(QgsProcessingParameterString("WHERE", 'Only rows such as mode == "car"', optional=True))
        self.add_advanced(QgsProcessingParameterString("EXTRA", "Further options of the command line", optional=True))
        line, polygon = QgsProcessing.TypeVectorLine, QgsProcessing.TypeVectorPolygon
        self.addParameter(QgsProcessingParameterFeatureSink("DISTRICTS", "Districts with totals", polygon))
        self.addParameter(QgsProcessingParameterFeatureSink("FLOWS", "Flows between districts", line))

    def processAlgorithm(self, parameters, context, feedback):  # noqa: N802
        """Export the matrix, and write it as lines and polygons."""
        layer = self.parameterAsVectorLayer(parameters, "ZONES", context)
        code = self.parameterAsString(parameters, "CODE", context)
        where = self.parameterAsString(parameters, "WHERE", context)
        release = self.parameterAsString(parameters, "RELEASE", context)
        with tempfile.TemporaryDirectory() as folder:
            zones, output = self.layer_to_file(parameters, "ZONES", folder, context, feedback), Path(folder) / "onto"
            options = ["--onto", zones, "--id", code, "--to", "csv", "-o", str(output)]
            options += ["--where", where] if where else []
            options += self.extra_options(parameters, "EXTRA", context)
            run(["export", release, *options], feedback)
            totals, flows = _read(output / "zones.csv"), _read(output / "flows.csv")
        shapes = {_text(feature[code]): feature.geometry() for feature in layer.getFeatures()}
        centres = {zone: shape.pointOnSurface().asPoint() for zone, shape in shapes.items() if not shape.isNull()}
        between = [row for row in flows if row["origin"] in centres and row["destination"] in centres]
        lines = [
            (QgsGeometry.fromPolylineXY([centres[row["origin"]], centres[row["destination"]]]), row)
            for row in between
            if row["origin"] != row["destination"]
        ]
        areas = [(shapes[row["zone"]], row) for row in totals if row["zone"] in shapes]
        feedback.pushInfo(f"{len(lines):,} flows between {len(areas):,} zones")
        results = {}
        measure = next((name for name in ("estimate", "trips") if flows and name in flows[0]), "trips")
        total = next((name for name in (f"{measure}_from", "trips_from") if totals and name in totals[0]), "trips_from")
        for name, rows, kind, style in (
            ("DISTRICTS", areas, QgsWkbTypes.multiType(layer.wkbType()), style_zones(f'"{total}"', "zone")),
            ("FLOWS", lines, QgsWkbTypes.LineString, style_flows(measure)),
        ):
            results[name] = self._write(parameters, name, (rows, kind, layer.crs()), context)
            if context.willLoadLayerOnCompletion(results[name]):
                title = self.parameterDefinition(name).description()
                self.style_on_load(results[name], title, style, context)
        return results

    def _write(self, parameters, name, content, context):
        """Write geometries with their rows, and return the id of the layer."""
        rows, kind, crs = content
        fields = QgsFields()
        columns = list(rows[0][1]) if rows else []
        for column in columns:
            number = column not in ("origin", "destination", "zone")
            fields.append(QgsField(column, QVariant.Double if number else QVariant.String))
        sink, layer_id = self.parameterAsSink(parameters, name, context, fields, kind, crs)
        if sink is None:
            raise QgsProcessingException(self.invalidSinkError(parameters, name))
        for shape, row in rows:
            feature = QgsFeature(fields)
            if QgsWkbTypes.isMultiType(kind):
                shape = QgsGeometry(shape)
                shape.convertToMultiType()
            feature.setGeometry(shape)
            feature.setAttributes([_value(row[column], fields.field(column)) for column in columns])
            sink.addFeature(feature)
        return layer_id


def _read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _text(code):
    """Return a code as the program writes it: 52.0 is 52."""
    return str(int(code)) if isinstance(code, float) and code.is_integer() else str(code)


def _value(text, field):
    if field.type() == QVariant.String:
        return text
    return float(text) if text else None
