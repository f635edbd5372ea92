"""The page at /docs: Swagger UI from packaged files, without the internet or inline scripts."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Depends
from starlette.responses import Response

from sharewell.errors import NotFound
from sharewell.service.http.dependencies import check_url

router = APIRouter(include_in_schema=False, dependencies=[Depends(check_url)])

#: The page runs packaged scripts only, none inline, and connects to its own server only.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE = """<!DOCTYPE html>
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
START = b"""SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  persistAuthorization: false,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
});
"""
MEDIA_TYPES = {
    "start.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon.png": "image/png",
}


@router.get("/docs")
async def docs() -> Response:
    """Show the API as a page, to read and to try."""
    return Response(PAGE, media_type="text/html", headers={"Content-Security-Policy": PAGE_POLICY})


@router.get("/docs/{file}")
async def docs_file(file: str) -> Response:
    """A file of the page."""
    if file not in MEDIA_TYPES:
        raise NotFound("Unknown file.", hint="The page is /docs.")
    return Response(
        START if file == "start.js" else _read(file),
        media_type=MEDIA_TYPES[file],
        headers={"Cache-Control": "public, max-age=3600"},
    )


@cache
def _read(name: str) -> bytes:
    return files("fastapi_offline").joinpath("static", name).read_bytes()
