"""ODkAnon in the Processing toolbox of QGIS."""


def classFactory(iface):  # noqa: N802 - the name that QGIS looks for
    """Return the plugin."""
    from .plugin import OdkanonPlugin

    return OdkanonPlugin(iface)
