"""How results look: flows as lines whose width shows their size, zones and districts from light to dark."""

from qgis.core import (
    QgsFeatureRequest,
    QgsFillSymbol,
    QgsGraduatedSymbolRenderer,
    QgsLineSymbol,
    QgsPalLayerSettings,
    QgsProcessingLayerPostProcessorInterface,
    QgsProperty,
    QgsSingleSymbolRenderer,
    QgsStyle,
    QgsSymbolLayer,
    QgsTextFormat,
    QgsVectorLayerSimpleLabeling,
)

THINNEST, WIDEST = 0.05, 4.0
"""Widths of the smallest and the largest flow in millimetres."""
CLASSES = 6


class StyledLayer(QgsProcessingLayerPostProcessorInterface):
    """Styles a layer when Processing has loaded it."""

    def __init__(self, style, done):
        super().__init__()
        self._style, self._done = style, done

    def postProcessLayer(self, layer, context, feedback):  # noqa: N802
        """Style the layer."""
        self._style(layer)
        layer.triggerRepaint()
        self._done()


def style_flows(field):
    """Return a style for lines with the given field: wide where many travel, small flows below large ones."""

    def style(layer):
        symbol = QgsLineSymbol.createSimple({"color": "176,58,46,110", "width": "0.3", "capstyle": "round"})
        width = f'{THINNEST} + {WIDEST} * "{field}" / maximum("{field}")'
        symbol.symbolLayer(0).setDataDefinedProperty(
            QgsSymbolLayer.PropertyStrokeWidth, QgsProperty.fromExpression(width)
        )
        renderer = QgsSingleSymbolRenderer(symbol)
        _draw_in_order(renderer, f'"{field}"', ascending=True)
        layer.setRenderer(renderer)

    return style


def style_zones(expression, label=None):
    """Return a style for polygons by the value of an expression, large ones below small ones."""

    def style(layer):
        symbol = QgsFillSymbol.createSimple({"color": "200,200,200,160", "outline_color": "255,255,255,160"})
        symbol.setOpacity(0.7)
        ramp = QgsStyle.defaultStyle().colorRamp("YlGnBu")
        renderer = QgsGraduatedSymbolRenderer.createRenderer(
            layer, expression, CLASSES, QgsGraduatedSymbolRenderer.Quantile, symbol, ramp
        )
        if renderer is not None and renderer.ranges():
            _draw_in_order(renderer, "$area", ascending=False)
            layer.setRenderer(renderer)
        if label is not None:
            _label(layer, label)

    return style


def _draw_in_order(renderer, expression, *, ascending):
    clause = QgsFeatureRequest.OrderByClause(expression, ascending)
    renderer.setOrderBy(QgsFeatureRequest.OrderBy([clause]))
    renderer.setOrderByEnabled(True)


def _label(layer, field):
    settings, text = QgsPalLayerSettings(), QgsTextFormat()
    settings.fieldName = field
    text.setSize(8)
    settings.setFormat(text)
    layer.setLabeling(QgsVectorLayerSimpleLabeling(settings))
    layer.setLabelsEnabled(True)
