"""The plugin: it adds the provider, with and without a window."""

from qgis.core import QgsApplication

from .provider import OdkanonProvider


class OdkanonPlugin:
    """Adds the algorithms to the Processing toolbox while it is loaded."""

    def __init__(self, iface):
        self._provider = None

    def initProcessing(self):  # noqa: N802
        """Add the provider; all that `qgis_process` calls."""
        self._provider = OdkanonProvider()
        QgsApplication.processingRegistry().addProvider(self._provider)

    def initGui(self):  # noqa: N802
        """Add the provider to the toolbox."""
        self.initProcessing()

    def unload(self):
        """Remove the provider."""
        if self._provider is not None:
            QgsApplication.processingRegistry().removeProvider(self._provider)
