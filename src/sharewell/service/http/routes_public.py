"""Routes without a token: health, readiness, metrics, the console at / and the API's page at /docs.

The pages come from packaged files, without the internet. The sources of the console are in `web/`; `make
web` builds them into the folder `static` beside this file.
"""

from __future__ import annotations

import gzip
import secrets
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from sharewell.errors import LedgerUnavailable, NotBegun, NotFound
from sharewell.service.http.dependencies import check_url, require_local_or_curator
from sharewell.service.http.errors import describe, describe_text
from sharewell.service.http.state import app_state

router = APIRouter(tags=["public"], dependencies=[Depends(check_url)])
pages = APIRouter(include_in_schema=False, dependencies=[Depends(check_url)])


@router.get("/healthz")
async def healthz() -> dict[str, bool]:
    """Report that the process is alive."""
    return {"alive": True}


@router.get("/readyz")
async def readyz(request: Request) -> dict[str, bool]:
    """Report whether the service takes questions: not while it opens, closes or cannot store them."""
    state = app_state(request)
    if planned := state.registry.planned:
        raise NotBegun(f"Not begun yet: {', '.join(planned)}.", hint="Begin it: `sharewell begin`.")
    state.monitor.require_ready()
    if not all(dataset.is_ready for dataset in state.datasets.values()):
        raise LedgerUnavailable("A ledger cannot be written.", hint="See the service's log.")
    return {"ready": True}


@router.get(
    "/metrics",
    response_class=Response,
    responses=describe(401, 403, 429) | describe_text("text/plain"),
    dependencies=[Depends(require_local_or_curator)],
)
async def metrics(request: Request) -> Response:
    """Show metrics for Prometheus, to this machine or to curators.

    They count requests and questions. None belongs to one analyst or depends on the data.
    """
    state = app_state(request)
    waiting = {name: dataset.service.waiting() for name, dataset in state.datasets.items()}
    return Response(state.metrics.render(waiting), media_type=CONTENT_TYPE_LATEST)


# The console

#: The page runs its own script only and connects to its own server only. Its editor adds styles, which
#: need the nonce of the response; charts are drawn to images from blobs.
CONSOLE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: The files of the page that browsers fetch, by the ends of their names.
CONSOLE_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


@pages.get("/")
async def console() -> Response:
    """The console."""
    nonce = secrets.token_urlsafe(16)
    text = _read("index.html").decode().replace("{nonce}", nonce).replace("{version}", _version())
    return Response(
        text,
        media_type="text/html",
        headers={
            "Content-Security-Policy": CONSOLE_POLICY.format(nonce=nonce),
            "Cross-Origin-Opener-Policy": "same-origin",
        },
    )


@pages.get("/console/{version}/{file}")
async def console_file(version: str, file: str, request: Request) -> Response:
    """A file of the console; its version is part of its address, so that it can be kept for long."""
    if file not in _media_types() or version != _version():
        raise NotFound("Unknown file.", hint="Reload the page.")
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    content = _read(file)
    if "gzip" in request.headers.get("accept-encoding", ""):
        content = _compressed(file)
        headers["Content-Encoding"] = "gzip"
    return Response(content, media_type=_media_types()[file], headers=headers)


@cache
def _media_types() -> dict[str, str]:
    """The media type of every file that is served."""
    names = (PurePath(each.name) for each in files(__package__).joinpath("static").iterdir())
    return {name.name: CONSOLE_TYPES[name.suffix] for name in names if name.suffix in CONSOLE_TYPES}


@cache
def _version() -> str:
    digest = sha256()
    for file in sorted(_media_types()):
        digest.update(_read(file))
    return digest.hexdigest()[:12]


@cache
def _read(name: str) -> bytes:
    return files(__package__).joinpath("static", name).read_bytes()


@cache
def _compressed(name: str) -> bytes:
    return gzip.compress(_read(name), 9, mtime=0)


# The API's page

#: The page runs packaged scripts only, none inline, and connects to its own server only.
DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
DOCS_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sharewell HTTP API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="icon" href="docs/favicon.png">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript. See <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
DOCS_START = b"""SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  persistAuthorization: false,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
});
"""
DOCS_TYPES = {
    "start.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon.png": "image/png",
}


@pages.get("/docs")
async def docs() -> Response:
    """Show the API as a page, to read and to try."""
    return Response(DOCS_PAGE, media_type="text/html", headers={"Content-Security-Policy": DOCS_POLICY})


@pages.get("/docs/{file}")
async def docs_file(file: str) -> Response:
    """A file of the page."""
    if file not in DOCS_TYPES:
        raise NotFound("Unknown file.", hint="The page is /docs.")
    return Response(
        DOCS_START if file == "start.js" else _read_packaged(file),
        media_type=DOCS_TYPES[file],
        headers={"Cache-Control": "public, max-age=3600"},
    )


@cache
def _read_packaged(name: str) -> bytes:
    return files("fastapi_offline").joinpath("static", name).read_bytes()
