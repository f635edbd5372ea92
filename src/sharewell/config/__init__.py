"""The configuration: one `sharewell.toml` with what is public, what may be spent, and by whom."""

from sharewell.config.config import Analyst, Config, parse_config, read_config
from sharewell.config.service import Service

__all__ = ["Analyst", "Config", "Service", "parse_config", "read_config"]
