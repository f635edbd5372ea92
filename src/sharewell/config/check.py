"""What `sharewell check` does: say what every setting of a file will do, and what is wrong with it."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from typing import Any

from rich.console import Console

from sharewell.config.check_tables import print_tables
from sharewell.config.checked import Checked, Look, check
from sharewell.config.forecast import Expected
from sharewell.config.reader import read_config


def show_check(path: str, as_json: bool, *also: Look) -> bool:
    """Say what a configuration file will do, and whether it can be served; `also` look for more.

    Privacy: reads the names and types of the columns, and no row; spends nothing.
    """
    checked = check(read_config(path), *also)
    if as_json:
        sys.stdout.write(json.dumps(_plain(checked), indent=2, ensure_ascii=False) + "\n")
    else:
        print_tables(checked, Console())
    return checked.ok


def _plain(checked: Checked) -> dict[str, Any]:
    """All of it as plain data: amounts are exact texts, what is infinite or not known is null."""
    config, settings = checked.config, checked.settings
    service = asdict(config.service) | {"access": str(config.service.access)}
    return {
        "ok": checked.ok,
        "dataset": config.name,
        "cells": config.domain.size,
        "columns": {each.name: each.size for each in config.domain.attributes},
        "budget": {
            "currency": config.budget.currency,
            "total": str(config.budget.total),
            "epsilon": str(config.budget.epsilon),
            "delta": str(config.budget.delta),
        },
        "error_threshold": config.error_threshold,
        "mechanism": settings.name,
        "query_budget": None if settings.price is None else str(settings.price),
        "errors_are_public": settings.errors_are_public,
        "analysts": [
            {
                "analyst": each.analyst,
                "part": str(each.part),
                "share": str(each.share),
                "seed": str(each.seed),
                "paid_questions": each.questions,
            }
            for each in checked.means
        ],
        "expected_errors": [
            {
                "question": look.asked,
                "analysts": list(look.analysts),
                "free": _plain_error(look.free),
                "paid": _plain_error(look.paid),
            }
            for look in checked.outlooks
        ],
        "scheduler": config.scheduler_name,
        "promises": [
            {
                "desideratum": each.desideratum,
                "status": each.status,
                "assumptions": list(each.assumptions),
                "page": each.page,
            }
            for each in checked.promises
        ],
        "service": service,
        "findings": [asdict(finding) for finding in checked.findings],
    }


def _plain_error(error: Expected | None) -> dict[str, float] | None:
    if error is None or not math.isfinite(error.typical):
        return None
    return {"standard_error": error.typical, "useful": error.within}
