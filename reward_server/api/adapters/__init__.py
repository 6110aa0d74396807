"""Doors that speak the wire formats of trainers which have one of their own."""

from __future__ import annotations

from fastapi import APIRouter

from reward_server.api.adapters import nemo_gym, openrlhf, roll, slime

routes = APIRouter(prefix="/adapters", tags=["adapters"])
for adapter in (openrlhf, slime, roll, nemo_gym):
    routes.include_router(adapter.routes)
