"""The page at /: the console for analysts and curators, from packaged files.

Its sources are in `web/`; `make web` builds them into the folder `static` beside this file.
"""

from __future__ import annotations

import gzip
import secrets
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from sharewell.errors import NotFound
from sharewell.service.http.dependencies import check_url

router = APIRouter(include_in_schema=False, dependencies=[Depends(check_url)])

#: The page runs its own script only and connects to its own server only. Its editor adds styles, which
#: need the nonce of the response; charts are drawn to images from blobs.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: The files of the page that browsers fetch, by the ends of their names.
MEDIA_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


@router.get("/")
async def page() -> Response:
    """The console."""
    nonce = secrets.token_urlsafe(16)
    text = _read("index.html").decode().replace("{nonce}", nonce).replace("{version}", _version())
    return Response(
        text,
        media_type="text/html",
        headers={
            "Content-Security-Policy": PAGE_POLICY.format(nonce=nonce),
            "Cross-Origin-Opener-Policy": "same-origin",
        },
    )


@router.get("/console/{version}/{file}")
async def page_file(version: str, file: str, request: Request) -> Response:
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
    return {name.name: MEDIA_TYPES[name.suffix] for name in names if name.suffix in MEDIA_TYPES}


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
