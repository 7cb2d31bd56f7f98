"""The values of kiln's options after environment and defaults."""

from __future__ import annotations


def options(name: str, given: dict[str, str]) -> dict[str, str]:
    """A provider's options as its sessions have them."""
    return dict(given)
