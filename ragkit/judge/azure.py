"""A judge that is a deployment of Azure OpenAI: its addresses, its api-version, its key's header.

Asked straight, as every other endpoint: what differs is the way there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from ragkit.errors import JudgeError
from ragkit.judge.endpoint import OpenAIEndpoint
from ragkit.judge.settings import JudgeSettings

_ENDPOINT, _VERSION, _TOKEN = "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "AZURE_OPENAI_AD_TOKEN"
_V1 = re.compile(r"/openai/v1$")


@dataclass
class AzureEndpoint(OpenAIEndpoint):
    """One deployment. With an `api_version` it has an address of its own; without one, it is asked over /openai/v1."""

    kind: ClassVar[str] = "azure_openai"
    default_key_variable: ClassVar[str] = "AZURE_OPENAI_API_KEY"
    api_version: str | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        return {**super().identity, "api_version": self.api_version}

    @property
    def chat_url(self) -> str:
        if self.api_version is None:
            return f"{self.url}/chat/completions"
        return (f"{self.url}/deployments/{quote(self.model, safe='')}/chat/completions"
                f"?api-version={quote(self.api_version, safe='')}")

    @property
    def models_url(self) -> str | None:
        return None  # Azure lists models, not deployments

    @property
    def needs_key(self) -> bool:
        return True

    def key(self) -> str:
        token = os.environ.get(_TOKEN, "").strip()
        own = os.environ.get(self.key_variable, "").strip()
        return own or token or super().key()

    def authorization(self, key: str) -> dict[str, str]:
        if key == os.environ.get(_TOKEN, "").strip():  # of Entra ID
            return {"Authorization": f"Bearer {key}"}
        return {"api-key": key}


def azure_endpoint(deployment: str, url: str | None, settings: JudgeSettings) -> AzureEndpoint:
    """The endpoint of a deployment at `url`, else at AZURE_OPENAI_ENDPOINT. OPENAI_API_VERSION chooses the older form
    of its address; a URL that ends in /openai/v1 never takes it. JudgeError where no address is known.

    >>> azure_endpoint("gpt", "https://me.openai.azure.com", JudgeSettings()).where
    'https://me.openai.azure.com/openai/v1'
    """
    base, _, query = (url or os.environ.get(_ENDPOINT, "")).strip().partition("?")
    base = re.sub(r"/deployments/[^/]+$", "", base.rstrip("/").removesuffix("/chat/completions"))
    if not base:
        raise JudgeError(f"judge azure_openai:{deployment}: no address is known; set the environment variable "
                         f"{_ENDPOINT} to https://NAME.openai.azure.com, or give the URL")
    if not re.match(r"https?://[^/\s]+", base):
        raise JudgeError(f"judge azure_openai:{deployment}: {base!r} is no address; expected "
                         "https://NAME.openai.azure.com")
    named = re.search(r"api-version=([^&]+)", query)  # of the portal's "target URI"
    version = named.group(1) if named else os.environ.get(_VERSION, "").strip() or None
    if _V1.search(base) or version in ("v1", "preview", "latest"):
        version = None
    resource = base.removesuffix("/v1").removesuffix("/openai")
    path = "/openai" if version else "/openai/v1"
    return AzureEndpoint(deployment, f"{resource}{path}", settings, api_version=version)
