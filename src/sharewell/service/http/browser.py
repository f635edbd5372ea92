"""What a browser's request must carry: a session cookie, its own origin and a CSRF header.

A session counts only with all three. The cookie is HttpOnly and SameSite=Strict, so that no script
reads it and no other site sends it; the origin and the header hold where a browser knows neither.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from fastapi import Request, Response

from sharewell.errors import AccessError
from sharewell.service.sessions import SESSION_SECONDS, csrf_token

CSRF_HEADER = "x-sharewell-csrf"
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


def session_cookie(request: Request) -> str | None:
    """The secret of a request's session, if it has one."""
    return request.cookies.get(_cookie_name(request))


def set_session_cookie(request: Request, response: Response, secret: str | None) -> None:
    """Give a browser the secret of its session; None takes it away.

    Without a path, browsers send the cookie to the folder of this request, `/v1/` under any prefix that
    a proxy adds. The origin, not the proxy's headers, says whether the browser uses TLS.
    """
    response.set_cookie(
        _cookie_name(request),
        secret or "",
        max_age=SESSION_SECONDS if secret else 0,
        path=None,
        secure=request.headers.get("origin", "").startswith("https:"),
        httponly=True,
        samesite="strict",
    )


def require_same_origin(request: Request) -> None:
    """Refuse a request that a page of another origin has caused.

    Browsers name the origin of every request that may change something, and in secure contexts the
    relation of the two sites.
    """
    origin = request.headers.get("origin")
    if origin is None:
        site = request.headers.get("sec-fetch-site", "same-origin")
        same = request.method in _SAFE_METHODS and site in ("same-origin", "none")
    else:
        same = _names_same_host(origin, request.headers.get("host", ""))
    if not same:
        raise AccessError(
            "The request comes from another site.", hint="Use the service's own page, or a token."
        )


def require_csrf_header(request: Request, secret: str) -> None:
    """Refuse a request without the value that only the service's own page can read."""
    sent = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(sent.encode(), csrf_token(secret).encode()):
        raise AccessError(
            "The header X-Sharewell-CSRF is missing or wrong.", hint="Reload the page, or use a token."
        )


def _names_same_host(origin: str, host: str) -> bool:
    """Whether an origin is that of a Host header, of which a proxy may have dropped the port."""
    try:
        theirs, ours = urlsplit(origin), urlsplit(f"//{host}")
        return bool(ours.hostname) and (
            theirs.hostname == ours.hostname and ours.port in (None, _port(theirs.scheme, theirs.port))
        )
    except ValueError:
        return False


def _port(scheme: str, port: int | None) -> int | None:
    return port or {"http": 80, "https": 443}.get(scheme)


def _cookie_name(request: Request) -> str:
    """The name of the cookie: cookies know no ports, and one machine may run several services."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"sharewell_session_{port}" if port.isdecimal() and port.isascii() else "sharewell_session"
