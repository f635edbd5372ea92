"""The configuration: one `sharewell.toml` with what is public, what may be spent, and by whom."""

from sharewell.config.analysts import Analyst
from sharewell.config.config import Config, parse_config, read_config
from sharewell.config.service import Service

__all__ = ["Analyst", "Config", "Service", "parse_config", "read_config"]
