"""The service over HTTP: `create_app` makes the application, `serve` runs it."""

from sharewell.service.http.app import App, create_app
from sharewell.service.http.serving import serve

__all__ = ["App", "create_app", "serve"]
