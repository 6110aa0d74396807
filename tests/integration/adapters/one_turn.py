"""A harness of verifiers that asks the model once, from within the process."""

from __future__ import annotations

from typing import Any

import httpx
import verifiers.v1 as vf

__all__ = ["OneTurnHarness"]


class OneTurnHarness(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc]  # not installed here
    """Needs neither a container nor a download, unlike those that come with verifiers."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(  # noqa: PLR0913, PLR0917  # verifiers passes so many
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,  # noqa: ARG002
        runtime: Any,  # noqa: ARG002
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],  # noqa: ARG002
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        system, user = self.resolve_prompt(data)
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": user},
        ]
        async with httpx.AsyncClient(timeout=60) as http:
            response = await http.post(
                f"{endpoint}/chat/completions",
                json={"model": ctx.model, "messages": messages},
                headers={"Authorization": f"Bearer {secret}"},
            )
        return vf.ProgramResult(0 if response.is_success else 1, "", response.text)
