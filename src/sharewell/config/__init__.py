"""The configuration: one `sharewell.toml` that says what is public, what may be spent, and by whom.

Every mistake names the key that it is about and says how to mend it. Numbers are read exactly: a
budget of 0.1 is a tenth.
"""

from sharewell.config.config import Analyst, Config
from sharewell.config.reader import parse_config, read_config
from sharewell.config.service import Service

__all__ = ["Analyst", "Config", "Service", "parse_config", "read_config"]
