"""The provider: three algorithms and the setting that names the program."""

from pathlib import Path

from processing.core.ProcessingConfig import ProcessingConfig, Setting
from qgis.core import QgsProcessingProvider
from qgis.PyQt.QtGui import QIcon

from .anonymize import AnonymizeAlgorithm
from .audit import AuditAlgorithm
from .onto_zones import OntoZonesAlgorithm
from .program import SETTING


class OdkanonProvider(QgsProcessingProvider):
    """ODkAnon's algorithms."""

    def load(self):
        """Add the setting and the algorithms."""
        ProcessingConfig.settingIcons[self.name()] = self.icon()
        ProcessingConfig.addSetting(
            Setting(self.name(), SETTING, "Path of the program odkanon (empty: wherever it is found)", "")
        )
        ProcessingConfig.readSettings()
        self.refreshAlgorithms()
        return True

    def unload(self):
        """Remove the setting."""
        ProcessingConfig.removeSetting(SETTING)

    def loadAlgorithms(self):  # noqa: N802
        """Add the algorithms."""
        for algorithm in (AnonymizeAlgorithm, OntoZonesAlgorithm, AuditAlgorithm):
            self.addAlgorithm(algorithm())

    def id(self):
        """Return the id that precedes the names of the algorithms."""
        return "odkanon"

    def name(self):
        """Return the name in the toolbox."""
        return "ODkAnon"

    def longName(self):  # noqa: N802
        """Return the name with a description."""
        return "ODkAnon (origin-destination flows safe to publish)"

    def icon(self):
        """Return the icon."""
        return QIcon(str(Path(__file__).parent / "icon.svg"))
