"""The HTTP service: `create_app` makes the application, `serve` runs it."""

from sharewell.service.http.app import create_app
from sharewell.service.http.server import serve

__all__ = ["create_app", "serve"]
