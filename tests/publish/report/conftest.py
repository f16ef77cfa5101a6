from web.building import page_built

__all__ = ["page_built"]
