"""Settings of all tests: property tests have no deadline, since a busy machine is not a defect."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("ragkit", deadline=None)
settings.load_profile("ragkit")
