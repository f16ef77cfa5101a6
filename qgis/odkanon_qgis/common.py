"""What the algorithms share.

QGIS loads results in the order of their titles, each above those before: titles of flows come after those of areas.
"""

import shlex
from pathlib import Path

from qgis.core import (
    QgsProcessingAlgorithm,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingFeatureSourceDefinition,
    QgsProcessingParameterDefinition,
    QgsVectorFileWriter,
    QgsVectorLayer,
)
from qgis.PyQt.QtGui import QIcon

from .layer_styles import StyledLayer

ICON = str(Path(__file__).parent / "icon.svg")
_PROCESSORS = {}
"""What styles layers that are still to be loaded: QGIS keeps no reference, and the algorithm is gone by then."""


class OdkanonAlgorithm(QgsProcessingAlgorithm):
    """An algorithm that runs the program; subclasses have a name, a title and a description."""

    NAME = TITLE = HELP = ""

    def createInstance(self):  # noqa: N802
        """Return a new algorithm of the same class."""
        return type(self)()

    def name(self):
        """Return the id."""
        return self.NAME

    def displayName(self):  # noqa: N802
        """Return the title in the toolbox."""
        return self.TITLE

    def shortHelpString(self):  # noqa: N802
        """Return the description beside the dialogue."""
        return self.HELP

    def icon(self):
        """Return the icon."""
        return QIcon(ICON)

    def add_advanced(self, parameter):
        """Add a parameter to the folded part of the dialogue."""
        parameter.setFlags(parameter.flags() | QgsProcessingParameterDefinition.FlagAdvanced)
        self.addParameter(parameter)

    def extra_options(self, parameters, name, context):
        """Return the options that were typed for the command line."""
        return shlex.split(self.parameterAsString(parameters, name, context))

    def show(self, uri, title, style, context):
        """Load a layer with a style when the algorithm has finished, and return its id."""
        layer = QgsVectorLayer(uri, title, "ogr")
        if not layer.isValid():
            raise QgsProcessingException(f"{uri} cannot be opened")
        context.temporaryLayerStore().addMapLayer(layer)
        self.style_on_load(layer.id(), title, style, context)
        return layer.id()

    def style_on_load(self, layer_id, title, style, context):
        """Style a layer when it is loaded."""
        processor = _PROCESSORS[layer_id] = StyledLayer(style, done=lambda: _PROCESSORS.pop(layer_id, None))
        details = QgsProcessingContext.LayerDetails(title, context.project(), title)
        if context.willLoadLayerOnCompletion(layer_id):
            details = context.layerToLoadOnCompletionDetails(layer_id)
        details.setPostProcessor(processor)
        context.addLayerToLoadOnCompletion(layer_id, details)

    def layer_to_file(self, parameters, name, folder, context, feedback):
        """Write a layer, or its selected features, to a GeoPackage and return the path; None without a layer."""
        layer = self.parameterAsVectorLayer(parameters, name, context)
        if layer is None:
            return None
        given = parameters.get(name)
        options = QgsVectorFileWriter.SaveVectorOptions()
        options.driverName, options.layerName = "GPKG", "layer"
        options.onlySelectedFeatures = (
            isinstance(given, QgsProcessingFeatureSourceDefinition) and given.selectedFeaturesOnly
        )
        options.feedback = None
        path = str(Path(folder) / f"{name.lower()}.gpkg")
        written = QgsVectorFileWriter.writeAsVectorFormatV3(layer, path, context.transformContext(), options)
        if written[0] != QgsVectorFileWriter.NoError:
            raise QgsProcessingException(f"The layer {layer.name()} cannot be written: {written[1]}")
        return path
