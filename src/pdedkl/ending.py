"""Why a training ended before it was done. A run whose time was up has ended as it was asked to."""

from __future__ import annotations

OUT_OF_TIME = "the time was up"
INTERRUPTED = "interrupted"
ASKED = "a callback asked for it"
