"""Endpoints in the wire formats of trainers that have a reward client of their own."""

from __future__ import annotations

from fastapi import APIRouter

from reward_server.api.adapters import nemo_gym, openrlhf, roll, slime

routes = APIRouter(prefix="/adapters", tags=["adapters"])
for adapter in (openrlhf, slime, roll, nemo_gym):
    routes.include_router(adapter.routes)
