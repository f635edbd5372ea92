"""The page at /docs: Swagger UI from files of ours, without the internet and without inline scripts."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from sharewell.errors import NotFound
from sharewell.service.http.call import Call
from sharewell.service.http.operations import Operation
from sharewell.service.http.replies import FOR_DATA, Headers, Reply

#: The page runs scripts of ours only, and none that stand in it; it talks to nobody else.
FOR_PAGE: Headers = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        b"img-src 'self' data:; font-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    *FOR_DATA[1:],
)
FOR_FILES: Headers = (*FOR_DATA[:-1], (b"cache-control", b"public, max-age=3600"))

PAGE = b"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sharewell over HTTP</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="icon" href="docs/favicon.png">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript. <a href="openapi.json">The same for machines.</a></noscript>
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
SCRIPT = b"text/javascript; charset=utf-8"
FILES = {
    "swagger-ui.css": b"text/css; charset=utf-8",
    "swagger-ui-bundle.js": SCRIPT,
    "favicon.png": b"image/png",
}


async def docs(call: Call) -> Reply:
    """Show all of this as a page, to read and to try."""
    return Reply(200, PAGE, b"text/html; charset=utf-8", safety=FOR_PAGE)


async def docs_file(call: Call) -> Reply:
    """Give a file that the page is made of."""
    name = call.path_params["file"]
    if name == "start.js":
        return Reply(200, START, SCRIPT, safety=FOR_FILES)
    if name not in FILES:
        raise NotFound("There is no such file.", hint="/docs is the page.")
    return Reply(200, _content(name), FILES[name], safety=FOR_FILES)


@cache
def _content(name: str) -> bytes:
    return files("fastapi_offline").joinpath("static", name).read_bytes()


async def openapi(call: Call) -> Reply:
    """Describe all of this for machines, as OpenAPI."""
    return Reply(200, call.app.description_bytes)


OPERATIONS = (
    Operation("GET", "/docs", docs, {200: ("The page.", "text/html")}),
    Operation("GET", "/docs/{file}", docs_file, {200: ("The file.", "*/*")}, problems=(404,)),
    Operation("GET", "/openapi.json", openapi, {200: ("The description.", "application/json")}),
)
